"""What all processes of one measurement must have in common: the model, and choices that sums can serve."""

from __future__ import annotations

import hashlib
import re

import torch
from torch import Tensor, nn

from equisep.errors import InputError
from equisep.measuring.request import Options
from equisep.taps import Reduction, inner, is_divided, is_spread, kind_name


def model_mark(model: nn.Module) -> str:
    """A digest of the modules of a model, each with how it was set up, its parameters and its buffers."""
    digest = hashlib.sha256(kind_name(model).encode())
    for name, module in inner(model).named_modules():
        said = re.sub(r"0x[0-9a-f]+", "", module.extra_repr())  # addresses differ from process to process
        digest.update(f"{name} {type(module).__name__} {said}".encode())
    for name, value in inner(model).state_dict().items():
        digest.update(name.encode())
        if isinstance(value, Tensor) and is_spread(value):
            digest.update(f"{value.dtype} {tuple(value.shape)}".encode())  # its numbers lie in several processes
        elif isinstance(value, Tensor):
            digest.update(f"{value.dtype} {tuple(value.shape)}".encode())
            plain = value.detach().cpu().contiguous()
            digest.update(plain.view(torch.uint8).numpy().tobytes() if plain.ndim else str(plain.item()).encode())
    return digest.hexdigest()[:16]


def layout_mark(model: nn.Module) -> str:
    """A digest of the class of a model and of its parameters' names and shapes, and whether ranks hold parts of them."""
    shapes = [(name, tuple(value.shape)) for name, value in inner(model).named_parameters()]
    return hashlib.sha256(repr((kind_name(model), is_divided(model), shapes)).encode()).hexdigest()[:16]


def refuse_whole_features(reduction: Reduction, options: Options, *, asked: str) -> None:
    """Raise where a choice needs all features in one process."""
    chosen = "intervals='bootstrap'" if options.intervals == "bootstrap" else f"reduction='{reduction.name}'"
    if options.intervals == "bootstrap" or reduction.components is not None:
        raise InputError(
            f"{asked} adds up sums, and `{chosen}` needs all features in one process. Leave it out, or measure in one process."
        )
