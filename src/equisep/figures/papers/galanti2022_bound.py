"""The comparative bound of Galanti & Galanti 2022 (Prop. 1), estimated from what was run of a figure that declares it.

E[err] ≤ P[d_S1 ≥ d_min(S1 ∪ S̃2)] + p + δ, where d_S1 is the effective depth of the network trained on S1 and d_min the
least depth of a network that separates S1 and S2 relabeled in a share p. Trained networks give an upper estimate of d_min,
and so too small a probability: this is an estimate, never a bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from equisep.figures.evidence import Evidence
from equisep.figures.quantities import FITTED


@dataclass(frozen=True, slots=True)
class Estimate:
    """What is found at one share p of changed labels.

    probability     the share of the n seeds whose effective depth on S1 is at least the least depth that separates both
    value           probability + p, without δ
    least_depth     the mean over those seeds for which a depth that was tried separates both; None if there is none
    """

    p: float
    n: int
    probability: float
    value: float
    least_depth: float | None


def estimates(evidence: Evidence) -> tuple[Estimate, ...]:
    """One estimate for each p of which some seed was run at every depth; the least `value` of them is the estimate of E[err].

    None for a figure that is not about it.
    """
    bound = evidence.figure.bound
    if bound is None:
        return ()
    first = evidence.series[bound.first]
    depths = first.values("effective_depth")
    found: list[Estimate] = []
    for p, joined in bound.joined.items():
        tops = {depth: evidence.series[name].values("ncc") for depth, name in joined.items()}
        seeds = [seed for seed in first.chosen if all(seed in own for own in tops.values())]
        if not seeds:
            continue
        least = {seed: min((d for d in joined if tops[d][seed] > FITTED), default=math.inf) for seed in seeds}
        # a network that separates S1 at no layer is counted against the estimate
        beyond = float(np.mean([depths.get(seed, math.inf) >= least[seed] for seed in seeds]))
        known = [depth for depth in least.values() if math.isfinite(depth)]
        found.append(Estimate(p, len(seeds), beyond, beyond + p, float(np.mean(known)) if known else None))
    return tuple(found)
