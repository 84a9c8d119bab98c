"""What counts as class labels: integers from 0 to K − 1, or one-hot rows, and one sentence for everything else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy
import numpy.typing
import torch
from torch import Tensor

from equisep.errors import InputError, LabelError
from equisep.results import Note
from equisep.shapes import Int, Shaped

Labels = numpy.typing.NDArray[numpy.int64]
if TYPE_CHECKING:
    ClassNames = Sequence[str] | Mapping[int, str] | Mapping[str, int]
else:
    ClassNames = Any  # so that what is no list reaches the sentence below, whoever checks types at run time

MOST_CLASSES = 2**24  # a mean is kept for each class, so a stray identifier taken for a label would fill the memory
ONE_HOT = Note("one-hot", "The targets are one-hot rows; they were turned into class indices.")


def as_tensor(value: Any, *, what: str) -> Tensor:
    """A tensor, or whatever numpy can make of a list or array."""
    if isinstance(value, Tensor):
        if value.layout != torch.strided:
            raise InputError(f"{what} should be dense; found a sparse tensor. Pass `x.to_dense()`.")
        return value.detach()
    if hasattr(value, "toarray"):
        raise InputError(f"{what} should be dense; found a sparse {type(value).__name__}. Pass `x.toarray()`.")
    if hasattr(value, "to_numpy"):  # a data frame or one of its columns
        value = value.to_numpy()
    if isinstance(value, numpy.ndarray) and (not value.flags.writeable or min(value.strides, default=0) < 0):
        value = value.copy()  # torch warns of the first and refuses the second
    try:
        tensor = torch.as_tensor(value)
        exact = isinstance(value, list | tuple) and tensor.is_floating_point()  # Python's numbers are float64
        return torch.as_tensor(value, dtype=torch.float64) if exact else tensor
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"{what} should be a tensor or an array; found {type(value).__name__} ({error}).") from error


def class_indices(target: Any) -> tuple[Int[Tensor, " n"], Note | None]:
    """Targets as int64 class indices, with a Note where one-hot rows were turned into indices.

    The range is not checked here: see `check_range`.
    """
    try:
        labels = as_tensor(target, what="The labels")
    except InputError:
        word = _word_in(target)
        if word is None:
            raise
        raise LabelError(
            f"Class labels are integers; found words such as {word[:40]!r}. "
            "Number them with `names, y = np.unique(y, return_inverse=True)`."
        ) from None
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim == 2:
        return _from_one_hot(labels), ONE_HOT
    if labels.ndim != 1:
        raise LabelError(
            f"Class labels are one integer a sample; found targets of shape {tuple(labels.shape)}. "
            "Pass a vector of class indices."
        )
    if labels.is_floating_point() or labels.is_complex():
        example = labels.flatten()[0].item() if labels.numel() else "none"
        raise LabelError(
            f"Class labels are integers; found {_name(labels.dtype)} values such as {example}. "
            "Convert class numbers with `y.long()`; regression targets are no classes."
        )
    return labels.to(torch.int64), None


def _word_in(target: Any) -> str | None:
    """A class name among the labels, if there is one."""
    entries = target.to_numpy() if hasattr(target, "to_numpy") else target
    flat = numpy.asarray(entries, dtype=object).ravel()
    return next((str(entry) for entry in flat.tolist() if isinstance(entry, str | bytes)), None)


def _from_one_hot(rows: Shaped[Tensor, "n k"]) -> Int[Tensor, " n"]:
    hot = rows == 1
    if bool((hot | (rows == 0)).all()) and bool((hot.sum(dim=1) == 1).all()):
        return hot.to(torch.int64).argmax(dim=1)
    raise LabelError(
        f"Targets of shape {tuple(rows.shape)} are neither class indices nor one-hot rows: "
        f"{int((hot.sum(dim=1) != 1).sum())} of {rows.shape[0]} rows do not hold exactly one 1. "
        "Multi-label and soft targets are no classes; pass one class index per sample."
    )


def label_vector(labels: numpy.typing.ArrayLike | Tensor) -> tuple[Labels, Note | None]:
    """Labels as a new int64 vector, with a Note where one-hot rows were turned into class numbers."""
    indices, note = class_indices(labels)
    vector: Labels = indices.cpu().numpy().copy()
    if vector.size and int(vector.min()) < 0:
        raise LabelError(
            f"Class labels run from 0 on; found {int((vector < 0).sum())} negative ones, the least {int(vector.min())}. "
            "Drop or renumber those samples."
        )
    if vector.size and int(vector.max()) >= MOST_CLASSES:
        raise LabelError(
            f"Class labels number the classes from 0 on; the highest found is {int(vector.max())}. "
            "Renumber them, e.g. with `numpy.unique(y, return_inverse=True)[1]`."
        )
    return vector, note


def names_of_classes(names: ClassNames, classes: int) -> tuple[str, ...]:
    """The names of the K classes, in the order of their numbers.

    They are listed in that order, or told by number (Hugging Face's `id2label`) or with it (torchvision's `class_to_idx`).
    """
    needed = f"`class_names` needs one name for each of the {classes} classes"
    if isinstance(names, Mapping):
        pairs = [(name, key) if isinstance(name, int) else (key, name) for key, name in names.items()]
        told = {str(number): str(name) for number, name in pairs}
        if len(names) != classes or told.keys() != {str(number) for number in range(classes)}:
            raise InputError(
                f"{needed}, 0 to {classes - 1}; found a mapping of {', '.join(list(told)[:5]) or 'nothing'}."
            )
        return tuple(told[str(number)] for number in range(classes))
    if isinstance(names, str):
        raise InputError(f"{needed}, as a list; found the word {names!r}.")
    if isinstance(names, set | frozenset):
        raise InputError(f"{needed}, as a list; found a set, which has no order.")
    known = tuple(map(str, names))
    if len(known) != classes:
        raise InputError(f"{needed}; found {len(known)}.")
    return known


def check_range(labels: Int[Tensor, " n"], classes: int, *, owner: str, where: str = "") -> None:
    """Raise unless every label lies in 0 … classes − 1.

    `owner` says where the number of classes comes from, `where` which samples these are, such as `batch 3 of the test data`.
    """
    if labels.numel() == 0:
        return
    low, high = int(labels.min()), int(labels.max())
    if low >= 0 and high < classes:
        return
    outside = int(((labels < 0) | (labels >= classes)).sum())
    seen = f"{where} holds" if where else "found"
    seen = f"{seen} {low} … {high}, {outside} of {labels.numel()} outside"
    if low >= 1 and high == classes:
        advice = "If they are counted from 1, subtract 1."
    else:
        advice = f"Pass `classes={high + 1}`, or check the labels." if low >= 0 else "Check the labels."
    raise LabelError(f"Labels must lie in 0 … {classes - 1} ({owner}); {seen}. {advice}")


def check_two_classes(counts: Int[Tensor, " k"], *, asked: str, names: Int[Tensor, " k"] | None = None) -> None:
    """Raise unless at least two classes have samples: separation needs something to separate."""
    present = counts.nonzero().flatten()
    if present.numel() < 2:
        label = int(present[0] if names is None else names[present[0]]) if present.numel() else None
        seen = "there are no samples" if label is None else f"all {int(counts.sum())} labels are {label}"
        raise LabelError(f"{asked} needs at least 2 classes; {seen}. Check the labels.")


def distinct(labels: Int[Tensor, " n"], *, asked: str) -> tuple[Int[Tensor, " n"], Int[Tensor, " k"]]:
    """Labels renamed 0 … K − 1 in sorted order, and their K names, for plain arrays that come without a classifier."""
    names, renamed, counts = labels.unique(return_inverse=True, return_counts=True)
    check_two_classes(counts, asked=asked, names=names)
    return renamed, names


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
