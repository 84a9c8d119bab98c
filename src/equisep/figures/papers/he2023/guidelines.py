"""He & Su 2023: what the law is good for: depth, width, training, robustness, transfer."""

from __future__ import annotations

from typing import Any

from equisep.figures.figure import IN_OUR_WORDS, Claim, Figure, Panel, Printed, Series
from equisep.figures.papers.he2023.common import (
    BEST,
    CIFAR,
    CITE,
    FIT,
    FM,
    HE,
    HE_NOTE,
    MNIST,
    READINGS,
    SET_NAMES,
    SLIDES,
    SOURCE,
    WHOLE,
)

SWEEP = {"mnist": (*range(3, 11), 18), "fm": (*range(3, 12), 18), "cifar": (3, 4, *range(8, 15), 18, 20)}
OPTIMAL = {"mnist": 6, "fm": 10, "cifar": 12}  # layers, as printed
DECAYS = {"fm": "0.53; 0.818"}  # ρ of 8 and of 20 layers, as printed

FIG5 = Figure(
    id="he2023/fig5",
    title="Depth: D against layers, and what is left at the end",
    source=f"{SOURCE}, Fig. 5",
    base=FM,
    series=tuple(
        Series(f"{name}-{depth}", {"depth": depth, **({"mnist": MNIST, "cifar": CIFAR}.get(name, {}))},
               label=f"{SET_NAMES[name]}, {depth} layers", x=float(depth))
        for name, depths in SWEEP.items()
        for depth in depths
    ),
    panels=(
        *(
            Panel(f"{name}-curves", SET_NAMES[name], ordered="layers of the network", series=(f"{name}-*",)) for name in SWEEP
        ),
        *(
            Panel(name, f"{SET_NAMES[name]}: D of the last layer (line: the paper's {depth} layers)", kind="sweep", y="last",
                  x_label="layers of the network", series=(f"{name}-*",), cut=depth)
            for name, depth in OPTIMAL.items()
        ),
        *(
            Panel(f"{name}-rho", f"{SET_NAMES[name]}: decay per layer", kind="sweep", y="rho", x_label="layers of the network",
                  log_y=False, series=(f"{name}-*",))
            for name in SWEEP
        ),
    ),
    claims=(
        Claim("The depth of the least final D rises with difficulty", "least rising",
              tuple(f"{name}-*" for name in SWEEP), "last", source="main text, on Fig. 5",
              quote="consistent with the increasing complexity from MNIST to Fashion-MNIST to CIFAR-10"),
        *(
            Claim(f"{SET_NAMES[name]}: the final D at {depth} layers is as low as any, to a factor of 1.25", "least near",
                  (f"{name}-*",), "last", value=depth, quote="optimal depths … are 6, 10, and 12", source="Fig. 5")
            for name, depth in OPTIMAL.items()
        ),
        *(
            Claim(f"ρ rises with depth ({SET_NAMES[name]})", "rising", (f"{name}-*",), "rho", quote=DECAYS.get(name, ""),
                  source=f"8 layers: {SLIDES}; 20 layers: Fig. 1" if name in DECAYS else f"{IN_OUR_WORDS} the main text on Eq. 2")
            for name in SWEEP
        ),
    ),
    columns=3,
    **BEST,
)  # fmt: skip

WIDTHS: dict[str, dict[str, Any]] = {
    "width-20": {"width": 20},
    "width-100": {"width": 100},
    "width-1000": {"width": 1000},
    "narrow-wide": {"widths": (100,) * 4 + (1000,) * 3},
    "wide-narrow": {"widths": (1000,) * 4 + (100,) * 3},
    "mixed": {"widths": (100, 500, 500, 2500, 2500, 500, 500)},
}

WIDTH_NAMES = ("width 20", "width 100", "width 1000", "narrow, then wide", "wide, then narrow", "mixed widths")

FIG6 = Figure(
    id="he2023/fig6",
    title="Width: equal in all layers, and changing with depth (8 layers)",
    source=f"{SOURCE}, Fig. 6",
    base=FM,
    series=tuple(Series(name, changes, name) for name, changes in WIDTHS.items()),
    panels=tuple(Panel(name, title) for name, title in zip(WIDTHS, WIDTH_NAMES, strict=True)),
    claims=(
        Claim("Width 20 separates badly: its final D is above that of width 100", "above", ("width-20", "width-100"), "last",
              source=f"{IN_OUR_WORDS} the main text on Fig. 6"),
        Claim("Widths 100 and 1000 are alike in final D", "alike", ("width-100", "width-1000"), "last",
              quote="about the same final value of separation fuzziness for both widths of 100 and 1000",
              source="arXiv version, on Fig. 6"),
        Claim("Wide-narrow separates better than narrow-wide", "below", ("wide-narrow", "narrow-wide"), "last",
              source=f"{IN_OUR_WORDS} the main text on Fig. 6"),
    ),
    **BEST,
)  # fmt: skip

FROZEN: dict[str, Any] = {"kind": "staged", "first_epochs": 900, "first_trains": 10, "keep": 10}

FIG9 = Figure(
    id="he2023/fig9",
    title="Standard training, and a lower half trained first and then frozen",
    source=f"{SOURCE}, Fig. 9",
    base=FM.with_(depth=20, **CIFAR),
    series=(
        Series("standard", {}, "standard"),
        Series("frozen", FROZEN, "frozen"),
        Series("leaky", {**FROZEN, "leaky": True}, "leaky", "frozen, decayed"),
        Series("he-standard", HE, "he-standard", "standard, no norm"),
        Series("he-frozen", {**FROZEN, **HE}, "he-frozen", "frozen, no norm"),
    ),
    columns=3,
    panels=(
        Panel("standard", "standard training"),
        Panel("frozen", "lower half trained first, then frozen"),
        Panel("leaky", "frozen half still moved by weight decay (not in the paper)"),
        Panel("he-standard", "standard training, no BatchNorm (not in the paper)"),
        Panel("he-frozen", "frozen lower half, no BatchNorm (not in the paper)"),
        Panel("test", "test accuracy", kind="categories", y="accuracy_test", log_y=False, series=("*",)),
    ),
    claims=(
        Claim("Standard training has the law", "law", ("standard",), quote="−0.997", source="Fig. 9"),
        Claim("Frozen training does not have the law", "no law", ("frozen",), quote="−0.971", source="Fig. 9"),
        Claim("Both fit the training data", "at least", ("standard", "frozen"), "accuracy", value=FIT, fit=False,
              quote="training accuracies (standard: 100%; frozen: 100%)", source="Fig. 9"),
        Claim("Standard training has the better test accuracy", "above", ("standard", "frozen"), "accuracy_test",
              quote="23.85%, 19.67%", source="Fig. 9"),
        Claim("r and test accuracy as printed", "as printed", ("standard", "frozen"), "r;accuracy_test",
              quote="−0.997, −0.971; 23.85%, 19.67%", source="Fig. 9"),
        Claim("Without BatchNorm, standard training is nearer to a law than frozen training: its r is less", "below",
              ("he-standard", "he-frozen"), "r", source="ours: Fig. 9 has BatchNorm"),
        Claim("Without BatchNorm, standard training has the better test accuracy", "above", ("he-standard", "he-frozen"),
              "accuracy_test", source="ours: Fig. 9 has BatchNorm"),
    ),
    printed=(
        Printed("standard", "r", -0.997, "Fig. 9", 0.0005),
        Printed("frozen", "r", -0.971, "Fig. 9", 0.0005),
        Printed("standard", "loss", 0.0021, "Fig. 9"),
        Printed("frozen", "loss", 0.0019, "Fig. 9"),
        Printed("standard", "accuracy", 1.0, "Fig. 9"),
        Printed("frozen", "accuracy", 1.0, "Fig. 9"),
        Printed("standard", "accuracy_test", 0.2385, "Fig. 9 (slides: 0.2146)", 0.00005),
        Printed("frozen", "accuracy_test", 0.1967, "Fig. 9 (slides: 0.1825)", 0.00005),
    ),
    notes=(WHOLE, HE_NOTE),
    **BEST,
)  # fmt: skip

REACTIVATES = "one can fine-tune the parameters to reactivate the law with about the same or better test performance"

REACTIVATE = Figure(
    id="he2023/reactivate",
    title="After the frozen training of Fig. 9: all layers trained on",
    source=f"{SOURCE}, main text, with Fig. 9",
    base=FM.with_(depth=20, **CIFAR),
    series=(
        Series("frozen", FROZEN, "both", "lower half frozen"),
        Series("reactivated", {**FROZEN, "last_epochs": 600}, "both", "then all layers trained"),
    ),
    panels=(
        Panel("both", "D against depth"),
        Panel("test", "test accuracy", kind="categories", y="accuracy_test", log_y=False, series=("*",)),
    ),
    claims=(
        Claim("Fine-tuned, the network is nearer to a law: r falls", "below", ("reactivated", "frozen"), "r",
              source="main text, on Fig. 9", quote=REACTIVATES),
        Claim("Fine-tuned, its test accuracy is about the same or better", "no less", ("frozen", "reactivated"), "accuracy_test",
              source="main text, on Fig. 9", quote=REACTIVATES),
    ),
    columns=2,
    notes=(WHOLE,),
    **BEST,
)  # fmt: skip

FIGS11 = Figure(
    id="he2023/figS11",
    title="20 and 15 layers from scratch, and new layers on frozen ones",
    source=f"{SOURCE}, SI, Fig. S11",
    base=FM.with_(depth=15),
    series=(
        Series(
            "grafted",
            {"kind": "staged", "first_depth": 20, "first_epochs": 600, "first_schedule": 600, "keep": 10, "renew": True},
            "grafted",
        ),
        Series("scratch", {}, "scratch"),
        Series("deep", {"depth": 20}, "deep"),
    ),
    panels=(
        Panel("deep", "20 layers from scratch"),
        Panel("scratch", "15 layers from scratch"),
        Panel("grafted", "10 layers of a trained network, then new ones", cut=10),
    ),
    claims=(
        Claim("The law holds in the new layers", "law", ("grafted",), "r@from=10", source=f"{IN_OUR_WORDS} the SI on Fig. S11"),
        Claim("The law holds from scratch (15 layers)", "law", ("scratch",), source=f"{IN_OUR_WORDS} the SI on Fig. S11"),
    ),
    columns=3,
    **BEST,
)  # fmt: skip

NOISE = {"noise": (0.01, 0.02, 0.05, 0.1), "noise_draws": 10}

ON_WEIGHTS = (
    "ours, on He & Su (2023), Proposition 1, which does not speak of noise on weights, that moves ratios unequally"
)
UNLAWFUL = {
    "frozen": "with a frozen lower half",
    "no-norm": "without BatchNorm",
    "he": "without BatchNorm, where networks fit (He initialization)",
}

PROP1 = Figure(
    id="he2023/prop1",
    title="Noise on the weights: how much R changes, at matched R",
    source=f"{SOURCE}, Proposition 1",
    base=FM.with_(depth=20, **CIFAR, **NOISE),
    series=(
        Series("standard", label="standard training"),
        Series("frozen", FROZEN, label="lower half frozen"),
        Series("no-norm", {"norm": False}, label="no BatchNorm"),
        Series("he", HE, label="no BatchNorm, He init."),
        *(Series(f"early-{epoch}", {"epochs": epoch}, label=f"{epoch} epochs") for epoch in (10, 30, 100)),
    ),
    panels=(
        Panel("matched", "noise of 5 % of each layer's weights", kind="categories", y="change_matched",
              y_label="change of $R=D_{L-1}/D_0$, over $(L-1)R^{-1/(L-1)}$", series=("*",)),
    ),
    columns=1,
    claims=(
        Claim("The imbalance factor is 1 at least: an identity, which no network can fail", "at least",
              ("standard", "frozen", "early-*"), "imbalance", value=1.0, fit=False,
              source="ours: the inequality of arithmetic and geometric means, which Proposition 1 rests on"),
        *(
            Claim(f"At matched R, noise on the weights changes R less under the law than {words}", "below", ("standard", name),
                  "change_matched", source=ON_WEIGHTS,
                  quote="it is improbable for the perturbation to remain constant in practice")
            for name, words in UNLAWFUL.items()
        ),
        Claim("Over standard, frozen and early networks (10, 30, 100 epochs), the change of R under noise rises with the "
              "imbalance factor", "correlated",
              ("standard", "frozen", "early-*"), "imbalance;change_matched", fit=False,
              source=ON_WEIGHTS),
    ),
    notes=(
        "The paper itself says that noise of equal ε in every layer is improbable in practice.",
        "Early networks are trained for so many epochs on a schedule of their own, whose rate falls at 1/3 and 2/3 of them.",
        HE_NOTE,
    ),
    **BEST,
)  # fmt: skip

TIMES = (0, 10, 30, 100, 300, 600)
WIDE_TIMES = (0, 1, 3, 10, 30, 100, 300, 600)
# ours: a source that holds the target's classes, three layers kept of a network of four, nine new ones above
BALANCED: dict[str, Any] = {"first_classes": tuple(range(10)), "first_depth": 4, "keep": 3, "depth": 12}
OWN_IMAGES = "ours: a source that holds the target's own images"
SENSIBLE = "a sensible balance is to find when the improvement … is roughly the same between the bottom and top layers"

TRANSFER = Figure(
    id="he2023/transfer",
    title="Transfer: when to stop training on the source",
    source=f"{SOURCE}, main text, on transfer",
    base=FM.with_(
        kind="staged", classes=(5, 6, 7, 8, 9), first_classes=(0, 1, 2, 3, 4), first_schedule=600, keep=5, renew=True,
    ),
    series=(
        *(Series(f"t-{t}", {"first_epochs": t}, label=f"{t} epochs on the source", x=float(t)) for t in TIMES),
        *(
            Series(f"wide-{t}", {**BALANCED, "first_epochs": t}, label=f"{t} epochs on ten classes", x=float(t))
            for t in WIDE_TIMES
        ),
    ),
    panels=(
        Panel("accuracy", "target test accuracy", kind="sweep", y="accuracy_test", x_label="epochs on the source",
              log_x=True, log_y=False, series=("t-*",)),
        Panel("loads", "how much more the top layers do than the bottom ones", kind="sweep", y="load_gap@split=5",
              x_label="epochs on the source", y_label="(top − bottom)/mean share of the work", log_x=True, log_y=False,
              series=("t-*",), levels=((0.0, "balanced"),)),
        Panel("wide-accuracy", "target test accuracy, source of all ten classes", kind="sweep", y="accuracy_test",
              x_label="epochs on the source", log_x=True, log_y=False, series=("wide-*",)),
        Panel("wide-loads", "how much more the top layers do, source of all ten classes", kind="sweep",
              y="load_gap@split=3", x_label="epochs on the source", y_label="(top − bottom)/mean share of the work", log_x=True,
              log_y=False, series=("wide-*",), levels=((0.0, "balanced"),)),
    ),
    claims=(
        Claim(
            "Target accuracy is best near the time when bottom and top loads are equal", "best at zero", ("t-*",),
            "accuracy_test;load_gap@split=5", source="main text, on transfer", quote=SENSIBLE,
        ),
        Claim(
            "Target accuracy is best near the time when bottom and top loads are equal (source of all ten classes)",
            "best at zero", ("wide-*",), "accuracy_test;load_gap@split=3", source=OWN_IMAGES,
        ),
        *(
            Claim(f"{words} (source of all ten classes)", "above", of, "accuracy_test",
                  source=OWN_IMAGES)
            for words, of in (
                ("Target accuracy is higher after 10 epochs, near balance, than without a source", ("wide-10", "wide-0")),
                ("Target accuracy is higher after 10 epochs, near balance, than after 600", ("wide-10", "wide-600")),
            )
        ),
    ),
    columns=2,
    cite=CITE,
    fit=FIT,
    readings=READINGS,
    notes=(
        WHOLE,
        f"Both stages train at the rate {FM.rate:g}: no r of the target can choose the rate of the source.",
        "In the first design, whose source has none of the target's classes, layers that are kept never do as much as new ones: "
        "balance is not reached. The other design keeps three layers of a network of four that learned all ten classes, those "
        "of the target among them (the same images), and puts nine layers above. It, and its time near balance, were chosen by "
        "trials of two seeds with 150 epochs on the target.",
    ),
)  # fmt: skip
