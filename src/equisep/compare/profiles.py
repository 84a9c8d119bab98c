"""Two laws or two profiles beside each other: what differs, by how much, and beyond which doubt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from equisep.compare.difference import (
    Difference,
    LawDifference,
    ProfileDifference,
    SettingDifference,
    SiteDifference,
    difference,
    excludes_zero,
    paired_ratio,
    ratio,
)
from equisep.compare.grains import shared_grain
from equisep.compare.paired import PRINTED, PairedInterval, Pairing, paired_fuzziness, paired_laws, pairing_of
from equisep.results import LawFit, Note, Profile, SiteReading

# settings that change what the numbers mean; the others (seed, training, …) are what one compares
READING = (
    "reading", "weighting", "center", "normalization", "tol", "sites", "grain", "calls", "reduction", "epsilon", "batch_sizes",
    "data",
)  # fmt: skip
WORDS = {"rho": "ρ", "half_life": "the half-life", "r": "r"}


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
    last = ratio(a.curve[-1] if a.curve else None, b.curve[-1] if b.curve else None, None, None)
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
    left, right, notes = shared_grain(a, b)
    pairs, more = _matched(left.sites, right.sites)
    notes += more
    settings = _settings(a, b)
    one_grain = left.grain is not None and left.grain == right.grain
    notes += _warnings(a, b, settings, one_grain=one_grain)
    pairing = pairing_of(a, b)
    notes += pairing.notes
    compared = [_site(*pair, pairing) for pair in pairs]
    law = compare_laws(left.law, right.law)
    if left.sites and right.sites:
        law = replace(law, last=_site(left.sites[-1], right.sites[-1], pairing).fuzziness)
    if pairing.folds:
        intervals = paired_laws((left.law, left.sites), (right.law, right.sites), pairing)
        law = _paired_law(law, {name: each for name, each in intervals.items() if name in PRINTED})
        notes += _bias_notes(law, compared, a, b)
    elif pairing.exact:  # of samples that are all there are nothing is in doubt
        law = _paired_law(law, {})
    whole = ProfileDifference(
        model_a=a.model,
        model_b=b.model,
        law=law,
        effective_depth=difference(_whole(left.depth), _whole(right.depth)),
        accuracy_train=difference(a.accuracy_train, b.accuracy_train),
        accuracy_test=difference(a.accuracy_test, b.accuracy_test),
        sites=tuple(compared),
        settings=settings,
        notes=tuple(notes),
        paired=pairing.same,
    )
    if pairs and len(left.sites) == len(right.sites) and whole.nothing_differs:
        same = Note("same-numbers", "All numbers that are compared are the same in both profiles.")
        whole = replace(whole, notes=(same, *whole.notes))
    return whole


def _warnings(a: Profile, b: Profile, settings: Sequence[SettingDifference], *, one_grain: bool) -> list[Note]:
    """Where numbers do not mean the same in both: they were read differently, or of other data."""
    notes = []
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
    return notes


def _law_part(name: str, a: LawFit, b: LawFit, notes: list[Note]) -> Difference:
    left, right = a.intervals.get(name), b.intervals.get(name)
    if left is not None and right is not None and left.level != right.level:
        text = (
            f"The intervals of {name} are at {left.level:g} and {right.level:g}, so their difference has none. "
            "Measure both at one level."
        )
        notes.append(Note("levels-differ", text))
    return difference(getattr(a, name), getattr(b, name), left, right)


def _site(left: SiteReading, right: SiteReading, pairing: Pairing) -> SiteDifference:
    fuzziness = ratio(left.fuzziness, right.fuzziness, left.fuzziness_interval, right.fuzziness_interval)
    if pairing.folds or pairing.exact:
        fuzziness = paired_ratio(
            fuzziness, paired_fuzziness(left, right, pairing) if pairing.folds else PairedInterval(None)
        )
    return SiteDifference(
        index_a=left.index,
        index_b=right.index,
        name_a=left.name,
        name_b=right.name,
        fuzziness=fuzziness,
        ncc_train=difference(left.ncc_train, right.ncc_train),
        ncc_test=difference(left.ncc_test, right.ncc_test),
    )


def _paired_law(law: LawDifference, intervals: Mapping[str, PairedInterval]) -> LawDifference:
    """The differences with these intervals alone, and none for the others."""
    parts = {}
    for name in WORDS:
        paired = intervals.get(name, PairedInterval(None))
        parts[name] = replace(
            getattr(law, name),
            interval=paired.interval,
            excludes_zero=excludes_zero(paired.interval),
            bias=paired.bias,
        )
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
    named_alike = (
        f"the {len(shared)} of equal name are compared" if shared else "none of equal name, so none is compared"
    )
    return shared, [Note("sites-differ", f"{counts}; {named_alike}.")]


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
