"""How often does `equisep depth` recommend a depth that is worse than the best by more than its margin; how often does it answer?

Networks of k depths with known accuracies: test sample i is hit by the network of depth d and seed s where √0.85·a_i +
√0.03·b_di + √0.12·c_dsi, all standard normal, lies below the quantile of that network's own accuracy, which is that of its
depth plus `spread`·normal by seed. So samples that are hard are hard for most networks, some are easier for one depth, and seeds
differ, as in trained networks; and the accuracy of a depth over other seeds and other samples is the one given.

`beyond`: how often the recommended depth is worse than the best by the margin or more, which at level 0.95 may be 5 %.
`answered`: how often a depth is recommended. `wronged`: how often a depth that is as good as any is called worse: 5 % too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from _table import Rows, finish, rate
from equisep.advice.depth import DepthAdvice, DepthSettings, Trial, choose_depth

DRAWS, MARGIN = 400, 0.01
SHARED, OWN, REST = 0.85, 0.03, 0.12  # parts of what makes a sample hard: for all, for one depth, for one network


@dataclass(frozen=True, slots=True)
class Setup:
    """Accuracies by depth, how far seeds spread, and how many seeds and test samples there are."""

    name: str
    accuracies: tuple[float, ...]
    spread: float = 0.004
    seeds: int = 8
    samples: int = 500


SETUPS = (
    Setup("all but the deepest at the margin below it", (0.89,) * 6 + (0.9,)),
    Setup("the same, 3 seeds", (0.89,) * 6 + (0.9,), seeds=3),
    Setup("the same, seeds spread by 1.5 points", (0.89,) * 6 + (0.9,), spread=0.015),
    Setup("the same, 10,000 test samples", (0.89,) * 6 + (0.9,), samples=10_000),
    Setup("all alike", (0.9,) * 7),
    Setup("all alike, 10,000 test samples", (0.9,) * 7, samples=10_000),
)


def hits_of(setup: Setup, chance: np.random.Generator) -> list[np.ndarray[Any, np.dtype[np.bool_]]]:
    """Which test samples every network hits, by depth: seeds × samples."""
    shape = (setup.seeds, setup.samples)
    hard = np.sqrt(SHARED) * chance.normal(size=(1, setup.samples))
    tables = []
    for accuracy in setup.accuracies:
        own = np.clip(accuracy + setup.spread * chance.normal(size=(setup.seeds, 1)), 0.01, 0.99)
        limit = np.vectorize(NormalDist().inv_cdf)(own)
        score = hard + np.sqrt(OWN) * chance.normal(size=(1, setup.samples)) + np.sqrt(REST) * chance.normal(size=shape)
        tables.append(score < limit)
    return tables


def searched(setup: Setup, chance: np.random.Generator) -> DepthAdvice:
    """The advice of one search, all depths of which fit."""
    depths = tuple(range(2, 2 + len(setup.accuracies)))
    tables, ones = hits_of(setup, chance), (1.0,) * setup.seeds
    trials = [
        Trial(
            depth=depth, width=100, rate=3e-3, parameters=depth, accuracy=ones, accuracy_test=tuple(table.mean(axis=1).tolist()),
            last=ones, rho=ones, r=ones, effective_depth=(1,) * setup.seeds, ncc=ones, diverged=(None,) * setup.seeds,
        )
        for depth, table in zip(depths, tables, strict=True)
    ]  # fmt: skip
    return choose_depth(trials, tables, DepthSettings(depths=depths, seeds=setup.seeds, margin=MARGIN))


def row_of(setup: Setup, draws: int) -> Mapping[str, Any]:
    """The rates of one setup."""
    chance = np.random.default_rng(20)
    top = max(setup.accuracies)
    beyond, answered, wronged = [], [], []
    for _ in range(draws):
        advice = searched(setup, chance)
        chosen = advice.recommended
        answered.append(chosen is not None)
        beyond.append(chosen is not None and top - setup.accuracies[chosen] >= MARGIN - 1e-12)
        wronged.append(any(each.below and setup.accuracies[each.trial] == top for each in advice.standings))
    return {
        "setup": setup.name, "depths": len(setup.accuracies), "seeds": setup.seeds, "samples": setup.samples,
        "beyond": rate(beyond), "answered": rate(answered), "wronged": rate(wronged),
    }  # fmt: skip


def tables(draws: int) -> Mapping[str, Rows]:
    """All setups."""
    return {"searches": [row_of(setup, draws) for setup in SETUPS]}


if __name__ == "__main__":
    finish("depth", tables, draws=DRAWS)
