"""What the figures of Galanti & Galanti share: their training, the metrics that they draw over epochs, and words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from equisep.figures.cell import Training
from equisep.figures.figure import Claim, Panel

SOURCE = "Galanti & Galanti (2022)"
CITE = (
    "T. Galanti and L. Galanti. On the implicit bias towards depth minimization in deep neural networks. "
    "arXiv 2202.09028, 2022."
)

EPOCHS = 500
READ = (0, 1, 2, 5, 10, 20, 50, 100, 200, 350)  # and the last
FITTED = 0.99  # "> 99 %"
MLP_EFFECTIVE = 4
WAYS: Mapping[str, bool] = {"plain": False, "augmented": True}
METRICS: Mapping[str, str] = {
    "cdnv": "CDNV, train",
    "cdnv_test": "CDNV, test",
    "ncc": "nearest-center accuracy, train",
    "ncc_test": "nearest-center accuracy, test",
}

HEADINGS = {"plain": "trained on plain images", "augmented": "trained on augmented images"}
OWN = {"ncc": ";accuracy", "ncc_test": ";accuracy_test"}  # the network's own accuracy beside that of nearest centers

CLASSES = 10
EPSILON = 0.2  # of (ε, δ)-balanced: above what labels drawn at random are out of balance by

BASE = Training(
    data="cifar10",
    preparation="he2023-32x32-cifar",
    per_class=None,
    optimizer="momentum",
    rate=0.1,
    epochs=EPOCHS,
    milestones=(60 / EPOCHS, 120 / EPOCHS, 160 / EPOCHS),
    factor=0.2,
    read_epochs=READ,
    readings=("eval", "mixed"),
    test_sites=True,
)
CONV = BASE.with_(network="convnet", tf32=True)
# at smoke scale, of feed-forward and of convolutional networks
SMALL: Mapping[str, Any] = {"epochs": 2, "per_class": 6, "test_per_class": 5, "width_multiplier": 0.2}
NARROW: Mapping[str, Any] = {**SMALL, "width_multiplier": 1 / 64}
UNPRINTED = "Rate and schedule are printed for ResNet-18 alone (without the factor) and taken for all networks."
TWO_WAYS = "Trained with (`augmented`, the paper's way) and without augmentation (`plain`); read on images as they are."


AUGMENTS = "(the paper augments)"


def cited(printed_in: str, way: str) -> str:
    """Where the paper says something of networks trained in a way, of which it has one only."""
    return printed_in if way == "augmented" else f"{printed_in} {AUGMENTS}"


def of_augmented(claims: Iterable[Claim]) -> tuple[Claim, ...]:
    """What the paper shows on augmented networks alone is not decided by plain ones; what it says of networks at large is."""
    return tuple(replace(one, lacks="augmented training") if AUGMENTS in one.source else one for one in claims)


def epoch_panel(metric: str, layers: Sequence[int], series: str, *, name: str, title: str, way: str) -> Panel:
    """One metric of several layers over epochs, as Galanti & Galanti draw it; the network's own accuracy beside the centers'."""
    return Panel(
        name, title, "epochs", ";".join(f"{metric}@site={layer}" for layer in layers) + OWN.get(metric, ""),
        y_label=METRICS[metric], x_label="epoch", log_y=metric.startswith("cdnv"), series=(series,), ordered="layer",
        heading=HEADINGS[way],
    )  # fmt: skip
