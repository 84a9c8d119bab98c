"""The same cells alone and in an ensemble: in float64 the same numbers, in float32 nearly so. On Ray: test_ray_cluster.py."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest

from equisep.figures.outcome import Outcome
from equisep.figures.quantities import quantity
from equisep.runs.plan import groups_of
from runs.company import CELLS, EXACT, KINDS, SMALL, alone, farthest, numbers_of, together


@pytest.fixture(scope="module")
def single() -> dict[str, Outcome]:
    return alone(CELLS)


def test_groups_hold_several_cells() -> None:
    assert [len(group) for group in groups_of(CELLS)] == [4] * len(KINDS)


def test_a_cell_alone_and_in_an_ensemble_is_the_same_in_float64(single: dict[str, Outcome]) -> None:
    ensemble = together(CELLS)
    gaps = {cell.key: farthest(single[cell.key], ensemble[cell.key]) for cell in CELLS}
    assert max(gaps.values()) <= EXACT
    # and there was something to compare: sites in both readings, classifiers, noise
    numbers = numbers_of(ensemble[CELLS[0].key])
    assert len(numbers) > 200 and all(math.isfinite(value) for path, value in numbers.items() if "fuzziness" in path)
    noisy = next(cell for cell in CELLS if cell.noise)
    assert all(change is not None and change > 0 for change in ensemble[noisy.key].arrays["noise_change"])


def test_cells_of_different_seeds_and_rates_differ(single: dict[str, Outcome]) -> None:
    """So that agreement means something."""
    for group in groups_of(CELLS):
        for one, two in combinations(group, 2):
            assert farthest(single[one.key], single[two.key]) > 1e-3


def test_float32_differs_by_rounding_far_less_than_seeds_do() -> None:
    cells = [SMALL.with_(dtype="float32", epochs=4, rate=3e-3, seed=seed, data_seed=seed) for seed in range(4)]
    one, all_of_them = alone(cells), together(cells)
    for name in ("r", "rho", "log_last"):
        found = [[quantity(kept[cell.key], name) for cell in cells] for kept in (one, all_of_them)]
        single, ensemble = np.array(found, dtype=np.float64)
        assert np.abs(single - ensemble).max() <= 0.1 * single.std(ddof=1), name
