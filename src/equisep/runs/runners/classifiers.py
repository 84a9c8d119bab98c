"""Numbers of a trained classifier: cosines within the minority, accuracy by class, shares of its answers."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from equisep.figures.outcome import Curve
from equisep.taps import reading_mode

READ = 500  # samples at a time


def minority_of(counts: list[int]) -> list[int]:
    """The classes that have fewer samples than others; the upper half where all have as many (R = 1)."""
    most = max(counts)
    fewer = [label for label, count in enumerate(counts) if count < most]
    return fewer or list(range(len(counts) // 2, len(counts)))


def classifier_numbers(
    network: nn.Module, head: nn.Linear, train: tuple[Tensor, Tensor], test: tuple[Tensor, Tensor], *, classes: int
) -> tuple[dict[str, float | None], dict[str, Curve]]:
    """The geometry of minority classes (Fang, He, Long & Su 2021) and accuracy by class, read in `eval` mode.

    `minority_cosine` is the mean cosine between two classifier rows of the minority; `minority_mean_cosine` that of their
    class means, centered on the mean of all class means; None where a class has no sample.
    """
    counts = torch.bincount(train[1], minlength=classes).tolist()
    minority = minority_of(counts)
    features, _ = _read(network, head, train[0])
    means = [features[train[1] == label].double().mean(dim=0) for label in range(classes)]
    present = all(counts)
    centered = torch.stack(means) - torch.stack(means).mean(dim=0) if present else None
    _, scores = _read(network, head, test[0])
    hits = (scores.argmax(dim=1) == test[1]).double()
    by_class = [_mean(hits[test[1] == label]) for label in range(classes)]
    majority = [label for label in range(classes) if label not in minority]
    weight = head.weight.detach().double().cpu()
    numbers = {
        "minority_cosine": _mean_cosine(weight[minority]),
        "majority_cosine": _mean_cosine(weight[majority]),
        "minority_mean_cosine": None if centered is None else _mean_cosine(centered[minority]),
        "minority_accuracy_test": _mean_of([by_class[label] for label in minority]),
        "majority_accuracy_test": _mean_of([by_class[label] for label in majority]),
    }
    arrays: dict[str, Curve] = {
        "class_accuracy_test": tuple(by_class),
        "class_counts": tuple(float(count) for count in counts),
        "classifier_norms": tuple(float(norm) for norm in weight.norm(dim=1)),
    }
    return numbers, arrays


def shares_of(network: nn.Module, x: Tensor, *, classes: int) -> float:
    """‖(shares of the classes among the network's answers) − (1/C, …, 1/C)‖₁ (Galanti & Galanti 2022, (ε, δ)-balanced)."""
    with torch.no_grad(), reading_mode(network, "eval"):
        answers = torch.cat([network(part).argmax(dim=1) for part in x.split(READ)])
    shares = torch.bincount(answers, minlength=classes).double() / len(answers)
    return float((shares - 1 / classes).abs().sum())


@torch.no_grad()
def _read(network: nn.Module, head: nn.Linear, x: Tensor) -> tuple[Tensor, Tensor]:
    """What the classifier reads, and the class scores, on the CPU."""
    seen: list[Tensor] = []
    handle = head.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].flatten(1).cpu()))
    try:
        with reading_mode(network, "eval"):
            scores = torch.cat([network(part).cpu() for part in x.split(READ)])
    finally:
        handle.remove()
    return torch.cat(seen), scores


def _mean_cosine(rows: Tensor) -> float | None:
    """The mean cosine between two different rows; None for fewer than two, or where a row is zero."""
    norms = rows.norm(dim=1)
    if len(rows) < 2 or not bool((norms > 0).all()):
        return None
    unit = rows / norms[:, None]
    cosines = unit @ unit.T
    n = len(rows)
    return float((cosines.sum() - cosines.diagonal().sum()) / (n * (n - 1)))


def _mean(values: Tensor) -> float | None:
    return float(values.mean()) if len(values) else None


def _mean_of(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
