"""What the training kernel is told: rows that come back as they went, memory within what is said, shapes it has no room for."""

from __future__ import annotations

import pytest
import torch
from trained_alone import clouds, mixed

from equisep.training import Member, Recipe, Shape, Stage, bytes_per_member
from equisep.training.ensemble.kernel.compile import device_obstacle
from equisep.training.ensemble.kernel.layout import LEAD, SMALL_BYTES, Build, Layout, across, obstacle
from equisep.training.ensemble.kernel.stage import WORTH_BUILDING, KernelStepper, build_for, kernel_obstacle, operations
from equisep.training.ensemble.samples import draw_samples
from equisep.training.ensemble.stack import Stack

CPU = torch.device("cpu")
SHAPES = [
    Shape.deep(8),
    Shape.deep(20, width=50),
    Shape((100, 50), inputs=300),
    Shape((128,), inputs=129, classes=16),
    Shape((7, 3), inputs=5, classes=3, norm=False),
    Shape((4,), inputs=128, classes=16),
]


def stack_of(shape: Shape) -> Stack:
    return Stack.of([shape.build(seed).state_dict() for seed in (0, 1)], shape, device=CPU, dtype=torch.float32)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_stack_comes_back_from_its_rows(shape: Shape) -> None:
    stack, again = stack_of(shape), stack_of(shape)
    for values in (again.theta, *again.running_mean, *again.running_var):
        values.uniform_()
    layout = Layout(shape, Build.of(shape))
    layout.unpack(layout.pack(stack), again)
    for index in (0, 1):
        for name, value in stack.state(index).items():
            assert torch.equal(again.state(index)[name], value), name
    assert int((layout.pack(again) != 0).sum()) <= again.theta.numel() + 2 * 2 * sum(shape.widths)  # gaps stay empty


@pytest.mark.parametrize("batch_size", [16, 128])
@pytest.mark.parametrize("optimizer", ["sgd", "momentum", "adam"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_what_a_stage_holds_is_no_more_than_is_said(shape: Shape, optimizer: str, batch_size: int) -> None:
    """Every tensor that grows with the members, counted on one that was made; batches have 128 places at any size."""
    x, y = clouds(80, inputs=shape.inputs, classes=shape.classes)
    held = []
    for members in (1, 3):
        ones = [Member(Recipe(optimizer, batch_size=batch_size, seed=seed, epochs=1), shape) for seed in range(members)]
        samples = draw_samples(ones, x, y, per_class=None, sizes=None).on(CPU, torch.float32)
        states = [one.shape.build(one.recipe.seed).state_dict() for one in ones]
        stack = Stack.of(states, shape, device=CPU, dtype=torch.float32)
        stepper = KernelStepper(
            stack, samples, ones, Stage(epochs=1), build=Build.of(shape), launch=lambda *_, **__: None
        )
        told = stepper._arguments(0, 1, 1)
        assert told is not None
        tensors = [*told, stack.theta, *stack.running_mean, *stack.running_var, samples.rows, samples.labels]
        held.append(sum({one.data_ptr(): one.numel() * one.element_size() for one in tensors}.values()))
    assert (held[1] - held[0]) / 2 <= bytes_per_member(ones[0], 80, torch.float32, epochs=1)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("cluster", [1, 2, 4, 8])
@pytest.mark.parametrize("tf32", [False, True])
def test_a_build_has_room_for_what_it_reads(shape: Shape, cluster: int, tf32: bool) -> None:
    build = Build.of(shape, cluster=cluster, tf32=tf32)
    assert build.stride % 8 == 4 and build.stride >= build.chunk >= max(shape.widths)
    assert build.chunk * -(-shape.inputs // build.chunk) >= shape.inputs and build.chunk % 4 == 0
    assert 8 * build.columns * cluster >= max(shape.widths)
    tile = 8 if tf32 else 1  # warps read whole tiles
    units = 7 * build.columns + -(-build.columns // tile) * tile
    lead = 128 if tf32 else LEAD
    assert build.d_rows * lead >= units * build.stride and build.x_rows >= max(build.chunk, 8 * shape.classes)
    assert build.d_rows * lead >= shape.classes * build.stride
    if tf32:  # weights of the layer above as they stand in memory, and the rows that tiles read beyond the last
        assert across(build.chunk) % 16 == 8 and across(build.chunk) >= max(shape.widths)
        assert build.x_rows * lead >= max(*shape.widths, -(-shape.classes // 4) * 4) * across(build.chunk)
        rows = (build.shared_bytes(0) - SMALL_BYTES) // (4 * lead)
        last = (cluster - 1) * -(-max(shape.widths) // cluster) + 7 * build.columns + 16
        assert rows >= max(16 * -(-build.chunk // 16), build.x_rows + last)
    else:
        assert build.x_rows * lead >= units * build.stride
    assert build.shared_bytes(shape.depth) <= 227 * 1024  # of Hopper


@pytest.mark.parametrize("tf32", [False, True])
def test_two_blocks_of_the_papers_networks_fit_a_multiprocessor(tf32: bool) -> None:
    assert 2 * (Build.of(Shape.deep(20), tf32=tf32).shared_bytes(20) + 1024) <= 228 * 1024


@pytest.mark.parametrize(
    ("shape", "batch", "why"),
    [
        (Shape(()), 128, "a network without hidden layers has nothing to keep on the chip"),
        (Shape((129,)), 128, "the kernel has room for widths up to 128, and a layer has 129"),
        (Shape((8,), classes=17), 128, "the kernel has room for 16 classes, and there are 17"),
        (Shape((8,) * 64), 128, "the kernel has room for 64 layers, and there are 65"),
        (Shape((8,)), 129, "the kernel has room for batches of 128, and these are of 129"),
        (Shape((8,)), 128, None),
    ],
)
def test_what_it_has_no_room_for(shape: Shape, batch: int, why: str | None) -> None:
    assert obstacle(shape, batch) == why


@pytest.mark.parametrize(
    ("stages", "options", "why"),
    [
        ([Stage(), Stage(leaky=True)], {}, "it begins every stage with a new optimizer, and a stage is leaky"),
        ([Stage()], {"dtype": torch.float64}, "it computes in float32, and members train in torch.float64"),
        ([Stage()], {"tf32": True}, "the device is cpu"),
        ([Stage()], {}, "the device is cpu"),
    ],
)
def test_why_it_is_not_taken(stages: list[Stage], options: dict[str, object], why: str) -> None:
    asked = {"dtype": torch.float32, "tf32": False, "members": 3, "batch_size": 128, "device": CPU, **options}
    assert kernel_obstacle(Shape.deep(4), stages, **asked) == why  # type: ignore[arg-type]
    assert device_obstacle(build_for(Shape.deep(4), members=3, device=CPU), 4, CPU) == "the device is cpu"


def test_the_papers_grid_is_worth_a_build_and_a_doctest_is_not() -> None:
    grid = [Member(Recipe(seed=seed), Shape.deep(4)) for seed in range(19)]
    assert operations(grid, [Stage(epochs=600)], samples=1000) == 6 * 31_000 * 1000 * 600 * 19 > WORTH_BUILDING
    assert operations(mixed(), [Stage(epochs=3)], samples=70) < WORTH_BUILDING
