"""Which samples are drawn and which labels are replaced, as a function of the seed alone.

All randomness is the raw 64-bit stream of numpy's PCG64, whose values numpy guarantees from version to version (its
`Generator` methods carry no such promise). Each use has a stream of its own, named by (seed, use, class).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, overload

import numpy as np
import numpy.typing as npt
import torch

from equisep.errors import InputError, LabelError, did_you_mean
from equisep.labels import Labels, label_vector
from equisep.shapes import Int

DRAW, RELABEL, ORDER, WALK = 0, 1, 2, 3  # the uses of a seed, so that no two read the same stream
DRAW_ORDERS = ("position", "walk")


def raw_stream(count: int, *, seed: int, use: int, key: int = 0) -> npt.NDArray[np.uint64]:
    """`count` uniform 64-bit numbers that depend on (seed, use, key) alone; a longer stream extends a shorter one."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise InputError(f"`seed` was {seed!r}; a whole number from 0 on is needed.")
    stream = np.random.PCG64(np.random.SeedSequence(int(seed), spawn_key=(use, key)))
    return np.asarray(stream.random_raw(count), dtype=np.uint64).reshape(count)


def permutation(count: int, *, seed: int, use: int, key: int = 0) -> npt.NDArray[np.int64]:
    """A uniform order of `count` things."""
    return np.argsort(raw_stream(count, seed=seed, use=use, key=key), kind="stable").astype(np.int64)


def draw(
    labels: npt.ArrayLike | torch.Tensor,
    *,
    per_class: int | None = None,
    sizes: Sequence[int] | None = None,
    seed: int = 0,
    classes: int | Sequence[int] | None = None,
    order: str = "position",
    pool_per_class: int | Sequence[int] | None = None,
) -> Int[np.ndarray, " m"]:
    """Positions of a sample without replacement: `per_class` of each class, or `sizes[i]` of the i-th.

    `classes` are the classes drawn from: a list, a number K for 0 … K − 1, or all that `labels` hold. With neither
    `per_class` nor `sizes` every sample of those classes is taken. What is drawn of class k depends on the seed, k and
    the samples of k only, and a larger draw contains every smaller one of the same seed: sweeps over size are nested.

    `order` is that of the positions: ascending (`position`), or that of He & Su's program (`walk`): one shuffled walk
    through the whole pool which keeps a sample unless its class is full, so that classes run out towards the end. The
    samples are the same. Where `labels` are a part of a larger pool, `pool_per_class` (one number, or one for each class) is
    its size, and the order is that of a walk through the larger pool: see `walk_positions`.

    >>> from equisep.data import draw
    >>> labels = [0, 0, 0, 0, 1, 1, 1, 1]
    >>> few, more = draw(labels, per_class=1), draw(labels, per_class=3)
    >>> len(few), len(more), set(few.tolist()) <= set(more.tolist())
    (2, 6, True)
    """
    if order not in DRAW_ORDERS:
        raise InputError(f"`order` was {order!r}.{did_you_mean(order, DRAW_ORDERS)} Known: {', '.join(DRAW_ORDERS)}.")
    vector = label_vector(labels)[0]
    chosen = _classes(vector, classes)
    if per_class is not None and sizes is not None:
        raise InputError("`draw` got both `per_class` and `sizes`. Give one of them.")
    asked = [per_class] * len(chosen) if sizes is None else _for_each(sizes, len(chosen), name="sizes")
    taken: list[npt.NDArray[np.int64]] = []
    members_of = []
    for k, wanted in zip(chosen, asked, strict=True):
        members = np.flatnonzero(vector == k)
        if wanted is not None and not (_is_whole(wanted) and wanted >= 0):
            raise InputError(
                f"`draw` was asked for {wanted!r} samples of class {k}. Ask for a whole number, 0 or more."
            )
        if wanted is not None and wanted > len(members):
            raise InputError(
                f"`draw` was asked for {wanted} samples of class {k}; there are {len(members)}. "
                f"Ask for at most {len(members)}, or load a larger data set."
            )
        taken.append(members[permutation(len(members), seed=seed, use=DRAW, key=k)][:wanted])
        members_of.append(len(members))
    positions = np.concatenate([np.empty(0, dtype=np.int64), *taken])
    if order == "position":
        if pool_per_class is not None:
            raise InputError("`pool_per_class` is the pool that a walk goes through. Give it with `order='walk'`.")
        return np.sort(positions)
    pool = _pool_sizes(members_of if pool_per_class is None else pool_per_class, [len(part) for part in taken])
    return positions[np.argsort(walk_positions([len(part) for part in taken], pool, seed=seed), kind="stable")]


def walk_positions(sizes: Sequence[int], pool: Sequence[int], *, seed: int) -> Int[np.ndarray, " m"]:
    """Where a shuffled walk through a pool of `pool[i]` samples per class meets those that it keeps, `sizes[i]` of the i-th.

    The places of the first class come first, ascending, then those of the next. Samples of one class are exchangeable, so a
    walk through the whole pool and the first `sizes[i]` places of each class in a shuffled sequence of the pool's labels,
    filled with a sample drawn beforehand, have one and the same distribution.
    """
    labels = np.repeat(np.arange(len(pool)), pool)[permutation(sum(pool), seed=seed, use=WALK)]
    places = [np.flatnonzero(labels == k)[:size] for k, size in enumerate(sizes)]
    return np.concatenate([np.empty(0, dtype=np.int64), *places])


def order_among(walk: Int[np.ndarray, " m"]) -> Int[np.ndarray, " m"]:
    """The order of a walk among its positions taken ascending: `np.sort(walk)[order_among(walk)]` is the walk."""
    return np.searchsorted(np.sort(walk), walk).astype(np.int64)


@overload
def randomize_labels(labels: torch.Tensor, *, share: float, classes: int, seed: int = 0) -> torch.Tensor: ...
@overload
def randomize_labels(labels: npt.ArrayLike, *, share: float, classes: int, seed: int = 0) -> Labels: ...


def randomize_labels(
    labels: npt.ArrayLike | torch.Tensor, *, share: float, classes: int, seed: int = 0
) -> Labels | torch.Tensor:
    """Labels of which a `share` q, drawn at random, are replaced by uniform ones (Galanti & Galanti 2022, Figs. 3, 4).

    A new label may equal the old one, so that a share q(1 − 1/C) differs. A larger share of the same seed replaces the
    same samples by the same labels, and more. Tensors come back as tensors on their device, anything else as numpy.

    >>> import numpy
    >>> from equisep.data import randomize_labels
    >>> labels = numpy.zeros(1000, dtype=int)
    >>> noisy = randomize_labels(labels, share=0.5, classes=10, seed=0)
    >>> 0.35 < (noisy != labels).mean() < 0.55  # one new label in ten is the old one
    np.True_
    """
    vector = label_vector(labels)[0]
    if not 0 <= share <= 1:
        raise InputError(f"`share` was {share}; a number from 0 to 1 is needed.")
    if classes < 1 or (vector.size and int(vector.max()) >= classes):
        raise LabelError(
            f"`randomize_labels` was asked for {classes} classes; the highest label is "
            f"{int(vector.max()) if vector.size else 'absent'}. Give the number of classes."
        )
    replaced = permutation(len(vector), seed=seed, use=RELABEL)[: round(share * len(vector))]
    # the remainder of a 64-bit number is uniform to one part in 2⁶⁴/C
    fresh = (raw_stream(len(vector), seed=seed, use=RELABEL, key=1) % np.uint64(classes)).astype(np.int64)
    vector[replaced] = fresh[replaced]
    return torch.from_numpy(vector).to(labels.device) if isinstance(labels, torch.Tensor) else vector


def _pool_sizes(pool: Any, sizes: Sequence[int]) -> list[int]:
    """How many samples of each class a walk meets; a class that it keeps none of need not be there."""
    alike = isinstance(pool, int | float | np.number)
    known = [pool] * len(sizes) if alike else _for_each(pool, len(sizes), name="pool_per_class")
    for k, (held, wanted) in enumerate(zip(known, sizes, strict=True)):
        if not _is_whole(held) or held < wanted:
            raise InputError(
                f"`pool_per_class` says that the pool holds {held!r} samples of class {k}; {wanted} are drawn. "
                "It is the size of the whole set that the samples come from, a whole number."
            )
    return [int(held) for held in known]


def _classes(vector: Labels, classes: int | Sequence[int] | None) -> list[int]:
    if classes is None:
        return list(range(int(vector.max()) + 1)) if vector.size else []
    if isinstance(classes, int | np.integer):
        chosen = list(range(int(classes))) if _is_whole(classes) and classes >= 0 else None
    else:
        chosen = _listed(classes)
    if chosen is None or not all(_is_whole(k) and k >= 0 for k in chosen) or len(set(chosen)) != len(chosen):
        raise InputError(f"`classes` was {classes!r}; give different class numbers from 0 on.")
    return [int(k) for k in chosen]


def _for_each(numbers: Any, classes: int, *, name: str) -> list[Any]:
    """The entries of a list with one for each class."""
    entries = _listed(numbers)
    if entries is None:
        raise InputError(f"`{name}` lists a whole number for each class; found {numbers!r}.")
    if len(entries) != classes:
        raise InputError(f"`{name}` has {len(entries)} numbers for {classes} classes. Give one for each class.")
    return entries


def _listed(numbers: Any) -> list[Any] | None:
    """The entries of a list, a vector or another iterable; None of what is none."""
    plain = numbers.tolist() if hasattr(numbers, "tolist") else numbers
    return list(plain) if isinstance(plain, Iterable) and not isinstance(plain, str | Mapping) else None


def _is_whole(value: Any) -> bool:
    """Whether this is a whole number, of Python or of numpy; a yes or no is none."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)
