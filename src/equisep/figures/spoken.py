"""Quantities in words: `rho@epoch=100/600` is `ρ at epoch 100 of 600`, for reasons and headings that people read."""

from __future__ import annotations

from equisep.figures.quantities import Quantity

_NAMES = {
    "rho": "ρ",
    "half_life": "half-life",
    "last": "final D",
    "log_last": "ln of the final D",
    "first": "D at the input",
    "ratio": "final D over D at the input",
    "bend": "BIC gain of two slopes",
    "imbalance": "imbalance factor",
    "max_residual": "greatest residual",
    "loss": "training loss",
    "accuracy": "training accuracy",
    "accuracy_test": "test accuracy",
    "cdnv": "CDNV",
    "cdnv_test": "CDNV on test data",
    "ncc": "NCC accuracy",
    "ncc_test": "NCC accuracy on test data",
    "fuzziness": "D",
    "fuzziness_test": "D on test data",
    "class_r": "mean r of the classes",
    "settled": "epoch of settling",
    "change": "change of R under noise",
    "change_matched": "change of R under noise, over its least,",
    "load_difference": "load gap, in size,",
    "final_loss": "training loss at the end",
}
_WAYS = {
    "epoch": "at epoch {}",
    "mode": "in {} mode",
    "grain": "by {}",
    "reduction": "with `{}`",
    "weighting": "weighed by {}",
    "site": "at site {}",
    "from": "from site {} on",
    "of": "of {}",
    "class": "of class {}",
    "split": "cut at site {}",
}


def spoken(text: str) -> str:
    """A quantity in words; of several between `;` that differ in one place, the first and the last."""
    each = [Quantity.of(part) for part in text.split(";")]
    first, last = each[0], each[-1]
    apart = [key for key in first.ways if first.ways[key] != last.ways.get(key)]
    if len(each) > 2 and len(apart) == 1 and len({(one.name, tuple(one.ways)) for one in each}) == 1:
        return f"{_name(first)} ({' '.join(_ways(first))} … {_value(apart[0], last.ways[apart[0]])})"
    return " and ".join(_said(one) for one in each)


def _said(asked: Quantity) -> str:
    return " ".join((_name(asked), *_ways(asked)))


def _name(asked: Quantity) -> str:
    return _NAMES.get(asked.name, asked.name.replace("_", " "))


def _ways(asked: Quantity) -> list[str]:
    return [_WAYS[key].format(_value(key, value)) for key, value in asked.ways.items()]


def _value(key: str, value: str) -> str:
    if key == "epoch":
        return value.replace("/", " of ")
    if key == "of":
        return _NAMES.get(value, value)
    return {"-1": "−1 (the last)"}.get(value, value) if key == "site" else value
