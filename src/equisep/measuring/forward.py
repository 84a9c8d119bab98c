"""How a batch reaches a model's forward pass, and a sentence around whatever goes wrong inside it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from inspect import Parameter
from typing import Any

import torch
from torch import Tensor, nn

from equisep.data.inputs import Inputs
from equisep.errors import EquisepError, ModelError
from equisep.results import Note
from equisep.taps import kind_name, signature_of, with_whole_scores

_PLACED = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
_NAMED = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)


@dataclass(frozen=True, slots=True)
class Calling:
    """Which inputs by name the forward pass takes (None: all), or that it takes the mapping itself (`whole`)."""

    names: frozenset[str] | None = None
    whole: bool = False

    @staticmethod
    def of(model: nn.Module, inputs: Inputs) -> tuple[Calling, tuple[Note, ...]]:
        """How this model takes these inputs; columns that it does not know are left out with a Note."""
        signature = signature_of(model)
        if signature is None or not inputs.kwargs:
            return Calling(), ()
        parameters = signature.parameters.values()
        if any(parameter.kind is Parameter.VAR_KEYWORD for parameter in parameters):
            needed = [p.name for p in parameters if p.kind in _PLACED and p.default is Parameter.empty]
            return Calling(whole=any(name not in inputs.kwargs for name in needed[:1])), ()
        known = {parameter.name for parameter in parameters if parameter.kind in _NAMED}
        taken = frozenset(name for name in inputs.kwargs if name in known)
        if not taken:
            return Calling(whole=True), ()
        spare = [name for name in inputs.kwargs if name not in taken]
        names = ", ".join(f"`{name}`" for name in spare)
        text = f"`{type(model).__name__}` takes no {names}: left out of its inputs."
        return Calling(taken), (Note("unused-inputs", text),) if spare else ()

    def arguments(self, inputs: Inputs) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Positional and named arguments; copies, since a model that begins in place would overwrite the user's data."""
        return self.passed(inputs.changed(Tensor.clone))

    def passed(self, inputs: Inputs) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Positional and named arguments, the very tensors."""
        if self.whole:
            return (*inputs.args, dict(inputs.kwargs)), {}
        return inputs.args, {name: v for name, v in inputs.kwargs.items() if self.names is None or name in self.names}


def run_model(model: nn.Module, inputs: Inputs, calling: Calling, *, what: str) -> Any:
    """The model's output, with a sentence around whatever goes wrong inside the model.

    Where ranks hold parts of its class scores, these alone, as a whole.
    """
    args, kwargs = calling.arguments(inputs)
    try:
        return with_whole_scores(model(*args, **kwargs))
    except EquisepError:
        raise
    except Exception as error:  # whatever a user's model raises
        name = kind_name(model)
        if calling.whole:
            first_line = (
                str(error).strip().partition(", but expected one of:\n")[0]
            )  # torch goes on with every overload it knows
            first_line = first_line.partition("\n")[0]
            raise ModelError(f"`{name}` could not run {what}: {_keys_words(model, inputs)} {first_line}") from error
        raise ModelError(f"`{name}` could not run {what} ({inputs}): {error}{_type_words(model, inputs)}") from error


def _type_words(model: nn.Module, inputs: Inputs) -> str:
    """What to do where whole numbers came to a model that embeds none: bytes of pictures, most often."""
    whole = [x for x in inputs.tensors.values() if not x.is_floating_point() and not x.is_complex()]
    if not whole or any(isinstance(module, nn.Embedding | nn.EmbeddingBag) for module in model.modules()):
        return ""
    return (
        ". The inputs are whole numbers: pass them as the model was trained on them, `x.float() / 255` for bytes, say."
    )


def _keys_words(model: nn.Module, inputs: Inputs) -> str:
    """What to do where no key of a batch is an argument of the forward pass, and the mapping itself would not do."""
    signature = signature_of(model)
    parameters = signature.parameters.values() if signature is not None else ()
    taken = ", ".join(f"`{parameter.name}`" for parameter in parameters if parameter.kind in _NAMED)
    keys = list(inputs.kwargs)
    return (
        f"keys of a batch must be argument names of its forward pass ({taken}), and the batch holds "
        f"{', '.join(f'`{key}`' for key in keys)}. Rename them, or pass "
        f"`unpack=lambda batch: (batch[{keys[0]!r}], batch[…])`, with the key of the labels. "
        "Given the mapping itself, the model said:"
    )


@contextmanager
def exact_arithmetic(device: torch.device) -> Iterator[None]:
    """Without autocast, which is the model's matter: it would shorten the products of our own sums."""
    kinds = [kind for kind in dict.fromkeys(("cpu", device.type)) if torch.is_autocast_enabled(kind)]
    if not kinds:  # as nearly always, at every activation
        yield
        return
    with ExitStack() as stack:
        for kind in kinds:
            stack.enter_context(torch.autocast(kind, enabled=False))
        yield
