"""The page of all figures and the record it is made of: nothing typed by hand, and verdicts that survive the packing."""

from __future__ import annotations

import json
import re
import runpy
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from equisep.errors import InputError
from equisep.figures.catalogue import all_figures, figure_of
from equisep.figures.evidence import Entry, Evidence, gather
from equisep.figures.figure import Claim, Figure, Series
from equisep.figures.judge import judge
from equisep.figures.outcome import Curves, Outcome
from equisep.figures.papers.he2023 import FIG1
from equisep.report.figures.drawing.fingerprint import fingerprint
from equisep.report.figures.missing_laws import law_parts, rate_parts
from equisep.report.figures.page import figures_page, recorded_figures, summary_table
from equisep.report.figures.summary import state_of
from equisep.runs.cost import Prediction
from equisep.runs.record import read_record, recorded_evidence, write_record
from equisep.runs.run import run_figure
from equisep.runs.store import Store
from figures.synthetic_figures import asked_for, evidence, figure, law_curve, outcome, shown_evidence

REPO = Path(__file__).resolve().parents[2]
LAW = Claim("The law holds", "law", ("a",))


def script(name: str) -> dict[str, Any]:
    return runpy.run_path(str(REPO / "scripts" / name))


def predicted(figure: Figure) -> Prediction:
    return Prediction(cells=7, groups=1, seconds=7200.0, bytes=2**30, device="a machine")


def entries_of(found: Evidence) -> list[Entry]:
    return [entry for each in found.series.values() for entry in each.entries]


def recorded(found: Evidence, folder: Path) -> None:
    entries = entries_of(found)
    plan = [(name, cell) for name, each in found.series.items() for cell in each.planned]
    write_record(folder / f"{found.figure.id}.json", entries, found.figure, "paper", plan=plan)


def read_both_ways(r: float, r_eval: float, *, rho: float = 0.5, accuracy: float = 1.0) -> Outcome:
    """D read in mixed reading and in eval reading."""
    readings = (
        Curves(epoch=600, reading=mode, sites=("input",), fuzziness=law_curve(rho, r=each), accuracy=accuracy)
        for mode, each in (("mixed", r), ("eval", r_eval))
    )
    return Outcome(readings=tuple(readings))


def told(found: Evidence) -> str:
    return "\n\n".join(law_parts(found, judge(found)))


def test_the_page_has_what_is_recorded_and_the_cost_of_what_is_not(tmp_path: Path) -> None:
    found = shown_evidence()
    recorded(found, tmp_path)
    (tmp_path / "test" / "figure.png").write_bytes(b"")
    other = replace(found.figure, id="test/other", title="Another")
    page = figures_page((found.figure, other), tmp_path, predict=predicted)
    assert (
        "1 of 2 figures are recorded; of their claims: 2 held, 1 contradicted, 0 undecided, 0 supported, 0 against, "
        "0 not testable, 1 not run." in page
    )
    assert (
        "| [`test/figure`](#test-figure) | A figure made by hand | recorded, 12 cells | 2 | 1 | 0 | 0 | 0 | 0 | 1 |"
        in page
    )
    assert (
        "| `test/other` | Another | not run; 7 cells, about 2 h on a machine, 1 GiB | 0 | 0 | 0 | 0 | 0 | 0 | 4 |"
        in page
    )
    assert "Nobody (2000); paper scale, 3 seeds, 12 cells." in page
    assert '<a id="test-figure"></a>' in page
    assert "![A figure made by hand](../results/test/figure.png)" in page
    assert "**embedded-10x10 stands in for the paper's cifar10.**" in page
    assert "| held | A law in both | -0.9990 |" in page
    assert "| deep | ρ | 0.818 | 0.6010 | 3 |" in page
    assert "-0.9990 -0.9990 -0.9990" in page
    assert "Everything recorded was made on cpu, with equisep 0.1, torch 2.13, in 24 s of computing." in page
    assert "### test/other" not in page
    for table in re.findall(r"(?:^\|.*\|\n)+", page, flags=re.MULTILINE):
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in table.splitlines()}) == 1
    (tmp_path / "test" / "figure.png").unlink()
    assert "![" not in figures_page((found.figure,), tmp_path, predict=predicted)


def test_the_page_says_how_sites_are_read(tmp_path: Path) -> None:
    eval_first = {"a": {"readings": ("eval", "mixed")}}
    figures = (
        figure(LAW, id="one/fig"),
        figure(LAW, id="one/other", changes=eval_first),
        figure(LAW, id="two/fig", changes=eval_first),
    )
    page = figures_page(figures, tmp_path, predict=predicted)
    assert "The reading of sites is *mixed*, that of `one/other`, `two` *eval*; *r eval* is r in eval reading" in page


def test_findings_are_the_claims_that_are_contradicted(tmp_path: Path) -> None:
    found = shown_evidence()
    recorded(found, tmp_path)
    page = figures_page((found.figure,), tmp_path, predict=predicted)
    findings = page.partition("## Findings")[2].partition("\n## ")[0]
    assert findings.count("\n  - ") == 1
    assert "  - **ρ of the deep one is 0.9.** deep: mean ρ over 0.9 0.6678" in findings
    fine = evidence(figure(LAW), {"a": [outcome(law_curve())] * 3})
    recorded(fine, tmp_path)
    assert "No recorded claim is contradicted." in figures_page((fine.figure,), tmp_path, predict=predicted)


def test_a_rate_that_leaves_training_data_unfitted_is_told_beside_what_failed(tmp_path: Path) -> None:
    made = figure(LAW, rates={"adam": (1e-3, 3e-3)}, choose="best r")

    def findings(accuracy: float) -> str:
        entries = [
            Entry("a", made.base.with_(seed=seed, rate=rate), read_both_ways(r, r, accuracy=accuracy))
            for rate, r in ((1e-3, -0.95), (3e-3, -0.9))
            for seed in range(3)
        ]
        recorded(gather(made, entries, scale="paper"), tmp_path)
        return figures_page((made,), tmp_path, predict=predicted).partition("## Findings")[2].partition("\n## ")[0]

    assert "Training accuracy at the rate that r chose: a 90.0 % at the rate 0.001." in findings(0.9)
    assert "Training accuracy" not in findings(1.0)


@pytest.mark.parametrize("listed", [True, False])
def test_a_figure_that_was_partly_run_says_so(tmp_path: Path, listed: bool) -> None:
    """Also where the record is of version 0.1, which says how many cells are missing, but not which."""
    found = shown_evidence()
    few = asked_for(replace(found.figure, rates={"adam": (1e-3,)}), 5)
    more = [("deep", cell.with_(rate=3e-3)) for name, cell in few if name == "deep"]
    whole = gather(found.figure, entries_of(found), scale="paper", plan=[*few, *more])
    recorded(whole, tmp_path)
    if not listed:
        path = tmp_path / "test" / "figure.json"
        path.write_text(re.sub(r'"missing":\[.*?\n\],\n', "", path.read_text(), flags=re.DOTALL))
    page = figures_page((found.figure,), tmp_path, predict=predicted)
    assert "| partly run (12 of 18 cells) |" in page
    assert "paper scale, 3 seeds, partly run (12 of 18 cells)." in page


def test_remarks_stand_with_their_figure(tmp_path: Path) -> None:
    found = shown_evidence()
    recorded(found, tmp_path)
    (tmp_path / "remarks.json").write_text(json.dumps({"test/figure": ["Mind the *bend*."]}))
    assert "Remarks:\n\n- Mind the \\*bend\\*.\n" in figures_page((found.figure,), tmp_path, predict=predicted)
    (tmp_path / "remarks.json").write_text(json.dumps({"test/figur": ["Mind the gap."]}))
    with pytest.raises(InputError, match=r"remarks on `test/figur`, which is no figure. Correct its name."):
        figures_page((found.figure,), tmp_path, predict=predicted)


def test_the_summary_counts_claims_of_figures_without_a_record_as_not_run(tmp_path: Path) -> None:
    found = shown_evidence()
    recorded(found, tmp_path)
    other = replace(found.figure, id="he2023/other")
    table = summary_table(recorded_figures((found.figure, other), tmp_path)).splitlines()
    assert (
        table[0]
        == "| paper | figures recorded | claims held | contradicted | undecided | supported | against | not testable | not run |"
    )
    assert table[2:] == [
        "| test | 1 of 1 | 2 | 1 | 0 | 0 | 0 | 0 | 1 |",
        "| He & Su, A law of data separation in deep learning | 0 of 1 | 0 | 0 | 0 | 0 | 0 | 0 | 4 |",
        "| all | 1 of 2 | 2 | 1 | 0 | 0 | 0 | 0 | 5 |",
    ]


def test_a_law_that_was_not_found_is_told_seed_by_seed_in_both_modes() -> None:
    outcomes = [read_both_ways(r, -0.995) for r in (-0.98, -0.97, -0.997)]
    text = told(evidence(figure(LAW), {"a": outcomes}))
    assert text.startswith("**Undecided: The law holds.** What differs, seed by seed at the chosen rate:")
    assert "`a` at the rate 0.001: 1 of 3 seeds by themselves meet the rule." in text
    assert "In eval reading instead of mixed, the mean r is -0.9950: between a law and none." in text
    assert "at its own best rate" not in text and "another rate" not in text  # there is one alone
    assert re.search(
        r"Two slopes .*than one \(bend [0-9.]+ of its 5 % limit\)|Two slopes cannot be told from one", text
    )
    # a bow: its ends lie above the line, its middle below
    assert re.search(r"farthest from its line at site [08]: 0\.\d+ above it\.", text)
    assert re.search(r"\| 1 \| -0\.9700 \| -0\.9950 \| 0\.500 \| .* \| 100\.0 \| .* \| -0\.9700 \| 0\.001 \|", text)
    assert "| mean | -0.9823 | -0.9950 |" in text
    assert "The weightings of D agree: all classes have as many samples" in text
    assert "does not fit its training data" not in text


def test_rates_that_suit_single_seeds_are_told_as_optimistic() -> None:
    made = figure(LAW, rates={"adam": (1e-3, 3e-3)}, choose="best r")

    def told_of(rows: Mapping[float, tuple[float, ...]]) -> str:
        cells = [(made.base.with_(seed=seed, rate=rate), r) for rate, row in rows.items() for seed, r in enumerate(row)]
        return told(gather(made, [Entry("a", cell, read_both_ways(r, r)) for cell, r in cells], scale="paper"))

    text = told_of({1e-3: (-0.98, -0.98, -0.98), 3e-3: (-0.995, -0.96, -0.96)})
    assert "With each seed at its own best rate (optimistic), the mean r is -0.9850: between a law and none." in text
    assert re.search(r"\| 0 \| -0\.9800 .* \| -0\.9950 \| 0\.003 \|", text)
    assert "No seed does better at another rate." in told_of({1e-3: (-0.98,) * 3, 3e-3: (-0.96,) * 3})


def test_one_seed_has_no_mean() -> None:
    text = told(evidence(figure(LAW), {"a": [read_both_ways(-0.98, -0.98)]}))
    assert "| 0 | -0.9800 |" in text and "| mean |" not in text and "by themselves" not in text


def test_what_held_is_not_told_again() -> None:
    assert told(evidence(figure(LAW), {"a": [outcome(law_curve())] * 3})) == ""
    # of several series only those that failed
    both = Claim("Both", "law", ("a", "b"))
    found = evidence(
        figure(both, names=("a", "b")),
        {"a": [outcome(law_curve())] * 3, "b": [read_both_ways(-0.9, -0.9, accuracy=0.9)] * 3},
    )
    assert "`b` at the rate" in told(found) and "`a` at the rate" not in told(found)
    assert "The network does not fit its training data at this rate: accuracy 90.0 %." in told(found)


def test_where_there_is_no_r_the_reason_is_given() -> None:
    curve = (8.0, 4.0, None, None)
    text = told(evidence(figure(LAW), {"a": [outcome(curve)] * 3}))
    assert "there is no r in any seed, since from site 2 on D does not exist" in text
    assert "| seed |" not in text


def test_unequal_classes_change_what_is_said_of_weightings() -> None:
    made = figure(LAW, changes={"a": {"per_class": None, "sizes": (50, 5)}})
    assert "they differ for those with unequal classes" in told(evidence(made, {"a": [outcome(law_curve(r=-0.9))] * 3}))


def test_fig1_is_judged_again_at_the_rates_of_the_authors_code() -> None:
    rates = FIG1.code_rates
    assert set(rates) == {series.name for series in FIG1.series} - {"points"}
    assert all(rates[series.name] in FIG1.rates_of(series) for series in FIG1.series if series.name in rates)
    entries = []
    for name, theirs in rates.items():
        (series,) = FIG1.named(name)
        for rate in FIG1.rates_of(series):
            r = -0.9 if rate == theirs else -0.999 if rate == FIG1.rates_of(series)[1] else -0.8
            rho = 0.4 if rate == theirs else 0.5
            entries += [
                Entry(name, cell, read_both_ways(r, r, rho=rho))
                for cell in FIG1.cells(series, seeds=range(3), rates=(rate,))
            ]
    text = "\n\n".join(rate_parts(gather(FIG1, entries, scale="paper")))
    assert re.search(
        r"\| sgd-20 \| 0\.003 \| -0\.9990 \| 0\.500 \| \S+ \| 100\.0 \| 0\.01 \| -0\.9000 \| 0\.400 \|", text
    )
    assert "| The law holds in all nine panels | held | contradicted | sgd-" in text
    assert not list(rate_parts(shown_evidence()))


needs_record = pytest.mark.skipif(not (REPO / "results").is_dir(), reason="there is no record in this copy of the code")


@needs_record
def test_the_committed_page_and_the_readme_are_what_the_script_makes() -> None:
    made = script("make_figures_page.py")
    for name, text in (("docs/figures.md", made["page"]()), ("README.md", made["readme"]())):
        assert (REPO / name).read_text(encoding="utf-8") == text, "run: python scripts/make_figures_page.py"


@needs_record
def test_the_committed_record_is_small_and_has_its_pictures() -> None:
    files = [path for path in (REPO / "results").rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 12 * 2**20
    for path in (REPO / "results").glob("*/*"):
        assert path.suffix in (".json", ".png") and path.with_suffix(".png").is_file()


@needs_record
def test_the_committed_pictures_show_what_the_record_and_its_verdicts_give() -> None:
    """By the fingerprint that each carries: every panel, line and word is made anew, nothing is rendered."""
    name = script("pack_record.py")["FINGERPRINT"]
    for each in all_figures():
        path = REPO / "results" / f"{each.id}.json"
        if path.is_file():
            found = recorded_evidence(each, path)
            with Image.open(path.with_suffix(".png")) as picture:
                drawn = picture.info.get(name)
            made = fingerprint(found, judge(found))
            assert drawn == made, f"run: python scripts/pack_record.py --redraw --only {each.id}"
            assert made != fingerprint(replace(found, figure=replace(each, title="Another")), judge(found))


@pytest.fixture
def stored(tmp_path: Path) -> tuple[Evidence, Store]:
    """A store with the cells of a figure, and the evidence that it holds."""
    found = shown_evidence()
    store = Store.open(tmp_path / "runs")
    entries = [entry for each in found.series.values() for entry in each.entries]
    store.add_manifest(found.figure.id, "paper", [(entry.series, entry.cell) for entry in entries], {})
    for entry in entries:
        store.put(entry.cell, entry.outcome, entry.provenance)
    return found, store


def test_a_store_is_packed_with_the_same_verdicts(stored: tuple[Evidence, Store], tmp_path: Path) -> None:
    found, store = stored
    made = script("pack_record.py")
    results = tmp_path / "results"
    kept = made["pack_figure"](found.figure, store, results)
    record = read_record(results / "test" / "figure.json")
    assert (record.scale, record.planned, len(record.entries)) == ("paper", 12, 12)
    assert [verdict.verdict for verdict in judge(kept)] == [verdict.verdict for verdict in judge(found)]
    assert made["differences"](found, kept) == ""
    with Image.open(results / "test" / "figure.png") as image:
        assert image.mode == "P" and min(image.size) > 100
    before = (results / "test" / "figure.png").read_bytes()
    made["pack_figure"](found.figure, store, results)
    assert (results / "test" / "figure.png").read_bytes() == before


def test_series_that_no_run_asked_for_make_a_figure_partly_run(stored: tuple[Evidence, Store], tmp_path: Path) -> None:
    found, store = stored
    more = replace(found.figure, series=(*found.figure.series, Series("later", {"depth": 4})), seeds=3)
    kept = script("pack_record.py")["pack_figure"](more, store, tmp_path / "results")
    assert state_of(kept, recorded=True) == "partly run (12 of 18 cells)"  # two rates, three seeds


def test_what_a_record_says_otherwise_is_found(stored: tuple[Evidence, Store]) -> None:
    found, _ = stored
    differences = script("pack_record.py")["differences"]
    entries = [entry for each in found.series.values() for entry in each.entries]

    def changed(change: Mapping[float, float]) -> Evidence:
        """At these rates the law's r is another."""
        return gather(
            found.figure,
            [
                replace(entry, outcome=outcome(law_curve(r=change[entry.cell.rate])))
                if entry.cell.rate in change
                else entry
                for entry in entries
            ],
            scale="paper",
        )

    assert differences(found, changed({1e-3: -0.9})).startswith("the rate of `deep` is 0.001 and then 0.003")
    assert differences(found, changed({1e-3: -0.98})) == "`A law in both` was held and is then undecided"


def test_nothing_run_is_nothing_packed(stored: tuple[Evidence, Store], tmp_path: Path) -> None:
    found, store = stored
    other = replace(found.figure, id="test/other")
    assert script("pack_record.py")["pack_figure"](other, store, tmp_path / "results").done == 0
    assert not (tmp_path / "results").exists()


def test_the_script_packs_what_it_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    minority = figure_of("fang2021/minority")
    store = Store.open(tmp_path / "runs")
    run_figure(minority, store=store)
    monkeypatch.setattr("sys.argv", ["pack_record.py", str(store.root), "--results", str(tmp_path / "results")])
    script("pack_record.py")["main"]()
    assert "fang2021/minority: recorded" in capsys.readouterr().out
    assert sorted(path.name for path in (tmp_path / "results" / "fang2021").iterdir()) == [
        "minority.json",
        "minority.png",
    ]
