"""Scales: paper is the figure as declared, smoke is smaller in size and the same in wiring."""

from __future__ import annotations

from dataclasses import replace

import pytest

from equisep.errors import InputError
from equisep.figures.catalogue import all_figures, figure_of
from equisep.figures.cell import Cell, Solve, field_names
from equisep.figures.figure import Figure, Panel
from equisep.figures.query import HALF
from equisep.runs.plan import EPOCHS, LARGEST, PER_CLASS, check_scale, rates_at, scaled, seeds_at

FIGURES = all_figures()
# what a smaller run may change; everything else is wiring, data preparation, optimizer, or what is read
SIZES = {
    "epochs", "first_epochs", "last_epochs", "first_schedule", "read_epochs", "per_class", "sizes", "copies", "second",
    "validation", "test_per_class", "coordinates", "noise_draws", "reductions", "width_multiplier", "ratios", "starts",
}  # fmt: skip
PLAIN = Figure(id="x/y", title="", source="", cite="", base=Cell(), series=(), panels=(Panel("D"),))


def differing(one: Cell, two: Cell) -> set[str]:
    return {name for name in field_names(type(one)) if getattr(one, name) != getattr(two, name)}


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.id)
def test_paper_is_as_declared_and_smoke_changes_sizes_alone(figure: Figure) -> None:
    for series in figure.series:
        cell = figure.cell(series)
        assert scaled(cell, figure, "paper") == cell
        small = scaled(cell, figure, "smoke")
        assert differing(cell, small) <= SIZES | (set(figure.smoke) - {"data"})
        if isinstance(cell, Solve):
            continue
        assert small.epochs <= EPOCHS and small.width_multiplier <= cell.width_multiplier
        assert all(0 <= epoch <= small.epochs for epoch in small.read_epochs)
        if cell.sizes is not None:
            assert small.sizes is not None and max(small.sizes) <= LARGEST
            assert [size > 0 for size in small.sizes] == [size > 0 for size in cell.sizes]
        else:
            assert small.per_class is not None and small.per_class <= PER_CLASS + 5


def test_readings_keep_their_place_in_the_training() -> None:
    """A claim at epoch 100 of 600 finds a reading at the same share of a shorter training."""
    figure = figure_of("he2023/fig2")
    small = scaled(figure.cell(figure.series[0]), figure, "smoke")
    for epoch in figure.base.read_epochs:
        assert any(abs(read - epoch / 600 * small.epochs) <= HALF for read in (*small.read_epochs, small.epochs))


def test_orders_are_kept() -> None:
    few, more, most = (scaled(Cell(per_class=n), PLAIN, "smoke").per_class for n in (100, 200, 500))
    assert few is not None and more is not None and most is not None and few < more < most
    assert scaled(Cell(per_class=5), PLAIN, "smoke").per_class == 5
    assert scaled(Cell(per_class=None), PLAIN, "smoke").per_class == PER_CLASS
    unequal = scaled(Cell(per_class=None, sizes=(500, 100, 50, 1, 0)), PLAIN, "smoke").sizes
    assert unequal == (24, 5, 3, 1, 0)


def test_stages_keep_their_proportions_and_none_is_lost() -> None:
    staged = Cell(kind="staged", epochs=600, first_epochs=900, last_epochs=300, first_schedule=600)
    small = scaled(staged, PLAIN, "smoke")
    assert (small.epochs, small.first_epochs, small.last_epochs, small.first_schedule) == (6, 9, 3, 6)
    assert scaled(staged.with_(first_epochs=10), PLAIN, "smoke").first_epochs == 1
    assert scaled(staged.with_(first_epochs=0, last_epochs=0), PLAIN, "smoke").first_epochs == 0


def test_wide_networks_are_narrowed_and_the_others_are_not() -> None:
    assert scaled(Cell(width=1000), PLAIN, "smoke").width_multiplier == 0.1
    assert scaled(Cell(widths=(100, 500, 2500)), PLAIN, "smoke").width_multiplier == 0.04
    assert scaled(Cell(width=100), PLAIN, "smoke").width_multiplier == 1.0
    assert scaled(Cell(network="vgg11", width=None), PLAIN, "smoke").width_multiplier == 1 / 16


def test_a_figure_can_be_smaller_still_and_its_readings_follow() -> None:
    smaller = replace(PLAIN, smoke={"epochs": 2, "per_class": 3, "width_multiplier": 0.5, "data": "elsewhere"})
    small = scaled(Cell(read_epochs=(0, 300, 599)), smaller, "smoke")
    assert (small.epochs, small.read_epochs, small.per_class, small.width_multiplier) == (2, (0, 1, 2), 3, 0.5)
    assert small.data == Cell().data  # which the plan lets it stand in for
    assert scaled(Cell(epochs=1), smaller, "smoke").epochs == 1


def test_seeds() -> None:
    figure = replace(PLAIN, seeds=5)
    assert seeds_at(figure, "paper", None) == (0, 1, 2, 3, 4)
    assert seeds_at(figure, "smoke", None) == (0, 1)
    assert seeds_at(replace(PLAIN, seeds=1), "smoke", None) == (0,)
    assert seeds_at(figure, "smoke", 4) == (0, 1, 2, 3)
    with pytest.raises(InputError, match=r"`seeds` was -1; a number from 1 to 10,000 is needed"):
        seeds_at(figure, "paper", -1)


def test_rates_at_smoke_scale_are_two_from_the_middle() -> None:
    figure = figure_of("he2023/fig1")
    (sgd,), (adam,) = figure.named("sgd-4"), figure.named("adam-4")
    assert rates_at(figure, sgd, "smoke") == (0.01, 0.03) and rates_at(figure, adam, "smoke") == (1e-4, 3e-4)
    assert len(rates_at(figure, sgd, "paper")) == 7


def test_an_unknown_scale() -> None:
    assert check_scale("paper") == "paper"
    with pytest.raises(InputError, match=r"No scale `papr`. Did you mean `paper`\? Known: paper, smoke."):
        check_scale("papr")
