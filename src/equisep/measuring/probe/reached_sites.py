"""What one forward pass of the probe reaches: sites in call order, their widths, and what linear layers are given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from equisep.errors import SiteError
from equisep.results import Note
from equisep.separation.group_sums import as_float64
from equisep.taps import (
    INPUT,
    Activation,
    Choice,
    UnfitError,
    every_call,
    first_tensor,
    full_tensor,
    is_among,
    kind_name,
)


class ReachedSites:
    """The sites that a forward pass reaches, in the order in which it does: gathered by the tap and by hooks of linear layers."""

    def __init__(self, model: nn.Module, choice: Choice, samples: int) -> None:
        self.kind, self.choice, self.samples = kind_name(model), choice, samples
        self.dims: dict[str, int] = {}
        self.numbers: dict[str, float] = {}
        self.sizes: dict[str, int] = {}  # bytes a number
        self.sums: dict[str, tuple[float, float, float]] = {}
        self.same: dict[str, str] = {}
        self.order: list[str] = []  # every site that can be read
        self.passed: dict[str, UnfitError] = {}
        self.latest: tuple[str, Tensor] | None = None  # the site consumed last, and its features
        self.fed: dict[str, str | None] = {}  # linear layer, in call order → the site whose features it was given

    def take(self, found: Activation) -> None:
        """The consumer."""
        site, rows = found.site, found.rows
        if found.samples != self.samples:
            text = (
                f"Site `{site}` gives {found.samples} rows for the first {self.samples} samples of the training data. "
                "Choose a site that keeps one row a sample."
            )
            if not self.spare(site, error := UnfitError(text)):
                raise error
            return
        self.order.append(site)
        if found.same_as is not None and found.same_as not in self.passed:
            self.same[site] = self.same.get(found.same_as, found.same_as)
            return
        self.dims[site] = rows.features.shape[1]
        self.numbers[site] = rows.features.numel() / self.samples
        self.sizes[site] = rows.features.element_size()
        self.sums[site] = _sums(rows.features)
        self.latest = (site, rows.features.clone()) if rows.owners is None else None

    def spare(self, site: str, error: UnfitError) -> bool:
        """Pass a site over unless it was asked for by name."""
        if is_among(site, self.choice.named):
            return False
        self.passed[site] = error
        return True

    def watch(self, name: str) -> Any:
        """The hook of a linear layer: what is it given?"""

        def hook(module: nn.Module, args: tuple[Any, ...]) -> None:
            given = first_tensor(args)
            given = None if given is None else full_tensor(given)
            self.fed.pop(name, None)  # the latest call counts, and stands last
            same = given is not None and self.latest is not None and self._is_latest(given)
            self.fed[name] = self.latest[0] if same and self.latest is not None else None

        return hook

    def _is_latest(self, given: Tensor) -> bool:
        if self.latest is None or given.shape != self.latest[1].shape or not given.is_floating_point():
            return False
        features = self.latest[1]
        # a mean over space may round otherwise than the pooling layer that the model has for it
        slack = 8 * torch.finfo(features.dtype).eps if features.is_floating_point() else 0.0
        if not features.numel():
            return False
        theirs, ours = as_float64(given), as_float64(features)
        return bool((theirs - ours).abs().max() <= slack * ours.abs().max())

    def names(self, *, found: bool) -> tuple[tuple[str, ...], tuple[Note, ...]]:
        """The names whose sites can be read; one asked for by name must be among them, a found one need not."""
        names = [name for name in self.choice.names if name != INPUT]
        missing = self._missing(names)
        named = [name for name in missing if name in self.choice.named]
        readable = [site for site in self.order if site != INPUT]
        if not readable and self.passed:
            raise next(iter(self.passed.values()))
        if found and not readable:
            raise SiteError(
                f"The forward pass of `{self.kind}` calls none of its modules that could be read, such as `{missing[0]}`: it "
                "may compute with bare parameters. Put its layers into modules, or give features that you compute yourself to "
                "`equisep.measure_features`."
            )
        if named or not readable:
            raise SiteError(
                f"Site `{(named or missing)[0]}` was never reached: the forward pass of `{self.kind}` does not call it. "
                f"It calls {len(names) - len(missing)} of the {len(names)} sites asked for; name others."
            )
        kept = [name for name in self.choice.names if name not in missing]
        notes = self._left_out(names, missing, found=found)
        return tuple(name for name in kept if name != INPUT or INPUT in self.dims), notes

    def _missing(self, names: list[str]) -> list[str]:
        """The names that no call of the forward pass answers to."""
        sites = {*self.dims, *self.same, *self.passed}
        called = sites | {every_call(site) for site in sites}
        return [name for name in names if name.removesuffix(":1") not in called and name not in called]

    def _left_out(self, names: list[str], missing: list[str], *, found: bool) -> tuple[Note, ...]:
        """What is to be said of sites that were not reached, or cannot be read."""
        notes = []
        if missing:
            where = "found in the module tree " if found else "selected "
            text = f"{len(missing)} of {len(names)} sites {where}are never called and were left out: {_few(missing)}."
            notes.append(Note("unreached", text))
        if self.passed:
            reason = str(next(iter(self.passed.values())))
            text = f"{len(self.passed)} sites cannot be read so and were left out: {_few(list(self.passed))}. {reason}"
            notes.append(Note("unfit", text))
        return tuple(notes)

    def reported(self, grains: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
        """The sites of each grain in call order, the raw input first; a grain that reads the same as one before is none."""
        distinct = list(self.dims)
        found: dict[str, tuple[str, ...]] = {}
        places: set[tuple[int, ...]] = set()
        for grain, names in grains.items():
            mine = [site for site in self.order if site == INPUT or is_among(site, names)]
            place = tuple(distinct.index(self.same.get(site, site)) for site in mine)
            if place not in places and any(site != INPUT for site in mine):
                found[grain] = tuple(mine)
                places.add(place)
        return found


def _sums(features: Tensor) -> tuple[float, float, float]:
    numbers = features.flatten().to("cpu", torch.float64)
    weights = torch.linspace(-1, 1, len(numbers), dtype=torch.float64, device="cpu")
    return float(numbers.sum()), float(weights @ numbers), float(numbers.abs().sum())


def _few(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names[:3]) + (", …" if len(names) > 3 else "")
