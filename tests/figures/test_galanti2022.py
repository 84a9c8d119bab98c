"""The figures of Galanti & Galanti 2022 as declared: ids, cells, the printed numbers, and claims on what is read."""

from __future__ import annotations

import pytest

from equisep.data import DATA_NAMES, PREPARATIONS
from equisep.figures.cell import Cell
from equisep.figures.figure import Figure
from equisep.figures.outcome import Curves, Outcome
from equisep.figures.papers.galanti2022 import BOUND, FIG1, FIG2, FIG3, FIG4, FIG5, FIG6, FIGURES, SHALLOW
from equisep.figures.quantities import Query, quantity
from equisep.figures.rules import quantities_of
from equisep.models import MODELS, build
from equisep.training.recipe import Recipe

IDS = ("fig1", "fig2", "fig3", "fig4", "fig5", "fig6", "bound", "bound-shallow")
KNOWN = {
    "ncc_error",
    "cdnv", "ncc", "cdnv_test", "ncc_test", "accuracy", "accuracy_test", "effective_depth", "center_gap",
    "prediction_gain", "balance",
}  # fmt: skip


def cells_of(figure: Figure) -> dict[str, Cell]:
    return {series.name: figure.cell(series) for series in figure.series}


def test_the_ids_are_those_of_the_catalogue() -> None:
    assert tuple(figure.id for figure in FIGURES) == tuple(f"galanti2022/{name}" for name in IDS)


@pytest.mark.parametrize(
    "figure", [figure for figure in FIGURES if figure is not SHALLOW], ids=lambda figure: figure.id
)
def test_every_figure_builds_its_cells_and_draws_every_series(figure: Figure) -> None:
    cells = [cell for series in figure.series for cell in figure.cells(series, seeds=[0, 1])]
    wanted = sum(min(2, series.seeds or 2) * len(figure.rates_of(series)) for series in figure.series)
    assert len({cell.key for cell in cells}) == len(cells) == wanted
    assert all(Cell.from_dict(cell.to_dict()) == cell for cell in cells)
    for cell in cells:
        assert cell.data in DATA_NAMES and cell.preparation in PREPARATIONS and cell.network in MODELS
        assert (cell.optimizer, cell.momentum, cell.batch_size, cell.weight_decay) == ("momentum", 0.9, 128, 5e-4)
        assert cell.epochs == 500 and cell.test_sites and cell.readings[0] == "eval"
        assert all(epoch < 500 for epoch in cell.read_epochs)
    assert {series.name for panel in figure.panels for series in figure.drawn_in(panel)} == set(cells_of(figure))
    assert len({panel.name for panel in figure.panels}) == len(figure.panels)
    assert figure.title and figure.source and "2022" in figure.cite
    assert figure.claims and all(claim.source for claim in figure.claims)
    assert len({claim.text for claim in figure.claims}) == len(figure.claims)
    asked = [claim.quantity for claim in figure.claims] + [panel.y for panel in figure.panels]
    asked += [panel.x for panel in figure.panels if panel.x] + [printed.quantity for printed in figure.printed]
    assert {Query.of(text).name for text in asked} <= KNOWN


def test_the_rate_falls_by_five_at_epochs_60_120_and_160() -> None:
    base = FIG1.base
    recipe = Recipe(rate=base.rate, epochs=base.epochs, milestones=base.milestones, factor=base.factor)
    found = [round(recipe.rate_at(epoch), 12) for epoch in (0, 59, 60, 119, 120, 159, 160, 499)]
    assert found == [0.1, 0.1, 0.02, 0.02, 0.004, 0.004, 0.0008, 0.0008]


@pytest.mark.parametrize("figure", [FIG1, FIG2, FIG3, FIG4, FIG6], ids=lambda figure: figure.id)
def test_networks_have_as_many_sites_as_the_paper_counts_layers(figure: Figure) -> None:
    """MLP-d and ConvNet-d: site l is layer l, for every layer that a claim or panel names."""
    for name, cell in cells_of(figure).items():
        options = {"depth": cell.depth, "width": 4}
        sites = build(cell.network, seed=0, **options).sites["layers"]
        layers = 10 if figure in (FIG3, FIG4) else int(name.rpartition("-")[2])
        assert len(sites) == layers, name
    for claim in figure.claims:
        site = max(int(Query.of(text).ways.get("site", "0")) for text in quantities_of(claim))
        for series in (series for pattern in claim.of for series in figure.named(pattern)):
            assert site <= (10 if figure in (FIG3, FIG4) else int(series.name.rpartition("-")[2]))


@pytest.mark.parametrize("figure", [FIG1, FIG2, FIG3, FIG4, FIG6], ids=lambda figure: figure.id)
def test_every_network_is_trained_with_and_without_augmentation(figure: Figure) -> None:
    cells = cells_of(figure)
    plain = {name for name in cells if "-plain-" in name}
    assert {name.replace("-plain-", "-augmented-") for name in plain} | plain == set(cells)
    for name in plain:
        assert cells[name.replace("-plain-", "-augmented-")] == cells[name].with_(augment=True)


def test_plain_mlps_are_tried_at_a_tenth_of_the_printed_rate_too() -> None:
    rates = {series.name: FIG1.rates_of(series) for series in FIG1.series}
    assert {rates[name] for name in rates if "-plain-" in name} == {(0.1, 0.01)}
    assert {rates[name] for name in rates if "-augmented-" in name} == {(0.1,)}


def test_printed_numbers() -> None:
    printed = {(entry.series, entry.quantity): entry.value for entry in (*FIG1.printed, *FIG3.printed)}
    assert printed[("mlp-augmented-8", "effective_depth")] == 4
    assert printed[("mlp-augmented-0", "cdnv@site=4")] == 0.28
    assert printed[("mlp-augmented-25", "cdnv@site=4")] == 0.6
    assert {entry.value for entry in FIG2.printed} == {5}
    assert not FIG4.printed and not FIG5.printed and not FIG6.printed and not BOUND.printed


def test_what_is_printed_of_augmented_networks_is_asked_of_plain_ones_by_us() -> None:
    on_cdnv = {claim.text: claim for claim in FIG3.claims if claim.rule == "as printed" or "above 1" in claim.text}
    assert len(on_cdnv) == 8
    for text, claim in on_cdnv.items():
        assert claim.ours == text.endswith("(plain)") and bool(claim.quote) != claim.ours
    assert {row.place for row in FIG3.printed if "plain" in row.series} == {"Fig. 3 (the paper augments)"}


def test_random_labels() -> None:
    assert sorted({cell.label_noise for cell in cells_of(FIG3).values()}) == [0, 0.25, 0.5, 0.75]
    assert {(cell.depth, cell.width) for cell in cells_of(FIG3).values()} == {(11, 500)}
    assert {(cell.depth, cell.width) for cell in cells_of(FIG4).values()} == {(10, 500)}


def test_groups_of_blocks_of_resnet18_end_where_the_notes_say() -> None:
    network = build("resnet18", seed=0, width_multiplier=1 / 16)
    ends = [place for place, name in enumerate(network.sites["blocks"], 1) if name.endswith(".1")]
    assert ends == [2, 4, 6, 8] and ", ".join(map(str, ends)) in FIG5.notes[0]
    assert {cell.data for cell in cells_of(FIG5).values()} == {"mnist", "cifar10", "cifar100", "stl10", "svhn"}


def test_the_bound_relabels_so_that_a_share_p_differs() -> None:
    cells = cells_of(BOUND)
    assert cells["joined2-10"].second_noise == pytest.approx(0.1 / 0.9)
    assert cells["joined12-90"].second_noise == pytest.approx(1) and cells["joined12-90"].second_noise <= 1
    joined = {name: cell for name, cell in cells.items() if name.startswith("joined")}
    assert len(joined) == 9 * 11 and not any(cell.second_read for cell in joined.values())
    assert {cell.depth for cell in joined.values()} == set(range(3, 14)), "depths 2 … 12 of hidden layers"
    first = {name: cell for name, cell in cells.items() if name.startswith("first")}
    assert all(cell.second_read and cell.second_noise == 0 for cell in first.values())
    assert {(cell.per_class, cell.second) for cell in cells.values()} == {(50, 50)}
    seeds = [len(BOUND.cells(series, seeds=range(BOUND.seeds))) for series in BOUND.series]
    assert min(seeds) >= 5
    assert any("estimate, not a bound" in note for note in BOUND.notes)


def test_what_nearest_centers_say_beside_the_whole_network() -> None:
    reading = Curves(
        epoch=1, reading="eval", ncc=(0.3, 0.6, 1.0), ncc_test=(0.2, 0.5, 0.71), accuracy=1.0, accuracy_test=0.7
    )
    outcome = Outcome(readings=(reading,))
    assert quantity(outcome, "center_gap@site=1") == pytest.approx(0.2)
    assert quantity(outcome, "center_gap") == pytest.approx(0.01)
    assert quantity(outcome, "prediction_gain@site=1") == pytest.approx(0.3 - 0.1)
    assert quantity(outcome, "prediction_gain@site=2") == pytest.approx(0)
    assert quantity(outcome, "prediction_gain@site=7") is None
    assert quantity(Outcome(readings=(Curves(epoch=1, reading="eval", ncc=(1.0,)),)), "center_gap") is None
