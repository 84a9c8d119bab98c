"""What one page shows of one profile: the profile, its name there, what is said of it, and which of its classes are drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from equisep.findings.classes import lost_classes
from equisep.findings.facts import Facts
from equisep.report.formatting import class_labels, one_line, passed_words, shortened
from equisep.report.page.finite import finite_profile
from equisep.results import Finding, LawFit, Profile, SiteReading

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
