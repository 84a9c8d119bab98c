"""Could layers be cut, and what would that cost?

Galanti & Galanti (2022): "SGD implicitly selects neural networks of small effective depths", effective depth being the first
layer at which nearest class centers separate the training samples; layers above it are then spare. Their rule: more than 99 % is
perfect.

Rule. The cut is the first layer from which on nearest class means get at least the network's own test accuracy less one point,
and 99 % of the training samples (or the network's own training accuracy less one point, where that is lower). `too-deep`: two
layers or more, and a tenth of the depth or more, lie behind it. `cut`: fewer do, but two or more. `no-cut`: none does, at every
layer before the last nearest class means lose more than a point of test accuracy, and training data have samples of every class
of the test data. All are said only of networks
that have fitted their data (`fit`) and do not memorize (`memorizing`), and whose head is not what fails (`head`), from 100 test
samples on, of fewer one being more than the point that is allowed. Sure from 1,000 test samples on. Where rare classes are lost
(`classes`, which is said first) a cut must not lose more of them either: nearest class means there get the network's own share of
their test samples less one point, which the few samples of a rare class would not show in the accuracy of all.

Limits: what a cut costs is measured with nearest class means as the new head, on these test samples; it does not say that a
shallower network trained from scratch does as well.
Tested by: `simulations/situations.py`, kinds `too deep` and `well sized`, each network really cut.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from equisep.findings.classes import lost_classes
from equisep.findings.facts import Facts, finite
from equisep.findings.fit import unfitted
from equisep.findings.head import head_loss
from equisep.findings.memorizing import labels_unrelated, memorizes
from equisep.findings.ranking import new_finding
from equisep.findings.samples import too_few
from equisep.results import SiteReading
from equisep.results.finding import Finding
from equisep.results.wording import percent, sentence

CUT = "from equisep.advice.cut import cut_model; cut_model(model, train, test)"  # where there is no command
WITHIN = 0.01
SEPARATED = 0.99
SPARE = 2
SPARE_SHARE = 0.1  # a fifth left out a fourth of networks of 12 to 20 layers for data on which 4 do as well
SURE = 1_000


def cut_at(facts: Facts) -> SiteReading | None:
    """The first layer from which on nearest class means do as well as the network; None where that cannot be said."""
    train, test = facts.accuracy_train, facts.accuracy_test
    if train is None or test is None:
        return None
    floor = min(SEPARATED, train - WITHIN)
    rare = _of_lost_classes(facts, facts.profile.accuracy_class_test)
    cut = None
    for site in reversed(facts.sites):
        here, there = finite(site.ncc_train), finite(site.ncc_test)
        if site.index < 1 or here is None or there is None or here < floor or there < test - WITHIN:
            break
        kept = _of_lost_classes(facts, site.ncc_class_test)
        if rare is not None and (kept is None or kept < rare - WITHIN):
            break
        cut = site
    return cut


def _of_lost_classes(facts: Facts, by_class: Sequence[float | None] | None) -> float | None:
    """The share of the test samples of all lost classes together; None where none is lost, or it is not known."""
    lost = {row.label for row in lost_classes(facts)}
    others = set(range(len(facts.profile.counts))) - lost
    return facts.mean_without(others, by_class, facts.profile.counts_test) if lost else None


def can_be_judged(facts: Facts) -> bool:
    """Whether depth is a question yet: a network that fits, carries over to test data, and does not fail by its head."""
    earlier = (unfitted(facts), labels_unrelated(facts), memorizes(facts), head_loss(facts), too_few(facts))
    return facts.n_test * WITHIN >= 1 and not any(earlier)


def spare_layers(facts: Facts, cut: SiteReading | None) -> int:
    """How many layers lie behind the cut."""
    return sum(site.index > cut.index for site in facts.sites) if cut is not None else 0


def depth(facts: Facts) -> Iterator[Finding]:
    """`too-deep` or `cut`, or where no layer is spare `no-cut`."""
    cut = cut_at(facts)
    spare = spare_layers(facts, cut)
    if not can_be_judged(facts) or facts.last is None:
        return
    if not spare:
        yield from _no_cut(facts, facts.last)
    if cut is None or spare < SPARE:
        return
    behind = [site.index for site in facts.sites if site.index > cut.index]
    work = sum(facts.shares.get(index, 0.0) for index in behind)
    share = f" {sentence(facts.work_of(behind, ' (the fall of ln D on training data)'))}."
    rare, kept = (_of_lost_classes(facts, each) for each in (facts.profile.accuracy_class_test, cut.ncc_class_test))
    beside = "" if rare is None else f" Of the lost classes they get {percent(kept)} %, the network {percent(rare)} %."
    deep = spare >= SPARE_SHARE * facts.last.index
    said = "The network is deeper than these data need" if deep else f"The last {spare} {facts.each}s could be cut"
    yield new_finding(
        "too-deep" if deep else "cut",
        f"{said}: nearest class means after {facts.each} {cut.index} of {facts.last.index} get {percent(cut.ncc_test)} % of "
        f"{facts.n_test:,} test samples right, the whole network {percent(facts.accuracy_test)} %."
        f"{beside}{share if facts.shares else ''}",
        rule="depth",
        confidence="sure" if facts.n_test >= SURE else "likely",
        numbers={
            "cut": cut.index, "depth": facts.last.index, "ncc_test": cut.ncc_test, "ncc_train": cut.ncc_train,
            "accuracy_test": facts.accuracy_test, "work_behind": work if facts.shares else None,
            "lost_network": rare, "lost_cut": kept,
        },
        next=facts.command("cut", without=("--split", "--length")) or CUT,
        site=cut.name,
    )  # fmt: skip


def _no_cut(facts: Facts, last: SiteReading) -> Iterator[Finding]:
    """What the last cut would cost, where it is not free; a network of one layer has none."""
    before = facts.sites[-2] if len(facts.sites) > 1 else None
    one = None if before is None else finite(before.ncc_test)
    two, whole = finite(last.ncc_test), facts.accuracy_test
    if before is None or before.index < 1 or one is None or two is None or whole is None or facts.unlearned:
        return
    earlier = [finite(site.ncc_test) for site in facts.sites[:-1] if site.index >= 1]
    if any(each is None or each >= whole - WITHIN for each in earlier):
        return
    yield new_finding(
        "no-cut",
        f"Read by nearest class means, no cut is free: they get {percent(one)} % of {facts.n_test:,} test samples at "
        f"{facts.at(before)} and {percent(two)} % at the last, the network {percent(whole)} %.",
        rule="depth",
        confidence="sure" if facts.n_test >= SURE else "likely",
        numbers={"ncc_test_before": one, "ncc_test_last": two, "accuracy_test": whole},
        site=before.name,
    )
