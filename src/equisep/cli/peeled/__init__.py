"""`equisep peeled`: the Layer-Peeled Model, joined here."""

from __future__ import annotations

import typer

from equisep.cli.peeled.diagram import diagram
from equisep.cli.peeled.network import network
from equisep.cli.peeled.solve import solve, two_layer
from equisep.cli.peeled.threshold import threshold

group = typer.Typer(
    name="peeled",
    help="The Layer-Peeled Model: neural collapse explained, minority collapse predicted (Fang, He, Long & Su 2021).",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
)
group.command("solve")(solve)
group.command("threshold")(threshold)
group.command("diagram")(diagram)
group.command("network")(network)
group.command("two-layer")(two_layer)
