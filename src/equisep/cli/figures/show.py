"""`equisep figures show`: one figure from the store or the record alone; nothing is run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from equisep.cli.console import print_json, reported, saved
from equisep.cli.figures.common import (
    FigureFile,
    ReadStore,
    Scale,
    Strict,
    draw_target,
    known_figures,
    open_store,
    print_result,
    result_of,
    say_notes,
)
from equisep.cli.options import Json, Quiet
from equisep.errors import InputError


@reported
def show(
    id: Annotated[str, typer.Argument(metavar="ID", help="A figure, as he2023/fig1; `equisep figures list` has all.")],
    store: ReadStore = None,
    scale: Scale = "paper",
    file: FigureFile = None,
    draw: Annotated[
        Path | None, typer.Option("--draw", metavar="PATH", help="Draw it into this file (PNG, SVG or PDF), or folder.")
    ] = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown instead of text.")] = False,
    json: Json = False,
    strict: Strict = False,
    quiet: Quiet = False,
) -> None:
    """Show what was run of a figure: every claim with its verdict, our numbers beside the paper's, seeds and intervals."""
    from equisep.figures.catalogue import named

    if json and markdown:
        raise InputError("`--json` and `--markdown` cannot be printed at once. Choose one.")
    figure = named(id, known_figures(file, quiet=quiet))
    target = draw_target(draw, [figure])
    held = open_store(store)
    result = result_of(figure, held, scale=scale)
    say_notes(held, quiet=quiet)
    if json:
        print_json(result.json())
    else:
        print_result(result, markdown=markdown)
    if target is not None:
        from equisep.report.figures.drawing.draw import save_drawn

        saved(save_drawn(result.evidence, target(figure)), "figure", quiet=quiet)
    if strict and result.failed:
        raise typer.Exit(1)
