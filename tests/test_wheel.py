"""The built wheel: it holds what it must, installs, and runs the demo's smoke form without the source tree."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

REPO = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(REPO)]
    subprocess.run(command, check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


def test_wheel_holds_data_licences_and_types(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    for wanted in (
        "equisep/py.typed",
        "equisep/data/embedded/LICENSE",
        "equisep/data/embedded/fashion_mnist_10x10.npz",
        "equisep/data/embedded/fashion_mnist_28x28.npz",
    ):
        assert wanted in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert not [name for name in names if name.startswith(("tests/", "benchmarks/"))]


def test_installed_wheel_runs_the_demo(wheel: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    install = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "-q",
        "--no-deps",
        "--no-index",
        "--target",
        str(site),
        str(wheel),
    ]
    subprocess.run(install, check=True, capture_output=True)
    environment = {**os.environ, "PYTHONPATH": str(site)}
    where = [sys.executable, "-c", "import equisep; print(equisep.__file__)"]
    found = subprocess.run(where, check=True, capture_output=True, text=True, cwd=tmp_path, env=environment).stdout
    assert Path(found.strip()).is_relative_to(site)
    command = [sys.executable, str(site / "bin" / "equisep"), "demo", "--smoke", "--json", "--quiet"]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert len(json.loads(done.stdout)["sites"]) == 8
