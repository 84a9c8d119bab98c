"""`equisep figures`: the papers' figures, one file a command, joined here."""

from __future__ import annotations

import typer

from equisep.cli.figures import list as figures_list
from equisep.cli.figures import run as figures_run
from equisep.cli.figures import show as figures_show

group = typer.Typer(
    name="figures",
    help="The papers' figures: run them here or on a cluster, and see which of their claims hold.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
)
group.command("list")(figures_list.list_figures)
group.command("run")(figures_run.run)
group.command("show")(figures_show.show)
