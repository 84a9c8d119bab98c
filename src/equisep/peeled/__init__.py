"""The Layer-Peeled model (Fang, He, Long & Su 2021): neural collapse explained, minority collapse predicted.

>>> from equisep import peeled
>>> f"{peeled.solve(sizes=[500] * 5 + [50] * 5).geometry.within(1):.4f}"
'0.5175'
>>> f"{peeled.threshold(majority=5, minority=5):.4f}"
'12.1924'
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from equisep.faces import on_demand
from equisep.peeled.classes import ClassPrediction as ClassPrediction
from equisep.peeled.classes import State as State
from equisep.peeled.classes import predict_classes as predict_classes
from equisep.peeled.diagrams import CosineCurve as CosineCurve
from equisep.peeled.diagrams import PhaseDiagram as PhaseDiagram
from equisep.peeled.diagrams import cosine_curves as cosine_curves
from equisep.peeled.diagrams import phase_by_energy as phase_by_energy
from equisep.peeled.diagrams import phase_by_share as phase_by_share
from equisep.peeled.floor import Floor as Floor
from equisep.peeled.floor import Lift as Lift
from equisep.peeled.floor import floor_of as floor_of
from equisep.peeled.geometry import GroupGeometry as GroupGeometry
from equisep.peeled.long_tail import LongTail as LongTail
from equisep.peeled.long_tail import long_tail as long_tail
from equisep.peeled.long_tail import long_tail_sizes as long_tail_sizes
from equisep.peeled.long_tail import tail_of_sizes as tail_of_sizes
from equisep.peeled.problem import Problem as Problem
from equisep.peeled.rescue import GroupRescue as GroupRescue
from equisep.peeled.rescue import Rescue as Rescue
from equisep.peeled.rescue import rescue as rescue
from equisep.peeled.sign_simplex import sign_simplex as sign_simplex
from equisep.peeled.sign_simplex import sign_simplex_exists as sign_simplex_exists
from equisep.peeled.solution import Certificate as Certificate
from equisep.peeled.solution import Factors as Factors
from equisep.peeled.solution import ReducedForm as ReducedForm
from equisep.peeled.solution import Result as Result
from equisep.peeled.solution import Solution as Solution
from equisep.peeled.solve import problem_of as problem_of
from equisep.peeled.solve import solve as solve
from equisep.peeled.solve import solve_problem as solve_problem
from equisep.peeled.solvers.reduced import solve_general as solve_general
from equisep.peeled.solvers.reduced import solve_reduced as solve_reduced
from equisep.peeled.solvers.reference import solve_reference as solve_reference
from equisep.peeled.thresholds import Thresholds as Thresholds
from equisep.peeled.thresholds import threshold as threshold
from equisep.peeled.thresholds import thresholds_of as thresholds_of
from equisep.peeled.two_layer.solution import TwoLayerCertificate as TwoLayerCertificate
from equisep.peeled.two_layer.solution import TwoLayerSolution as TwoLayerSolution
from equisep.peeled.two_layer.solution import two_layer_collapse as two_layer_collapse
from equisep.peeled.two_layer.solution import two_layer_simplices as two_layer_simplices
from equisep.peeled.weight_decay import WeightDecayRescue as WeightDecayRescue
from equisep.peeled.weight_decay import weight_decay_rescue as weight_decay_rescue
from equisep.peeled.weight_decay import weight_decay_threshold as weight_decay_threshold

if TYPE_CHECKING:
    from equisep.peeled.solvers.etf import Counterexample as Counterexample
    from equisep.peeled.solvers.etf import EtfComparison as EtfComparison
    from equisep.peeled.solvers.etf import compare_with_etf as compare_with_etf
    from equisep.peeled.solvers.etf import qnorm_counterexamples as qnorm_counterexamples
    from equisep.peeled.solvers.nonconvex import solve_nonconvex as solve_nonconvex
    from equisep.peeled.two_layer.solve import solve_two_layer as solve_two_layer

# loaded on first use (PEP 562), since they import torch
__getattr__, __dir__, __all__ = on_demand(
    __name__,
    {
        "solvers.etf": "Counterexample EtfComparison compare_with_etf qnorm_counterexamples",
        "solvers.nonconvex": "solve_nonconvex",
        "two_layer.solve": "solve_two_layer",
    },
    loaded=[
        name for name, value in globals().items() if getattr(value, "__module__", "").startswith("equisep.peeled.")
    ],
)
