"""Rare classes: the answer from class sizes, from a model, in words and as weights; and by `equisep rare`."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from cli.running import equisep
from equisep.advice.rare import Fate, RareClasses, rare_classes
from equisep.advice.rare.classes import ENERGIES
from equisep.advice.rare.records import CAUTION, rounded_up
from equisep.compare import compare_network
from equisep.errors import EquisepError, InputError
from equisep.models import Fnn
from equisep.peeled import Problem, State, rescue, threshold

FOUR = [500, 500, 50, 5]
STEP = [500] * 5 + [5] * 5


@pytest.fixture(scope="module")
def four() -> RareClasses:
    return rare_classes(FOUR)


def lost_with(weights: tuple[float, ...], energy: float) -> list[bool]:
    """Who is lost in a training with these weights in torch's loss, solved anew."""
    problem = Problem.of_sizes(FOUR, feature_energy=energy, weight_energy=1.0, loss_weights=weights)
    return [one.state.lost for one in rescue(problem, weights=False).classes]


def test_who_is_lost_at_which_energy(four: RareClasses) -> None:
    assert [one.energy for one in four.at] == list(ENERGIES)
    assert [one.lost for one in four.at] == [(3,), (3,), (3,), (), ()]
    assert four.fates == (Fate.TOLD_APART,) * 3 + (Fate.IN_PART,)
    assert four.answer == (
        "In the Layer-Peeled Model class 3 (5 samples) is lost at E_W·E_H = 1, 2 and 5 and told apart at 10 and 20; classes "
        "0–2 (50 to 500 samples each) are told apart at all of these."
    )
    assert all(one.relative_gap < 1e-9 for one in four.at)


def test_the_weights_do_what_they_say(four: RareClasses) -> None:
    for one in four.at:
        assert not any(lost_with(one.margin_weights, one.energy))
        assert not any(lost_with(four.margin_weights, one.energy))  # those of the least energy do at every one
    assert any(lost_with((1.0, 1.0, 1.0, 0.99 * four.at[1].margin_weights[3]), 2.0))
    second = four.at[1]
    assert (
        second.collapse_weights == (1.0,) * 4 and second.margin_weights[3] > 10
    )  # nothing coincides, and yet it is lost
    assert all(half >= least for half, least in zip(second.half_weights, second.margin_weights, strict=True))


def test_two_sizes_have_the_closed_form() -> None:
    found = rare_classes(STEP, energies=[5])
    wanted = 100 / threshold(5, 5, feature_energy=5, weight_energy=1)
    assert found.at[0].states[5:] == (State.COLLAPSED,) * 5
    assert found.margin_weights == pytest.approx([1.0] * 5 + [wanted] * 5, rel=1e-3)
    assert found.fates[5:] == (Fate.LOST,) * 5
    assert found.answer.startswith("In the Layer-Peeled Model classes 5–9 (5 samples each) are lost at E_W·E_H = 5;")


def test_weights_in_use_are_counted_and_replaced() -> None:
    found = rare_classes(STEP, energies=[5], loss_weights=[1.0] * 5 + [2.0] * 5)
    plain = rare_classes(STEP, energies=[5])
    assert found.margin_weights == pytest.approx(plain.margin_weights, rel=2e-3)


def test_nobody_is_lost_among_like_sizes() -> None:
    found = rare_classes([100, 90, 80], energies=[1, 20])
    assert found.answer == (
        "All 3 classes are told apart at E_W·E_H = 1 and 20 in the Layer-Peeled Model: no class needs a weight for a margin on "
        "its training samples."
    )
    assert found.margin_weights == (1.0,) * 3


def test_what_practice_uses_stands_beside(four: RareClasses) -> None:
    assert four.alternatives.inverse_frequency == pytest.approx((1, 1, 10, 100))
    assert four.alternatives.logit_adjustment == pytest.approx([math.log(size / 1055) for size in FOUR])


@pytest.fixture(scope="module")
def trained() -> tuple[Fnn, tuple[torch.Tensor, torch.Tensor]]:
    """A head of known energies: rows and features of a simplex, E_W = 1 and E_H = 4; class 2 rarely seen."""
    torch.manual_seed(0)
    model = Fnn(1, inputs=3, classes=3).eval()
    simplex = (torch.eye(3) - 1 / 3) * math.sqrt(1.5)
    with torch.no_grad():
        model.head.weight.copy_(simplex)
        model.head.bias.zero_()
    y = torch.tensor([0] * 40 + [1] * 40 + [2] * 2)
    return model, (2 * simplex[y], y)


def test_a_model_brings_its_own_energies(trained: tuple[Fnn, tuple[torch.Tensor, torch.Tensor]]) -> None:
    model, data = trained
    found = rare_classes(model=model, data=data, test=data)
    assert [one.energy for one in found.at] == pytest.approx([4.0])
    assert found.sizes == (40, 40, 2)
    assert found.measured is not None and found.measured == compare_network(model, data, data)
    assert found.at[0].states == found.measured.predicted.states  # type: ignore[union-attr]
    assert found.answer == (
        "At this model's energies, E_W·E_H = 4, the Layer-Peeled Model tells all 3 classes apart: no class needs a weight for a "
        "margin on training data. Measured on its training data, every class has a mean margin above 0; on test data it "
        "recognizes class 0 (40 samples) least, 100.0 %."
    )
    other = rare_classes([40_000, 40_000, 2], model=model, data=(data[0] / 4, data[1]))  # E_H a sixteenth
    assert other.at[0].lost == (2,) and "loses class 2 (2 samples)." in other.answer
    turned = replace(found, measured=replace(found.measured, states=(State.TOLD_APART, State.LOST, State.LOST)))
    assert "classes 1–2 (2 to 40 samples each) have none above 0" in turned.answer


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "found neither"),
        ({"data": 1}, "found data without a model"),
        ({"counts": [5]}, "needs at least 2 classes; found 1"),
        ({"counts": [5, 0]}, "The size of class 1 must be a whole number"),
        ({"counts": FOUR, "energies": [0]}, "An energy E_W·E_H must be a finite number above 0; found 0"),
        ({"counts": FOUR, "energies": []}, "Energies must not be empty"),
        ({"counts": FOUR, "loss_weights": [1, 1]}, "Loss weights must be 4 numbers"),
        ({"model": 1}, "found a model without data"),
        ({"model": 1, "data": 1, "energies": [5]}, "found `energies` beside a model"),
    ],
)
def test_bad_input_is_one_sentence(given: dict[str, object], words: str) -> None:
    with pytest.raises(EquisepError) as caught:
        rare_classes(**given)  # type: ignore[arg-type]
    assert words in str(caught.value)


def test_a_class_without_samples_cannot_be_weighed(trained: tuple[Fnn, tuple[torch.Tensor, torch.Tensor]]) -> None:
    model, (x, y) = trained
    with pytest.raises(InputError, match="Class 2 has no sample"):
        rare_classes(model=model, data=(x[:80], y[:80]))


@pytest.mark.parametrize(("weight", "wanted"), [(8.20179, 8.202), (1.0, 1.0), (57.62, 57.62), (0.12341, 0.1235)])
def test_least_weights_are_rounded_up(weight: float, wanted: float) -> None:
    assert rounded_up(weight) == wanted


# the command


def test_the_command_says_the_answer_first_and_weights_to_paste(tmp_path: Path) -> None:
    done = equisep("rare", "--sizes", "500,500,50,5", "--energies", "2,20", "--quiet", folder=tmp_path)
    assert done.returncode == 0
    text = " ".join(done.stdout.split())
    assert text.startswith("In the Layer-Peeled Model class 3 (5 samples) is lost at E_W·E_H = 2 and told apart at 20;")
    assert "no classifiers coincide weight=[1.0, 1.0, 1.0, 1.0]" in text
    assert "every margin above 0 weight=[1.0, 1.0, 1.313, 13.13]" in text


def test_the_command_as_json_and_of_a_model(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import torch\nfrom torch import nn\n\ndef net():\n    torch.manual_seed(0)\n"
        "    return nn.Sequential(nn.Flatten(), nn.Linear(100, 10))\n"
    )
    words = ("rare", "mine.py:net", "--data", "embedded-10x10", "--prepare", "he2023-10x10", "--per-class", "4")
    done = equisep(*words, "--sizes", ",".join(map(str, STEP)), "--json", "--quiet", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    content = json.loads(done.stdout)
    assert content["answer"].startswith("At this model's energies") and content["caution"] == CAUTION
    assert content["alternatives"]["inverse_frequency"] == [1.0] * 5 + [100.0] * 5
    assert content["sizes"] == STEP and len(content["at"]) == 1 and len(content["measured"]["margins"]) == 10
    shown = equisep(*words, "--quiet", folder=tmp_path)
    assert shown.returncode == 0 and "measured" in shown.stdout


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "`equisep rare` was asked about no classes."),
        (("--sizes", "5,x"), "`--sizes` takes numbers with commas between them; found `5,x`."),
        (("--sizes", "5,5", "--data", "mnist"), "it goes with a MODEL"),
        (("fnn",), "`equisep rare fnn` needs the data it was trained on."),
        (("fnn", "--data", "embedded-10x10", "--energies", "5"), "a model has energies of its own"),
    ],
)
def test_the_command_refuses_in_one_sentence(words: tuple[str, ...], told: str, tmp_path: Path) -> None:
    done = equisep("rare", *words, folder=tmp_path)
    assert done.returncode == 2 and told in " ".join(done.stderr.split())
