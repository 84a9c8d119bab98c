"""`equisep history`: the law over the epochs of a tracked training."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from equisep.cli.console import out, print_json, reported, say
from equisep.cli.options import Json, Quiet
from equisep.files import encode, plain
from equisep.report.history_tables import emergence_words, law_rows, render_history
from equisep.tracking.history import History


@reported
def history(
    path: Annotated[
        Path, typer.Argument(metavar="HISTORY", help="A history that `equisep.Tracker` wrote; it may still grow.")
    ],
    draw: Annotated[Path | None, typer.Option("--draw", help="Draw it into this file (.png, .svg, .pdf).")] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Print the law over the epochs of a training, when it emerged, and whether the training has settled."""
    content = History.load(path)
    if json:
        emergence = {
            what: {**encode(each), "words": emergence_words(content, each)}
            for what, each in content.emergence().items()
        }
        print_json(
            {
                "header": encode(content.header),
                "unit": content.unit,
                "findings": plain(content.findings),
                "readings": law_rows(content),
                "emergence": emergence,
                "settled": encode(content.settled()),
                "damaged_lines": content.damaged,
            }
        )
    else:
        out.print(render_history(content))
    if draw is not None:
        content.plot(draw)
        if not quiet and not json:
            say(f"Drawn into {draw}.")
