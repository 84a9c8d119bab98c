"""Validation samples of a cell are none that it trains on, are as noisy, and are read as `measure` reads them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from closeness import close
from equisep.data import Batches, load_data, prepare_split
from equisep.errors import InputError
from equisep.figures.cell import Training
from equisep.figures.course import course_of
from equisep.figures.quantities import quantity
from equisep.measuring import measure
from equisep.runs.cell_data import cell_data_of, dataset_of, sample_of
from equisep.runs.runners import ensembles, networks
from equisep.training import Member, Recipe, Shape, Watch, train_ensemble

CELL = Training(
    data="embedded-10x10", per_class=12, validation=5, label_noise=0.5, test_per_class=4, depth=4, width=20, epochs=3,
    course=2, readings=("eval",), batch_size=32,
)  # fmt: skip


def test_validation_samples_are_none_that_are_trained_on_and_as_noisy() -> None:
    dataset = dataset_of("embedded-10x10")
    sample = sample_of(CELL, dataset)
    assert sample.held is not None
    rows, labels = sample.held
    assert len(rows) == 50 and not np.isin(rows, sample.positions).any()
    assert (np.bincount(dataset.y_train[rows]) == 5).all()
    changed = (labels != dataset.y_train[rows]).mean()
    assert 0.3 < changed < 0.6  # half are replaced, of which one in ten by itself
    bare = CELL.with_(validation=0)
    assert (sample_of(bare, dataset).positions == sample.positions).all(), "training does not depend on it"
    cell_data = cell_data_of([CELL, CELL.with_(data_seed=1)])
    assert cell_data.held is not None and len(cell_data.held) == 2
    assert torch.equal(cell_data.pool[cell_data.held[0][0]], prepared(rows))


def prepared(rows: np.ndarray) -> torch.Tensor:
    x, _ = prepare_split(load_data("embedded-10x10"), "he2023-10x10")
    return x[rows].reshape(len(rows), *cell_data_of([CELL]).pool.shape[1:])


def test_all_samples_leave_none_to_hold_out() -> None:
    with pytest.raises(InputError, match="trains on all there are"):
        sample_of(CELL.with_(per_class=None), dataset_of("embedded-10x10"))


def test_a_cell_without_validation_trains_to_the_same_numbers_and_has_a_course() -> None:
    (with_held,), _ = ensembles.run_cells([CELL])
    (without,), _ = ensembles.run_cells([CELL.with_(validation=0, course=0)])
    assert with_held.readings == without.readings and len(without.readings) == 1
    course = course_of(with_held)
    assert course is not None and course.epoch == (2, 3) and course_of(without) is None
    last = with_held.readings[0]
    assert course.last[-1] == last.fuzziness[-1] and course.loss[-1] == last.loss
    assert course.r[-1] == quantity(with_held, "r") and course.accuracy_test[-1] == last.accuracy_test
    assert None not in (*course.loss_validation, *course.accuracy_validation, *course.ncc_validation)
    assert quantity(with_held, "stop_loss") == 3


def test_a_network_that_trains_by_itself_has_no_course() -> None:
    with pytest.raises(InputError, match="`validation` and `course` cannot be had"):
        networks.run_cells([CELL.with_(network="pure-cnn", depth=None, width=None)])


@pytest.mark.parametrize("reading", ["eval", "mixed"])
def test_validation_is_read_as_measure_reads_it(reading: str) -> None:
    """Two members with samples and validation samples of their own."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(120, 6, generator=generator, dtype=torch.float64)
    y = torch.arange(120) % 3
    x[:, 0] += 2 * y
    samples = [(torch.arange(0, 60), y[:60]), (torch.arange(30, 90), y[30:90])]
    held = [(torch.arange(90, 120), y[90:]), (torch.arange(0, 30), y[:30])]
    shape = Shape((8, 8), 6, 3)
    trained = train_ensemble(
        [Member(Recipe(epochs=2, batch_size=20, seed=seed), shape) for seed in range(2)], x, y, samples=samples,
        validation=held, watch=Watch(readings=(reading,), batch_size=10), dtype=torch.float64,  # type: ignore[arg-type]
    )  # fmt: skip
    read = trained.reading()
    assert read.ncc_validation is not None and read.loss_validation is not None
    assert read.accuracy_validation is not None
    for index in range(2):
        network = trained.network(index)
        (rows, labels), (held_rows, held_labels) = samples[index], held[index]
        profile = measure(
            network, Batches(x[rows], labels, batch_size=10), Batches(x[held_rows], held_labels, batch_size=10),
            reading=reading, metrics=["ncc"], intervals="none", coordinates=0,  # type: ignore[arg-type]
        )  # fmt: skip
        for site, value in enumerate(profile.sites[:3]):
            assert read.ncc_validation[index, site] == value.ncc_test
        assert read.accuracy_validation[index] == profile.accuracy_test
        if reading == "eval":
            with torch.no_grad():
                close(
                    read.loss_validation[index], nn.functional.cross_entropy(network(x[held_rows]), held_labels).item()
                )


def test_validation_that_does_not_fit_is_refused() -> None:
    x, y = torch.randn(20, 4), torch.arange(20) % 2
    members = [Member(Recipe(epochs=1, batch_size=10), Shape((4,), 4, 2))]
    with pytest.raises(InputError, match="`validation` has 2 entries for 1 members"):
        train_ensemble(members, x, y, validation=[(torch.arange(3), y[:3])] * 2)
    with pytest.raises(InputError, match="`validation` holds positions 18 to 22 of a pool of 20"):
        train_ensemble(members, x, y, validation=[(torch.arange(18, 23), torch.arange(5) % 2)])
    with pytest.raises(InputError, match="the one validation sample in the reading `mixed`"):
        train_ensemble(members, x, y, validation=[(torch.arange(1), y[:1])])
