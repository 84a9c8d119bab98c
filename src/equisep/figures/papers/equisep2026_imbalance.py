"""Imbalance: over R and over epochs, the law, neural collapse, minority collapse and what is answered to minority samples."""

from __future__ import annotations

from typing import Any

from equisep.figures.cell import Training
from equisep.figures.figure import Claim, Figure, Panel, Series
from equisep.figures.papers.fang2021 import (
    ABSENT,
    COLLAPSE,
    HALF,
    HE_SU,
    LARGE_EMBEDDED,
    NETWORKS_OF_PAPER,
    PREVAILS,
    R_AXIS,
    TERMINAL,
    imbalanced,
)
from equisep.results.records import LAW_R, NO_LAW_R

RATIOS = (1, 5, 10, 50, 100, LARGE_EMBEDDED, None)
TESTED = RATIOS[1:]  # equal classes of 500 images are hardly fitted
CHANCE = 1 / HALF  # of five minority classes
OF_20 = "the paper's network of 20 layers"
LAWFUL, LAWLESS = (5, 10), (100, LARGE_EMBEDDED)
AT_RANDOM = "prediction on minority completely at random"
SLIDES, ABSTRACT = "Fang et al. (2021), slides, part I", "Fang et al. (2021), abstract"
CITE = "Ours: experiments of the equisep library."
EMBEDDED = (
    f"Fashion-MNIST at 10×10 as it comes with the package: five classes of {LARGE_EMBEDDED} images, five of "
    f"{LARGE_EMBEDDED}/R; R = ∞: none."
)
EMERGE = (
    "Law, neural collapse (NC1 ≤ 0.01) and minority collapse (mean cosine ≥ 0.95) emerge by `equisep.law.emergence`, all of "
    "one training, read every 10 epochs in `mixed`: at the first reading that has it, if neither of the next two has lost it "
    "(r > −0.971, NC1 or cosine beyond a second threshold); it need not stay. What did not emerge by the last epoch emerges "
    "then at the earliest."
)


def _named(ratio: int | None) -> str:
    return f"R{'inf' if ratio is None else ratio}"


SERIES = tuple(
    Series(_named(ratio), {"sizes": imbalanced(LARGE_EMBEDDED, ratio)}, label=f"R = {'∞' if ratio is None else ratio}",
           x=ABSENT if ratio is None else float(ratio))
    for ratio in RATIOS
)  # fmt: skip
EVERY = tuple(map(_named, TESTED))
# r is drawn by its distance from −1, in which laws differ, beside what the paper calls a law and none
LAW_LINES = ((LAW_R, f"law: r ≤ −{-LAW_R:g}"), (NO_LAW_R, f"no law: r > −{-NO_LAW_R:g}"))


def _over_ratios(quantity: str, title: str, label: str, *levels: tuple[float, str], log_y: bool = False) -> Panel:
    return Panel(
        quantity,
        title,
        "sweep",
        quantity,
        x_label=R_AXIS,
        y_label=label,
        log_x=True,
        log_y=log_y,
        series=("R*",),
        levels=levels,
    )


def _over_epochs(quantity: str, label: str, **more: Any) -> Panel:
    return Panel(
        f"course-{quantity}", label, "array", f"course_{quantity}", "course_epoch", y_label=label, x_label="epoch",
        ordered="imbalance ratio R", series=("R*",), **{"log_y": False, **more},
    )  # fmt: skip


BASE = Training(
    data="embedded-10x10", depth=8, per_class=None, readings=("mixed", "eval"), classifier=True, course=10,
)  # fmt: skip

LEVELS = Figure(
    id="equisep2026/imbalance",
    title="The law against the level of imbalance, and when law and collapse emerge (8 layers, Adam)",
    source="equisep",
    cite=CITE,
    base=BASE.with_(optimizer="adam", rate=1e-3, epochs=300),
    series=SERIES,
    panels=(
        _over_ratios("r", "how straight the curve of D is", "correlation r", *LAW_LINES, log_y=True),
        _over_ratios("last", "D of the last layer", "D of the last layer", log_y=True),
        _over_ratios("minority_cosine", "minority classifiers", "mean cosine between minority classifiers", (1.0, "one vector")),
        _over_epochs("r", "correlation r", log_y=True, levels=LAW_LINES),
        _over_epochs("nc1", "NC1 of the last layer", log_y=True, levels=((0.01, "neural collapse"),)),
        _over_epochs("minority_cosine", "cosine of minority classifiers", levels=((0.95, "minority collapse"),)),
    ),
    claims=(
        *(
            Claim(f"The law holds with R = {ratio}", "law", (_named(ratio),), quote=PREVAILS, source=HE_SU)
            for ratio in LAWFUL
        ),
        *(
            Claim(f"With R = {ratio} there is no law of D, in two readings", "no law", (_named(ratio),),
                  "r;r@reading=eval", source=f"ours, against {HE_SU}", quote=PREVAILS)
            for ratio in LAWLESS
        ),
        Claim(f"The curve of D is the less straight the larger R: r rises up to R = {LARGE_EMBEDDED}", "rising", EVERY[:-1], "r",
              source=f"ours, against {HE_SU}", quote=PREVAILS),
        *(
            Claim(f"The law emerges before neural collapse, R = {ratio}", "at least", (_named(ratio),), "collapse_after", 1.0,
                  quote="not until after 400 epochs", source="He & Su (2023), SI, on Fig. S1", lacks=OF_20)
            for ratio in LAWFUL
        ),
        *(
            Claim(f"The law emerges before minority collapse, R = {ratio}", "at least", (_named(ratio),), "minority_after", 1.0,
                  quote="earlier than minority collapse", source="He & Su (2023), arXiv version", lacks=OF_20)
            for ratio in LAWFUL
        ),
    ),
    fit=TERMINAL,
    columns=3,
    smoke={"seeds": 1, "course": 2},
    notes=(EMBEDDED, EMERGE),
)  # fmt: skip

ANSWERS = Figure(
    id="equisep2026/minority",
    title="What a network answers to minority samples, and when minority collapse emerges",
    source="equisep",
    cite=CITE,
    base=BASE.with_(optimizer="momentum", rate=0.1, epochs=350),  # the training of Fang et al. 2021
    series=SERIES,
    panels=(
        _over_ratios("minority_lost_test", "taken for a majority class", "share of minority test samples"),
        _over_ratios("minority_told_apart_test", "told apart among minority classes", "share of minority test samples",
                     (CHANCE, "guessed")),
        _over_ratios("minority_one_answer_test", "the minority class named most often", "share of minority test samples",
                     (CHANCE, "all equally often")),
        _over_ratios("accuracy_gap_test", "best less worst class", "difference of test accuracies"),
        _over_epochs("minority_cosine", "cosine of minority classifiers", levels=((0.95, "minority collapse"),)),
        _over_epochs("nc1", "NC1 of the last layer", log_y=True, levels=((0.01, "neural collapse"),)),
    ),
    claims=(
        Claim("Minority classes that are absent are told apart as often as by guessing", "near", ("Rinf",),
              "minority_told_apart_test", CHANCE, quote=AT_RANDOM, source=SLIDES),
        Claim("Minority classes are told apart less with R", "falling", EVERY, "minority_told_apart_test", quote=AT_RANDOM,
              source=SLIDES),
        Claim("Minority samples share one answer among minority classes more with R", "rising", EVERY,
              "minority_one_answer_test", source="ours: is it at random, or one answer for all?"),
        Claim("Where the minority is absent one minority class is named at least twice as often as by guessing", "at least",
              ("Rinf",), "minority_one_answer_test", 2 * CHANCE, source="ours: is it at random, or one answer for all?"),
        Claim("Minority samples are taken for majority classes more with R", "rising", EVERY, "minority_lost_test",
              quote=COLLAPSE, source=ABSTRACT),
        Claim("The gap between the best and the worst class grows with R", "rising", EVERY, "accuracy_gap_test",
              quote=COLLAPSE, source=ABSTRACT),
        Claim("Minority collapse emerges where the minority is absent", "at most", ("Rinf",), "minority_emerged", 350.0,
              quote=COLLAPSE, source=ABSTRACT),
        Claim("Minority classifiers move together while networks train: their cosine is higher at the end than at epoch 10",
              "at least", ("R50", "R100", "Rinf"), "minority_cosine_gain", 0.0,
              source="ours: does minority collapse emerge slowly?"),
    ),
    fit=0.99,
    lacks=NETWORKS_OF_PAPER,
    columns=2,
    smoke={"seeds": 1, "course": 2},
    notes=(
        EMBEDDED,
        "What is told apart among minority classes: the network may answer minority classes alone, and is right by guessing in "
        f"{100 * CHANCE:.0f} % of cases.",
        EMERGE,
    ),
)  # fmt: skip
