"""Predicted costs: arithmetic of known layers, and more of anything costs more."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from equisep.errors import InputError
from equisep.figures.catalogue import all_figures, figure_of
from equisep.figures.cell import Cell
from equisep.figures.figure import Figure
from equisep.runs.cost import SET_UP, SPEEDS, _network, predict, predict_cells, samples_of
from equisep.runs.plan import RunOptions, cells_to_run, planned_cells, short_cells
from equisep.runs.record import recorded_evidence

NETWORKS: list[dict[str, Any]] = [
    {},
    {"depth": 20, "optimizer": "sgd"},
    {"kind": "staged", "first_epochs": 3, "last_epochs": 2},
    {"network": "pure-cnn", "depth": 4, "channels": 8, "preparation": "he2023-32x32"},
    {"network": "resnet18", "depth": None, "width": None, "preparation": "he2023-32x32-cifar", "width_multiplier": 0.1},
    {"network": "bert", "depth": None, "width": None},
    {"augment": True},
]
CELLS = st.sampled_from([Cell(epochs=4, **changes) for changes in NETWORKS])


def members(cell: Cell, count: int) -> list[Cell]:
    return [cell.with_(seed=seed) for seed in range(count)]


@given(CELLS, st.integers(1, 500), st.integers(1, 500), st.sampled_from(["cpu", "cuda"]))
def test_more_epochs_take_longer_and_no_more_memory(cell: Cell, epochs: int, more: int, device: str) -> None:
    short, long = (predict_cells([cell.with_(epochs=n)], device=device) for n in (epochs, epochs + more))
    assert 0 < short.seconds < long.seconds and 0 < short.bytes == long.bytes


@given(CELLS, st.integers(1, 5), st.integers(1, 20))
def test_more_members_take_longer_and_members_of_one_group_more_memory(cell: Cell, count: int, more: int) -> None:
    few, many = (predict_cells(members(cell, n)) for n in (count, count + more))
    assert few.seconds < many.seconds and few.bytes <= many.bytes
    assert (few.cells, many.cells) == (count, count + more)
    assert few.seconds >= 0.999 * predict_cells(members(cell, 1)).seconds


@pytest.mark.parametrize("changes", [{"per_class": 200}, {"read_epochs": (1, 2)}, {"width_multiplier": 2.0}])
@pytest.mark.parametrize("base", NETWORKS, ids=str)
def test_more_samples_readings_or_width_take_longer(base: dict[str, Any], changes: dict[str, Any]) -> None:
    cell = Cell(**{"epochs": 4, **base})
    assert predict_cells([cell.with_(**changes)]).seconds > predict_cells([cell]).seconds


def test_a_feed_forward_network_by_arithmetic() -> None:
    """Two operations a weight: 100·100·7 + 100·10 of them in eight layers on 10 × 10 images."""
    operations, parameters, _, layers = _network(Cell())
    assert operations == 2 * (7 * 100 * 100 + 100 * 10) and layers == 8
    assert parameters == 7 * (100 * 100 + 100) + 7 * 200 + 100 * 10 + 10  # weights, biases, norms


def test_a_convolution_by_arithmetic() -> None:
    """Depth by depth: one more layer of c channels, k × k, on s × s images costs 2·c²k²s² operations."""
    cell = Cell(network="pure-cnn", width=None, channels=6, kernel=5, preparation="he2023-32x32")
    four, five = (_network(cell.with_(depth=depth)) for depth in (4, 5))
    assert five[0] - four[0] == 2 * 6 * 6 * 25 * 32 * 32
    assert five[1] - four[1] == pytest.approx(6 * 6 * 25 + 2 * 6, abs=6)  # and a bias or none
    small = _network(cell.with_(depth=4, preparation="he2023-10x10"))
    assert four[0] / small[0] == pytest.approx((32 / 10) ** 2, rel=1e-12)


def test_a_whole_training_by_arithmetic() -> None:
    speed = SPEEDS["cpu"]
    cell = Cell(epochs=10, readings=("mixed",), batch_size=100)
    operations = _network(cell)[0]
    steps, reads = 10 * 10, 1
    wanted = SET_UP + 1000 * operations * (3 * 10 + 4 * reads) / speed.ensemble + steps * 8 * speed.step
    assert predict_cells([cell]).seconds == pytest.approx(wanted)


@pytest.mark.parametrize(
    ("changes", "samples"),
    [
        ({}, 1000),
        ({"classes": (1, 2, 3)}, 300),
        ({"sizes": (5, 1), "per_class": None}, 6),
        ({"sizes": (5, 1), "per_class": None, "second": 2}, 10),
        ({"second": 50}, 1500),
        ({"second": 50, "second_read": True}, 1000),
        ({"per_class": None}, 60_000),
        ({"per_class": None, "data": "cifar10"}, 50_000),
        ({"per_class": None, "data": "cifar100"}, 50_000),
        ({"per_class": None, "data": "stl10"}, 5_000),
        ({"network": "bert", "per_class": 500}, 1000),
    ],
)
def test_samples_of_an_epoch(changes: dict[str, Any], samples: int) -> None:
    """Sizes of the official training splits; SST-2 has two classes."""
    assert samples_of(Cell(**changes)) == samples


def test_steps_of_convolutional_networks_on_a_gpu_are_those_that_were_measured() -> None:
    """Within a half, network by network: what was predicted was two to four times as much for large ones."""
    (path,) = (Path(__file__).parents[2] / "benchmarks" / "results").glob("convolutions-nvidia-h200-*.json")
    for row in json.loads(path.read_text(encoding="utf-8"))["networks"]:
        figure = figure_of(row["figure"])
        (series,) = figure.named(row["series"])
        cell = figure.cell(series).with_(readings=(), read_epochs=(), per_class=None, sizes=(128,) * 10, epochs=100)
        steps = 100 * 10
        predicted = (predict_cells([cell], device="cuda").seconds - SET_UP) / steps
        assert 2 / 3 < 1e3 * predicted / row["channels_last"]["ms"] < 3 / 2, row["series"]


def test_encoders_are_not_predicted_at_the_speed_of_convolutions_in_tf32() -> None:
    """What was recorded of an encoder of BERT's size took no more than five times as long, in company."""
    figure = figure_of("he2023/figS9")
    found = recorded_evidence(figure, Path(__file__).parents[2] / "results" / "he2023" / "figS9.json")
    took = [entry.provenance["wall_s"] for entry in found.series["mpnet"].entries]
    predicted = predict_cells([figure.cell(figure.named("mpnet")[0])], device="cuda").seconds
    assert len(took) == 3 and min(took) / 5 < predicted < max(took)


def test_nothing_to_run_costs_nothing() -> None:
    nothing = predict_cells([])
    assert (nothing.cells, nothing.groups, nothing.seconds, nothing.bytes) == (0, 0, 0, 0)


@pytest.mark.parametrize("figure", all_figures(), ids=lambda figure: figure.id)
def test_every_figure_has_a_price_and_smoke_is_cheaper(figure: Figure) -> None:
    smoke = predict(figure, scale="smoke")
    assert smoke.seconds > 0 and smoke.bytes > 0 and 0 < smoke.groups <= smoke.cells
    paper = predict(figure, device="cuda")
    assert paper.device == "one H200" and smoke.device == "two CPU cores" and paper.cells >= smoke.cells
    assert predict(figure, device="cpu").seconds > smoke.seconds or figure.base.kind == "solve"


def test_where_short_runs_choose_both_are_counted() -> None:
    figure = figure_of("he2023/fig8")
    asked = RunOptions("paper", 2)
    cells = cells_to_run(figure, asked)
    assert len(cells) == len(short_cells(figure, asked)) + 2 * len(figure.series)
    assert len(planned_cells(figure, asked)) > len(cells)


def test_an_unknown_preparation_is_one_sentence() -> None:
    with pytest.raises(InputError, match="There is no preparation `mine`"):
        predict_cells([Cell(preparation="mine")])
