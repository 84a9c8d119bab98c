"""What cannot be trained is refused in one sentence, before any training starts."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from trained_alone import SMALL, clouds, member, mixed

import equisep.training.ensemble.chunks as chunks
from equisep.errors import EquisepError, FeatureError, InputError, LabelError, ModelError
from equisep.training import Member, Recipe, Shape, Stage, Watch, train_ensemble

NARROW = Shape((8, 6), inputs=6, classes=3)
BARE = Shape((8, 7), inputs=6, classes=3, norm=False)


@pytest.fixture(autouse=True)
def nothing_trains(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: Any) -> None:
        pytest.fail("training began")

    monkeypatch.setattr(chunks, "train_chunk", never)


def refused(kind: type[EquisepError], sentence: str, call: Callable[[], Any]) -> None:
    with pytest.raises(kind) as caught:
        call()
    assert str(caught.value) == sentence
    assert sentence.endswith(".") and "\n" not in sentence
    assert caught.value.exit_code == 2


def trained(members: list[Member] | None = None, data: Any = None, **options: Any) -> Any:
    return train_ensemble(mixed() if members is None else members, *(clouds() if data is None else data), **options)


@pytest.mark.parametrize(
    ("members", "options", "sentence"),
    [
        ([], {}, "An ensemble needs at least one member; found none."),
        (
            [member(), member(shape=NARROW)],
            {},
            "Members of one ensemble share a shape; member 0 is Fnn-3 (6 inputs, widths [8, 7], 3 classes), member 1 is "
            "Fnn-3 (6 inputs, widths [8, 6], 3 classes). Train one ensemble for each shape.",
        ),
        (
            [member(), member(), member(shape=BARE)],
            {},
            "Members of one ensemble share a shape; member 0 is Fnn-3 (6 inputs, widths [8, 7], 3 classes), member 2 is "
            "Fnn-3 (6 inputs, widths [8, 7], 3 classes, no BatchNorm). Train one ensemble for each shape.",
        ),
        (
            [member(), member(batch_size=64)],
            {},
            "Members of one ensemble share `batch_size`; member 0 has 32, member 1 has 64. Train one ensemble for each.",
        ),
        (
            [member(), member(epochs=9)],
            {},
            "Members of one ensemble share `epochs`; member 0 has 3, member 1 has 9. Train one ensemble for each.",
        ),
        (
            [member(class_weights=(1.0, 2.0, 3.0)), member(class_weights=(1.0, 2.0, 3.0), weighted_mean=True)],
            {},
            "Members of one ensemble share `weighted_mean`; found both. Train one ensemble for each.",
        ),
        (
            [member(class_weights=(1.0, 2.0, 3.0))],
            {"sizes": [20, 0, 20]},
            "`class_weights` gives class 1 the weight 2, but no sample has that label. Leave it at 1.",
        ),
        (
            [member(batch_size=69)],
            {},
            "70 samples in batches of 69 leave a last batch of one, which BatchNorm cannot normalize. "
            "Change `batch_size` or the number of samples.",
        ),
        (
            [member(batch_size=1)],
            {},
            "70 samples in batches of 1 leave a last batch of one, which BatchNorm cannot normalize. "
            "Change `batch_size` or the number of samples.",
        ),
        (
            [member(batch_size=20)],
            {"per_class": 7},
            "21 samples in batches of 20 leave a last batch of one, which BatchNorm cannot normalize. "
            "Change `batch_size` or the number of samples.",
        ),
        (
            None,
            {"stages": [Stage(epochs=2, trains=(3, 4))]},
            "A stage trains layer 4 of a network of 3. Layers are 1 to 3.",
        ),
        (
            None,
            {"stages": [Stage(epochs=2), Stage(epochs=2, trains=(0,))]},
            "A stage trains layer 0 of a network of 3. Layers are 1 to 3.",
        ),
        (
            None,
            {"stages": [Stage(epochs=2, leaky=True)]},
            "The first stage cannot be `leaky`: there is no optimizer before it to go on with.",
        ),
        (None, {"starts": [SMALL.build(0)]}, "`starts` has 1 networks for 5 members. Give one for each."),
        (
            None,
            {"watch": Watch(epochs=(0, 4))},
            "A reading is asked at epoch 4, but training ends at 3. Watch earlier epochs.",
        ),
        (
            None,
            {"watch": Watch(epochs=(9,)), "stages": [Stage(epochs=4), Stage(epochs=4)]},
            "A reading is asked at epoch 9, but training ends at 8. Watch earlier epochs.",
        ),
        (None, {"engine": "graph"}, "No engine `graph`. Did you mean `graphs`? Known: auto, eager, graphs, kernel."),
        (
            None,
            {"engine": "graphs"},
            "`engine='graphs'` replays captured CUDA graphs, but the device is cpu. Use `engine='auto'`.",
        ),
        (
            None,
            {"engine": "kernel"},
            "`engine='kernel'` trains by a CUDA kernel of its own, but the device is cpu. Use `engine='auto'`.",
        ),
        (None, {"dtype": torch.float16}, "Networks train side by side in float32 or float64; found torch.float16."),
        (None, {"chunk": 0}, "`chunk` was 0; at least one member has to train at a time."),
        (None, {"workers": 0}, "`workers` was 0; at least one thread has to train."),
        (None, {"per_class": 0}, "`per_class` or `sizes` asks for no sample at all. Ask for at least one."),
        (None, {"sizes": [0, 0, 0]}, "`per_class` or `sizes` asks for no sample at all. Ask for at least one."),
        (
            None,
            {"per_class": 99},
            "`draw` was asked for 99 samples of class 0; there are 24. Ask for at most 24, or load a larger data set.",
        ),
        (None, {"per_class": 2, "sizes": [1, 1, 1]}, "`draw` got both `per_class` and `sizes`. Give one of them."),
        (None, {"sizes": [1, 1]}, "`sizes` has 2 numbers for 3 classes. Give one for each class."),
        (
            None,
            {"test": clouds(1)},
            "BatchNorm cannot normalize the one test sample in the reading `mixed`. Give more, or read in `eval`.",
        ),
        (
            None,
            {"test": clouds(9, inputs=5)},
            "The members take 6 inputs; the test samples have 5. Set `inputs` of their shape.",
        ),
    ],
)
def test_what_does_not_fit_together_is_refused(
    members: list[Member] | None, options: dict[str, Any], sentence: str
) -> None:
    refused(InputError, sentence, lambda: trained(members, **options))


@pytest.mark.parametrize("n", [0, 3])
def test_there_has_to_be_a_sample_and_a_label_for_each(n: int) -> None:
    refused(
        InputError,
        f"An ensemble needs one label per sample and at least one sample; found {n} and 0.",
        lambda: trained(data=(torch.zeros(n, 6), torch.zeros(0, dtype=torch.int64))),
    )


def test_samples_and_labels_are_refused_with_what_is_wrong() -> None:
    x, y = clouds()
    bad = x.clone()
    bad[3, 2], bad[9, 1], bad[9, 2] = float("nan"), float("inf"), float("-inf")
    for kind, data, sentence in [
        (FeatureError, (bad, y), "The samples hold 3 numbers that are NaN or infinite. Clean them before training."),
        (InputError, (x[:, :5], y), "The members take 6 inputs; the samples have 5. Set `inputs` of their shape."),
        (LabelError, (x, y + 1), "Labels must lie in 0 … 2 (the members have 3 classes); found 1 … 3, 23 of 70 outside. "
                                 "If they are counted from 1, subtract 1."),
        (LabelError, (x, y - 1), "Labels must lie in 0 … 2 (the members have 3 classes); found -1 … 1, 24 of 70 outside. "
                                 "Check the labels."),
        (LabelError, (x, y.double()), "An ensemble takes one integer label per sample; found torch.float64 of shape (70,)."),
        (LabelError, (x, y.unsqueeze(1)), "An ensemble takes one integer label per sample; found torch.int64 of shape (70, 1)."),
        (InputError, (x, y[:-1]), "An ensemble needs one label per sample and at least one sample; found 70 and 69."),
    ]:  # fmt: skip
        refused(kind, sentence, lambda data=data: trained(data=data))
        told = sentence.replace("The samples hold", "The test samples hold").replace("the samples", "the test samples")
        refused(kind, told, lambda data=data: trained(test=data))


def test_starts_of_another_shape_are_refused_with_the_first_difference() -> None:
    good = [SMALL.build(seed) for seed in range(5)]
    wrong = BARE.build(0)
    refused(
        ModelError,
        "The start of member 3 has another shape than Fnn-3 (6 inputs, widths [8, 7], 3 classes): `blocks.0.norm.weight` is "
        "not there, where (8,) is needed. Give weights of that shape.",
        lambda: trained(starts=[*good[:3], wrong, good[4]]),
    )
    refused(
        ModelError,
        "The start of member 0 has another shape than Fnn-3 (6 inputs, widths [8, 7], 3 classes): `blocks.1.linear.weight` "
        "is (6, 8), where (7, 8) is needed. Give weights of that shape.",
        lambda: trained(starts=[NARROW.build(0).state_dict(), *good[1:]]),
    )
    refused(
        ModelError,
        "The start of member 4 has another shape than Fnn-3 (6 inputs, widths [8, 7], 3 classes): `extra` is (2,), where "
        "nothing is needed. Give weights of that shape.",
        lambda: trained(starts=[*good[:4], {**good[4].state_dict(), "extra": torch.zeros(2)}]),
    )


@pytest.mark.parametrize("device", ["cud", "cuda:99", "hip:0", "meta"])
def test_a_device_that_is_not_there_is_refused(device: str) -> None:
    with pytest.raises(
        InputError, match=rf"^`train_ensemble` was asked for device `{device}`, which cannot be used here: "
    ):
        trained(device=device)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Recipe(rate=0.0), "`rate` must be a positive number; found 0.0."),
        (lambda: Recipe(rate=float("nan")), "`rate` must be a positive number; found nan."),
        (lambda: Recipe(rate=-1.0), "`rate` must be a positive number; found -1.0."),
        (lambda: Member(data_seed=-1), "`data_seed` is a whole number from 0 on; found -1."),
        (lambda: Member(label_noise=1.5), "`label_noise` is a share of the labels, from 0 to 1; found 1.5."),
        (
            lambda: Member(class_weights=(1.0,) * 11),
            "`class_weights` has 11 numbers for 10 classes. Give one for each class.",
        ),
        (
            lambda: Member(shape=SMALL, class_weights=(1.0, -1.0, 2.0)),
            "`class_weights` are numbers from 0 on; found [1.0, -1.0, 2.0].",
        ),
        (
            lambda: Member(shape=SMALL, class_weights=(1.0, float("nan"), 2.0)),
            "`class_weights` are numbers from 0 on; found [1.0, nan, 2.0].",
        ),
        (
            lambda: Member(shape=SMALL, class_weights=(0.0, 0.0, 0.0)),
            "`class_weights` are all 0, so that there is nothing to learn. Give one above 0.",
        ),
        (
            lambda: Member(logit_adjustment=(0.0, 1.0)),
            "`logit_adjustment` has 2 numbers for 10 classes. Give one for each class.",
        ),
        (
            lambda: Member(shape=SMALL, logit_adjustment=(0.0, float("inf"), 1.0)),
            "`logit_adjustment` are finite numbers; found [0.0, inf, 1.0].",
        ),
        (
            lambda: Stage(trains=()),
            "A stage needs a layer that learns; `trains` is empty. Leave it out to train all.",
        ),
        (
            lambda: Stage(epochs=-1),
            "Training needs epochs ≥ 0 and batch_size ≥ 1; found epochs=-1, batch_size=128.",
        ),
        (lambda: Shape.deep(0), "A network needs a depth of at least 1; found 0."),
        (
            lambda: Shape((3, 0)),
            "A network needs widths and inputs of at least 1 and 2 classes; found widths=[3, 0], inputs=100, classes=10.",
        ),
        (
            lambda: Shape(classes=1),
            "A network needs widths and inputs of at least 1 and 2 classes; found "
            "widths=[100, 100, 100, 100, 100, 100, 100], inputs=100, classes=1.",
        ),
        (lambda: Watch(epochs=(3, -2)), "Epochs are counted from 0; found -2."),
        (lambda: Watch(batch_size=1), "BatchNorm cannot normalize batches of 1. Read batches of 2 or more."),
        (lambda: Watch(sites=False, test="sites"), "Test sites are read against those of training data. Leave `sites` on."),
        (lambda: Watch(reading=()), "`readings` takes at least one of eval, mixed, drawn; found ()."),
    ],
)  # fmt: skip
def test_records_refuse_what_makes_no_sense(make: Callable[[], Any], sentence: str) -> None:
    refused(InputError, sentence, make)


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (
            lambda: Member(Recipe(optimizer="adamw")),
            "Networks train side by side with sgd, momentum, adam; found `adamw`. Use one of these, or `train`, which takes "
            "any of torch.optim.",
        ),
        (
            lambda: Stage(frozen_norm="holds"),
            "No rule `holds` for frozen BatchNorm. Did you mean `hold`? Known: follow, hold.",
        ),
        (
            lambda: Watch(reading=("mixed", "evil")),
            "No reading `evil`. Did you mean `eval`? Known: eval, mixed, drawn.",
        ),
        (
            lambda: Watch(test="site"),
            "Test data are read for `accuracy` or `sites`; found `site`. Did you mean `sites`?",
        ),
        (lambda: Member(data_seed=1.5), "`data_seed` is a whole number from 0 on; found 1.5."),
        (lambda: Member(data_seed=True), "`data_seed` is a whole number from 0 on; found True."),
        (
            lambda: train_ensemble([Member()], torch.zeros(20, 100).numpy(), torch.arange(20) % 2),
            "An ensemble trains on tensors; found ndarray and Tensor. Use `torch.as_tensor`.",
        ),
    ],
)
def test_words_that_are_not_known_are_refused_with_those_that_are(make: Callable[[], Any], sentence: str) -> None:
    with pytest.raises(EquisepError, match=f"^{re.escape(sentence)}$"):
        make()


@pytest.mark.usefixtures("as_users_run_it")
def test_milestones_may_be_a_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    listed = Member(Recipe(epochs=1, milestones=[0.5]), Shape((4,), inputs=2, classes=2))  # type: ignore[arg-type]
    assert len(train_ensemble([listed], torch.randn(9, 2), torch.arange(9) % 2)) == 1


def test_a_weight_for_a_class_that_only_noise_makes_is_fine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Class 1 has no sample of its own, but noisy labels fall on it."""
    monkeypatch.undo()
    noisy = member(label_noise=1.0, class_weights=(1.0, 2.0, 1.0))
    assert len(trained([noisy], sizes=[20, 0, 20], watch=Watch(sites=False))) == 1
    with pytest.raises(InputError, match=re.escape("no sample has that label")):
        trained([noisy, member(class_weights=(1.0, 2.0, 1.0))], sizes=[20, 0, 20])
