"""Stored features: `equisep features` writes them, `equisep measure --features` reads them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from equisep.cli.console import in_options, options_of, out, print_json, reported, say
from equisep.cli.data import DataFlags, model_and_data, with_data_options
from equisep.cli.options import (
    OUTPUT,
    Checkpoint,
    DataName,
    Device,
    Json,
    ModelName,
    Quiet,
    Reading,
    Reduced,
    Seed,
    Sites,
    option,
    parse_sites,
)
from equisep.errors import InputError
from equisep.files import encode
from equisep.progress import Progress

if TYPE_CHECKING:
    from equisep.results import Profile

Folder = Annotated[Path, option("--out", OUTPUT, "The folder to write, new or empty.", file_okay=False)]
# how a model would have been read: the features have been already
OF_MODELS = {"calls": "--calls", "classifier": "--classifier", "readings": "--reading"}


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
    from equisep.measuring.features import write_features
    from equisep.results import reading_named

    named = model_and_data(model, flags, checkpoint=checkpoint, device=device, quiet=quiet)
    with named as (loaded, source, progress):
        written = write_features(
            loaded.model, source.train, source.test, out=out_folder,
            sites=parse_sites(sites) if sites else "auto", reduction=reduction or "auto",
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


def refuse_with_features(given: Mapping[str, Any], **others: object) -> None:
    """Raise where a flag was given that stored features have no use for."""
    flags = [f"--{name.replace('_', '-')}" for name, value in others.items() if value is not None]
    flags += [flag for name, flag in OF_MODELS.items() if name in given]
    if flags:
        raise InputError(
            f"`{flags[0]}` is for a model that is run; with `--features` its layers have been. Leave it out."
        )


def stored_profile(
    features: str, labels: str | None, split: str, given: Mapping[str, Any], *, progress: Progress
) -> Profile:
    """The profile of stored features: both splits that lie there, or one of them."""
    from equisep.measuring.features import measure_features

    return measure_features(features, labels, split=split, **given, progress=progress)
