"""What cannot be said from so few samples, and about how many would do.

Class means of few samples carry noise that spreads them apart, so that D of a sample is too small, the more so the fewer
samples there are per feature (docs/intervals.md). `SiteReading.corrected` is D of the population behind the samples, or the
reason why it cannot be told.

Rule: at half of the layers or more D of the population cannot be told: plain D stands near its chance level, or, of at most 30
samples per class in the median, there is no value, or its interval (95 %) spans a factor of 4 or more; or half of the classes
or more have one sample, which is its own class mean and has no spread. Not said where labels
belong to other inputs (`memorizing`): no number of samples would do.

Limits: how many samples would do is a lower estimate from D against its chance level, or twice as many as there are.
Tested by: `simulations/situations.py`, kind `too few samples` (2 to 6 per class); the refusals themselves by
`simulations/population.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from equisep.findings.facts import Facts, finite
from equisep.findings.memorizing import labels_unrelated
from equisep.findings.ranking import new_finding
from equisep.results import Corrected, SiteReading
from equisep.results.finding import Finding
from equisep.results.wording import number

HALF = 0.5
FEW = 30
WIDE = 4.0
_CHANCE = "chance level"
_SCATTER = ("noise of the class means", "no upper limit", "fewer than 2 samples", "dependent", "between parts")


def refused(facts: Facts) -> list[SiteReading]:
    """The layers at which there are too few samples to tell D."""
    few = median([count for count in facts.profile.counts if count] or [0]) <= FEW
    return [site for site in facts.sites if site.corrected is not None and _untold(site.corrected, few=few)]


def _untold(corrected: Corrected, *, few: bool) -> bool:
    if corrected.value is None:
        return any(words in (corrected.reason or "") for words in (_CHANCE, *(_SCATTER if few else ())))
    low, high = finite(corrected.low), finite(corrected.high)
    return few and (not low or high is None or high >= WIDE * low)


def single(facts: Facts) -> bool:
    """Whether half of the classes or more have one sample: D and NC1 are then 0 or near it, whatever the features."""
    counts = [count for count in facts.profile.counts if count]
    return bool(counts) and sum(count == 1 for count in counts) >= HALF * len(counts)


def too_few(facts: Facts) -> bool:
    """Whether the samples do not tell D at half of the layers."""
    if single(facts):
        return not labels_unrelated(facts)
    asked = [site for site in facts.sites if site.corrected is not None]
    return bool(asked) and len(refused(facts)) >= HALF * len(asked) and not labels_unrelated(facts)


def samples(facts: Facts) -> Iterator[Finding]:
    """`too-few-samples`."""
    if not too_few(facts):
        return
    if single(facts):
        yield _single(facts)
        return
    sites = refused(facts)
    needed = max((site.corrected.needed_per_class or 0 for site in sites if site.corrected is not None), default=0)
    enough = needed > facts.per_class
    first = sites[0].corrected
    reason = ""
    if first is not None and first.value is not None:
        reason = f" ({facts.at(sites[0])}: anything from {number(first.low, 2)} to {number(first.high, 2)})"
    elif first is not None and first.reason is not None:
        reason = f" ({facts.at(sites[0])}: {first.reason})"
    many = f"; about {needed:,} per class, or more, would be needed" if enough else ""
    of = f"{facts.per_class:,} samples" if facts.per_class != 1 else "1 sample"
    yield new_finding(
        "too-few-samples",
        f"From {of} per class D cannot be told at {len(sites)} of {len(facts.sites)} {facts.each}s{reason}: law, shares of the "
        f"work and depth below hold for these samples alone{many}.",
        rule="samples",
        confidence="cannot be said",
        numbers={"per_class": facts.per_class, "sites": len(sites), "needed_per_class": needed if enough else None},
        # all samples that there are cannot be made more by measuring again
        next=facts.measured_again(f"--per-class {needed}", "test") if enough and facts.profile.whole is False else None,
        site=sites[0].name,
    )


def _single(facts: Facts) -> Finding:
    counts = [count for count in facts.profile.counts if count]
    ones = sum(count == 1 for count in counts)
    return new_finding(
        "too-few-samples",
        f"{ones:,} of {len(counts):,} classes have one training sample, which is its own class mean: spread within classes, D, "
        "collapse and nearest-center accuracy on training data say nothing; 2 samples per class are the least, 30 are few.",
        rule="samples",
        confidence="cannot be said",
        numbers={"per_class": facts.per_class, "single": ones, "needed_per_class": None},
    )
