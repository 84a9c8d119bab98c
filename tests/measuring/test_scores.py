"""Sums of class scores: the same whatever the batches and the merging, and those of the plain reference."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from equisep.measuring import scores as scores_module
from equisep.measuring.scores import ScoreSums
from reference import plain
from reference.merging import merged_in_any_order


def summed(scores: torch.Tensor, labels: torch.Tensor, *, size: int) -> ScoreSums:
    sums = ScoreSums(scores.shape[1], margins=True, confusion=True)
    for part, own in zip(scores.split(size), labels.split(size), strict=True):
        sums.add(part, own)
    return sums


@pytest.mark.parametrize(("classes", "together"), [(2, 1024), (7, 50), (600, 64)])
def test_sums_are_those_of_the_samples_in_any_batches(
    classes: int, together: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scores_module, "TOGETHER", together)
    generator = torch.Generator().manual_seed(classes)
    scores = torch.randn(900, classes, generator=generator)
    labels = torch.arange(900) % classes
    guesses = scores.argmax(dim=1)
    parts = [
        summed(a, b, size=7)
        for a, b in zip(scores.split([0, 100, 799, 1]), labels.split([0, 100, 799, 1]), strict=True)
    ]
    for sums in (
        summed(scores, labels, size=1000),
        summed(scores, labels, size=13),
        merged_in_any_order(parts, np.random.default_rng(0)),
    ):
        assert sums.counts.tolist() == np.bincount(labels, minlength=classes).tolist()
        assert sums.hits.tolist() == np.bincount(labels[guesses == labels], minlength=classes).tolist()
        assert sums.mean_margins == pytest.approx(plain.margins(scores.double().numpy(), labels.numpy()), rel=1e-12)
        found = [(pair.first, pair.second, pair.value) for pair in sums.confusion.most_confused()]
        assert found == plain.confused(labels.numpy(), guesses.numpy())


def test_a_model_may_write_its_next_scores_where_the_last_ones_are() -> None:
    buffer, labels, sums = torch.zeros(2, 3), torch.tensor([0, 1]), ScoreSums(3, margins=True)
    for values in ([[2.0, 1, 0], [0, 5, 1]], [[4.0, 1, 0], [9, 5, 1]]):
        buffer.copy_(torch.tensor(values))
        sums.add(buffer, labels)
    assert sums.mean_margins == (2.0, 0.0, None)
    assert sums.hits.tolist() == [2, 1, 0] and sums.confusion is None


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.int64])
def test_scores_of_any_type(dtype: torch.dtype) -> None:
    scores = torch.tensor([[3, 1, 0], [1, 2, 4]], dtype=dtype)
    sums = summed(scores, torch.tensor([0, 1]), size=1)
    assert sums.mean_margins == (2.0, -2.0, None)
    assert scores.tolist() == [[3, 1, 0], [1, 2, 4]]


def test_a_sample_without_scores_is_not_classified_right() -> None:
    """`argmax` would take NaN for the largest, and half of this class for right."""
    scores = torch.tensor([[torch.nan, 0, 1], [torch.nan] * 3, [2, 1, 0], [0, torch.nan, 3]])
    sums = summed(scores, torch.tensor([0, 0, 0, 2]), size=2)
    assert sums.hits.tolist() == [1, 0, 0] and sums.counts.tolist() == [3, 0, 1]
    assert sums.confusion is not None and sums.confusion.most_confused() == ()
