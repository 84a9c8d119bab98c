"""Has the network fitted its training data at all?

The papers speak of networks in the terminal phase of training, from the epoch on at which the training error is zero (Papyan,
Han & Donoho 2020); He & Su (2023) show that the law is not there before (their Fig. 2: epochs 0 to 600). What a profile says of
depth, collapse and law of a network that misses its own training samples need not hold once it has fitted them.

Rule: the accuracy on training data, of the network or of nearest class means at its last layer, whichever is higher, is below
90 %, and so is its upper limit at 95 % (Wilson). Rare classes are left out where classes are known one by one: their loss is a
finding of its own (`classes`). What is judged is what is printed.
Of a sample of more (`whole=False`) the network may have been trained on the rest: that is said too, and of so few samples that
D cannot be told (`samples`) nothing is.

Limits: a profile does not tell why. Too little training, too small a network, labels that contradict each
other and inputs that are prepared in another way than those it was trained on look alike.
Tested by: `simulations/situations.py`, kind `undertrained`, each network trained on, by which it must gain.
"""

from __future__ import annotations

from collections.abc import Iterator

from equisep.findings.facts import Facts, wilson
from equisep.findings.ranking import new_finding
from equisep.findings.samples import too_few
from equisep.results.finding import Finding
from equisep.results.wording import percent

FITTED = 0.9
_OTHERS = ", of the classes that are not rare"


def unfitted(facts: Facts) -> bool:
    """Whether the network has not fitted its training data, for sure."""
    return facts.fit is not None and wilson(facts.fit.share, facts.fit.n)[1] < FITTED


def fit(facts: Facts) -> Iterator[Finding]:
    """`unfitted`."""
    part = facts.profile.whole is False
    if facts.fit is None or not unfitted(facts) or (part and too_few(facts)):
        return
    network, nearest = facts.fit_network, facts.fit_nearest
    if network is None:
        got = f"Nearest class means at the last {facts.each} get {percent(facts.fit.share)} % of the training samples right"
        got += f"{_OTHERS if facts.fit.kept else ''}"
    else:
        means = ""
        if nearest is not None:
            of = "" if nearest.kept == network.kept else _OTHERS if nearest.kept else ", of all classes"
            means = f" (nearest class means at its last {facts.each}: {percent(nearest.share)} %{of})"
        got = (
            f"The network gets {percent(network.share)} % of the samples given as its training data right"
            f"{_OTHERS if network.kept else ''}{means}"
        )
    causes = (
        "too little training, too small a network, labels that contradict each other, or inputs prepared differently"
    )
    why = (
        f"it was trained on others, or has not fitted these ({causes}). What follows may describe an unfinished network"
        if part
        else f"it has not fitted its data ({causes}). What follows describes an unfinished network"
    )
    yield new_finding(
        "unfitted",
        f"{got}: {why}.",
        rule="fit",
        numbers={
            "accuracy_train": facts.accuracy_train,
            "ncc_train": None if facts.last is None else facts.last.ncc_train,
            "fit": facts.fit.share,
        },
        next="tracker = equisep.Tracker(model, train, test, history='run.jsonl')  # train on: tracker.epoch(n) after each epoch, "
        "then equisep history run.jsonl",
    )
