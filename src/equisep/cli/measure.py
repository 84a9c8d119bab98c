"""`equisep measure`: a model and data of the user's."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from equisep.cli.console import out, print_json, progress_bars, reported, saved, say, usable_file
from equisep.cli.data import MeasuredData, dataset_batches, is_table, sentence_batches, tokenizer_of
from equisep.cli.options import (
    PICTURES,
    Channels,
    Checkpoint,
    DataFolder,
    Device,
    Json,
    Model,
    Normalize,
    PerClass,
    Prepare,
    Quiet,
    Resize,
    parse_normalization,
    parse_size,
)
from equisep.errors import EquisepError, InputError
from equisep.files import encode
from equisep.results import Note, Profile, reading_named

if TYPE_CHECKING:
    from equisep.data import Preparation
    from equisep.measuring.options import Intervals
    from equisep.separation import Weighting
    from equisep.taps import Calls


@reported
def measure(
    model: Model,
    data: Annotated[
        str,
        typer.Option(
            "--data", help="A data set by name, the path of an .npz file, or sentences: a .tsv table, or its name."
        ),
    ],
    checkpoint: Checkpoint = None,
    data_dir: DataFolder = None,
    tokenizer: Annotated[
        str | None,
        typer.Option("--tokenizer", help="Of sentences: a Hugging Face name or folder; an hf: model has its own."),
    ] = None,
    length: Annotated[
        int | None, typer.Option("--length", min=1, help="Of sentences: cut and pad all to this many tokens.")
    ] = None,
    split: Annotated[str, typer.Option("--split", help="both, train, or test (measured by its own means).")] = "both",
    prepare: Prepare = None,
    resize: Resize = None,
    channels: Channels = None,
    normalize: Normalize = None,
    per_class: PerClass = None,
    batch_size: Annotated[
        int, typer.Option("--batch-size", min=1, help="Samples a batch, in one class-mixed order.")
    ] = 100,
    sites: Annotated[
        list[str] | None, typer.Option("--sites", help="auto, layers, blocks, a module name or a glob; repeatable.")
    ] = None,
    reduction: Annotated[
        str,
        typer.Option(
            "--reduction",
            help="How features become vectors: flatten, mean, positions or pca=100; of sequences also first, last, tokens.",
        ),
    ] = "flatten",
    calls: Annotated[
        str, typer.Option("--calls", help="Of a module called more than once: each call is a site, or the last.")
    ] = "each",
    mode: Annotated[str, typer.Option("--mode", help="eval, or batch (BatchNorm by batch statistics).")] = "eval",
    weighting: Annotated[str, typer.Option("--weighting", help="sample, class or mixed.")] = "sample",
    classes: Annotated[int | None, typer.Option("--classes", help="K, where the model's output does not tell.")] = None,
    classifier: Annotated[
        str | None, typer.Option("--classifier", help="The linear layer that reads the last site.")
    ] = None,
    epsilon: Annotated[
        float, typer.Option("--epsilon", help="1 − ε nearest-center accuracy counts as separated.")
    ] = 0.0,
    intervals: Annotated[str, typer.Option("--intervals", help="auto, bootstrap, jackknife or none.")] = "auto",
    memory: Annotated[
        float, typer.Option("--memory", min=0.0, max=2.0**20, help="GiB of features to keep before reading twice.")
    ] = 1.0,
    coordinates: Annotated[int, typer.Option("--coordinates", min=0, help="Samples kept for plots; 0: none.")] = 300,
    seed: Annotated[
        int,
        typer.Option("--seed", min=0, max=2**32 - 1, help="Seed of the factory's weights, the sample, and resampling."),
    ] = 0,
    device: Device = None,
    out_file: Annotated[Path | None, typer.Option("--out", help="Save the profile as JSON here.")] = None,
    plot: Annotated[Path | None, typer.Option("--plot", help="Draw the law here (PNG, SVG or PDF).")] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Measure how a model of yours separates its classes, layer by layer."""
    import torch

    from equisep.devices import usable_device
    from equisep.measuring import measure as measure_model
    from equisep.models import load_model, loading_words
    from equisep.report.plots import plot_law, save_figure

    if split not in ("both", "train", "test"):
        raise InputError(f"`--split` takes both, train or test; found `{split}`.")
    if device is not None:
        usable_device(device, asked="--device")
    usable_file(out_file, flag="--out", endings=(".json",))
    usable_file(plot, flag="--plot", endings=PICTURES)
    say(loading_words(model, checkpoint=checkpoint), quiet=quiet)
    torch.manual_seed(seed)  # a factory draws its weights from it
    with redirect_stdout(sys.stderr):  # what the user's code prints is no result
        network = load_model(model, checkpoint=checkpoint)
    preparation = preparation_of(prepare, resize=resize, channels=channels, normalize=normalize)
    with progress_bars(quiet=quiet) as progress:
        found: MeasuredData
        if is_table(data, data_dir):
            _refuse_pictures(data, prepare=prepare, resize=resize, channels=channels, normalize=normalize)
            found = sentence_batches(
                data, tokenizer_of(model, tokenizer), data_dir=data_dir, split=split, per_class=per_class, seed=seed,
                batch_size=batch_size, length=length,
            )  # fmt: skip
        else:
            found = dataset_batches(
                data, preparation, data_dir=data_dir, split=split, per_class=per_class, seed=seed, batch_size=batch_size,
                progress=progress,
            )  # fmt: skip
        say(found.words, quiet=quiet)
        with _rescued(out_file, quiet=quiet), redirect_stdout(sys.stderr):
            profile = measure_model(
                network, found.train, found.test, sites=(sites[0] if sites and len(sites) == 1 else sites) or "auto",
                calls=cast("Calls", calls), reduction=reduction, reading=reading_named("eval", mode=mode),
                weighting=cast("Weighting", weighting), classes=classes, classifier=classifier, epsilon=epsilon,
                intervals=cast("Intervals", intervals), memory=int(memory * 2**30), seed=seed, coordinates=coordinates,
                device=device, progress=progress,
            )  # fmt: skip
    settings = {**profile.settings, "data": found.record, "model": model, "checkpoint": checkpoint and str(checkpoint)}
    profile = replace(profile, settings=encode(settings), notes=(*found.notes, *profile.notes, *_split_notes(split)))
    if out_file is not None:
        saved(profile.save(out_file), "profile", quiet=quiet)
    if plot is not None:
        saved(save_figure(plot_law(profile), plot), "plot", quiet=quiet)
    print_json(profile.to_dict()) if json else out.print(profile)


@contextmanager
def _rescued(path: Path | None, *, quiet: bool) -> Iterator[None]:
    """Save what was measured before an error: the training data's profile, where the test data fail."""
    try:
        yield
    except EquisepError as error:
        if isinstance(error.profile, Profile) and path is not None:
            saved(error.profile.save(path), "profile of the training data alone", quiet=quiet)
        raise


def preparation_of(name: str | None, *, resize: str | None, channels: str | None, normalize: str | None) -> Preparation:
    """The preparation that the flags state: a named one, changed by the others."""
    from equisep.data import Preparation, named_preparation

    base = Preparation() if name is None else named_preparation(name)
    return Preparation(
        channels=base.channels if channels is None else channels,
        resize=base.resize if resize is None else parse_size(resize),
        normalize=base.normalize if normalize is None else parse_normalization(normalize),
    )


def _refuse_pictures(data: str, **flags: str | None) -> None:
    given = [f"--{name}" for name, value in flags.items() if value is not None]
    if given:
        raise InputError(f"`{given[0]}` prepares pictures, and `{data}` holds sentences. Leave it out.")


def _split_notes(split: str) -> tuple[Note, ...]:
    if split != "test":
        return ()
    return (Note("test-split", "The test split was measured by its own means: `train` stands for it in every number."),)
