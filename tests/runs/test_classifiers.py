"""Numbers of trained classifiers against plain computations: cosines, accuracy by class."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch import Tensor

from equisep.compare import compare_network
from equisep.figures.cell import Training
from equisep.figures.course import course_of
from equisep.figures.quantities import quantity
from equisep.measuring import measure
from equisep.models import Fnn
from equisep.runs.run import run_group
from equisep.runs.runners.classifiers import classifier_numbers, minority_of
from equisep.training import Member, Recipe, Shape, Watch, train_ensemble

CLASSES = 5


def clouds(counts: list[int], *, seed: int = 0) -> tuple[Tensor, Tensor]:
    chance = torch.Generator().manual_seed(seed)
    y = torch.cat([torch.full((count,), label) for label, count in enumerate(counts)]).long()
    x = torch.randn(len(y), 6, generator=chance, dtype=torch.float64) + y[:, None]
    return x, y


def network(seed: int = 0) -> Fnn:
    torch.manual_seed(seed)
    made = Fnn(3, width=7, inputs=6, classes=CLASSES).double()
    made(clouds([9] * CLASSES)[0])  # so that running statistics are not those of the first day
    return made.train()


def cosine(a: npt.NDArray[np.float64], b: npt.NDArray[np.float64]) -> float:
    return float(np.dot(a, b) / np.sqrt(np.dot(a, a) * np.dot(b, b)))


def mean_cosine(rows: list[npt.NDArray[np.float64]]) -> float:
    return float(np.mean([cosine(a, b) for a, b in combinations(rows, 2)]))


def test_every_number_by_a_plain_computation() -> None:
    model, train, test = network(), clouds([12, 12, 3, 2, 1]), clouds([4, 5, 6, 7, 8], seed=1)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    numbers, arrays = classifier_numbers(model, model.head, train, test, classes=CLASSES)
    assert model.training and all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert not model.head._forward_pre_hooks
    with torch.no_grad():
        model.eval()
        features = model.blocks(train[0]).numpy()
        answers = model(test[0]).argmax(dim=1).numpy()
    rows = [row.numpy() for row in model.head.weight.detach()]
    means = [features[train[1].numpy() == label].mean(axis=0) for label in range(CLASSES)]
    middle = np.mean(means, axis=0)
    accuracy = [float(np.mean(answers[test[1].numpy() == label] == label)) for label in range(CLASSES)]
    assert numbers["minority_cosine"] == pytest.approx(mean_cosine(rows[2:]), rel=1e-12)
    assert numbers["majority_cosine"] == pytest.approx(cosine(rows[0], rows[1]), rel=1e-12)
    assert numbers["minority_mean_cosine"] == pytest.approx(
        mean_cosine([mean - middle for mean in means[2:]]), rel=1e-10
    )
    assert numbers["minority_accuracy_test"] == pytest.approx(np.mean(accuracy[2:]))
    assert numbers["majority_accuracy_test"] == pytest.approx(np.mean(accuracy[:2]))
    assert numbers["balanced_accuracy_test"] == pytest.approx(np.mean(accuracy))
    compared = compare_network(model, train)
    assert numbers["energy"] == pytest.approx(compared.weight_energy * compared.feature_energy)
    assert compared.margins is not None
    assert numbers["minority_margin"] == pytest.approx(min(compared.margins[2:]))
    named, _ = classifier_numbers(model, model.head, train, test, classes=CLASSES, minority=(0, 3))
    assert named["minority_accuracy_test"] == pytest.approx(np.mean([accuracy[0], accuracy[3]]))
    assert named["minority_margin"] == pytest.approx(min(compared.margins[0], compared.margins[3]))
    assert arrays["class_accuracy_test"] == pytest.approx(accuracy)
    assert arrays["class_counts"] == (12.0, 12.0, 3.0, 2.0, 1.0)
    assert arrays["classifier_norms"] == pytest.approx([float(np.sqrt(np.dot(row, row))) for row in rows])


def test_known_angles() -> None:
    """A simplex ETF has cosines −1/(K − 1), and one repeated vector has 1: minority collapse."""
    model = network()
    etf = torch.eye(CLASSES, dtype=torch.float64) - 1 / CLASSES
    model.head.weight.data = torch.cat([etf, torch.zeros(CLASSES, 2, dtype=torch.float64)], dim=1)
    train, test = clouds([5, 5, 2, 2, 2]), clouds([3] * CLASSES)
    numbers, _ = classifier_numbers(model, model.head, train, test, classes=CLASSES)
    assert numbers["minority_cosine"] == pytest.approx(-1 / (CLASSES - 1))
    model.head.weight.data[2:] = torch.arange(1.0, 4.0)[:, None] * torch.ones(7)
    numbers, _ = classifier_numbers(model, model.head, train, test, classes=CLASSES)
    assert numbers["minority_cosine"] == pytest.approx(1.0)


def test_absent_classes_have_no_mean_and_no_accuracy() -> None:
    model = network()
    train, test = clouds([5, 5, 5, 0, 0]), clouds([3, 3, 3, 3, 0])
    numbers, arrays = classifier_numbers(model, model.head, train, test, classes=CLASSES)
    assert numbers["minority_mean_cosine"] is None and numbers["minority_cosine"] is not None
    assert arrays["class_accuracy_test"][4] is None
    assert numbers["minority_accuracy_test"] == arrays["class_accuracy_test"][3]
    model.head.weight.data[4] = 0
    assert classifier_numbers(model, model.head, train, test, classes=CLASSES)[0]["minority_cosine"] is None
    one, _ = classifier_numbers(model, model.head, clouds([5, 5, 5, 5, 1]), test, classes=CLASSES)
    assert one["minority_cosine"] is None  # no two of them


def test_the_minority_is_who_has_less_and_the_upper_half_where_all_have_as_many() -> None:
    assert minority_of([9, 9, 3, 3]) == [2, 3] and minority_of([3, 9, 3, 8]) == [0, 2, 3]
    assert minority_of([5, 5, 5, 5]) == [2, 3] and minority_of([5, 5, 5]) == [1, 2]


def test_what_is_answered_to_the_minority_by_a_plain_computation() -> None:
    model, train, test = network(3), clouds([12, 12, 3, 2, 1]), clouds([4, 5, 6, 7, 8], seed=1)
    numbers, arrays = classifier_numbers(model, model.head, train, test, classes=CLASSES)
    with torch.no_grad():
        scores = model.eval()(test[0]).numpy()
    y = test[1].numpy()
    small = [row for row, label in zip(scores, y, strict=True) if label >= 2]
    own = [label for label in y if label >= 2]
    answers = [int(np.argmax(row)) for row in small]
    among = [2 + int(np.argmax(row[2:])) for row in small]
    assert numbers["minority_lost_test"] == pytest.approx(np.mean([answer < 2 for answer in answers]))
    assert numbers["minority_told_apart_test"] == pytest.approx(np.mean(np.equal(among, own)))
    assert numbers["minority_one_answer_test"] == pytest.approx(max(among.count(k) for k in (2, 3, 4)) / len(among))
    assert arrays["minority_answers_test"] == pytest.approx([answers.count(k) / len(answers) for k in range(CLASSES)])
    shares = arrays["class_accuracy_test"]
    assert numbers["accuracy_gap_test"] == pytest.approx(max(shares) - min(shares))
    none = classifier_numbers(model, model.head, train, clouds([4, 4, 0, 0, 0]), classes=CLASSES)
    assert none[0]["minority_lost_test"] is None and none[1]["minority_answers_test"] == (None,) * CLASSES


def test_a_course_knows_collapse_of_classes_of_unequal_size() -> None:
    """NC1 and the cosines of the last reading are those of the trained network, as `measure` and the classifier have them."""
    cell = Training(
        data="embedded-10x10", per_class=None, sizes=(12,) * 5 + (4,) * 5, test_per_class=3, depth=4, width=12, epochs=4,
        rate=1e-2, readings=("eval",), classifier=True, course=2, dtype="float64",
    )  # fmt: skip
    outcome = run_group([cell])[0][1]
    known = course_of(outcome)
    assert known is not None and known.epoch == (2, 4) and len(known.nc1) == len(known.minority_cosine) == 2
    assert known.minority_cosine[-1] == pytest.approx(outcome.numbers["minority_cosine"], rel=1e-9)
    assert quantity(outcome, "minority_cosine_gain") == pytest.approx(
        known.minority_cosine[1] - known.minority_cosine[0]
    )
    assert quantity(outcome, "minority_emerged") is None
    without = run_group([cell.with_(classifier=False)])[0][1]
    kept = course_of(without)
    assert kept is not None and kept.nc1 == kept.minority_cosine == () and kept.r == known.r


def test_nc1_of_an_ensemble_is_that_of_measure() -> None:
    sizes, members = (
        (12, 12, 3, 2, 4),
        [Member(Recipe(epochs=2, rate=1e-2, seed=s), Shape((7, 7), 6, CLASSES)) for s in (0, 1)],
    )
    x, y = clouds(list(sizes))
    watch = Watch(readings="eval", collapse=True)
    ensemble = train_ensemble(members, x, y, watch=watch, dtype=torch.float64, device="cpu")
    for index in (0, 1):
        profile = measure(
            ensemble.network(index), (x, y), reading="eval", metrics=["fuzziness", "collapse"], intervals="none"
        )
        assert ensemble.reading().nc1[index] == pytest.approx(profile.sites[-1].nc1, rel=1e-9)
