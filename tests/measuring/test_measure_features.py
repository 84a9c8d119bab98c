"""Stored features are measured as the network that gave them: the same profile, in one reading or in two."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import equisep
from cli.running import equisep as command
from equisep.data.stores import StoredBatches, open_features
from equisep.errors import DataError, EquisepError, FeatureError, InputError, LabelError, SiteError
from equisep.measuring import write_features
from measuring.distributed.processes import in_processes, outcomes


def data(n: int = 240, *, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    y = torch.arange(n) % 3
    return torch.randn(n, 8, generator=generator) + 2 * nn.functional.one_hot(y, 8), y


@pytest.fixture
def model() -> nn.Module:
    torch.manual_seed(0)
    return equisep.Fnn(4, width=12, inputs=8, classes=3)


def without_network(profile: equisep.Profile) -> list[object]:
    """The readings of all sites; NC3, NC4, margins and the accuracy are the network's."""
    return [replace(site, coordinates=None) for site in profile.sites]


def test_the_profile_is_that_of_the_network(model: nn.Module, tmp_path: Path) -> None:
    train, test = data(), data(90, seed=1)
    written = write_features(model, train, test, out=tmp_path / "f", name="net")
    direct = equisep.measure(model, train, test, name="net")
    assert written.layers == tuple(site.name for site in direct.sites)
    kept = equisep.measure_features(tmp_path / "f")
    assert kept.model == "net"
    assert without_network(kept) == without_network(direct)
    assert kept.law == direct.law
    assert kept.accuracy_train is None
    assert any(note.code == "no-classifier" and "come without their network" in note.text for note in kept.notes)
    alone = equisep.measure_features(tmp_path / "f", split="train", sites="blocks.*")
    assert [site.name for site in alone.sites] == [site.name for site in direct.sites[1:]]
    assert alone.counts_test is None


def test_numbers_depend_neither_on_memory_nor_on_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = data()
    arrays = {"a": x, "b": x.relu()}
    whole = equisep.measure_features(arrays, y, test=arrays, test_labels=y)
    monkeypatch.setattr("equisep.data.stores.batches.BATCH_BYTES", 1)  # 64 rows each
    for memory in (2_000, 0):
        parts = equisep.measure_features(arrays, y, test=arrays, test_labels=y, memory=memory)
        for one, two in zip(whole.sites, parts.sites, strict=True):
            assert two.fuzziness == pytest.approx(one.fuzziness, rel=1e-12)
            assert two.null == pytest.approx(one.null, rel=1e-9)
            assert (two.ncc_train, two.ncc_test) == (one.ncc_train, one.ncc_test)
    assert whole.sites[0].fuzziness == pytest.approx(equisep.fuzziness(x, y), rel=1e-12)


@pytest.mark.parametrize(
    "options", [{"memory": 0}, {"reduction": "pca=3"}, {"intervals": "bootstrap", "resamples": 5}], ids=str
)
def test_nothing_is_kept_of_memory_that_is_used_again(
    options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a batch lay in becomes NaN as soon as it was worked off: no number may know of it."""
    for split, (x, y) in (("train", data()), ("test", data(90, seed=1))):
        (tmp_path / split).mkdir()
        np.save(tmp_path / split / "a.npy", x.numpy())
        np.save(tmp_path / split / "b.npy", x.double().numpy())
        np.save(tmp_path / split / "labels.npy", y.numpy())
    expected = equisep.measure_features(tmp_path, **options)
    monkeypatch.setattr("equisep.data.stores.batches.BATCH_BYTES", 1)
    plain, spoilt = StoredBatches.__iter__, []

    def spoiling(batches: StoredBatches) -> Iterator[Any]:
        for rows, y in plain(batches):
            yield rows, y
            spoilt.extend(room.fill_(255) for room in batches._rooms.values())

    monkeypatch.setattr(StoredBatches, "__iter__", spoiling)
    found = equisep.measure_features(tmp_path, **options)
    assert len(spoilt) >= 8
    for one, two in zip(found.sites, expected.sites, strict=True):
        for name in ("fuzziness", "fuzziness_test", "cdnv", "ncc_train", "ncc_test", "null", "class_fuzziness"):
            assert getattr(one, name) == pytest.approx(getattr(two, name), rel=1e-9), name
        ends = [(site.fuzziness_interval.low, site.fuzziness_interval.high) for site in (one, two)]
        assert ends[0] == pytest.approx(ends[1], rel=1e-9)
        assert one.coordinates is not None and two.coordinates is not None
        assert np.allclose(one.coordinates.points, two.coordinates.points, rtol=1e-3)


@pytest.mark.parametrize("memory", [0, 2**30])
@pytest.mark.parametrize(("classes", "d"), [(10, 256), (160, 1024)])
def test_float32_products_keep_six_digits_and_are_recorded(classes: int, d: int, memory: int, tmp_path: Path) -> None:
    generator = torch.Generator().manual_seed(0)
    y = torch.randint(0, classes, (6000,), generator=generator)
    x = torch.randn(6000, d, generator=generator) + 3 + torch.randn(classes, d, generator=generator)[y]
    for split, part in (("train", slice(0, 5000)), ("test", slice(5000, 6000))):
        (tmp_path / split).mkdir()
        np.save(tmp_path / split / "a.npy", x[part].numpy())
        np.save(tmp_path / split / "labels.npy", y[part].numpy())
    exact = equisep.measure_features(tmp_path, memory=memory)
    quick = equisep.measure_features(tmp_path, memory=memory, precision="float32")
    assert (exact.settings["precision"], quick.settings["precision"]) == ("float64", "float32")
    one, two = exact.sites[0], quick.sites[0]
    assert (one.fuzziness != two.fuzziness) is (classes == 160)  # few directions are left to float64
    for name in ("fuzziness", "fuzziness_test", "class_fuzziness", "cdnv", "null"):
        assert getattr(two, name) == pytest.approx(getattr(one, name), rel=1e-6), name
    assert (one.ncc_train, one.ncc_test) == (two.ncc_train, two.ncc_test)


def test_maps_and_components_go_through_the_reductions_of_measure() -> None:
    generator = torch.Generator().manual_seed(0)
    x, y = torch.randn(60, 4, 3, 3, generator=generator), torch.arange(60) % 3
    mean = equisep.measure_features({"maps": x}, y, reduction="mean", intervals="none")
    assert mean.sites[0].dim == 4
    assert mean.sites[0].fuzziness == pytest.approx(equisep.fuzziness(x.mean(dim=(2, 3)), y), rel=1e-12)
    assert equisep.measure_features({"maps": x}, y, reduction="pca=2").sites[0].dim == 2


def test_bad_input_is_one_sentence(tmp_path: Path) -> None:
    x, y = data(60)
    for call, error, words in (
        (lambda: equisep.measure_features({"a": x}, y[:50]), DataError, "`a` has 60 rows and the labels are 50"),
        (lambda: equisep.measure_features({"a": x}), InputError, "pass their labels"),
        (lambda: equisep.measure_features(x, y), InputError, "`{'features': x}`"),
        (lambda: equisep.measure_features({"a": x}, y, sites="b"), SiteError, "No layer `b`"),
        (lambda: equisep.measure_features({"a": x}, y, weights="class"), InputError, "no option `weights`"),
        (lambda: equisep.measure_features({"a": x}, y, precision="float16"), InputError, "No precision `float16`"),
        (lambda: equisep.measure_features({"a": x}, y, classes=2), LabelError, "must lie in 0 … 1"),
        (lambda: equisep.measure_features({"a": x}, y, test={"b": x}, test_labels=y), InputError, "the layers of"),
        (lambda: equisep.measure_features({"a": x}, 0 * y), LabelError, "at least 2 classes"),
        (lambda: equisep.measure_features({"a": x}, y, split="test"), InputError, "needs test data"),
        (lambda: equisep.measure_features({"a": x}, y, reduction="pca=2", memory=100), DataError, "1,920 bytes"),
        (lambda: equisep.measure_features({"a": x}, y, test_labels=y), InputError, "`test_labels` needs `test`"),
    ):
        with pytest.raises(error, match=words):
            call()
    x[41, 3] = torch.nan
    with pytest.raises(FeatureError, match="Site `a` gives 1 NaN or Inf among 480 numbers at batch 0 of the training"):
        equisep.measure_features({"a": x}, y)


def store(folder: Path, x: torch.Tensor, y: torch.Tensor) -> Path:
    folder.mkdir(parents=True)
    np.save(folder / "a.npy", x.numpy())
    np.save(folder / "labels.npy", y.numpy())
    return folder


def test_of_a_folder_of_both_the_test_data_are_tested(tmp_path: Path) -> None:
    (x, y), (x_test, y_test) = data(), data(90, seed=1)
    for split, rows, labels in (("train", x, y), ("test", x_test, y_test)):
        store(tmp_path / "both" / split, rows, labels)
    alone = store(tmp_path / "alone", x, y)
    expected = equisep.measure_features({"a": x}, y, test={"a": x_test}, test_labels=y_test)
    found = equisep.measure_features(alone, test=tmp_path / "both")
    assert found.counts_test == (30, 30, 30)
    assert found.sites[0].fuzziness_test == pytest.approx(expected.sites[0].fuzziness_test, rel=1e-12)


def test_classes_are_those_of_the_network_that_gave_the_features(tmp_path: Path) -> None:
    """A network of more outputs than the data have classes."""
    torch.manual_seed(0)
    model = equisep.Fnn(3, width=12, inputs=8, classes=5)
    write_features(model, data(), out=tmp_path / "f", class_names=list("abcde"), name="net")
    direct = equisep.measure(model, data(), name="net", class_names=list("abcde"))
    kept = equisep.measure_features(tmp_path / "f")
    assert kept.counts == direct.counts == (80, 80, 80, 0, 0)
    assert kept.class_names == tuple("abcde")
    assert without_network(kept) == without_network(direct)
    assert equisep.measure_features(tmp_path / "f", classes=4, class_names=list("abcd")).counts == (80, 80, 80, 0)


def test_what_cannot_be_written_says_what_works(model: nn.Module, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"`pca=2` makes others of them\. Write them without, and pass it to"):
        write_features(model, data(), out=tmp_path / "f", reduction="pca=2")
    with pytest.raises(InputError, match=r"is flat.*save maps as they are"):
        write_features(model, data(), out=tmp_path / "f", reduction="positions")
    maps, y = torch.randn(60, 4, 3, 3, generator=torch.Generator().manual_seed(0)), torch.arange(60) % 3
    kept = equisep.measure_features(store(tmp_path / "maps", maps, y), reduction="positions", intervals="none")
    assert kept.sites[0].dim == 4


def test_ranks_that_read_other_stores_are_refused(tmp_path: Path) -> None:
    (x, y), (x_test, y_test) = data(), data(90, seed=1)
    one = store(tmp_path / "one", x, y)
    tested = store(tmp_path / "tested", x_test, y_test)
    order = torch.arange(len(y)).flip(0)
    others = {
        "rows of the training data: 240 and 90": {"features": tested},
        "layers of the training data": {"features": store(tmp_path / "half", x.half(), y)},
        "labels of the training data": {"features": store(tmp_path / "labels", x, y[order])},
        "first rows of the training data": {"features": store(tmp_path / "values", x + 1, y)},
        "blocks of the training data": {"features": tmp_path / "parts"},
        'test data: "none" and "given"': {"features": one, "test": tested},
    }
    for number, part in enumerate((slice(0, 100), slice(100, 240))):
        (tmp_path / "parts" / "a").mkdir(parents=True, exist_ok=True)
        np.save(tmp_path / "parts" / "a" / f"{number}.npy", x[part].numpy())
    np.save(tmp_path / "parts" / "labels.npy", y.numpy())

    def work(rank: int) -> dict[str, Any]:
        given = {said: other if rank else {"features": one} for said, other in others.items()}
        light = {"metrics": ("fuzziness",), "intervals": "none", "coordinates": 0}
        return outcomes({said: partial(equisep.measure_features, **each, **light) for said, each in given.items()})

    for found in in_processes(2, work):
        for said, error in found.items():
            assert isinstance(error, InputError), (said, error)
            assert f"Ranks 0 and 1 disagree on the {said}" in str(error)
            assert "All ranks measure one store" in str(error)


def test_what_was_measured_outlives_test_data_that_vanish(tmp_path: Path) -> None:
    x, y = data(60)
    for split in ("train", "test"):
        (tmp_path / split).mkdir()
        np.save(tmp_path / split / "a.npy", x.numpy())
        np.save(tmp_path / split / "labels.npy", y.numpy())

    def gone(what: str, done: int, total: int | None) -> None:
        (tmp_path / "test" / "a.npy").unlink(missing_ok=True)

    with pytest.raises(EquisepError, match=r"test/a\.npy` could not be read: No such file") as caught:
        equisep.measure_features(tmp_path, progress=gone)
    assert caught.value.profile is not None
    assert caught.value.profile.sites[0].fuzziness == pytest.approx(equisep.fuzziness(x, y), rel=1e-12)


def test_on_the_command_line(tmp_path: Path) -> None:
    done = command(
        "features", "fnn,depth=3", "--data", "embedded-10x10", "--per-class", "30", "--out", "f", folder=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert "3 layers: f" in done.stdout
    assert open_features(tmp_path / "f").manifest["whole"] is False
    done = command("measure", "--features", "f", "--precision", "float32", "--out", "p.json", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    profile = equisep.Profile.load(tmp_path / "p.json")
    assert profile.whole is False
    assert profile.class_names is not None
    assert profile.settings["features"] == "f"
    assert profile.settings["precision"] == "float32"
    for words, said in (
        (("--features", "f", "--model", "fnn"), "`--model` is for a model that is run"),
        (("--features", "nothing"), "There is no file or folder `nothing`"),
        (("--features", "f", "--labels", "kind"), "written with its labels"),
        ((), "needs `--model`"),
    ):
        done = command("measure", *words, folder=tmp_path)
        assert done.returncode == 2
        assert said in done.stderr
