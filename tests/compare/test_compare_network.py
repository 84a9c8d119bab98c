"""A network beside its prediction: at the exact optimum both agree, and everything read off a model is what it holds."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from closeness import close
from equisep.compare import compare_geometry, compare_network
from equisep.errors import EquisepError, InputError
from equisep.peeled import Problem, solve_problem

E = {"feature_energy": 4.0, "weight_energy": 1.5}
SIZES = [60, 60, 60, 20, 20, 1, 1]


def optimum(sizes: list[int] = SIZES, **energies: float) -> tuple[np.ndarray, np.ndarray]:
    """Classifier rows and class means at the optimum, in a random orientation of more dimensions than it needs."""
    solution = solve_problem(Problem.of_sizes(sizes, **(energies or E)))
    generator = np.random.default_rng(0)
    wide = np.linalg.qr(generator.normal(size=(len(sizes) + 3, len(sizes))))[0]
    return solution.W @ wide.T, solution.H @ wide.T


def same(first, second, tolerance: float = 1e-7) -> None:
    for name in ("minority", "majority", "between"):
        assert abs(getattr(first, name) - getattr(second, name)) <= tolerance


def test_at_the_optimum_the_prediction_is_what_is_measured() -> None:
    found = compare_geometry(*optimum(), SIZES)
    assert found.minority == (3, 4, 5, 6) and found.ratio == 60 and found.notes == ()
    close([found.feature_energy, found.weight_energy, found.mean_energy], [4.0, 1.5, 4.0], rtol=1e-12)
    assert found.predicted is not None and found.predicted.relative_gap <= 1e-9
    same(found.measured.classifiers, found.predicted.geometry.classifiers)
    same(found.measured.features, found.predicted.geometry.features)
    close(found.predicted.geometry.classifier_norms, found.measured.classifier_norms, rtol=1e-7)
    close(found.predicted.geometry.feature_norms, found.measured.feature_norms, rtol=1e-7)
    assert found.predicted.states == ("told apart",) * 5 + ("lost: collapsed",) * 2
    assert found.predicted.thresholds is None  # three groups have no single ratio
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["measured"]["classifiers"]["minority"] is not None


def test_two_sizes_have_a_threshold_whichever_comes_first() -> None:
    for sizes in ([50] * 3 + [5] * 4, [5] * 4 + [50] * 3):
        found = compare_geometry(*optimum(sizes), sizes)
        assert found.predicted is not None and found.predicted.thresholds is not None
        assert (found.predicted.thresholds.majority, found.predicted.thresholds.minority) == (3, 4)
        close(found.measured.classifiers.minority, found.predicted.geometry.classifiers.minority, rtol=1e-7)


def test_loss_weights_enter_the_prediction_and_minority_can_be_named() -> None:
    sizes, weights = [40, 40, 10, 10], [1, 1, 4, 4]
    W, H = optimum([1] * 4)
    found = compare_geometry(W, H, sizes, loss_weights=weights, minority=[0, 2, 3])
    assert found.minority == (0, 2, 3) and found.predicted is not None
    close(found.predicted.geometry.classifiers.minority, -1 / 3, rtol=1e-9)  # weighted, the classes are alike
    assert compare_geometry(W, H, sizes).predicted.geometry.classifiers.minority > -0.3


def test_centering_undoes_a_shift_of_all_vectors() -> None:
    W, H = optimum()
    shift = np.random.default_rng(1).normal(size=(2, W.shape[1]))
    plain = compare_geometry(W, H, SIZES, feature_energy=5.0, centered=True)
    moved_energy = 5.0 + float(np.square(H + shift[1]).sum() - np.square(H).sum()) / len(H)
    moved = compare_geometry(W + shift[0], H + shift[1], SIZES, feature_energy=moved_energy, centered=True)
    close([moved.feature_energy, moved.weight_energy], [plain.feature_energy, plain.weight_energy], rtol=1e-9)
    same(moved.measured.classifiers, plain.measured.classifiers)
    same(moved.measured.features, plain.measured.features)
    uncentered = compare_geometry(W + shift[0], H + shift[1], SIZES, feature_energy=moved_energy)
    assert uncentered.feature_energy == pytest.approx(moved_energy, rel=1e-12)
    assert abs(uncentered.measured.features.minority - plain.measured.features.minority) > 0.05


def test_spread_within_classes_counts_as_energy() -> None:
    found = compare_geometry(*optimum(), SIZES, feature_energy=7.0)
    close([found.feature_energy, found.mean_energy], [7.0, 4.0], rtol=1e-12)
    assert found.predicted.geometry.feature_norms[0] > found.measured.feature_norms[0]


def test_a_class_that_is_absent_has_no_weight_and_no_features() -> None:
    sizes = [30, 30, 30, 0, 0]
    W, H = optimum([30, 30, 30, 1, 1])
    H[3:] = np.nan
    found = compare_geometry(W, H, sizes)
    assert found.ratio is None and found.minority == (3, 4)
    assert [note.code for note in found.notes] == ["absent-classes"]
    assert found.measured.feature_norms[3:] == (None, None) and found.measured.features.minority is None
    close(found.feature_energy, float(np.square(H[:3]).sum()) / 5, rtol=1e-12)
    assert found.predicted.geometry.feature_norms[3:] == (0.0, 0.0)
    assert found.predicted.geometry.features.minority is None  # the direction of zero
    close(found.predicted.geometry.classifiers.minority, 1.0, rtol=1e-9)


def test_a_prediction_that_is_not_proven_is_not_made() -> None:
    found = compare_geometry(1e4 * np.eye(3), 1e4 * np.eye(3), [5, 5, 1])
    assert found.predicted is None
    assert [note.code for note in found.notes] == ["one-minority-class", "no-prediction"]
    assert "duality gap" in found.notes[1].text
    assert found.measured.classifiers.majority == 0.0


def test_equal_sizes_have_no_minority() -> None:
    found = compare_geometry(*optimum([7] * 4), [7] * 4)
    assert found.minority == () and found.measured.classifiers.minority is None
    assert [note.code for note in found.notes] == ["no-minority"]
    close(found.measured.classifiers.majority, -1 / 3, rtol=1e-9)


def test_the_minority_is_at_most_half_of_the_largest_or_named_and_the_rule_is_recorded() -> None:
    """130 against 116 … 129 samples are no minority; nine of ten classes were called one."""
    sizes = [130, 129, 117, 66, 65, 8]
    W, H = optimum(sizes)
    found = compare_geometry(W, H, sizes)
    assert found.minority == (4, 5) and found.minority_rule == "at most half of the largest size"
    named = compare_geometry(W, H, sizes, minority=[3, 5])
    assert named.minority == (3, 5) and named.minority_rule == "named"
    near = compare_geometry(*optimum([10, 9, 8, 6]), [10, 9, 8, 6])
    assert near.minority == () and near.notes[0].code == "no-minority"


def test_words_are_of_the_measured_network_first() -> None:
    """A network that has not told its small classes apart is not called fine because the optimum would be."""
    sizes = [60, 60, 60, 20, 20, 20]
    W, H = optimum(sizes)
    at_best = compare_geometry(W, H, sizes)
    assert at_best.lost == () and set(at_best.states) == {"told apart"} == set(at_best.predicted.states)
    close(at_best.margins, at_best.predicted.margins, rtol=1e-6)
    H[3:] = H[3:].mean(axis=0) + 1e-3 * H[3:]
    found = compare_geometry(W, H, sizes)
    assert found.predicted.states[3:] == ("told apart",) * 3
    assert found.measured.features.minority > 0.99 and [note.code for note in found.notes] == ["minority-nearer"]
    H[3:] = -H[3:]
    worse = compare_geometry(W, H, sizes)
    assert worse.states == ("told apart",) * 3 + ("lost",) * 3 and worse.to_dict()["lost"] == [3, 4, 5]


BAD = {
    "not matrices": (
        np.eye(3)[0],
        np.eye(3),
        [1, 1, 1],
        {},
        "must be two matrices K × p; found shapes (3,) and (3, 3)",
    ),
    "shapes differ": (np.eye(3), np.eye(2), [1, 1, 1], {}, "found shapes (3, 3) and (2, 2)"),
    "NaN rows": (np.full((3, 3), np.nan), np.eye(3), [1, 1, 1], {}, "found 9 NaN or Inf in the classifiers"),
    "no means at all": (np.eye(3), np.full((3, 3), np.nan), [1, 1, 1], {}, "infinite, or NaN throughout"),
    "zero rows": (np.zeros((3, 3)), np.eye(3), [1, 1, 1], {}, "The classifiers must not all be zero"),
    "sizes too few": (np.eye(3), np.eye(3), [1, 1], {}, "must be 3 numbers, one per class; found 2"),
    "a negative size": (np.eye(3), np.eye(3), [1, 1, -1], {}, "size of class 2 must be a whole number"),
    "one class present": (np.eye(3), np.eye(3), [5, 0, 0], {}, "needs at least 2 classes; found 1"),
    "no such minority": (np.eye(3), np.eye(3), [1, 1, 1], {"minority": [3]}, "must be one of 3; found 3"),
    "energy of nothing": (np.eye(3), np.eye(3), [1, 1, 1], {"feature_energy": 0}, "`feature_energy` must be a finite"),
    "a zero weight": (np.eye(3), np.eye(3), [1, 1, 1], {"loss_weights": [1, 0, 1]}, "loss weight of class 1 must be"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_matrices_are_one_sentence(case: str) -> None:
    W, H, sizes, options, sentence = BAD[case]
    with pytest.raises(InputError) as caught:
        compare_geometry(W, H, sizes, **options)
    assert sentence in str(caught.value)


class Small(nn.Module):
    """Two linear layers of K outputs, the first of which is no classifier, and BatchNorm and dropout to be left alone."""

    def __init__(self, *, bias: bool = False, softmax: bool = False) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first = nn.Linear(5, 4)
        self.norm = nn.BatchNorm1d(4)
        self.drop = nn.Dropout(0.5)
        self.relu = nn.ReLU()
        self.head = nn.Linear(4, 4, bias=bias)
        self.softmax = softmax

    def forward(self, x: Tensor) -> Tensor:
        out = self.head(self.relu(self.drop(self.norm(self.first(x)))))
        return out.log_softmax(dim=1) if self.softmax else out


def data(sizes: tuple[int, ...] = (30, 30, 10, 10), seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    y = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
    return torch.randn(len(y), 5, generator=generator) + 2 * torch.eye(5)[y], y


def test_a_model_is_read_as_it_stands_and_left_so() -> None:
    model, (x, y) = Small().train(), data()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    state = torch.get_rng_state()
    found = compare_network(model, (x, y), data(seed=1))
    assert model.training and torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())
    model.eval()
    with torch.no_grad():
        h = model.relu(model.norm(model.first(x))).double()
        logits, other = model(x), model(data(seed=1)[0])
    assert found.classifier == "head" and found.sizes == (30, 30, 10, 10) and found.minority == (2, 3)
    means = torch.stack([h[y == k].mean(dim=0) for k in range(4)]).numpy()
    energy = np.mean([float(h[y == k].square().sum(dim=1).mean()) for k in range(4)])
    by_hand = compare_geometry(
        model.head.weight.detach().double().numpy(), means, (30, 30, 10, 10), feature_energy=energy
    )
    # the network's float32 in other batches differs in its last digits
    close(found.feature_energy, energy, rtol=1e-6)
    close(found.measured.classifiers.minority, by_hand.measured.classifiers.minority, rtol=1e-12)
    close(found.measured.features.between, by_hand.measured.features.between, rtol=1e-6)
    close(found.measured.feature_norms, by_hand.measured.feature_norms, rtol=1e-6)
    assert found.accuracy == tuple(float((logits[y == k].argmax(dim=1) == k).double().mean()) for k in range(4))
    assert found.test_accuracy == tuple(float((other[y == k].argmax(dim=1) == k).double().mean()) for k in range(4))
    assert found.notes == ()
    for k in range(4):
        mine = logits[y == k].double()
        others = mine.clone()
        others[:, k] = -torch.inf
        close(found.margins[k], float((mine[:, k] - others.amax(dim=1)).mean()), rtol=1e-5)
        assert found.states[k] == ("told apart" if found.margins[k] > 0 else "lost")


def test_batches_do_not_matter_and_the_reading_does() -> None:
    model, (x, y) = Small(), data()
    whole = compare_network(model, (x, y))
    pieces = compare_network(model, [(x[i : i + 7], y[i : i + 7]) for i in range(0, 80, 7)])
    close(pieces.feature_energy, whole.feature_energy, rtol=1e-6)
    close(pieces.measured.feature_norms, whole.measured.feature_norms, rtol=1e-6)
    assert pieces.accuracy == whole.accuracy
    assert compare_network(model, [(x, y)], reading="mixed").feature_energy != whole.feature_energy
    assert whole.reading == "eval"
    with pytest.warns(FutureWarning, match='`reading="mixed"`'):
        assert compare_network(model, [(x, y)], mode="batch").reading == "mixed"


def test_batches_that_are_not_class_mixed_are_refused_as_mixed_and_read_as_drawn() -> None:
    torch.manual_seed(0)
    x, y = torch.randn(200, 6), torch.arange(200) // 100
    model = nn.Sequential(nn.Linear(6, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, 2))
    parts = [(x[start : start + 50], y[start : start + 50]) for start in range(0, 200, 50)]
    with pytest.raises(EquisepError, match="needs class-mixed batches"):
        compare_network(model, parts, reading="mixed")
    assert compare_network(model, parts, reading="drawn").reading == "drawn"


def test_batches_are_read_as_measure_reads_them() -> None:
    """A column that the model does not take is left out with a Note; it was refused."""
    model, (x, y) = Small(), data()
    whole = compare_network(model, (x, y))
    batches = [{"x": x[i::4], "idx": torch.arange(20), "labels": y[i::4]} for i in range(4)]
    found = compare_network(model, batches, batches)
    assert [note.code for note in found.notes] == ["unused-inputs"]
    close(found.feature_energy, whole.feature_energy, rtol=1e-6)
    assert found.accuracy == whole.accuracy == found.test_accuracy


def test_a_stream_is_read_once() -> None:
    model, (x, y) = Small(), data()
    found = compare_network(model, ((x[i::4], y[i::4]) for i in range(4)))
    assert found.sizes == (30, 30, 10, 10)


def test_sizes_the_network_was_trained_on_can_be_told() -> None:
    x, y = data((10, 10, 10, 10))
    found = compare_network(Small(), (x, y), sizes=[100, 100, 5, 5])
    assert found.sizes == (100, 100, 5, 5) and found.minority == (2, 3) and found.ratio == 20
    lacking = compare_network(Small(), (x[y < 3], y[y < 3]), sizes=[100, 100, 5, 5])
    assert [note.code for note in lacking.notes] == ["unseen-classes"] and lacking.accuracy[3] is None
    assert lacking.margins[3] is None and lacking.states[3] is None


def test_notes_on_what_the_model_does_not_know() -> None:
    found = compare_network(Small(bias=True, softmax=True), data())
    assert [note.code for note in found.notes] == ["classifier-not-last", "bias"]


def test_the_classifier_can_be_named() -> None:
    assert compare_network(Small(), data(), classifier="head").classifier == "head"
    first = compare_network(Small(), data(), classifier="first")
    assert first.classifier == "first" and first.notes[0].code == "classifier-not-last"


class Broken(nn.Module):
    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind, self.body, self.head = kind, nn.Linear(5, 3), nn.Linear(5, 4)

    def forward(self, x: Tensor) -> object:
        if self.kind == "raises":
            raise RuntimeError("no such luck")
        if self.kind == "tokens":
            return self.head(x[:, None, :].expand(-1, 2, -1)).mean(dim=1)
        if self.kind == "no head":
            return self.body(x) @ torch.ones(3, 4)
        if self.kind == "nan":
            return self.head(x / 0)
        return {"raises": None, "text": "a string", "one": self.head(x)[:, :1]}[self.kind]


NETWORKS = {
    "not a module": ("model", data(), {}, "is read from a torch.nn.Module; found str"),
    "raises": (Broken("raises"), data(), {}, "`Broken` could not run batch 0 of the training data"),
    "no scores": (Broken("text"), data(), {}, "one row of class scores per sample, 80 × K"),
    "one score": (Broken("one"), data(), {}, "found shape"),
    "no linear layer": (Broken("no head"), data(), {}, "calls no nn.Linear with 4 outputs"),
    "tokens": (Broken("tokens"), data(), {}, "it was given shape (80, 2, 5) for 80 samples"),
    "NaN": (
        Broken("nan"),
        data(),
        {},
        "Site `head:in` gives 400 NaN or Inf among 400 numbers at batch 0 of the training data",
    ),
    "no such layer": (Small(), data(), {"classifier": "hed"}, "Did you mean `head`?"),
    "too few outputs": (Broken("tokens"), data(), {"classifier": "body"}, "`body` has 3 outputs, `Broken` 4"),
    "labels beyond": (Small(), data((5, 5, 5, 5, 5)), {}, "Labels must lie in 0 … 3 (`Small` has 4 outputs)"),
    "no data": (Small(), [], {}, "The training data hold no batch"),
}


@pytest.mark.parametrize("case", NETWORKS)
def test_bad_networks_are_one_sentence(case: str) -> None:
    model, samples, options, sentence = NETWORKS[case]
    if len(samples) == 2 and len(samples[1]) == 80:
        samples = [samples]  # one batch of all
    with pytest.raises(EquisepError) as caught:
        compare_network(model, samples, **options)
    assert sentence in str(caught.value)
