"""Features in files: every format gives the same numbers, and what is wrong with a store is one sentence."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from equisep.data.stores import FeatureWriter, StoredBatches, open_features
from equisep.errors import DataError, InputError, LabelError, MissingExtraError, StoreError

pa = pytest.importorskip("pyarrow")
from pyarrow import feather, parquet  # noqa: E402

generator = np.random.default_rng(0)
X = {
    "layer2": generator.normal(size=(50, 3)).astype("float32"),
    "layer10": generator.normal(size=(50, 4)).astype("float32"),
}
Y = np.arange(50) % 5


def table(first: int = 0, last: int = 50, *, words: bool = False) -> object:
    vectors = {name: pa.FixedSizeListArray.from_arrays(x[first:last].ravel(), x.shape[1]) for name, x in X.items()}
    labels = pa.array([f"class {9 - y}" for y in Y[first:last]]) if words else pa.array(Y[first:last])
    return pa.table({**vectors, "label": labels})


def npy_folder(folder: Path) -> Path:
    for name, x in X.items():
        np.save(folder / f"{name}.npy", x)
    np.save(folder / "labels.npy", Y)
    return folder


def npy_parts(folder: Path) -> Path:
    for name, x in X.items():
        (folder / name).mkdir()
        for part, rows in enumerate(np.split(x, [7, 7, 30])):  # one of them empty
            np.save(folder / name / f"part{part}.npy", rows)
    np.save(folder / "y.npy", Y.astype("int32"))
    return folder


def safetensors_file(folder: Path) -> Path:
    save_file(
        {**{name: torch.from_numpy(x) for name, x in X.items()}, "labels": torch.from_numpy(Y)},
        folder / "x.safetensors",
    )
    return folder / "x.safetensors"


def feather_file(folder: Path) -> Path:
    feather.write_feather(table(), folder / "x.feather", compression="uncompressed", chunksize=13)
    return folder / "x.feather"


def arrow_stream(folder: Path) -> Path:
    """As Hugging Face's data sets are stored, in two files."""
    for part, (first, last) in enumerate([(0, 20), (20, 50)]):
        with pa.OSFile(str(folder / f"data-{part:05d}-of-00002.arrow"), "wb") as sink:
            rows = table(first, last)
            with pa.ipc.new_stream(sink, rows.schema) as writer:  # type: ignore[attr-defined]
                writer.write_table(rows, max_chunksize=11)
    return folder


def parquet_lists(folder: Path) -> Path:
    lists = {name: pa.array(list(x)) for name, x in X.items()}
    parquet.write_table(pa.table({**lists, "label": Y}), folder / "x.parquet", row_group_size=17)
    return folder / "x.parquet"


def splits(folder: Path) -> Path:
    for name in ("train", "test"):
        (folder / name).mkdir()
        npy_folder(folder / name)
    return folder


def with_empty_shards(folder: Path) -> Path:
    """Lists of any length, first and last shards without rows, a record batch without any."""
    lists = pa.table({**{name: pa.array(list(x)) for name, x in X.items()}, "label": Y})
    for part, (first, last) in enumerate([(0, 0), (0, 20), (20, 20), (20, 50), (50, 50)]):
        path = str(folder / f"{part}.arrow")
        with pa.OSFile(path, "wb") as sink, pa.ipc.new_file(sink, lists.schema) as writer:  # type: ignore[attr-defined]
            writer.write_batch(pa.RecordBatch.from_pylist([], schema=lists.schema))
            writer.write_table(lists.slice(first, last - first), max_chunksize=11)
    return folder


MAKERS = [npy_folder, npy_parts, safetensors_file, feather_file, arrow_stream, parquet_lists, with_empty_shards, splits]


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
def test_every_format_gives_the_same_rows_in_order(make: Callable[[Path], Path], tmp_path: Path) -> None:
    stored = open_features(make(tmp_path))
    assert stored.train.names == ("layer2", "layer10")
    batches = StoredBatches(stored.train)
    batches.size = 8
    for _ in range(2):  # it can be read again
        rows = list(batches)
        assert len(rows) == len(batches)
        for name, x in X.items():
            assert torch.equal(torch.cat([features[name] for features, _ in rows]), torch.from_numpy(x))
        assert torch.equal(torch.cat([y for _, y in rows]), torch.from_numpy(Y))
    assert batches.classes == 5
    assert (stored.test is not None) == (make is splits)
    assert bool(stored.notes) == (make is parquet_lists)  # the Note on its speed


def test_only_wanted_layers_are_opened(tmp_path: Path) -> None:
    batches = StoredBatches(open_features(npy_folder(tmp_path)).train)
    (tmp_path / "layer10.npy").unlink()
    batches.wanted = frozenset({"layer2"})
    assert [list(features) for features, _ in batches] == [["layer2"]]


def test_words_become_classes_in_alphabetical_order(tmp_path: Path) -> None:
    feather.write_feather(table(words=True), tmp_path / "x.feather")
    batches = StoredBatches(open_features(tmp_path / "x.feather").train)
    assert batches.class_names == tuple(f"class {k}" for k in range(5, 10))
    assert torch.equal(next(iter(batches))[1], torch.from_numpy(4 - Y))
    feather.write_feather(table(0, 4, words=True), tmp_path / "four.feather")  # without class 5
    four = StoredBatches(open_features(tmp_path / "four.feather").train)
    assert StoredBatches(four.split, like=batches).class_names == batches.class_names
    with pytest.raises(LabelError, match="`class 5`, which the training data have not"):
        StoredBatches(batches.split, like=four)


def test_words_and_numbers_are_not_the_same_labels(tmp_path: Path) -> None:
    feather.write_feather(table(words=True), tmp_path / "words.feather")
    feather.write_feather(table(), tmp_path / "numbers.feather")
    words, numbers = (StoredBatches(open_features(tmp_path / f"{name}.feather").train) for name in ("words", "numbers"))
    for one, two in ((words, numbers), (numbers, words)):
        with pytest.raises(LabelError, match="which number is which word is not known"):
            StoredBatches(two.split, like=one)


def test_words_of_every_type_of_arrow(tmp_path: Path) -> None:
    rows = table(words=True)
    for kind in (pa.large_string(), pa.string_view()):
        words = rows["label"].cast(kind)  # type: ignore[index]
        path = tmp_path / f"{kind}.feather"
        feather.write_feather(rows.set_column(2, "label", words), path, compression="uncompressed")  # type: ignore[attr-defined]
        batches = StoredBatches(open_features(path).train)
        assert torch.equal(torch.cat([y for _, y in batches]), torch.from_numpy(4 - Y))


def test_one_file_of_labels_does_not_serve_two_data_sets(tmp_path: Path) -> None:
    splits(tmp_path)
    for name in ("train", "test"):
        np.save(tmp_path / name / "kind.npy", Y)
    with pytest.raises(
        InputError,
        match=r"is one file, and .* holds training and test data.*in its own folder and pass their name, `labels=kind`",
    ):
        open_features(tmp_path, labels=tmp_path / "train" / "kind.npy")
    assert open_features(tmp_path, labels="kind").test is not None


def test_labels_named_by_their_path_are_no_layer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    npy_folder(tmp_path)
    np.save(tmp_path / "kind.npy", Y[:, None])
    monkeypatch.chdir(tmp_path)
    for path in (tmp_path / "kind.npy", "kind.npy", tmp_path / ".." / tmp_path.name / "kind.npy"):
        assert open_features(tmp_path, labels=path).train.names == ("layer2", "layer10")
    (tmp_path / "kind.csv").write_text("0")
    with pytest.raises(InputError, match=r"kind.csv` is not read: labels lie in \.npy, .*`numpy\.save`"):
        open_features(tmp_path, labels=tmp_path / "kind.csv")


def test_layers_in_folders_with_dots(tmp_path: Path) -> None:
    for name, x in (("layer1", X["layer2"]), ("layer.3", X["layer2"])):
        (tmp_path / name).mkdir()
        np.save(tmp_path / name / "0.npy", x)
    np.save(tmp_path / "labels.npy", Y)
    (tmp_path / "model.ckpt").mkdir()  # what holds no array is no layer
    (tmp_path / "notes.txt").write_text("")
    assert set(open_features(tmp_path).train.names) == {"layer1", "layer.3"}


@pytest.mark.parametrize("kind", ["feather", "parquet"])
def test_columns_that_are_no_layers_are_named(kind: str, tmp_path: Path) -> None:
    nested = pa.array([[row.tolist(), row.tolist()] for row in X["layer2"]])
    rows = table().append_column("maps", nested)  # type: ignore[attr-defined]
    rows = rows.append_column("tags", pa.array([["a", "b"]] * 50))  # words are no features that were meant
    feather.write_feather(rows, tmp_path / "x.feather") if kind == "feather" else parquet.write_table(
        rows, tmp_path / "x.parquet"
    )
    stored = open_features(tmp_path)
    assert stored.train.names == ("layer2", "layer10")
    (note,) = (note for note in stored.notes if note.code == "unread-columns")
    assert "`maps (list<" in note.text and "tags" not in note.text
    with pytest.raises(DataError, match=r"holds no features.*`maps \(list<"):
        feather.write_feather(rows.select(["maps", "label"]), tmp_path / "only.feather")
        open_features(tmp_path / "only.feather")


def test_the_layout_of_laion(tmp_path: Path) -> None:
    for folder in ("img_emb", "metadata"):
        (tmp_path / folder).mkdir()
    for part, (first, last) in enumerate([(0, 20), (20, 50)]):
        np.save(tmp_path / "img_emb" / f"img_emb_{part}.npy", X["layer2"][first:last].astype("float16"))
        columns = {"caption": ["words"] * (last - first), "kind": Y[first:last]}
        parquet.write_table(pa.table(columns), tmp_path / "metadata" / f"metadata_{part}.parquet")
    stored = open_features(tmp_path, labels="kind")
    assert stored.train.names == ("img_emb",)
    assert torch.equal(torch.cat([y for _, y in StoredBatches(stored.train)]), torch.from_numpy(Y))
    with pytest.raises(DataError, match=r"holds no labels.*Pass `labels=`.*`kind`"):
        open_features(tmp_path)
    with pytest.raises(InputError, match=r"No labels `kinds`.*Did you mean `kind`"):
        open_features(tmp_path, labels="kinds")


def test_features_by_url(tmp_path: Path) -> None:
    fsspec = pytest.importorskip("fsspec")
    system = fsspec.filesystem("memory")
    npy_folder(tmp_path)
    system.put(str(tmp_path), "/store", recursive=True)
    feather_file(tmp_path)
    system.put(str(tmp_path / "x.feather"), "/x.feather")
    for url in ("memory://store", "memory://x.feather"):
        batches = StoredBatches(open_features(url).train)
        assert torch.equal(next(iter(batches))[0]["layer2"], torch.from_numpy(X["layer2"]))
    with pytest.raises(DataError, match="no file or folder `memory:///nothing`"):
        open_features("memory://nothing")
    with pytest.raises(DataError, match="`nothing://x` cannot be opened: Protocol not known"):
        open_features("nothing://x")
    system.rm("/store", recursive=True)


@pytest.mark.parametrize("kind", [">f4", ">i8"])
def test_numbers_of_the_other_byte_order(kind: str, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", (10 * X["layer2"]).astype(kind))
    np.save(tmp_path / "labels.npy", Y)
    features, _ = next(iter(StoredBatches(open_features(tmp_path).train)))
    assert np.array_equal(features["x"].numpy(), (10 * X["layer2"]).astype(kind))


def test_a_written_folder_is_read_as_it_was_and_appears_whole(tmp_path: Path) -> None:
    rows = torch.randn(5, 2).to(torch.bfloat16)
    with FeatureWriter(tmp_path / "out", ("fc:in", "fc")) as writer:
        writer.begin("train")
        for layer in writer.layers:
            writer.add(layer, rows)
            writer.add(layer, rows)
        writer.labels(torch.arange(10) % 2)
        assert not (tmp_path / "out").exists()
        writer.done({"model": "M"})
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    stored = open_features(tmp_path / "out")
    features, _ = next(iter(StoredBatches(stored.train)))
    assert features["fc:in"].dtype == torch.bfloat16
    assert torch.equal(features["fc:in"], torch.cat([rows, rows]))
    assert np.load(tmp_path / "out" / "train" / "000-fc-in.npy").shape == (10, 2)
    assert json.loads((tmp_path / "out" / "features.json").read_text())["model"] == "M"
    with pytest.raises(StoreError, match="is not empty"):
        FeatureWriter(tmp_path / "out", ("a",))
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match=r"file` is a file\. Name a folder"):
        FeatureWriter(tmp_path / "file", ("a",))
    (tmp_path / "file").unlink()
    with FeatureWriter(tmp_path / "other", ("a",)) as writer:  # something fails on the way
        writer.begin("train")
        writer.add("a", rows)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def damaged(folder: Path, what: str) -> str | None:
    """A store with one thing wrong; the name of the labels, where that is it."""
    npy_folder(folder)
    if what == "length":
        np.save(folder / "labels.npy", Y[:40])
    elif what == "truncated":
        content = (folder / "layer2.npy").read_bytes()
        (folder / "layer2.npy").write_bytes(content[: len(content) - 30])
    elif what == "columns":
        np.save(folder / "layer2.npy", np.asfortranarray(X["layer2"]))
    elif what == "objects":
        np.save(folder / "layer2.npy", np.array([{}] * 50), allow_pickle=True)
    elif what == "negative":
        np.save(folder / "labels.npy", Y - 1)
    elif what == "no npy":
        (folder / "layer2.npy").write_bytes(b"something else")
    elif what == "ragged":
        lists = pa.array([[1.0, 2.0], [1.0], [1.0, 2.0, 3.0]])
        parquet.write_table(pa.table({"x": lists, "label": [0, 1, 0]}), folder / "a.parquet")
        for path in folder.glob("*.npy"):
            path.unlink()
    elif what == "parts":
        (folder / "layer3").mkdir()
        np.save(folder / "layer3" / "a.npy", X["layer2"][:20])
        np.save(folder / "layer3" / "b.npy", X["layer10"][:30])
    return None


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("length", "one label per row; `layer2` has 50 rows and the labels are 40"),
        ("truncated", "ends after row 47 of 50: it is truncated"),
        ("columns", "Fortran order"),
        ("objects", "no numbers"),
        ("negative", "count from 0; .* holds -1"),
        ("no npy", "could not be read"),
        ("ragged", "differ in length"),
        ("parts", "The parts of `layer3` differ"),
    ],
)
def test_a_damaged_store_is_one_sentence(what: str, words: str, tmp_path: Path) -> None:
    damaged(tmp_path, what)
    with pytest.raises((DataError, LabelError), match=words):
        list(StoredBatches(open_features(tmp_path).train))


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"splits": []}, "lists no training data"),
        ({"splits": ["test"]}, "lists no training data"),
        ({"layers": []}, "lists no layers"),
        ({"layers": ["a"]}, "a layer without a name or a file"),
        ({"layers": [{"name": "a"}]}, "a layer without a name or a file"),
        ({"classes": "ten"}, "tells of 'ten' classes"),
    ],
    ids=str,
)
def test_a_damaged_manifest_is_one_sentence(said: dict[str, object], words: str, tmp_path: Path) -> None:
    (tmp_path / "train").mkdir()
    npy_folder(tmp_path / "train")
    whole = {"layers": [{"name": "a", "file": "layer2.npy"}], "splits": ["train"], "classes": 5}
    (tmp_path / "features.json").write_text(json.dumps(whole))
    assert open_features(tmp_path).train.names == ("a",)
    (tmp_path / "features.json").write_text(json.dumps({**whole, **said}))
    with pytest.raises(DataError, match=rf"features\.json` {'.*'}{words}.*Write the features again"):
        open_features(tmp_path)


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ([1, 2], "its header is a list"),
        ({"a": {"dtype": "F32"}}, "type, shape and place of `a`"),
        ({"a": {"dtype": "F32", "shape": ["x"], "data_offsets": [0, 4]}}, "type, shape and place of `a`"),
        ({"a": "F32"}, "type, shape and place of `a`"),
    ],
    ids=str,
)
def test_a_damaged_header_of_safetensors_is_one_sentence(header: object, words: str, tmp_path: Path) -> None:
    content = json.dumps(header).encode()
    (tmp_path / "x.safetensors").write_bytes(len(content).to_bytes(8, "little") + content)
    with pytest.raises(DataError, match=words):
        open_features(tmp_path)


def test_a_store_that_vanishes_while_it_is_read(tmp_path: Path) -> None:
    npy_parts(tmp_path)
    batches = StoredBatches(open_features(tmp_path).train)
    rows = iter(batches)
    next(rows)
    (tmp_path / "layer2" / "part2.npy").unlink()
    with pytest.raises(DataError, match=r"part2\.npy` could not be read.*No such file.*run the same again"):
        list(rows)


def test_tables_without_pyarrow_name_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    feather_file(tmp_path)
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"needs the package `pyarrow`.*equisep\[stores\]"):
        open_features(tmp_path)
    monkeypatch.setitem(__import__("sys").modules, "fsspec", None)
    with pytest.raises(MissingExtraError, match=r"`s3://bucket/x` needs the package `fsspec`"):
        open_features("s3://bucket/x")
