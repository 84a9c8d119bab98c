"""Batches: one fixed order, every sample once, no batch of one; and a split turned into tensors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from equisep.data import Batches, Preparation, draw, load_data, prepare, prepare_split
from equisep.errors import DataError, InputError, LabelError


def labelled(n: int) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.arange(n, dtype=torch.float32)[:, None], torch.arange(n) % 3


@given(st.integers(1, 60), st.integers(1, 25), st.integers(0, 99), st.sampled_from(["mixed", "given"]))
@settings(max_examples=80, deadline=None)
def test_every_sample_once_with_its_label(n: int, batch_size: int, seed: int, order: str) -> None:
    x, y = labelled(n)
    batches = Batches(x, y, batch_size=batch_size, seed=seed, order=order)
    seen = list(batches)
    assert len(seen) == len(batches)
    positions = torch.cat([part[:, 0] for part, _ in seen]).long()
    assert sorted(positions.tolist()) == list(range(n))
    assert torch.equal(torch.cat([part for _, part in seen]), positions % 3)
    sizes = [len(part) for part, _ in seen]
    assert all(size == batch_size for size in sizes[:-1])
    assert sizes[-1] <= batch_size + 1
    assert n == 1 or batch_size == 1 or min(sizes) > 1
    if order == "given":
        assert positions.tolist() == list(range(n))


def test_the_same_order_at_every_iteration_and_by_seed() -> None:
    x, y = labelled(300)
    batches = Batches(x, y)
    first, second = (torch.cat([part for part, _ in batches]) for _ in range(2))
    assert torch.equal(first, second)
    assert torch.equal(first, torch.cat([part for part, _ in Batches(x, y, seed=0)]))
    assert not torch.equal(first, torch.cat([part for part, _ in Batches(x, y, seed=1)]))
    assert (batches.batch_size, batches.seed, batches.order, len(batches)) == (100, 0, "mixed", 3)
    assert batches.x is x
    assert torch.equal(batches.y, y)
    assert repr(batches) == "Batches(300 samples, batch_size=100, seed=0, order='mixed')"


def test_a_subset_keeps_names_batches_and_the_order_drawn_among_its_samples() -> None:
    x, y = labelled(6)
    batches = Batches(
        x, y, batch_size=2, seed=5, order="given", class_names="abc", drawn=torch.tensor([5, 0, 3, 1, 4, 2])
    )
    part = batches.subset(torch.tensor([0, 2, 4, 5]))
    assert torch.cat([rows for rows, _ in part]).flatten().tolist() == [0, 2, 4, 5]
    assert torch.cat([rows for rows, _ in part.in_drawn_order()]).flatten().tolist() == [5, 0, 4, 2]
    assert torch.equal(part.y, part.x.flatten().long() % 3)
    assert (part.batch_size, part.seed, part.order, part.class_names) == (2, 5, "given", ("a", "b", "c"))
    undrawn = Batches(x, y).subset(torch.tensor([1, 3]))
    assert torch.equal(undrawn.in_drawn_order().x, x[[1, 3]])
    soft = Batches(x, torch.eye(3)[y].long())
    assert soft.subset(torch.tensor([0])).notes == soft.notes != ()


def test_classes_are_mixed() -> None:
    y = torch.arange(10).repeat_interleave(100)
    assert all(len(part.unique()) == 10 for _, part in Batches(torch.zeros(1000, 1), y))


def test_a_last_single_sample_joins_the_batch_before() -> None:
    assert [len(part) for part, _ in Batches(*labelled(201))] == [100, 101]
    assert [len(part) for part, _ in Batches(*labelled(202))] == [100, 100, 2]
    assert [len(part) for part, _ in Batches(*labelled(1))] == [1]
    assert len(Batches(*labelled(5), batch_size=1)) == 5


def test_arrays_work_too() -> None:
    (x, y), *_ = Batches(np.zeros((4, 2), np.float32), np.array([0, 1, 2, 3], np.uint8))
    assert (x.dtype, y.dtype) == (torch.float32, torch.int64)


def test_batches_that_cannot_be() -> None:
    x, y = labelled(4)
    with pytest.raises(InputError, match="4 samples and 3 labels"):
        Batches(x, y[:3])
    with pytest.raises(InputError, match="no samples"):
        Batches(x[:0], y[:0])
    with pytest.raises(InputError, match="`batch_size` was 0"):
        Batches(x, y, batch_size=0)
    with pytest.raises(InputError, match="`order` was 'random'"):
        Batches(x, y, order="random")
    with pytest.raises(LabelError, match="Class labels are integers; found float32"):
        Batches(x, y.float())


def test_a_split_is_drawn_then_prepared() -> None:
    data = load_data("embedded-28x28")
    how = Preparation(resize=14, normalize=(0.286, 0.353))
    x, y = prepare_split(data, how, per_class=20, seed=3, split="test")
    chosen = draw(data.y_test, per_class=20, seed=3)
    assert torch.equal(x, prepare(data.x_test[chosen], how))
    assert torch.equal(y, torch.from_numpy(data.y_test[chosen]))
    _, y = prepare_split(data, per_class=20, classes=[5, 6])
    assert y.bincount(minlength=10).tolist() == [0] * 5 + [20] * 2 + [0] * 3
    with pytest.raises(InputError, match="151 samples of class 0; there are 150"):
        prepare_split(data, per_class=151)


def test_labels_of_a_split_do_not_share_memory() -> None:
    data = load_data("embedded-28x28")
    before = data.y_train.copy()
    prepare_split(data)[1].fill_(0)
    np.testing.assert_array_equal(data.y_train, before)


def test_an_empty_split(tmp_path: Path) -> None:
    x, y = np.zeros((2, 3), np.float32), np.array([0, 1])
    np.savez(tmp_path / "d.npz", x_train=x, y_train=y, x_test=x[:0], y_test=y[:0])
    with pytest.raises(DataError, match="The test split of `d` holds no samples"):
        prepare_split(load_data(tmp_path / "d.npz"), split="test")
