"""Records of tensors as plain arrays and a JSON skeleton, and back, by a list of known classes: no pickle is written or read."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch
from torch import Tensor, nn

from equisep.errors import DataError
from equisep.files import write_whole, writing

SKELETON = "skeleton"
_PLAIN = (bool, int, float, str)

Kinds = Mapping[str, type]


def write_packed(path: Path, value: Any, *, kinds: Kinds) -> None:
    """A file that holds the value, whole or not at all; its bytes depend on the value alone."""
    packer = _Packer({kind: name for name, kind in kinds.items()})
    skeleton, arrays = packer.plain(value), packer.arrays

    def write(file: BinaryIO) -> None:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
            with archive.open(zipfile.ZipInfo(f"{SKELETON}.json"), "w") as entry:
                entry.write(json.dumps(skeleton, separators=(",", ":")).encode())
            for name, array in arrays.items():
                with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as entry:
                    np.lib.format.write_array(entry, array, allow_pickle=False)

    with writing(f"`{path.name}`", path.parent):
        write_whole(path, write)


def read_packed(path: Path, *, kinds: Kinds, device: torch.device | None = None, stay: tuple[str, ...] = ()) -> Any:
    """The value that a file holds, on a device, but for the classes named in `stay`; a ValueError says what is wrong with it."""
    try:
        with zipfile.ZipFile(path) as archive:
            with archive.open(f"{SKELETON}.json") as entry:
                skeleton = json.loads(entry.read())

            def array(name: str) -> np.ndarray:
                with archive.open(f"{name}.npy") as found:
                    return np.lib.format.read_array(found, allow_pickle=False)

            return _Reader(array, kinds, stay).value(skeleton, device)
    except FileNotFoundError as error:
        raise DataError(f"There is no file `{path}`. Check its name, or run the shard that writes it.") from error
    except (zipfile.BadZipFile, KeyError, ValueError, TypeError, EOFError) as error:
        raise DataError(
            f"`{path}` is damaged, or no part of a measurement ({type(error).__name__}: {error}). Run its shard again."
        ) from error


class _Packer:
    """Values as JSON; their tensors go to `arrays`, those that several records share once."""

    def __init__(self, names: dict[type, str]) -> None:
        self.names, self.arrays = names, dict[str, np.ndarray]()
        self._known: dict[int, str] = {}

    def plain(self, value: Any) -> Any:
        """One value."""
        if value is None or isinstance(value, _PLAIN):
            return value
        if isinstance(value, Tensor):
            return {"array": self._array(value)}
        if isinstance(value, slice):
            return {"slice": [value.start, value.stop]}
        if isinstance(value, list | tuple):
            return {"list" if isinstance(value, list) else "tuple": [self.plain(entry) for entry in value]}
        if isinstance(value, set | frozenset):
            return {type(value).__name__: [self.plain(entry) for entry in sorted(value)]}
        if isinstance(value, Mapping):
            return {"dict": [[self.plain(part) for part in pair] for pair in value.items()]}
        if isinstance(value, nn.Linear):
            return {"linear": [self.plain(value.weight), self.plain(value.bias)]}
        inside = {name: self.plain(entry) for name, entry in _fields(value).items()}
        return {"kind": self.names[type(value)], "fields": inside}

    def _array(self, tensor: Tensor) -> str:
        if id(tensor) not in self._known:
            name = self._known[id(tensor)] = f"a{len(self.arrays)}"
            wide = tensor.detach().to(torch.float32) if tensor.dtype is torch.bfloat16 else tensor.detach()
            self.arrays[name] = np.ascontiguousarray(wide.cpu().numpy()).reshape(tuple(tensor.shape))
        return self._known[id(tensor)]


def _fields(value: Any) -> dict[str, Any]:
    """What a record or an object holds, without what it can compute again."""
    if is_dataclass(value):
        return {entry.name: getattr(value, entry.name) for entry in fields(value)}
    kind = type(value)
    return {name: v for name, v in vars(value).items() if not isinstance(getattr(kind, name, None), cached_property)}


class _Reader:
    """JSON back into values."""

    def __init__(self, array: Any, kinds: Kinds, stay: tuple[str, ...]) -> None:
        self.array, self.kinds, self.stay = array, kinds, stay
        self._tensors: dict[tuple[str, torch.device | None], Tensor] = {}

    def value(self, plain: Any, device: torch.device | None) -> Any:
        """One value, its tensors on a device."""
        if not isinstance(plain, dict):
            return plain
        if "kind" in plain:
            return self._record(plain["kind"], plain["fields"], device)
        ((tag, content),) = plain.items()
        if tag == "array":
            if (content, device) not in self._tensors:
                tensor = torch.from_numpy(self.array(content))
                self._tensors[content, device] = tensor if device is None else tensor.to(device)
            return self._tensors[content, device]
        if tag == "slice":
            return slice(*content)
        if tag == "dict":
            return {self.value(key, device): self.value(entry, device) for key, entry in content}
        if tag == "linear":
            return _linear(*(self.value(part, device) for part in content))
        collected = [self.value(entry, device) for entry in content]
        return {"list": list, "tuple": tuple, "set": set, "frozenset": frozenset}[tag](collected)

    def _record(self, name: str, inside: dict[str, Any], device: torch.device | None) -> Any:
        kind = self.kinds[name]
        made: Any = object.__new__(kind)
        for key, entry in inside.items():
            object.__setattr__(made, key, self.value(entry, None if name in self.stay else device))
        return made


def _linear(weight: Tensor, bias: Tensor | None) -> nn.Linear:
    layer = nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None, device="meta")
    layer.weight = nn.Parameter(weight, requires_grad=False)
    if bias is not None:
        layer.bias = nn.Parameter(bias, requires_grad=False)
    return layer
