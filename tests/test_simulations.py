"""The simulations: their committed results say what the docs say and what the rules promise, and a small run agrees."""

from __future__ import annotations

import importlib
import json
import math
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "simulations"
# populations told in a few percent of draws, beyond the chance level: the share of these whose intervals hold
SELDOM_HELD = {
    (2, 100, "flat", "", 10.0): 0.85,
    (10, 50, "flat", "", 10.0): 0.85,
    (2, 10, "flat", "", 1.0): 0.87,
    (2, 10, "flat", "", 2.0): 0.85,
    (2, 10, "flat", "", 3.0): 0.7,
    (10, 100, "decaying", "unlike", 10.0): 0.65,  # 17 of 3,000
    (5, 40, "flat", "rare wide, even means", 0.1): 0.8,  # 43 of 1,000
    (5, 40, "flat", "rare wide, even means", 0.3): 0.8,  # 17 of 1,000
}
# two classes of which half of the draws are refused, so that the median of all of them is an upper quantile of what is told
OFTEN_REFUSED = {(2, 1000, "flat", 3.0): 0.35, (2, 1000, "decaying", 2.0): 1.1}
CHANCE = 0.03  # three deviations of a rate of 5 % in 500 curves


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The names of one simulation."""
    monkeypatch.syspath_prepend(str(FOLDER))
    yield lambda name: runpy.run_path(str(FOLDER / f"{name}.py"))
    for name in ("_table", "_truth", "_findings_page", "_population_page", "_networks_page", "_page", "population"):
        sys.modules.pop(name, None)


def committed(name: str) -> dict[str, Any]:
    return dict(json.loads((FOLDER / "results" / f"{name}.json").read_text(encoding="utf-8")))


def test_the_pages_are_made_from_the_committed_results(made: Any) -> None:
    page = made("make_page")
    for title in page["PARTS"]:
        written = (page["DOCS"] / title).read_text(encoding="utf-8")
        assert written == page["page"](title), "run simulations/make_page.py"


def test_two_slopes_are_called_of_one_slope_in_at_most_5_percent() -> None:
    content = committed("law_shape")
    assert content["draws"] >= 1000
    assert max(row["two_slopes"] for row in content["tables"]["false_alarms"]) <= 0.05
    normal = [row for row in content["tables"]["laws"] if row["curve"] == "random falls, normal"]
    assert max(row["two_slopes"] for row in normal) <= 0.05 + 0.014  # two deviations of 1,000 curves
    worst = [row for row in content["tables"]["laws"] if row["curve"].startswith("random falls")]
    skewed = [row for row in worst if "correlation" not in row["curve"]]
    assert max(row["two_slopes"] for row in skewed) < 0.13  # as the docs say, and of correlated loads:
    alike = {row["sites"]: row["two_slopes"] for row in worst if row["curve"].endswith("correlation 0.5")}
    assert 0.05 < alike[5] < alike[8] < alike[20] < 0.45


def test_a_small_run_of_the_shape_of_the_law(made: Any) -> None:
    shape = made("law_shape")
    line = shape["SLOPE"] * shape["np"].arange(8)
    for seed, (kind, wiggle) in enumerate([(None, 0.1), ("ar 0.9", 0.0), ("smooth", 0.1)]):
        rng = shape["np"].random.default_rng(seed)
        hits = shape["called"](line, 150, rng, kind=kind, size=0.1, wiggle=wiggle)
        assert hits[:, 0].mean() <= 0.05 + CHANCE
    bent = line + 0.3 * shape["np"].maximum(0, shape["np"].arange(8) - 4)
    hits = shape["called"](bent, 50, shape["np"].random.default_rng(9), kind="ar 0.9", size=0.05, wiggle=0.0)
    assert hits[:, 0].mean() > 0.9
    wanted = {row["curve"]: row["law"] for row in committed("law_shape")["tables"]["laws"] if row["sites"] == 8}
    for name, logs in shape["curves"](8, 100, shape["np"].random.default_rng(8)).items():
        passed = shape["rate"]([shape["fit_law"](shape["np"].exp(row)).verdict == "law" for row in logs])
        assert passed == pytest.approx(wanted[name], abs=0.15), name


@pytest.mark.parametrize(("table", "most"), [("coverage", 0.985), ("apart", 0.99)])
def test_intervals_of_differences_cover_where_they_are_printed(table: str, most: float) -> None:
    """92 to 98 % is asked for; where bias is widened for, d is near K or classes are unequal, they are too careful."""
    content = committed("paired")
    assert content["draws"] >= 1000
    rows = content["tables"][table]
    often = [row for row in rows if row["number"] not in ("half_life", "two slopes called") and row["printed"] > 0.1]
    assert min(row["covers"] for row in often) >= 0.92
    assert max(row["covers"] for row in often) <= most
    slopes = [row["printed"] for row in rows if row["number"] == "two slopes called"]
    assert max(slopes) <= 0.05  # called of lines with small deviations, by folds of real samples


def test_a_small_run_of_paired_intervals(made: Any) -> None:
    paired = made("paired")
    setup = paired["Setup"]((30, 20, 25), 12, 0.03)
    world, rng = paired["World"].of(setup), paired["np"].random.default_rng(0)
    y = rng.permutation(paired["np"].repeat([0, 1, 2], setup.counts))
    x = world.means[y] + 0.5 * rng.standard_normal((75, 12))
    assert paired["by_formula"](x, y, 3) == pytest.approx(paired["by_library"](x, y, 3), rel=1e-9)
    rows = {row["number"]: row for row in paired["coverage"](setup, 40)}
    for name in ("rho", "D 2", "D 4"):
        assert rows[name]["printed"] > 0.8 and rows[name]["covers"] > 0.8, name


def test_a_search_for_a_depth_is_wrong_in_at_most_5_percent(made: Any) -> None:
    """However many depths are tried; and a small run agrees."""
    content = committed("depth")
    rows = content["tables"]["searches"]
    assert content["draws"] >= 400
    assert max(row["beyond"] for row in rows) <= 0.05
    assert max(row["wronged"] for row in rows) <= 0.05
    assert min(row["answered"] for row in rows if row["samples"] == 10_000) >= 0.5
    depth = made("depth")
    assert [row["setup"] for row in rows] == [setup.name for setup in depth["SETUPS"]]
    row = depth["row_of"](depth["SETUPS"][0], 20)
    assert row["beyond"] <= 0.1 and row["wronged"] <= 0.1


def test_d_of_the_population_is_told_and_covered_as_the_page_says() -> None:
    """Where d ≥ 5 K: refusals, medians and coverage up to the chance level, beyond it, and at ten times that."""
    tables = committed("population")["tables"]
    rows = tables["values"]
    assert min(row["draws"] for row in rows) >= 1000
    for row in rows:
        named = (row["classes"], row["dim"], row["spectrum"], row["share"])
        if row["share"] <= 1:
            # two classes whose means stand out of noise by three deviations only
            assert row["no_value"] <= (0.2 if named == (2, 100, "decaying", 1.0) else 0.05), named
            assert abs(row["corrected"] - 1) < 0.15 and 0.93 <= row["covers"] <= 0.99, named
        elif row["share"] <= 3:
            # what is told has its median within 30 %, or half is refused; with refusals for the largest, but for two rows, too
            assert row["no_value"] >= 0.5 or abs(row["corrected"] - 1) < 0.3, named
            middle = row["median_of_all"]
            assert middle is None or abs(middle - 1) < OFTEN_REFUSED.get(named, 0.3), named
        else:
            assert row["no_value"] >= 0.9, named
        assert 0.92 <= row["plain_covers_this_size"] <= 0.995
    for row in tables["beyond"]:  # elsewhere: cover or refuse
        assert row["share"] < 10 or row["no_value"] >= 0.9
    for row in [*rows, *tables["beyond"], *tables["limits"]]:
        told = (1 - row["no_value"]) * row["draws"]
        if row["no_value"] <= 0.8:
            assert row["covers"] >= (0.915 if row["kind"].startswith("rare wide") else 0.92)
        elif told >= 10:  # what is told seldom is covered too, as far as so few draws can show; the page says where not
            held = SELDOM_HELD.get((row["classes"], row["dim"], row["spectrum"], row["kind"], row["share"]), 0.92)
            assert row["covers"] >= held - 2 * (held * (1 - held) / told) ** 0.5, row
    hard = {(row["kind"], row["share"]): row["no_value"] for row in tables["limits"] if row["kind"]}
    assert hard["rare wide", 0.03] < 0.05 and min(hard[kind, 1.0] for kind, _ in hard) > 0.95
    for name, draws in (("laws", 1000), ("more laws", 300)):
        for row in tables[name]:
            assert 0.92 <= row["rho_covers"] <= 0.99 and row["draws"] >= draws
    for row in tables["bootstrap"]:
        assert 0.91 <= row["covers_this_size"] <= 0.98


def test_trained_networks_are_told_as_the_page_says() -> None:
    """A fifth of the images against all: a third refused at most, all others within 25 %; nearly so by fifths not chosen by."""
    tables = committed("published")["tables"]
    whole = {(row["network"], row["site"]): row for row in tables["sites"] if row["part"] is None}
    for table, off in (("sites", 0), ("others", 0.02)):
        parts = [(row, whole[row["network"], row["site"]]) for row in tables[table] if row["part"] is not None]
        assert len(parts) >= 190
        assert sum(row["value"] is None for row, _ in parts) <= len(parts) / 3, table
        told = [(row, other) for row, other in parts if row["value"] is not None and other["value"] is not None]
        assert sum(abs(row["value"] / other["value"] - 1) > 0.25 for row, other in told) <= off * len(told), table
        assert all(row["low"] <= other["high"] and other["low"] <= row["high"] for row, other in told), table


def test_other_forms_lose_as_the_page_says(made: Any) -> None:
    """Medians of every form over the truth: the one in use is nearest in the worst case; and a small run agrees."""
    content = committed("losers")
    rows = content["tables"]["forms"]
    assert content["draws"] >= 300
    names = ("plain", "chance", "halves", "cross_fit", "shrinkage")
    worst = {name: max(9 if row[name][1] is None else abs(math.log(row[name][1])) for row in rows) for name in names}
    values = committed("population")["tables"]["values"]
    where = {(row["classes"], row["dim"], row["n"], row["spectrum"], row["share"]) for row in rows}
    ours = [
        abs(math.log(row["median_of_all"]))
        for row in values
        if row["odds"] == 1 and (row["classes"], row["dim"], row["n"], row["spectrum"], row["share"]) in where
    ]
    assert len(ours) == len(rows) and max(ours) < 0.03 < 0.1 < min(worst.values())
    losers = made("losers")
    (row,) = losers["one_case"](losers["Case"](4, 40, 200), 0.3, 20, 1)
    assert row["plain"][1] < row["chance"][1] < 1.3 and abs(row["halves"][1] - 1) < 0.3
    assert row["cross_fit"][1] < row["chance"][1] and row["shrinkage"][1] > 1.1


@pytest.mark.usefixtures("made")
def test_entries_that_were_made_are_not_made_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    table = importlib.import_module("_table")
    jobs = [table.Job("few", eval, (f"[{{'number': {number}}}]",)) for number in (1, 2)]
    (tmp_path / "some.jsonl").write_text(json.dumps({"key": jobs[0].key, "rows": [{"number": 10}]}) + "\n")
    monkeypatch.setattr(sys, "argv", ["some.py", "--out", str(tmp_path)])
    table.finish_jobs("some", lambda draws: jobs, draws=3)
    content = json.loads((tmp_path / "some.json").read_text(encoding="utf-8"))
    assert content["tables"] == {"few": [{"number": 10}, {"number": 2}]} and content["draws"] == 3
    assert len((tmp_path / "some.jsonl").read_text(encoding="utf-8").splitlines()) == 2


def test_a_small_run_of_the_population(made: Any) -> None:
    population = made("population")
    (row,) = population["one_case"](population["Case"](4, 40, 200), 0.3, 25, 1)
    assert row["corrected"] == pytest.approx(1, abs=0.15)
    assert row["covers"] >= 0.84 and row["no_value"] <= 0.1
    assert row["plain"] < 0.9
    (law,) = population["one_law"](population["Case"](4, 40, 200), 0.1, 4, 1)
    assert law["rho"] == pytest.approx(0.5, abs=0.02)
    (resampled,) = population["one_bootstrap"](population["Case"](2, 10, 40), 0.1, 3, 1)
    assert resampled["draws"] == 3


def test_the_few_shot_certificate_is_above_every_error_and_the_page_says_what_it_promises() -> None:
    content = committed("few_shot")
    (summary,) = content["tables"]["summary"]
    assert content["draws"] >= 100
    assert summary["all_above"] == summary["all_cells"]  # proven: what is left is the noise of the draws
    rows = [*content["tables"]["pairs"], *content["tables"]["seen"]]
    assert summary["pairs"] == 10
    for name in ("few_shot", "few_shot_first"):
        tables = committed(name)["tables"]
        assert tables["summary"][0]["within_1_point"] == sum(row["gap"] <= 1 for row in tables["pairs"])
    for row in rows:
        errors, bounds = ([shot[name] for shot in row["shots"]] for name in ("error", "certificate"))
        assert all(error <= bound for error, bound in zip(errors, bounds, strict=True))
        assert row["gap"] >= 0


def test_the_first_sentence_was_right_and_hardly_a_sentence_false() -> None:
    """The draws were made once, after the rules were frozen; what is committed is what came out."""
    draws = committed("situations")["tables"]["draws"]
    assert len(draws) == 300 and len({row["kind"] for row in draws}) == 10
    assert {row["seed"] for row in draws} == set(range(500, 530))
    assert sum(row["right"] for row in draws) >= 270
    assert sum(len(row["false"]) for row in draws) <= 0.005 * sum(row["sentences"] for row in draws)
    assert max(row["sentences"] for row in draws) <= 7


@pytest.mark.parametrize("kind", ["well sized", "head worse than features", "too few samples"])
def test_a_situation_is_named_by_its_first_sentence_and_every_sentence_is_true(made: Any, kind: str) -> None:
    row = made("situations")["judged"](kind, 1000)
    assert row["right"], row["text"]
    assert not row["false"]


def test_a_false_sentence_is_noticed(made: Any) -> None:
    """The checker, on findings whose numbers are changed."""
    from dataclasses import replace

    import equisep

    situations = made("situations")
    situation = situations["MAKERS"]["too few samples"](situations["Draw"]("too few samples", 1000))
    raw = situations["raw_of"](situation.model, situation.train, situation.test)
    profile = equisep.measure(situation.model, situation.train, situation.test, coordinates=0, **situation.options)
    findings = profile.findings
    assert len(findings) > 2 and not situations["falsehoods"](findings, raw, situation.kind)
    for finding in findings:
        wrong = {name: None if value is None else 1.1 * value + 0.01 for name, value in finding.numbers.items()}
        assert situations["falsehoods"]([replace(finding, numbers=wrong)], raw, situation.kind), finding.code
