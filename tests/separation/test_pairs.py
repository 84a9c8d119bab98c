"""What stands between two classes, against the slow reference: who is taken for whom, distances and cosines of class means."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from equisep.results import ClassCosines
from equisep.separation.pairs import confusion
from equisep.separation.pairs.confusion import Confusion
from equisep.separation.pairs.means import cosines_of, nearest_pairs
from reference import plain
from reference.merging import directional_cdnv, merged_in_any_order, spread_of
from reference.scenes import Scene, around, blobs, simplex_etf


def drawn(seed: int, *, n: int, classes: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(classes, (n,), generator=generator)
    return labels, (labels + torch.randint(4, (n,), generator=generator)) % classes


def counted(labels: torch.Tensor, guesses: torch.Tensor, *, classes: int, size: int) -> Confusion:
    state = Confusion(classes)
    for own, guess in zip(labels.split(size), guesses.split(size), strict=True):
        state.add(own, guess)
    return state


@pytest.mark.parametrize("classes", [2, 30, 700])
def test_confusions_are_counted_and_merged_alike_as_a_table_and_by_pairs(
    classes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    labels, guesses = drawn(classes, n=3000, classes=classes)
    wanted = plain.confused(labels.numpy(), guesses.numpy())
    hits = np.bincount(labels[labels == guesses].numpy(), minlength=classes)
    monkeypatch.setattr(confusion, "WAITING", 1000)
    for dense in (0, 10**6):
        monkeypatch.setattr(confusion, "DENSE_CLASSES", dense)
        whole = counted(labels, guesses, classes=classes, size=700)
        parts = [
            counted(own, guess, classes=classes, size=100)
            for own, guess in zip(labels.split(450), guesses.split(450), strict=True)
        ]
        for state in (whole, merged_in_any_order(parts, np.random.default_rng(0))):
            assert [(pair.first, pair.second, pair.value) for pair in state.most_confused()] == wanted
            assert state.hits.tolist() == hits.tolist()


def test_nothing_confused_is_an_empty_tuple() -> None:
    labels = torch.arange(6) % 3
    assert counted(labels, labels, classes=3, size=2).most_confused() == ()
    assert Confusion(3).merge(Confusion(3)).hits.tolist() == [0, 0, 0]


# 600 classes are three tiles, in fewer dimensions than classes
@pytest.mark.parametrize(("classes", "d"), [(2, 5), (4, 3), (30, 40), (600, 12)])
def test_nearest_pairs_are_those_of_the_plain_reference(classes: int, d: int) -> None:
    scene = blobs(classes, [3] * classes, d, offset=100.0)
    found = nearest_pairs(spread_of(scene).subspace)
    wanted = plain.nearest_pairs(*scene)
    assert [(pair.first, pair.second) for pair in found] == [pair[:2] for pair in wanted]
    assert [pair.value for pair in found] == pytest.approx([pair[2] for pair in wanted], rel=1e-9)


@pytest.mark.parametrize(("classes", "d"), [(2, 5), (4, 3), (30, 40), (100, 20)])
def test_cosines_of_all_pairs(classes: int, d: int) -> None:
    scene = blobs(classes, [3] * classes, d, offset=100.0)
    found, wanted = cosines_of(spread_of(scene).subspace), plain.class_cosines(*scene)
    assert found.least == found.greatest == ()
    assert found.mean == pytest.approx(np.mean(list(wanted.values())), rel=1e-9)
    assert {(i, j): found.between(j, i) for i, j in wanted} == pytest.approx(wanted, rel=1e-9, abs=1e-12)
    assert [len(row) for row in found.rows] == list(range(1, classes))
    assert found.between(1, 1) is None


def test_of_many_classes_the_extreme_cosines() -> None:
    scene = blobs(5, [3] * 600, 12)
    found, wanted = cosines_of(spread_of(scene).subspace), plain.class_cosines(*scene)
    ordered = sorted(wanted.items(), key=lambda item: item[1])
    assert found.rows is None and found.between(0, 1) is None
    assert found.mean == pytest.approx(np.mean(list(wanted.values())), rel=1e-9)
    for pairs, expected in ((found.least, ordered[:20]), (found.greatest, ordered[:-21:-1])):
        assert [((pair.first, pair.second), pytest.approx(pair.value, rel=1e-9)) for pair in pairs] == expected


def test_a_class_without_samples_stands_in_no_pair() -> None:
    scene = blobs(3, [4, 4, 4, 4], 6)
    other = Scene(scene.x, np.array([0, 1, 3, 5])[scene.y])
    space = spread_of(other, classes=7).subspace
    assert {k for pair in nearest_pairs(space) for k in (pair.first, pair.second)} == {0, 1, 3, 5}
    wanted, found = plain.class_cosines(*other), cosines_of(space)
    assert [len(row) for row in found.rows] == [1, 2, 3, 4, 5, 6]
    for i in range(7):
        for j in range(i):
            assert found.between(i, j) == (pytest.approx(wanted[j, i], rel=1e-9) if (j, i) in wanted else None)


def test_cosines_of_a_simplex_and_of_means_that_coincide() -> None:
    rng = np.random.default_rng(0)
    etf = around(simplex_etf(5, 8, scale=3.0, rng=rng), [6] * 5, spread=1e-9, seed=1)
    found = cosines_of(spread_of(etf).subspace)
    assert [value for row in found.rows for value in row] == pytest.approx([-0.25] * 10, abs=1e-6)
    one = Scene(np.tile(rng.normal(size=4), (6, 1)), np.arange(6) % 3)
    assert cosines_of(spread_of(one).subspace) is None
    assert [pair.value for pair in nearest_pairs(spread_of(one).subspace)] == [0.0] * 3
    middle = Scene(np.array([[-1.0, 0], [1, 0], [0, 0]]), np.arange(3))  # the third mean is the common one
    assert cosines_of(spread_of(middle).subspace) == ClassCosines(mean=-1.0, rows=((-1.0,), (None, None)))


@pytest.mark.parametrize(("classes", "d"), [(2, 1), (2, 7), (6, 3), (12, 30), (300, 5)])
def test_directional_cdnv_is_that_of_the_plain_reference(classes: int, d: int) -> None:
    scene = blobs(classes, [2 + k % 5 for k in range(classes)], d, offset=50.0)
    wanted = plain.cdnv_directional(*scene)
    for size in (10**6, 17):
        assert directional_cdnv(scene, size=size) == pytest.approx(wanted, rel=1e-9)
    assert wanted == pytest.approx(plain.cdnv(*scene), rel=1e-9) if d == 1 else wanted < plain.cdnv(*scene)


def test_directional_cdnv_of_absent_classes_of_collapsed_ones_and_of_means_that_coincide() -> None:
    scene = blobs(3, [4, 4, 4], 6)
    other = Scene(scene.x, np.array([0, 3, 5])[scene.y])
    assert directional_cdnv(other, classes=9) == pytest.approx(plain.cdnv_directional(*scene), rel=1e-9)
    points = np.random.default_rng(0).normal(size=(3, 4))
    assert directional_cdnv(Scene(np.repeat(points, 5, axis=0), np.repeat(np.arange(3), 5))) == 0.0
    assert directional_cdnv(Scene(np.tile(points, (2, 1)), np.repeat(np.arange(2), 3))) is None


def test_variance_away_from_the_line_between_means_does_not_count() -> None:
    rng = np.random.default_rng(1)
    y = np.arange(400) % 2
    x = np.stack([np.where(y == 0, -5.0, 5.0), 100 * rng.normal(size=400)], axis=1)
    x[:, 1] -= np.array([x[y == k, 1].mean() for k in (0, 1)])[y]
    assert directional_cdnv(Scene(x, y)) == pytest.approx(0, abs=1e-25) and plain.cdnv(x, y) > 10
