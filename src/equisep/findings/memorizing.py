"""Does the network learn something that holds on test data, or its training samples by heart?

Galanti & Galanti (2022): "the degree of separability in the intermediate layers is related to generalization"; they raise the
share of random labels (their Fig. 3), which networks fit (Zhang et al. 2017). He & Su (2023, Fig. 9) read D on test data too.

Rules, all of networks that have fitted their training data (30 points above guessing):
`labels-unrelated`  what test accuracy has beyond guessing the most frequent class is below 7 % of what training accuracy has
                    beyond it, give or take the noise of the test samples (95 %).
`memorizing`        training accuracy is 20 points or more above test accuracy (both at the class shares of the training data),
                    and
                    D does not fall on test data from the first layer to the last, or nearest class means lose 5
                    points or more on test data between their best layer and the last. Not said where rare classes are lost
                    (`classes`): too few samples of a class and labels learned by heart look alike there.
`test-gain`         else, where ln D falls on test data by less than half of its fall on training data: how far it falls.

Limits: why a network memorizes, wrong labels or too few samples, is not told apart, nor is a test set of another kind.
Tested by: `simulations/situations.py`, kinds `random labels` and `memorizing` (labels replaced at random), against eight others.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from equisep.findings.classes import lost_classes
from equisep.findings.facts import Facts, Z, finite
from equisep.findings.ranking import new_finding
from equisep.results import SiteReading
from equisep.results.finding import Finding
from equisep.results.wording import number, percent

ABOVE_GUESSING = 0.3
CARRIED_OVER = 0.07
GAP = 0.2
FOLLOWS_LITTLE = 0.5
DECLINE = 0.05
NEAR_LEAST = 1.1  # test D within a tenth of its least has nothing more to gain


def labels_unrelated(facts: Facts) -> bool:
    """Whether what was learned does not carry over to test data at all."""
    train, test, guess = facts.accuracy_train, facts.accuracy_test, facts.guess
    if train is None or test is None or guess is None or train - guess < ABOVE_GUESSING:
        return False
    noise = Z * math.sqrt(guess * (1 - guess) / facts.n_test)
    return test - guess <= CARRIED_OVER * (train - guess) + noise


def memorizing(facts: Facts) -> Iterator[Finding]:
    """`labels-unrelated`, `memorizing` or `test-gain`."""
    if labels_unrelated(facts):
        yield _unrelated(facts)
        return
    falls = _falls(facts)
    if falls is None:
        return
    fall, fall_test = falls
    if memorizes(facts):
        if not lost_classes(facts):
            yield _memorizing(facts, fall_test <= 0, _better_on_test(facts))
    elif _fitted(facts) and fall > 0 and fall_test < FOLLOWS_LITTLE * fall:
        yield from _test_gain(facts, fall, fall_test)


def memorizes(facts: Facts) -> bool:
    """Whether training data are learned in a way that test data do not follow."""
    falls = _falls(facts)
    if falls is None or not _fitted(facts) or falls[0] <= 0 or facts.gap is None or facts.gap < GAP:
        return False
    return falls[1] <= 0 or _better_on_test(facts) is not None


def _fitted(facts: Facts) -> bool:
    train = facts.accuracy_train
    return train is not None and facts.accuracy_test is not None and train - (facts.guess or 0) >= ABOVE_GUESSING


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


def _memorizing(facts: Facts, flat: bool, best: SiteReading | None) -> Finding:
    first, last = facts.sites[facts.profile.begin()], facts.sites[-1]
    parts = [
        f"The network memorizes: {percent(facts.accuracy_train)} % of its training samples are right and "
        f"{percent(facts.accuracy_test)} % of {facts.n_test:,} test samples"
    ]
    if flat:
        parts.append(
            f"D falls from {number(first.fuzziness, 3)} to {number(last.fuzziness, 3)} on training data and rises from "
            f"{number(first.fuzziness_test, 3)} to {number(last.fuzziness_test, 3)} on test data"
        )
    if best is not None:
        parts.append(
            f"nearest class means get most of the test samples at {facts.at(best)} ({percent(best.ncc_test)} %) and "
            f"{percent(last.ncc_test)} % at the last {facts.each}"
        )
    return new_finding(
        "memorizing",
        "; ".join(parts) + ".",
        rule="memorizing",
        numbers={
            "accuracy_train": facts.accuracy_train, "accuracy_test": facts.accuracy_test, "gap": facts.gap,
            "fuzziness_first": first.fuzziness, "fuzziness_last": last.fuzziness,
            "fuzziness_test_first": first.fuzziness_test, "fuzziness_test_last": last.fuzziness_test,
            "best": None if best is None else best.index, "ncc_test_best": None if best is None else best.ncc_test,
            "ncc_test_last": last.ncc_test,
        },
        next="tracker = equisep.Tracker(model, train, test, history='run.jsonl')  # tracker.epoch(n) "
        "after each epoch: when do test data stop gaining?",
        site=None if best is None else best.name,
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


def _better_on_test(facts: Facts) -> SiteReading | None:
    """The layer whose nearest class means get most of the test samples, where the last one gets 5 points less; else None."""
    tested = [site for site in facts.sites if finite(site.ncc_test) is not None]
    last = None if facts.last is None else finite(facts.last.ncc_test)
    if not tested or last is None:
        return None
    best = max(tested, key=lambda site: site.ncc_test or 0.0)
    return best if (best.ncc_test or 0.0) - last >= DECLINE else None
