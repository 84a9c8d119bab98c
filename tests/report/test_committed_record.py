"""The committed record: its pages, pictures and tally are what it gives, and what its verdicts rest on. Judged once for all."""

from __future__ import annotations

import io
import json
import runpy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from equisep.figures.catalogue import all_figures
from equisep.figures.cell import Training
from equisep.figures.judge import FEW
from equisep.figures.papers import FIT_OR_NOT
from equisep.figures.quantities import quantity
from equisep.figures.rules import series_of
from equisep.report.figures.drawing.draw import fingerprint
from equisep.report.figures.summary import Summary, figure_json

REPO = Path(__file__).resolve().parents[2]
RESULTS = REPO / "results"
IDS = [figure.id for figure in all_figures() if (RESULTS / f"{figure.id}.json").is_file()]
FITTED = 0.99  # what is asked of networks in figures that ask nothing themselves
pytestmark = [
    pytest.mark.skipif(not IDS, reason="there is no record in this copy of the code"),
    pytest.mark.usefixtures("shapes_are_checked_elsewhere"),  # thousands of laws are fitted
]
ADVICE = "run: python scripts/make_figures_page.py"


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    """The script that writes all that is made of the record; it judges every figure once."""
    return runpy.run_path(str(REPO / "scripts" / "make_figures_page.py"))


@pytest.fixture(scope="module")
def recorded(script: dict[str, Any]) -> dict[str, Summary]:
    """Every figure that is recorded, by its id."""
    return {each.figure.id: each.summary for each in script["judged"]() if each.summary is not None}


def test_the_committed_pages_tally_and_readme_are_what_the_script_makes(script: dict[str, Any]) -> None:
    expected = script["page_bytes"]()
    for path, data in expected.items():
        assert path.read_bytes() == data, f"{path.name}: {ADVICE}"
    others = {script["README"], RESULTS / "tally.json"}
    assert {*script["PAGES"].glob("*.md")} == set(expected) - others, ADVICE
    assert max(len(data.decode().splitlines()) for path, data in expected.items() if path not in others) < 200


def test_the_committed_thumbnails_are_what_the_script_makes(script: dict[str, Any]) -> None:
    small = script["thumbnails"]()
    assert {path.name for path in script["THUMBNAILS"].iterdir()} == set(small), ADVICE
    for name, data in small.items():
        with Image.open(script["THUMBNAILS"] / name) as kept, Image.open(io.BytesIO(data)) as new:
            away = np.abs(np.asarray(kept.convert("RGB"), np.int16) - np.asarray(new.convert("RGB"), np.int16))
            assert away.mean() < 2, f"{name}: {ADVICE}"


@pytest.mark.parametrize(("high", "shown"), [(400, 160), (1100, 440), (1500, 600), (3000, 600)])
def test_a_thumbnail_shows_the_whole_of_all_but_very_tall_drawings(
    tmp_path: Path, script: dict[str, Any], high: int, shown: int
) -> None:
    Image.new("RGB", (1000, high)).save(tmp_path / "drawing.png")
    with Image.open(io.BytesIO(script["thumbnail"](tmp_path / "drawing.png"))) as small:
        assert small.size == (400, shown)


def test_the_committed_record_is_small_and_has_its_pictures() -> None:
    files = [path for path in RESULTS.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 12 * 2**20
    for path in RESULTS.glob("*/*"):
        assert path.suffix in (".json", ".png") and path.with_suffix(".png").is_file()


def test_the_committed_pictures_show_what_the_record_and_its_verdicts_give(recorded: dict[str, Summary]) -> None:
    """By the fingerprint that each carries: every panel, line and word is made anew, nothing is rendered."""
    name = runpy.run_path(str(REPO / "scripts" / "pack_record.py"))["FINGERPRINT"]
    for id, summary in recorded.items():
        with Image.open(RESULTS / f"{id}.png") as picture:
            drawn = picture.info.get(name)
        assert drawn == fingerprint(summary.evidence, summary.verdicts), (
            f"run: python scripts/pack_record.py --redraw --only {id}"
        )
    other = replace(summary.evidence, figure=replace(summary.figure, title="Another"))
    assert drawn != fingerprint(other, summary.verdicts)


@pytest.mark.parametrize("id", IDS)
def test_nothing_is_decided_by_networks_that_do_not_fit_or_by_few_seeds(id: str, recorded: dict[str, Summary]) -> None:
    evidence, judged = recorded[id].evidence, recorded[id].claims
    for verdict in (verdict for each in judged for verdict in each.verdicts):
        claim = verdict.claim
        if verdict.verdict not in ("held", "contradicted") or claim.exact:
            continue
        deciding = [part for part in verdict.parts if part.verdict == verdict.verdict]
        assert deciding and all(part.n >= FEW for part in deciding), claim.text
        assert not any(part.lacks for part in deciding), claim.text
        if evidence.figure.fit_of(claim) is None and id in FIT_OR_NOT:  # which the index names
            continue
        least = evidence.figure.fit_of(claim) or FITTED
        fitting = {}  # counted here anew, from the accuracies themselves
        for name in series_of(evidence.figure, claim):
            found = evidence.series[name]
            networks = found.best if claim.rule == "as printed" else found.chosen
            shares = [quantity(entry.outcome, "accuracy") for entry in networks.values()]
            fitting[name] = sum(share is not None and round(share, 6) >= least for share in shares)
        for part in deciding:
            assert part.n <= fitting.get(part.name, max(fitting.values())), claim.text


def test_most_figures_of_the_papers_are_recorded(recorded: dict[str, Summary]) -> None:
    """36 of 39 were asked for; one of which no claim was judged does not count."""
    judged = {id for id, each in recorded.items() if any(claim.main.verdict != "not run" for claim in each.claims)}
    assert len({id for id in judged if not id.startswith("equisep2026/")}) >= 36


def test_no_series_has_fewer_seeds_than_another_record_holds_of_it(recorded: dict[str, Summary]) -> None:
    """What one figure ran with more seeds the others show too."""
    known = {
        (id, entry.cell)
        for id, each in recorded.items()
        for found in each.evidence.series.values()
        for entry in found.entries
    }
    by_network: dict[Training, set[int]] = {}
    for _, cell in known:
        if isinstance(cell, Training) and cell.seed == cell.data_seed:
            by_network.setdefault(cell.with_(seed=0, data_seed=0), set()).add(cell.seed)
    for id, each in recorded.items():
        for found in each.evidence.series.values():
            if found.rate is None or found.series.seeds is not None:
                continue
            (network,) = {entry.training.with_(seed=0, data_seed=0) for entry in found.chosen.values()}
            assert by_network[network] <= set(found.chosen), f"{id}, {found.series.name}"


def words(summary: Summary, start: str) -> dict[str, str]:
    (each,) = (each for each in summary.claims if each.claim.text.startswith(start))
    return {reading: verdict.verdict for reading, verdict in each.by_reading.items()}


def test_three_claims_of_the_paper_are_properties_of_its_reading(recorded: dict[str, Summary]) -> None:
    """A higher final D at 20 layers and a longer half-life of unequal classes hold in `drawn` alone; so may ρ as printed."""
    for optimizer in ("SGD)", "SGD with momentum)"):
        assert words(recorded["he2023/fig1"], f"The 20-layer final D is higher than the 8-layer one ({optimizer}") == {
            "drawn": "held", "mixed": "contradicted", "eval": "contradicted",
        }  # fmt: skip
    assert (
        words(recorded["he2023/fig1"], "The 20-layer final D is higher than the 8-layer one (Adam)")["eval"]
        == "contradicted"
    )
    for layers in (8, 20):
        assert words(recorded["he2023/fig3"], f"Unequal classes have a longer half-life ({layers} layers, both") == {
            "drawn": "held", "mixed": "contradicted", "eval": "contradicted",
        }  # fmt: skip
    assert words(recorded["he2023/fig1"], "Adam, 20 layers: ρ and half-life") == {
        "drawn": "undecided", "mixed": "contradicted", "eval": "contradicted",
    }  # fmt: skip


def test_the_json_of_the_committed_record_is_what_it_was(recorded: dict[str, Summary]) -> None:
    """`recorded_json.json` is what `equisep figures show ID --json` printed of version 0.1, of each figure four series,
    of figures that were not run again since.

    Its words for readings and its bend are today's. Claims are judged by other rules since, and rates chosen among networks
    that fit: series at another rate are other numbers. Titles name the subject, sources the place, and series have labels
    for readers. Several things may stand in for one.
    """
    before = json.loads((Path(__file__).parent / "recorded_json.json").read_text(encoding="utf-8"))
    for id, content in before.items():
        now = json.loads(json.dumps(figure_json(recorded[id].evidence, recorded[id].verdicts, recorded=True)))
        assert list(now) == list(content), id
        content["stand_ins"] = {wanted: [used] for wanted, used in content["stand_ins"].items()}
        same = [
            tuple({name: each[name] for name in row if name in now_row} for each in (now_row, row))
            for now_row, row in zip(now["series"], content["series"], strict=False)
            if now_row["rate"] == row["rate"]
        ]
        assert len(same) >= len(content["series"]) - 1, id
        assert {row["series"] for row, _ in same} <= {row["series"] for row in content["series"]}
        now["series"], content["series"] = map(list, zip(*same, strict=True))
        for each in (now, content):
            for name in ("claims", "counts", "printed", "notes", "title", "source"):
                each.pop(name)
        assert all(len(row) >= 18 for row in now["series"]), id
        deepest = max((row["depth"] for row in now["estimates"]), default=None)  # the only one that version 0.1 had
        names = ("p", "n", "probability", "value", "least_depth")
        now["estimates"] = [{name: row[name] for name in names} for row in now["estimates"] if row["depth"] == deepest]
        leaves, wanted = _flat(now), _flat(content)
        real = [path for path, leaf in wanted.items() if isinstance(leaf, float)]
        assert [leaves.pop(path) for path in real] == pytest.approx([wanted.pop(path) for path in real], rel=1e-9), id
        assert leaves == wanted, id


def _flat(content: Any, path: str = "") -> dict[str, Any]:
    """Every number and word by its path."""
    if isinstance(content, dict | list):
        pairs = content.items() if isinstance(content, dict) else enumerate(content)
        return {key: leaf for name, value in pairs for key, leaf in _flat(value, f"{path}/{name}").items()}
    return {path: content}
