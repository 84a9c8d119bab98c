"""The papers as data: figures with their cells, claims and printed numbers, and the rules that judge them; no torch."""

from equisep.figures.catalogue import all_figures, figure_of
from equisep.figures.cell import Cell, Solve, Training
from equisep.figures.evidence import Entry, Evidence, gather
from equisep.figures.figure import Claim, Figure, Panel, Printed, Series
from equisep.figures.judge import ClaimVerdicts, judge, judge_readings
from equisep.figures.outcome import Curves, Outcome
from equisep.figures.quantities import Quantity, quantity, register
from equisep.figures.query import Query, curve
from equisep.figures.verdict import Verdict

__all__ = [
    "Cell",
    "Claim",
    "ClaimVerdicts",
    "Curves",
    "Entry",
    "Evidence",
    "Figure",
    "Outcome",
    "Panel",
    "Printed",
    "Quantity",
    "Query",
    "Series",
    "Solve",
    "Training",
    "Verdict",
    "all_figures",
    "curve",
    "figure_of",
    "gather",
    "judge",
    "judge_readings",
    "quantity",
    "register",
]
