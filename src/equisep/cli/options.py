"""The flags that several commands share, declared once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from equisep.cli.console import say
from equisep.errors import InputError
from equisep.results import former_reading

PICTURES = (".png", ".svg", ".pdf")
MODEL, DATA, READ, STATISTICS, OUTPUT = "Model", "Data", "What is read", "Statistics", "Output"  # panels of the help
SHARDS = "Shards: one measurement by many jobs"


def option(flag: str, panel: str, help: str, *, default: str | None = None, **more: Any) -> Any:
    """An option in a panel of the help, which names the `default` where the option itself, left out, is None."""
    shown = True if default is None else default
    return typer.Option(flag, help=help, rich_help_panel=panel, show_default=shown, **more)


_READING = (
    "How BatchNorm reads: eval (running statistics), mixed (those of class-mixed batches) or drawn (those of batches in the "
    "order drawn, as He & Su's program)"
)
Reading = Annotated[str | None, option("--reading", READ, f"{_READING}.", default="eval")]
Readings = Annotated[
    list[str] | None,
    option("--reading", READ, f"{_READING}; several with commas, or repeated: eval,mixed,drawn.", default="eval"),
]
Mode = Annotated[str | None, typer.Option("--mode", hidden=True)]  # the former name of --reading
Json = Annotated[bool, option("--json", OUTPUT, "Print one JSON object instead of text.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no remarks.", rich_help_panel=OUTPUT)]
Seed = Annotated[int, typer.Option("--seed", min=0, max=2**32 - 1, help="Seed of weights, batch order and resampling.")]
Device = Annotated[str | None, typer.Option("--device", help="Where to compute: cpu, cuda, cuda:1, mps.")]
_MODEL = option(
    "--model",
    MODEL,
    "A network by name (vgg13,colors=3), timm:name, torchvision:name, hf:name-or-folder, or pkg.module:factory or "
    "./file.py:factory, a function that makes the model: its code is run.",
)
Model = Annotated[str, _MODEL]
ModelName = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="A network by name, timm:name, torchvision:name, hf:name-or-folder, or pkg.module:factory or ./file.py:factory, a "
        "function that makes the model: its code is run.",
    ),
]
Checkpoint = Annotated[
    Path | None, option("--checkpoint", MODEL, "Weights: a state dict, as torch.save or safetensors wrote it.")
]
_DATA = option(
    "--data",
    DATA,
    "A data set by name, an .npz file, sentences (a .tsv table), or pkg.module:loader or ./file.py:loader, a loader or "
    "a function that makes one: its code is run.",
)
DataName = Annotated[str, _DATA]
# where features that are stored may stand for both
ModelOrStored = Annotated[str | None, _MODEL]
DataOrStored = Annotated[str | None, _DATA]
Features = Annotated[
    str | None,
    option(
        "--features",
        DATA,
        "Instead of --model and --data: stored features, a file, folder or URL of .npy, .safetensors, .arrow, .feather or "
        ".parquet, as equisep features writes them.",
    ),
]
FeatureLabels = Annotated[
    str | None,
    option(
        "--labels",
        DATA,
        "With --features: the file, or the array or column, that holds the labels.",
        default="labels, label, y, …",
    ),
]
Tokenizer = Annotated[
    str | None, option("--tokenizer", DATA, "Text only: a Hugging Face name or folder; an hf: model has its own.")
]
TokenLength = Annotated[int | None, option("--length", DATA, "Text only: cut and pad all to this many tokens.", min=1)]
BatchSize = Annotated[int, option("--batch-size", DATA, "Samples per batch, in one class-mixed order.", min=1)]
Split = Annotated[str, option("--split", DATA, "both, train, or test (measured by its own means).")]
DataFolder = Annotated[
    Path | None, option("--data-dir", DATA, "Folder with data files (or EQUISEP_DATA).", exists=True, file_okay=False)
]
Prepare = Annotated[str | None, option("--prepare", DATA, "A named preparation, such as he2023-10x10.")]
Resize = Annotated[str | None, option("--resize", DATA, "10 or 10x12 (height x width).")]
Channels = Annotated[str | None, option("--channels", DATA, "all, rgb, gray, red, green or blue.")]
Normalize = Annotated[
    str | None, option("--normalize", DATA, "MEAN/STD: 0.5/0.5, or one per channel: .49,.48,.45/.25,.24,.26.")
]
PerClass = Annotated[int | None, option("--per-class", DATA, "Draw this many samples per class.", min=1)]
Sites = Annotated[
    list[str] | None,
    option("--sites", READ, "auto, layers, blocks, a module name or a glob; may be repeated.", default="auto"),
]
Reduced = Annotated[
    str | None,
    option(
        "--reduction",
        READ,
        "How features become vectors: flatten, mean, positions or pca=100; of sequences also first, last, tokens.",
        default="auto",
    ),
]
Memory = Annotated[
    float | None,
    option("--memory", STATISTICS, "GiB of features to keep before reading twice.", default="1", min=0.0, max=2.0**20),
]
ProfileFile = Annotated[Path, typer.Argument(metavar="PROFILE", help="A profile that equisep saved.")]


def parse_reading(reading: str | None, mode: str | None) -> str | None:
    """The reading that was asked for; --mode and its value batch, the former names, are taken with a remark."""
    former = mode if mode is not None else "batch" if reading == "batch" else None
    if former is None:
        return reading
    flag = "--reading" if mode is None else "--mode"
    say(f"`{flag} {former}` is now `--reading {former_reading(former)}`.")
    return former_reading(former)


def parse_readings(readings: list[str] | None, mode: str | None) -> list[str] | None:
    """The readings that were asked for, parted by commas or one by one; former names are taken with a remark."""
    if mode is not None or not readings:
        one = parse_reading(None, mode)
        return None if one is None else [one]
    return [parse_reading(name.strip(), None) or "" for word in readings for name in word.split(",")]


def parse_sites(sites: list[str]) -> str | list[str]:
    """One word alone may name a grain; several are names and globs."""
    return sites[0] if len(sites) == 1 else sites


def parse_numbers(words: str, *, flag: str) -> list[int]:
    """`50,100,200` as numbers."""
    parts = [part.strip() for part in words.split(",")]
    if not all(part.isdigit() and len(part) < 10 for part in parts):
        raise InputError(f"`{flag}` takes samples per class, such as 50,100,200; found `{words}`.")
    return [int(part) for part in parts]


def parse_memory(gibibytes: float | None) -> int | None:
    """`--memory` in bytes, as the library takes it."""
    return None if gibibytes is None else int(gibibytes * 2**30)


def parse_size(text: str | None) -> int | tuple[int, int] | None:
    """`10` or `10x12` (height × width)."""
    if text is None:
        return None
    try:
        parts = [int(part) for part in text.lower().replace("×", "x").split("x")]
    except ValueError:
        parts = []
    if len(parts) == 1:
        return parts[0]
    if len(parts) == 2:
        return parts[0], parts[1]
    raise InputError(f"`--resize` takes a size, 10 or 10x12 (height x width); found `{text}`.")


def parse_normalization(text: str | None) -> tuple[tuple[float, ...], tuple[float, ...]] | None:
    """`MEAN/STD`, each one number or one per channel: `0.5/0.5`, `0.49,0.48,0.45/0.25,0.24,0.26`."""
    if text is None:
        return None
    mean, slash, std = text.partition("/")
    try:
        values = tuple(float(part) for part in mean.split(",")), tuple(float(part) for part in std.split(","))
    except ValueError:
        slash = ""
    if not slash:
        raise InputError(
            f"`--normalize` takes MEAN/STD, such as 0.5/0.5 or 0.49,0.48,0.45/0.25,0.24,0.26; found `{text}`."
        )
    return values
