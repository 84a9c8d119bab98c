"""What was trained is kept: chunks that a second call takes up, and ensembles in one file."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from trained_alone import SMALL, clouds, member, mixed, same, start, worst

import equisep.training.ensemble.chunks as chunks
from equisep.errors import EquisepError, InputError, ProfileError
from equisep.models import Fnn
from equisep.training import Ensemble, Member, Recipe, Shape, Stage, Watch, checkpoint, train_ensemble
from equisep.training.ensemble.reading import ARRAYS


@pytest.fixture
def trainings(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Member, ...]]:
    """The members of every chunk that was really trained."""
    seen: list[tuple[Member, ...]] = []
    unwatched = chunks.train_chunk

    def watched(task: Any, *rest: Any) -> Ensemble:
        seen.append(task.members)
        return unwatched(task, *rest)

    monkeypatch.setattr(chunks, "train_chunk", watched)
    return seen


def trained(members: list[Member] | None = None, **options: Any) -> Ensemble:
    x, y = clouds()
    settings = {"dtype": torch.float64, "test": (x, y), "watch": Watch(epochs=(1,), test="sites"), "chunk": 2}
    return train_ensemble(mixed() if members is None else members, x, y, **{**settings, **options})


def equal(one: Ensemble, two: Ensemble) -> None:
    """Everything but when it was made is the same, to the bit."""
    assert one.members == two.members and one.stages == two.stages and one.settings == two.settings
    assert all(same(one.weights(index), two.weights(index)) for index in range(len(one)))
    assert np.array_equal(one.loss, two.loss) and np.array_equal(one.accuracy, two.accuracy)
    assert len(one.readings) == len(two.readings)
    for a, b in zip(one.readings, two.readings, strict=True):
        assert (a.epoch, a.reading) == (b.epoch, b.reading)
        for name in ARRAYS:
            left, right = getattr(a, name), getattr(b, name)
            assert (left is None and right is None) or np.array_equal(left, right, equal_nan=name != "rank"), name


def interrupting(after: int) -> Callable[[str, int, int | None], None]:
    """Ctrl-C at the given report of progress."""
    told = 0

    def progress(what: str, done: int, total: int | None) -> None:
        nonlocal told
        told += 1
        if told == after:
            raise KeyboardInterrupt

    return progress


def test_an_interrupted_call_goes_on_where_it_was(tmp_path: Path, trainings: list[tuple[Member, ...]]) -> None:
    whole = trained(store=tmp_path / "whole")
    assert [len(chunk) for chunk in trainings] == [2, 2, 1]
    order = list(trainings)
    trainings.clear()
    with pytest.raises(KeyboardInterrupt):
        trained(store=tmp_path / "halved", progress=interrupting(5))  # 3 epochs a chunk: in the second
    assert trainings == order[:2]
    assert len(list((tmp_path / "halved").iterdir())) == 1
    trainings.clear()
    resumed = trained(store=tmp_path / "halved")
    assert trainings == order[1:]
    equal(resumed, whole)
    trainings.clear()
    equal(trained(store=tmp_path / "halved"), whole)
    equal(trained(store=str(tmp_path / "whole")), whole)
    assert trainings == []


@pytest.mark.parametrize("cut", [1, 3, 4, 6, 8])
def test_a_chunk_that_is_cut_off_goes_on_from_its_checkpoint(
    cut: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within a stage, at its end, and in a leaky stage that goes on with the moments of the one before."""
    monkeypatch.setattr(checkpoint, "EVERY", 0.0)
    stages = (Stage(epochs=3, trains=(2, 3)), Stage(epochs=3, trains=(1,), leaky=True), Stage(epochs=3))
    options: dict[str, Any] = {"stages": stages, "watch": Watch(epochs=(0, 2, 4)), "chunk": 8, "workers": 1}
    members = mixed(epochs=9)
    with pytest.raises(KeyboardInterrupt):
        trained(members, store=tmp_path, progress=interrupting(cut), **options)
    assert [path.suffix for path in tmp_path.iterdir()] == [".pt"]
    told: list[int] = []
    found = trained(members, store=tmp_path, progress=lambda _, done, of: told.append(done), **options)
    assert told == list(range(cut + 1, 10))  # what was done is not done again
    equal(found, trained(members, **options))
    assert [path.suffix for path in tmp_path.iterdir()] == [".npz"]


def test_a_checkpoint_of_other_company_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint, "EVERY", 0.0)
    options: dict[str, Any] = {"chunk": 8, "workers": 1}
    with pytest.raises(KeyboardInterrupt):
        trained(store=tmp_path, progress=interrupting(2), **options)
    told: list[int] = []
    found = trained(mixed()[:2], store=tmp_path, progress=lambda _, done, of: told.append(done), **options)
    assert told == [1, 2, 3]
    equal(found, trained(mixed()[:2], **options))


def test_a_store_gives_what_no_store_gives(tmp_path: Path) -> None:
    equal(trained(store=tmp_path / "new" / "deep"), trained())


def test_more_members_train_only_what_is_new(tmp_path: Path, trainings: list[tuple[Member, ...]]) -> None:
    trained(mixed()[:3], store=tmp_path)
    trainings.clear()
    found = trained(store=tmp_path)
    assert {one for chunk in trainings for one in chunk} == set(mixed()[3:])
    assert found.members == tuple(mixed())
    trainings.clear()
    fewer = trained([mixed()[3], mixed()[0]], store=tmp_path)
    assert trainings == [] and fewer.members == (mixed()[3], mixed()[0])
    assert same(fewer.weights(0), found.weights(3)) and same(fewer.weights(1), found.weights(0))


def test_the_same_member_twice(tmp_path: Path) -> None:
    found = trained([member(), member(), member(seed=4)], store=tmp_path)
    assert len(found) == 3 and same(found.weights(0), found.weights(1))
    equal(trained([member(), member(), member(seed=4)], store=tmp_path), found)


def other_labels() -> tuple[torch.Tensor, torch.Tensor]:
    x, y = clouds()
    return x, (y + 1) % 3


def changed_start() -> list[Fnn]:
    networks = [start(one) for one in mixed()]
    with torch.no_grad():
        networks[0].head.bias += 1
    return networks


@pytest.mark.parametrize(
    "change",
    [
        {"dtype": torch.float32},
        {"watch": Watch(epochs=(2,), test="sites")},
        {"watch": Watch(epochs=(1,))},
        {"stages": [Stage(epochs=2)]},
        {"stages": [Stage(epochs=3, trains=(1,))]},
        {"test": None},
        {"test": other_labels()},
        {"per_class": 20},
        {"sizes": (20, 20, 3)},
        {"tf32": True},
    ],
    ids=str,
)
def test_another_setting_takes_nothing_stale(
    tmp_path: Path, trainings: list[tuple[Member, ...]], change: Mapping[str, Any]
) -> None:
    trained(store=tmp_path)
    trainings.clear()
    found = trained(store=tmp_path, **change)
    assert sum(map(len, trainings)) == 5
    equal(found, trained(**change))


def test_other_samples_labels_starts_or_members_take_nothing_stale(
    tmp_path: Path, trainings: list[tuple[Member, ...]]
) -> None:
    x, y = clouds()
    options: dict[str, Any] = {"dtype": torch.float64, "watch": Watch(sites=False), "store": tmp_path}
    train_ensemble(mixed(), x, y, **options)
    for members, data, more, new in [
        (mixed(), (x + 1e-9, y), {}, 5),
        (mixed(), (x, (y + 1) % 3), {}, 5),
        (mixed(), (x.flip(0), y.flip(0)), {}, 5),
        (mixed(), (x, y), {"starts": [start(one) for one in mixed()]}, 5),
        (mixed(), (x, y), {"starts": changed_start()}, 1),
        (mixed(epochs=4), (x, y), {}, 5),
        ([replace(one, label_noise=0.5) for one in mixed()], (x, y), {}, 5),
        ([replace(one, data_seed=1) for one in mixed()], (x, y), {}, 5),
        ([replace(one, class_weights=(1.0, 2.0, 3.0)) for one in mixed()], (x, y), {}, 5),
        ([*mixed(), member(rate=0.5)], (x, y), {}, 1),
        (mixed(), (x, y), {}, 0),
        (mixed(), (x, y.to(torch.uint8)), {}, 0),
    ]:
        trainings.clear()
        train_ensemble(members, *data, **options, **more)
        assert sum(map(len, trainings)) == new


@pytest.mark.parametrize("damage", ["cut", "empty", "foreign", "headless", "unreadable", "newer"])
def test_a_damaged_chunk_is_trained_again(tmp_path: Path, trainings: list[tuple[Member, ...]], damage: str) -> None:
    whole = trained(store=tmp_path)
    hurt = sorted(tmp_path.iterdir())[0]
    lost = len(Ensemble.load(hurt))
    content = hurt.read_bytes()
    with np.load(hurt) as file:
        arrays = dict(file)
    header = json.loads(str(arrays["header"]))
    if damage == "cut":
        hurt.write_bytes(content[: len(content) // 2])
    elif damage == "empty":
        hurt.write_bytes(b"")
    elif damage == "foreign":
        np.savez(hurt, x=np.zeros(3))
    elif damage == "headless":
        np.savez(hurt, **{**arrays, "header": np.array(json.dumps({"kind": header["kind"], "schema": 1}))})
    elif damage == "unreadable":
        hurt.write_bytes(b"not an archive at all")
    else:
        np.savez(hurt, **{**arrays, "header": np.array(json.dumps({**header, "schema": 99}))})
    trainings.clear()
    equal(trained(store=tmp_path), whole)
    assert sum(map(len, trainings)) == lost
    trainings.clear()
    equal(trained(store=tmp_path), whole)
    assert trainings == []


def test_a_store_that_cannot_be_written_is_refused_before_training(
    tmp_path: Path, trainings: list[tuple[Member, ...]]
) -> None:
    file = tmp_path / "file"
    file.write_text("hello")
    with pytest.raises(InputError, match=r"^`store` takes a folder; `.*file` is a file\."):
        trained(store=file)
    with pytest.raises(
        InputError, match=r"^`store` cannot be written: `.*below` \(Not a directory\)\. Give another folder\.$"
    ):
        trained(store=file / "below")
    assert trainings == [] and file.read_text() == "hello"


def test_nothing_half_written_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = trained()

    def full(file: Any, **arrays: Any) -> None:
        file.write(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(OSError, match="No space left"):
        found.save(tmp_path / "e.npz")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "shape", [SMALL, Shape((4,), inputs=6, classes=3, norm=False), Shape((), inputs=6, classes=3)], ids=str
)
def test_an_ensemble_is_saved_and_loaded_whole(tmp_path: Path, shape: Shape) -> None:
    members = [*mixed(shape), member(shape=shape, label_noise=0.2, data_seed=3, class_weights=(1.0, 2.0, 0.5))]
    stages = [Stage(epochs=2, trains=(1,), milestones=()), Stage(epochs=1, frozen_norm="hold", milestones=(0.5,))]
    found = trained(members, stages=stages, sizes=[20, 10, 9])
    path = tmp_path / "new" / "ensemble.npz"
    found.save(path)
    again = Ensemble.load(str(path))
    equal(again, found)
    assert again.provenance == found.provenance and again.diverged == found.diverged
    assert again.settings["sizes"] == [20, 10, 9] and again.settings["dtype"] == "float64"
    again.save(path)
    equal(Ensemble.load(path), found)
    assert path.stat().st_mode & 0o777 == 0o666 & ~current_umask()


def current_umask() -> int:
    import os

    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_a_diverged_member_is_saved_too(tmp_path: Path) -> None:
    shape = Shape((4,), inputs=6, classes=3, norm=False)
    found = trained([member("sgd", 1e30, shape=shape), member(shape=shape)])
    found.save(tmp_path / "e.npz")
    again = Ensemble.load(tmp_path / "e.npz")
    assert again.diverged == found.diverged == (1, None)
    assert np.isnan(again.reading().accuracy).tolist() == [True, False]


def test_a_member_is_an_ordinary_network() -> None:
    x, y = clouds()
    found = trained()
    for index in range(5):
        network = found.network(index)
        assert isinstance(network, Fnn) and not network.training
        assert {value.dtype for value in network.parameters()} == {torch.float64}
        assert same(network.state_dict(), found.weights(index))
        with torch.no_grad():
            scores = network(x)
        hits = float((scores.argmax(dim=1) == y).double().mean())
        read = trained(watch=Watch(reading="eval")).reading()
        assert read.accuracy[index] == hits
        assert read.loss[index] == pytest.approx(float(torch.nn.functional.cross_entropy(scores, y)), rel=1e-12)
        network.head.weight.data.zero_()  # a copy: the ensemble keeps its own
        assert not same(network.state_dict(), found.weights(index))


def test_weights_outlive_torchs_own_files(tmp_path: Path) -> None:
    found = trained()
    torch.save(found.weights(1), tmp_path / "member.pt")
    network = Fnn(widths=(8, 7), inputs=6, classes=3).to(torch.float64)
    network.load_state_dict(torch.load(tmp_path / "member.pt", weights_only=True))
    assert same(network.state_dict(), found.weights(1))


def test_some_members_in_any_order() -> None:
    found = trained()
    some = found.taken([4, 0])
    assert len(some) == 2 and some.members == (found.members[4], found.members[0])
    assert same(some.weights(0), found.weights(4)) and same(some.weights(1), found.weights(0))
    assert some.curve(0) == found.curve(4)
    assert np.array_equal(some.loss, found.loss[[4, 0]])


def saved(path: Path, **changes: Any) -> Path:
    """A file as `save` writes it, with a changed header."""
    one = train_ensemble([member(epochs=1)], *clouds())
    one.save(path)
    with np.load(path) as file:
        arrays = dict(file)
    header = {**json.loads(str(arrays["header"])), **changes}
    np.savez(path, **{**arrays, "header": np.array(json.dumps(header))})
    return path


def plain_array(path: Path) -> Path:
    with path.open("wb") as file:
        np.save(file, np.zeros(3))
    return path


def pickled(path: Path) -> Path:
    np.savez(path, header=np.array([{}], dtype=object))
    return path


def without_weights(path: Path) -> Path:
    saved(path)
    with np.load(path) as file:
        arrays = {name: value for name, value in file.items() if name != "theta"}
    np.savez(path, **arrays)
    return path


MEMBER = {"recipe": {"optimizer": "adam"}, "shape": {"widths": [5, 5]}}


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda path: path, "No file `{}`. Give one that `Ensemble.save` wrote."),
        (lambda path: saved(path, schema=3), "written by a newer equisep (layout 3; this one reads 2). Update equisep."),
        (lambda path: saved(path, kind="equisep profile"), "The file holds `equisep profile`, not `equisep ensemble`."),
        (lambda path: saved(path, schema="one"), "`{}` is no ensemble that can be read"),
        (lambda path: saved(path, members=[]), "`{}` is no ensemble that can be read"),
        (lambda path: saved(path, members=[MEMBER]), "The file holds weights of shape (1, 173) for 1 × Fnn-3 (100 inputs"),
        (lambda path: saved(path, members=[{"weight": 1}]), "`members[0]` has the unknown field `weight`"),
        (lambda path: saved(path, stages=[{"frozen_norm": "melt"}]), "`stages[0].frozen_norm` is 'melt'"),
        (plain_array, "`{}` is no ensemble that can be read"),
        (pickled, "`{}` is no ensemble that can be read"),
        (without_weights, "`{}` is no ensemble that can be read"),
        (lambda path: path.parent, "`{}` is no ensemble that can be read"),
    ],
)  # fmt: skip
def test_a_file_that_is_no_ensemble_is_refused_in_one_sentence(
    tmp_path: Path, make: Callable[[Path], Path], sentence: str
) -> None:
    path = make(tmp_path / "e.npz")
    with pytest.raises(EquisepError) as caught:
        Ensemble.load(path)
    assert sentence.format(path) in str(caught.value)
    assert isinstance(caught.value, ProfileError) or "weights of shape" in str(caught.value)


def test_chunks_that_version_0_1_stored_are_taken_up(tmp_path: Path, trainings: list[tuple[Member, ...]]) -> None:
    """Their keys were made of former names, and their readings were called modes."""
    shutil.copytree(Path(__file__).parent / "stored_by_0_1", tmp_path / "store")
    shape = Shape((3,), inputs=2, classes=2)
    x = torch.tensor(
        [[1.0, 0.5], [-1.0, 0.25], [0.75, 1.5], [-0.5, -1.25], [1.25, 0.125], [-1.5, 0.375]], dtype=torch.float64
    )
    y = torch.tensor([0, 1, 0, 1, 0, 1])
    members = [Member(Recipe("adam", 0.01, epochs=2, batch_size=3, seed=s), shape, data_seed=s) for s in (0, 1)]
    watch = Watch(epochs=(1,), reading=("mixed", "eval"))
    stored = train_ensemble(members, x, y, test=(x, y), dtype=torch.float64, watch=watch, store=tmp_path / "store")
    assert trainings == []
    fresh = train_ensemble(members, x, y, test=(x, y), dtype=torch.float64, watch=watch)
    assert stored.settings == fresh.settings and stored.members == fresh.members
    for index in range(2):
        assert worst(stored.weights(index), fresh.weights(index)) < 1e-10
    for one, two in zip(stored.readings, fresh.readings, strict=True):
        assert (one.epoch, one.reading) == (two.epoch, two.reading)
        assert one.arrays().keys() == two.arrays().keys()
        np.testing.assert_allclose(one.fuzziness, two.fuzziness, rtol=1e-9)  # type: ignore[arg-type]


def test_everything_that_can_change_a_number_is_recorded() -> None:
    watch = Watch(epochs=(1,), reading="eval", batch_size=50, seed=2)
    one = Member(Recipe(epochs=1, batch_size=35), SMALL)
    found = trained([one], watch=watch, per_class=20, starts=[start(one)], tf32=True)
    expected = {"dtype": "float64", "tf32": True, "engine": "eager", "per_class": 20, "sizes": None, "starts": "given"}
    assert {name: found.settings[name] for name in expected} == expected
    assert found.settings["watch"]["readings"] == ["eval"] and found.settings["watch"]["batch_size"] == 50
    assert found.settings["stages"][0]["epochs"] == 1
    assert "keys" not in found.settings
    assert {"torch", "device", "dtype", "equisep"} <= set(found.provenance)
    json.dumps(found.settings)
