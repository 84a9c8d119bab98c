"""`equisep measure --on ray`: the command's own words, run shard by shard on the machines of a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import typer

from equisep.cli.console import progress_bars, usable_file
from equisep.cli.options import PICTURES
from equisep.errors import InputError

if TYPE_CHECKING:
    from equisep.results import Profile

HERE = ("on", "shards", "device", "out_file", "plot", "json", "quiet")  # what stays with the command that asks


def profile_on_a_cluster(ctx: typer.Context) -> Profile:
    """The profile that this call of `measure` asks for, read by the workers of a Ray cluster."""
    from equisep.runs.ray_measure import measure_on_ray

    asked = ctx.params
    for name in ("shard", "means", "subsamples", "features"):
        if asked[name] is not None:
            raise InputError(f"`--on {asked['on']}` divides a model's data by itself; it takes no `--{name}`.")
    usable_file(asked["out_file"], flag="--out", endings=(".json",))
    usable_file(asked["plot"], flag="--plot", endings=PICTURES)
    words = list(given_words(ctx, without=HERE))
    with progress_bars(quiet=asked["quiet"]) as progress:
        return measure_on_ray(
            words, address=asked["on"], shards=asked["shards"], device=asked["device"], progress=progress
        )


def given_words(ctx: typer.Context, *, without: tuple[str, ...]) -> Iterator[str]:
    """The options that were given on the command line, as they would be given again."""
    for param in ctx.command.params:
        source = ctx.get_parameter_source(str(param.name))
        if source is None or source.name != "COMMANDLINE" or param.name in without:
            continue
        value: Any = ctx.params[str(param.name)]
        if isinstance(value, bool):
            yield param.opts[0] if value else param.secondary_opts[0]
            continue
        for each in value if isinstance(value, list | tuple) else (value,):
            yield from (param.opts[0], str(each))
