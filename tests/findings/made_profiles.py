"""Profiles made by hand for the rules of findings: a good network, from which each test changes what its rule is about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from equisep.law import fit_law
from equisep.results import ClassCosines, Profile, SiteReading

CLASSES = 10


def network(
    curve: Sequence[float] = (45.0, 18.0, 7.2, 2.9),
    *,
    test: Sequence[float] | None = (37.0, 22.0, 13.0, 8.0),
    ncc_train: Sequence[float] = (0.65, 0.8, 0.95, 1.0),
    ncc_test: Sequence[float] | None = (0.65, 0.74, 0.78, 0.81),
    accuracy: tuple[float | None, float | None] = (1.0, 0.81),
    counts: Sequence[int] = (100,) * CLASSES,
    classes: Sequence[float] | None = None,
    nearest: Sequence[float] | None = None,
    **more: Any,
) -> Profile:
    """Four points on a line, all layers at work, 2,000 test samples; `classes` and `nearest` are test accuracies per class."""
    tested = ncc_test is not None
    sites = tuple(
        SiteReading(
            index=step,
            name="input" if step == 0 else f"blocks.{step - 1}",
            dim=100,
            fuzziness=value,
            fuzziness_test=test[step] if test is not None and tested else None,
            null=800.0,
            nc1=value / CLASSES,
            ncc_train=ncc_train[step],
            ncc_test=ncc_test[step] if ncc_test is not None else None,
        )
        for step, value in enumerate(curve)
    )
    if nearest is not None:
        sites = (*sites[:-1], replace(sites[-1], ncc_class_test=tuple(nearest)))
    return Profile(
        model="Fnn",
        classes=len(counts),
        counts=tuple(counts),
        counts_test=(200,) * len(counts) if tested else None,
        sites=sites,
        law=fit_law(curve),
        accuracy_train=accuracy[0],
        accuracy_test=accuracy[1] if tested else None,
        accuracy_class_test=None if classes is None else tuple(classes),
        reading="eval",
        **more,
    )


def codes(profile: Profile) -> list[str]:
    return [finding.code for finding in profile.findings]


def with_rare_classes() -> Profile:
    """Five classes of 500 samples, whose means keep apart, and five of 5, whose means nearly coincide."""
    counts = (500,) * 5 + (5,) * 5
    profile = network(counts=counts, classes=(0.9,) * 10, nearest=(0.9,) * 10)
    rows = tuple(tuple(0.9 if i + 1 >= 5 and j >= 5 else -0.2 for j in range(i + 1)) for i in range(9))
    last = replace(profile.sites[-1], cosines=ClassCosines(mean=0.0, rows=rows))
    return replace(profile, sites=(*profile.sites[:-1], last))
