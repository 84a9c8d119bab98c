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

if TYPE_CHECKING:
    from equisep.peeled.comparison import NetworkComparison as NetworkComparison
    from equisep.peeled.diagrams import CosineCurve as CosineCurve
    from equisep.peeled.diagrams import PhaseDiagram as PhaseDiagram
    from equisep.peeled.diagrams import cosine_curves as cosine_curves
    from equisep.peeled.diagrams import phase_by_energy as phase_by_energy
    from equisep.peeled.diagrams import phase_by_share as phase_by_share
    from equisep.peeled.etf import EtfComparison as EtfComparison
    from equisep.peeled.etf import compare_with_etf as compare_with_etf
    from equisep.peeled.general import solve_general as solve_general
    from equisep.peeled.network import compare_geometry as compare_geometry
    from equisep.peeled.network import compare_network as compare_network
    from equisep.peeled.nonconvex import solve_nonconvex as solve_nonconvex
    from equisep.peeled.prediction import ClassPrediction as ClassPrediction
    from equisep.peeled.prediction import predict_classes as predict_classes
    from equisep.peeled.problem import Problem as Problem
    from equisep.peeled.recover import GroupGeometry as GroupGeometry
    from equisep.peeled.reduced import solve_reduced as solve_reduced
    from equisep.peeled.reference import solve_reference as solve_reference
    from equisep.peeled.saving import Fate as Fate
    from equisep.peeled.saving import Fates as Fates
    from equisep.peeled.saving import fates as fates
    from equisep.peeled.solution import Certificate as Certificate
    from equisep.peeled.solution import Factors as Factors
    from equisep.peeled.solution import ReducedForm as ReducedForm
    from equisep.peeled.solution import Solution as Solution
    from equisep.peeled.solving import problem_of as problem_of
    from equisep.peeled.solving import solve as solve
    from equisep.peeled.solving import solve_problem as solve_problem
    from equisep.peeled.tails import LongTail as LongTail
    from equisep.peeled.tails import long_tail as long_tail
    from equisep.peeled.tails import long_tail_sizes as long_tail_sizes
    from equisep.peeled.thresholds import Thresholds as Thresholds
    from equisep.peeled.thresholds import threshold as threshold
    from equisep.peeled.thresholds import thresholds_of as thresholds_of
    from equisep.peeled.weight_decay import WeightDecayFate as WeightDecayFate
    from equisep.peeled.weight_decay import weight_decay_fates as weight_decay_fates
    from equisep.peeled.weight_decay import weight_decay_threshold as weight_decay_threshold

# name → module; loaded on first use (PEP 562), so that this package imports neither torch nor cvxpy before they are needed
_HOMES = {
    "Certificate": "solution",
    "ClassPrediction": "prediction",
    "CosineCurve": "diagrams",
    "EtfComparison": "etf",
    "Factors": "solution",
    "Fate": "saving",
    "Fates": "saving",
    "GroupGeometry": "recover",
    "LongTail": "tails",
    "NetworkComparison": "comparison",
    "PhaseDiagram": "diagrams",
    "Problem": "problem",
    "ReducedForm": "solution",
    "Solution": "solution",
    "Thresholds": "thresholds",
    "WeightDecayFate": "weight_decay",
    "compare_geometry": "network",
    "compare_network": "network",
    "compare_with_etf": "etf",
    "cosine_curves": "diagrams",
    "fates": "saving",
    "long_tail": "tails",
    "long_tail_sizes": "tails",
    "phase_by_energy": "diagrams",
    "phase_by_share": "diagrams",
    "predict_classes": "prediction",
    "problem_of": "solving",
    "solve": "solving",
    "solve_general": "general",
    "solve_nonconvex": "nonconvex",
    "solve_problem": "solving",
    "solve_reduced": "reduced",
    "solve_reference": "reference",
    "threshold": "thresholds",
    "thresholds_of": "thresholds",
    "weight_decay_fates": "weight_decay",
    "weight_decay_threshold": "weight_decay",
}

__all__ = [
    "Certificate",
    "ClassPrediction",
    "CosineCurve",
    "EtfComparison",
    "Factors",
    "Fate",
    "Fates",
    "GroupGeometry",
    "LongTail",
    "NetworkComparison",
    "PhaseDiagram",
    "Problem",
    "ReducedForm",
    "Solution",
    "Thresholds",
    "WeightDecayFate",
    "compare_geometry",
    "compare_network",
    "compare_with_etf",
    "cosine_curves",
    "fates",
    "long_tail",
    "long_tail_sizes",
    "phase_by_energy",
    "phase_by_share",
    "predict_classes",
    "problem_of",
    "solve",
    "solve_general",
    "solve_nonconvex",
    "solve_problem",
    "solve_reduced",
    "solve_reference",
    "threshold",
    "thresholds_of",
    "weight_decay_fates",
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
