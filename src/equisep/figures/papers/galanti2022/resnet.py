"""ResNet-18 on seven data sets (Fig. 5): collapse after each group of blocks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from equisep.figures.figure import Claim, Figure, Panel, Series
from equisep.figures.papers.galanti2022.common import BASE, CITE, FITTED, METRICS, NARROW, SOURCE, TWO_WAYS

ENDS = (2, 4, 6, 8)  # sites of ResNet-18 at the end of a group of two blocks
BEYOND = (
    "neural collapse extends beyond the penultimate layer and emerges in intermediate layers as well, making the higher layers "
    "essentially redundant"
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
