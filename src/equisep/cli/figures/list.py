"""`equisep figures list`: every figure with its state and its claims."""

from __future__ import annotations

from equisep.cli.console import out, print_json, reported
from equisep.cli.figures.common import (
    FigureFile,
    FigureResult,
    ReadStore,
    known_figures,
    open_store,
    result_of,
    say_notes,
)
from equisep.cli.options import Json, Quiet


@reported
def list_figures(file: FigureFile = None, store: ReadStore = None, json: Json = False, quiet: Quiet = False) -> None:
    """List every figure of the papers, how far it has been run, and how its claims fared."""
    from equisep.report.figures.list import list_json, list_rows, render_list

    held = open_store(store)
    results = []
    for figure in known_figures(file, quiet=quiet):
        paper = result_of(figure, held, scale="paper")
        smoke = result_of(figure, held, scale="smoke") if held is not None and not paper.evidence.done else None
        results.append(_better(paper, smoke))
    say_notes(held, quiet=quiet)
    rows = list_rows((each.evidence, each.verdicts, each.recorded) for each in results)
    if json:
        print_json(list_json(rows))
    else:
        out.print(render_list(rows))


def _better(paper: FigureResult, smoke: FigureResult | None) -> FigureResult:
    """A run at smoke scale is shown only where there is nothing else."""
    return smoke if smoke is not None and smoke.evidence.done else paper
