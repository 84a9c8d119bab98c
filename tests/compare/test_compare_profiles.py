"""Differences of laws and profiles: the joined intervals by simulation, the matching of sites, and the Notes."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from equisep.compare import ProfileDifference, compare_laws, compare_profiles
from equisep.files import encode
from equisep.law import fit_law, law_intervals
from equisep.results import GrainChoice, Interval, LawFit, Profile, SiteReading
from equisep.results.codec import decode


def law(rho: float, spread: float = 0.05, seed: int = 0, level: float = 0.95) -> LawFit:
    rng = np.random.default_rng(seed)
    curve = 20 * rho ** np.arange(8) * np.exp(0.02 * rng.standard_normal(8))
    rows = curve * np.exp(spread * rng.standard_normal((200, 8)))
    return law_intervals(rows, fit_law(curve), "bootstrap", level=level)


def profile(rho: float = 0.5, sites: int = 8, prefix: str = "relu", **changes) -> Profile:
    curve = [20 * rho**site for site in range(sites)]
    readings = tuple(
        SiteReading(
            index=site,
            name=f"{prefix}{site}",
            dim=100,
            fuzziness=value,
            fuzziness_interval=Interval(value / 1.1, value * 1.1, 0.95, "bootstrap", 100),
            ncc_train=0.5 + site / 20,
        )
        for site, value in enumerate(curve)
    )
    whole = Profile(
        model="Fnn",
        classes=2,
        counts=(50, 50),
        sites=readings,
        law=fit_law(curve),
        effective_depth=3,
        accuracy_train=1.0,
        settings={"reading": "mixed", "weighting": "sample"},
    )
    return replace(whole, **changes)


def test_clear_and_unclear_differences() -> None:
    clear = compare_laws(law(0.4), law(0.6, seed=1))
    assert clear.rho.value == pytest.approx(0.2, abs=0.03)
    assert clear.rho.excludes_zero is True
    assert clear.half_life.excludes_zero is True
    assert clear.rho.interval.kind == "combined"
    same = compare_laws(law(0.5), law(0.5, seed=1))
    assert same.rho.excludes_zero is False
    assert same.rho.interval.low < same.rho.value < same.rho.interval.high


def test_a_profile_beside_itself_is_the_same() -> None:
    one = profile(0.5)
    difference = compare_profiles(one, one)
    assert difference.nothing_differs
    assert difference.notes[0].code == "same-numbers"
    words = {part.told_apart for part in (difference.law.rho, difference.law.half_life, difference.law.last)}
    assert words == {"same"} == {site.fuzziness.told_apart for site in difference.sites}
    other = replace(one, accuracy_train=0.5)
    changed = compare_profiles(one, other)
    assert not changed.nothing_differs and "same-numbers" not in {note.code for note in changed.notes}
    assert changed.law.rho.told_apart == "same" and changed.accuracy_train.told_apart == ""


def test_swapping_the_two_swaps_the_signs() -> None:
    one, other = law(0.4), law(0.5, seed=1)
    there, back = compare_laws(one, other), compare_laws(other, one)
    assert there.r.value == -back.r.value and there.r.interval is back.r.interval is None
    for name in ("rho", "half_life"):
        left, right = getattr(there, name), getattr(back, name)
        assert left.value == -right.value
        assert (left.interval.low, left.interval.high) == pytest.approx((-right.interval.high, -right.interval.low))
        assert left.excludes_zero == right.excludes_zero
    assert there.last.value == pytest.approx(1 / back.last.value)


def test_the_joined_interval_covers_at_its_level() -> None:
    rng = np.random.default_rng(5)
    truth, spread, covered = (0.5, 0.7), 0.15, 0
    for _ in range(400):
        pair = []
        for rho in truth:
            estimate = rho * math.exp(spread * rng.standard_normal())
            limits = Interval(
                estimate * math.exp(-1.96 * spread), estimate * math.exp(1.96 * spread), 0.95, "bootstrap", 99
            )
            pair.append(LawFit(curve=(), rho=estimate, intervals={"rho": limits}))
        found = compare_laws(*pair).rho.interval
        covered += found.low <= 0.2 <= found.high
    assert 0.92 <= covered / 400 <= 0.98


def test_without_intervals_there_is_the_plain_difference() -> None:
    found = compare_laws(fit_law([8.0, 4.0, 2.0, 1.0]), law(0.6))
    assert found.rho.value == pytest.approx(0.1, abs=0.02)
    assert (found.rho.interval, found.rho.excludes_zero) == (None, None)
    assert found.imbalance.value == pytest.approx(0, abs=0.01)
    assert found.imbalance.interval is None
    assert found.last.value == pytest.approx(law(0.6).curve[-1])
    assert found.last.excludes_one is None


def test_missing_numbers_stay_missing() -> None:
    found = compare_laws(LawFit(curve=()), fit_law([2.0, 1.0, 0.0]))
    for name in ("rho", "half_life", "r", "imbalance"):
        assert getattr(found, name).value is None
    assert found.last.value is None
    assert compare_laws(fit_law([1.0, 1e-300]), fit_law([1.0, 1e300])).last.value is None


def test_levels_must_agree() -> None:
    found = compare_laws(law(0.4), law(0.5, seed=1, level=0.9))
    assert found.rho.interval is None
    assert {note.code for note in found.notes} == {"levels-differ"}
    assert "0.95 and 0.9" in found.notes[0].text


def test_profiles_of_equal_length_match_by_index() -> None:
    found = compare_profiles(profile(0.5), profile(0.6, prefix="act"))
    assert [(site.name_a, site.name_b) for site in found.sites][:2] == [("relu0", "act0"), ("relu1", "act1")]
    assert found.sites[0].fuzziness.excludes_one is False
    assert found.sites[-1].fuzziness.value == pytest.approx(1.2**7)
    assert found.sites[-1].fuzziness.excludes_one is True
    reach = math.sqrt(2) * math.log(1.1)
    assert found.sites[0].fuzziness.interval.high == pytest.approx(math.exp(reach))
    assert found.law.last == found.sites[-1].fuzziness
    assert found.sites[3].ncc_train.value == 0
    assert found.sites[3].ncc_test.value is None
    assert found.effective_depth.value == 0
    assert found.accuracy_test.value is None
    assert found.notes == ()
    assert found.settings == ()


def test_profiles_of_other_length_match_by_name() -> None:
    found = compare_profiles(profile(sites=8), profile(sites=5))
    assert [site.name_a for site in found.sites] == [f"relu{site}" for site in range(5)]
    assert [note.code for note in found.notes] == ["sites-differ"]
    assert "8 and 5 sites; the 5 of equal name" in found.notes[0].text
    nothing = compare_profiles(profile(sites=8), profile(sites=5, prefix="act"))
    assert nothing.sites == ()
    assert "none is compared" in nothing.notes[0].text
    assert nothing.law.last.value == pytest.approx(8)


def both_grains(chosen: str, rho: float = 0.5) -> Profile:
    """Six layers, of which every second ends a block; both grains measured, one of them reported."""
    layers = profile(rho, sites=7).sites
    names = {"layers": tuple(site.name for site in layers), "blocks": tuple(site.name for site in layers[::2])}
    held = {"layers": layers, "blocks": tuple(replace(s, index=i) for i, s in enumerate(layers[::2]))}
    laws = {grain: fit_law([site.fuzziness for site in sites]) for grain, sites in held.items()}
    mine = {site.name for site in held[chosen]}
    others = tuple(site for site in layers if site.name not in mine)
    return Profile(
        model="Fnn", classes=2, counts=(50, 50), sites=held[chosen], law=laws[chosen], laws=laws, effective_depth=2,
        grains=GrainChoice(chosen=chosen, sites=names, others=others), settings={"reading": "eval", "grain": chosen},
    )  # fmt: skip


@pytest.mark.parametrize(("first", "second"), [("layers", "blocks"), ("blocks", "layers")])
def test_profiles_that_report_different_grains_are_compared_in_one_that_both_hold(first: str, second: str) -> None:
    """Two trainings of one architecture, one reported by layers and one by blocks, shared no site."""
    a, b = both_grains(first), both_grains(second, 0.6)
    found = compare_profiles(a, b)
    assert [site.name_a for site in found.sites] == [site.name_b for site in found.sites] == list(a.grains.sites[first])
    assert [site.index_a for site in found.sites] == [site.index_b for site in found.sites]
    assert found.law.rho.a == pytest.approx(0.5 if first == "layers" else 0.25)
    assert found.law.rho.b == pytest.approx(0.6 if first == "layers" else 0.36)
    assert (found.effective_depth.a, found.effective_depth.b) == (2, None)
    assert [note.code for note in found.notes] == ["grain-shared"]
    assert f"report {first} and {second}; both hold {first}" in found.notes[0].text


def test_one_grain_alone_is_met_by_the_same_of_the_other() -> None:
    asked = profile(0.5, sites=7, settings={"reading": "eval", "grain": "layers"})
    found = compare_profiles(asked, both_grains("blocks"))
    assert len(found.sites) == 7 and found.sites[3].fuzziness.value == pytest.approx(1)
    assert [note.code for note in found.notes] == ["grain-shared"]
    same = compare_profiles(both_grains("blocks"), both_grains("blocks"))
    assert len(same.sites) == 4 and [note.code for note in same.notes] == ["same-numbers"]


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-1.0, 1.0), (2.0, 1.0), (2.0, -1.0), (1.0, math.inf)])
def test_intervals_that_cannot_be_are_left_out(low: float, high: float) -> None:
    """A hand-edited profile is refused at loading; one made in a program must not crash the comparison."""
    odd = profile()
    limits = Interval(low, high, 0.95, "bootstrap", 100)
    sites = (replace(odd.sites[0], fuzziness_interval=limits), *odd.sites[1:])
    found = compare_profiles(replace(odd, sites=sites, law=replace(odd.law, intervals={"rho": limits})), profile())
    assert found.sites[0].fuzziness.interval is None
    json.dumps(encode(found), allow_nan=False)


def test_what_was_read_differently_is_listed() -> None:
    here = {"reading": "mixed", "weighting": "sample", "training": {"rate": 0.1, "seed": 0}}
    there = {"reading": "eval", "weighting": "sample", "training": {"rate": 0.1, "seed": 1}, "only": "there"}
    found = compare_profiles(profile(settings=here), profile(0.6, settings=there, counts=(50, 60)))
    assert [(entry.name, entry.a, entry.b) for entry in found.settings] == [
        ("reading", "mixed", "eval"),
        ("training.seed", 0, 1),
    ]
    assert [note.code for note in found.notes] == ["settings-differ", "data-differ"]
    assert "different `reading`: compare with care" in found.notes[0].text  # how it was trained is what one compares
    assert "110 samples (50 to 60 per class) of 2 classes" in found.notes[1].text


def test_comparisons_travel_as_json() -> None:
    found = compare_profiles(profile(0.5), profile(0.6, settings={"reading": "eval"}))
    text = json.dumps(encode(found), allow_nan=False)
    assert decode(ProfileDifference, json.loads(text), where="difference") == found


def test_empty_profiles_compare_to_nothing() -> None:
    empty = Profile(model="m", classes=0, counts=(), sites=(), law=LawFit(curve=()))
    found = compare_profiles(empty, empty)
    assert found.sites == ()
    assert found.law.last.value is None
    assert compare_profiles(empty, profile()).notes[-1].code == "data-differ"
