"""`equisep noise`: how much noise on its weights a model of the user's bears, and which layer bears least."""

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
@with_data_options("length", "split")
def noise(
    model: Model,
    data: DataName,
    flags: DataFlags,
    checkpoint: Checkpoint = None,
    sigmas: Annotated[
        str | None,
        typer.Option("--sigmas", help="Sizes of the noise over each tensor's norm.", show_default="0.01 to 1"),
    ] = None,
    draws: Annotated[int, typer.Option("--draws", min=1, help="How often noise is drawn.")] = 5,
    layers: Annotated[bool, typer.Option("--layers/--no-layers", help="Also noise on one layer at a time.")] = True,
    sites: Sites = None,
    reduction: Reduced = None,
    seed: Annotated[
        int,
        typer.Option("--seed", min=0, max=2**32 - 1, help="Seed of the factory's weights, the sample and the noise."),
    ] = 0,
    device: Device = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Add noise to the weights of a model of yours: when its accuracy falls, what becomes of the law, which layer is fragile."""
    from equisep.advice.noise import weight_noise
    from equisep.report.advice.noise import render_noise

    given: dict[str, Any] = {
        "sigmas": None if sigmas is None else _numbers(sigmas),
        "sites": parse_sites(sites) if sites else None,
        "reduction": reduction,
    }
    named = model_and_data(model, flags, checkpoint=checkpoint, device=device, quiet=quiet)
    with named as (loaded, source, progress):
        if source.test is None:
            raise DataError(f"`noise` asks for accuracy on test data, and `--data {data}` holds none.")
        answer = weight_noise(
            loaded.model, source.train, source.test, draws=draws, layers=layers, seed=seed, device=device,
            progress=progress, **{name: value for name, value in given.items() if value is not None},
        )  # fmt: skip
    options = options_of(noise)
    if json:
        print_json({"answer": in_options(answer.sentence, options), **encode(answer, nonfinite="null")})
    else:
        out.print(render_noise(answer, lambda text: in_options(text, options)))


def _numbers(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError as error:
        raise InputError(
            f"`--sigmas` takes numbers with commas between them, such as 0.1,0.2; found `{text}`."
        ) from error
