"""`equisep figures`: the papers' figures, joined here."""

from __future__ import annotations

import typer

from equisep.cli.figures.run import run
from equisep.cli.figures.show import list_figures, show

group = typer.Typer(
    name="figures",
    help="The papers' figures: run them here or on a cluster, and see which of their claims hold.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
)
group.command("list")(list_figures)
group.command("run")(run)
group.command("show")(show)
