"""The page's section on a training: the law over its epochs, when things emerged, and whether it has settled."""

from __future__ import annotations

from typing import Any

from equisep.report.formatting import correlation, number, percent
from equisep.report.history_tables import EMERGED, damaged_words, emergence_words, law_rows
from equisep.report.page.markup import Cell, Head, Section, absent, definitions, figure, folded, paragraph, table
from equisep.results.records import LAW_R
from equisep.tracking.history import History

_PERCENT = ("ncc_train", "ncc_test", "accuracy_train", "accuracy_test")
_HEADS = {
    "rho": Head("rho", "ρ", "what each layer leaves of D"),
    "half_life": Head("half_life", "half-life", "layers until D has halved"),
    "r": Head("r", "r", "correlation of ln D with depth"),
    "verdict": Head("verdict", "verdict", "", "text"),
    "fuzziness_last": Head("fuzziness_last", "D, last layer"),
    "nc1": Head("nc1", "NC1, last layer"),
    "cdnv": Head("cdnv", "CDNV, last layer"),
    "ncc_train": Head("ncc_train", "NCC train %"),
    "ncc_test": Head("ncc_test", "NCC test %"),
    "effective_depth": Head("effective_depth", "effective depth"),
    "accuracy_train": Head("accuracy_train", "train %"),
    "accuracy_test": Head("accuracy_test", "test %"),
    "minority_cosine": Head("minority_cosine", "minority cosine", "between classifier rows of rare classes"),
}


def training_section(history: History, numbers: dict[str, Any] | None) -> Section:
    """The law over the epochs; `numbers` are those that are drawn."""
    unit, title = history.unit, "Over the training"
    if numbers is None:
        return Section("training", title, absent("No reading of this history has a profile: there is nothing to draw."))
    body = []
    left = len(history.read) - len(numbers["numbers"])
    if left:
        body.append(
            paragraph(
                f"Of {len(history.read):,} readings {len(numbers['numbers'])} are drawn, evenly spread.", "left-out"
            )
        )
    body.append(
        figure(
            "law-epochs",
            f"D against the layer, one line per {unit}, the latest darkest: move through the training to see how it changes.",
            label=f"D against the layer, {unit} by {unit}",
        )
    )
    body.append(
        figure(
            "epochs",
            f"The factor ρ per layer, the straightness r and accuracies over the training. r at or below −{-LAW_R:g} is a law.",
            label=f"ρ, r and accuracy against the {unit}",
        )
    )
    rows = [
        (EMERGED[what], f"{emergence_words(history, each)}. {each.rule}.") for what, each in history.emergence().items()
    ]
    settled = history.settled()
    rows.append(("Settled", settled.reason))
    body.append(definitions(rows, "facts"))
    failed = [entry for entry in history.entries if entry.failure is not None]
    if failed:
        body.append(
            absent(
                f"{len(failed)} of {len(history)} readings failed; the last ({unit} {failed[-1].number}): {failed[-1].failure}"
            )
        )
    if history.damaged:
        body.append(absent(damaged_words(history)))
    body.append(folded(_table(history)))
    return Section("training", title, "".join(body), "Training")


def _table(history: History) -> str:
    rows = law_rows(history)
    names = [name for name in _HEADS if any(row[name] is not None for row in rows)]
    heads = [Head(history.unit, history.unit), *(_HEADS[name] for name in names)]
    cells = [
        [Cell(row[history.unit], str(row[history.unit])), *(Cell(row[name], _text(name, row[name])) for name in names)]
        for row in rows
    ]
    return table(heads, cells, label=f"The law over the {history.unit}s", sortable=True, csv="training.csv")


def _text(name: str, value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    if name == "r":
        return correlation(value)
    if name in _PERCENT:
        return percent(value)
    return str(value) if isinstance(value, int) else number(value, 3)
