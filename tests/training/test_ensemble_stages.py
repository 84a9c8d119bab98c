"""Stages: frozen layers to the bit, the two rules for their BatchNorm, the leaky optimizer, and given starts."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from torch import Tensor
from trained_alone import alone, clouds, freeze, layers_of, member, mixed, same, start, worst

from equisep.models import Fnn
from equisep.training import Ensemble, Member, Recipe, Shape, Stage, Watch, train_ensemble

PLAIN = Watch(sites=False)
ROUNDING = 1e-11
DEEP = Shape((9, 8, 7, 6, 5), inputs=6, classes=3)
BARE = Shape((9, 8, 7, 6, 5), inputs=6, classes=3, norm=False)
BOTTOM, TOP = (1, 2, 3), (4, 5, 6)


def trained(members: Sequence[Member], *stages: Stage, **options: object) -> Ensemble:
    return train_ensemble(members, *clouds(), stages=stages, dtype=torch.float64, watch=PLAIN, **options)  # type: ignore[arg-type]


def of_layers(weights: dict[str, Tensor], layers: Sequence[int], *, buffers: bool | None = None) -> dict[str, Tensor]:
    """The entries of some layers (numbered from 1): all, or only BatchNorm's statistics, or all but those."""
    names = {number: f"blocks.{number - 1}." if number < 6 else "head." for number in layers}
    kept = {name: value for name, value in weights.items() if name.startswith(tuple(names.values()))}
    statistics = ("running_mean", "running_var", "num_batches_tracked")
    return {name: value for name, value in kept.items() if buffers is None or name.endswith(statistics) is buffers}


def unfused(recipe: Recipe, network: Fnn) -> torch.optim.Optimizer:
    """Torch's fused SGD cannot step parameters with and without momentum in one group; its plain one can."""
    if recipe.optimizer == "adam":
        return torch.optim.Adam(network.parameters(), lr=recipe.rate, weight_decay=recipe.weight_decay)
    momentum = recipe.momentum if recipe.optimizer == "momentum" else 0.0
    return torch.optim.SGD(network.parameters(), lr=recipe.rate, momentum=momentum, weight_decay=recipe.weight_decay)


def leaky_by_hand(one: Member, stages: Sequence[Stage]) -> Fnn:
    """One optimizer for all stages, gradients set to zero instead of dropped."""
    x, y = clouds()
    network, optimizer = start(one), None
    for stage in stages:
        freeze(network, stage)
        recipe = stage.recipe(one.recipe)
        if optimizer is None or not stage.leaky:
            optimizer = unfused(recipe, network)
            network.zero_grad(set_to_none=True)
        order = torch.Generator("cpu").manual_seed(recipe.seed)
        network.train()
        for epoch in range(recipe.epochs):
            for group in optimizer.param_groups:
                group["lr"] = recipe.rate_at(epoch)
            for batch in torch.randperm(len(y), generator=order).split(recipe.batch_size):
                optimizer.zero_grad(set_to_none=False)
                torch.nn.functional.cross_entropy(network(x[batch]), y[batch]).backward()
                optimizer.step()
    return network


@pytest.mark.parametrize("shape", [DEEP, BARE], ids=["norm", "plain"])
@pytest.mark.parametrize("rule", ["follow", "hold"])
@pytest.mark.parametrize("frozen", [BOTTOM, TOP, (2, 5), (6,), (1,)], ids=str)
def test_frozen_parameters_stay_as_they_were_to_the_bit(shape: Shape, rule: str, frozen: tuple[int, ...]) -> None:
    first = Stage(epochs=2)
    second = Stage(epochs=2, trains=tuple(set(range(1, 7)) - set(frozen)), frozen_norm=rule)  # type: ignore[arg-type]
    before, after = trained(mixed(shape), first), trained(mixed(shape), first, second)
    for index in range(5):
        one, two = before.weights(index), after.weights(index)
        assert same(of_layers(two, frozen, buffers=False), of_layers(one, frozen, buffers=False))
        for layer in set(range(1, 7)) - set(frozen):
            name = "head.weight" if layer == 6 else f"blocks.{layer - 1}.linear.weight"
            assert not torch.equal(two[name], one[name])


@pytest.mark.parametrize("shape", [DEEP, BARE], ids=["norm", "plain"])
@pytest.mark.parametrize("rule", ["follow", "hold"])
def test_stages_are_successive_calls_of_train(shape: Shape, rule: str) -> None:
    """Bottom half at a constant rate, top half with the usual schedule (he2023 fig. 9), then all again."""
    stages = (
        Stage(epochs=3, trains=BOTTOM, milestones=(), frozen_norm=rule),  # type: ignore[arg-type]
        Stage(epochs=3, trains=TOP, frozen_norm=rule),  # type: ignore[arg-type]
        Stage(epochs=2),
    )
    found = trained(mixed(shape), *stages)
    assert found.loss.shape == (5, 8)
    for index, one in enumerate(mixed(shape)):
        network = alone(one, *clouds(), stages=stages)
        assert worst(found.weights(index), network.state_dict()) < ROUNDING


def test_followed_statistics_go_on_and_held_ones_stay() -> None:
    first = Stage(epochs=1)
    before = trained(mixed(DEEP), first)
    for rule in ("follow", "hold"):
        after = trained(mixed(DEEP), first, Stage(epochs=2, trains=TOP, frozen_norm=rule))  # type: ignore[arg-type]
        for index in range(5):
            one, two = (of_layers(found.weights(index), BOTTOM, buffers=True) for found in (before, after))
            assert same(one, two) is (rule == "hold")
            tracked = {name: int(value) for name, value in two.items() if name.endswith("tracked")}
            assert set(tracked.values()) == {3 if rule == "hold" else 9}  # 3 batches an epoch
            learned = of_layers(after.weights(index), TOP, buffers=True)
            assert {int(value) for name, value in learned.items() if name.endswith("tracked")} == {9}


def test_held_layers_below_the_first_that_learns_do_not_depend_on_the_batch() -> None:
    """With all hidden layers held, training the classifier is logistic regression on fixed features."""
    one = member("sgd", 0.1, shape=DEEP)
    (weights,) = [trained([one], Stage(epochs=2), Stage(epochs=3, trains=(6,), frozen_norm="hold")).weights(0)]
    network = alone(one, *clouds(), stages=[Stage(epochs=2)]).eval()
    x, y = clouds()
    features = network.blocks(x).detach()
    head = Fnn(1, inputs=5, classes=3).to(torch.float64)
    head.head.load_state_dict(network.head.state_dict())
    head = alone(member("sgd", 0.1, shape=Shape((), inputs=5, classes=3)), features, y, network=head)
    assert worst({"weight": weights["head.weight"]}, {"weight": head.head.weight.detach()}) < ROUNDING


@pytest.mark.parametrize("shape", [DEEP, BARE], ids=["norm", "plain"])
def test_a_leaky_stage_goes_on_with_the_optimizer_before_it(shape: Shape) -> None:
    stages = (
        Stage(epochs=2, trains=BOTTOM, milestones=()),
        Stage(epochs=3, trains=TOP, leaky=True),
        Stage(epochs=2, trains=(2, 3, 4), leaky=True),
        Stage(epochs=2, leaky=True),
    )
    found = trained(mixed(shape), *stages)
    for index, one in enumerate(mixed(shape)):
        assert worst(found.weights(index), leaky_by_hand(one, stages).state_dict()) < ROUNDING
    tight = trained(mixed(shape), stages[0], Stage(epochs=3, trains=TOP))
    leaky = trained(mixed(shape), *stages[:2])
    bottom = [of_layers(each.weights(1), BOTTOM, buffers=False) for each in (tight, leaky)]
    assert all(not torch.equal(bottom[0][name], bottom[1][name]) for name in bottom[0])


def test_in_a_leaky_stage_a_frozen_sgd_weight_only_decays() -> None:
    """w becomes w·(1 − rate·decay) at every step: there is no gradient and there are no moments."""
    one = member("sgd", 0.1, shape=DEEP, weight_decay=0.05)
    stages = (Stage(epochs=1, trains=BOTTOM), Stage(epochs=2, trains=TOP, milestones=(), leaky=True))
    before, after = trained([one], stages[0]).weights(0), trained([one], *stages).weights(0)
    decayed = {name: value * (1 - 0.1 * 0.05) ** 6 for name, value in of_layers(before, BOTTOM, buffers=False).items()}
    assert worst(of_layers(after, BOTTOM, buffers=False), decayed) < ROUNDING


def test_members_of_a_leaky_stage_keep_their_own_schedules() -> None:
    """The first stage has one schedule for all, so that they are alike there; the second has each one's own."""
    stages = (
        Stage(epochs=2, trains=BOTTOM, milestones=()),
        Stage(epochs=4, trains=TOP, leaky=True),
    )
    members = [member("adam", 3e-3, shape=DEEP, milestones=own) for own in ((), (0.5,), (0.0,))]
    found = trained(members, *stages)
    for index, one in enumerate(members):
        assert worst(found.weights(index), leaky_by_hand(one, stages).state_dict()) < ROUNDING


def test_a_stage_after_a_leaky_one_begins_with_a_fresh_optimizer() -> None:
    stages = (Stage(epochs=1, trains=BOTTOM), Stage(epochs=1, trains=TOP, leaky=True), Stage(epochs=2, trains=TOP))
    found = trained(mixed(DEEP), *stages)
    for index, one in enumerate(mixed(DEEP)):
        assert worst(found.weights(index), leaky_by_hand(one, stages).state_dict()) < ROUNDING


def test_new_layers_on_top_of_trained_ones() -> None:
    """The first layers of a trained network under new ones, fixed (he2023 fig. S11)."""
    x, y = clouds()
    source = alone(member("adam", 1e-2, shape=DEEP, epochs=5), x, y)
    shape = Shape((9, 8, 7, 4), inputs=6, classes=3)
    members = [member("adam", 3e-3, shape=shape, seed=seed) for seed in (1, 2)]
    starts = []
    for one in members:
        network = start(one)
        for new, old in zip(layers_of(network)[:3], layers_of(source)[:3], strict=True):
            new.load_state_dict(old.state_dict())
        starts.append(network)
    kept = [{name: value.clone() for name, value in network.state_dict().items()} for network in starts]
    stage = Stage(epochs=4, trains=(4, 5))
    found = trained(members, stage, starts=starts)
    by_weights = trained(members, stage, starts=kept)
    for index, one in enumerate(members):
        weights = found.weights(index)
        assert same(starts[index].state_dict(), kept[index])
        assert same(of_layers(weights, BOTTOM, buffers=False), of_layers(kept[0], BOTTOM, buffers=False))
        assert same(weights, by_weights.weights(index))
        network = start(one)
        network.load_state_dict(kept[index])
        assert worst(weights, alone(one, x, y, stages=[stage], network=network).state_dict()) < ROUNDING


def test_one_start_may_serve_all_members() -> None:
    network = start(member(seed=9))
    members = [member(seed=seed) for seed in (0, 1)]
    found = trained(members, starts=[network, network])
    for index, one in enumerate(members):
        fresh = start(member(seed=9))
        assert worst(found.weights(index), alone(one, *clouds(), network=fresh).state_dict()) < ROUNDING


def test_a_stage_of_no_epochs_changes_nothing() -> None:
    plain, padded = trained(mixed(DEEP)), trained(mixed(DEEP), Stage(epochs=0), Stage(epochs=3), Stage(epochs=0))
    assert all(same(padded.weights(index), plain.weights(index)) for index in range(5))


def test_stages_replace_the_length_of_the_recipes() -> None:
    members = [member(epochs=epochs) for epochs in (3, 600)]
    found = trained(members, Stage(epochs=2))
    assert found.loss.shape == (2, 2)
    assert found.stages == (Stage(epochs=2),)
    assert worst(found.weights(0), found.weights(1)) < ROUNDING
