"""He & Su, "A law of data separation in deep learning" (PNAS 2023, its SI and arXiv version; Su's slides of 2024), as data."""

from equisep.figures.figure import Figure
from equisep.figures.papers.he2023.common import FIT, OPTIMIZERS, RATES, READINGS
from equisep.figures.papers.he2023.convolutional import FACTORS, FIG4, FIG7, FIG8, FIG10, FIGS2, FIGS3, FIGS9
from equisep.figures.papers.he2023.feed_forward import (
    FIG1,
    FIG2,
    FIG3,
    FIGS1,
    FIGS4,
    FIGS5,
    FIGS6,
    FIGS7,
    FIGS8,
    FIGS10,
    LINEAR,
)
from equisep.figures.papers.he2023.guidelines import FIG5, FIG6, FIG9, FIGS11, PROP1, REACTIVATE, TRANSFER

__all__ = [
    "FACTORS",
    "FIG1",
    "FIG2",
    "FIG3",
    "FIG4",
    "FIG5",
    "FIG6",
    "FIG7",
    "FIG8",
    "FIG9",
    "FIG10",
    "FIGS1",
    "FIGS2",
    "FIGS3",
    "FIGS4",
    "FIGS5",
    "FIGS6",
    "FIGS7",
    "FIGS8",
    "FIGS9",
    "FIGS10",
    "FIGS11",
    "FIGURES",
    "FIT",
    "LINEAR", "OPTIMIZERS",
    "PROP1",
    "RATES",
    "REACTIVATE",
    "READINGS",
    "TRANSFER",
]  # fmt: skip

FIGURES: tuple[Figure, ...] = (
    FIG1, FIG2, FIG3, FIG4, FIG5, FIG6, FIG7, FIG8, FIG9, FIG10, FIGS1, FIGS2, FIGS3, FIGS4, FIGS5, FIGS6, FIGS7, FIGS8,
    FIGS9, FIGS10, FIGS11, FACTORS, LINEAR, PROP1, REACTIVATE, TRANSFER,
)  # fmt: skip
