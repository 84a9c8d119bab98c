"""Profiles, laws and comparisons at 80 columns, in ASCII, and with everything missing."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from report_profiles import bare_profile, full_profile, sampled_profile, without_intervals, zero_profile
from rich.console import Console

from equisep.compare import compare_laws, compare_profiles
from equisep.law import fit_law
from equisep.report.comparison import render_comparison
from equisep.report.formatting import limits
from equisep.report.terminal import render_law, render_laws, render_profile
from equisep.results import Break, ClassifierReading, Corrected, LawFit, Note, SampleOrder, SiteReading


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
        "The law of equi-separation holds (r -0.9998, at most -0.996)",
        "0.5149 [0.506, 0.524] in other samples of this size: what",
        "layers [1.02, 1.07] in other samples of this size",
        "half-life",
        "greatest residual",
        "evenness",
        "kink               none that can be told (p = ",
        "95 %, bootstrap of 200 resamples",
        "on test data",
        "r -0.9998 to -0.9979 over 2 classes",
        "Effective depth  layer 6 of 7 (all training samples nearest to their class mean)",
        "Accuracy  100.0 % train · 80.5 % test",
        "NC2  spread of norms 0.050, of angles 0.10, distance from a simplex 0.30",
        "NC3  0.40: classifier against class means",
        "Note  blocks.6.relu: The class means span 8 directions of 9.",
    ):
        assert words in text
    (row,) = (line for line in text.splitlines() if "blocks.3.relu" in line)
    assert row.split() == ["4", "blocks.3.relu", "1.759", "15", "3.37", "90.0", "74.0", "0.195", "920"]
    assert "…" not in text
    assert text.count("●") == 8


def test_laws_of_the_population_stand_beside_those_of_the_samples() -> None:
    profile = sampled_profile()
    lines = [line.strip() for line in printed(render_profile(profile), 140).splitlines()]
    train, test = (line for line in lines if "of the population  " in line)
    assert lines.index(train) == lines.index("The law in numbers") + 1  # above ρ of these samples
    beyond, by_test = (profile.laws[name] for name in ("corrected", "corrected test"))
    for law, line in ((beyond, train), (by_test, test)):
        assert f"ρ {law.rho:.4f}{limits(law.intervals['rho'])}, half-life {law.half_life:.3g}" in line
        assert f"layers{limits(law.intervals['half_life'])}, r {law.r:.4f}: " in line
    assert "of the population  from layer 2 on: ρ" in train and "of the population  by test data: ρ" in test
    other = printed(render_laws(profile), 140)
    assert train in other and test in other and "corrected" not in other
    whole = printed(render_profile(replace(profile, whole=True)), 140)
    assert train not in whole and test in whole  # test data are samples of more whatever the training data are


def test_d_of_the_population_by_test_data_has_a_column() -> None:
    profile = full_profile()
    sites = tuple(replace(site, corrected_test=Corrected(12.34, 11.11, 13.33)) for site in profile.sites)
    for whole in (True, False):
        text = printed(replace(profile, whole=whole, sites=sites), 100)
        assert text.count("12.3 ") == 8
        assert "corr. test: D of the population behind the test data." in " ".join(text.split())


def test_columns_without_room_are_named() -> None:
    text = " ".join(printed(full_profile(), 80).split())
    assert "No room for NC1, dim: 87 columns show all, as do --json and to_frame()." in text
    wide = printed(full_profile(), 87)
    assert "No room" not in wide
    assert "920  100" in wide
    narrow = " ".join(printed(full_profile(), 60).split())
    assert "No room for CDNV, chance, NC1, dim: 87 columns" in narrow


def test_half_an_interval_is_not_shown_and_every_column_is_explained() -> None:
    profile = full_profile()
    sites = tuple(replace(site, corrected=Corrected(12.34, 11.11, 13.33)) for site in profile.sites)
    sample = replace(profile, whole=False, sites=sites)
    for width in range(60, 110):
        text = printed(sample, width).split("Note")[0]
        assert ("11.1" in text) == ("13.3" in text), width
        for head, words in (
            ("CDNV ", "CDNV: spread"),
            ("corr.", "corr.: D of the population"),
            ("chance ", "chance: D under"),
        ):
            shown = head.strip() in text.split("──")[0]
            assert shown == (words in " ".join(text.split())), (width, head)


def test_tables_and_curves_number_sites_alike() -> None:
    """As in a profile of token sequences, whose raw input is no site."""
    profile = full_profile()
    profile = replace(profile, sites=tuple(replace(site, index=site.index + 1) for site in profile.sites))
    kinked = replace(profile.law, two_slopes=Break(3, (0.5, 0.9), 20.0, 0.0, p=0.01))
    lines = printed(replace(profile, law=kinked)).splitlines()
    assert [line.split()[0] for line in lines if "relu" in line and "Note" not in line] == [str(n) for n in range(2, 9)]
    assert any(line.split() == [str(n) for n in range(1, 9)] for line in lines)
    assert "at layer 4" in "\n".join(lines)


def test_words_are_whole_at_80_columns() -> None:
    long = (
        "The features of the last layer of this network have more dimensions than there are samples to span them. " * 2
    )
    profile = replace(full_profile(), notes=(Note("x", long.strip()),))
    words = printed(profile).split()
    assert set(long.split()) <= set(words)


def test_blocks_are_called_blocks() -> None:
    profile = full_profile()
    text = printed(replace(profile, settings={**profile.settings, "grain": "blocks"}))
    assert "block  name" in text
    assert "D by block" in text


def test_without_utf8_everything_is_ascii() -> None:
    text = printed_in_ascii(replace(full_profile(), model="Réseau ρ"))
    assert "R?seau ?" in text
    assert "  rho " in text
    assert "R2 " in text
    assert "|" in text
    assert "o" in text
    printed_in_ascii(render_comparison(compare_profiles(full_profile(), full_profile(rho=0.6))))


def test_signs_of_words_are_spelled_in_ascii() -> None:
    notes = (Note("no-effective-depth", "There is no effective depth at ε = 0.01."),)
    bent = replace(full_profile(), law=fit_law([40.0, 36.0, 32.0, 29.0, 8.0, 2.0, 0.5, 0.12]), notes=notes)
    text = printed_in_ascii(bent)
    assert "D x" in text and "epsilon = 0.01" in text and "?" not in text


def test_a_comparison_loses_no_number_at_40_columns() -> None:
    """Its columns were cut down to ellipses."""
    found = render_comparison(compare_profiles(full_profile(), full_profile(rho=0.6)))
    narrow, wide = printed(found, width=40).split(), printed(found, width=100).split()
    numbers = [word for word in wide if any(sign.isdigit() for sign in word) and "blocks" not in word]
    assert numbers and not [word for word in numbers if word not in narrow]


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
    for words in ("NCC", "CDNV", "NC1", "chance", "work", "Effective", "Accuracy", "Classifier", "Note", "●"):
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
    assert "…3.feed_forward… " in text
    assert "…4.feed_forward… " in text


def test_names_are_never_markup() -> None:
    profile = replace(
        full_profile(),
        model="[red]Net[/red]\x1b[31m",
        sites=(SiteReading(index=0, name="[bold]x", dim=1, fuzziness=1.0),),
        notes=(Note("x", "[link=a]b"),),
        classifier=ClassifierReading("[i]head", 0.1, 0.1, 0.1, 0.1),
        reading="[b]",
        settings={},
    )
    text = printed(profile)
    for words in ("[red]Net[/red]�[31m", "[bold]x", "[link=a]b", "[i]head", "`[b]`", "NC3  –:"):
        assert words in text


def test_no_separable_site_is_said() -> None:
    text = " ".join(printed(replace(full_profile(), effective_depth=None)).split())
    assert "none (at the last layer not all of the training samples are nearest to their class mean)" in text


def test_depths_are_said_with_their_threshold() -> None:
    profile = replace(full_profile(), effective_depth_balanced=7, network_depth=5, settings={"epsilon": 0.01})
    text = " ".join(printed(profile).split())
    words = (
        "layer 6 of 7 (99 % or more of the training samples nearest to their class mean); 7 with every class weighing"
    )
    assert f"Effective depth {words}" in text
    assert "As good as the network layer 5 of 7 (nearest class means reach its accuracy to 1 %)" in text


@pytest.mark.parametrize("curve", [[], [1.0], [4.0, 1.0], [1.0, 1.0, 1.0], [1.0, 2.0, 4.5], [4.0, 2.0, 0.0]])
def test_laws_with_parts_missing(curve: list[float]) -> None:
    law = fit_law(curve)
    text = " ".join(printed(render_law(law)).split())
    for note in law.notes:
        assert note.text in text


def test_a_law_of_two_slopes() -> None:
    law = replace(fit_law([8.0, 4.0, 2.0, 1.0, 0.9, 0.8]), two_slopes=Break(3, (0.5, 0.9), 20.0, 0.0, p=0.01))
    words = "at layer 3: D ×0.500 per layer before it, ×0.900 after (p = 0.010)"
    assert words in " ".join(printed(render_law(law)).split())


def test_comparison_of_profiles() -> None:
    other = replace(
        full_profile(rho=0.6, seed=1), settings={"reading": "eval", "weighting": "sample"}, effective_depth=4
    )
    text = printed(render_comparison(compare_profiles(full_profile(), other)))
    rows = {" ".join(line.split()[:2]): line.split() for line in text.splitlines() if line.strip()}
    assert rows["ρ 0.5149"][-1] == "clear"
    assert rows["r -0.9998"][-1] == "+0.000637"  # r has no interval
    assert rows["effective depth"][-3:] == ["6", "4", "-2"]
    assert rows["reading mixed"] == ["reading", "mixed", "eval"]
    alike = printed(render_comparison(compare_profiles(full_profile(), full_profile())))
    assert "unclear" not in alike and alike.count(" same") > 4 and "are the same in both profiles" in alike
    assert "blocks.6.relu" in text
    assert "[2.57, 3.59]" in text
    assert "different `reading`" in text
    assert "clear: the interval does not hold zero change" in " ".join(text.split())


def test_a_paired_comparison_says_what_its_intervals_are_for() -> None:
    folds = tuple(1 + 0.01 * n for n in range(10))
    order = SampleOrder(n=1000, labels="1", inputs="2", folds=10, seed=0)
    one, two = (
        replace(each, samples=order, sites=tuple(_with_folds(site, folds) for site in each.sites))
        for each in (full_profile(), full_profile(rho=0.6, seed=1))
    )
    text = " ".join(printed(render_comparison(compare_profiles(one, two))).split())
    assert "Intervals 95 %, paired, the same 10 folds of samples left out of both" in text
    assert "of these samples every difference is exact" in text


def _with_folds(site: SiteReading, folds: tuple[float, ...]) -> SiteReading:
    value = site.fuzziness
    return site if value is None else replace(site, fuzziness_folds=tuple(value * fold / 1.045 for fold in folds))


def test_a_comparison_says_where_each_profile_is_from() -> None:
    difference = compare_profiles(full_profile(), full_profile(rho=0.6))
    text = printed(render_comparison(difference, beside=("a.json, reading `mixed`", "b.json")))
    assert "a  Fnn(depth=8, width=100) (a.json, reading `mixed`)" in text
    assert "b  Fnn(depth=8, width=100) (b.json)" in text


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


def test_profiles_print_themselves(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    full_profile().show()
    assert capsys.readouterr().out == printed(full_profile())
    assert printed(full_profile()) == printed(render_profile(full_profile()))


@pytest.mark.parametrize("width", range(40, 60))
def test_no_line_begins_with_a_percent_sign(width: int) -> None:
    notes = (Note("a", "It is 99.5 % of them, " * 5), Note("b", "that is 5 % here and 6 % there, " * 5))
    lines = printed(replace(full_profile(), notes=notes), width=width).splitlines()
    assert any("Note  It is 99.5 %" in line for line in lines) and not any(line.startswith("%") for line in lines)
