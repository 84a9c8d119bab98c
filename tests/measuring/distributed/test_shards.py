"""Shards by files: the profile of one process, the same bytes in any order, and one sentence for parts that do not belong."""

from __future__ import annotations

import itertools
import json
import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from one_process import LIGHT, data, differences, images, network, wide
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import equisep
from equisep.data.shard import Shard
from equisep.errors import DataError, InputError
from equisep.measuring.distributed.merge import merge_files
from equisep.measuring.distributed.part import Means, Part, read_part, write_part
from equisep.measuring.distributed.shards import ShardTask, measure_shard
from equisep.results import Profile
from equisep.separation.site import quick

TRAIN, TEST = data(), data((40, 30, 20, 11), seed=2)
ONE: dict[str, Any] = {"metrics": "cdnv", "coordinates": 0}


def first_round(folder: Path, model: nn.Module, *sets: Any, count: int, **options: Any) -> list[Path]:
    return [
        measure_shard(model, *sets, task=ShardTask(Shard(i, count), folder / f"a{i}.npz"), **options)
        for i in range(count)
    ]


def second_round(folder: Path, model: nn.Module, *sets: Any, count: int, **options: Any) -> list[Path]:
    means = folder / "means.npz"
    return [
        measure_shard(model, *sets, task=ShardTask(Shard(i, count), folder / f"b{i}.npz", means), **options)
        for i in range(count)
    ]


def merged_means(parts: list[Path], path: Path) -> Path:
    means = merge_files(parts)
    assert isinstance(means, Means)
    write_part(path, means)
    return path


def by_shards(folder: Path, model: nn.Module, *sets: Any, count: int, **options: Any) -> Profile:
    merged_means(first_round(folder, model, *sets, count=count, **options), folder / "means.npz")
    profile = merge_files(second_round(folder, model, *sets, count=count, **options))
    assert isinstance(profile, Profile)
    return profile


@pytest.mark.parametrize("count", [5])
def test_shards_give_the_profile_of_one_process(tmp_path: Path, count: int) -> None:
    """307 samples in four batches: five shards leave one empty; one class has 16 samples."""
    whole = equisep.measure(network(), TRAIN, TEST)
    assert not differences(by_shards(tmp_path, network(), TRAIN, TEST, count=count), whole)


SCENES: dict[str, tuple[Any, tuple[Any, ...], dict[str, Any]]] = {
    "readings": (network(), (TRAIN, TEST), {"readings": ("mixed", "drawn"), **LIGHT}),
    "float32": (network(kind=torch.float32), (data(kind=torch.float32),), {"weighting": "mixed", **LIGHT}),
    "wide float32": (wide(), (data(kind=torch.float32),), {"whole": False, **LIGHT}),
    "a class in one shard": (network(), (data((60, 50, 1, 2)),), {"whole": False}),
    "several rows of a sample": (images()[0], (images()[1],), {"reduction": "positions", "coordinates": 0, **LIGHT}),
    "a loader as it comes": (
        network(),
        (DataLoader(TensorDataset(*TRAIN), batch_size=37),),
        LIGHT,
    ),
    "a data set": (network(), (TensorDataset(*TRAIN), TensorDataset(*TEST)), {"memory": 0, **ONE}),
    "more classes than a table holds": (network(600), (data((2,) * 600),), {"metrics": ("ncc", "confusion")}),
    "columns by name": (network(), ({"input": TRAIN[0], "labels": TRAIN[1]},), {"metrics": ("fuzziness", "confusion")}),
}


@pytest.mark.parametrize("name", SCENES)
def test_whatever_is_measured(tmp_path: Path, name: str) -> None:
    model, sets, options = SCENES[name]
    assert not differences(
        by_shards(tmp_path, model, *sets, count=3, **options), equisep.measure(model, *sets, **options)
    )


def test_products_in_float32_travel_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are rounded otherwise in every division, which is what was asked for."""
    monkeypatch.setattr(quick, "pays", lambda d, r: True)  # else so few directions are float64
    options = {"precision": "float32", **LIGHT}
    pair = data(kind=torch.float32)
    found, whole = by_shards(tmp_path, wide(), pair, count=3, **options), equisep.measure(wide(), pair, **options)
    assert found.curve() == pytest.approx(whole.curve(), rel=1e-6) and found.curve() != whole.curve()


def test_parts_merge_to_the_same_bytes_in_any_order(tmp_path: Path) -> None:
    model = network()
    parts = first_round(tmp_path, model, TRAIN, TEST, count=4, **LIGHT)
    one = merged_means(parts, tmp_path / "means.npz").read_bytes()
    assert merged_means([parts[i] for i in (2, 0, 3, 1)], tmp_path / "other.npz").read_bytes() == one
    seconds = second_round(tmp_path, model, TRAIN, TEST, count=4, **LIGHT)
    saved = []
    for order in ((0, 1, 2, 3), (3, 1, 0, 2)):
        profile = merge_files([seconds[i] for i in order])
        assert isinstance(profile, Profile)
        saved.append(profile.save(tmp_path / f"{order[0]}.json").read_bytes())
    assert saved[0] == saved[1]
    assert json.loads(saved[0])["provenance"]["shards"] == 4


def test_samples_of_several_rows_have_no_picture_and_a_note(tmp_path: Path) -> None:
    model, pair = images()
    profile = by_shards(tmp_path, model, pair, count=2, reduction="positions")
    assert all(site.coordinates is None for site in profile.sites)
    assert "no-coordinates" in [note.code for note in profile.notes]


# --- parts that do not belong together


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both rounds of two shards, and parts of other measurements beside them."""
    folder = tmp_path_factory.mktemp("parts")
    merged_means(first_round(folder, network(), TRAIN, count=2, **ONE), folder / "means.npz")
    second_round(folder, network(), TRAIN, count=2, **ONE)
    other = network()
    with torch.no_grad():
        other[0].weight[0, 0] += 1
    task = ShardTask(Shard(1, 2), folder / "model.npz")
    measure_shard(other, TRAIN, task=task, **ONE)
    measure_shard(network(), data(seed=9), task=replace(task, out=folder / "data.npz"), **ONE)
    measure_shard(network(), TRAIN, task=replace(task, out=folder / "options.npz"), seed=1, **ONE)
    measure_shard(network(), TRAIN, task=ShardTask(Shard(1, 3), folder / "third.npz"), **ONE)
    tanh = network()
    tanh[2] = nn.Tanh()  # which has no weights
    measure_shard(tanh, TRAIN, task=replace(task, out=folder / "activation.npz"), **ONE)
    measure_shard(network(), TRAIN, TEST, task=replace(task, out=folder / "tested.npz"), **ONE)
    measure_shard(network(), TRAIN, task=replace(task, out=folder / "readings.npz"), readings=("eval", "drawn"), **ONE)
    measure_shard(network(), TRAIN, task=replace(task, out=folder / "names.npz"), class_names=list("abcd"), **ONE)
    longer = [torch.cat([part, part[-5:]]) for part in TRAIN]
    lists = [list(zip(*(part.split(100) for part in pair), strict=True)) for pair in (TRAIN, longer)]
    for name, loader in (("list", lists[0]), ("longer", lists[1])):
        measure_shard(network(), loader, task=replace(task, out=folder / f"{name}.npz"), **ONE)
    part = read_part(folder / "a1.npz")
    assert isinstance(part, Part)
    write_part(folder / "version.npz", replace(part, shared={**part.shared, "version": "0.0.1"}))
    (folder / "damaged.npz").write_bytes((folder / "a1.npz").read_bytes()[:-400])
    (folder / "words.npz").write_text("no archive")
    return folder


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (("a0", "model"), "their model differs"),
        (("a0", "data"), "their data differs"),
        (("a0", "options"), "their options differ"),
        (("a0", "activation"), "their model differs"),
        (("a0", "tested"), "their data differs"),
        (("a0", "readings"), "their options differ"),
        (("a0", "names"), "their names of the classes differ"),
        (("list", "longer"), "their data differs"),
        (("a0", "version"), "version of equisep differs: .*0.0.1"),
        (("a0", "third"), "divided in two ways"),
        (("a0", "b1"), "one round at a time"),
        (("a0", "a0"), "Shard 1/2 is there twice"),
        (("a1",), "1 of 2 shards are missing: 1. Run `--shard 1/2`"),
        (("a0", "means"), "is the means of a first round"),
        (("a0", "damaged"), "damaged, or no part"),
        (("a0", "words"), "damaged, or no part"),
        (("a0", "nowhere"), "There is no file"),
        ((), "no part to merge"),
    ],
)
def test_parts_that_do_not_belong_are_refused(parts: Path, names: tuple[str, ...], words: str) -> None:
    with pytest.raises(DataError, match=words):
        merge_files([parts / f"{name}.npz" for name in names])


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"means": "a0.npz"}, "holds no means"),
        ({"shard": Shard(1, 3)}, "are of 2 shards, and this is shard 2/3"),
        ({"means": "nowhere.npz"}, "There is no file"),
    ],
)
def test_means_that_do_not_belong_are_refused(parts: Path, changed: dict[str, Any], words: str) -> None:
    means = parts / changed.get("means", "means.npz")
    task = ShardTask(changed.get("shard", Shard(1, 2)), parts / "new.npz", means)
    with pytest.raises(DataError, match=words):
        measure_shard(network(), TRAIN, task=task, **ONE)


def test_data_that_change_between_the_rounds_are_refused(tmp_path: Path, parts: Path) -> None:
    x, y = TRAIN
    moved = x.clone()
    moved[y == 2] += 1  # the first batch of the whole stays what it is where it holds none of them
    loader = [(x[:100], y[:100]), (x[100:], y[100:])]
    model = network()
    merged_means(first_round(tmp_path, model, loader, count=2, **ONE), tmp_path / "means.npz")
    other = [loader[0], (moved[100:], y[100:])]
    with pytest.raises(DataError, match="holds other samples than in the first round"):
        measure_shard(model, other, task=ShardTask(Shard(1, 2), tmp_path / "b.npz", tmp_path / "means.npz"), **ONE)


@pytest.mark.parametrize("options", [{"intervals": "bootstrap"}, {"reduction": "pca=3"}])
def test_what_needs_all_features_at_once_is_refused(tmp_path: Path, options: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="needs all features in one process"):
        measure_shard(network(), TRAIN, task=ShardTask(Shard(0, 2), tmp_path / "a.npz"), **options)


def test_a_loader_that_shuffles_has_no_shards(tmp_path: Path) -> None:
    loader = DataLoader(TensorDataset(*TRAIN), batch_size=50, shuffle=True)
    with pytest.raises(DataError, match="shuffles anew in every process"):
        measure_shard(network(), loader, task=ShardTask(Shard(0, 2), tmp_path / "a.npz"))


@pytest.mark.parametrize("text", ["0/4", "5/4", "3", "a/b", "3/0"])
def test_shards_are_counted_from_one(text: str) -> None:
    with pytest.raises(InputError, match="with I from 1 to N"):
        Shard.of(text)


# --- shards that are stopped


def killed(model: nn.Sequential, *sets: Any, task: ShardTask, after: int) -> bool:
    """Run a shard in a process of its own, which dies after so many forward passes; whether it did."""
    child = os.fork()
    if child == 0:
        passes = itertools.count(1)
        model.register_forward_pre_hook(
            lambda module, args: os.kill(os.getpid(), signal.SIGKILL) if next(passes) == after else None
        )
        try:
            measure_shard(model, *sets, task=task, **LIGHT)
        finally:
            os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def test_a_shard_that_is_killed_goes_on_from_its_last_group_of_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Five kills over both rounds, of the training and of the test data; what is left is what was never stopped."""
    monkeypatch.setattr("equisep.measuring.distributed.shards.GROUP", 2)
    loader = [list(zip(x.split(20), y.split(20), strict=True)) for x, y in (TRAIN, TEST)]
    expected = by_shards(tmp_path / "whole", network(), *loader, count=2, **LIGHT)
    folder, deaths = tmp_path / "killed", 0
    for letter, means in (("a", None), ("b", folder / "means.npz")):
        for index, kills in ((0, (7, 9)), (1, (6,) if means is None else ())):
            task = ShardTask(Shard(index, 2), folder / f"{letter}{index}.npz", means, every=0.0)
            for after in kills:
                deaths += killed(network(), *loader, task=task, after=after)
                assert task.checkpoint.exists() and not task.out.exists()
            measure_shard(network(), *loader, task=task, **LIGHT)
            assert not task.checkpoint.exists()
        if means is None:
            merged_means([folder / "a0.npz", folder / "a1.npz"], folder / "means.npz")
    assert deaths == 5
    profile = merge_files([folder / "b0.npz", folder / "b1.npz"])
    assert isinstance(profile, Profile)
    assert profile.to_dict() == expected.to_dict()


def test_a_shard_that_is_there_is_not_read_again(tmp_path: Path) -> None:
    task = ShardTask(Shard(0, 2), tmp_path / "a.npz")
    measure_shard(network(), TRAIN, task=task, **ONE)
    before = task.out.stat().st_mtime_ns
    measure_shard(network(), TRAIN, task=task, **ONE)
    assert task.out.stat().st_mtime_ns == before
    measure_shard(network(), TRAIN, task=task, seed=3, **ONE)  # another measurement takes its place
    assert task.out.stat().st_mtime_ns > before
