"""The flags that several commands share, declared once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from equisep.errors import InputError

PICTURES = (".png", ".svg", ".pdf")
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no remarks.")]
Seed = Annotated[int, typer.Option("--seed", min=0, max=2**32 - 1, help="Seed of weights, batch order and resampling.")]
Device = Annotated[str | None, typer.Option("--device", help="Where to compute: cpu, cuda, cuda:1, mps.")]
Model = Annotated[
    str,
    typer.Option(
        "--model",
        help="A network by name (vgg13,colors=3), timm:name, torchvision:name, hf:name-or-folder, or pkg.module:factory, "
        "a function that makes the model: its code is run.",
    ),
]
Checkpoint = Annotated[
    Path | None, typer.Option("--checkpoint", help="Weights: a state dict, as torch.save or safetensors wrote it.")
]
DataFolder = Annotated[Path | None, typer.Option("--data-dir", help="Folder with data files (or EQUISEP_DATA).")]
Prepare = Annotated[str | None, typer.Option("--prepare", help="A named preparation, such as he2023-10x10.")]
Resize = Annotated[str | None, typer.Option("--resize", help="10 or 10x12 (height x width).")]
Channels = Annotated[str | None, typer.Option("--channels", help="all, rgb, gray, red, green or blue.")]
Normalize = Annotated[
    str | None, typer.Option("--normalize", help="MEAN/STD: 0.5/0.5, or one a channel: .49,.48,.45/.25,.24,.26.")
]
PerClass = Annotated[int | None, typer.Option("--per-class", min=1, help="Draw this many samples a class.")]
ProfileFile = Annotated[Path, typer.Argument(metavar="PROFILE", help="A profile that equisep saved.")]


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
    """`MEAN/STD`, each one number or one a channel: `0.5/0.5`, `0.49,0.48,0.45/0.25,0.24,0.26`."""
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
