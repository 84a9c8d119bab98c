"""`equisep layer` and `equisep rank`: which layer's features, and which model's, serve the labels of the user's data."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from equisep.cli.console import (
    notes_in_options,
    options_of,
    out,
    print_json,
    progress_bars,
    reported,
    say_saved,
    usable_file,
)
from equisep.cli.data import DataFlags, load_named_data, load_named_model, model_and_data, with_data_options
from equisep.cli.options import (
    MODEL,
    OUTPUT,
    PICTURES,
    STATISTICS,
    Checkpoint,
    DataName,
    Device,
    Json,
    Memory,
    ModelName,
    Quiet,
    Reading,
    Reduced,
    Seed,
    Sites,
    option,
    parse_memory,
    parse_numbers,
    parse_sites,
)
from equisep.errors import InputError
from equisep.files import encode
from equisep.report.advice.layer import plot_layers, render_layers, render_ranking
from equisep.results import reading_named

Shots = Annotated[str, option("--shots", STATISTICS, "Samples per class of few-shot nearest centers.")]
Draws = Annotated[int, option("--draws", STATISTICS, "How often few samples are drawn.", min=2)]
Draw = Annotated[Path | None, option("--draw", OUTPUT, "Draw it into this file (.png, .svg, .pdf).")]
SHOTS = "1,5,10,50,100"
NONE = "none"  # stands for the checkpoint of a model that has its own weights


@reported
@with_data_options()
def layer(
    model: ModelName,
    data: DataName,
    flags: DataFlags,
    checkpoint: Checkpoint = None,
    sites: Sites = None,
    reduction: Reduced = None,
    reading: Reading = None,
    shots: Shots = SHOTS,
    draws: Draws = 20,
    memory: Memory = None,
    seed: Seed = 0,
    device: Device = None,
    draw: Draw = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Which layer's features serve my labels: a ridge probe, nearest centers and few shots at every layer."""
    from equisep.advice.layer.choose import choose_layer

    wanted = parse_numbers(shots, flag="--shots")
    usable_file(draw, flag="--draw", endings=PICTURES)
    named = model_and_data(model, flags, checkpoint=checkpoint, device=device, quiet=quiet)
    with named as (loaded, source, progress):
        advice = choose_layer(
            loaded.model if device is None else loaded.model.to(device), source.train, source.test,
            sites=parse_sites(sites) if sites else "auto", reduction=reduction or "auto",
            reading=reading_named(reading or "eval"), shots=wanted, draws=draws,
            memory=parse_memory(memory), seed=seed, progress=progress,
        )  # fmt: skip
    notes = (*loaded.notes, *source.notes, *advice.notes)
    advice = replace(advice, notes=notes_in_options(notes, options_of(layer)))
    if draw is not None:
        say_saved(plot_layers(advice, draw), "plot", quiet=quiet)
    if json:
        print_json({**encode(advice), "sentences": list(advice.sentences), "data": encode(source.record)})
    else:
        out.print(render_layers(advice))


@reported
@with_data_options()
def rank(
    models: Annotated[
        list[str], typer.Argument(metavar="MODEL...", help="Two models or more, each as for `equisep layer`.")
    ],
    data: DataName,
    flags: DataFlags,
    checkpoints: Annotated[
        list[str] | None,
        option(
            "--checkpoint",
            MODEL,
            "Weights: one file per model, in their order, or none; `none` for a model that has its own.",
        ),
    ] = None,
    reduction: Reduced = None,
    reading: Reading = None,
    shots: Shots = SHOTS,
    draws: Draws = 20,
    memory: Memory = None,
    seed: Seed = 0,
    device: Device = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Which model's features serve my labels: each at its best layer, compared on the same samples."""
    from equisep.advice.layer.rank import Candidate, rank_models
    from equisep.devices import usable_device

    wanted = parse_numbers(shots, flag="--shots")
    files = _files(models, checkpoints)
    where = None if device is None else usable_device(device, asked="--device")
    candidates = []
    with progress_bars(quiet=quiet) as progress:
        for model, checkpoint in zip(models, files, strict=True):
            loaded = load_named_model(model, checkpoint=checkpoint, seed=seed, quiet=quiet)
            source = load_named_data(flags, model=model, progress=progress)
            network = loaded.model if where is None else loaded.model.to(where)
            candidates.append(Candidate(_name(model, checkpoint, models), network, source.train, source.test))
        with redirect_stdout(sys.stderr):
            ranking = rank_models(
                candidates, shots=wanted, draws=draws, memory=parse_memory(memory), seed=seed,
                options={"reduction": reduction or "auto", "reading": reading_named(reading or "eval")}, progress=progress,
            )  # fmt: skip
    ranking = replace(ranking, notes=notes_in_options(ranking.notes, options_of(rank)))
    if json:
        print_json({**encode(ranking), "sentence": ranking.sentence})
    else:
        out.print(render_ranking(ranking))


def _files(models: list[str], checkpoints: list[str] | None) -> list[Path | None]:
    if not checkpoints:
        return [None] * len(models)
    if len(checkpoints) != len(models):
        raise InputError(
            f"`--checkpoint` is given {len(checkpoints)} times for {len(models)} models. Give one per model, `{NONE}` for one "
            "that has its own weights, or leave all out."
        )
    return [None if file == NONE else Path(file) for file in checkpoints]


def _name(model: str, checkpoint: Path | None, models: list[str]) -> str:
    """The model as it was named; with its checkpoint where it was named twice."""
    return model if models.count(model) == 1 or checkpoint is None else f"{model} ({checkpoint.name})"
