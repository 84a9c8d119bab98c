"""Small profiles made by hand, full and bare, for the tests of what is drawn."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from equisep.law import curve_intervals, fit_law, law_intervals
from equisep.results import ClassifierReading, Coordinates, LawFit, Note, Profile, SiteReading


def coordinates(classes: int, site: int, seed: int = 0) -> Coordinates:
    rng = np.random.default_rng(seed + site)
    labels = np.repeat(np.arange(classes), 20)
    angles = 2 * np.pi * labels / classes
    points = np.stack([np.cos(angles), np.sin(angles)], 1) + rng.standard_normal((len(labels), 2)) * 0.9**site
    return Coordinates(
        points=tuple((float(x), float(y)) for x, y in points), labels=tuple(labels.tolist()), explained=(0.4, 0.2)
    )


def full_profile(
    sites: int = 8, classes: int = 10, rho: float = 0.51, seed: int = 0, name: str = "blocks.{}.relu"
) -> Profile:
    """A profile like the 8-layer network of He & Su 2023, Fig. 1, every field filled."""
    rng = np.random.default_rng(seed)
    curve = 27 * rho ** np.arange(sites) * np.exp(0.07 * rng.standard_normal(sites))
    test = 27 * (rho + 0.12) ** np.arange(sites) * np.exp(0.1 * rng.standard_normal(sites))
    rows = curve * np.exp(0.06 * rng.standard_normal((200, sites)))
    around = curve_intervals(rows, curve.tolist(), "bootstrap")
    readings = tuple(
        SiteReading(
            index=site,
            name="input" if site == 0 else name.format(site - 1),
            dim=100,
            fuzziness=float(curve[site]),
            fuzziness_test=float(test[site]),
            fuzziness_interval=around[site],
            null=880.0 + 10 * site,
            nc1=float(curve[site]) / classes,
            cdnv=float(curve[site]) / 9,
            cdnv_test=float(test[site]) / 9,
            ncc_train=min(1.0, 0.7 + 0.05 * site),
            ncc_test=0.7 + 0.01 * site,
            coordinates=coordinates(classes, site),
        )
        for site in range(sites)
    )
    return Profile(
        model="Fnn(depth=8, width=100)",
        classes=classes,
        counts=(100,) * classes,
        counts_test=(1000,) * classes,
        sites=readings,
        law=law_intervals(rows, fit_law(curve), "bootstrap"),
        laws={"test": fit_law(test), "class 0": fit_law(curve * 1.1), "class 1": fit_law(test)},
        effective_depth=6,
        classifier=ClassifierReading(
            name="head", norm_spread=0.05, angle_spread=0.1, angle_gap=0.08, etf_distance=0.3, nc3=0.4, nc4=0.0
        ),
        accuracy_train=1.0,
        accuracy_test=0.805,
        reading="mixed",
        settings={"reading": "mixed", "weighting": "sample"},
        notes=(Note("rank", "The class means span 8 directions of 9.", site="blocks.6.relu"),),
    )


def sampled_profile() -> Profile:
    """A profile of samples of more, whose laws of D of the population begin at layer 2 and, by test data, at the input."""
    profile, rng = full_profile(), np.random.default_rng(1)
    laws = {}
    for name, rho, begin in (("corrected", 0.45, 2), ("corrected test", 0.6, 0)):
        curve = 30 * rho ** np.arange(8)[begin:] * np.exp(0.07 * rng.standard_normal(8 - begin))
        rows = curve * np.exp(0.06 * rng.standard_normal((10, 8 - begin)))
        laws[name] = law_intervals(rows, fit_law(curve), "jackknife")
    return replace(profile, whole=False, laws={**laws, **profile.laws})


def without_intervals(profile: Profile) -> Profile:
    return replace(
        profile,
        law=replace(profile.law, intervals={}),
        sites=tuple(replace(site, fuzziness_interval=None) for site in profile.sites),
    )


def bare_profile(sites: int = 3) -> Profile:
    """A profile in which everything that may be missing is missing."""
    readings = tuple(SiteReading(index=site, name=f"layer{site}", dim=4) for site in range(sites))
    return Profile(model="bare", classes=2, counts=(5, 5), sites=readings, law=LawFit(curve=()))


def zero_profile() -> Profile:
    """A profile that separates its classes fully at the last site."""
    curve = [4.0, 1.0, 0.2, 0.0]
    readings = tuple(SiteReading(index=i, name=f"layer{i}", dim=4, fuzziness=value) for i, value in enumerate(curve))
    return Profile(model="zero", classes=2, counts=(5, 7), sites=readings, law=fit_law(curve))
