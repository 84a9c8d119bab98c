"""Samples that are given instead of drawn: the same training where they agree, and a sentence where they cannot be used."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from equisep.data import draw, randomize_labels
from equisep.errors import EquisepError, InputError
from equisep.training import Ensemble, Watch, train_ensemble
from training.trained_alone import alone, clouds, member, mixed, same, worst


def given(seeds: tuple[int, ...], x: Tensor, y: Tensor, **drawing: Any) -> list[tuple[Tensor, Tensor]]:
    """What `train_ensemble` itself would draw for these data seeds."""
    rows = [torch.from_numpy(draw(y, seed=seed, classes=3, **drawing)) for seed in seeds]
    return [(own, y[own]) for own in rows]


def identical(one: Ensemble, two: Ensemble) -> bool:
    """Whether weights and readings agree to the bit."""
    for a, b in zip(one.readings, two.readings, strict=True):
        assert a.fuzziness is not None and b.fuzziness is not None and np.isfinite(a.fuzziness).all()
        if not np.array_equal(a.fuzziness, b.fuzziness):
            return False
    return all(same(one.weights(index), two.weights(index)) for index in range(len(one)))


@pytest.mark.parametrize("drawing", [{"per_class": 14}, {"sizes": (20, 14, 8)}])
def test_samples_given_as_they_would_be_drawn_train_the_same_networks(drawing: dict[str, Any]) -> None:
    x, y = clouds()
    members = [member(seed=seed, data_seed=seed) for seed in (0, 1, 7)]
    drawn = train_ensemble(members, x, y, dtype=torch.float64, **drawing)
    told = train_ensemble(members, x, y, dtype=torch.float64, samples=given((0, 1, 7), x, y, **drawing))
    assert identical(drawn, told)


def test_labels_are_those_given_and_not_the_pools() -> None:
    x, y = clouds()
    noisy = [randomize_labels(y, share=share, classes=3, seed=2) for share in (0.0, 0.5)]
    everything = torch.arange(len(y))
    told = train_ensemble(
        [member(seed=1, data_seed=2)] * 2, x, y, dtype=torch.float64, samples=[(everything, own) for own in noisy]
    )
    by_noise = train_ensemble(
        [member(seed=1, data_seed=2, label_noise=share) for share in (0.0, 0.5)], x, y, dtype=torch.float64
    )
    assert identical(told, by_noise)
    assert not same(told.weights(0), told.weights(1))


def test_every_member_is_trained_as_alone_on_its_own_samples() -> None:
    """Positions in any order, with gaps and even twice: what the plain loop sees of them."""
    x, y = clouds()
    chance = torch.Generator().manual_seed(3)
    rows = [torch.randint(len(y), (40,), generator=chance) for _ in range(5)]
    labels = [(y[own] + shift) % 3 for shift, own in enumerate(rows)]
    members = mixed()
    told = train_ensemble(members, x, y, dtype=torch.float64, samples=list(zip(rows, labels, strict=True)))
    for index, one in enumerate(members):
        network = alone(one, x[rows[index]], labels[index])
        assert worst(told.weights(index), network.state_dict()) < 1e-6
    assert told.loss.shape == (5, 3)


def test_sites_are_read_on_the_samples_given() -> None:
    x, y = clouds()
    rows = torch.arange(10, 40)
    part = train_ensemble([member()], x[rows], y[rows], dtype=torch.float64, watch=Watch(reading="eval"))
    told = train_ensemble([member()], x, y, dtype=torch.float64, samples=[(rows, y[rows])], watch=Watch(reading="eval"))
    assert identical(part, told)


def test_class_weights_go_with_samples() -> None:
    x, y = clouds()
    rows = torch.arange(40)
    weighted = [member(class_weights=weights) for weights in (None, (1.0, 1.0, 5.0))]
    told = train_ensemble(weighted, x, y, dtype=torch.float64, samples=[(rows, y[rows])] * 2)
    assert not same(told.weights(0), told.weights(1))
    plain = train_ensemble([member()], x[:40], y[:40], dtype=torch.float64)
    assert worst(told.weights(0), plain.weights(0)) < 1e-6


def test_other_samples_are_another_training_in_a_store(tmp_path: Any) -> None:
    x, y = clouds()
    first, second = torch.arange(40), torch.arange(20, 60)
    kept = [
        train_ensemble([member()], x, y, dtype=torch.float64, samples=[(rows, y[rows])], store=tmp_path)
        for rows in (first, second, first)
    ]
    assert identical(kept[0], kept[2]) and not identical(kept[0], kept[1])


@pytest.mark.parametrize(
    ("samples", "options", "sentence"),
    [
        ([], {}, "`samples` has 0 entries for 1 members. Give one for each."),
        ([([0, 1], [0, 1])] * 2, {}, "`samples` has 2 entries for 1 members."),
        (
            [([0, 1, 2], [0, 1])],
            {},
            "`samples` needs one label per position and at least one; found (1, 3) and (1, 2).",
        ),
        ([([], [])], {}, "`samples` needs one label per position and at least one; found (1, 0) and (1, 0)."),
        ([([0, 70], [0, 1])], {}, "`samples` holds positions 0 to 70 of a pool of 70."),
        ([([-1, 3], [0, 1])], {}, "`samples` holds positions -1 to 3 of a pool of 70."),
        ([([0, 1], [0, 3])], {}, "Labels must lie in 0 … 2 (the members have 3 classes)"),
        ([([0, 1], [0, 1])], {"per_class": 2}, "`samples` are given, so nothing is drawn. Leave out `per_class`"),
        ([([0, 1], [0, 1])], {"sizes": (1, 1, 0)}, "`samples` are given, so nothing is drawn."),
    ],
)
def test_samples_that_cannot_be_used_are_one_sentence(
    samples: list[tuple[list[int], list[int]]], options: dict[str, Any], sentence: str
) -> None:
    x, y = clouds()
    pairs = [
        (torch.tensor(rows, dtype=torch.int64), torch.tensor(labels, dtype=torch.int64)) for rows, labels in samples
    ]
    with pytest.raises(EquisepError, match=re.escape(sentence)):
        train_ensemble([member()], x, y, samples=pairs, **options)


def test_noise_on_given_labels_is_refused() -> None:
    x, y = clouds()
    with pytest.raises(InputError, match="Leave out `per_class`, `sizes` and label noise"):
        train_ensemble([member(label_noise=0.5)], x, y, samples=[(torch.arange(40), y[:40])])


def test_samples_of_unequal_length_are_refused() -> None:
    x, y = clouds()
    rows = [torch.arange(30), torch.arange(24)]
    with pytest.raises(InputError, match=re.escape("`samples` holds 24 to 30. Give equally many")):
        train_ensemble([member(), member(seed=1)], x, y, samples=[(own, y[own]) for own in rows])
