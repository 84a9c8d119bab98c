"""Each rule of findings on profiles that have what it is about, and on their nearest neighbors that have it not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from made_profiles import CLASSES, codes, network, with_rare_classes

from equisep.findings import MOST, RULES, WEIGHTS
from equisep.findings.rare import predicted_cosines
from equisep.findings.wording import without_meaning
from equisep.law import fit_law
from equisep.law.population import NO_LIMIT, SHORTEST
from equisep.results import Break, ClassifierReading, ClassPair, Corrected, Interval, Note, Profile

DEEP: dict[str, Any] = {
    "curve": [45.0 * 0.6**step for step in range(11)],
    "test": [37.0 * 0.85**step for step in range(11)],
    "ncc_train": [0.65, 0.8, 0.9, 0.97, 0.992, *[1.0] * 6],
    "ncc_test": [0.65, 0.7, 0.76, 0.79, 0.795, *[0.8] * 6],
    "accuracy": (1.0, 0.8),
}


def text(profile: Profile, code: str) -> str:
    return next(finding.text for finding in profile.findings if finding.code == code)


def test_a_good_network() -> None:
    profile = network()
    assert codes(profile)[:2] == ["every-layer-works", "law"]
    first = profile.findings[0]
    assert first.confidence == "sure" and first.rule == "work" and first.weight == WEIGHTS["every-layer-works"]
    assert "the smallest share of the work" in first.text and "an even one 33 %" in first.text
    assert "two layers earlier get 74.0 % of 2,000 test samples, the network 81.0 %" in first.text
    assert first.text.endswith("(D: spread within classes over the distance between them.)")
    assert sum("spread within classes over the distance" in finding.text for finding in profile.findings) == 1


def test_the_first_sentence_with_d_says_of_which_samples_it_is() -> None:
    for whole, words in (
        (True, "between them; exact for the samples read.)"),
        (False, "between them; of the samples read, a sample of more: corrected D estimates that of all.)"),
    ):
        profile = network(whole=whole)
        assert profile.findings[0].text.endswith(words) and words in " ".join(profile.explain().split())
        assert without_meaning(profile.findings[0].text) == without_meaning(network().findings[0].text)


def test_too_deep_says_where_to_cut_and_what_it_costs() -> None:
    profile = network(**DEEP)
    first = profile.findings[0]
    assert first.code == "too-deep" and first.site == "blocks.3" and first.next is not None
    assert "after layer 4 of 10 get 79.5 % of 2,000 test samples right, the whole network 80.0 %" in first.text
    assert (
        "the whole network 80.0 %. Layers 5–10 do 60 % of the work (the fall of ln D on training data)." in first.text
    )
    assert first.numbers["cut"] == 4 and first.numbers["work_behind"] == pytest.approx(0.6)
    dip = [
        *DEEP["ncc_test"][:8],
        0.7,
        *DEEP["ncc_test"][9:],
    ]  # a layer that does worse in between: nothing is spare before it
    assert codes(network(**{**DEEP, "ncc_test": dip}))[0] == "every-layer-works"
    fits_late = network(**{**DEEP, "ncc_train": [*[0.9] * 10, 1.0]}).findings[0]
    assert fits_late.code == "every-layer-works"
    assert "two layers earlier get 90.0 % of 1,000 training samples, the network 100.0 %" in fits_late.text
    for depth, code in ((20, "too-deep"), (21, "cut")):  # two layers behind the cut: a tenth, and less
        fits = [*[0.9] * (depth - 2), *[1.0] * 3]
        curve = [45.0 * 0.6**step for step in range(depth + 1)]
        spare = network(curve, test=curve, ncc_train=fits, ncc_test=[0.8] * (depth + 1), accuracy=(1.0, 0.8))
        assert code in codes(spare)


@pytest.mark.parametrize(
    "change",
    [
        {"accuracy": (0.8, 0.79), "ncc_train": [0.8] * 11},  # unfinished
        {"accuracy": (1.0, 0.1), "ncc_test": [0.1] * 11},  # learned by heart
        {"accuracy": (1.0, 0.7)},  # the head fails
        {"test": [37.0] * 11, "accuracy": (1.0, 0.79)},  # memorizes
    ],
)
def test_no_advice_on_depth_where_something_else_comes_first(change: dict[str, Any]) -> None:
    assert not {"too-deep", "cut", "every-layer-works"} & set(codes(network(**{**DEEP, **change})))


def test_unfitted() -> None:
    profile = network(accuracy=(0.62, 0.6), ncc_train=(0.5, 0.55, 0.6, 0.64), ncc_test=(0.5, 0.55, 0.6, 0.6))
    assert codes(profile)[0] == "unfitted"
    assert (
        "gets 62.0 % of the samples given as its training data right (nearest class means at its last layer: 64.0 %)"
        in (profile.findings[0].text)
    )
    few = network(accuracy=(0.85, 0.85), ncc_train=(0.8,) * 4, counts=(2,) * CLASSES)
    assert "unfitted" not in codes(few)  # 17 of 20 samples may be 95 % of all
    assert "unfitted" not in codes(network(accuracy=(0.62, 0.6)))  # its features fit: the head is what fails


def test_of_a_sample_of_more_a_network_may_have_been_trained_on_the_rest() -> None:
    low: dict[str, Any] = {
        "accuracy": (0.62, 0.6),
        "ncc_train": (0.5, 0.55, 0.6, 0.64),
        "ncc_test": (0.5, 0.55, 0.6, 0.6),
    }
    said = text(network(**low, whole=False), "unfitted")
    assert "it was trained on others, or has not fitted these" in said and "may describe an unfinished network" in said
    assert "trained on others" not in text(network(**low, whole=True), "unfitted")
    few = network(**low, counts=(4,) * CLASSES)
    sites = tuple(
        replace(site, corrected=Corrected(reason="D has no upper limit by these samples")) for site in few.sites
    )
    assert codes(replace(few, sites=sites, whole=False))[0] == "too-few-samples"
    assert codes(replace(few, sites=sites, whole=True))[0] == "unfitted"


def test_labels_that_do_not_belong_and_memorizing() -> None:
    by_heart = network(accuracy=(1.0, 0.11), ncc_test=(0.12, 0.11, 0.1, 0.1), test=(37.0, 40.0, 60.0, 90.0))
    assert codes(by_heart)[0] == "labels-unrelated"
    assert "11.0 % of 2,000 test samples, where guessing gets 10.0 %" in by_heart.findings[0].text
    noisy = network(accuracy=(1.0, 0.46), ncc_test=(0.61, 0.65, 0.56, 0.47), test=(37.0, 24.0, 25.0, 39.0))
    assert codes(noisy)[0] == "memorizing"
    assert "rises from 37.0 to 39.0 on test data" in noisy.findings[0].text
    assert "most of the test samples at layer 1 (65.0 %) and 47.0 % at the last layer" in noisy.findings[0].text
    assert "memorizing" not in codes(network(accuracy=(1.0, 0.81), test=(37.0, 24.0, 25.0, 39.0)))  # 19 points
    better = network(accuracy=(1.0, 0.46), ncc_test=(0.61, 0.65, 0.6, 0.55), test=(37.0, 24.0, 25.0, 39.0))
    assert codes(better)[0] == "memorizing" and "head-worse" not in codes(better)  # a new head learns the same labels
    follows = network(accuracy=(1.0, 0.7), ncc_test=(0.5, 0.6, 0.65, 0.7))
    assert "memorizing" not in codes(follows)


def test_the_gap_is_taken_at_the_class_shares_of_the_training_data() -> None:
    """A balanced test set halves the accuracy of a network that loses its rare classes; that is no memorizing."""
    counts = (200,) * 5 + (2,) * 5
    tested = (0.9,) * 5 + (0.0,) * 5
    profile = network(
        accuracy=(1.0, 0.45), counts=counts, classes=tested, nearest=tested, ncc_test=(0.45,) * 4,
        test=(37.0, 36.0, 36.0, 36.0), accuracy_class_train=(1.0,) * 10,
    )  # fmt: skip
    assert codes(profile)[0] == "lost-classes" and "memorizing" not in codes(profile)


def test_lost_classes_and_the_head_that_loses_them() -> None:
    counts = (200,) * 6 + (4,) * 4
    lost = (0.9,) * 6 + (0.01, 0.3, 0.2, 0.8)
    profile = network(accuracy=(1.0, 0.7), counts=counts, classes=lost, nearest=lost)
    first = profile.findings[0]
    assert first.code == "lost-classes" and first.classes == (6, 8, 7) and first.confidence == "sure"
    assert first.text.startswith("3 rare classes are lost: of class 6, class 8 and class 7 (4 training samples each")
    assert "1.0, 20.0, 30.0 % of the test samples" in first.text and "90.0 % in the median" in first.text
    kept = network(accuracy=(1.0, 0.7), counts=counts, classes=lost, nearest=(0.9,) * 10)
    first = kept.findings[0]
    assert first.code == "head-worse" and first.classes == (6, 8)
    assert "90.0 % of the test samples right, on average over classes, and the network 67.1 %" in first.text
    assert "most of all class 6 (90.0 against 1.0 %)" in first.text
    alike = network(classes=(0.8,) * 10, nearest=(0.82,) * 10)
    assert "head-worse" not in codes(alike)
    risen = (37.0, 40.0, 45.0, 50.0)  # D on test data, which a gap of 25 points would call memorizing
    gap = (0.75,) * 6 + (0.01, 0.3, 0.2, 0.75)
    lost_too = network(accuracy=(1.0, 0.6), counts=counts, classes=gap, nearest=gap, test=risen)
    assert codes(lost_too)[0] == "lost-classes" and "memorizing" not in codes(lost_too)
    assert "memorizing" in codes(network(accuracy=(1.0, 0.6), classes=(0.6,) * 10, nearest=(0.6,) * 10, test=risen))


def by_class(profile: Profile, *rows: Sequence[float]) -> Profile:
    """What nearest class means get of each class on test data, layer by layer; of all test samples what that comes to."""
    sites = [
        replace(site, ncc_class_test=tuple(row), ncc_test=sum(row) / len(row))
        for site, row in zip(profile.sites, rows, strict=True)
    ]
    return replace(profile, sites=tuple(sites))


def test_a_lost_class_hides_memorizing_only_where_it_is_what_looks_like_it() -> None:
    """One class of 3 samples is lost; what the others' labels do is seen without it."""
    risen = (37.0, 40.0, 45.0, 50.0)
    one: dict[str, Any] = {"counts": (100,) * 9 + (3,), "accuracy_class_train": (1.0,) * 10, "test": risen}
    noisy = network(accuracy=(1.0, 0.414), classes=(0.46,) * 9 + (0.0,), **one)
    noisy = by_class(
        noisy, *((share,) * 9 + (lost,) for share, lost in ((0.61, 0.3), (0.65, 0.2), (0.56, 0), (0.47, 0)))
    )
    assert codes(noisy)[:2] == ["lost-classes", "memorizing"]
    assert "100.0 % of its training samples are right and 46.0 % of 1,800 test samples, the lost class left out" in (
        said := text(noisy, "memorizing")
    )
    assert "at layer 1 (65.0 %) and 47.0 % at the last layer" in said and "D falls" not in said
    # of all samples nearest class means lose 8 points and D rises on test data: both are the lost class's doing
    clean = network(accuracy=(1.0, 0.54), classes=(0.6,) * 9 + (0.0,), **one)
    clean = by_class(
        clean, *((share,) * 9 + (lost,) for share, lost in ((0.64, 0.9), (0.64, 0.7), (0.65, 0.3), (0.65, 0)))
    )
    assert codes(clean)[:2] == ["lost-classes", "head-worse"] and "memorizing" not in codes(clean)
    assert "D does not fall on test data, from 37.0 to 50.0" in text(clean, "test-gain")


def test_a_gap_that_lost_classes_make_is_no_memorizing() -> None:
    tested = (0.9,) * 5 + (0.2,) * 5
    profile = network(
        accuracy=(1.0, 0.55), counts=(100,) * 5 + (50,) * 5, classes=tested, accuracy_class_train=(1.0,) * 10
    )
    profile = by_class(profile, *((share,) * 5 + (0.2,) * 5 for share in (0.96, 0.97, 0.95, 0.9)))
    assert codes(profile)[0] == "lost-classes" and "memorizing" not in codes(profile)


def test_where_classes_are_lost_a_cut_is_told_after_that_and_only_if_it_loses_no_more_of_them() -> None:
    tested = (0.9,) * 9 + (0.1,)
    deep = {**DEEP, "accuracy": (1.0, 0.82), "classes": tested, "counts": (100,) * 9 + (5,)}
    shares = [0.7, 0.75, 0.8, 0.88, *[0.9] * 7]
    fine = by_class(network(**deep), *((share,) * 9 + (0.1,) for share in shares))
    assert codes(fine)[:2] == ["lost-classes", "too-deep"]
    assert fine.findings[1].site == "blocks.3" and fine.findings[1].numbers["lost_cut"] == pytest.approx(0.1)
    assert "Of the lost classes they get 10.0 %, the network 10.0 %." in fine.findings[1].text
    worse = by_class(
        network(**deep), *((share,) * 9 + (0.1 if step > 6 else 0.02,) for step, share in enumerate(shares))
    )
    assert worse.findings[1].code == "too-deep" and worse.findings[1].site == "blocks.6"  # 82 % of all at layer 4 too
    unknown = network(**{**deep, "nearest": tested, "ncc_test": [0.82] * 11})  # at the last layer alone
    assert not {"too-deep", "cut"} & set(codes(unknown))


def test_a_head_at_chance_is_not_told_to_be_trained_on_equal_classes() -> None:
    """An untrained head, or one that numbers the classes otherwise: nothing that weights of classes could mend."""
    untrained = network(accuracy=(0.1, 0.1), classes=(1.0, *(0.0,) * 9), nearest=(0.8,) * 10)
    first = untrained.findings[0]
    assert first.code == "head-at-chance" and first.confidence == "sure" and "head-worse" not in codes(untrained)
    assert "gets 10.0 % of the test samples right, on average over classes, guessing 10.0 %" in first.text
    assert "80.0 %. Its head is not trained, or numbers the classes in another order." in first.text
    assert first.next is not None and "balanced" not in first.next
    below = network(accuracy=(0.003, 0.011), classes=(0.011,) * 10, nearest=(0.8,) * 10)
    assert codes(below)[0] == "head-at-chance"
    above = network(accuracy=(0.2, 0.2), classes=(0.2,) * 10, nearest=(0.8,) * 10)  # beyond the noise of 2,000 samples
    assert codes(above)[0] == "head-worse"
    plain = network(accuracy=(0.1, None), ncc_test=None)  # without classes one by one, on training data
    assert (
        codes(plain)[0] == "head-at-chance"
        and "of the training samples right, guessing 10.0 %" in plain.findings[0].text
    )
    unfinished = network(accuracy=(0.6, 0.6), ncc_train=(0.5, 0.6, 0.7, 0.8), classes=(0.6,) * 10, nearest=(0.8,) * 10)
    assert codes(unfinished)[:2] == ["unfitted", "head-worse"]
    assert unfinished.findings[1].next is None  # it is to be trained on as a whole first


def test_one_sample_per_class_says_nothing_of_collapse_or_head() -> None:
    alone = network(
        curve=(0.0,) * 4, accuracy=(0.25, None), ncc_train=(1.0,) * 4, ncc_test=None, counts=(1,) * CLASSES
    )  # fmt: skip
    assert codes(alone) == ["too-few-samples", "not-measured"]
    first = alone.findings[0]
    assert first.text.startswith("10 of 10 classes have one training sample, which is its own class mean")
    few = network(counts=(30,) * 6 + (1,) * 4)
    assert "too-few-samples" not in codes(few) and "no-collapse" in codes(few)


def test_a_handful_of_test_samples_decides_no_depth_and_names_no_class() -> None:
    tested = (1.0,) * 9 + (0.0,)
    for seen, said in ((1, False), (9, False), (200, True)):
        profile = replace(
            network(**{**DEEP, "classes": tested, "nearest": tested}), counts_test=(seen,) * CLASSES
        )  # fmt: skip
        assert ("too-deep" in codes(profile)) == ("hardest-class" in codes(profile)) == said, seen
    short = replace(network(**DEEP), counts_test=(1,) * CLASSES)
    assert "what a cut would cost (10 test samples; from 100 on one point shows)" in short.findings[-1].text
    close = replace(network(classes=(0.8,) * 9 + (0.6,)), counts_test=(20,) * CLASSES)
    assert next(each for each in close.findings if each.code == "hardest-class").confidence == "likely"


@pytest.mark.parametrize(
    ("last", "said"),
    [
        (30.0, "falls less on test data, from 37.0 to 30.0, than"),
        (60.0, "does not fall on test data, from 37.0 to 60.0, as it does"),
    ],
)
def test_d_that_rises_on_test_data_is_not_said_to_fall_less(last: float, said: str) -> None:
    profile = network(test=(37.0, 36.0, 35.0, last), accuracy=(0.9, 0.8))
    found = next(each for each in profile.findings if each.code == "test-gain")
    assert f"D {said} on training data, from 45.0 to 2.90" in found.text


def test_test_data_that_are_the_training_data_are_taken_for_none() -> None:
    note = Note("test-is-training", "The test data are the training data.")
    profile = network(**DEEP, notes=(note,))
    assert not {"too-deep", "memorizing", "test-gain"} & set(codes(profile))
    assert "what a cut would cost (the test data are the training data)" in profile.findings[-1].text
    assert "test samples" not in profile.explain()


def test_names_of_classes_and_who_is_taken_for_whom() -> None:
    tested = (0.8,) * 6 + (0.5,) + (0.9,) * 3
    profile = network(classes=tested, nearest=tested, class_names=tuple(f"thing {k}" for k in range(CLASSES)))
    last = replace(
        profile.sites[-1],
        confused_test=(ClassPair(6, 0, 31.0), ClassPair(6, 2, 40.0), ClassPair(1, 6, 90.0)),
        class_fuzziness=(0.2,) * 6 + (0.9,) + (0.2,) * 3,
    )
    words = text(replace(profile, sites=(*profile.sites[:-1], last)), "hardest-class")
    assert words.startswith("The hardest class is thing 6 (100 training samples): 50.0 % of its test samples are right")
    assert "take 40 of its 200 test samples for thing 2" in words and "0.90, 0.20 in the median" in words


def test_too_few_samples() -> None:
    def sampled(refused: int) -> Profile:
        profile = network(counts=(4,) * CLASSES)
        records = [
            Corrected(reason=(NO_LIMIT, SHORTEST)[step % 2], needed_per_class=8 + step)
            if step < refused
            else Corrected(1.0, 0.9, 1.1)
            for step in range(4)
        ]
        sites = [replace(site, corrected=record) for site, record in zip(profile.sites, records, strict=True)]
        return replace(profile, sites=tuple(sites))

    first = sampled(2).findings[0]
    assert first.code == "too-few-samples" and first.confidence == "cannot be said"
    assert "From 4 samples per class D cannot be told at 2 of 4 layers" in first.text
    assert "about 9 per class, or more, would be needed" in first.text
    assert "too-few-samples" not in codes(sampled(1))
    assert replace(sampled(2), whole=False).findings[0].next is not None
    assert replace(sampled(2), whole=True).findings[0].next is None  # there are no more to be had by measuring again


def test_the_law_and_how_sure_it_is() -> None:
    profile = network()
    finding = next(each for each in profile.findings if each.code == "law")
    assert finding.confidence == "likely"
    assert "every layer leaves 40 % of D" in finding.text and "over 4 points, reading `eval`" in finding.text
    long = network(**DEEP)
    spans = {"rho": Interval(0.58, 0.62, 0.95, "jackknife", 10)}
    kink = Break(at=3, rhos=(0.5, 0.7), bic_one=0.0, bic_two=-9.0, p=0.01)
    bent = replace(long, law=replace(long.law, intervals=spans, two_slopes=kink))
    finding = next(each for each in bent.findings if each.code == "law")
    assert finding.confidence == "likely"  # by convention, whatever the noise
    assert "leaves 60 % of D ([58 %, 62 %] in other samples of this size), along" in finding.text
    assert finding.text.endswith("with a kink at layer 3: ×0.50 before it, ×0.70 after.")
    flat = network(curve=(45.0, 45.0, 44.0, 3.0))
    assert codes(flat)[:2] == ["no-law", "idle-layers"]
    assert "layer 3 does 99 % of the work" in text(flat, "no-law")
    assert "Layers 1 and 2 do 1 % of the work" in text(flat, "idle-layers")
    undone = network(curve=(45.0, 46.0, 3.0, 3.1))
    lowered = "; layer 2 lowers ln D by 102 % of its whole fall on training data, and the other layers raise it by 2 %."
    assert lowered in text(undone, "no-law")
    raised = "Layers 1 and 3 together raise ln D, by 2 % of its whole fall on training data; an even share"
    assert raised in text(undone, "idle-layers")
    rising = network(curve=(10.0, 12.0, 14.0, 20.0))
    assert "ln D does not fall from layer to layer" in text(rising, "no-law")


def test_a_sample_has_the_factor_of_the_population_beside_its_own() -> None:
    profile = network(**DEEP)
    beyond = fit_law([45 * 0.5**step for step in range(9)])
    beyond = replace(beyond, intervals={"rho": Interval(0.46, 0.54, 0.95, "jackknife", 10)})
    plain = {"rho": Interval(0.58, 0.62, 0.95, "jackknife", 10)}
    sample = replace(profile, whole=False, laws={"corrected": beyond}, law=replace(profile.law, intervals=plain))
    own, others = "leaves 60 % of D", "[58 %, 62 %] in other samples of this size"
    assert f"{own} ({others}; 50 % [46 %, 54 %] in the population, from layer 2 on), along" in text(sample, "law")
    bare = replace(sample, law=profile.law)
    assert f"{own} (50 % [46 %, 54 %] in the population, from layer 2 on), along" in text(bare, "law")
    for whole in (True, None):
        assert f"{own} ({others}), along" in text(replace(sample, whole=whole), "law")


def test_a_law_by_block_only() -> None:
    blocks, layers = [45 * 0.5**step for step in range(5)], [45.0, 100.0, 22.0, 90.0, 11.0, 60.0, 6.0, 30.0, 3.0]
    profile = network(laws={"layers": fit_law(layers), "blocks": fit_law(blocks)}, settings={"grain": "blocks"})
    assert codes(profile)[0] == "law-by-block" and "law" not in codes(profile)
    assert "every block leaves 50 % of D" in profile.findings[0].text
    assert profile.findings[0].next is None  # it is read by blocks
    assert replace(profile, settings={"grain": "layers"}).findings[0].next.endswith("sites='blocks')")
    short = network(laws={"layers": fit_law(layers), "blocks": fit_law(blocks[:4])})
    assert "law-by-block" not in codes(short)  # four points lie near a line anyway


def test_neural_collapse() -> None:
    profile = network()
    assert "no-collapse" in codes(profile)
    for nc1, wanted in ((0.004, {"collapse"}), (0.015, set[str]()), (0.03, {"no-collapse"})):
        last = replace(profile.sites[-1], nc1=nc1)
        made = set(codes(replace(profile, sites=(*profile.sites[:-1], last))))
        assert made & {"collapse", "no-collapse"} == wanted


def test_cosines_of_rare_classes_beside_the_layer_peeled_model() -> None:
    profile = with_rare_classes()
    finding = next(each for each in profile.findings if each.code == "rare-geometry")
    assert finding.classes == (5, 6, 7, 8, 9) and finding.next is None
    assert "stand at a cosine of 0.90 to each other, -0.20 between those of the others" in finding.text
    assert finding.numbers["predicted at 1"] == pytest.approx(1.0, abs=1e-3)  # 100 is far beyond R* there
    assert -1 / 9 < (finding.numbers["predicted at 20"] or 0) < 1
    saved = replace(profile, peeled_cosines=predicted_cosines(profile))  # as `measure` saves it
    assert saved.peeled_cosines == (finding.numbers["predicted at 1"], finding.numbers["predicted at 20"])
    assert saved.findings == profile.findings
    assert predicted_cosines(network()) is None
    layer = ClassifierReading("fc", 0.0, 0.0, 0.0, 0.0, margins=(5.0,) * 10, margins_test=(4.0,) * 5 + (-0.5,) * 5)
    finding = next(each for each in replace(saved, classifier=layer).findings if each.code == "rare-geometry")
    assert (
        "score of their own class trails the largest other by 0.5 on average, and leads it by 4 for the others."
        in finding.text
    )
    assert finding.numbers["margin"] == -0.5 and finding.numbers["margin_others"] == 4
    for lost in (None, (None,) * 10):
        bare = replace(saved, classifier=replace(layer, margins=lost, margins_test=lost))
        finding = next(each for each in bare.findings if each.code == "rare-geometry")
        assert "leads" not in finding.text and "margin" not in finding.numbers


def test_shares_have_the_jackknife_error_of_their_folds() -> None:
    from equisep.findings.facts import Facts

    rng = np.random.default_rng(3)
    folds = np.exp(np.log([45.0, 18.0, 7.2, 2.9])[:, None] + 0.05 * rng.standard_normal((4, 10)))
    profile = network()
    sites = [replace(site, fuzziness_folds=tuple(row)) for site, row in zip(profile.sites, folds, strict=True)]
    errors = Facts(replace(profile, sites=tuple(sites))).share_errors
    logs = np.log(folds)
    shares = (logs[:-1] - logs[1:]) / (logs[0] - logs[-1])
    for step in range(3):
        assert errors[step + 1] == pytest.approx(np.sqrt(9 * shares[step].var()), rel=1e-12)


def test_at_most_seven_ranked_and_every_code_has_a_weight() -> None:
    tested = (0.8,) * 6 + (0.5,) + (0.9,) * 3
    profile = network(**{**DEEP, "classes": tested, "nearest": tested})
    weights = [finding.weight for finding in profile.findings]
    assert weights == sorted(weights, reverse=True) and len(weights) <= MOST == 7
    assert all(finding.rule in RULES for finding in profile.findings)
    assert len(set(WEIGHTS)) == len(WEIGHTS)
