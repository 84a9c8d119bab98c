"""D of the population behind a sample: the plug-in D freed of what noise in the class means adds to SSb.

Plug-in D reads SSb from class means that carry the noise of their samples. With B̂ = B + N, where the rows of N have
covariance S = Σ/n, the Gram matrix B̂B̂ᵀ is too large by about Tr S on its diagonal, and the directions of B̂ turn towards the
noise. Both are known for large matrices (deterministic equivalents of the resolvent Q(z) = (B̂B̂ᵀ − zI)⁻¹; Hachem, Loubaton &
Najim 2007 for information-plus-noise matrices): at the point z₀ where the noise cancels, Q(z₀) stands for
(B(I + δS)⁻¹Bᵀ)⁻¹ with δ = Tr Q. Written in numbers that the data give,

    z₀ = (Tr Σ − Tr Q A)/n,    D = n (Tr QAQ − n q Tr Q²)/(n + Tr QAQ),    A = B̂ Σ B̂ᵀ,

where q = Tr S²(I + δS)⁻², off the subspace, comes from differences of fold means, which are noise of covariance S alone, less
their part along the class means: trained networks have their means where features vary most.
`docs/intervals.md` has the derivation, the simulations, and the estimators that lost against this one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from equisep.shapes import Float64

CLEARLY_MORE = 3  # times the directions of the means, that noise must have for a formula to know how D varies by it
ENOUGH = 4  # rows of noise for each of these, to draw others like them
DRAWN = 64
BISECTIONS = 52  # as many as a number has bits
SECOND, THIRD = (
    1.1,
    2.3,
)  # by which a jackknife of ten folds exceeds variance of second and third order: m(2m − 3)/(m − 1)² − 1, …
Values = Float64[np.ndarray, " l"]
Matrices = Float64[np.ndarray, "l r r"]


@dataclass(frozen=True, slots=True)
class NoisyMeans:
    """What l data sets say of B̂, each in its own singular basis: s, A = B̂ΣB̂ᵀ and the Gram matrix that noise alone would have.

    `totals` are Tr Σ within classes. A and the noise are unbiased: sums of squares are divided by n_k − 1. Data sets stand side
    by side (all samples, then without each fold), so that their small matrices cost little more than those of one.
    """

    singular_values: Float64[np.ndarray, "l r"]
    scatter: Matrices
    noise: Matrices
    totals: Values

    @property
    def n(self) -> Values:
        """The number of samples that the noise speaks of: S = Σ/n."""
        sizes: Values = self.totals * self.singular_values.shape[1] / _trace(self.noise)
        return sizes

    def beside(self, other: NoisyMeans) -> NoisyMeans:
        """Both side by side."""
        return side_by_side([self, other])


def side_by_side(parts: Sequence[NoisyMeans]) -> NoisyMeans:
    """Data sets of as many directions each as one record."""
    return NoisyMeans(
        np.concatenate([part.singular_values for part in parts]),
        np.concatenate([part.scatter for part in parts]),
        np.concatenate([part.noise for part in parts]),
        np.concatenate([part.totals for part in parts]),
    )


def noisy_means(singular_values: Tensor, scatter: Tensor, noise: Tensor, totals: Tensor) -> NoisyMeans:
    """From tensors of any device."""
    return NoisyMeans(*(each.cpu().numpy() for each in (singular_values, scatter, noise, totals)))


@dataclass(frozen=True, slots=True)
class Estimates:
    """Of each data set: D of the population, its signal, the share by which a jackknife exceeds its variance, its least error.

    The signal is r/Tr Q, the harmonic mean of the squared lengths of B's directions, over Tr S, what noise adds to each.
    A jackknife counts the variance of second-order terms twice, of third-order ones three times (Efron & Stein 1981). The least
    error is the part of the standard error of D, as a share of D, that no estimator can take away.
    """

    values: Values
    signals: Values
    excess: Values
    least_error: Values


def population_fuzziness(means: NoisyMeans, noise: Float64[np.ndarray, "l q"]) -> Estimates | None:
    """D without the noise of the means; `noise` are eigenvalues of the Gram matrix of rows of noise off the subspace, rising.

    None where the B̂ of any data set has a direction without any length, or rows of noise are too few.
    """
    s = means.singular_values
    if not s.size or not s.min() > 0 or noise.shape[1] < 2:
        return None
    n = means.n
    unit = means.noise * (n / means.totals)[:, None, None]  # 1 on the diagonal, but for classes of different spread
    solved = _resolvent(means, unit)
    if solved is None:
        return None
    z, q = solved
    qa = q @ means.scatter
    p = qa @ q  # QAQ, whose trace is D but for the noise
    x, pull = _trace(p), _trace(p @ unit)
    delta = _trace(q @ unit)
    least = np.finfo(np.float64).eps * means.totals  # features may be as few as directions: nothing lies off these then
    first, second = _noise_moments(np.maximum(noise, least[:, None]) / n[:, None], delta)
    # z₀ is Tr SΠ(I + δS)⁻¹ as well, and known better than by few rows
    square = second * np.minimum(1.0, z / np.maximum(first, least / n)) ** 2
    noise_alone = (n * square)[:, None, None] * (q @ unit @ q)  # the part of QAQ that noise has put there
    values = n * (x - _trace(noise_alone)) / (n + pull)
    own = p - noise_alone
    signals = s.shape[1] * n / (delta * means.totals)
    return Estimates(values, signals, _jackknife_excess(own, noise_alone), _least_error(own, noise_alone, noise, n))


def null_error(gram: Float64[Tensor, "m m"], *, independent: int, rank: int) -> float:
    """By how much ln D varies under random labels by noise of the means, as a standard deviation, of `rank` rows of noise.

    Of rows that are normal and alike in e directions Tr(W⁻¹), W Wishart, has the relative variance
    2(e − 1)/(r (e − r)(e − r − 3)); e = (Tr Σ)²/Tr Σ², without bias from the Gram matrix of rows of noise, so many of them
    independent. Where e is less than three times r that is far too much if further directions vary little, as those of images do,
    and does not exist where e is hardly above r: there rows of noise are drawn with the covariance of those at hand.
    """
    # E (Tr W)² = q² (Tr Σ)² + 2q Tr Σ² and E Tr W² = q (Tr Σ)² + q(q + 1) Tr Σ²
    q, first, second = independent, float(gram.trace()), float(gram.square().sum())
    spread = (second - first * first / q) / (q * (q + 1) - 2) if q > 1 else 0.0
    squared = (first * first - 2 * q * spread) / (q * q)
    if not spread > 0:
        return 0.0
    even = max(1.0, squared / spread)
    if even < CLEARLY_MORE * rank and ENOUGH * rank <= independent:
        return _drawn_error(gram, rank)
    apart = max(even - rank, 1.0)
    return math.sqrt(2 * max((even - 1) / apart, 1.0) / (rank * max(apart - 3, 1.0)))


def _drawn_error(gram: Float64[Tensor, "m m"], rank: int) -> float:
    """The standard deviation of ln Tr(W⁻¹ NΣNᵀ W⁻¹), W = NNᵀ, over normal N = R X: with X Xᵀ at hand, R alone is drawn."""
    mixing = _mixing(rank, len(gram))
    products = mixing @ gram.cpu()
    inverse, failed = torch.linalg.inv_ex(products @ mixing.mT)
    logs = (inverse @ products).square().sum(dim=(1, 2))[failed == 0].log()
    return float(logs.std()) if len(logs) > 1 and bool(logs.isfinite().all()) else math.inf


@lru_cache(maxsize=2)  # to draw takes longer than all else, and layers of one network need the same
def _mixing(rank: int, rows: int) -> Float64[Tensor, "l r m"]:
    make = torch.Generator().manual_seed(0)
    return torch.randn(DRAWN, rank, rows, dtype=torch.float64, generator=make, device="cpu")


def _resolvent(means: NoisyMeans, unit: Matrices) -> tuple[Values, Matrices] | None:
    """z₀ and Q(z₀) = (B̂B̂ᵀ − z₀ U)⁻¹, U the noise of every direction relative to their mean."""
    try:
        inverse = np.linalg.inv(np.linalg.cholesky(unit))
    except np.linalg.LinAlgError:
        return None
    turned = inverse.swapaxes(1, 2)
    values, vectors = np.linalg.eigh((inverse * means.singular_values[:, None, :] ** 2) @ turned)  # l r, l r r
    if not (values > 0).all():
        return None
    basis = turned @ vectors
    along = np.einsum("lir,lij,ljr->lr", basis, means.scatter, basis, optimize=True)
    n = means.n

    def over(z: Values) -> Float64[np.ndarray, " l"]:
        gaps: Values = z + (along / (values - z[:, None])).sum(axis=1) / n - means.totals / n
        return gaps

    low = np.zeros(len(n))
    z = np.where(over(low) > 0, 0.0, _root(over, low, np.minimum(values[:, 0] * (1 - 1e-12), means.totals / n)))
    q: Matrices = (basis / (values - z[:, None])[:, None, :]) @ basis.swapaxes(1, 2)
    return z, q


def _noise_moments(values: Float64[np.ndarray, "l q"], delta: Values) -> tuple[Values, Values]:
    """Tr S(I + δS)⁻¹ and Tr S²(I + δS)⁻² from the Gram matrix W of m rows that have covariance S, whatever the spectrum of S.

    For such rows Tr(W − z)⁻¹ = δ gives Tr S(I + δS)⁻¹ = z + m/δ (Marčenko & Pastur 1967, Silverstein 1995), and its
    derivative by −δ the second moment.
    """
    m, least, top = values.shape[1], values[:, :1], np.log(values[:, -1])
    above = values - least
    # z = least − e^t; Tr(W − z)⁻¹ falls as t grows
    at = _root(lambda t: delta - (1 / (above + np.exp(t)[:, None])).sum(axis=1), top - 45, top + 25)
    gaps = above + np.exp(at)[:, None]
    mean = m / (1 / gaps).sum(axis=1)
    # m/δ² − 1/Tr(W − z)⁻², and z + m/δ, without their cancellation where δ is small
    spread = ((mean[:, None] / gaps - 1) ** 2).mean(axis=1)
    second: Values = mean * mean * spread / (m * (1 + spread))
    first: Values = values.mean(axis=1) - ((gaps - mean[:, None]) ** 2 / gaps).mean(axis=1)
    return first, second


def _jackknife_excess(means: Matrices, noise: Matrices) -> Values:
    """By what share a jackknife exceeds Var D, in leading terms where Σ turns no direction of the means.

    With P = M + N = QAQ, M of the means and N of their noise, Var D is the sum of 4/n Tr P M P, noise that moves the means,
    2/n Tr P N P, noise by itself, which is of second order, and 2/n Tr P², the scatter along them, of which Tr M² is of first
    order, 2 Tr MN of second and Tr N² of third.
    """
    both = means + noise
    moved, blown = 4 * _trace(both @ means @ both), 2 * _trace(both @ noise @ both)
    first, second, third = 2 * _trace(means @ means), 4 * _trace(means @ noise), 2 * _trace(noise @ noise)
    total = moved + blown + first + second + third
    shares: Values = np.clip((SECOND * (blown + second) + THIRD * third) / total, 0, THIRD)
    return shares


def _least_error(means: Matrices, noise: Matrices, rows: Float64[np.ndarray, "l q"], n: Values) -> Values:
    """√(2 (Tr N)² Tr Σ⁴/(r (Tr Σ²)²) + 2 Tr P²/n)/Tr M, P = M + N = QAQ: what noise alone may change of what is left of D.

    With Σ known, N Σ Nᵀ still varies by √(2 Tr Σ⁴)/Tr Σ² of itself in each of r directions, and class means that differ by as
    much look the same (docs/intervals.md); the scatter along them is known from n samples. The traces of Σ are those of the
    rows of noise themselves, too large where rows are few: there they are known least. Infinite where nothing is left of D.
    """
    left = _trace(means)
    relative = rows / np.maximum(rows[:, -1:], np.finfo(np.float64).tiny)
    narrow = (relative**4).sum(axis=1) / np.maximum((relative**2).sum(axis=1), 1.0) ** 2
    blown = 2 * _trace(noise) ** 2 * narrow / noise.shape[1]
    scatter = 2 * _trace((means + noise) @ (means + noise)) / n
    errors: Values = np.sqrt(blown + scatter) / np.where(left > 0, left, 1.0)
    return np.where(left > 0, errors, np.inf)


def _trace(matrices: Matrices) -> Values:
    traces: Values = np.trace(matrices, axis1=1, axis2=2)
    return traces


def _root(rising: Callable[[Values], Values], low: Values, high: Values) -> Values:
    """Where rising functions, one per data set, turn positive, by bisection: the upper end."""
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        above = rising(middle) > 0
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return high
