"""Which samples are drawn and which labels are replaced, as a function of the seed alone.

All randomness is the raw 64-bit stream of numpy's PCG64, whose values numpy guarantees from version to version (its
`Generator` methods carry no such promise). Each use has a stream of its own, named by (seed, use, class).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

import numpy as np
import numpy.typing as npt
import torch

from equisep.errors import InputError, LabelError
from equisep.labels import Labels, label_vector
from equisep.shapes import Int

DRAW, RELABEL, ORDER = 0, 1, 2  # the uses of a seed, so that no two read the same stream


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
) -> Int[np.ndarray, " m"]:
    """Positions of a sample without replacement, ascending: `per_class` of each class, or `sizes[i]` of the i-th.

    `classes` are the classes drawn from: a list, a number K for 0 … K − 1, or all that `labels` hold. With neither
    `per_class` nor `sizes` every sample of those classes is taken. What is drawn of class k depends on the seed, k and
    the samples of k only, and a larger draw contains every smaller one of the same seed: sweeps over size are nested.
    """
    vector = label_vector(labels)[0]
    chosen = _classes(vector, classes)
    if per_class is not None and sizes is not None:
        raise InputError("`draw` got both `per_class` and `sizes`. Give one of them.")
    if sizes is not None and len(sizes) != len(chosen):
        raise InputError(f"`sizes` has {len(sizes)} numbers for {len(chosen)} classes. Give one for each class.")
    taken = [np.empty(0, dtype=np.int64)]
    for i, k in enumerate(chosen):
        members = np.flatnonzero(vector == k)
        wanted = per_class if sizes is None else sizes[i]
        if wanted is not None and wanted < 0:
            raise InputError(f"`draw` was asked for {wanted} samples of class {k}. Ask for 0 or more.")
        if wanted is not None and wanted > len(members):
            raise InputError(
                f"`draw` was asked for {wanted} samples of class {k}; there are {len(members)}. "
                f"Ask for at most {len(members)}, or load a larger data set."
            )
        taken.append(members[permutation(len(members), seed=seed, use=DRAW, key=k)][:wanted])
    return np.sort(np.concatenate(taken))


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


def _classes(vector: Labels, classes: int | Sequence[int] | None) -> list[int]:
    if classes is None:
        return list(range(int(vector.max()) + 1)) if vector.size else []
    chosen = list(range(classes)) if isinstance(classes, int) else [int(k) for k in classes]
    if len(set(chosen)) != len(chosen) or any(k < 0 for k in chosen):
        raise InputError(f"`classes` was {classes}; give different class numbers from 0 on.")
    return chosen
