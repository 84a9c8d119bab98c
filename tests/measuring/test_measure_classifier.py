"""The classifier and the number of classes: found in the model, given by the user, or missing with a Note."""

from typing import Any

import pytest
import torch
from measured_by_hand import batches, codes, network, note, samples
from torch import Tensor, nn

from equisep.errors import InputError, SiteError
from equisep.measuring import measure
from equisep.models import Fnn

PAIR = samples()
DATA = batches(PAIR)


def convolutional() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(1, 3, 3), nn.ReLU(inplace=True), nn.Flatten(), nn.Dropout(), nn.Linear(12, 4))


def test_the_classifier_is_found_behind_flatten_and_dropout() -> None:
    x, y = samples(d=16)
    profile = measure(convolutional(), batches((x.reshape(-1, 1, 4, 4), y)))
    assert [site.name for site in profile.sites] == ["input", "1"]
    assert profile.classifier.name == "4"


def test_the_last_site_must_be_the_one_the_classifier_reads() -> None:
    profile = measure(network(), DATA, sites=["blocks.0", "blocks.1"])
    assert profile.classifier is None
    assert note(profile, "no-classifier") == (
        "The classifier `head` does not read the last site `blocks.1` directly, so NC3 and NC4 do not exist; to have them, "
        "name what it reads, `head:in`, among `sites`."
    )


class Several(nn.Module):
    """A network that returns its class scores among other things."""

    def __init__(self, *, named: bool, second: int = 3) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.named, self.body = named, nn.Sequential(nn.Linear(8, 6), nn.ReLU())
        self.aside, self.head = nn.Linear(6, second), nn.Linear(6, 4)

    def forward(self, x: Tensor) -> Any:
        features = self.body(x)
        aside, scores = self.aside(features), self.head(features)
        return {"features": features, "aside": aside, "out": scores} if self.named else (aside, scores)


@pytest.mark.parametrize("named", [True, False])
def test_scores_among_other_outputs_are_the_only_entry_as_wide_as_the_classes(named: bool) -> None:
    model = Several(named=named)
    profile = measure(model, DATA, DATA, classes=4)
    model.eval()
    with torch.no_grad():
        right = model.head(model.body(PAIR[0])).argmax(dim=1) == PAIR[1]
    assert profile.accuracy_train == profile.accuracy_test == pytest.approx(float(right.double().mean()))
    assert profile.classifier is not None and profile.classifier.name == "head"
    with pytest.raises(
        InputError, match=r"`Several` returns (dict|tuple) \(.*shape \(b, 3\); .*shape \(b, 4\)\), not b × K"
    ):
        measure(model, DATA)


def test_scores_that_do_not_stand_out_are_not_guessed_at() -> None:
    profile = measure(Several(named=False, second=4), DATA, samples(seed=2), classes=4)
    assert profile.accuracy_train is None
    assert "no scores b × 4 of the classes stand out" in note(profile, "no-scores")
    last = profile.findings[-1]
    assert "what the model returns holds no class scores" in last.text and last.next is None


def test_one_logit_for_two_classes_says_what_to_pass_and_to_return() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 6), nn.ReLU(), nn.Linear(6, 1))
    two = PAIR[1] < 2
    data = (PAIR[0][two], PAIR[1][two])
    with pytest.raises(InputError, match=r"returns shape \(b, 1\), not b × K. Pass `classes=2`."):
        measure(model, data)
    assert "as `torch.stack((-z, z), dim=1)`" in note(measure(model, data, classes=2), "no-scores")


def test_a_hidden_layer_as_wide_as_the_classes_is_no_classifier() -> None:
    torch.manual_seed(0)
    model = Fnn(4, width=4, inputs=8, classes=4)
    profile = measure(model, DATA, sites=["blocks.0"])
    assert profile.classifier is None
    assert "no-classifier" in codes(profile)
    assert measure(model, DATA).classifier.name == "head"


def test_a_classifier_that_reads_something_else_than_the_last_site_is_refused() -> None:
    class Scaled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.act = nn.ReLU()
            self.head = nn.Linear(8, 4)

        def forward(self, x: Tensor) -> Tensor:
            return self.head(2 * self.act(x))

    torch.manual_seed(0)
    model = Scaled()
    assert measure(model, DATA).classifier is None
    with pytest.raises(
        InputError, match="classifier `head` does not read the last site `act`: it is given something else"
    ):
        measure(model, DATA, classifier="head")


def test_classifier_must_exist() -> None:
    with pytest.raises(
        SiteError, match=r"The classifier `haed` should be an nn\.Linear; there is no such module\. Did you mean `head`"
    ):
        measure(network(), DATA, classifier="haed")


def test_classifier_must_be_linear() -> None:
    with pytest.raises(SiteError, match=r"The classifier `blocks\.0\.relu` should be an nn\.Linear; it is a ReLU\."):
        measure(network(), DATA, classifier="blocks.0.relu")


def test_classifier_must_fit_the_last_site_and_the_classes() -> None:
    with pytest.raises(InputError) as caught:
        measure(network(), DATA, classifier="blocks.0.linear")
    assert str(caught.value) == (
        "The classifier `blocks.0.linear` maps 8 → 9, but the last site `blocks.2` has 6 features and there are 4 classes."
    )


def test_a_classifier_of_zeros_is_a_note_not_a_number() -> None:
    model = network()
    nn.init.zeros_(model.head.weight)
    profile = measure(model, DATA)
    assert profile.classifier is None
    assert note(profile, "zero-classifier").startswith("A row of the classifier `head` is zero once centered")


def test_k_is_the_width_of_the_output() -> None:
    profile = measure(network(), DATA)
    assert profile.classes == 4
    assert profile.counts == (30, 30, 30, 30)


def test_classes_given_by_the_user_hold_against_the_output() -> None:
    profile = measure(network(), DATA, classes=6)
    assert profile.classes == 6
    assert profile.counts == (30, 30, 30, 30, 0, 0)
    assert profile.accuracy_train is None
    assert profile.classifier is None
    assert profile.curve() == pytest.approx(measure(network(), DATA).curve(), rel=1e-12)


def test_a_model_whose_output_tells_no_classes_needs_them_named() -> None:
    backbone = nn.Sequential(nn.Linear(8, 5), nn.ReLU(), nn.Unflatten(1, (5, 1)))
    with pytest.raises(InputError) as caught:
        measure(backbone, DATA)
    assert str(caught.value) == (
        "`measure` could not tell the number of classes: `Sequential` returns shape (b, 5, 1), not b × K. Pass `classes=K`."
    )
    assert measure(backbone, DATA, classes=4).classes == 4


def test_a_model_that_returns_a_tuple_needs_them_named() -> None:
    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.act = nn.ReLU()

        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            return self.act(x), x

    with pytest.raises(
        InputError, match=r"returns tuple \(shape \(b, 8\); shape \(b, 8\)\), not b × K\. Pass `classes=K`\."
    ):
        measure(Two(), DATA)
    assert measure(Two(), DATA, classes=4).accuracy_train is None


def test_fewer_than_two_classes_are_refused() -> None:
    with pytest.raises(
        InputError, match=r"`measure` needs at least 2 classes \(and fewer than 2³¹\); found classes=1\."
    ):
        measure(network(), DATA, classes=1)


def test_nc3_does_not_exist_where_a_class_is_absent() -> None:
    x, y = samples()
    profile = measure(network(), batches((x[y != 3], y[y != 3])))
    assert profile.classifier.nc3 is None
    assert profile.classifier.nc4 is not None


@pytest.mark.parametrize("memory", [None, 0])
def test_nc4_of_test_samples_whose_class_has_no_training_center(memory: int | None) -> None:
    """The nearest center of such a sample is found among the others, from its own position."""
    x, y = samples(seed=2)
    x = x + 5  # far from the origin: measured from there, the nearest center would be another
    model = network()
    train = batches((x[y != 3], y[y != 3]))
    profile = measure(model, train, batches((x, y)), memory=memory)
    with torch.no_grad():
        h = model.eval().blocks(x).double()
        means = torch.stack([h[y == k].mean(dim=0) for k in range(3)])
        disagree = model(x).argmax(1) != torch.cdist(h, means).argmin(1)
    assert profile.classifier.nc4_test == pytest.approx(float(disagree.double().mean()))
    assert profile.sites[-1].ncc_test == pytest.approx(float((torch.cdist(h, means).argmin(1) == y).double().mean()))
