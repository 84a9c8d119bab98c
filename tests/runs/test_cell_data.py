"""What cells learn from: the draws of `prepare_split`, second samples, noisy labels, chosen classes, stand-ins."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from equisep.data import PREPARATIONS, load_data, prepare, prepare_split, randomize_labels
from equisep.errors import DataError, InputError
from equisep.figures.cell import Cell
from equisep.runs.cell_data import _local, at_hand, cell_data_of, dataset_of, fitted, sample_of, substitute_for
from equisep.runs.cost import samples_of

SMALL = Cell(data="embedded-10x10", per_class=7, test_per_class=5)
DATA = load_data("embedded-10x10")


def drawn(cell: Cell, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    return prepare_split(DATA, cell.preparation, per_class=cell.per_class, sizes=cell.sizes, seed=seed)


@pytest.fixture(autouse=True)
def nothing_is_remembered() -> Iterator[None]:
    for cached in (dataset_of, at_hand, _local):
        cached.cache_clear()
    yield
    for cached in (dataset_of, at_hand, _local):
        cached.cache_clear()


@pytest.fixture
def color_folder(tmp_path: Path) -> str:
    """A small set of color images, as a user's npz."""
    chance = np.random.default_rng(0)
    images = chance.integers(0, 256, size=(40, 8, 8, 3), dtype=np.uint8)
    labels = np.arange(40) % 4
    np.savez(tmp_path / "colors.npz", x_train=images, y_train=labels, x_test=images[:8], y_test=labels[:8])
    return str(tmp_path)


@pytest.mark.parametrize(
    "changes", [{}, {"per_class": None, "sizes": (9, 1, 3, 0, 5, 5, 5, 5, 5, 5)}, {"per_class": 600}]
)
def test_every_cell_has_the_draw_of_its_own_seed(changes: dict[str, object]) -> None:
    cells = [SMALL.with_(**changes, data_seed=seed) for seed in (0, 3, 0)]
    cell_data = cell_data_of(cells)
    for index, cell in enumerate(cells):
        x, y = cell_data.of(index)
        wanted = drawn(cell, cell.data_seed)
        assert torch.equal(x, wanted[0]) and torch.equal(y, wanted[1])
        assert torch.equal(cell_data.pool_labels[cell_data.rows[index]], y)
        assert cell_data.firsts[index] == len(y)
    assert torch.equal(cell_data.rows[0], cell_data.rows[2])
    assert len(cell_data.pool) == len(torch.cat(cell_data.rows).unique())  # what nobody drew is not prepared
    assert cell_data.classes == 10 and cell_data.checksum == DATA.checksum


def test_the_test_set_is_whole_or_as_many_of_each_class_whatever_the_seed() -> None:
    x, y = cell_data_of([SMALL.with_(data_seed=4)]).test
    wanted = prepare_split(DATA, SMALL.preparation, per_class=5, split="test")
    assert torch.equal(x, wanted[0]) and torch.equal(y, wanted[1])
    whole = cell_data_of([SMALL.with_(test_per_class=None)]).test
    assert len(whole[1]) == len(DATA.y_test)


def test_classes_are_numbered_anew_in_samples_and_tests() -> None:
    cell = SMALL.with_(classes=(7, 2), data_seed=1)
    cell_data = cell_data_of([cell])
    x, y = cell_data.of(0)
    full = drawn(SMALL, 1)
    for new, old in ((0, 7), (1, 2)):
        assert torch.equal(x[y == new], full[0][full[1] == old])  # a class's draw does not depend on the others
    assert cell_data.classes == 2 and set(y.tolist()) == set(cell_data.test[1].tolist()) == {0, 1}
    seven = prepare_split(DATA, SMALL.preparation, per_class=5, split="test", classes=[7])[0]
    assert torch.equal(cell_data.test[0][cell_data.test[1] == 0], seven)


def test_the_first_stage_of_a_transfer_has_classes_of_its_own() -> None:
    cell = SMALL.with_(classes=(5, 6), first_classes=(0, 1, 2))
    earlier = cell_data_of([cell], classes=cell.first_classes)
    assert earlier.classes == 3 and len(earlier.labels[0]) == 21
    assert torch.equal(earlier.of(0)[0], prepare_split(DATA, cell.preparation, per_class=7, classes=[0, 1, 2])[0])


@pytest.mark.parametrize("sizes", [None, (7,) * 10])
def test_the_second_sample_is_disjoint_and_as_large_as_asked(sizes: tuple[int, ...] | None) -> None:
    cell = SMALL.with_(second=4, data_seed=2, sizes=sizes, per_class=None if sizes else 7)
    sample = sample_of(cell, DATA)
    first, second = sample.positions[: sample.first], sample.positions[sample.first :]
    assert sample.first == 70 and len(second) == 40 and not set(first) & set(second)
    assert np.bincount(sample.labels[sample.first :]).tolist() == [4] * 10
    assert np.array_equal(first, sample_of(cell.with_(second=0), DATA).positions)
    assert np.array_equal(sample.labels, DATA.y_train[sample.positions])


@pytest.mark.parametrize("share", [0.25, 0.5, 1.0])
def test_labels_of_either_sample_are_replaced_by_share(share: float) -> None:
    plain = sample_of(SMALL.with_(second=60, per_class=60), DATA)
    for name, part in (("label_noise", slice(None, plain.first)), ("second_noise", slice(plain.first, None))):
        noisy = sample_of(SMALL.with_(second=60, per_class=60, **{name: share}), DATA)
        assert np.array_equal(noisy.positions, plain.positions)
        wanted = randomize_labels(plain.labels[part], share=share, classes=10, seed=0)
        assert np.array_equal(noisy.labels[part], wanted)
        differing = float(np.mean(noisy.labels[part] != plain.labels[part]))
        # binomial: the share that differs is q(1 − 1/C), within four deviations
        assert abs(differing - share * 0.9) < 4 * (0.25 / 600) ** 0.5
        other = np.delete(np.arange(len(plain.labels)), np.arange(len(plain.labels))[part])
        assert np.array_equal(noisy.labels[other], plain.labels[other])


def test_noise_is_drawn_by_the_data_seed() -> None:
    one, two = (sample_of(SMALL.with_(label_noise=0.5, data_seed=seed), DATA) for seed in (0, 1))
    assert not np.array_equal(one.labels != DATA.y_train[one.positions], two.labels != DATA.y_train[two.positions])


def test_noise_stays_among_the_chosen_classes() -> None:
    sample = sample_of(SMALL.with_(label_noise=1.0, per_class=100, classes=(3, 4, 8)), DATA, classes=(3, 4, 8))
    assert set(sample.labels) == {0, 1, 2}


# stand-ins


@pytest.mark.parametrize(
    ("preparation", "shape"),
    [
        ("he2023-10x10", (1, 10, 10)),
        ("he2023-10x10-cifar", (1, 10, 10)),
        ("he2023-32x32", (1, 32, 32)),
        ("he2023-32x32-cifar", (3, 32, 32)),
    ],
)
def test_a_substitute_has_the_shape_that_the_paper_has(preparation: str, shape: tuple[int, ...]) -> None:
    cell = Cell(data="cifar10", preparation=preparation, per_class=2, test_per_class=2)
    stand_in = cell.with_(stands_for="cifar10", data=substitute_for(cell))
    assert stand_in.data == ("embedded-10x10" if shape[1] == 10 else "embedded-28x28")
    cell_data = cell_data_of([stand_in])
    assert cell_data.pool.shape[1:] == cell_data.test[0].shape[1:] == shape


def test_gray_images_that_stand_in_for_color_ones_are_all_three_channels() -> None:
    cell = Cell(data="embedded-28x28", preparation="he2023-32x32-cifar", stands_for="cifar10", per_class=2)
    data = dataset_of("embedded-28x28")
    wanted = PREPARATIONS[cell.preparation]
    assert fitted(cell, data).channels == "rgb" and fitted(cell, data).normalize == wanted.normalize
    pool = cell_data_of([cell.with_(test_per_class=2)]).pool
    mean, std = (torch.tensor(part)[:, None, None] for part in wanted.normalize or ())
    plain = pool * std + mean
    assert torch.allclose(plain[:, 0], plain[:, 1], atol=1e-6) and torch.allclose(plain[:, 0], plain[:, 2], atol=1e-6)
    green = Cell(data="embedded-10x10", preparation="he2023-10x10-cifar", stands_for="cifar10")
    assert fitted(green, DATA).channels == "all" and fitted(green, DATA).normalize == ((0.4822,), (0.243,))


def test_what_stands_in_for_nothing_is_prepared_as_it_says() -> None:
    green = Cell(data="embedded-10x10", preparation="he2023-10x10-cifar", per_class=2)
    assert fitted(green, DATA) == PREPARATIONS["he2023-10x10-cifar"]
    with pytest.raises(InputError, match="green"):
        cell_data_of([green])


def test_color_images_keep_their_channels(color_folder: str) -> None:
    cell = Cell(data="colors", preparation="he2023-32x32-cifar", stands_for="cifar10", per_class=3, test_per_class=2)
    cell_data = cell_data_of([cell], data_dir=color_folder)
    data = dataset_of("colors", color_folder)
    assert cell_data.classes == 4 and cell_data.pool.shape == (12, 3, 32, 32)
    assert torch.equal(cell_data.pool, prepare(data.x_train[sample_of(cell, data).positions], cell.preparation))
    assert at_hand("colors", color_folder) and not at_hand("colours", color_folder)


def test_whether_data_are_at_hand_asks_no_network(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from equisep.data import load

    def refused(*args: object) -> None:
        raise AssertionError("asked the network")

    monkeypatch.setattr(load, "fetched_contents", refused)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("EQUISEP_DATA", raising=False)
    assert at_hand("embedded-10x10") and not at_hand("cifar10") and not at_hand("mnist")


def test_a_data_set_is_loaded_and_checked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether it is there and what it holds were two readings of the same files."""
    from equisep.runs import cell_data

    loaded: list[str] = []

    def load(name: str, **options: Any) -> Any:
        loaded.append(name)
        return load_data(name, **options)

    monkeypatch.setattr(cell_data, "load_data", load)
    assert at_hand("embedded-10x10") and dataset_of("embedded-10x10") is dataset_of("embedded-10x10")
    assert at_hand("embedded-10x10") and loaded == ["embedded-10x10"]


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"data": "absent.npz"}, DataError, "absent.npz"),
        ({"preparation": "he2023-10"}, InputError, "There is no preparation `he2023-10`. Did you mean `he2023-10x10`"),
        ({"per_class": 601}, InputError, "asked for 601 samples of class 0; there are 600"),
        ({"second": 600}, InputError, "asked for 607 samples"),
        ({"sizes": (1, 2), "per_class": None}, InputError, "`sizes` has 2 numbers for 10 classes"),
        ({"label_noise": 1.5}, InputError, "`share` was 1.5"),
    ],
)
def test_what_cannot_be_drawn_is_one_sentence(changes: dict[str, object], error: type[Exception], words: str) -> None:
    with pytest.raises(error) as caught:
        cell_data_of([SMALL.with_(**changes)])
    assert words in str(caught.value)


def test_a_substitute_for_an_unknown_preparation_is_one_sentence() -> None:
    with pytest.raises(InputError, match="There is no preparation `mine`"):
        substitute_for(Cell(preparation="mine"))


def test_copies_stand_in_every_epoch_and_are_counted() -> None:
    sizes, copies = (4,) * 5 + (2,) * 5, (1,) * 5 + (3,) * 5
    plain = SMALL.with_(per_class=None, sizes=sizes)
    more = plain.with_(copies=copies)
    once, often = (sample_of(cell, DATA) for cell in (plain, more))
    times = np.array(copies)[once.labels]
    assert np.array_equal(often.positions, np.repeat(once.positions, times))
    assert np.array_equal(often.labels, np.repeat(once.labels, times)) and often.first == 50
    assert samples_of(more) == 50 and samples_of(SMALL.with_(copies=copies)) == 140
    for wrong in ({"copies": (1, 2)}, {"copies": (0,) * 10}, {"second": 3}, {"readings": ("drawn",)}):
        with pytest.raises(InputError, match="`copies`"):
            sample_of(more.with_(**wrong), DATA)
