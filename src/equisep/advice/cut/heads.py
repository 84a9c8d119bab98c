"""What ends a shorter network: heads in closed form, and a forward pass that really stops after a layer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

import torch
from torch import Tensor, nn
from torch.nn import functional

from equisep.errors import SiteError
from equisep.separation.group_sums import ClassCenters
from equisep.separation.probes.ridge import scattered_ridge
from equisep.separation.stream import ClassScatter
from equisep.shapes import Float64, Shaped
from equisep.taps import choose, eager, inner, refuse_scripted, refuse_uninitialized, signature_of
from equisep.taps.calls import first_tensor
from equisep.taps.names import INPUT
from equisep.taps.reduce import Padding, Reduction
from equisep.taps.tap import by_name
from equisep.taps.watch import watched


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


class _Enough(BaseException):
    """Ends a forward pass; no `except Exception` of a model's own code takes it."""

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


class EarlyExit(nn.Module):
    """The first layers of a model: modules after the site `after` are never run. It gives the site's tensor, or class scores.

    The weights are those of the model itself, which stays as it is. Being Python's control flow it cannot be exported; a
    `Cut` can.
    """

    def __init__(self, model: nn.Module, after: str, readout: Readout | None = None) -> None:
        super().__init__()
        self.model, self.after, self.readout = inner(model), after, readout

    def forward(self, *args: Any, **kwargs: Any) -> Tensor:
        """The forward pass up to the site."""

        def stop(value: Any) -> NoReturn:
            raise _Enough(value)

        with eager(), watched(self.model, {self.after: stop}):
            try:
                self.model(*args, **kwargs)
            except _Enough as enough:
                value = enough.value
            else:
                raise SiteError(
                    f"Site `{self.after}` was never reached: the forward pass of `{type(self.model).__name__}` does not call "
                    "it. Name another."
                )
        if self.readout is not None:
            scores: Tensor = self.readout(value, by_name(signature_of(self.model), args, kwargs))
            return scores
        feature = first_tensor(value)
        if feature is None:
            raise SiteError(f"Site `{self.after}` gives no tensor but {type(value).__name__}. Choose another site.")
        return feature


def early_exit(model: nn.Module, after: str) -> EarlyExit:
    """A module that runs a model up to a layer and gives what that layer gives.

    >>> import torch, equisep
    >>> y = torch.arange(90) % 3
    >>> x = 2 * torch.eye(3, 8)[y] + torch.randn(90, 8, generator=torch.Generator().manual_seed(0))
    >>> _ = torch.manual_seed(0)
    >>> model = equisep.Fnn(depth=4, width=16, inputs=8, classes=3)
    >>> from equisep.advice.cut import early_exit
    >>> tuple(early_exit(model, "blocks.1")(x[:5]).shape)
    (5, 16)
    """
    refuse_scripted(model, asked="early_exit")
    refuse_uninitialized(model, asked="early_exit")
    return EarlyExit(model, one_site(model, after))


def one_site(model: nn.Module, after: str) -> str:
    """The one site that a name stands for."""
    if after == INPUT:
        raise SiteError(f"A cut is made after a layer, and `{INPUT}` is the raw input. Name a module of the model.")
    names = [name for name in choose(model, after).names if name != INPUT]
    if len(names) != 1:
        few = ", ".join(f"`{name}`" for name in names[:3])
        raise SiteError(f"A cut is made after one layer; `{after}` stands for {len(names)} ({few}, …). Name one.")
    return names[0]
