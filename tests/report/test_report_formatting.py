"""How numbers and names are written."""

from __future__ import annotations

from dataclasses import replace

import pytest
from report_profiles import bare_profile, full_profile

from equisep.law import fit_law
from equisep.report.formatting import (
    correlation,
    data_words,
    interval_words,
    kink_words,
    limits,
    number,
    one_line,
    percent,
    reading_words,
    samples_words,
    shortened,
    shortened_names,
    verdict_words,
)
from equisep.results import Break, Interval, LawFit
from equisep.results.records import work_shares


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (None, 4, "–"),
        (0.0, 4, "0"),
        (27.1234, 4, "27.12"),
        (0.24987, 3, "0.250"),
        (0.9999999, 3, "1.00"),
        (9.9999, 2, "10"),
        (-0.012345, 3, "-0.0123"),
        (12345.6, 3, "12346"),
        (1234567.0, 3, "1.23e+06"),
        (1.2345e-7, 3, "1.23e-07"),
        (1.2345e-7, 4, "1.23e-07"),
        (float("inf"), 3, "inf"),
    ],
)
def test_numbers(value: float | None, digits: int, text: str) -> None:
    assert number(value, digits) == text


def test_missing_is_what_is_asked() -> None:
    assert {ask(None, missing="-") for ask in (number, correlation, percent)} == {"-"}


@pytest.mark.parametrize(
    ("r", "text"), [(-0.9981, "-0.9981"), (-0.999999, "-0.999999"), (-1.0, "-1.0000"), (0.5, "0.5000")]
)
def test_correlations_show_how_far_from_one(r: float, text: str) -> None:
    assert correlation(r) == text


@pytest.mark.parametrize(
    ("share", "text"), [(1.0, "100.0"), (0.9999, "99.9"), (0.0, "0.0"), (0.00001, "0.1"), (0.8054, "80.5")]
)
def test_percent_never_rounds_to_all_or_nothing(share: float, text: str) -> None:
    assert percent(share) == text


def test_intervals_in_words() -> None:
    interval = Interval(0.4, 0.6, 0.95, "jackknife", 10)
    assert limits(interval) == " [0.400, 0.600]"
    assert limits(None) == ""
    assert interval_words(interval) == "95 %, jackknife over 10 folds"
    assert interval_words(replace(interval, kind="seeds", n=3, level=0.9)) == "90 %, over 3 seeds"


def test_kinks_in_words() -> None:
    assert kink_words(fit_law([4.0, 2.0, 1.1])) == "not asked of fewer than 5 layers"
    assert kink_words(fit_law([0.5**site for site in range(8)])) == "none that can be told (p = 1.0; called at 0.05)"
    law = LawFit(curve=(1.0,) * 6, two_slopes=Break(at=3, rhos=(0.4, 0.8), bic_one=10.0, bic_two=-2.0, p=0.012))
    words = "D ×0.400 per layer before it, ×0.800 after (p = 0.012)"
    assert kink_words(law) == f"at layer 3: {words}"
    assert kink_words(law, first=1) == f"at layer 4: {words}"
    assert kink_words(law, each="block") == f"at block 3: {words.replace('layer', 'block')}"
    assert kink_words(LawFit(curve=(1.0,) * 6)) == "not known"


def test_a_kink_does_not_contradict_the_law() -> None:
    law = replace(fit_law([0.5**site for site in range(8)]), two_slopes=Break(2, (0.4, 0.51), 10.0, -2.0, p=1e-4))
    assert law.verdict == "law"
    assert kink_words(law).endswith("(p < 0.001); one line still fits")


def test_a_kink_of_an_earlier_version_is_judged_anew() -> None:
    """Its BIC gain of 12 was called a kink; the curve itself is a line."""
    law = replace(fit_law([0.5**site for site in range(8)]), two_slopes=Break(2, (0.4, 0.51), 10.0, -2.0))
    assert kink_words(law).startswith("none that can be told")
    bent = fit_law([0.5 ** min(site, 4) * 0.9 ** max(0, site - 4) for site in range(9)])
    assert kink_words(replace(bent, two_slopes=Break(4, (0.5, 0.9), 10.0, -2.0))) == kink_words(bent)


@pytest.mark.parametrize(
    ("law", "words"),
    [
        (LawFit(curve=(1.0,) * 6, rho=0.5, r=-0.9981), ("law", "r -0.9981, at most -0.996")),
        (
            LawFit(curve=(1.0,) * 6, rho=0.5, r=-0.98),
            ("between law and none", "r -0.9800, between -0.996 and -0.971"),
        ),
        (LawFit(curve=(1.0,) * 6, rho=0.5, r=-0.9), ("no law", "r -0.9000, above -0.971")),
        (LawFit(curve=(1.0,) * 6, rho=1.2, r=0.99), ("no law", "D does not fall from layer to layer")),
        (
            LawFit(curve=(1.0,) * 2, rho=0.5, r=-1.0),
            ("undetermined", "2 of at least 3 layers: two points always lie on a line"),
        ),
        (LawFit(curve=(1.0,) * 6, rho=1.0), ("undetermined", "r is not known")),
    ],
)
def test_verdicts_come_with_their_reason(law: LawFit, words: tuple[str, str]) -> None:
    assert verdict_words(law) == words


def test_the_data_in_words() -> None:
    assert samples_words((100, 100)) == "200 samples, 100 per class"
    assert samples_words((500, 100)) == "600 samples, 100 to 500 per class"
    assert samples_words(()) == "0 samples, 0 per class"
    assert data_words(full_profile()) == "1000 samples, 100 per class, 10 classes; 10000 test samples"
    whole, part = (data_words(replace(full_profile(), whole=each)) for each in (True, False))
    assert whole.startswith("1000 samples, 100 per class (all there are: D is exact), 10 classes")
    assert part.startswith("1000 samples, 100 per class (a sample of more: see corrected D), 10 classes")
    assert reading_words(full_profile()) == "reading `mixed`, weighting `sample`"
    assert reading_words(bare_profile()) == "reading `?`"
    profile = full_profile()
    profile = replace(profile, settings={**profile.settings, "grain": "blocks", "reduction": "mean"})
    assert reading_words(profile) == "reading `mixed`, weighting `sample`, by `blocks`, reduction `mean`"


def test_names_are_one_visible_line() -> None:
    assert one_line("a\nb\x1b[31m") == "a�b�[31m"


def test_names_keep_what_tells_them_apart() -> None:
    names = ["input", *(f"model.layers.{i}.mlp.activation" for i in range(12))]
    short = shortened_names(names, 12)
    assert short[0] == "input"
    assert len(set(short)) == len(names)
    assert max(map(len, short)) <= 12
    assert shortened_names(names, 40) == names
    assert shortened_names(["abcdefghij"], 5) == ["ab…ij"]
    assert shortened_names(["a.b.longlonglong1", "a.b.longlonglong2"], 6) == ["lo…ng1", "lo…ng2"]
    assert shortened("equisep.models:Fnn", 11) == "equis…s:Fnn"
    assert shortened_names([], 6) == []
    names = [f"encoder.layers.{i}.activation_function" for i in range(12)]
    for width in (8, 10, 14, 22):
        short = shortened_names(names, width)
        assert len(set(short)) == len(names)
        assert max(map(len, short)) <= width
    assert shortened_names(names, 14)[3] == "…3.act…unction"


def test_a_fall_of_nothing_has_no_shares() -> None:
    assert work_shares(fit_law([8.0, 4.0, 1.0])) == pytest.approx((1 / 3, 2 / 3))
    assert work_shares(fit_law([26.7, 24.4, 28.2, 25.6, 25.4, 26.1])) is None
    assert work_shares(fit_law([1.0, 2.0, 4.0])) is None
    assert work_shares(fit_law([2.0, 2.0, 2.0])) is None
    assert work_shares(LawFit(curve=())) is None
