"""A member of an ensemble is the network it would be alone: weights, order of batches, steps, BatchNorm's buffers."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from trained_alone import SMALL, alone, clouds, fashion, member, mixed, same, start, worst

import equisep.training.ensemble.stepper as order
from equisep.models import Fnn
from equisep.training import Ensemble, Member, Shape, Watch, train, train_ensemble
from equisep.training.ensemble.stepper import Orders

PLAIN = Watch(sites=False)  # reading every site takes longer than training these
ROUNDING = 1e-12
MIDDLE = {"momentum": 0.03, "adam": 3e-4, "sgd": 0.03}  # of the papers' grids of rates
DEEP = Shape.deep(20, width=50)


def copied(network: Fnn) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in network.state_dict().items()}


def ensemble(members: list[Member], **options: object) -> Ensemble:
    return train_ensemble(members, *clouds(), dtype=torch.float64, watch=PLAIN, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("norm", [True, False], ids=["norm", "plain"])
@pytest.mark.parametrize(
    ("depth", "width", "per_class"), [(4, 100, 100), (8, 100, 100), (20, 50, 50)], ids=["4", "8", "20"]
)
def test_a_mixed_ensemble_is_its_members_trained_alone(depth: int, width: int, per_class: int, norm: bool) -> None:
    """‖Δθ‖/‖θ‖ ≤ 1e-8 for every parameter and buffer: fifty epochs of the deepest and of the paper's network, else twenty.

    1000 samples end in a batch of 104, 500 in one of 116.

    Twenty normalized layers at these rates are chaotic for SGD, with or without an ensemble: see the next two tests.
    """
    x, y = fashion(per_class)
    rates = {"momentum": 0.003, "adam": 3e-4, "sgd": 0.001} if depth == 20 and norm else MIDDLE
    shape = Shape.deep(depth, width=width, norm=norm)
    epochs = 50 if depth == 20 or (depth == 8 and norm) else 20
    members = [
        member(name, rate, shape=shape, epochs=epochs, batch_size=128, seed=seed, weight_decay=decay)
        for (name, rate), seed, decay in zip(rates.items(), (1, 2, 1), (1e-3, 5e-4, 5e-4), strict=True)
    ]
    found = train_ensemble(members, x, y, dtype=torch.float64, watch=PLAIN)
    for index, one in enumerate(members):
        network = start(one)
        history = train(network, x, y, recipe=one.recipe)
        assert worst(found.weights(index), network.state_dict()) <= 1e-8
        assert float((found.weights(index)["head.weight"] - start(one).head.weight).detach().norm()) > 1e-2
        assert found.loss[index].tolist() == pytest.approx(history.loss, rel=1e-5)
        assert found.accuracy[index].tolist() == pytest.approx(history.accuracy, abs=1e-6)


def test_where_training_is_chaotic_every_epoch_of_it_is_still_faithful() -> None:
    """From states all along the way, one epoch at the middle rates ends within ‖Δθ‖/‖θ‖ ≤ 1e-8."""
    x, y = fashion(50)
    one = member("sgd", MIDDLE["sgd"], shape=DEEP, epochs=12, batch_size=128, seed=1)
    states: list[dict[str, Tensor]] = [copied(start(one))]
    network = start(one)
    train(network, x, y, recipe=one.recipe, progress=lambda *_: states.append(copied(network)))
    members = [
        member(name, rate, shape=DEEP, epochs=1, batch_size=128, seed=seed)
        for seed, (name, rate) in enumerate([*MIDDLE.items()] * 4)
    ]
    starts = [states[epoch] for epoch in (0, 1, 5, 12) for _ in MIDDLE]
    found = train_ensemble(members, x, y, starts=starts, dtype=torch.float64, watch=PLAIN)
    for index, (each, state) in enumerate(zip(members, starts, strict=True)):
        network = start(each)
        network.load_state_dict(state)
        assert worst(found.weights(index), alone(each, x, y, network=network).state_dict()) <= 1e-8


def test_where_training_is_chaotic_members_stray_no_faster_than_rounding_does() -> None:
    """One change of the weights in their last bit sends the same network as far in as many epochs."""
    x, y = fashion(50)
    members = [member("sgd", MIDDLE["sgd"], shape=DEEP, epochs=3, batch_size=128, seed=seed) for seed in (0, 1, 2)]
    found = train_ensemble(members, x, y, dtype=torch.float64, watch=PLAIN)
    for index, one in enumerate(members):
        exact = alone(one, x, y).state_dict()
        touched = start(one)
        with torch.no_grad():
            for parameter in touched.parameters():
                parameter *= 1 + torch.finfo(torch.float64).eps
        strayed = worst(alone(one, x, y, network=touched).state_dict(), exact)
        assert strayed > 1e-12  # of 2e-16
        assert worst(found.weights(index), exact) < 100 * strayed


@pytest.mark.parametrize("shape", [SMALL, Shape.deep(8), Shape((100, 50, 20), norm=False), Shape((), activation=False)])
def test_a_member_starts_from_the_weights_its_seed_gives(shape: Shape) -> None:
    seeds = [0, 7, 0, 2**32 - 1]
    x, y = clouds(inputs=shape.inputs, classes=shape.classes)
    members = [member(shape=shape, epochs=0, seed=seed) for seed in seeds]
    found = train_ensemble(members, x, y, watch=PLAIN)
    for index, seed in enumerate(seeds):
        torch.manual_seed(seed)
        network = Fnn(
            widths=shape.widths, inputs=shape.inputs, classes=shape.classes, norm=shape.norm, activation=shape.activation
        )  # fmt: skip
        assert same(found.weights(index), network.state_dict())
    assert found.loss.shape == found.accuracy.shape == (4, 0)
    assert found.diverged == (None,) * 4


@pytest.mark.parametrize("ahead", [1, 40, 10**6])
def test_every_member_sees_the_order_it_would_see_alone(monkeypatch: pytest.MonkeyPatch, ahead: int) -> None:
    monkeypatch.setattr(order, "BLOCK_NUMBERS", ahead)  # one epoch ahead, two, all
    seeds = [3, 5, 3]
    found = torch.stack(list(Orders(seeds, 10, device=torch.device("cpu")).epochs(7)))  # e m n
    for index, seed in enumerate(seeds):
        generator = torch.Generator("cpu").manual_seed(seed)
        assert torch.equal(found[:, index], torch.stack([torch.randperm(10, generator=generator) for _ in range(7)]))


def test_one_seed_and_one_rate_are_one_network_and_another_rate_or_seed_is_another() -> None:
    rates, seeds = [1e-3, 3e-3, 1e-3, 1e-3], [1, 1, 1, 2]
    found = ensemble([member(rate=rate, seed=seed) for rate, seed in zip(rates, seeds, strict=True)])
    assert worst(found.weights(2), found.weights(0)) < ROUNDING
    assert worst(found.weights(1), found.weights(0)) > 1e-3
    assert worst(found.weights(3), found.weights(0)) > 1e-3


def test_the_same_call_gives_the_same_bits() -> None:
    one, two = ensemble(mixed()), ensemble(mixed())
    assert all(same(one.weights(index), two.weights(index)) for index in range(5))


def test_results_come_in_the_order_of_the_members() -> None:
    members = mixed()
    found = ensemble(members)
    assert found.members == tuple(members)
    for index, one in enumerate(members):
        assert worst(found.weights(index), alone(one, *clouds()).state_dict()) < ROUNDING


@pytest.mark.parametrize("place", [[4, 3, 2, 1, 0], [2], [1, 2], [0, 3, 0, 0, 1]], ids=str)
def test_company_and_place_matter_by_rounding_only(place: list[int]) -> None:
    whole, part = ensemble(mixed()), ensemble([mixed()[index] for index in place])
    for at, index in enumerate(place):
        assert worst(part.weights(at), whole.weights(index)) < ROUNDING


@pytest.mark.parametrize("chunk", [1, 2, 4, 5, 9])
def test_chunks_matter_by_rounding_only_and_keep_the_order(chunk: int) -> None:
    whole, parts = ensemble(mixed()), ensemble(mixed(), chunk=chunk)
    assert parts.members == whole.members
    for index in range(5):
        assert worst(parts.weights(index), whole.weights(index)) < ROUNDING
    assert parts.loss == pytest.approx(whole.loss, rel=1e-6)


def test_float32_stays_float32_and_near() -> None:
    x, y = clouds()
    found = train_ensemble(mixed(), x.float(), y, watch=PLAIN)
    exact = ensemble(mixed())
    for index in range(5):
        weights = found.weights(index)
        assert {value.dtype for value in weights.values()} == {torch.float32, torch.int64}
        assert worst({name: value.to(exact.weights(index)[name].dtype) for name, value in weights.items()},
                     exact.weights(index)) < 1e-3  # fmt: skip


def test_pictures_are_flattened_and_data_and_starts_are_left_alone() -> None:
    x, y = clouds()
    pictures, labels = x.view(-1, 2, 3).clone().requires_grad_(), y.to(torch.uint8)
    found = train_ensemble(mixed(), pictures, labels, dtype=torch.float64, watch=PLAIN)
    assert all(same(found.weights(index), ensemble(mixed()).weights(index)) for index in range(5))
    assert torch.equal(pictures.detach().flatten(1), x) and torch.equal(labels, y.to(torch.uint8))


def test_no_global_state_is_touched() -> None:
    def state() -> tuple[object, ...]:
        matmul = torch.backends.cuda.matmul.fp32_precision
        return torch.get_rng_state().tolist(), torch.is_grad_enabled(), torch.get_num_threads(), matmul

    before = state()
    ensemble(mixed())
    assert state() == before


def test_a_default_device_or_a_chosen_precision_elsewhere_does_not_matter() -> None:
    plain = ensemble(mixed())
    before = torch.backends.cuda.matmul.fp32_precision
    x, y = clouds()
    try:
        torch.backends.cuda.matmul.fp32_precision = "tf32"  # torch refuses to read the old switch once this is set
        with torch.device("meta"):
            found = train_ensemble(mixed(), x, y, test=(x, y), dtype=torch.float64)
        assert torch.backends.cuda.matmul.fp32_precision == "tf32"
    finally:
        torch.backends.cuda.matmul.fp32_precision = before
    assert all(same(found.weights(index), plain.weights(index)) for index in range(5))
