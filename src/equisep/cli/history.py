"""`equisep history`: the law over the epochs of a tracked training."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from equisep.cli.console import out, print_json, reported, say
from equisep.cli.options import Json, Quiet
from equisep.errors import InputError
from equisep.files import encode, plain
from equisep.report.history_tables import emergence_words, law_rows, render_history
from equisep.tracking.history import Entry, History


@reported
def history(
    path: Annotated[
        Path, typer.Argument(metavar="HISTORY", help="A history that `equisep.Tracker` wrote; it may still grow.")
    ],
    draw: Annotated[Path | None, typer.Option("--draw", help="Draw it into this file (.png, .svg, .pdf).")] = None,
    to: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="Write the profile of one reading, the last unless told."),
    ] = None,
    epoch: Annotated[
        int | None, typer.Option("--epoch", metavar="N", help="Which reading, by its epoch (or step); with --out.")
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Print the law over the epochs of a training, when it emerged, and whether the training has settled."""
    if epoch is not None and to is None:
        raise InputError(f"`--epoch {epoch}` says which profile to write: say where to, with `--out FILE`.")
    content = History.load(path)
    chosen = None if to is None else _chosen(content, epoch)
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
    if to is not None and chosen is not None and chosen.profile is not None:
        chosen.profile.save(to)
        if not quiet and not json:
            say(f"The profile of {chosen.unit} {chosen.number}: {to}.")
    if draw is not None:
        content.plot(draw)
        if not quiet and not json:
            say(f"Drawn into {draw}.")


def _chosen(history: History, number: int | None) -> Entry:
    """The reading of that number, or the last one; one that has a profile."""
    if number is not None:
        history.profile(number)  # which says what is wrong with it
        return history[number]
    if history.last_read is None:
        raise InputError(f"`{history.path}` holds no reading with a profile, so `--out` has none to write.")
    return history.last_read
