"""The feed: what counts as a batch, what is left out with a Note, and one sentence for a loader that fails."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor
from torch.utils.data import ConcatDataset, DataLoader, Dataset, Subset, TensorDataset

from equisep.data import Batches, class_names_of, load_data, prepare_split
from equisep.data.feed import Feed
from equisep.data.official.sources import SOURCES
from equisep.errors import DataError, InputError

X, Y = torch.randn(30, 5), torch.arange(30) % 3
CPU = torch.device("cpu")


def feed(data: Any, *, what: str = "training", **options: Any) -> Feed:
    return Feed(data, what=what, device=CPU, dtype=torch.float32, **options)


def taken(data: Any, **options: Any) -> tuple[Tensor, Tensor]:
    """All inputs and labels that a feed gives."""
    read = [(inputs.args[0], labels) for inputs, labels in feed(data, **options)]
    return torch.cat([x for x, _ in read]), torch.cat([y for _, y in read])


def parts(*columns: Any, size: int = 10) -> list[tuple[Any, ...]]:
    return [tuple(column[i : i + size] for column in columns) for i in range(0, 30, size)]


def sentence(data: Any, error: type[Exception] = DataError, **options: Any) -> str:
    with pytest.raises(error) as caught:
        list(feed(data, **options))
    return str(caught.value)


# --- batches of more than two entries


@pytest.mark.parametrize(
    "extra", [torch.arange(30), torch.rand(30), [f"{i}.png" for i in range(30)]], ids=["index", "weight", "path"]
)
def test_entries_after_the_labels_are_left_out_with_a_note(extra: Any) -> None:
    source = feed(parts(X, Y, extra))
    read = list(source)
    assert torch.equal(torch.cat([x.args[0] for x, _ in read]), X)
    assert torch.equal(torch.cat([y for _, y in read]), Y)
    assert source.notes["extra-entries"].text == (
        "Batches hold 3 entries: the first was taken as inputs, the second as labels, the others were left out. "
        "`unpack=` chooses otherwise."
    )
    assert all(map(torch.equal, taken(TensorDataset(X, Y, torch.arange(30))), taken((X, Y))))


@pytest.mark.parametrize("second", [X, torch.rand(30), [None] * 30], ids=["inputs", "floats", "nothing"])
def test_a_second_entry_that_is_no_labels_is_refused(second: Any) -> None:
    assert sentence(parts(X, second, Y)) == (
        "Batch 0 of the training data should be a pair (x, y); found tuple of 3, whose second entry is no vector of class "
        "labels, one for each entry of the first. Pass `unpack=`, such as "
        "`unpack=lambda batch: ((batch[0], batch[1]), batch[2])` for two inputs and labels."
    )


# --- unpack


def test_unpack_makes_a_pair_of_any_batch() -> None:
    nested = [{"a": {"image": x}, "class": y} for x, y in parts(X, Y)]
    x, y = taken(nested, unpack=lambda batch: (batch["a"]["image"], batch["class"]))
    assert torch.equal(x, X) and torch.equal(y, Y)
    two = list(feed(parts(X, X, Y), unpack=lambda batch: ((batch[0], batch[1]), batch[2])))
    assert len(two[0][0].args) == 2
    x, y = taken({"pixels": X, "kind": Y}, unpack=lambda data: (data["pixels"], data["kind"]))
    assert len(x) == len(y) == 30
    # a data set is collated first
    assert len(taken(TensorDataset(X, X, Y), unpack=lambda batch: (batch[1], batch[2]))[0]) == 30


def test_an_unpack_that_fails_or_gives_no_pair_is_one_sentence() -> None:
    text = sentence([{"x": X}], unpack=lambda batch: (batch["image"], 0))
    assert text == "`unpack` failed on batch 0 of the training data: KeyError: 'image'. Correct it."
    text = sentence(parts(X, Y), unpack=lambda batch: batch[0])
    assert text == "`unpack` should return a pair (x, y); it returned Tensor."
    assert "it returned tuple of 3" in sentence(parts(X, Y), unpack=lambda batch: (*batch, 1))
    assert sentence(parts(X, Y), InputError, unpack="labels").startswith("`unpack` should be a function of a batch")


# --- loaders that raise


class Broken(Dataset):  # type: ignore[type-arg]
    def __len__(self) -> int:
        return 30

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        if index == 17:
            raise OSError("cannot identify image file 'cat17.jpg'")
        return X[index], int(Y[index])


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("what", ["training", "test"])
def test_a_data_set_that_raises_is_named_with_the_batch(workers: int, what: str) -> None:
    with pytest.raises(DataError) as caught:
        list(feed(DataLoader(Broken(), batch_size=5, num_workers=workers), what=what))
    assert str(caught.value) == (
        f"Batch 3 of the {what} data could not be fetched: OSError: cannot identify image file 'cat17.jpg'. "
        "Correct the loader or its data set; a plain loop over it fails alike."
    )
    assert isinstance(caught.value.__cause__, OSError)


def test_a_loader_that_raises_before_its_first_batch_or_after_the_first_look() -> None:
    class Closed:
        def __iter__(self) -> Iterator[Any]:
            raise PermissionError

    assert sentence(Closed()).startswith("Batch 0 of the training data could not be fetched: PermissionError. Correct")

    def stream() -> Iterator[Any]:
        yield from parts(X, Y)[:2]
        raise RuntimeError("the stream broke\nand more")

    source = feed(stream())
    source.first()
    with pytest.raises(
        DataError, match=r"^Batch 2 of the training data could not be fetched: RuntimeError: the stream broke\. "
    ):
        list(source)


def test_an_interrupt_stays_one() -> None:
    def stream() -> Iterator[Any]:
        raise KeyboardInterrupt
        yield

    with pytest.raises(KeyboardInterrupt):
        list(feed(stream()))


# --- what people pass out of habit


@pytest.mark.parametrize("data", [X, X.numpy(), Y, pd.DataFrame(X.numpy()), pd.Series(Y.numpy())])
def test_one_array_is_answered_with_the_right_call(data: Any) -> None:
    assert sentence(data) == (
        f"The training data are one array of shape {tuple(data.shape)}: samples without labels, or labels alone. "
        "Pass them as one pair: `(x, y)`."
    )


@pytest.mark.parametrize(
    ("names", "what", "chosen"),
    [
        (["train_dataloader", "val_dataloader"], "training", "train_dataloader"),
        (["train_dataloader", "val_dataloader"], "test", "val_dataloader"),
        (["train_dataloader", "val_dataloader", "test_dataloader"], "test", "test_dataloader"),
        (["get_train_dataloader", "get_eval_dataloader"], "training", "get_train_dataloader"),
        (["get_train_dataloader", "get_eval_dataloader"], "test", "get_eval_dataloader"),
    ],
)
def test_what_makes_loaders_is_asked_for_the_right_one(names: list[str], what: str, chosen: str) -> None:
    module = SimpleNamespace(**{name: lambda name=name: [[(X[:5], Y[:5])]] if name == chosen else [] for name in names})
    ready = feed(module, what=what)
    assert [len(y) for _, y in ready] == [5]
    assert ready.notes["loader"].text == f"The {what} data are those of `SimpleNamespace.{chosen}`."


def test_what_makes_no_loader_or_several_is_told() -> None:
    def refuse() -> None:
        raise ValueError("Trainer: evaluation requires an eval_dataset.\nmore")

    trainer = SimpleNamespace(get_train_dataloader=lambda: {"a": [], "b": []}, get_eval_dataloader=refuse)
    assert sentence(trainer) == (
        "`SimpleNamespace.get_train_dataloader` gives 2 loaders of the training data. Pass the one to measure."
    )
    assert sentence(trainer, what="test") == (
        "`SimpleNamespace` gave no loader of the test data: `get_eval_dataloader` raised ValueError: Trainer: evaluation "
        "requires an eval_dataset. Pass the loader itself."
    )
    assert sentence(SimpleNamespace(train_dataloader=None)) == (
        "`SimpleNamespace` gave no loader of the training data: it has no `train_dataloader` or `get_train_dataloader`. "
        "Pass the loader itself."
    )


def test_a_stored_data_set_is_answered_with_what_to_write() -> None:
    data = load_data("embedded-10x10")
    assert sentence(data) == (
        "The training data are the data set `embedded-10x10` as stored. Draw and prepare a split of it: "
        "`Batches(*prepare_split(data), class_names=data.class_names)`."
    )
    ready = feed(Batches(*prepare_split(data, per_class=3), class_names=data.class_names))
    assert ready.class_names == data.class_names
    assert len(list(ready)) == 1


def test_frames_are_arrays() -> None:
    frame, column = pd.DataFrame(X.double().numpy(), columns=list("abcde")), pd.Series(Y.numpy(), index=range(100, 130))
    x, y = taken((frame, column))
    x2, y2 = taken((X, Y))
    assert torch.equal(x, x2) and torch.equal(y, y2)
    x, y = taken(parts(frame, column))
    assert torch.equal(x, X) and torch.equal(y, Y)
    words = frame.assign(a="red")
    assert sentence((words, column), InputError).startswith("The training inputs should be a tensor or an array; found")


def test_sparse_inputs_are_one_sentence() -> None:
    wanted = "The training inputs should be dense; found a sparse tensor. Pass `x.to_dense()`."
    assert sentence((X.to_sparse(), Y), InputError) == wanted

    class csr_matrix:  # noqa: N801   as scipy's, which need not be there
        def toarray(self) -> None: ...

    assert sentence((csr_matrix(), Y), InputError).endswith("found a sparse csr_matrix. Pass `x.toarray()`.")


# --- class names


class Named(TensorDataset):
    classes = ["cat", "dog", "owl"]  # noqa: RUF012 (as torchvision has it)


def test_class_names_travel_with_data_sets_loaders_and_subsets() -> None:
    names, data = ("cat", "dog", "owl"), Named(X, Y)
    assert class_names_of(data) == names
    assert class_names_of(DataLoader(Subset(Subset(data, range(20)), range(10)))) == names
    assert class_names_of(ConcatDataset([data, Subset(data, [1])])) == names
    assert class_names_of(ConcatDataset([data, TensorDataset(X, Y)])) is None
    assert class_names_of(Batches(X, Y, class_names=names)) == names
    hub = SimpleNamespace(features={"image": None, "label": SimpleNamespace(names=list(names))})
    assert class_names_of(DataLoader(hub)) == names  # type: ignore[arg-type]
    assert feed(DataLoader(data)).class_names == names


def test_what_has_no_class_names_has_none() -> None:
    for data in (
        (X, Y),
        [],
        None,
        X,
        TensorDataset(X, Y),
        DataLoader(TensorDataset(X, Y)),
        SimpleNamespace(classes=10),
        SimpleNamespace(classes=[]),
        SimpleNamespace(classes=[0, 1]),
        SimpleNamespace(features={"label": SimpleNamespace()}),
        SimpleNamespace(features=5),
        Batches(X, Y),
    ):
        assert class_names_of(data) is None
    loop = SimpleNamespace()
    loop.dataset = loop
    assert class_names_of(loop) is None


def test_our_own_data_sets_name_their_classes() -> None:
    assert class_names_of(load_data("embedded-10x10"))[:2] == ("T-shirt/top", "Trouser")  # type: ignore[index]
    for source in SOURCES.values():
        assert len(source.class_names) == len(set(source.class_names)) == source.classes
    assert class_names_of(np.arange(3)) is None
