"""`equisep sites`: the modules of a model, which of them would be read, and what a forward pass makes of them."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Column, Table

from equisep.cli.console import out, print_json, reported, say
from equisep.cli.options import Checkpoint, Json, Model, Quiet
from equisep.errors import InputError

if TYPE_CHECKING:
    from torch import nn

    from equisep.taps import Call, Grains

TOKENS = "tokens"


@reported
def sites(
    model: Model,
    checkpoint: Checkpoint = None,
    sites: Annotated[
        list[str] | None, typer.Option("--sites", help="auto, layers, blocks, a module name or a glob; repeatable.")
    ] = None,
    given: Annotated[
        str | None,
        typer.Option(
            "--input", help="Run one sample of this shape, 3x32x32, or 16tokens: calls in order, and their shapes."
        ),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """List the modules of a model and mark the ones that `equisep measure` would read."""
    from equisep.models import load_model, loading_words
    from equisep.taps import (
        GRAINS,
        INPUT,
        choose,
        grains_of,
        inner,
        refuse_scripted,
        refuse_uninitialized,
        site_modules,
    )

    say(loading_words(model, checkpoint=checkpoint), quiet=quiet or json)
    with redirect_stdout(sys.stderr):  # what the user's code prints is no result
        network = load_model(model, checkpoint=checkpoint)
        refuse_scripted(network, asked="sites")
        refuse_uninitialized(network, asked="sites")
        calls = None if given is None else _calls(network, given)
    wanted = sites or ["auto"]
    asked = wanted[0] if len(wanted) == 1 else wanted
    grains = grains_of(network, calls)
    chosen = (INPUT, *grains.at(asked)) if isinstance(asked, str) and asked in GRAINS else choose(network, asked).names
    kind = type(inner(network)).__name__
    modules = site_modules(network)
    rows = [_row(name, modules[name], name in chosen, grains) for name in modules]
    if calls is not None:
        rows = [_called(call, modules[call.module], chosen, grains) for call in calls if call.module]
    if json:
        print_json(
            {"model": kind, "sites": list(chosen), "modules": rows, "notes": [note.text for note in grains.notes]}
        )
        return
    what = f"{len(rows)} calls of one forward pass" if calls is not None else f"{len(rows)} modules"
    names = Column("module", overflow="fold", min_width=min(40, max((len(row["name"]) for row in rows), default=0)))
    table = Table("read", names, "kind", "grain", "parameters", title=f"{kind}: {what}", box=None)
    if calls is not None:
        table.add_column("output")
    table.add_row("*", INPUT, "the raw input", "", "", *([] if calls is None else [given]))
    for row in rows:
        shape = [] if calls is None else [_shape(row["shape"])]
        table.add_row(
            "*" if row["site"] else "", row["name"], row["kind"], row["grain"], f"{row['parameters']:,}", *shape
        )
    out.print(table)
    if not quiet:
        for note in grains.notes:
            out.print(note.text, highlight=False)
        out.print(
            f"{len(chosen)} marked with * are read, once for each call. Choose others with --sites.", highlight=False
        )


def _row(name: str, module: nn.Module, read: bool, grains: Grains) -> dict[str, Any]:
    grain = " ".join(word for word, names in (("layer", grains.layers), ("block", grains.blocks)) if name in names)
    return {
        "name": name,
        "kind": type(module).__name__,
        "grain": grain,
        "parameters": sum(parameter.numel() for parameter in module.parameters()),
        "site": read,
    }


def _called(call: Call, module: nn.Module, chosen: tuple[str, ...], grains: Grains) -> dict[str, Any]:
    read = call.module in chosen or call.site in chosen or f"{call.module}:{call.number}" in chosen
    row = _row(call.module, module, read, grains)
    return {**row, "name": call.site, "shape": None if call.shape is None else list(call.shape[1:])}


def _shape(shape: list[int] | None) -> str:
    return "no tensor" if shape is None else "x".join(map(str, shape)) or "one number"


def _calls(network: nn.Module, given: str) -> list[Call]:
    """The calls of one forward pass over random inputs of the shape asked for."""
    import torch

    from equisep.data.inputs import Inputs
    from equisep.measuring.forward import Calling, run_model
    from equisep.taps import eager, inner, random_state_kept, reading_mode, recorded_calls

    dtype = next(
        (parameter.dtype for parameter in network.parameters() if parameter.is_floating_point()), torch.float32
    )
    words = given.lower().replace("×", "x")
    try:
        sizes = [int(part) for part in words.removesuffix(TOKENS).split("x")]
    except ValueError:
        sizes = []
    if not sizes or min(sizes) < 1 or (words.endswith(TOKENS) and len(sizes) != 1):
        raise InputError(f"`--input` takes the shape of one sample, such as 3x32x32, or 16tokens; found `{given}`.")
    with random_state_kept():
        if words.endswith(TOKENS):
            ids = torch.zeros(2, sizes[0], dtype=torch.int64)
            inputs = Inputs(args=(ids,))
        else:
            inputs = Inputs(args=(torch.randn(2, *sizes, dtype=dtype),))
        calling, _ = Calling.of(inner(network), inputs)
        with reading_mode(network, "eval"), eager(), recorded_calls(network) as calls:
            run_model(inner(network), inputs, calling, what="a sample of `--input`")
    return list(calls)
