"""`equisep features`: what every layer of a model gives, written to files that `equisep measure --features` reads."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Annotated

import typer

from equisep.cli.advice.layer import ModelName
from equisep.cli.console import in_options, options_of, out, print_json, progress_bars, reported, say
from equisep.cli.data import DataFlags, asked_model, measured_data, with_data_options
from equisep.cli.options import (
    OUTPUT,
    Checkpoint,
    DataName,
    Device,
    Json,
    Quiet,
    Reading,
    Reduced,
    Seed,
    Sites,
    asked_sites,
)
from equisep.files import encode

Folder = Annotated[
    Path, typer.Option("--out", help="The folder to write, new or empty.", rich_help_panel=OUTPUT, file_okay=False)
]


@reported
@with_data_options()
def features(
    model: ModelName,
    data: DataName,
    out_folder: Folder,
    flags: DataFlags,
    checkpoint: Checkpoint = None,
    sites: Sites = None,
    reduction: Reduced = None,
    reading: Reading = None,
    seed: Seed = 0,
    device: Device = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write what every layer of a model gives: an .npy file per layer, the labels, and features.json."""
    from equisep.devices import usable_device
    from equisep.measuring.features import write_features
    from equisep.results import reading_named

    if device is not None:
        usable_device(device, asked="--device")
    loaded = asked_model(model, checkpoint=checkpoint, seed=seed, quiet=quiet)
    with progress_bars(quiet=quiet) as progress:
        source = measured_data(flags, model=model, progress=progress)
        say(source.words, quiet=quiet)
        with redirect_stdout(sys.stderr):
            written = write_features(
                loaded.model, source.train, source.test, out=out_folder,
                sites=asked_sites(sites) if sites else "auto", reduction=reduction or "auto",
                reading=reading_named(reading or "eval"), device=device, whole=flags.per_class is None and flags.split != "test",
                data={**encode(source.record), "asked": data}, progress=progress,
            )  # fmt: skip
    notes = [in_options(note.text, options_of(features)) for note in (*loaded.notes, *source.notes, *written.notes)]
    if json:
        print_json({"folder": str(written.folder), "layers": list(written.layers), "notes": notes})
        return
    for text in notes:
        say(text, quiet=quiet)
    out.print(f"{len(written.layers)} layers: {written.folder}", markup=False, highlight=False, soft_wrap=True)
