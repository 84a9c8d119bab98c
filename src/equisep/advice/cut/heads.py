"""Heads in closed form: features of one layer to class scores, without training."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from equisep.errors import SiteError
from equisep.separation.group_sums import ClassCenters
from equisep.separation.probes.ridge import scattered_ridge
from equisep.separation.stream import ClassScatter
from equisep.shapes import Float64, Shaped
from equisep.taps.calls import first_tensor
from equisep.taps.reduce import Padding, Reduction


class AffineHead(nn.Module):
    """Class scores W(x − s) + b; `shift` s lies amid the features, so that single precision does."""

    shift: Tensor

    def __init__(self, shift: Shaped[Tensor, " d"], weight: Shaped[Tensor, "k d"], bias: Shaped[Tensor, " k"]) -> None:
        super().__init__()
        self.register_buffer("shift", shift)
        self.weight, self.bias = nn.Parameter(weight), nn.Parameter(bias)

    def forward(self, x: Shaped[Tensor, "b d"]) -> Shaped[Tensor, "b k"]:
        """Scores of rows."""
        wide = x if x.dtype == self.weight.dtype else x.to(self.weight.dtype)
        return functional.linear(wide - self.shift, self.weight, self.bias)


def centers_head(centers: ClassCenters, dtype: torch.dtype) -> AffineHead:
    """The nearest class mean: argmin_k ‖x − m_k‖² = argmax_k 2(m_k − s)·(x − s) − ‖m_k − s‖², for any s.

    A class without samples has a score of −∞.
    """
    middle = centers.about[centers.present].mean(dim=0)
    shift = (centers.shift + middle).to(dtype)
    points: Float64[Tensor, "k d"] = centers.about + (centers.shift - shift.double())
    bias = torch.where(centers.counts.to(points.device) > 0, -points.square().sum(dim=1), -torch.inf)
    return AffineHead(shift, (2 * points).to(dtype), bias.to(dtype))


def linear_head(scatter: ClassScatter, dtype: torch.dtype) -> AffineHead:
    """Ridge regression onto class indicators, from the sums of one pass; a class without samples has a score of −∞."""
    probe, middle = scattered_ridge(scatter)
    shift = middle.to(dtype)
    bias = probe.shares + (shift.double() - middle) @ probe.weights
    bias = torch.where(scatter.counts > 0, bias, -torch.inf)
    return AffineHead(shift, probe.weights.T.contiguous().to(dtype), bias.to(dtype))


class Readout(nn.Module):
    """What a site gives as class scores: its features reduced to one row a sample, as the reader does, then a head."""

    def __init__(self, site: str, reduction: Reduction, padding: Padding | None, head: AffineHead) -> None:
        super().__init__()
        self.site, self.reduction, self.padding = site, reduction, padding
        self.head = head

    def forward(self, value: Any, arguments: Mapping[str, Any]) -> Shaped[Tensor, "b k"]:
        """Scores of what the site gave; `arguments` are those of the model, by name."""
        feature = first_tensor(value)
        if feature is None:
            raise SiteError(f"Site `{self.site}` gives no tensor but {type(value).__name__}. Choose another site.")
        mask = None if self.padding is None else self.padding.kept(arguments)
        # a view, so that the steps of this head are none of the model's own where both are traced together
        scores: Tensor = self.head(self.reduction(feature.view_as(feature), site=self.site, mask=mask).features)
        return scores
