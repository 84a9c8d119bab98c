"""What `train` does beside the plain loop: class weights, augmented batches, readings between epochs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from equisep.errors import InputError
from equisep.models import Fnn, build
from equisep.training import CROP_FLIP_ROTATE, Augmentation, Member, Recipe, Shape, train, train_ensemble
from training.small_loop import data, equal, fresh

RECIPE = Recipe(rate=3e-3, epochs=3, batch_size=32, seed=5)


# class weights


def test_class_weights_by_hand() -> None:
    """The sum of weighted losses over a batch, divided by its size: a loop written out, to the bit."""
    x, y = data()
    weights = [1.0, 0.5, 3.0]
    ours, theirs = fresh(), fresh()
    history = train(ours, x, y, recipe=RECIPE, class_weights=weights)
    optimizer = torch.optim.Adam(theirs.parameters(), lr=RECIPE.rate, weight_decay=RECIPE.weight_decay, fused=True)
    order = torch.Generator().manual_seed(RECIPE.seed)
    losses = []
    for epoch in range(RECIPE.epochs):
        optimizer.param_groups[0]["lr"] = RECIPE.rate_at(epoch)
        total = 0.0
        for batch in torch.randperm(len(y), generator=order).split(RECIPE.batch_size):
            scores = theirs(x[batch])
            loss = nn.functional.cross_entropy(scores, y[batch], weight=torch.tensor(weights), reduction="sum") / len(
                batch
            )
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += float(loss.detach()) * len(batch)
        losses.append(total / len(y))
    assert equal(ours, theirs) and not equal(ours, fresh())
    assert history.loss == pytest.approx(losses, rel=1e-6)


def test_class_weights_of_one_change_nothing() -> None:
    plain, weighted, doubled = fresh(), fresh(), fresh()
    train(plain, *data(), recipe=RECIPE)
    train(weighted, *data(), recipe=RECIPE, class_weights=(1.0, 1.0, 1.0))
    train(doubled, *data(), recipe=RECIPE, class_weights=(1.0, 1.0, 2.0))
    for a, b in zip(plain.parameters(), weighted.parameters(), strict=True):
        assert torch.allclose(a, b, rtol=1e-4, atol=1e-6)
    assert not equal(plain, doubled)


def test_a_class_of_weight_zero_teaches_nothing() -> None:
    """Where BatchNorm does not let samples see each other, leaving a class out of the loss is as if its scores were free."""
    x, y = data(64)
    others = x.clone()
    others[y == 2] += 100.0
    one, two = (Fnn(3, width=8, inputs=6, classes=3, norm=False) for _ in range(2))
    two.load_state_dict(one.state_dict())
    recipe = Recipe(optimizer="sgd", rate=0.01, epochs=2, batch_size=64)
    train(one, x, y, recipe=recipe, class_weights=(1.0, 1.0, 0.0))
    train(two, others, y, recipe=recipe, class_weights=(1.0, 1.0, 0.0))
    for a, b in zip(one.parameters(), two.parameters(), strict=True):
        assert torch.allclose(a, b, rtol=1e-5, atol=1e-7)


def test_a_member_of_an_ensemble_weighs_classes_the_same_way() -> None:
    """One rule for a network alone and side by side, so that a figure may train either way."""
    x, y = data()
    x = x.double()
    shape = Shape((8, 8), inputs=6, classes=3)
    weights = (1.0, 0.5, 3.0)
    network = shape.build(RECIPE.seed).double()
    train(network, x, y, recipe=RECIPE, class_weights=weights)
    ensemble = train_ensemble([Member(RECIPE, shape, class_weights=weights)], x, y, dtype=torch.float64)
    for name, value in ensemble.weights(0).items():
        # biases before BatchNorm have no gradient but rounding, which Adam makes as large as any other
        if value.is_floating_point() and not name.endswith(("linear.bias", "running_mean")):
            assert torch.allclose(network.state_dict()[name], value, rtol=1e-6, atol=1e-9), name


def test_a_member_of_an_ensemble_has_the_same_weighted_mean_and_adjustment() -> None:
    x, y = data()
    x = x.double()
    shape = Shape((8, 8), inputs=6, classes=3)
    weights, added = (1.0, 0.5, 3.0), (-0.2, -1.5, -3.0)
    network = shape.build(RECIPE.seed).double()
    history = train(network, x, y, recipe=RECIPE, class_weights=weights, weighted_mean=True, logit_adjustment=added)
    one = Member(RECIPE, shape, class_weights=weights, weighted_mean=True, logit_adjustment=added)
    ensemble = train_ensemble([one], x, y, dtype=torch.float64)
    for name, value in ensemble.weights(0).items():
        if value.is_floating_point() and not name.endswith(("linear.bias", "running_mean")):
            assert torch.allclose(network.state_dict()[name], value, rtol=1e-6, atol=1e-9), name
    assert history.accuracy == pytest.approx(ensemble.accuracy[0].tolist())


# augmentation


def test_every_batch_is_augmented_by_a_generator_of_its_own() -> None:
    x, y = data()
    seen: list[Tensor] = []
    drawn: list[float] = []

    def shift(batch: Tensor, generator: torch.Generator) -> Tensor:
        assert generator.device.type == "cpu"
        drawn.append(float(torch.rand((), generator=generator)))
        return batch + 10.0

    model = fresh()
    model.register_forward_pre_hook(lambda _, args: seen.append(args[0]))
    before = torch.get_rng_state()
    train(model, x, y, recipe=RECIPE, augment=shift)
    assert torch.equal(torch.get_rng_state(), before)
    assert len(drawn) == len(set(drawn)) == 3 * 3  # three batches in each of three epochs, each with its own
    assert torch.cat(seen[:3]).sort(dim=0).values.equal((x + 10.0).sort(dim=0).values)
    again: list[float] = list(drawn)
    drawn.clear()
    train(fresh(), x, y, recipe=RECIPE, augment=shift)
    assert drawn == again


def test_augmentation_leaves_the_order_of_batches_as_it_is() -> None:
    """What changes nothing but draws numbers trains the same network, to the bit."""

    def idle(batch: Tensor, generator: torch.Generator) -> Tensor:
        torch.rand(1000, generator=generator)
        return batch

    plain, idled = fresh(), fresh()
    assert train(plain, *data(), recipe=RECIPE) == train(idled, *data(), recipe=RECIPE, augment=idle)
    assert equal(plain, idled)


def test_moved_images_train_another_network_the_same_every_time() -> None:
    generator = torch.Generator().manual_seed(0)
    images, y = torch.randn(30, 1, 10, 10, generator=generator), torch.arange(30) % 3
    models = [build("fnn", seed=0, depth=3, width=8, inputs=100, classes=3) for _ in range(3)]
    for model, way in zip(models, (CROP_FLIP_ROTATE, CROP_FLIP_ROTATE, None), strict=True):
        train(model, images, y, recipe=RECIPE, augment=way)
    assert equal(models[0], models[1]) and not equal(models[0], models[2])


def drawn(rows: int) -> Callable[[int, torch.Generator], Tensor]:
    """A `draw` that gives so many rows too many."""
    return lambda count, chance: torch.rand(count + rows, 1, generator=chance)


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("augment", "sentence"),
    [
        (
            "crop",
            r"`augment` is a function of samples and a generator, or an `equisep\.training\.Augmentation`.*found 'crop'",
        ),
        (Augmentation, r"`augment` is a function of samples and a generator.*found <class"),
        (
            lambda x, _: x[1:],
            r"`augment` gave a tensor of shape \(31, 6\) for a batch of 32 samples\. Return a tensor with",
        ),
        (lambda *_: None, r"`augment` gave `NoneType` for a batch of 32 samples\."),
        (Augmentation(drawn(0), lambda x, _: x[1:]), r"`augment` gave a tensor of shape \(31, 6\) for a batch of 32"),
        (
            Augmentation(drawn(1), torch.add),
            r"`draw` of an `Augmentation` gave a tensor of shape \(33, 1\) for a batch of 32",
        ),
        (
            Augmentation(lambda *_: torch.rand(()), torch.add),
            r"`draw` of an `Augmentation` gave a tensor of shape \(\) for",
        ),
        (Augmentation(lambda *_: None, torch.add), r"`draw` of an `Augmentation` gave `NoneType` for"),  # type: ignore[arg-type, return-value]
    ],
)
def test_what_is_no_augmentation_or_changes_their_number_is_one_sentence(augment: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        train(fresh(), *data(), recipe=RECIPE, augment=augment)


# readings


def test_after_epoch_is_called_before_the_first_and_after_each() -> None:
    model = fresh()
    told: list[int] = []
    start = {name: value.clone() for name, value in model.state_dict().items()}

    def after(epoch: int) -> None:
        told.append(epoch)
        changed = any(not torch.equal(start[name], value) for name, value in model.state_dict().items())
        assert changed == (epoch > 0)

    train(model, *data(), recipe=RECIPE, after_epoch=after)
    assert told == [0, 1, 2, 3]
    told.clear()
    train(fresh(), *data(), recipe=Recipe(epochs=0), after_epoch=told.append)
    assert told == [0]


def test_a_model_that_is_read_on_the_way_is_trained_as_one_that_is_not() -> None:
    plain, read = fresh(), fresh()

    def reading(epoch: int) -> None:
        read.eval()
        with torch.no_grad():
            read(data()[0])

    assert train(plain, *data(), recipe=RECIPE) == train(read, *data(), recipe=RECIPE, after_epoch=reading)
    assert equal(plain, read) and read.training


def test_a_reader_that_fails_stops_the_training() -> None:
    def fail(epoch: int) -> None:
        if epoch == 2:
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        train(fresh(), *data(), recipe=RECIPE, after_epoch=fail)
