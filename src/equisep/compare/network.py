"""A trained network beside the Layer-Peeled Model: its classifier rows and class means against the predicted ones.

The energies are read off the network, E_W = (1/K) Σ_k ‖w_k‖² and E_H = (1/K) Σ_k (1/n_k) Σ_i ‖h_ki‖², the weights
ω_k = loss weight · n_k/N off the class sizes; the rest is prediction. Vectors are taken as they are, as Fang et al. 2021 do
and as the model has them. `centered` takes the mean row from the classifiers, which changes no probability, and the mean of
the class means from the features: a ReLU network has features of one sign, whose cosines are large whatever the classes do.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from equisep.compare.geometry import Geometry, NetworkComparison, measured_states, with_prediction
from equisep.errors import InputError
from equisep.peeled.classes import HALF, measured_cosines, small_classes
from equisep.peeled.problem import Number, Numbers, checked_count, checked_list, checked_positive, checked_weights
from equisep.progress import Watched, callback, watched
from equisep.results import Note, Reading, reading_named
from equisep.shapes import Bool, Float64, Int


@watched
def compare_network(
    model: Any,
    train: Any,
    test: Any = None,
    *,
    classifier: str | None = None,
    reading: Reading = "eval",
    sizes: Numbers | None = None,
    loss_weights: Numbers | None = None,
    minority: Numbers | None = None,
    centered: bool = False,
    progress: Watched = None,
    mode: str | None = None,
) -> NetworkComparison:
    """Measure a network's classifier and class means on its training data, beside what the Layer-Peeled Model predicts.

    train, test   any iterable of (x, y) batches, a torch Dataset, or a pair (X, Y); `test` is for accuracy alone
    classifier    the last linear layer, by name; found by itself where it is not named
    reading       `eval`, or `mixed`: BatchNorm by the statistics of the batch being read (`mode` is its former name)
    sizes         how many samples of each class the network was trained on, where `train` is another sample
    loss_weights  the factor on the loss of each class it was trained with
    minority      classes, by number; by default those of at most half the largest size

    >>> import torch, equisep
    >>> y = torch.arange(90) % 3
    >>> x = 2 * torch.eye(3, 8)[y] + torch.randn(90, 8, generator=torch.Generator().manual_seed(0))
    >>> _ = torch.manual_seed(0)
    >>> model = equisep.Fnn(depth=4, width=16, inputs=8, classes=3)
    >>> from equisep.compare import compare_network
    >>> found = compare_network(model, (x, y))
    >>> len(found.accuracy), found.feature_energy > 0
    (3, True)
    """
    progress = callback(progress)
    from equisep.compare.classifier import read_classifier

    how = reading_named(reading, mode=mode)
    read = read_classifier(model, train, classifier=classifier, reading=how, progress=progress)
    tested = None
    if test is not None:
        tested = read_classifier(model, test, what="test", classifier=read.name, reading=how, progress=progress)
    each = np.maximum(read.counts, 1)
    found = compare_geometry(
        read.weight,
        read.means,
        read.counts.tolist() if sizes is None else sizes,
        feature_energy=float((read.squares / each).sum() / len(each)),
        loss_weights=loss_weights,
        minority=minority,
        centered=centered,
    )
    margins = tuple(m / n if n else None for m, n in zip(read.margins.tolist(), read.counts.tolist(), strict=True))
    return replace(
        found,
        classifier=read.name,
        reading=how,
        margins=margins,
        states=measured_states(margins),
        accuracy=read.accuracy,
        test_accuracy=None if tested is None else tested.accuracy,
        notes=(*read.notes, *found.notes, *_bias_notes(read.name, read.bias)),
    )


def compare_geometry(
    classifiers: ArrayLike,
    means: ArrayLike,
    sizes: Numbers,
    *,
    feature_energy: Number | None = None,
    loss_weights: Numbers | None = None,
    minority: Numbers | None = None,
    centered: bool = False,
) -> NetworkComparison:
    """Compare classifier rows and class-mean features, K × p each, with the prediction; for networks read by other means.

    `feature_energy` is (1/K) Σ_k (1/n_k) Σ_i ‖h_ki‖² of the features as they are, by default that of their means. A class
    without features has a row of NaN, and counts there as zero: the optimum of a class absent from the loss is zero.

    >>> import torch
    >>> from equisep.compare import compare_geometry
    >>> rows = torch.eye(3, dtype=torch.float64) - 1 / 3  # a simplex
    >>> found = compare_geometry(rows, rows, sizes=[100, 100, 100])
    >>> f"{found.measured.classifiers.majority:.3f}"
    '-0.500'
    """
    W, H = _matrices(classifiers, means)
    counts = _counts(sizes, len(W))
    factors = np.ones(len(W))
    if loss_weights is not None:
        factors = np.array(checked_weights(loss_weights, "Loss weights", "The loss weight of class", count=len(W)))
    small = _minority(minority, counts)
    means_margins = _margins_of_means(W, H)
    held = np.isfinite(H).all(axis=1)
    # both energies fall by the square of what is taken from every vector
    middle = H[held].mean(axis=0) if centered else np.zeros(H.shape[1])
    within = 0.0
    if feature_energy is not None:
        whole = checked_positive(feature_energy, "`feature_energy`", "Pass the mean squared norm of the features.")
        within = max(0.0, whole - float(np.square(H[held]).sum() / len(H)))
    W, H = W - (W.mean(axis=0) if centered else 0.0), H - middle
    mean_energy = float(np.square(H[held]).sum() / len(H))
    measured = Geometry(
        classifiers=measured_cosines(W, small),
        features=measured_cosines(H, small),
        classifier_norms=tuple(np.linalg.norm(W, axis=1).tolist()),
        feature_norms=tuple(None if np.isnan(size) else size for size in np.linalg.norm(H, axis=1).tolist()),
    )
    found = NetworkComparison(
        classifier="given",
        reading=None,
        centered=centered,
        sizes=tuple(counts.tolist()),
        loss_weights=tuple(factors.tolist()),
        minority=tuple(np.flatnonzero(small).tolist()),
        minority_rule=HALF if minority is None else "named",
        ratio=float(counts.max() / counts.min()) if counts.min() > 0 else None,
        weight_energy=float(np.square(W).sum() / len(W)),
        feature_energy=mean_energy + within,
        mean_energy=mean_energy,
        measured=measured,
        margins=means_margins,
        states=measured_states(means_margins),
        predicted=None,
        accuracy=None,
        test_accuracy=None,
        notes=_size_notes(counts, small, held),
    )
    return with_prediction(found)


def _margins_of_means(W: Float64[np.ndarray, "k p"], H: Float64[np.ndarray, "k p"]) -> tuple[float | None, ...]:
    """The own logit less the largest other one at each class mean; `None` without one."""
    logits = H @ W.T
    others = np.where(np.eye(len(W), dtype=bool), -np.inf, logits).max(axis=1)
    return tuple(None if np.isnan(one) else one for one in (np.diag(logits) - others).tolist())


def _matrices(
    classifiers: ArrayLike, means: ArrayLike
) -> tuple[Float64[np.ndarray, "k p"], Float64[np.ndarray, "k p"]]:
    W, H = (np.asarray(matrix, dtype=np.float64) for matrix in (classifiers, means))
    if W.ndim != 2 or W.shape != H.shape:
        raise InputError(
            f"Classifiers and class means must be two matrices K × p; found shapes {W.shape} and {H.shape}. "
            "Pass one row per class."
        )
    bad = int((~np.isfinite(W)).sum())
    held = np.isfinite(H).all(axis=1)
    if bad or np.isinf(H).any() or not held.any():
        found = f"{bad} NaN or Inf in the classifiers" if bad else "class means that are infinite, or NaN throughout"
        raise InputError(f"Classifiers and class means must be finite; found {found}. Check the network.")
    for what, size in (("classifiers", np.abs(W).max()), ("class means", np.abs(H[held]).max())):
        if size == 0:
            raise InputError(
                f"The {what} must not all be zero: the Layer-Peeled Model needs energy. Check the network."
            )
    return W, H


def _counts(sizes: Numbers, classes: int) -> Int[np.ndarray, " k"]:
    advice = "Pass the number of samples of each class, 0 for one that was absent."
    entries = checked_list(sizes, "Class sizes", advice)
    if len(entries) != classes:
        raise InputError(f"Class sizes must be {classes} numbers, one per class; found {len(entries)}. {advice}")
    return np.array(
        [0 if size == 0 else checked_count(size, f"The size of class {k}", advice) for k, size in enumerate(entries)]
    )


def _minority(minority: Numbers | None, counts: Int[np.ndarray, " k"]) -> Bool[np.ndarray, " k"]:
    if minority is None:
        return small_classes(counts)
    advice = f"Pass class numbers from 0 to {len(counts) - 1}."
    chosen = np.zeros(len(counts), dtype=bool)
    for entry in checked_list(minority, "Minority classes", advice):
        label = 0 if entry == 0 else checked_count(entry, "A minority class", advice)
        if label >= len(counts):
            raise InputError(f"A minority class must be one of {len(counts)}; found {label}. {advice}")
        chosen[label] = True
    return chosen


def _size_notes(
    counts: Int[np.ndarray, " k"], small: Bool[np.ndarray, " k"], held: Bool[np.ndarray, " k"]
) -> tuple[Note, ...]:
    notes = []
    if not small.any():
        notes.append(
            Note("no-minority", f"No class is a minority ({HALF}): there is no cosine of one. `minority` names others.")
        )
    elif small.sum() == 1:
        notes.append(Note("one-minority-class", "The minority is one class, which has no other to collapse with."))
    if (counts == 0).any():
        text = (
            f"{int((counts == 0).sum())} of {len(counts)} classes have no samples: their ω is 0, and their features, which "
            "nobody has seen, count as zero in the feature energy."
        )
        notes.append(Note("absent-classes", text))
    unseen = int(((counts > 0) & ~held).sum())
    if unseen:
        text = f"{unseen} classes have a size but no sample in the data read: the feature energy lacks them. Read all classes."
        notes.append(Note("unseen-classes", text))
    return tuple(notes)


def _bias_notes(name: str, bias: Float64[np.ndarray, " k"] | None) -> tuple[Note, ...]:
    if bias is None or not bias.any():
        return ()
    spread = float(bias.max() - bias.min())
    text = (
        f"The classifier `{name}` has a bias, from {bias.min():.3g} to {bias.max():.3g} (a range of {spread:.3g} in logits), "
        "which the Layer-Peeled Model has not: the prediction leaves it out."
    )
    return (Note("bias", text),)
