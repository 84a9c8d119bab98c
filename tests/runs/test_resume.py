"""A run that was killed, interrupted, run twice at once or with more seeds later ends as one that was not."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from equisep.figures.catalogue import figure_of
from equisep.figures.cell import Cell
from equisep.figures.figure import Figure, Series
from equisep.runs import cell_data
from equisep.runs.run import run_figure
from equisep.runs.store import Store

pytestmark = pytest.mark.usefixtures("shapes_are_checked_elsewhere")
FIGURE = figure_of("he2023/figS5")
FINISHED = "cells/*/[!.]*.json"  # what is being written has a name that begins with a dot
TINY = Figure(
    id="test/tiny", title="", source="", cite="", panels=(), seeds=1,
    base=Cell(data="embedded-10x10", per_class=4, test_per_class=4, depth=3, width=6, epochs=1, batch_size=20),
    series=(Series("a"), Series("b", {"depth": 4})),
)  # fmt: skip
CHILD = """
import sys, torch
torch.set_num_threads(1)
from equisep.figures.catalogue import figure_of
from equisep.runs.run import run_figure
run_figure(figure_of("he2023/figS5"), store=sys.argv[1], scale="smoke")
"""
INTERRUPTED = """
import os, signal, sys, torch
torch.set_num_threads(1)
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job inherits that it is ignored
from equisep.cli.app import app
from equisep.runs.store import Store
put, kept = Store.put, []
def interrupted(self, *args):
    kept.append(put(self, *args))
    if len(kept) == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGINT)
    return kept[-1]
Store.put = interrupted
app(["figures", "run", "he2023/figS5", "--scale", "smoke", "--store", sys.argv[1], "--quiet"])
"""


@pytest.fixture(scope="module", autouse=True)
def clean_clone() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("EQUISEP_DATA", raising=False)
        for cached in (cell_data.at_hand, cell_data._local):
            cached.cache_clear()
        yield
    for cached in (cell_data.at_hand, cell_data._local):
        cached.cache_clear()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What an uninterrupted run gives."""
    place = tmp_path_factory.mktemp("whole") / "runs"
    run_figure(FIGURE, store=place, scale="smoke")
    return contents(place)


def contents(place: Path) -> dict[str, str]:
    """Every outcome in a store under its cell's key, as it was written; provenance aside."""
    return {path.stem: path.read_text().partition('"outcome":')[2] for path in sorted(place.glob(FINISHED))}


def started(code: str, *words: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, words)], env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def killed(place: Path, *, after: int, wait: float) -> bool:
    """Kill a run once so many cells are there, and a moment later; whether it was still running."""
    with started(CHILD, place) as child:
        while child.poll() is None and len(list(place.glob(FINISHED))) < after:
            time.sleep(0.002)
        time.sleep(wait)
        child.kill()
        _, complaint = child.communicate()
    assert child.returncode in (0, -signal.SIGKILL), complaint
    return child.returncode != 0


def test_a_run_that_is_killed_again_and_again_ends_with_the_same_numbers(whole: dict[str, str], tmp_path: Path) -> None:
    place = tmp_path / "runs"
    chance = random.Random(6)
    moments = sorted(chance.randrange(1, len(whole) - 4) for _ in range(3))
    killings = [killed(place, after=after, wait=chance.uniform(0, 0.1)) for after in moments]
    assert any(killings)
    partly = contents(place)
    assert partly.items() <= whole.items()
    evidence = run_figure(FIGURE, store=place, scale="smoke")
    assert evidence.done == evidence.planned
    assert contents(place) == whole
    assert {path.stem for path in place.glob("cells/*/*")} == set(whole)


def test_an_interrupt_exits_with_130_and_keeps_finished_cells(whole: dict[str, str], tmp_path: Path) -> None:
    place = tmp_path / "runs"
    with started(INTERRUPTED, place, 5) as child:
        said, complaint = child.communicate(timeout=120)
    assert child.returncode == 130, complaint
    assert "Stopped. What was saved stays." in complaint and "Traceback" not in complaint and not said
    kept = contents(place)
    assert len(kept) == 5 and kept.items() <= whole.items()
    manifest = Store.open(place, create=False).manifest(FIGURE.id, "smoke")
    assert manifest is not None and len(manifest.entries) == len(whole)
    run_figure(FIGURE, store=place, scale="smoke")
    assert contents(place) == whole


def test_two_processes_on_one_store_both_end_well(whole: dict[str, str], tmp_path: Path) -> None:
    place = tmp_path / "runs"
    children = [started(CHILD, place) for _ in range(2)]
    for child in children:
        _, complaint = child.communicate(timeout=300)
        assert child.returncode == 0, complaint
    assert contents(place) == whole
    assert not list(place.rglob("*.part"))
    assert len(Store.open(place, create=False).entries(FIGURE.id, "smoke")) == len(whole)


def test_more_seeds_later_keep_the_earlier_numbers(tmp_path: Path) -> None:
    run_figure(TINY, store=tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.glob(FINISHED)}
    assert len(before) == 2
    # three seeds train together with the first again, six in two groups; what is stored stays
    for seeds in (3, 6):
        more = run_figure(TINY, store=tmp_path, seeds=seeds)
        assert {path: path.read_bytes() for path in before} == before
        assert more.done == more.planned == seeds * len(TINY.series)
    # fewer seeds than the store has: nothing is run, nothing is lost
    assert run_figure(TINY, store=tmp_path, seeds=2).done == 12


@pytest.mark.parametrize(
    "cell",
    [
        Cell(
            data="embedded-28x28", preparation="he2023-32x32", per_class=2, test_per_class=2, network="pure-cnn", depth=3,
            channels=2, width=None, epochs=5, batch_size=8, read_epochs=(1, 3), optimizer="momentum", rate=0.01,
        ),
        Cell(data="embedded-10x10", per_class=4, test_per_class=4, depth=4, width=6, epochs=5, batch_size=16, read_epochs=(1, 3)),
    ],
    ids=("alone", "side by side"),
)  # fmt: skip
def test_a_training_that_is_cut_off_goes_on_from_its_checkpoint(
    cell: Cell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Read at epochs on the way: outcomes are those of an uninterrupted run, to the last bit."""
    from equisep.training import checkpoint

    monkeypatch.setattr(checkpoint, "EVERY", 0.0)
    made = Figure(id="test/cut", title="", source="", cite="", panels=(), seeds=1, base=cell, series=(Series("a"),))
    run_figure(made, store=tmp_path / "whole", progress=False)

    def cut(what: str, done: int, of: int) -> None:
        if what == "training" and done == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_figure(made, store=tmp_path / "cut", progress=cut)
    assert len(list((tmp_path / "cut" / "checkpoints").rglob("*.pt"))) == 1 and not contents(tmp_path / "cut")
    epochs: list[int] = []
    run_figure(
        made,
        store=tmp_path / "cut",
        progress=lambda what, done, of: epochs.append(done) if what == "training" else None,
    )
    assert epochs == [5]  # four of five were done
    assert contents(tmp_path / "cut") == contents(tmp_path / "whole")
    assert not list((tmp_path / "cut" / "checkpoints").iterdir())
