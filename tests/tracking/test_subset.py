"""The subset: as many of each class, the same at every reading and after a restart, from whatever the data are."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    Sampler,
    SequentialSampler,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
)
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


PART = list(range(60))


class Own(Sampler[int]):
    """A sampler of someone's own: a part in an order of its own, which it counts, without an end."""

    def __init__(self) -> None:
        self.asked, self.order = 0, np.random.default_rng(3)

    def __iter__(self) -> Iterator[int]:
        self.asked += 1
        while True:
            yield from self.order.permutation(PART).tolist()


class OwnBatches(Sampler[list[int]]):
    def __iter__(self) -> Iterator[list[int]]:
        yield from ([*PART[start : start + 7]] for start in range(0, len(PART), 7))


SAMPLERS: dict[str, Any] = {
    "list": lambda: {"sampler": PART},
    "array": lambda: {"sampler": np.asarray(PART)},
    "random part": lambda: {"sampler": SubsetRandomSampler(torch.tensor(PART))},
    "range": lambda: {"sampler": SequentialSampler(PART)},
    "mixed range": lambda: {"sampler": RandomSampler(PART)},
    "weights": lambda: {"sampler": WeightedRandomSampler([1.0] * 60 + [0.0] * 60, num_samples=40)},
    "batches of a list": lambda: {"batch_sampler": BatchSampler(PART, 8, drop_last=False)},
    "list of batches": lambda: {"batch_sampler": [PART[:30], PART[30:]]},
    "own": lambda: {"sampler": Own()},
    "own batches": lambda: {"batch_sampler": OwnBatches()},
}


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("name", SAMPLERS)
def test_no_sample_is_read_that_the_loader_never_draws(name: str, known: bool) -> None:
    data = Plain(Y.tolist() if known else None)
    options = SAMPLERS[name]()
    tracker = Tracker(model(), DataLoader(data, **options), per_class=30)
    assert tracker.subset.counts == (15,) * CLASSES
    assert set(data.fetched) <= set(PART)
    assert tracker.subset.class_sizes == ((15,) * CLASSES if known else None)
    again = Tracker(model(), DataLoader(Plain(), **SAMPLERS[name]()), per_class=30)
    assert again.subset.fingerprint == tracker.subset.fingerprint
    if name == "own":
        sampler = options["sampler"]
        untouched = np.random.default_rng(3).bit_generator.state
        assert sampler.asked == 0 and sampler.order.bit_generator.state == untouched


def test_samplers_that_give_no_numbers_draw_from_all() -> None:
    class Named(Plain):
        def __getitem__(self, index: Any) -> tuple[Tensor, int]:
            return super().__getitem__(int(index))

    named = DataLoader(Named(), sampler=[str(number) for number in PART])  # type: ignore[arg-type]
    assert Tracker(model(), named, per_class=30).subset.counts == (30,) * CLASSES


class Sorted(IterableDataset[tuple[Tensor, int]]):
    """A stream of one class after the other."""

    def __init__(self, sizes: list[int]) -> None:
        self.sizes = sizes

    def __iter__(self) -> Iterator[tuple[Tensor, int]]:
        for label, size in enumerate(self.sizes):
            yield from ((X[4 * (number % 30) + label], label) for number in range(size))


def test_a_stream_that_is_sorted_by_class_is_told_how_far_was_looked() -> None:
    words = r"Of the first 1,000 samples of the stream.* none of the training data is of "
    with pytest.raises(DataError, match=words + r"another class than 0\. Shuffle the stream, or pass a data set"):
        Tracker(model(), DataLoader(Sorted([2000] * 4), batch_size=50), per_class=12)
    tracker = Tracker(model(), DataLoader(Sorted([400] * 4), batch_size=50), per_class=12)
    profile = tracker.epoch()
    assert profile is not None and profile.counts == (12, 12, 12, 0)
    (absent,) = [note.text for note in profile.notes if note.code == "absent-training"]
    assert absent.startswith("Of the first 1,000 samples of the stream") and "1 of 4 classes (3). Shuffle" in absent
    whole = Tracker(model(), DataLoader(Sorted([40, 40, 40, 0]), batch_size=50), per_class=12).epoch()
    assert whole is not None
    assert next(note.text for note in whole.notes if "absent" in note.code).startswith("1 of 4 classes (3) have no")


def test_a_tracker_that_fetches_its_samples_again_is_pickled() -> None:
    for kind in ("pair", "loader"):
        tracker = Tracker(model(), KINDS[kind](), test=(X, Y), per_class=20, memory=100)
        again = pickle.loads(pickle.dumps(tracker))
        one, two = tracker.epoch(), again.epoch()
        assert one is not None and two is not None and one.curve() == two.curve()


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
    for empty in (
        [],
        (X[:0], Y[:0]),
        loader(TensorDataset(X[:0], Y[:0]), shuffle=False),
        loader(shuffle=None, sampler=[]),
    ):
        with pytest.raises(DataError, match="The training data hold no batch"):
            Tracker(model(), empty)

    class Broken(Plain):
        def __getitem__(self, index: int) -> tuple[Tensor, int]:
            raise OSError("no such picture")

    with pytest.raises(DataError, match=r"could not be fetched: OSError: no such picture\. Correct the data set"):
        Tracker(model(), Broken())
    with pytest.raises(DataError, match="one array of shape"):
        Tracker(model(), np.zeros((3, 4)))
