"""Fang, He, Long & Su 2021: the Layer-Peeled Model solved, and minority collapse in networks, as figures."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from equisep.figures.cell import Solve, Training
from equisep.figures.figure import IN_OUR_WORDS, Claim, Figure, Panel, Series

SOURCE = "Fang, He, Long & Su (2021)"
CITE = (
    "C. Fang, H. He, Q. Long and W. J. Su. Exploring deep neural networks via layer-peeled model: Minority collapse in "
    "imbalanced training. PNAS 118(43), 2021."
)

QNORMS = "For any q ∈ (0, 2) ∪ (2, ∞), neural collapse does not emerge"
ETF = "we prove that any solution to this model forms a simplex equiangular tight frame"
COLLAPSE = (
    "Minority Collapse, which fundamentally limits the performance of deep learning models on the minority classes"
)
AT_RANDOM = "prediction on minority completely at random"
NETWORKS_OF_PAPER = "one of the paper's networks (VGG, ResNet18)"
EXACT = 1e-6  # what a proven optimum may miss an angle by: about the root of its gap
CLASSES = (2, 3, 4, 5, 7, 10, 15, 20, 30, 50, 70, 100)
POWERS = (0.5, 1.0, 1.5, 2.0, 3.0)
DIMENSIONS = (6, 8, 9)
MAJORITIES = (3, 5, 7)
ENERGIES = (5.0, 10.0)  # E_H, for E_W = 1
RATIOS = tuple(10 ** (step / 10) for step in range(41))

PREVAILS = "consistently prevails across diverse datasets, learning rates, and class imbalances"
HE_SU = "He & Su (2023), main text, on Fig. 3"
TERMINAL = 0.999  # training accuracy of networks of which He & Su speak

ABSENT = math.inf  # R where minority classes have no sample
HALF = 5  # majority classes of ten
LARGE_EMBEDDED = 500  # n_A: the embedded images have 600 a class
LARGE_FM = 6000  # n_A: all of them
LARGE_CIFAR = 5000
FNN_RATIOS = (1, 5, 10, 50, 100, LARGE_EMBEDDED, None)
NETWORK_RATIOS = (1, 10, 100, 1000, None)
WEIGHTS = (1, 5, 10, 50, 100, LARGE_EMBEDDED)
R_AXIS = "imbalance ratio $R=n_A/n_B$"
LIMITS = (("threshold", "R*: one vector from here on"), ("vanishing", "minority vectors vanish from here on"))

# the networks' training, as in the authors' code
TRAINED = Training(
    optimizer="momentum", rate=0.1, epochs=350, batch_size=128, weight_decay=5e-4, per_class=None, classifier=True
)
ON_FM: Mapping[str, Any] = {"data": "fashion-mnist", "preparation": "he2023-32x32"}
ON_CIFAR: Mapping[str, Any] = {"data": "cifar10", "preparation": "he2023-32x32-cifar"}
# group of series → title, n_A and changes
NETWORKS: Mapping[str, tuple[str, int, Mapping[str, Any]]] = {
    "vgg11-fm": ("VGG11, Fashion-MNIST", LARGE_FM, {"network": "vgg11", **ON_FM}),
    "vgg13-cifar10": ("VGG13, CIFAR-10", LARGE_CIFAR, {"network": "vgg13", **ON_CIFAR}),
    "resnet18-fm": ("ResNet18, Fashion-MNIST", LARGE_FM, {"network": "resnet18", **ON_FM}),
    "resnet18-cifar10": ("ResNet18, CIFAR-10", LARGE_CIFAR, {"network": "resnet18", **ON_CIFAR}),
}

LARGE_PART, PART_RATIOS, PART_EPOCHS, PART_RATE = 500, (1, 10, 100, None), 100, 0.03  # ours, of the size of a stand-in
DRAWN = {**{group: title for group, (title, _, _) in NETWORKS.items()}, "vgg11-part": "VGG11, a tenth of CIFAR-10"}


def imbalanced(largest: int, ratio: int | None) -> tuple[int, ...]:
    """Class sizes: the first five n_A, the others n_A/R; None is R = ∞, and leaves them out."""
    return (largest,) * HALF + (0 if ratio is None else largest // ratio,) * HALF


def over_ratios(
    group: str, largest: int, ratios: tuple[int | None, ...], *, lacks: str = "", **changes: Any
) -> tuple[Series, ...]:
    """One series for each imbalance ratio R."""
    return tuple(
        Series(
            f"{group}-R{'inf' if ratio is None else ratio}",
            {**changes, "sizes": imbalanced(largest, ratio)},
            label=f"R = {'∞' if ratio is None else ratio}",
            x=ABSENT if ratio is None else float(ratio),
            lacks=lacks,
        )
        for ratio in ratios
    )


def collapse_claims(group: str, title: str) -> tuple[Claim, ...]:
    """What is claimed of one network over R."""
    return (
        Claim(f"{title}: the cosine between minority classifiers rises with R", "rising", (f"{group}-R*",),
              "minority_cosine", source=f"{IN_OUR_WORDS} the figure on networks"),
        Claim(f"{title}: the cosine is 0.95 or more where the minority is absent", "at least", (f"{group}-Rinf",),
              "minority_cosine", 0.95, source=f"{IN_OUR_WORDS} the figure on networks; 0.95 is ours"),
        Claim(f"{title}: test accuracy on minority classes falls with R", "falling", (f"{group}-R*",),
              "minority_accuracy_test", quote=COLLAPSE, source="abstract"),
        Claim(f"{title}: where the minority is absent none of its test samples is named rightly", "at most", (f"{group}-Rinf",),
              "minority_accuracy_test", 0.0,
              source=f"ours: the slides have “{AT_RANDOM}”"),
    )  # fmt: skip


def sweep_panels(glob: str, x_label: str, name: str = "", title: str = "") -> tuple[Panel, Panel]:
    """Minority cosine, of classifiers, and minority test accuracy over the x of the series of `glob`."""
    return (
        Panel(f"cosine{name}", title or "Minority classifiers", "sweep", "minority_cosine", x_label=x_label,
              y_label="mean cosine between minority classifiers", log_x=True, log_y=False, series=(glob,),
              levels=((-1 / 9, "−1/9: equal classes"), (1.0, "one vector"))),
        Panel(f"accuracy{name}", title or "Minority test accuracy", "sweep", "minority_accuracy_test", x_label=x_label,
              y_label="test accuracy on minority classes", log_x=True, log_y=False, series=(glob,),
              levels=((0.1, "chance"),)),
    )  # fmt: skip


BALANCED = Figure(
    id="fang2021/balanced",
    title="Classes of equal size: how far the solution is from a simplex ETF",
    source=SOURCE,
    cite=CITE,
    base=Solve(problem="balanced", starts=4),
    series=tuple(
        Series(f"K-{k}", {"majority": k, "dimension": k}, panel="errors", label=f"K = {k}", x=k) for k in CLASSES
    ),
    panels=(
        Panel("errors", "what is left of each equation after solving", "sweep", "cosine_error; duality_error; relative_gap",
              x_label="classes K", y_label="error", log_x=True, joined=False,
              levels=((EXACT, "counts as zero below this line"),)),
    ),
    claims=(
        Claim("Every angle between two classes has cosine −1/(K − 1)", "at most", ("K-*",), "cosine_error", EXACT,
              exact=True, quote=ETF, source="abstract"),
        Claim("Features are the classifiers times √(E_H/E_W)", "at most", ("K-*",), "duality_error", EXACT, exact=True,
              quote=ETF, source="abstract"),
    ),
    seeds=1,
    columns=1,
    notes=("Found in W and H from random starts, without the symmetry of the classes, and proven by the convex form.",),
)  # fmt: skip

QNORM = Figure(
    id="fang2021/qnorm",
    title="Features bounded in the q-norm instead of the 2-norm, K = 4",
    source=SOURCE,
    cite=CITE,
    base=Solve(problem="qnorm", majority=4, starts=32),
    series=tuple(
        Series(f"q{q:g}-p{p}", {"power": q, "dimension": p}, panel="angles", label=f"q={q:g}, p={p}", x=p)
        for q in POWERS
        for p in DIMENSIONS
    ),
    panels=(
        Panel("angles", "distance from neural collapse (angles, duality and norms)", "categories", "collapse_distance",
              y_label="greatest departure from a simplex ETF", series=("q*",), levels=((EXACT, "collapsed below this line"),)),
    ),
    claims=(
        Claim("Neural collapse does not emerge for any q ≠ 2", "at least", ("q0.5-*", "q1-*", "q1.5-*", "q3-*"),
              "collapse_distance", 0.01, exact=True, source="slides, part I", quote=QNORMS),
        Claim("At q = 0.5 and q = 1 it does not emerge: every class takes an axis of its own", "at least", ("q0.5-*", "q1-*"),
              "collapse_distance", 0.01, source="slides, part I", quote=QNORMS),
        Claim("At q = 1.5, and at q = 3 in 8 dimensions, it does not emerge",
              "at least", ("q1.5-*", "q3-p8"), "collapse_distance", 0.01,
              source="slides, part I", quote=QNORMS),
        Claim("At q = 1.5, and at q = 3 in 8 dimensions, the optimum is better than any simplex ETF",
              "at least", ("q1.5-*", "q3-p8"), "etf_advantage",
              EXACT, source="slides, part I", quote=QNORMS),
        Claim("Control: at q = 2 neural collapse emerges", "at most", ("q2-*",), "collapse_distance", EXACT, exact=True,
              quote=ETF, source="abstract"),
        Claim("Against the proposition: at q = 3 in 6 and in 9 dimensions the optimum is a simplex ETF", "at most",
              ("q3-p6", "q3-p9"), "collapse_distance", EXACT, exact=True, source="ours, not the paper's: docs/peeled.md"),
    ),
    seeds=1,
    columns=1,
    notes=(
        "Angles are not centered: centering would hide the effect.",
        "Where q > 2 and ±1 vectors form a simplex ETF (K = 4, p a multiple of 3) the optimum is collapsed, and the bound of "
        "the 2-norm problem proves it. Elsewhere, for q ≠ 2, the least of many starts is shown: stationary, not proven.",
    ),
)  # fmt: skip

MINORITY = Figure(
    id="fang2021/minority",
    title="The angle between minority classes in the Layer-Peeled Model, K = 10",
    source=SOURCE,
    cite=CITE,
    base=Solve(problem="minority", ratios=RATIOS),
    series=tuple(
        Series(f"EH{energy:g}-kA{k}", {"majority": k, "minority": 10 - k, "feature_energy": energy}, label=f"k_A = {k}",
               panel=f"classifiers-{energy:g}")
        for energy in ENERGIES
        for k in MAJORITIES
    ),
    panels=tuple(
        Panel(f"{what}s-{energy:g}", f"Minority {what}s, E_W = 1, E_H = {energy:g}", "array", f"{what}_cosines", "ratios",
              y_label="cosine between minority classes", x_label=R_AXIS, log_x=True, log_y=False, series=(f"EH{energy:g}-*",),
              levels=((-1 / 9, "−1/9: equal classes"),), upright=LIMITS)
        for what in ("classifier", "feature")
        for energy in ENERGIES
    ),
    claims=(
        Claim("Without imbalance the cosine between minority classifiers is −1/9", "at most", ("EH*",),
              "first_cosine_error", EXACT, exact=True, quote=ETF, source="abstract; of ten classes"),
        Claim("The cosine between minority classifiers rises with R until it is 1",
              "at least", ("EH*",), "least_rise", 0.0, exact=True, source=f"{IN_OUR_WORDS} the figure on it"),
        Claim("From a finite R* on the cosine is 1, as long as the classifiers are not zero", "at most", ("EH*",),
              "collapsed_error", EXACT, exact=True, source="ours, after Chen 2023"),
        Claim("From R* on minority classifiers are one vector", "at most", ("EH*",), "collapsed_distance", EXACT,
              exact=True, source="ours, after Chen 2023"),
        Claim("In the limit R → ∞ minority classifiers are one vector", "at most", ("EH*",), "limit_distance", EXACT, exact=True,
              source=f"{IN_OUR_WORDS} Theorem 5"),
        Claim("Minority class means no longer equal the classifiers", "at least", ("EH*",), "mean_gap", 0.01, exact=True,
              quote="class means no longer collapse to classifiers", source="slides, part I"),
    ),
    seeds=1,
    columns=2,
)  # fmt: skip

FNN = Figure(
    id="fang2021/fnn",
    title="Minority classes of an FNN of 8 layers, over the imbalance",
    source=SOURCE,
    cite=CITE,
    base=TRAINED.with_(data="embedded-10x10", depth=8),
    lacks=NETWORKS_OF_PAPER,
    series=over_ratios("fnn", LARGE_EMBEDDED, FNN_RATIOS),
    panels=sweep_panels("fnn-R*", R_AXIS),
    claims=(
        *collapse_claims("fnn", "FNN"),
        Claim("FNN: with R = 100 there is no law of D, in two readings (networks with 99.9 % of their training samples right)",
              "no law", ("fnn-R100",), "r;r@reading=eval", source=f"ours, against “{PREVAILS}” ({HE_SU})", fit=TERMINAL),
    ),
    columns=2,
    notes=(
        f"Fashion-MNIST at 10×10 as it comes with the package: n_A = {LARGE_EMBEDDED}, so that R ends there and at ∞.",
        "What is answered to minority samples, class by class, and when minority collapse emerges: `equisep2026/minority`. The "
        "law of D over R, of networks trained by Adam: `equisep2026/imbalance`.",
    ),
)  # fmt: skip

NETS = Figure(
    id="fang2021/networks",
    title="Minority classes of VGG and ResNet18, over the imbalance",
    source=SOURCE,
    cite=CITE,
    base=TRAINED.with_(depth=None, width=None, tf32=True),
    series=(
        *(
            series
            for group, (_, largest, changes) in NETWORKS.items()
            for series in over_ratios(group, largest, NETWORK_RATIOS, **changes)
        ),
        *over_ratios(
            "vgg11-part",
            LARGE_PART,
            PART_RATIOS,
            lacks="a network of the paper's on all of its data",
            network="vgg11",
            epochs=PART_EPOCHS,
            rate=PART_RATE,
            **ON_CIFAR,
        ),
    ),
    panels=tuple(
        sweep_panels(f"{group}-R*", R_AXIS, f"-{group}", title)[row] for row in (0, 1) for group, title in DRAWN.items()
    ),
    claims=tuple(claim for group, title in DRAWN.items() for claim in collapse_claims(group, title)),
    seeds=1,
    smoke={"epochs": 2, "test_per_class": 3, "width_multiplier": 1 / 64},
    columns=5,
    notes=(
        f"The last group is ours, smaller than the paper's: VGG11 on {LARGE_PART} images a class of CIFAR-10, for {PART_EPOCHS} "
        f"epochs at the rate {PART_RATE:g}, which takes minutes.",
    ),
)


def _copies(weight: int) -> float:
    """How many times as many samples there were with `weight` copies of each of the minority."""
    sizes = imbalanced(LARGE_EMBEDDED, LARGE_EMBEDDED)
    return (sum(sizes[:HALF]) + weight * sum(sizes[HALF:])) / sum(sizes)


ON_COPIES = f"{IN_OUR_WORDS} the part on oversampling"
RESAMPLED = 0.01  # a trial of 60 epochs at w = 500 had 98 % of its samples right at this rate, 96 % at 0.1

OVERSAMPLING = Figure(
    id="fang2021/oversampling",
    title=f"Loss weights and copies for the minority, R = {LARGE_EMBEDDED} (FNN of 8 layers)",
    source=SOURCE,
    cite=CITE,
    lacks=NETWORKS_OF_PAPER,
    base=FNN.base.with_(sizes=imbalanced(LARGE_EMBEDDED, LARGE_EMBEDDED)),
    series=(
        *(
            Series(f"fnn-w{w}", {"class_weights": (1.0,) * HALF + (float(w),) * HALF}, label=f"w = {w}", x=w)
            for w in WEIGHTS
        ),
        *(
            Series(f"copies-w{w}", {"copies": (1,) * HALF + (w,) * HALF, "rate": RESAMPLED}, label=f"{w} copies", x=w)
            for w in WEIGHTS
        ),
    ),
    panels=(
        *sweep_panels("fnn-w*", "loss weight w of a minority sample", title="by loss weights"),
        *sweep_panels("copies-w*", "copies w of a minority sample in an epoch", "-copies", "by resampling"),
    ),
    claims=(
        Claim("The cosine between minority classifiers falls back as w grows to R", "below",
              (f"fnn-w{WEIGHTS[-1]}", "fnn-w1"), "minority_cosine", source=ON_COPIES),
        Claim("Test accuracy on minority classes recovers as w grows to R", "below", ("fnn-w1", f"fnn-w{WEIGHTS[-1]}"),
              "minority_accuracy_test", source=ON_COPIES),
        Claim("Up to w = 10, where networks fit, test accuracy on minority classes rises with w", "rising",
              ("fnn-w1", "fnn-w5", "fnn-w10"), "minority_accuracy_test", source="ours: weights at which networks fit"),
        Claim("Resampled: the cosine between minority classifiers falls back as w grows to R", "below",
              (f"copies-w{WEIGHTS[-1]}", "copies-w1"), "minority_cosine", source=ON_COPIES),
        Claim("Resampled: test accuracy on minority classes recovers as w grows to R", "below",
              ("copies-w1", f"copies-w{WEIGHTS[-1]}"), "minority_accuracy_test", source=ON_COPIES),
        Claim("Resampled: test accuracy on minority classes rises with w", "rising", ("copies-w*",),
              "minority_accuracy_test", source=ON_COPIES),
    ),
    fit=0.99,  # oversampling is to help networks that learn
    columns=2,
    notes=(
        "The weighted sum over a batch is divided by the batch's size: as w copies of each minority sample, with a loss that "
        f"weighs up to {_copies(WEIGHTS[-1]):.3g} times as much against weight decay (w = {WEIGHTS[-1]}), and batch by batch "
        "noisier. The authors resample instead: w copies of each minority sample stand in every epoch, in networks trained at "
        f"the rate {RESAMPLED:g}, at which they fit.",
    ),
)  # fmt: skip

FIGURES: tuple[Figure, ...] = (BALANCED, QNORM, MINORITY, NETS, FNN, OVERSAMPLING)
