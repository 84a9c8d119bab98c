"""Two laws or two profiles beside each other: what differs, by how much, and beyond which doubt."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from equisep.compare.paired import PRINTED, PairedInterval, Pairing, Same, paired_laws, paired_ratio, pairing_of
from equisep.display import brief
from equisep.results import Interval, LawFit, Note, Profile, SiteReading

# settings that change what the numbers mean; the others (seed, training, …) are what one compares
READING = (
    "reading", "weighting", "center", "normalization", "tol", "sites", "grain", "calls", "reduction", "epsilon", "batch_sizes",
    "data",
)  # fmt: skip
WORDS = {"rho": "ρ", "half_life": "the half-life", "r": "r"}


@brief
@dataclass(frozen=True, slots=True)
class Difference:
    """One number of two laws: `value` = b − a, its interval, and whether that excludes 0 (`None`: no interval).

    `bias`, in standard errors, is why a paired interval was left out.
    """

    a: float | None
    b: float | None
    value: float | None = None
    interval: Interval | None = None
    excludes_zero: bool | None = None
    bias: float | None = None

    @property
    def told_apart(self) -> str:
        """In a word: `same` numbers, a `clear` or `unclear` difference, nothing without an interval."""
        return _told_apart(self.a, self.b, self.excludes_zero)


@brief
@dataclass(frozen=True, slots=True)
class Ratio:
    """One positive number of two curves: `value` = b / a, its interval, and whether that excludes 1; `bias` as above."""

    a: float | None
    b: float | None
    value: float | None = None
    interval: Interval | None = None
    excludes_one: bool | None = None
    bias: float | None = None

    @property
    def told_apart(self) -> str:
        """In a word, as of a difference."""
        return _told_apart(self.a, self.b, self.excludes_one)


def _told_apart(a: float | None, b: float | None, beyond_doubt: bool | None) -> str:
    if a is not None and a == b:
        return "same"
    return "" if beyond_doubt is None else "clear" if beyond_doubt else "unclear"


@brief
@dataclass(frozen=True, slots=True)
class LawDifference:
    """Law b against law a: differences b − a, and the ratio of D at the last site."""

    rho: Difference
    half_life: Difference
    r: Difference
    imbalance: Difference
    last: Ratio
    notes: tuple[Note, ...] = ()


@brief
@dataclass(frozen=True, slots=True)
class SiteDifference:
    """One site of profile b against one of profile a: the ratio of D, and differences b − a of the accuracies."""

    index_a: int
    index_b: int
    name_a: str
    name_b: str
    fuzziness: Ratio
    ncc_train: Difference
    ncc_test: Difference


@brief
@dataclass(frozen=True, slots=True)
class SettingDifference:
    """A setting that both profiles record, and in which they differ."""

    name: str
    a: Any
    b: Any


@brief
@dataclass(frozen=True, slots=True)
class ProfileDifference:
    """Profile b against profile a; `paired` says whether both read the same samples, or labels, so that folds are paired."""

    model_a: str
    model_b: str
    law: LawDifference
    effective_depth: Difference
    accuracy_train: Difference
    accuracy_test: Difference
    sites: tuple[SiteDifference, ...] = ()
    settings: tuple[SettingDifference, ...] = ()
    notes: tuple[Note, ...] = ()
    paired: Same | None = None

    @property
    def nothing_differs(self) -> bool:
        """Whether every number that is compared is the same on both sides, or on neither."""
        law = self.law
        parts: list[Difference | Ratio] = [law.rho, law.half_life, law.r, law.imbalance, law.last, self.effective_depth]
        parts += [self.accuracy_train, self.accuracy_test]
        parts += [part for site in self.sites for part in (site.fuzziness, site.ncc_train, site.ncc_test)]
        return all(part.a == part.b for part in parts)


def compare_laws(a: LawFit, b: LawFit) -> LawDifference:
    """Law b against law a.

    Each interval joins the two laws' own intervals by the method of variance estimates recovery (Zou & Donner 2008):
    (b − a) ∓ √(…) of the distances from the estimates to those limits that lie on the side in question. The limits were
    made on the transformed scales (ln ρ, atanh r), so their asymmetry is kept. The two laws are taken as independent;
    `compare_profiles` knows whether both were read on the same samples, and pairs them then.
    Without an interval on both sides, or at two levels, there is none.

    >>> import equisep
    >>> from equisep.compare import compare_laws
    >>> change = compare_laws(equisep.fit_law([8.0, 4.0, 2.0, 1.0]), equisep.fit_law([8.0, 2.0, 0.5, 0.125])).rho
    >>> f"{change.value:.3f}"
    '-0.250'
    """
    notes: list[Note] = []
    parts = {name: _law_part(name, a, b, notes) for name in ("rho", "half_life", "r", "imbalance")}
    last = _ratio(a.curve[-1] if a.curve else None, b.curve[-1] if b.curve else None, None, None)
    return LawDifference(**parts, last=last, notes=tuple(notes))


def compare_profiles(a: Profile, b: Profile) -> ProfileDifference:
    """Profile b against profile a: laws, depths, accuracies, and site by site.

    Where the two report different grains, and hold one that both measured, that one is compared. Sites are matched by
    index where both have equally many, by name elsewhere. Settings that differ are listed, since numbers that were read
    differently do not compare. Where both read the same samples, intervals are of differences fold by fold
    (`paired_interval`): what the samples have in common cancels, and one profile with itself gives 1 [1, 1].

    >>> import torch, equisep
    >>> from equisep.models import build
    >>> y = torch.arange(90) % 3
    >>> x = 2 * torch.eye(3, 8)[y] + torch.randn(90, 8, generator=torch.Generator().manual_seed(0))
    >>> profiles = [equisep.measure(build("fnn", seed=s, depth=4, inputs=8, classes=3), (x, y)) for s in range(3)]
    >>> from equisep.compare import compare_profiles
    >>> pair = compare_profiles(profiles[0], profiles[1])
    >>> pair.paired, pair.sites[0].fuzziness.value  # the same input
    ('samples', 1.0)
    """
    left, right, notes = _shared(a, b)
    pairs, more = _matched(left.sites, right.sites)
    notes += more
    settings = _settings(a, b)
    one_grain = left.grain is not None and left.grain == right.grain
    reading = [
        setting.name
        for setting in settings
        if setting.name.partition(".")[0] in READING
        and not (one_grain and setting.name in ("grain", "sites"))
        and not (setting.name == "batch_sizes" and a.reading == b.reading == "eval")  # which batches do not change
    ]
    if reading:
        names = ", ".join(f"`{name}`" for name in reading)
        notes.append(Note("settings-differ", f"The profiles were read with different {names}: compare with care."))
    if a.classes != b.classes or a.counts != b.counts:
        text = (
            f"The profiles hold {_data_words(a)} and {_data_words(b)}: D depends on the data, not on the network alone."
        )
        notes.append(Note("data-differ", text))
    pairing = pairing_of(a, b)
    notes += pairing.notes
    compared = [_site(*pair, pairing) for pair in pairs]
    law = compare_laws(left.law, right.law)
    if left.sites and right.sites:
        law = replace(law, last=_site(left.sites[-1], right.sites[-1], pairing).fuzziness)
    if pairing.folds:
        law = _paired_law(law, left, right, pairing)
        notes += _bias_notes(law, compared, a, b)
    elif pairing.exact:
        law = _without_intervals(law)
    found = ProfileDifference(
        model_a=a.model,
        model_b=b.model,
        law=law,
        effective_depth=_difference(_whole(left.depth), _whole(right.depth)),
        accuracy_train=_difference(a.accuracy_train, b.accuracy_train),
        accuracy_test=_difference(a.accuracy_test, b.accuracy_test),
        sites=tuple(compared),
        settings=settings,
        notes=tuple(notes),
        paired=pairing.same,
    )
    if pairs and len(left.sites) == len(right.sites) and found.nothing_differs:
        same = Note("same-numbers", "All numbers that are compared are the same in both profiles.")
        found = replace(found, notes=(same, *found.notes))
    return found


@dataclass(frozen=True, slots=True)
class _Grain:
    """One grain of a profile: its sites in order, their law, and the effective depth counted in them, where it is known."""

    grain: str | None
    sites: tuple[SiteReading, ...]
    law: LawFit
    depth: int | None


def _grains(profile: Profile) -> dict[str | None, _Grain]:
    """Every grain that a profile holds, the one it reports first."""
    choice = profile.grains
    named = profile.settings.get("grain") if choice is None else choice.chosen
    held = {named: _Grain(named, profile.sites, profile.law, profile.effective_depth)}
    if choice is None:
        return held
    known = {reading.name: reading for reading in (*choice.others, *profile.sites)}
    begins = profile.sites[0].index if profile.sites else 0
    for grain, names in choice.sites.items():
        law = profile.laws.get(grain)
        if grain != named and law is not None and all(name in known for name in names):
            sites = tuple(replace(known[name], index=begins + position) for position, name in enumerate(names))
            held[grain] = _Grain(grain, sites, law, None)  # depth is counted in the sites that are reported
    return held


def _shared(a: Profile, b: Profile) -> tuple[_Grain, _Grain, list[Note]]:
    """The grain to compare: the one that both report, else one that both hold, else what each reports."""
    left, right = _grains(a), _grains(b)
    mine, other = next(iter(left.values())), next(iter(right.values()))
    if mine.grain == other.grain:
        return mine, other, []
    both = next((grain for grain in (*left, *right) if grain is not None and grain in left and grain in right), None)
    if both is None:
        return mine, other, []
    text = (
        f"The profiles report {mine.grain} and {other.grain}; both hold {both}, which are compared. Effective depth is known "
        "for the grain that a profile reports."
    )
    return left[both], right[both], [Note("grain-shared", text)]


def _law_part(name: str, a: LawFit, b: LawFit, notes: list[Note]) -> Difference:
    left, right = a.intervals.get(name), b.intervals.get(name)
    if left is not None and right is not None and left.level != right.level:
        text = (
            f"The intervals of {name} are at {left.level:g} and {right.level:g}, so their difference has none. "
            "Measure both at one level."
        )
        notes.append(Note("levels-differ", text))
    return _difference(getattr(a, name), getattr(b, name), left, right)


def _difference(
    a: float | None, b: float | None, left: Interval | None = None, right: Interval | None = None
) -> Difference:
    if a is None or b is None:
        return Difference(a=a, b=b)
    limits = _joined(a, b, left, right)
    return Difference(
        a=a,
        b=b,
        value=b - a,
        interval=limits,
        excludes_zero=None if limits is None else not limits.low <= 0 <= limits.high,
    )


def _ratio(a: float | None, b: float | None, left: Interval | None, right: Interval | None) -> Ratio:
    """b/a with the interval of ln b − ln a transformed back."""
    if a is None or b is None or a <= 0 or b <= 0:
        return Ratio(a=a, b=b)
    shift = math.log(b) - math.log(a)
    limits = _joined(math.log(a), math.log(b), _logged(left), _logged(right))
    if max(abs(part) for part in (shift, *((limits.low, limits.high) if limits else ()))) > 700:
        return Ratio(a=a, b=b)  # beyond what a number can hold
    return Ratio(
        a=a,
        b=b,
        value=math.exp(shift),
        interval=None if limits is None else replace(limits, low=math.exp(limits.low), high=math.exp(limits.high)),
        excludes_one=None if limits is None else not limits.low <= 0 <= limits.high,
    )


def _joined(a: float, b: float, left: Interval | None, right: Interval | None) -> Interval | None:
    """The interval of b − a from those of a and b (Zou & Donner 2008)."""
    if left is None or right is None or left.level != right.level or not (_ordered(left) and _ordered(right)):
        return None
    low = b - a - math.hypot(b - right.low, left.high - a)
    high = b - a + math.hypot(right.high - b, a - left.low)
    return Interval(low=low, high=high, level=left.level, kind="combined", n=min(left.n, right.n))


def _logged(interval: Interval | None) -> Interval | None:
    if interval is None or interval.low <= 0 or not _ordered(interval):
        return None
    return replace(interval, low=math.log(interval.low), high=math.log(interval.high))


def _ordered(interval: Interval) -> bool:
    """Whether the limits are numbers in their order; what a program made up need not be."""
    return -math.inf < interval.low <= interval.high < math.inf


def _site(left: SiteReading, right: SiteReading, pairing: Pairing) -> SiteDifference:
    ratio = _ratio(left.fuzziness, right.fuzziness, left.fuzziness_interval, right.fuzziness_interval)
    if pairing.folds or pairing.exact:
        ratio = _paired_ratio(ratio, paired_ratio(left, right, pairing) if pairing.folds else None)
    return SiteDifference(
        index_a=left.index,
        index_b=right.index,
        name_a=left.name,
        name_b=right.name,
        fuzziness=ratio,
        ncc_train=_difference(left.ncc_train, right.ncc_train),
        ncc_test=_difference(left.ncc_test, right.ncc_test),
    )


def _paired_ratio(ratio: Ratio, found: PairedInterval | None) -> Ratio:
    """The ratio with the interval of its logarithm by folds, transformed back."""
    span = None if found is None else found.interval
    if ratio.value is None or span is None or max(abs(span.low), abs(span.high)) > 700:
        return replace(ratio, interval=None, excludes_one=None, bias=None if found is None else found.bias)
    interval = replace(span, low=math.exp(span.low), high=math.exp(span.high))
    return replace(ratio, interval=interval, excludes_one=not span.low <= 0 <= span.high)


def _paired_law(law: LawDifference, left: _Grain, right: _Grain, pairing: Pairing) -> LawDifference:
    """The differences with intervals by folds; half-life and r have none."""
    parts = {name: getattr(law, name) for name in WORDS}
    made = paired_laws((left.law, left.sites), (right.law, right.sites), pairing)
    for name, part in parts.items():
        found = made.get(name, PairedInterval(None)) if name in PRINTED else PairedInterval(None)
        span = found.interval
        parts[name] = replace(
            part,
            interval=span,
            excludes_zero=None if span is None else not span.low <= 0 <= span.high,
            bias=found.bias,
        )
    return replace(law, **parts, notes=tuple(note for note in law.notes if note.code != "levels-differ"))


def _without_intervals(law: LawDifference) -> LawDifference:
    """The differences alone: of samples that are all there are nothing is in doubt."""
    parts = {name: replace(getattr(law, name), interval=None, excludes_zero=None) for name in WORDS}
    return replace(law, **parts, notes=tuple(note for note in law.notes if note.code != "levels-differ"))


def _bias_notes(law: LawDifference, sites: Sequence[SiteDifference], a: Profile, b: Profile) -> list[Note]:
    """Which paired intervals were left out since the bias of D is too large."""
    where = [str(site.index_a) for site in sites if site.fuzziness.bias is not None]
    names = [word for name, word in WORDS.items() if getattr(law, name).bias is not None]
    if not where and not names:
        return []
    parts = [
        *names,
        *([f"D at layers {', '.join(where)}" if len(where) > 1 else f"D at layer {where[0]}"] if where else []),
    ]
    sizes = " or ".join(dict.fromkeys(f"{sum(each.counts):,}" for each in (a, b)))
    text = (
        f"No interval for {', '.join(parts)}: D of {sizes} samples lies below that of the population by more than "
        "its folds can tell, in one of the profiles or both. The differences are exact for these samples; what they are for all "
        "that such samples are drawn from, more of them would tell."
    )
    return [Note("fold-bias", text)]


def _matched(
    a: Sequence[SiteReading], b: Sequence[SiteReading]
) -> tuple[list[tuple[SiteReading, SiteReading]], list[Note]]:
    if len(a) == len(b):
        return list(zip(a, b, strict=True)), []
    named = {site.name: site for site in b}
    shared = [(site, named[site.name]) for site in a if site.name in named]
    counts = f"The profiles have {len(a)} and {len(b)} sites"
    found = f"the {len(shared)} of equal name are compared" if shared else "none of equal name, so none is compared"
    return shared, [Note("sites-differ", f"{counts}; {found}.")]


def _settings(a: Profile, b: Profile) -> tuple[SettingDifference, ...]:
    left, right = flat_settings(a.settings), flat_settings(b.settings)
    shared = [name for name in left if name in right]  # what one of them does not record is not known to differ
    return tuple(
        SettingDifference(name=name, a=left[name], b=right[name]) for name in shared if left[name] != right[name]
    )


def flat_settings(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings by dotted name, lists as JSON gives them back: a saved profile compares equal to a fresh one."""
    flat: dict[str, Any] = {}
    for name, value in settings.items():
        if isinstance(value, Mapping):
            flat |= flat_settings(value, f"{prefix}{name}.")
        else:
            flat[prefix + name] = list(value) if isinstance(value, tuple) else value
    return flat


def _whole(depth: int | None) -> float | None:
    return None if depth is None else float(depth)


def _data_words(profile: Profile) -> str:
    least, most = min(profile.counts, default=0), max(profile.counts, default=0)
    each = f"{least}" if least == most else f"{least} to {most}"
    return f"{sum(profile.counts)} samples ({each} per class) of {profile.classes} classes"
