"""Galanti & Galanti 2022: CDNV, nearest class centers and effective depth of networks of many depths, as figures.

Layers are counted as in the paper, hidden ones only: MLP-d is an FNN of d + 1 linear layers, and site l is layer l.
"""

from equisep.figures.figure import Figure
from equisep.figures.papers.galanti2022.bound import BOUND
from equisep.figures.papers.galanti2022.depth import FIG1, FIG2, FIG6
from equisep.figures.papers.galanti2022.random_labels import FIG3, FIG4
from equisep.figures.papers.galanti2022.resnet import FIG5
from equisep.figures.papers.galanti2022.shallow_bound import SHALLOW

__all__ = ["BOUND", "FIG1", "FIG2", "FIG3", "FIG4", "FIG5", "FIG6", "FIGURES", "SHALLOW"]

FIGURES: tuple[Figure, ...] = (FIG1, FIG2, FIG3, FIG4, FIG5, FIG6, BOUND, SHALLOW)
