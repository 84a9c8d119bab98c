"""measure_shard: one shard of a measurement, in two rounds, each of which leaves a file; what was stopped goes on."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from equisep.data.feed import Feed
from equisep.data.shard import Shard
from equisep.errors import DataError, EquisepError
from equisep.files import encode
from equisep.measuring.distributed.marks import refuse_whole_features
from equisep.measuring.distributed.part import (
    Checkpoint,
    Frames,
    Means,
    Part,
    SetPart,
    Setting,
    check_shared,
    read_part,
    shared_by_all,
    write_part,
)
from equisep.measuring.distributed.together import FILED
from equisep.measuring.fingerprint import Fingerprint
from equisep.measuring.measure import (
    Opening,
    home_of,
    model_notes,
    opened,
    placed,
    provenance_of,
    request_for,
    with_layer,
)
from equisep.measuring.passes import BatchAssignments
from equisep.measuring.plan import Plan
from equisep.measuring.reading import Read, Tally, read
from equisep.measuring.request import Request
from equisep.results import Note
from equisep.separation import GroupSums, TestSite, TrainSite
from equisep.separation.site.second_sums import put_second_sums, second_sums
from equisep.taps import random_state_kept

GROUP = 16  # batches after which a shard may be saved
SECONDS = 30.0  # between two savings, at the least


@dataclass(frozen=True, slots=True)
class ShardTask:
    """Which shard, where its part goes, and the means of the first round for the second.

    `data` says which data these are, `settings` is what the profile keeps of the command line, `notes` what its own begin and
    end with, `every` how many seconds pass between two savings of what is under way.
    """

    shard: Shard
    out: Path
    means: Path | None = None
    data: Any = None
    settings: Mapping[str, Any] | None = None
    notes: tuple[Sequence[Note], Sequence[Note]] = ((), ())
    every: float = SECONDS

    @property
    def checkpoint(self) -> Path:
        """Where the shard under way is saved."""
        return self.out.with_name(f".{self.out.name}.checkpoint")


def measure_shard(model: nn.Module, train: Any, test: Any = None, *, task: ShardTask, **options: Any) -> Path:
    """Read one shard and write its part: sums in the first round, or the spread about `means` in the second.

    The data are the whole data, the options those of `measure`.
    """
    request = request_for(model, train, test, **options)
    with placed(request.model, request.device), random_state_kept(request.train, request.test):
        opening = opened(request, shard=task.shard, together=FILED)
        refuse_whole_features(opening.plan.reduction, opening.plan.options, asked="`--shard`")
        return _Shard(request, task, opening).written()


class _Shard:
    """One shard under way."""

    def __init__(self, request: Request, task: ShardTask, opening: Opening) -> None:
        self.request, self.task, self.opening = request, task, opening
        feeds = opening.feeds[request.readings[0]]
        sizes = [None if feed is None else feed.samples for feed in feeds]
        self.shared = shared_by_all(
            opening.plan,
            [None if feed is None else _beginning(feed) for feed in feeds],
            [task.data, sizes],
            readings=request.readings,
            names=opening.class_names,
        )
        self.means = None if task.means is None else self._checked_means(task.means)
        self.mark = "" if self.means is None else self.means.mark
        self.round = "first" if self.means is None else "second"
        self.readings = list(dict.fromkeys(opening.taken[name] for name in request.readings))
        self.done: dict[str, list[SetPart]] = {}
        self.resumed = self._checkpoint()
        self.saved = time.monotonic()

    def _checked_means(self, path: Path) -> Means:
        found = read_part(path, device=home_of(self.request.model)[0])
        if not isinstance(found, Means):
            raise DataError(f"`{path}` holds no means. Give the file that `equisep merge` made of the first round.")
        check_shared(found.shared, self.shared, who=f"The means `{path}`", whom=f"shard {self.task.shard}")
        if found.shards != self.task.shard.count:
            raise DataError(
                f"The means `{path}` are of {found.shards} shards, and this is shard {self.task.shard}. Divide both rounds alike."
            )
        return found

    def _checkpoint(self) -> Checkpoint | None:
        """Where this very shard was stopped; a file of anything else, or a damaged one, is none."""
        try:
            found = read_part(self.task.checkpoint, device=home_of(self.request.model)[0])
        except EquisepError:
            return None
        mine = (self.shared, self.round, self.task.shard, self.mark)
        if not isinstance(found, Checkpoint) or (found.shared, found.round, found.shard, found.means) != mine:
            return None
        self.done = found.done
        return found

    def written(self) -> Path:
        """The part, written; one that is there already stays."""
        if not self._is_written():
            for name in self.readings:
                plan = with_layer(self.opening.plan_of(name))
                feeds = [feed for feed in self.opening.feeds[name] if feed is not None]
                sets = self.done.setdefault(name, [])
                for number in range(len(sets), len(feeds)):
                    sets.append(self._set(plan, feeds[number], name, number))
            write_part(self.task.out, self._part())
        self.task.checkpoint.unlink(missing_ok=True)
        return self.task.out

    def _is_written(self) -> bool:
        try:
            found = read_part(self.task.out)
        except EquisepError:
            return False
        mine = (self.shared, self.round, self.task.shard, self.mark)
        return isinstance(found, Part) and (found.shared, found.round, found.shard, found.means) == mine

    def _set(self, plan: Plan, feed: Feed, name: str, number: int) -> SetPart:
        """One data set in one reading."""
        frames = None if self.means is None else self.means.frames[name]
        sites = self._sites(plan, number, frames)
        tally, self.resumed = self._resume(sites, feed, name, number), None
        under_way = BatchAssignments(plan, feed)

        def take(index: int, rows: Any) -> None:
            step = sites[index].first if frames is None else sites[index].second
            step([rows.features], under_way.rows.of_rows(rows.owners))

        def after(tally: Tally) -> None:
            if tally.batches % GROUP == 0:
                _ = tally.sums.counts  # adds up what waits, so that a shard that goes on adds in the same order
                if time.monotonic() - self.saved >= self.task.every:
                    self._save(sites, tally, feed, name)

        with random_state_kept(feed.source):
            seen = read(
                plan, feed, take=take, start=under_way.start, progress=self.request.progress, after=after, tally=tally,
                what=f"shard {self.task.shard}, {self.round} round, {feed.what} data", scored=frames is None,
                whole=frames is not None and frames.reads[number].random,
            )  # fmt: skip
        if self.means is not None:
            self._check_same(seen, name, number, feed)
        return SetPart(seen, _sums(sites), sorted(feed.batch_sizes), list(feed.notes.values()))

    def _sites(self, plan: Plan, number: int, frames: Frames | None) -> list[TrainSite | TestSite]:
        if frames is not None:
            return [*frames.train] if number == 0 else [*frames.test]
        tasks = [plan.task(index) for index in plan.sites]
        return [TrainSite(task) if number == 0 else TestSite(None, task) for task in tasks]

    def _resume(self, sites: list[TrainSite | TestSite], feed: Feed, name: str, number: int) -> Tally | None:
        """Put back what the shard had when it was stopped, if it was in this reading of these data."""
        found = self.resumed
        if found is None or found.reading != name or len(self.done.get(name, ())) != number:
            return None
        for site, sums in zip(sites, found.sites, strict=True):
            if isinstance(sums, GroupSums):
                site.sums = sums
            else:
                put_second_sums(site, sums)
        feed.passed_over = found.tally.batches
        feed.batch_sizes |= set(found.batch_sizes)
        return found.tally

    def _save(self, sites: list[TrainSite | TestSite], tally: Tally, feed: Feed, name: str) -> None:
        checkpoint = Checkpoint(
            self.shared, self.round, self.task.shard, self.mark, self.done, name, tally, _sums(sites), sorted(feed.batch_sizes)
        )  # fmt: skip
        write_part(self.task.checkpoint, checkpoint)
        self.saved = time.monotonic()

    def _check_same(self, seen: Read, name: str, number: int, feed: Feed) -> None:
        assert self.means is not None
        before = self.means.seen[name][self.task.shard.index][number]
        if before != seen.order:
            raise DataError(
                f"Shard {self.task.shard} of the {feed.what} data holds other samples than in the first round, or in another "
                "order. Shards are read twice: pass data that repeat, and run the first round again."
            )

    def _part(self) -> Part:
        opening, request = self.opening, self.request
        plan = with_layer(opening.plan)
        before, after = self.task.notes
        setting = Setting(
            probe=plan.probe,
            options=plan.options,
            reduction=plan.reduction.name,
            layer=plan.layer,
            title=request.title,
            class_names=opening.class_names,
            readings=request.readings,
            taken={str(name): str(twin) for name, twin in opening.taken.items()},
            notes=[*opening.notes.ranked(), *model_notes(request.model)],
            around=(list(before), list(after)),
            provenance=json.dumps(encode(provenance_of(request.model))),
            settings=json.dumps(encode(dict(self.task.settings or {}))),
        )
        frames = None
        if self.means is not None and self.task.shard.index == 0:
            frames = {name: _light(each) for name, each in self.means.frames.items()}
        return Part(self.round, self.task.shard, self.shared, setting, self.done, frames, self.mark)


def _sums(sites: Sequence[TrainSite | TestSite]) -> list[Any]:
    """What a pass has added up at every site."""
    return [second_sums(site) if site.sums is None else site.sums for site in sites]


def _beginning(feed: Feed) -> Fingerprint:
    """The first batch of the whole data, which every shard looks at."""
    with random_state_kept(feed.source):
        inputs, labels = feed.first()
    return Fingerprint().after(inputs, labels)


def _light(frames: Frames) -> Frames:
    """The frames without what only rows need: directions of relabelings, which are large, and products in float32."""
    for own in (*(site.own for site in frames.train), *(site.own for site in frames.test)):
        own.main.forget_rows()
        relabelings = own.relabelings
        if relabelings is not None:
            relabelings.directions = torch.zeros(0, relabelings.dim, dtype=relabelings.directions.dtype)
    return frames
