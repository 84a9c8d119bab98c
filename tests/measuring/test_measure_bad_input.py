"""Bad input, one sentence each: what was asked, what was found with the numbers, what to do."""

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from measured_by_hand import batches, codes, network, note, samples
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from equisep.errors import DataError, FeatureError, InputError, LabelError, ModelError, SiteError
from equisep.labels import names_of_classes
from equisep.measuring import measure
from equisep.results import Profile

X, Y = samples()
ways = pytest.mark.parametrize("memory", [None, 0], ids=["buffered", "streamed"])


def sentence(error: type[Exception], *args: object, **options: object) -> str:
    """The message of the error that measuring raises."""
    with pytest.raises(error) as caught:
        measure(network(), *args, **options)  # type: ignore[arg-type]
    assert type(caught.value) is error
    return str(caught.value)


# --- an empty loader


@ways
@pytest.mark.parametrize(
    "empty",
    [
        [],
        iter([]),
        DataLoader(TensorDataset(X[:0], Y[:0])),
        TensorDataset(X[:0], Y[:0]),
        (X[:0], Y[:0]),
        [(X[:0], Y[:0])],
    ],
    ids=["list", "iterator", "loader", "dataset", "pair", "empty batch"],
)
def test_an_empty_loader(empty: object, memory: int | None) -> None:
    wanted = "The training data hold no batch. Check the loader: an empty one has nothing to measure."
    assert sentence(DataError, empty, memory=memory) == wanted


@ways
def test_an_empty_test_loader(memory: int | None) -> None:
    wanted = "The test data hold no batch. Check the loader: an empty one has nothing to measure."
    assert sentence(DataError, (X, Y), [], memory=memory) == wanted


# --- one class only


@ways
def test_one_class_only(memory: int | None) -> None:
    data = batches((X, torch.full_like(Y, 3)))
    wanted = "`measure` needs at least 2 classes; all 120 labels are 3. Check the labels."
    assert sentence(LabelError, data, memory=memory) == wanted


@ways
def test_one_class_only_in_the_test_data_leaves_the_test_numbers_out(memory: int | None) -> None:
    profile = measure(network(), batches((X, Y)), batches((X[Y == 2], Y[Y == 2])), memory=memory)
    assert profile.curve("fuzziness_test") == profile.curve("cdnv_test") == (None,) * 4
    assert all(0 <= value <= 1 for value in profile.curve("ncc_test"))
    assert note(profile, "absent-test").startswith("3 of 4 classes (0, 1, 3) have no sample in the test data")


# --- labels outside the range, or floats


@ways
def test_labels_above_the_range(memory: int | None) -> None:
    y = Y.clone()
    y[30] = 7
    assert sentence(LabelError, batches((X, y)), memory=memory) == (
        "Labels must lie in 0 … 3 (`Fnn` has 4 outputs); batch 1 of the training data holds 0 … 7, 1 of 25 outside. "
        "Pass `classes=8`, or check the labels."
    )


@ways
def test_labels_below_the_range(memory: int | None) -> None:
    y = Y.clone()
    y[5] = -1
    assert sentence(LabelError, batches((X, y)), memory=memory) == (
        "Labels must lie in 0 … 3 (`Fnn` has 4 outputs); batch 0 of the training data holds -1 … 3, 1 of 25 outside. "
        "Check the labels."
    )


def test_labels_outside_the_classes_that_the_user_named() -> None:
    found = sentence(LabelError, batches((X, Y)), classes=3)
    assert found.startswith("Labels must lie in 0 … 2 (`classes=3`); batch 0 of the training data holds 0 … 3")


def test_labels_outside_the_range_in_the_test_data() -> None:
    found = sentence(LabelError, (X, Y), batches((X, Y + 1)))
    assert found.startswith(
        "Labels must lie in 0 … 3 (`Fnn` has 4 outputs); the first batch of the test data holds 1 … 4"
    )


@ways
def test_labels_outside_the_range_late_in_the_test_data(memory: int | None) -> None:
    y = Y.clone()
    y[-1] = 9
    found = sentence(LabelError, (X, Y), batches((X, y)), memory=memory)
    assert "; batch 4 of the test data holds 0 … 9, 1 of 20 outside." in found


@ways
def test_labels_as_floats(memory: int | None) -> None:
    assert sentence(LabelError, batches((X, Y.double())), memory=memory) == (
        f"Batch 0 of the training data: Class labels are integers; found float64 values such as {float(Y[0])}. "
        "Convert class numbers with `y.long()`; regression targets are no classes."
    )


def test_labels_as_floats_in_a_pair_of_arrays() -> None:
    found = sentence(LabelError, (X.numpy(), Y.float().numpy()))
    assert found.startswith("Class labels are integers; found float32 values such as")


# --- targets that are no classes


def test_targets_that_are_multi_label_rows() -> None:
    rows = torch.zeros(120, 4)
    rows[:, 0] = 1
    rows[:50, 2] = 1
    assert sentence(LabelError, (X, rows)) == (
        "Targets of shape (120, 4) are neither class indices nor one-hot rows: 50 of 120 rows do not hold exactly one 1. "
        "Multi-label and soft targets are no classes; pass one class index per sample."
    )


def test_targets_that_are_soft() -> None:
    soft = torch.full((120, 4), 0.25)
    assert "25 of 25 rows do not hold exactly one 1" in sentence(LabelError, batches((X, soft)), memory=0)


def test_targets_that_are_images() -> None:
    assert sentence(LabelError, batches((X, torch.zeros(120, 4, 4)))) == (
        "Batch 0 of the training data: Class labels are one integer a sample; found targets of shape (25, 4, 4). "
        "Pass a vector of class indices."
    )


def test_targets_that_are_regression_values() -> None:
    assert "regression targets are no classes" in sentence(LabelError, batches((X, torch.randn(120))))


def test_targets_that_are_words() -> None:
    names = np.array(["cat", "dog"])[Y % 2]
    wanted = (
        "Class labels are integers; found words such as 'cat'. Number them with "
        "`names, y = np.unique(y, return_inverse=True)`."
    )
    assert sentence(LabelError, (X, names)) == wanted
    assert sentence(LabelError, [(X[:2], ["cat", "dog"])]) == f"Batch 0 of the training data: {wanted}"


# --- NaN or Inf in inputs or activations


@ways
@pytest.mark.parametrize("mode", ["eval", "mixed"])
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_nan_or_inf_in_the_inputs(bad: float, mode: str, memory: int | None) -> None:
    x = X.clone()
    x[60, :3] = bad
    assert sentence(FeatureError, batches((x, Y)), memory=memory, reading=mode) == (
        "Site `input` gives 3 NaN or Inf among 200 numbers at batch 2 of the training data. Check the inputs and the weights."
    )


@ways
def test_nan_in_the_first_batch_is_found_too(memory: int | None) -> None:
    x = X.clone()
    x[0, 0] = float("nan")
    assert "Site `input` gives 1 NaN or Inf among 200 numbers at batch 0" in sentence(
        FeatureError, batches((x, Y)), memory=memory
    )


@ways
def test_nan_in_an_activation(memory: int | None) -> None:
    model = network()
    with torch.no_grad():
        model.blocks[1].linear.bias[2] = float("nan")
    with pytest.raises(FeatureError) as caught:
        measure(model, batches((X, Y)), memory=memory)
    assert str(caught.value) == (
        "Site `blocks.1` gives 25 NaN or Inf among 175 numbers at batch 0 of the training data. Check the inputs and the weights."
    )


@ways
def test_nan_in_the_test_data(memory: int | None) -> None:
    x = X.clone()
    x[-1, 0] = float("nan")
    found = sentence(FeatureError, batches((X, Y)), batches((x, Y)), memory=memory)
    assert "Site `input` gives 1 NaN or Inf among 160 numbers at batch 4 of the test data" in found


# --- a site that does not exist, or is never reached


def test_a_site_that_does_not_exist() -> None:
    found = sentence(SiteError, (X, Y), sites=["blocks.2.rele"])
    assert found.startswith("No module `blocks.2.rele` in `Fnn`. Did you mean `blocks.2.relu`")
    assert found.endswith("`equisep sites` lists all 14.")


class Unused(nn.Module):
    """Declares an activation that its forward pass never calls, as much real code does."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(8, 6)
        self.act = nn.ReLU()
        self.spare = nn.ReLU()
        self.head = nn.Linear(6, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.act(self.first(x)))


def test_a_site_that_is_never_reached() -> None:
    with pytest.raises(SiteError) as caught:
        measure(Unused(), (X, Y), sites=["act", "spare"])
    assert str(caught.value) == (
        "Site `spare` was never reached: the forward pass of `Unused` does not call it. "
        "It calls 1 of the 2 sites asked for; name others."
    )


def test_an_automatic_choice_leaves_out_what_is_never_reached_with_a_note() -> None:
    profile = measure(Unused(), (X, Y))
    assert [site.name for site in profile.sites] == ["input", "act"]
    assert note(profile, "unreached") == (
        "1 of 2 sites found in the module tree are never called and were left out: `spare`."
    )
    assert "unreached" not in codes(measure(Unused(), (X, Y), sites=["act"]))


def test_a_site_that_later_batches_do_not_reach() -> None:
    class Fickle(Unused):
        def forward(self, x: Tensor) -> Tensor:
            h = self.first(x)
            return self.head(self.act(h) if len(x) != 20 else h)

    with pytest.raises(
        SiteError, match=r"Site `act` was not reached at batch 4 of the training data, though the first"
    ):
        measure(Fickle(), batches((X, Y)), sites=["first", "act"])


def test_a_site_that_later_batches_reach_more_often() -> None:
    class Eager(Unused):
        def forward(self, x: Tensor) -> Tensor:
            h = self.act(self.first(x))
            return self.head(h if len(x) != 20 else self.act(h))

    with pytest.raises(SiteError, match=r"Site `act:2` appeared only at batch 4 of the training data"):
        measure(Eager(), batches((X, Y)), sites=["act"])


# --- devices


def test_a_model_on_another_device_than_the_data() -> None:
    data = [(x.to("meta"), y) for x, y in batches((X, Y))]
    wanted = "The training data are on meta, the model on cpu. Move one of them, or pass `device='meta'`."
    assert sentence(InputError, data) == wanted
    assert sentence(InputError, batches((X, Y)), data).startswith("The test data are on meta, the model on cpu.")


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has the device that should be missing")
@pytest.mark.parametrize("device", ["cuda", "cuda:3", torch.device("cuda")])
def test_a_device_that_this_machine_has_not(device: str | torch.device) -> None:
    model = network()
    with pytest.raises(InputError) as caught:
        measure(model, (X, Y), device=device)
    assert str(caught.value).startswith(f"`measure` was asked for device `{device}`, which cannot be used here: ")
    assert str(caught.value).endswith("Pass a device that this machine has, such as `device='cpu'`.")
    assert "\n" not in str(caught.value)
    assert {p.device.type for p in model.parameters()} == {"cpu"}


def test_a_device_that_does_not_exist_anywhere() -> None:
    found = sentence(InputError, (X, Y), device="quantum")
    assert found.startswith("`measure` was asked for device `quantum`, which cannot be used here: ")


def test_a_device_that_would_swallow_the_weights() -> None:
    model = network()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    with pytest.raises(InputError, match="`measure` was asked for device `meta`, which cannot be used here"):
        measure(model, (X, Y), device="meta")
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_the_device_where_the_model_is_already() -> None:
    here = measure(network(), (X, Y))
    for device in ("cpu", torch.device("cpu")):
        assert measure(network(), (X, Y), device=device).sites == here.sites


# --- data that cannot be read twice: see test_measure_data.py; options


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("model", "options", "found"),
    [
        (len, {}, "`measure` needs a torch.nn.Module; found builtin_function_or_method."),
        (network(), {"reading": "evel"}, "No reading `evel`. Did you mean `eval`? Known: eval, mixed, drawn."),
        (
            network(),
            {"intervals": "boot"},
            "No intervals `boot`. Did you mean `bootstrap`? Known: auto, bootstrap, jackknife, none.",
        ),
        (
            network(),
            {"weighting": "classes"},
            "No weighting `classes`. Did you mean `class`? Known: sample, class, mixed.",
        ),
    ],
)
def test_only_modules_can_be_measured_and_words_must_be_known(model: Any, options: dict[str, Any], found: str) -> None:
    with pytest.raises(InputError, match=f"^{re.escape(found)}$"):
        measure(model, (X, Y), **options)


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({"metrics": ["fuzzines"]}, "No metric `fuzzines`. Did you mean `fuzziness`"),
        ({"epsilon": 1.0}, "`epsilon` is a share of samples, 0 ≤ ε < 1; found 1.0."),
        ({"epsilon": -0.1}, "`epsilon` is a share of samples, 0 ≤ ε < 1; found -0.1."),
        ({"tol": 1.5}, "`tol` is relative to the largest singular value: 0 ≤ tol < 1; found 1.5."),
        ({"resamples": 1}, "`resamples` is a number of resamples, 2 or more; found 1."),
        ({"level": 1.0}, "`level` is 0 < level < 1; found 1.0."),
        ({"memory": -1}, "`memory` is a number of bytes, 0 or more; found -1."),
        ({"coordinates": -1}, "`coordinates` is a number of samples, 0 or more; found -1."),
        ({"classes": 10**30}, "at least 2 classes (and fewer than 2³¹); found classes=1000000"),
        ({"level": math.nan}, "`level` is 0 < level < 1; found nan."),
    ],
)
def test_wrong_options_are_refused_before_any_work(options: dict[str, object], found: str) -> None:
    class Untouched:
        def __iter__(self) -> None:
            raise AssertionError("the data were read")

    assert found in sentence(InputError, Untouched(), **options)


def test_batch_mode_refuses_batches_of_one_sample() -> None:
    wanted = (
        "The reading `mixed` needs at least 2 samples per batch; batch {} of the {} data holds 1. "
        "Use another batch size, or `drop_last=True`."
    )
    data = batches((X, Y), 17)  # 120 = 7 · 17 + 1
    assert sentence(InputError, data, reading="mixed") == wanted.format(7, "training")
    assert sentence(InputError, batches((X, Y), 1), reading="mixed") == wanted.format(0, "training")
    assert sentence(InputError, (X, Y), data, reading="mixed") == wanted.format(7, "test")
    assert measure(network(), data).counts == (30, 30, 30, 30)


@ways
def test_an_error_in_the_test_data_keeps_the_profile_of_the_training_data(memory: int | None) -> None:
    wrong = [*batches((X, Y)), (torch.full_like(X[:5], torch.nan), Y[:5])]
    with pytest.raises(FeatureError, match="of the test data") as caught:
        measure(network(), batches((X, Y)), wrong, memory=memory)
    kept = caught.value.profile
    assert kept is not None
    alone = measure(network(), batches((X, Y)), memory=memory)
    assert kept.curve() == alone.curve()
    assert kept.law == alone.law
    assert kept.counts_test is None


def test_tensors_inside_other_things_are_not_looked_for() -> None:
    nested = [({"graph": {"nodes": X}}, Y)]
    words = "Batch 0 of the training data holds labels, and no tensor for the model but `graph`, a dict. Let it hold tensors"
    assert sentence(DataError, nested).startswith(words)


def test_a_forward_pass_without_modules_says_so() -> None:
    """Its sentence spoke of a site that nobody had asked for."""

    class Bare(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weights = nn.ParameterList([nn.Parameter(torch.eye(8)), nn.Parameter(torch.randn(8, 4))])

        def forward(self, x: Tensor) -> Tensor:
            return torch.tanh(x @ self.weights[0]) @ self.weights[1]

    with pytest.raises(SiteError, match=r"The forward pass of `Bare` calls none of its modules .* such as `weights`"):
        measure(Bare(), (X, Y))


def test_class_names_must_name_every_class() -> None:
    found = sentence(InputError, (X, Y), class_names=["a", "b"])
    assert found == "`class_names` needs one name for each of the 4 classes; found 2."
    found = sentence(InputError, (X, Y), class_names="abcd")
    assert found == "`class_names` needs one name for each of the 4 classes, as a list; found the word 'abcd'."
    found = sentence(InputError, (X, Y), class_names=set("abcd"))
    assert (
        found == "`class_names` needs one name for each of the 4 classes, as a list; found a set, which has no order."
    )
    found = sentence(InputError, (X, Y), class_names={0: "a", 1: "b", 2: "c", 7: "d"})
    assert found == "`class_names` needs one name for each of the 4 classes, 0 to 3; found a mapping of 0, 1, 2, 7."


@pytest.mark.parametrize(
    "told",
    [{3: "d", 1: "b", 0: "a", 2: "c"}, {"d": 3, "b": 1, "a": 0, "c": 2}, {"3": "d", "0": "a", "1": "b", "2": "c"}],
)
def test_class_names_by_number_stand_in_the_order_of_the_numbers(told: dict[object, object]) -> None:
    """Hugging Face's `id2label`, also as its JSON has it, and torchvision's `class_to_idx`: their keys were taken as names."""
    assert names_of_classes(told, 4) == ("a", "b", "c", "d")


def test_classes_of_one_name_are_noted() -> None:
    """Not refused: the class names of ImageNet repeat."""
    found = measure(network(), (X, Y), class_names=["crane", "owl", "crane", "owl"])
    assert [note.text for note in found.notes if note.code == "same-class-name"] == [
        "Classes 0, 2 are all called `crane`: only their numbers tell them apart. Pass other `class_names`.",
        "Classes 1, 3 are all called `owl`: only their numbers tell them apart. Pass other `class_names`.",
    ]
    assert "same-class-name" not in {note.code for note in measure(network(), (X, Y), class_names=[*"abcd"]).notes}


def test_labels_as_a_plain_list_are_taken_and_words_refused_as_words() -> None:
    given = measure(network(), (X, Y.tolist()))
    assert given.curve() == measure(network(), (X, Y)).curve()
    assert "found words such as '" in sentence(LabelError, (X, ["ab"[int(k) % 2] for k in Y]))


def test_a_name_of_data_is_no_data() -> None:
    found = sentence(DataError, "mnist")
    assert found.startswith("The training data are the name `mnist`. Load them first: `equisep.load_data('mnist')`")


def test_bytes_are_told_to_be_made_floats() -> None:
    found = sentence(ModelError, ((10 * X).to(torch.uint8), Y))
    assert found.endswith("pass them as the model was trained on them, `x.float() / 255` for bytes, say.")


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({"metrics": [1]}, "No metric `1`. Known: fuzziness"),
        ({"metrics": b"x"}, "`metrics` takes names among fuzziness"),
        ({"classifier": 0}, "`classifier` is the name of a linear layer; found 0."),
        ({"name": 5}, "`name` is what the profile calls the model; found 5."),
        ({"resamples": math.inf}, "`resamples` is a number of resamples, 2 or more; found inf."),
        ({"resamples": math.nan}, "`resamples` is a number of resamples, 2 or more; found nan."),
        ({"device": 3.5}, "device `3.5`"),
    ],
)
def test_numbers_and_names_of_other_kinds_get_a_sentence(options: dict[str, Any], found: str) -> None:
    assert found in sentence(InputError, (X, Y), **options)


@pytest.mark.usefixtures("as_users_run_it")
def test_numbers_of_numpy_are_taken_and_saved(tmp_path: Path) -> None:
    options = {"tol": np.float32(0.5), "classes": np.int64(4), "epsilon": np.float32(0.5), "seed": np.int32(1)}
    saved = measure(network(), (X, Y), **options).save(tmp_path / "p.json")
    profile = Profile.load(saved)
    assert profile.settings["tol"] == 0.5 and profile.classes == 4
