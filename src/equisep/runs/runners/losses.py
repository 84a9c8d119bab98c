"""The loss of a cell by rule: weights of classes, or terms added to their scores, made of its class sizes.

`plain`              no weights
`inverse`            w_k ∝ 1/n_k
`effective=β`        w_k ∝ (1 − β)/(1 − β^{n_k}) (Cui et al. 2019)
`adjusted=τ`         τ log π_k added to the scores (Menon et al. 2021)
`collapse=E`         the least floor under w_k n_k from which on no two classifiers coincide in the Layer-Peeled Model with
                     E_W·E_H = E; `margin=E`: at which every class has a margin above 0; `half=E`: half that of equal classes
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from equisep.errors import InputError, did_you_mean
from equisep.figures.cell import Training
from equisep.peeled import Problem, floor_of
from equisep.training.class_weights import effective_number, inverse_frequency, logit_adjustment

RULES = ("plain", "inverse", "effective", "adjusted", "collapse", "margin", "half")


@dataclass(frozen=True, slots=True)
class LossTerms:
    """Weights of classes, for a mean that divides by them, and what is added to the scores; None: nothing."""

    weights: tuple[float, ...] | None = None
    added: tuple[float, ...] | None = None


def loss_terms(cell: Training, counts: Sequence[int]) -> LossTerms | None:
    """What the cell's rule makes of its class sizes; None for a cell without a rule."""
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
