"""Claims are judged by rule: every rule with every verdict, on curves whose numbers are known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from equisep.errors import InputError
from equisep.figures.cell import Cell
from equisep.figures.evidence import Entry, Evidence, gather
from equisep.figures.figure import Choice, Claim, Printed
from equisep.figures.judge import Verdict, judge, judge_readings
from equisep.figures.outcome import Curves, Outcome
from equisep.figures.rules import rule_words
from equisep.law import student_quantile
from figures.synthetic_figures import asked_for, evidence, figure, law_curve, numbers, outcome, shown_evidence

LAW = Claim("It is a law", "law", ("*",))


def verdict_of(found: Evidence) -> Verdict:
    (verdict,) = judge(found)
    return verdict


def of_r(rule: str, *r: float, exact: bool = False, rho: float = 0.5) -> Verdict:
    claim = Claim("…", rule, ("a",), exact=exact)  # type: ignore[arg-type]
    return verdict_of(evidence(figure(claim), {"a": [outcome(law_curve(rho, r=each)) for each in r]}))


def of_numbers(rule: str, *values: float, value: float | None = None, exact: bool = False) -> Verdict:
    claim = Claim("…", rule, ("a",), "score", value, exact)  # type: ignore[arg-type]
    return verdict_of(evidence(figure(claim), {"a": numbers(*values)}))


def compared(rule: str, exact: bool = False, **series: list[float]) -> Verdict:
    claim = Claim("…", rule, tuple(series), "score", exact=exact)  # type: ignore[arg-type]
    return verdict_of(
        evidence(figure(claim, names=tuple(series)), {name: numbers(*values) for name, values in series.items()})
    )


def test_the_curves_of_these_tests_have_the_r_they_say() -> None:
    (verdict,) = judge(evidence(figure(LAW), {"a": [outcome(law_curve(0.7, r=-0.971))] * 3}))
    assert verdict.ours == pytest.approx(-0.971, abs=1e-12)
    assert verdict.parts[0].beside["rho"] == pytest.approx(0.7, abs=1e-12)


# -- the law


@pytest.mark.parametrize(
    ("rule", "r", "word"),
    [
        ("law", (-0.999, -0.9985, -0.999), "held"),
        ("law", (-0.996,) * 3, "held"),  # what the paper calls one
        ("law", (-0.9959,) * 3, "undecided"),  # between a law and none
        ("law", (-0.9711,) * 3, "undecided"),
        ("law", (-0.9709,) * 3, "contradicted"),
        ("law", (-0.999, -0.985, -0.999), "undecided"),  # the interval reaches the bound
        ("law", (-0.96, -0.97, -0.98), "undecided"),  # it reaches what lies between
        ("law", (-0.999, -0.999), "supported"),
        ("law", (-0.999,), "supported"),
        ("law", (-0.98,), "undecided"),
        ("law", (-0.97,), "against"),
        ("fuzzy law", (-0.97,) * 3, "held"),
        ("fuzzy law", (-0.9501,) * 3, "held"),
        ("fuzzy law", (-0.9999,) * 3, "held"),  # one-sided: a law is a fuzzy one
        ("fuzzy law", (-0.9499,) * 3, "contradicted"),
        ("fuzzy law", (-0.94, -0.95, -0.96), "undecided"),
        ("fuzzy law", (-0.97,), "supported"),
        ("fuzzy law", (-0.9,), "against"),
        ("no law", (-0.9709,) * 3, "held"),
        ("no law", (-0.9711,) * 3, "undecided"),
        ("no law", (-0.997,) * 3, "contradicted"),
        ("no law", (-0.5,), "supported"),
        ("no law", (-0.999,), "against"),
    ],
)
def test_laws_by_r_over_seeds(rule: str, r: tuple[float, ...], word: str) -> None:
    verdict = of_r(rule, *r)
    assert verdict.verdict == word
    assert verdict.ours == pytest.approx(np.mean(r), abs=1e-9)
    assert verdict.n == len(r)
    assert (verdict.interval is None) == (len(r) < 2)
    assert verdict.held is {"held": True, "contradicted": False}.get(word)


def test_where_d_rises_there_is_no_law_however_straight() -> None:
    assert of_r("law", -1.0, -1.0, -1.0, rho=1.5).verdict == "contradicted"
    verdict = of_r("no law", -1.0, -1.0, -1.0, rho=1.5)
    assert verdict.verdict == "held"
    assert verdict.ours == pytest.approx(1.0)
    assert "mean ρ 1.5" in verdict.reason


def test_a_constant_curve_has_no_r_and_tests_nothing() -> None:
    flat = {"a": [outcome((3.0,) * 6)] * 3}
    for rule in ("law", "fuzzy law", "no law"):
        verdict = verdict_of(evidence(figure(Claim("…", rule, ("a",))), flat))  # type: ignore[arg-type]
        assert (verdict.verdict, verdict.ours, verdict.n) == ("not testable", None, 0)
        assert "a: r does not exist in any of 3 seeds, mean ρ 1;" in verdict.reason


def test_a_claim_of_several_series_is_what_its_weakest_is() -> None:
    made = figure(LAW, names=("a", "b", "c"))
    good = {name: [outcome(law_curve(r=r))] * 3 for name, r in (("a", -0.999), ("b", -0.997), ("c", -0.998))}
    held = verdict_of(evidence(made, good))
    assert held.verdict == "held"
    assert held.ours == pytest.approx(-0.997)
    assert "all 3 parts are held, this one the least clearly" in held.reason
    failed = verdict_of(
        evidence(made, {**good, "a": [outcome(law_curve(r=-0.98))] * 3, "c": [outcome(law_curve(r=-0.9))] * 3})
    )
    assert failed.verdict == "contradicted"
    assert failed.ours == pytest.approx(-0.9)
    assert [part.verdict for part in failed.parts] == ["undecided", "held", "contradicted"]
    assert [part.found for part in failed.parts] == ["between", "law", "no law"]
    assert failed.reason.startswith("c: mean r = -0.9000") and "1 of 3 parts is contradicted" in failed.reason


def test_one_series_with_few_seeds_makes_the_whole_claim_supported() -> None:
    made = figure(LAW, names=("a", "b"))
    found = evidence(made, {"a": [outcome(law_curve())] * 5, "b": [outcome(law_curve(r=-0.999))] * 2})
    verdict = verdict_of(found)
    assert (verdict.verdict, verdict.n) == ("supported", 2)


def test_seeds_that_diverge_decide_nothing() -> None:
    lost = replace(outcome((None,) * 9), diverged=3)
    mixed = {"a": [outcome(law_curve())] * 4 + [lost]}
    verdict = verdict_of(evidence(figure(LAW), mixed))
    assert (verdict.verdict, verdict.n) == ("supported", 4)
    assert "1 more without it, 1 of which diverged" in verdict.reason
    assert verdict_of(evidence(figure(Claim("…", "no law", ("a",))), mixed)).verdict == "against"
    every = {"a": [lost] * 3}
    for rule in ("law", "fuzzy law", "no law"):
        verdict = verdict_of(evidence(figure(Claim("…", rule, ("a",))), every))  # type: ignore[arg-type]
        assert (verdict.verdict, verdict.ours) == ("not testable", None)
        assert "a: r does not exist in any of 3 seeds, 3 of which diverged;" in verdict.reason


def test_beside_r_stands_what_r_hides() -> None:
    bowed = law_curve(0.5, r=-0.992)
    rows = [
        Outcome(
            readings=(
                Curves(epoch=600, reading="mixed", fuzziness=bowed),
                Curves(epoch=600, reading="eval", fuzziness=law_curve(0.5, r=-0.98)),
            )
        )
    ]
    (part,) = verdict_of(evidence(figure(LAW), {"a": rows * 3})).parts
    assert part.beside["r_eval"] == pytest.approx(-0.98)
    assert part.beside["r_optimistic"] == pytest.approx(-0.992)
    assert part.beside["max_residual"] == pytest.approx(np.abs(np.log(bowed) - np.log(law_curve(0.5))).max(), rel=1e-9)
    assert part.beside["bend"] is not None and part.beside["bend"] > 1  # a bow has two slopes
    assert part.beside["imbalance"] is not None and part.beside["imbalance"] > 1
    assert part.rate == Cell().rate


def test_the_law_can_be_asked_of_another_reading() -> None:
    readings = (
        Curves(epoch=0, reading="mixed", fuzziness=law_curve(1.1)),
        Curves(epoch=600, reading="mixed", fuzziness=law_curve(0.5)),
    )
    early = Claim("…", "no law", ("a",), "r@epoch=0")
    verdict = verdict_of(evidence(figure(early), {"a": [Outcome(readings=readings)] * 3}))
    assert verdict.verdict == "held"
    assert verdict.parts[0].beside["rho"] == pytest.approx(1.1)


def test_the_optimistic_r_is_of_each_seed_at_its_own_best_rate() -> None:
    made = figure(LAW, rates={"adam": (1e-3, 3e-3)}, choose="best r")
    r = {(1e-3, 0): -0.999, (1e-3, 1): -0.99, (1e-3, 2): -0.995, (3e-3, 0): -0.98, (3e-3, 1): -0.999, (3e-3, 2): -0.9}
    entries = [
        Entry("a", Cell(rate=rate, seed=seed, data_seed=seed), outcome(law_curve(r=value)))
        for (rate, seed), value in r.items()
    ]
    (part,) = verdict_of(gather(made, entries, scale="paper")).parts
    assert part.rate == 1e-3
    assert part.mean == pytest.approx(np.mean([-0.999, -0.99, -0.995]))
    assert part.beside["r_optimistic"] == pytest.approx(np.mean([-0.999, -0.999, -0.995]))


# -- comparisons


def test_below_is_paired_by_seed() -> None:
    """Seeds differ by far more than the series do: only pairing sees the difference."""
    verdict = compared("below", a=[1.0, 10.0, 100.0], b=[1.5, 10.6, 100.55])
    assert verdict.verdict == "held"
    assert verdict.ours == pytest.approx(0.55)
    steps = np.array([0.5, 0.6, 0.55])
    reach = student_quantile(0.975, 2) * steps.std(ddof=1) / np.sqrt(3)
    assert verdict.interval is not None
    assert (verdict.interval.low, verdict.interval.high) == pytest.approx((0.55 - reach, 0.55 + reach))


@pytest.mark.parametrize(
    ("rule", "a", "b", "word"),
    [
        ("below", [1.0, 1.0, 1.0], [2.0, 2.0, 2.0], "held"),  # no spread at all
        ("below", [1.0, 1.0, 1.0], [1.0, 1.0, 1.0], "undecided"),
        ("below", [2.0, 2.0, 2.0], [1.0, 1.0, 1.0], "contradicted"),
        ("below", [1.0, 1.0, 1.0], [1.1, 1.0, 1.3], "undecided"),  # the interval reaches below zero
        ("below", [1.0, 1.0], [2.0, 2.0], "supported"),
        ("below", [1.0], [0.9], "against"),
        ("above", [2.0, 2.1, 2.2], [1.0, 1.0, 1.0], "held"),
        ("above", [1.0, 1.0, 1.0], [2.0, 2.1, 2.2], "contradicted"),
        ("above", [2.0], [1.0], "supported"),
        ("alike", [1.0, 2.0, 3.0], [1.1, 2.2, 3.3], "held"),
        ("alike", [1.0, 2.0, 3.0], [1.25, 2.5, 3.75], "held"),  # a factor of 1.25, ends included
        ("alike", [1.0, 2.0, 3.0], [0.8, 1.6, 2.4], "held"),
        ("alike", [1.0, 2.0, 3.0], [1.3, 2.6, 3.9], "contradicted"),
        ("alike", [1.0, 1.0, 1.0], [0.9, 1.1, 1.4], "undecided"),  # the mean is alike, the interval is not
        ("alike", [-1.0, -1.0, -1.0], [-1.1, -1.1, -1.1], "held"),
        ("alike", [1.0, 2.0], [1.1, 2.2], "supported"),
        ("alike", [1.0], [0.5], "against"),
        ("differ", [1.0, 1.0, 1.0], [2.0, 2.1, 2.2], "held"),
        ("differ", [2.0, 2.1, 2.2], [1.0, 1.0, 1.0], "held"),
        ("differ", [1.0, 1.0, 1.0], [1.1, 1.0, 0.9], "undecided"),
        ("differ", [1.0], [1.1], "undecided"),
        ("differ", [1.0], [1.0], "undecided"),
        ("no less", [1.0, 1.0, 1.0], [0.8, 0.8, 0.8], "held"),
        ("no less", [1.0, 1.0, 1.0], [5.0, 6.0, 7.0], "held"),
        ("no less", [1.0, 1.0, 1.0], [0.7, 0.7, 0.7], "contradicted"),
        ("no less", [1.0, 1.0, 1.0], [0.7, 0.9, 1.1], "undecided"),  # the mean is no less, the interval may be
        ("no less", [1.0], [0.9], "supported"),
    ],
)
def test_comparisons(rule: str, a: list[float], b: list[float], word: str) -> None:
    assert compared(rule, a=a, b=b).verdict == word


def test_every_consecutive_pair_has_to_hold() -> None:
    assert compared("below", a=[1.0] * 3, b=[2.0] * 3, c=[3.0] * 3).verdict == "held"
    verdict = compared("below", a=[1.0] * 3, b=[3.0] * 3, c=[2.0] * 3)
    assert verdict.verdict == "contradicted"
    assert [part.name for part in verdict.parts] == ["b − a", "c − b"]
    assert verdict.ours == pytest.approx(-1.0)


def test_alike_compares_all_with_the_first() -> None:
    verdict = compared("alike", a=[1.0] * 3, b=[1.15] * 3, c=[1.3] * 3)
    assert [part.name for part in verdict.parts] == ["b / a", "c / a"]
    assert verdict.verdict == "contradicted"
    assert verdict.ours == pytest.approx(1.3)


def test_seeds_that_only_one_series_has_are_not_paired() -> None:
    verdict = compared("below", a=[1.0, 1.0, 1.0, 1.0, 1.0], b=[2.0, 2.0])
    assert (verdict.verdict, verdict.n) == ("supported", 2)


# -- over x


def sweep(rule: str, *by_seed: list[float], x: tuple[float | None, ...] = (None, None, None)) -> Verdict:
    names = [f"s-{place}" for place in range(len(x))]
    claim = Claim("…", rule, ("s-*",), "score")  # type: ignore[arg-type]
    made = figure(claim, names=names, x=dict(zip(names, x, strict=True)))
    return verdict_of(
        evidence(made, {name: numbers(*(own[place] for own in by_seed)) for place, name in enumerate(names)})
    )


def test_rising_and_falling_are_slopes_by_seed() -> None:
    lines = ([1.0, 2.0, 3.0], [11.0, 12.5, 14.0], [5.0, 6.1, 7.0])
    verdict = sweep("rising", *lines)
    assert verdict.verdict == "held"
    assert verdict.ours == pytest.approx((1.0 + 1.5 + 1.0) / 3)
    assert sweep("falling", *lines).verdict == "contradicted"
    assert sweep("falling", *([-value for value in line] for line in lines)).verdict == "held"
    assert sweep("rising", *lines[:2]).verdict == "supported"
    assert sweep("falling", *lines[:2]).verdict == "against"
    assert sweep("rising", [1.0, 1.0, 1.0], [1.0, 1.0, 1.0], [1.0, 1.0, 1.0]).verdict == "undecided"


def test_slopes_are_over_places_so_that_no_far_x_decides_alone() -> None:
    verdict = sweep("rising", *([[0.0, 2.0, 20.0]] * 3), x=(0.0, 1.0, 1e5))
    assert verdict.ours == pytest.approx(10.0)
    assert verdict.verdict == "held"
    assert verdict.interval is not None and verdict.interval.low == pytest.approx(10.0)


def test_globs_that_each_name_a_line_are_judged_line_by_line() -> None:
    names = [f"{group}-{x}" for group in "ab" for x in (1, 2)]
    made = figure(
        Claim("…", "rising", ("a-*", "b-*"), "score"), names=names, x={name: float(name[-1]) for name in names}
    )
    rows = {"a-1": 10.0, "a-2": 11.0, "b-1": 1.0, "b-2": 0.5}
    verdict = verdict_of(evidence(made, {name: numbers(*[value] * 3) for name, value in rows.items()}))
    assert {part.name: part.mean for part in verdict.parts} == {"a-*": 1.0, "b-*": -0.5}
    assert verdict.verdict == "contradicted"


def least(**best: list[int]) -> Verdict:
    """Groups of depths 2 … 12; by seed the depth at which the score is least."""
    depths = (2, 4, 6, 8, 10, 12)
    names = [f"{group}-{depth}" for group in best for depth in depths]
    claim = Claim("…", "least rising", tuple(f"{group}-*" for group in best), "score")
    made = figure(claim, names=names, x={name: float(name.partition("-")[2]) for name in names})
    rows = {
        f"{group}-{depth}": numbers(*(1.0 + abs(depth - own) for own in seeds))
        for group, seeds in best.items()
        for depth in depths
    }
    return verdict_of(evidence(made, rows))


def test_the_place_of_the_least_value_rises_from_group_to_group() -> None:
    verdict = least(mnist=[6, 6, 4], fm=[10, 10, 8], cifar=[12, 12, 12])
    assert [part.name for part in verdict.parts] == ["fm-* − mnist-*", "cifar-* − fm-*"]
    assert [part.mean for part in verdict.parts] == pytest.approx([4.0, 2.0])  # of the mean curves
    assert verdict.verdict == "held"
    assert (
        least(mnist=[6, 6, 10], fm=[6, 10, 10]).verdict == "undecided"
    )  # where seeds are drawn again, it may not rise
    assert least(mnist=[6, 6, 6], fm=[10, 10, 10]).verdict == "held"  # no spread
    assert least(mnist=[6, 6, 6, 6], fm=[8, 10, 8, 10]).verdict == "held"
    assert least(mnist=[6, 6, 6], fm=[6, 6, 6]).verdict == "undecided"
    assert least(mnist=[6, 6], fm=[10, 10]).verdict == "supported"
    assert least(mnist=[10, 10, 10], fm=[6, 6, 6]).verdict == "contradicted"


def test_least_near_is_the_value_at_a_place_over_the_least() -> None:
    names = [f"s-{depth}" for depth in (2, 4, 6, 8)]
    x = {name: float(name[2:]) for name in names}
    cases = (
        ((1.0, 1.0, 1.0), "held"),
        ((1.1, 1.12, 1.15), "held"),
        ((1.0, 1.2, 1.5), "undecided"),
        ((1.5,), "against"),
    )
    for excess, word in (*cases, ((1.5, 1.6, 1.7), "contradicted"), ((1.1,), "supported")):
        made = figure(Claim("…", "least near", ("s-*",), "score", 6.0), names=names, x=x)
        rows = {name: numbers(*(own if x[name] == 6 else 1.0 + (x[name] != 8) for own in excess)) for name in names}
        verdict = verdict_of(evidence(made, rows))
        assert (verdict.verdict, verdict.ours) == (word, pytest.approx(np.exp(np.mean(np.log(excess)))))


def spread(**scores: list[float]) -> Verdict:
    """Series `optimizer-depth`; ranges over optimizers at each depth against ranges over depths at each optimizer."""
    names = [name.replace("_", "-") for name in scores]
    made = figure(Claim("…", "less spread", ("*-4", "*-8", "sgd-*", "adam-*"), "score"), names=names)
    return verdict_of(evidence(made, {name.replace("_", "-"): numbers(*values) for name, values in scores.items()}))


def test_less_spread_compares_ranges_within_groups() -> None:
    verdict = spread(sgd_4=[0.3] * 3, sgd_8=[0.5] * 3, adam_4=[0.31] * 3, adam_8=[0.53] * 3)
    assert verdict.verdict == "held"
    assert verdict.ours == pytest.approx((0.20 + 0.22) / 2 - (0.01 + 0.03) / 2)
    assert spread(sgd_4=[0.3] * 3, sgd_8=[0.31] * 3, adam_4=[0.5] * 3, adam_8=[0.53] * 3).verdict == "contradicted"
    assert spread(sgd_4=[0.3], sgd_8=[0.5], adam_4=[0.31], adam_8=[0.53]).verdict == "supported"


def best(*pairs: tuple[int, float]) -> Verdict:
    """By seed: the place where the first score is greatest, and where the second changes its sign."""
    names = [f"t-{place}" for place in range(5)]
    made = figure(Claim("…", "best at zero", ("t-*",), "score;gap"), names=names)
    rows = {name: [outcome(score=-abs(place - a), gap=place - b) for a, b in pairs] for place, name in enumerate(names)}
    return verdict_of(evidence(made, rows))


def test_best_at_zero_is_within_one_place_of_a_change_of_sign_in_every_seed() -> None:
    assert best((2, 2), (3, 2), (1, 1.7)).verdict == "held"
    verdict = best((2, 2), (2, 2), (4, 2))
    assert (verdict.verdict, verdict.n) == ("undecided", 3)
    assert best((4, 2), (4, 2), (0, 2)).verdict == "contradicted"
    assert best((2, 2)).verdict == "supported"
    assert best((0, 4)).verdict == "against"
    never = best((2, 9), (2, 9), (2, 9))  # the gap keeps its sign: nothing to test
    assert (never.verdict, never.ours) == ("not testable", None)
    assert "does not exist in any of 3 seeds" in never.reason


def test_two_quantities_are_correlated_by_their_ranks_over_the_series() -> None:
    names = ("a", "b", "c", "d")
    claim = Claim("…", "correlated", names, "x;y")

    def of(*rows: tuple[float | None, ...]) -> Verdict:
        """By series the y of each seed; x is 1, 10, 100, 1000."""
        own = {
            name: [outcome(x=10.0**at, y=y) for y in row]
            for at, (name, row) in enumerate(zip(names, rows, strict=True))
        }
        return verdict_of(evidence(figure(claim, names=names), own))

    verdict = of((1, 1, 1), (2, 2, 2), (3, 3, 5), (4, 4, 4))
    assert verdict.verdict == "held" and verdict.ours == pytest.approx((1 + 1 + 0.8) / 3)
    assert of((4, 4, 4), (3, 3, 3), (2, 2, 2), (1, 1, 1)).verdict == "contradicted"
    assert of((1, 4, 2), (2, 3, 1), (3, 2, 4), (4, 1, 3)).verdict == "undecided"
    assert of((1, 1, 1), (None, None, None), (3, 3, 3), (4, 4, 4)).verdict == "held"  # of the three that have both
    assert of((1, 1, 1), (None,) * 3, (None,) * 3, (4, 4, 4)).verdict == "not testable"


# -- quantities of one series


def along(rule: str, *by_seed: tuple[float, ...]) -> Verdict:
    asked = ";".join(f"score{place}" for place in range(len(by_seed[0])))
    claim = Claim("…", rule, ("a",), asked)  # type: ignore[arg-type]
    rows = [outcome(**{f"score{place}": value for place, value in enumerate(own)}) for own in by_seed]
    return verdict_of(evidence(figure(claim), {"a": rows}))


def test_quantities_of_one_series_are_operands() -> None:
    verdict = along("above", (3.0, 2.0, 1.0), (30.0, 29.1, 28.0), (5.0, 4.0, 2.9))
    assert verdict.verdict == "held"
    assert [part.name for part in verdict.parts] == ["score0 − score1", "score1 − score2"]
    assert along("above", *[(3.0, 2.0, 2.5)] * 3).verdict == "contradicted"
    assert along("alike", *[(1.0, 1.1)] * 3).verdict == "held"
    verdict = along("rising", *[(1.0, 2.0, 5.0)] * 3)
    assert (verdict.verdict, verdict.ours) == ("held", 2.0)


def test_several_quantities_of_several_series_are_compared_series_by_series() -> None:
    claim = Claim("…", "below", ("a", "b"), "score0;score1")
    rows = {name: [outcome(score0=1.0, score1=high)] * 3 for name, high in (("a", 2.0), ("b", 0.5))}
    verdict = verdict_of(evidence(figure(claim, names=("a", "b")), rows))
    assert [(part.name, part.mean, part.verdict) for part in verdict.parts] == [
        ("a score1 − a score0", 1.0, "held"),
        ("b score1 − b score0", -0.5, "contradicted"),
    ]


def test_a_law_of_every_class() -> None:
    def row(*r: float) -> Outcome:
        curves = tuple(law_curve(r=each) for each in r)
        return Outcome(readings=(Curves(epoch=1, reading="mixed", fuzziness=curves[0], class_fuzziness=curves),))

    claim = Claim("…", "law", ("a",), "r@class=0;r@class=1")
    assert verdict_of(evidence(figure(claim), {"a": [row(-0.999, -0.997)] * 3})).verdict == "held"
    verdict = verdict_of(evidence(figure(claim), {"a": [row(-0.999, -0.96)] * 3}))
    assert (verdict.verdict, [part.verdict for part in verdict.parts]) == ("contradicted", ["held", "contradicted"])
    assert verdict.reason.startswith("mean r of class 1 = -0.9600")


# -- against a value


@pytest.mark.parametrize(
    ("rule", "values", "value", "word"),
    [
        ("at least", (0.99, 0.991, 0.992), 0.95, "held"),
        ("at least", (0.95, 0.95, 0.95), 0.95, "held"),
        ("at least", (0.9, 0.96, 1.0), 0.95, "undecided"),  # the mean passes, the near end does not
        ("at least", (0.96,), 0.95, "supported"),
        ("at least", (0.9, 0.91, 0.92), 0.95, "contradicted"),
        ("at least", (0.9, 0.96), 0.95, "against"),
        ("at most", (0.1, 0.11, 0.12), 0.2, "held"),
        ("at most", (0.1, 0.15, 0.25), 0.2, "undecided"),
        ("at most", (0.1,), 0.2, "supported"),
        ("near", (0.8, 0.81, 0.82), 0.818, "held"),
        ("near", (0.6, 0.8, 1.0), 0.8, "undecided"),
        ("near", (1.03,), 0.818, "against"),
        ("near", (0.9,), 0.818, "supported"),
        ("near", (-1.1, -1.1, -1.1), -1.0, "held"),
        ("near", (-1.3, -1.3, -1.3), -1.0, "contradicted"),
    ],
)
def test_against_a_value(rule: str, values: tuple[float, ...], value: float, word: str) -> None:
    verdict = of_numbers(rule, *values, value=value)
    assert verdict.verdict == word
    assert verdict.printed == (value if rule == "near" else None)  # a bound is not what the paper prints


@pytest.mark.parametrize(("score", "word", "few"), [(1e-9, "held", "supported"), (1e-3, "contradicted", "against")])
def test_what_is_proven_needs_no_seeds(score: float, word: str, few: str) -> None:
    assert of_numbers("at most", score, value=1e-6, exact=True).verdict == word
    assert of_numbers("at most", score, value=1e-6).verdict == few


def test_exact_comparisons_and_laws_too() -> None:
    assert compared("below", exact=True, a=[1.0], b=[2.0]).verdict == "held"
    assert compared("below", exact=True, a=[1.0], b=[1.0]).verdict == "contradicted"
    assert of_r("law", -0.999, exact=True).verdict == "held"


# -- the paper's number


def test_the_printed_number_is_of_the_worst_series_itself() -> None:
    made = figure(
        LAW, names=("a", "b"), printed=(Printed("a", "r", -0.998, "Fig. 1"), Printed("b", "rho", 0.5, "Fig. 1"))
    )
    curves = {"a": [outcome(law_curve(r=-0.997))] * 3, "b": [outcome(law_curve(r=-0.999))] * 3}
    assert verdict_of(evidence(made, curves)).printed == -0.998
    curves = {"a": [outcome(law_curve(r=-0.999))] * 3, "b": [outcome(law_curve(r=-0.997))] * 3}
    assert verdict_of(evidence(made, curves)).printed is None


# -- not run


def test_nothing_run_is_not_run() -> None:
    for claim in (
        LAW,
        Claim("…", "below", ("a", "b")),
        Claim("…", "rising", ("*",)),
        Claim("…", "least rising", ("a", "b")),
    ):
        verdict = verdict_of(gather(figure(claim, names=("a", "b")), (), scale="paper"))
        assert (verdict.verdict, verdict.ours, verdict.n, verdict.interval) == ("not run", None, 0, None)
        assert verdict.reason == "`a` has not been run; `equisep figures run test/figure` does it."


def test_a_series_that_lacks_leaves_the_claim_not_run_and_says_which() -> None:
    made = figure(LAW, names=("a", "b"))
    verdict = verdict_of(evidence(made, {"a": [outcome(law_curve(r=-0.9))] * 3}))
    assert verdict.verdict == "not run"
    assert "`b` has not been run" in verdict.reason
    assert verdict.ours == pytest.approx(-0.9)
    assert {part.verdict for part in verdict.parts} == {"not run"}


def test_a_quantity_that_was_not_read_is_not_run() -> None:
    claim = Claim("…", "at least", ("a",), "ncc", 0.5)
    verdict = verdict_of(evidence(figure(claim), {"a": [outcome(law_curve())] * 3}))
    assert (verdict.verdict, verdict.reason) == ("not run", "`ncc` was not read of `a`.")
    claim = Claim("…", "law", ("a",), "r@epoch=100")
    assert verdict_of(evidence(figure(claim), {"a": [outcome(law_curve())] * 3})).verdict == "not run"


def test_a_number_that_was_asked_and_does_not_exist_tests_nothing() -> None:
    """No site separable: an effective depth was asked for and there is none."""
    reading = Curves(epoch=600, reading="eval", ncc=(0.3, 0.5, 0.9))
    claim = Claim("…", "at most", ("a",), "effective_depth", 2.0)
    verdict = verdict_of(evidence(figure(claim), {"a": [Outcome(readings=(reading,))] * 3}))
    assert (verdict.verdict, verdict.ours) == ("not testable", None)
    assert verdict.reason.startswith("a: effective depth does not exist in any of 3 seeds;")
    lost = verdict_of(evidence(figure(replace(claim, quantity="score")), {"a": numbers(None, None, None)}))
    assert (lost.verdict, lost.held) == ("not testable", None)


def test_seeds_without_a_number_leave_a_choice_that_holds_nothing() -> None:
    """Of five seeds two have no number: the other three agree, but which three was not asked beforehand."""
    claim = Claim("…", "at least", ("a",), "score", 0.5)
    found = evidence(figure(claim), {"a": numbers(0.9, 0.91, 0.92, None, None)})
    verdict = verdict_of(found)
    assert (verdict.verdict, verdict.n, verdict.parts[0].lost) == ("supported", 3, 2)
    assert "(2 more without it)" in verdict.reason and "and a number in every seed to decide" in verdict.reason
    exact = evidence(figure(replace(claim, exact=True)), {"a": numbers(0.9, None)})
    assert verdict_of(exact).verdict == "supported"
    assert (
        verdict_of(evidence(figure(replace(claim, value=0.95)), {"a": numbers(0.9, 0.9, 0.9, None)})).verdict
        == "against"
    )
    flat = {"a": [outcome(law_curve(r=-0.999))] * 3 + [outcome((None,) * 9)]}
    verdict = verdict_of(evidence(figure(LAW), flat))
    assert (verdict.verdict, verdict.n, verdict.parts[0].lost) == ("supported", 3, 1)


def test_smoke_scale_is_nothing_to_quote() -> None:
    verdict = verdict_of(evidence(figure(LAW), {"a": [outcome(law_curve(r=-0.999))] * 3}, scale="smoke"))
    assert verdict.verdict == "not run"
    assert verdict.ours == pytest.approx(-0.999)
    assert "smoke scale" in verdict.reason and "not for publication" in verdict.reason
    assert verdict.held is None


def test_planned_cells_that_are_missing_leave_their_claims_not_run_and_others_judged() -> None:
    """Two series of five seeds were asked for; `b` got three of its five."""
    claims = (Claim("A", "law", ("a",)), Claim("B", "law", ("b",)))
    made = figure(*claims, names=("a", "b"))
    rows = {"a": [outcome(law_curve())] * 5, "b": [outcome(law_curve())] * 3}
    first, second = judge(evidence(made, rows, seeds=5))
    assert (first.verdict, second.verdict) == ("held", "not run")
    assert second.reason == "2 cells of `b` not run yet; `equisep figures run test/figure` goes on."
    assert [verdict.verdict for verdict in judge(evidence(made, rows))] == ["held", "held"]


def test_cells_missing_of_every_series_alike_are_missed_too() -> None:
    made = figure(LAW, names=("a", "b"))
    found = evidence(made, {name: [outcome(law_curve())] * 3 for name in "ab"}, seeds=5)
    assert [len(each.missing) for each in found.series.values()] == [2, 2]
    assert verdict_of(found).verdict == "not run"


def test_rates_that_were_not_tried_yet_are_missing() -> None:
    claims = (Claim("A", "law", ("deep",)), Claim("B", "law", ("shallow",)))
    whole = shown_evidence()
    entries = [entry for each in whole.series.values() for entry in each.entries]
    late = [entry for entry in entries if not (entry.series == "shallow" and entry.cell.rate == 3e-3)]
    found = gather(replace(whole.figure, claims=claims), late, scale="paper", plan=asked_for(whole.figure, 3))
    assert [verdict.verdict for verdict in judge(found)] == ["held", "not run"]


def test_solved_problems_are_one_cell_each() -> None:
    made = figure(
        Claim("…", "at most", ("*",), "score", 1.0, exact=True),
        names=("a", "b"),
        base=Cell(kind="solve", problem="balanced"),
    )
    found = evidence(made, {"a": numbers(0.5)}, seeds=1)
    assert [len(each.missing) for each in found.series.values()] == [0, 1]
    assert verdict_of(found).verdict == "not run"


# -- claims that their rule cannot judge


@pytest.mark.parametrize(
    ("claim", "words"),
    [
        (Claim("C", "law", ("a",), "rho"), "has the rule `law` of `rho`. That rule is of `r` alone."),
        (Claim("C", "near", ("a",), "rho"), "has the rule `near` and no `value`."),
        (Claim("C", "below", ("a",), "rho"), "names too few things in `of`. Name 2 or more."),
        (Claim("C", "rising", ("a",), "rho"), "names too few things in `of`. Name 2 or more."),
        (Claim("C", "least rising", ("*",), "rho"), "names too few things in `of`. Name 2 or more."),
        (Claim("C", "law", ()), "names no series in `of`."),
        (Claim("C", "rising", ("a", "b"), "r;rho"), "compares several series in several quantities."),
        (Claim("C", "near", ("a",), "rho", 0.0), "is to be near 0, of which no number is a share."),
        (Claim("C", "as printed", ("a",), "rho"), "is on `rho` of `a` as printed. Add it to `printed`"),
        (Claim("C", "least near", ("*",), "r;rho", 1.0), "compares several series in several quantities."),
        (Claim("C", "least near", ("*",), "rho"), "has the rule `least near` and no `value`."),
        (Claim("C", "correlated", ("a", "b"), "rho;r"), "names too few things in `of`. Name 3 or more."),
        (Claim("C", "best at zero", ("*",), "rho"), "Write two quantities, `A;B`."),
        (Claim("C", "best at zero", ("a",), "rho;r"), "names too few things in `of`. Name 2 or more."),
    ],
)
def test_claims_that_cannot_be_judged_are_refused(claim: Claim, words: str) -> None:
    with pytest.raises(InputError) as caught:
        judge(gather(figure(claim, names=("a", "b")), (), scale="paper"))
    assert "The claim “C” of `test/figure`" in str(caught.value)
    assert words in str(caught.value)


# -- networks that fit


def fitted(*pairs: tuple[float, float]) -> list[Outcome]:
    """Outcomes of an r and a training accuracy each."""
    return [
        Outcome(readings=(Curves(epoch=600, reading="eval", fuzziness=law_curve(r=r), accuracy=share),))
        for r, share in pairs
    ]


def test_no_verdict_rests_on_a_network_that_does_not_fit() -> None:
    made = figure(LAW, fit=0.999)
    good, bad = (-0.999, 1.0), (-0.5, 0.99)
    verdict = verdict_of(evidence(made, {"a": fitted(bad, bad, bad)}))
    assert (verdict.verdict, verdict.ours, verdict.n) == ("not testable", None, 0)
    assert verdict.reason == "a: no network fits its training data (accuracy 99 %, of at least 99.9 %)."
    verdict = verdict_of(evidence(made, {"a": fitted(good, good, good, bad)}))
    assert (verdict.verdict, verdict.n, verdict.parts[0].unfit) == ("held", 3, 1)
    assert verdict.ours == pytest.approx(-0.999) and "(and 1 that did not fit the training data)" in verdict.reason
    assert verdict_of(evidence(made, {"a": fitted(good, good, bad)})).verdict == "supported"
    assert verdict_of(evidence(figure(replace(LAW, fit=False), fit=0.999), {"a": fitted(bad, bad, bad)})).held is False
    assert verdict_of(evidence(figure(LAW), {"a": fitted(bad, bad, bad)})).held is False  # the figure does not ask


def test_a_claim_may_ask_for_a_fit_of_its_own() -> None:
    good, bad = (-0.999, 1.0), (-0.5, 0.995)
    claim = replace(LAW, fit=0.999)
    for own in (figure(claim), figure(claim, fit=0.99)):
        verdict = verdict_of(evidence(own, {"a": fitted(good, good, good, bad)}))
        assert (verdict.verdict, verdict.n, verdict.parts[0].unfit) == ("held", 3, 1)
        verdict = verdict_of(evidence(own, {"a": fitted(bad, bad, bad)}))
        assert verdict.reason == "a: no network fits its training data (accuracy 99.5 %, of at least 99.9 %)."


def test_pairs_need_both_networks_to_fit() -> None:
    claim = Claim("…", "below", ("a", "b"), "last")
    made = figure(claim, names=("a", "b"), fit=0.999)
    rows = {"a": fitted(*[(-0.999, 1.0)] * 4), "b": fitted(*[(-0.99, 1.0)] * 3, (-0.99, 0.9))}
    (part,) = verdict_of(evidence(made, rows)).parts
    assert (part.n, part.unfit, part.lost) == (3, 1, 0)


# -- printed numbers of one training


def printed(value: float, rounding: float, *rho: float) -> Verdict:
    claim = Claim("…", "as printed", ("a",), "rho")
    made = figure(claim, printed=(Printed("a", "rho", value, "Fig. 1", rounding),))
    return verdict_of(evidence(made, {"a": [outcome(law_curve(each)) for each in rho]}))


def test_a_printed_number_is_one_that_another_training_may_give() -> None:
    verdict = printed(0.818, 0.0005, 0.80, 0.81, 0.82, 0.83)
    assert (verdict.verdict, verdict.printed) == ("held", 0.818)
    logs = np.log([0.80, 0.81, 0.82, 0.83])
    reach = student_quantile(0.975, 3) * logs.std(ddof=1) * np.sqrt(1 + 1 / 4)
    assert verdict.interval is not None and verdict.interval.kind == "prediction"
    ends = np.exp([logs.mean() - reach, logs.mean() + reach])
    assert (verdict.interval.low, verdict.interval.high) == pytest.approx(tuple(ends))
    assert printed(0.9, 0.0005, 0.80, 0.81, 0.82, 0.83).verdict == "contradicted"
    assert printed(0.818, 0.0005, 0.5, 0.9, 0.7).verdict == "undecided"  # so wide that it excludes nothing
    assert printed(0.818, 0.0, 0.81, 0.81, 0.81).verdict == "contradicted"
    assert printed(0.814, 0.005, 0.81, 0.81, 0.81).verdict == "held"  # to its rounding
    assert printed(0.818, 0.0005, 0.81).verdict == "undecided"  # one draw predicts nothing


# -- readings


def read_in(**r: tuple[float, ...]) -> list[Outcome]:
    """Outcomes with an r in each reading, one per seed."""
    return [
        Outcome(
            readings=tuple(
                Curves(epoch=1, reading=name, fuzziness=law_curve(r=values[seed])) for name, values in r.items()
            )
        )
        for seed in range(len(next(iter(r.values()))))
    ]


def test_a_claim_is_judged_in_every_reading_of_its_figure() -> None:
    made = figure(LAW, Claim("…", "at least", ("a",), "score", 0.5), readings=("drawn", "mixed", "eval"))
    rows = read_in(mixed=(-0.999,) * 3, drawn=(-0.98,) * 3, eval=(-0.5,) * 3)
    law, score = judge_readings(evidence(made, {"a": [replace(each, numbers={"score": 1.0}) for each in rows]}))
    assert {name: verdict.verdict for name, verdict in law.by_reading.items()} == {
        "drawn": "undecided",
        "mixed": "held",
        "eval": "contradicted",
    }
    assert law.main.reading == "drawn" and law.standing == "reading"
    assert score.by_reading == {} and score.main.reading == "" and score.standing == "confirmed"
    assert [verdict.verdict for verdict in judge(evidence(made, {"a": rows}))] == ["undecided", "not run"]


def test_a_reading_that_is_not_recorded_is_not_run() -> None:
    made = figure(LAW, readings=("drawn", "mixed"))
    (law,) = judge_readings(evidence(made, {"a": read_in(mixed=(-0.999,) * 3)}))
    assert [verdict.verdict for verdict in law.verdicts] == ["not run", "held"]
    assert law.verdicts[0].reason == "`r` was not read of `a` in the reading `drawn`."
    assert law.main.reading == "mixed" and law.standing == "confirmed"
    (law,) = judge_readings(evidence(made, {"a": read_in(mixed=(-0.9,) * 3)}))
    assert law.main.verdict == "contradicted" and law.standing == "undecided"  # in the paper's reading it may hold
    (law,) = judge_readings(evidence(made, {"a": read_in(drawn=(-0.9,) * 3)}))
    assert law.main.reading == "drawn" and law.standing == "contradicted"


def test_another_network_decides_nothing_of_the_papers() -> None:
    good = [outcome(law_curve(0.5, r=-0.999))] * 3
    stood_in = figure(LAW, base=Cell(network="vgg11", network_for="vgg13"))
    (verdict,) = judge(evidence(stood_in, {"a": good}))
    assert verdict.verdict == "supported" and verdict.reason.endswith("and the paper's network to decide.")
    bad = [outcome(law_curve(0.5, r=-0.9))] * 3
    assert judge(evidence(stood_in, {"a": bad}))[0].verdict == "against"
    assert judge(evidence(figure(LAW), {"a": good}))[0].verdict == "held"


@pytest.mark.parametrize(
    ("data", "per_class", "word"),
    [
        ("cifar10_7k", 100, "held"),  # draws from a part are draws from the whole
        ("cifar10_7k", None, "supported"),
        ("embedded-10x10", 100, "supported"),
        ("mine.npz", 100, "supported"),
    ],
)
def test_other_data_than_the_papers_decide_nothing_of_it(data: str, per_class: int | None, word: str) -> None:
    cell = Cell(data=data, stands_for="cifar10", per_class=per_class)
    (verdict,) = judge(evidence(figure(LAW, base=cell), {"a": [outcome(law_curve(0.5, r=-0.999))] * 3}))
    assert verdict.verdict == word
    assert verdict.reason.endswith("and the paper's data to decide.") == (word == "supported")


@pytest.mark.parametrize(("r", "word", "own"), [(-0.999, "supported", "held"), (-0.9, "against", "contradicted")])
def test_what_a_figure_lacks_decides_nothing_of_the_papers_but_claims_of_ours(r: float, word: str, own: str) -> None:
    """Declared of the figure, or of one of its series."""
    ours = replace(LAW, source="ours: asked by nobody else")
    made = figure(LAW, ours, lacks="the paper's VGG")
    rows = {"a": [outcome(law_curve(0.5, r=r))] * 3}
    theirs, asked = judge(evidence(made, rows))
    assert (theirs.verdict, asked.verdict) == (word, own)
    assert theirs.reason.endswith("and the paper's VGG to decide.") and "VGG" not in asked.reason
    assert theirs.parts[0].lacks == "the paper's VGG"
    of_series = replace(made, series=(replace(made.series[0], lacks="its data"),))
    assert judge(evidence(of_series, rows))[0].reason.endswith("and its data to decide.")  # in place of the figure's
    assert judge(evidence(replace(of_series, lacks=""), rows))[0].verdict == word
    of_claim = replace(of_series, claims=(replace(LAW, lacks="augmented training"), replace(ours, lacks="the same")))
    theirs, asked = judge(evidence(of_claim, rows))
    assert (theirs.verdict, asked.verdict) == (word, own)  # a claim of ours is of this very training
    assert theirs.reason.endswith("and augmented training to decide.")  # in place of the series'


@pytest.mark.parametrize(("r", "word"), [(-0.999, "held"), (-0.98, "undecided"), (-0.9, "against")])
@pytest.mark.parametrize("choose", ["short runs", "best two"])
def test_a_law_is_held_at_the_rate_that_short_runs_chose_and_contradicted_at_none(
    r: float, word: str, choose: Choice
) -> None:
    """The record may be of an older plan: what counts is which rates were trained to the end."""
    made = figure(LAW, rates={"adam": (1e-3, 3e-3)}, choose=choose)
    (verdict,) = judge(evidence(made, {"a": [outcome(law_curve(0.5, r=r))] * 3}))
    assert verdict.verdict == word
    assert verdict.reason.endswith("whole trainings at the other rates to decide.") == (word == "against")


@pytest.mark.parametrize(("r", "word"), [(-0.9, "supported"), (-0.999, "against")])
def test_nothing_else_is_decided_at_a_rate_that_short_runs_chose(r: float, word: str) -> None:
    made = figure(replace(LAW, rule="no law"), rates={"adam": (1e-3, 3e-3)}, choose="short runs")
    (verdict,) = judge(evidence(made, {"a": [outcome(law_curve(0.5, r=r))] * 3}))
    assert verdict.verdict == word
    assert verdict.reason.endswith("whole trainings at the other rates to decide.")


def test_any_two_numbers_differ_so_that_few_seeds_show_no_difference() -> None:
    few = compared("differ", a=[0.1, 0.1], b=[0.9, 0.9])
    assert few.verdict == "undecided" and few.reason.endswith(
        "the rule asks for a difference from 0 over 3 seeds or more."
    )
    assert compared("differ", a=[0.1, 0.2, 0.1], b=[0.9, 0.9, 0.8]).verdict == "held"


@pytest.mark.parametrize(
    ("values", "word"),
    [((1.2, 1.21, 1.2), "held"), ((1.2,), "supported"), ((0.9,), "undecided"), ((0.1, 0.11, 0.1), "undecided")],
)
def test_a_test_that_does_not_reject_shows_nothing(values: tuple[float, ...], word: str) -> None:
    verdict = of_numbers("shown", *values, value=1.0)
    assert verdict.verdict == word
    assert "the rule asks for at least 1, and less shows nothing" in verdict.reason


def test_a_printed_number_says_what_its_prediction_must_not_reach() -> None:
    assert printed(0.818, 0.0005, 0.80, 0.81, 0.82, 0.83).reason.endswith(
        "and decides nothing where it may as well give a number beyond a factor of 1.25 of the mean."
    )
    both = Claim("…", "as printed", ("a",), "r;rho")
    assert rule_words(both).endswith("give r above -0.971 or a number beyond a factor of 1.25 of the mean")
    assert rule_words(replace(both, quantity="r")).endswith("may as well give r above -0.971")
