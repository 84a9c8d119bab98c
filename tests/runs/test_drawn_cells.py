"""Cells that are read as drawn: the order of the walk through the full set, beside readings that do not notice it."""

from __future__ import annotations

import hashlib
import json

import numpy as np
import pytest
import torch

from equisep.data import draw, full_per_class
from equisep.figures import Cell, Outcome, quantity
from equisep.figures.cell import Training
from equisep.runs.cell_data import cell_data_of, dataset_of, sample_of
from equisep.runs.run import run_group

ALL = ("mixed", "eval", "drawn")
SMALL = Training(data="embedded-10x10", per_class=30, test_per_class=4, depth=4, width=12, epochs=2, batch_size=32)
UNEQUAL = SMALL.with_(per_class=None, sizes=(60,) * 5 + (8,) * 5)


def outcome_of(cell: Cell) -> Outcome:
    return run_group([cell])[0][1]


def test_the_order_is_the_walk_through_the_full_set() -> None:
    dataset = dataset_of("embedded-10x10")
    assert full_per_class(dataset) == 6000
    sample = sample_of(UNEQUAL.with_(readings=ALL, data_seed=3), dataset)
    walk = draw(dataset.y_train, sizes=UNEQUAL.sizes, seed=3, order="walk", pool_per_class=6000)
    assert sample.drawn is not None
    np.testing.assert_array_equal(sample.positions[sample.drawn], walk)
    plain = sample_of(UNEQUAL.with_(data_seed=3), dataset)
    assert plain.drawn is None and np.array_equal(plain.positions, sample.positions)


def test_a_second_sample_comes_after_the_first() -> None:
    dataset = dataset_of("embedded-10x10")
    cell = SMALL.with_(readings=ALL, second=5)
    sample, alone = sample_of(cell, dataset), sample_of(cell.with_(second=0), dataset)
    assert sample.drawn is not None and sorted(sample.drawn.tolist()) == list(range(350))
    np.testing.assert_array_equal(sample.drawn[:300], alone.drawn)
    assert quantity(outcome_of(cell.with_(second_read=True)), "last@reading=drawn") is not None


def test_asking_for_drawn_changes_no_other_reading() -> None:
    plain, more = outcome_of(UNEQUAL), outcome_of(UNEQUAL.with_(readings=ALL, weightings=("sample", "class")))
    for reading in ("mixed", "eval"):
        assert quantity(more, f"last@reading={reading}") == quantity(plain, f"last@reading={reading}")
    for query in ("last@reading={}", "last@reading={},weighting=class"):
        assert len({quantity(more, query.format(reading)) for reading in ALL}) == 3


def test_a_group_of_cells_is_each_of_them() -> None:
    cells = [SMALL.with_(readings=("drawn",), seed=seed, data_seed=seed, dtype="float64") for seed in (0, 1)]
    together = [outcome for _, outcome, _ in run_group(cells)]
    for cell, outcome in zip(cells, together, strict=True):
        assert quantity(outcome, "last") == pytest.approx(quantity(outcome_of(cell), "last"), rel=1e-6)


def test_convolutional_networks_are_read_as_drawn_too() -> None:
    cell = UNEQUAL.with_(network="resnet-2-layer", depth=None, width=None, width_multiplier=0.1, epochs=1, readings=ALL)
    outcome = outcome_of(cell)
    found = {reading: quantity(outcome, f"last@reading={reading}") for reading in ALL}
    assert None not in found.values() and len(set(found.values())) == 3


def test_a_cell_that_is_read_as_drawn_has_a_key_of_its_own_and_comes_back() -> None:
    cell = SMALL.with_(readings=ALL)
    own = {**SMALL.own_fields(), "modes": ["batch", "eval", "drawn"]}
    assert cell.key == hashlib.sha256(json.dumps(own, sort_keys=True).encode()).hexdigest()[:32] != SMALL.key
    assert Cell.from_dict(json.loads(json.dumps(cell.to_dict()))) == cell
    assert Training(readings=("mixed", "eval")).key == Training().key


def test_material_keeps_orders_for_those_who_ask() -> None:
    cell_data = cell_data_of([SMALL.with_(readings=ALL), SMALL])
    assert cell_data.drawn[1] is None and isinstance(cell_data.drawn[0], torch.Tensor)
    assert sorted(cell_data.drawn[0].tolist()) == list(range(300))
