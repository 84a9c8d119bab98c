"""The figures of He & Su 2023: ids, cells, rates and printed numbers as the catalogue of the papers has them."""

from __future__ import annotations

import pytest

from equisep.data import DATA_NAMES, PREPARATIONS
from equisep.errors import InputError
from equisep.figures.cell import Cell, Training
from equisep.figures.evidence import gather
from equisep.figures.figure import Claim, Figure, Panel, Series
from equisep.figures.judge import judge
from equisep.figures.papers.he2023 import (
    FIG1,
    FIG2,
    FIG3,
    FIG5,
    FIG6,
    FIG9,
    FIGS5,
    FIGS6,
    FIGS9,
    FIGS10,
    FIGS11,
    FIGURES,
    LINEAR,
    PROP1,
    RATES,
    REACTIVATE,
    TRANSFER,
)  # fmt: skip
from equisep.figures.quantities import Query
from equisep.models import MODELS

MAIN = tuple(f"fig{n}" for n in range(1, 11))
SUPPLEMENT = tuple(f"figS{n}" for n in range(1, 12))
NAMED = ("cnn-factors", "linear", "prop1", "reactivate", "transfer")
IDS = [figure.id for figure in FIGURES]


def cells(figure: Figure) -> dict[str, Cell]:
    return {series.name: figure.cell(series) for series in figure.series}


def test_the_ids_are_those_of_the_catalogue() -> None:
    assert sorted(IDS) == sorted(f"he2023/{name}" for name in (*MAIN, *SUPPLEMENT, *NAMED))


@pytest.mark.parametrize("figure", FIGURES, ids=IDS)
def test_every_figure_builds_its_cells_and_shows_or_compares_every_series(figure: Figure) -> None:
    drawn = {series.name for panel in figure.panels for series in figure.drawn_in(panel)}
    compared = {series.name for claim in figure.claims for glob in claim.of for series in figure.named(glob)}
    assert drawn | compared == {series.name for series in figure.series}
    assert all(figure.drawn_in(panel) for panel in figure.panels)
    assert figure.claims and figure.cite.startswith("Hangfeng He and Weijie J. Su") and figure.source
    for cell in cells(figure).values():
        assert cell.data in (*DATA_NAMES, "sst2") and cell.preparation in PREPARATIONS
        assert cell.network in MODELS or cell.network.startswith("hf:")
        if cell.network.startswith("hf:"):
            assert cell.readings == ("eval",) and not figure.readings
        else:  # of convolutional networks the paper's own reading was not recorded
            wanted = (
                ("drawn", "mixed", "eval") if cell.network.startswith("fnn") and not cell.tf32 else ("mixed", "eval")
            )
            assert cell.readings == figure.readings == wanted
        assert isinstance(cell, Training)
    for panel in figure.panels:
        for text in filter(None, (panel.x, panel.y)):
            Query.of(text)
    assert {verdict.verdict for verdict in judge(gather(figure, (), scale="paper"))} == {"not run"}


@pytest.mark.parametrize("figure", FIGURES, ids=IDS)
def test_rates_are_those_of_the_papers(figure: Figure) -> None:
    """SGD and momentum 0.001 … 1 in seven steps, Adam 3e-5 … 3e-3 in five; BERT and the transfer at the cell's own."""
    steps = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
    assert {"sgd": steps, "momentum": steps, "adam": (3e-5, 1e-4, 3e-4, 1e-3, 3e-3)} == RATES
    for series in figure.series:
        cell = figure.cell(series)
        given = figure.choose == "given" or series.rates is not None
        assert figure.rates_of(series) == (series.rates or ((cell.rate,) if given else RATES[cell.optimizer]))
    trains_convolutions = any(not cell.network.startswith(("fnn", "hf:")) for cell in cells(figure).values())
    tried = figure.choose in ("short runs", "best two")
    assert tried == trains_convolutions == any(cell.tf32 for cell in cells(figure).values())
    assert figure.seeds == {"short runs": 1, "best two": 3}.get(figure.choose, 5)


def test_fig1_has_nine_panels_and_the_printed_numbers() -> None:
    grid = {(cell.optimizer, cell.depth) for cell in cells(FIG1).values() if not cell.coordinates}
    assert grid == {(name, depth) for name in ("sgd", "momentum", "adam") for depth in (4, 8, 20)}
    printed = {(row.series, row.quantity): row.value for row in FIG1.printed}
    # PNAS 2023, Fig. 1, its rows from SGD to Adam; the slides of 2024 for 8 layers
    rows = {"sgd": (-1.000, -0.998, -0.997), "momentum": (-0.999, -0.998, -0.998), "adam": (-1.000, -0.997, -0.999)}
    assert [printed[f"{name}-{depth}", "r"] for name in rows for depth in (4, 8, 20)] == [
        r for row in rows.values() for r in row
    ]
    assert printed["adam-20", "rho"] == 0.818 and printed["adam-20", "half_life"] == 3.45
    assert printed["adam-8", "rho"] == 0.53 and printed["adam-8", "half_life"] == 1.1
    (points,) = FIG1.named("points")
    assert FIG1.cell(points) == FIG1.cell(FIG1.named("adam-8")[0]).with_(coordinates=250)


def test_other_printed_numbers() -> None:
    assert [(row.quantity, row.value) for row in FIG2.printed] == [("r@epoch=100/600", -0.996)]
    printed = {(row.series, row.quantity): row.value for row in FIG9.printed}
    assert printed == {
        ("standard", "r"): -0.997, ("frozen", "r"): -0.971,
        ("standard", "loss"): 0.0021, ("frozen", "loss"): 0.0019,
        ("standard", "accuracy"): 1.0, ("frozen", "accuracy"): 1.0,
        ("standard", "accuracy_test"): 0.2385, ("frozen", "accuracy_test"): 0.1967,
    }  # fmt: skip
    assert all(row.rounding > 0 for row in (*FIG1.printed, *FIG2.printed))
    least = {claim.of[0].split("-")[0]: claim.value for claim in FIG5.claims if claim.rule == "least near"}
    assert least == {"mnist": 6, "fm": 10, "cifar": 12}


def test_sweeps_are_those_of_the_paper() -> None:
    depths: dict[str, list[int]] = {}
    for name, cell in cells(FIG5).items():
        assert cell.depth is not None
        depths.setdefault(name.split("-")[0], []).append(cell.depth)
    assert depths == {
        "mnist": [3, 4, 5, 6, 7, 8, 9, 10, 18],
        "fm": [3, 4, 5, 6, 7, 8, 9, 10, 11, 18],
        "cifar": [3, 4, 8, 9, 10, 11, 12, 13, 14, 18, 20],
    }
    widths = {name: cell.widths or (cell.width,) * 7 for name, cell in cells(FIG6).items()}
    assert widths["narrow-wide"] == (100,) * 4 + (1000,) * 3 and widths["wide-narrow"] == (1000,) * 4 + (100,) * 3
    assert widths["mixed"] == (100, 500, 500, 2500, 2500, 500, 500) and widths["width-20"] == (20,) * 7
    assert [cell.per_class for cell in cells(FIGS5).values()] == [100, 200, 500]
    imbalanced = [cell for name, cell in cells(FIG3).items() if name.startswith("imbalanced")]
    assert {(cell.sizes, cell.per_class) for cell in imbalanced} == {((500,) * 5 + (100,) * 5, None)}
    assert [cells(FIG3)[f"sgd-{rate}"].depth for rate in (0.01, 0.03, 0.1)] == [9, 9, 9]


def test_stages_are_those_of_the_paper() -> None:
    """Fig. 9: layers 1–10 for 900 epochs at a constant rate, then 11–20 for 600; S11 and transfer renew the top."""
    frozen = cells(FIG9)["frozen"]
    assert (frozen.kind, frozen.depth, frozen.first_epochs, frozen.first_trains, frozen.first_schedule) == (
        "staged",
        20,
        900,
        10,
        0,
    )
    assert (frozen.keep, frozen.epochs, frozen.renew, frozen.leaky) == (10, 600, False, False)
    assert cells(FIG9)["leaky"] == frozen.with_(leaky=True)
    assert cells(REACTIVATE) == {"frozen": frozen, "reactivated": frozen.with_(last_epochs=600)}
    assert cells(PROP1)["frozen"] == frozen.with_(noise=cells(PROP1)["standard"].noise, noise_draws=10)
    grafted = cells(FIGS11)["grafted"]
    assert (grafted.first_depth, grafted.depth, grafted.keep, grafted.renew) == (20, 15, 10, True)
    assert grafted.first_schedule == grafted.first_epochs == 600
    assert cells(FIGS11)["deep"] == cells(FIG1)["adam-20"]
    for series in TRANSFER.named("t-*"):
        cell = TRANSFER.cell(series)
        assert (cell.first_classes, cell.classes, cell.keep, cell.renew) == ((0, 1, 2, 3, 4), (5, 6, 7, 8, 9), 5, True)
        assert series.x == cell.first_epochs
    assert [series.x for series in TRANSFER.named("t-*")] == [0, 10, 30, 100, 300, 600]
    for series in TRANSFER.named("wide-*"):  # ours
        cell = TRANSFER.cell(series)
        assert (cell.first_depth, cell.depth, cell.keep, cell.renew) == (
            4,
            12,
            3,
            True,
        ) and series.x == cell.first_epochs
        assert (cell.first_classes, cell.classes) == (tuple(range(10)), (5, 6, 7, 8, 9))


def test_a_sentence_on_a_law_that_is_not_clear_is_quoted_for_no_more() -> None:
    """And one on a collection of networks for no single one of them."""
    assert {claim.rule for claim in FIGS10.claims if claim.quote} == {"at least"}
    assert {series for claim in FIGS10.claims if claim.quote for series in claim.of} == set(cells(FIGS10))
    assert {claim.rule for claim in FIGS10.claims if claim.ours} == {"no law"}
    every = [claim for figure in FIGURES for claim in figure.claims if "collection of network" in claim.quote]
    assert [claim.text for claim in every] == ["No law before training"]


def test_networks_without_parts() -> None:
    assert {name: (cell.norm, cell.init, cell.depth) for name, cell in cells(FIGS10).items()} == {
        "no-norm": (False, "", 20), "he-20": (False, "he", 20), "he-12": (False, "he", 12), "he-8": (False, "he", 8),
    }  # fmt: skip
    assert {name: cell.activation for name, cell in cells(LINEAR).items()} == {"linear": False, "relu": True}
    assert cells(LINEAR)["relu"] == cells(FIG1)["adam-20"]  # the same trainings, and so the same record
    *others, bert = cells(FIGS9).values()
    assert [other.of_paper for other in others] == [bert, bert]
    assert [other.network.rpartition("/")[2] for other in others] == ["all-MiniLM-L6-v2", "all-mpnet-base-v2"]
    assert (bert.data, bert.per_class, bert.reductions, bert.readings) == ("sst2", 500, ("first", "mean"), ("eval",))
    assert bert.network == "hf:google-bert/bert-base-cased" and FIGS9.smoke["network"] == "bert"
    assert cells(FIGS6)["adam-8"].class_wise


def test_epochs_of_the_emergence_are_shares_so_that_shorter_trainings_have_them() -> None:
    texts = [panel.y for panel in FIG2.panels]
    assert texts == [f"fuzziness@epoch={epoch}/600" for epoch in (0, 10, 20, 30, 50, 100, 200, 300, 600)]
    read = cells(FIG2)["adam-20"].read_epochs
    assert all(int(Query.of(text).ways["epoch"].split("/")[0]) in read for text in texts)


def test_smoke_never_changes_what_is_run_at_paper_scale() -> None:
    """`smoke` holds sizes and stand-ins only."""
    allowed = {"epochs", "per_class", "test_per_class", "width_multiplier", "network", "data", "seeds"}
    assert {name for figure in FIGURES for name in figure.smoke} <= allowed


# what a declaration cannot say


def declared(**changes: object) -> Figure:
    given: dict[str, object] = {
        "id": "x/y", "title": "", "source": "", "cite": "", "base": Cell(), "series": (Series("a", panel="D"),),
        "panels": (Panel("D"),),
    }  # fmt: skip
    return Figure(**{**given, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"series": (Series("a"), Series("a"))}, "names the series `a` twice"),
        ({"series": (Series("a", {"dept": 3}),)}, "A cell has no field `dept`. Did you mean `depth`"),
        ({"series": (Series("a", panel="E"),)}, "drawn in the panel `E`, which does not exist. There are D"),
        ({"claims": (Claim("", "law", ("b",)),)}, "Figure `x/y` has no series `b`."),
    ],
)
def test_a_wrong_declaration_is_one_sentence(changes: dict[str, object], words: str) -> None:
    with pytest.raises(InputError) as caught:
        declared(**changes)
    assert words in str(caught.value)


def test_an_unknown_rule_is_refused_with_near_matches() -> None:
    with pytest.raises(InputError, match=r"No rule `raising`. Did you mean `rising`"):
        Claim("", "raising", ("a",))  # type: ignore[arg-type]
