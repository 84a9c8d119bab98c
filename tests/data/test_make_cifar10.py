"""CIFAR-10 from sheets of images: rows become images, labels go with them, and other bytes are refused."""

from __future__ import annotations

import hashlib
import json
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from PIL import Image

from equisep.data import load_data
from equisep.data.official.sources import read_cifar

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "make_cifar10.py"
if not SCRIPT.is_file():
    pytest.skip("the scripts are part of the repository, not of the package", allow_module_level=True)


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = spec_from_file_location("make_cifar10", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "make_cifar10", module)
    spec.loader.exec_module(module)
    return module


def test_sheets_become_the_data_set(script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    images = {name: rng.integers(0, 256, (10, 32, 32, 3), dtype=np.uint8) for name in script.MD5}
    labels = {"train": np.arange(50) % 10, "test": np.arange(10)}
    for name, own in images.items():
        Image.fromarray(own.reshape(10, 1024, 3)).save(tmp_path / f"{name}.png")
    for split, own in labels.items():
        (tmp_path / script.LABELS[split]).write_text(json.dumps(own.tolist()))
    with pytest.raises(SystemExit, match=r"data_batch_1 should have the MD5 5dd7e06a.*; it has .* Use version 1\.1\.1"):
        script.main([str(tmp_path), "--out", str(tmp_path / "data")])
    assert not (tmp_path / "data").exists()
    classes = labels["test"]  # each batch has ten images, of classes 0 to 9
    sums = {name: hashlib.md5(script.official(own, classes)).hexdigest() for name, own in images.items()}
    monkeypatch.setattr(script, "MD5", sums)
    script.main([str(tmp_path), "--out", str(tmp_path / "data")])
    data = load_data("cifar10", data_dir=tmp_path / "data")
    np.testing.assert_array_equal(data.x_train, np.concatenate([images[name] for name in script.TRAIN]))
    np.testing.assert_array_equal(data.x_test, images["test_batch"])
    assert data.y_train.tolist() == labels["train"].tolist() and data.class_names[0] == "airplane"
    # the official form is what the reader of official files takes
    back, own_labels = read_cifar(script.official(images["test_batch"], labels["test"]), label_bytes=1, where="here")
    np.testing.assert_array_equal(back, images["test_batch"])
    assert own_labels.tolist() == labels["test"].tolist()
