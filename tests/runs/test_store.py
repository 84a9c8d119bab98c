"""The store: cells appear whole or not at all, processes share it, a full disk or a damaged file costs nothing else."""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from equisep.errors import EquisepError, InputError, StoreError
from equisep.figures.cell import Cell
from equisep.figures.outcome import Curves, Outcome
from equisep.files import locked
from equisep.runs.cell_files import cell_text
from equisep.runs.store import Store

CELL = Cell(seed=3, rate=1, noise=(0.1, 2))
OUTCOME = Outcome(
    readings=(Curves(epoch=600, reading="mixed", sites=("input", "layer 1"), fuzziness=(27.1, 0.1 + 0.2), loss=1e-9),),
    numbers={"final_loss": 0.25, "unknown": None},
    arrays={"ratios": (1.0, None)},
    points={"input": ((0.5, -1.25, 3.0),)},
    notes=("ρ is above 1.",),
)
MADE = {"equisep": "0.1.0", "wall_s": 12.5, "flags": ["tf32"]}


def filled(root: Path, cells: int = 1) -> tuple[Store, list[Cell]]:
    store = Store.open(root)
    made = [CELL.with_(seed=seed) for seed in range(cells)]
    assert all(store.put(cell, OUTCOME, MADE) for cell in made)
    return store, made


def path_of(root: Path, key: str) -> Path:
    return root / "cells" / key[:2] / f"{key}.json"


def every_file(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


# what is put comes back


def test_a_cell_comes_back_as_it_was_put(tmp_path: Path) -> None:
    store, (cell,) = filled(tmp_path / "store")
    assert store.done([cell.key, Cell().key]) == {cell.key}
    found = Store.open(tmp_path / "store", create=False).get(cell.key)
    assert (found.cell, found.outcome, found.provenance) == (cell, OUTCOME, MADE)
    assert found.cell.key == cell.key
    assert set(every_file(tmp_path / "store")) == {"store.json", ".lock", f"cells/{cell.key[:2]}/{cell.key}.json"}
    assert json.loads(path_of(tmp_path / "store", cell.key).read_text())["provenance"] == MADE


def test_a_cell_is_never_overwritten(tmp_path: Path) -> None:
    store, (cell,) = filled(tmp_path / "store")
    before = every_file(tmp_path)
    assert store.put(cell, Outcome(numbers={"other": 1.0}), {}) is False
    assert every_file(tmp_path) == before and store.notes == []


def test_numbers_that_are_not_finite_are_stored_as_missing(tmp_path: Path) -> None:
    outcome = Outcome(numbers={"a": math.nan, "b": math.inf, "c": 1.0}, arrays={"d": (1.0, -math.inf)}, diverged=3)
    store = Store.open(tmp_path / "store")
    store.put(Cell(), outcome, {"wall_s": math.nan})
    found = store.get(Cell().key)
    assert found.outcome == Outcome(numbers={"a": None, "b": None, "c": 1.0}, arrays={"d": (1.0, None)}, diverged=3)
    assert found.provenance == {"wall_s": None}


def test_a_cell_whose_settings_are_not_finite_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"not finite"):
        Store.open(tmp_path / "store").put(Cell(rate=math.nan), OUTCOME, {})


words = st.text(max_size=8)
numbers = st.floats(allow_nan=False, allow_infinity=False) | st.none()
curves = st.lists(numbers, max_size=4).map(tuple)
readings = st.builds(
    Curves,
    epoch=st.integers(0, 600),
    reading=words,
    sites=st.lists(words, max_size=3).map(tuple),
    fuzziness=curves,
    ncc_test=curves,
    class_fuzziness=st.lists(curves, max_size=2).map(tuple),
    loss=numbers,
)
outcomes = st.builds(
    Outcome,
    readings=st.lists(readings, max_size=3).map(tuple),
    numbers=st.dictionaries(words, numbers, max_size=3),
    arrays=st.dictionaries(words, curves, max_size=2),
    diverged=st.none() | st.integers(0, 9),
    notes=st.lists(words, max_size=2).map(tuple),
)
cells = st.builds(
    Cell,
    data=words,
    rate=st.floats(1e-8, 10) | st.integers(0, 10),
    seed=st.integers(0, 2**40),
    sizes=st.none() | st.lists(st.integers(0, 99), max_size=3).map(tuple),
    noise=st.lists(st.floats(0, 1) | st.integers(0, 1), max_size=3).map(tuple),
    norm=st.booleans(),
)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cell=cells, outcome=outcomes, made=st.dictionaries(words, numbers | words | st.lists(numbers, max_size=2)))
def test_any_cell_makes_the_round_trip(tmp_path: Path, cell: Cell, outcome: Outcome, made: dict[str, Any]) -> None:
    store = Store.open(tmp_path / "store")
    if not store.put(cell, outcome, made):
        path_of(tmp_path / "store", cell.key).unlink()
        assert store.put(cell, outcome, made)
    found = store.get(cell.key)
    assert (found.cell, found.outcome, found.provenance) == (cell, outcome, made)
    assert found.cell.key == cell.key and store.done([cell.key]) == {cell.key}


# what is no store


def test_a_store_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    filled(tmp_path)
    (tmp_path / "store.json").write_text('{"kind": "equisep store", "schema": 7}')
    for create in (True, False):
        with pytest.raises(
            StoreError, match=r"newer equisep \(schema 7; this version reads up to 2\). Upgrade"
        ) as caught:
            Store.open(tmp_path, create=create)
        assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("", "`store.json` is truncated or no JSON"),
        ("[1]", "holds a list, not an object"),
        ('{"kind": "equisep profile", "schema": 1}', "is no store: its `store.json` is of the kind 'equisep profile'"),
        ('{"kind": "equisep store"}', "is no store"),
    ],
)
def test_a_strange_store_json_is_refused(tmp_path: Path, content: str, sentence: str) -> None:
    (tmp_path / "store.json").write_text(content)
    with pytest.raises(StoreError, match=sentence):
        Store.open(tmp_path)
    assert every_file(tmp_path) == {"store.json": content.encode()}


def test_a_folder_of_something_else_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("…")
    with pytest.raises(
        StoreError, match=r"is no store: it has no `store.json`, and 1 other entries such as `thesis.tex`"
    ):
        Store.open(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_file_is_no_store(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match=r"A store is a folder, and `.*file` is a file"):
        Store.open(tmp_path / "file")
    with pytest.raises(StoreError, match=r"cannot be read: Not a directory. Give another folder."):
        Store.open(tmp_path / "file" / "store")


def test_reading_makes_no_store(tmp_path: Path) -> None:
    for root in (tmp_path, tmp_path / "none"):
        with pytest.raises(StoreError, match=r"No store at `.*`. `equisep figures run` makes one."):
            Store.open(root, create=False)
    assert not list(tmp_path.iterdir())


@pytest.fixture
def unwritable(tmp_path: Path) -> Iterator[Path]:
    """A store that may be read and not be written; root, who may do everything, is somebody else meanwhile."""
    with tempfile.TemporaryDirectory() as place:  # `tmp_path` is closed to others
        root = Path(place) / "store"
        filled(root)
        Path(place).chmod(0o755)
        everything = [root, *root.rglob("*")]
        for path in everything:
            path.chmod(0o555 if path.is_dir() else 0o444)
        user = os.geteuid()
        if user == 0:
            os.seteuid(65534)
        try:
            if not os.access(root, os.R_OK | os.X_OK, effective_ids=True):
                pytest.skip("temporary folders are closed to others here")
            yield root
        finally:
            os.seteuid(user)
            for path in everything:
                path.chmod(0o755)


def test_a_folder_that_cannot_be_written(unwritable: Path) -> None:
    with pytest.raises(StoreError, match=r"could not be stored in .*: Permission denied.* make the folder writable"):
        Store.open(unwritable)
    reader = Store.open(unwritable, create=False)
    stored = CELL.with_(seed=0).key
    assert reader.done([stored]) == {stored}
    with pytest.raises(StoreError, match=r"Cell \w+ could not be stored .*: Permission denied"):
        reader.put(Cell(), OUTCOME, {})


# damaged cells


def truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def another_cell(path: Path) -> None:
    path.write_text(cell_text({"seed": 99}, OUTCOME, MADE))


def a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()
    (path / "notes.txt").touch()


def replaced(old: str, new: str) -> Callable[[Path], Any]:
    return lambda path: path.write_text(path.read_text().replace(old, new))


CHANGED = "is truncated or was changed"
DAMAGES: dict[str, tuple[Callable[[Path], Any], str]] = {
    "truncated": (truncate, CHANGED),
    "empty": (lambda path: os.truncate(path, 0), CHANGED),
    "cut within its last line": (lambda path: os.truncate(path, path.stat().st_size - 1), CHANGED),
    "a changed outcome": (replaced("27.1", "27.2"), CHANGED),
    "a changed provenance": (replaced("12.5", "12.6"), CHANGED),
    "a changed cell": (replaced('"seed":', '"seed":9'), CHANGED),
    "another checksum": (replaced('"sha256":"', '"sha256":"0'), CHANGED),
    "no checksum": (replaced("sha256", "sha"), CHANGED),
    "no JSON": (lambda path: path.write_bytes(bytes(range(256))), CHANGED),
    "another cell": (another_cell, "is of another cell"),
    "a folder": (a_folder, "is a folder"),
}


@pytest.mark.parametrize(("damage", "reason"), DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_cell_is_never_done_and_is_written_anew(
    tmp_path: Path, damage: Callable[[Path], Any], reason: str
) -> None:
    store, made = filled(tmp_path, cells=3)
    hurt = made[1].key
    damage(path_of(tmp_path, hurt))
    before = every_file(tmp_path)
    whole = {made[0].key, made[2].key}

    reader = Store.open(tmp_path, create=False)  # a reader reports it and touches nothing
    assert reader.done([cell.key for cell in made]) == whole
    assert len(reader.notes) == 1 and reason in reader.notes[0] and hurt in reader.notes[0]
    with pytest.raises(StoreError, match=f"Cell {hurt} in .* is damaged: .* Run its figure again"):
        reader.get(hurt)
    assert every_file(tmp_path) == before

    for writer in (store, Store.open(tmp_path)):  # opened before it was damaged, and after
        assert writer.put(made[1], OUTCOME, MADE) is True
        assert reason in writer.notes[0]
        assert writer.done([cell.key for cell in made]) == whole | {hurt}
        assert writer.get(hurt).outcome == OUTCOME and Store.open(tmp_path).notes == []
        damage(path_of(tmp_path, hurt))


def test_every_byte_of_a_cell_is_guarded(tmp_path: Path) -> None:
    store, (cell,) = filled(tmp_path)
    path = path_of(tmp_path, cell.key)
    whole = path.read_bytes()
    for at in range(0, len(whole), 7):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        assert store.done([cell.key]) == set()
    path.write_bytes(whole)
    assert store.done([cell.key]) == {cell.key}


def test_a_cell_of_a_newer_version_is_not_taken_for_damaged(tmp_path: Path) -> None:
    """Its new field has a key of its own, which this version never asks for; the file is left as it is."""
    store, _ = filled(tmp_path)
    own = {"seed": 3, "sharpness": 0.1}
    key = hashlib.sha256(json.dumps(own, sort_keys=True).encode()).hexdigest()[:32]
    path_of(tmp_path, key).parent.mkdir(parents=True, exist_ok=True)
    path_of(tmp_path, key).write_text(cell_text(own, OUTCOME, MADE))
    before = every_file(tmp_path)
    assert Store.open(tmp_path).notes == [] and every_file(tmp_path) == before
    with pytest.raises(StoreError, match=r"cannot be read by this version: A cell has no field `sharpness`.*upgrade"):
        store.get(key)


def test_a_disk_that_cannot_be_read_is_no_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, (cell,) = filled(tmp_path)

    def fails(path: Path) -> bytes:
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", fails)
        with pytest.raises(StoreError, match=r"cannot be read: Too many open files"):
            store.done([cell.key])
    assert store.done([cell.key]) == {cell.key}


def test_no_such_cell(tmp_path: Path) -> None:
    store = Store.open(tmp_path)
    with pytest.raises(StoreError, match=f"No cell {CELL.key} in .* It was not run, or in another store."):
        store.get(CELL.key)
    for key in ("../../etc/passwd", "", CELL.key[:-1], CELL.key.upper()):
        with pytest.raises(InputError, match=r"is no key of a cell"):
            store.get(key)


def test_leftovers_of_dead_processes_are_removed_by_a_writer(tmp_path: Path) -> None:
    filled(tmp_path)
    (tmp_path / "figures" / "he2023").mkdir(parents=True)
    names = (f"cells/{CELL.key[:2]}/.{CELL.key}.json.0a1b2c3d.part", "figures/he2023/.fig1.paper.json.0a1b2c3d.part")
    for path in (*(tmp_path / name for name in names), tmp_path / ".store.json.0a1b2c3d.part"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{")
    former = tmp_path / "cells" / f".{CELL.key}.17-0@host.part"  # of version 0.1
    former.mkdir()
    (former / "outcome.json").write_text("{")
    before = every_file(tmp_path)
    Store.open(tmp_path, create=False)
    assert every_file(tmp_path) == before
    Store.open(tmp_path)
    assert not list(tmp_path.rglob("*.part"))


def test_what_another_process_is_writing_is_no_leftover(tmp_path: Path) -> None:
    """Whoever writes holds the lock: a store that is opened meanwhile waits, and removes nothing of it."""
    filled(tmp_path)
    part = tmp_path / "cells" / ".being-written.part"
    with locked(tmp_path / ".lock"):
        part.touch()
        opening = subprocess.Popen(
            [
                sys.executable,
                "-c",
                "import sys; from equisep.runs.store import Store; Store.open(sys.argv[1])",
                tmp_path,
            ]
        )
        with pytest.raises(subprocess.TimeoutExpired):
            opening.wait(timeout=3)
        assert part.exists()
        part.unlink()
    assert opening.wait(timeout=60) == 0


# full disks


def full(*_: Any, **__: Any) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_is_one_sentence_and_leaves_the_store_intact(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, made = filled(tmp_path, cells=2)
    store.add_manifest("he2023/fig1", "paper", [("a", made[0])], {})
    before = every_file(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr("equisep.files.write_synced", full)
        with pytest.raises(
            StoreError,
            match=r"Cell \w{32} could not be stored in .*: the disk is full \(.* is free there\)\. What was stored before is "
            r"intact; free some space and run the same command again\.",
        ):
            store.put(Cell(), OUTCOME, MADE)
        with pytest.raises(StoreError, match=r"The manifest of `he2023/fig1` could not be stored .* the disk is full"):
            store.add_manifest("he2023/fig1", "paper", [("b", made[1])], {})
        with pytest.raises(StoreError, match=r"`store.json` could not be stored"):
            Store.open(tmp_path / "new")
        shutil.rmtree(tmp_path / "new")
    assert every_file(tmp_path) == before
    assert store.put(Cell(), OUTCOME, MADE)


def test_a_used_up_quota_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def over(*_: Any) -> None:
        raise OSError(errno.EDQUOT, "Disk quota exceeded")

    store = Store.open(tmp_path)
    monkeypatch.setattr("equisep.files.write_synced", over)
    with pytest.raises(StoreError, match=r"its quota is used up"):
        store.put(CELL, OUTCOME, MADE)


def test_a_real_write_that_fails_half_way(tmp_path: Path) -> None:
    """A limit on the size of files ends a write in the middle of a cell."""
    store, _ = filled(tmp_path)
    before = every_file(tmp_path)
    large = Outcome(arrays={"a": tuple(float(n) for n in range(20_000))})
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limits[1]))
    try:
        with pytest.raises(StoreError, match=r"could not be stored in .*: File too large"):
            store.put(Cell(), large, MADE)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert every_file(tmp_path) == before
    assert store.put(Cell(), large, MADE)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "disk"
    place.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(place)], capture_output=True, text=True
    )
    if made.returncode:
        pytest.skip(f"a disk of 256 KiB cannot be mounted here: {made.stderr.strip()}")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_a_disk_that_really_runs_full(small_disk: Path) -> None:
    store = Store.open(small_disk / "store")
    outcome = Outcome(arrays={"a": tuple(float(n) for n in range(4000))})
    made = [Cell(seed=seed) for seed in range(100)]
    stored: list[Cell] = []
    with pytest.raises(StoreError, match=r"the disk is full \(\d+ (bytes|KiB) is free there\)"):
        for cell in made:
            store.put(cell, outcome, MADE)
            stored.append(cell)
    assert stored
    again = Store.open(small_disk / "store", create=False)
    assert again.done([cell.key for cell in made]) == {cell.key for cell in stored} and again.notes == []
    assert not list(small_disk.rglob("*.part"))
    assert all(again.get(cell.key).outcome == outcome for cell in stored)


# other stores


def former_put(root: Path, own: dict[str, Any], outcome: dict[str, Any], made: dict[str, Any]) -> Path:
    """A cell as version 0.1 wrote it, on its own terms: three files, two checksums."""
    key = hashlib.sha256(json.dumps(own, sort_keys=True).encode()).hexdigest()[:32]
    folder = root / "cells" / key[:2] / key
    folder.mkdir(parents=True)
    (root / "store.json").write_text('{\n "kind": "equisep store",\n "schema": 1,\n "equisep": "0.1.0"\n}\n')
    texts = {"outcome.json": json.dumps(outcome, separators=(",", ":")), "provenance.json": json.dumps(made, indent=1)}
    sums = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in texts.items()}
    for name, text in {**texts, "cell.json": json.dumps({"cell": own, "sha256": sums}, indent=1)}.items():
        (folder / name).write_text(text)
    return folder


FORMER: tuple[dict[str, Any], ...] = (
    {"seed": 3, "rate": 1.0, "noise": [0.1, 2.0]},
    {
        "readings": [{
            "epoch": 600, "mode": "batch", "grain": "layers", "reduction": "flatten", "weighting": "sample",
            "sites": ["input", "layer 1"], "fuzziness": [27.1, 0.1 + 0.2], "cdnv": [], "ncc": [], "fuzziness_test": [],
            "cdnv_test": [], "ncc_test": [], "class_fuzziness": [], "loss": 1e-9, "accuracy": None, "accuracy_test": None,
        }],
        "numbers": {"final_loss": 0.25, "unknown": None}, "arrays": {"ratios": [1.0, None]},
        "points": {"input": [[0.5, -1.25, 3.0]]}, "diverged": None, "notes": ["\u03c1 is above 1."],
    },
    MADE,
)  # fmt: skip


def test_a_store_of_version_0_1_is_read_and_goes_on(tmp_path: Path) -> None:
    folder = former_put(tmp_path, *FORMER)
    assert folder.name == CELL.key
    manifest = {"kind": "equisep manifest", "schema": 1, "figure": "he2023/fig1", "scale": "paper"}
    path = tmp_path / "figures" / "he2023" / "fig1.paper.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({**manifest, "settings": {"seeds": 1}, "entries": [["adam-8", FORMER[0]]]}))
    before = every_file(tmp_path)
    reader = Store.open(tmp_path, create=False)
    (entry,) = reader.entries("he2023/fig1", "paper")
    assert (entry.cell, entry.outcome, entry.provenance) == (CELL, OUTCOME, MADE)
    assert reader.done([CELL.key]) == {CELL.key} and every_file(tmp_path) == before

    store = Store.open(tmp_path)
    assert store.put(CELL, Outcome(), {}) is False and store.put(Cell(), OUTCOME, MADE) is True
    after = every_file(tmp_path)
    assert {name: after[name] for name in before if name != "store.json"} == {
        name: content for name, content in before.items() if name != "store.json"
    }
    assert (
        json.loads(after["store.json"])["schema"] == 2
    )  # which version 0.1 refuses to read, rather than run all again
    assert store.done([CELL.key, Cell().key]) == {CELL.key, Cell().key} and store.notes == []


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda folder: (folder / "outcome.json").unlink(), "`outcome.json` is missing"),
        (lambda folder: truncate(folder / "outcome.json"), "`outcome.json` is truncated or was changed"),
        (lambda folder: truncate(folder / "provenance.json"), "`provenance.json` is truncated or was changed"),
        (lambda folder: truncate(folder / "cell.json"), "`cell.json` is truncated or no JSON"),
        (lambda folder: replaced('"seed": 3', '"seed": 4')(folder / "cell.json"), "is of another cell"),
        (lambda folder: replaced('"sha256": {', '"sha256": 1, "x": {')(folder / "cell.json"), "not what it should be"),
        (lambda folder: (shutil.rmtree(folder), folder.touch()), "is not what it should be"),
    ],
)  # fmt: skip
def test_a_damaged_cell_of_version_0_1(tmp_path: Path, damage: Callable[[Path], Any], reason: str) -> None:
    damage(former_put(tmp_path, *FORMER))
    store = Store.open(tmp_path)
    assert store.done([CELL.key]) == set() and reason in store.notes[0]
    with pytest.raises(StoreError, match=f"Cell {CELL.key} in .* is damaged"):
        store.get(CELL.key)
    assert store.put(CELL, OUTCOME, MADE) is True  # beside what is left of it, and counts from now on
    assert store.get(CELL.key).outcome == OUTCOME and Store.open(tmp_path).done([CELL.key]) == {CELL.key}


def test_stores_are_joined_by_copying(tmp_path: Path) -> None:
    former_put(tmp_path / "old", *FORMER)
    for seed, name in enumerate(("a", "b")):
        Store.open(tmp_path / name).put(Cell(seed=seed), OUTCOME, MADE)
    for name in ("old", "b"):
        shutil.copytree(tmp_path / name / "cells", tmp_path / "a" / "cells", dirs_exist_ok=True)
    keys = {CELL.key, Cell(seed=0).key, Cell(seed=1).key}
    assert Store.open(tmp_path / "a").done(keys) == keys


# manifests


def test_manifests_are_joined(tmp_path: Path) -> None:
    store, made = filled(tmp_path, cells=3)
    assert store.manifest("he2023/fig1", "paper") is None
    assert store.entries("he2023/fig1", "paper") == [] and store.figures() == []
    store.add_manifest("he2023/fig1", "paper", [("adam-8", made[0]), ("adam-8", made[1])], {"seeds": 2, "tf32": False})
    store.add_manifest("he2023/fig1", "paper", [("adam-8", made[1]), ("sgd-8", made[1])], {"seeds": 3})
    store.add_manifest("he2023/fig1", "paper", [("sgd-8", Cell())], {})
    store.add_manifest("he2023/fig1", "smoke", [("adam-8", made[2])], {})
    store.add_manifest("own", "smoke", [], {})
    found = store.manifest("he2023/fig1", "paper")
    assert found is not None and found.settings == {"seeds": 3, "tf32": False}
    assert found.entries == (("adam-8", made[0]), ("adam-8", made[1]), ("sgd-8", made[1]), ("sgd-8", Cell()))
    entries = store.entries("he2023/fig1", "paper")
    assert [(entry.series, entry.cell) for entry in entries] == list(found.entries[:3])
    assert all(entry.outcome == OUTCOME and entry.provenance == MADE for entry in entries)
    assert store.figures() == [("he2023/fig1", "paper"), ("he2023/fig1", "smoke"), ("own", "smoke")]
    assert (tmp_path / "figures" / "he2023" / "fig1.paper.json").exists()


def test_a_damaged_cell_is_left_out_of_the_entries_with_a_note(tmp_path: Path) -> None:
    store, made = filled(tmp_path, cells=2)
    store.add_manifest("he2023/fig1", "paper", [("a", cell) for cell in made], {})
    truncate(path_of(tmp_path, made[0].key))
    reader = Store.open(tmp_path, create=False)
    assert [entry.cell for entry in reader.entries("he2023/fig1", "paper")] == [made[1]]
    assert "does not count" in reader.notes[0]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"entries": [', "truncated or no JSON"),
        ("{}", "has no 'entries'"),
        ('{"entries": [1], "settings": {}}', "another layout"),
    ],
)
def test_a_damaged_manifest(tmp_path: Path, text: str, reason: str) -> None:
    store, (cell,) = filled(tmp_path)
    store.add_manifest("he2023/fig1", "paper", [("a", cell)], {})
    (tmp_path / "figures" / "he2023" / "fig1.paper.json").write_text(text)
    with pytest.raises(StoreError, match=f"is damaged: .*{reason}.* finished cells are kept"):
        store.entries("he2023/fig1", "paper")
    store.add_manifest("he2023/fig1", "paper", [("a", cell)], {})
    assert reason in store.notes[0] and "are kept and count again once they are asked for" in store.notes[0]
    assert len(store.entries("he2023/fig1", "paper")) == 1


def test_a_manifest_of_a_newer_version_is_kept(tmp_path: Path) -> None:
    store, (cell,) = filled(tmp_path)
    store.add_manifest("he2023/fig1", "paper", [("a", cell)], {})
    path = tmp_path / "figures" / "he2023" / "fig1.paper.json"
    path.write_text(path.read_text().replace('"seed"', '"sharpness"').replace('"rate"', '"sharpness"'))
    before = every_file(tmp_path)
    with pytest.raises(StoreError, match=r"no field `sharpness`.*If a newer equisep wrote it, upgrade"):
        store.add_manifest("he2023/fig1", "paper", [("b", cell)], {})
    assert every_file(tmp_path) == before


@pytest.mark.parametrize("figure", ["", "../he2023", "he2023/", "/fig1", "he2023/fig 1", "he2023/fig1.old"])
def test_ids_that_are_no_names_of_files(tmp_path: Path, figure: str) -> None:
    with pytest.raises(InputError, match=r"write ids of letters"):
        Store.open(tmp_path).add_manifest(figure, "paper", [], {})


# many processes

HAMMER = """
import sys
from equisep.figures.cell import Cell
from equisep.figures.outcome import Outcome
from equisep.runs.store import Store

root, own = sys.argv[1], int(sys.argv[2])
sys.stdin.read()  # all start at once, from nothing
store = Store.open(root)
won = 0
for turn in range(40):
    shared, mine = Cell(seed=turn), Cell(seed=1000 * (own + 1) + turn)
    for cell in (shared, mine):
        won += store.put(cell, Outcome(arrays={"a": (float(own), float(turn)) * 200}), {"by": own})
    store.add_manifest("he2023/fig1", "paper", [("shared", shared), (f"of {own}", mine)], {f"by {own}": turn})
    if turn % 10 == 5:
        assert Store.open(root).notes == [], "an open store looked damaged to another process"
print(won)
"""


def test_processes_that_hammer_one_store_lose_nothing(tmp_path: Path) -> None:
    processes, turns = 4, 40
    root = tmp_path / "store"
    command = [sys.executable, "-c", HAMMER, str(root)]
    started = [
        subprocess.Popen(
            [*command, str(own)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for own in range(processes)
    ]
    for process in started:
        assert process.stdin is not None
        process.stdin.close()
        process.stdin = None
    told = [process.communicate(timeout=120) for process in started]
    assert [process.returncode for process in started] == [0] * processes, told
    assert sum(int(out) for out, _ in told) == turns * (1 + processes)  # every cell was stored once, by one process

    store = Store.open(root)
    manifest = store.manifest("he2023/fig1", "paper")
    assert manifest is not None and manifest.settings == {f"by {own}": turns - 1 for own in range(processes)}
    assert len(manifest.entries) == turns * (1 + processes)
    entries = store.entries("he2023/fig1", "paper")
    assert len(entries) == turns * (1 + processes) and store.notes == []
    for entry in entries:
        seed, by = entry.cell.seed, entry.provenance["by"]
        assert entry.outcome.arrays["a"] == (float(by), float(seed % 1000)) * 200  # no mixture of two writers
        assert entry.series == ("shared" if seed < 1000 else f"of {by}")
    assert not list(root.rglob("*.part"))


KILLED = """
import sys
from equisep.figures.cell import Cell
from equisep.figures.outcome import Outcome
from equisep.runs.store import Store

store = Store.open(sys.argv[1])
print("ready", flush=True)
for seed in range(10**6):
    store.put(Cell(seed=seed), Outcome(arrays={"a": (float(seed),) * 3000}), {})
    print(seed, flush=True)
"""


@pytest.mark.parametrize("after", [3, 17])
def test_a_writer_killed_at_any_moment_leaves_whole_cells(tmp_path: Path, after: int) -> None:
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for _ in range(after + 1):
        process.stdout.readline()
    process.kill()
    process.communicate()
    store = Store.open(tmp_path)
    assert store.notes == [] and not list(tmp_path.rglob("*.part"))
    present = [path.stem for path in (tmp_path / "cells").glob("*/*")]
    assert len(present) >= after and store.done(present) == set(present)
    for key in present:
        found = store.get(key)
        assert found.outcome.arrays["a"] == (float(found.cell.seed),) * 3000


def test_the_store_imports_no_torch() -> None:
    code = "import sys, equisep.runs.store, equisep.runs.record; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_store_error_is_an_equisep_error() -> None:
    assert issubclass(StoreError, EquisepError) and StoreError.exit_code == 2
