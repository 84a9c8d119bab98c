"""A second sample shown to a network trained on the first: its answers, and the labels under which its layers separate both.

What the comparative bound of Galanti & Galanti 2022 (Prop. 1) is estimated from: see `equisep.advice.depth.generalization_bound`.
"""

from __future__ import annotations

from itertools import accumulate

import torch
from torch import Tensor, nn

from equisep.advice.depth.generalization_bound import class_share_distance
from equisep.law.effective_depth import is_perfect
from equisep.models import Fnn
from equisep.separation.probes import own_labels
from equisep.taps import reading_mode


def second_numbers(
    network: Fnn, first: tuple[Tensor, Tensor], second: tuple[Tensor, Tensor], *, classes: int
) -> dict[str, float | None]:
    """The network, read in `eval`, on samples that it was not trained on.

    balance         how far the class shares of its answers are from 1/C. `second_error`: the share it misnames
    own_depth       the least layer at which nearest centers separate the first sample (> 99 %), the effective depth
    own_separated   the share of both samples that this layer's nearest centers separate under the labels that it gives the
                    second itself (`own_labels`): above 99 %, the network separates both, and the minimal depth of
                    both under these labels is `own_depth` at most
    own_error       the share of these labels that are not the true ones. `own_balance`: how far their shares are from 1/C
    """
    (x, y), (unseen, truth) = first, second
    with torch.no_grad(), reading_mode(network, "eval"):
        answers = network(unseen).argmax(dim=1)
        layers, shown = ([*accumulate(network.blocks, _applied, initial=rows)][1:] for rows in (x, unseen))
    numbers: dict[str, float | None] = {
        "balance": class_share_distance(answers, classes),
        "second_error": float((answers != truth).double().mean()),
        **dict.fromkeys(("own_depth", "own_separated", "own_error", "own_balance")),
    }
    for depth, (rows, others) in enumerate(zip(layers, shown, strict=True), start=1):
        alone = own_labels(rows, y, rows[:0], classes=classes).separated
        if is_perfect(alone, above=True):
            own = own_labels(rows, y, others, classes=classes)
            return numbers | {
                "own_depth": float(depth),
                "own_separated": own.separated,
                "own_error": float((own.labels != truth).double().mean()),
                "own_balance": class_share_distance(own.labels, classes),
            }
    return numbers


def _applied(rows: Tensor, block: nn.Module) -> Tensor:
    features: Tensor = block(rows)
    return features


def relabeled_numbers(labels: Tensor, truth: Tensor, *, classes: int) -> dict[str, float | None]:
    """Of a second sample that was relabeled: the share of its labels that differ, and how far their shares are from 1/C."""
    return {
        "relabeled": float((labels != truth).double().mean()),
        "relabeled_balance": class_share_distance(labels, classes),
    }
