"""Quantities: every number that claims, tables and drawings can ask for by name, each declared once, here.

An entry says what a quantity is called in sentences, on an axis and at the head of a column, how its numbers are written,
where they can lie, and how they are made of an outcome. See `equisep.figures.query` for the way one is asked for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from equisep.errors import InputError
from equisep.figures import curve_numbers as numbers
from equisep.figures import stopping
from equisep.figures.curve_numbers import FITTED, at_site, law_of
from equisep.figures.outcome import Curve, Curves, Outcome
from equisep.figures.query import BY_CLASS, WAYS, Query, curve, curve_of, reading_of
from equisep.results.wording import AXES

__all__ = [
    "CLAIMED",
    "FITTED",
    "NEVER",
    "WAYS",
    "Column",
    "Quantity",
    "Query",
    "axis_label",
    "curve",
    "depends_on_reading",
    "entry_of",
    "known_quantities",
    "law_of",
    "quantity",
    "quantity_words",
    "register",
    "span_of",
    "standard_quantities",
    "was_read",
]  # fmt: skip

Make = Callable[[Outcome, Query], float | None]
Style = Literal["number", "correlation", "share"]  # to four digits; to as many as show how far from ±1; in percent
_EVERYWHERE = (-math.inf, math.inf)
_POSITIVE, _SHARE = (0.0, math.inf), (0.0, 1.0)


@dataclass(frozen=True, slots=True)
class Column:
    """A quantity in the table of series: its heading, and when it leaves a narrow terminal (`NEVER`: it stays).

    The lowest leave first; the numbers of single claims, which are told above the table, leave at `CLAIMED`.
    """

    title: str
    leaves: float


CLAIMED, NEVER = 5.0, math.inf


@dataclass(frozen=True, slots=True)
class Quantity:
    """One number by name.

    words       in sentences and headings; by default its name. `axis`: as the label of an axis; by default its words.
    column      where every series of a figure shows it, claims or none.
    style       how a number of it is written. `span`: between which numbers it lies, so that intervals are cut there.
    log         whether a panel may draw it on a logarithmic axis.
    made_of     the curve of a reading that it needs; a run without that curve was not asked for it.
    of          makes it of an outcome; without, it is a number that outcomes hold under its name.
    course      whether it is of the course of a training, which is read in one way.
    """

    name: str
    words: str = ""
    axis: str = ""
    column: Column | None = None
    style: Style = "number"
    span: tuple[float, float] = _EVERYWHERE
    log: bool = True
    made_of: str = ""
    of: Make | None = None
    course: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "words", self.words or self.name.replace("_", " "))
        object.__setattr__(self, "axis", self.axis or self.words)


def quantity(outcome: Outcome, text: str) -> float | None:
    """The number that `text` names; None where it does not exist, as after a divergence."""
    if text in outcome.numbers:  # under its whole text, as `r@reading=drawn` of a training whose curves were not kept
        return outcome.numbers[text]
    query = Query.of(text)
    if query.name in outcome.numbers:
        return outcome.numbers[query.name]
    entry = _REGISTRY.get(query.name)
    return None if entry is None or entry.of is None else entry.of(outcome, query)


def was_read(outcome: Outcome, text: str) -> bool:
    """Whether `text` names something that was asked of this cell, be it that no such number exists."""
    query = Query.of(text)
    if {text, query.name} & outcome.numbers.keys() or quantity(outcome, text) is not None:
        return True
    entry = entry_of(query.name)
    name = query.ways.get("of", entry.made_of) if entry.made_of == "fuzziness" else entry.made_of
    return bool(name) and bool(curve(outcome, query.renamed(name, **({"class": "0"} if name == BY_CLASS else {}))))


def depends_on_reading(text: str) -> bool:
    """Whether `text` names a number of features, which each reading has its own of, and does not say of which."""
    query = Query.of(text)
    entry = entry_of(query.name)
    return bool(entry.made_of) and not entry.course and "reading" not in query.ways


def entry_of(name: str) -> Quantity:
    """What is known of a quantity; of a number that an outcome brings under a name of its own, nothing but that name."""
    return _REGISTRY.get(name) or Quantity(name)


def register(entry: Quantity) -> Quantity:
    """Make a quantity known: claims, tables and drawings then have it. One of the library's own cannot be replaced."""
    if not entry.name.isidentifier():
        raise InputError(
            f"A quantity was named `{entry.name}`. Use letters, digits and _: claims write NAME@key=value."
        )
    if entry.name in _BUILT_IN:
        raise InputError(f"The quantity `{entry.name}` is one of equisep's own. Give yours another name.")
    _REGISTRY[entry.name] = entry
    return entry


def known_quantities() -> tuple[str, ...]:
    """The names of all quantities."""
    return tuple(_REGISTRY)


def standard_quantities() -> tuple[Quantity, ...]:
    """Those that every series shows, in the order of their columns."""
    return tuple(entry for entry in _REGISTRY.values() if entry.column is not None)


def span_of(text: str) -> tuple[float, float]:
    """Between which numbers a quantity lies."""
    return entry_of(Query.of(text).name).span


def axis_label(name: str) -> str:
    """A quantity as the label of an axis."""
    return entry_of(name).axis


_WAY_WORDS = {
    "epoch": "at epoch {}",
    "reading": "in {} reading",
    "grain": "by {}",
    "reduction": "with `{}`",
    "weighting": "weighed by {}",
    "site": "at site {}",
    "from": "from site {} on",
    "of": "of {}",
    "class": "of class {}",
    "split": "cut at site {}",
}


def quantity_words(text: str) -> str:
    """`rho@epoch=100/600` is `ρ at epoch 100 of 600`; of several between `;` that differ in one way, the first and the last."""
    each = [Query.of(part) for part in text.split(";")]
    first, last = each[0], each[-1]
    apart = [key for key in first.ways if first.ways[key] != last.ways.get(key)]
    if len(each) > 2 and len(apart) == 1 and len({(one.name, tuple(one.ways)) for one in each}) == 1:
        way = apart[0]
        return f"{entry_of(first.name).words} ({' '.join(_way_words(first))} … {_way_value(way, last.ways[way])})"
    return " and ".join(" ".join((entry_of(one.name).words, *_way_words(one))) for one in each)


def _way_words(query: Query) -> list[str]:
    return [_WAY_WORDS[key].format(_way_value(key, value)) for key, value in query.ways.items()]


def _way_value(key: str, value: str) -> str:
    if key == "epoch":
        return value.replace("/", " of ")
    if key == "of":
        return entry_of(value).words
    return {"-1": "−1 (the last)"}.get(value, value) if key == "site" else value


def _of_curve(make: Callable[[Curve], float | None]) -> Make:
    """A number of one curve: of D, unless the query says of which."""

    def find(outcome: Outcome, query: Query) -> float | None:
        reading = reading_of(outcome, query)
        return None if reading is None else make(curve_of(reading, query.ways.get("of", "fuzziness"), query))

    return find


def _of_law(name: str) -> Make:
    def find(values: Curve) -> float | None:
        law = law_of(values)
        return None if law is None else getattr(law, name)

    return _of_curve(find)


def _of_reading(make: Callable[[Curves, Query], float | None]) -> Make:
    """A number that takes more than one curve of a reading."""

    def find(outcome: Outcome, query: Query) -> float | None:
        reading = reading_of(outcome, query)
        return None if reading is None else make(reading, query)

    return find


def _of_site(outcome: Outcome, query: Query) -> float | None:
    """A metric at one site."""
    return at_site(curve(outcome, query.renamed(query.name)), query.number("site", -1))


def _of_network(outcome: Outcome, query: Query) -> float | None:
    """A number of the whole network: in eval reading where it was read, unless another is asked for.

    Answers of a network in mixed reading depend on the company of a sample, so that test accuracy does on the shares of classes.
    """
    if (reading := reading_of(outcome, query)) is None:
        return None
    both = (reading_of(outcome, query, reading="eval"), reading)
    values = (getattr(each, query.name) for each in both if each is not None)
    return next((float(value) for value in values if value is not None), None)


def _complement(share: float | None) -> float | None:
    return None if share is None else 1.0 - share


def _load_difference(reading: Curves, query: Query) -> float | None:
    gap = numbers.load_gap(reading, query.number("split", 0))
    return None if gap is None else abs(gap)


def _at(make: Callable[[Curves, int], float | None]) -> Make:
    return _of_reading(lambda reading, query: make(reading, query.number("site", -1)))


def _of_stop(name: str, words: str, make: Callable[[Outcome, str], float | None], rule: str) -> Quantity:
    """A number of one rule that stops a training."""
    return Quantity(
        name, words, log=False, made_of="fuzziness", of=lambda outcome, query: make(outcome, rule), course=True
    )


_D = "fuzziness"
_BUILT_IN: Mapping[str, Quantity] = {entry.name: entry for entry in (
    # those with a column first, in their order there
    Quantity("r", axis="correlation r", column=Column("r", NEVER), style="correlation", span=(-1.0, 1.0), log=False,
             made_of=_D, of=_of_law("r")),
    Quantity("rho", "ρ", "decay ratio ρ", Column("ρ", NEVER), span=_POSITIVE, log=False, made_of=_D, of=_of_law("rho")),
    Quantity("half_life", "half-life", "half-life (layers)", Column("half-life\nlayers", 4), span=_POSITIVE, log=False,
             made_of=_D, of=_of_law("half_life")),
    Quantity("last", "final D", "D of the last layer", Column("last D", 7), made_of=_D,
             of=_of_curve(lambda values: at_site(values, -1))),
    Quantity("accuracy", "training accuracy", column=Column("train %", 9), style="share", span=_SHARE, log=False,
             of=_of_network),
    Quantity("accuracy_test", "test accuracy", column=Column("test %", 8), style="share", span=_SHARE, log=False,
             of=_of_network),
    Quantity("max_residual", "greatest residual", "greatest residual of ln D", Column("max\nresidual", 1), made_of=_D,
             of=_of_law("max_residual")),
    Quantity("bend", "bend", "bend, over its 5 % limit", Column("bend", 3), log=False, made_of=_D,
             of=_of_curve(numbers.bend)),
    Quantity("imbalance", "imbalance factor", column=Column("imbalance", 2), made_of=_D, of=_of_law("imbalance")),
    # of the curve of D
    Quantity("log_last", "ln of the final D", "ln D at the last site", log=False, made_of=_D, of=_of_curve(numbers.log_last)),
    Quantity("first", "D at the input", made_of=_D, of=_of_curve(lambda values: at_site(values, 0))),
    Quantity("ratio", "final D over D at the input", "$D_{L-1}/D_0$", made_of=_D, of=_of_curve(numbers.whole_ratio)),
    Quantity("load_gap", axis="upper minus lower load, over the mean", log=False, made_of=_D,
             of=_of_reading(lambda reading, query: numbers.load_gap(reading, query.number("split", 0)))),
    Quantity("load_difference", "load gap, in size,", "load gap, in size", made_of=_D, of=_of_reading(_load_difference)),
    Quantity("settled", "epoch of settling", made_of=_D,
             of=lambda outcome, query: numbers.settled(outcome, query.number("site", 1), query.ways.get("reading"))),
    Quantity("law_epoch", "epoch of those read at which the law emerged (the last where it did not)", made_of=_D,
             of=lambda outcome, query: numbers.law_epoch(outcome, query.ways.get("reading"))),
    # metrics of one site, which are curves over all of them too
    Quantity("fuzziness", "D", AXES["fuzziness"], made_of=_D, of=_of_site),
    Quantity("chance", "D under random labels", AXES["chance"], made_of="chance", of=_of_site),
    Quantity("of_chance", "D over its chance level", made_of="chance", of=_at(numbers.of_chance)),
    Quantity("fuzziness_test", "D on test data", AXES["fuzziness_test"], made_of="fuzziness_test", of=_of_site),
    Quantity("cdnv", AXES["cdnv"], made_of="cdnv", of=_of_site),
    Quantity("cdnv_test", AXES["cdnv_test"], made_of="cdnv_test", of=_of_site),
    Quantity("ncc", "NCC accuracy", AXES["ncc"], style="share", span=_SHARE, log=False, made_of="ncc",
             of=_of_site),
    Quantity("ncc_test", "NCC accuracy on test data", AXES["ncc_test"], style="share",
             span=_SHARE, log=False, made_of="ncc_test", of=_of_site),
    Quantity("ncc_error", "NCC error", "samples nearer to another class center", style="share", span=_SHARE, made_of="ncc",
             of=lambda outcome, query: _complement(_of_site(outcome, Query("ncc", query.ways)))),
    # of several curves, and of the whole network
    Quantity("class_r", "mean r of the classes", made_of=BY_CLASS,
             of=_of_reading(lambda reading, query: numbers.class_r(reading))),
    Quantity("effective_depth", log=False, made_of="ncc", of=_of_reading(lambda reading, query: numbers.least_depth(reading))),
    Quantity("center_gap", made_of="ncc_test", of=_at(numbers.center_gap)),
    Quantity("prediction_gain", made_of="ncc", of=_at(numbers.prediction_gain)),
    Quantity("loss", "training loss", of=_of_network),
    # curves that panels draw
    Quantity(BY_CLASS, "D by class", AXES[BY_CLASS]),
    Quantity("ratios", "D over D of the layer before", "$D_l/D_{l-1}$"),
    # numbers of outcomes under their own names: of any training; of noisy weights; of a classifier; of solved problems
    Quantity("final_loss", "training loss at the end"),
    Quantity("change", "change of R under noise"),
    Quantity("change_matched", "change of R under noise relative to the smallest possible one"),
    *(Quantity(f"{which}_accuracy_test", style="share", span=_SHARE) for which in ("minority", "majority", "balanced")),
    Quantity("minority_lost_test", "minority test samples taken for a majority class", style="share", span=_SHARE, log=False),
    Quantity("minority_told_apart_test", "minority test samples told apart among minority classes", style="share", span=_SHARE,
             log=False),
    Quantity("minority_one_answer_test", "share of the minority class named most often among minority classes", style="share",
             span=_SHARE, log=False),
    Quantity("accuracy_gap_test", "best less worst test accuracy of a class", style="share", span=_SHARE, log=False),
    # of a second sample: see `equisep.runs.runners.second_sample`
    Quantity("second_error", "error on the second sample", span=_SHARE, log=False),
    Quantity("own_error", "share of own labels that are not the true ones", span=_SHARE, log=False),
    Quantity("own_balance", "distance of own class shares from equal ones", log=False),
    Quantity("own_separated", "share separated under own labels", span=_SHARE, log=False),
    *map(Quantity, ("own_depth", "relabeled", "relabeled_balance")),
    # of two layers: see `equisep.runs.runners.peeled`
    Quantity("collapse_advantage", "share of the loss of neural collapse that is saved", log=False),
    Quantity("logit_rank", "rank of the logits", log=False),
    Quantity("collapse_value", "loss of neural collapse"),
    *map(Quantity, (
        "balance", "minority_cosine", "majority_cosine", "minority_mean_cosine", "minority_margin", "minority_margin_test",
        "energy",
        "rarest_weight", "value", "gap", "relative_gap", "stationarity", "value_error", "cosine_error",
        "duality_error", "proven", "etf_value", "etf_advantage", "least_cosine", "largest_cosine", "cosine_spread",
        "duality", "norm_error", "collapse_distance", "collapsed", "threshold", "vanishing", "first_cosine",
        "first_cosine_error", "least_rise", "open_gap", "collapsed_error", "collapsed_distance", "limit_distance",
        "mean_gap",
    )),
    # of the course of a training: when things emerged, and what rules that stop it save and cost
    Quantity("law_emerged", "epoch at which the law emerged", "epoch of the law", log=False, made_of=_D,
             of=lambda outcome, query: stopping.emergence_epoch(outcome, "law"), course=True),
    Quantity("collapse_emerged", "epoch at which neural collapse emerged", "epoch of neural collapse", log=False, made_of=_D,
             of=lambda outcome, query: stopping.emergence_epoch(outcome, "collapse"), course=True),
    Quantity("minority_emerged", "epoch at which minority collapse emerged", "epoch of minority collapse", log=False,
             made_of=_D, of=lambda outcome, query: stopping.emergence_epoch(outcome, "minority"), course=True),
    Quantity("collapse_after", "epochs from the law to neural collapse, at least", log=False, made_of=_D,
             of=lambda outcome, query: stopping.after_law(outcome, "collapse"), course=True),
    Quantity("minority_after", "epochs from the law to minority collapse, at least", log=False, made_of=_D,
             of=lambda outcome, query: stopping.after_law(outcome, "minority"), course=True),
    Quantity("minority_cosine_gain", "rise of the minority cosine during training", log=False, made_of=_D,
             of=lambda outcome, query: stopping.cosine_gain(outcome), course=True),
    Quantity("law_ahead", "epochs from the law to the stop by law settled", log=False, made_of=_D,
             of=lambda outcome, query: stopping.law_ahead(outcome), course=True),
    Quantity("collapse_lag", "epochs from the law to neural collapse", log=False, made_of=_D,
             of=lambda outcome, query: stopping.collapse_lag(outcome), course=True),
    Quantity("fitted_epoch", "epoch of 99 % training accuracy", log=False, made_of=_D,
             of=lambda outcome, query: stopping.fitted_epoch(outcome), course=True),
    Quantity("test_settled", "epoch from which test accuracy stays", log=False, made_of=_D,
             of=lambda outcome, query: stopping.test_settled_epoch(outcome), course=True),
    *(_of_stop(f"stop_{rule}", f"epochs trained by {label}", stopping.trained_epochs, rule)
      for rule, (label, _) in stopping.RULES.items()),
    *(_of_stop(f"saved_{rule}", f"share of epochs saved by {label}", stopping.saved_share, rule)
      for rule, (label, _) in stopping.RULES.items()),
    *(_of_stop(f"lost_{rule}", f"points of test accuracy lost by {label}", stopping.points_lost, rule)
      for rule, (label, _) in stopping.RULES.items()),
    *(_of_stop(f"behind_{rule}", f"points of test accuracy of {stopping.RULES[rule][0]} behind {stopping.RULES[usual][0]}",
               stopping.points_behind, rule)
      for rule, usual in stopping.USUAL.items()),
)}  # fmt: skip
_REGISTRY: dict[str, Quantity] = dict(_BUILT_IN)
