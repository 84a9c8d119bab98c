"""What the numbers of a Layer-Peeled problem may be, and the sentence for each that may not."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Mapping, Set
from typing import TYPE_CHECKING, Any

import numpy as np

from equisep.errors import InputError

ROUNDING = 1e-9  # of a count that was computed, 1000 · 0.7² say

if TYPE_CHECKING:
    Numbers = Iterable[Any]
    Number = float
    Whole = int
else:
    Numbers = Number = Whole = Any  # so that what is no number reaches the sentences below, whoever checks types


def checked_energy(value: Any, name: str) -> float:
    """An energy (E_H or E_W): a finite number above 0."""
    return checked_positive(value, f"`{name}`", "Pass the mean squared norm that is allowed, 5 say.")


def checked_positive(value: Any, what: str, advice: str) -> float:
    """A finite number above 0, or an `InputError` that names `what` it should have been."""
    number = _real(value)
    if number is None or not math.isfinite(number) or number <= 0:
        raise InputError(f"{what} must be a finite number above 0; found {_shown(value)}. {advice}")
    return number


def checked_ratio(value: Any) -> float:
    """An imbalance ratio R: above 0, and `inf` where the minority is absent from the loss."""
    number = _real(value)
    if number is None or math.isnan(number) or number <= 0:
        raise InputError(
            f"The imbalance ratio must be above 0; found {_shown(value)}. "
            "Pass majority over minority class size, or inf to leave the minority out of the loss."
        )
    return number


def checked_count(value: Any, what: str, advice: str) -> int:
    """A whole number, 1 or more; 500.0 counts as whole and so does 499.99999999999994, 2.5 and `True` do not."""
    number = _real(value)
    whole = round(number) if number is not None and math.isfinite(number) else 0
    if number is None or whole < 1 or abs(number - whole) > ROUNDING * whole:
        raise InputError(f"{what} must be a whole number, 1 or more; found {_shown(value)}. {advice}")
    return int(value) if number == whole else whole


def checked_list(values: Any, what: str, advice: str) -> list[Any]:
    """The entries of a list that is not empty."""
    no_list = isinstance(values, str | bytes | Mapping | Set) or not isinstance(values, Iterable)
    if no_list or getattr(values, "ndim", 1) == 0:  # an array of no dimension says that it can be iterated
        raise InputError(f"{what} must be a list of numbers; found {_shown(values)}. {advice}")
    entries = list(values)
    if not entries:
        raise InputError(f"{what} must not be empty; found no entry. {advice}")
    return entries


def checked_sizes(sizes: Any) -> tuple[int, ...]:
    """Class sizes n_k, one a class."""
    advice = "Pass the number of samples of each class, [500, 500, 50] say."
    entries = checked_list(sizes, "Class sizes", advice)
    return tuple(checked_count(size, f"The size of class {place}", advice) for place, size in enumerate(entries))


def checked_weights(weights: Any, what: str, one: str, *, count: int | None = None) -> tuple[float, ...]:
    """Weights above 0, `count` of them where that is known; `one` names one of them in the sentence."""
    advice = "Pass one weight above 0 for each."
    entries = checked_list(weights, what, advice)
    if count is not None and len(entries) != count:
        raise InputError(f"{what} must be {count} numbers, one for each; found {len(entries)}. {advice}")
    return tuple(checked_positive(entry, f"{one} {place}", advice) for place, entry in enumerate(entries))


def checked_class_count(classes: int) -> None:
    """A classifier has at least two classes."""
    if classes < 2:
        raise InputError(
            f"A Layer-Peeled problem needs at least 2 classes; found {classes}. Pass the sizes of all classes."
        )


def _real(value: Any) -> float | None:
    """The value as a float, or `None` for what is no real number: text, booleans, complex numbers, arrays."""
    if isinstance(value, bool | np.bool_ | str | bytes) or np.ndim(value) > 0:
        return None
    if isinstance(value, numbers.Complex) and not isinstance(value, numbers.Real):
        return None
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError, RuntimeError):
        return None


def _shown(value: Any) -> str:
    text = repr(value) if isinstance(value, str | bytes) or value is None else " ".join(str(value).split())
    return text if len(text) <= 40 else f"{text[:37]}…"
