"""Class by class: which rare classes are lost, which class is hardest, and for whom it is taken.

Fang, He, Long & Su (2021): with unequal classes there is "Minority Collapse, which fundamentally limits the performance of deep
learning models on the minority classes"; their classifiers become one and the same.

Rules. A class is rare at half of the largest class or less. `lost-classes`: rare classes of which the network gets half of the
median of the other classes or less (on test data where there are any), and of which nearest class means at the last layer do
not get more either: else the head loses them (`head`). Sure where the upper limit at 95 % (Wilson) of every class named stays
below. `hardest-class`: else, the class with the lowest accuracy, where it is 10 points or more below the median, of classes with
10 samples or more, of fewer one being more than that. The median is that of the classes that are not rare, and says so where
there are rare ones. Sure where its upper limit lies below the lower one of the median, of as
many samples.

Limits: a rare class may be hard for another reason than its size: `sure` says that it is lost, not why.
Tested by: `simulations/situations.py`, kind `collapsed minority`.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from equisep.findings.facts import ClassRow, Facts, finite, wilson
from equisep.findings.ranking import new_finding
from equisep.results import ClassPair
from equisep.results.finding import Finding
from equisep.results.wording import number, percent, plural

LOST = 0.5
HARD = 0.1


def lost_classes(facts: Facts) -> list[ClassRow]:
    """The rare classes that neither the network nor its features tell, the worst first."""
    usual = facts.usual_accuracy
    if usual is None:
        return []
    rows = [
        row
        for row in facts.class_rows
        if row.rare and row.accuracy is not None and row.accuracy <= LOST * usual and (row.nearest or 0) <= LOST * usual
    ]
    return sorted(rows, key=lambda row: row.accuracy or 0)


def classes(facts: Facts) -> Iterator[Finding]:
    """`lost-classes` or `hardest-class`."""
    lost = lost_classes(facts)
    if lost:
        yield _lost(facts, lost)
    else:
        yield from _hardest(facts)


def _lost(facts: Facts, lost: list[ClassRow]) -> Finding:
    usual = facts.usual_accuracy or 0.0
    what = "test" if facts.accuracy_test is not None else "training"
    one = len(lost) == 1
    sizes = sorted(row.count for row in lost)
    span = f"{sizes[0]:,}" if sizes[0] == sizes[-1] else f"{sizes[0]:,} to {sizes[-1]:,}"
    shares = [f"{percent(row.accuracy)}" for row in lost[:4]] + (["…"] if len(lost) > 4 else [])
    largest = max(facts.profile.counts)
    nearest = [row.nearest for row in lost if row.nearest is not None]
    means = f", and nearest class means {percent(max(nearest))} % at most" if nearest else ""
    sure = all(wilson(row.accuracy or 0, row.seen)[1] < usual for row in lost)
    whole = len(lost) == sum(row.rare for row in facts.class_rows)  # no rare class is left among the others
    return new_finding(
        "lost-classes",
        f"{'A rare class is' if one else f'{len(lost)} rare classes are'} lost: of {facts.class_words(lost)} ({span} training "
        f"{'sample' if sizes[-1] == 1 else 'samples'} {'' if one else 'each '}against {largest:,} of the largest class) the "
        f"network gets {', '.join(shares)} % of the {what} samples right{means}, of the "
        f"{'other classes' if whole else 'classes that are not rare'} {percent(usual)} % in the median.",
        rule="classes",
        confidence="sure" if sure else "likely",
        numbers={
            "usual": usual,
            "largest": largest,
            **{f"accuracy of class {row.label}": row.accuracy for row in lost},
        },
        next="equisep rare --sizes " + ",".join(map(str, facts.profile.counts))
        if len(facts.profile.counts) <= 20
        else "equisep rare --help",
        classes=[row.label for row in lost],
    )


def _hardest(facts: Facts) -> Iterator[Finding]:
    usual = facts.usual_accuracy
    rows = [row for row in facts.class_rows if row.accuracy is not None and row.seen * HARD >= 1]
    if usual is None or not rows:
        return
    worst = min(rows, key=lambda row: row.accuracy or 0)
    if usual - (worst.accuracy or 0) < HARD:
        return
    what = "test" if facts.accuracy_test is not None else "training"
    name = facts.names[worst.label]
    fuzzy = None if facts.last is None or facts.last.class_fuzziness is None else facts.last.class_fuzziness
    own = finite(fuzzy[worst.label]) if fuzzy is not None and worst.label < len(fuzzy) else None
    others = [value for value in map(finite, fuzzy or ()) if value is not None]
    beside = (
        "" if own is None or not others
        else f"; its D at the last {facts.each} is {number(own, 2)}, {number(median(others), 2)} in the median of all"
    )  # fmt: skip
    pair = _taken_for(facts, worst.label)
    taken = (
        "" if pair is None
        else f"; nearest class means take {pair.value:.0f} of its {worst.seen:,} {what} samples for {facts.names[pair.second]}"
    )  # fmt: skip
    sure = wilson(worst.accuracy or 0, worst.seen)[1] < wilson(usual, worst.seen)[0]
    which = " that are not rare" if any(row.rare for row in facts.class_rows) else ""
    yield new_finding(
        "hardest-class",
        f"The hardest class is {name} ({plural(worst.count, 'training sample')}): {percent(worst.accuracy)} % of its {what} "
        f"samples are right, {percent(usual)} % in the median of the classes{which}{taken}{beside}.",
        rule="classes",
        confidence="sure" if sure else "likely",
        numbers={
            "accuracy": worst.accuracy, "usual": usual, "count": worst.count, "class_fuzziness": own,
            "taken": None if pair is None else pair.value, "taken_for": None if pair is None else pair.second,
        },
        classes=[worst.label, *([] if pair is None else [pair.second])],
    )  # fmt: skip


def _taken_for(facts: Facts, label: int) -> ClassPair | None:
    """For which class it is most often taken by nearest means at the last layer, where that was measured."""
    if facts.last is None:
        return None
    pairs = facts.last.confused_test if facts.accuracy_test is not None else facts.last.confused
    mine = [
        pair for pair in pairs or () if pair.first == label and pair.second < len(facts.names) and finite(pair.value)
    ]
    return max(mine, key=lambda pair: pair.value, default=None)
