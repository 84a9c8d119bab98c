"""He & Su 2023: the law in feed-forward networks: optimizers, depths, data, epochs, classes, test data, missing parts."""

from __future__ import annotations

from typing import Any

from equisep.figures.figure import IN_OUR_WORDS, Claim, Figure, Panel, Printed, Series
from equisep.figures.papers import CLASS_NAMES
from equisep.figures.papers.he2023.common import (
    BEST,
    CIFAR,
    DEPTHS,
    EPOCHS,
    FM,
    HE,
    HE_NOTE,
    OFTEN,
    OPTIMIZERS,
    RATES,
    SET_NAMES,
    SETS,
    SLIDES,
    SOURCE,
    at_epoch,
)
from equisep.results.records import COLLAPSED, LAW_R, NO_LAW_R

FIG1 = Figure(
    id="he2023/fig1",
    title="Three optimizers and three depths",
    source=f"{SOURCE}, Fig. 1",
    base=FM,
    series=(
        *(
            Series(f"{name}-{depth}", {"optimizer": name, "depth": depth}, f"{name}-{depth}",
                   f"{OPTIMIZERS[name]}, {depth} layers")
            for name in RATES
            for depth in DEPTHS
        ),
        Series("points", {"depth": 8, "coordinates": 250}, "points", seeds=1),
    ),
    panels=(
        *(Panel(f"{name}-{depth}", f"{OPTIMIZERS[name]}, {depth} layers") for name in RATES for depth in DEPTHS),
        Panel("points", "Adam, 8 layers: 250 training images on their first two principal components", kind="points"),
    ),
    claims=(
        Claim("The law holds in all nine panels", "law", ("sgd-*", "momentum-*", "adam-*"),
              quote="range from −0.997 and −1", source="main text, on Fig. 1"),
        Claim("The printed r are those of a training at its best rate", "as printed", ("sgd-*", "momentum-*", "adam-*"),
              quote="−1.000, −0.998, −0.997 / −0.999, −0.998, −0.998 / −1.000, −0.997, −0.999", source="Fig. 1"),
        *(
            Claim(f"The 20-layer final D is higher than the 8-layer one ({title})", "below",
                  (f"{name}-8", f"{name}-20"), "last", source="main text, on Fig. 1",
                  quote="the 20-layer neural networks have higher values of the final separation fuzziness than those of their "
                        "8-layer counterparts")
            for name, title in OPTIMIZERS.items()
        ),
        Claim(
            "ρ depends less on the optimizer than on depth", "less spread",
            (*(f"*-{depth}" for depth in DEPTHS), *(f"{name}-*" for name in RATES)), "rho",
            source=f"{IN_OUR_WORDS} the main text on Eq. 2",
        ),
        Claim("Adam, 20 layers: ρ and half-life as printed", "as printed", ("adam-20",), "rho;half_life",
              quote="0.818; 3.45", source="Fig. 1"),
        Claim("Adam, 8 layers: ρ and half-life as printed", "as printed", ("adam-8",), "rho;half_life", quote="0.53; 1.1",
              source=SLIDES),
    ),
    printed=(
        *(
            Printed(f"{name}-{depth}", "r", r, "Fig. 1", 0.0005)
            for name, row in (
                ("sgd", (-1.000, -0.998, -0.997)),
                ("momentum", (-0.999, -0.998, -0.998)),
                ("adam", (-1.000, -0.997, -0.999)),
            )
            for depth, r in zip(DEPTHS, row, strict=True)
        ),
        Printed("adam-20", "rho", 0.818, "Fig. 1", 0.0005),
        Printed("adam-20", "half_life", 3.45, "Fig. 1", 0.005),
        Printed("adam-8", "rho", 0.53, SLIDES, 0.005),
        Printed("adam-8", "half_life", 1.1, SLIDES, 0.05),
    ),
    notes=("All classes are equally large, so weighting by class or by sample gives the same D.",),
    code_rates={  # the paper does not print them
        f"{name}-{depth}": rate
        for name, row in (("sgd", (0.3, 0.03, 0.01)), ("momentum", (0.3, 0.01, 0.001)), ("adam", (3e-3, 1e-3, 3e-4)))
        for depth, rate in zip(DEPTHS, row, strict=True)
    },
    **BEST,
)  # fmt: skip

EMERGENCE = FM.with_(depth=20, read_epochs=OFTEN)
OBSERVED = "its emergence is observed in a collection of network architectures and datasets during training"

FIG2 = Figure(
    id="he2023/fig2",
    title="D against depth during training, 20 layers",
    source=f"{SOURCE}, Fig. 2",
    base=EMERGENCE,
    series=(Series("adam-20"),),
    panels=tuple(
        Panel(f"epoch-{epoch}", f"epoch {epoch}", y=f"fuzziness@{at_epoch(epoch)}", series=("adam-20",)) for epoch in EPOCHS
    ),
    claims=(
        Claim("No law before training", "no law", ("adam-20",), f"r@{at_epoch(0)}", quote=OBSERVED,
              source="abstract; epoch 0: Fig. 2"),
        Claim("The law holds at epoch 100", "law", ("adam-20",), f"r@{at_epoch(100)}",
              quote="manifests at epoch 100 … −0.996", source="main text, on Fig. 2"),
        Claim(f"The law emerges by epoch 400: r ≤ {LAW_R:g}, and in neither of the next two readings above {NO_LAW_R:g}"
              .replace("-", "−"), "at most", ("adam-20",), "law_epoch", 400.0,
              source=f"{IN_OUR_WORDS} the main text on Fig. 2; by when, and the rule of emergence, are ours"),
        Claim("r at epoch 100 as printed", "as printed", ("adam-20",), f"r@{at_epoch(100)}", quote="−0.996", source="Fig. 2"),
        Claim(
            "Then ρ falls until the network converges: its slope over all epochs read from 100 on", "falling", ("adam-20",),
            ";".join(f"rho@{at_epoch(epoch)}" for epoch in OFTEN if epoch >= 100), source="main text, on Fig. 2",
            quote="After that the decay ratio is decreased along the training process until the network converges",
        ),
    ),
    printed=(Printed("adam-20", f"r@{at_epoch(100)}", -0.996, "Fig. 2", 0.0005),),
    **BEST,
)  # fmt: skip

FIGS1 = Figure(
    id="he2023/figS1",
    title="The last layer and the correlation r during training, 20 layers",
    source=f"{SOURCE}, SI, Fig. S1",
    base=EMERGENCE,
    series=(Series("adam-20", panel="last", label="Adam, 20 layers"),),
    panels=(
        Panel("last", "D of the last layer, from epoch 100 on", kind="epochs", y="last", x_label="epoch", log_y=False, start=100),
        Panel("r", "how straight the curve of D is", kind="epochs", y="r", x_label="epoch", series=("adam-20",), start=50,
              levels=((LAW_R, f"a law: r ≤ {LAW_R:g}".replace("-", "−")),)),
    ),
    columns=2,
    claims=(
        Claim(
            "D of the last layer still falls after epoch 100, where the paper has the law", "above", ("adam-20",),
            f"last@{at_epoch(100)};last@{at_epoch(400)}", quote="manifests at epoch 100 … −0.996”; “not until after 400 epochs",
            source="main text, on Fig. 2, of the law; SI, on Fig. S1, of neural collapse",
        ),
        Claim(
            "D of the last layer still falls after epoch 400", "above", ("adam-20",),
            f"last@{at_epoch(400)};last@{at_epoch(600)}", quote="not until after 400 epochs",
            source="SI, on Fig. S1, of neural collapse",
        ),
        *(
            Claim(
                f"There is no neural collapse at epoch {epoch}: NC1 = D/10 of the last layer is above {COLLAPSED:g}",
                "at least", ("adam-20",), f"last@{at_epoch(epoch)}", 10 * COLLAPSED, quote="not until after 400 epochs",
                source="SI, on Fig. S1; what counts as collapsed is ours",
            )
            for epoch in (100, 400)
        ),
    ),
    printed=(Printed("adam-20", "last", 0.8, "SI, Fig. S1 (its axis ends at about 0.8)"),),
    **BEST,
)  # fmt: skip

IMBALANCED: dict[str, Any] = {"per_class": None, "sizes": (500,) * 5 + (100,) * 5}

WEIGHTINGS = ("sample", "class", "mixed")

FIG3 = Figure(
    id="he2023/fig3",
    title="CIFAR-10; unequal classes (Fashion-MNIST, 500 and 100 images); three learning rates",
    source=f"{SOURCE}, Fig. 3",
    base=FM,
    series=(
        *(Series(f"cifar-{depth}", {"depth": depth, **CIFAR}, f"cifar-{depth}") for depth in DEPTHS),
        *(
            Series(f"imbalanced-{depth}", {"depth": depth, **IMBALANCED}, f"imbalanced-{depth}") for depth in DEPTHS
        ),
        *(
            Series(f"sgd-{rate:g}", {"depth": 9, "optimizer": "sgd"}, f"sgd-{rate:g}", rates=(rate,))
            for rate in (0.01, 0.03, 0.1)
        ),
        *(Series(f"balanced-{depth}", {"depth": depth}) for depth in DEPTHS),
        *(
            Series(f"{word}-{depth}", {"depth": depth, "weightings": WEIGHTINGS, **own},
                   rates=(FIG1.code_rates[f"adam-{depth}"],))
            for word, own in (("equal", {}), ("unequal", IMBALANCED))
            for depth in DEPTHS
        ),
    ),
    panels=(
        *(Panel(f"cifar-{depth}", f"CIFAR-10, {depth} layers") for depth in DEPTHS),
        *(Panel(f"imbalanced-{depth}", f"unequal classes (500, 100), {depth} layers") for depth in DEPTHS),
        *(Panel(f"sgd-{rate:g}", f"Fashion-MNIST, SGD at rate {rate:g}, 9 layers") for rate in (0.01, 0.03, 0.1)),
    ),
    claims=(
        *(
            Claim(f"The law holds {words}", "law", of, source="main text, on Fig. 3",
                  quote="consistently prevails across diverse datasets, learning rates, and class imbalances")
            for words, of in (
                ("on CIFAR-10", ("cifar-*",)), ("for unequal classes", ("imbalanced-*",)), ("at other rates", ("sgd-*",)),
            )
        ),
        *(
            Claim(f"Unequal classes have a longer half-life ({depth} layers{more})", "below",
                  (f"{equal}-{depth}", f"{unequal}-{depth}"), "half_life", source="main text, on Fig. 3",
                  quote="its half-life is significantly larger than that in the balanced case")
            for equal, unequal, more in (("balanced", "imbalanced", ""), ("equal", "unequal", ", both at one rate"))
            for depth in DEPTHS
        ),
    ),
    notes=("Other levels of imbalance, up to classes that are absent: `equisep2026/imbalance`.",),
    **BEST,
)  # fmt: skip

FIGS4 = Figure(
    id="he2023/figS4",
    title="Images of 32 × 32, width 1000",
    source=f"{SOURCE}, SI, Fig. S4",
    base=FM.with_(preparation="he2023-32x32", width=1000),
    series=tuple(
        Series(f"{name}-{depth}", {"depth": depth, **own}, f"{name}-{depth}") for name, own in SETS for depth in DEPTHS
    ),
    panels=tuple(
        Panel(f"{name}-{depth}", f"{SET_NAMES[name]}, {depth} layers") for name, _ in SETS for depth in DEPTHS
    ),
    claims=(
        Claim("The law holds in all six panels", "law", ("fm-*", "cifar-*"), source=f"{IN_OUR_WORDS} the SI on Fig. S4"),
    ),
    **BEST,
)  # fmt: skip

FIGS5 = Figure(
    id="he2023/figS5",
    title="1,000, 2,000 and 5,000 training images, 8 layers",
    source=f"{SOURCE}, SI, Fig. S5",
    base=FM,
    series=tuple(Series(f"n-{10 * n}", {"per_class": n}, f"n-{10 * n}", x=10.0 * n) for n in (100, 200, 500)),
    panels=tuple(Panel(f"n-{n}", f"{n} samples") for n in (1000, 2000, 5000)),
    claims=(
        Claim("The law holds in all three panels", "law", ("n-*",), source=f"{IN_OUR_WORDS} the SI on Fig. S5"),
        Claim("The half-life is longer with more data, from 1,000 to 2,000 images and from 2,000 to 5,000", "below", ("n-*",),
              "half_life", source=f"{IN_OUR_WORDS} the SI on Fig. S5"),
    ),
    **BEST,
)  # fmt: skip

BY_CLASS = ";".join(f"r@class={label}" for label in range(10))

FIGS6 = Figure(
    id="he2023/figS6",
    title="D of each class, 8 layers",
    source=f"{SOURCE}, SI, Fig. S6",
    base=FM.with_(class_wise=True),
    series=(Series("adam-8"),),
    panels=tuple(
        Panel(f"class-{k}", name, y=f"class_fuzziness@class={k}", behind="fuzziness", series=("adam-8",))
        for k, name in enumerate(CLASS_NAMES["fashion-mnist"])
    ),
    claims=(
        Claim("A law, fuzzy in some, in each class", "fuzzy law", ("adam-8",), BY_CLASS,
              quote="can be a little noisy for some classes", source="SI, on Fig. S6"),
        Claim("Single classes are noisier than all together: the mean r of the classes is closer to zero",
              "below", ("adam-8",), "r;class_r",
              quote="can be a little noisy for some classes", source="SI, on Fig. S6"),
    ),
    columns=5,
    **BEST,
)  # fmt: skip

FIGS7 = Figure(
    id="he2023/figS7",
    title="How much each layer reduces D, epoch by epoch (CIFAR-10, 8 layers)",
    source=f"{SOURCE}, SI, Fig. S7",
    base=FM.with_(read_epochs=OFTEN, **CIFAR),
    series=(Series("adam-8"),),
    panels=tuple(
        Panel(f"layer-{site - 1}", f"Layer = {site - 1}", kind="epochs", y=f"ratios@site={site}", x_label="epoch",
              y_label="$D_{l+1}/D_l$", log_y=False, series=("adam-8",))
        for site in range(1, 8)
    ),
    claims=(
        Claim(
            "Bottom layers settle first: the epoch from which a ratio stays within 10 % rises with the layer", "rising",
            ("adam-8",), ";".join(f"settled@site={site}" for site in range(1, 8)), source=f"{IN_OUR_WORDS} the SI on Fig. S7",
        ),
    ),
    columns=4,
    **BEST,
)  # fmt: skip

FIGS8 = Figure(
    id="he2023/figS8",
    title="D on test data",
    source=f"{SOURCE}, SI, Fig. S8",
    base=FM.with_(test_sites=True),
    series=tuple(Series(f"adam-{depth}", {"depth": depth}, f"adam-{depth}") for depth in DEPTHS),
    panels=tuple(Panel(f"adam-{depth}", f"{depth} layers", y="fuzziness_test") for depth in DEPTHS),
    claims=tuple(
        Claim(f"A fuzzy law on test data ({depth} layers)", "fuzzy law", (f"adam-{depth}",), "r@of=fuzziness_test",
              quote="A fuzzy version of the equi-separation law also exists in the test data", source="SI, on Fig. S8")
        for depth in DEPTHS
    ),
    **BEST,
)  # fmt: skip

HE_DEPTHS = (20, 12, 8)
UNCLEAR = "even when the network is well-optimized, the law is often not clear"

FIGS10 = Figure(
    id="he2023/figS10",
    title="20 layers, and fewer, without BatchNorm",
    source=f"{SOURCE}, SI, Fig. S10",
    base=FM.with_(depth=20, norm=False),
    series=(
        Series("no-norm", panel="no-norm"),
        *(
            Series(f"he-{depth}", {**HE, "depth": depth}, f"he-{depth}", f"{depth} layers", lacks="the paper's initialization")
            for depth in HE_DEPTHS
        ),
    ),
    panels=(
        Panel("no-norm", "20 layers, no BatchNorm"),
        *(Panel(f"he-{depth}", f"{depth} layers, no BatchNorm, He initialization") for depth in HE_DEPTHS),
    ),
    claims=(
        *(
            Claim(f"The law is not clear, r is above {LAW_R:g}: {words}".replace("-", "−"), "at least", (series,), "r", LAW_R,
                  quote=UNCLEAR, source=f"SI, on Fig. S10{whose}")
            for series, words, whose in (
                ("no-norm", "torch's own initialization, 20 layers", ""),
                *((f"he-{depth}", f"He initialization, {depth} layers", "; the initialization is ours") for depth in HE_DEPTHS),
            )
        ),
        *(
            Claim(f"No law even where the network is well optimized: He initialization, {depth} layers", "no law",
                  (f"he-{depth}",), source=f"ours: it asks more than “{UNCLEAR}” (SI, on Fig. S10)")
            for depth in HE_DEPTHS
        ),
    ),
    notes=(HE_NOTE,),
    columns=2,
    **BEST,
)  # fmt: skip

LINEAR_LEAVES = "roughly unchanged by linear transformations"

LINEAR = Figure(
    id="he2023/linear",
    title="20 layers with and without ReLU",
    source=f"{SOURCE}, authors' code",
    base=FM.with_(depth=20, activation=False),
    series=(
        Series("linear", panel="linear", label="linear"),
        Series("relu", {"activation": True}, "linear", "with ReLU, as in Fig. 1"),
    ),
    panels=(Panel("linear", "D against depth"),),
    claims=(
        Claim("No law", "no law", ("linear",), fit=False, source="ours: the authors' code draws it, the paper does not"),
        Claim("Linear layers leave a third of D or more", "at least", ("linear",), "ratio", value=1 / 3, fit=False,
              quote=LINEAR_LEAVES, source="main text, on Eq. 1; the factor 1/3 is ours"),
        Claim("Linear layers leave more of D than layers with ReLU", "above", ("linear", "relu"), "ratio", fit=False,
              quote=LINEAR_LEAVES, source="main text, on Eq. 1"),
    ),
    columns=1,
    **BEST,
)  # fmt: skip
