"""Experiments of our own: what the papers leave open and advice of this library rests on, as figures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from equisep.figures.cell import Training
from equisep.figures.figure import Claim, Figure, Panel, Series
from equisep.figures.papers.equisep2026_imbalance import ANSWERS, LEVELS
from equisep.figures.papers.equisep2026_stopping import STOPPING
from equisep.figures.rules import NO_LESS
from equisep.peeled.long_tail import long_tail_sizes

SOURCE = "equisep"
CITE = "Ours: experiments of the equisep library."

LARGE = 500  # samples of the largest classes: what every data set at hand has
RARE = (5, 6, 7, 8, 9)  # of ten classes: a tenth of the largest size, or less
STEP_RATIOS = (10, 100)
TAIL_RATIO = 100
PAPER_ENERGY, ENERGIES = 5, (1, 2, 5, 10)  # E_W·E_H that w* is taken at; the paper's figures have 5
LIKELY = 20.0  # the largest E_W·E_H that advice from class sizes alone covers
SUFFICES = (
    f"w* counts as enough where the accuracy is at least {NO_LESS:g} times the one beside, over the whole 95 % interval: it may "
    "still be less."
)
OFTEN = f"rare classes are recognized at least {NO_LESS:g} times as often as with inverse frequency"

# the training of Fang et al. 2021's networks
TRAINED = Training(
    optimizer="momentum", rate=0.1, epochs=350, batch_size=128, weight_decay=5e-4, depth=8, per_class=None,
    readings=("eval",), classifier=True, rare_classes=RARE, loss="plain",
)  # fmt: skip
DATA: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "fm": ("Fashion-MNIST", {"data": "embedded-10x10", "preparation": "he2023-10x10"}),
    "cifar10": ("CIFAR-10", {"data": "cifar10", "preparation": "he2023-32x32-cifar"}),
}
# name → title, class sizes
IMBALANCES: Mapping[str, tuple[str, tuple[int, ...]]] = {
    **{f"R{r}": (f"5 + 5 classes, R = {r}", (LARGE,) * 5 + (LARGE // r,) * 5) for r in STEP_RATIOS},
    "tail": (f"long tail, R = {TAIL_RATIO}", long_tail_sizes(10, LARGE, TAIL_RATIO)),
}
# name → label, changes; at R = 10 and E = 5 or more no class is lost, and w* is 1
METHODS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "plain": ("plain", {}),
    "inverse": ("inverse frequency", {"loss": "inverse"}),
    "effective": ("effective number, β = 0.999", {"loss": "effective=0.999"}),
    "adjusted": ("logit adjustment, τ = 1", {"loss": "adjusted=1"}),
    "etf": ("fixed ETF classifier", {"fixed_etf": True}),
    **{f"E{e}": (f"w* at E = {e}", {"loss": f"margin={e}"}) for e in ENERGIES},
    "half": (f"half the margin at E = {PAPER_ENERGY}", {"loss": f"half={PAPER_ENERGY}"}),
}
SAME_AT_R10 = ("E5", "E10")
# quantity, its words, the end of a panel's name
DRAWN = (
    ("minority_accuracy_test", "test accuracy on rare classes", ""),
    ("balanced_accuracy_test", "balanced test accuracy", "-balanced"),
)
SETTINGS = tuple((data, imbalance) for data in DATA for imbalance in IMBALANCES)
HARD = tuple((data, imbalance) for data, imbalance in SETTINGS if imbalance != "R10")


def _series(data: str, imbalance: str) -> tuple[Series, ...]:
    return tuple(
        Series(f"{data}-{imbalance}-{name}", {**DATA[data][1], "sizes": IMBALANCES[imbalance][1], **changes},
               panel=f"{data}-{imbalance}", label=label)
        for name, (label, changes) in METHODS.items()
        if imbalance != "R10" or name not in SAME_AT_R10
    )  # fmt: skip


def _named(data: str, imbalance: str) -> str:
    return f"{DATA[data][0]}, {IMBALANCES[imbalance][0]}"


def _compared(data: str, imbalance: str) -> tuple[Claim, ...]:
    """What is claimed of one data set with rare classes, of which w* is one answer among several."""
    title = _named(data, imbalance)

    def of(*names: str) -> tuple[str, ...]:
        return tuple(f"{data}-{imbalance}-{name}" for name in names)

    rare, balanced = "minority_accuracy_test", "balanced_accuracy_test"
    return (
        Claim(f"{title}: without weights rare classes are recognized less than with inverse frequency", "below",
              of("plain", "inverse"), rare, source="ours: the question"),
        Claim(f"{title}: w* at E = 5 helps, rare classes are recognized more than without weights", "below",
              of("plain", "E5"), rare, source="ours: does w* help?"),
        Claim(f"{title}: with w* at E = 5 {OFTEN}", "no less", of("inverse", "E5"), rare, source="ours: does w* suffice?"),
        Claim(f"{title}: with w* at E = 1, the largest of advice, {OFTEN}", "no less", of("inverse", "E1"), rare,
              source="ours: does w* suffice?"),
        Claim(f"{title}: with the weights of half the margin at E = 5 {OFTEN}", "no less", of("inverse", "half"), rare,
              source="ours: does more than w* suffice?"),
        Claim(f"{title}: the balanced accuracy of w* at E = 5 is at least {NO_LESS:g} times that of logit adjustment", "no less",
              of("adjusted", "E5"), balanced, source="ours: does w* suffice?"),
        Claim(f"{title}: rare accuracy rises with the weights, from E = 10 to E = 1", "rising",
              of("plain", "E10", "E5", "E2", "E1", "inverse"), rare, source="ours: is there a threshold?"),
        Claim(f"{title}: the classifiers of rare classes stand wider apart at w* of E = 5 than without weights", "below",
              of("E5", "plain"), "minority_cosine", source="ours: does w* end minority collapse?"),
        Claim(f"{title}: logit adjustment recognizes rare classes more than inverse frequency", "below",
              of("inverse", "adjusted"), rare, source="ours: the other answers"),
        Claim(f"{title}: a fixed ETF classifier recognizes rare classes more than a plain one", "below",
              of("plain", "etf"), rare, source="ours: the other answers"),
    )  # fmt: skip


_PLAIN = tuple(f"{data}-{imbalance}-plain" for data, imbalance in SETTINGS)

RARE_CLASSES = Figure(
    id="equisep2026/rare",
    title="Rare classes: does the least weight of the Layer-Peeled Model suffice?",
    source=SOURCE,
    cite=CITE,
    base=TRAINED,
    series=tuple(series for data, imbalance in SETTINGS for series in _series(data, imbalance)),
    panels=tuple(
        Panel(f"{data}-{imbalance}{end}", _named(data, imbalance), "categories", quantity, series=(f"{data}-{imbalance}-*",),
              y_label=words, log_y=False, heading=words)
        for quantity, words, end in DRAWN
        for data, imbalance in SETTINGS
    ),
    claims=(
        Claim("Without weights no rare class is lost on its own training samples, on the mean over seeds: the mean of the least "
              "margin is 0 or more", "at least", _PLAIN, "minority_margin", 0.0,
              source="ours: what the model predicts at the networks' energies"),
        Claim(f"Plainly trained networks have energies E_W·E_H of at most {LIKELY:g}", "at most", _PLAIN, "energy", LIKELY,
              source="ours: where advice from class sizes alone applies"),
        *(
            Claim(f"{_named(data, 'R10')}: at E = 5 no class is lost (w* = 1), and without weights {OFTEN}", "no less",
                  (f"{data}-R10-inverse", f"{data}-R10-plain"), "minority_accuracy_test", source="ours: does w* suffice?")
            for data in DATA
        ),
        *(claim for data, imbalance in HARD for claim in _compared(data, imbalance)),
    ),
    seeds=10,
    columns=3,
    smoke={"epochs": 1, "seeds": 1, "test_per_class": 3, "data": "embedded-10x10", "preparation": "he2023-10x10", "width": 12},
    notes=(
        "Weights are those of torch's `CrossEntropyLoss(weight=…)`, whose mean divides by them. Rare classes are the last five "
        "of ten. In the Layer-Peeled Model all classes below the floor w*·n are lifted to it at once; here the floor that ends "
        "collapse and the one that gives every class a margin are the same to 0.1 %.",
        SUFFICES,
        "Claims were declared before the run; of the networks nothing had been seen but the energies of three, of another seed, "
        "on Fashion-MNIST.",
    ),
)  # fmt: skip

FIGURES: tuple[Figure, ...] = (RARE_CLASSES, STOPPING, LEVELS, ANSWERS)
