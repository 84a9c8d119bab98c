"""D of the population behind a sample: the plug-in D freed of what noise in the class means adds to SSb.

Plug-in D reads SSb from class means that carry the noise of their samples. With B̂ = B + N, where the rows of N have
covariance S = Σ/n, the Gram matrix B̂B̂ᵀ is too large by about Tr S on its diagonal, and the directions of B̂ turn towards the
noise. Both are known for large matrices (deterministic equivalents of the resolvent Q(z) = (B̂B̂ᵀ − zI)⁻¹; Hachem, Loubaton &
Najim 2007 for information-plus-noise matrices): at the point z₀ where the noise cancels, Q(z₀) stands for
(B(I + δS)⁻¹Bᵀ)⁻¹ with δ = Tr Q. Written in numbers that the data give,

    z₀ = (Tr Σ − Tr Q A)/n,    A = B̂ Σ B̂ᵀ,    D = n (x − q Tr Q²)/(1 + x),    x = Tr QAQ/n,

where q = Tr SΠSΠ, Π = (I + δS)⁻¹ off the class means without noise, comes from differences of fold means, which are noise of
covariance S alone, and independent of B̂. It is told in two ways:

- *as of rows alike*: by the spectrum of such rows off the directions of B̂. Exact where all classes have one covariance, and
  the noise that turns B̂ is no larger along it than elsewhere.
- *as turned*: T = I − B̂ᵀQB̂ takes from the rows what lies along B, and m = Tr STST = q (1 + x)²/(1 + q Tr Q²), of any classes
  and any B; but the error of m comes out larger by 1 + q Tr Q², the more so the more of QAQ is noise.

The second, over the first, is believed to the power 1/(1 + (2 q Tr Q²)²). `docs/intervals.md` has the derivation, the
simulations, and the estimators that lost against this one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from equisep.separation.noise.noise_rows import TINY, NoiseRows, alike_moments
from equisep.separation.noise.root import Values, root
from equisep.shapes import Float64

CLEARLY_MORE = 3  # times the directions of the means, that noise must have for a formula to know how D varies by it
ENOUGH = 4  # rows of noise for each of these, to draw others like them
DRAWN = 64
HALF_BELIEVED = 0.5  # q Tr Q² at which rows as they are turned count as much as rows taken for alike …
AT_MOST = 2.0  # … by this factor either way
FEW, FEWER = 0.25, 0.3  # Tr Σ⁴/(Tr Σ²)² from which on the error of the rows of noise counts, and counts in full
SECOND, THIRD = (
    1.1,
    2.3,
)  # by which a jackknife of ten folds exceeds variance of second and third order: m(2m − 3)/(m − 1)² − 1, …
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

    The signal is r/Tr Q, the harmonic mean of the squared lengths of B's directions, over Tr S, what noise adds to each; the
    elongation is the largest of these squared lengths over the smallest. A jackknife counts the variance of second-order
    terms twice, of third-order ones three times (Efron & Stein 1981). The least error is the part of the standard error of D,
    as a share of D, that no estimator can take away, the rows' error is what rows of noise add to the standard error of D where
    few directions hold most of their variance: a jackknife takes the same rows without each fold.
    """

    values: Values
    signals: Values
    elongations: Values
    excess: Values
    least_error: Values
    rows_error: Values


def population_fuzziness(means: NoisyMeans, rows: NoiseRows) -> Estimates | None:
    """D without the noise of the means, of data sets that stand in groups of equal size, the first of each with `rows` of noise.

    None where the B̂ of any data set has a direction without any length, or rows of noise are too few.
    """
    s = means.singular_values
    if not s.size or not s.min() > 0 or rows.independent < 2:
        return None
    n = means.n
    unit = means.noise * (n / means.totals)[:, None, None]  # 1 on the diagonal, but for classes of different spread
    solved = _resolvent(means, unit)
    if solved is None:
        return None
    q = solved.q
    p, turned = q @ means.scatter @ q, q @ unit @ q  # QAQ, whose trace is D but for the noise
    pull = 1 + _trace(p @ unit) / n
    off = rows.off()
    second = _second_moments(
        means, rows, solved, off=off, delta=_trace(q @ unit), lengths=_trace(turned @ unit), pull=pull
    )
    alone = (n * second)[:, None, None] * turned  # the part of QAQ that noise has put there
    own = p - alone
    signals = s.shape[1] * n / (_trace(q @ unit) * means.totals)
    # of the rows of noise themselves, too large where they are few: there it is known least
    relative = off / np.maximum(off[:, -1:], np.finfo(np.float64).tiny)
    narrow = (relative**4).sum(axis=1) / np.maximum((relative**2).sum(axis=1), 1.0) ** 2
    narrow = np.repeat(narrow, len(s) // len(off))
    least = _least_error(own, alone, narrow, n)
    return Estimates(
        _trace(own) / pull,
        signals,
        solved.elongations,
        _jackknife_excess(own, alone),
        least,
        rows_error=_trace(alone) / pull * np.repeat(_rows_error(rows), len(s) // len(off)),
    )


def _second_moments(
    means: NoisyMeans,
    rows: NoiseRows,
    solved: _Resolvent,
    *,
    off: Float64[np.ndarray, "s q"],
    delta: Values,
    lengths: Values,
    pull: Values,
) -> Values:
    """What Tr SΠSΠ is of every data set; `off` are spectra of rows off the means, `delta` is Tr Q, `lengths` Tr Q², `pull` 1 + x.

    Tr ST = Tr SΠ is z₀, and known better than by few rows. How far rows as they are turned differ from rows taken for alike is
    a number of the site, taken from all its samples.
    """
    n, z = means.n, solved.z
    # features may be as few as directions: nothing lies off these then
    least = np.finfo(np.float64).eps * means.totals / n
    each = len(n) // len(off)
    first, alike = alike_moments(np.maximum(np.repeat(off, each, axis=0) / n[:, None], least[:, None]), delta)
    alike *= np.minimum(1.0, z / np.maximum(first, least)) ** 2
    whole = slice(None, None, each)  # all samples, of every site
    n, z, s = n[whole], z[whole], means.singular_values[whole]
    first, turned = rows.turned(s[:, :, None] * solved.q[whole] * s[:, None, :])
    turned *= np.minimum(1.0, z / np.maximum(first / n, least[whole])) ** 2 / n**2
    room = pull[whole] ** 2 - turned * lengths[whole]
    known = np.maximum(np.maximum(room * alike[whole], turned / AT_MOST), np.finfo(np.float64).tiny)
    ratios = np.maximum(turned / known, 1 / AT_MOST) ** (1 / (1 + (alike[whole] * lengths[whole] / HALF_BELIEVED) ** 2))
    moments: Values = alike * np.repeat(ratios, each)
    return moments


def null_error(gram: Float64[Tensor, "m m"], even: float, *, independent: int, rank: int) -> float:
    """By how much ln D varies under random labels by noise of the means, as a standard deviation, of `rank` rows of noise.

    Of rows that are normal and alike in e directions Tr(W⁻¹), W Wishart, has the relative variance
    2(e − 1)/(r (e − r)(e − r − 3)); e = (Tr Σ)²/Tr Σ² are the `even` directions of rows of which so many are independent. Where
    e is less than three times r that is far too much if further directions vary little, as those of images do, and does not
    exist where e is hardly above r: there rows of noise are drawn with the covariance of those at hand.
    """
    if math.isinf(even):
        return 0.0
    if even < CLEARLY_MORE * rank and ENOUGH * rank <= independent:
        return _drawn_error(gram, rank)
    apart = max(even - rank, 1.0)
    return math.sqrt(2 * max((even - 1) / apart, 1.0) / (rank * max(apart - 3, 1.0)))


def even_directions(gram: Float64[Tensor, "m m"], independent: int) -> float:
    """(Tr Σ)²/Tr Σ² from rows of noise, without bias; infinite where they do not tell."""
    # E (Tr W)² = q² (Tr Σ)² + 2q Tr Σ² and E Tr W² = q (Tr Σ)² + q(q + 1) Tr Σ²
    q, first, second = independent, float(gram.trace()), float(gram.square().sum())
    spread = (second - first * first / q) / (q * (q + 1) - 2) if q > 1 else 0.0
    squared = (first * first - 2 * q * spread) / (q * q)
    return max(1.0, squared / spread) if spread > 0 else math.inf


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


@dataclass(frozen=True, slots=True)
class _Resolvent:
    """z₀, Q(z₀), and the largest of its eigenvalues over the smallest, of every data set."""

    z: Values
    q: Matrices
    elongations: Values


def _resolvent(means: NoisyMeans, unit: Matrices) -> _Resolvent | None:
    """Q(z₀) = (B̂B̂ᵀ − z₀ U)⁻¹, U the noise of every direction relative to their mean."""
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
        above: Values = z + (along / (values - z[:, None])).sum(axis=1) / n - means.totals / n
        return above

    low = np.zeros(len(n))
    z = np.where(over(low) > 0, 0.0, root(over, low, np.minimum(values[:, 0] * (1 - 1e-12), means.totals / n)))
    gaps = values - z[:, None]
    return _Resolvent(z, (basis / gaps[:, None, :]) @ basis.swapaxes(1, 2), gaps[:, -1] / gaps[:, 0])


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


def _least_error(means: Matrices, noise: Matrices, narrow: Values, n: Values) -> Values:
    """√(2 (Tr N)² Tr Σ⁴/(r (Tr Σ²)²) + 2 Tr P²/n)/Tr M, P = M + N = QAQ: what noise alone may change of what is left of D.

    With Σ known, N Σ Nᵀ still varies by √(2 Tr Σ⁴)/Tr Σ² of itself in each of r directions, and class means that differ by as
    much look the same (docs/intervals.md); the scatter along them is known from n samples. The traces of Σ are those of the
    rows of noise themselves, `narrow`. Infinite where nothing is left of D.
    """
    left = _trace(means)
    blown = 2 * _trace(noise) ** 2 * narrow / noise.shape[1]
    scatter = 2 * _trace((means + noise) @ (means + noise)) / n
    errors: Values = np.sqrt(blown + scatter) / np.where(left > 0, left, 1.0)
    return np.where(left > 0, errors, np.inf)


def _rows_error(rows: NoiseRows) -> Values:
    """√(8 Tr Σ⁴/m)/Tr Σ², the standard error of Tr Σ² from m rows as a share of it, where few directions have most of it.

    Elsewhere it is a small part of the error of D, and is left out.
    """
    m, gram = rows.independent, torch.from_numpy(rows.gram)
    squares = gram @ gram  # by torch, whose threads are counted
    narrow = (
        squares.square().sum(dim=(1, 2)) / squares.diagonal(dim1=1, dim2=2).sum(dim=1).clamp(min=TINY).square()
    ).numpy()
    narrow = (narrow - 1 / m) / (1 - 1 / m)  # of rows of endlessly many even directions this would be 1/m
    errors: Values = np.sqrt(8 * narrow / m * np.clip((narrow - FEW) / (FEWER - FEW), 0, 1))
    return errors


def stretched(left_out: Values, error: float, excess: float) -> Values:
    """Estimates without each fold, about their mean, so far apart that a jackknife less its excess has `error` in it as well."""
    m, mean = len(left_out), float(left_out.mean())
    variance = (m - 1) / m * float(np.square(left_out - mean).sum()) / (1 + excess)
    return mean + math.sqrt(1 + error * error / variance) * (left_out - mean) if error and variance else left_out


def _trace(matrices: Matrices) -> Values:
    traces: Values = np.trace(matrices, axis1=1, axis2=2)
    return traces
