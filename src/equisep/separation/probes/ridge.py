"""The ridge probe: a linear classifier in closed form, its penalty chosen on the training data without another fit.

With class indicators y_i ∈ {0, 1}^K and an intercept that is not penalized,

    W = argmin Σ_i ‖y_i − ȳ − Wᵀ(x_i − m)‖² + λ‖W‖²,        W = (S + λ)⁻¹ Σ_i (x_i − m)(y_i − ȳ)ᵀ,

S = Σ (x_i − m)(x_i − m)ᵀ. On the axes of S all is diagonal, for every λ at once. λ minimizes the generalized
cross-validation GCV(λ) = n RSS(λ) / (n − df(λ))², df = 1 + Σ_j s_j/(s_j + λ) (Golub, Heath & Wahba 1979).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from equisep.separation.probes.axes import ProbeRows, descending, total_scatter
from equisep.separation.stream import ClassScatter
from equisep.shapes import Float64, Int

DECADES = (-8.0, 2.0)  # the penalties tried, as powers of ten of the largest eigenvalue …
PER_DECADE = 4  # … this many in each


@dataclass(frozen=True, slots=True)
class RidgeProbe:
    """Scores of the classes: (x − m) W + ȳ; the largest names the class.

    `penalty` is λ, `degrees` df(λ), `gcv` the criterion at it; `eigenvalues` are those of S.
    """

    weights: Float64[Tensor, "r k"]
    shares: Float64[Tensor, " k"]
    eigenvalues: Float64[Tensor, " q"]
    penalty: float
    degrees: float
    gcv: float

    def scores(self, rows: Float64[Tensor, "n r"]) -> Float64[Tensor, "n k"]:
        """Of centered rows on the axes that the probe was fitted on."""
        return torch.addmm(self.shares, rows, self.weights)


def ridge_probe(
    eigenvalues: Float64[Tensor, " r"], centers: Float64[Tensor, "k r"], counts: Int[Tensor, " k"]
) -> RidgeProbe:
    """The probe from sums alone: the eigenvalues of S, and the class means on its axes, about the mean of all rows."""
    weights = counts.double()
    n, shares = float(weights.sum()), weights / weights.sum()
    crossed = (centers * weights.unsqueeze(1)).T  # r k: Σ_i z_i (y_i − ȳ)ᵀ, since the z_i sum to 0
    power, total = crossed.square().sum(dim=1), n * (1 - float(shares.square().sum()))  # r; Σ ‖y_i − ȳ‖²
    largest = float(eigenvalues[0]) if len(eigenvalues) else 1.0  # rows that are all alike have no axis
    count = round((DECADES[1] - DECADES[0]) * PER_DECADE) + 1
    penalties = largest * torch.logspace(*DECADES, count, dtype=torch.float64, device=centers.device)
    inverse = (eigenvalues + penalties.unsqueeze(1)).reciprocal()  # p r
    rest = total - (inverse * (2 - eigenvalues * inverse)) @ power
    degrees = 1 + inverse @ eigenvalues
    gcv = n * rest.clamp(min=0) / (n - degrees).square()
    best = int(gcv.argmin())
    return RidgeProbe(
        weights=crossed * inverse[best].unsqueeze(1),
        shares=shares,
        eigenvalues=eigenvalues,
        penalty=float(penalties[best]),
        degrees=float(degrees[best]),
        gcv=float(gcv[best]),
    )


def scattered_ridge(scatter: ClassScatter) -> tuple[RidgeProbe, Float64[Tensor, " d"]]:
    """The probe in the features themselves, from the mergeable state of one pass, and the mean that it is about."""
    middle, matrix = total_scatter(scatter)
    values, axes = descending(matrix, steps=max(int(scatter.counts.sum()), scatter.dim))
    centers = torch.where((scatter.counts > 0).unsqueeze(1), scatter.centers.means - middle, 0) @ axes
    own = ridge_probe(values, centers, scatter.counts)
    return RidgeProbe(axes @ own.weights, own.shares, values, own.penalty, own.degrees, own.gcv), middle


def left_out_scores(rows: ProbeRows, probe: RidgeProbe) -> Float64[Tensor, "n k"]:
    """The scores of every training row by the probe of all others, at the same penalty.

    f₋ᵢ(x_i) = (f(x_i) − h_i y_i) / (1 − h_i), h_i = 1/n + z_iᵀ(S + λ)⁻¹z_i: exact for a penalty that knows no data
    (the probe without row i, intercept included).
    """
    inverse = (probe.eigenvalues + probe.penalty).reciprocal()
    own = 1 / len(rows.labels) + rows.train.square() @ inverse  # n
    hot = one_hot(rows.labels, rows.classes).double()
    return (probe.scores(rows.train) - own.unsqueeze(1) * hot) / (1 - own).clamp(min=1e-12).unsqueeze(1)
