"""Chunks of an ensemble in a folder, by a key for each member: the same call takes up what is there and goes on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import torch
from torch import Tensor

from equisep.errors import EquisepError, InputError
from equisep.files import encode
from equisep.training.checkpoint import Checkpoint
from equisep.training.ensemble.chunks import Task
from equisep.training.ensemble.member import Member
from equisep.training.ensemble.record import Ensemble

# part of every key: the first version that trained the numbers of this one, to be raised when numbers change
TRAINS_AS = "0.1.0"


class ChunkStore:
    """The chunks that belong to one task, found by the keys of its members; equal members share a key."""

    def __init__(self, folder: Path, task: Task) -> None:
        self._folder = folder
        self._unfinished: list[Path] = []
        self.keys = member_keys(task)
        _make_usable(folder)

    def finished(self) -> dict[str, tuple[Ensemble, int]]:
        """What earlier calls finished, by key: the chunk that holds a member, and its number there.

        A damaged chunk is as good as none, and is trained again.
        """
        known: dict[str, tuple[Ensemble, int]] = {}
        for path in sorted(self._folder.glob("chunk-*.npz")):
            try:
                keys = Ensemble.header(path)["settings"].get("keys", ())
                chunk = Ensemble.load(path) if set(keys) & set(self.keys) else None
            except EquisepError:
                continue
            if chunk is not None:
                known |= {key: (chunk, at) for at, key in enumerate(keys)}
        return known

    def keep(self, indices: Sequence[int], chunk: Ensemble) -> None:
        """A finished chunk, in a file named after its members; what was kept while it trained is removed."""
        keys = [self.keys[index] for index in indices]
        replace(chunk, settings={**chunk.settings, "keys": keys}).save(self._folder / f"chunk-{_name_of(keys)}.npz")
        for path in self._unfinished:
            path.unlink(missing_ok=True)
        self._unfinished.clear()

    def checkpoint(self, task: Task) -> Checkpoint:
        """Where members that train together are kept while they do; other company is another training."""
        name = _name_of(member_keys(task))
        self._unfinished.append(self._folder / f"chunk-{name}.pt")
        return Checkpoint(self._unfinished[-1], name=name)


def _name_of(keys: Sequence[str]) -> str:
    return hashlib.sha256("".join(keys).encode()).hexdigest()[:16]


def member_keys(task: Task) -> list[str]:
    """For each member a name of its training that no other training has."""
    sums = {id(start): checksum(*(tensor for _, tensor in sorted(start.items()))) for start in task.weights}
    rest = json.dumps(_as_first_named(task.settings), sort_keys=True)
    samples = task.samples
    keys = []
    for index, (member, start) in enumerate(zip(task.members, task.weights, strict=True)):
        own = [samples.rows[index], samples.labels[index]]
        if samples.drawn is not None:  # asked for, and a part of what is read
            own.append(samples.drawn[index])
        if samples.held is not None:
            own += [samples.held.rows[index], samples.held.labels[index]]
        text = json.dumps([_settings_of(member), rest, sums[id(start)], checksum(*own)], sort_keys=True)
        keys.append(hashlib.sha256(text.encode()).hexdigest())
    return keys


def _settings_of(member: Member) -> dict[str, Any]:
    """A member as keys have it: fields that came later are left out where they are not used, so that older keys stand."""
    settings: dict[str, Any] = encode(member)
    return {name: value for name, value in settings.items() if name != "logit_adjustment" or value is not None}


def checksum(*tensors: Tensor) -> str:
    """SHA-256 over the values, types and shapes of tensors."""
    digest = hashlib.sha256()
    for tensor in tensors:
        plain = tensor.detach().cpu().contiguous()
        digest.update(f"{plain.dtype}{tuple(plain.shape)}".encode())
        digest.update(plain.view(-1).view(torch.uint8).numpy().tobytes())  # as bytes: numpy has no bfloat16
    return digest.hexdigest()


def _as_first_named(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings under the names of version 0.1, which keys were made of ever since."""
    watch = dict(settings["watch"])
    watch["modes"] = ["batch" if name == "mixed" else name for name in watch.pop("readings")]
    for name in ("chance", "collapse"):  # they came later
        if not watch[name]:
            del watch[name]
    return {**settings, "watch": watch, "equisep": TRAINS_AS}


def _make_usable(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise InputError(f"`store` takes a folder; `{folder}` is a file.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        TemporaryFile(dir=folder).close()
    except OSError as error:
        raise InputError(f"`store` cannot be written: `{folder}` ({error.strerror}). Give another folder.") from error
