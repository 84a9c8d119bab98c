"""Does the network learn something that holds on test data, or its training samples by heart?

Galanti & Galanti (2022): "the degree of separability in the intermediate layers is related to generalization"; they raise the
share of random labels (their Fig. 3), which networks fit (Zhang et al. 2017). He & Su (2023, Fig. 9) read D on test data too.

Rules, all of networks that have fitted their training data: their training accuracy is above the share of the largest class by
30 points, or by 60 % of what is left above it where that is less, so that naming the largest class throughout is no fit.
`labels-unrelated`  what test accuracy has beyond guessing is below 7 % of what training accuracy has beyond that share, give or
                    take the noise of the test samples (95 %); and the test samples can tell: even by the upper limit (95 %,
                    Wilson) of test accuracy it is a quarter of it at most. Guessing is answers that do not depend on the
                    inputs and come in the class shares of the training data.
`memorizing`        D falls by a factor of 1.05 on training data, training accuracy is 20 points or more above test accuracy (both
                    at the class shares of the training data), and D does not fall on test data from the first layer to the
                    last, or nearest class means lose 5 points or more on test data between their best layer and the last.
                    Where rare classes are lost (`classes`) all this is asked of the other classes: too few samples of a class
                    look like labels learned by heart. D is then not asked: one class whose mean lies on another's can raise it
                    alone. Nor is it where class shares of training and test data differ so much that their D do not compare
                    (the Note `class-mix`).
`test-gain`         else, where D falls by a factor of 1.05 on training data, ln D on test data by less than half of that, and the
                    two compare: how far it falls.
The last two are said from 20 test samples on, of fewer one being more than the 5 points.

Limits: why a network memorizes, wrong labels or too few samples, is not told apart, nor is a test set of another kind.
Tested by: `simulations/situations.py`, kinds `random labels` and `memorizing` (labels replaced at random), against eight others.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from equisep.findings.classes import lost_classes
from equisep.findings.facts import Facts, Z, finite, wilson
from equisep.findings.ranking import new_finding
from equisep.results import SiteReading
from equisep.results.finding import Finding
from equisep.results.wording import number, percent

ABOVE_GUESSING = 0.3
ABOVE_SHARE = 0.6  # of what naming the largest class leaves: 30 points of two equal classes
CARRIED_OVER = 0.07
AT_MOST = 0.25
GAP = 0.2
FOLLOWS_LITTLE = 0.5
DECLINE = 0.05
FALL = math.log(1.05)  # of ln D on training data
NEAR_LEAST = 1.1  # test D within a tenth of its least has nothing more to gain


def labels_unrelated(facts: Facts) -> bool:
    """Whether what was learned does not carry over to test data at all."""
    train, test, guess = facts.accuracy_train, facts.accuracy_test, facts.guess
    if train is None or test is None or guess is None or not _fitted(facts):
        return False
    learned = train - (facts.guess_train or 0)
    noise = Z * math.sqrt(guess * (1 - guess) / facts.n_test)
    told = wilson(test, facts.n_test)[1] - guess <= AT_MOST * learned  # few samples would not show what carries over
    return told and test - guess <= CARRIED_OVER * learned + noise


def memorizing(facts: Facts) -> Iterator[Finding]:
    """`labels-unrelated`, `memorizing` or `test-gain`."""
    if labels_unrelated(facts):
        yield _unrelated(facts)
        return
    falls = _falls(facts)
    if falls is None or facts.n_test * DECLINE < 1:
        return
    fall, fall_test = falls
    if memorizes(facts):
        yield _memorizing(facts, fall_test)
    elif _fitted(facts) and facts.curves_compare and fall >= FALL and fall_test < FOLLOWS_LITTLE * fall:
        yield from _test_gain(facts, fall, fall_test)


def memorizes(facts: Facts) -> bool:
    """Whether training data are learned in a way that test data do not follow, in the classes that are not lost."""
    falls, lost = _falls(facts), _lost(facts)
    if falls is None or facts.n_test * DECLINE < 1 or not _fitted(facts) or falls[0] < FALL:
        return False
    gap = facts.gap_without(lost) if lost else facts.gap
    if gap is None or gap < GAP:
        return False
    return _rises(facts, falls[1], lost) or _peak(facts, lost) is not None


def _rises(facts: Facts, fall_test: float, lost: frozenset[int]) -> bool:
    """Whether D rises on test data, where that can be held against training data."""
    return fall_test <= 0 and not lost and facts.curves_compare


def _lost(facts: Facts) -> frozenset[int]:
    """The classes that are lost, which say nothing of the others' labels."""
    return frozenset(row.label for row in lost_classes(facts))


def _fitted(facts: Facts) -> bool:
    train, guess = facts.accuracy_train, facts.guess_train or 0.0
    if train is None or facts.accuracy_test is None:
        return False
    # of one class alone nothing is left above it, and all are right
    return train > guess and train - guess >= min(ABOVE_GUESSING, ABOVE_SHARE * (1 - guess))


def _unrelated(facts: Facts) -> Finding:
    train, test, guess = facts.accuracy_train, facts.accuracy_test, facts.guess
    return new_finding(
        "labels-unrelated",
        f"The network gets {percent(train)} % of its training samples right, but {percent(test)} % of {facts.n_test:,} test "
        f"samples, where guessing gets {percent(guess)} %: it knows its training labels by heart, and nothing of that holds on "
        "test data, as when labels do not belong to their inputs.",
        rule="memorizing",
        numbers={"accuracy_train": train, "accuracy_test": test, "guess": guess, "n_test": facts.n_test},
        next="look at a few inputs beside their labels (shuffled apart? shifted by one?), then "
        + facts.measured_again(arguments="test"),
    )


def _memorizing(facts: Facts, fall_test: float) -> Finding:
    profile, lost = facts.profile, _lost(facts)
    first, last, peak = facts.sites[profile.begin()], facts.sites[-1], _peak(facts, lost)
    train, test, n, left = facts.accuracy_train, facts.accuracy_test, facts.n_test, ""
    if lost:
        train = facts.mean_without(lost, profile.accuracy_class_train, profile.counts)
        test = facts.mean_without(lost, profile.accuracy_class_test, profile.counts_test)
        n = sum(count for k, count in enumerate(profile.counts_test or ()) if k not in lost)
        left = f", the lost {'class' if len(lost) == 1 else 'classes'} left out"
    parts = [
        f"The network memorizes: {percent(train)} % of its training samples are right and {percent(test)} % of {n:,} test "
        f"samples{left}"
    ]
    if _rises(facts, fall_test, lost):
        parts.append(
            f"D falls from {number(first.fuzziness, 3)} to {number(last.fuzziness, 3)} on training data and rises from "
            f"{number(first.fuzziness_test, 3)} to {number(last.fuzziness_test, 3)} on test data"
        )
    if peak is not None:
        parts.append(
            f"nearest class means get most of the test samples at {facts.at(peak.site)} ({percent(peak.best)} %) and "
            f"{percent(peak.last)} % at the last {facts.each}"
        )
    return new_finding(
        "memorizing",
        "; ".join(parts) + ".",
        rule="memorizing",
        numbers={
            "accuracy_train": train, "accuracy_test": test, "gap": facts.gap_without(lost) if lost else facts.gap,
            "fuzziness_first": first.fuzziness, "fuzziness_last": last.fuzziness,
            "fuzziness_test_first": first.fuzziness_test, "fuzziness_test_last": last.fuzziness_test,
            "best": None if peak is None else peak.site.index, "ncc_test_best": None if peak is None else peak.best,
            "ncc_test_last": _nearest_on_test(facts, last, lost), "left_out": len(lost),
        },
        next="tracker = equisep.Tracker(model, train, test, history='run.jsonl')  # tracker.epoch(n) after each epoch: when do "
        "test data stop gaining?",
        site=None if peak is None else peak.site.name,
    )  # fmt: skip


def _test_gain(facts: Facts, fall: float, fall_test: float) -> Iterator[Finding]:
    """How much of the fall of D test data see, and where it ends."""
    values = [(site, finite(site.fuzziness_test)) for site in facts.sites]
    least = min(value for _, value in values if value is not None)
    end = next(site for site, value in values if value is not None and value <= NEAR_LEAST * least)
    first, last = facts.sites[facts.profile.begin()], facts.sites[-1]
    where = f", and on test data is within a tenth of its least from {facts.at(end)} on" if end.index < last.index and _stays(
        facts, end, least
    ) else ""  # fmt: skip
    how, than = ("falls less", "than") if fall_test > 0 else ("does not fall", "as it does")
    yield new_finding(
        "test-gain",
        f"D {how} on test data, from {number(first.fuzziness_test, 3)} to {number(last.fuzziness_test, 3)}, {than} on training "
        f"data, from {number(first.fuzziness, 3)} to {number(last.fuzziness, 3)}{where}; accuracy is "
        f"{percent(facts.accuracy_test)} % and {percent(facts.accuracy_train)} %.",
        rule="memorizing",
        numbers={
            "fall_train": fall, "fall_test": fall_test, "fuzziness_first": first.fuzziness, "fuzziness_last": last.fuzziness,
            "fuzziness_test_first": first.fuzziness_test, "fuzziness_test_last": last.fuzziness_test,
            "accuracy_train": facts.accuracy_train, "accuracy_test": facts.accuracy_test, "end": end.index if where else None,
        },
        site=end.name if where else None,
    )  # fmt: skip


def _stays(facts: Facts, end: SiteReading, least: float) -> bool:
    """Whether test D stays near its least from a layer on."""
    after = [finite(site.fuzziness_test) for site in facts.sites if site.index >= end.index]
    return all(value is not None and value <= NEAR_LEAST * least for value in after)


def _falls(facts: Facts) -> tuple[float, float] | None:
    """How far ln D falls from the first layer that has D to the last, on training and on test data."""
    if not facts.sites:
        return None
    begin = facts.profile.begin()
    values = [finite(getattr(facts.sites[i], name)) for name in ("fuzziness", "fuzziness_test") for i in (begin, -1)]
    if any(value is None or value <= 0 for value in values):
        return None
    logs = [math.log(value) for value in values if value is not None]
    return logs[0] - logs[1], logs[2] - logs[3]


@dataclass(frozen=True)
class _Peak:
    """The layer whose nearest class means get most of the test samples, what they get there, and what at the last layer."""

    site: SiteReading
    best: float
    last: float


def _peak(facts: Facts, lost: frozenset[int]) -> _Peak | None:
    """Where nearest class means do best on test data, lost classes left out; None unless the last layer gets 5 points less."""
    shares = {site.index: (site, _nearest_on_test(facts, site, lost)) for site in facts.sites}
    known = [(share, site) for site, share in shares.values() if share is not None]
    last = None if facts.last is None else shares[facts.last.index][1]
    if not known or last is None:
        return None
    best, site = max(known, key=lambda pair: pair[0])
    return _Peak(site, best, last) if best - last >= DECLINE else None


def _nearest_on_test(facts: Facts, site: SiteReading, lost: frozenset[int]) -> float | None:
    """The share of test samples, of other classes than the lost ones, that are nearest to their own class mean."""
    if not lost:
        return finite(site.ncc_test)
    return facts.mean_without(lost, site.ncc_class_test, facts.profile.counts_test)
