"""Numbers of a trained classifier: cosines within the minority, accuracy by class, what it answers to the minority."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from equisep.compare.classifier import ClassifierInputs, read_classifier
from equisep.data import Batches
from equisep.figures.outcome import Curve
from equisep.peeled.classes import measured_cosines
from equisep.taps import reading_mode

READ = 500  # samples at a time


def minority_of(counts: list[int]) -> list[int]:
    """The classes that have fewer samples than others; the upper half where all have as many (R = 1)."""
    most = max(counts)
    fewer = [label for label, count in enumerate(counts) if count < most]
    return fewer or list(range(len(counts) // 2, len(counts)))


def classifier_numbers(
    network: nn.Module,
    head: nn.Linear,
    train: tuple[Tensor, Tensor],
    test: tuple[Tensor, Tensor],
    *,
    classes: int,
    minority: Sequence[int] | None = None,
) -> tuple[dict[str, float | None], dict[str, Curve]]:
    """The geometry of minority classes (Fang, He, Long & Su 2021) and accuracy by class, read in `eval`.

    `minority_cosine` is the mean cosine between two classifier rows of the minority; `minority_mean_cosine` that of their
    class means, centered on the mean of all class means; None where a class has no sample. `balanced_accuracy_test` is the
    mean over classes; `minority_margin` the least, over the minority, of the mean own score less the largest other on
    training samples, `minority_margin_test` the same on test samples; `energy` is E_W·E_H as the Layer-Peeled Model has them.
    `accuracy_gap_test` is the best less the worst class; for `minority_lost_test` and what follows see `_answers`.
    """
    name = next(name for name, module in network.named_modules() if module is head)
    read, tested = (
        read_classifier(network, Batches(*part, batch_size=READ), what=what, classifier=name)
        for part, what in ((train, "training"), (test, "test"))
    )
    counts = read.counts.tolist()
    minority = minority_of(counts) if minority is None else list(minority)
    small = np.isin(np.arange(classes), minority)
    rows = measured_cosines(read.weight, small)
    means = read.means
    centered = measured_cosines(means - means.mean(axis=0), small) if all(counts) else None
    numbers = {
        "minority_cosine": rows.minority if (np.linalg.norm(read.weight[small], axis=1) > 0).all() else None,
        "majority_cosine": rows.majority if (np.linalg.norm(read.weight[~small], axis=1) > 0).all() else None,
        "minority_mean_cosine": None if centered is None else centered.minority,
        "minority_accuracy_test": _mean_of([tested.accuracy[label] for label in minority]),
        "majority_accuracy_test": _mean_of([tested.accuracy[k] for k in range(classes) if k not in minority]),
        "balanced_accuracy_test": _mean_of(list(tested.accuracy)),
        "minority_margin": _least_margin(read, minority),
        "minority_margin_test": _least_margin(tested, minority),
        "energy": _energy(read) if all(counts) else None,
        "accuracy_gap_test": _range_of(tested.accuracy),
    }
    answers, shares = _answers(network, *test, minority=minority, classes=classes)
    arrays: dict[str, Curve] = {
        "class_accuracy_test": tested.accuracy,
        "class_counts": tuple(float(count) for count in counts),
        "classifier_norms": tuple(np.linalg.norm(read.weight, axis=1).tolist()),
        "minority_answers_test": shares,
    }
    return {**numbers, **answers}, arrays


def _answers(
    network: nn.Module, x: Tensor, y: Tensor, *, minority: Sequence[int], classes: int
) -> tuple[dict[str, float | None], Curve]:
    """What the network answers to test samples of the minority, and the share of each class among these answers.

    `minority_lost_test` is the share that goes to majority classes. The other two let the network answer minority classes
    alone: `minority_told_apart_test` is then the share it has right, 1/k_B where it guesses, and `minority_one_answer_test` the
    share of the class it names most often, 1/k_B where it names all equally often (Fang, He, Long & Su 2021: with minority
    collapse "prediction on minority completely at random").
    """
    small = torch.tensor(list(minority), dtype=torch.int64, device=y.device)
    own = torch.isin(y, small)
    names = ("minority_lost_test", "minority_told_apart_test", "minority_one_answer_test")
    if not bool(own.any()):
        return dict.fromkeys(names), (None,) * classes
    with torch.no_grad(), reading_mode(network, "eval"):
        scores = torch.cat([network(part) for part in x[own].split(READ)])
    shares = torch.bincount(scores.argmax(dim=1), minlength=classes).double() / len(scores)
    among = small[scores[:, small].argmax(dim=1)]  # their answers, of minority classes alone
    numbers = (
        1 - float(shares[small].sum()),
        float((among == y[own]).double().mean()),
        float(torch.bincount(among, minlength=classes).max()) / len(among),
    )
    return dict(zip(names, numbers, strict=True)), tuple(shares.tolist())


def _range_of(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return max(known) - min(known) if known else None


def _least_margin(read: ClassifierInputs, labels: Sequence[int]) -> float | None:
    """The least mean margin of these classes; None where none of them has a sample."""
    seen = [label for label in labels if read.counts[label]]
    return min((float(read.margins[label] / read.counts[label]) for label in seen), default=None)


def _energy(read: ClassifierInputs) -> float:
    """E_W·E_H = (1/K) Σ_k ‖w_k‖² · (1/K) Σ_k (1/n_k) Σ_i ‖h_ki‖²."""
    return float(np.square(read.weight).sum(axis=1).mean() * (read.squares / read.counts).mean())


def _mean_of(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
