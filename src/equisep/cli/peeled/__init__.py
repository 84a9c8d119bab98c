"""`equisep peeled`: the Layer-Peeled Model, one file a command, joined here."""

from __future__ import annotations

import typer

from equisep.cli.peeled import diagram as peeled_diagram
from equisep.cli.peeled import network as peeled_network
from equisep.cli.peeled import solve as peeled_solve
from equisep.cli.peeled import threshold as peeled_threshold
from equisep.cli.peeled import two_layer as peeled_two_layer

group = typer.Typer(
    name="peeled",
    help="The Layer-Peeled Model: neural collapse explained, minority collapse predicted (Fang, He, Long & Su 2021).",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
)
group.command("solve")(peeled_solve.solve)
group.command("threshold")(peeled_threshold.threshold)
group.command("diagram")(peeled_diagram.diagram)
group.command("network")(peeled_network.network)
group.command("two-layer")(peeled_two_layer.two_layer)
