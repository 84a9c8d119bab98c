"""The comparative bound of Galanti & Galanti 2022 (Prop. 1), estimated from what was run of a figure that declares it.

`equisep.advice.depth.generalization_bound` has the proposition. Labels of S2 are drawn at random, as in the paper; where the
networks of S1 were asked, beside them stand the labels that these give S2 themselves, which Prop. 1 admits as well.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from equisep.advice.depth.generalization_bound import ComparativeEstimate, balancedness, comparative_bound
from equisep.figures.evidence import Evidence, SeriesEvidence
from equisep.figures.quantities import FITTED

_OWN = ("own_depth", "own_separated", "own_error", "own_balance")


@dataclass(frozen=True, slots=True)
class Estimate:
    """What is found at one share p of changed labels, for networks of `depth` hidden layers on S1.

    drawn       with labels of S2 drawn at random. `own`: with those and the ones that the networks of S1 give S2 themselves;
                None where they were not asked
    error       the mean test error of the networks of S1, which the bound is of
    """

    depth: int
    drawn: ComparativeEstimate
    own: ComparativeEstimate | None
    error: float | None

    @property
    def value(self) -> float:
        """P + p + δ, with all labels that were tried."""
        return (self.own or self.drawn).value


def estimates(evidence: Evidence) -> tuple[Estimate, ...]:
    """One estimate for each depth of the networks of S1 and each p of which some seed was run at every depth of the joined ones.

    None for a figure that is not about it.
    """
    bound = evidence.figure.bound
    if bound is None:
        return ()
    return tuple(
        estimate
        for depth, name in bound.first.items()
        for p, joined in bound.joined.items()
        if (estimate := _estimate(evidence, depth, evidence.series[name], p, joined)) is not None
    )


def least_estimates(rows: Sequence[Estimate]) -> tuple[Estimate, ...]:
    """For each depth of the networks of S1 the least value over p, which is what the bound comes to."""
    depths = dict.fromkeys(row.depth for row in rows)
    return tuple(min((row for row in rows if row.depth == depth), key=lambda row: row.value) for depth in depths)


def _estimate(
    evidence: Evidence, depth: int, first: SeriesEvidence, p: float, joined: Mapping[int, str]
) -> Estimate | None:
    bound = evidence.figure.bound
    assert bound is not None
    tops = {d: evidence.series[name].values("ncc") for d, name in joined.items()}
    seeds = [seed for seed in first.chosen if all(seed in own for own in tops.values())]
    if not seeds:
        return None
    distances = first.values("balance")
    balanced = balancedness([*distances.values()], epsilon=bound.epsilon) if distances else None
    depths = first.values("effective_depth")
    effective = [depths.get(seed) for seed in seeds]
    least = [min((d for d in joined if tops[d][seed] > FITTED), default=None) for seed in seeds]
    witnessed = _witnessed(first, p, bound.epsilon)
    both = [_less(one, witnessed.get(seed)) for seed, one in zip(seeds, least, strict=True)]
    asked = any(first.values(name) for name in _OWN)
    errors = [1 - share for share in first.values("accuracy_test").values()]
    return Estimate(
        depth=depth,
        drawn=comparative_bound(effective, least, p=p, balanced=balanced),
        own=comparative_bound(effective, both, p=p, balanced=balanced) if asked else None,
        error=float(np.mean(errors)) if errors else None,
    )


def _witnessed(first: SeriesEvidence, p: float, epsilon: float) -> dict[int, float]:
    """By seed the depth at which a network of S1 separates S1 and S2 under its own labels, where Prop. 1 admits these."""
    depths, separated, errors, distances = (first.values(name) for name in _OWN)
    return {
        seed: depth
        for seed, depth in depths.items()
        if separated[seed] > FITTED and errors[seed] >= p and distances[seed] <= epsilon
    }


def _less(one: float | None, other: float | None) -> float | None:
    least = min(math.inf if depth is None else depth for depth in (one, other))
    return least if math.isfinite(least) else None
