"""What only a GPU can show: captured graphs, memory that stays below what is said, and the same numbers as the CPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from trained_alone import alone, clouds, fashion, mixed, same, worst

from equisep.data import Batches
from equisep.measuring import measure
from equisep.training import Ensemble, Member, Recipe, Shape, Stage, Watch, bytes_per_member, checkpoint, train_ensemble
from equisep.training.ensemble import chunks
from equisep.training.ensemble.chunks import Task
from equisep.training.ensemble.reading import ARRAYS, READ_BYTES

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
PLAIN = Watch(sites=False)


def test_float64_on_the_gpu_is_the_member_trained_alone_on_the_cpu() -> None:
    x, y = clouds()
    found = train_ensemble(mixed(), x, y, device="cuda", dtype=torch.float64, watch=PLAIN)
    for index, one in enumerate(mixed()):
        assert worst(found.weights(index), alone(one, x, y).state_dict()) <= 1e-8


@pytest.mark.parametrize("norm", [True, False])
def test_graphs_are_the_eager_steps(norm: bool) -> None:
    """Both batch sizes, a change of rate, and two stages, of which the second is leaky."""
    x, y = clouds()
    shape = Shape((8, 7), inputs=6, classes=3, norm=norm)
    stages = [Stage(epochs=4, trains=(1, 2), milestones=()), Stage(epochs=6, leaky=True)]
    eager, graphs = (
        train_ensemble(mixed(shape), x, y, device="cuda", engine=engine, stages=stages, watch=PLAIN)
        for engine in ("eager", "graphs")
    )
    assert graphs.settings["engine"] == "graphs" and eager.settings["engine"] == "eager"
    for index in range(5):
        assert worst(graphs.weights(index), eager.weights(index)) < 1e-4
    assert all(same(graphs.weights(i), again) for i, again in enumerate(
        train_ensemble(mixed(shape), x, y, device="cuda", stages=stages, watch=PLAIN).weights(j) for j in range(5)
    ))  # fmt: skip


@pytest.mark.parametrize("cut", [2, 4, 7])
def test_a_chunk_that_is_cut_off_ends_with_the_same_bits(
    cut: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Replayed steps go on as replayed steps, whose last digits are not those of eager ones."""
    monkeypatch.setattr(checkpoint, "EVERY", 0.0)
    x, y = clouds()
    stages = [Stage(epochs=4, trains=(1, 2)), Stage(epochs=6, leaky=True)]

    def cut_off(what: str, done: int, of: int | None) -> None:
        if done == cut:
            raise KeyboardInterrupt

    def trained(**options: Any) -> Ensemble:
        return train_ensemble(mixed(), x, y, device="cuda", stages=stages, watch=PLAIN, **options)

    with pytest.raises(KeyboardInterrupt):
        trained(store=tmp_path, progress=cut_off)
    found, whole = trained(store=tmp_path, progress=False), trained(progress=False)
    assert all(same(found.weights(index), whole.weights(index)) for index in range(5))


def test_a_member_that_diverges_disturbs_no_other_on_the_gpu() -> None:
    x, y = clouds()
    shape = Shape((8, 7), inputs=6, classes=3, norm=False)
    runs = []
    for rate in (1e30, 1e-3):
        members = [Member(Recipe("sgd", rate, epochs=3, batch_size=32), shape), *mixed(shape)]
        runs.append(train_ensemble(members, x, y, device="cuda"))
    assert runs[0].diverged[0] is not None and runs[0].diverged[1:] == (None,) * 5
    assert all(worst(runs[0].weights(index), runs[1].weights(index)) < 1e-5 for index in range(1, 6))


@pytest.mark.parametrize("name", ["mixed", "eval"])
def test_readings_on_the_gpu_are_those_of_measure(name: str) -> None:
    x, y = clouds()
    watch = Watch(reading=name, batch_size=23, test="sites", chance=True, collapse=True)  # type: ignore[arg-type]
    found = train_ensemble(mixed(), x, y, test=(x, y), device="cuda", dtype=torch.float64, watch=watch)
    reading = found.reading()
    assert reading.arrays().keys() == {each for each in ARRAYS if not each.endswith("_validation")}
    for index in range(5):
        profile = measure(found.network(index), Batches(x, y, batch_size=23), reading=name, intervals="none")  # type: ignore[arg-type]
        assert found.curve(index) == pytest.approx([site.fuzziness for site in profile.sites], rel=1e-8)
        assert found.curve(index, "cdnv") == pytest.approx([site.cdnv for site in profile.sites], rel=1e-8)
        assert found.curve(index, "ncc") == pytest.approx([site.ncc_train for site in profile.sites], rel=1e-8)
        assert found.curve(index, "chance") == pytest.approx([site.null for site in profile.sites], rel=1e-8)
        assert reading.nc1[index] == pytest.approx(profile.sites[-1].nc1, rel=1e-8)  # type: ignore[index]
        assert list(reading.rank[index]) == [site.rank for site in profile.sites]  # type: ignore[index]


@pytest.mark.parametrize("optimizer", ["sgd", "momentum", "adam"])
@pytest.mark.parametrize("engine", ["eager", "graphs"])
@pytest.mark.parametrize("depth", [4, 20])
def test_memory_stays_below_what_is_said(
    optimizer: str, engine: str, depth: int, monkeypatch: pytest.MonkeyPatch
) -> None:
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
        train_ensemble(ones, x, y, device="cuda", engine=engine, watch=PLAIN)
        peaks.append(torch.cuda.max_memory_allocated())
    assert (peaks[1] - peaks[0]) / 64 <= bytes_per_member(ones[0], len(y), torch.float32, epochs=3)


def test_reading_stays_below_its_own_share() -> None:
    x, y = fashion()
    ones = [Member(Recipe(epochs=1, seed=seed), Shape.deep(4)) for seed in range(300)]
    peaks = []
    for sites in (False, True):
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        train_ensemble(ones, x, y, device="cuda", watch=Watch(sites=sites))
        peaks.append(torch.cuda.max_memory_allocated())
    assert peaks[1] - peaks[0] <= READ_BYTES["cuda"]


def test_memory_that_runs_out_on_the_gpu_splits_the_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(READ_BYTES, "cuda", 1)
    x, y = fashion()
    ones = [Member(Recipe(epochs=2, seed=seed % 10), Shape.deep(8)) for seed in range(400)]
    whole = train_ensemble(ones, x, y, device="cuda", watch=PLAIN)
    torch.cuda.empty_cache()
    total = torch.cuda.get_device_properties(0).total_memory
    room = 100 * bytes_per_member(ones[0], 1000, torch.float32, epochs=2)  # a quarter of what all would need
    torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_reserved() + room) / total)
    sizes: list[int] = []
    train = chunks._trained

    def counted(task: Task, *rest: Any, **more: Any) -> Ensemble:
        sizes.append(len(task.members))
        return train(task, *rest, **more)

    monkeypatch.setattr(chunks, "_trained", counted)
    try:
        found = train_ensemble(ones, x, y, device="cuda", watch=PLAIN, memory=2**40)
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    assert sizes[0] == 400 and len(sizes) > 2
    assert all(worst(found.weights(index), whole.weights(index)) < 1e-3 for index in range(400))
