"""SecondSums: what a second pass adds up at one site, apart from the means and directions that all parts of the data share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from equisep.separation.pairs.confusion import Confusion
from equisep.separation.site.second_pass import SecondPass
from equisep.separation.site.train_and_test import TestSite, TrainSite
from equisep.separation.subspace import Projections


@dataclass(frozen=True, slots=True)
class SecondSums:
    """The spread along the directions, tables that add up number by number, and who is nearest to whose center.

    Sums of parts of the data merge where both parts were read about the same class means and along the same directions.
    """

    projections: Projections
    tables: dict[str, Tensor] = field(default_factory=dict)
    collapse: Projections | None = None
    confusion: Confusion | None = None

    def merge(self, other: SecondSums) -> SecondSums:
        """The sums of both parts together."""
        collapse, confusion = self.collapse, self.confusion
        if collapse is not None and other.collapse is not None:
            collapse = collapse.merge(other.collapse)
        if confusion is not None and other.confusion is not None:
            confusion = confusion.merge(other.confusion)
        tables = {name: table + other.tables[name] for name, table in self.tables.items()}
        return SecondSums(self.projections.merge(other.projections), tables, collapse, confusion)


def second_sums(site: TrainSite | TestSite) -> SecondSums:
    """What the second pass has added up at a site so far."""
    tables = {name: getattr(owner, attribute) for name, (owner, attribute) in _tables(site).items()}
    collapse = site.collapse if isinstance(site, TrainSite) else None
    confusion = None if site.nearest is None else site.nearest.confusion
    return SecondSums(
        projections=_known(site.own.main),
        tables=tables,
        collapse=None if collapse is None else _known(collapse),
        confusion=confusion,
    )


def put_second_sums(site: TrainSite | TestSite, sums: SecondSums) -> None:
    """Put what was added up elsewhere, about the same means and directions, in the place of what the site has."""
    site.own.main.projections = sums.projections
    for name, (owner, attribute) in _tables(site).items():
        setattr(owner, attribute, sums.tables[name])
    if isinstance(site, TrainSite) and site.collapse is not None:
        site.collapse.projections = sums.collapse
    if site.nearest is not None:
        site.nearest.confusion = sums.confusion


def _tables(site: TrainSite | TestSite) -> dict[str, tuple[Any, str]]:
    """Where the tables of a site are kept that add up number by number."""
    found: dict[str, tuple[Any, str]] = {}
    relabelings, noise = site.own.relabelings, site.own.noise
    if relabelings is not None:
        names = ("squares", *(("scatter",) if relabelings.scatter is not None else ()))
        found |= {f"relabelings.{name}": (relabelings, name) for name in names}
    if noise is not None:
        found["noise.scatter"] = noise, "scatter"
    if site.nearest is not None:
        found |= {f"nearest.{name}": (site.nearest, name) for name in ("hits", "disagreements")}
    if isinstance(site, TrainSite):
        if site.axes is not None:
            found["axes.sums"] = site.axes, "sums"
        found |= {f"picture.{name}": (site.picture, name) for name in ("points", "labels", "found")}
    return found


def _known(main: SecondPass) -> Projections:
    """The spread so far; zeros where there are no rows."""
    if main.projections is not None:
        return main.projections
    new = main.subspace.coordinates
    counts = torch.zeros_like(main.centers.counts)
    return Projections(counts, torch.zeros_like(new), torch.zeros_like(new), new.new_zeros(len(new)))
