"""What cannot be said from so few samples, and about how many would do.

Class means of few samples carry noise that spreads them apart, so that D of a sample is too small, the more so the fewer
samples there are per feature (docs/intervals.md). `SiteReading.corrected` is D of the population behind the samples, or the
reason why it cannot be told.

Rule: at half of the layers or more D of the population cannot be told: plain D stands near its chance level, or, of at most 30
samples per class in the median, there is no value, or its interval (95 %) spans a factor of 4 or more; or half of the classes
or more have one sample, which is its own class mean and has no spread; or intervals were asked for and there are fewer than 20
training samples, which are too few for the ten folds that tell D of the population. A layer of fewer features than it takes to
part the class means (one less than there are classes) does not count where its means are dependent: no number of samples would
do. Nor is it said where labels belong to other inputs (`memorizing`).

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
from equisep.results.wording import number, plural

HALF = 0.5
FEW = 30
WIDE = 4.0
LEAST = 20  # training samples: ten folds of two
_CHANCE = "chance level"
_DEPENDENT = "dependent"
_SCATTER = ("no upper limit", "too little to tell D", "fewer than 2 samples", _DEPENDENT)


def refused(facts: Facts) -> list[SiteReading]:
    """The layers at which there are too few samples to tell D."""
    present = [count for count in facts.profile.counts if count]
    few = median(present or [0]) <= FEW
    return [
        site
        for site in facts.sites
        if site.corrected is not None
        and _untold(site.corrected, few=few)
        and not (site.dim < len(present) - 1 and _DEPENDENT in (site.corrected.reason or ""))
    ]


def _untold(corrected: Corrected, *, few: bool) -> bool:
    if corrected.value is None:
        return any(words in (corrected.reason or "") for words in (_CHANCE, *(_SCATTER if few else ())))
    low, high = finite(corrected.low), finite(corrected.high)
    return few and (not low or high is None or high >= WIDE * low)


def single(facts: Facts) -> bool:
    """Whether half of the classes or more have one sample: D and NC1 are then 0 or near it, whatever the features."""
    counts = [count for count in facts.profile.counts if count]
    return bool(counts) and sum(count == 1 for count in counts) >= HALF * len(counts)


def below_least(facts: Facts) -> bool:
    """Whether intervals were asked for, and there is none at any layer because the training samples are fewer than 20."""
    asked = facts.profile.settings.get("intervals") in ("auto", "jackknife")
    measured = any(finite(site.fuzziness) is not None for site in facts.sites)
    return asked and measured and facts.n_train < LEAST and all(site.corrected is None for site in facts.sites)


def too_few(facts: Facts) -> bool:
    """Whether the samples do not tell D at half of the layers."""
    if single(facts) or below_least(facts):
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
    if below_least(facts):
        yield _below_least(facts)
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
    most = max(facts.profile.counts)
    of = plural(most, "sample") if facts.per_class == most else f"{facts.per_class:,} to {most:,} samples"
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


def _below_least(facts: Facts) -> Finding:
    classes = sum(count > 0 for count in facts.profile.counts)
    return new_finding(
        "too-few-samples",
        f"From {plural(facts.n_train, 'training sample')} in {classes:,} class{'' if classes == 1 else 'es'} D cannot be told: "
        f"fewer than {LEAST} give no intervals, and law, shares of the work and depth below hold for these samples alone.",
        rule="samples",
        confidence="cannot be said",
        numbers={"per_class": facts.per_class, "samples": facts.n_train, "needed_per_class": None},
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
