"""Where rising functions turn positive, many at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from equisep.shapes import Float64

BISECTIONS = 52  # as many as a number has bits
Values = Float64[np.ndarray, " l"]


def root(rising: Callable[[Values], Values], low: Values, high: Values) -> Values:
    """Where rising functions, one per data set, turn positive, by bisection: the upper end."""
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        above = rising(middle) > 0
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return high
