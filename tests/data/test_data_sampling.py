"""Sampling: balanced and imbalanced draws, random labels; properties over many seeds and sizes."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from equisep.data import draw, randomize_labels
from equisep.data.sampling import order_among
from equisep.errors import InputError, LabelError

seeds = st.integers(0, 2**32)
label_lists = st.lists(st.integers(0, 4), min_size=1, max_size=60).map(np.array)


def balanced(classes: int = 10, per_class: int = 20) -> np.ndarray:
    return np.random.default_rng(0).permutation(np.repeat(np.arange(classes), per_class))


@given(label_lists, seeds, st.data())
@settings(max_examples=60, deadline=None)
def test_a_draw_has_the_sizes_asked_for_without_repeats(labels: np.ndarray, seed: int, data: st.DataObject) -> None:
    counts = np.bincount(labels)
    sizes = [data.draw(st.integers(0, int(count))) for count in counts]
    chosen = draw(labels, sizes=sizes, seed=seed)
    assert len(set(chosen.tolist())) == len(chosen)
    assert np.bincount(labels[chosen], minlength=len(counts)).tolist() == sizes
    assert (np.diff(chosen) > 0).all()
    np.testing.assert_array_equal(chosen, draw(labels, sizes=sizes, seed=seed))


@given(st.integers(0, 20), st.integers(0, 20), seeds)
@settings(max_examples=40, deadline=None)
def test_draws_are_nested(a: int, b: int, seed: int) -> None:
    labels = balanced()
    small, large = (set(draw(labels, per_class=size, seed=seed).tolist()) for size in sorted((a, b)))
    assert small <= large


@given(seeds, st.integers(0, 9))
@settings(max_examples=40, deadline=None)
def test_what_is_drawn_of_a_class_depends_on_no_other_class(seed: int, k: int) -> None:
    labels = balanced()
    alone = draw(labels, per_class=7, seed=seed, classes=[k])
    together = draw(labels, per_class=7, seed=seed)
    np.testing.assert_array_equal(alone, together[labels[together] == k])


def test_seeds_differ_and_classes_are_not_aligned() -> None:
    labels = balanced()
    assert not np.array_equal(draw(labels, per_class=5, seed=0), draw(labels, per_class=5, seed=1))
    ordered = np.repeat(np.arange(10), 20)
    within = (draw(ordered, per_class=5) % 20).reshape(10, 5)
    assert len({tuple(row) for row in within.tolist()}) > 5


def test_the_stream_is_the_same_on_every_machine() -> None:
    assert draw(np.repeat([0, 1], 8), per_class=3, seed=0).tolist() == [0, 2, 7, 8, 11, 12]
    fresh = randomize_labels(np.zeros(12, dtype=int), share=1.0, classes=10, seed=0)
    assert fresh.tolist() == [8, 8, 7, 0, 3, 6, 3, 4, 1, 4, 3, 7]


def test_every_sample_is_equally_likely() -> None:
    labels = np.zeros(10, dtype=int)
    hits = np.bincount(np.concatenate([draw(labels, per_class=3, seed=s) for s in range(2000)]), minlength=10)
    assert np.abs(hits - 600).max() < 5 * np.sqrt(2000 * 0.3 * 0.7)


def test_imbalanced_all_and_chosen_classes() -> None:
    labels = balanced()
    sizes = [15] * 5 + [3] * 5
    assert np.bincount(labels[draw(labels, sizes=sizes)]).tolist() == sizes
    np.testing.assert_array_equal(draw(labels), np.arange(len(labels)))
    assert set(labels[draw(labels, classes=[5, 6], per_class=4)].tolist()) == {5, 6}
    assert set(labels[draw(labels, classes=3)].tolist()) == {0, 1, 2}
    assert np.bincount(labels[draw(labels, classes=[7, 2], sizes=[1, 2])])[[2, 7]].tolist() == [2, 1]
    np.testing.assert_array_equal(draw(torch.from_numpy(labels), per_class=4), draw(labels, per_class=4))


def test_too_few_samples_of_a_class() -> None:
    labels = np.array([0] * 5 + [1] * 3)
    with pytest.raises(InputError, match=r"asked for 4 samples of class 1; there are 3\. Ask for at most 3"):
        draw(labels, per_class=4)
    with pytest.raises(InputError, match="1 samples of class 2; there are 0"):
        draw(labels, per_class=1, classes=3)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"per_class": 1, "sizes": [1, 1]}, "both `per_class` and `sizes`"),
        ({"sizes": [1]}, "`sizes` has 1 numbers for 2 classes"),
        ({"per_class": -1}, "asked for -1 samples of class 0"),
        ({"seed": -1}, "`seed` was -1"),
        ({"seed": True}, "`seed` was True"),
        ({"classes": [0, 0]}, "different class numbers"),
        ({"classes": [0.5, 1]}, r"`classes` was \[0\.5, 1\]; give different class numbers"),
        ({"classes": -1}, r"`classes` was -1; give different class numbers"),
        ({"classes": True}, r"`classes` was True; give different class numbers"),
        ({"classes": 1.5}, r"`classes` was 1\.5; give"),
        ({"classes": "01"}, "`classes` was '01'; give"),
        ({"per_class": 1.5}, r"`draw` was asked for 1\.5 samples of class 0\. Ask for a whole number, 0 or more\."),
        ({"per_class": True}, "asked for True samples of class 0"),
        ({"per_class": "1"}, "asked for '1' samples of class 0"),
        ({"sizes": [1, 1.5]}, r"asked for 1\.5 samples of class 1"),
        ({"sizes": 1}, r"`sizes` lists a whole number for each class; found 1\."),
        ({"sizes": {0: 1, 1: 2}}, r"`sizes` lists a whole number for each class; found \{0: 1, 1: 2\}\."),
    ],
)
@pytest.mark.usefixtures("as_users_run_it")
def test_draws_that_cannot_be(options: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        draw(np.array([0, 0, 1, 1]), **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ([0.5, 1.0], "Class labels are integers; found float"),
        ([0, -1], "found 1 negative ones, the least -1"),
        ([[0, 1], [1, 1]], "neither class indices nor one-hot rows"),
    ],
)
def test_labels_that_are_none(labels: list[object], words: str) -> None:
    with pytest.raises(LabelError, match=words):
        draw(labels)


@given(st.floats(0, 1), seeds, st.integers(1, 12))
@settings(max_examples=60, deadline=None)
def test_random_labels_stay_in_range_and_touch_only_the_share(share: float, seed: int, classes: int) -> None:
    labels = np.arange(100) % classes
    noisy = randomize_labels(labels, share=share, classes=classes, seed=seed)
    assert noisy.dtype == np.int64
    assert 0 <= noisy.min() <= noisy.max() < classes
    assert (noisy != labels).sum() <= round(100 * share)
    np.testing.assert_array_equal(noisy, randomize_labels(labels, share=share, classes=classes, seed=seed))
    np.testing.assert_array_equal(labels, np.arange(100) % classes)


@given(seeds, st.floats(0, 1), st.floats(0, 1))
@settings(max_examples=40, deadline=None)
def test_a_larger_share_keeps_the_smaller_ones_changes(seed: int, a: float, b: float) -> None:
    labels = np.arange(200) % 10
    low, high = (randomize_labels(labels, share=s, classes=10, seed=seed) for s in sorted((a, b)))
    changed = low != labels
    np.testing.assert_array_equal(high[changed], low[changed])


@pytest.mark.parametrize("share", [0.0, 0.25, 0.5, 0.75, 1.0])
def test_the_share_that_differs(share: float) -> None:
    n, classes = 20000, 10
    noisy = randomize_labels(np.arange(n) % classes, share=share, classes=classes)
    expected = share * (1 - 1 / classes)
    assert abs((noisy != np.arange(n) % classes).mean() - expected) < 5 * np.sqrt(0.25 / n) + 1e-12
    if share == 1.0:
        assert np.abs(np.bincount(noisy, minlength=classes) - n / classes).max() < 5 * np.sqrt(n / classes)


def test_tensors_come_back_as_tensors() -> None:
    labels = torch.arange(50) % 5
    noisy = randomize_labels(labels, share=0.5, classes=5)
    assert isinstance(noisy, torch.Tensor)
    assert noisy.dtype == torch.int64
    assert noisy.tolist() == randomize_labels(labels.numpy(), share=0.5, classes=5).tolist()
    assert labels.tolist() == (torch.arange(50) % 5).tolist()


def test_random_labels_that_cannot_be() -> None:
    with pytest.raises(InputError, match=r"`share` was 1\.5"):
        randomize_labels([0, 1], share=1.5, classes=2)
    with pytest.raises(LabelError, match="asked for 2 classes; the highest label is 4"):
        randomize_labels([0, 4], share=0.5, classes=2)


def walked(sizes: list[int], pool: int | list[int] | None, seed: int, held: int = 600) -> np.ndarray:
    """The labels of a walk, in the order read."""
    labels = np.repeat(np.arange(len(sizes)), held)
    return labels[draw(labels, sizes=sizes, seed=seed, order="walk", pool_per_class=pool)]


@given(label_lists, seeds, st.data())
@settings(max_examples=40, deadline=None)
def test_a_walk_draws_the_same_samples_in_another_order(labels: np.ndarray, seed: int, data: st.DataObject) -> None:
    sizes = [data.draw(st.integers(0, int(count))) for count in np.bincount(labels)]
    walk = draw(labels, sizes=sizes, seed=seed, order="walk")
    ascending = draw(labels, sizes=sizes, seed=seed)
    np.testing.assert_array_equal(np.sort(walk), ascending)
    np.testing.assert_array_equal(ascending[order_among(walk)], walk)
    np.testing.assert_array_equal(walk, draw(labels, sizes=sizes, seed=seed, order="walk"))


def test_a_walk_is_what_a_loop_over_the_shuffled_pool_keeps() -> None:
    """The distribution of the labels read, position by position, against the loop of the authors' program."""
    rng, sizes, pool, runs = np.random.default_rng(0), [3, 1, 2], [5, 4, 3], 1500
    ours, theirs = np.zeros((6, 3)), np.zeros((6, 3))
    for seed in range(runs):
        ours[np.arange(6), walked(sizes, pool, seed, held=3)] += 1
        room, kept = list(sizes), []
        for k in rng.permutation(np.repeat(np.arange(3), pool)):
            if room[k]:
                room[k] -= 1
                kept.append(k)
        theirs[np.arange(6), kept] += 1
    worst = np.abs(ours - theirs).max() / runs
    assert worst < 5 * np.sqrt(2 * 0.25 / runs)  # five deviations of the difference of two shares


def test_classes_run_out_at_the_end_of_a_walk_as_in_the_authors_sets() -> None:
    """10 × 100 of 6,000 each: of the last batch of 100 two classes have 2 or fewer on average, the largest about 23."""
    last = np.array([np.bincount(walked([100] * 10, 6000, seed)[-100:], minlength=10) for seed in range(60)])
    few, largest = (last <= 2).sum(axis=1), last.max(axis=1)
    for values, expected in ((few, 2.0), (largest, 23.0)):
        error = values.std(ddof=1) / np.sqrt(len(values))
        assert abs(values.mean() - expected) < 4 * error + 0.5  # the page prints whole numbers


def test_small_classes_are_in_a_third_of_the_batches_only() -> None:
    """5 × 500 + 5 × 100: 63 % of all batches of 100 hold none of the five small classes."""
    shares = [
        np.mean([(part < 5).all() for part in walked([500] * 5 + [100] * 5, 6000, seed).reshape(-1, 100)])
        for seed in range(40)
    ]
    assert abs(np.mean(shares) - 0.63) < 4 * np.std(shares, ddof=1) / np.sqrt(len(shares)) + 0.005


def test_the_run_out_of_a_part_is_that_of_the_full_pool_which_it_is_told_of() -> None:
    """A walk that keeps 500 of 600 per class ends as one that keeps 5,000 of 6,000; of 6,000 the same 500 run out sooner."""

    def largest_at_the_end(pool: int | None) -> float:
        ends = [walked([500] * 10, pool, seed)[-100:] for seed in range(20)]
        return float(np.mean([np.bincount(end, minlength=10).max() for end in ends]))

    assert 20 < largest_at_the_end(None) < 28 < 32 < largest_at_the_end(6000) < 40


def test_the_walk_is_the_same_on_every_machine() -> None:
    labels = np.repeat([0, 1], 8)
    assert draw(labels, per_class=3, seed=0, order="walk").tolist() == [7, 11, 12, 8, 2, 0]


def test_walks_that_cannot_be() -> None:
    labels = np.repeat([0, 1], 8)
    with pytest.raises(InputError, match=r"`order` was 'wolk'\. Did you mean `walk`\? Known: position, walk\."):
        draw(labels, per_class=3, order="wolk")
    with pytest.raises(InputError, match="the pool holds 2 samples of class 0; 3 are drawn"):
        draw(labels, per_class=3, order="walk", pool_per_class=2)
    with pytest.raises(InputError, match="3 numbers for 2 classes"):
        draw(labels, per_class=3, order="walk", pool_per_class=[8, 8, 8])
    with pytest.raises(InputError, match="Give it with `order='walk'`"):
        draw(labels, per_class=3, pool_per_class=8)


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("pool", "sentence"),
    [
        (
            8.5,
            r"the pool holds 8\.5 samples of class 0; 3 are drawn\. It is the size of the whole set .* a whole number\.",
        ),
        ([8, 8.5], r"the pool holds 8\.5 samples of class 1"),
        ("88", r"`pool_per_class` lists a whole number for each class; found '88'\."),
    ],
)
def test_pools_that_are_no_whole_numbers(pool: object, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        draw(np.repeat([0, 1], 8), per_class=3, order="walk", pool_per_class=pool)  # type: ignore[arg-type]


@pytest.mark.usefixtures("as_users_run_it")
def test_numbers_of_numpy_and_torch_are_taken_as_python_s_own() -> None:
    labels = np.repeat([0, 1], 8)
    sizes, every = np.array([3, 3]), np.int64(2)
    plain = draw(labels, per_class=3, classes=2, order="walk", pool_per_class=10)
    for alike in ({"sizes": sizes}, {"sizes": torch.from_numpy(sizes)}, {"per_class": np.int64(3)}):
        options = {"classes": every, "pool_per_class": np.array([10, 10]), **alike}
        np.testing.assert_array_equal(draw(labels, order="walk", **options), plain)  # type: ignore[call-overload]
