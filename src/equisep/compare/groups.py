"""Many profiles beside each other: those of one network as seeds of it, with the mean curve of D and its band over seeds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from equisep.compare.profiles import flat_settings
from equisep.display import brief
from equisep.errors import InputError
from equisep.law import seed_interval, summarize_laws
from equisep.results import Interval, LawSummary, Note, Profile, SiteReading, Verdict

# differ from seed to seed by themselves
OF_A_SEED = ("seed", "final_loss", "rates_tried", "checkpoint", "memory")
CONVENTION = ("weighting", "center", "normalization", "reduction")  # settings without which D is another number


@brief
@dataclass(frozen=True, slots=True)
class ProfileRow:
    """One profile in a line; `group` is the name of its group."""

    name: str
    group: str
    sites: int
    samples: int
    rho: float | None
    half_life: float | None
    r: float | None
    verdict: Verdict
    last: float | None
    effective_depth: int | None
    accuracy_train: float | None
    accuracy_test: float | None


@brief
@dataclass(frozen=True, slots=True)
class GroupSite:
    """D of one site over seeds: the geometric mean, and its t-interval, made of ln D; `None` where a D is missing."""

    index: int
    name: str
    fuzziness: float | None
    band: Interval | None = None


@brief
@dataclass(frozen=True, slots=True)
class ProfileGroup:
    """Profiles of one network, trained with several seeds: their laws in the mean, and D over depth."""

    name: str
    members: tuple[str, ...]
    passed: str  # layers or blocks
    law: LawSummary
    sites: tuple[GroupSite, ...]
    curves: tuple[tuple[float | None, ...], ...]


@brief
@dataclass(frozen=True, slots=True)
class ManyProfiles:
    """Profiles in their order, and their groups in the order of the first of each."""

    profiles: tuple[ProfileRow, ...]
    groups: tuple[ProfileGroup, ...]
    notes: tuple[Note, ...] = ()


def compare_many(
    profiles: Sequence[Profile] | Mapping[str, Sequence[Profile]], *, names: Sequence[str] = (), level: float = 0.95
) -> ManyProfiles:
    """Profiles side by side, with bands over seeds.

    Profiles of one name, read alike at the same sites of classes of the same sizes, are one group: one network trained with
    several seeds. A mapping names the groups itself. The band of a group is the Student-t interval of the mean of ln D at
    each site, transformed back; a group of one profile has none. `names` are those of the single profiles, in order, such
    as their files.

    >>> import torch, equisep
    >>> from equisep.models import build
    >>> y = torch.arange(90) % 3
    >>> x = 2 * torch.eye(3, 8)[y] + torch.randn(90, 8, generator=torch.Generator().manual_seed(0))
    >>> profiles = [equisep.measure(build("fnn", seed=s, depth=4, inputs=8, classes=3), (x, y)) for s in range(3)]
    >>> from equisep.compare import compare_many
    >>> many = compare_many({"4 layers": profiles})
    >>> [group.name for group in many.groups], len(many.groups[0].sites)
    (['4 layers'], 4)
    """
    if isinstance(profiles, Mapping):
        of = tuple(name for name, group in profiles.items() for _ in group)
        plain = [each for group in profiles.values() for each in group]
    else:
        plain = [*profiles]
        of = group_names(plain)
    if not plain:
        raise InputError("`compare_many` needs profiles; found none. Pass those of several networks or seeds.")
    if names and len(names) != len(plain):
        raise InputError(
            f"`compare_many` got {len(names)} names of {len(plain)} profiles. Pass one name each, or none."
        )
    labels = tuple(names) if names else tuple(str(number + 1) for number in range(len(plain)))
    notes: list[Note] = []
    groups = []
    for name in dict.fromkeys(of):
        members = [position for position, mine in enumerate(of) if mine == name]
        groups.append(_group(name, [plain[i] for i in members], [labels[i] for i in members], level, notes))
    rows = tuple(_row(label, group, each) for label, group, each in zip(labels, of, plain, strict=True))
    return ManyProfiles(rows, tuple(groups), tuple(notes))


def group_names(profiles: Sequence[Profile]) -> tuple[str, ...]:
    """The group of each profile: its network's name, with what was read otherwise, or of how many, where one name has several.

    Classes of other sizes are other data, on which no seed of the same training was read.
    """
    keys = [
        (each.model, each.reading, tuple(site.name for site in each.sites), each.counts, _convention(each))
        for each in profiles
    ]
    names: dict[tuple[str, str | None, tuple[str, ...], tuple[int, ...], tuple[str, ...]], str] = {}
    for key in dict.fromkeys(keys):
        model, reading, sites, counts, convention = key
        alike = [other for other in dict.fromkeys(keys) if other[0] == model]
        words = [f"{reading or '?'} reading"] if len({other[1] for other in alike}) > 1 else []
        words += [f"{len(sites)} sites"] if len({len(other[2]) for other in alike}) > 1 else []
        words += [f"{sum(counts):,} samples"] if len({sum(other[3]) for other in alike}) > 1 else []
        words += [
            f"{name} {value}"
            for place, (name, value) in enumerate(zip(CONVENTION, convention, strict=True))
            if len({other[4][place] for other in alike}) > 1
        ]
        name = f"{model}, {', '.join(words)}" if words else model
        taken = [*names.values()]
        names[key] = next(each for each in (name, *(f"{name} ({n})" for n in range(2, 999))) if each not in taken)
    return tuple(names[key] for key in keys)


def _convention(profile: Profile) -> tuple[str, ...]:
    """By which definition D is, in words that compare."""
    return tuple(str(profile.settings.get(name)) for name in CONVENTION)


def _row(name: str, group: str, profile: Profile) -> ProfileRow:
    law = profile.law
    return ProfileRow(
        name=name, group=group, sites=len(profile.sites), samples=sum(profile.counts), rho=law.rho, half_life=law.half_life,
        r=law.r, verdict=law.verdict, last=law.curve[-1] if law.curve else None, effective_depth=profile.effective_depth,
        accuracy_train=profile.accuracy_train, accuracy_test=profile.accuracy_test,
    )  # fmt: skip


def _group(
    name: str, profiles: Sequence[Profile], labels: Sequence[str], level: float, notes: list[Note]
) -> ProfileGroup:
    shapes = {tuple(site.name for site in each.sites) for each in profiles}
    if len({len(shape) for shape in shapes}) > 1:
        counts = ", ".join(str(len(each.sites)) for each in profiles)
        raise InputError(
            f"The profiles of `{name}` have {counts} sites, so that they are no seeds of one network. Put them into groups of "
            "their own."
        )
    notes += _group_notes(name, profiles, labels)
    law = summarize_laws([each.law for each in profiles], level)
    if len(profiles) == 1:
        law = replace(law, notes=())
    columns = zip(*(each.sites for each in profiles), strict=True)
    grain = profiles[0].settings.get("grain")
    return ProfileGroup(
        name=name,
        members=tuple(labels),
        passed=grain if grain in ("layers", "blocks") else "layers",
        law=law,
        sites=tuple(_site(column, level) for column in columns),
        curves=tuple(each.curve() for each in profiles),
    )


def _site(column: Sequence[SiteReading], level: float) -> GroupSite:
    values = [site.fuzziness for site in column]
    logs = [math.log(value) for value in values if value]
    bare = GroupSite(column[0].index, column[0].name, None)
    if len(logs) < len(values):
        return bare
    mean = math.exp(float(np.mean(logs)))
    if len(logs) == 1:
        return replace(bare, fuzziness=mean)
    band = seed_interval(logs, level)
    return replace(bare, fuzziness=mean, band=replace(band, low=math.exp(band.low), high=math.exp(band.high)))


def _group_notes(name: str, profiles: Sequence[Profile], labels: Sequence[str]) -> list[Note]:
    """What speaks against taking profiles as seeds of one network: other settings, other data, the same curve twice."""
    found = []
    settings = [flat_settings(each.settings) for each in profiles]
    shared = [key for key in settings[0] if all(key in other for other in settings)]
    differ = [
        key
        for key in shared
        if key.rpartition(".")[2] not in OF_A_SEED and any(other[key] != settings[0][key] for other in settings)
    ]
    if differ:
        words = ", ".join(f"`{key}`" for key in differ[:5]) + (" and others" if len(differ) > 5 else "")
        text = f"The {len(profiles)} profiles of `{name}` differ in {words}: they are more than seeds of one training."
        found.append(Note("group-settings", text))
    if len({each.counts for each in profiles}) > 1:
        found.append(Note("group-data", f"The profiles of `{name}` were read on data of other class sizes."))
    curves = [each.curve() for each in profiles]
    for first, curve in enumerate(curves):
        if curve in curves[:first]:
            both = f"{labels[curves.index(curve)]} and {labels[first]}"
            text = f"{both} of `{name}` have the same D everywhere: one training, measured twice."
            found.append(Note("same-profile", text))
    return found
