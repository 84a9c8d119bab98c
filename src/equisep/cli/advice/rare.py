"""`equisep rare`: which rare classes are lost, and the least loss weights that bring them back."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from typing import Annotated

import typer

from equisep.cli.console import out, print_json, progress_bars, reported, say
from equisep.cli.data import DataFlags, load_named_data
from equisep.cli.options import (
    Channels,
    Checkpoint,
    DataFolder,
    Device,
    Json,
    Normalize,
    PerClass,
    Prepare,
    Quiet,
    Reading,
    Resize,
)
from equisep.cli.peeled.inputs import numbers, refused
from equisep.errors import InputError
from equisep.results import reading_named


@reported
def rare(
    model: Annotated[
        str | None,
        typer.Argument(
            metavar="[MODEL]",
            help="A model, as `equisep measure --model` takes it; without one, sizes alone are judged.",
        ),
    ] = None,
    data: Annotated[str | None, typer.Option("--data", help="The data the model was trained on.")] = None,
    sizes: Annotated[
        str | None,
        typer.Option("--sizes", help="Samples of each class: 500,500,50,5; of a model those it was trained on."),
    ] = None,
    loss_weights: Annotated[
        str | None, typer.Option("--loss-weights", help="The loss weight of each class that is used now.")
    ] = None,
    energies: Annotated[
        str | None, typer.Option("--energies", help="E_W·E_H to go through, without a model (1,2,5,10,20).")
    ] = None,
    checkpoint: Checkpoint = None,
    data_dir: DataFolder = None,
    prepare: Prepare = None,
    resize: Resize = None,
    channels: Channels = None,
    normalize: Normalize = None,
    per_class: PerClass = None,
    reading: Reading = None,
    classifier: Annotated[str | None, typer.Option("--classifier", help="The last linear layer, by name.")] = None,
    batch_size: Annotated[int, typer.Option("--batch-size", min=1, help="Samples per batch.")] = 100,
    seed: Annotated[int, typer.Option("--seed", min=0, max=2**32 - 1, help="Seed of the factory and the sample.")] = 0,
    device: Device = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Which rare classes are lost in the Layer-Peeled Model, and the least loss weights at which every class has a margin."""
    from equisep.advice.rare import rare_classes

    counts, factors = numbers(sizes, flag="--sizes"), numbers(loss_weights, flag="--loss-weights")
    asked = numbers(energies, flag="--energies")
    with progress_bars(quiet=quiet) as progress:
        if model is None:
            given = {
                "--data": data, "--checkpoint": checkpoint, "--data-dir": data_dir, "--prepare": prepare, "--resize": resize,
                "--channels": channels, "--normalize": normalize, "--per-class": per_class, "--reading": reading,
                "--classifier": classifier, "--device": device,
            }  # fmt: skip
            refused(given, reason="it goes with a MODEL")
            if counts is None:
                raise InputError(
                    "`equisep rare` was asked about no classes. Pass `--sizes 500,500,50,5`, or a MODEL with `--data`."
                )
            found = rare_classes(counts, loss_weights=factors, energies=asked, progress=progress)
        else:
            refused({"--energies": energies}, reason="a model has energies of its own")
            if data is None:
                raise InputError(f"`equisep rare {model}` needs the data it was trained on. Pass `--data`.")
            flags = DataFlags(
                data=data, split="both", batch_size=batch_size, seed=seed, data_dir=data_dir, per_class=per_class,
                prepare=prepare, resize=resize, channels=channels, normalize=normalize,
            )  # fmt: skip
            import torch

            from equisep.devices import usable_device
            from equisep.models import load_model, loading_words

            say(loading_words(model, checkpoint=checkpoint), quiet=quiet)
            torch.manual_seed(seed)  # a factory draws its weights from it
            with redirect_stdout(sys.stderr):  # what the user's code prints is no result
                made = load_model(model, checkpoint=checkpoint)
                if device is not None:
                    made = made.to(usable_device(device, asked="--device"))
                source = load_named_data(flags, model=model, progress=progress)
                found = rare_classes(
                    counts, model=made, data=source.train, test=source.test, loss_weights=factors, classifier=classifier,
                    reading=reading_named(reading or "eval"), progress=progress,
                )  # fmt: skip
    if json:
        print_json(found.to_dict())
        return
    from equisep.report.advice.rare import render_rare

    out.print(render_rare(found))
