"""`equisep figures list`: every figure with its state and its claims."""

from __future__ import annotations

from typing import TYPE_CHECKING

from equisep.cli.console import out, print_json, reported
from equisep.cli.figures.common import (
    FigureFile,
    ReadStore,
    known_figures,
    open_store,
    result_of,
    say_notes,
    stored_result,
)
from equisep.cli.options import Json, Quiet

if TYPE_CHECKING:
    from equisep.figures.figure import Figure
    from equisep.report.figures.list import ListRow
    from equisep.report.figures.tally import Tally
    from equisep.runs.store import Store


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
