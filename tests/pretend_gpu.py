"""A GPU that is none: tensors that say they are on `cuda` and live on the CPU, so that steps and waits can be counted.

Every step is run on the CPU. A step on tensors of both devices raises, as it would on a GPU. What a program would wait for (a
number that Python asks for, a copy from one device to the other, a result whose size depends on the data) is counted apart.
It takes a device name of torch's own for itself, so it belongs into a process of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

_setup_privateuseone_for_python_backend("pretend")  # type: ignore[no-untyped-call]
HERE, CUDA = torch.device("pretend", 0), torch.device("cuda", 0)
MEMORY_ALONE = ("detach", "empty", "empty_like", "new_empty", "empty_strided", "_unsafe_view", "new_empty_strided")
OF_UNKNOWN_SIZE = ("nonzero", "_unique2", "bincount", "equal", "masked_select", "_linalg_svd", "_linalg_eigh")
ACROSS = ("copy_", "index", "index_put_", "_index_put_impl_")


class Pretended(Tensor):
    """A tensor on the pretended GPU; `inner` is the one on the CPU."""

    inner: Tensor
    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    @staticmethod
    def __new__(cls, inner: Tensor) -> Pretended:
        made: Pretended = Tensor._make_wrapper_subclass(  # type: ignore[attr-defined]
            cls, inner.shape, strides=inner.stride(), storage_offset=inner.storage_offset(), dtype=inner.dtype,
            layout=inner.layout, device=HERE, requires_grad=False,
        )  # fmt: skip
        made.inner = inner
        return made

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise RuntimeError(f"{func} outside of the pretended GPU")

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        """As it would say."""
        return CUDA

    @property
    def is_cuda(self) -> bool:  # type: ignore[override]
        """As it would say."""
        return True


class _Names(TorchFunctionMode):
    """`cuda` as an argument means the pretended one."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is Tensor.tolist and isinstance(args[0], Pretended):
            return args[0].cpu().tolist()
        if not (args and isinstance(args[0], torch.device)):
            args = tuple(map(_named, args))
        return func(*args, **{key: _named(value) for key, value in (kwargs or {}).items()})


def _named(value: Any) -> Any:
    mine = (isinstance(value, torch.device) and value.type == "cuda") or (
        isinstance(value, str) and value[:4] == "cuda"
    )
    return HERE if mine else value


def _inner(value: Any) -> Any:
    return value.inner if isinstance(value, Pretended) else value


class Counted(TorchDispatchMode):
    """What the pretended GPU was told, and what it was waited for."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.steps: Counter[str] = Counter()
        self.waits: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        tensors = [value for value in tree_leaves((args, kwargs)) if isinstance(value, Tensor)]
        there = [value for value in tensors if isinstance(value, Pretended)]
        here = [value for value in tensors if not isinstance(value, Pretended) and value.ndim]
        name, asked = func._schema.name.removeprefix("aten::"), kwargs.get("device")
        if there and here and name not in ACROSS:
            raise RuntimeError(f"{name} of tensors on cuda and on the CPU")
        stays = bool(there) if asked is None else torch.device(asked).type == HERE.type
        if asked is not None and stays:
            kwargs["device"] = torch.device("cpu")
        result = func(*tree_map(_inner, args), **tree_map(_inner, kwargs))
        self._count(name, func, there=bool(there), here=bool(here), stays=stays)
        if name == "copy_":
            return args[0]
        if not stays or name == "_local_scalar_dense":
            return result
        known = {id(value.inner): value for value in there}

        def wrapped(value: Any) -> Any:
            if not isinstance(value, Tensor):
                return value
            return known[id(value)] if id(value) in known else Pretended(value)

        return tree_map(wrapped, result)

    def _count(self, name: str, func: Any, *, there: bool, here: bool, stays: bool) -> None:
        if not there and not stays:
            return
        crosses = (name == "_to_copy" and there != stays) or (here and there and name in ACROSS)
        if crosses or (there and name in (*OF_UNKNOWN_SIZE, "_local_scalar_dense")):
            self.waits[name] += 1
        views = any(each.alias_info is not None and not each.alias_info.is_write for each in func._schema.returns)
        if not views and name not in (*MEMORY_ALONE, "_local_scalar_dense"):
            self.steps[name] += 1


@contextmanager
def pretended_gpu() -> Iterator[Counted]:
    """Inside, `cuda` is the pretended one, and what is done there is counted."""
    with _Names(), Counted() as counted:
        yield counted


def moved(model: nn.Module) -> nn.Module:
    """The model with its parameters and buffers on the pretended GPU."""
    for module in model.modules():
        for name, value in module._parameters.items():
            if value is not None:
                module._parameters[name] = nn.Parameter(Pretended(value.data), requires_grad=False)
        for name, buffer in module._buffers.items():
            if buffer is not None:
                module._buffers[name] = Pretended(buffer)
    return model
