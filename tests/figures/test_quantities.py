"""Quantities: single numbers of an outcome by name, on curves whose numbers are known."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest

from equisep.errors import InputError
from equisep.figures import quantities
from equisep.figures.catalogue import all_figures
from equisep.figures.figure import Claim, Panel
from equisep.figures.judge import judge
from equisep.figures.outcome import Curves, Outcome
from equisep.figures.quantities import (
    CLAIMED,
    Column,
    Quantity,
    Query,
    curve,
    quantity,
    quantity_words,
    register,
    span_of,
    was_read,
)
from equisep.figures.rules import quantities_of
from equisep.report.figures.drawing.draw import draw_figure
from equisep.report.figures.markdown import figure_markdown
from figures.synthetic_figures import evidence, figure, law_curve, outcome

HALVED = tuple(64.0 * 0.5**site for site in range(7))
NCC = (0.2, 0.5, 0.992, 0.98, 1.0)


@pytest.fixture
def rich() -> Outcome:
    """Two epochs in two readings, three grains of what can be asked."""
    return Outcome(
        readings=(
            Curves(epoch=0, reading="mixed", fuzziness=law_curve(1.2)),
            Curves(epoch=0, reading="eval", fuzziness=law_curve(1.3)),
            Curves(
                epoch=600, reading="mixed", fuzziness=HALVED, ncc=NCC, ncc_test=(0.1, 0.2, 0.3, 0.4, 0.5),
                fuzziness_test=law_curve(0.8), class_fuzziness=(law_curve(0.5), law_curve(0.5, r=-0.98)),
                loss=0.5, accuracy=1.0, accuracy_test=0.8,
            ),
            Curves(epoch=600, reading="eval", fuzziness=law_curve(0.9)),
            Curves(epoch=600, reading="mixed", grain="blocks", fuzziness=law_curve(0.25)),
        ),
        numbers={"minority_cosine": 0.25, "nothing": None},
    )  # fmt: skip


def test_the_whole_network_is_read_in_use_where_it_was() -> None:
    ways = {"mixed": (0.7, 0.4, 0.9), "eval": (0.1, 1.0, 0.8)}
    both = Outcome(
        readings=tuple(
            Curves(epoch=epoch, reading=mode, loss=loss + epoch, accuracy=fit, accuracy_test=test)
            for epoch in (0, 10)
            for mode, (loss, fit, test) in ways.items()
        )
    )
    assert [quantity(both, name) for name in ("loss", "accuracy", "accuracy_test")] == [10.1, 1.0, 0.8]
    assert quantity(both, "loss@epoch=0") == 0.1 and quantity(both, "loss@reading=mixed,epoch=0") == 0.7
    assert [quantity(both, f"accuracy_test@reading={mode}") for mode in ways] == [0.9, 0.8]
    alone = Outcome(readings=both.readings[2:3])
    assert quantity(alone, "accuracy") == 0.4 and quantity(alone, "accuracy@reading=eval") is None


def test_what_was_read_before_training_diverged_is_not_its_end(rich: Outcome) -> None:
    before = Outcome(readings=rich.readings[:2], diverged=30)
    assert before.last_epoch is None and before.reading() is None
    for text in ("r", "rho@reading=eval", "last", "accuracy", "rho@epoch=0/600", "settled@site=1"):
        assert quantity(before, text) is None
    assert quantity(before, "rho@epoch=0") == pytest.approx(1.2)
    after = Outcome(readings=rich.readings, diverged=600)  # read at its end nevertheless
    assert after.last_epoch == 600 and quantity(after, "rho") == pytest.approx(0.5)
    assert Outcome().last_epoch is None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("r", -1.0),
        ("rho", 0.5),
        ("half_life", 1.0),
        ("imbalance", 1.0),
        ("max_residual", 0.0),
        ("last", 1.0),
        ("log_last", 0.0),
        ("first", 64.0),
        ("ratio", 1 / 64),
        ("rho@reading=eval", 0.9),
        ("rho@epoch=0", 1.2),
        ("rho@epoch=0,reading=eval", 1.3),
        ("rho@epoch=0/600", 1.2),
        ("rho@epoch=600/600", 0.5),
        ("rho@grain=blocks", 0.25),
        ("rho@of=fuzziness_test", 0.8),
        ("rho@from=3", 0.5),
        ("first@from=3", 8.0),
        ("r@class=1", -0.98),
        ("class_r", -0.99),
        ("fuzziness@site=2", 16.0),
        ("fuzziness", 1.0),
        ("ncc@site=1", 0.5),
        ("ncc_test@site=-2", 0.4),
        ("loss", 0.5),
        ("accuracy", 1.0),
        ("accuracy_test", 0.8),
        ("effective_depth", 2.0),  # the first above 99 %, though a later one is below
        ("load_gap", 0.0),
        ("load_difference", 0.0),
        ("center_gap@site=3", 0.4),
        ("prediction_gain@site=1", abs(1.0 - 0.8) - abs(0.5 - 0.8)),
        ("minority_cosine", 0.25),
    ],
)
def test_quantities(rich: Outcome, text: str, value: float) -> None:
    assert quantity(rich, text) == pytest.approx(value, abs=1e-9)
    assert was_read(rich, text)


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("rho@epoch=100", False),  # not read then
        ("rho@epoch=100/600", False),
        ("rho@reading=train", False),
        ("cdnv", False),  # a metric that was not asked for
        ("class_r@reading=eval", False),
        ("effective_depth@reading=eval", False),
        ("accuracy@reading=eval", False),
        ("ncc@site=9", True),  # read, but there is no such site
        ("r@class=7", False),
        ("nothing", True),  # asked for, and does not exist
        ("unheard_of", False),
    ],
)
def test_numbers_that_are_not_there(rich: Outcome, text: str, read: bool) -> None:
    assert quantity(rich, text) is None
    assert was_read(rich, text) is read


def test_nothing_was_read_of_an_empty_outcome() -> None:
    for text in ("r", "ncc", "accuracy", "settled@site=2", "class_r", "load_gap"):
        assert quantity(Outcome(), text) is None
        assert not was_read(Outcome(), text)


def test_a_curve_with_a_number_missing_has_no_law() -> None:
    broken = outcome((8.0, None, 2.0, 1.0))
    assert quantity(broken, "r") is None
    assert quantity(broken, "last") == 1.0
    assert quantity(outcome((8.0, math.inf, 2.0)), "rho") is None
    assert was_read(broken, "r")


def test_the_bend_is_above_one_where_there_are_two_slopes() -> None:
    bent = (*law_curve(0.9, sites=6), *(law_curve(0.9, sites=6)[-1] * 0.3**n for n in range(1, 6)))
    assert (quantity(outcome(bent), "bend") or 0.0) > 1
    wobble = tuple(value * (1.01 if site % 2 else 0.99) for site, value in enumerate(law_curve(0.5)))
    assert (quantity(outcome(wobble), "bend") or 0.0) < 1
    assert quantity(outcome(HALVED[:4]), "bend") is None  # too few sites to ask


def test_loads_above_and_below() -> None:
    """ln D falls by 1 a layer in three layers, then by 3 a layer in three."""
    logs = (0.0, -1.0, -2.0, -3.0, -6.0, -9.0, -12.0)
    made = outcome(tuple(math.exp(value) for value in logs))
    gap = quantity(made, "load_gap")
    assert gap is not None and gap > 0
    assert quantity(made, "load_gap@split=3") == pytest.approx(gap)
    falling = outcome(tuple(math.exp(value) for value in (0.0, -3.0, -6.0, -9.0, -10.0, -11.0, -12.0)))
    assert quantity(falling, "load_gap") == pytest.approx(-gap)
    assert quantity(falling, "load_difference") == pytest.approx(gap)


def test_when_a_ratio_settles() -> None:
    ratios = {0: 1.0, 10: 0.7, 20: 0.52, 30: 0.62, 40: 0.54, 50: 0.5}
    made = Outcome(
        readings=tuple(Curves(epoch=e, reading="mixed", fuzziness=(8.0, 8.0 * ratio)) for e, ratio in ratios.items())
    )
    assert (
        quantity(made, "law_epoch") == made.readings[-1].epoch
    )  # it never emerged: at the earliest then, and not nowhere
    assert quantity(made, "settled@site=1") == 40.0  # within 10 % of 0.5 at 20 too, but not from then on


def test_curves_by_name(rich: Outcome) -> None:
    assert curve(rich, "ncc") == NCC
    assert curve(rich, "fuzziness@from=5") == HALVED[5:]
    assert curve(rich, "fuzziness@reading=eval") == law_curve(0.9)
    assert curve(rich, "class_fuzziness@class=0") == law_curve(0.5)
    assert curve(rich, "ncc@epoch=3") == ()
    with pytest.raises(InputError, match=r"No curve `fuzzyness`. Did you mean `fuzziness`"):
        curve(rich, "fuzzyness")


@pytest.mark.parametrize("text", ["r@sight=3", "r@site", "r@"])
def test_a_way_that_does_not_exist_is_refused(text: str) -> None:
    if text.endswith("@"):
        assert Query.of(text).ways == {}
        return
    with pytest.raises(InputError, match=r"Write NAME@key=value,…"):
        Query.of(text)


def test_another_quantity_read_the_same_way() -> None:
    asked = Query.of("r@epoch=100,grain=blocks")
    assert asked.renamed("rho") == "rho@epoch=100,grain=blocks"
    assert asked.renamed("r", reading="eval") == "r@epoch=100,grain=blocks,reading=eval"
    assert Query.of("r").renamed("bend") == "bend"


def test_where_a_quantity_can_lie() -> None:
    assert span_of("r@epoch=3") == (-1.0, 1.0)
    assert span_of("half_life") == (0.0, math.inf)
    assert span_of("ncc_test@site=3") == (0.0, 1.0)
    assert span_of("bend") == (-math.inf, math.inf)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("r", "r"),
        ("rho", "ρ"),
        ("minority_cosine", "minority cosine"),
        ("rho@epoch=100/600", "ρ at epoch 100 of 600"),
        ("r@class=7", "r of class 7"),
        ("r@of=fuzziness_test", "r of D on test data"),
        ("ncc@reading=eval,site=4", "NCC accuracy in eval reading at site 4"),
        ("ncc@site=-1", "NCC accuracy at site −1 (the last)"),
        ("r;class_r", "r and mean r of the classes"),
        ("settled@site=1;settled@site=2;settled@site=3", "epoch of settling (at site 1 … 3)"),
        ("r@from=10", "r from site 10 on"),
    ],
)
def test_quantities_in_words(text: str, words: str) -> None:
    assert quantity_words(text) == words


def test_no_claim_of_the_catalogue_shows_its_syntax() -> None:
    for known in all_figures():
        for claim in known.claims:
            for text in (claim.quantity, *quantities_of(claim)):
                assert not {"@", ";", "=", "_"} & set(quantity_words(text)), (known.id, text)


@pytest.fixture
def toy() -> Iterator[str]:
    """A quantity declared in one place: the range of D over the sites."""

    def spread(outcome: Outcome, query: Query) -> float | None:
        known = [value for value in curve(outcome, query.renamed("fuzziness")) if value is not None]
        return max(known) - min(known) if known else None

    name = "toy_spread"
    register(
        Quantity(
            name,
            words="range of D",
            axis="greatest minus least D",
            column=Column("range", CLAIMED + 1),
            span=(0.0, math.inf),
            log=False,
            made_of="fuzziness",
            of=spread,
        )
    )
    yield name
    quantities._REGISTRY.pop(name)


def test_one_entry_is_all_that_a_new_quantity_takes(toy: str) -> None:
    """Judge, table and drawing know it, and a misspelling of it finds it."""
    made = figure(
        Claim("The range is wide", "at least", ("a",), toy, 20.0),
        names=("a",),
        panels=(Panel("all"), Panel("range", kind="epochs", y=toy, series=("a",))),
    )
    seen = evidence(made, {"a": [outcome(HALVED), outcome(HALVED[:3]), outcome(HALVED[4:])]})
    (verdict,) = judge(seen)
    assert verdict.reason.startswith("a: mean range of D = 38 [0, ")  # the interval is cut at the span
    assert verdict.verdict == "undecided" and quantity(seen.series["a"].chosen[0].outcome, toy) == 63.0
    assert "| range |" in figure_markdown(seen, [verdict]) and "| 38.00 |" in figure_markdown(seen, [verdict])
    axes = draw_figure(seen).axes[1]
    assert axes.get_ylabel() == "greatest minus least D" and axes.get_yscale() == "linear"
    slip = figure(Claim("A slip", "at least", ("a",), "toy_spred", 1.0))
    with pytest.raises(InputError, match="Did you mean `toy_spread`"):
        judge(evidence(slip, {"a": [outcome(HALVED)]}))


def test_a_quantity_of_the_library_cannot_be_replaced_and_names_are_words() -> None:
    with pytest.raises(InputError, match="`rho` is one of equisep's own"):
        register(Quantity("rho"))
    with pytest.raises(InputError, match="Use letters, digits and _"):
        register(Quantity("my quantity@"))
