"""Torch's optimizers called as they are: the same steps, and no import of torch's compiler."""

from __future__ import annotations

import functools
import subprocess
import sys
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from equisep.training import Recipe, eager

KINDS: list[tuple[type, type, dict[str, Any]]] = [
    (eager.Adam, torch.optim.Adam, {"weight_decay": 5e-4}),
    (eager.Sgd, torch.optim.SGD, {"weight_decay": 5e-4}),
    (eager.Sgd, torch.optim.SGD, {"momentum": 0.9}),
]


def weights() -> list[nn.Parameter]:
    generator = torch.Generator().manual_seed(0)
    return [nn.Parameter(torch.randn(shape, generator=generator)) for shape in ((3, 4), (4,))]


def trained(kind: type, options: dict[str, Any]) -> tuple[list[nn.Parameter], Any]:
    own = weights()
    optimizer = kind(own, lr=0.1, fused=True, **options)
    for _ in range(5):
        optimizer.zero_grad()
        loss: Tensor = sum((parameter**2).sum() for parameter in own)  # type: ignore[assignment]
        loss.backward()
        optimizer.step()
    return own, optimizer


@pytest.mark.parametrize(("ours", "torchs", "options"), KINDS)
def test_steps_and_what_is_remembered_are_torchs_to_the_last_bit(
    ours: type, torchs: type, options: dict[str, Any]
) -> None:
    (mine, optimizer), (theirs, other) = trained(ours, options), trained(torchs, options)
    assert all(torch.equal(a, b) for a, b in zip(mine, theirs, strict=True))
    assert all(parameter.requires_grad and parameter.grad is not None for parameter in mine)
    state, expected = optimizer.state_dict(), other.state_dict()
    assert state["param_groups"] == expected["param_groups"]
    other.load_state_dict(state)
    optimizer.load_state_dict(expected)
    for place, own in optimizer.state_dict()["state"].items():
        for name, value in own.items():
            assert value is None or torch.equal(value, state["state"][place][name])


def test_a_hook_on_steps_is_called() -> None:
    """What profilers and Lightning hang on an optimizer."""
    optimizer, seen = eager.Adam(weights(), lr=0.1), []
    optimizer.register_step_post_hook(lambda *_: seen.append("step"))
    optimizer.step()
    assert seen == ["step"]


def test_what_others_put_around_a_method_is_called() -> None:
    """As a profiler does before equisep is imported."""
    seen: list[str] = []

    @functools.wraps(torch.optim.SGD.step)
    def step(self: torch.optim.SGD, closure: None = None) -> None:
        seen.append("step")
        torch.optim.SGD.step(self, closure)

    class Watched(torch.optim.SGD):
        def zero_grad(self, set_to_none: bool = True) -> None:
            seen.append("zero_grad")
            super().zero_grad(set_to_none)

    Watched.step = step  # type: ignore[method-assign, assignment]
    optimizer = eager.eager(Watched)(weights(), lr=0.1)
    optimizer.zero_grad()
    optimizer.step()
    assert seen == ["zero_grad", "step"]


@pytest.mark.parametrize("name", ["sgd", "momentum", "adam"])
def test_recipes_take_them(name: str) -> None:
    made = Recipe(optimizer=name).make_optimizer(weights())
    assert isinstance(made, eager.Adam if name == "adam" else eager.Sgd)


def test_no_training_by_adam_or_momentum_imports_the_compiler_of_torch() -> None:
    """Its import takes longer than a small training: torch guards every optimizer with it."""
    program = """
import sys, torch, equisep
from equisep.training import Member, Recipe, Shape, train_ensemble
torch.set_num_threads(2)  # with one thread, operations are not counted
y = torch.arange(40) % 4
x = torch.randn(40, 6, generator=torch.Generator().manual_seed(0))
for name in ("adam", "momentum"):
    recipe = Recipe(optimizer=name, rate=1e-3, epochs=1, batch_size=20)
    equisep.train(equisep.Fnn(depth=3, width=8, inputs=6, classes=4), x, y, recipe=recipe)
    train_ensemble([Member(recipe, Shape.deep(3, width=8, inputs=6, classes=4))], x, y)
print(*(name for name in ("torch._dynamo", "sympy") if name in sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
