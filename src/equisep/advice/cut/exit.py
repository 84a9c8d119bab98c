"""Early exit: a model whose forward pass really ends after a layer, for any model that can be called."""

from __future__ import annotations

from typing import Any, NoReturn

from torch import Tensor, nn

from equisep.advice.cut.heads import Readout
from equisep.errors import SiteError
from equisep.taps import choose, eager, inner, refuse_scripted, refuse_uninitialized, signature_of
from equisep.taps.calls import first_tensor
from equisep.taps.names import INPUT
from equisep.taps.tap import by_name
from equisep.taps.watch import watched


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
