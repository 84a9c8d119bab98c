"""What the figures of He & Su 2023 share: settings, rates, readings, names of data sets, and how the paper is quoted."""

from __future__ import annotations

from typing import Any

from equisep.figures.cell import Training

CITE = 'Hangfeng He and Weijie J. Su, "A law of data separation in deep learning", PNAS 120(36), e2221704120, 2023.'
SOURCE = "He & Su (2023)"
SLIDES = "Su's slides, 2024"
STEPS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
OPTIMIZERS = {"sgd": "SGD", "momentum": "SGD with momentum", "adam": "Adam"}
RATES = {"sgd": STEPS, "momentum": STEPS, "adam": (3e-5, 1e-4, 3e-4, 1e-3, 3e-3)}
FIT = 0.999  # "terminal phase": networks that interpolate their training data
READINGS = ("drawn", "mixed", "eval")  # the authors' public code reads in the first
BEST: dict[str, Any] = {"rates": RATES, "choose": "best r", "cite": CITE, "fit": FIT, "readings": READINGS}
FM = Training(readings=READINGS)
CIFAR: dict[str, Any] = {"data": "cifar10", "preparation": "he2023-10x10-cifar"}
MNIST: dict[str, Any] = {"data": "mnist"}
DEPTHS = (4, 8, 20)
EPOCHS = (0, 10, 20, 30, 50, 100, 200, 300, 600)
OFTEN = (0, 10, 20, 30, 50, 75, 100, 125, 150, 175, 200, 225, 250, 275, 300, 350, 400, 450, 500, 550, 600)

# convolutional networks: TF32 allowed (and recorded); every rate with one seed and the best two with three, or one seed at
# the rate that short runs find
SEEN = ("mixed", "eval")  # readings of convolutional networks; the paper's own was not recorded of them
IMAGES = Training(readings=SEEN, preparation="he2023-32x32", depth=None, width=None, tf32=True)
COLORS: dict[str, Any] = {"data": "cifar10", "preparation": "he2023-32x32-cifar"}
# convolutions at smoke scale
SMALL: dict[str, Any] = {"epochs": 2, "per_class": 4, "test_per_class": 3, "width_multiplier": 1 / 64}
SHORT: dict[str, Any] = {
    "rates": RATES, "choose": "short runs", "cite": CITE, "fit": FIT, "seeds": 1, "smoke": SMALL, "readings": SEEN,
}  # fmt: skip
TWO: dict[str, Any] = {**SHORT, "choose": "best two", "seeds": 3, "smoke": {**SMALL, "seeds": 1}}
SETS: tuple[tuple[str, dict[str, Any]], ...] = (("fm", {}), ("cifar", COLORS))
SET_NAMES = {"fm": "Fashion-MNIST", "cifar": "CIFAR-10", "mnist": "MNIST"}
MIXED_CUT = {"layers": 6, "blocks": 2}  # where 3-layer blocks end and 2-layer ones begin
RESNETS = {"2-layer": "2-layer blocks", "3-layer": "3-layer blocks", "mixed": "mixed blocks"}

# ours: 20 layers without BatchNorm fit their data once weights start as He et al. (2015) draw them
HE: dict[str, Any] = {"norm": False, "init": "he"}
HE_NOTE = (
    "Without BatchNorm, as torch draws weights, no network of 20 layers learned at any rate; series whose names begin with `he` "
    "start from He et al. (2015), N(0, 2/inputs), and are ours, not the paper's."
)

WHOLE = "Loss and accuracy are those of the network in eval reading, as the authors' code reads them."


def at_epoch(epoch: int) -> str:
    """An epoch of 600, as a share: so that a shorter training has it too."""
    return f"epoch={epoch}/600"
