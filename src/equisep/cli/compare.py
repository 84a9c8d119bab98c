"""`equisep compare`: the difference of two saved profiles, with intervals."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from equisep.cli.console import out, print_json, reported
from equisep.cli.options import Json, Quiet
from equisep.compare import compare_profiles
from equisep.files import encode
from equisep.report.terminal import render_comparison
from equisep.results import load_profile


@reported
def compare(
    first: Annotated[Path, typer.Argument(metavar="A", help="A saved profile.")],
    second: Annotated[Path, typer.Argument(metavar="B", help="The profile to compare with.")],
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Print what differs from profile A to profile B: the law, the depth, and D layer by layer, with intervals."""
    a, b = load_profile(first), load_profile(second)
    difference = compare_profiles(a, b)
    if json:
        print_json(encode(difference))
        return
    beside = [f"{path}, reading `{profile.reading or '?'}`" for path, profile in ((first, a), (second, b))]
    out.print(render_comparison(difference, beside=(beside[0], beside[1])))
