"""`equisep figures list` and `figures show`: what the store or the record has; nothing is run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from equisep.cli.console import out, print_json, reported, say_saved
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
    stored_result,
)
from equisep.cli.options import Json, Quiet
from equisep.errors import InputError

if TYPE_CHECKING:
    from equisep.figures.figure import Figure
    from equisep.report.figures.list import ListRow
    from equisep.report.figures.tally import Tally
    from equisep.runs.store import Store


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
    from equisep.figures.catalogue import find_figure

    if json and markdown:
        raise InputError("`--json` and `--markdown` cannot be printed at once. Choose one.")
    figure = find_figure(id, known_figures(file, quiet=quiet))
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

        say_saved(save_drawn(result.evidence, target(figure)), "figure", quiet=quiet)
    if strict and result.failed:
        raise typer.Exit(1)


@reported
def list_figures(file: FigureFile = None, store: ReadStore = None, json: Json = False, quiet: Quiet = False) -> None:
    """List every figure of the papers, how far it has been run, and how its claims fared."""
    from equisep.report.figures.list import list_json, render_list
    from equisep.report.figures.tally import Tally
    from equisep.runs.record import find_results

    held = open_store(store)
    tally = Tally.of(find_results())
    rows = [_row(figure, held, tally) for figure in known_figures(file, quiet=quiet)]
    say_notes(held, quiet=quiet)
    if json:
        print_json(list_json(rows))
    else:
        out.print(render_list(rows))


def _row(figure: Figure, store: Store | None, tally: Tally) -> ListRow:
    """Of what the store has at paper scale, else of the record; a run at smoke scale only where there is nothing else."""
    from equisep.report.figures.list import list_row

    stored = stored_result(figure, store, scale="paper")
    if stored is None and (kept := tally.row(figure)) is not None:
        return kept
    paper = stored or result_of(figure, None, scale="paper")
    smoke = None if paper.evidence.done else stored_result(figure, store, scale="smoke")
    shown = smoke or paper
    return list_row(shown.evidence, shown.verdicts, recorded=shown.recorded)
