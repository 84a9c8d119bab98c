"""The training kernel on a GPU: members as the passes train them, whatever blocks train them, and what it refuses.

With TF32 it is as near to float64 as passes with TF32 are, which round the factors of the same products. Where cuBLAS takes no
tensor cores it is held against passes in float64 that round them (kernel_rounding.py): after a few steps it is at most a tenth
as far from these as they are from float64. On a processor a kernel that rounds right is about a hundredth as far, also with sums
that are cut off after every eighth term, as tensor cores may do.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from kernel_rounding import SMALL_SHAPES, many, rounded_products, share_of_rounding
from trained_alone import clouds, fashion, member, mixed, same, worst

from equisep.errors import InputError
from equisep.training import Ensemble, Member, Recipe, Shape, Stage, Watch, bytes_per_member, train_ensemble
from equisep.training.ensemble.kernel import stage
from equisep.training.ensemble.kernel.layout import Build
from equisep.training.ensemble.reading import READ_BYTES

PLAIN = Watch(sites=False)
FROZEN = Shape((30, 20, 10), inputs=20, classes=5)
pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


def strays(found: Ensemble, exact: Ensemble) -> float:
    """The largest ‖Δθ‖/‖θ‖ of any tensor of any member."""
    gaps = []
    for index in range(len(found)):
        wanted = exact.weights(index)
        gaps.append(worst({name: value.to(wanted[name].dtype) for name, value in found.weights(index).items()}, wanted))
    return max(gaps)


def near(found: Ensemble, plain: Ensemble, exact: Ensemble, *, rounding: float = 1e-6) -> None:
    """As near to float64 as passes of that rounding: where it turns a ReLU, it does so in both, for other members."""
    assert strays(found, exact) < 10 * strays(plain, exact) + rounding
    assert found.loss == pytest.approx(exact.loss, rel=max(1e-2, 10 * rounding))


@pytest.mark.parametrize(("cluster", "resident"), [(1, 2), (4, 1)])
@pytest.mark.parametrize("depth", [4, 8, 20])
def test_one_step_with_tf32_is_off_by_its_rounding(
    cluster: int, resident: int, depth: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything can grow: farther from the exact step than float32, at most three times as far as passes with TF32."""
    x, y = (part[:120] for part in fashion(12))
    members = [member("sgd", 0.1, shape=Shape.deep(depth), seed=seed, epochs=1, batch_size=128) for seed in range(3)]
    build = Build.of(Shape.deep(depth), cluster=cluster, resident=resident, tf32=True)
    exact = train_ensemble(members, x, y, device="cuda", dtype=torch.float64, watch=PLAIN)
    plain = train_ensemble(members, x.float(), y, device="cuda", engine="eager", tf32=True, watch=PLAIN)
    monkeypatch.setattr(stage, "build_for", lambda *_, **__: build)
    found = train_ensemble(members, x.float(), y, device="cuda", engine="kernel", tf32=True, watch=PLAIN)
    gaps, usual = (steps_off(one, exact) for one in (found, plain))
    assert 1e-5 < max(gaps) < 3 * max(usual)


def steps_off(found: Ensemble, exact: Ensemble) -> list[float]:
    """How far each member's way from its start is from the exact one, in lengths of that."""
    gaps = []
    for index, one in enumerate(found.members):
        begun = one.shape.build(one.recipe.seed).state_dict()
        names = [name for name in begun if name.endswith(("weight", "bias"))]
        ends = [torch.cat([of.weights(index)[name].double().flatten() for name in names]) for of in (found, exact)]
        way = ends[1] - torch.cat([begun[name].double().flatten() for name in names])
        gaps.append(float((ends[0] - ends[1]).norm() / way.norm()))
    return gaps


@pytest.fixture(params=[False, True], ids=["float32", "tf32"])
def tf32(request: pytest.FixtureRequest) -> bool:
    """Which products."""
    return bool(request.param)


@pytest.mark.parametrize(("cluster", "resident"), [(1, 1), (1, 2), (2, 1), (4, 1), (8, 1)])
@pytest.mark.parametrize("depth", [4, 8])
def test_every_build_trains_the_papers_networks(
    cluster: int, resident: int, depth: int, tf32: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, y = fashion()
    members = mixed(Shape.deep(depth), epochs=1, batch_size=128)
    build = Build.of(Shape.deep(depth), cluster=cluster, resident=resident, tf32=tf32)
    monkeypatch.setattr(stage, "build_for", lambda *_, **__: build)
    found = train_ensemble(members, x.float(), y, device="cuda", engine="kernel", tf32=tf32, watch=PLAIN)
    assert (found.settings["engine"], found.settings["tf32"]) == ("kernel", tf32)
    plain = train_ensemble(members, x.float(), y, device="cuda", engine="eager", tf32=tf32, watch=PLAIN)
    exact = train_ensemble(members, x, y, device="cuda", dtype=torch.float64, watch=PLAIN)
    near(found, plain, exact, rounding=1e-2 if tf32 else 1e-6)
    again = train_ensemble(members, x.float(), y, device="cuda", engine="kernel", tf32=tf32, watch=PLAIN)
    assert all(same(found.weights(index), again.weights(index)) for index in range(len(members)))


WIDE_SHAPES = [Shape((100,) * 3, inputs=300), Shape((128,) * 3, inputs=100)]


@pytest.mark.parametrize(
    ("shape", "tf32"),
    [*((shape, tf32) for shape in WIDE_SHAPES for tf32 in (False, True)), *((shape, False) for shape in SMALL_SHAPES)],
    ids=str,
)
def test_other_shapes(shape: Shape, tf32: bool) -> None:
    x, y = clouds(300, inputs=shape.inputs, classes=shape.classes)
    members = mixed(shape, epochs=2, batch_size=64)
    found, plain = (
        train_ensemble(members, x.float(), y, device="cuda", engine=engine, tf32=tf32, watch=PLAIN)
        for engine in ("kernel", "eager")
    )
    exact = train_ensemble(members, x, y, device="cuda", dtype=torch.float64, watch=PLAIN)
    near(found, plain, exact, rounding=1e-2 if tf32 else 1e-6)


def rounds(
    members: list[Member], n: int, cluster: int, resident: int, monkeypatch: pytest.MonkeyPatch, **stages: Any
) -> Ensemble:
    """Members by a kernel with TF32, which is where passes are that round the factors of their products."""
    shape = members[0].shape
    x, y = clouds(n, inputs=shape.inputs, classes=shape.classes)

    def by_passes() -> Ensemble:
        options: Any = {"dtype": torch.float64, "engine": "eager", "watch": PLAIN, **stages}
        return train_ensemble(members, x, y, device="cuda", **options)

    exact = by_passes()
    with rounded_products():
        rounded = by_passes()
    build = Build.of(shape, cluster=cluster, resident=resident, tf32=True)
    monkeypatch.setattr(stage, "build_for", lambda *_, **__: build)
    found = train_ensemble(members, x.float(), y, device="cuda", engine="kernel", tf32=True, watch=PLAIN, **stages)
    assert (found.settings["engine"], found.settings["tf32"]) == ("kernel", True)
    states = [[one.weights(index) for index in range(len(members))] for one in (found, rounded, exact)]
    assert share_of_rounding(members, *states) < 0.1
    assert found.loss == pytest.approx(rounded.loss, rel=1e-2)
    return found


@pytest.mark.parametrize(("cluster", "resident"), [(1, 2), (4, 1)])
@pytest.mark.parametrize("shape", SMALL_SHAPES, ids=str)
def test_tf32_of_small_shapes(shape: Shape, cluster: int, resident: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of 64, 64 and 22."""
    rounds(many(shape, epochs=1, batch_size=64), 150, cluster, resident, monkeypatch)


def frozen_stages(rule: str, epochs: int) -> list[Stage]:
    """The lowest and the highest layer learn, then one in the middle; the third of four nowhere."""
    first, second = (
        Stage(epochs=count, trains=trains, frozen_norm=rule) for count, trains in ((epochs, (1, 4)), (1, (2,)))
    )  # type: ignore[arg-type]
    return [first, second]


def third_stays(found: Ensemble) -> None:
    """To the bit."""
    for index, one in enumerate(found.members):
        name = "blocks.2.linear.weight"
        assert torch.equal(found.weights(index)[name], one.shape.build(one.recipe.seed).state_dict()[name])


@pytest.mark.parametrize("rule", ["follow", "hold"])
def test_frozen_layers_stay_and_stages_follow_one_another(rule: str) -> None:
    x, y = clouds(300, inputs=20, classes=5)
    members, stages = mixed(FROZEN, epochs=3, batch_size=64), frozen_stages(rule, 2)
    found, plain = (
        train_ensemble(members, x.float(), y, device="cuda", engine=engine, stages=stages, watch=PLAIN)
        for engine in ("kernel", "eager")
    )
    exact = train_ensemble(members, x, y, device="cuda", dtype=torch.float64, stages=stages, watch=PLAIN)
    near(found, plain, exact)
    third_stays(found)


@pytest.mark.parametrize(("cluster", "resident"), [(1, 2), (4, 1)])
@pytest.mark.parametrize("rule", ["follow", "hold"])
def test_frozen_layers_and_stages_with_tf32(
    rule: str, cluster: int, resident: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step a stage: a statistic that runs on with frozen layers soon strays by sums alone, in the passes too."""
    members = many(FROZEN, epochs=2, batch_size=110)
    third_stays(rounds(members, 110, cluster, resident, monkeypatch, stages=frozen_stages(rule, 1)))


def test_readings_in_the_middle_see_the_weights_of_that_epoch() -> None:
    x, y = clouds(200, inputs=6, classes=3)
    members = [member(seed=seed, epochs=5) for seed in range(3)]
    watch = Watch(epochs=(0, 2), readings=("mixed", "eval", "drawn"))
    long = train_ensemble(members, x.float(), y, device="cuda", engine="kernel", watch=watch)
    stages = [Stage(epochs=5, milestones=())]
    short = train_ensemble(members, x.float(), y, device="cuda", engine="kernel", watch=watch, stages=stages)
    two = train_ensemble(
        members, x.float(), y, device="cuda", engine="kernel", watch=Watch(), stages=[Stage(epochs=2, milestones=())]
    )
    assert [reading.epoch for reading in long.readings] == [0] * 3 + [2] * 3 + [5] * 3
    middle = next(one for one in short.readings if one.epoch == 2 and one.reading == "mixed")
    assert middle.fuzziness == pytest.approx(two.reading().fuzziness, rel=1e-5)


def test_a_member_that_diverges_disturbs_no_other() -> None:
    x, y = clouds()
    shape = Shape((8, 7), inputs=6, classes=3, norm=False)
    runs = []
    for rate in (1e30, 1e-3):
        members = [Member(Recipe("sgd", rate, epochs=3, batch_size=32), shape), *mixed(shape)]
        runs.append(train_ensemble(members, x.float(), y, device="cuda", engine="kernel"))
    assert runs[0].diverged[0] is not None and runs[0].diverged[1:] == (None,) * 5
    assert all(same(runs[0].weights(index), runs[1].weights(index)) for index in range(1, 6))


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"dtype": torch.float64}, "it computes in float32, and members train in torch.float64"),
        (
            {"shape": Shape((200,), inputs=6, classes=3)},
            "the kernel has room for widths up to 128, and a layer has 200",
        ),
        ({"batch_size": 200}, "the kernel has room for batches of 128, and these are of 200"),
    ],
)
def test_what_it_cannot_train_is_refused_by_name_and_trained_otherwise(options: dict[str, object], why: str) -> None:
    of_member = {name: value for name, value in options.items() if name in ("shape", "batch_size")}
    asked: Any = {name: value for name, value in options.items() if name not in of_member}
    members = [member(epochs=1, **of_member)]  # type: ignore[arg-type]
    x, y = clouds(210)
    with pytest.raises(InputError, match=rf"^`engine='kernel'` trains by a CUDA kernel of its own, but {why}\."):
        train_ensemble(members, x, y, device="cuda", engine="kernel", watch=PLAIN, **asked)
    assert train_ensemble(members, x, y, device="cuda", watch=PLAIN, **asked).settings["engine"] != "kernel"


def test_the_kernel_is_taken_where_nobody_says_and_the_task_is_large_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = clouds()
    small = train_ensemble([member()], x.float(), y, device="cuda", watch=PLAIN)
    monkeypatch.setattr(stage, "WORTH_BUILDING", 1)
    large = train_ensemble([member()], x.float(), y, device="cuda", watch=PLAIN)
    assert (small.settings["engine"], large.settings["engine"]) == ("graphs", "kernel")


@pytest.mark.parametrize("optimizer", ["sgd", "momentum", "adam"])
@pytest.mark.parametrize("depth", [4, 20])
def test_memory_stays_below_what_is_said(optimizer: str, depth: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The difference between many members and few, so that what all of them share does not count."""
    monkeypatch.setitem(READ_BYTES, "cuda", 1)  # reading has a share of its own; here it takes one member at a time
    x, y = fashion()
    peaks = []
    for members in (8, 72):
        ones = [
            Member(Recipe(optimizer, 1e-3, epochs=3, seed=seed), Shape.deep(depth))  # type: ignore[arg-type]
            for seed in range(members)
        ]
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        train_ensemble(ones, x.float(), y, device="cuda", engine="kernel", watch=PLAIN)
        peaks.append(torch.cuda.max_memory_allocated())
    assert (peaks[1] - peaks[0]) / 64 <= bytes_per_member(ones[0], len(y), torch.float32, epochs=3)
