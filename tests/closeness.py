"""One meaning of "close" for all tests: relative, by the precision of the numbers that came in, never absolute."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

TOLERANCES = {torch.float64: 1e-9, torch.float32: 1e-4, torch.float16: 1e-2, torch.bfloat16: 5e-2}


def relative_error(actual: Any, expected: Any) -> float:
    """The largest |actual − expected| / |expected|, infinite where zero was expected and not found."""
    a, e = (np.asarray(value, dtype=np.float64) for value in (actual, expected))
    assert a.shape == e.shape, f"shapes differ: {a.shape} and {e.shape}"
    gap = np.abs(a - e)
    with np.errstate(divide="ignore", invalid="ignore"):
        errors = np.where(gap == 0, 0.0, gap / np.abs(e))
    return float(errors.max(initial=0.0))


def close(actual: Any, expected: Any, *, dtype: torch.dtype = torch.float64, rtol: float | None = None) -> None:
    """Fail unless every number agrees to the tolerance of `dtype`, or to `rtol` where a requirement names one."""
    tolerance = TOLERANCES[dtype] if rtol is None else rtol
    error = relative_error(actual, expected)
    assert error <= tolerance, f"relative error {error:.3g} > {tolerance:.0e}: {actual} against {expected}"
