"""When a step is replayed from a graph and when not, on any machine: a graph that calls its step stands in for CUDA's."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from equisep.errors import InputError
from equisep.training import Augmentation, Recipe, captured, loop, train
from equisep.training.captured import CapturedSteps, hooked, watched
from training.small_loop import data, equal, fresh

RECIPE = Recipe(rate=3e-3, epochs=6, batch_size=32, seed=5)  # 70 samples: batches of 32, 32 and 6; rates fall twice


class StandIn:
    """A graph on any device: its replay calls the step again, on the memory it was captured with."""

    def __init__(self, step: Callable[..., None], held: tuple[Tensor, ...]) -> None:
        self.replay = partial(step, *held)


@pytest.fixture
def graphs(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[int]]:
    """Graphs here, and the batch sizes that were captured and replayed."""
    told: dict[str, list[int]] = {"captured": [], "replayed": []}
    call = CapturedSteps.__call__

    def capture(self: CapturedSteps, *batch: Tensor) -> None:
        if len(batch[0]) not in self._graphs:
            held = tuple(part.clone() for part in batch)
            told["captured"].append(len(batch[0]))
            self._graphs[len(batch[0])] = (StandIn(self._step, held), held)  # type: ignore[assignment]

    def replayed(self: CapturedSteps, *batch: Tensor) -> None:
        call(self, *batch)
        told["replayed"].append(len(batch[0]))

    monkeypatch.setattr(CapturedSteps, "capture", capture)
    monkeypatch.setattr(CapturedSteps, "__call__", replayed)
    allowed = captured.replays
    monkeypatch.setattr(
        loop, "replays", lambda engine, device, obstacle: allowed(engine, torch.device("cuda"), obstacle=obstacle)
    )
    return told


def test_one_epoch_and_a_batch_are_eager_and_each_size_is_captured_once_a_rate(graphs: dict[str, list[int]]) -> None:
    eager, replayed = fresh(), fresh()
    plain = train(eager, *data(), recipe=RECIPE, engine="eager")
    assert graphs == {"captured": [], "replayed": []}
    assert train(replayed, *data(), recipe=RECIPE) == plain and equal(eager, replayed)
    assert graphs["replayed"] == [32, 6] + [32, 32, 6] * 4
    assert graphs["captured"] == [32, 6] * 3  # a rate is part of a graph


@pytest.mark.parametrize("optimizer", ["sgd", "momentum"])
def test_readings_between_epochs_and_class_weights_do_not_stop_graphs(
    graphs: dict[str, list[int]], optimizer: str
) -> None:
    recipe = Recipe(optimizer, 0.1, epochs=4, batch_size=32)  # type: ignore[arg-type]
    seen: dict[str, list[list[Tensor]]] = {"eager": [], "auto": []}
    for engine, states in seen.items():
        model = fresh()

        def read(epoch: int, model: nn.Module = model, states: list[list[Tensor]] = states) -> None:
            model.eval()
            states.append([value.clone() for value in model.state_dict().values()])

        train(model, *data(), recipe=recipe, engine=engine, class_weights=(1.0, 2.0, 0.5), after_epoch=read)  # type: ignore[arg-type]
    pairs = zip(seen["eager"], seen["auto"], strict=True)
    assert all(torch.equal(a, b) for one, two in pairs for a, b in zip(one, two, strict=True))
    assert len(graphs["replayed"]) == 8 and len(seen["auto"]) == 5


def freeze(model: nn.Module) -> None:
    """The head learns no more."""
    model.get_submodule("head").requires_grad_(False)


def move(model: nn.Module) -> None:
    """A weight in new memory, as after `model.cpu().cuda()`."""
    model.get_parameter("head.weight").data = model.get_parameter("head.weight").data.clone()


def switch(model: nn.Module) -> None:
    """BatchNorm follows more slowly."""
    model.get_submodule("blocks.0.norm").momentum = 0.01  # type: ignore[assignment]


@pytest.mark.parametrize("change", [freeze, move, switch])
def test_what_a_reader_changes_of_the_network_is_captured_anew(
    graphs: dict[str, list[int]], change: Callable[[nn.Module], None]
) -> None:
    models = fresh(), fresh()
    for engine, model in zip(("eager", "auto"), models, strict=True):

        def read(epoch: int, model: nn.Module = model) -> None:
            if epoch == 2:
                change(model)

        recipe = Recipe(epochs=4, batch_size=32, milestones=())
        train(model, *data(), recipe=recipe, engine=engine, after_epoch=read)  # type: ignore[arg-type]
    assert graphs["captured"] == [32, 6] * 2 and equal(*models)


class Counting(nn.Module):
    """A network that does something on the host in every forward pass."""

    def __init__(self, chance: Callable[[], Any] | None = None) -> None:
        super().__init__()
        self.inner, self.calls, self.chance = fresh(), 0, chance

    def forward(self, x: Tensor) -> Tensor:
        """The inner network's scores."""
        if self.chance is None:
            self.calls += 1
        else:
            self.chance()
        scores: Tensor = self.inner(x)
        return scores


@pytest.mark.parametrize(
    ("chance", "reason"),
    [
        (None, "a step of it changes `calls`"),
        (lambda: torch.rand(1), "it draws random numbers on the host"),
        (random.random, "it draws random numbers on the host"),
        (lambda: np.random.rand(), "it draws random numbers on the host"),  # noqa: NPY002
    ],
    ids=["counter", "torch", "random", "numpy"],
)
def test_what_a_graph_would_not_repeat_is_seen(
    graphs: dict[str, list[int]], chance: Callable[[], Any] | None, reason: str
) -> None:
    eager, auto = Counting(chance), Counting(chance)
    assert train(eager, *data(), recipe=RECIPE, engine="eager") == train(auto, *data(), recipe=RECIPE)
    assert equal(eager, auto) and eager.calls == auto.calls and not graphs["captured"]
    with pytest.raises(InputError) as caught:
        train(Counting(chance), *data(), recipe=RECIPE, engine="graphs")
    assert str(caught.value) == f"`engine='graphs'` cannot replay `Counting`: {reason}. Use `engine='auto'`."


def test_a_step_that_cannot_be_captured_is_eager_or_refused(
    graphs: dict[str, list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(self: CapturedSteps, *batch: Tensor) -> None:
        raise RuntimeError("operation not permitted when stream is capturing\nmore of it")

    monkeypatch.setattr(CapturedSteps, "capture", fails)
    eager, auto = fresh(), fresh()
    assert train(eager, *data(), recipe=RECIPE, engine="eager") == train(auto, *data(), recipe=RECIPE)
    assert equal(eager, auto)
    with pytest.raises(
        InputError, match=r"`Fnn`: a step of it cannot be captured \(operation not permitted .+capturing\)"
    ):
        train(fresh(), *data(), recipe=RECIPE, engine="graphs")


def hooks() -> dict[str, Callable[[nn.Module], Any]]:
    """Every kind of hook, and where it is set."""
    return {
        "the network": lambda model: model.register_forward_hook(lambda *_: None),
        "module `blocks.0.linear`": lambda model: model.get_submodule("blocks.0.linear").register_forward_pre_hook(
            lambda *_: None
        ),
        "module `head`": lambda model: model.get_submodule("head").register_full_backward_hook(lambda *_: None),
        "parameter `head.bias`": lambda model: model.get_parameter("head.bias").register_hook(lambda grad: None),
        "parameter `head.weight`": lambda model: model.get_parameter("head.weight").register_post_accumulate_grad_hook(
            lambda _: None
        ),
    }


@pytest.mark.parametrize("where", sorted(hooks()))
def test_hooks_see_every_step(where: str, graphs: dict[str, list[int]]) -> None:
    model = fresh()
    assert hooked(model) is None
    handle = hooks()[where](model)
    assert hooked(model) == f"a hook is set on {where}"
    train(model, *data(), recipe=RECIPE)
    assert not graphs["captured"]
    with pytest.raises(InputError, match=f"captured CUDA graphs, but a hook is set on {where}"):
        train(model, *data(), recipe=RECIPE, engine="graphs")
    handle.remove()
    assert hooked(model) is None


def test_hooks_on_all_modules_count() -> None:
    handle = nn.modules.module.register_module_forward_hook(lambda *_: None)
    try:
        assert hooked(fresh()) == "hooks are set on all modules"
    finally:
        handle.remove()
    assert hooked(fresh()) is None


def test_augmented_batches_are_eager(graphs: dict[str, list[int]]) -> None:
    train(fresh(), *data(), recipe=RECIPE, augment=lambda x, _: x)
    assert not graphs["captured"]
    with pytest.raises(InputError, match="but batches are augmented on the host"):
        train(fresh(), *data(), recipe=RECIPE, augment=lambda x, _: x, engine="graphs")


def test_an_augmentation_in_two_halves_is_replayed_with_what_it_drew(graphs: dict[str, list[int]]) -> None:
    """The same numbers as a function that does both at once, which is eager; its generator ends where that one's does."""

    def draw(count: int, generator: torch.Generator) -> Tensor:
        return torch.rand(count, 1, generator=generator)

    parts = Augmentation(draw, lambda x, drawn: x + drawn)
    together, apart = fresh(), fresh()
    plain = train(together, *data(), recipe=RECIPE, augment=lambda x, chance: x + draw(len(x), chance))
    assert not graphs["replayed"]
    assert train(apart, *data(), recipe=RECIPE, augment=parts) == plain and equal(together, apart)
    assert graphs["replayed"] == [32, 6] + [32, 32, 6] * 4


def test_an_ordinary_step_is_nothing_to_speak_of() -> None:
    model = fresh().train()
    with watched(model) as seen:
        nn.functional.cross_entropy(model(data()[0]), data()[1]).backward()
    assert seen == []


def test_graphs_on_a_cpu_and_unknown_engines_are_told_in_one_sentence() -> None:
    for engine, sentence in {
        "graphs": "`engine='graphs'` replays captured CUDA graphs, but the device is cpu. Use `engine='auto'`.",
        "graph": "No engine `graph`. Did you mean `graphs`? Known: auto, eager, graphs.",
    }.items():
        with pytest.raises(InputError) as caught:
            captured.replays(engine, torch.device("cpu"), obstacle=None)
        assert str(caught.value) == sentence
    with pytest.raises(InputError, match="but the device is cpu"):
        train(fresh(), *data(), recipe=RECIPE, engine="graphs")
    assert not captured.replays("auto", torch.device("cpu"), obstacle=None)
    assert captured.replays("auto", torch.device("cuda"), obstacle=None)
    assert not captured.replays("eager", torch.device("cuda"), obstacle=None)
    assert not captured.replays("auto", torch.device("cuda"), obstacle="something")
