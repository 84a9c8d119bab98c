"""What the runners share: a cell's dtype, shape, recipe and loss, and what is read of its network beside the sites."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

import torch
from torch import Tensor, nn

from equisep.data import Batches
from equisep.errors import InputError, did_you_mean
from equisep.figures.cell import Training
from equisep.figures.outcome import Curves
from equisep.measuring import measure
from equisep.peeled import Problem, floor_of
from equisep.results import Reading
from equisep.training import Recipe, Shape
from equisep.training.class_weights import effective_number, inverse_frequency, logit_adjustment

Points = dict[str, tuple[tuple[float, ...], ...]]
RULES = ("plain", "inverse", "effective", "adjusted", "collapse", "margin", "half")


def dtype_of(cell: Training) -> torch.dtype:
    """The cell's number type."""
    known = {"float32": torch.float32, "float64": torch.float64}
    if cell.dtype not in known:
        raise InputError(f"A cell trains in float32 or float64; found `{cell.dtype}`.")
    return known[cell.dtype]


def shape_of(cell: Training, *, inputs: int, classes: int, depth: int | None = None) -> Shape:
    """The network's shape; `width_multiplier` scales its hidden widths."""
    for name in ("depth", "width"):
        if (own := getattr(cell, name)) is not None and own < 1:
            raise InputError(f"A network has a `{name}` of 1 or more; the cell asks for {own}.")
    layers = depth or cell.depth or 8
    widths = cell.widths if cell.widths is not None and depth is None else (cell.width or 100,) * (layers - 1)
    scaled = tuple(max(1, round(width * cell.width_multiplier)) for width in widths)
    norm = cell.norm and cell.network != "fnn-no-batchnorm"
    return Shape(scaled, inputs, classes, norm, bool(cell.activation) and cell.network != "fnn-linear")


def recipe_of(cell: Training) -> Recipe:
    """How the cell is trained."""
    return Recipe(
        optimizer=cell.optimizer, rate=cell.rate, epochs=cell.epochs, batch_size=cell.batch_size,
        weight_decay=cell.weight_decay, momentum=cell.momentum, milestones=cell.milestones, factor=cell.factor,
        seed=cell.seed,
    )  # fmt: skip


def weighed(
    cell: Training, network: nn.Module, x: Tensor, y: Tensor, drawn: Tensor | None = None
) -> tuple[Curves, ...]:
    """D after the last epoch under the weightings beside `sample`, in every reading of the cell."""
    curves = []
    for weighting in cell.weightings:
        for reading in cast("tuple[Reading, ...]", cell.readings) if weighting != "sample" else ():
            profile = measure(
                network, Batches(x, y, drawn=drawn), reading=reading, sites=cell.grains[0], weighting=cast("Any", weighting),
                reduction=cell.reductions[0], metrics=["fuzziness"], intervals="none", coordinates=0,
            )  # fmt: skip
            curves.append(
                Curves(
                    epoch=last_epoch(cell), reading=reading, grain=cell.grains[0], reduction=cell.reductions[0],
                    weighting=weighting, sites=tuple(site.name for site in profile.sites),
                    fuzziness=tuple(site.fuzziness for site in profile.sites),
                )
            )  # fmt: skip
    return tuple(curves)


def last_epoch(cell: Training) -> int:
    """The number of the last epoch that is read: all stages of one training count."""
    staged = cell.stages
    if staged is None:
        return cell.epochs
    return cell.epochs + (0 if staged.renew else staged.first_epochs) + staged.last_epochs


def coordinates_of(cell: Training, network: nn.Module, x: Tensor, y: Tensor, drawn: Tensor | None = None) -> Points:
    """Some samples at every site in the site's first two principal components: (x, y, label)."""
    profile = measure(
        network, Batches(x, y, drawn=drawn), reading=cast("Reading", cell.readings[0]), sites=cell.grains[0],
        metrics=["fuzziness"], intervals="none", coordinates=cell.coordinates,
    )  # fmt: skip
    return {
        site.name: tuple(
            (float(a), float(b), float(label)) for (a, b), label in zip(shown.points, shown.labels, strict=True)
        )
        for site in profile.sites
        if (shown := site.coordinates) is not None
    }


@dataclass(frozen=True, slots=True)
class LossTerms:
    """Weights of classes, for a mean that divides by them, and what is added to the scores; None: nothing."""

    weights: tuple[float, ...] | None = None
    added: tuple[float, ...] | None = None


def loss_terms(cell: Training, counts: Sequence[int]) -> LossTerms | None:
    """What the cell's rule makes of its class sizes; None for a cell without a rule.

    `plain`              no weights
    `inverse`            w_k ∝ 1/n_k
    `effective=β`        w_k ∝ (1 − β)/(1 − β^{n_k}) (Cui et al. 2019)
    `adjusted=τ`         τ log π_k added to the scores (Menon et al. 2021)
    `collapse=E`         the least floor under w_k n_k from which on no two classifiers coincide in the Layer-Peeled Model with
                         E_W·E_H = E; `margin=E`: at which every class has a margin above 0; `half=E`: half that of equal classes
    """
    if not cell.loss:
        return None
    if cell.class_weights is not None:
        raise InputError(
            f"A cell has `class_weights` and the loss `{cell.loss}`, which makes its own. Give one of them."
        )
    return _by_rule(cell.loss, tuple(counts))


@lru_cache(maxsize=256)
def _by_rule(loss: str, counts: tuple[int, ...]) -> LossTerms:
    name, _, text = loss.partition("=")
    if name not in RULES:
        raise InputError(f"No loss `{loss}`.{did_you_mean(name, RULES)} Known: {', '.join(RULES)}.")
    if name in ("plain", "inverse"):
        return LossTerms() if name == "plain" else LossTerms(inverse_frequency(counts))
    number = _number(loss, text)
    if name == "effective":
        return LossTerms(effective_number(counts, number))
    if name == "adjusted":
        return LossTerms(added=logit_adjustment(counts, number))
    floor = floor_of(Problem.of_sizes(counts, feature_energy=number, weight_energy=1.0), half=name == "half")
    return LossTerms(floor.factors({"collapse": floor.collapse, "margin": floor.margin, "half": floor.half}[name]))


def _number(loss: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(f"The loss `{loss}` needs a number, as in `effective=0.999` or `margin=5`.") from None
