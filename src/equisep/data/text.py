"""Labelled sentences from a table, and tokenized batches of them that come in the same order every time."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from equisep.data.batches import Batches
from equisep.data.load import FOLDER_VARIABLE, user_folders
from equisep.data.sampling import draw
from equisep.errors import DataError, InputError, MissingExtraError
from equisep.hub import at_hand_first
from equisep.labels import Labels, label_vector

COLUMNS = ("split", "label", "sentence")
PADDINGS = ("longest", "max_length")
NO_LIMIT = 10**9  # tokens
DIGITS = 9  # of a label, at the most

Encoded = dict[str, torch.Tensor]


@dataclass(frozen=True, eq=False)
class Sentences:
    """Sentences with their labels 0 … `classes` − 1, and the name of the table they came from."""

    texts: tuple[str, ...]
    labels: Labels
    classes: int
    name: str

    def __len__(self) -> int:
        return len(self.texts)

    def draw(self, per_class: int, *, seed: int = 0) -> Sentences:
        """`per_class` sentences of each class, by seed; a larger draw contains every smaller one."""
        chosen = draw(self.labels, per_class=per_class, seed=seed, classes=self.classes)
        return Sentences(tuple(self.texts[i] for i in chosen), self.labels[chosen], self.classes, self.name)

    def __repr__(self) -> str:
        return f"Sentences({self.name!r}: {len(self)} sentences, {self.classes} classes)"


def load_sentences(
    name: str | os.PathLike[str], *, split: str = "train", data_dir: str | os.PathLike[str] | None = None
) -> Sentences:
    """One split of a table of sentences: a path, or a name such as `sst2`, which is `sst2.tsv` in a folder of the user's.

    The folders are `data_dir` and the one that EQUISEP_DATA names. The table has one sentence a line, tab-separated,
    under the header `split label sentence`; labels count from 0 (in SST-2 1 is positive). Nothing is downloaded.
    """
    path = _found(os.fspath(name), data_dir)
    rows = _rows(path)
    splits = list(dict.fromkeys(row[0] for row in rows))
    if split not in splits:
        raise DataError(f"`{path}` holds no split `{split}`; it has {', '.join(splits) or 'none'}.")
    labels = np.array([row[1] for row in rows], dtype=np.int64)
    inside = np.array([row[0] == split for row in rows])
    texts = tuple(row[2] for row in rows if row[0] == split)
    return Sentences(texts, labels[inside], int(labels.max()) + 1, path.stem)


def splits_of(name: str | os.PathLike[str], *, data_dir: str | os.PathLike[str] | None = None) -> tuple[str, ...]:
    """The splits of a table of sentences, in the order in which they come."""
    return tuple(dict.fromkeys(row[0] for row in _rows(_found(os.fspath(name), data_dir))))


def _found(name: str, data_dir: str | os.PathLike[str] | None) -> Path:
    if name.endswith(".tsv") or "/" in name or os.sep in name:
        path = Path(name).expanduser()
        if not path.is_file():
            raise DataError(f"There is no table `{path}`. Check the path; it is one .tsv file.")
        return path
    folders = user_folders(data_dir)
    for folder in folders:
        if (folder / f"{name}.tsv").is_file():
            return folder / f"{name}.tsv"
    looked = ", ".join(f"`{folder}`" for folder in folders) or "no folder"
    raise DataError(
        f"`{name}` is the table `{name}.tsv` ({', '.join(COLUMNS)}); it was looked for in {looked}. "
        f"Put it into a folder and give that folder as `data_dir` or {FOLDER_VARIABLE}."
    )


def _rows(path: Path) -> list[tuple[str, int, str]]:
    try:
        header, *lines = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"`{path}` cannot be read as a table of sentences: {error}. Save it as UTF-8 text.") from error
    if tuple(header.rstrip("\r").split("\t")) != COLUMNS:
        raise DataError(
            f"`{path}` should begin with the header {', '.join(COLUMNS)}, separated by tabs; found {header[:60]!r}."
        )
    rows = []
    for number, line in enumerate(lines, start=2):
        parts = line.rstrip("\r").split("\t", 2)
        if len(parts) != 3 or not parts[1].isdecimal() or len(parts[1]) > DIGITS:
            raise DataError(
                f"Line {number} of `{path}` should be a split, a label from 0 on and a sentence; found {line[:60]!r}."
            )
        rows.append((parts[0], int(parts[1]), parts[2]))
    return rows


class TokenBatches:
    """Batches ({"input_ids", "attention_mask", …}, y) of sentences, one fixed class-mixed order, padded batch by batch.

    `tokenizer` is called as Hugging Face's are. Sentences longer than `length` tokens are cut (by default at the
    tokenizer's own limit, where it has one); `padding="max_length"` pads every batch to `length`, as `flatten` needs.
    """

    def __init__(
        self,
        texts: Sequence[str],
        labels: Any,
        tokenizer: Callable[..., Any],
        *,
        batch_size: int = 100,
        length: int | None = None,
        padding: str = "longest",
        seed: int = 0,
        order: str = "mixed",
        drawn: Any = None,
    ) -> None:
        if len(texts) != len(labels):
            raise InputError(f"`TokenBatches` got {len(texts)} sentences and {len(labels)} labels. Give one for each.")
        if getattr(tokenizer, "pad_token_id", None) is None:
            raise InputError(
                f"The tokenizer `{type(tokenizer).__name__}` has no pad token, so sentences of unequal length make no batch. "
                "Set one, such as `tokenizer.pad_token = tokenizer.eos_token`."
            )
        if padding not in PADDINGS or (padding == "max_length" and length is None):
            raise InputError(
                f"`padding` is longest, or max_length with a `length`; found {padding!r} and length={length}."
            )
        self.texts, self.tokenizer, self.length, self.padding = list(texts), tokenizer, length, padding
        # tokenizers without a limit of their own say 10³⁰, and warn when asked to cut there
        self.truncation = length is not None or getattr(tokenizer, "model_max_length", NO_LIMIT) < NO_LIMIT
        vector, note = label_vector(labels)
        self.notes = () if note is None else (note,)
        positions = torch.arange(len(texts), device="cpu")
        self._positions = Batches(positions, vector, batch_size=batch_size, seed=seed, order=order, drawn=drawn)

    @property
    def mixes(self) -> bool:
        """Whether the order is a uniform permutation of ours."""
        return self._positions.mixes

    def in_drawn_order(self) -> TokenBatches:
        """The same sentences in the order in which they were drawn; see `Batches`."""
        other = copy(self)
        other._positions = self._positions.in_drawn_order()
        return other

    @property
    def starts(self) -> list[int]:
        """The number of the first sentence of each batch, in the order read."""
        return self._positions.starts

    @property
    def samples(self) -> int:
        """How many sentences the batches hold."""
        return self._positions.samples

    def only(self, batches: slice) -> TokenBatches:
        """Some of the batches, as they are."""
        other = copy(self)
        other._positions = self._positions.only(batches)
        return other

    def __len__(self) -> int:
        return len(self._positions)

    def __iter__(self) -> Iterator[tuple[Encoded, torch.Tensor]]:
        for positions, labels in self._positions:
            encoded = self.tokenizer(
                [self.texts[i] for i in positions],
                padding=self.padding,
                truncation=self.truncation,
                max_length=self.length,
                return_tensors="pt",
            )
            yield dict(encoded), labels

    def __repr__(self) -> str:
        return f"TokenBatches({len(self.texts)} sentences in {len(self)} batches, {type(self.tokenizer).__name__})"


def load_tokenizer(name: str) -> Any:
    """The tokenizer of a Hugging Face folder (read offline) or of a name on the hub; code that comes with it is never run."""
    try:
        transformers = importlib.import_module("transformers")
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            needed_for=f"The tokenizer of `{name}`", package="transformers", extra="transformers"
        ) from error
    folder = Path(name).expanduser()
    source = str(folder) if folder.is_dir() else name

    def load(offline: bool) -> Any:
        return transformers.AutoTokenizer.from_pretrained(source, local_files_only=offline, trust_remote_code=False)

    try:
        return at_hand_first(load, local=folder.is_dir())
    except Exception as error:  # no network, no such name, no tokenizer beside the model
        reason = str(error).strip().split("\n")[0].rstrip(".:")
        raise DataError(
            f"No tokenizer could be read from `{name}` ({type(error).__name__}: {reason}). "
            "Give a folder that holds tokenizer.json, or a name on the hub while there is a network."
        ) from error
