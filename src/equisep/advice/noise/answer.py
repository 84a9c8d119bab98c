"""What noise on the weights does, in numbers and in words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from equisep.display import brief
from equisep.law.quantiles import student_quantile, two_sided
from equisep.results import Note

FALL = 10.0  # points of test accuracy whose loss is looked for


@brief
@dataclass(frozen=True, slots=True)
class Mean:
    """The mean over draws of the noise, and its interval (Student's t); of one draw there is none."""

    value: float
    low: float | None
    high: float | None

    @staticmethod
    def of(values: Sequence[float], level: float) -> Mean:
        """Of one number per draw."""
        if len(values) < 2:
            return Mean(fmean(values), None, None)
        reach = student_quantile(two_sided(level), len(values) - 1) * stdev(values) / math.sqrt(len(values))
        return Mean(fmean(values), fmean(values) - reach, fmean(values) + reach)


@brief
@dataclass(frozen=True, slots=True)
class NoiseLevel:
    """Noise of relative size σ on every weight tensor: test accuracy, and on the training data D of the last layer and ρ.

    `rho` and `last` are None where they do not exist in some draw.
    """

    sigma: float
    accuracy: Mean
    rho: Mean | None
    last: Mean | None


@brief
@dataclass(frozen=True, slots=True)
class LayerNoise:
    """The loss of test accuracy (a share) under noise on one weight tensor alone; `draws` are its values."""

    name: str
    loss: Mean
    draws: tuple[float, ...]


@brief
@dataclass(frozen=True, slots=True)
class NoiseAnswer:
    """What noise of growing size does to a model, and which weight tensor bears it least.

    falls_at    σ at which test accuracy has fallen by 10 points: the mean of ln σ over draws, each by interpolation; None where
                some draw never falls so far
    layer_sigma the noise that the layers were tried with, one at a time
    fragile     the weight tensor that loses most, where that can be told from every other
    """

    model: str
    accuracy: float
    rho: float | None
    last: float | None
    n_test: int
    draws: int
    level: float
    levels: tuple[NoiseLevel, ...]
    falls_at: Mean | None
    layer_sigma: float | None
    layers: tuple[LayerNoise, ...]
    fragile: str | None
    notes: tuple[Note, ...] = ()

    @property
    def sentence(self) -> str:
        """The answer in words."""
        words = [self._fall_words()]
        if self.layers and self.layer_sigma is not None:
            worst = max(self.layers, key=lambda layer: layer.loss.value)
            loss = f"{100 * worst.loss.value:.1f} points{_limits(worst.loss, 100)}"
            words.append(
                f"Noise on one weight tensor alone (σ = {self.layer_sigma:.3g}) costs most at `{worst.name}`: {loss}"
                + ("." if self.fragile else ", which is not told apart from all others.")
            )
        return " ".join(words)

    def _fall_words(self) -> str:
        whole = f"test accuracy {100 * self.accuracy:.1f} %"
        if self.falls_at is not None:
            at = f"{100 * self.falls_at.value:.3g} % of their norms{_limits(self.falls_at, 100)}"
            return f"Noise of {at} on all weight tensors costs {FALL:g} points of {whole}."
        if self.accuracy <= FALL / 100:
            return f"Its {whole} has no {FALL:g} points to lose."
        most = self.levels[-1]
        return (
            f"Up to noise of {100 * most.sigma:.3g} % of the norms of all weight tensors, {whole} does not fall by {FALL:g} "
            f"points in every draw: it is {100 * most.accuracy.value:.1f} %{_limits(most.accuracy, 100)} there."
        )


def _limits(mean: Mean, factor: float) -> str:
    if mean.low is None or mean.high is None:
        return ""
    return f" [{factor * mean.low:.3g}, {factor * mean.high:.3g}]"


def falls_at(
    sigmas: Sequence[float], accuracies: Sequence[Sequence[float]], *, clean: float, level: float
) -> Mean | None:
    """σ where each draw has first lost 10 points, by interpolation in ln σ; their mean in ln σ with its interval.

    `accuracies` are one row per draw. None where a draw does not fall so far, or has fallen at the smallest σ already.
    """
    target = clean - FALL / 100
    logs = []
    for row in accuracies:
        below = next((index for index, value in enumerate(row) if value <= target), None)
        if below is None or below == 0:
            return None
        one, two = row[below - 1], row[below]
        share = (one - target) / (one - two)
        logs.append((1 - share) * math.log(sigmas[below - 1]) + share * math.log(sigmas[below]))
    mean = Mean.of(logs, level)
    low, high = (None if end is None else math.exp(end) for end in (mean.low, mean.high))
    return Mean(math.exp(mean.value), low, high)


def most_fragile(layers: Sequence[LayerNoise], *, level: float) -> str | None:
    """The layer whose mean loss is above that of each of the k − 1 others, by one-sided bounds at 1 − (1 − level)/(k − 1)."""
    if not layers or len(layers[0].draws) < 2:
        return None
    worst = max(layers, key=lambda layer: layer.loss.value)
    others = [layer for layer in layers if layer is not worst]
    for other in others:
        one, two = (stdev(layer.draws) ** 2 / len(layer.draws) for layer in (worst, other))
        freedom = len(worst.draws) - 1  # fewer than Welch's, so on the safe side
        reach = student_quantile(1 - (1 - level) / len(others), freedom) * math.sqrt(one + two)
        if worst.loss.value - other.loss.value <= reach:
            return None
    return worst.name
