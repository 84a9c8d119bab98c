"""Rare classes: how near to each other the network puts them, beside what the Layer-Peeled Model predicts for such sizes.

Fang, He, Long & Su (2021): with classes more unequal than a threshold the minority classifiers (and features) of the optimum
coincide: cosine 1, "minority collapse".

Rule: where two or more classes are rare (half of the largest or less) and cosines between class means were measured, the mean
cosine between rare classes at the last layer, and between the others, is given beside the prediction from the class sizes alone,
at the products of energies 1 and 20, about those of the paper's figures; with them the network's mean score margins (own class
less the largest other, on test data where there are any), of the rare classes and of the others. A network's own energies are
not in a profile: those tried were far above (docs/advice.md), and there the model loses nobody. No recommendation is drawn from
it: `classes` says who is lost.

Limits: the model has no bias, no depth and no data; many different sizes are solved only up to 30 classes.
Tested by: `tests/findings/test_findings_rules.py` for the numbers; as a prediction of lost classes it is not supported here
until an experiment of its own says so (docs/findings.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from statistics import fmean

from equisep.errors import EquisepError
from equisep.findings.facts import Facts, finite
from equisep.findings.ranking import new_finding
from equisep.results import Profile
from equisep.results.finding import Finding

ENERGIES = (1.0, 20.0)
MOST_CLASSES = 30


def rare(facts: Facts) -> Iterator[Finding]:
    """`rare-geometry`."""
    cosines = None if facts.last is None else facts.last.cosines
    small = [row.label for row in facts.class_rows if row.rare]
    if cosines is None or cosines.rows is None or len(small) < 2 or facts.last is None:
        return
    others = [row.label for row in facts.class_rows if not row.rare]
    measured, beside = (_mean_cosine(cosines.rows, labels) for labels in (small, others))
    if measured is None:
        return
    predicted = facts.profile.peeled_cosines
    if predicted is None:  # a profile of an earlier version
        predicted = _solved(facts.profile.counts, tuple(small))
    words = ""
    if predicted:
        low, high = min(predicted), max(predicted)
        span = f"{low:.2f}" if high - low < 0.01 else f"{low:.2f} to {high:.2f}"
        energies = f"E_W·E_H from {ENERGIES[0]:g} to {ENERGIES[-1]:g}"
        words = f"; from the class sizes alone the Layer-Peeled Model predicts {span} ({energies})"
    margins = _margins(facts, small, others)
    if margins is not None:
        verbs = ["leads" if each >= 0 else "trails" for each in (margins.rare, margins.others)]
        again = "" if verbs[0] == verbs[1] else f"and {verbs[1]} it "
        words += (
            f". On {margins.where} samples the score of their own class {verbs[0]} the largest other by "
            f"{abs(margins.rare):.2g} on average, {again}by {abs(margins.others):.2g} for the others"
        )
    compared = "" if beside is None else f", {beside:.2f} between those of the others"
    yield new_finding(
        "rare-geometry",
        f"The centered means of the {len(small)} rare classes at the last {facts.each} stand at a cosine of "
        f"{measured:.2f} to each "
        f"other{compared} (1: one and the same direction, {-1 / (facts.profile.classes - 1):.2f}: all classes told apart "
        f"alike){words}.",
        rule="rare",
        numbers={"cosine": measured, "cosine_others": beside,
                 **({} if margins is None else {"margin": margins.rare, "margin_others": margins.others}),
                 **{f"predicted at {e:g}": c for e, c in zip(ENERGIES, predicted, strict=False)}},
        site=facts.last.name,
        classes=small,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Margins:
    """Mean score margins, each class counting alike, on `where` samples."""

    rare: float
    others: float
    where: str


def _margins(facts: Facts, small: list[int], others: list[int]) -> Margins | None:
    layer = facts.profile.classifier
    if layer is None or not others:
        return None
    values, where = (layer.margins_test, "test") if layer.margins_test is not None else (layer.margins, "training")
    if values is None:
        return None
    means = [[value for k in group if (value := finite(values[k])) is not None] for group in (small, others)]
    return Margins(fmean(means[0]), fmean(means[1]), where) if all(means) else None


def _mean_cosine(rows: tuple[tuple[float | None, ...], ...], labels: list[int]) -> float | None:
    """Over the pairs of these classes; `rows[i]` are the cosines of class i + 1 with those before it."""
    chosen = set(labels)
    values = [
        value
        for i, row in enumerate(rows)
        for j, each in enumerate(row)
        if i + 1 in chosen and j in chosen and (value := finite(each)) is not None
    ]
    return fmean(values) if values else None


def predicted_cosines(profile: Profile) -> tuple[float, ...] | None:
    """What the Layer-Peeled Model predicts for the rare classes of a profile, to be saved with it; None where none are rare.

    The mean cosine between their centered means at the optimum, per product of energies: solved once, when the profile is made,
    so that explaining it needs neither a solver nor numpy. Empty where there is no prediction.
    """
    facts = Facts(profile)
    small = tuple(row.label for row in facts.class_rows if row.rare)
    asked = facts.last is not None and facts.last.cosines is not None and facts.last.cosines.rows is not None
    return _solved(profile.counts, small) if asked and len(small) > 1 else None


@cache
def _solved(sizes: tuple[int, ...], small: tuple[int, ...]) -> tuple[float, ...]:
    if len(sizes) > MOST_CLASSES or not all(sizes):
        return ()
    import numpy as np

    from equisep.peeled import solve
    from equisep.peeled.classes import measured_cosines

    chosen = np.isin(np.arange(len(sizes)), small)
    values = []
    for energy in ENERGIES:
        try:
            means = solve(sizes=list(sizes), feature_energy=energy, weight_energy=1.0).H
        except EquisepError:  # energies at which no certificate can be had
            return ()
        value = finite(measured_cosines(means - means.mean(axis=0), chosen).minority)
        if value is None:
            return ()
        values.append(value)
    return tuple(values)
