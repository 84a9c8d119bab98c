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
        "equisep/report/page/assets/page.css",
        "equisep/report/page/assets/plot.min.js",
        "equisep/report/page/assets/script/start.js",
    ):
        assert wanted in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert not [name for name in names if name.startswith(("tests/", "benchmarks/"))]


def test_wheel_holds_the_compact_record_alone(wheel: Path) -> None:
    inside = {entry.filename: entry for entry in zipfile.ZipFile(wheel).infolist()}
    records = {path.relative_to(REPO / "results").as_posix() for path in (REPO / "results").rglob("*.json")}
    assert {"tally.json", "remarks.json", "he2023/fig1.json"} <= records
    packed = [name for name in inside if name.startswith("equisep/record/")]
    assert {name.removeprefix("equisep/record/") for name in packed} == records and len(records) > 30
    assert sum(inside[name].compress_size for name in packed) < 3 * 2**20  # ten seeds, each read three ways
    assert not [name for name in inside if name.endswith(".png") or name.startswith("results/")]


@pytest.fixture(scope="module")
def site(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, installed where the source tree is not."""
    folder = tmp_path_factory.mktemp("installed") / "site"
    install = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index", "--target", str(folder)]
    subprocess.run([*install, str(wheel)], check=True, capture_output=True)
    return folder


def installed(site: Path, folder: Path, *words: str) -> str:
    """What the installed command prints, run in another folder."""
    environment = {name: value for name, value in os.environ.items() if name != "EQUISEP_RESULTS"}
    command = [sys.executable, str(site / "bin" / "equisep"), *words]
    done = subprocess.run(
        command, check=True, capture_output=True, text=True, cwd=folder, env={**environment, "PYTHONPATH": str(site)}
    )
    return done.stdout


def test_installed_wheel_runs_the_demo(site: Path, tmp_path: Path) -> None:
    where = [sys.executable, "-c", "import equisep; print(equisep.__file__)"]
    environment = {**os.environ, "PYTHONPATH": str(site)}
    source = subprocess.run(where, check=True, capture_output=True, text=True, cwd=tmp_path, env=environment).stdout
    assert Path(source.strip()).is_relative_to(site)
    assert len(json.loads(installed(site, tmp_path, "demo", "--smoke", "--json", "--quiet"))["sites"]) == 8


def test_installed_wheel_shows_the_record(site: Path, tmp_path: Path) -> None:
    # a figure whose record names cells of another
    shown = json.loads(installed(site, tmp_path, "figures", "show", "he2023/fig3", "--json"))
    assert shown["state"] == "recorded" and shown["cells"]["run"] > 100
    assert {claim["verdict"] for claim in shown["claims"]} & {"held", "contradicted", "undecided"}
    states = [row["state"] for row in json.loads(installed(site, tmp_path, "figures", "list", "--json"))]
    recorded = sum(
        path.parent.name != "readings" for path in (REPO / "results").glob("*/*.json")
    )  # that one is no figure's
    assert sum(state != "not run" for state in states) == recorded
