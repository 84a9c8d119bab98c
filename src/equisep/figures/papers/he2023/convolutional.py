"""He & Su 2023: the law in convolutional and residual networks, and BERT, which has none."""

from __future__ import annotations

from equisep.figures.cell import Training
from equisep.figures.figure import IN_OUR_WORDS, Claim, Figure, Panel, Series
from equisep.figures.papers.he2023.common import (
    CITE,
    COLORS,
    IMAGES,
    MIXED_CUT,
    RESNETS,
    SET_NAMES,
    SETS,
    SHORT,
    SOURCE,
    TWO,
)

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
    claims=(
        Claim("A law, which may be somewhat fuzzy, in all four panels", "fuzzy law", ("alexnet-*", "vgg13-*"),
              quote="Illustration of the equi-separation law on convolutional neural networks”; “somewhat fuzzier in certain "
                    "convolutional neural networks", source="Fig. 4, and the main text"),
    ),
    columns=2,
    **TWO,
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
    claims=(
        Claim("A fuzzy law in every panel", "fuzzy law", ("vgg*",), quote="Emergence of a fuzzy equi-separation law",
              source="SI, Fig. S2"),
    ),
    columns=4,
    **TWO,
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
        Claim("The law holds in both panels", "law", ("cnn-*",),
              quote="present … with an appropriate number of channels", source="SI, on Fig. S3"),
        *(
            Claim(f"The final D is higher than that of a feed-forward network as deep ({SET_NAMES[name]})", "below",
                  (f"fnn-{name}", f"cnn-{name}"), "last", quote="considerably higher", source="SI, on Fig. S3")
            for name, _ in SETS
        ),
    ),
    columns=2,
    notes=("The feed-forward networks beside it: 9 layers of width 1000 on the same images.",),
    **TWO,
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
        Claim(f"The law is a delicate balance: r differs with {word}", "differ", of, quote="a delicate balance",
              source="SI, on convolutional networks")
        for word, of in (
            ("depth", ("depth-4", "depth-16")),
            ("kernel", ("kernel-3", "kernel-7")),
            ("pooling", ("pooling-with", "pooling-without")),
            ("image size", ("size-10", "size-32")),
        )
    ),
    columns=4,
    **TWO,
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
        Claim("Where blocks are of one kind, r by block is nearer to −1 than by layer", "below", ("2-layer-*", "3-layer-*"),
              "r@grain=blocks;r@grain=layers", source="main text, on Fig. 7",
              quote="it can be restored by identifying a block rather than a layer as a module"),
        Claim("Mixed blocks have two slopes (bend above its limit)", "shown", ("mixed-*",), "bend@grain=blocks", value=1.0,
              source=f"{IN_OUR_WORDS} the main text on Fig. 7"),
        *(
            Claim(f"3-layer blocks separate more than 2-layer ones ({SET_NAMES[data]})", "below",
                  (f"3-layer-{data}", f"2-layer-{data}"), "last@grain=blocks", source=f"{IN_OUR_WORDS} the main text on Fig. 7")
            for data, _ in SETS
        ),
    ),
    columns=4,
    same_heights=True,  # claims compare 3-layer with 2-layer blocks, which stand in different rows
    notes=("Read as the authors' code does, on 100 principal components; the plain features stand beside it.",),
    **TWO,
)  # fmt: skip

FIG8 = Figure(
    id="he2023/fig8",
    title="DenseNet161 by block",
    source=f"{SOURCE}, Fig. 8",
    base=IMAGES.with_(network="densenet161", grains=("blocks",)),
    series=tuple(Series(f"densenet-{data}", own, data) for data, own in SETS),
    panels=tuple(Panel(data, SET_NAMES[data], x_label="block (0 = input)") for data, _ in SETS),
    claims=(Claim("The law holds by block", "law", ("densenet-*",), source=f"{IN_OUR_WORDS} the main text on Fig. 8"),),
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
    panels=tuple(Panel(data, SET_NAMES[data], x_label="block (0 = input)") for data, _ in SETS),
    claims=tuple(
        Claim(f"r is closer to zero than that of Fig. 7 ({SET_NAMES[data]})", "below",
              (f"2-layer-{data}", f"resnet18-{data}"), "r@grain=blocks", source=f"{IN_OUR_WORDS} the main text on Fig. 10")
        for data, _ in SETS
    ),
    columns=2,
    **TWO,
)  # fmt: skip

BERT = "hf:google-bert/bert-base-cased"
# encoders that stand in for it where it cannot be had: series → title and name
ENCODERS = {
    "minilm": ("all-MiniLM-L6-v2", "hf:sentence-transformers/all-MiniLM-L6-v2"),
    "mpnet": ("all-mpnet-base-v2", "hf:sentence-transformers/all-mpnet-base-v2"),
}
TOKENS = {
    "first": ("the first token", "first token", "encoder layer (0 = the first)"),
    "mean": ("the mean of the tokens", "mean of the tokens", "encoder layer (0 = embeddings)"),
}

FIGS9 = Figure(
    id="he2023/figS9",
    title="BERT fine-tuned on SST-2",
    source=f"{SOURCE}, SI, Fig. S9",
    base=Training(
        data="sst2", network=BERT, depth=None, width=None, per_class=500, optimizer="adamw",
        epochs=20, batch_size=32, weight_decay=0.01, rate=5e-5, milestones=(), readings=("eval",), reductions=("first", "mean"),
    ),
    series=(
        *(Series(name, {"network": other, "network_for": BERT}) for name, (_, other) in ENCODERS.items()),
        Series("bert"),  # the last: where it cannot be had the others are trained
    ),
    panels=tuple(
        Panel(f"{series}-{name}", f"{title}, {token}", y=f"fuzziness@reduction={name}", series=(series,), x_label=axis)
        for series, title in {"bert": "BERT", **{name: title for name, (title, _) in ENCODERS.items()}}.items()
        for name, (_, token, axis) in TOKENS.items()
    ),
    claims=tuple(
        Claim(f"No law at {words}{of}", "no law", (series,), f"r@reduction={name}", source=f"{IN_OUR_WORDS} the SI on Fig. S9")
        for series, of in {"bert": "", **{name: f" ({title})" for name, (title, _) in ENCODERS.items()}}.items()
        for name, (words, _, _) in TOKENS.items()
    ),
    columns=2,
    cite=CITE,
    smoke={"network": "bert", "data": "seeded-tokens", "epochs": 2},
    notes=(
        "At the first token the input layer is left out: it is the same for every sentence.",
        "The paper does not print how it fine-tunes: AdamW with a linearly falling rate, 20 epochs in batches of 32.",
    ),
)  # fmt: skip
