"""Which layers carry the separation, and which do nothing?

He & Su (2023): under the law of equi-separation every layer reduces D by the same factor, so that each has the same share of the
work; their Proposition 1: equal shares are least sensitive to a change of single layers.

Rule. The work of layer l is ln D_{l−1} − ln D_l, its share that over the whole fall. A layer is idle below a quarter of the even
share; sure where that stays so at the upper limit of 95 % by the jackknife over folds. `every-layer-works`: no layer is
idle, and at most one layer could be cut (`depth`), of networks that have fitted their data. `idle-layers` names idle ones;
`work` says who carries most, where neither holds.

Limits: a layer can be idle for D and still be needed by the layers after it; that no layer is idle does not say that a shallower
network would do worse.
Tested by: `simulations/situations.py`, kinds `well sized` and `no law` (layers frozen at random weights).
"""

from __future__ import annotations

from collections.abc import Iterator

from equisep.findings.depth import SPARE, WITHIN, can_be_judged, cut_at, spare_layers
from equisep.findings.facts import Facts, Z, finite
from equisep.findings.ranking import new_finding
from equisep.findings.wording import percent_span, whole_percent
from equisep.results.finding import Finding
from equisep.results.wording import percent, sentence

IDLE = 0.25
EVEN = 1.6  # shares within this factor of the even one are nearly even
WORKERS = 0.6  # the layers that do this share of the work between them are named


def idle_layers(facts: Facts) -> list[int]:
    """Layers that do less than a quarter of an even share."""
    even = 1 / len(facts.shares) if facts.shares else 0.0
    return [index for index, share in facts.shares.items() if share < IDLE * even]


def work(facts: Facts) -> Iterator[Finding]:
    """`every-layer-works`, `idle-layers` or `work`."""
    if len(facts.shares) < SPARE:
        return
    idle = idle_layers(facts)
    even = 1 / len(facts.shares)
    numbers = {f"share of {facts.each} {index}": share for index, share in facts.shares.items()}
    cut = cut_at(facts)
    if idle:
        sure = all(
            facts.shares[index] + Z * facts.share_errors.get(index, float("inf")) < IDLE * even for index in idle
        )
        whole = f", the fall of ln D from the first to the last {facts.each} on training data"
        yield new_finding(
            "idle-layers",
            f"{sentence(facts.work_of(idle, whole))}; an even share is {whole_percent(even)} % each.",
            rule="work",
            confidence="sure" if sure else "likely",
            numbers={**numbers, "even": even},
        )
    elif can_be_judged(facts) and _measured(facts) and spare_layers(facts, cut) < SPARE:
        yield _all_work(facts, even, numbers)
    else:
        yield new_finding(
            "work",
            _who_works(facts, even),
            rule="work",
            numbers={**numbers, "even": even},
        )


def _who_works(facts: Facts, even: float) -> str:
    """The layers that do most of it, or that all do about the same."""
    meaning, shares = "the fall of ln D on training data", facts.shares
    least, most = min(shares.values()), max(shares.values())
    if most < EVEN * even and least > even / EVEN:
        return (
            f"The work, {meaning}, is shared nearly evenly: each {facts.each} does {percent_span(least, most)} "
            f"(an even share: {whole_percent(even)} %)."
        )
    order = sorted(shares, key=lambda index: -shares[index])
    count = next(n for n in range(1, len(order) + 1) if sum(shares[index] for index in order[:n]) >= WORKERS)
    total = sum(shares[index] for index in order[:count])
    return (
        f"{facts.spans(order[:count]).capitalize()} {'do' if count > 1 else 'does'} {whole_percent(total)} % of the work "
        f"({meaning}; an even share is {whole_percent(even)} % each), and no {facts.each} less than {whole_percent(least)} %."
    )


def _measured(facts: Facts) -> bool:
    """Whether nearest class means and the network itself were both read on test data."""
    last = facts.last
    return last is not None and finite(last.ncc_test) is not None and facts.accuracy_test is not None


def _all_work(facts: Facts, even: float, numbers: dict[str, float]) -> Finding:
    least = min(facts.shares, key=lambda index: facts.shares[index])
    before = facts.sites[-3] if len(facts.sites) > 2 else None
    lost = None if before is None else finite(before.ncc_test)
    fitted = None if before is None else finite(before.ncc_train)
    cost = ""
    # by what a cut there is refused: test samples, or else training samples
    if lost is not None and facts.accuracy_test is not None and lost < facts.accuracy_test - WITHIN:
        cost = (
            f"; nearest class means two {facts.each}s earlier get {percent(lost)} % of {facts.n_test:,} test samples, the "
            f"network {percent(facts.accuracy_test)} %"
        )
    elif fitted is not None and facts.accuracy_train is not None and fitted < facts.accuracy_train - WITHIN:
        cost = (
            f"; nearest class means two {facts.each}s earlier get {percent(fitted)} % of {facts.n_train:,} training samples, the "
            f"network {percent(facts.accuracy_train)} %"
        )
    return new_finding(
        "every-layer-works",
        f"Every {facts.each} works: the smallest share of the work (the fall of ln D on training data) is {facts.each} {least}'s "
        f"{whole_percent(facts.shares[least])} %, an even one {whole_percent(even)} %{cost}.",
        rule="work",
        confidence="sure" if facts.n_test >= 1_000 else "likely",
        numbers={
            **numbers,
            "even": even,
            "least": least,
            "ncc_test_before": lost,
            "ncc_train_before": fitted,
            "accuracy_test": facts.accuracy_test,
        },
    )
