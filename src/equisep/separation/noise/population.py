"""D of the population behind a sample: the plug-in D freed of what noise in the class means adds to SSb.

Plug-in D reads SSb from class means that carry the noise of their samples. With B̂ = B + N, where the rows of N have
covariance S = Σ/n, the Gram matrix B̂B̂ᵀ is too large by about Tr S on its diagonal, and the directions of B̂ turn towards the
noise. Both are known for large matrices (deterministic equivalents of the resolvent Q(z) = (B̂B̂ᵀ − zI)⁻¹; Hachem, Loubaton &
Najim 2007 for information-plus-noise matrices): at the point z₀ where the noise cancels, Q(z₀) stands for
(B(I + δS)⁻¹Bᵀ)⁻¹ with δ = Tr Q. Written in numbers that the data give,

    z₀ = (Tr Σ − Tr Q A)/n,    D = n (Tr QAQ − n q Tr Q²)/(n + Tr QAQ),    A = B̂ Σ B̂ᵀ,

where q = Tr S²(I + δS)⁻², off the subspace, comes from differences of fold means, which are noise of covariance S alone.
`docs/intervals.md` has the derivation, the simulations, and the estimators that lost against this one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from equisep.shapes import Float64

BISECTIONS = 100


@dataclass(frozen=True, slots=True)
class NoisyMeans:
    """What the data say of B̂ in its own singular basis: s, A = B̂ΣB̂ᵀ and the Gram matrix that noise alone would have.

    `total` is Tr Σ within classes. A and the noise are unbiased: sums of squares are divided by n_k − 1.
    """

    singular_values: Float64[Tensor, " r"]
    scatter: Float64[Tensor, "r r"]
    noise: Float64[Tensor, "r r"]
    total: float
    dim: int

    @property
    def n(self) -> float:
        """The number of samples that the noise speaks of: S = Σ/n."""
        return self.total * len(self.singular_values) / float(self.noise.trace())

    @property
    def plain(self) -> float:
        """Tr Σ SSb⁺ as the means are: plug-in D with an unbiased Σ."""
        return float((self.scatter.diagonal() / self.singular_values**4).sum())


@dataclass(frozen=True, slots=True)
class Estimate:
    """D of the population, and the share of its variance that is of second order in the noise of the means.

    A jackknife counts the variance of second-order terms twice (Efron & Stein 1981).
    """

    value: float
    second_order: float


def population_fuzziness(means: NoisyMeans, noise: Float64[Tensor, " q"]) -> Estimate | None:
    """D without the noise of the means; `noise` are the eigenvalues of the Gram matrix of rows with covariance Σ alone.

    None where B̂ has a direction without any length, or noise has no size.
    """
    s, n = means.singular_values, means.n
    if not len(s) or not float(s.min()) > 0 or not len(noise) or not float(noise[-1]) > 0:
        return None
    unit = means.noise * (n / means.total)  # 1 on the diagonal, but for classes of different spread
    chosen = _resolvent(means, unit)
    if chosen is None:
        return None
    z, q = chosen
    a = means.scatter
    qa = q @ a
    x, pull = float((qa @ q).trace()), float((qa @ q @ unit).trace())
    delta, delta2 = float((q @ unit).trace()), float((q @ unit @ q).trace())
    moments = _noise_moments(noise / n, delta)
    if moments is None:
        return None
    off = min(1.0, z / moments.first)  # the share of the noise that lies off the subspace
    even = min(1.0, moments.first**2 / (means.dim * moments.second))  # 1: the same spread in every direction
    square = moments.second * off * (off + (1 - off) * even)
    value = n * (x - n * square * delta2) / (n + pull)
    return Estimate(value, _second_order(qa, q, n, moments.second))


def _resolvent(means: NoisyMeans, unit: Float64[Tensor, "r r"]) -> tuple[float, Float64[Tensor, "r r"]] | None:
    """z₀ and Q(z₀) = (B̂B̂ᵀ − z₀ U)⁻¹, U the noise of every direction relative to their mean."""
    root, info = torch.linalg.cholesky_ex(unit)
    if int(info):
        return None
    inverse = torch.linalg.solve_triangular(
        root, torch.eye(len(root), dtype=root.dtype, device=root.device), upper=False
    )
    values, vectors = torch.linalg.eigh(inverse @ torch.diag(means.singular_values**2) @ inverse.T)
    along = (vectors.T @ inverse @ means.scatter @ inverse.T @ vectors).diagonal()
    n, least = means.n, float(values[0])
    if least <= 0:
        return None

    def over(z: float) -> bool:
        return z + float((along / (values - z)).sum()) / n > means.total / n

    z = 0.0 if over(0.0) else _root(over, 0.0, min(least * (1 - 1e-12), means.total / n))
    basis = inverse.T @ vectors
    return z, basis @ torch.diag(1 / (values - z)) @ basis.T


@dataclass(frozen=True, slots=True)
class _Moments:
    first: float  # Tr S(I + δS)⁻¹
    second: float  # Tr S²(I + δS)⁻²


def _noise_moments(values: Float64[Tensor, " q"], delta: float) -> _Moments | None:
    """The moments of S from the Gram matrix W of m rows that have covariance S, whatever the spectrum of S.

    For such rows Tr(W − z)⁻¹ = δ gives Tr S(I + δS)⁻¹ = z + m/δ (Marčenko & Pastur 1967, Silverstein 1995), and its
    derivative by −δ the second moment.
    """
    m, least, most = len(values), float(values[0]), float(values[-1])
    if m < 2:
        return None
    # z = least − e^t; Tr(W − z)⁻¹ falls as t grows
    at = _root(
        lambda t: float((1 / (values - least + math.exp(t))).sum()) < delta, math.log(most) - 60, math.log(most) + 30
    )
    gaps = values - least + math.exp(at)
    mean = m / float((1 / gaps).sum())
    # m/δ² − 1/Tr(W − z)⁻², and z + m/δ, without their cancellation where δ is small
    spread = float(((mean / gaps - 1).square()).sum()) / m
    second = mean * mean * spread / (m * (1 + spread))
    first = float(values.mean()) - float(((gaps - mean) ** 2 / gaps).mean())
    return _Moments(first, second) if first > 0 and second > 0 else None


def _second_order(qa: Float64[Tensor, "r r"], q: Float64[Tensor, "r r"], n: float, second: float) -> float:
    """The share of Var D that comes from N Nᵀ, in the leading terms where Σ turns no direction of the means."""
    p = qa @ q  # QAQ, whose trace is D but for the noise
    linear, scatter = 4 / n * float((p @ p @ p).trace()), 2 / n * float((p @ p).trace())
    square = 2 * second * float((p @ q).square().sum())
    whole = linear + scatter + square
    return square / whole if whole > 0 else 0.0


def _root(over: Callable[[float], bool], low: float, high: float) -> float:
    """Where a monotone condition turns true, by bisection: the upper end."""
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        if over(middle):
            high = middle
        else:
            low = middle
    return high
