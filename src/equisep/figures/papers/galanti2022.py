"""Galanti & Galanti 2022: CDNV, nearest class centers and effective depth of networks of many depths, as figures.

Layers are counted as in the paper, hidden ones only: MLP-d is an FNN of d + 1 linear layers, and site l is layer l.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from equisep.figures.cell import Training
from equisep.figures.figure import Claim, ComparativeBound, Figure, Panel, Printed, Series

SOURCE = "Galanti & Galanti (2022)"
CITE = (
    "T. Galanti and L. Galanti. On the implicit bias towards depth minimization in deep neural networks. "
    "arXiv 2202.09028, 2022."
)

EPOCHS = 500
READ = (0, 1, 2, 5, 10, 20, 50, 100, 200, 350)  # and the last
FITTED = 0.99  # "> 99 %"
MLP_DEPTHS = (2, 3, 4, 8, 16)
CONV_DEPTHS = (3, 4, 5, 8, 16)
NOISE = (0, 25, 50, 75)  # per cent of labels drawn at random
LAYERS = (4, 6, 8, 10)
MLP_EFFECTIVE = 4
CDNV_PRINTED = ((0, 0.28), (25, 0.6))  # of layer 4, read off one training, by per cent of noise
ENDS = (2, 4, 6, 8)  # sites of ResNet-18 at the end of a group of two blocks
WAYS: Mapping[str, bool] = {"plain": False, "augmented": True}
METRICS: Mapping[str, str] = {
    "cdnv": "CDNV, train",
    "cdnv_test": "CDNV, test",
    "ncc": "nearest-center accuracy, train",
    "ncc_test": "nearest-center accuracy, test",
}

HEADINGS = {"plain": "trained on plain images", "augmented": "trained on augmented images, as in the paper"}
OWN = {"ncc": ";accuracy", "ncc_test": ";accuracy_test"}  # the network's own accuracy beside that of nearest centers

CLASSES = 10
SHARES = (10, 20, 30, 40, 50, 60, 70, 80, 90)  # per cent of the second sample's labels that differ, p
BOUND_DEPTHS = tuple(range(2, 13))
DEEPEST = BOUND_DEPTHS[-1]
EPSILON = 0.2  # of (ε, δ)-balanced: above what labels drawn at random are out of balance by
PILOT = "ours: chosen after a pilot of a few trainings"

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
PAPERS = "the paper augments"  # what a claim on plain training is not
AFTER = "in our words, after"  # where no sentence of the paper's is at hand to be quoted
LATER = (
    "Finally, we empirically show that the effective depth of a trained neural network monotonically increases when "
    "increasing the number of random labels in data."
)
OTHERS = "above 1 for the others"
SENSITIVE = (
    "the rate of collapse in the intermediate layers is more sensitive, and is closely intertwined with generalization"
)
BEYOND = (
    "neural collapse extends beyond the penultimate layer and emerges in intermediate layers as well, making the higher layers "
    "essentially redundant"
)
MINIMAL = (
    "an implicit bias that favors solutions of minimal effective depth. Namely, SGD trains neural networks for which the top "
    "several layers are redundant"
)
AT_THE_TOP = "for networks deeper than a threshold we obtain (near perfect) NCC separability in all of the top layers"
TWO_WAYS = "Trained with (`augmented`, the paper's way) and without augmentation (`plain`); read on images as they are."


def over_depths(group: str, depths: Sequence[int], *, classifier: int = 0, **changes: Any) -> tuple[Series, ...]:
    """One series for each depth d, plain and augmented; an FNN counts its classifier as a layer."""
    return tuple(
        Series(
            f"{group}-{way}-{d}",
            {**changes, "depth": d + classifier, "augment": augment},
            label=f"d = {d}, {way}",
            x=d,
            seeds=1 if augment else None,  # augmented networks cannot share an ensemble
        )
        for way, augment in WAYS.items()
        for d in depths
    )


def epoch_panel(metric: str, layers: Sequence[int], series: str, *, name: str, title: str, way: str) -> Panel:
    """One metric of several layers over epochs, as Galanti & Galanti draw it; the network's own accuracy beside the centers'."""
    return Panel(
        name, title, "epochs", ";".join(f"{metric}@site={layer}" for layer in layers) + OWN.get(metric, ""),
        y_label=METRICS[metric], x_label="epoch", log_y=metric.startswith("cdnv"), series=(series,), ordered="layer",
        heading=HEADINGS[way],
    )  # fmt: skip


def depth_panels(group: str, depths: Sequence[int]) -> tuple[Panel, ...]:
    """A column for each depth; rows of each metric over epochs with a line per layer, for either way of training; then
    effective depths.
    """
    rows = tuple(
        epoch_panel(
            metric, range(1, d + 1), f"{group}-{way}-{d}", name=f"{way}-{metric}-{d}", title=f"d = {d}", way=way
        )
        for way in WAYS
        for metric in METRICS
        for d in depths
    )
    return (
        *rows,
        Panel("effective", "effective depth at the end", "sweep", "effective_depth", x_label="hidden layers d", log_y=False,
              series=(f"{group}-*",), heading="at the last epoch", absent="no layer separates\nmore than 99 %"),
        Panel("fit", "training accuracy at the end", "sweep", "accuracy", x_label="hidden layers d", log_y=False,
              series=(f"{group}-*",), heading="at the last epoch"),
    )  # fmt: skip


def depth_claims(
    group: str, depths: Sequence[int], place: str, *, effective: int | None = None, collapsed: int | None = None
) -> tuple[Claim, ...]:
    """What is claimed of networks that differ in depth, for either way of training; the two deepest are the deep ones.

    `effective` is the printed effective depth, below which networks are shallow; layers from `collapsed` on collapse.
    """
    found: list[Claim] = []
    for way in WAYS:
        name, text = f"{group}-{way}-", f" ({way})"
        where = place if way == "augmented" else f"{place} ({PAPERS})"
        deep = tuple(f"{name}{d}" for d in depths[-2:])
        if effective is not None:
            shallow = tuple(f"{name}{d}" for d in depths if d < effective)
            found += [
                Claim(f"Effective depth {effective} in all networks that deep{text}", "near", (f"{name}{effective}", *deep),
                      "effective_depth", float(effective), source=where,
                      quote=f"effectively of depth {effective}, which is exactly the minimal depth that allows > 99% fitting"
                      if effective == MLP_EFFECTIVE else str(effective)),
                Claim(f"Shallower networks fit{text}", "at least", shallow, "accuracy", FITTED, fit=False,
                      source=f"{AFTER} {where}"),
                Claim(f"Shallower networks do not collapse{text}", "at most", shallow, "ncc", FITTED, source=where,
                      quote="we do not necessarily achieve an emergence of neural collapse"),
            ]  # fmt: skip
        if collapsed is not None:
            found.append(
                Claim(f"Layers from {collapsed} on of the deep networks collapse{text}", "at least", deep,
                      ";".join(f"ncc@site={layer}" for layer in range(collapsed, depths[-2] + 1)), FITTED,
                      source=where, quote="the fifth and higher layers enjoy neural collapse")
            )  # fmt: skip
        found += [
            Claim(f"The deep networks collapse at the top{text}", "at least", deep, "ncc", FITTED, quote=AT_THE_TOP,
                  source="appendix A of a later version" if way == "augmented" else f"appendix A of a later version ({PAPERS})"),
            Claim(f"More layers show the same degree of collapse: CDNV at the top is alike{text}", "alike", deep, "cdnv",
                  source=where, quote="would exhibit the same degree of collapse"),
            Claim(f"More layers show more collapse: CDNV at the top is less{text}", "above", deep, "cdnv",
                  source="section 1.1", quote="generally improves when increasing the number of layers"),
        ]  # fmt: skip
    return tuple(found)


def over_noise(group: str, **changes: Any) -> tuple[Series, ...]:
    """One series for each share of random labels, plain and augmented."""
    return tuple(
        Series(
            f"{group}-{way}-{share}",
            {**changes, "label_noise": share / 100, "augment": augment},
            label=f"{share} %, {way}",
            x=share / 100,
            seeds=1 if augment else None,
        )
        for way, augment in WAYS.items()
        for share in NOISE
    )


def noise_panels(group: str) -> tuple[Panel, ...]:
    """A column for each share of random labels, a row for each metric over epochs; then what may predict test accuracy."""
    rows = tuple(
        epoch_panel(metric, LAYERS, f"{group}-{way}-{share}", name=f"{way}-{metric}-{share}",
                    title=f"{share} % random labels", way=way)
        for way in WAYS
        for metric in METRICS
        for share in NOISE
    )  # fmt: skip
    predictors = {
        f"ncc@site={LAYERS[0]}": f"nearest-center accuracy of layer {LAYERS[0]}, train",
        "accuracy": "train accuracy",
    }
    return rows + tuple(
        Panel(f"predicted-{row}", f"test accuracy against {words}", "scatter", "accuracy_test", x, "test accuracy", words,
              log_y=False, series=(f"{group}-*",), heading="what predicts test accuracy")
        for row, (x, words) in enumerate(predictors.items())
    )  # fmt: skip


def noise_claims(group: str, place: str, *, printed: str = "") -> tuple[Claim, ...]:
    """What is claimed of networks trained on random labels, for either way of training; `printed`: CDNV of layer 4."""
    found: list[Claim] = []
    for way in WAYS:
        every, text = (f"{group}-{way}-*",), f" ({way})"
        where = place if way == "augmented" else f"{place} ({PAPERS})"
        noisy = tuple(f"{group}-{way}-{share}" for share in NOISE if share)
        found += [
            Claim(f"CDNV of layer 4 grows with noise{text}", "rising", every, "cdnv@site=4", quote=printed or SENSITIVE,
                  source=where if printed else f"abstract of the seventh version; layer 4: {where}"),
            Claim(f"The network fits its labels{text}", "at least", every, "accuracy", FITTED, fit=False,
                  quote="the network itself achieved 100% accuracy", source=where),
            Claim(f"Layer 4 does not separate noisy labels{text}", "at most", noisy, "ncc@site=4", FITTED, quote=LATER,
                  source=f"abstract of the later versions; layer 4: {where}"),
            Claim(f"Effective depth grows with noise{text}", "rising", every, "effective_depth", quote=LATER,
                  source="abstract of the later versions"),
        ]  # fmt: skip
    return tuple(found)


FIG1 = Figure(
    id="galanti2022/fig1",
    title="MLP-d-100 on CIFAR-10: layers over epochs",
    source=f"{SOURCE}, Fig. 1",
    cite=CITE,
    fit=FITTED,
    base=BASE.with_(width=100),
    series=over_depths("mlp", MLP_DEPTHS, classifier=1),
    panels=depth_panels("mlp", MLP_DEPTHS),
    claims=depth_claims("mlp", MLP_DEPTHS, "Fig. 1", effective=4, collapsed=5),
    printed=tuple(Printed(f"mlp-augmented-{d}", "effective_depth", 4.0, "Fig. 1") for d in (4, 8, 16)),
    smoke=SMALL,
    columns=len(MLP_DEPTHS),
    notes=(UNPRINTED, TWO_WAYS),
)

FIG2 = Figure(
    id="galanti2022/fig2",
    title="ConvNet-d-400 on CIFAR-10: layers over epochs",
    source=f"{SOURCE}, Fig. 2",
    cite=CITE,
    fit=FITTED,
    base=CONV.with_(width=400),
    series=over_depths("convnet", CONV_DEPTHS),
    panels=depth_panels("convnet", CONV_DEPTHS),
    claims=depth_claims("convnet", CONV_DEPTHS, "Fig. 2", effective=5),
    printed=tuple(Printed(f"convnet-augmented-{d}", "effective_depth", 5.0, "Fig. 2") for d in (5, 8, 16)),
    seeds=1,
    smoke=NARROW,
    columns=len(CONV_DEPTHS),
    notes=(UNPRINTED, TWO_WAYS),
)

FIG3 = Figure(
    id="galanti2022/fig3",
    title="MLP-10-500 on CIFAR-10 with random labels",
    source=f"{SOURCE}, Fig. 3",
    cite=CITE,
    fit=FITTED,
    base=BASE.with_(depth=11, width=500),
    series=over_noise("mlp"),
    panels=noise_panels("mlp"),
    claims=(
        *noise_claims("mlp", "Fig. 3", printed=" … ".join([*(f"≈ {value:g}" for _, value in CDNV_PRINTED), OTHERS])),
        *(
            claim
            for way in WAYS
            for claim in (
                *(
                    Claim(f"CDNV of layer 4 is as printed with {share} % noise ({way})", "as printed", (f"mlp-{way}-{share}",),
                          "cdnv@site=4", quote=f"≈ {value:g}", source="Fig. 3" if way == "augmented" else f"Fig. 3 ({PAPERS})")
                    for share, value in CDNV_PRINTED
                ),
                *(
                    Claim(f"CDNV of layer 4 is above 1 with {share} % noise ({way})",
                          "at least", (f"mlp-{way}-{share}",), "cdnv@site=4", 1.0,
                          quote=OTHERS, source="Fig. 3" if way == "augmented" else f"Fig. 3 ({PAPERS})")
                    for share in (50, 75)
                ),
            )
        ),
    ),
    printed=tuple(
        Printed(f"mlp-{way}-{share}", "cdnv@site=4", value, "Fig. 3", 0.05 * value)
        for way in WAYS
        for share, value in CDNV_PRINTED
    ),
    smoke=SMALL,
    columns=len(LAYERS),
    notes=(UNPRINTED, TWO_WAYS, "Train accuracy and train metrics are against the labels trained on, random ones included."),
)  # fmt: skip

FIG4 = Figure(
    id="galanti2022/fig4",
    title="ConvNet-10-500 on CIFAR-10 with random labels",
    source=f"{SOURCE}, Fig. 4",
    cite=CITE,
    fit=FITTED,
    base=CONV.with_(depth=10, width=500),
    series=over_noise("convnet"),
    panels=noise_panels("convnet"),
    claims=noise_claims("convnet", "Fig. 4"),
    seeds=1,
    smoke=NARROW,
    columns=len(LAYERS),
    notes=FIG3.notes,
)

# series → title and changes; the paper augments CIFAR alone
SETS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "mnist-plain": ("MNIST", {"data": "mnist", "preparation": "he2023-32x32"}),
    "cifar10-augmented": ("CIFAR-10", {"data": "cifar10", "augment": True}),
    "cifar10-plain": ("CIFAR-10, not augmented", {"data": "cifar10"}),
    "cifar100-augmented": ("CIFAR-100", {"data": "cifar100", "augment": True}),
    "cifar100-plain": ("CIFAR-100, not augmented", {"data": "cifar100"}),
    "stl10-plain": ("STL-10", {"data": "stl10"}),
    "svhn-plain": ("SVHN", {"data": "svhn"}),
}

FIG5 = Figure(
    id="galanti2022/fig5",
    title="ResNet-18 after each group of blocks",
    source=f"{SOURCE}, Fig. 5",
    cite=CITE,
    fit=FITTED,
    base=BASE.with_(network="resnet18", depth=None, width=None, grains=("blocks",), tf32=True),
    series=tuple(Series(name, changes, label=title) for name, (title, changes) in SETS.items()),
    panels=tuple(
        Panel(f"{metric}-{name}", title, y=metric, y_label=words, log_y=metric.startswith("cdnv"), x_label="block",
              series=(name,))
        for metric, words in METRICS.items()
        for name, (title, _) in SETS.items()
    ),
    claims=(
        Claim("The top group of blocks collapses", "at least", ("*",), f"ncc@site={ENDS[-1]}", FITTED, quote=BEYOND,
              source="abstract of the fourth version; ResNet-18: Fig. 5"),
        Claim("The collapsed top separates test data as well as the whole network, to 1 %", "at most", ("*",),
              f"center_gap@site={ENDS[-1]}", 0.01, quote=BEYOND, source="abstract of the fourth version; test data: Fig. 5"),
    ),
    seeds=1,
    smoke=NARROW,
    columns=len(SETS),
    notes=(
        f"Sites are the outputs of the eight blocks; a group has two, so that groups end at sites {', '.join(map(str, ENDS))}.",
        "All at 32×32; CIFAR-100, STL-10 and SVHN are standardized by the moments of CIFAR-10, MNIST by those of Fashion-MNIST.",
        TWO_WAYS,
    ),
)  # fmt: skip

FIG6 = Figure(
    id="galanti2022/fig6",
    title="ConvNet-d-100 on CIFAR-10: layers over epochs",
    source=f"{SOURCE}, Fig. 6",
    cite=CITE,
    fit=FITTED,
    base=CONV.with_(width=100),
    series=FIG2.series,
    panels=FIG2.panels,
    claims=depth_claims("convnet", CONV_DEPTHS, "Fig. 2, of wider networks"),
    seeds=1,
    smoke=NARROW,
    columns=len(CONV_DEPTHS),
    notes=FIG2.notes,
)

BOUND = Figure(
    id="galanti2022/bound",
    title="The comparative bound, estimated from two samples S1 and S2",
    source=f"{SOURCE}, Prop. 1",
    cite=CITE,
    fit=FITTED,
    # the embedded images: both samples are small, anyone has them, and an FNN errs on them little enough to tell p apart
    lacks="data that the paper trained on",
    base=BASE.with_(data="embedded-10x10", preparation="he2023-10x10", width=100, per_class=50, second=50, read_epochs=(),
                    milestones=(1 / 3, 2 / 3), factor=0.1),
    series=(
        *(
            Series(f"first-{d}", {"depth": d + 1, "second_read": True}, label=f"S1, d = {d}", x=d) for d in BOUND_DEPTHS
        ),
        *(
            Series(f"joined{d}-{share}", {"depth": d + 1, "second_noise": share / 100 * CLASSES / (CLASSES - 1)},
                   label=f"d = {d}, p = {share / 100:g}", x=share / 100, seeds=5)
            for d in BOUND_DEPTHS
            for share in SHARES
        ),
    ),
    panels=(
        Panel("balance", "how evenly networks trained on S1 predict classes on S2", "sweep", "balance", x_label="hidden layers d",
              log_y=False, y_label="distance of predicted class shares from 1/10", series=("first-*",)),
        Panel("effective", "effective depth on S1", "sweep", "effective_depth", x_label="hidden layers d", log_y=False,
              y_label="effective depth", series=("first-*",)),
        Panel("separated", "networks trained on S1 and relabeled S2", "sweep", "ncc_error",
              x_label="share p of the labels of S2 that differ", y_label="samples nearer to another class center, train",
              series=("joined*",), ordered="hidden layers d", levels=((1 - FITTED, "separated below"),)),
    ),
    claims=(
        Claim("Shallow networks separate S1 and S2 less the more labels of S2 differ", "falling", ("joined2-*",), "ncc",
              source=PILOT, fit=False),
        Claim("Layer 4 of the deepest networks separates S1 and S2 less the more labels of S2 differ",
              "falling", (f"joined{DEEPEST}-*",), "ncc@site=4", source=PILOT, fit=False),
        Claim("Layer 4 of the deepest networks separates S1 alone better",
              "below", (f"joined{DEEPEST}-{SHARES[0]}", f"first-{DEEPEST}"),
              "ncc@site=4", source=PILOT, fit=False),
        Claim("Effective depth does not grow with depth, from 4 layers on", "alike",
              tuple(f"first-{d}" for d in BOUND_DEPTHS if d >= MLP_EFFECTIVE), "effective_depth",
              quote=MINIMAL, source="abstract of the first version, a hypothesis; from 4 layers on: Fig. 1"),
        Claim("Effective depth grows with depth", "rising", ("first-*",), "effective_depth",
              source="ours: found in the record after it was run"),
    ),
    seeds=10,
    smoke=SMALL,
    notes=(
        "An estimate, not a bound: P[effective depth on S1 ≥ least depth that separates S1 and relabeled S2] + p + δ, where "
        "the least depth is that of trained networks on labels drawn at random, which may be greater than that of the best "
        f"networks on the easiest labels. δ: the share of draws with answers out of balance by more than ε = {EPSILON:g}.",
        f"Relabeling a share q at random changes p = q(1 − 1/{CLASSES}) of the labels.",
        "The embedded Fashion-MNIST at 10×10: S1 and S2 have 50 samples per class.",
        "The rate falls by 10 at 1/3 and 2/3: eight batches an epoch would see little of a rate that falls from epoch 60 on.",
    ),
    bound=ComparativeBound(
        first={d: f"first-{d}" for d in BOUND_DEPTHS},
        joined={share / 100: {d: f"joined{d}-{share}" for d in BOUND_DEPTHS} for share in SHARES},
        epsilon=EPSILON,
    ),
)  # fmt: skip

FIGURES: tuple[Figure, ...] = (FIG1, FIG2, FIG3, FIG4, FIG5, FIG6, BOUND)
