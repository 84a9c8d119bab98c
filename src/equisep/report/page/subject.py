"""What one page shows of one profile: the profile, its name there, what is said of it, and which of its classes are drawn.

NaN and infinity do not exist on the page: Notes say where they were.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any

from equisep.findings.classes import lost_classes
from equisep.findings.facts import Facts
from equisep.report.formatting import class_labels, one_line, passed_words, shortened
from equisep.results import Finding, LawFit, Note, Profile, SiteReading

MOST_CLASSES = 50  # drawn one by one; of more the hardest
LONGEST_LABEL = 60


@dataclass(frozen=True)
class Subject:
    """A profile on the page; `number` is its position there, `label` its name, alone of its kind."""

    profile: Profile
    label: str
    number: int = 0

    @cached_property
    def facts(self) -> Facts:
        """The profile as the rules of findings read it."""
        return Facts(self.profile)

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """What is said of it."""
        return self.profile.findings

    @property
    def each(self) -> str:
        """What D is read after: `layer` or `block`."""
        return passed_words(self.profile).removesuffix("s")

    @cached_property
    def class_names(self) -> list[str]:
        """Every class by name or number."""
        names = class_labels(self.profile)
        return names if len(names) == self.profile.classes else [str(kind) for kind in range(self.profile.classes)]

    @property
    def last(self) -> SiteReading | None:
        """The last layer."""
        return self.profile.sites[-1] if self.profile.sites else None

    @cached_property
    def ranked_classes(self) -> list[int]:
        """Every class, the hardest first: by D at the last layer that has it, else by the accuracy of the network."""
        rows = [site.class_fuzziness for site in self.profile.sites if site.class_fuzziness is not None]
        if rows:
            return sorted(range(self.profile.classes), key=lambda kind: _descending(rows[-1][kind]))
        shares = self.profile.accuracy_class_test or self.profile.accuracy_class_train
        if shares is None:
            return list(range(self.profile.classes))
        return sorted(range(self.profile.classes), key=lambda kind: _ascending(shares[kind]))

    @cached_property
    def shown_classes(self) -> list[int]:
        """The classes that are drawn, the hardest first."""
        return self.ranked_classes[:MOST_CLASSES]

    @cached_property
    def lost(self) -> frozenset[int]:
        """The rare classes that the network loses."""
        return frozenset(row.label for row in lost_classes(self.facts))

    @cached_property
    def rare(self) -> frozenset[int]:
        """The classes of at most half the largest size."""
        return frozenset(row.label for row in self.facts.class_rows if row.rare)

    @cached_property
    def laws(self) -> dict[str, LawFit]:
        """The laws of D that the page draws: training and test data, and of the population behind them."""
        laws = self.profile.laws
        named = {
            "train": self.profile.law,
            "test": laws.get("test"),
            "corrected": laws.get("corrected"),
            "corrected_test": laws.get("corrected test"),
        }
        return {name: law for name, law in named.items() if law is not None and law.curve}

    @property
    def classes_left_out(self) -> int:
        """How many classes are not drawn."""
        return self.profile.classes - len(self.shown_classes)

    def site_words(self, site: SiteReading) -> str:
        """`layer 3 (blocks.2)`."""
        return f"{self.facts.at(site)} ({one_line(site.name)})"


def subjects_of(profiles: Sequence[Profile], names: Sequence[str] = ()) -> list[Subject]:
    """Profiles as the page shows them, each under a name of its own: that of its model, with its file where two have one."""
    models = [shortened(one_line(profile.model), LONGEST_LABEL) for profile in profiles]
    labels: list[str] = []
    for position, model in enumerate(models):
        label = model
        if models.count(model) > 1:
            beside = one_line(names[position]) if position < len(names) else str(position + 1)
            label = f"{model} ({shortened(beside, LONGEST_LABEL)})"
        while label in labels:
            label += "′"
        labels.append(label)
    return [
        Subject(finite_profile(profile), label, number)
        for number, (profile, label) in enumerate(zip(profiles, labels, strict=True))
    ]


def _descending(value: float | None) -> tuple[bool, float]:
    return value is None, -(value or 0.0)


def _ascending(value: float | None) -> tuple[bool, float]:
    return value is None, value or 0.0


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
