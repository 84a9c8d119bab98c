"""Is there a law of equi-separation, and at which grain?

He & Su (2023): "each layer improves data separation at a constant geometric rate", D_l ≈ ρ^l D_0. They call r = −0.996 a law and
−0.971 none, and find it from block to block in residual networks.

Rule: `law` for r ≤ −0.996, `no-law` for r > −0.971 or D that does not fall, `near-law` between. `law-by-block`: from block to
block r ≤ −0.971 at five points or more, and no law from layer to layer. A kink is named where two slopes are clear (p ≤ 0.05,
`law/breaks.py`).

Limits: never more than likely: the thresholds are a convention, and how far r of the samples is from that of others is not known
(it has no interval, `law/intervals.py`). r of few points is near −1 for any falling curve; the law depends on the reading
(docs/readings.md), which is named.
Tested by: `simulations/situations.py`, kinds `no law` and `law by block only`; the verdict against noise by
`simulations/law_shape.py`.
"""

from __future__ import annotations

from collections.abc import Iterator

from equisep.findings.facts import Facts, finite
from equisep.findings.ranking import new_finding
from equisep.findings.wording import whole_percent
from equisep.findings.work import idle_layers
from equisep.results.finding import Finding
from equisep.results.records import LAW_R, NO_LAW_R, law_verdict
from equisep.results.wording import correlation, law_span_words, number

FEW = 5


def law(facts: Facts) -> Iterator[Finding]:
    """`law-by-block`, or one of `law`, `near-law` and `no-law`."""
    fitted = facts.profile.law
    r, rho = finite(fitted.r), finite(fitted.rho)
    by_block = _by_block(facts)
    if by_block is not None:
        yield by_block
        return
    verdict = law_verdict(r, rho, sites=len(fitted.curve))
    if verdict == "undetermined" or r is None or rho is None:
        return
    numbers = {"r": r, "rho": rho, "points": len(fitted.curve), "half_life": finite(fitted.half_life)}
    yield new_finding(
        {"law": "law", "between": "near-law", "no law": "no-law"}[verdict],
        {"law": _lawful, "between": _nearly, "no law": _lawless}[verdict](facts, r, rho),
        rule="law",
        confidence="likely",
        numbers=numbers,
    )


def _lawful(facts: Facts, r: float, rho: float) -> str:
    spans = law_span_words(facts.profile, "rho", lambda share: f"{whole_percent(share)} %")
    beside = f" ({spans})" if spans else ""
    return (
        f"The law of equi-separation holds: every {facts.each} leaves {whole_percent(rho)} % of D{beside}, "
        f"along a straight line (r {correlation(r)} over {len(facts.profile.law.curve)} points, "
        f"reading `{facts.profile.reading or '?'}`){_kink(facts)}."
    )


def _nearly(facts: Facts, r: float, rho: float) -> str:
    return (
        f"D falls nearly along a line, to {whole_percent(rho)} % per {facts.each}: r {correlation(r)} over "
        f"{len(facts.profile.law.curve)} points (reading `{facts.profile.reading or '?'}`) is between a law ({LAW_R} "
        f"or less) and none (above {NO_LAW_R}){_kink(facts)}."
    )


def _lawless(facts: Facts, r: float, rho: float) -> str:
    falls = "does not fall along a line" if rho < 1 else "does not fall"
    idle = idle_layers(facts)
    busy = [index for index in facts.shares if index not in idle]
    who = f"; {facts.work_of(busy)}" if idle and busy else ""
    return (
        f"There is no law of equi-separation: ln D {falls} from {facts.each} to {facts.each} (r {correlation(r)} over "
        f"{len(facts.profile.law.curve)} points; a law has {LAW_R} or less, reading `{facts.profile.reading or '?'}`){who}."
    )


def _kink(facts: Facts) -> str:
    """Where the slope changes, if two slopes are clear."""
    fitted = facts.profile.law
    kink = fitted.two_slopes
    if kink is None or not kink.clear:
        return ""
    begin = facts.profile.begin()
    at = begin + kink.at
    if not 0 <= at < len(facts.sites):
        return ""
    before, after = (number(rho, 2) for rho in kink.rhos)
    return f", with a kink at {facts.at(facts.sites[at])}: ×{before} before it, ×{after} after"


def _by_block(facts: Facts) -> Finding | None:
    layers, blocks = facts.profile.laws.get("layers"), facts.profile.laws.get("blocks")
    if layers is None or blocks is None or layers.curve == blocks.curve:
        return None
    one, two = finite(layers.r), finite(blocks.r)
    told = law_verdict(one, finite(layers.rho), sites=len(layers.curve)) == "no law"
    held = law_verdict(two, finite(blocks.rho), sites=len(blocks.curve)) in ("law", "between")
    if not told or not held or len(blocks.curve) < FEW:
        return None
    nearly = "" if two is not None and two <= LAW_R else "nearly "
    left = whole_percent(blocks.rho or 0)
    return new_finding(
        "law-by-block",
        f"The law of equi-separation {nearly}holds from block to block (every block leaves {left} % of D; "
        f"r {correlation(two)} over {len(blocks.curve)} points), not from layer to layer (r {correlation(one)} over "
        f"{len(layers.curve)}): read, compare and cut this network by blocks.",
        rule="law",
        confidence="likely",
        numbers={"r_blocks": two, "r_layers": one, "rho_blocks": blocks.rho, "blocks": len(blocks.curve)},
        next=None if facts.each == "block" else facts.measured_again("--sites blocks", "test, sites='blocks'"),
    )
