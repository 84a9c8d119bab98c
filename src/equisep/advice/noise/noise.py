"""The weight-noise test of any model: accuracy and the law under noise on all weights, accuracy under noise on one at a time."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from equisep.advice.noise.answer import LayerNoise, Mean, NoiseAnswer, NoiseLevel, falls_at, most_fragile
from equisep.data.feed import Feed, Unpack
from equisep.errors import DataError, InputError, ModelError
from equisep.measuring.forward import Calling, run_model
from equisep.measuring.measure import home_of, placed, plan_for, run_plan
from equisep.measuring.notes import Notes
from equisep.measuring.plan import Plan
from equisep.measuring.request import MEMORY, Options
from equisep.progress import Progress, Watched, callback, watched
from equisep.results import Profile
from equisep.taps import (
    Reduction,
    ReductionLike,
    Sites,
    eager,
    inner,
    random_state_kept,
    reading_mode,
    refuse_scripted,
    refuse_uninitialized,
    scores_of,
    site_record,
)

SIGMAS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
DRAWS = 5


@watched
def weight_noise(
    model: nn.Module,
    train: Any,
    test: Any,
    *,
    sigmas: Sequence[float] = SIGMAS,
    draws: int = DRAWS,
    layers: bool = True,
    level: float = 0.95,
    seed: int = 0,
    sites: Sites = "auto",
    reduction: ReductionLike = "auto",
    classes: int | None = None,
    unpack: Unpack | None = None,
    device: str | torch.device | None = None,
    name: str | None = None,
    progress: Watched = None,
) -> NoiseAnswer:
    """Test accuracy, D and ρ when every weight tensor gets Gaussian noise of relative size σ, and which layer bears it least.

    Each tensor of two dimensions or more gets noise of the norm σ‖W‖ (biases, scales and BatchNorm's statistics stay), `draws`
    times for each of `sigmas`; D and ρ are read on `train` in `eval`. With `layers`, one tensor at a time then gets noise of the
    size at which noise on all of them cost 10 points (the largest σ where none did). Weights are put back bit by bit, whatever
    happens. Intervals are over draws of the noise, for these samples. He & Su's Proposition 1 is about noise on D's ratios.

    >>> import torch, equisep
    >>> y = torch.arange(90) % 3
    >>> x = 2 * torch.eye(3, 8)[y] + torch.randn(90, 8, generator=torch.Generator().manual_seed(0))
    >>> _ = torch.manual_seed(0)
    >>> model = equisep.Fnn(depth=4, width=16, inputs=8, classes=3)
    >>> train, test = (x[:60], y[:60]), (x[60:], y[60:])
    >>> from equisep.advice.noise import weight_noise
    >>> answer = weight_noise(model, train, test, sigmas=(0.1, 1.0), draws=2, layers=False)
    >>> [level.sigma for level in answer.levels]
    [0.1, 1.0]
    """
    progress = callback(progress)
    if not isinstance(model, nn.Module):
        raise InputError(f"`noise` needs a torch.nn.Module; found {type(model).__name__}.")
    refuse_scripted(model, asked="noise")
    refuse_uninitialized(model, asked="noise")
    known = _checked(sigmas, draws, level)
    how = None if isinstance(reduction, str) and reduction == "auto" else Reduction.of(reduction)
    options = Options(
        sites=site_record(sites), reduction="auto" if how is None else how.name, metrics=("fuzziness",), classes=classes,
        intervals="none", coordinates=0, memory=MEMORY,
    )  # fmt: skip
    weights = weight_tensors(inner(model))
    with placed(model, device), random_state_kept(train, test):
        where, dtype = home_of(model)
        feed, held_out = (
            Feed(data, what=what, device=where, dtype=dtype, unpack=unpack)
            for data, what in ((train, "training"), (test, "test"))
        )
        for each in (feed, held_out):
            if not each.again:
                raise DataError(f"`noise` reads its data many times, and the {each.what} data end after one reading.")
        notes = Notes()
        plan = plan_for(model, feed, held_out, sites, how, options, notes)
        if not plan.probe.scored:
            raise InputError(
                f"`noise` asks for test accuracy, and `{type(inner(model)).__name__}` gives no class scores."
            )
        reader = _Reader(plan, feed, held_out)
        clean = reader.profile(notes)
        seeds = [seed * 100_003 + draw for draw in range(draws)]
        noisy = _all_layers(reader, weights, known, seeds, progress)
        accuracies = [[profile.accuracy_test or 0.0 for profile in row] for row in noisy]
        fall = falls_at(known, accuracies, clean=clean.accuracy_test or 0.0, level=level)
        sigma = known[-1] if fall is None else fall.value
        alone = _one_layer(reader, weights, sigma, seeds, clean, level, progress) if layers else ()
    return NoiseAnswer(
        model=name or type(inner(model)).__name__,
        accuracy=clean.accuracy_test or 0.0,
        rho=clean.law.rho,
        last=clean.sites[-1].fuzziness,
        n_test=sum(clean.counts_test or ()),
        draws=draws,
        level=level,
        levels=tuple(_level(s, [row[i] for row in noisy], level) for i, s in enumerate(known)),
        falls_at=fall,
        layer_sigma=sigma if layers else None,
        layers=alone,
        fragile=most_fragile(alone, level=level),
        notes=notes.ranked(),
    )


def _checked(sigmas: Sequence[float], draws: int, level: float) -> tuple[float, ...]:
    known = tuple(float(sigma) for sigma in sigmas)
    rising = all(one < two for one, two in pairwise(known))
    if not known or not rising or not all(0 < sigma < math.inf for sigma in known):
        raise InputError(f"`sigmas` are relative sizes of noise above 0, the smallest first; found {list(sigmas)}.")
    if isinstance(draws, bool) or not isinstance(draws, int) or draws < 1:
        raise InputError(f"`draws` is how often noise is drawn, 1 or more; found {draws!r}.")
    if not 0 < level < 1:
        raise InputError(f"`level` is the confidence of an interval, between 0 and 1; found {level!r}.")
    return known


class _Reader:
    """The model as its weights are now: a profile of both data sets, or test accuracy alone."""

    def __init__(self, plan: Plan, train: Feed, test: Feed) -> None:
        self.plan, self.train, self.test = plan, train, test

    def profile(self, notes: Notes) -> Profile:
        """D, ρ and accuracy."""
        profile, failure = run_plan(self.plan, self.train, self.test, name="", class_names=None, notes=notes)
        if failure is not None:
            raise failure
        return profile

    def accuracy(self) -> float:
        """On the test data."""
        model, calling = self.plan.model, self.plan.probe.calling
        hits = count = 0
        with random_state_kept(self.test.source), reading_mode(model, "eval"), eager():
            for index, (inputs, labels) in enumerate(self.test):
                hits += _hits(model, inputs, calling, labels, index, classes=self.plan.probe.classes)
                count += len(labels)
        return hits / count


def _hits(model: nn.Module, inputs: Any, calling: Calling, labels: torch.Tensor, index: int, *, classes: int) -> int:
    scores = scores_of(run_model(inner(model), inputs, calling, what=f"batch {index} of the test data"), classes)
    assert scores is not None  # the probe saw them
    return int((scores.argmax(dim=1) == labels).sum())


def _all_layers(
    reader: _Reader,
    weights: Mapping[str, nn.Parameter],
    sigmas: Sequence[float],
    seeds: Sequence[int],
    progress: Progress,
) -> list[list[Profile]]:
    """A profile per draw and σ; a draw is the same noise at every size."""
    rows = []
    for draw, seed in enumerate(seeds):
        row = []
        for position, sigma in enumerate(sigmas):
            with noisy_weights(weights, sigma, seed=seed):
                row.append(reader.profile(Notes()))
            progress("noise on all layers", draw * len(sigmas) + position + 1, len(seeds) * len(sigmas))
        rows.append(row)
    return rows


def _one_layer(
    reader: _Reader,
    weights: Mapping[str, nn.Parameter],
    sigma: float,
    seeds: Sequence[int],
    clean: Profile,
    level: float,
    progress: Progress,
) -> tuple[LayerNoise, ...]:
    layers = []
    for position, (name, weight) in enumerate(weights.items()):
        losses = []
        for seed in seeds:
            with noisy_weights({name: weight}, sigma, seed=seed):
                losses.append((clean.accuracy_test or 0.0) - reader.accuracy())
        layers.append(LayerNoise(name, Mean.of(losses, level), tuple(losses)))
        progress("noise on one layer", position + 1, len(weights))
    return tuple(layers)


def _level(sigma: float, profiles: Sequence[Profile], level: float) -> NoiseLevel:
    def mean(values: Sequence[float | None]) -> Mean | None:
        known = [value for value in values if value is not None]
        return Mean.of(known, level) if len(known) == len(values) else None

    accuracy = mean([profile.accuracy_test for profile in profiles])
    assert accuracy is not None
    rhos, lasts = [p.law.rho for p in profiles], [p.sites[-1].fuzziness for p in profiles]
    return NoiseLevel(sigma, accuracy, mean(rhos), mean(lasts))


def weight_tensors(model: nn.Module) -> dict[str, nn.Parameter]:
    """Every weight matrix and kernel by name, each once: parameters of two dimensions or more, so no biases and scales."""
    weights = {name: p for name, p in model.named_parameters() if p.ndim >= 2 and p.is_floating_point() and p.numel()}
    if not weights:
        raise ModelError(f"`{type(model).__name__}` has no weight matrix to which noise could be added.")
    return weights


@contextmanager
def noisy_weights(weights: Mapping[str, nn.Parameter], sigma: float, *, seed: int) -> Iterator[None]:
    """W + σ ‖W‖_F N / √(numbers of W) while the `with` lasts: noise of the norm σ‖W‖_F in expectation.

    The same seed draws the same N for every σ, and for every tensor whichever others get noise too.
    """
    kept = {name: weight.detach().clone() for name, weight in weights.items()}
    try:
        with torch.no_grad():
            for name, weight in weights.items():
                weight.copy_(_noisy(kept[name], sigma, seed=_mixed(seed, name)))
        yield
    finally:
        with torch.no_grad():
            for name, weight in weights.items():
                weight.copy_(kept[name])


def _mixed(seed: int, name: str) -> int:
    """A seed of the tensor's own, by its name."""
    number = seed
    for byte in name.encode():
        number = (number * 1_000_003 + byte) % (2**61 - 1)
    return number


def _noisy(weight: Tensor, sigma: float, *, seed: int) -> Tensor:
    generator = torch.Generator(device="cpu").manual_seed(seed)
    noise = torch.randn(weight.shape, generator=generator, dtype=torch.float32, device="cpu").to(weight.device)
    wide = weight.to(torch.promote_types(weight.dtype, torch.float32))
    size = torch.linalg.vector_norm(wide) / wide.numel() ** 0.5
    result: Tensor = (wide + sigma * size * noise).to(weight.dtype)
    return result
