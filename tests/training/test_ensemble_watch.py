"""Readings of an ensemble are what `measure` reads of each network, and training does not notice them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from trained_alone import SMALL, clouds, member, mixed, same, start

import equisep.training.ensemble.reading as watching
from closeness import close
from equisep.data import Batches, draw
from equisep.errors import InputError
from equisep.measuring import measure
from equisep.models import Fnn
from equisep.training import Ensemble, EnsembleReading, Member, Shape, Stage, Watch, train_ensemble

BOTH = ("mixed", "eval")
METRICS = ("fuzziness", "class_fuzziness", "cdnv", "ncc", "null")


def read_alone(
    network: Fnn,
    reading: EnsembleReading,
    index: int,
    watch: Watch,
    data: Sequence[Tensor],
    test: Sequence[Tensor],
    *,
    last: bool = True,
) -> None:
    """One member's reading against `measure` on the same batches."""
    batches, batches_test = (Batches(*pair, batch_size=watch.batch_size, seed=watch.seed) for pair in (data, test))
    profile = measure(
        network, batches, batches_test, reading=reading.reading, metrics=METRICS, intervals="none", coordinates=0
    )
    sites = profile.sites[: len(network.blocks) + 1]  # of a network without hidden layers `measure` reads the scores
    pairs = {
        "fuzziness": "fuzziness", "cdnv": "cdnv", "ncc": "ncc_train", "rank": "rank",
        "fuzziness_test": "fuzziness_test", "cdnv_test": "cdnv_test", "ncc_test": "ncc_test", "chance": "null",
    }  # fmt: skip
    for ours, theirs in pairs.items():
        known = getattr(reading, ours)
        if known is None:
            assert ours != "chance" or not (watch.chance and last)
            assert ours == "chance" or (ours.endswith("_test") and watch.test == "accuracy")
            continue
        for site, value in enumerate(sites):
            agree(known[index, site], getattr(value, theirs))
    assert reading.class_fuzziness is not None and reading.accuracy_test is not None
    for site, value in enumerate(sites):
        for k in range(profile.classes):
            agree(reading.class_fuzziness[index, site, k], value.class_fuzziness[k] if value.class_fuzziness else None)
    assert reading.accuracy[index] == profile.accuracy_train
    assert reading.accuracy_test[index] == profile.accuracy_test
    close(reading.loss[index], mean_loss(network, batches, reading=reading.reading))


def agree(found: float, expected: float | None) -> None:
    if expected is None:
        assert math.isnan(found)
    elif expected < 1e-20:
        assert 0 <= found < 1e-20  # all samples of a class in one point, to rounding
    else:
        close(found, expected, rtol=1e-9)


@torch.no_grad()
def mean_loss(network: Fnn, batches: Batches, *, reading: str) -> float:
    """Cross-entropy over all samples, BatchNorm by the batch or by running statistics (which are put back)."""
    kept = {name: value.clone() for name, value in network.state_dict().items()}
    network.train(reading == "mixed")
    total = sum(float(nn.functional.cross_entropy(network(x), y, reduction="sum")) for x, y in batches)
    network.load_state_dict(kept)
    return total / sum(len(y) for _, y in batches)


def until(members: Sequence[Member], epochs: int, **options: object) -> Ensemble:
    """The same training, ended earlier; the rate is constant, so that the end does not matter before it."""
    return train_ensemble(
        members, *clouds(), stages=[Stage(epochs=epochs, milestones=())], dtype=torch.float64, **options  # type: ignore[arg-type]
    )  # fmt: skip


@pytest.mark.parametrize(
    ("shape", "test_sites"),
    [
        (SMALL, True),
        (SMALL, False),
        (Shape((8, 7), inputs=6, classes=3, norm=False), True),
        (Shape((5, 2, 9, 5), inputs=6, classes=7), True),
        (Shape((), inputs=6, classes=3), True),
    ],
    ids=str,
)
def test_readings_are_those_of_measure(shape: Shape, test_sites: bool) -> None:
    """At the start, on the way and at the end, in both readings; with more classes than units, too."""
    data, test = clouds(70, classes=shape.classes), clouds(51, classes=shape.classes, seed=5)
    watch = Watch(
        epochs=(0, 2),
        reading=BOTH,
        batch_size=23,
        seed=3,
        test="sites" if test_sites else "accuracy",
        chance=test_sites,
    )
    members = mixed(shape)[:3]
    options = {"test": test, "dtype": torch.float64, "stages": [Stage(epochs=3, milestones=())]}
    found = train_ensemble(members, *data, watch=watch, **options)  # type: ignore[arg-type]
    assert [(reading.epoch, reading.reading) for reading in found.readings] == [(e, m) for e in (0, 2, 3) for m in BOTH]
    for epoch in (0, 2, 3):
        stage = Stage(epochs=epoch, milestones=())
        then = train_ensemble(members, *data, **{**options, "stages": [stage]}, watch=Watch(sites=False))  # type: ignore[arg-type]
        for name in BOTH:
            for index in range(len(members)):
                read_alone(
                    then.network(index),
                    found.reading(epoch=epoch, reading=name),
                    index,
                    watch,
                    data,
                    test,
                    last=epoch == 3,
                )


def test_readings_of_drawn_samples_with_an_absent_class_and_noisy_labels() -> None:
    x, y = clouds(120)
    members = [member(data_seed=seed) for seed in (0, 1, 2)]
    sizes = (20, 0, 11)
    watch = Watch(reading=BOTH, batch_size=16, test="sites", chance=True)
    found = train_ensemble(members, x, y, test=(x, y), sizes=sizes, watch=watch, dtype=torch.float64)
    for index, one in enumerate(members):
        own = torch.from_numpy(draw(y, sizes=sizes, seed=one.data_seed, classes=3))
        for reading in found.readings:
            read_alone(found.network(index), reading, index, watch, (x[own], y[own]), (x, y))
            assert reading.class_fuzziness is not None
            assert np.isnan(reading.class_fuzziness[index, :, 1]).all()


def test_nearest_centers_and_loss_are_of_the_noisy_labels_a_member_learns() -> None:
    x, y = clouds()
    noisy = train_ensemble([member(rate=0.01, label_noise=1.0, data_seed=2, epochs=15)], x, y, dtype=torch.float64)
    clean = train_ensemble([member(rate=0.01, epochs=15)], x, y, dtype=torch.float64)
    assert noisy.curve(0, "ncc")[0] < 0.8 < clean.curve(0, "ncc")[0]
    assert noisy.reading().loss[0] > clean.reading().loss[0]


def test_float32_features_are_read_in_float64_with_the_cut_of_float32() -> None:
    x, y = clouds()
    watch = Watch(reading=BOTH, test="sites")
    found = train_ensemble(mixed(), x, y, test=(x, y), watch=watch)
    for reading in found.readings:
        for index in range(5):
            profile = measure(found.network(index), Batches(x.float(), y), reading=reading.reading, intervals="none")
            assert [site.rank for site in profile.sites] == list(reading.rank[index])  # type: ignore[index]
            assert found.curve(index, reading=reading.reading) == pytest.approx(
                [s.fuzziness for s in profile.sites], rel=1e-3
            )


def test_reading_changes_nothing_in_training() -> None:
    x, y = clouds()
    eager = Watch(epochs=tuple(range(4)), reading=BOTH, test="sites")
    read = train_ensemble(mixed(), x, y, test=(x, y), watch=eager, dtype=torch.float64)
    blind = train_ensemble(mixed(), x, y, watch=Watch(sites=False), dtype=torch.float64)
    assert all(same(read.weights(index), blind.weights(index)) for index in range(5))
    assert np.array_equal(read.loss, blind.loss) and np.array_equal(read.accuracy, blind.accuracy)


def test_the_groups_that_memory_allows_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = clouds()
    watch, held = (
        Watch(reading=BOTH, test="sites", chance=True, collapse=True),
        [(torch.arange(40), y[:40])] * len(mixed()),
    )
    whole = train_ensemble(mixed(), x, y, test=(x, y), validation=held, watch=watch, dtype=torch.float64)
    numbers = 70 * (6 + 8 + 7 + 3)  # of one member: all sites and the scores
    monkeypatch.setitem(watching.READ_BYTES, "cpu", 2 * numbers * (2 * 8 + 4 * 8))  # two of the five members at once
    parts = train_ensemble(mixed(), x, y, test=(x, y), validation=held, watch=watch, dtype=torch.float64)
    for one, two in zip(whole.readings, parts.readings, strict=True):
        for name in watching.ARRAYS:
            close(getattr(two, name), getattr(one, name), rtol=1e-10)


def test_loss_and_accuracy_alone_are_read_without_sites() -> None:
    x, y = clouds()
    found = train_ensemble(mixed(), x, y, test=(x, y), watch=Watch(epochs=(1,), sites=False), dtype=torch.float64)
    full = train_ensemble(mixed(), x, y, test=(x, y), watch=Watch(epochs=(1,)), dtype=torch.float64)
    for one, two in zip(found.readings, full.readings, strict=True):
        assert one.fuzziness is None and one.ncc is None and one.rank is None and two.fuzziness is not None
        assert np.array_equal(one.loss, two.loss) and np.array_equal(one.accuracy_test, two.accuracy_test)  # type: ignore[arg-type]


def test_epochs_are_counted_over_all_stages() -> None:
    x, y = clouds()
    stages = [Stage(epochs=2, trains=(1,), milestones=()), Stage(epochs=2, milestones=())]
    found = train_ensemble(mixed(), x, y, stages=stages, watch=Watch(epochs=(2, 3, 3)), dtype=torch.float64)
    assert [reading.epoch for reading in found.readings] == [2, 3, 4]
    first = train_ensemble(mixed(), x, y, stages=stages[:1], dtype=torch.float64)
    assert np.array_equal(found.reading(epoch=2).fuzziness, first.reading().fuzziness)  # type: ignore[arg-type]


def test_readings_of_chunks_are_joined_in_the_order_of_the_members() -> None:
    x, y = clouds()
    watch = Watch(epochs=(0,), reading=BOTH, test="sites", chance=True, collapse=True)
    held = [(torch.arange(index, index + 40), y[index : index + 40]) for index in range(len(mixed()))]
    whole, parts = (
        train_ensemble(mixed(), x, y, test=(x, y), validation=held, watch=watch, dtype=torch.float64, chunk=chunk)
        for chunk in (None, 2)
    )
    for one, two in zip(whole.readings, parts.readings, strict=True):
        assert (one.epoch, one.reading) == (two.epoch, two.reading)
        assert (
            one.arrays().keys()
            == two.arrays().keys()
            == set(watching.ARRAYS) - ({"chance"} if one.epoch == 0 else set())
        )
        for name in one.arrays():
            close(getattr(two, name), getattr(one, name), rtol=1e-9)


def test_a_member_that_diverged_reads_nan_and_the_others_do_not_notice() -> None:
    """All but the rate of one member is equal, and its place among them, so that the others are equal to the bit."""
    x, y = clouds()
    shape = Shape((8, 7), inputs=6, classes=3, norm=False)
    runs = []
    for rate in (1e30, 1e-3):
        members = [member("sgd", rate, shape=shape, seed=5), member(seed=1, shape=shape), member(seed=2, shape=shape)]
        watch = Watch(epochs=(0, 1, 3), reading=BOTH, test="sites", chance=True)
        held = [(torch.arange(40), y[:40])] * 3
        runs.append(train_ensemble(members, x, y, test=(x, y), validation=held, watch=watch, dtype=torch.float64))
    ill, well = runs
    assert ill.diverged == (1, None, None) and well.diverged == (None,) * 3
    for index in (1, 2):
        assert same(ill.weights(index), well.weights(index))
    assert ill.reading().chance is not None
    for one, two in zip(ill.readings, well.readings, strict=True):
        for name in one.arrays():
            values, sound = getattr(one, name), getattr(two, name)
            assert np.array_equal(values[1:], sound[1:])
            if one.epoch == 0:
                assert np.array_equal(values, sound)
            elif values.ndim == 1:
                assert np.isnan(values[0])
            else:
                assert (values[0, -1] == 0 if name == "rank" else np.isnan(values[0, -1])).all()
                assert np.array_equal(values[0, 0], sound[0, 0])  # the input is as it was


def test_test_samples_are_near_to_no_center_where_the_training_data_have_none() -> None:
    """One training sample overflows in the first layer of the first member; the test samples do not."""
    x, y = clouds()
    shape = Shape((8, 7), inputs=6, classes=3, norm=False)
    starts = [shape.build(seed).to(torch.float64) for seed in (0, 1)]
    starts[0].blocks[0].linear.weight.data *= 1e150  # type: ignore[union-attr,operator]
    large = x.clone()
    large[5] *= 1e200
    members = [member(shape=shape, epochs=0, seed=seed) for seed in (0, 1)]
    watch = Watch(reading="eval", test="sites")
    reading = train_ensemble(members, large, y, test=(x, y), starts=starts, watch=watch, dtype=torch.float64).reading()
    assert reading.ncc is not None and reading.ncc_test is not None and reading.accuracy_test is not None
    assert np.isnan(reading.ncc[0]).tolist() == np.isnan(reading.ncc_test[0]).tolist() == [False, True, True]
    assert np.isfinite(reading.ncc_test[1]).all() and np.isfinite(reading.accuracy_test).all()


def test_divergence_is_marked_at_the_epoch_at_which_training_alone_would_stop() -> None:
    x, y = clouds()
    shape = Shape((8, 7), inputs=6, classes=3, norm=False)
    members = [member("sgd", rate, shape=shape, epochs=12, milestones=()) for rate in (0.1, 8.0, 30.0, 1e30)]
    found = train_ensemble(members, x, y, dtype=torch.float64, watch=Watch(sites=False))
    for index, one in enumerate(members):
        assert found.diverged[index] == first_bad_epoch(one, x, y)
    assert found.diverged[0] is None and found.diverged[3] == 1


def first_bad_epoch(one: Member, x: Tensor, y: Tensor) -> int | None:
    from equisep.errors import NumericalError
    from equisep.training import train

    try:
        train(start(one), x, y, recipe=one.recipe)
    except NumericalError as error:
        return int(str(error).split("the loss of epoch ")[1].split()[0])
    return None


def test_a_network_that_breaks_in_its_very_last_step_is_marked_too() -> None:
    x, y = clouds(32)
    shape = Shape((8, 7), inputs=6, classes=3, norm=False)
    found = train_ensemble(
        [member("sgd", 1e300, shape=shape, epochs=1), member("sgd", 0.1, shape=shape, epochs=1)], x, y
    )
    assert np.isfinite(found.loss).all()
    assert found.diverged == (1, None)
    assert np.isnan(found.reading().accuracy).tolist() == [True, False]


@pytest.mark.usefixtures("as_users_run_it")
def test_what_was_not_read_is_refused_with_what_was() -> None:
    found = until(mixed(), 2, watch=Watch(epochs=(0,)))
    for wrong, sentence in [
        (lambda: found.reading(epoch=1), "The ensemble was not read at epoch 1 in `mixed`. It was at the epochs 0, 2 in"),
        (lambda: found.reading(reading="eval"), "The ensemble was not read at epoch 2 in `eval`. It was at the epochs 0, 2"),
        (lambda: found.reading(reading="evil"), "No reading `evil`. Did you mean `eval`"),
        (lambda: found.curve(0, "fuzzyness"), "No metric `fuzzyness`. Did you mean `fuzziness`"),
        (lambda: found.curve(0, "fuzziness_test"), "`fuzziness_test` was not read. Ask for it with `Watch`."),
        (lambda: found.curve(0, "loss"), "`loss` is no curve over sites. Take it from `ensemble.reading()`."),
        (lambda: found.curve(len(found)), f"The ensemble has {len(found)} members, counted from 0; found {len(found)}."),
        (lambda: found.curve(0.5), "counted from 0; found 0.5."),
    ]:  # fmt: skip
        with pytest.raises(InputError) as caught:
            wrong()
        assert sentence in str(caught.value)


def test_the_former_names_are_taken_with_a_warning() -> None:
    with pytest.warns(FutureWarning, match=r'`mode="batch"` is now `reading="mixed"`'):
        watch = Watch(modes=("batch", "eval"))
    assert watch == Watch(reading=("mixed", "eval")) and watch.readings == ("mixed", "eval")
    assert Watch(reading="eval").readings == ("eval",)
    found = until(mixed(), 1, watch=Watch(reading=BOTH))
    with pytest.warns(FutureWarning, match=r'`mode="batch"` is now `reading="mixed"`'):
        assert found.curve(0, mode="batch") == found.curve(0, reading="mixed")
    with pytest.warns(FutureWarning, match=r'`mode="eval"` is now `reading="eval"`'):
        assert found.reading(mode="eval") is found.reading(reading="eval")
