"""What members may differ in: noise in their labels, class weights, samples, schedules; and the shapes they may share."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from trained_alone import SMALL, alone, clouds, gaps, member, mixed, start, worst

from equisep.data import draw, randomize_labels
from equisep.training import Member, Shape, Watch, train_ensemble

PLAIN = Watch(sites=False)
ROUNDING = 1e-11


def weighted_by_hand(one: Member, x: Tensor, y: Tensor) -> nn.Module:
    """A loop of its own with torch's weighted cross-entropy."""
    network, recipe = start(one), one.recipe
    weight = torch.tensor(one.class_weights or (1.0,) * one.shape.classes, dtype=torch.float64)
    optimizer = recipe.make_optimizer(network.parameters())
    order = torch.Generator("cpu").manual_seed(recipe.seed)
    for epoch in range(recipe.epochs):
        for group in optimizer.param_groups:
            group["lr"] = recipe.rate_at(epoch)
        for batch in torch.randperm(len(y), generator=order).split(recipe.batch_size):
            scores = network(x[batch])
            if one.logit_adjustment is not None:
                scores = scores + torch.tensor(one.logit_adjustment, dtype=torch.float64)
            if one.weighted_mean:
                loss = nn.functional.cross_entropy(scores, y[batch], weight=weight)
            else:
                loss = nn.functional.cross_entropy(scores, y[batch], weight=weight, reduction="sum") / len(batch)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return network


def test_noisy_labels_are_those_of_randomize_labels() -> None:
    x, y = clouds()
    settings = [(0.0, 0), (0.3, 0), (0.3, 5), (1.0, 5)]
    members = [member(label_noise=share, data_seed=seed) for share, seed in settings]
    found = train_ensemble(members, x, y, dtype=torch.float64, watch=PLAIN)
    for index, (share, seed) in enumerate(settings):
        noisy = randomize_labels(y, share=share, classes=3, seed=seed)
        network = alone(member(), x, noisy)
        assert worst(found.weights(index), network.state_dict()) < ROUNDING
    assert worst(found.weights(1), found.weights(0)) > 1e-3
    assert worst(found.weights(2), found.weights(1)) > 1e-3


@pytest.mark.parametrize("weighted_mean", [False, True])
def test_class_weights_are_torchs(weighted_mean: bool) -> None:
    x, y = clouds()
    weights = [(1.0, 5.0, 0.2), (0.0, 1.0, 2.0), None]
    members = [
        member(name, rate, class_weights=own, weighted_mean=weighted_mean and own is not None)
        for own in weights
        for name, rate in (("adam", 3e-3), ("sgd", 0.1))
    ]
    found = train_ensemble(members, x, y, dtype=torch.float64, watch=PLAIN)
    for index, one in enumerate(members):
        network = weighted_by_hand(one, x, y)
        assert worst(found.weights(index), network.state_dict()) < ROUNDING
    assert worst(found.weights(4), alone(member(), x, y).state_dict()) < ROUNDING


def test_logit_adjustment_is_torchs_with_a_term_added() -> None:
    x, y = clouds()
    added, weights = (-0.3, -1.6, -2.5), (1.0, 5.0, 0.2)
    members = [
        member(name, rate, logit_adjustment=own, class_weights=weighed)
        for own, weighed in ((added, None), (added, weights), (None, weights), (None, None))
        for name, rate in (("adam", 3e-3), ("sgd", 0.1))
    ]
    found = train_ensemble(members, x, y, dtype=torch.float64, watch=PLAIN)
    for index, one in enumerate(members):
        assert worst(found.weights(index), weighted_by_hand(one, x, y).state_dict()) < ROUNDING
    assert worst(found.weights(0), found.weights(6)) > 1e-3


def test_answers_go_without_the_adjustment() -> None:
    """The loss sees it, the accuracy of the epoch does not."""
    x, y = clouds(64)
    one = member(epochs=1, batch_size=64, logit_adjustment=(50.0, 0.0, 0.0))
    scores = start(one)(x).detach()
    found = train_ensemble([one], x, y, dtype=torch.float64, watch=PLAIN)
    assert found.accuracy[0, 0] == pytest.approx(float((scores.argmax(dim=1) == y).double().mean()))
    expected = nn.functional.cross_entropy(scores + torch.tensor(one.logit_adjustment, dtype=torch.float64), y)
    assert found.loss[0, 0] == pytest.approx(float(expected), rel=1e-9)


@pytest.mark.parametrize("weighted_mean", [False, True])
def test_the_loss_of_a_weighted_member_is_the_one_it_descends(weighted_mean: bool) -> None:
    x, y = clouds(64)
    one = member(epochs=1, batch_size=64, class_weights=(1.0, 5.0, 0.2), weighted_mean=weighted_mean)
    scores = start(one)(x).detach()
    weight = torch.tensor(one.class_weights, dtype=torch.float64)
    total = nn.functional.cross_entropy(scores, y, weight=weight, reduction="sum")
    expected = float(total / (weight[y].sum() if weighted_mean else 64))
    assert train_ensemble([one], x, y, dtype=torch.float64, watch=PLAIN).loss[0, 0] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("sampling", [{"per_class": 12}, {"sizes": [20, 5, 0]}, {"sizes": (2, 30, 11)}], ids=str)
def test_every_member_draws_its_own_samples(sampling: dict[str, object]) -> None:
    x, y = clouds(120)
    seeds = [0, 3, 3, 8]
    members = [
        member(data_seed=seed, label_noise=share) for seed, share in zip(seeds, (0.0, 0.0, 0.4, 0.0), strict=True)
    ]
    found = train_ensemble(members, x, y, dtype=torch.float64, watch=PLAIN, **sampling)  # type: ignore[arg-type]
    for index, one in enumerate(members):
        own = torch.from_numpy(draw(y, seed=one.data_seed, classes=3, **sampling))  # type: ignore[arg-type]
        assert worst(found.weights(index), alone(one, x[own], y[own]).state_dict()) < ROUNDING
    assert worst(found.weights(1), found.weights(0)) > 1e-3


@pytest.mark.parametrize(
    "shape",
    [
        Shape((), inputs=6, classes=3),
        Shape((5,), inputs=6, classes=3),
        Shape((5,), inputs=6, classes=3, norm=False),
        Shape((12, 3, 1, 7), inputs=6, classes=4),
        Shape((12, 3, 7), inputs=6, classes=4, norm=False),
        Shape((8, 7), inputs=6, classes=3, norm=False, activation=False),
    ],
    ids=str,
)
def test_any_shape_of_network(shape: Shape) -> None:
    members = mixed(shape)
    found = train_ensemble(members, *clouds(), dtype=torch.float64, watch=PLAIN)
    for index, one in enumerate(members):
        assert worst(found.weights(index), alone(one, *clouds()).state_dict()) < ROUNDING


def test_the_linear_control_with_batchnorm() -> None:
    """A shift that the next BatchNorm takes out again has a gradient of rounding alone, which Adam blows up.

    The shift of the last hidden layer reaches the classifier and is well defined, and so is all the rest.
    """
    members = mixed(Shape((8, 7), inputs=6, classes=3, activation=False))
    undefined = ("blocks.0.norm.bias", "blocks.1.norm.running_mean")  # the second layer's mean has the shift in it
    found = train_ensemble(members, *clouds(), dtype=torch.float64, watch=PLAIN)
    for index, one in enumerate(members):
        values = gaps(found.weights(index), alone(one, *clouds()).state_dict())
        if one.recipe.optimizer == "adam":
            values = {name: gap for name, gap in values.items() if name not in undefined}
        assert max(values.values()) < ROUNDING


def test_every_member_has_its_own_schedule() -> None:
    schedules = [(), (0.5,), (1 / 3, 2 / 3), (0.0,)]
    members = [
        member(name, rate, epochs=6, milestones=milestones, factor=factor)
        for milestones in schedules
        for name, rate, factor in (("sgd", 0.1, 0.1), ("adam", 3e-3, 0.5))
    ]
    found = train_ensemble(members, *clouds(), dtype=torch.float64, watch=PLAIN)
    for index, one in enumerate(members):
        assert worst(found.weights(index), alone(one, *clouds()).state_dict()) < ROUNDING


def test_whole_batches_and_one_batch_larger_than_the_data() -> None:
    for n, batch_size in ((64, 32), (70, 128), (70, 70), (6, 2)):
        one = member(batch_size=batch_size)
        found = train_ensemble([one], *clouds(n), dtype=torch.float64, watch=PLAIN)
        assert worst(found.weights(0), alone(one, *clouds(n)).state_dict()) < 1e-8


def test_batches_of_one_are_fine_without_batchnorm() -> None:
    one = member(shape=Shape((5,), inputs=6, classes=3, norm=False), batch_size=1, epochs=1)
    found = train_ensemble([one], *clouds(7), dtype=torch.float64, watch=PLAIN)
    assert worst(found.weights(0), alone(one, *clouds(7)).state_dict()) < ROUNDING


def test_shapes_describe_networks_and_themselves() -> None:
    assert str(Shape.deep(8)) == "Fnn-8 (100 inputs, width 100, 10 classes)"
    assert str(Shape((3, 4), norm=False, activation=False)) == (
        "Fnn-3 (100 inputs, widths [3, 4], 10 classes, no BatchNorm, no ReLU)"
    )
    for shape in (SMALL, Shape((4,), inputs=3, classes=2, norm=False), Shape((4, 4), activation=False)):
        network = shape.build(0)
        assert Shape.of(network) == shape
        assert shape.parameters == sum(value.numel() for value in network.parameters())
        assert shape.depth == network.depth == len(shape.layers)
    assert Shape.of(Shape((), inputs=5, classes=4).build(0)) == Shape((), inputs=5, classes=4)
