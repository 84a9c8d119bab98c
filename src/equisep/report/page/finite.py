"""A profile without numbers that are not finite: NaN and infinity do not exist on the page, and it says where they were."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from itertools import chain
from typing import Any

from equisep.results import LawFit, Note, Profile, SiteReading

_MOST_NAMED = 3  # layers named in one Note
_WHOLE = {"accuracy_train": "training accuracy", "accuracy_test": "test accuracy", "classifier": "the classifier"}
_NEEDED = ("curve", "residuals", "loads")  # of a law: with one of their numbers missing it is no law


def finite_profile(profile: Profile) -> Profile:
    """The profile with None where a number is not finite, and Notes that say where that was."""
    sites = tuple(_site(site) for site in profile.sites)
    changed = [f"`{site.name}`" for site, other in zip(sites, profile.sites, strict=True) if site is not other]
    named = ", ".join(changed[:_MOST_NAMED]) + (
        f" and {len(changed) - _MOST_NAMED} more" if changed[_MOST_NAMED:] else ""
    )
    law = _law(profile.law)
    whole: dict[str, Any] = {
        name: None
        for name in ("accuracy_train", "accuracy_test", "classifier")
        if not _all_finite(getattr(profile, name))
    }
    said = {
        "law-not-finite": "the law" if law is not profile.law else "",
        "not-finite": named,
        "whole-not-finite": ", ".join(_WHOLE[name] for name in whole),
    }
    notes = [
        Note(code, f"Numbers of {what} are not finite (NaN or infinity) and are left out.")
        for code, what in said.items()
        if what
    ]
    return replace(
        profile,
        sites=sites,
        law=law,
        laws={name: _law(each) for name, each in profile.laws.items()},
        other_readings={name: finite_profile(other) for name, other in profile.other_readings.items()},
        notes=(*notes, *profile.notes),
        **whole,
    )


def _site(site: SiteReading) -> SiteReading:
    changed: dict[str, Any] = {}
    for entry in fields(site):
        value = getattr(site, entry.name)
        if isinstance(value, float) and not math.isfinite(value):
            changed[entry.name] = None
        elif isinstance(value, tuple) and _numbers(value):
            kept = tuple(None if part is None or not math.isfinite(part) else part for part in value)
            if kept != value:  # a NaN is no equal of itself
                changed[entry.name] = kept if entry.name not in ("fuzziness_folds", "singular_values") else None
        elif value is not None and not _all_finite(value):
            changed[entry.name] = None
    return replace(site, **changed) if changed else site


def _law(law: LawFit) -> LawFit:
    """A law without the numbers that are not finite; none at all where its curve holds some."""
    if _all_finite(law):
        return law
    if not all(_all_finite(getattr(law, name)) for name in _NEEDED):
        return LawFit(curve=(), notes=law.notes)
    changed: dict[str, Any] = {
        name: None
        for name in ("rho", "intercept", "half_life", "r", "r2", "max_residual", "imbalance", "two_slopes")
        if not _all_finite(getattr(law, name))
    }
    intervals = {name: each for name, each in law.intervals.items() if _all_finite(each)}
    return replace(law, intervals=intervals, **changed)


def _numbers(values: tuple[Any, ...]) -> bool:
    return all(value is None or isinstance(value, float) for value in values)


def _all_finite(value: Any) -> bool:
    """Whether every number in a value, however deep, is finite."""
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, Mapping):
        return all(map(_all_finite, value.values()))
    if isinstance(value, tuple):
        kinds = set(map(type, value))
        if kinds <= {float, int, type(None)}:  # thousands of samples need not be looked at one by one
            return all(map(math.isfinite, filter(None, value)))
        return _all_finite(tuple(chain.from_iterable(value))) if kinds == {tuple} else all(map(_all_finite, value))
    if is_dataclass(value):
        return all(_all_finite(getattr(value, entry.name)) for entry in fields(value))
    return True
