"""Figures and evidence made by hand: curves D_0·ρ^l with any r that is asked for, so that verdicts are known beforehand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from equisep.figures.cell import Cell, Solve
from equisep.figures.evidence import Entry, Evidence, gather
from equisep.figures.figure import Claim, Figure, Panel, Printed, Series
from equisep.figures.outcome import Curves, Outcome

SITES = 9


def law_curve(rho: float = 0.5, *, r: float = -1.0, first: float = 32.0, sites: int = SITES) -> tuple[float, ...]:
    """D_l with exactly this decay ρ and this Pearson r: the line plus a bow that is orthogonal to 1 and to l.

    r = slope·s_x/√(slope²·s_x² + s²) for a residual of standard deviation s, which gives s.
    """
    place = np.arange(sites) - (sites - 1) / 2
    bow = place**2 - np.mean(place**2)
    reach = abs(np.log(rho)) * place.std() * np.sqrt(1 / r**2 - 1)
    logs = np.log(first) + np.log(rho) * np.arange(sites) + reach * bow / bow.std()
    return tuple(float(value) for value in np.exp(logs))


def outcome(curve: Sequence[float | None] | None = None, **numbers: float | None) -> Outcome:
    """One reading in mixed reading with this D, or none, and single numbers by name."""
    reading = Curves(epoch=600, reading="mixed", sites=("input",), fuzziness=tuple(curve or ()))
    return Outcome(readings=(reading,) if curve is not None else (), numbers=numbers)


def figure(*claims: Claim, names: Sequence[str] = ("a",), **more: Any) -> Figure:
    """A figure of series by name; `x` maps names to their places, `changes` to their changes."""
    x, changes = more.pop("x", {}), more.pop("changes", {})
    return Figure(
        **{
            "id": "test/figure",
            "title": "A figure made by hand",
            "source": "Nobody (2000)",
            "cite": "Nobody. Nothing. 2000.",
            "base": Cell(),
            "series": tuple(Series(name, changes.get(name, {}), panel="all", x=x.get(name)) for name in names),
            "panels": (Panel("all"),),
            "claims": claims,
            **more,
        }
    )


def _seeds(of: Figure, seed: int) -> dict[str, int]:
    return {"seed": seed} if isinstance(of.base, Solve) else {"seed": seed, "data_seed": seed}


def evidence(
    of: Figure,
    outcomes: Mapping[str, Sequence[Outcome]],
    *,
    scale: str = "paper",
    seeds: int = 0,
    provenance: Mapping[str, Any] | None = None,
) -> Evidence:
    """Evidence of one outcome a seed for each series, at the cell's own rate; `seeds` of each were asked for."""
    entries = [
        Entry(name, of.cell(of.named(name)[0]).with_(**_seeds(of, seed)), found, provenance or {})
        for name, each in outcomes.items()
        for seed, found in enumerate(each)
    ]
    return gather(of, entries, scale=scale, plan=asked_for(of, seeds))


def asked_for(of: Figure, seeds: int) -> list[tuple[str, Cell]]:
    """What a run of so many seeds asks for: every series at every rate."""
    return [(series.name, cell) for series in of.series for cell in of.cells(series, seeds=range(seeds))]


def numbers(*values: float | None, name: str = "score") -> list[Outcome]:
    """Outcomes with one number each, one a seed."""
    return [outcome(**{name: value}) for value in values]


def shown_evidence(*, scale: str = "paper", seeds: int = 0) -> Evidence:
    """A figure with a law, a comparison, printed numbers and a stand-in, of three seeds and two rates."""
    made = figure(
        Claim("A law in both", "law", ("deep", "shallow"), source="Fig. 1"),
        Claim("The deep one separates less a layer", "above", ("deep", "shallow"), "rho"),
        Claim("ρ of the deep one is 0.9", "near", ("deep",), "rho", 0.9),
        Claim("Something that was never read", "at least", ("deep",), "ncc", 0.5),
        names=("deep", "shallow"),
        printed=(Printed("deep", "rho", 0.818, "Fig. 1"), Printed("deep", "r", -0.999, "Fig. 1")),
        rates={"adam": (1e-3, 3e-3)},
        choose="best r",
        changes={"deep": {"depth": 20}, "shallow": {"data": "cifar10_7k", "stands_for": "cifar10"}},
        notes=("Made by hand.",),
    )
    entries = [
        Entry(
            name,
            made.cell(made.named(name)[0]).with_(seed=seed, data_seed=seed, rate=rate),
            outcome(law_curve(rho + 0.001 * seed, r=-0.999 if rate == 1e-3 else -0.95)),
            {"equisep": "0.1", "torch": "2.13", "device": "cpu", "wall_s": 2.0},
        )
        for name, rho in (("deep", 0.6), ("shallow", 0.5))
        for rate in (1e-3, 3e-3)
        for seed in range(3)
    ]
    return gather(made, entries, scale=scale, plan=asked_for(made, seeds))
