"""Ensemble: many trained networks with everything that was seen of them, saved and loaded without pickle."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from equisep.display import brief
from equisep.errors import EquisepError, InputError, ModelError, ProfileError, did_you_mean
from equisep.files import encode, write_whole
from equisep.models import Fnn
from equisep.results import former_reading, reading_named
from equisep.results.codec import decode
from equisep.results.wording import plural
from equisep.training.ensemble.member import Member, Stage
from equisep.training.ensemble.reading import ARRAYS, EnsembleReading
from equisep.training.ensemble.stack import Stack, vector_positions

SCHEMA = 2  # 1 named readings by their `mode`
KIND = "equisep ensemble"


@brief
@dataclass(frozen=True, slots=True)
class Ensemble:
    """Trained members, in the order they were given.

    `loss` and `accuracy` (members × epochs) are means over each epoch as seen while training. `diverged` is, for each
    member, the first epoch (from 1) whose loss is not finite, the last one if only its last step went wrong, or None.
    `readings` are sorted by epoch, then as they were asked for.
    """

    members: tuple[Member, ...]
    stages: tuple[Stage, ...]
    loss: npt.NDArray[np.float32]
    accuracy: npt.NDArray[np.float32]
    readings: tuple[EnsembleReading, ...]
    stack: Stack
    settings: Mapping[str, Any]
    provenance: Mapping[str, Any]

    def __len__(self) -> int:
        return len(self.members)

    @property
    def diverged(self) -> tuple[int | None, ...]:
        """The first epoch with a loss that is not finite, for each member; the last one if its weights end so."""
        firsts = (np.flatnonzero(~np.isfinite(row))[:1].tolist() for row in self.loss)
        sound = self.stack.theta.isfinite().all(dim=1).tolist()
        last = self.loss.shape[1]
        return tuple(first[0] + 1 if first else None if ok else last for first, ok in zip(firsts, sound, strict=True))

    def network(self, member: int) -> Fnn:
        """One member as an ordinary network on the CPU, in evaluation mode."""
        shape = self.members[member].shape
        network = shape.build(0).to(self.stack.theta.dtype)
        network.load_state_dict(self.stack.state(member))
        return network.eval()

    def weights(self, member: int) -> dict[str, Tensor]:
        """One member's state dict, for `Fnn.load_state_dict` or `torch.save`."""
        return self.stack.state(member)

    def reading(
        self, *, epoch: int | None = None, reading: str | None = None, mode: str | None = None
    ) -> EnsembleReading:
        """The numbers at an epoch (the last one) in a reading (the first one asked for).

        `mode`, the former name of `reading`, is still taken.
        """
        epochs = sorted({one.epoch for one in self.readings})
        names = list(dict.fromkeys(one.reading for one in self.readings))
        name = names[0] if reading is None and mode is None else reading_named(reading, mode=mode)
        wanted = (epochs[-1] if epoch is None else epoch, name)
        for one in self.readings:
            if (one.epoch, one.reading) == wanted:
                return one
        raise InputError(
            f"The ensemble was not read at epoch {wanted[0]} in `{name}`. It was at the epochs "
            f"{', '.join(map(str, epochs))} in {' and '.join(f'`{each}`' for each in names)}."
        )

    def curve(
        self,
        member: int,
        metric: str = "fuzziness",
        *,
        epoch: int | None = None,
        reading: str | None = None,
        mode: str | None = None,
    ) -> list[float]:
        """A metric of one member over its sites, ready for `equisep.fit_law`; see `reading`."""
        if metric not in ARRAYS:
            raise InputError(f"No metric `{metric}`.{did_you_mean(metric, ARRAYS)} Known: {', '.join(ARRAYS)}.")
        values = getattr(self.reading(epoch=epoch, reading=reading, mode=mode), metric)
        if values is None:
            raise InputError(f"`{metric}` was not read. Ask for it with `Watch`.")
        if values.ndim != 2:
            raise InputError(f"`{metric}` is no curve over sites. Take it from `ensemble.reading()`.")
        if not isinstance(member, int | np.integer) or not -len(self) <= member < len(self):
            raise InputError(f"The ensemble has {plural(len(self), 'member')}, counted from 0; found {member!r}.")
        return [float(value) for value in values[member]]

    def taken(self, members: Sequence[int]) -> Ensemble:
        """Some members, in the order asked."""
        chosen = list(members)
        return Ensemble(
            members=tuple(self.members[index] for index in chosen),
            stages=self.stages,
            loss=self.loss[chosen],
            accuracy=self.accuracy[chosen],
            readings=tuple(reading.taken(chosen) for reading in self.readings),
            stack=_taken(self.stack, chosen),
            settings=self.settings,
            provenance=self.provenance,
        )

    def save(self, path: str | Path) -> None:
        """One npz file, written whole or not at all."""
        arrays: dict[str, npt.NDArray[Any]] = {
            "theta": self.stack.theta.numpy(),
            "tracked": self.stack.tracked.numpy(),
            "loss": self.loss,
            "accuracy": self.accuracy,
        }
        for layer, (mean, var) in enumerate(zip(self.stack.running_mean, self.stack.running_var, strict=True)):
            arrays[f"running_mean.{layer}"], arrays[f"running_var.{layer}"] = mean.numpy(), var.numpy()
        for index, reading in enumerate(self.readings):
            arrays |= {f"reading.{index}.{name}": value for name, value in reading.arrays().items()}
        header = {
            "kind": KIND,
            "schema": SCHEMA,
            "members": encode(self.members),
            "stages": encode(self.stages),
            "readings": [{"epoch": one.epoch, "reading": one.reading} for one in self.readings],
            "settings": encode(self.settings),
            "provenance": encode(self.provenance),
        }
        arrays["header"] = np.array(json.dumps(header))
        write_whole(Path(path), lambda file: np.savez(file, **arrays))  # type: ignore[arg-type]

    @staticmethod
    def load(path: str | Path) -> Ensemble:
        """What `save` wrote."""
        with _opened(path) as file:
            return _decoded({name: file[name] for name in file.files})

    @staticmethod
    def header(path: str | Path) -> dict[str, Any]:
        """What a file says of itself, without its arrays."""
        with _opened(path) as file:
            return _checked(json.loads(str(file["header"])))


def joined(parts: Sequence[Ensemble]) -> Ensemble:
    """Members of several ensembles of one shape, one after the other."""
    first = parts[0]
    return Ensemble(
        members=tuple(member for part in parts for member in part.members),
        stages=first.stages,
        loss=np.concatenate([part.loss for part in parts]),
        accuracy=np.concatenate([part.accuracy for part in parts]),
        readings=tuple(
            reading.joined(*(part.readings[index] for part in parts[1:]))
            for index, reading in enumerate(first.readings)
        ),
        stack=_joined([part.stack for part in parts]),
        settings=first.settings,
        provenance=first.provenance,
    )


def _taken(stack: Stack, members: Sequence[int]) -> Stack:
    def own(channels: Tensor) -> Tensor:
        return channels.view(stack.members, -1)[list(members)].flatten()

    return Stack(
        shape=stack.shape,
        theta=stack.theta[list(members)],
        running_mean=tuple(map(own, stack.running_mean)),
        running_var=tuple(map(own, stack.running_var)),
        tracked=stack.tracked[:, list(members)],
        vectors=vector_positions(stack.shape, len(members)),
    )


def _joined(stacks: Sequence[Stack]) -> Stack:
    first = stacks[0]
    return Stack(
        shape=first.shape,
        theta=torch.cat([stack.theta for stack in stacks]),
        running_mean=tuple(torch.cat(parts) for parts in zip(*(stack.running_mean for stack in stacks), strict=True)),
        running_var=tuple(torch.cat(parts) for parts in zip(*(stack.running_var for stack in stacks), strict=True)),
        tracked=torch.cat([stack.tracked for stack in stacks], dim=1),
        vectors=vector_positions(first.shape, sum(stack.members for stack in stacks)),
    )


@contextmanager
def _opened(path: str | Path) -> Iterator[Any]:
    """An npz file, and one sentence for everything that can be wrong with it."""
    try:
        with np.load(path, allow_pickle=False) as file:
            yield file
    except FileNotFoundError as error:
        raise ProfileError(f"No file `{path}`. Give one that `Ensemble.save` wrote.") from error
    except EquisepError:
        raise
    except (OSError, ValueError, LookupError, EOFError, AttributeError, TypeError, zipfile.BadZipFile) as error:
        raise ProfileError(f"`{path}` is no ensemble that can be read ({error}). Train it again.") from error


def _checked(header: dict[str, Any]) -> dict[str, Any]:
    if header.get("kind") != KIND:
        raise ProfileError(f"The file holds `{header.get('kind')}`, not `{KIND}`. Give one that `Ensemble.save` wrote.")
    missing = [
        name for name in ("schema", "members", "stages", "readings", "settings", "provenance") if name not in header
    ]
    if missing:
        raise ProfileError(f"The ensemble's header has no `{missing[0]}`. The file is damaged or hand-made.")
    if header["schema"] > SCHEMA:
        raise ProfileError(
            f"The ensemble was written by a newer equisep (layout {header['schema']}; this one reads {SCHEMA}). "
            "Update equisep."
        )
    return header


def _decoded(arrays: Mapping[str, npt.NDArray[Any]]) -> Ensemble:
    header = _checked(json.loads(str(arrays["header"])))
    members = decode(tuple[Member, ...], header["members"], where="members")
    shape = members[0].shape
    norms = range(len(shape.widths)) if shape.norm else range(0)
    theta = torch.from_numpy(arrays["theta"])
    if theta.shape != (len(members), shape.parameters):
        raise ModelError(f"The file holds weights of shape {tuple(theta.shape)} for {len(members)} × {shape}.")
    readings = [
        EnsembleReading(
            epoch=entry["epoch"],
            reading=reading_named(entry["reading"] if "reading" in entry else former_reading(entry["mode"])),
            **{name: arrays[key] for name in ARRAYS if (key := f"reading.{index}.{name}") in arrays},
        )
        for index, entry in enumerate(header["readings"])
    ]
    return Ensemble(
        members=members,
        stages=decode(tuple[Stage, ...], header["stages"], where="stages"),
        loss=arrays["loss"],
        accuracy=arrays["accuracy"],
        readings=tuple(readings),
        stack=Stack(
            shape=shape,
            theta=theta,
            running_mean=tuple(torch.from_numpy(arrays[f"running_mean.{layer}"]) for layer in norms),
            running_var=tuple(torch.from_numpy(arrays[f"running_var.{layer}"]) for layer in norms),
            tracked=torch.from_numpy(arrays["tracked"]),
            vectors=vector_positions(shape, len(members)),
        ),
        settings=header["settings"],
        provenance=header["provenance"],
    )
