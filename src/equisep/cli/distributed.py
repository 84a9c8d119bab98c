"""One measurement by many: a command under torchrun, `equisep measure --on ray`, and `equisep merge` for the parts of shards."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ParamSpec

import typer

from equisep.cli.console import out, print_json, progress_bars, reported, say, say_saved, usable_file
from equisep.cli.options import OUTPUT, PICTURES, Json, Quiet, option
from equisep.errors import EquisepError, InputError, NumericalError
from equisep.results import Profile

if TYPE_CHECKING:
    from torch import nn

P = ParamSpec("P")
MEETING = timedelta(minutes=5)  # in which all ranks must have begun
HERE = ("on", "shards", "device", "out_file", "plot", "json", "quiet")  # what stays with the command that asks


@dataclass(frozen=True, slots=True)
class Launched:
    """One process among those that torchrun started; alone where it started none."""

    rank: int = 0
    world: int = 1
    local: int = 0

    @staticmethod
    def here(**flags: object) -> Launched:
        """As the environment says; flags that were given and have no use for many processes are refused."""
        found = [os.environ.get(name, "") for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK")]
        if not all(word.isdigit() for word in found) or "MASTER_ADDR" not in os.environ:
            return Launched()
        launched, asked = (
            Launched(*map(int, found)),
            [f"--{name}" for name, value in flags.items() if value is not None],
        )
        if launched.world > 1 and asked:
            raise InputError(
                f"`{asked[0]}` is read by one process, and torchrun started {launched.world}. Run `equisep` without torchrun."
            )
        return launched

    @property
    def speaks(self) -> bool:
        """Whether this process prints and writes: the first does for all."""
        return self.rank == 0

    def device(self, asked: str | None) -> str | None:
        """The device of this rank, once it is known to be there: of several GPUs its own."""
        from equisep.devices import usable_device

        own = f"cuda:{self.local}" if asked == "cuda" and self.world > 1 else asked
        if own is not None:
            usable_device(own, asked="--device")
        return own


def by_ranks(command: Callable[P, None]) -> Callable[P, None]:
    """A command whose first rank speaks for all; the others are heard only where they lost it."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        launched = Launched.here()
        try:
            return command(*args, **kwargs)
        except EquisepError as error:
            if launched.speaks or isinstance(error, NumericalError):
                raise
            raise typer.Exit(error.exit_code) from error

    return run


def profile_by(launched: Launched, model: nn.Module, train: Any, test: Any, **options: Any) -> Profile:
    """The profile of a model: in this process, or by all that torchrun started, each of which is given the whole data.

    Loaders of the user's code that divide the data among ranks themselves are left to it.
    """
    from equisep.measuring.measure import answered, request_for

    request = request_for(model, train, test, **options)
    if launched.world == 1:
        return answered(request)
    with process_group(launched):
        divided = any(hasattr(getattr(data, "sampler", None), "num_replicas") for data in (train, test))
        return answered(request, dealt=not divided)


@contextmanager
def process_group(launched: Launched) -> Iterator[None]:
    """The group of all processes that torchrun started, unless the user's code has made one; none of a process alone."""
    import torch.distributed as dist

    made = launched.world > 1 and not dist.is_initialized()
    if made:
        dist.init_process_group("gloo", timeout=MEETING)
    try:
        yield
    finally:
        if made:
            dist.destroy_process_group()


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


@reported
def merge(
    parts: Annotated[
        list[Path], typer.Argument(metavar="PARTS", help="The files of all shards of one round.", show_default=False)
    ],
    out_file: Annotated[Path, option("--out", OUTPUT, "Means of the first round (.npz), or the profile (.json).")],
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Make one of the shards of a measurement: first the means, then, of the shards that were read with them, the profile."""
    from equisep.cli.measure import with_flags
    from equisep.measuring.distributed.merge import merge_files
    from equisep.measuring.distributed.part import write_part
    from equisep.report.terminal import render_findings

    usable_file(out_file, flag="--out", endings=(".npz", ".json"))
    if out_file.resolve() in {part.resolve() for part in parts}:
        raise InputError(f"`--out {out_file}` is one of the parts. Name another file.")
    whole = merge_files(parts)
    wanted = ".json" if isinstance(whole, Profile) else ".npz"
    if out_file.suffix != wanted:
        what = "the second round make a profile" if isinstance(whole, Profile) else "the first round make means"
        raise InputError(f"The parts of {what}, which `--out` names as a {wanted} file; found `{out_file}`.")
    if not isinstance(whole, Profile):
        write_part(out_file, whole)
        out.print(f"means of {whole.shards} shards: {out_file}", markup=False, highlight=False)
        say(f"Now run every shard again with `--means {out_file}` and another `--out`, and merge these.", quiet=quiet)
        return
    say_saved(whole.save(out_file), "profile", quiet=quiet)
    if json:
        print_json(whole.to_dict())
        return
    out.print(render_findings(whole.findings), "", with_flags(whole), sep="\n")
