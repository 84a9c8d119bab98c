"""What a tester found said falsely: of few samples, unequal classes, and test data that hold other classes than training data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from made_profiles import CLASSES, codes, network

from equisep.findings.facts import Facts
from equisep.findings.wording import percent_span, whole_percent
from equisep.law import fit_law
from equisep.results import Corrected, Interval, LawFit, Note, Profile

BY_HEART: dict[str, Any] = {"ncc_test": (0.12, 0.11, 0.1, 0.1), "test": (37.0, 40.0, 60.0, 90.0)}
MIX = Note("class-mix", "Training and test data hold the classes in different shares.")


def text(profile: Profile, code: str) -> str:
    return next(finding.text for finding in profile.findings if finding.code == code)


def seen_on(profile: Profile, seen: Sequence[int]) -> Profile:
    return replace(profile, counts_test=tuple(seen))


def with_sites(profile: Profile, **changes: Any) -> Profile:
    return replace(profile, sites=tuple(replace(site, **changes) for site in profile.sites))


@pytest.mark.parametrize(("seen", "said"), [(1, False), (4, True), (50, True)])
def test_a_handful_of_test_samples_does_not_tell_that_labels_are_unrelated(seen: int, said: bool) -> None:
    profile = seen_on(network(accuracy=(1.0, 0.1), **BY_HEART), (seen,) * CLASSES)
    assert ("labels-unrelated" in codes(profile)) == said
    four = network(accuracy=(1.0, 0.25), counts=(50,) * 4, **BY_HEART)  # half of 4,000 test samples would be right
    assert not {"labels-unrelated", "memorizing", "test-gain"} & set(codes(seen_on(four, (2,) * 4)))
    assert codes(seen_on(four, (125,) * 4))[0] == "labels-unrelated"


def test_guessing_goes_by_the_classes_a_network_chooses_among() -> None:
    half = seen_on(network(accuracy=(1.0, 0.47)), (600, 600) + (0,) * 8)
    assert Facts(half).guess == pytest.approx(0.1) and "labels-unrelated" not in codes(half)
    lost = seen_on(network(accuracy=(1.0, 0.1), **BY_HEART), (600, 600) + (0,) * 8)
    assert codes(lost)[0] == "labels-unrelated" and "where guessing gets 10.0 %" in lost.findings[0].text
    uneven = seen_on(network(counts=(300, 100)), (100, 300))
    assert Facts(uneven).guess == pytest.approx(0.75 * 0.25 + 0.25 * 0.75)
    assert Facts(uneven).guess_train == 0.75
    for counts, seen in (((0, 0), (5, 5)), ((5, 5), (0, 0))):
        assert Facts(seen_on(network(counts=counts), seen)).guess is None


def test_naming_the_largest_class_throughout_is_nothing_by_heart() -> None:
    share = 3000 / 3003
    for seen, got in (((300, 300), 0.5), ((3000, 3), share)):
        constant = network(counts=(3000, 3), accuracy=(share, got), test=(37.0, 40.0, 60.0, 90.0))
        assert not {"labels-unrelated", "memorizing", "test-gain"} & set(codes(seen_on(constant, seen)))
    for train, said in ((0.8, True), (0.79, False)):  # 30 points above guessing, of two equal classes as before
        two = network(counts=(500, 500), accuracy=(train, 0.5), **BY_HEART)
        assert ("labels-unrelated" in codes(seen_on(two, (2000, 2000)))) == said
    one = network(counts=(500,), accuracy=(1.0, 1.0))
    assert "labels-unrelated" not in codes(one)


def test_a_good_network_tested_on_one_class_is_not_at_chance() -> None:
    one = seen_on(
        network(classes=(0.72, *(0.0,) * 9), nearest=(0.82, *(0.0,) * 9), accuracy=(1.0, 0.72)), (600,) + (0,) * 9
    )
    assert not {"head-at-chance", "head-worse"} & set(codes(one))  # a tenth of the classes tells little of a head
    most = seen_on(
        network(classes=(0.72,) * 6 + (0.0,) * 4, nearest=(0.82,) * 6 + (0.0,) * 4, accuracy=(1.0, 0.72)),
        (600,) * 6 + (0,) * 4,
    )
    assert "head-worse" in codes(most) and "head-at-chance" not in codes(most)
    untrained = seen_on(
        network(classes=(0.1,) * 6 + (0.0,) * 4, nearest=(0.82,) * 6 + (0.0,) * 4, accuracy=(0.1, 0.1)),
        (600,) * 6 + (0,) * 4,
    )
    assert "head-at-chance" in codes(untrained)
    assert "guessing 10.0 %" in text(untrained, "head-at-chance")


def test_a_head_that_names_the_largest_of_unequal_classes_is_trained() -> None:
    for largest, code in ((1.0, "head-worse"), (0.3, "head-at-chance")):
        made = network(
            counts=(3000, 3), accuracy=(3000 / 3003, 0.5), classes=(largest, 1 - largest), nearest=(0.95, 0.99)
        )
        found = set(codes(made))
        assert found & {"head-worse", "head-at-chance"} == {code}
    unknown = network(counts=(3000, 3), accuracy=(3000 / 3003, 0.5), ncc_test=(0.97,) * 4)  # not class by class
    assert "head-at-chance" not in codes(unknown)


def test_no_cut_is_said_of_all_layers() -> None:
    fine = network(curve=(45.0, 44.0, 43.0, 3.0), ncc_test=(0.65, 0.7, 0.75, 0.81))
    assert "no-cut" in codes(fine)
    early = network(curve=(45.0, 44.0, 43.0, 3.0), ncc_test=(0.65, 0.81, 0.75, 0.81))  # layer 1 does as well
    assert "no-cut" not in codes(early)
    sites = tuple(replace(site, ncc_test=None) if site.index == 1 else site for site in fine.sites)
    assert "no-cut" not in codes(replace(fine, sites=sites))
    assert "no-cut" not in codes(replace(fine, counts=(0, *(100,) * 9)))  # the test data hold that class


def test_the_median_of_two_classes_lies_between_them() -> None:
    made = network(counts=(200, 200), classes=(1.0, 0.78), nearest=(1.0, 0.78), accuracy=(0.95, 0.89))
    last = replace(made.sites[-1], class_fuzziness=(0.1, 1.3))
    words = text(replace(made, sites=(*made.sites[:-1], last)), "hardest-class")
    assert "its D at the last layer is 1.3, 0.70 in the median of all" in words


def test_medians_that_leave_out_rare_classes_say_so() -> None:
    tested = (0.9,) * 6 + (0.1, 0.8, 0.8, 0.8)
    some = network(counts=(200,) * 6 + (4,) * 4, classes=tested, nearest=tested, accuracy=(1.0, 0.7))
    assert "of the classes that are not rare 90.0 % in the median." in text(some, "lost-classes")
    tested = (0.9,) * 9 + (0.1,)
    one = network(counts=(200,) * 9 + (1,), classes=tested, nearest=tested, accuracy=(1.0, 0.8))
    assert "(1 training sample against 200 of the largest class)" in text(one, "lost-classes")
    assert "of the other classes 90.0 % in the median." in text(
        one, "lost-classes"
    )  # which are those that are not rare
    tested = (0.9,) * 6 + (0.6, 0.8, 0.8, 0.8)
    hard = network(counts=(200,) * 6 + (90,) * 4, classes=tested, nearest=tested)
    assert "90.0 % in the median of the classes that are not rare." in text(hard, "hardest-class")
    even = network(classes=tested, nearest=tested)
    assert "in the median of the classes." in text(even, "hardest-class")


def test_unfitted_prints_what_is_judged() -> None:
    shares = (0.8, *(1.0,) * 20)
    made = network(
        counts=(1000, *(500,) * 20), accuracy=(0.982, None), ncc_test=None, accuracy_class_train=shares,
        ncc_train=(0.982,) * 4,
    )  # fmt: skip
    known = with_sites(made, ncc_class_train=(0.75, *(1.0,) * 20))
    assert "gets 80.0 % of the samples given as its training data right, of the classes that are not rare (nearest" in (
        words := text(known, "unfitted")
    )
    assert "(nearest class means at its last layer: 75.0 %): it has not" in words and "98.2" not in words
    assert "unfitted" not in codes(made)  # nearest class means are known of all classes together: 98.2 %
    low = with_sites(made, ncc_train=0.85)
    assert (
        "right, of the classes that are not rare (nearest class means at its last layer: 85.0 %, of all classes)"
        in (text(low, "unfitted"))
    )
    stored = replace(known, accuracy_train=None, accuracy_class_train=None)
    assert "get 75.0 % of the training samples right, of the classes that are not rare:" in text(stored, "unfitted")
    few = network(
        counts=(10, *(5,) * 200), accuracy=(0.98, None), ncc_test=None, accuracy_class_train=(0.8, *(1.0,) * 200)
    )
    few = with_sites(few, ncc_train=None)
    assert "unfitted" not in codes(few)  # 8 of 10 may be 94 % of all; 80 % of 1,010 are not


def test_shares_near_none_and_all_keep_their_digits() -> None:
    assert [whole_percent(share) for share in (0.404, 0.01, 0.99, 0.0, 1.0)] == ["40", "1", "99", "0", "100"]
    assert [whole_percent(share) for share in (0.9985, 0.0009, 0.995, 1.004)] == ["99.85", "0.09", "99.5", "100.4"]
    assert percent_span(0.018, 0.022) == "about 2 %" and percent_span(0.018, 0.031) == "2 to 3 %"


@pytest.mark.parametrize(
    ("rho", "span", "said"),
    [
        (0.9985, (0.9979, 0.999), "leaves 99.85 % of D ([99.79 %, 99.9 %] in other samples of this size), along"),
        (0.9985, (0.998499, 0.998501), "leaves 99.85 % of D (about the same in other samples of this size), along"),
        (0.0009, (0.0008, 0.001), "leaves 0.09 % of D ([0.08 %, 0.1 %] in other samples of this size), along"),
        (0.5, (0.48, 0.53), "leaves 50 % of D ([48 %, 53 %] in other samples of this size), along"),
    ],
)
def test_a_law_that_hardly_falls_or_falls_to_nothing(rho: float, span: tuple[float, float], said: str) -> None:
    curve = [45.0 * rho**step for step in range(4)]
    profile = network(curve=curve)
    law = replace(profile.law, intervals={"rho": Interval(*span, 0.95, "jackknife", 10)})
    assert said in text(replace(profile, law=law), "law")


def test_even_shares_of_many_layers() -> None:
    curve = [45.0 * 0.97**step for step in range(61)]
    deep = network(curve, test=curve, ncc_train=(1.0,) * 61, ncc_test=(0.8,) * 61, accuracy=(1.0, 0.8))
    assert "each layer does about 2 % (an even share: 2 %)" in text(deep, "work")
    blocks = [45 * 0.9985**step for step in range(5)]
    layers = [45.0, 100.0, 22.0, 90.0, 11.0, 60.0, 6.0, 30.0, 3.0]
    made = network(laws={"layers": fit_law(layers), "blocks": fit_law(blocks)})
    assert "every block leaves 99.85 % of D" in text(made, "law-by-block")


def test_a_fall_that_is_none_is_not_held_against_test_data() -> None:
    risen = (37.0, 40.0, 45.0, 50.0)
    gap: dict[str, Any] = {"accuracy": (1.0, 0.6), "ncc_test": (0.6,) * 4, "test": risen}
    for last, said in ((17.39, False), (16.6, False), (16.5, True)):
        made = network(curve=(17.4, 9.0, 9.0, last), **gap)
        assert ("memorizing" in codes(made)) == said
        made = network(curve=(17.4, 9.0, 9.0, last), test=risen, accuracy=(1.0, 0.85))
        assert ("test-gain" in codes(made)) == said


def test_curves_of_d_that_do_not_compare_are_not_compared() -> None:
    risen = (37.0, 40.0, 45.0, 50.0)
    made = network(accuracy=(1.0, 0.6), ncc_test=(0.6,) * 4, test=risen)
    assert "memorizing" in codes(made)
    assert not {"memorizing", "test-gain"} & set(codes(replace(made, notes=(MIX,))))
    declined = network(accuracy=(1.0, 0.6), ncc_test=(0.6, 0.7, 0.65, 0.6), test=risen, notes=(MIX,))
    words = text(declined, "memorizing")  # nearest class means are of test data alone
    assert "at layer 1 (70.0 %)" in words and "D falls" not in words
    assert "test-gain" not in codes(network(test=(37.0, 36.0, 35.0, 34.0), notes=(MIX,)))


def refused(profile: Profile, reason: str, **changes: Any) -> Profile:
    return with_sites(profile, corrected=Corrected(reason=reason, needed_per_class=900), **changes)


def test_too_few_samples_of_unequal_classes() -> None:
    made = refused(network(counts=(1000, 1000, 3)), "plain D stands at 112 % of its chance level")
    assert text(made, "too-few-samples").startswith("From 3 to 1,000 samples per class D cannot be told at 4 of 4")


def test_means_that_must_be_dependent_want_no_samples() -> None:
    reason = "class means are dependent, or classes have no spread"
    made = network(counts=(20,) * CLASSES)
    assert "too-few-samples" in codes(refused(made, reason, dim=9))
    assert "too-few-samples" not in codes(refused(made, reason, dim=8))  # nine directions of ten means
    assert "too-few-samples" in codes(refused(made, "plain D stands at 112 % of its chance level", dim=8))


def test_fewer_than_twenty_samples_have_no_intervals_and_say_so() -> None:
    asked: dict[str, Any] = {"settings": {"intervals": "auto", "intervals_by": None}}
    for each, said in ((4, True), (5, False)):  # 16 samples, and 20, of which intervals would have been made
        made = network(counts=(each,) * 4, ncc_test=None, **asked)
        assert ("too-few-samples" in codes(made)) == said
    first = network(counts=(2,) * 4, ncc_test=None, **asked).findings[0]
    assert first.confidence == "cannot be said"
    assert first.text.startswith(
        "From 8 training samples in 4 classes D cannot be told: fewer than 20 give no intervals"
    )
    for settings in (dict[str, Any](), {"intervals": "none"}, {"intervals": "bootstrap"}):
        assert "too-few-samples" not in codes(network(counts=(2,) * 4, ncc_test=None, settings=settings))


def test_one_of_a_thing_is_no_plural() -> None:
    profile = network(classes=(0.8,) * 10, nearest=(0.8,) * 10)
    short = replace(profile, sites=profile.sites[:1], law=LawFit(curve=(45.0,)))
    assert "a law (1 point; two always lie on a line)" in short.findings[-1].text
    alone = seen_on(profile, (1,) + (0,) * 9)
    assert "(1 test sample; from 100 on one point shows)" in alone.findings[-1].text
