"""How a model is read, by running statistics or by the batch, and how it is left exactly as it was found."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy
import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from equisep.results import Reading, reading_named
from equisep.results.readings import BY_BATCH
from equisep.taps.spread import sharded_as_before


@contextmanager
def reading_mode(model: nn.Module, reading: Reading) -> Iterator[None]:
    """Put a model in reading mode, without gradients, and give every flag back afterwards.

    eval   BatchNorm uses its running statistics; dropout off.
    mixed, drawn  BatchNorm uses the statistics of the batch being read, running statistics untouched; dropout off.
           Which batches are read is what makes the difference between the two: the figures of He & Su 2023 are of
           batches of 100 in the order drawn.
    """
    reading = reading_named(reading)
    modules = list(model.modules())
    training = [(module, module.training) for module in modules]
    tracking = [(module, module.track_running_stats) for module in modules if isinstance(module, _BatchNorm)]
    try:
        for module, flag in training:  # not `eval()`: some modules override it, and merge weights there
            if flag is not False:  # to set an attribute of a module costs more than all else here
                module.training = False
        if reading in BY_BATCH:
            for norm, _ in tracking:
                # torch passes no buffers to the kernel then: nothing is updated, not even by 0·NaN
                norm.training, norm.track_running_stats = True, False
        with torch.no_grad(), sharded_as_before(model):
            yield
    finally:
        for module, flag in training:
            if module.training is not flag:
                module.training = flag
        for norm, tracked in tracking:
            if norm.track_running_stats is not tracked:
                norm.track_running_stats = tracked


def batch_norms(model: nn.Module) -> list[_BatchNorm]:
    """Every BatchNorm layer of a model."""
    return [module for module in model.modules() if isinstance(module, _BatchNorm)]


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
