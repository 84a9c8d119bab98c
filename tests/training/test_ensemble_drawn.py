"""The reading `drawn` of an ensemble: the order of a walk, beside training and the other readings, which do not notice it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor
from trained_alone import clouds, member

from closeness import close
from equisep.data import Batches, draw
from equisep.data.sampling import order_among
from equisep.errors import InputError
from equisep.measuring import measure
from equisep.training import Ensemble, Watch, train_ensemble

ALL = ("mixed", "eval", "drawn")
SIZES = (20, 12, 5)
MEMBERS = [member(data_seed=seed, seed=seed) for seed in (0, 1)]


def trained(watch: Watch, **options: object) -> Ensemble:
    given = {"sizes": SIZES, "pool_per_class": 60, **options}
    return train_ensemble(MEMBERS, *clouds(120), watch=watch, dtype=torch.float64, **given)  # type: ignore[arg-type]


def drawn_alone(found: Ensemble, index: int, walk: Tensor, y: Tensor | None = None) -> list[float]:
    """D of one member by `measure`, its samples in the order of the walk, in batches of 10."""
    x, labels = clouds(120)
    batches = Batches(x[walk], labels[walk] if y is None else y, batch_size=10, order="given")
    profile = measure(found.network(index), batches, reading="drawn", metrics="fuzziness", intervals="none")
    return [value for value in profile.curve() if value is not None][: len(found.curve(index))]


def test_all_readings_of_one_training_are_those_of_each_alone() -> None:
    watch = Watch(readings=ALL, batch_size=10)
    found = trained(watch)
    assert [reading.reading for reading in found.readings] == list(ALL)
    for one, name in zip((trained(Watch(readings=name, batch_size=10)) for name in ALL), ALL, strict=True):
        for index in range(len(MEMBERS)):
            assert found.curve(index, reading=name) == one.curve(index)
        assert torch.equal(found.stack.theta, one.stack.theta)


def test_drawn_is_what_measure_reads_in_the_order_of_the_walk() -> None:
    found = trained(Watch(readings=ALL, batch_size=10))
    y = clouds(120)[1]
    for index, one in enumerate(MEMBERS):
        walk = draw(y, sizes=SIZES, seed=one.data_seed, classes=3, order="walk", pool_per_class=60)
        close(found.curve(index, reading="drawn"), drawn_alone(found, index, torch.from_numpy(walk)), rtol=1e-9)
        assert found.curve(index, reading="drawn") != found.curve(index, reading="mixed")


def test_orders_can_be_given_and_samples_that_are_given_stand_as_they_are() -> None:
    x, y = clouds(120)
    positions = [torch.from_numpy(draw(y, sizes=SIZES, seed=one.data_seed)) for one in MEMBERS]
    backwards = [torch.arange(len(own)).flip(0) for own in positions]
    pairs = [(own, y[own]) for own in positions]
    watch = Watch(readings=("drawn", "eval"), batch_size=10)
    as_given = trained(watch, sizes=None, samples=pairs)
    turned = trained(watch, sizes=None, samples=pairs, drawn=backwards)
    for index, own in enumerate(positions):
        close(as_given.curve(index), drawn_alone(as_given, index, own), rtol=1e-9)
        close(turned.curve(index), drawn_alone(turned, index, own.flip(0)), rtol=1e-9)
        assert turned.curve(index, reading="eval") == as_given.curve(index, reading="eval")
    whole = train_ensemble(MEMBERS, x, y, watch=watch, dtype=torch.float64)
    close(whole.curve(0), drawn_alone(whole, 0, torch.arange(120)), rtol=1e-9)


def test_a_walk_among_ascending_positions() -> None:
    walk = np.array([7, 2, 9, 4])
    assert order_among(walk).tolist() == [2, 0, 3, 1]


def test_stored_members_are_told_apart_by_the_order_they_are_read_in(tmp_path: Path) -> None:
    watch = Watch(readings=("drawn",), batch_size=10)
    forwards, backwards = ([torch.arange(37)] * 2, [torch.arange(37).flip(0)] * 2)
    for orders in (forwards, backwards, forwards):
        one = trained(watch, drawn=orders, store=tmp_path)
        assert one.curve(1) == trained(watch, drawn=orders).curve(1)
    assert len(list(tmp_path.glob("chunk-*.npz"))) == 2
    assert Ensemble.load(next(tmp_path.glob("chunk-*.npz"))).reading(reading="drawn").reading == "drawn"


@pytest.mark.parametrize(
    ("orders", "words"),
    [
        ([torch.arange(37)], "`drawn` has 1 orders for 2 members. Give one for each."),
        ([torch.arange(37), torch.arange(36)], "`drawn` of member 1 is no order of its 37 samples."),
        ([torch.zeros(37, dtype=torch.int64)] * 2, "`drawn` of member 0 is no order of its 37 samples."),
    ],
)
def test_orders_that_cannot_be(orders: list[Tensor], words: str) -> None:
    with pytest.raises(InputError) as caught:
        trained(Watch(readings=("drawn",)), drawn=orders)
    assert words in str(caught.value)
