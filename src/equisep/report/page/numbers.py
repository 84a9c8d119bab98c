"""The numbers that the page's script draws: every curve over the layers, the laws and their lines, other readings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from equisep.law import break_of
from equisep.report.columns import BY_NAME
from equisep.report.page.class_numbers import class_numbers, cosine_numbers, map_numbers, space_numbers
from equisep.report.page.subject import Subject
from equisep.results import Interval, LawFit, Profile

FORMAT = 1
Z = 1.96  # limits at 95 % of shares of the work
Point = list[float]

_COLUMNS = (
    *("dim", "fuzziness", "fuzziness_low", "fuzziness_high", "fuzziness_test", "null"),
    *("corrected", "corrected_low", "corrected_high", "corrected_test", "share"),
    *("ncc_train", "ncc_test", "cdnv", "cdnv_test", "cdnv_directional", "nc1"),
)
_METRICS = {"train": "fuzziness", "test": "fuzziness_test"}


def page_numbers(subjects: Sequence[Subject], history: dict[str, Any] | None = None) -> dict[str, Any]:
    """All that is embedded."""
    return {
        "format": FORMAT,
        "several": len(subjects) > 1,
        "profiles": [subject_numbers(subject) for subject in subjects],
        "history": history,
    }


def subject_numbers(subject: Subject) -> dict[str, Any]:
    """One profile as its drawings need it."""
    profile = subject.profile
    steps = len(profile.law.loads)
    return {
        "label": subject.label,
        "each": subject.each,
        "reading": profile.reading,
        "whole": profile.whole,
        "layers": layer_columns(subject),
        "share_each": 1 / steps if steps and subject.facts.shares else None,
        "laws": {name: _law(law, profile, name) for name, law in subject.laws.items()},
        "readings": [_reading(name, other) for name, other in profile.other_readings.items()],
        "effective_depth": profile.effective_depth,
        "network_depth": profile.network_depth,
        "epsilon": profile.settings.get("epsilon"),
        "accuracy_train": profile.accuracy_train,
        "accuracy_test": profile.accuracy_test,
        "classes": class_numbers(subject),
        "cosines": cosine_numbers(subject),
        "space": space_numbers(subject),
        "maps": map_numbers(subject),
    }


def layer_columns(subject: Subject) -> dict[str, list[Any]]:
    """Every curve, in full; those of the table of sites, and the limits that it does not have."""
    profile = subject.profile
    columns: dict[str, list[Any]] = {
        "index": [site.index for site in profile.sites],
        "name": [site.name for site in profile.sites],
        **{name: list(BY_NAME[name].of(profile)) for name in _COLUMNS},
    }
    for side in ("low", "high"):
        tests = [site.corrected_test for site in profile.sites]
        columns[f"corrected_test_{side}"] = [None if each is None else getattr(each, side) for each in tests]
    for side, sign in (("low", -1), ("high", 1)):
        columns[f"share_{side}"] = [share_limit(subject, site.index, sign) for site in profile.sites]
    return columns


def share_limit(subject: Subject, index: int, sign: int) -> float | None:
    """A limit at 95 % of a layer's share of the work, by the jackknife over folds."""
    share, error = subject.facts.shares.get(index), subject.facts.share_errors.get(index)
    return None if share is None or error is None else share + sign * Z * error


def curve_indices(profile: Profile, law: LawFit, metric: str = "fuzziness") -> list[int]:
    """The numbers of the layers that a curve was fitted through: those with D, the first of which it counts from."""
    values = profile.curve(metric)
    if len(law.curve) == len(profile.sites):
        return [site.index for site in profile.sites]
    known = [site.index for site, value in zip(profile.sites, values, strict=True) if value is not None]
    if len(known) == len(law.curve):
        return known
    first = profile.sites[profile.begin(metric)].index if profile.sites else 0
    return [first + step for step in range(len(law.curve))]


def law_line(law: LawFit, indices: Sequence[int]) -> list[Point] | None:
    """The ends of the fitted line, in layers and D; None where there is no line."""
    if law.rho is None or law.intercept is None or len(law.curve) < 2:
        return None
    last = len(law.curve) - 1
    return [[indices[step], math.exp(law.intercept + step * math.log(law.rho))] for step in (0, last)]


def _law(law: LawFit, profile: Profile, name: str) -> dict[str, Any]:
    indices = curve_indices(profile, law, _METRICS.get(name, "fuzziness"))
    by_index = dict(zip(indices, law.residuals, strict=False))
    return {
        "rho": law.rho,
        **_limits("rho", law.intervals.get("rho")),
        "half_life": law.half_life,
        "r": law.r,
        "intercept": law.intercept,
        "verdict": law.verdict,
        "line": law_line(law, indices),
        "kink": _kink(law, indices),
        "residuals": [by_index.get(site.index) for site in profile.sites],
    }


def _limits(name: str, interval: Interval | None) -> dict[str, float | None]:
    low, high = (None, None) if interval is None else (interval.low, interval.high)
    return {f"{name}_low": low, f"{name}_high": high}


def _kink(law: LawFit, indices: Sequence[int]) -> dict[str, Any] | None:
    """The best line of two slopes: continuous, at the height that fits ln D best."""
    kink = break_of(law)
    if kink is None or min(law.curve) <= 0 or min(kink.rhos) <= 0:
        return None
    before, after = (math.log(rho) for rho in kink.rhos)
    shape = [min(step, kink.at) * before + max(step - kink.at, 0) * after for step in range(len(law.curve))]
    height = sum(math.log(value) - part for value, part in zip(law.curve, shape, strict=True)) / len(shape)
    corners = (0, kink.at, len(shape) - 1)
    return {
        "at": indices[kink.at],
        "rhos": list(kink.rhos),
        "p": kink.p,
        "clear": kink.clear,
        "line": [[indices[step], math.exp(height + shape[step])] for step in corners],
    }


def _reading(name: str, other: Profile) -> dict[str, Any]:
    return {
        "name": name,
        "fuzziness": list(other.curve()),
        "fuzziness_test": list(other.curve("fuzziness_test")),
        "line": law_line(other.law, curve_indices(other, other.law)),
    }
