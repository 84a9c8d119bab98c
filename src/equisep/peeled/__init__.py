"""The Layer-Peeled model (Fang, He, Long & Su 2021): neural collapse explained, minority collapse predicted.

>>> from equisep import peeled
>>> peeled.solve(sizes=[500] * 5 + [50] * 5, feature_energy=5, weight_energy=1).geometry.within(1)
0.517...
>>> peeled.threshold(majority=5, minority=5, feature_energy=5, weight_energy=1)
12.192...
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from equisep.peeled.classes import ClassPrediction, State, predict_classes
from equisep.peeled.diagrams import CosineCurve, PhaseDiagram, cosine_curves, phase_by_energy, phase_by_share
from equisep.peeled.geometry import GroupGeometry
from equisep.peeled.long_tail import LongTail, long_tail, long_tail_sizes, tail_of_sizes
from equisep.peeled.problem import Problem
from equisep.peeled.rescue import GroupRescue, Rescue, rescue
from equisep.peeled.solution import Certificate, Factors, ReducedForm, Solution
from equisep.peeled.solve import problem_of, solve, solve_problem
from equisep.peeled.solvers.reduced import solve_general, solve_reduced
from equisep.peeled.solvers.reference import solve_reference
from equisep.peeled.thresholds import Thresholds, threshold, thresholds_of
from equisep.peeled.weight_decay import WeightDecayRescue, weight_decay_rescue, weight_decay_threshold

if TYPE_CHECKING:
    from equisep.peeled.solvers.etf import EtfComparison as EtfComparison
    from equisep.peeled.solvers.etf import compare_with_etf as compare_with_etf
    from equisep.peeled.solvers.nonconvex import solve_nonconvex as solve_nonconvex

# name → module; loaded on first use (PEP 562), since they import torch
_HOMES = {
    "EtfComparison": "solvers.etf",
    "compare_with_etf": "solvers.etf",
    "solve_nonconvex": "solvers.nonconvex",
}

__all__ = [
    "Certificate",
    "ClassPrediction",
    "CosineCurve",
    "EtfComparison",
    "Factors",
    "GroupGeometry",
    "GroupRescue",
    "LongTail",
    "PhaseDiagram",
    "Problem",
    "ReducedForm",
    "Rescue",
    "Solution",
    "State",
    "Thresholds",
    "WeightDecayRescue",
    "compare_with_etf",
    "cosine_curves",
    "long_tail",
    "long_tail_sizes",
    "phase_by_energy",
    "phase_by_share",
    "predict_classes",
    "problem_of",
    "rescue",
    "solve",
    "solve_general",
    "solve_nonconvex",
    "solve_problem",
    "solve_reduced",
    "solve_reference",
    "tail_of_sizes",
    "threshold",
    "thresholds_of",
    "weight_decay_rescue",
    "weight_decay_threshold",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'equisep.peeled' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"equisep.peeled.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
