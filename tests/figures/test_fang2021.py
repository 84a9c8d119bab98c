"""The figures of Fang et al. 2021 as declared: ids, cells, imbalance, and claims that refer to what there is."""

from __future__ import annotations

import dataclasses

import pytest

from equisep.data import DATA_NAMES, PREPARATIONS
from equisep.figures.cell import Cell
from equisep.figures.figure import Figure
from equisep.figures.papers.fang2021 import FIGURES, FNN, MINORITY, NETS, OVERSAMPLING, QNORM, imbalanced
from equisep.models import MODELS
from equisep.training.recipe import Recipe

IDS = ("balanced", "qnorm", "minority", "networks", "fnn", "oversampling")
# what a cell with `classifier=True` has beside its readings
OF_CLASSIFIERS = {"minority_cosine", "minority_mean_cosine", "minority_accuracy_test", "majority_accuracy_test"}


def trained(figure: Figure) -> list[Cell]:
    return [cell for series in figure.series for cell in figure.cells(series, seeds=[0, 1])]


def test_the_ids_are_those_of_the_catalogue() -> None:
    assert tuple(figure.id for figure in FIGURES) == tuple(f"fang2021/{name}" for name in IDS)


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.id)
def test_every_figure_builds_its_cells_and_draws_every_series(figure: Figure) -> None:
    cells = trained(figure)
    solved = figure.base.kind == "solve"
    assert len(cells) == len(figure.series) * (1 if solved else 2)
    assert len({cell.key for cell in cells}) == len(cells)
    assert all(Cell.from_dict(cell.to_dict()) == cell for cell in cells)
    drawn = {series.name for panel in figure.panels for series in figure.drawn_in(panel)}
    assert drawn == {series.name for series in figure.series}
    assert len({panel.name for panel in figure.panels}) == len(figure.panels)
    assert all(figure.drawn_in(panel) for panel in figure.panels)
    assert figure.title and figure.source and "2021" in figure.cite
    assert figure.claims and all(claim.source for claim in figure.claims)
    assert len({claim.text for claim in figure.claims}) == len(figure.claims)


@pytest.mark.parametrize("figure", [FNN, NETS, OVERSAMPLING], ids=lambda figure: figure.id)
def test_trained_cells_name_data_networks_and_numbers_that_exist(figure: Figure) -> None:
    for cell in trained(figure):
        assert cell.data in DATA_NAMES and cell.preparation in PREPARATIONS and cell.network in MODELS
        assert cell.classifier and cell.sizes is not None and len(cell.sizes) == 10
        assert (cell.optimizer, cell.momentum, cell.factor) == ("momentum", 0.9, 0.1)
        ours = cell.copies is not None or (cell.network == "vgg11" and cell.data == "cifar10")
        assert ours or (cell.rate, cell.epochs) == (0.1, 350)
        assert (cell.batch_size, cell.weight_decay) == (128, 5e-4)
        if ours:
            continue
        recipe = Recipe(optimizer="momentum", rate=cell.rate, epochs=cell.epochs, milestones=cell.milestones)
        assert recipe.rate_at(116) == 0.1 and recipe.rate_at(117) == pytest.approx(0.01)
        assert recipe.rate_at(233) == pytest.approx(0.01) and recipe.rate_at(234) == pytest.approx(0.001)
    asked = {claim.quantity for claim in figure.claims} | {panel.y for panel in figure.panels}
    assert asked <= {*OF_CLASSIFIERS, "r;r@reading=eval"}


def test_class_sizes_over_the_imbalance_ratio() -> None:
    assert imbalanced(6000, 1000) == (6000,) * 5 + (6,) * 5
    assert imbalanced(500, None) == (500,) * 5 + (0,) * 5
    smallest = {series.name: FNN.cell(series).sizes[-1] for series in FNN.series}
    assert smallest == {
        "fnn-R1": 500, "fnn-R5": 100, "fnn-R10": 50, "fnn-R50": 10, "fnn-R100": 5, "fnn-R500": 1, "fnn-Rinf": 0,
    }  # fmt: skip
    networks = {series.name: NETS.cell(series) for series in NETS.series}
    assert networks["vgg13-cifar10-R1000"].sizes == (5000,) * 5 + (5,) * 5
    assert networks["resnet18-fm-R100"].sizes == (6000,) * 5 + (60,) * 5
    assert networks["vgg11-fm-R1"].network == "vgg11" and networks["vgg11-fm-R1"].depth is None
    assert [series.x for series in FNN.series] == sorted(series.x or 0 for series in FNN.series)


def test_the_law_at_a_large_imbalance_is_asked_of_networks_that_fit() -> None:
    (claim,) = (claim for claim in FNN.claims if claim.rule == "no law")
    assert claim.ours and claim.of == ("fnn-R100",) and FNN.fit_of(claim) == 0.999
    assert {FNN.fit_of(other) for other in FNN.claims if other is not claim} == {None}


def test_oversampling_weights_the_smallest_minority_up_to_its_ratio() -> None:
    weights = [OVERSAMPLING.cell(series).class_weights for series in OVERSAMPLING.named("fnn-*")]
    assert weights[0] == (1.0,) * 10 and weights[-1] == (1.0,) * 5 + (500.0,) * 5
    start = OVERSAMPLING.cell(OVERSAMPLING.series[0]).with_(class_weights=None)
    assert start == FNN.cell(FNN.named("fnn-R500")[0]), "w = 1 is the last finite ratio of `fnn`"
    copies = [OVERSAMPLING.cell(series).copies for series in OVERSAMPLING.named("copies-*")]
    assert copies == [(1,) * 5 + (w,) * 5 for w in (1, 5, 10, 50, 100, 500)]


def test_minority_has_the_curves_of_the_paper() -> None:
    cells = [MINORITY.cell(series) for series in MINORITY.series]
    assert {(cell.majority, cell.minority, cell.feature_energy) for cell in cells} == {
        (k, 10 - k, energy) for k in (3, 5, 7) for energy in (5.0, 10.0)
    }
    ratios = cells[0].ratios
    assert len(ratios) == 41 and ratios[0] == 1 and ratios[-1] == 1e4 and ratios[10] == pytest.approx(10)


def test_only_what_a_certificate_proves_is_exact() -> None:
    searched = [claim for claim in QNORM.claims if not claim.exact]
    assert {name for claim in searched for name in claim.of} == {"q0.5-*", "q1-*", "q1.5-*", "q3-p8"}
    assert not any(claim.exact for figure in (FNN, NETS, OVERSAMPLING) for claim in figure.claims)


def test_a_figure_cannot_claim_of_a_series_that_is_not_there() -> None:
    claim = dataclasses.replace(FNN.claims[0], of=("fnn-R7",))
    with pytest.raises(Exception, match="no series `fnn-R7`"):
        dataclasses.replace(FNN, claims=(claim,))
