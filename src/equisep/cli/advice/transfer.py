"""`equisep transfer`: how many layers of a trained model to keep fixed on the user's data."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from equisep.cli.console import in_options, options_of, out, print_json, reported
from equisep.cli.data import DataFlags, model_and_data, with_data_options
from equisep.cli.options import (
    Checkpoint,
    DataName,
    Device,
    Json,
    Model,
    Quiet,
    Reduced,
    Sites,
    parse_sites,
)
from equisep.errors import DataError, InputError
from equisep.files import encode


@reported
@with_data_options("tokenizer", "length", "split", batch_size=128)
def transfer(
    model: Model,
    data: DataName,
    flags: DataFlags,
    checkpoint: Checkpoint = None,
    keep: Annotated[
        str | None,
        typer.Option(
            "--keep", help="Numbers of layers to keep fixed, such as 0,2,4.", show_default="up to six, evenly"
        ),
    ] = None,
    start: Annotated[
        str, typer.Option("--start", help="Weights of the layers behind: pretrained (as they are) or new.")
    ] = "pretrained",
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="Trainings of each choice.")] = 5,
    epochs: Annotated[int, typer.Option("--epochs", min=1, help="Epochs of each training.")] = 20,
    rate: Annotated[float, typer.Option("--rate", help="Adam's learning rate.")] = 1e-3,
    margin: Annotated[
        float | None,
        typer.Option(
            "--margin",
            help="Share of test accuracy below the best that is good enough.",
            show_default="0.01, or a fifth of the errors",
        ),
    ] = None,
    sites: Sites = None,
    reduction: Reduced = None,
    seed: Annotated[
        int, typer.Option("--seed", min=0, max=2**32 - 1, help="First seed of the trainings; also of the sample.")
    ] = 0,
    device: Device = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Fine-tune a model of yours on new data, with its first layers kept fixed: how many of them to keep."""
    from equisep.advice.transfer import transfer_model
    from equisep.report.advice.transfer import render_transfer

    given: dict[str, Any] = {
        "keep": None if keep is None else _numbers(keep),
        "sites": parse_sites(sites) if sites else None,
        "reduction": reduction,
    }
    named = model_and_data(model, flags, checkpoint=checkpoint, device=device, quiet=quiet)
    with named as (loaded, source, progress):
        if source.test is None:
            raise DataError(f"`transfer` compares accuracy on test data, and `--data {data}` holds none.")
        answer = transfer_model(
            loaded.model, source.train, source.test, start=start, seeds=seeds, seed=seed, epochs=epochs, rate=rate,  # type: ignore[arg-type]
            batch_size=flags.batch_size, margin=margin, device=device, progress=progress,
            **{name: value for name, value in given.items() if value is not None},
        )  # fmt: skip
    options = options_of(transfer)
    sentences = [in_options(sentence, options) for sentence in answer.sentences]
    if json:
        print_json({"answer": sentences, **encode(answer, nonfinite="null")})
    else:
        out.print(render_transfer(answer, sentences))


def _numbers(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError as error:
        raise InputError(
            f"`--keep` takes whole numbers with commas between them, such as 0,2,4; found `{text}`."
        ) from error
