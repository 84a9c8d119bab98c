"""The subset: as many of each class, the same at every reading and after a restart, from whatever the data are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, IterableDataset, Subset, SubsetRandomSampler, TensorDataset
from tracked import CLASSES, loader, network, samples

from equisep import Tracker
from equisep.data import Batches
from equisep.errors import DataError, LabelError
from equisep.tracking.subset import samples_per_class

X, Y = samples()


class Plain(Dataset[tuple[Tensor, int]]):
    """A data set that tells its labels only sample by sample; `told` are those that it says it has."""

    def __init__(self, told: Any = None, transform: Any = None) -> None:
        self.fetched: list[int] = []
        self.transform = transform
        if told is not None:
            self.targets = told

    def __len__(self) -> int:
        return len(Y)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        self.fetched.append(index)
        label = int(Y[index])
        return X[index], label if self.transform is None else self.transform(label)


class Rows(IterableDataset[tuple[Tensor, Tensor]]):
    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        yield from zip(X, Y, strict=True)


class Loop:
    """Batches of some other library's loader."""

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        yield from zip(X.split(7), Y.split(7), strict=True)


KINDS: dict[str, Any] = {
    "pair": lambda: (X, Y),
    "arrays": lambda: (X.numpy(), Y.numpy()),
    "batches": lambda: Batches(X, Y),
    "tensors": lambda: TensorDataset(X, Y),
    "loader": lambda: loader(),
    "data set": lambda: Plain(),
    "targets": lambda: Plain(Y.tolist()),
    "loader of a part": lambda: loader(Subset(Plain(Y), range(100))),
    "sampler": lambda: loader(Plain(), shuffle=None, sampler=SubsetRandomSampler(range(100))),
    "stream": lambda: DataLoader(Rows(), batch_size=9),
    "batches of its own": lambda: DataLoader(TensorDataset(X.view(12, 10, -1), Y.view(12, 10)), batch_size=None),
    "other loader": lambda: Loop(),
    "list": lambda: list(Loop()),
}


def model() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, CLASSES))


@pytest.mark.parametrize("kind", KINDS)
def test_as_many_of_each_class_and_the_same_again(kind: str) -> None:
    tracker = Tracker(model(), KINDS[kind](), per_class=8)
    assert tracker.subset.counts == (8,) * CLASSES
    again = Tracker(model(), KINDS[kind](), per_class=8)
    assert again.subset.fingerprint == tracker.subset.fingerprint
    other = Tracker(model(), KINDS[kind](), per_class=8, seed=1)
    streamed = kind in ("stream", "batches of its own", "other loader", "list")
    assert (other.subset.fingerprint == tracker.subset.fingerprint) == streamed
    pieces = list(tracker.subset.on(torch.device("cpu")))
    x, y = torch.cat([x for x, _ in pieces]), torch.cat([y for _, y in pieces])
    assert all(
        any(torch.equal(row, one) and int(label) == int(k) for one, k in zip(X, Y, strict=True))
        for row, label in zip(x, y, strict=True)
    )


def test_pairs_loaders_and_data_sets_of_the_same_samples_draw_the_same() -> None:
    marks = {
        kind: Tracker(model(), KINDS[kind](), per_class=8).subset.fingerprint
        for kind in ("pair", "tensors", "loader", "targets")
    }
    assert len(set(marks.values())) == 1


def test_class_sizes_are_known_where_labels_are() -> None:
    x, y = torch.cat([X, X[Y < 2]]), torch.cat([Y, Y[Y < 2]])
    assert Tracker(model(), (x, y), per_class=4).subset.class_sizes == (60, 60, 30, 30)
    known = Tracker(model(), loader(TensorDataset(x, y)), per_class=4)
    assert known.history.header.minority == (2, 3)
    assert Tracker(model(), Plain(), per_class=4).history.header.minority is None
    assert Tracker(model(), Loop(), per_class=4).subset.class_sizes is None


def test_labels_that_a_data_set_transforms_are_looked_up() -> None:
    data = Plain(Y.tolist(), transform=lambda label: (label + 1) % CLASSES)
    tracker = Tracker(model(), data, per_class=6)
    assert tracker.subset.counts == (6,) * CLASSES and tracker.subset.class_sizes is None


def test_classes_with_fewer_samples_give_what_they_have() -> None:
    few = torch.cat([torch.arange(20, 120), torch.where(Y == 3)[0][:2]])
    few = few[(Y[few] != 3) | (few < 8)]
    tracker = Tracker(model(), (X[few], Y[few]), per_class=10)
    assert tracker.subset.counts == (10, 10, 10, 2)


def test_columns_by_name() -> None:
    class Named(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = model()

        def forward(self, values: Tensor, more: Tensor) -> Tensor:
            return self.inner(values + more)

    columns = {"values": X, "more": torch.zeros_like(X), "labels": Y}
    whole = Tracker(Named(), columns, per_class=6)
    rows = [{name: column[i : i + 10] for name, column in columns.items()} for i in range(0, 120, 10)]
    streamed = Tracker(Named(), rows, per_class=6)
    for tracker in (whole, streamed):
        profile = tracker.epoch()
        assert profile is not None and profile.counts == (6,) * CLASSES
    unpacked = Tracker(model(), [{"a": x, "b": y} for x, y in Loop()], per_class=6, unpack=lambda b: (b["a"], b["b"]))
    assert unpacked.epoch() is not None


def test_too_large_to_keep_is_fetched_again_alike() -> None:
    noisy = Plain()
    kept, fetched = (Tracker(network(), noisy, per_class=20, memory=memory) for memory in (10**6, 100))
    assert kept.subset.fingerprint == fetched.subset.fingerprint
    one, two = kept.epoch(), fetched.epoch()
    assert one is not None and two is not None and one.curve() == pytest.approx(two.curve(), rel=1e-12)
    with pytest.raises(DataError, match="take more than `memory=100` bytes, and a stream of batches cannot"):
        Tracker(network(), Loop(), memory=100)


def test_how_many_are_drawn_where_nobody_says() -> None:
    assert [samples_per_class(classes) for classes in (2, 10, 20, 100, 1000)] == [30, 30, 15, 5, 5]
    assert Tracker(model(), (X, Y)).subset.counts == (30,) * CLASSES


def test_a_data_set_is_not_read_through() -> None:
    data = Plain(Y.tolist())
    Tracker(model(), data, per_class=5)
    assert len(data.fetched) < 60


def test_bad_data() -> None:
    with pytest.raises(DataError, match=r"can be read only once .* Pass the loader, the data set or a pair"):
        Tracker(model(), iter(Loop()))
    with pytest.raises(LabelError, match=r"Labels must lie in 0 … 3"):
        Tracker(model(), (X, Y + 1))
    with pytest.raises(LabelError, match=r"Labels must lie in 0 … 3"):
        Tracker(model(), [(X, Y + 1)])
    with pytest.raises(DataError, match="hold no batch"):
        Tracker(model(), [])

    class Broken(Plain):
        def __getitem__(self, index: int) -> tuple[Tensor, int]:
            raise OSError("no such picture")

    with pytest.raises(DataError, match=r"could not be fetched: OSError: no such picture\. Correct the data set"):
        Tracker(model(), Broken())
    with pytest.raises(DataError, match="one array of shape"):
        Tracker(model(), np.zeros((3, 4)))
