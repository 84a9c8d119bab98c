"""Part: what one shard of a measurement leaves in a file, what the shards have in common, and how files are checked."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal

import torch
from torch import nn

from equisep._version import __version__
from equisep.data.mixing import Mixing
from equisep.data.shard import Shard
from equisep.errors import DataError
from equisep.files import encode
from equisep.measuring.distributed.marks import model_mark
from equisep.measuring.distributed.packed import read_packed, write_packed
from equisep.measuring.distributed.together import FILED
from equisep.measuring.fingerprint import Fingerprint, Run
from equisep.measuring.forward import Calling
from equisep.measuring.plan import Plan
from equisep.measuring.probe import Probe
from equisep.measuring.reading import Read, Tally
from equisep.measuring.request import Options
from equisep.measuring.scores import ScoreSums
from equisep.results import Note
from equisep.separation import (
    ClassCenters,
    ClassSubspace,
    Convention,
    GroupSums,
    Projections,
    Relabelings,
    SiteTask,
    TestSite,
    TrainSite,
)
from equisep.separation.convention import Weights
from equisep.separation.nearest import NearestCounts, Points
from equisep.separation.noise.mean_noise import Contrasts, MeanNoise
from equisep.separation.pairs.confusion import Confusion
from equisep.separation.pairs.directional import AxisSums
from equisep.separation.pca import Picture
from equisep.separation.relabeled import Labelings
from equisep.separation.site import SampledSpread, SecondPass
from equisep.separation.site.second_sums import SecondSums
from equisep.taps import Reduction

Round = Literal["first", "second"]
# what parts of one measurement share, and how an error calls it
SHARED = {
    "version": "version of equisep",
    "model": "model",
    "options": "options",
    "sites": "sites",
    "data": "data",
    "names": "names of the classes",
}


@dataclass(frozen=True, slots=True)
class SetPart:
    """What one reading of the training data, or of the test data, left: every site in order, and what was seen beside."""

    read: Read
    sites: list[Any]  # GroupSums, or SecondSums in the second round
    batch_sizes: list[int]
    notes: list[Note]


@dataclass(frozen=True, slots=True)
class Setting:
    """What a profile needs beside the sums: the plan without its model, names, settings and notes of who asked."""

    probe: Probe
    options: Options
    reduction: str
    layer: nn.Linear | None
    title: str
    class_names: tuple[str, ...] | None
    readings: tuple[str, ...]
    taken: dict[str, str]
    notes: list[Note]
    around: tuple[list[Note], list[Note]]  # what the notes of the profile begin and end with
    provenance: str  # JSON, as are the settings of the command line
    settings: str

    def plan(self, reading: str) -> Plan:
        """The plan of one reading."""
        options = self.options
        if reading != self.readings[0]:
            options = replace(options, reading=reading, coordinates=0)  # type: ignore[arg-type]
        return Plan(nn.Identity(), self.probe, Reduction.of(self.reduction), options, layer=self.layer, together=FILED)


@dataclass(frozen=True, slots=True)
class Frames:
    """What the second pass goes by: every site of both data sets between its passes, and what the first reading saw."""

    train: list[TrainSite]
    test: list[TestSite]
    reads: list[Read]  # of the training data, and of the test data where there are any
    batch_sizes: list[list[int]]


@dataclass(frozen=True, slots=True)
class Part:
    """One shard in one round; `sets` are, for each reading, the training data and the test data where there are any.

    `seen` are, in the second round, the fingerprints of what the first had seen; the first shard carries the `frames`.
    """

    round: str
    shard: Shard
    shared: dict[str, str]
    setting: Setting
    sets: dict[str, list[SetPart]]
    frames: dict[str, Frames] | None = None
    means: str = ""  # which file of means the second round went by


@dataclass(frozen=True, slots=True)
class Means:
    """All shards of the first round together: what the second goes by, and what each shard had seen."""

    shards: int
    shared: dict[str, str]
    setting: Setting
    frames: dict[str, Frames]
    seen: dict[str, list[list[Fingerprint]]]  # by reading: of every shard, of every data set
    notes: list[Note]
    mark: str


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A shard under way: what is done, and where the reading under way stands."""

    shared: dict[str, str]
    round: str
    shard: Shard
    means: str
    done: dict[str, list[SetPart]]
    reading: str
    tally: Tally
    sites: list[Any]
    batch_sizes: list[int]


KINDS: dict[str, type] = {
    kind.__name__: kind
    for kind in (
        AxisSums, Calling, Checkpoint, ClassCenters, ClassSubspace, Confusion, Contrasts, Convention, Fingerprint, Frames,
        GroupSums, Labelings, MeanNoise, Means, Mixing, NearestCounts, Note, Options, Part, Picture, Points, Probe,
        Projections, Read, Relabelings, Run, SampledSpread, ScoreSums, SecondPass, SecondSums, SetPart, Setting, Shard,
        SiteTask, Tally, TestSite, TrainSite, Weights,
    )
}  # fmt: skip
ON_CPU = ("Picture", "Read", "Tally", "Setting")


def write_part(path: Path, part: Part | Means | Checkpoint) -> None:
    """A file that appears whole or not at all."""
    write_packed(path, part, kinds=KINDS)


def read_part(path: Path, *, device: torch.device | None = None) -> Part | Means | Checkpoint:
    """What a file of this package holds."""
    value = read_packed(path, kinds=KINDS, device=device, stay=ON_CPU)
    if not isinstance(value, Part | Means | Checkpoint):
        raise DataError(f"`{path}` is no part of a measurement. Give the files that `--shard` wrote.")
    return value


def shared_by_all(
    plan: Plan, sets: Sequence[Fingerprint | None], data: Any, *, readings: Sequence[str], names: Sequence[str] | None
) -> dict[str, str]:
    """What all parts of one measurement have in common, one line each.

    `sets` are the first batches of the training data and of the test data, `data` what else is known of them.
    """
    options = {**asdict(plan.options), "memory": None, "readings": list(readings)}
    return {
        "version": __version__,
        "model": model_mark(plan.model),
        "options": json.dumps(encode(options), sort_keys=True),
        "sites": json.dumps(encode([plan.probe.classes, plan.probe.sites, plan.probe.dims]), sort_keys=True),
        "data": json.dumps(encode([data, [None if each is None else asdict(each) for each in sets]]), sort_keys=True),
        "names": json.dumps(None if names is None else list(names)),
    }


def check_shared(mine: Mapping[str, str], theirs: Mapping[str, str], *, who: str, whom: str) -> None:
    """Raise where two parts are not of one measurement, with what differs."""
    for key, words in SHARED.items():
        if mine[key] != theirs[key]:
            found = f": {_short(mine[key])} and {_short(theirs[key])}" if key in ("version", "sites") else ""
            verb = "differ" if words.startswith(("options", "names")) else "differs"
            raise DataError(
                f"{who} and {whom} are not of one measurement: their {words} {verb}{found}. "
                "Measure all shards alike, and give the parts of one measurement alone."
            )


def _short(text: str, most: int = 80) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def check_parts(parts: Sequence[tuple[str, Part]]) -> list[Part]:
    """The parts in the order of their shards: all of one round of one measurement, each once, none missing."""
    (name, first), *_ = parts
    by_shard: dict[int, str] = {}
    for other, part in parts:
        if part.round != first.round:
            raise DataError(
                f"`{name}` is of the {first.round} round and `{other}` of the {part.round}. Merge one round at a time."
            )
        check_shared(first.shared, part.shared, who=f"`{name}`", whom=f"`{other}`")
        if part.shard.count != first.shard.count:
            raise DataError(
                f"`{name}` is shard {first.shard} and `{other}` shard {part.shard}: the data were divided in two ways. "
                "Measure all shards with one N."
            )
        if part.means != first.means:
            raise DataError(
                f"`{name}` and `{other}` went by different means (`--means`). Measure both with one file of means."
            )
        if part.shard.index in by_shard:
            raise DataError(
                f"Shard {part.shard} is there twice, in `{by_shard[part.shard.index]}` and `{other}`. Give each shard once."
            )
        by_shard[part.shard.index] = other
    missing = [index + 1 for index in range(first.shard.count) if index not in by_shard]
    if missing:
        names = ", ".join(map(str, missing[:5])) + (", …" if len(missing) > 5 else "")
        raise DataError(
            f"{len(missing)} of {first.shard.count} shards are missing: {names}. Run `--shard {missing[0]}/{first.shard.count}`, "
            "and give all parts together."
        )
    return sorted((part for _, part in parts), key=lambda part: part.shard.index)


def digest_of(values: Sequence[Any]) -> str:
    """A short mark of what parts hold, by the fingerprints of what they read."""
    plain = [[getattr(value, entry.name) for entry in fields(value)] for value in values]
    return hashlib.sha256(json.dumps(plain).encode()).hexdigest()[:16]
