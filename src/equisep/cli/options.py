"""The flags that several commands share, declared once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from equisep.cli.console import say
from equisep.errors import InputError
from equisep.results import former_reading

PICTURES = (".png", ".svg", ".pdf")
MODEL, DATA, READ, STATISTICS, OUTPUT = "Model", "Data", "What is read", "Statistics", "Output"  # panels of the help
SHARDS = "Shards: one measurement by many jobs"

_READING = (
    "How BatchNorm reads: eval (running statistics), mixed (those of class-mixed batches) or drawn (those of batches in the "
    "order drawn, as He & Su's figures)"
)
Reading = Annotated[
    str | None, typer.Option("--reading", help=f"{_READING}.", rich_help_panel=READ, show_default="eval")
]
Readings = Annotated[
    list[str] | None,
    typer.Option(
        "--reading",
        help=f"{_READING}; several with commas, or repeated: eval,mixed,drawn.",
        rich_help_panel=READ,
        show_default="eval",
    ),
]
Mode = Annotated[str | None, typer.Option("--mode", hidden=True)]  # the former name of --reading
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.", rich_help_panel=OUTPUT)]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no remarks.", rich_help_panel=OUTPUT)]
Seed = Annotated[int, typer.Option("--seed", min=0, max=2**32 - 1, help="Seed of weights, batch order and resampling.")]
Device = Annotated[str | None, typer.Option("--device", help="Where to compute: cpu, cuda, cuda:1, mps.")]
_MODEL = typer.Option(
    "--model",
    help="A network by name (vgg13,colors=3), timm:name, torchvision:name, hf:name-or-folder, or pkg.module:factory or "
    "./file.py:factory, a function that makes the model: its code is run.",
    rich_help_panel=MODEL,
)
Model = Annotated[str, _MODEL]
ModelName = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="A network by name, timm:name, torchvision:name, hf:name-or-folder, or pkg.module:factory or ./file.py:factory: its "
        "code is run.",
    ),
]
Checkpoint = Annotated[
    Path | None,
    typer.Option(
        "--checkpoint", help="Weights: a state dict, as torch.save or safetensors wrote it.", rich_help_panel=MODEL
    ),
]
_DATA = typer.Option(
    "--data",
    help="A data set by name, an .npz file, sentences (a .tsv table), or pkg.module:loader or ./file.py:loader, a loader or "
    "a function that makes one: its code is run.",
    rich_help_panel=DATA,
)
DataName = Annotated[str, _DATA]
# where features that are stored may stand for both
ModelOrStored = Annotated[str | None, _MODEL]
DataOrStored = Annotated[str | None, _DATA]
Features = Annotated[
    str | None,
    typer.Option(
        "--features",
        help="Instead of --model and --data: stored features, a file, folder or URL of .npy, .safetensors, .arrow, .feather or "
        ".parquet, as equisep features writes them.",
        rich_help_panel=DATA,
    ),
]
FeatureLabels = Annotated[
    str | None,
    typer.Option(
        "--labels",
        help="With --features: the file, or the array or column, that holds the labels.",
        rich_help_panel=DATA,
        show_default="labels, label, y, …",
    ),
]
Tokenizer = Annotated[
    str | None,
    typer.Option(
        "--tokenizer",
        help="Text only: a Hugging Face name or folder; an hf: model has its own.",
        rich_help_panel=DATA,
    ),
]
TokenLength = Annotated[
    int | None,
    typer.Option("--length", help="Text only: cut and pad all to this many tokens.", rich_help_panel=DATA, min=1),
]
BatchSize = Annotated[
    int, typer.Option("--batch-size", help="Samples per batch, in one class-mixed order.", rich_help_panel=DATA, min=1)
]
Split = Annotated[
    str, typer.Option("--split", help="both, train, or test (measured by its own means).", rich_help_panel=DATA)
]
DataFolder = Annotated[
    Path | None,
    typer.Option(
        "--data-dir",
        help="Folder with data files (or EQUISEP_DATA).",
        rich_help_panel=DATA,
        exists=True,
        file_okay=False,
    ),
]
Prepare = Annotated[
    str | None, typer.Option("--prepare", help="A named preparation, such as he2023-10x10.", rich_help_panel=DATA)
]
Resize = Annotated[str | None, typer.Option("--resize", help="10 or 10x12 (height x width).", rich_help_panel=DATA)]
Channels = Annotated[
    str | None, typer.Option("--channels", help="all, rgb, gray, red, green or blue.", rich_help_panel=DATA)
]
Normalize = Annotated[
    str | None,
    typer.Option(
        "--normalize",
        help="MEAN/STD: 0.5/0.5, or one per channel: .49,.48,.45/.25,.24,.26.",
        rich_help_panel=DATA,
    ),
]
PerClass = Annotated[
    int | None, typer.Option("--per-class", min=1, help="Draw this many samples per class.", rich_help_panel=DATA)
]
Sites = Annotated[
    list[str] | None,
    typer.Option(
        "--sites",
        help="auto, layers, blocks, a module name or a glob; may be repeated.",
        rich_help_panel=READ,
        show_default="auto",
    ),
]
Reduced = Annotated[
    str | None,
    typer.Option(
        "--reduction",
        help="How features become vectors: flatten, mean, positions or pca=100; of sequences also first, last, tokens.",
        rich_help_panel=READ,
        show_default="auto",
    ),
]
Memory = Annotated[
    float | None,
    typer.Option(
        "--memory",
        help="GiB of features to keep before reading twice.",
        rich_help_panel=STATISTICS,
        show_default="1",
        min=0.0,
        max=2.0**20,
    ),
]
ProfileFile = Annotated[Path, typer.Argument(metavar="PROFILE", help="A profile that equisep saved.")]


def asked_reading(reading: str | None, mode: str | None) -> str | None:
    """The reading that was asked for; --mode and its value batch, the former names, are taken with a remark."""
    former = mode if mode is not None else "batch" if reading == "batch" else None
    if former is None:
        return reading
    flag = "--reading" if mode is None else "--mode"
    say(f"`{flag} {former}` is now `--reading {former_reading(former)}`.")
    return former_reading(former)


def asked_readings(readings: list[str] | None, mode: str | None) -> list[str] | None:
    """The readings that were asked for, parted by commas or one by one; former names are taken with a remark."""
    if mode is not None or not readings:
        one = asked_reading(None, mode)
        return None if one is None else [one]
    return [asked_reading(name.strip(), None) or "" for word in readings for name in word.split(",")]


def asked_sites(sites: list[str]) -> str | list[str]:
    """One word alone may name a grain; several are names and globs."""
    return sites[0] if len(sites) == 1 else sites


def asked_numbers(words: str, *, flag: str) -> list[int]:
    """`50,100,200` as numbers."""
    parts = [part.strip() for part in words.split(",")]
    if not all(part.isdigit() and len(part) < 10 for part in parts):
        raise InputError(f"`{flag}` takes samples per class, such as 50,100,200; found `{words}`.")
    return [int(part) for part in parts]


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
