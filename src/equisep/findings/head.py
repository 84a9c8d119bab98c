"""Does the head lose what the features separate?

Nearest class means read the same features as the head. Under neural collapse both decide alike (NC4; Papyan, Han & Donoho
2020); where the head was trained on few or unequal samples they need not.

Rule: the mean over classes of nearest-center accuracy at the last layer is above that of the network by 3 points or more, and
by more than the noise of these samples (95 %, as of independent ones); on test data where there are any. `more` names the
classes with the largest differences.

Limits: of an unfinished network (`fit`) it is said after that. Nearest class means are no proof of the best head: a
retrained one may do better or worse.
Tested by: `simulations/situations.py`, kind `head worse than features`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from statistics import fmean

from equisep.findings.facts import ClassRow, Facts, Z, difference_noise, known
from equisep.findings.ranking import made
from equisep.results.finding import Finding
from equisep.results.wording import percent

BETTER = 0.03
MOST_LOST = 0.1  # a class is named where nearest means get this much more of it


def head(facts: Facts) -> Iterator[Finding]:
    """`head-worse`."""
    found = head_loss(facts)
    if found is None or facts.last is None:
        return
    network, nearest, rows = found
    what = "test" if facts.accuracy_test is not None else "training"
    mean = ", on average over classes," if rows else ""
    lost = sorted((row for row in rows if _loss(row) >= MOST_LOST), key=_loss, reverse=True)[:2]
    words = ", ".join(
        f"{facts.names[row.label]} ({percent(row.nearest)} against {percent(row.accuracy)} %)" for row in lost
    )
    yield made(
        "head-worse",
        f"The head loses what the features separate: nearest class means at the last {facts.each} get "
        f"{percent(nearest)} % of the "
        f"{what} samples right{mean} and the network {percent(network)} %{f'; most of all {words}' if words else ''}.",
        rule="head",
        numbers={"network": network, "nearest": nearest, "n": facts.n_test or facts.n_train},
        next="retrain the head alone with every class as often, such as sklearn.linear_model.LogisticRegression("
        "class_weight='balanced') on the last features, or decide by nearest class means",
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
        two = known(facts.last.ncc_test if tested else facts.last.ncc_train)
        if one is None or two is None:
            return None
        rows, network, nearest = (), one, two
        noise = difference_noise(network, nearest, facts.n_test if tested else facts.n_train)
    return (network, nearest, rows) if nearest - network >= max(BETTER, noise) else None


def _spread(share: float | None) -> float:
    return (share or 0) * (1 - (share or 0))


def _loss(row: ClassRow) -> float:
    return (row.nearest or 0) - (row.accuracy or 0)
