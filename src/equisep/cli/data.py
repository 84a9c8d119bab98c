"""The data of `equisep measure`: pictures or numbers from a data set, or sentences from a table, ready to be read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equisep.cli.record import data_record
from equisep.errors import DataError, InputError
from equisep.progress import Progress
from equisep.results import Note

if TYPE_CHECKING:
    from equisep.data import Dataset, Preparation

HELD_OUT = ("test", "dev")  # splits of a table that serve as test data, the first there is


@dataclass(frozen=True, slots=True)
class MeasuredData:
    """Batches of both splits, what is kept of them in the profile, and a few words for the user."""

    train: Any
    test: Any
    record: Mapping[str, Any]
    words: str
    notes: tuple[Note, ...] = field(default=())


def is_table(data: str, data_dir: Path | None) -> bool:
    """Whether `--data` names a table of sentences: a .tsv file, or a name that a folder of the user's holds as one."""
    from equisep.data import DATA_NAMES
    from equisep.data.load import user_folders

    if data.endswith(".tsv"):
        return True
    if data in DATA_NAMES or "/" in data or "." in data:
        return False
    folders = user_folders(data_dir)
    return any((folder / f"{data}.tsv").is_file() for folder in folders)


def dataset_batches(
    data: str, preparation: Preparation, *, data_dir: Path | None, split: str, per_class: int | None, seed: int, batch_size: int,
    progress: Progress,
) -> MeasuredData:  # fmt: skip
    """A data set of arrays."""
    from equisep.data import Batches, load_data, prepare_split

    dataset = load_data(data, data_dir=data_dir, progress=progress)
    first = "test" if split == "test" else "train"
    train = prepare_split(dataset, preparation, per_class=per_class, seed=seed, split=first)
    test = prepare_split(dataset, preparation, split="test") if split == "both" and len(dataset.y_test) else None
    record = data_record(dataset, preparation, split=first, per_class=per_class, seed=seed, batch_size=batch_size)
    return MeasuredData(
        train=Batches(*train, batch_size=batch_size),
        test=None if test is None else Batches(*test, batch_size=batch_size),
        record=record,
        words=f"Data `{dataset.name}`: {_scaled(dataset)}, {preparation}.",
        notes=dataset.notes,
    )


def _scaled(dataset: Dataset) -> str:
    return "bytes divided by 255, channels first" if dataset.x_train.dtype == "uint8" else "numbers as stored"


def sentence_batches(
    data: str, tokenizer: str, *, data_dir: Path | None, split: str, per_class: int | None, seed: int, batch_size: int,
    length: int | None,
) -> MeasuredData:  # fmt: skip
    """A table of sentences, through the tokenizer of a Hugging Face folder or name."""
    from equisep.data import TokenBatches, load_sentences, load_tokenizer

    turn = load_tokenizer(tokenizer)
    splits = _splits(data, data_dir)
    held_out = next((name for name in HELD_OUT if name in splits), None)
    if split == "test" and held_out is None:
        raise DataError(f"`--split test` needs a split test or dev; `{data}` has {', '.join(splits)}.")
    first = held_out if split == "test" and held_out is not None else "train"

    def batches(name: str, *, drawn: int | None) -> TokenBatches:
        sentences = load_sentences(data, split=name, data_dir=data_dir)
        if drawn is not None:
            sentences = sentences.draw(drawn, seed=seed)
        padding = "longest" if length is None else "max_length"
        return TokenBatches(
            sentences.texts, sentences.labels, turn, batch_size=batch_size, length=length, padding=padding
        )

    record = {
        "name": data, "split": first, "per_class": per_class, "seed": seed, "tokenizer": tokenizer, "length": length,
        "batch_size": batch_size,
    }  # fmt: skip
    test = batches(held_out, drawn=None) if split == "both" and held_out is not None else None
    beside = "" if test is None else f", beside its split {held_out}"
    return MeasuredData(
        train=batches(first, drawn=per_class),
        test=test,
        record=record,
        words=f"Sentences of `{data}`, split {first}{beside}, through the tokenizer of `{tokenizer}`.",
    )


def _splits(data: str, data_dir: Path | None) -> tuple[str, ...]:
    from equisep.data.text import splits_of

    return splits_of(data, data_dir=data_dir)


def tokenizer_of(model: str, asked: str | None) -> str:
    """Whose tokenizer turns sentences into numbers: the one asked for, or that of an hf: model."""
    from equisep.models.load import parse_spec

    if asked is not None:
        return asked
    spec = parse_spec(model)
    if spec.source != "hf":
        raise InputError(
            f"Sentences need a tokenizer, and `{model}` brings none. Pass `--tokenizer` with a Hugging Face name or folder."
        )
    return spec.name
