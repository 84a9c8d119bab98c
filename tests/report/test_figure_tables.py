"""A figure in the terminal, in Markdown and as JSON: the same verdicts and numbers everywhere."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console, RenderableType

from equisep.figures.cell import Cell
from equisep.figures.evidence import Evidence, gather
from equisep.figures.figure import Claim
from equisep.figures.judge import WORDS, judge
from equisep.figures.papers.galanti2022 import BOUND
from equisep.report.figures.list import CostRow, _fared, list_json, list_row, render_list, render_plans
from equisep.report.figures.markdown import figure_markdown
from equisep.report.figures.summary import figure_json, state_of
from equisep.report.figures.tables import VERDICT_STYLES, render_figure
from equisep.report.formatting import duration, size
from figures.synthetic_figures import asked_for, evidence, figure, law_curve, numbers, outcome, shown_evidence

REPO = Path(__file__).resolve().parents[2]


COUNTS = dict.fromkeys(WORDS, 0)


def printed(content: RenderableType, *, width: int = 120, encoding: str = "utf-8") -> str:
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    Console(file=file, width=width, legacy_windows=False).print(content)
    file.flush()
    assert isinstance(file.buffer, io.BytesIO)
    return file.buffer.getvalue().decode(encoding)


def terminal(found: Evidence, **how: object) -> str:
    return printed(render_figure(found, judge(found)), **how)  # type: ignore[arg-type]


def test_json_has_claims_series_and_printed_numbers() -> None:
    found = shown_evidence()
    content = figure_json(found, judge(found))
    json.dumps(content, allow_nan=False)
    assert (content["id"], content["state"], content["scale"]) == ("test/figure", "run", "paper")
    assert content["stand_ins"] == {"cifar10": ["cifar10_7k"]}
    law, above, near, unread = content["claims"]
    assert (law["verdict"], law["held"], law["n"], law["paper"]) == ("held", True, 3, -0.999)
    assert law["ours"] == pytest.approx(-0.999)
    assert law["interval"] == pytest.approx([-0.999, -0.999])
    assert (above["rule"], above["verdict"]) == ("above", "held")
    assert (near["verdict"], near["held"], near["paper"]) == (
        "contradicted",
        False,
        0.818,
    )  # the paper's, not the bound
    assert near["value"] == 0.9
    assert (unread["verdict"], unread["held"], unread["ours"], unread["interval"]) == ("not run", None, None, None)
    assert all(row["reason"].endswith(".") for row in content["claims"])
    assert content["counts"] == COUNTS | {"held": 2, "contradicted": 1, "not run": 1}


def test_every_series_has_its_rate_law_and_what_stands_beside_r() -> None:
    found = shown_evidence()
    deep, shallow = figure_json(found, judge(found))["series"]
    assert (deep["series"], deep["rate"], deep["rates_tried"], deep["n"]) == ("deep", 1e-3, [1e-3, 3e-3], 3)
    assert deep["rho"] == pytest.approx(0.601)
    assert deep["r"] == pytest.approx(-0.999)
    assert len(deep["r_by_seed"]) == 3 and deep["r_eval_by_seed"] == []
    assert deep["max_residual"] > 0 and deep["bend"] is not None and deep["imbalance"] > 1
    assert deep["r_optimistic"] == pytest.approx(-0.999) and deep["r_eval"] is None
    assert shallow["rho"] == pytest.approx(0.501)


@pytest.mark.parametrize(("grain", "words"), [("layers", "half-life layers"), ("blocks", "half-life blocks")])
def test_a_half_life_counts_what_the_curves_go_over(grain: str, words: str) -> None:
    found = shown_evidence()
    read = {
        name: replace(own, chosen={seed: replace(entry, outcome=replace(entry.outcome, readings=tuple(
            replace(curves, grain=grain) for curves in entry.outcome.readings
        ))) for seed, entry in own.chosen.items()})
        for name, own in found.series.items()
    }  # fmt: skip
    assert f"| {words} |" in figure_markdown(replace(found, series=read), judge(found))


def test_printed_numbers_stand_beside_ours() -> None:
    found = shown_evidence()
    rho, r = figure_json(found, judge(found))["printed"]
    assert (rho["series"], rho["quantity"], rho["paper"], rho["n"], rho["place"]) == ("deep", "rho", 0.818, 3, "Fig. 1")
    assert rho["ours"] == pytest.approx(0.601)
    assert rho["interval"][0] < 0.601 < rho["interval"][1]
    assert r["ours"] == pytest.approx(-0.999)
    nothing = gather(found.figure, (), scale="paper")
    assert [row["ours"] for row in figure_json(nothing, judge(nothing))["printed"]] == [None, None]


def test_states() -> None:
    made = shown_evidence().figure
    assert state_of(None) == "not run"
    assert state_of(shown_evidence()) == "run"
    assert state_of(shown_evidence(), recorded=True) == "recorded"
    assert state_of(shown_evidence(seeds=5)) == "partly run (12 of 20 cells)"
    assert state_of(gather(made, (), scale="paper", plan=asked_for(made, 1))) == "not run"


def test_the_terminal_shows_everything() -> None:
    text = terminal(shown_evidence(), width=160)
    for words in (
        "test/figure  A figure made by hand",
        "paper scale, 12 runs, run; claims: 2 held, 1 contradicted, 1 not run",
        "trains on 1,000 images drawn from cifar10_7k, a part of CIFAR-10",
        "The deep one separates less a layer",
        "the rule asks for 0.8 to 1.25",
        "`ncc` was not read of `deep`.",
        "The paper's numbers beside ours",
        "Note  Made by hand.",
        "Made on cpu, with equisep 0.1, torch 2.13, in 24 s of computing.",
    ):
        assert words in text
    assert re.search(r"1 held +A law in both\s+paper +−0\.999 \(Fig\. 1\)\s+here .*mean r = −0\.999", text)
    assert not re.search(r"(?<!\w)-\d", text)  # one minus sign, that of the claims' own words
    assert text.count("A law in both") == 1
    told = printed(render_figure(shown_evidence(), judge(shown_evidence()), remarks=["Mind."], picture="a.png"))
    assert "Picture  a.png" in told and "Why it may differ\nMind." in told


def test_what_is_ours_is_not_called_the_papers() -> None:
    own = Claim("A law", "law", ("a",), source="ours: what does it cost?")
    other = replace(own, text="A law too", source="ours, against p. 1", quote="None")
    told = evidence(figure(own, other), {"a": [outcome(law_curve())] * 3})
    text = terminal(told)
    assert re.search(r"A law\s+ours +what does it cost\?", text) and re.search(r"A law too\s+ours +against p\. 1", text)
    assert "paper  " not in text
    assert "| held | A law | ours: what does it cost? |" in figure_markdown(told, judge(told))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"per_class": 100}, "trains on 1,000 images drawn from cifar10_7k, a part of CIFAR-10 with 5,000 of 50,000"),
        ({"per_class": None, "sizes": (30,) * 5 + (3,) * 5}, "trains on 165 images drawn from cifar10_7k, a part of"),
        ({"per_class": None}, ""),
    ],
)
def test_samples_that_are_drawn_from_a_part_of_a_data_set_are_no_other_training_set(
    changes: dict[str, object], words: str
) -> None:
    cell = {"data": "cifar10_7k", "stands_for": "cifar10", **changes}
    found = evidence(figure(Claim("A law", "law", ("a",)), changes={"a": cell}), {"a": [outcome(law_curve())] * 3})
    text, stands = " ".join(terminal(found, width=160).split()), "stands in for the paper's cifar10."
    if words:
        assert f"Note Each network on CIFAR-10 {words}" in text and stands not in text
        assert "10,000 test images, and is tested on the latter." in text
    else:
        assert stands in text and "drawn from" not in text
    own = replace(found, figure=replace(found.figure, id="equisep2026/own"))
    assert "the paper's cifar10" not in terminal(own, width=160)


@pytest.mark.parametrize("wanted", ["fashion-mnist", "mine.npz"])
def test_samples_drawn_from_a_part_of_another_data_set_stand_in_for_the_papers(wanted: str) -> None:
    cell = {"data": "cifar10_7k", "stands_for": wanted, "per_class": 100}
    found = evidence(figure(Claim("A law", "law", ("a",)), changes={"a": cell}), {"a": [outcome(law_curve())] * 3})
    text = " ".join(terminal(found, width=160).split())
    assert f"stands in for the paper's {wanted}." in text and "drawn from" not in text


@pytest.mark.parametrize("width", [60, 80, 200])
def test_the_terminal_keeps_to_its_width(width: int) -> None:
    assert max(map(len, terminal(shown_evidence(), width=width).splitlines())) <= width


@pytest.mark.parametrize("width", [40, 60, 80, 100, 120, 160])
def test_numbers_of_series_are_shown_whole_or_not_at_all(width: int) -> None:
    text = terminal(shown_evidence(), width=width)
    table, left_out = text.split("chosen")[1].split("The paper's numbers")[0], "No room for"
    whole, _, named = table.partition(left_out)
    assert "…" not in whole
    assert "−0.9990" in whole and "ρ" in whole  # r and ρ are the last to go
    assert ("imbalance" in whole) == (width >= 80)
    assert ("imbalance" in named) == (width < 80)  # what has no room is named


def test_without_utf8_it_is_ascii() -> None:
    text = terminal(shown_evidence(), encoding="ascii")
    assert "rho" in text and "?" not in text
    assert "r <= -0.996 and rho < 1" in " ".join(text.split())


def test_one_reason_is_told_once() -> None:
    text = terminal(shown_evidence(scale="smoke"), width=160)
    assert text.count("not for publication") == 1
    assert "smoke scale" in text


def test_nothing_run_prints_its_claims_all_the_same() -> None:
    found = gather(shown_evidence().figure, (), scale="paper")
    text = terminal(found)
    assert "not run" in text and "Series" not in text and "Made on" not in text
    markdown = figure_markdown(found, judge(found))
    assert "| not run | A law in both |" in markdown


def test_markdown_has_the_same_numbers() -> None:
    found = shown_evidence()
    text = figure_markdown(found, judge(found), level=3)
    assert text.startswith("### test/figure: A figure made by hand\n")
    assert re.search(r"\| held \| A law in both \| −0\.999 \(Fig\. 1\) \| .*mean r = −0\.999.* over 3 seeds", text)
    assert "\n\nMind \\*this\\*.\n\n" in figure_markdown(found, judge(found), remarks=["Mind *this*."])
    assert "| deep | ρ | 0.818 | 0.6010 | 3 |" in text
    for table in re.findall(r"(?:^\|.*\|\n?)+", text, flags=re.MULTILINE):
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in table.strip().splitlines()}) == 1


def test_nothing_in_a_text_breaks_a_table() -> None:
    strange = Claim("a | b\nand *this* [bold]", "law", ("a",))
    found = evidence(figure(strange), {"a": [outcome(law_curve())] * 3})
    assert "a \\| b and \\*this\\* [bold]" in figure_markdown(found, judge(found))
    assert "*this* [bold]" in terminal(found)


def test_a_bound_says_that_it_is_one() -> None:
    found = evidence(figure(Claim("C", "at least", ("a",), "score", 0.5)), {"a": numbers(0.6, 0.6, 0.6)})
    assert (
        "| held | C |  | a: mean score = 0.6 [0.6, 0.6] over 3 seeds; the rule asks for at least 0.5. |"
        in figure_markdown(found, judge(found))
    )


def test_solved_problems_have_no_rate_and_show_what_was_claimed() -> None:
    base = Cell(kind="solve", problem="balanced")
    made = figure(Claim("C", "at most", ("a",), "gap", 0.5, exact=True), base=base)
    found = evidence(made, {"a": numbers(0.25, name="gap")})
    text = figure_markdown(found, judge(found))
    assert "| series | seeds | gap |" in text
    assert "| a | 1 | 0.2500 |" in text


def test_the_comparative_bound_is_shown_where_it_is_estimated() -> None:
    nothing = gather(BOUND, (), scale="paper")
    assert figure_json(nothing, judge(nothing))["estimates"] == []
    assert "estimates" in figure_json(shown_evidence(), judge(shown_evidence()))


def test_the_list_is_by_paper_and_readable_at_80_columns() -> None:
    found = shown_evidence(seeds=28)
    title = "A title that is long enough to take more than one line of a narrow terminal"
    partly = replace(found, figure=replace(found.figure, id="fang2021/oversampling", title=title))
    lines = printed(render_list([list_row(partly, judge(partly), recorded=True)]), width=80).splitlines()
    assert lines[0] == "Fang, He, Long & Su, Layer-Peeled Model (fang2021)"
    assert max(map(len, lines)) <= 80
    text = " ".join(" ".join(line[14:48] for line in lines[1:4]).split())
    assert title in text  # whole, on several lines
    assert "12 of 112 cells, 4 not run" in lines[1]
    row = list_row(shown_evidence(), judge(shown_evidence()), recorded=True)
    fared = _fared(row)
    assert fared.plain == "2 held, 1 contradicted, 1 not run"
    assert {VERDICT_STYLES["held"], VERDICT_STYLES["contradicted"]} <= {str(span.style) for span in fared.spans}


def test_the_list_sums_up() -> None:
    found = shown_evidence()
    empty = gather(replace(found.figure, id="test/other"), (), scale="paper")
    rows = [list_row(each, judge(each)) for each in (found, empty)]
    assert [row["state"] for row in list_json(rows)] == ["run", "not run"]
    assert list_json(rows)[1]["claims"] == COUNTS | {"not run": 4}
    text = printed(render_list(rows))
    own, other = (line for line in text.splitlines() if line.startswith((" figure", " other")))
    assert own.rstrip().endswith("2 held, 1 contradicted, 1 not run") and other.rstrip().endswith("not run")
    sums = " ".join(text.split())
    assert "2 figures, 1 of them run;" in sums
    assert "2 held, 1 contradicted, 0 undecided, 0 supported, 0 against, 0 not testable, 5 not run." in sums
    assert max(map(len, printed(render_list(rows), width=80, encoding="ascii").splitlines())) <= 80


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.04, "0.04 s"),
        (12, "12 s"),
        (600, "10 min"),
        (5400, "1.5 h"),
        (3 * 86400, "3 days"),
        (80, "80 s"),
        (1.08e8, "3.42 years"),
    ],
)
def test_durations(seconds: float, words: str) -> None:
    assert duration(seconds) == words


def test_sizes_and_plans() -> None:
    assert [size(n) for n in (5, 2048, 3 * 2**20, 5 * 2**30)] == ["5 B", "2 KiB", "3 MiB", "5 GiB"]
    row = CostRow("a/b", "paper", 10, 4, cells_to_run=6, groups=2, seconds=90.0, bytes=2**30, device="a machine")
    text = printed(render_plans([replace(row, cells_to_run=1, groups=1)]))
    assert "1 cell in 1 group that trains together; predicted" in text
    text = printed(render_plans([row] * 2))
    assert "12 cells in 4 groups that train together; predicted for a machine: 3 min, at most 1 GiB at once" in text
