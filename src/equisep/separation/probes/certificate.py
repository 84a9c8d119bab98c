"""The few-shot certificate: a bound on the error of nearest centers of m samples per class, without drawing any.

The center of m samples of class k, drawn without replacement from its n training samples, is μ_k + e_k. Given a test
sample x, with a_k = x − μ_k, the squared distance to it is ‖a_k‖² − 2 a_k·e_k + ‖e_k‖². Its mean and its variance over the
draw follow exactly from five numbers of the class and two of x (`docs/advice.md` has the proof). Distances to two classes
are independent, so by Cantelli's inequality, with M the mean and V the variance of the difference of the two,

    P(class j is nearer than the own class i) ≤ V / (V + M²) where M > 0,

and the sum over j ≠ i, at most 1, bounds the error of x. Its mean over the samples of each class, then over classes, is the
certificate. For m = n it is the error of the nearest class means itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from equisep.separation.probes.axes import ProbeRows
from equisep.separation.probes.few_shot import class_mean
from equisep.shapes import Float64, Int

PIECE = 2**22  # products of test and training rows held at once: 32 MiB


@dataclass(frozen=True, slots=True)
class CenterMoments:
    """What the squared distances of test samples to centers of any m depend on, for the p classes that have samples.

    With u the residuals of a class, a = x − μ, and Σ = E u uᵀ over the class:
    `trace` T = E‖u‖², `fourth` F = E‖u‖⁴, `square` Q = Tr Σ²; per test sample `distance` ‖a‖², `along` aᵀΣa, and
    `third` a·E[u‖u‖²].
    """

    counts: Int[Tensor, " p"]
    trace: Float64[Tensor, " p"]
    fourth: Float64[Tensor, " p"]
    square: Float64[Tensor, " p"]
    distance: Float64[Tensor, "t p"]
    along: Float64[Tensor, "t p"]
    third: Float64[Tensor, "t p"]

    def at(self, m: int) -> tuple[Float64[Tensor, "t p"], Float64[Tensor, "t p"]]:
        """Mean and variance of ‖x − center of m samples‖² for every test sample and class."""
        shrink, skew, mean_fourth = _shares(self, m)
        mean = self.distance + shrink * self.trace / m
        spread = mean_fourth - (shrink * self.trace / m).square()
        variance = 4 * shrink / m * self.along - 4 * skew * self.third + spread
        return mean, variance.clamp(min=0)


def _shares(moments: CenterMoments, m: int) -> tuple[Tensor, Tensor, Tensor]:
    """Cov e = shrink Σ/m, E[(a·e)‖e‖²] = skew a·E[u‖u‖²], and E‖e‖⁴, e the mean of m of the n residuals of a class.

    Sums over which of the drawn samples coincide; residuals sum to 0, so the mean over two distinct samples follows from that
    over one, and so on. A mean over more distinct samples than m has no weight.
    """
    n, t, f, q = moments.counts.double(), moments.trace, moments.fourth, moments.square
    one, two, three = (n - 1).clamp(min=1), (n - 2).clamp(min=1), (n - 3).clamp(min=1)
    pairs, triples, fours = m * (m - 1), m * (m - 1) * (m - 2), m * (m - 1) * (m - 2) * (m - 3)
    shrink = 1 - (m - 1) / one
    skew = (1 - 3 * (m - 1) / one + 2 * (m - 1) * (m - 2) / (one * two)) / m**2
    norms, products = n * t.square(), n * q
    two_alike = norms - f + 2 * (products - f) - 4 * f  # ‖u₁‖²‖u₂‖², (u₁·u₂)² twice, ‖u₁‖² u₁·u₂ four times
    one_pair = 2 * (norms - 2 * f) + 4 * (products - 2 * f)  # −‖u₁‖² u₂·u₃ twice, −(u₁·u₂)(u₁·u₃) four times
    none_alike = 2 * (products - 2 * f) + norms - 2 * f  # (u₁·u₂)(u₃·u₄)
    total = (
        m * f + pairs * two_alike / one - triples * one_pair / (one * two) + fours * none_alike / (one * two * three)
    )
    return shrink, skew, total / m**4


def center_moments(rows: ProbeRows) -> CenterMoments:
    """The moments of all classes that have training samples, and of all test samples."""
    counts, centers = rows.counts, rows.centers
    present = counts.nonzero().flatten()
    columns: list[tuple[Tensor, ...]] = []
    for k in present.tolist():
        u = rows.train[rows.labels == k] - centers[k]  # n_k r
        norms = u.square().sum(dim=1)
        skewed = u.T @ norms / len(u)  # E[u‖u‖²]
        inner = u @ u.T if len(u) <= u.shape[1] else u.T @ u
        square = inner.square().sum() / len(u) ** 2
        away = rows.test - centers[k]  # t r
        along = torch.cat([(part @ u.T).square().mean(dim=1) for part in away.split(max(1, PIECE // len(u)))])
        columns.append((norms.mean(), norms.square().mean(), square, away.square().sum(dim=1), along, away @ skewed))
    trace, fourth, square, distance, along, third = (torch.stack(each, dim=-1) for each in zip(*columns, strict=True))
    return CenterMoments(counts[present], trace, fourth, square, distance, along, third)


def few_shot_certificate(rows: ProbeRows, shots: Sequence[int]) -> dict[int, float]:
    """The certificate for every m that all classes have samples for; test samples of classes without any count as errors."""
    moments = center_moments(rows)
    least = int(moments.counts.min())
    return {
        m: class_mean(_bounds(rows, moments, m), rows.labels_test, classes=rows.classes) for m in shots if m <= least
    }


def _bounds(rows: ProbeRows, moments: CenterMoments, m: int) -> Float64[Tensor, " t"]:
    """min(1, Σ_{j ≠ i} V/(V + M²)) of every test sample, i its class; a class that is not farther on average counts 1."""
    mean, variance = moments.at(m)  # t p
    position = torch.full((rows.classes,), -1, dtype=torch.int64, device=rows.labels.device)
    position[rows.counts.nonzero().flatten()] = torch.arange(len(moments.counts), device=position.device)
    own = position[rows.labels_test]
    known = own >= 0
    own = own.clamp(min=0).unsqueeze(1)
    gap = mean - mean.gather(1, own)
    spread = variance + variance.gather(1, own)
    bound = torch.where(gap > 0, spread / (spread + gap.square()).clamp(min=torch.finfo(torch.float64).tiny), 1.0)
    bound.scatter_(1, own, 0.0)
    return torch.where(known, bound.sum(dim=1).clamp(max=1), 1.0)
