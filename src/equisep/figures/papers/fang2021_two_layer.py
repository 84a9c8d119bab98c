"""Fang, He, Long & Su 2021: the 2-Layer-Peeled Model, searched and compared with neural collapse, as a figure.

The paper draws this model beside the one it analyzes and proves nothing of it. What it proves of one layer is asked of two here.
"""

from __future__ import annotations

from equisep.figures.cell import Solve
from equisep.figures.figure import Claim, Figure, Panel, Series
from equisep.figures.papers.fang2021 import CITE, EXACT, SOURCE

LINEAR_CLASSES = (2, 3, 4, 5, 6, 8, 10)
RELU_CLASSES = (2, 3, 4, 6)
ENERGIES = (0.5, 1.0, 2.0, 4.0, 8.0)  # √(E_W E_1 E_H), with E_W = E_1 = 1
LEAST, LARGEST = ENERGIES[0], ENERGIES[-1]
STARTS = 16
CLOSED = "ours: by a point in closed form, docs/peeled.md"
FEASIBLE = "ours: by a feasible point of smaller loss"
SEARCHED = "ours: from the best of many starts"
CLEAR = 0.001  # of the loss of neural collapse: far above rounding


def over_energies(kind: str, classes: tuple[int, ...]) -> tuple[Series, ...]:
    """One series for each number of classes and each energy."""
    return tuple(
        Series(f"{kind}-K{k}-{energy:g}", {"majority": k, "nonlinearity": kind, "feature_energy": energy**2},
               label=f"K = {k}", x=energy)
        for k in classes
        for energy in ENERGIES
    )  # fmt: skip


def kind_panels(kind: str, title: str) -> tuple[Panel, Panel]:
    """How much lower than that of neural collapse the loss is, and the rank of the logits, over the energy."""
    axis = r"energy $\sqrt{E_W E_1 E_H}$"
    return (
        Panel(f"saved-{kind}", f"{title}: loss below that of neural collapse", "sweep", "collapse_advantage", x_label=axis,
              y_label="share of its loss that is saved", log_x=True, log_y=False, series=(f"{kind}-*",), ordered="classes K",
              levels=((0.0, "neural collapse"),)),
        Panel(f"rank-{kind}", f"{title}: rank of the logits", "sweep", "logit_rank", x_label=axis, y_label="rank", log_x=True,
              log_y=False, series=(f"{kind}-*",), ordered="classes K"),
    )  # fmt: skip


TWO_LAYER = Figure(
    id="fang2021/two-layer",
    title="The 2-Layer-Peeled Model with classes of equal size: is neural collapse the optimum?",
    source=SOURCE,
    cite=CITE,
    base=Solve(problem="two-layer", starts=STARTS),
    series=(*over_energies("linear", LINEAR_CLASSES), *over_energies("relu", RELU_CLASSES)),
    panels=(*kind_panels("linear", "linear layers"), *kind_panels("relu", "ReLU")),
    claims=(
        Claim("Two linear layers and two classes: neural collapse is the optimum, with a proof", "at most", ("linear-K2-*",),
              "relative_gap", EXACT, exact=True, source="ours: the paper's theorem on one layer, asked of two"),
        Claim("Two linear layers and six classes or more: neural collapse is not the optimum, at any energy", "at least",
              ("linear-K6-*", "linear-K8-*", "linear-K10-*"), "collapse_advantage", CLEAR, exact=True, source=CLOSED),
        Claim("Two linear layers, three to five classes: neural collapse is not the optimum at the least energy", "at least",
              tuple(f"linear-K{k}-{LEAST:g}" for k in (3, 4, 5)), "collapse_advantage", CLEAR, exact=True, source=FEASIBLE),
        Claim("ReLU between two layers, three classes or more: neural collapse is not the optimum at the least energy",
              "at least",
              tuple(f"relu-K{k}-{LEAST:g}" for k in RELU_CLASSES if k > 2), "collapse_advantage", CLEAR, exact=True,
              source=FEASIBLE),
        Claim("Two linear layers, three to five classes: nothing better was found at the largest energy", "at most",
              tuple(f"linear-K{k}-{LARGEST:g}" for k in (3, 4, 5)), "collapse_distance", EXACT, source=SEARCHED),
        Claim("ReLU between two layers: nothing better was found at the largest energy", "at most",
              tuple(f"relu-K{k}-{LARGEST:g}" for k in RELU_CLASSES), "collapse_distance", EXACT, source=SEARCHED),
    ),
    seeds=1,
    columns=2,
    smoke={"starts": 1},  # those with ReLU may take all their iterations
    notes=(
        "min Σ CE(W₂ σ(W₁ h_k), k)/K with (1/K)‖W₂‖² ≤ E_W, (1/K)‖W₁‖² ≤ E_1, (1/K) Σ‖h_k‖² ≤ E_H; E_W = E_1 = 1.",
        "A feasible point with a smaller loss proves that neural collapse is not the optimum. Where none is found, nothing is "
        "proven: the convex problem that contains this one bounds the loss from below, and is reached with two classes alone.",
    ),
)  # fmt: skip

FIGURES: tuple[Figure, ...] = (TWO_LAYER,)
