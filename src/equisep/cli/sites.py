"""`equisep sites`: the modules of a model, and which of them would be read."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from equisep.cli.console import out, print_json, reported
from equisep.cli.options import Checkpoint, Json, Model, Quiet


@reported
def sites(
    model: Model,
    checkpoint: Checkpoint = None,
    sites: Annotated[
        list[str] | None, typer.Option("--sites", help="auto, layers, blocks, a module name or a glob; repeatable.")
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """List the modules of a model and mark the ones that `equisep measure` would read."""
    from equisep.models import load_model
    from equisep.taps import INPUT, resolve_sites

    network = load_model(model, checkpoint=checkpoint)
    wanted = sites or ["auto"]
    chosen = resolve_sites(network, wanted[0] if len(wanted) == 1 else wanted)
    rows = [
        {
            "name": name,
            "kind": type(module).__name__,
            "parameters": sum(parameter.numel() for parameter in module.parameters()),
            "site": name in chosen,
        }
        for name, module in network.named_modules()
        if name
    ]
    if json:
        print_json({"model": type(network).__name__, "sites": list(chosen), "modules": rows})
        return
    table = Table(
        "read", "module", "kind", "parameters", title=f"{type(network).__name__}: {len(rows)} modules", box=None
    )
    table.add_row("*", INPUT, "the raw input", "")
    for row in rows:
        table.add_row("*" if row["site"] else "", str(row["name"]), str(row["kind"]), f"{row['parameters']:,}")
    out.print(table)
    if not quiet:
        out.print(
            f"{len(chosen)} marked with * are read, once for each call. Choose others with --sites.", highlight=False
        )
