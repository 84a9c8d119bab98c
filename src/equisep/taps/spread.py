"""Spread tensors: what ranks hold parts of (FSDP2, tensor parallelism), and how a layer's part becomes the whole.

`parallelize_module` divides layers by their features. What such a layer hands on is a DTensor, which knows its layout, or by
default a plain tensor: the rank's own part. Where a plain part comes from is followed through the forward pass, from
`DTensor.to_local` on: an operation on each number by itself (ReLU, a sum of two parts) keeps the layout, after any other it is
not known, until a DTensor is made again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.weak import WeakIdKeyDictionary

from equisep.taps.reduce import UnfitError
from equisep.taps.walk import modules_of, parameters_of

if TYPE_CHECKING:
    from torch.distributed.device_mesh import DeviceMesh

# of each number by itself as well, though torch does not say so
SAME = frozenset({"detach", "alias", "_to_copy", "copy_", "lift_fresh", "hardswish", "hardswish_", "_prelu_kernel"})


def is_spread(tensor: Tensor) -> bool:
    """Whether a tensor says itself that ranks hold parts of it."""
    return type(tensor).__name__ == "DTensor"  # a parameter of one too: a plain one is an `nn.Parameter`


def is_divided(model: nn.Module) -> bool:
    """Whether ranks hold a model together, so that it runs in all of them or in none: `fully_shard` or tensor parallelism.

    What `fully_shard` has gathered for a while is plain, and yet divided.
    """
    return any(map(_shards, modules_of(model))) or any(map(is_spread, parameters_of(model)))


def _shards(module: nn.Module) -> bool:
    return "FSDPModule" in [kind.__name__ for kind in type(module).__mro__]


def sharded_by(model: nn.Module) -> dict[nn.Module, Any]:
    """The modules whose parameters `fully_shard` divides, and for each the module that it was called on."""
    found: dict[nn.Module, Any] = {}
    if not any(map(_shards, modules_of(model))):
        return found

    def walk(module: nn.Module, owner: Any) -> None:
        owner = module if _shards(module) else owner
        if owner is not None:
            found[module] = owner
        for child in module.children():
            walk(child, owner)

    walk(model, None)
    return found


@contextmanager
def sharded_as_before(model: nn.Module) -> Iterator[None]:
    """Parameters that `fully_shard` gathers for forward passes inside the `with` are divided again after it.

    The outermost module keeps what it has gathered until a backward pass. An optimizer that is made then would have no part of
    it, and one that steps then would change the parts, while the next forward pass still runs the former whole.
    """
    before = [(module, owner, dict(module._parameters)) for module, owner in sharded_by(model).items()]
    try:
        yield
    finally:
        changed = [
            owner
            for module, owner, own in before
            if any(module._parameters.get(name) is not value for name, value in own.items())
        ]
        for owner in dict.fromkeys(changed):
            owner.reshard()


def full_tensor(tensor: Tensor) -> Tensor:
    """A tensor that says itself that ranks hold parts of it, as a whole; all of these ranks ask for it together."""
    return tensor.full_tensor() if is_spread(tensor) else tensor  # type: ignore[attr-defined]


@dataclass(frozen=True, slots=True)
class Layout:
    """Which part of a tensor of `shape` a rank of `mesh` holds: `placements` as torch has them, one per mesh dimension."""

    mesh: DeviceMesh
    placements: tuple[Any, ...]
    shape: tuple[int, ...]

    def whole(self, part: Tensor) -> Tensor:
        """The parts of all ranks together; parts may differ in size by what does not divide evenly."""
        from torch.distributed.tensor import DTensor

        shape = torch.Size(self.shape)
        stride = torch.empty(shape, device="meta").stride()
        made = DTensor.from_local(
            part.contiguous(), self.mesh, self.placements, run_check=False, shape=shape, stride=stride
        )
        return made.full_tensor()

    def after(self, given: Tensor, made: Tensor) -> Layout | None:
        """The layout of what an operation on each number makes of a part; None where that follows from nothing."""
        from torch.distributed.tensor import Shard

        added = made.ndim - given.ndim  # dimensions that broadcasting puts before
        shape, placements = list(made.shape), []
        for placement in self.placements:
            if placement.is_replicate():
                placements.append(placement)
                continue
            if not placement.is_shard() or made.shape[placement.dim + added] != given.shape[placement.dim]:
                return None  # a sum that is not yet added up, say
            shape[placement.dim + added] = self.shape[placement.dim]
            placements.append(Shard(placement.dim + added))
        return Layout(self.mesh, tuple(placements), tuple(shape))


class Layouts(TorchDispatchMode):
    """Follows the parts that a forward pass makes; `known` has their layouts, None where it is not known.

    A plain tensor that is not there is whole: every rank has computed all of it.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.known: Any = WeakIdKeyDictionary()
        self.resting = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operation, and say of what it makes where its parts lie."""
        made = func(*args, **(kwargs or {}))
        if self.resting or not len(self.known):
            return made
        given = [each for each in tree_leaves((args, kwargs)) if isinstance(each, Tensor) and each in self.known]
        if given:
            for each in tree_leaves(made):
                if isinstance(each, Tensor) and not is_spread(each):
                    self.known[each] = self._after(func, given, each)
        return made

    def _after(self, func: Any, given: list[Tensor], made: Tensor) -> Layout | None:
        if torch.Tag.pointwise not in func.tags and func.overloadpacket.__name__ not in SAME:
            return None
        layouts = [None if (known := self.known[each]) is None else known.after(each, made) for each in given]
        return layouts[0] if all(layout == layouts[0] for layout in layouts) else None

    def tell(self, part: Tensor, spread: Tensor) -> None:
        """A plain tensor is the part of a tensor that knows its layout."""
        mesh, placements = spread.device_mesh, spread.placements  # type: ignore[attr-defined]
        if all(placement.is_replicate() for placement in placements):
            self.known.pop(part, None)
        else:
            plain = all(type(each).__name__ in ("Shard", "Replicate", "Partial") for each in placements)
            self.known[part] = Layout(mesh, tuple(placements), tuple(spread.shape)) if plain else None

    @contextmanager
    def rest(self) -> Iterator[None]:
        """Operations that are none of the model's."""
        before, self.resting = self.resting, True
        try:
            yield
        finally:
            self.resting = before


_following: list[Layouts] = []  # the one of the forward pass under way


@contextmanager
def layouts_followed(model: nn.Module) -> Iterator[None]:
    """Follow where the parts of what layers give lie, while the `with` lasts, if ranks hold parts of the model."""
    if _following or not any(map(is_spread, parameters_of(model))):
        yield
        return
    layouts = Layouts()
    with ExitStack() as stack:
        _following.append(layouts)
        stack.callback(_following.pop)
        stack.enter_context(_told(layouts))
        stack.enter_context(layouts)
        yield


@contextmanager
def _told(layouts: Layouts) -> Iterator[None]:
    """Hear of every DTensor that becomes a plain tensor."""
    from torch.distributed.tensor import DTensor

    to_local, full = DTensor.to_local, DTensor.full_tensor

    def local(self: Any, *args: Any, **kwargs: Any) -> Tensor:
        part: Tensor = to_local(self, *args, **kwargs)
        layouts.tell(part, self)
        return part

    def whole(self: Any, *args: Any, **kwargs: Any) -> Tensor:
        made: Tensor = full(self, *args, **kwargs)
        layouts.known.pop(made, None)
        return made

    try:
        DTensor.to_local, DTensor.full_tensor = local, whole  # type: ignore[method-assign]
        yield
    finally:
        DTensor.to_local, DTensor.full_tensor = to_local, full  # type: ignore[method-assign]


SITE_CURE = "Choose another site, or let the layers before it hand on DTensors (`use_local_output=False`)."
SCORES_CURE = "Let the last layer give all class scores (`output_layouts=Replicate()`)."


def whole(tensor: Tensor, *, what: str, cure: str = SITE_CURE) -> Tensor:
    """What a layer gives as a whole, from the parts of all ranks, which ask for it together; raise where nobody can tell."""
    if not _following:
        return full_tensor(tensor)
    layouts = _following[-1]
    with layouts.rest():
        if is_spread(tensor):
            return full_tensor(tensor)
        if tensor not in layouts.known:
            return tensor
        layout = layouts.known[tensor]
        if layout is None:
            raise UnfitError(
                f"{what} gives each rank a part of its features (tensor parallelism), and after an operation that is not on "
                f"each number by itself nothing tells which part. {cure}"
            )
        return layout.whole(tensor)  # type: ignore[no-any-return]


@contextmanager
def model_rests() -> Iterator[None]:
    """What is computed inside a forward pass, and is none of the model's."""
    if not _following:
        yield
        return
    with _following[-1].rest():
        yield


def is_handed_on(given: Tensor | None, made: Tensor | None) -> bool:
    """Whether a module is given the very tensor that another made, or a DTensor of it."""
    if given is None or made is None:
        return False
    if given is made or not is_spread(given) or is_spread(made):
        return given is made
    return bool(given.to_local().data_ptr() == made.data_ptr())  # type: ignore[attr-defined]
