"""merge: the parts of one round as one, in any order to the same bytes: means for the second round, or the profile."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import TypeVar

from equisep.errors import DataError
from equisep.labels import check_two_classes
from equisep.measuring.distributed.part import (
    Frames,
    Means,
    Part,
    SetPart,
    Setting,
    check_parts,
    digest_of,
    read_part,
)
from equisep.measuring.measure import signed
from equisep.measuring.notes import Notes, note_no_picture
from equisep.measuring.passes import Passes, note_changes, numbered, with_intervals
from equisep.measuring.plan import Plan
from equisep.measuring.profile import SETS, profile_of
from equisep.measuring.reading import Read
from equisep.measuring.readings import with_other_readings
from equisep.results import Note, Profile
from equisep.separation import Sampled, TestSite, TestStatistics, TrainSite
from equisep.separation.group_sums import GroupSums
from equisep.separation.site.second_sums import SecondSums, put_second_sums

S = TypeVar("S", TrainSite, TestSite)


def merge_files(paths: Sequence[Path]) -> Means | Profile:
    """The parts in these files, all of one round: means of the first round, or the profile of the second."""
    parts = []
    for path in paths:
        found = read_part(path)
        if not isinstance(found, Part):
            kind = "the means of a first round" if isinstance(found, Means) else "a shard that was stopped"
            raise DataError(f"`{path}` is {kind}, no finished shard. Give the files that `--shard` wrote with `--out`.")
        parts.append((str(path), found))
    if not parts:
        raise DataError("There is no part to merge. Give the files that `--shard` wrote.")
    ordered = check_parts(parts)
    return _means(ordered) if ordered[0].round == "first" else _profile(ordered)


# --- the first round


def _means(parts: Sequence[Part]) -> Means:
    setting = parts[0].setting
    frames = {name: _frames(parts, name, setting.plan(name)) for name in parts[0].sets}
    seen = {name: [[each.read.order for each in part.sets[name]] for part in parts] for name in parts[0].sets}
    notes = _gathered(parts)
    prints = [fingerprint for shards in seen.values() for shard in shards for fingerprint in shard]
    return Means(len(parts), parts[0].shared, setting, frames, seen, notes, digest_of(prints))


def _frames(parts: Sequence[Part], name: str, plan: Plan) -> Frames:
    """Both data sets between their passes."""
    sets = [_one_set(parts, name, number) for number in range(len(parts[0].sets[name]))]
    whole = [reduce(Read.merge, (each.read for each in one)) for one in sets]
    reads = [each.judged(plan.options.reading, what) for each, what in zip(whole, SETS, strict=False)]
    check_two_classes(reads[0].counts, asked="`measure`")
    for each, what in zip(reads, SETS, strict=False):
        if each.n == 0:
            raise DataError(f"The {what} data hold no batch in any shard. Check the data.")
    train: list[TrainSite] = []
    test: list[TestSite] = []
    for index in plan.sites:
        site = TrainSite(plan.task(index))
        _turned(site, [one.sites[index] for one in sets[0]])
        train.append(site)
        if len(sets) > 1:
            other = TestSite(site.own.main, plan.task(index))
            _turned(other, [one.sites[index] for one in sets[1]])
            test.append(other)
    return Frames(train, test, reads, [_sizes(one) for one in sets])


def _turned(site: TrainSite | TestSite, sums: Sequence[GroupSums]) -> None:
    """The site between its passes, from the sums of all shards."""
    site.sums = reduce(GroupSums.merge, sums)
    site.turn()


def _one_set(parts: Sequence[Part], name: str, number: int) -> list[SetPart]:
    return [part.sets[name][number] for part in parts]


def _sizes(sets: Sequence[SetPart]) -> list[int]:
    return sorted({size for each in sets for size in each.batch_sizes})


def _gathered(parts: Sequence[Part]) -> list[Note]:
    """The notes of all shards, each once."""
    found = Notes(parts[0].setting.notes)
    for part in parts:
        found.extend(note for sets in part.sets.values() for each in sets for note in each.notes)
    return list(found.ranked())


# --- the second round


def _profile(parts: Sequence[Part]) -> Profile:
    setting, first = parts[0].setting, parts[0].setting.readings[0]
    notes, own = _gathered(parts), json.loads(setting.settings)

    def read(name: str) -> tuple[Profile, None]:
        gathered = Notes(notes if name == first else setting.probe.notes)
        return _reading(parts, name, setting, gathered), None

    profile, _ = read(setting.taken[first])
    if len(setting.readings) > 1:
        names, taken = list(setting.readings), dict(setting.taken)
        profile, _ = with_other_readings(profile, names, taken, read)  # type: ignore[arg-type]
    before, after = setting.around
    ranked = Notes((*before, *profile.notes, *after)).ranked()
    return replace(profile, settings={**profile.settings, **own}, notes=ranked)


def _reading(parts: Sequence[Part], name: str, setting: Setting, notes: Notes) -> Profile:
    """The profile of one reading."""
    frames = None if parts[0].frames is None else parts[0].frames.get(name)
    if frames is None:
        raise DataError(f"Shard {parts[0].shard} carries no means. Run it again with `--means`.")
    plan = setting.plan(name)
    sets = [_one_set(parts, name, number) for number in range(len(frames.reads))]
    statistics = (_put(site, [one.sites[i] for one in sets[0]]).statistics() for i, site in enumerate(frames.train))
    train = Passes(tuple(statistics), frames.reads[0], {})
    note_changes(notes, _drift(train.sites), steady=True, what=SETS[0])
    train = with_intervals(train, plan, steady=True, notes=notes)
    test: Passes[TestStatistics] | None = None
    if frames.test:
        others = (_put(site, [one.sites[i] for one in sets[1]]).statistics() for i, site in enumerate(frames.test))
        test = Passes(tuple(others), frames.reads[1], {})
        note_changes(notes, _drift(test.sites), steady=True, what=SETS[1])
        test = numbered(test, steady=True, plan=plan)
    note_no_picture(notes, pictured=plan.pictured, wanted=plan.options.coordinates > 0)
    profile = profile_of(plan, train, test, name=setting.title, class_names=setting.class_names, notes=notes)
    made_by = {**json.loads(setting.provenance), "shards": len(parts)}
    return signed(profile, frames.batch_sizes, made_by, notes)


def _put(site: S, sums: Sequence[SecondSums]) -> S:
    """The site with what all shards added up."""
    put_second_sums(site, reduce(SecondSums.merge, sums))
    return site


def _drift(sites: Sequence[Sampled]) -> float:
    return max(site.spread.drift() for site in sites)
