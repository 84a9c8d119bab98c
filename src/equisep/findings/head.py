"""Does the head lose what the features separate?

Nearest class means read the same features as the head. Under neural collapse both decide alike (NC4; Papyan, Han & Donoho
2020); where the head was trained on few or unequal samples they need not.

Rule: the mean over classes of nearest-center accuracy at the last layer is above that of the network by 3 points or more, and
by more than the noise of these samples (95 %, as of independent ones); on test data where there are any. `more` names the
classes with the largest differences.

`head-at-chance` instead, where the network is not above guessing among the classes that have training samples by more than the
noise of these samples: its head is then not trained, or counts the classes in another order than the labels do. Where classes
are rare it is `head-worse` all the same, unless less than half of the largest class is got: a head that names the largest class
throughout is trained. Sure where even the upper limit (95 %, Wilson) of its
accuracy is nearer to guessing than to nearest class means. On training data neither is said where D cannot be told
(`samples`): the mean of few samples lies near each of them, whatever the features. Of a network that memorizes (`memorizing`)
`head-worse` is not said: a new head would learn the same labels from features that already fit them; nor is it from test data
that hold less than half of the classes: what a head gains on these it may lose on the others.

Limits: of an unfinished network (`fit`) it is said after that, without advice of its own. Nearest class means are no proof of
the best head: a retrained one may do better or worse. An untrained head and another order of the classes are not told apart.
Tested by: `simulations/situations.py`, kind `head worse than features`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from statistics import fmean

from equisep.findings.facts import ClassRow, Facts, Z, difference_noise, finite, wilson
from equisep.findings.fit import unfitted
from equisep.findings.memorizing import memorizes
from equisep.findings.ranking import new_finding
from equisep.findings.samples import too_few
from equisep.results.finding import Finding
from equisep.results.wording import percent

BETTER = 0.03
HALF = 0.5
MOST_LOST = 0.1  # a class is named where nearest means get this much more of it


def head(facts: Facts) -> Iterator[Finding]:
    """`head-worse` or `head-at-chance`."""
    found = head_loss(facts)
    if found is None or facts.last is None:
        return
    network, nearest, rows = found
    what = "test" if facts.accuracy_test is not None else "training"
    if what == "training" and too_few(facts):
        return
    guess, noise = _guessing(facts, rows)
    if network <= guess + noise and not _names_the_largest(facts, rows):
        yield _at_chance(facts, found, guess, what)
        return
    if memorizes(facts) or facts.classes_tested < HALF:
        return
    mean = ", on average over classes," if rows else ""
    lost = sorted((row for row in rows if _loss(row) >= MOST_LOST), key=_loss, reverse=True)[:2]
    words = ", ".join(
        f"{facts.names[row.label]} ({percent(row.nearest)} against {percent(row.accuracy)} %)" for row in lost
    )
    yield new_finding(
        "head-worse",
        f"The head loses what the features separate: nearest class means at the last {facts.each} get "
        f"{percent(nearest)} % of the "
        f"{what} samples right{mean} and the network {percent(network)} %{f'; most of all {words}' if words else ''}.",
        rule="head",
        numbers={"network": network, "nearest": nearest, "n": facts.n_test or facts.n_train},
        next=None
        if unfitted(facts)
        else "retrain the head alone with every class as often, such as "
        "sklearn.linear_model.LogisticRegression(class_weight='balanced') on the last features, or decide by nearest class means",
        site=facts.last.name,
        classes=[row.label for row in lost],
    )


def head_loss(facts: Facts) -> tuple[float, float, tuple[ClassRow, ...]] | None:
    """Accuracy of the network and of nearest means at the last layer, where the latter is better beyond noise; else None."""
    if facts.last is None:
        return None
    rows = tuple(row for row in facts.class_rows if row.accuracy is not None and row.nearest is not None)
    if len(rows) == len(facts.class_rows) and rows:
        network, nearest = fmean(row.accuracy or 0 for row in rows), fmean(row.nearest or 0 for row in rows)
        variances = [(_spread(row.accuracy) + _spread(row.nearest)) / row.seen for row in rows]
        noise = Z * math.sqrt(sum(variances)) / len(rows)
    else:
        tested = facts.accuracy_test is not None
        one = facts.accuracy_test if tested else facts.accuracy_train
        two = finite(facts.last.ncc_test if tested else facts.last.ncc_train)
        if one is None or two is None:
            return None
        rows, network, nearest = (), one, two
        noise = difference_noise(network, nearest, facts.n_test if tested else facts.n_train)
    return (network, nearest, rows) if nearest - network >= max(BETTER, noise) else None


def _at_chance(facts: Facts, found: tuple[float, float, tuple[ClassRow, ...]], guess: float, what: str) -> Finding:
    network, nearest, rows = found
    n = facts.n_test if what == "test" else facts.n_train
    mean = ", on average over classes" if rows else ""
    return new_finding(
        "head-at-chance",
        f"The answers of the network have nothing to do with these labels: it gets {percent(network)} % of the {what} samples "
        f"right{mean}, guessing {percent(guess)} %, and nearest class means at its last {facts.each} {percent(nearest)} %. Its "
        "head is not trained, or numbers the classes in another order.",
        rule="head",
        confidence="sure" if wilson(network, n)[1] < (guess + nearest) / 2 else "likely",
        numbers={"network": network, "nearest": nearest, "guess": guess, "n": n},
        next="look whether the trained weights were loaded, then for which class the network takes the samples of each: "
        f"profile.confused_{'test' if what == 'test' else 'train'}",
        site=None if facts.last is None else facts.last.name,
    )


def _guessing(facts: Facts, rows: tuple[ClassRow, ...]) -> tuple[float, float]:
    """What guessing gets, on average over classes or else of all samples, and how far chance goes beyond it, at 95 %."""
    if rows:
        share = 1 / sum(count > 0 for count in facts.profile.counts)  # test data may hold fewer than it chooses among
        return share, Z * math.sqrt(share * (1 - share) * sum(1 / row.seen for row in rows)) / len(rows)
    tested = facts.accuracy_test is not None
    n = facts.n_test if tested else facts.n_train
    share = (facts.guess if tested else facts.guess_train) or 0.0
    return share, Z * math.sqrt(share * (1 - share) / n) if n else 0.0


def _names_the_largest(facts: Facts, rows: tuple[ClassRow, ...]) -> bool:
    """Whether, where classes are rare, half of the largest class or more is got, as far as that is known."""
    if not facts.rare_labels:
        return False
    largest = [row.accuracy or 0 for row in rows if row.count == max(facts.profile.counts)]
    return not largest or max(largest) >= HALF


def _spread(share: float | None) -> float:
    return (share or 0) * (1 - (share or 0))


def _loss(row: ClassRow) -> float:
    return (row.nearest or 0) - (row.accuracy or 0)
