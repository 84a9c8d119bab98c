"""The data of `equisep measure`: a data set of arrays, sentences from a table, or what the user's own code gives."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from dataclasses import asdict, dataclass, field, fields
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_type_hints

from equisep.cli.console import progress_bars, say
from equisep.cli.options import (
    BatchSize,
    Channels,
    DataFolder,
    Normalize,
    PerClass,
    Prepare,
    Resize,
    Split,
    Tokenizer,
    TokenLength,
    parse_normalization,
    parse_size,
)
from equisep.errors import DataError, InputError
from equisep.progress import Progress
from equisep.results import Note
from equisep.user_code import made_by, split_options

if TYPE_CHECKING:
    from equisep.data import Dataset, Preparation
    from equisep.models.load import LoadedModel

HELD_OUT = ("test", "dev")  # splits of a table that serve as test data, the first there is
HELD_OUT_KEYS = ("test", "validation")  # … and of a mapping of data sets
SPLITS = ("both", "train", "test")
R = TypeVar("R")
_CODE = re.compile(r".+:[A-Za-z_][\w.]*")


@dataclass(frozen=True, slots=True)
class DataFlags:
    """What the flags of a command say of its data; those that were not given are None."""

    data: str
    seed: int = 0
    data_dir: DataFolder = None
    tokenizer: Tokenizer = None
    length: TokenLength = None
    split: Split = "both"
    prepare: Prepare = None
    resize: Resize = None
    channels: Channels = None
    normalize: Normalize = None
    per_class: PerClass = None
    batch_size: BatchSize = 100

    def __post_init__(self) -> None:
        if self.split not in SPLITS:
            raise InputError(f"`--split` takes both, train or test; found `{self.split}`.")

    def asked(self) -> dict[str, Any]:
        """The data and the flags that were given, so that another command can be asked for the same: `--per-class 100`."""
        plain = type(self)(self.data)
        given = {each.name: getattr(self, each.name) for each in fields(self)}
        changed = {name: value for name, value in given.items() if value != getattr(plain, name)}
        return {
            "asked": self.data,
            "flags": {f"--{name.replace('_', '-')}": str(value) for name, value in changed.items()},
        }

    def refuse(self, *names: str, because: str) -> None:
        """Raise where a flag was given that these data have no use for."""
        for name in names:
            if getattr(self, name) is not None:
                raise InputError(f"`--{name.replace('_', '-')}` {because} Leave it out.")


def with_data_options(*without: str, **defaults: Any) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Of a command's argument `flags`, the options that it is made of, where it stands: of all but `without`.

    `data` and `seed` are the command's own, under its own words. `defaults` are those that differ.
    """

    def decorate(command: Callable[..., R]) -> Callable[..., R]:
        hints, own = get_type_hints(command, include_extras=True), signature(command)
        kinds = get_type_hints(DataFlags, include_extras=True)
        options = [
            Parameter(each.name, Parameter.POSITIONAL_OR_KEYWORD, default=defaults.get(each.name, each.default))
            for each in fields(DataFlags)
            if each.name not in ("data", "seed", *without)
        ]

        @wraps(command)
        def run(*args: Any, **given: Any) -> R:
            flags = {name: given.pop(name) for name in [option.name for option in options] if name in given}
            data = given["data"] or ""  # which one command goes without
            return command(*args, flags=DataFlags(data, given["seed"], **defaults | flags), **given)

        named = [[parameter] if name != "flags" else options for name, parameter in own.parameters.items()]
        kept = {name: hint for name, hint in hints.items() if name != "flags"}
        run.__annotations__ = kept | {option.name: kinds[option.name] for option in options}
        run.__signature__ = own.replace(  # type: ignore[attr-defined]
            parameters=[each.replace(annotation=run.__annotations__[each.name]) for part in named for each in part]
        )
        return run

    return decorate


PICTURES = ("prepare", "resize", "channels", "normalize")
TEXT = ("tokenizer", "length")


@dataclass(frozen=True, slots=True)
class MeasuredData:
    """Batches of both splits, what is kept of them in the profile, and a few words for the user."""

    train: Any
    test: Any
    record: Mapping[str, Any]
    words: str
    notes: tuple[Note, ...] = field(default=())


def load_named_model(model: str, *, checkpoint: Path | None, seed: int, quiet: bool) -> LoadedModel:
    """The model that `--model` and `--checkpoint` name: its factory draws weights from the seed, and prints to stderr alone."""
    import torch

    from equisep.models import loaded_model, loading_words

    say(loading_words(model, checkpoint=checkpoint), quiet=quiet)
    torch.manual_seed(seed)
    with redirect_stdout(sys.stderr):  # what the user's code prints is no result
        return loaded_model(model, checkpoint=checkpoint)


@contextmanager
def model_and_data(
    model: str, flags: DataFlags, *, checkpoint: Path | None, device: str | None, quiet: bool
) -> Iterator[tuple[LoadedModel, MeasuredData, Progress]]:
    """The model and the data that a command's options name, with bars for what is done with them; user code prints to stderr."""
    from equisep.devices import usable_device

    if device is not None:
        usable_device(device, asked="--device")
    loaded = load_named_model(model, checkpoint=checkpoint, seed=flags.seed, quiet=quiet)
    with progress_bars(quiet=quiet) as progress:
        source = load_named_data(flags, model=model, progress=progress)
        say(source.words, quiet=quiet)
        with redirect_stdout(sys.stderr):
            yield loaded, source, progress


def load_named_data(asked: DataFlags, *, model: str, progress: Progress) -> MeasuredData:
    """The data that `--data` names; an hf: `model` brings its tokenizer along."""
    if is_code(asked.data):
        return _made(asked)
    if _is_table(asked):
        asked.refuse(*PICTURES, because=f"prepares pictures, and `{asked.data}` holds sentences.")
        return _sentences(asked, _tokenizer(model, asked.tokenizer))
    asked.refuse(*TEXT, because=f"is for sentences, and `{asked.data}` holds none.")
    return _arrays(asked, progress)


# --- a data set of arrays


def _arrays(asked: DataFlags, progress: Progress) -> MeasuredData:
    from equisep.data import Batches, drawn_order, full_per_class, load_data, prepare_split

    preparation = preparation_of(asked.prepare, resize=asked.resize, channels=asked.channels, normalize=asked.normalize)
    dataset = load_data(asked.data, data_dir=asked.data_dir, progress=progress)
    first = "test" if asked.split == "test" else "train"

    def batches(split: str, per_class: int | None) -> Batches:
        x, y = prepare_split(dataset, preparation, per_class=per_class, seed=asked.seed, split=split)
        order = None
        if per_class is not None or dataset.source != "file":  # a file that is taken whole stands in its own order
            full = full_per_class(dataset) if split == "train" else None
            order = drawn_order(dataset, per_class=per_class, seed=asked.seed, split=split, pool_per_class=full)
        return Batches(x, y, batch_size=asked.batch_size, class_names=dataset.class_names, drawn=order)

    return MeasuredData(
        train=batches(first, asked.per_class),
        test=batches("test", None) if asked.split == "both" and len(dataset.y_test) else None,
        record=data_record(
            dataset,
            preparation,
            split=first,
            per_class=asked.per_class,
            seed=asked.seed,
            batch_size=asked.batch_size,
        ),
        words=f"Data `{dataset.name}`: {_scaled(dataset)}, {preparation}.",
        notes=dataset.notes,
    )


def preparation_of(name: str | None, *, resize: str | None, channels: str | None, normalize: str | None) -> Preparation:
    """The preparation that the flags state: a named one, changed by the others."""
    from equisep.data import Preparation, named_preparation

    base = Preparation() if name is None else named_preparation(name)
    return Preparation(
        channels=base.channels if channels is None else channels,
        resize=base.resize if resize is None else parse_size(resize),
        normalize=base.normalize if normalize is None else parse_normalization(normalize),
    )


def data_record(
    dataset: Dataset, preparation: Preparation, *, split: str, per_class: int | None, seed: int, batch_size: int
) -> dict[str, Any]:
    """Which samples, prepared how, in which batches, alike for every command, so that profiles compare."""
    return {
        "name": dataset.name,
        "checksum": dataset.checksum,
        "split": split,
        "per_class": per_class,
        "seed": seed,
        "preparation": asdict(preparation),
        "batch_size": batch_size,
    }


def _scaled(dataset: Dataset) -> str:
    return "bytes divided by 255, channels first" if dataset.x_train.dtype == "uint8" else "numbers as stored"


# --- a table of sentences


def _is_table(asked: DataFlags) -> bool:
    """Whether `--data` names a table of sentences: a .tsv file, or a name that a folder of the user's holds as one."""
    from equisep.data import DATA_NAMES
    from equisep.data.load import user_folders

    if asked.data.endswith(".tsv"):
        return True
    if asked.data in DATA_NAMES or "/" in asked.data or "." in asked.data:
        return False
    return any((folder / f"{asked.data}.tsv").is_file() for folder in user_folders(asked.data_dir))


def _sentences(asked: DataFlags, tokenizer: str) -> MeasuredData:
    from equisep.data import TokenBatches, load_sentences, load_tokenizer
    from equisep.data.text import splits_of

    tokenize = load_tokenizer(tokenizer)
    splits = splits_of(asked.data, data_dir=asked.data_dir)
    held_out = next((name for name in HELD_OUT if name in splits), None)
    if asked.split == "test" and held_out is None:
        raise DataError(f"`--split test` needs a split test or dev; `{asked.data}` has {', '.join(splits)}.")
    first = held_out if asked.split == "test" and held_out is not None else "train"

    def batches(split: str, per_class: int | None) -> TokenBatches:
        sentences = load_sentences(asked.data, split=split, data_dir=asked.data_dir)
        if per_class is not None:
            sentences = sentences.draw(per_class, seed=asked.seed)
        return TokenBatches(
            sentences.texts,
            sentences.labels,
            tokenize,
            batch_size=asked.batch_size,
            length=asked.length,
            padding="longest" if asked.length is None else "max_length",
        )

    test = batches(held_out, None) if asked.split == "both" and held_out is not None else None
    beside = "" if test is None else f", beside its split {held_out}"
    return MeasuredData(
        train=batches(first, asked.per_class),
        test=test,
        record={
            "name": asked.data,
            "split": first,
            "per_class": asked.per_class,
            "seed": asked.seed,
            "tokenizer": tokenizer,
            "length": asked.length,
            "batch_size": asked.batch_size,
        },
        words=f"Sentences of `{asked.data}`, split {first}{beside}, through the tokenizer of `{tokenizer}`.",
    )


def _tokenizer(model: str, asked: str | None) -> str:
    """Whose tokenizer turns sentences into numbers: the one asked for, or that of an hf: model."""
    from equisep.models import parse_spec

    if asked is not None:
        return asked
    spec = parse_spec(model)
    if spec.source != "hf":
        raise InputError(
            f"Sentences need a tokenizer, and `{model}` brings none. Pass `--tokenizer` with a Hugging Face name or folder."
        )
    return spec.name


# --- what the user's own code gives


def is_code(data: str) -> bool:
    """Whether `--data` names code: `pkg.module:loader` or `file.py:loader`."""
    name, _ = split_options(data)
    if name.endswith(".py"):
        raise DataError(f"`--data {data}` is a file of code. Name what makes the data in it: `{name}:loader`, say.")
    return _CODE.fullmatch(name) is not None and not Path(data).exists()


def _made(asked: DataFlags) -> MeasuredData:
    import torch

    why = f"is not for `{asked.data}`, which makes its own samples."
    asked.refuse(*PICTURES, *TEXT, "per_class", "data_dir", because=why)
    name, options = split_options(asked.data)
    torch.manual_seed(asked.seed)  # a factory may draw samples
    with redirect_stdout(sys.stderr):  # what the user's code prints is no result
        made = made_by(
            name,
            options,
            ready=_is_data,
            kind="loader or data set",
            returns="a loader, a data set, a pair (x, y), or a pair (train, test) of these",
            error=DataError,
        )
    train, test = _train_and_test(made)
    if asked.split == "test":
        if test is None:
            raise DataError(f"`--split test` needs test data; `{asked.data}` gives one data set. Return (train, test).")
        train, test = test, None
    test = None if asked.split == "train" else test
    return MeasuredData(
        train=_batched(train, "training", asked.batch_size),
        test=None if test is None else _batched(test, "test", asked.batch_size),
        record={
            "name": asked.data,
            "split": "test" if asked.split == "test" else "train",
            "seed": asked.seed,
            "batch_size": asked.batch_size if _is_pair(train) or _is_dataset(train) else None,
        },
        words=f"Data: what the code of `{name}` gives{'' if test is None else ', training and test data'}.",
    )


def _is_data(value: Any) -> bool:
    usable = hasattr(value, "__iter__") or _is_dataset(value)
    return usable and not isinstance(value, type | str | bytes)


def _is_dataset(value: Any) -> bool:
    from torch.utils.data import Dataset, IterableDataset

    return isinstance(value, Dataset) and not isinstance(value, IterableDataset)


def _is_array(value: Any) -> bool:
    return hasattr(value, "shape") or hasattr(value, "to_numpy")


def _is_pair(value: Any) -> bool:
    return isinstance(value, list | tuple) and len(value) == 2 and _is_array(value[1])


def _train_and_test(made: Any) -> tuple[Any, Any]:
    """Training data, and test data where a tuple or a mapping holds both; a pair with labels in it is one data set."""
    if isinstance(made, Mapping) and "train" in made:
        return made["train"], next((made[key] for key in HELD_OUT_KEYS if key in made), None)
    if isinstance(made, tuple) and len(made) == 2 and not _is_pair(made):
        return made
    return made, None


def _batched(data: Any, what: str, batch_size: int) -> Any:
    """Arrays and data sets in class-mixed batches of the size asked for; loaders have their own."""
    from equisep.data import Batches
    from equisep.data.ordered import MixedLoader

    if _is_pair(data) and not isinstance(data[0], Mapping):
        x, y = data
        return Batches(x, y, batch_size=batch_size)
    return MixedLoader.of(data, what=what, batch_size=batch_size) if _is_dataset(data) else data
