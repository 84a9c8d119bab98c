"""`equisep peeled`: the Layer-Peeled Model, one file a command, joined here."""

from __future__ import annotations

import typer

from equisep.cli import peeled_diagram, peeled_network, peeled_solve, peeled_threshold

group = typer.Typer(
    name="peeled",
    help="The Layer-Peeled Model: neural collapse explained, minority collapse predicted (Fang, He, Long & Su 2021).",
    no_args_is_help=True,
    rich_markup_mode="rich",
)
group.command("solve")(peeled_solve.solve)
group.command("threshold")(peeled_threshold.threshold)
group.command("diagram")(peeled_diagram.diagram)
group.command("network")(peeled_network.network)
