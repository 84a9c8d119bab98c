"""Passes over features that lie on a GPU: each reads them once, as they came, and adds in float64."""

from equisep.separation.gpu.passes import (
    FEW_DIRECTIONS,
    LEAST_ROWS,
    SUMMED_ROWS,
    RunSpread,
    add_rows,
    few_fit,
    residual_products,
    residuals_of,
    spread_of,
)
from equisep.separation.gpu.runs import GroupRuns, installed, kernels_fit

__all__ = [
    "FEW_DIRECTIONS",
    "LEAST_ROWS",
    "SUMMED_ROWS",
    "GroupRuns",
    "RunSpread",
    "add_rows",
    "few_fit",
    "installed",
    "kernels_fit",
    "residual_products",
    "residuals_of",
    "spread_of",
]
