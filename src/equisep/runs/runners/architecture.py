"""The network that a cell asks for: one of ours by name, or any other that a line of text names, with its activation."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from equisep.errors import ModelError
from equisep.figures.cell import Training
from equisep.models.load import load_model, parse_spec
from equisep.models.networks import activation_named, build, option_names, replace_relus
from equisep.runs.plan import FEED_FORWARD, runner_of
from equisep.runs.runners.cells import recipe_of, shape_of
from equisep.training.initialization import he_start
from equisep.user_code import code_checksum
from equisep.user_code import option_names as declared_options

# options of networks, and the fields of a cell that ask for them
OPTIONS = {
    **{name: name for name in ("depth", "width", "channels", "kernel", "width_multiplier")},
    "pool": "pooling",
    "hidden": "widths",
}


def check_names(cell: Training) -> None:
    """Refuse names of networks, activations and optimizers that there are not, before anything is trained."""
    if isinstance(cell.activation, str):
        activation_named(cell.activation)
    recipe_of(cell)
    if runner_of(cell) == "networks" and cell.network not in FEED_FORWARD:
        parse_spec(cell.network) if ":" in cell.network else option_names(cell.network)


def network_of(cell: Training, x: Tensor, *, classes: int) -> nn.Module:
    """The cell's network with the weights of its seed, for samples like `x`."""
    network = _drawn_network(cell, x, classes=classes)
    if isinstance(cell.activation, str):
        replace_relus(network, cell.activation, name=cell.network)
    elif not cell.activation and cell.network not in FEED_FORWARD:
        replace_relus(network, "Identity", name=cell.network)
    if cell.init:
        network.load_state_dict(he_start(network, seed=cell.seed))
    return network


def code_of(cell: Training) -> dict[str, str]:
    """The checksum of the user's file that made the network, where one did: the key of a cell holds its name alone."""
    checksum = code_checksum(parse_spec(cell.network).name) if ":" in cell.network else ""
    return {"code": checksum} if checksum else {}


def _drawn_network(cell: Training, x: Tensor, *, classes: int) -> nn.Module:
    """The network as its weights are drawn."""
    if cell.network in FEED_FORWARD:
        return shape_of(cell, inputs=x[0].numel(), classes=classes).build(cell.seed)
    given: dict[str, Any] = {"inputs": x[0].numel(), "classes": classes}
    if x.ndim == 4:
        given |= {"colors": x.shape[1], "size": x.shape[2]}
    asked = {name: getattr(cell, field) for name, field in OPTIONS.items()}
    # the cell's defaults are the feed-forward network's, and are nothing to refuse in another
    usual = {name: getattr(Training(), field) for name, field in OPTIONS.items()}
    if ":" in cell.network:
        return _loaded(cell, given, {name: own for name, own in asked.items() if own not in (None, usual[name])})
    known = option_names(cell.network)
    options = {name: value for name, value in given.items() if name in known} | {
        name: value for name, value in asked.items() if value is not None and (name in known or value != usual[name])
    }
    return build(cell.network, seed=cell.seed, **options)


def _loaded(cell: Training, given: dict[str, Any], changed: dict[str, Any]) -> nn.Module:
    """What `load_model` makes after `torch.manual_seed(seed)`; a function of the user's hears of the data if it asks.

    Fields of the cell that differ from their defaults are options too; those behind the name come first.
    """
    spec = parse_spec(cell.network)
    declared = declared_options(spec.name, error=ModelError) if spec.source == "factory" else ()
    options = {name: value for name, value in given.items() if name in declared} | changed | dict(spec.options)
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(cell.seed)
        return load_model(cell.network, **options)
