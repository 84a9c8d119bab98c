"""Metric: the face that torchmetrics gives to a streaming state, for places where that package is not installed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from functools import wraps
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn

from equisep.errors import InputError

# as torchmetrics understands them; there is no process but this one unless torch.distributed was set up
Gather = Callable[..., list[Tensor]]


def distributed() -> bool:
    """Whether several processes share the work."""
    return torch.distributed.is_available() and torch.distributed.is_initialized()


class Metric(nn.Module):
    """States that are buffers of a module, `update`, `forward`, `reset`, and `sync` over processes; `compute` is wrapped in it.

    The methods are those of `torchmetrics.Metric` (1.9) that a loop calls, with the same meaning; a subclass gives `update`,
    `compute` and `_sync_dist`, which merges the states of all processes into one.
    """

    __jit_unused_properties__: ClassVar[list[str]] = ["device", "metric_state", "update_count", "update_called"]

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.process_group = options.pop("process_group", None)
        self.dist_sync_on_step = options.pop("dist_sync_on_step", False)
        self.sync_on_compute = options.pop("sync_on_compute", True)
        if options:
            raise InputError(f"Unknown options {', '.join(f'`{name}`' for name in sorted(options))}.")
        self._defaults: dict[str, Tensor] = {}
        self._cache: dict[str, Tensor] | None = None
        self._update_count = 0

    def __init_subclass__(cls) -> None:
        """Counted updates, and a `compute` that sees all processes, as torchmetrics wraps them."""
        super().__init_subclass__()
        for name, wrapped in (("update", _counted), ("compute", _synced)):
            if name in cls.__dict__:
                setattr(cls, name, wrapped(cls.__dict__[name]))

    def update(self, *args: Any, **options: Any) -> None:
        """Add a batch."""
        raise NotImplementedError

    def compute(self) -> Any:
        """The value of all batches on all processes."""
        raise NotImplementedError

    def _sync_dist(self, dist_sync_fn: Gather, process_group: Any = None) -> None:
        raise NotImplementedError

    def add_state(self, name: str, default: Tensor, dist_reduce_fx: None = None) -> None:
        """A tensor that updates change, processes exchange and `reset` brings back to its default."""
        self._defaults[name] = default.clone()
        self.register_buffer(name, default, persistent=False)

    @property
    def device(self) -> torch.device:
        """Where the states are."""
        return next(self.buffers()).device

    @property
    def metric_state(self) -> dict[str, Tensor]:
        """The states by name."""
        return {name: getattr(self, name) for name in self._defaults}

    @property
    def update_count(self) -> int:
        """How many batches came since the last `reset`."""
        return self._update_count

    @property
    def update_called(self) -> bool:
        """Whether a batch came since the last `reset`."""
        return self._update_count > 0

    @torch.jit.unused
    def forward(self, *args: Any, **options: Any) -> Any:
        """Add a batch, and the value of that batch alone (on this process, unless `dist_sync_on_step`)."""
        self.update(*args, **options)
        kept, count = self.metric_state, self._update_count
        together, self.sync_on_compute = self.sync_on_compute, self.dist_sync_on_step
        try:
            self.reset()
            self.update(*args, **options)
            return self.compute()
        finally:
            self._restore(kept)
            self._update_count, self.sync_on_compute = count, together

    def reset(self) -> None:
        """Forget all batches."""
        device = self.device
        self._restore({name: default.clone().to(device) for name, default in self._defaults.items()})
        self._update_count, self._cache = 0, None

    def sync(
        self,
        dist_sync_fn: Gather | None = None,
        process_group: Any = None,
        should_sync: bool = True,
        distributed_available: Callable[[], bool] | None = None,
    ) -> None:
        """Replace the states by those of all processes together; `unsync` brings them back."""
        if not should_sync or not (distributed_available or distributed)():
            return
        if self._cache is not None:
            raise InputError("The states are those of all processes already. Call `unsync()` first.")
        cache = {name: state.clone() for name, state in self.metric_state.items()}
        self._sync_dist(dist_sync_fn or _gathered, process_group or self.process_group)
        self._cache = cache

    def unsync(self, should_unsync: bool = True) -> None:
        """Bring back the states of this process."""
        if not should_unsync:
            return
        if self._cache is None:
            raise InputError("The states are those of this process already. Call `sync()` first.")
        self._restore(self._cache)
        self._cache = None

    @contextmanager
    def sync_context(self, should_sync: bool = True, should_unsync: bool = True, **options: Any) -> Iterator[None]:
        """`sync` inside, `unsync` after."""
        self.sync(should_sync=should_sync, **options)
        try:
            yield
        finally:
            self.unsync(should_unsync=should_sync and should_unsync and self._cache is not None)

    def persistent(self, mode: bool = False) -> None:
        """Whether the states are part of `state_dict`; at first they are not."""
        self._non_persistent_buffers_set = set() if mode else set(self._defaults)

    def clone(self) -> Self:
        """A copy that goes its own way."""
        return deepcopy(self)

    def _restore(self, states: Mapping[str, Tensor]) -> None:
        for name, state in states.items():
            setattr(self, name, state)

    def _load_from_state_dict(self, state_dict: dict[str, Tensor], prefix: str, *args: Any) -> None:
        """States have the shapes of what was seen: those that are loaded count."""
        for name in self._defaults:
            if prefix + name in state_dict and name not in self._non_persistent_buffers_set:
                setattr(self, name, state_dict[prefix + name].clone().to(self.device))
        super()._load_from_state_dict(state_dict, prefix, *args)


def _counted(update: Callable[..., None]) -> Callable[..., None]:
    @wraps(update)
    def counted(self: Metric, *args: Any, **options: Any) -> None:
        update(self, *args, **options)
        self._update_count += 1

    return counted


def _synced(compute: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(compute)
    def synced(self: Metric) -> Any:
        with self.sync_context(should_sync=self.sync_on_compute and self._cache is None):
            return compute(self)

    return synced


def _gathered(state: Tensor, group: Any = None) -> list[Tensor]:
    """The state of every process; the shapes may differ."""
    states: list[Any] = [None] * torch.distributed.get_world_size(group)
    torch.distributed.all_gather_object(states, state.cpu(), group=group)
    return [each.to(state.device) for each in states]
