"""The page of all figures and the record it is made of: nothing typed by hand, and verdicts that survive the packing."""

from __future__ import annotations

import json
import re
import runpy
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from equisep.errors import InputError
from equisep.figures.catalogue import figure_of
from equisep.figures.cell import Cell
from equisep.figures.changes import Change
from equisep.figures.evidence import Entry, Evidence, gather
from equisep.figures.figure import Claim, Figure, Series
from equisep.figures.judge import judge
from equisep.figures.outcome import Curves, Outcome
from equisep.figures.papers.he2023 import FIG1
from equisep.report.figures.summary import state_of
from equisep.runs.cost import Prediction
from equisep.runs.plan import RunOptions, short_cells
from equisep.runs.record import Record, read_record, write_record
from equisep.runs.run import run_figure
from equisep.runs.store import Store
from figure_pages.figure_page import figure_page, rate_parts, reading_rate_parts
from figure_pages.index import changes_page, index_page
from figure_pages.recorded import recorded_figures, summary_table
from figures.synthetic_figures import asked_for, evidence, figure, law_curve, outcome, shown_evidence

REPO = Path(__file__).resolve().parents[2]
LAW = Claim("The law holds", "law", ("a",))


def script(name: str) -> dict[str, Any]:
    return runpy.run_path(str(REPO / "scripts" / name))


def predicted(figure: Figure, cells: Sequence[Cell]) -> Prediction:
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


def pages_of(figures: Sequence[Figure], folder: Path) -> tuple[str, dict[str, str]]:
    """The index, and the pages of figures that are recorded."""
    found = recorded_figures(figures, folder)
    index = index_page(found, thumbnails=folder / "thumbnails", predict=predicted)
    return index, {each.figure.id: figure_page(each, folder) for each in found if each.summary}


def test_the_index_has_what_is_recorded_and_the_cost_of_what_is_not(tmp_path: Path) -> None:
    found = shown_evidence()
    recorded(found, tmp_path)
    other = replace(found.figure, id="test/other", title="Another")
    index, pages = pages_of((found.figure, other), tmp_path)
    assert index.startswith("# Do the papers' figures reproduce?\n")
    assert "| test | 1 of 2 | 2 | 1 | 0 | 0 | 5 |" in index  # confirmed, contradicted, of the reading, undecided, open
    assert (
        "[Nobody (2000): A figure made by hand](test-figure.md)<br>● 2 held · ✕ 1 contradicted · – 1 not run" in index
    )
    assert "| `test/other` | Another | 4 | 7 runs, about 2 h on a machine, 1 GiB |" in index
    assert "Everything recorded was made on cpu, with equisep 0.1, torch 2.13, in 24 s of computing." in index
    assert list(pages) == ["test/figure"]
    for text in (index, *pages.values()):
        for table in re.findall(r"(?:^\|.*\|\n)+", text, flags=re.MULTILINE):
            assert len({len(re.findall(r"(?<!\\)\|", row)) for row in table.splitlines()}) == 1


def test_claims_are_listed_by_how_they_stand(tmp_path: Path) -> None:
    found = shown_evidence()
    recorded(found, tmp_path)
    index, _ = pages_of((found.figure,), tmp_path)
    parts = dict(re.findall(r"^## (.+)\n(?:\n[^-].*\n)*\n(- .+)$", index, flags=re.MULTILINE))
    link = "- [A figure made by hand](test-figure.md): "
    assert parts["Confirmed"] == f"{link}A law in both; The deep one separates less a layer."
    assert parts["Contradicted"] == f"{link}ρ of the deep one is 0.9."
    assert "**Nobody (2000)**" in index
    assert (
        "Of 4 claims quoted from the papers: 2 confirmed, 1 contradicted, 0 properties of the reading, 0 undecided, 1 not"
        in index
    )
    texts = ("It falls (a)", "It rises", "It falls (b)")
    some = replace(found.figure, claims=tuple(replace(found.figure.claims[0], text=text) for text in texts))
    assert (
        f"{link}It falls (a; b); It rises." in pages_of((some,), tmp_path)[0]
    )  # what differs in a bracket is told once
    ours = replace(found.figure, claims=tuple(replace(claim, source="ours") for claim in found.figure.claims))
    assert "## Confirmed" not in pages_of((ours,), tmp_path)[0]  # what no paper says confirms none


def test_a_thumbnail_leads_to_its_page(tmp_path: Path) -> None:
    found = shown_evidence()
    recorded(found, tmp_path)
    assert "![" not in pages_of((found.figure,), tmp_path)[0]
    (tmp_path / "thumbnails").mkdir()
    (tmp_path / "thumbnails" / "test-figure.png").write_bytes(b"")
    index, _ = pages_of((found.figure,), tmp_path)
    assert "[![A figure made by hand](thumbnails/test-figure.png)](test-figure.md)<br>" in index


def test_a_page_has_picture_sentences_claims_and_how_it_was_run(tmp_path: Path) -> None:
    found = shown_evidence()
    quoted = replace(
        found.figure,
        claims=tuple(replace(claim, quote=f"Thus {at}", source="p. 1") for at, claim in enumerate(found.figure.claims)),
    )
    recorded(found, tmp_path)
    (tmp_path / "test" / "figure.png").write_bytes(b"")
    page = pages_of((quoted,), tmp_path)[1]["test/figure"]
    assert page.startswith("# Nobody (2000): A figure made by hand\n")
    assert "![A figure made by hand](../../results/test/figure.png)" in page
    assert "[every number, seed by seed](../../results/test/figure.json)" in page
    assert "**What the paper shows.** A law in both, “Thus 0” (p. 1); " in page and "; 2 more in the table." in page
    assert "**What we found.** Of 4 claims, 2 held, 1 contradicted and 1 not run, over 3 seeds." in page
    assert "Why it may differ" not in page
    assert re.search(r"^\| held \| A law in both \| “Thus 0” \(p\. 1\) \| .*mean r = −0\.999", page, flags=re.MULTILINE)
    before, _, run = page.partition("<details markdown><summary>How it was run</summary>")
    assert "1,000 images drawn from cifar10_7k, a part of CIFAR-10" in run and "Made by hand." in run
    assert "| deep | 0.001 | 3 | −0.9990 | 0.6010 |" in run
    assert "| deep | ρ | 0.818 | 0.6010 | 3 |" in run and "| deep | r | −0.999 | −0.9990 |" in run
    assert "Run it again: `equisep figures run test/figure`." in run
    assert "−0.9990 −0.9990" not in page  # seeds stay in the JSON
    assert "\n\n".join(before.split("\n\n")[:3]).count("\n") < 10


def test_what_the_readings_show_is_the_first_statement(tmp_path: Path) -> None:
    made = figure(
        Claim("A law", "law", ("a",), source="p. 1"),
        Claim("It decays", "at most", ("a",), "rho", 0.6, source="p. 2"),
        readings=("mixed", "eval"),
        changes={"a": {"readings": ("mixed", "eval")}},
    )
    recorded(evidence(made, {"a": [read_both_ways(-0.999, -0.9)] * 3}), tmp_path)
    index, pages = pages_of((made,), tmp_path)
    first = index.split("\n\n")[1]
    assert first.startswith("**What D says depends on how samples are read.** (D: the spread")
    assert " 2 claims on feed-forward networks with BatchNorm were judged in two" in first
    assert "2 hold in *mixed*" in first and "and 1 in *eval*" in first
    assert "1 holds in one reading and is contradicted in another: a property of the reading" in first
    head = "## Properties of the reading: held in one, contradicted in another"
    assert (
        f"{head}\n\n**Nobody (2000)**\n\n- [A figure made by hand](test-figure.md): A law (*mixed* held, *eval* contradicted)."
        in index
    )
    assert "| verdict | claim | the paper | here | mixed | eval |" in pages["test/figure"]
    assert "| held (−0.9990) | contradicted (−0.9000) |" in pages["test/figure"]
    second = index.split("\n\n")[2]
    assert second.startswith("**The law itself.** Of 1 panel") and "of 1 in *mixed* and 0 in *eval*" in second
    assert "none (r > −0.971) of 0 in *mixed* and 1 in *eval*" in second
    found = "Both claims held, over 3 seeds, read in *mixed*. In another reading of the same networks 1 of those that held is"
    assert f"{found} contradicted.\n" in pages["test/figure"]  # read as the picture is
    other = replace(made, readings=("eval", "mixed"))
    assert (
        "1 of the others holds. The picture shows D read in *mixed*.\n"
        in pages_of((other,), tmp_path)[1]["test/figure"]
    )


def test_networks_that_read_the_same_in_every_reading_say_nothing_of_readings(tmp_path: Path) -> None:
    """Without BatchNorm: their claims are judged, and not counted as claims in several readings."""
    changes = {name: {"readings": ("mixed", "eval"), "norm": name == "normed"} for name in ("normed", "bare")}
    claims = [Claim(f"A law ({name})", "law", (name,), source="p. 1") for name in changes]
    made = figure(*claims, names=tuple(changes), readings=("mixed", "eval"), changes=changes)
    recorded(evidence(made, {name: [read_both_ways(-0.999, -0.999)] * 3 for name in changes}), tmp_path)
    index, pages = pages_of((made,), tmp_path)
    assert " 1 claim on feed-forward networks with BatchNorm was judged in two readings" in index
    assert "Both claims held" in pages["test/figure"]
    bare = replace(made, claims=made.claims[1:])
    assert "What D says depends" not in pages_of((bare,), tmp_path)[0]


def test_the_lists_say_what_is_from_slides_and_what_of_networks_that_cannot_fit(tmp_path: Path) -> None:
    slides = Claim("A law on slides", "law", ("a",), source="slides, part I")
    paper = Claim("A law of the paper", "law", ("a",), source="p. 1")
    made = replace(figure(slides, paper, replace(paper, text="A law of all", fit=False), fit=0.9), id="he2023/linear")
    recorded(evidence(made, {"a": [read_both_ways(-0.999, -0.9)] * 3}), tmp_path)
    index, pages = pages_of((made,), tmp_path)
    unfit = "A law of all (networks without ReLU, which cannot fit)"
    assert f"A law on slides (slides, part I); A law of the paper; {unfit}.\n" in index
    assert "All 3 claims held" in pages["he2023/linear"]


@pytest.mark.parametrize(("count", "words"), [(1, "the claim"), (2, "either claim"), (3, "any of the 3 claims")])
def test_nothing_was_run_that_would_test_any_claim(tmp_path: Path, count: int, words: str) -> None:
    claims = [Claim(f"Law {at}", "law", ("b",), source="p. 1") for at in range(count)]
    made = figure(*claims, names=("a", "b"))
    recorded(evidence(made, {"a": [read_both_ways(-0.999, -0.9)] * 3}), tmp_path)
    page = pages_of((made,), tmp_path)[1]["test/figure"]
    assert f"**What we found.** Nothing was run that would test {words}." in page


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
    index, pages = pages_of((found.figure,), tmp_path)
    assert "Partly run (12 of 18 cells)." in pages["test/figure"]
    assert "| 0 of 1, 1 in part |" in index  # no claim has all it needs
    assert "| `test/figure` | A figure made by hand (the rest) |" in index


def test_an_experiment_of_our_own_says_what_it_asks(tmp_path: Path) -> None:
    claims = (Claim("A law", "law", ("a",), quote="Every network has it", source="Nobody (2000)"),)
    made = replace(figure(*claims), id="equisep2026/own")
    recorded(evidence(made, {"a": [read_both_ways(-0.999, -0.9)] * 3}), tmp_path)
    page = pages_of((made,), tmp_path)[1]["equisep2026/own"]
    said = "The experiment is ours; it asks of what the papers say: “Every network has it” (Nobody (2000))."
    assert f"**What it asks.** {said}\n" in page
    none_of_the_paper = figure(Claim("A law", "law", ("a",), source="ours: asked by nobody else"))
    recorded(evidence(none_of_the_paper, {"a": [read_both_ways(-0.999, -0.9)] * 3}), tmp_path)
    page = pages_of((none_of_the_paper,), tmp_path)[1][none_of_the_paper.id]
    assert "**What it asks.** The experiment is ours.\n" in page


def test_remarks_stand_with_their_figure(tmp_path: Path) -> None:
    found = shown_evidence()
    recorded(found, tmp_path)
    (tmp_path / "remarks.json").write_text(json.dumps({"test/figure": ["Mind the *bend*.", "And this."]}))
    page = pages_of((found.figure,), tmp_path)[1]["test/figure"]
    assert "**Why it may differ.** Mind the \\*bend\\*. And this.\n" in page
    (tmp_path / "remarks.json").write_text(json.dumps({"test/figur": ["Mind the gap."]}))
    with pytest.raises(InputError, match=r"remarks on `test/figur`, which is no figure. Correct its name."):
        pages_of((found.figure,), tmp_path)


def test_the_summary_counts_claims_of_figures_without_a_record_as_not_run(tmp_path: Path) -> None:
    found = shown_evidence()
    recorded(found, tmp_path)
    other = replace(found.figure, id="he2023/other")
    table = summary_table(recorded_figures((found.figure, other), tmp_path)).splitlines()
    assert table[0].startswith(
        "| claims of | figures run | confirmed | contradicted | properties of the reading | undecided |"
    )
    assert table[2:] == [
        "| test | 1 of 1 | 2 | 1 | 0 | 0 | 1 |",
        "| He & Su, A law of data separation in deep learning | 0 of 1 | 0 | 0 | 0 | 0 | 4 |",
    ]


@pytest.mark.parametrize("source", ["ours: asked by nobody else", "in our words, after p. 1"])
def test_the_summary_counts_claims_of_our_own_in_a_row_of_their_own(tmp_path: Path, source: str) -> None:
    """And those that the paper makes in words that nobody can look up here."""
    found = shown_evidence()
    first, *rest = found.figure.claims
    made = replace(found.figure, claims=(replace(first, source=source), *rest))
    recorded(found, tmp_path)
    table = summary_table(recorded_figures((made,), tmp_path)).splitlines()
    assert table[2:] == [
        "| test | 1 of 1 | 1 | 1 | 0 | 0 | 1 |",
        "| our own, or in our words, on these figures and others | 1 of 1 | 1 | 0 | 0 | 0 | 0 |",
    ]
    own = replace(made, claims=made.claims[:1])
    assert (
        len(summary_table(recorded_figures((own,), tmp_path)).splitlines()) == 3
    )  # no row for a paper that claims nothing


def test_changes_are_listed_the_latest_first() -> None:
    page = changes_page(
        (Change("2026-01-01", "a/b", "old", "", "wrong"), Change("2026-02-01", "*", "old", "new", "better"))
    )
    rows = page.splitlines()[-2:]
    assert rows == ["| 2026-02-01 | \\* | old | new | better |", "| 2026-01-01 | a/b | old | dropped | wrong |"]


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
        r"\| sgd-20 \| 0\.003 \| −0\.9990 \| 0\.500 \| \S+ \| 100\.0 \| 0\.01 \| −0\.9000 \| 0\.400 \|", text
    )
    assert "| The law holds in all nine panels | held | contradicted | sgd-" in text
    assert not list(rate_parts(shown_evidence()))


def test_rates_that_each_reading_would_choose_are_told_of_series_in_which_they_differ() -> None:
    """`shallow` has its best r at one rate in both readings, `deep` at another in `eval`."""
    of = shown_evidence().figure
    r = {("deep", 1e-3): (-0.999, -0.98), ("deep", 3e-3): (-0.95, -0.99)}
    r |= {("shallow", 1e-3): (-0.999, -0.99), ("shallow", 3e-3): (-0.95, -0.96)}
    entries = [
        Entry(series.name, cell, read_both_ways(*r[series.name, cell.rate]))
        for series in of.series
        for cell in of.cells(series, seeds=range(3))
    ]
    lead, table = reading_rate_parts(gather(of, entries, scale="paper"))
    assert lead.startswith("The rate that each reading by itself would choose")
    assert table.splitlines()[0] == "| series | rate by mixed | r in mixed | rate by eval | r in eval |"
    assert table.splitlines()[2:] == ["| deep | 0.001 | −0.9990 | 0.003 | −0.9900 |"]
    assert not list(reading_rate_parts(shown_evidence()))


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


def test_series_that_the_store_has_not_stay_as_recorded(stored: tuple[Evidence, Store], tmp_path: Path) -> None:
    found, store = stored
    pack, results = script("pack_record.py")["pack_figure"], tmp_path / "results"
    pack(found.figure, store, results)
    first, second = found.figure.series[0].name, found.figure.series[1].name
    part = Store.open(tmp_path / "part")
    entries = found.series[first].entries
    part.add_manifest(found.figure.id, "paper", [(entry.series, entry.cell) for entry in entries], {})
    for entry in entries:
        part.put(entry.cell, entry.outcome, entry.provenance)
    kept = pack(found.figure, part, results, read_record(results / "test" / "figure.json"))
    assert kept.done == found.done and len(kept.series[second].entries) == len(found.series[second].entries)
    assert [verdict.verdict for verdict in judge(kept)] == [verdict.verdict for verdict in judge(found)]
    assert not pack(found.figure, part, results).series[second].entries


def test_trainings_that_the_store_has_not_stay_as_recorded_on_the_data_that_it_has(
    stored: tuple[Evidence, Store], tmp_path: Path
) -> None:
    """Also those of a series of which the store has some: rates that were recorded are not asked for again."""
    found, _ = stored
    pack, results = script("pack_record.py")["pack_figure"], tmp_path / "results"
    former = Record(entries_of(found), "paper", 12, [])
    part = Store.open(tmp_path / "part")
    entries = [entry for entry in entries_of(found) if entry.training.rate == 1e-3]
    part.add_manifest(found.figure.id, "paper", [(entry.series, entry.cell) for entry in entries], {})
    for entry in entries:
        part.put(entry.cell, entry.outcome, entry.provenance)
    assert pack(found.figure, part, results).done == len(entries) == 6
    assert {entry.cell for entry in entries_of(pack(found.figure, part, results, former))} == {
        entry.cell for entry in entries_of(found)
    }
    on_others = [
        replace(each, cell=each.cell.with_(stands_for=each.cell.data, data="other")) for each in former.entries
    ]
    assert pack(found.figure, part, results, former._replace(entries=on_others)).done == 6


def test_short_runs_that_chose_a_rate_stay_as_recorded_and_nothing_else_that_is_shorter(
    stored: tuple[Evidence, Store], tmp_path: Path
) -> None:
    found, store = stored
    made = replace(found.figure, choose="best two")
    short = [
        Entry(each.series, cell, outcome(law_curve()))
        for each in short_cells(made, RunOptions("paper"))
        for cell in [each.cell.with_(stands_for=each.cell.data, data="other") if each.series == "deep" else each.cell]
    ]
    of_other_declarations = [
        replace(short[0], cell=short[0].cell.with_(**changes))
        for changes in ({"epochs": 400, "batch_size": 64}, {"epochs": 400}, {"rate": 0.5}, {"seed": 1, "data_seed": 1})
    ]
    former = Record([*short, *of_other_declarations, *entries_of(found)], "paper", 21, [])
    pack = script("pack_record.py")["pack_figure"]
    kept = pack(made, store, tmp_path / "results", former)
    assert {entry.cell for entry in entries_of(kept)} == {entry.cell for entry in (*short, *entries_of(found))}
    assert len(entries_of(kept)) == len(short) + found.done == 4 + 12
    assert pack(found.figure, store, tmp_path / "results", former).done == 12  # a figure that never had short runs


def test_a_cell_of_two_figures_is_stored_once_and_again_where_the_first_has_it_no_more(tmp_path: Path) -> None:
    made = script("pack_record.py")
    ids = ("he2023/fig7", "he2023/fig10")
    records = {id: read_record(REPO / "results" / f"{id}.json") for id in ids}
    for id, record in records.items():
        plan = [(entry.series, entry.cell) for entry in record.entries]
        write_record(tmp_path / f"{id}.json", record.entries, figure_of(id), "paper", plan=plan, keep="all")
    first, second = (tmp_path / f"{id}.json" for id in ids)
    before, size, whole = first.read_bytes(), second.stat().st_size, set(second.read_text().splitlines())
    made["store_once"](records, tmp_path)
    assert first.read_bytes() == before and read_record(second) == records[ids[1]]
    named = {line for line in second.read_text().splitlines() if '"in":"he2023/fig7"' in line}
    of_both = len({entry.cell for entry in records[ids[0]].entries} & {entry.cell for entry in records[ids[1]].entries})
    left_out = sorted(whole - set(second.read_text().splitlines()), key=len)[-of_both:]
    assert len(named) == of_both > 0 and sum(map(len, named)) < 0.1 * sum(map(len, left_out))
    write_record(first, records[ids[0]].entries[:1], figure_of(ids[0]), "paper", keep="all")
    made["store_once"]({**records, ids[0]: read_record(first)}, tmp_path)
    assert read_record(second) == records[ids[1]] and second.stat().st_size > 0.9 * size


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
