"""A second sample shown to a network: its answers, and the labels under which it separates both, against plain computations."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from equisep.models import Fnn
from equisep.runs.runners.second_sample import relabeled_numbers, second_numbers
from equisep.separation.probes import own_labels

CLASSES = 3


def clouds(each: int, *, apart: float, seed: int) -> tuple[Tensor, Tensor]:
    chance = torch.Generator().manual_seed(seed)
    y = torch.arange(CLASSES).repeat_interleave(each)
    x = torch.randn(len(y), 4, generator=chance, dtype=torch.float64)
    x[torch.arange(len(y)), y] += apart
    return x, y


def nearest(rows: np.ndarray, centers: np.ndarray) -> np.ndarray:
    return ((rows[:, None, :] - centers[None]) ** 2).sum(axis=2).argmin(axis=1)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 1000), apart=st.floats(0.5, 6))
def test_own_labels_are_a_fixed_point_of_nearest_centers(seed: int, apart: float) -> None:
    (x, y), (unseen, _) = clouds(12, apart=apart, seed=seed), clouds(9, apart=apart, seed=seed + 1)
    own = own_labels(x, y, unseen, classes=CLASSES)
    rows, labels = torch.cat([x, unseen]).numpy(), torch.cat([y, own.labels]).numpy()
    centers = np.stack([rows[labels == k].mean(axis=0) for k in range(CLASSES)])
    again = nearest(rows, centers)
    assert (again[len(y) :] == own.labels.numpy()).all()
    assert own.separated == pytest.approx((again == labels).mean())


def test_a_network_that_separates_the_first_sample_gives_the_second_labels_of_its_own() -> None:
    torch.manual_seed(0)
    network = Fnn(3, width=8, inputs=4, classes=CLASSES, norm=False).double()
    with torch.no_grad():  # layers that pass on what they read
        for block in network.blocks:
            linear = next(part for part in block.modules() if isinstance(part, torch.nn.Linear))
            linear.weight.zero_()
            linear.weight[:4, : min(4, linear.in_features)] = torch.eye(4, dtype=torch.float64)[:, : linear.in_features]
            linear.bias.zero_()
    first, second = clouds(20, apart=30, seed=1), clouds(20, apart=30, seed=2)
    found = second_numbers(network, first, second, classes=CLASSES)
    assert (found["own_depth"], found["own_separated"], found["own_error"], found["own_balance"]) == (1, 1, 0, 0)
    answers = network(second[0]).argmax(dim=1)
    assert found["second_error"] == pytest.approx(float((answers != second[1]).double().mean()))
    mixed = clouds(20, apart=0, seed=3)
    assert second_numbers(network, mixed, second, classes=CLASSES)["own_depth"] is None


def test_relabeled_samples_say_how_many_labels_differ() -> None:
    found = relabeled_numbers(torch.tensor([0, 0, 1, 2]), torch.tensor([0, 1, 1, 2]), classes=3)
    assert found == {"relabeled": 0.25, "relabeled_balance": pytest.approx(1 / 6 + 2 / 12)}
