"""What stands between two classes, against the slow reference: who is taken for whom, merged and counted in any way."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from equisep.separation.pairs import confusion
from equisep.separation.pairs.confusion import Confusion
from reference import plain
from reference.merging import merged_in_any_order


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
