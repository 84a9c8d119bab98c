"""`equisep merge`: the parts that `measure --shard` wrote, as means for the second round or as a profile."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from equisep.cli.console import out, print_json, reported, saved, say, usable_file
from equisep.cli.measure import with_flags
from equisep.cli.options import OUTPUT, Json, Quiet
from equisep.errors import InputError
from equisep.results import Profile


@reported
def merge(
    parts: Annotated[
        list[Path], typer.Argument(metavar="PARTS", help="The files of all shards of one round.", show_default=False)
    ],
    out_file: Annotated[
        Path,
        typer.Option("--out", help="Means of the first round (.npz), or the profile (.json).", rich_help_panel=OUTPUT),
    ],
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Make one of the shards of a measurement: first the means, then, of the shards that were read with them, the profile."""
    from equisep.measuring.distributed.merge import merge_files
    from equisep.measuring.distributed.part import write_part
    from equisep.report.terminal import render_findings

    usable_file(out_file, flag="--out", endings=(".npz", ".json"))
    if out_file in parts:
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
    saved(whole.save(out_file), "profile", quiet=quiet)
    if json:
        print_json(whole.to_dict())
        return
    out.print(render_findings(whole.findings), "", with_flags(whole), sep="\n")
