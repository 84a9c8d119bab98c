"""Figures of the papers run at smoke scale from a clean clone: no data folder, no network; and are judged and drawn.

One figure for each runner by itself, all of them by `make smoke`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, get_args

import pytest
from matplotlib.figure import Figure as Drawing
from matplotlib.text import Text

from equisep.data import load
from equisep.data.official import download
from equisep.figures.catalogue import all_figures
from equisep.figures.cell import Solve
from equisep.figures.evidence import Evidence
from equisep.figures.figure import Figure
from equisep.figures.judge import Verdict, judge
from equisep.figures.quantities import known_quantities
from equisep.report.figures.drawing import draw as figure_plots
from equisep.report.figures.summary import figure_json
from equisep.runs import cell_data
from equisep.runs.cost import predict
from equisep.runs.plan import Runner, RunOptions, cells_to_run, runner_of
from equisep.runs.run import run_figure
from equisep.runs.store import Store

FIGURES = all_figures()
ONE_EACH = {
    "peeled": "fang2021/minority",
    "ensembles": "he2023/reactivate",
    "networks": "he2023/fig4",
    "encoders": "he2023/figS9",
}
SMOKE_WORDS = "At smoke scale the numbers only show that everything runs: not for publication."
# what a few epochs need not give: a network that fits nothing has no effective depth and gives two samples no labels that it
# separates, and where D rises, there is no imbalance
MAY_NOT_EXIST = ("effective_depth", "own_separated", "imbalance")
pytestmark = pytest.mark.usefixtures("shapes_are_checked_elsewhere")


@pytest.fixture(scope="module")
def clean_clone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """No folder of data, an empty cache, and a network that is not there: what asks for it is written down."""
    asked: list[str] = []

    def refused(source: Any, file: Any, progress: Any) -> Any:
        asked.append(f"{source.name}: {file.name}")
        raise AssertionError(f"`{source.name}` was to be downloaded")

    with pytest.MonkeyPatch.context() as patch:
        patch.delenv(load.FOLDER_VARIABLE, raising=False)
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("HF_HUB_OFFLINE", "1")
        patch.setattr(load, "fetched_contents", refused)
        patch.setattr(download, "fetched_contents", refused)
        for cached in (cell_data.at_hand, cell_data.dataset_of, cell_data._local, cell_data._test_of):
            cached.cache_clear()
        yield asked
    for cached in (cell_data.at_hand, cell_data.dataset_of, cell_data._local, cell_data._test_of):
        cached.cache_clear()


@pytest.fixture(scope="module")
def store(clean_clone: list[str], tmp_path_factory: pytest.TempPathFactory) -> Store:
    """One store for all, as a reader has it: cells that two figures share are run once."""
    return Store.open(tmp_path_factory.mktemp("smoke") / "runs")


def words_of(drawing: Drawing) -> list[str]:
    return [text.get_text() for text in drawing.findobj(Text) if isinstance(text, Text)]


def drawn(evidence: Evidence, path: Path) -> Drawing:
    """The drawing that `save_drawn` writes; drawn once, since the largest have forty panels."""
    kept: list[Drawing] = []
    plain = figure_plots.draw_figure

    def keep(evidence: Evidence, verdicts: Sequence[Verdict] | None = None) -> Drawing:
        kept.append(plain(evidence, verdicts))
        return kept[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(figure_plots, "draw_figure", keep)
        figure_plots.save_drawn(evidence, path, dpi=40)
    return kept[0]


def test_one_figure_for_each_runner_is_run_without_being_asked_for() -> None:
    assert set(ONE_EACH) == set(get_args(Runner))
    for runner, id in ONE_EACH.items():
        (figure,) = (figure for figure in FIGURES if figure.id == id)
        assert {runner_of(plan.cell) for plan in cells_to_run(figure, RunOptions("smoke"))} == {runner}


@pytest.mark.parametrize(
    "figure",
    [
        pytest.param(each, id=each.id, marks=() if each.id in ONE_EACH.values() else pytest.mark.smoke)
        for each in FIGURES
    ],
)
def test_a_figure_runs_is_judged_and_drawn(
    figure: Figure, store: Store, clean_clone: list[str], tmp_path: Path
) -> None:
    told: list[str] = []
    evidence = run_figure(figure, store=store, scale="smoke", progress=lambda what, done, total: told.append(what))
    assert not clean_clone, "nothing asks for the network"
    # everything planned was run, and every series has what its claims compare
    assert evidence.done == evidence.planned == len(store.entries(figure.id, "smoke")) > 0
    assert evidence.planned == len(cells_to_run(figure, RunOptions("smoke"))) == predict_cells_with_twins(figure)
    for name, found in evidence.series.items():
        assert found.chosen, name
        assert found.rate in (figure.rates_of(found.series) or (None,))  # nothing that is solved has one
        assert all(set(entry.outcome.numbers) <= set(known_quantities()) for entry in found.entries)
        assert all(entry.provenance["equisep"] and entry.provenance["wall_s"] >= 0 for entry in found.entries)
    check_stand_ins(figure, evidence)
    check_verdicts(evidence)
    check_json(evidence)
    check_drawing(evidence, tmp_path / "figure.png")
    # nothing is left to run
    told.clear()
    again = run_figure(figure, store=store, scale="smoke", progress=lambda what, done, total: told.append(what))
    assert not told and again.planned == evidence.planned


def predict_cells_with_twins(figure: Figure) -> int:
    """As many cells as the prediction counts, and those that several series share again."""
    cells = [plan.cell for plan in cells_to_run(figure, RunOptions("smoke"))]
    return predict(figure, scale="smoke").cells + len(cells) - len(set(cells))


def check_stand_ins(figure: Figure, evidence: Evidence) -> None:
    for found in evidence.series.values():
        wanted = figure.cell(found.series)
        for entry in found.entries:
            cell = entry.cell
            if isinstance(cell, Solve):
                continue
            assert cell.data in ("embedded-10x10", "embedded-28x28", "seeded-tokens")
            assert cell.stands_for == ("" if wanted.data == cell.data else wanted.data)
            if not figure.smoke.get("network"):  # never the wiring
                assert (cell.network, cell.depth, cell.kernel) == (wanted.network, wanted.depth, wanted.kernel)
                assert (cell.norm, cell.activation, cell.keep) == (wanted.norm, wanted.activation, wanted.keep)


def check_verdicts(evidence: Evidence) -> None:
    verdicts = judge(evidence)
    assert len(verdicts) == len(evidence.figure.claims)
    assert {(verdict.verdict, verdict.reason) for verdict in verdicts} <= {("not run", SMOKE_WORDS)}


def check_json(evidence: Evidence) -> None:
    content = json.loads(json.dumps(figure_json(evidence, judge(evidence)), allow_nan=False))
    assert content["id"] == evidence.figure.id and content["scale"] == "smoke" and content["state"] == "run"
    assert content["cells"] == {"run": evidence.planned, "planned": evidence.planned}
    assert [row["series"] for row in content["series"]] == [series.name for series in evidence.figure.series]
    assert content["counts"]["not run"] == len(evidence.figure.claims)


def check_drawing(evidence: Evidence, path: Path) -> None:
    drawing = drawn(evidence, path)
    assert path.read_bytes().startswith(b"\x89PNG")
    words = words_of(drawing)
    assert not any("not run" in text for text in words)
    asked = [text for panel in evidence.figure.panels for text in (panel.x, panel.y)]
    if not any(text.startswith(MAY_NOT_EXIST) for text in asked):
        assert not any("no values" in text for text in words)
    assert any("smoke" in text.lower() for text in words)
