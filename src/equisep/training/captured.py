"""Steps of training captured as CUDA graphs and replayed: hundreds of kernels for the price of one launch."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules import module as torch_module

from equisep.errors import InputError, did_you_mean

Engine = Literal["auto", "eager", "graphs"]
Step = Callable[..., None]
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


def replays(engine: str, device: torch.device, *, obstacle: str | None, others: tuple[str, ...] = ()) -> bool:
    """Whether steps are replayed from captured graphs; `obstacle` is what stands against it beside the device.

    `others` are engines that the caller knows beside these.
    """
    known = (*get_args(Engine), *others)
    if engine not in known:
        raise InputError(f"No engine `{engine}`.{did_you_mean(engine, known)} Known: {', '.join(known)}.")
    if device.type != "cuda":
        obstacle = f"the device is {device}"
    if engine == "graphs" and obstacle is not None:
        raise InputError(f"`engine='graphs'` replays captured CUDA graphs, but {obstacle}. Use `engine='auto'`.")
    return engine != "eager" and obstacle is None


class CapturedSteps:
    """`step` as CUDA graphs, one for each batch size, called as `step` is: with tensors whose first axis is the batch.

    What a step takes from the host, such as a rate that is a plain number, stays as it was at capture; `forget` drops
    the graphs when it changes.
    """

    def __init__(self, step: Step, *, stream: torch.cuda.Stream | None = None) -> None:
        self._step = step
        self._stream = stream
        self._graphs: dict[int, tuple[torch.cuda.CUDAGraph, tuple[Tensor, ...]]] = {}

    def __call__(self, *batch: Tensor) -> None:
        """The step on this batch."""
        self.capture(*batch)
        graph, held = self._graphs[len(batch[0])]
        for own, given in zip(held, batch, strict=True):
            own.copy_(given)
        graph.replay()

    def capture(self, *batch: Tensor) -> None:
        """The graph for batches of this size, where there is none yet; nothing is computed."""
        if len(batch[0]) in self._graphs:
            return
        held = tuple(part.clone() for part in batch)
        graph = torch.cuda.CUDAGraph()
        # graphs that never run at the same time can share their memory
        pool = next((other.pool() for other, _ in self._graphs.values()), None)
        with torch.cuda.graph(graph, pool=pool, stream=self._stream):
            self._step(*held)
        self._graphs[len(batch[0])] = (graph, held)

    def forget(self) -> None:
        """The next steps are captured anew."""
        self._graphs.clear()


class ModelSteps:
    """Steps of one network, eager for an epoch and a batch, then replayed wherever that gives the same numbers.

    In the first epoch optimizers make their state. The step after it is watched: one that waits for the device, draws
    chance on the host or changes plain attributes of modules would not be repeated by a graph. Such a network is
    trained eagerly, or refused where graphs were asked for (`required`).
    """

    def __init__(self, step: Step, model: nn.Module, *, device: torch.device, required: bool) -> None:
        self._step, self._model, self._required = step, model, required
        self._device = device
        # autograd ties gradients to a stream: eager steps run on the one that is captured later
        self._stream = torch.cuda.Stream(device) if device.type == "cuda" else None
        self._graphs: CapturedSteps | None = None
        self._taken: tuple[Any, ...] = ()
        self._state: Literal["first epoch", "watched", "graphs", "eager"] = "first epoch"

    def epoch(self, batches: Iterable[tuple[Tensor, ...]], *, rate: float) -> None:
        """All batches of an epoch at one rate; what a reader has changed of the network since the last one counts."""
        taken = (rate, _plain_attributes(self._model), _memory(self._model))
        if self._graphs is not None and taken != self._taken:
            self._graphs.forget()
        self._taken = taken
        with self._own_stream():
            for batch in batches:
                self._one(*batch)
        if self._state == "first epoch":
            self._state = "watched"

    def _one(self, *batch: Tensor) -> None:
        if self._state == "watched":
            with watched(self._model) as seen:
                self._step(*batch)
            self._decide(seen[0] if seen else None)
            return
        if self._graphs is None:
            self._step(*batch)
            return
        try:
            self._graphs.capture(*batch)
        except RuntimeError as error:
            self._decide(f"a step of it cannot be captured ({str(error).splitlines()[0]})")
            self._step(*batch)
            return
        self._graphs(*batch)

    def _decide(self, obstacle: str | None) -> None:
        if obstacle is not None and self._required:
            name = type(self._model).__name__
            raise InputError(f"`engine='graphs'` cannot replay `{name}`: {obstacle}. Use `engine='auto'`.")
        self._state = "graphs" if obstacle is None else "eager"
        self._graphs = None if obstacle is not None else CapturedSteps(self._step, stream=self._stream)

    @contextmanager
    def _own_stream(self) -> Iterator[None]:
        if self._stream is None:
            yield
            return
        outside = torch.cuda.current_stream(self._device)
        self._stream.wait_stream(outside)
        try:
            with torch.cuda.stream(self._stream):
                yield
        finally:
            outside.wait_stream(self._stream)


def hooked(model: nn.Module) -> str | None:
    """Why hooks forbid replaying a network's steps, or None: a graph repeats kernels and calls no Python."""
    if any(getattr(torch_module, f"_global{name}", None) for name in _HOOKS):
        return "hooks are set on all modules"
    for name, part in model.named_modules():
        if any(getattr(part, kind, None) for kind in _HOOKS):
            return f"a hook is set on {f'module `{name}`' if name else 'the network'}"
    for name, parameter in model.named_parameters():
        if parameter._backward_hooks or getattr(parameter, "_post_accumulate_grad_hooks", None):
            return f"a hook is set on parameter `{name}`"
    return None


@contextmanager
def watched(model: nn.Module) -> Iterator[list[str]]:
    """What a step does that no graph would repeat, filled in at the end: nothing, mostly."""
    reasons: list[str] = []
    chance, plain = _chance(), _plain_attributes(model)
    with _waits() as waits:
        yield reasons
    if waits:
        reasons.append("a step of it waits for the device")
    if chance != _chance():
        reasons.append("it draws random numbers on the host")
    now = _plain_attributes(model)
    changed = [name for name, value in plain.items() if now.get(name) is not value and now.get(name) != value]
    if changed:
        reasons.append(f"a step of it changes `{changed[0]}`")


@contextmanager
def _waits() -> Iterator[list[Any]]:
    """The warnings of torch that a kernel was waited for."""
    if not torch.cuda.is_available():
        yield []
        return
    before = torch.cuda.get_sync_debug_mode()
    waits: list[Any] = []
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        try:
            yield waits
        finally:
            torch.cuda.set_sync_debug_mode(before)
    for warning in told:
        if "synchronizing CUDA operation" in str(warning.message):
            waits.append(warning)
        else:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)


def _chance() -> tuple[Any, ...]:
    """The states of all generators that a forward pass may draw from on the host."""
    kind, keys, *rest = np.random.get_state(legacy=True)  # noqa: NPY002 (a user's model may use it)
    return bytes(torch.get_rng_state().numpy()), random.getstate(), (kind, keys.tobytes(), *rest)  # type: ignore[union-attr]


def _memory(model: nn.Module) -> dict[str, tuple[int, bool]]:
    """Where the tensors of a network lie, and which of them learn."""
    tensors = [*model.named_parameters(), *model.named_buffers()]
    return {name: (tensor.data_ptr(), tensor.requires_grad) for name, tensor in tensors}


def _plain_attributes(model: nn.Module) -> dict[str, Any]:
    """Numbers, words and switches that modules keep beside their tensors."""
    return {
        f"{name}.{entry}" if name else entry: value
        for name, part in model.named_modules()
        for entry, value in vars(part).items()
        if isinstance(value, bool | int | float | str)
    }
