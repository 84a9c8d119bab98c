"""Plan: what is measured and how, once the probe has seen the model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import nn

from equisep.measuring.distributed.together import ALONE, Together
from equisep.measuring.probe import Probe
from equisep.measuring.request import FOLDED, FOLDS, Options
from equisep.separation import SiteTask
from equisep.separation.assignments import RELABELINGS
from equisep.separation.pca import Components
from equisep.separation.subspace import AS_GIVEN, COMPUTED
from equisep.taps import INPUT, Reduction, Rows

NARROW = 2048  # sites no wider get several random labelings; in many features one averages over enough of them
MANY_CLASSES = 1536  # beyond, folds and random labels are left out: they need K × K numbers each, 15 of them 2 GB
STATE_BYTES = 2**32  # sums by fold are kept up to here at one site: beyond, D has no interval


class StoredLayers(nn.Module):
    """Stands for a network whose layers were run before: a batch holds what they gave. Its features are taken to `device`."""

    def __init__(self, device: torch.device) -> None:
        super().__init__()
        self.register_buffer("home", torch.zeros(0, device=device))


@dataclass(frozen=True, slots=True)
class Plan:
    """The model, its classifier, what the probe found, the reduction and all options.

    `components` are those of the training features, by site index, once they are known: the test data are read on them.
    `together` are the processes that measure as one.
    """

    model: nn.Module
    probe: Probe
    reduction: Reduction
    options: Options
    layer: nn.Linear | None = None
    components: Mapping[int, Components] = field(default_factory=dict)
    together: Together = ALONE

    @property
    def stored(self) -> bool:
        """Whether batches hold the features themselves, and no model is run."""
        return isinstance(self.model, StoredLayers)

    @property
    def sites(self) -> range:
        """The indices of the distinct sites, in call order."""
        return range(len(self.probe.sites))

    @property
    def many(self) -> bool:
        """Whether there are too many classes for what needs K × K numbers of every fold and random labeling."""
        return self.probe.classes > MANY_CLASSES

    @property
    def folds(self) -> int:
        """Folds of the jackknife, where it is asked for; a site too large for their sums has none (see `task`)."""
        wanted = self.options.wants("fuzziness") and self.options.intervals in FOLDED
        return FOLDS if wanted and not self.many else 0

    @property
    def relabelings(self) -> int:
        """The most random labelings that any site asks for."""
        return max(self._relabelings(index) for index in self.sites)

    def _relabelings(self, index: int) -> int:
        if not self.options.wants("null") or self.many:
            return 0
        wide = min(self.probe.dims[index], self.reduction.components or self.probe.dims[index])
        return RELABELINGS if wide <= NARROW else 1

    def task(self, index: int) -> SiteTask:
        """What is asked of one site: it depends on the site and the options, never on the memory budget."""
        options, steps = self.options, AS_GIVEN if self.probe.sites[index] == INPUT else COMPUTED
        layer = self.layer_at(index)
        return SiteTask(
            classes=self.probe.classes,
            convention=options.convention,
            folds=self._folds(index),
            relabelings=self._relabelings(index),
            collapse=options.wants("collapse"),
            # nobody asked for nearest centers: of many classes they are what costs; NC4 needs them at the classifier
            centers=options.wants("ncc", "confusion") or layer is not None,
            confusion=options.wants("confusion"),
            directional=options.wants("cdnv_directional"),
            layer=layer,
            steps=steps,
            offset=self._offset_at(index),
            pictured=options.coordinates if self.pictured else 0,
            seed=options.seed,
            precision=options.precision,
        )

    @property
    def pictured(self) -> bool:
        """Whether samples can be shown on a plane: rows of a part of the data have a number where each is one sample."""
        return not (self.together.partial and self.reduction.spreads)

    def width_at(self, index: int) -> int:
        """The features of a site, on components where these are known."""
        known = self.components.get(index)
        return self.probe.dims[index] if known is None else known.directions.shape[1]

    def bytes_at(self, index: int) -> float:
        """What the features of one sample take at a site, on components where these are known."""
        return self.probe.bytes[index] * self.width_at(index) / self.probe.dims[index]

    def state_bytes(self, index: int) -> float:
        """What the sums of one site take."""
        return self._state_bytes(index, self._folds(index))

    def _folds(self, index: int) -> int:
        """The folds of a site: none where their sums are too large."""
        return self.folds if self._state_bytes(index, self.folds) <= STATE_BYTES else 0

    def _state_bytes(self, index: int, folds: int) -> float:
        """Of every fold and class and every random class, and the classes' origins."""
        groups = max(folds, 1) + self._relabelings(index) + 1
        return 8.0 * self.probe.classes * groups * self.width_at(index)

    def _offset_at(self, index: int) -> float:
        """‖center‖² of the components of a site; 0 where there are none."""
        known = self.components.get(index)
        return 0.0 if known is None else float(known.center.square().sum())

    def reduced(self, index: int, rows: Rows) -> Rows:
        """The rows on the components of their site."""
        known = self.components.get(index)
        return rows if known is None else Rows(known(rows.features), rows.owners)

    def layer_at(self, index: int) -> nn.Linear | None:
        """The classifier, at the site that it reads."""
        reads = self.probe.reads
        return self.layer if reads is not None and self.probe.index_of(reads) == index else None
