"""`equisep report`: one HTML file about saved profiles, a history, or the folder of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from equisep.cli.console import out, print_json, reported, say, usable_file
from equisep.cli.options import OUTPUT, Json, Quiet
from equisep.report.formatting import size
from equisep.report.page import ENDINGS, write_page
from equisep.report.page.sources import page_of, page_target


@reported
def report(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PROFILE… | HISTORY | RUN",
            help="Saved profiles, several to compare them; or the history of a training; or a folder that holds them.",
        ),
    ],
    out_file: Annotated[
        Path | None,
        typer.Option(
            "--out", help="The page.", rich_help_panel=OUTPUT, show_default="beside the first file, its name with .html"
        ),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write one HTML file that shows a profile, compares several, or follows a training: to open in any browser, or to send.

    The file holds everything it shows: no network is used, by whoever opens it.
    """
    target = out_file if out_file is not None else page_target(paths)
    usable_file(target, flag="--out", endings=ENDINGS)
    page = page_of(paths)
    written = write_page(target, page)
    if json:
        print_json({"page": str(written), "bytes": len(page.encode())})
        return
    out.print(str(written), markup=False, highlight=False, soft_wrap=True)
    say(f"{size(len(page.encode()))}: open it in any browser, or send it.", quiet=quiet)
