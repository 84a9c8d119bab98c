"""How a model is read, by running statistics or by the batch, and how it is left exactly as it was found."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy
import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.parameter import UninitializedBuffer

from equisep.results import Reading, reading_named
from equisep.results.readings import BY_BATCH
from equisep.taps.spread import sharded_as_before
from equisep.taps.walk import modules_of

OWN = "torch.nn.modules."  # whose modules, BatchNorm among them, write no buffer in `eval`
MOST_BUFFERS = 2**30  # bytes in all, beyond which only small ones are kept: large ones hold weights then
SMALL_BUFFER = 2**20


@contextmanager
def reading_mode(model: nn.Module, reading: Reading) -> Iterator[None]:
    """Put a model in reading mode, without gradients, and give every flag and every buffer back afterwards.

    eval   BatchNorm uses its running statistics; dropout off.
    mixed, drawn  BatchNorm uses the statistics of the batch being read, running statistics untouched; dropout off.
           Which batches are read is what makes the difference between the two: the figures of He & Su 2023 are of
           batches of 100 in the order drawn.
    """
    reading = reading_named(reading)
    modules = modules_of(model)
    training = [(module, module.training) for module in modules]
    tracking = [(module, module.track_running_stats) for module in modules if isinstance(module, _BatchNorm)]
    try:
        for module, flag in training:  # not `eval()`: some modules override it, and merge weights there
            if flag is not False:
                _set_training(module, False)
        if reading in BY_BATCH:
            for norm, _ in tracking:
                # torch passes no buffers to the kernel then: nothing is updated, not even by 0·NaN
                norm.training, norm.track_running_stats = True, False
        with torch.no_grad(), sharded_as_before(model), buffers_kept(modules):
            yield
    finally:
        for module, flag in training:
            if module.training is not flag:
                _set_training(module, flag)
        for norm, tracked in tracking:
            if norm.track_running_stats is not tracked:
                norm.track_running_stats = tracked


def _set_training(module: nn.Module, flag: bool) -> None:
    """As by an assignment, which torch first looks through for parameters, modules and buffers: of many it takes a while."""
    plain = type(module).__setattr__ is nn.Module.__setattr__ and "training" in vars(module)
    if plain:
        vars(module)["training"] = flag
    else:
        module.training = flag


@contextmanager
def buffers_kept(modules: Sequence[nn.Module]) -> Iterator[None]:
    """Buffers that a forward pass writes inside the `with`, also in `eval` as observers do, are afterwards what they were.

    The same tensors with the same numbers. One that is not saved with the model (`persistent=False`) and comes back in another
    shape is a cache that has grown, and stays: the model remembers elsewhere how far it goes.
    """
    buffers = [
        (module, name, buffer)
        for module in modules
        if isinstance(module._buffers, dict)  # of a scripted one it is none
        and module._buffers
        and not type(module).__module__.startswith(OWN)
        for name, buffer in module._buffers.items()
        if buffer is None or not isinstance(buffer, UninitializedBuffer)
    ]
    every = {id(buffer): buffer for _, _, buffer in buffers if buffer is not None}
    many = sum(buffer.nbytes for buffer in every.values()) > MOST_BUFFERS
    kept = {key: _Kept.of(buffer) for key, buffer in every.items() if not many or buffer.nbytes <= SMALL_BUFFER}
    try:
        yield
    finally:
        for module, name, buffer in buffers:
            now = module._buffers.get(name)
            cached = name in module._non_persistent_buffers_set
            grown = cached and (None if now is None else now.shape) != (None if buffer is None else buffer.shape)
            if now is not buffer and not grown:
                module._buffers[name] = buffer
            if grown and buffer is not None:
                kept.pop(id(buffer), None)
        _put_back(list(kept.values()))


@dataclass(frozen=True, slots=True)
class _Kept:
    """A buffer, its numbers, and how often torch had seen it written."""

    buffer: Tensor
    numbers: Tensor
    version: int

    @staticmethod
    def of(buffer: Tensor) -> _Kept:
        return _Kept(buffer, buffer.detach().clone(), _version(buffer))

    @property
    def counted(self) -> bool:
        """Whether torch has seen it written since."""
        return _version(self.buffer) != self.version or self.buffer.shape != self.numbers.shape

    @property
    def plain(self) -> bool:
        """Whether its numbers can be compared here: ranks that hold parts of one would wait for each other."""
        return type(self.buffer) is Tensor and self.buffer.layout == torch.strided and not self.buffer.is_meta


def _version(buffer: Tensor) -> int:
    return 0 if buffer.is_inference() else buffer._version


def _put_back(kept: list[_Kept]) -> None:
    """Write what differs, and nothing else: what is written is lost for a backward pass under way."""
    changed = [each for each in kept if each.counted]
    silent = [
        each for each in kept if not each.counted and each.plain
    ]  # `buffer.data` is written without being counted
    changed += [each for each in silent if each.buffer.is_cpu and not torch.equal(each.buffer, each.numbers)]
    for device in {each.buffer.device for each in silent if not each.buffer.is_cpu}:  # one wait for all of them
        there = [each for each in silent if each.buffer.device == device]
        differ = torch.stack([(each.buffer != each.numbers).any() for each in there]).tolist()
        changed += [each for each, other in zip(there, differ, strict=True) if other]
    for each in changed:
        with torch.inference_mode(each.buffer.is_inference()), torch.no_grad():
            if each.buffer.shape != each.numbers.shape:
                each.buffer.resize_(each.numbers.shape)
            each.buffer.copy_(each.numbers)


def batch_norms(model: nn.Module) -> list[_BatchNorm]:
    """Every BatchNorm layer of a model."""
    return [module for module in modules_of(model) if isinstance(module, _BatchNorm)]


@contextmanager
def random_state_kept(*owners: Any) -> Iterator[None]:
    """Give torch's, numpy's and Python's random states back, and those of loaders that own a generator.

    Inside a measurement it also makes a second reading of a shuffling loader repeat the first.
    """
    torch_state = torch.get_rng_state()
    cuda_states = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else None
    numpy_state, python_state = numpy.random.get_state(), random.getstate()  # noqa: NPY002 (kept for its users)
    owned = [(generator, generator.get_state()) for generator in _generators(owners)]
    try:
        yield
    finally:
        torch.set_rng_state(torch_state)
        if cuda_states is not None:
            torch.cuda.set_rng_state_all(cuda_states)
        numpy.random.set_state(numpy_state)  # noqa: NPY002
        random.setstate(python_state)
        for generator, state in owned:
            generator.set_state(state)


def _generators(owners: tuple[Any, ...]) -> list[torch.Generator]:
    batched = [getattr(owner, "batch_sampler", None) for owner in owners]
    samplers = [getattr(owner, "sampler", None) for owner in (*owners, *batched)]
    everyone = (*owners, *batched, *samplers)
    generators = [getattr(owner, "generator", None) for owner in everyone]
    return [generator for generator in generators if isinstance(generator, torch.Generator)]
