"""The training kernel takes the steps that the passes take: its own source, run thread by thread on this processor.

Builds for TF32 are held against the same passes twice. With factors as they are (`rounded` off) everything but the rounding is
tested to 1e-10: which lane holds what of the tiles, what is fetched when, what lies beyond the last unit, input and sample. With
factors rounded to 10 bits they are held against passes in float64 whose products round theirs.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from kernel_on_cpu import COMPILER, CpuLaunch
from kernel_rounding import SMALL_SHAPES, many, rounded_products, share_of_rounding, ten_bits
from torch import Tensor
from trained_alone import SMALL, clouds, member, mixed, same, worst

from equisep.training import Member, Shape, Stage
from equisep.training.ensemble.kernel.layout import Build
from equisep.training.ensemble.kernel.stage import MOST_STEPS, KernelStepper
from equisep.training.ensemble.samples import draw_samples
from equisep.training.ensemble.stack import Stack
from equisep.training.ensemble.stepper import Stepper

pytestmark = pytest.mark.skipif(COMPILER is None, reason="needs g++")
CPU = torch.device("cpu")


@pytest.fixture(params=[False, True], ids=["float32", "tf32"])
def tf32(request: pytest.FixtureRequest) -> bool:
    """Which build; its factors are not rounded."""
    return bool(request.param)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kernel")


def trained(
    members: list[Member],
    stages: list[Stage],
    folder: Path | None,
    *,
    dtype: torch.dtype = torch.float64,
    cluster: int = 1,
    order: int = 0,
    n: int = 70,
    shift: float | None = None,
    tf32: bool = False,
    rounded: bool = False,
    resident: int = 1,
) -> tuple[list[dict[str, Tensor]], Tensor]:
    """Weights of every member, loss and accuracy of every epoch; by the passes, or with a folder by the kernel.

    `order` is that of the threads; with a `shift` the first BatchNorm adds it at the start, and samples lie far from the origin.
    """
    shape = members[0].shape
    x, y = clouds(n, inputs=shape.inputs, classes=shape.classes)
    samples = draw_samples(members, x, y, per_class=None, sizes=None).on(CPU, dtype)
    states = [one.shape.build(one.recipe.seed).state_dict() for one in members]
    if shift is not None:
        samples.pool.add_(50)
        for state in states:
            state["blocks.0.norm.bias"].fill_(shift)
    stack = Stack.of(states, shape, device=CPU, dtype=dtype)
    told = []
    with torch.no_grad():
        for stage in stages:
            if folder is None:
                stepper: Stepper | KernelStepper = Stepper(stack, samples, members, stage)
            else:
                launch = CpuLaunch(folder, dtype, order=order, rounded=rounded)
                build = Build.of(shape, cluster=cluster, resident=resident, tf32=tf32)
                stepper = KernelStepper(stack, samples, members, stage, build=build, launch=launch)
                stepper.scratch.fill_(torch.nan)  # what nobody wrote is seen
            told += [torch.stack(numbers) for numbers in stepper.epochs()]
    return [stack.state(index) for index in range(len(members))], torch.stack(told)


def agree(members: list[Member], stages: list[Stage], folder: Path, within: float = 1e-10, **options: object) -> None:
    of_kernel = ("cluster", "order", "tf32", "rounded", "resident")
    plain = {name: value for name, value in options.items() if name not in of_kernel}
    expected, numbers = trained(members, stages, None, **plain)  # type: ignore[arg-type]
    found, told = trained(members, stages, folder, **options)  # type: ignore[arg-type]
    assert max(worst(one, other) for one, other in zip(found, expected, strict=True)) <= within
    assert torch.allclose(told, numbers, rtol=1e-6 if within < 1e-6 else 1e-3)


@pytest.mark.parametrize("cluster", [1, 2])
def test_all_optimizers_with_both_batch_sizes(folder: Path, cluster: int, tf32: bool) -> None:
    agree(mixed(), [Stage(epochs=2)], folder, cluster=cluster, tf32=tf32)


def test_the_build_for_two_blocks_on_a_multiprocessor(folder: Path, tf32: bool) -> None:
    """It asks memory for fewer numbers at once."""
    agree(mixed(), [Stage(epochs=2)], folder, tf32=tf32, resident=2)


@pytest.mark.parametrize("cluster", [1, 2])
@pytest.mark.parametrize("rule", ["follow", "hold"])
def test_stages_with_frozen_layers(folder: Path, rule: str, cluster: int, tf32: bool) -> None:
    """The lowest and the highest layer learn, then one in the middle, then the classifier alone."""
    shape = Shape((8, 7, 5), inputs=6, classes=3)
    stages = [Stage(epochs=1, trains=trains, frozen_norm=rule, milestones=()) for trains in ((1, 4), (2,), (4,))]  # type: ignore[arg-type]
    agree(mixed(shape)[:3], stages, folder, cluster=cluster, tf32=tf32)


@pytest.mark.parametrize("shape", [Shape((8, 7), 6, 3, norm=False), Shape((8,), 6, 3, activation=False)], ids=str)
def test_without_normalization_or_activation(folder: Path, shape: Shape, tf32: bool) -> None:
    agree(mixed(shape)[1:3], [Stage(epochs=2)], folder, tf32=tf32)


@pytest.mark.parametrize("mean", [False, True])
def test_terms_of_the_loss_by_class(folder: Path, mean: bool, tf32: bool) -> None:
    one = member(class_weights=(1.0, 3.0, 0.5), weighted_mean=mean)
    agree(
        [one, replace(one, logit_adjustment=(0.5, -1.0, 0.0), class_weights=None)], [Stage(epochs=2)], folder, tf32=tf32
    )


@pytest.mark.parametrize("widths", [(100, 30), (128, 41)])
def test_inputs_that_come_in_pieces_and_full_warps(folder: Path, widths: tuple[int, ...], tf32: bool) -> None:
    shape = Shape(widths, inputs=140, classes=10)
    agree([member(shape=shape, batch_size=128)], [Stage(epochs=1)], folder, n=150, tf32=tf32)


@pytest.mark.parametrize("cluster", [1, 2, 4])
def test_no_number_depends_on_which_thread_comes_first(folder: Path, cluster: int, tf32: bool) -> None:
    """A barrier that is missing would let one read what another has not written yet, or has written already."""
    stages = [
        Stage(epochs=1),
        Stage(epochs=1, trains=(1, 4), milestones=()),
        Stage(epochs=1, trains=(4,), milestones=()),
    ]
    members = mixed(Shape((12, 7, 9), inputs=6, classes=3))[1:2]
    one, *others = (trained(members, stages, folder, cluster=cluster, order=order, tf32=tf32) for order in range(5))
    for other in others:
        assert all(map(same, one[0], other[0])) and torch.equal(one[1], other[1])


@pytest.mark.parametrize("cluster", [1, 2])
def test_places_beyond_a_small_batch_stay_out_of_the_numbers(folder: Path, cluster: int, tf32: bool) -> None:
    """Where a layer is dead on a batch of 6, the two places beyond it, rounded up to 8, must not grow from layer to layer."""
    members, stages = [member(shape=Shape((8,) * 24, inputs=6, classes=3))], [Stage(epochs=1, trains=(24, 25))]
    options = {"dtype": torch.float32, "shift": -10.0}
    found, told = trained(members, stages, folder, cluster=cluster, tf32=tf32, **options)  # type: ignore[arg-type]
    expected, numbers = trained(members, stages, None, **options)  # type: ignore[arg-type]
    assert all(bool(value.isfinite().all()) for one in (*found, *expected) for value in one.values())
    assert torch.allclose(told, numbers, rtol=1e-4)


def test_float32_is_float64_rounded(folder: Path) -> None:
    members = mixed(SMALL)
    found, _ = trained(members, [Stage(epochs=2)], folder, dtype=torch.float32)
    plain, _ = trained(members, [Stage(epochs=2)], None, dtype=torch.float32)
    exact, _ = trained(members, [Stage(epochs=2)], None)
    for one, rival, wanted in zip(found, plain, exact, strict=True):
        gap, usual = (worst({n: v.to(wanted[n].dtype) for n, v in state.items()}, wanted) for state in (one, rival))
        assert gap < 10 * usual


@pytest.mark.parametrize("cluster", [1, 2])
def test_tf32_rounds_the_factors_and_nothing_else(folder: Path, cluster: int) -> None:
    """Products of the classifier as those of hidden layers, forward and backward; biases learn from slopes as they are."""
    members = mixed(Shape((12, 7, 9), inputs=6, classes=3))
    found, told = trained(members, [Stage(epochs=2)], folder, cluster=cluster, tf32=True, rounded=True)
    plain, _ = trained(members, [Stage(epochs=2)], None)
    with rounded_products():
        expected, numbers = trained(members, [Stage(epochs=2)], None)
    assert max(worst(one, other) for one, other in zip(found, expected, strict=True)) < 1e-9
    assert torch.allclose(told, numbers, rtol=1e-9)
    assert min(worst(one, other) for one, other in zip(plain, expected, strict=True)) > 1e-5  # which rounding has moved


@pytest.mark.parametrize("rounded", [False, True])
def test_the_judge_of_a_gpu_knows_a_kernel_that_rounds(folder: Path, rounded: bool) -> None:
    """In float32, as there (test_kernel_cuda.py)."""
    members = many(SMALL_SHAPES[1], epochs=1, batch_size=64)
    exact, _ = trained(members, [Stage(epochs=1)], None, n=150)
    with rounded_products():
        wanted, _ = trained(members, [Stage(epochs=1)], None, n=150)
    options = {"dtype": torch.float32, "tf32": True, "rounded": rounded, "n": 150}
    found, _ = trained(members, [Stage(epochs=1)], folder, **options)  # type: ignore[arg-type]
    share = share_of_rounding(members, found, wanted, exact)
    assert share < 0.03 if rounded else 0.9 < share < 1.1


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_ten_bits_are_the_nearest(dtype: torch.dtype) -> None:
    near, away, half = 1 + 2**-10, 1 + 2**-11 - 2**-20, 1 + 2**-11
    values = torch.tensor([near, away, half, -half, 3e30, -1e-30, 0], dtype=dtype)
    wanted = torch.tensor([near, 1, near, -near, 3e30, -1e-30, 0], dtype=dtype)
    assert torch.equal(ten_bits(values)[:4], wanted[:4])
    assert torch.allclose(ten_bits(values), wanted, rtol=2**-11, atol=0)


def test_a_stage_goes_on_from_what_was_kept_to_the_same_bits(folder: Path, tf32: bool) -> None:
    """Weights, statistics and moments after two epochs of four, in a stepper made anew."""
    members = mixed()[:3]
    samples = draw_samples(members, *clouds(), per_class=None, sizes=None).on(CPU, torch.float64)

    def fresh() -> Stack:
        states = [one.shape.build(one.recipe.seed).state_dict() for one in members]
        return Stack.of(states, SMALL, device=CPU, dtype=torch.float64)

    def stepper(stack: Stack) -> KernelStepper:
        launch, build = CpuLaunch(folder, torch.float64), Build.of(SMALL, tf32=tf32)
        return KernelStepper(stack, samples, members, Stage(epochs=4), build=build, launch=launch)

    whole, cut = fresh(), fresh()
    told = [torch.stack(numbers) for numbers in stepper(whole).epochs()]
    first = stepper(cut)
    settled = [first.settled for _ in zip(range(2), first.epochs(), strict=False)]
    assert settled == [False, True]  # one launch of two epochs
    second = stepper(cut)
    second.optimizers.put_back(first.optimizers.state())
    again = [torch.stack(numbers) for numbers in second.epochs(2)]
    assert torch.equal(torch.stack(again), torch.stack(told[2:]))
    assert all(same(cut.state(index), whole.state(index)) for index in range(3))


def test_steps_that_no_whole_number_holds_count_as_very_many() -> None:
    """From there on Adam's corrections have long been 1."""
    samples = draw_samples(mixed(), *clouds(), per_class=None, sizes=None).on(CPU, torch.float64)
    states = [one.shape.build(one.recipe.seed).state_dict() for one in mixed()]
    stack = Stack.of(states, SMALL, device=CPU, dtype=torch.float64)
    launch = CpuLaunch(Path(), torch.float64)
    stepper = KernelStepper(stack, samples, mixed(), Stage(epochs=4), build=Build.of(SMALL), launch=launch)
    told = stepper._arguments(10**10, 1, 3)
    assert told is not None and int(told[0][14]) == MOST_STEPS and 1 - 0.999**MOST_STEPS == 1
