"""Passes that keep their buffers on a processor compute what the passes for any device compute."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from equisep.training import Shape
from equisep.training.ensemble.cpu_passes import CpuPasses
from equisep.training.ensemble.passes import Plan, backward, forward, vectors_of
from equisep.training.ensemble.stack import Stack, vector_positions

MEMBERS, BATCH = 3, 24
SHAPES = [
    Shape((7, 11, 5), inputs=6, classes=4),
    Shape((7, 11, 5), inputs=6, classes=4, norm=False),
    Shape((7, 11, 5), inputs=6, classes=4, activation=False),
    Shape((9, 9, 9), inputs=12, classes=3, norm=False, activation=False),
    Shape((), inputs=6, classes=4),
]
PLANS = {
    "all": ((True, True, True, True), (False,) * 4),
    "upper": ((False, False, True, True), (False,) * 4),
    "upper, lower held": ((False, False, True, True), (True, True, False, False)),
    "middle, rest held": ((False, True, False, False), (True, False, True, True)),
}


def stack_of(shape: Shape) -> Stack:
    """Members that have trained a little, as far as can be seen: no scale is one, no running mean zero."""
    stack = Stack.of(
        [shape.build(seed).state_dict() for seed in range(MEMBERS)],
        shape,
        device=torch.device("cpu"),
        dtype=torch.float64,
    )
    generator = torch.Generator().manual_seed(1)
    for tensor in (stack.theta, *stack.running_mean, *stack.running_var):
        tensor += 0.2 * torch.rand(tensor.shape, generator=generator, dtype=torch.float64)
    return stack


def plan_of(shape: Shape, name: str) -> Plan:
    learning, held = (flags[-shape.depth :] for flags in PLANS[name])
    return Plan(learning if any(learning) else (True,), held)


def close(a: Tensor, b: Tensor) -> None:
    torch.testing.assert_close(a, b, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@torch.no_grad()
def test_both_passes_agree_batch_after_batch(shape: Shape, name: str) -> None:
    """Whole batches and smaller ones in turn, so that what a larger one left in a buffer would be seen."""
    plan, stacks = plan_of(shape, name), [stack_of(shape) for _ in range(2)]
    grads = [torch.full_like(stacks[0].theta, 0.5) for _ in range(2)]
    positions = vector_positions(shape, MEMBERS, plan.learning)
    kept = CpuPasses(stacks[1], grads[1], plan, positions, batch=BATCH)
    generator = torch.Generator().manual_seed(0)
    pool = torch.randn(50, shape.inputs, generator=generator, dtype=torch.float64)
    for size in (BATCH, 9, BATCH, 9):
        rows = torch.randint(50, (size, MEMBERS), generator=generator)
        slope = torch.randn(size, MEMBERS, shape.classes, generator=generator, dtype=torch.float64)
        vectors = vectors_of(stacks[0])
        x = pool[rows]
        scores, traces = forward(stacks[0], x, vectors, plan)
        top = traces[-1].output if traces else x
        backward(stacks[0], grads[0], slope, top, traces, vectors, plan, positions)
        close(kept.forward(pool, rows), scores)
        kept.backward(slope)
        close(grads[1], grads[0])
        for statistic in ("running_mean", "running_var"):
            for ours, theirs in zip(getattr(stacks[1], statistic), getattr(stacks[0], statistic), strict=True):
                close(ours, theirs)
        for stack in stacks:  # a step down, so that every pass has to see the parameters of now
            stack.theta.sub_(grads[0], alpha=0.01)


@torch.no_grad()
def test_a_member_that_is_not_a_number_spoils_no_other() -> None:
    shape = SHAPES[0]
    plan = plan_of(shape, "all")
    found = []
    for spoiled in (False, True):
        stack = stack_of(shape)
        if spoiled:
            stack.theta[1] = float("nan")
        grad = torch.zeros_like(stack.theta)
        kept = CpuPasses(stack, grad, plan, vector_positions(shape, MEMBERS, plan.learning), batch=BATCH)
        generator = torch.Generator().manual_seed(0)
        pool = torch.randn(50, shape.inputs, generator=generator, dtype=torch.float64)
        scores = kept.forward(pool, torch.randint(50, (BATCH, MEMBERS), generator=generator))
        kept.backward(torch.ones_like(scores))
        found.append((scores[:, ::2].clone(), grad[::2].clone(), bool(grad[1].isnan().any())))
    (scores, grad, _), (beside, grad_beside, spoiled) = found
    assert spoiled and torch.equal(scores, beside) and torch.equal(grad, grad_beside)
