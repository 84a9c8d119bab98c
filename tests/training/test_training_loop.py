"""The training loop does what a loop written by hand does, to the bit."""

import inspect
import math
import re
from itertools import chain

import pytest
import torch
from torch import Tensor, nn

from equisep.errors import DivergenceError, EquisepError, FeatureError, InputError, NumericalError
from equisep.models import Fnn
from equisep.training import Recipe, train
from training.small_loop import data, equal, fresh


def by_hand(model: nn.Module, recipe: Recipe) -> tuple[list[float], list[float]]:
    """The same training, written out with torch.optim, MultiStepLR and slices of a permutation."""
    x, y = data()
    options = {"lr": recipe.rate, "weight_decay": recipe.weight_decay, "fused": True}
    optimizer: torch.optim.Optimizer
    if recipe.optimizer == "adam":
        optimizer = torch.optim.Adam(model.parameters(), **options)
    else:
        momentum = 0.9 if recipe.optimizer == "momentum" else 0
        optimizer = torch.optim.SGD(model.parameters(), momentum=momentum, **options)
    order = torch.Generator(device="cpu")
    order.manual_seed(recipe.seed)
    model.train()
    losses, accuracies = [], []
    for epoch in range(recipe.epochs):
        if epoch == recipe.epochs // 3:
            optimizer.param_groups[0]["lr"] = recipe.rate * 0.1
        if epoch == 2 * recipe.epochs // 3:
            optimizer.param_groups[0]["lr"] = recipe.rate * 0.1**2
        permutation = torch.randperm(len(y), generator=order)
        total, hits = 0.0, 0
        for start in range(0, len(y), recipe.batch_size):
            chosen = permutation[start : start + recipe.batch_size]
            model.zero_grad()
            scores = model(x[chosen])
            loss = nn.CrossEntropyLoss()(scores, y[chosen])
            loss.backward()
            optimizer.step()
            total += loss.item() * len(chosen)
            hits += int((scores.argmax(1) == y[chosen]).sum())
        losses.append(total / len(y))
        accuracies.append(hits / len(y))
    return losses, accuracies


@pytest.mark.parametrize(("name", "rate"), [("sgd", 0.1), ("momentum", 0.05), ("adam", 3e-3)])
def test_training_is_the_loop_written_by_hand_bit_for_bit(name: str, rate: float) -> None:
    recipe = Recipe(optimizer=name, rate=rate, epochs=6, batch_size=32, weight_decay=1e-2, seed=5)  # type: ignore[arg-type]
    ours, theirs = fresh(), fresh()
    history = train(ours, *data(), recipe=recipe)
    losses, accuracies = by_hand(theirs, recipe)
    assert equal(ours, theirs)
    assert not equal(ours, fresh())
    assert history.loss == pytest.approx(losses, rel=1e-5)
    assert history.accuracy == pytest.approx(accuracies)


def test_training_twice_with_one_seed_is_bit_identical_and_another_seed_differs() -> None:
    one, two, other = fresh(), fresh(), fresh()
    histories = [
        train(m, *data(), recipe=Recipe(epochs=3, batch_size=32, seed=s)) for m, s in ((one, 1), (two, 1), (other, 2))
    ]
    assert equal(one, two)
    assert histories[0] == histories[1]
    assert not equal(one, other)


def test_training_does_not_touch_the_global_generator() -> None:
    before = torch.get_rng_state()
    train(fresh(), *data(), recipe=Recipe(epochs=2))
    assert torch.equal(torch.get_rng_state(), before)


def test_the_order_does_not_depend_on_the_global_generator() -> None:
    one, two = fresh(), fresh()
    torch.manual_seed(1)
    train(one, *data(), recipe=Recipe(epochs=2, batch_size=32))
    torch.manual_seed(2)
    train(two, *data(), recipe=Recipe(epochs=2, batch_size=32))
    assert equal(one, two)


def test_every_sample_is_seen_once_an_epoch_the_last_smaller_batch_included() -> None:
    x, y = data()
    x[:, 0] = torch.arange(len(y))
    seen: list[list[int]] = []
    model = fresh()
    model.register_forward_pre_hook(lambda _, args: seen.append(args[0][:, 0].int().tolist()))
    train(model, x, y, recipe=Recipe(epochs=2, batch_size=32))
    assert [len(batch) for batch in seen] == [32, 32, 6] * 2
    assert sorted(chain(*seen[:3])) == sorted(chain(*seen[3:])) == list(range(70))
    assert seen[0] != seen[3]


def test_weight_decay_is_coupled() -> None:
    """With plain SGD and no gradient of the loss a weight w becomes w − rate·decay·w; AdamW would not see the factor."""

    class Constant(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(3))

        def forward(self, x: Tensor) -> Tensor:
            return (self.weight * 0).expand(len(x), 3)

    model = Constant()
    train(model, *data(), recipe=Recipe(optimizer="sgd", rate=0.1, epochs=1, batch_size=70, weight_decay=0.5))
    assert model.weight.tolist() == pytest.approx([0.95] * 3)
    model = Constant()
    train(model, *data(), recipe=Recipe(optimizer="adam", rate=0.1, epochs=1, batch_size=70, weight_decay=0.5))
    # Adam divides the coupled decay by its own size: a first step of the full rate, where AdamW would take 0.05 of it
    assert model.weight.tolist() == pytest.approx([0.9] * 3)


def test_a_network_learns() -> None:
    history = train(fresh(), *data(), recipe=Recipe(rate=0.03, epochs=40, batch_size=32))
    assert history.loss[-1] < 0.5 * history.loss[0]
    assert history.accuracy[-1] > 0.9
    assert len(history.loss) == len(history.accuracy) == 40


def test_the_model_is_left_in_training_mode() -> None:
    model = fresh().eval()
    train(model, *data(), recipe=Recipe(epochs=1))
    assert model.training


def test_no_epoch_changes_no_weight() -> None:
    model = fresh()
    assert train(model, *data(), recipe=Recipe(epochs=0)).loss == ()
    assert equal(model, fresh())


def test_progress_is_told_after_every_epoch() -> None:
    told: list[tuple[str, int, int | None]] = []
    train(fresh(), *data(), recipe=Recipe(epochs=3), progress=lambda *args: told.append(args))
    assert told == [("training", 1, 3), ("training", 2, 3), ("training", 3, 3)]


def test_divergence_is_a_numerical_error_with_rate_and_epoch() -> None:
    model = Fnn(3, width=8, inputs=6, classes=3, norm=False)
    with pytest.raises(
        NumericalError,
        match=r"^Training with sgd at rate 1e\+30 diverged: the loss of epoch \d is (nan|inf)\. Lower the rate\.$",
    ) as caught:
        train(model, *data(), recipe=Recipe(optimizer="sgd", rate=1e30, epochs=9))
    assert caught.value.exit_code == 3
    assert isinstance(caught.value, DivergenceError) and f"epoch {caught.value.epoch} " in str(caught.value)


def test_a_last_step_that_goes_wrong_is_divergence_too() -> None:
    """Losses are those before each step, so that the last one says nothing of the weights that are left."""
    model, told = nn.Sequential(nn.Linear(6, 3)), []
    x, y = data()
    with pytest.raises(DivergenceError) as caught:
        train(
            model, 1e5 * x, y, recipe=Recipe("sgd", 3e38, epochs=1, batch_size=70), after_epoch=told.append
        )  # fmt: skip
    assert str(caught.value) == (
        "Training with sgd at rate 3e+38 diverged: `0.weight` is not finite after epoch 1. Lower the rate."
    )
    assert caught.value.epoch == 1 and told == [0]


def test_training_works_where_gradients_are_off() -> None:
    one, two = fresh(), fresh()
    with torch.no_grad():
        history = train(one, *data(), recipe=Recipe(epochs=2))
        assert not torch.is_grad_enabled()
    assert history == train(two, *data(), recipe=Recipe(epochs=2)) and equal(one, two)


def test_memory_that_runs_out_is_told() -> None:
    def short(*_: object) -> None:
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 4000 bytes.")

    model = fresh()
    model.register_forward_pre_hook(short)
    with pytest.raises(NumericalError) as caught:
        train(model, *data(), recipe=Recipe(batch_size=16))
    assert str(caught.value) == (
        "Memory ran out on cpu for one `Fnn` with batches of 16. Use another device, a smaller network or smaller batches."
    )
    assert not isinstance(caught.value, DivergenceError)


def test_samples_that_are_not_finite_are_refused_before_training() -> None:
    x, y = data()
    x[3, 2], x[9, 0] = math.nan, math.inf
    with pytest.raises(FeatureError, match=r"^The samples hold 2 numbers that are NaN or infinite\. Clean them before"):
        train(fresh(), x, y)


def test_samples_of_another_type_than_the_weights_are_told_with_the_cure() -> None:
    """Torch speaks of mat1 and mat2."""
    x, y = data()
    words = (
        r"has weights of torch.float64, the samples are torch.float32: .* Pass `x.to\(torch.float64\)`, or `model.to\("
    )
    with pytest.raises(InputError, match=words):
        train(fresh().double(), x.float(), y)


def test_samples_and_labels_must_be_as_many() -> None:
    x, y = data()
    unchecked = inspect.unwrap(train)  # the shape check of these tests would refuse it first
    with pytest.raises(InputError, match="one label per sample and at least one sample; found 70 and 69"):
        unchecked(fresh(), x, y[:-1])
    with pytest.raises(InputError, match="found 0 and 0"):
        train(fresh(), x[:0], y[:0])


@pytest.mark.parametrize("recipe", [5, 0, {"epochs": 5}])
def test_what_is_no_recipe_is_refused_in_one_sentence(recipe: object) -> None:
    unchecked = inspect.unwrap(train)
    with pytest.raises(InputError) as caught:
        unchecked(fresh(), *data(), recipe=recipe)
    assert str(caught.value) == (
        f"`recipe` is an `equisep.training.Recipe`, as `Recipe(epochs=100, rate=1e-3)`; found {recipe!r}."
    )


@pytest.mark.parametrize("batch_size", [69, 23, 3, 1])
def test_a_batch_of_one_sample_is_refused_where_batchnorm_would_fail(batch_size: int) -> None:
    with pytest.raises(InputError, match=f"70 samples in batches of {batch_size} leave a last batch of one"):
        train(fresh(), *data(), recipe=Recipe(epochs=1, batch_size=batch_size))


def test_a_batch_of_one_sample_is_fine_without_batchnorm() -> None:
    model = Fnn(2, width=4, inputs=6, classes=3, norm=False)
    assert len(train(model, *data(), recipe=Recipe(epochs=1, batch_size=1)).loss) == 1


@pytest.mark.parametrize(
    ("x", "y", "sentence"),
    [
        (torch.randn(8, 3), torch.arange(8), "Labels must lie in 0 … 1 (`Fnn` has 2 outputs)"),
        (torch.randn(8, 3), torch.zeros(8), "`train` takes one integer label per sample; found torch.float32"),
        (torch.randn(8, 3), torch.zeros(8, device="meta", dtype=torch.int64), "y on meta. Move them to one device."),
    ],
)
def test_what_cannot_be_trained_on_is_refused_in_one_sentence(x: Tensor, y: Tensor, sentence: str) -> None:
    with pytest.raises(EquisepError, match=re.escape(sentence)):
        train(Fnn(3, width=4, inputs=3, classes=2), x, y, recipe=Recipe(epochs=1))
