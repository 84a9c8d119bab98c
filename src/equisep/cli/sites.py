"""`equisep sites`: the modules of a model, which of them would be read, and what a forward pass makes of them."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from equisep.cli.console import glyphs, out, print_json, reported, say
from equisep.cli.options import READ, Checkpoint, Json, Model, Quiet, Sites, option, parse_sites
from equisep.errors import InputError
from equisep.report.tables import PlainTable, plain_table
from equisep.results import Note

if TYPE_CHECKING:
    from torch import nn

    from equisep.data.inputs import Inputs
    from equisep.taps import Call, Grains

TOKENS = "tokens"


@dataclass(frozen=True, slots=True)
class Listing:
    """The modules of a model, or their calls in one forward pass, and which of them are read."""

    model: str
    chosen: tuple[str, ...]
    rows: list[dict[str, Any]]
    notes: tuple[Note, ...]


@reported
def sites(
    model: Model,
    checkpoint: Checkpoint = None,
    sites: Sites = None,
    given: Annotated[
        str | None,
        option(
            "--input", READ, "Run one sample of this shape, 3x32x32, or 16tokens: calls in order, and their shapes."
        ),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """List the modules of a model and mark the ones that `equisep measure` would read."""
    from equisep.models import load_model, loading_words

    say(loading_words(model, checkpoint=checkpoint), quiet=quiet or json)
    with redirect_stdout(sys.stderr):  # what the user's code prints is no result
        network = load_model(model, checkpoint=checkpoint)
        listing = _listed(network, parse_sites(sites or ["auto"]), given)
    if json:
        notes = [note.text for note in listing.notes]
        print_json({"model": listing.model, "sites": list(listing.chosen), "modules": listing.rows, "notes": notes})
        return
    what = "modules" if given is None else "calls of one forward pass"
    out.print(f"{listing.model}: {len(listing.rows)} {what}", style="bold", markup=False, highlight=False)
    out.print(_table(listing.rows, given))
    if not quiet:
        for note in listing.notes:
            out.print(note.text, markup=False, highlight=False)
        words = f"{len(listing.chosen)} marked with * are read, once for each call. Choose others with --sites."
        out.print(words, highlight=False)


def _listed(network: nn.Module, asked: str | list[str], given: str | None) -> Listing:
    """What the model has; with the shape of a sample, what a forward pass over it calls."""
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

    refuse_scripted(network, asked="sites")
    refuse_uninitialized(network, asked="sites")
    calls = None if given is None else _calls(network, given)
    grains = grains_of(network, calls)
    chosen = (INPUT, *grains.at(asked)) if isinstance(asked, str) and asked in GRAINS else choose(network, asked).names
    modules = site_modules(network)
    if calls is None:
        rows = [row for name in modules for row in _rows(name, modules[name], chosen, grains)]
    else:
        rows = [row for call in calls if call.module for row in _called(call, modules[call.module], chosen, grains)]
    return Listing(type(inner(network)).__name__, chosen, rows, grains.notes)


def _table(rows: list[dict[str, Any]], given: str | None) -> PlainTable:
    from equisep.taps import INPUT

    titles = ["read", "module", "kind", "level", "parameters", *([] if given is None else ["output"])]
    cells = [["*", INPUT, "the raw input", "", "", *([] if given is None else [given])]]
    for row in rows:
        shape = [] if given is None else [_shape(row["shape"])]
        cells.append(
            ["*" if row["site"] else "", row["name"], row["kind"], row["grain"], f"{row['parameters']:,}", *shape]
        )
    text = ("read", "module", "kind", "level", "output")
    return plain_table(titles, cells, glyphs(), left=text, fold=("module", "kind", "output"))


def _rows(name: str, module: nn.Module, chosen: tuple[str, ...], grains: Grains) -> list[dict[str, Any]]:
    """A module, after its input where that is read."""
    row = _row(name, module, name in chosen, grains)
    given = f"{name}:in"
    return [{**row, "name": given, "kind": f"input of {row['kind']}", "site": True}, row] if given in chosen else [row]


def _row(name: str, module: nn.Module, read: bool, grains: Grains) -> dict[str, Any]:
    grain = " ".join(word for word, names in (("layer", grains.layers), ("block", grains.blocks)) if name in names)
    return {
        "name": name,
        "kind": type(module).__name__,
        "grain": grain,
        "parameters": sum(parameter.numel() for parameter in module.parameters()),
        "site": read,
    }


def _called(call: Call, module: nn.Module, chosen: tuple[str, ...], grains: Grains) -> list[dict[str, Any]]:
    """One call, after what it was given where that is read."""
    from equisep.taps import is_among

    row = {
        **_row(call.module, module, is_among(call.site, chosen), grains),
        "name": call.site,
        "shape": _sample(call.shape),
    }
    if not is_among(call.given_site, chosen):
        return [row]
    given = {"name": call.given_site, "kind": f"input of {row['kind']}", "site": True, "shape": _sample(call.given)}
    return [{**row, **given}, row]


def _sample(shape: tuple[int, ...] | None) -> list[int] | None:
    return None if shape is None else list(shape[1:])


def _shape(shape: list[int] | None) -> str:
    return "no tensor" if shape is None else "x".join(map(str, shape)) or "one number"


def _calls(network: nn.Module, given: str) -> list[Call]:
    """The calls of one forward pass over random inputs of the shape asked for."""
    from equisep.measuring.forward import Calling, run_model
    from equisep.taps import eager, inner, random_state_kept, reading_mode, recorded_calls

    with random_state_kept():
        inputs = _inputs(network, given)
        calling, _ = Calling.of(inner(network), inputs)
        with reading_mode(network, "eval"), eager(), recorded_calls(network) as calls:
            run_model(inner(network), inputs, calling, what="a sample of `--input`")
    return list(calls)


def _inputs(network: nn.Module, given: str) -> Inputs:
    """Two random samples of the shape asked for, in the model's own precision; token ids are 0."""
    import torch

    from equisep.data.inputs import Inputs

    words = given.lower().replace("×", "x")
    tokens = words.endswith(TOKENS)
    try:
        sizes = [int(part) for part in words.removesuffix(TOKENS).split("x")]
    except ValueError:
        sizes = []
    if not sizes or min(sizes) < 1 or (tokens and len(sizes) != 1):
        raise InputError(f"`--input` takes the shape of one sample, such as 3x32x32, or 16tokens; found `{given}`.")
    if tokens:
        return Inputs(args=(torch.zeros(2, sizes[0], dtype=torch.int64),))
    kinds = (parameter.dtype for parameter in network.parameters() if parameter.is_floating_point())
    return Inputs(args=(torch.randn(2, *sizes, dtype=next(kinds, torch.float32)),))
