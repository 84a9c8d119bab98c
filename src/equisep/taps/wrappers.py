"""What stands around and inside a model: compiled, wrapped and scripted modules, and the plain names beneath them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import torch
from torch import nn
from torch.nn.parameter import UninitializedParameter
from torch.optim.swa_utils import AveragedModel

from equisep.errors import ModelError
from equisep.results import Note
from equisep.taps.names import INPUT, INPUT_MODULE
from equisep.taps.walk import modules_of

ORIGINAL = "_orig_mod"  # where torch.compile keeps the module it was given
PARAMETRIZATIONS = "parametrizations"  # where torch keeps what makes a weight, which is no step of the forward pass
# what keeps a model as its `module`
AROUND = frozenset({nn.DataParallel, nn.parallel.DistributedDataParallel, AveragedModel})


def inner(model: nn.Module) -> nn.Module:
    """The model inside torch.compile, DataParallel, DistributedDataParallel and the averages of `torch.optim.swa_utils`."""
    while not _is_scripted(model):
        if not AROUND.isdisjoint(type(model).__mro__):
            model = model.module  # type: ignore[assignment]
        elif ORIGINAL in model._modules and isinstance(original := model._modules[ORIGINAL], nn.Module):
            model = original
        else:
            break
    return model


def _is_scripted(module: nn.Module) -> bool:
    """Not by `isinstance`, which asks a metaclass: a reading asks it of every module."""
    return torch.jit.ScriptModule in type(module).__mro__


def kind_of(model: nn.Module) -> type:
    """The class of the model inside, as its author wrote it: `fully_shard` puts a class of its own over it."""
    kind = type(inner(model))
    over = len(kind.__bases__) > 1 and kind.__bases__[0].__name__ == "FSDPModule"
    return kind.__bases__[1] if over else kind


def kind_name(model: nn.Module) -> str:
    """What its author called the class of the model inside."""
    return kind_of(model).__name__


def named_modules(model: nn.Module) -> dict[str, nn.Module]:
    """Every module inside a model once, by its name without the parts that wrappers put in, in tree order.

    Scripted modules are left out: TorchScript takes no hooks.
    """
    root = inner(model)
    found: dict[str, nn.Module] = {}
    _walk(root, "", {root}, found)
    return found


def _walk(module: nn.Module, prefix: str, seen: set[nn.Module], found: dict[str, nn.Module]) -> None:
    for key, wrapped in module._modules.items():
        if wrapped is None or key == PARAMETRIZATIONS:
            continue
        child = inner(wrapped)
        if child not in seen and not _is_scripted(child):
            seen.add(child)
            found[f"{prefix}{key}"] = child
            _walk(child, f"{prefix}{key}.", seen, found)


def site_modules(model: nn.Module) -> dict[str, nn.Module]:
    """Every module inside a model by site name; one called `input` is `input:1`, since `input` is the raw input."""
    return {INPUT_MODULE if name == INPUT else name: module for name, module in named_modules(model).items()}


def aliases(model: nn.Module) -> dict[str, str]:
    """Second names of modules that a model holds more than once → the name they are known by."""
    known = {module: name for name, module in named_modules(model).items()}
    every = inner(model).named_modules(remove_duplicate=False)
    return {name: known[module] for name, module in every if module in known and known[module] != name}


def scripted_at(model: nn.Module, name: str) -> str | None:
    """The scripted module that `name` is, or lies inside, if it does."""
    module = inner(model)
    path: list[str] = []
    for part in name.split("."):
        child = getattr(module, part, None)
        if not isinstance(child, nn.Module):
            return None
        module, path = inner(child), [*path, part]
        if isinstance(module, torch.jit.ScriptModule):
            return ".".join(path)
    return None


def refuse_scripted(model: nn.Module, *, asked: str) -> None:
    """Raise where the whole model is TorchScript."""
    if isinstance(inner(model), torch.jit.ScriptModule):
        raise ModelError(
            f"`{asked}` reads modules by hooks, which TorchScript does not take; the model is a "
            f"{type(inner(model)).__name__}. Pass the Python model that it was made from."
        )


def refuse_flattened(model: nn.Module, *, asked: str) -> None:
    """Raise where FSDP1 keeps the weights of a module in one vector, of which layers have nothing outside a forward pass."""
    if any(type(module).__name__ == "FullyShardedDataParallel" for module in model.modules()):
        raise ModelError(
            f"`{asked}` cannot read inside `FullyShardedDataParallel` (FSDP1), which keeps all weights of a module in one flat "
            "vector. Wrap the model by `fully_shard` (FSDP2), or load a checkpoint into the plain model."
        )


def refuse_uninitialized(model: nn.Module, *, asked: str) -> None:
    """Raise where a lazy module has not seen its first input: to read it would make its weights for good."""
    lazy = [name for name, value in model.named_parameters() if isinstance(value, UninitializedParameter)]
    if lazy:
        raise ModelError(
            f"`{asked}` leaves a model as it was, and `{lazy[0]}` has no shape yet. Run the model once on a batch first."
        )


def is_compiled(model: nn.Module) -> bool:
    """Whether the model, or a module inside it, was compiled."""
    parts = [part for part in modules_of(model) if not _is_scripted(part)]
    return any(ORIGINAL in part._modules or part._compiled_call_impl is not None for part in parts)


def wrapper_notes(model: nn.Module) -> tuple[Note, ...]:
    """What is to be said of a model that was compiled."""
    if not is_compiled(model):
        return ()
    text = "The model is compiled; it was read eagerly, since compiled code skips hooks. Its numbers are those of eager mode."
    return (Note("compiled", text),)


@contextmanager
def eager() -> Iterator[None]:
    """Run what was compiled as plain Python, so that hooks are called, and torch's attention without its shortcuts.

    In `eval` mode nn.TransformerEncoder would otherwise hand on nested tensors, and skip the modules inside its layers.
    """
    with ExitStack() as stack:
        if (
            "torch._dynamo" in sys.modules
        ):  # nothing can have been compiled before it is loaded, and loading takes seconds
            stack.enter_context(torch.compiler.set_stance("force_eager"))
        if torch.backends.mha.get_fastpath_enabled():
            torch.backends.mha.set_fastpath_enabled(False)
            stack.callback(torch.backends.mha.set_fastpath_enabled, True)
        yield
