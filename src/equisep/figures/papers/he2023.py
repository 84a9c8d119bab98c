"""He & Su, "A law of data separation in deep learning" (PNAS 2023, its SI and arXiv version; Su's slides of 2024), as data."""

from __future__ import annotations

from typing import Any

from equisep.figures.cell import Training
from equisep.figures.figure import Claim, Figure, Panel, Printed, Series
from equisep.figures.papers import CLASS_NAMES
from equisep.results.records import LAW_R

CITE = 'Hangfeng He and Weijie J. Su, "A law of data separation in deep learning", PNAS 120(36), e2221704120, 2023.'
SOURCE = "He & Su (2023)"
SLIDES = "Su's slides, 2024"
STEPS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
OPTIMIZERS = {"sgd": "SGD", "momentum": "SGD with momentum", "adam": "Adam"}
RATES = {"sgd": STEPS, "momentum": STEPS, "adam": (3e-5, 1e-4, 3e-4, 1e-3, 3e-3)}
FIT = 0.999  # "terminal phase": networks that interpolate their training data
READINGS = ("drawn", "mixed", "eval")  # the figures of the paper are read in the first
BEST: dict[str, Any] = {"rates": RATES, "choose": "best r", "cite": CITE, "fit": FIT, "readings": READINGS}
FM = Training(readings=READINGS)
CIFAR: dict[str, Any] = {"data": "cifar10", "preparation": "he2023-10x10-cifar"}
MNIST: dict[str, Any] = {"data": "mnist"}
DEPTHS = (4, 8, 20)
EPOCHS = (0, 10, 20, 30, 50, 100, 200, 300, 600)
OFTEN = (0, 10, 20, 30, 50, 75, 100, 125, 150, 175, 200, 225, 250, 275, 300, 350, 400, 450, 500, 550, 600)

# convolutional networks: one seed, the rate found by short runs, TF32 allowed (and recorded)
IMAGES = Training(readings=("mixed", "eval"), preparation="he2023-32x32", depth=None, width=None, tf32=True)
COLORS: dict[str, Any] = {"data": "cifar10", "preparation": "he2023-32x32-cifar"}
# convolutions at smoke scale
SMALL: dict[str, Any] = {"epochs": 2, "per_class": 4, "test_per_class": 3, "width_multiplier": 1 / 64}
SHORT: dict[str, Any] = {"rates": RATES, "choose": "short runs", "cite": CITE, "fit": FIT, "seeds": 1, "smoke": SMALL}
SETS: tuple[tuple[str, dict[str, Any]], ...] = (("fm", {}), ("cifar", COLORS))
SET_NAMES = {"fm": "Fashion-MNIST", "cifar": "CIFAR-10", "mnist": "MNIST"}
MIXED_CUT = {"layers": 6, "blocks": 2}  # where 3-layer blocks end and 2-layer ones begin
RESNETS = {"2-layer": "2-layer blocks", "3-layer": "3-layer blocks", "mixed": "mixed blocks"}

WHOLE = "Loss and accuracy are those of the network in eval reading, as the authors' code reads them; the reading of D is mixed."


def _epoch(epoch: int) -> str:
    """An epoch of 600, as a share: so that a shorter training has it too."""
    return f"epoch={epoch}/600"


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
        Claim("The law holds in all nine panels", "law", ("sgd-*", "momentum-*", "adam-*")),
        *(
            Claim(f"The 20-layer final D is higher than the 8-layer one ({title})", "below",
                  (f"{name}-8", f"{name}-20"), "last")
            for name, title in OPTIMIZERS.items()
        ),
        Claim(
            "ρ depends less on the optimizer than on depth", "less spread",
            (*(f"*-{depth}" for depth in DEPTHS), *(f"{name}-*" for name in RATES)), "rho",
        ),
        Claim("Adam, 20 layers: ρ", "near", ("adam-20",), "rho", value=0.818, source="Fig. 1"),
        Claim("Adam, 8 layers: ρ", "near", ("adam-8",), "rho", value=0.53, source=SLIDES),
    ),
    printed=(
        *(
            Printed(f"{name}-{depth}", "r", r, "Fig. 1")
            for name, row in (
                ("sgd", (-1.000, -0.998, -0.997)),
                ("momentum", (-0.999, -0.998, -0.998)),
                ("adam", (-1.000, -0.997, -0.999)),
            )
            for depth, r in zip(DEPTHS, row, strict=True)
        ),
        Printed("adam-20", "rho", 0.818, "Fig. 1"),
        Printed("adam-20", "half_life", 3.45, "Fig. 1"),
        Printed("adam-8", "rho", 0.53, SLIDES),
        Printed("adam-8", "half_life", 1.1, SLIDES),
    ),
    notes=("Weightings of D agree here by definition: all classes have as many samples.",),
    code_rates={  # the paper does not print them
        f"{name}-{depth}": rate
        for name, row in (("sgd", (0.3, 0.03, 0.01)), ("momentum", (0.3, 0.01, 0.001)), ("adam", (3e-3, 1e-3, 3e-4)))
        for depth, rate in zip(DEPTHS, row, strict=True)
    },
    **BEST,
)  # fmt: skip

EMERGENCE = FM.with_(depth=20, read_epochs=OFTEN)
FIG2 = Figure(
    id="he2023/fig2",
    title="D against depth during training, 20 layers",
    source=f"{SOURCE}, Fig. 2",
    base=EMERGENCE,
    series=(Series("adam-20"),),
    panels=tuple(
        Panel(f"epoch-{epoch}", f"epoch {epoch}", y=f"fuzziness@{_epoch(epoch)}", series=("adam-20",)) for epoch in EPOCHS
    ),
    claims=(
        Claim("No law before training", "no law", ("adam-20",), f"r@{_epoch(0)}"),
        Claim("The law holds at epoch 100", "law", ("adam-20",), f"r@{_epoch(100)}"),
        Claim(
            "Then ρ falls until the network converges", "above", ("adam-20",),
            ";".join(f"rho@{_epoch(epoch)}" for epoch in (100, 200, 600)),
        ),
    ),
    printed=(Printed("adam-20", f"r@{_epoch(100)}", -0.996, "Fig. 2"),),
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
        Claim("The law is there at epoch 100", "law", ("adam-20",), f"r@{_epoch(100)}"),
        Claim(
            "D of the last layer still falls after that", "above", ("adam-20",),
            f"last@{_epoch(100)};last@{_epoch(400)}",
        ),
        Claim("and has settled at epoch 400", "alike", ("adam-20",), f"last@{_epoch(600)};last@{_epoch(400)}"),
    ),
    printed=(Printed("adam-20", "last", 0.8, "SI, Fig. S1 (its axis ends at about 0.8)"),),
    **BEST,
)  # fmt: skip

IMBALANCED: dict[str, Any] = {"per_class": None, "sizes": (500,) * 5 + (100,) * 5}
WEIGHTINGS = ("sample", "class", "mixed")  # the paper's text, the authors' main script, Papyan et al.
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
        Claim("The law holds in all nine panels", "law", ("cifar-*", "imbalanced-*", "sgd-*")),
        *(
            Claim(f"Unequal classes have a longer half-life ({depth} layers)", "below",
                  (f"balanced-{depth}", f"imbalanced-{depth}"), "half_life")
            for depth in DEPTHS
        ),
        Claim("At the authors' rates the law holds for unequal classes, however they are weighed", "law", ("unequal-*",),
              ";".join(f"r@weighting={name}" for name in WEIGHTINGS)),
        *(
            Claim(f"and with classes weighed alike their half-life is longer ({depth} layers)", "below",
                  (f"equal-{depth}", f"unequal-{depth}"), "half_life@weighting=class")
            for depth in DEPTHS
        ),
    ),
    **BEST,
)  # fmt: skip

FIG4 = Figure(
    id="he2023/fig4",
    title="Wide AlexNet and VGG13",
    source=f"{SOURCE}, Fig. 4",
    base=IMAGES,
    series=tuple(
        Series(f"{network}-{name}", {"network": f"{network}-wide", **own}, f"{network}-{name}")
        for name, own in SETS
        for network in ("alexnet", "vgg13")
    ),
    panels=tuple(
        Panel(f"{network}-{name}", f"{title}, {SET_NAMES[name]}")
        for name, _ in SETS
        for network, title in (("alexnet", "AlexNet"), ("vgg13", "VGG13"))
    ),
    claims=(Claim("The law holds in all four panels", "law", ("alexnet-*", "vgg13-*")),),
    columns=2,
    **SHORT,
)  # fmt: skip
FIGS2 = Figure(
    id="he2023/figS2",
    title="The original VGG networks",
    source=f"{SOURCE}, SI, Fig. S2",
    base=IMAGES,
    series=tuple(
        Series(f"vgg{depth}-{name}", {"network": f"vgg{depth}", **own}, f"vgg{depth}-{name}")
        for name, own in SETS
        for depth in (11, 13, 16, 19)
    ),
    panels=tuple(
        Panel(f"vgg{depth}-{name}", f"VGG{depth}, {SET_NAMES[name]}") for name, _ in SETS for depth in (11, 13, 16, 19)
    ),
    claims=(Claim("A fuzzy law in every panel", "fuzzy law", ("vgg*",)),),
    columns=4,
    **SHORT,
)  # fmt: skip
FIGS3 = Figure(
    id="he2023/figS3",
    title="Pure CNN (no pooling)",
    source=f"{SOURCE}, SI, Fig. S3",
    base=IMAGES,
    series=(
        Series("cnn-fm", {"network": "pure-cnn", "depth": 8, "channels": 64}, "cnn-fm"),
        Series("cnn-cifar", {"network": "pure-cnn", "depth": 8, "channels": 16, **COLORS}, "cnn-cifar"),
        Series("fnn-fm", {"network": "fnn", "depth": 9, "width": 1000}),
        Series("fnn-cifar", {"network": "fnn", "depth": 9, "width": 1000, **COLORS}),
    ),
    panels=(Panel("cnn-fm", "64 channels, Fashion-MNIST"), Panel("cnn-cifar", "16 channels, CIFAR-10")),
    claims=(
        Claim("The law holds in both panels", "law", ("cnn-*",)),
        *(
            Claim(f"The final D is higher than that of a feed-forward network as deep ({SET_NAMES[name]})", "below",
                  (f"fnn-{name}", f"cnn-{name}"), "last")
            for name, _ in SETS
        ),
    ),
    columns=2,
    notes=("The feed-forward networks beside it: 9 layers of width 1000 on the same images.",),
    **SHORT,
)  # fmt: skip
CNN = {"network": "pure-cnn", "channels": 16}
FACTORS = Figure(
    id="he2023/cnn-factors",
    title="Depth, kernel, pooling and image size of convolutional networks",
    source=f"{SOURCE}, SI, on convolutional networks",
    base=IMAGES,
    series=(
        *(Series(f"depth-{depth}", {**CNN, "depth": depth}, "depth", f"{depth} layers") for depth in (4, 8, 16)),
        *(Series(f"kernel-{size}", {**CNN, "depth": 8, "kernel": size}, "kernel", f"{size} × {size}") for size in (3, 5, 7)),
        *(
            Series(f"pooling-{word}", {"network": "vgg11", "pooling": on, "width_multiplier": 0.25}, "pooling", word)
            for word, on in (("with", True), ("without", False))
        ),
        *(
            Series(f"size-{size}", {**CNN, "depth": 8, "preparation": f"he2023-{size}x{size}"}, "size", f"{size} × {size}")
            for size in (10, 32)
        ),
    ),
    panels=(
        Panel("depth", "depth"),
        Panel("kernel", "kernel"),
        Panel("pooling", "pooling (VGG11, a quarter of the channels)"),
        Panel("size", "image size"),
    ),
    claims=tuple(
        Claim(f"The law is a delicate balance: r differs with {word}", "differ", of)
        for word, of in (
            ("depth", ("depth-4", "depth-16")),
            ("kernel", ("kernel-3", "kernel-7")),
            ("pooling", ("pooling-with", "pooling-without")),
            ("image size", ("size-10", "size-32")),
        )
    ),
    columns=4,
    **SHORT,
)  # fmt: skip

SWEEP = {"mnist": (*range(3, 11), 18), "fm": (*range(3, 12), 18), "cifar": (3, 4, *range(8, 15), 18, 20)}
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
            Panel(name, f"{SET_NAMES[name]}: D of the last layer", kind="sweep", y="last", x_label="layers of the network",
                  series=(f"{name}-*",))
            for name in SWEEP
        ),
        *(
            Panel(f"{name}-rho", f"{SET_NAMES[name]}: decay per layer", kind="sweep", y="rho", x_label="layers of the network",
                  log_y=False, series=(f"{name}-*",))
            for name in SWEEP
        ),
    ),
    claims=(
        Claim("The depth of the least final D rises with difficulty", "least rising",
              tuple(f"{name}-*" for name in SWEEP), "last"),
        *(
            Claim(f"{SET_NAMES[name]}: depth of the least final D", "least near", (f"{name}-*",), "last",
                  value=depth, source="Fig. 5")
            for name, depth in (("mnist", 6), ("fm", 10), ("cifar", 12))
        ),
        *(Claim(f"ρ rises with depth ({SET_NAMES[name]})", "rising", (f"{name}-*",), "rho") for name in SWEEP),
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
        Claim("Width 20 separates badly: its final D is above that of width 100", "above", ("width-20", "width-100"), "last"),
        Claim("Widths 100 and 1000 are alike in final D", "alike", ("width-100", "width-1000"), "last"),
        Claim("Wide-narrow separates better than narrow-wide", "below", ("wide-narrow", "narrow-wide"), "last"),
    ),
    **BEST,
)  # fmt: skip

BLOCKS = IMAGES.with_(grains=("blocks", "layers"), reductions=("pca=100", "flatten"))
FIG7 = Figure(
    id="he2023/fig7",
    title="Residual networks, by layer and by block",
    source=f"{SOURCE}, Fig. 7",
    base=BLOCKS,
    series=tuple(
        Series(f"{name}-{data}", {"network": f"resnet-{name}", **own}) for data, own in SETS for name in RESNETS
    ),
    panels=tuple(
        Panel(f"{name}-{data}-{grain}", f"{title}, {SET_NAMES[data]}, by {grain[:-1]}", y=f"fuzziness@grain={grain}",
              series=(f"{name}-{data}",), cut=MIXED_CUT[grain] if name == "mixed" else None)
        for name, title in RESNETS.items()
        for data, _ in SETS
        for grain in ("layers", "blocks")
    ),
    claims=(
        Claim("The law holds by block for blocks of one kind", "law", ("2-layer-*", "3-layer-*"), "r@grain=blocks"),
        Claim("and not by layer", "no law", ("2-layer-*", "3-layer-*", "mixed-*"), "r@grain=layers"),
        Claim("Mixed blocks have two slopes (bend above its limit)", "at least", ("mixed-*",), "bend@grain=blocks", value=1.0),
        *(
            Claim(f"3-layer blocks separate more than 2-layer ones ({SET_NAMES[data]})", "below",
                  (f"3-layer-{data}", f"2-layer-{data}"), "last@grain=blocks")
            for data, _ in SETS
        ),
    ),
    columns=4,
    notes=("Read as the authors' code does, on 100 principal components; the plain features stand beside it.",),
    **SHORT,
)  # fmt: skip
FIG8 = Figure(
    id="he2023/fig8",
    title="DenseNet161 by block",
    source=f"{SOURCE}, Fig. 8",
    base=IMAGES.with_(network="densenet161", grains=("blocks",)),
    series=tuple(Series(f"densenet-{data}", own, data) for data, own in SETS),
    panels=tuple(Panel(data, SET_NAMES[data], x_label="block") for data, _ in SETS),
    claims=(Claim("The law holds by block", "law", ("densenet-*",)),),
    columns=2,
    **SHORT,
)  # fmt: skip
FIG10 = Figure(
    id="he2023/fig10",
    title="ResNet18, by block",
    source=f"{SOURCE}, Fig. 10",
    base=BLOCKS,
    series=(
        *(Series(f"resnet18-{data}", {"network": "resnet18", **own}, data) for data, own in SETS),
        *(Series(f"2-layer-{data}", {"network": "resnet-2-layer", **own}) for data, own in SETS),
    ),
    panels=tuple(Panel(data, SET_NAMES[data], x_label="block") for data, _ in SETS),
    claims=tuple(
        Claim(f"r is closer to zero than that of Fig. 7 ({SET_NAMES[data]})", "below",
              (f"2-layer-{data}", f"resnet18-{data}"), "r@grain=blocks")
        for data, _ in SETS
    ),
    columns=2,
    **SHORT,
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
        Series("leaky", {**FROZEN, "leaky": True}, "leaky"),
    ),
    columns=4,
    panels=(
        Panel("standard", "standard training"),
        Panel("frozen", "lower half trained first, then frozen"),
        Panel("leaky", "frozen half still moved by weight decay (not in the paper)"),
        Panel("test", "test accuracy", kind="categories", y="accuracy_test", log_y=False, series=("*",)),
    ),
    claims=(
        Claim("Standard training has the law", "law", ("standard",)),
        Claim("Frozen training has not", "no law", ("frozen",)),
        Claim("Both fit the training data", "at least", ("standard", "frozen"), "accuracy", value=0.99, fit=False),
        Claim("Standard training has the better test accuracy", "above", ("standard", "frozen"), "accuracy_test"),
    ),
    printed=(
        Printed("standard", "r", -0.997, "Fig. 9"),
        Printed("frozen", "r", -0.971, "Fig. 9"),
        Printed("standard", "loss", 0.0021, "Fig. 9"),
        Printed("frozen", "loss", 0.0019, "Fig. 9"),
        Printed("standard", "accuracy", 1.0, "Fig. 9"),
        Printed("frozen", "accuracy", 1.0, "Fig. 9"),
        Printed("standard", "accuracy_test", 0.2385, "Fig. 9 (slides: 0.2146)"),
        Printed("frozen", "accuracy_test", 0.1967, "Fig. 9 (slides: 0.1825)"),
    ),
    notes=(WHOLE,),
    **BEST,
)  # fmt: skip
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
        Claim("The law returns", "law", ("reactivated",)),
        Claim("with about the same or better test accuracy", "no less", ("frozen", "reactivated"), "accuracy_test"),
    ),
    columns=2,
    notes=(WHOLE,),
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
    claims=(Claim("The law holds in all six panels", "law", ("fm-*", "cifar-*")),),
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
        Claim("The law holds in all three panels", "law", ("n-*",)),
        Claim("The half-life is longer with more data", "rising", ("n-*",), "half_life"),
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
        Claim("The law holds in each class", "law", ("adam-8",), BY_CLASS),
        Claim("noisier than in all together: the mean r of the classes is closer to zero", "below", ("adam-8",), "r;class_r"),
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
            ("adam-8",), ";".join(f"settled@site={site}" for site in range(1, 8)),
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
    claims=(Claim("A fuzzy law on test data", "fuzzy law", ("adam-*",), "r@of=fuzziness_test"),),
    **BEST,
)  # fmt: skip
FIGS9 = Figure(
    id="he2023/figS9",
    title="BERT fine-tuned on SST-2",
    source=f"{SOURCE}, SI, Fig. S9",
    base=Training(
        data="sst2", network="hf:google-bert/bert-base-cased", depth=None, width=None, per_class=500, optimizer="adamw",
        epochs=20, batch_size=32, weight_decay=0.01, rate=5e-5, milestones=(), readings=("eval",), reductions=("first", "mean"),
    ),
    series=(Series("bert"),),
    panels=(
        Panel("first", "first token", y="fuzziness@reduction=first", series=("bert",)),
        Panel("mean", "mean of the tokens", y="fuzziness@reduction=mean", series=("bert",)),
    ),
    claims=(
        Claim("No law at the first token", "no law", ("bert",), "r@reduction=first"),
        Claim("No law at the mean of the tokens", "no law", ("bert",), "r@reduction=mean"),
    ),
    columns=2,
    cite=CITE,
    smoke={"network": "bert", "data": "seeded-tokens", "epochs": 2},
    notes=(
        "At the first token the input layer is left out: it is the same for every sentence.",
        "The paper does not print how it fine-tunes: AdamW with a linearly falling rate, 20 epochs in batches of 32.",
    ),
)  # fmt: skip
FIGS10 = Figure(
    id="he2023/figS10",
    title="20 layers without BatchNorm",
    source=f"{SOURCE}, SI, Fig. S10",
    base=FM.with_(depth=20, norm=False),
    series=(Series("no-norm", panel="no-norm"),),
    panels=(Panel("no-norm", "20 layers, no BatchNorm"),),
    claims=(Claim("No clear law", "no law", ("no-norm",)),),
    columns=1,
    **BEST,
)  # fmt: skip
FIGS11 = Figure(
    id="he2023/figS11",
    title="New layers on frozen ones, and 15 layers from scratch",
    source=f"{SOURCE}, SI, Fig. S11",
    base=FM.with_(depth=15),
    series=(
        Series(
            "grafted",
            {"kind": "staged", "first_depth": 20, "first_epochs": 600, "first_schedule": 600, "keep": 10, "renew": True},
            "grafted",
        ),
        Series("scratch", {}, "scratch"),
    ),
    panels=(
        Panel("scratch", "15 layers from scratch"),
        Panel("grafted", "pretraining: 10 layers of a trained network, then new ones", cut=10),
    ),
    claims=(
        Claim("The law holds in the new layers", "law", ("grafted",), "r@from=10"),
        Claim("The law holds from scratch", "law", ("scratch",)),
    ),
    columns=2,
    **BEST,
)  # fmt: skip
LINEAR = Figure(
    id="he2023/linear",
    title="20 layers without ReLU",
    source=f"{SOURCE}, authors' code",
    base=FM.with_(depth=20, activation=False),
    series=(Series("linear", panel="linear"),),
    panels=(Panel("linear", "20 linear layers"),),
    claims=(
        Claim("No law", "no law", ("linear",), fit=False),
        Claim("D is nearly constant: the last D is near the first", "near", ("linear",), "ratio", value=1.0, fit=False),
    ),
    columns=1,
    **BEST,
)  # fmt: skip

NOISE = {"noise": (0.01, 0.02, 0.05, 0.1), "noise_draws": 10}
UNLAWFUL = {
    "frozen": "with a frozen lower half",
    "no-norm": "without BatchNorm",
    **{f"early-{epoch}": f"after {epoch} epochs" for epoch in (10, 30, 100)},
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
        *(Series(f"early-{epoch}", {"epochs": epoch}, label=f"{epoch} epochs") for epoch in (10, 30, 100)),
    ),
    panels=(
        Panel("matched", "noise of 5 % of each layer's weights", kind="categories", y="change_matched",
              y_label="change of $R=D_{L-1}/D_0$, over $(L-1)R^{-1/(L-1)}$", series=("*",)),
    ),
    columns=1,
    claims=tuple(
        Claim(f"At matched R, noise changes R less under the law than {words}", "below", ("standard", name), "change_matched",
              fit=not name.startswith("early"))
        for name, words in UNLAWFUL.items()
    ),
    notes=(
        "The paper itself says that noise of equal ε in every layer is improbable in practice.",
        "Early networks are trained for so many epochs on a schedule of their own, whose rate falls at 1/3 and 2/3 of them.",
    ),
    **BEST,
)  # fmt: skip
TIMES = (0, 10, 30, 100, 300, 600)
TRANSFER = Figure(
    id="he2023/transfer",
    title="Transfer: when to stop training on the source",
    source=f"{SOURCE}, main text, on transfer",
    base=FM.with_(
        kind="staged", classes=(5, 6, 7, 8, 9), first_classes=(0, 1, 2, 3, 4), first_schedule=600, keep=5, renew=True,
    ),
    series=tuple(Series(f"t-{t}", {"first_epochs": t}, label=f"{t} epochs on the source", x=float(t)) for t in TIMES),
    panels=(
        Panel("accuracy", "target test accuracy", kind="sweep", y="accuracy_test", x_label="epochs on the source",
              log_x=True, log_y=False, series=("t-*",)),
        Panel("loads", "how much more the top layers do than the bottom ones", kind="sweep", y="load_gap@split=5",
              x_label="epochs on the source", y_label="(top − bottom)/mean share of the work", log_x=True, log_y=False,
              series=("t-*",), levels=((0.0, "balanced"),)),
    ),
    claims=(
        Claim(
            "Target accuracy is best near the time when bottom and top loads are equal", "best at zero", ("t-*",),
            "accuracy_test;load_gap@split=5",
        ),
    ),
    columns=2,
    cite=CITE,
    fit=FIT,
    readings=READINGS,
    notes=(WHOLE, f"Both stages train at the rate {FM.rate:g}: no r of the target can choose the rate of the source."),
)  # fmt: skip

FIGURES: tuple[Figure, ...] = (
    FIG1, FIG2, FIG3, FIG4, FIG5, FIG6, FIG7, FIG8, FIG9, FIG10, FIGS1, FIGS2, FIGS3, FIGS4, FIGS5, FIGS6, FIGS7, FIGS8,
    FIGS9, FIGS10, FIGS11, FACTORS, LINEAR, PROP1, REACTIVATE, TRANSFER,
)  # fmt: skip
