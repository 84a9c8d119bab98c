"""Profiles, laws and comparisons at 80 columns, in ASCII, and with everything missing."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from report_profiles import bare_profile, full_profile, without_intervals, zero_profile
from rich.console import Console

from equisep.compare import compare_laws, compare_profiles
from equisep.law import fit_law
from equisep.report.terminal import render_comparison, render_law, render_profile
from equisep.results import Break, ClassifierReading, LawFit, Note, SiteReading


def printed(content, width: int = 80) -> str:
    console = Console(width=width, file=io.StringIO())
    console.print(content)
    text = console.file.getvalue()
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= width
    return text


def printed_in_ascii(content) -> str:
    file = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    Console(width=80, file=file).print(content)
    file.flush()
    return file.buffer.getvalue().decode("ascii")


def test_a_full_profile_at_80_columns() -> None:
    text = printed(full_profile())
    for words in (
        "Fnn(depth=8, width=100)",
        "1000 samples, 100 per class, 10 classes; 10000 test samples",
        "reading `mixed`, weighting `sample`",
        "Law of equi-separation: law",
        "half-life",
        "greatest residual",
        "imbalance",
        "two slopes",
        "95 %, bootstrap of 200 resamples",
        "on test data",
        "r -0.9998 to -0.9979 over 2 classes",
        "Effective depth  site 6 of 7",
        "Accuracy  100.0 % train · 80.5 % test",
        "NC2 norms 0.050, angles 0.10 · simplex 0.30 · NC3 0.40 · NC4 0",
        "Note  blocks.6.relu: The class means span 8 directions of 9.",
    ):
        assert words in text
    (row,) = (line for line in text.splitlines() if "blocks.3.relu" in line)
    assert row.split() == ["4", "blocks.3.relu", "100", "1.759", "0.72", "90.0", "74.0", "0.195", "0.176", "920"]
    assert "…" not in text
    assert text.count("●") == 8


def test_wide_terminals_show_d_on_test_data() -> None:
    assert "D test" not in printed(full_profile(), 80)
    assert "D test" in printed(full_profile(), 110)


def test_without_utf8_everything_is_ascii() -> None:
    text = printed_in_ascii(replace(full_profile(), model="Réseau ρ"))
    assert "R?seau ?" in text
    assert "  rho " in text
    assert "R2 " in text
    assert "|" in text
    assert "o" in text
    printed_in_ascii(render_comparison(compare_profiles(full_profile(), full_profile(rho=0.6))))


@pytest.mark.parametrize("width", [40, 60, 200])
def test_other_widths(width: int) -> None:
    console = Console(width=width, file=io.StringIO())
    console.print(full_profile(sites=30, name="model.encoder.layers.{}.feed_forward.activation"))
    lines = console.file.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    assert any(line.split()[:1] == ["29"] for line in lines)


def test_a_bare_profile() -> None:
    text = printed(bare_profile())
    assert "Law of equi-separation: not fitted" in text
    for words in ("NCC", "CDNV", "NC1", "null", "load", "Effective", "Accuracy", "Classifier", "Note", "●"):
        assert words not in text
    assert "not fitted" in printed(bare_profile(sites=0))


def test_a_profile_that_reaches_zero() -> None:
    text = printed(zero_profile())
    assert "▼" in text
    assert "D is exactly 0 at position 3 of 4" in text.replace("\n", " ")


def test_a_profile_without_intervals() -> None:
    text = printed(without_intervals(full_profile()))
    assert "intervals" not in text
    assert "[" not in text


def test_long_names_keep_their_numbers() -> None:
    text = printed(full_profile(name="model.encoder.layers.{}.feed_forward.activation"))
    assert "…3.feed" in text
    assert "…4.feed" in text


def test_names_are_never_markup() -> None:
    profile = replace(
        full_profile(),
        model="[red]Net[/red]\x1b[31m",
        sites=(SiteReading(index=0, name="[bold]x", dim=1, fuzziness=1.0),),
        notes=(Note("x", "[link=a]b"),),
        classifier=ClassifierReading("[i]head", 0.1, 0.1, 0.1, 0.1),
        settings={"reading": "[b]"},
    )
    text = printed(profile)
    for words in ("[red]Net[/red]�[31m", "[bold]x", "[link=a]b", "[i]head", "`[b]`", "NC3 – · NC4 –"):
        assert words in text


def test_no_separable_site_is_said() -> None:
    assert "none: no site after the input is separable" in printed(replace(full_profile(), effective_depth=None))


@pytest.mark.parametrize("curve", [[], [1.0], [4.0, 1.0], [1.0, 1.0, 1.0], [1.0, 2.0, 4.5], [4.0, 2.0, 0.0]])
def test_laws_with_parts_missing(curve: list[float]) -> None:
    law = fit_law(curve)
    text = " ".join(printed(render_law(law)).split())
    for note in law.notes:
        assert note.text in text


def test_a_law_of_two_slopes() -> None:
    law = replace(fit_law([8.0, 4.0, 2.0, 1.0, 0.9, 0.8]), two_slopes=Break(3, (0.5, 0.9), 20.0, 0.0))
    assert "yes (BIC gain 20): ρ 0.500, from site 3 on 0.900" in printed(render_law(law))


def test_comparison_of_profiles() -> None:
    other = replace(
        full_profile(rho=0.6, seed=1), settings={"reading": "eval", "weighting": "sample"}, effective_depth=4
    )
    text = printed(render_comparison(compare_profiles(full_profile(), other)))
    rows = {" ".join(line.split()[:2]): line.split() for line in text.splitlines() if line.strip()}
    assert rows["ρ 0.5149"][-1] == "clear"
    assert rows["r -0.9998"][-1] == "unclear"
    assert rows["effective depth"][-3:] == ["6", "4", "-2"]
    assert rows["reading mixed"] == ["reading", "mixed", "eval"]
    assert "blocks.6.relu" in text
    assert "[2.57, 3.59]" in text
    assert "different `reading`" in text
    assert "Clear: the interval excludes no change" in " ".join(text.split())


def test_comparison_with_everything_missing() -> None:
    text = printed(render_comparison(compare_profiles(bare_profile(3), bare_profile(2))))
    assert "effective depth" in text
    assert "clear" not in text
    assert "3 and 2 sites" in text
    text = printed(render_comparison(compare_laws(LawFit(curve=()), fit_law([2.0, 1.0, 0.4]))))
    assert "half-life" in text


def test_comparison_names_both_sites_where_they_differ() -> None:
    difference = compare_profiles(full_profile(name="a{}"), full_profile(name="b{}"))
    assert "a3 / b3" in printed(render_comparison(difference))


def test_profiles_print_themselves() -> None:
    assert printed(full_profile()) == printed(render_profile(full_profile()))
