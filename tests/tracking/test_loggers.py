"""`scalars` through the loggers that people use, as docs/frameworks.md has it: the real packages, offline."""

from __future__ import annotations

import importlib
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from recipes import recipe, sections
from tracked import loader, network, samples, train

from equisep import History, Tracker
from equisep.errors import MissingExtraError
from equisep.tracking.callback import FRAMEWORKS as FILES

LEFT_OUT = {  # of the extra `dev`, and why
    "aim": "aim is not installed: 150 MB and half a minute of every installation",
    "trackio": "trackio is not installed: it holds back pillow",
}
FRAMEWORKS = ["Lightning", "Hugging Face", "Ignite", "Keras", "skorch", "torchmetrics"]  # tests of their own
LOGGERS = ["TensorBoard", "Weights & Biases", "MLflow", "Aim", "trackio"]


def needs(package: str) -> pytest.MarkDecorator:
    reason = LEFT_OUT.get(package, f"{package} is not installed")
    return pytest.mark.skipif(find_spec(package) is None, reason=reason)


def test_every_recipe_is_run_somewhere() -> None:
    assert list(sections()) == ["Frameworks and loggers", *FRAMEWORKS, "Loggers", *LOGGERS]


@pytest.mark.parametrize("framework", FILES)
def test_a_framework_that_is_not_installed_is_told(framework: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("lightning", "pytorch_lightning", "transformers", "ignite", "keras", "skorch"):
        for known in [key for key in sys.modules if key == name or key.startswith(f"{name}.")]:
            monkeypatch.delitem(sys.modules, known)
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, f"equisep.tracking.{framework}", raising=False)
    package = "pytorch-ignite" if framework == "ignite" else framework
    text = f"`equisep.tracking.{framework}` needs the package `{package}`, which is not installed. "
    with pytest.raises(MissingExtraError) as caught:
        importlib.import_module(f"equisep.tracking.{framework}")
    assert str(caught.value) == f'{text}Run: pip install "equisep[{framework}]"'


def test_a_history_gives_the_numbers_of_its_latest_reading() -> None:
    model, batches = network(), loader()
    tracker = Tracker(model, batches, test=samples(seed=1), per_class=10)
    train(model, batches, epochs=3, after_epoch=tracker.epoch)
    history, profile = tracker.history, tracker.history.profile(3)
    scalars = history.scalars()
    assert profile.scalars().items() <= scalars.items()
    more = {"equisep/seconds", "equisep/emergence/law", "equisep/emergence/collapse"}
    assert set(scalars) - set(profile.scalars()) <= more
    assert history.scalars("x", number=1)["x/law/rho"] == history.profile(1).law.rho
    assert not any("fuzziness" in name for name in history.scalars(sites=False))
    assert History(history.header).scalars() == {}


@needs("tensorboard")
def test_tensorboard_holds_the_numbers_and_the_law_as_a_figure(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    profile = recipe("TensorBoard", tmp_path, "Loggers")["profile"]
    events = EventAccumulator(str(tmp_path / "runs")).Reload()
    assert events.Tags()["images"] == ["equisep/law"]
    written = {name: events.Scalars(name)[0].value for name in events.Tags()["scalars"]}
    assert written == pytest.approx(profile.scalars(), rel=1e-6)
    assert events.Scalars("equisep/law/rho")[0].step == 1


@needs("wandb")
def test_weights_and_biases_takes_them_in_one_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("WANDB_DIR", "WANDB_CACHE_DIR", "WANDB_CONFIG_DIR", "WANDB_DATA_DIR"):
        monkeypatch.setenv(name, str(tmp_path))
    for name in ("SILENT", "X_DISABLE_STATS", "X_DISABLE_META", "X_DISABLE_MACHINE_INFO"):
        monkeypatch.setenv(f"WANDB_{name}", "true")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_CONSOLE", "off")
    names = recipe("Weights & Biases", tmp_path, "Loggers")
    assert names["profile"].scalars().items() <= names["logged"].items()


@needs("mlflow")
def test_mlflow_takes_them_in_one_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # the small package has no database
    monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "mlruns").as_uri())
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    names = recipe("MLflow", tmp_path, "Loggers")
    logged = names["mlflow"].get_run(names["run"].info.run_id).data.metrics
    assert logged == names["profile"].scalars()


@needs("trackio")
def test_trackio_takes_them_in_one_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path))
    profile = recipe("trackio", tmp_path, "Loggers")["profile"]
    from trackio.sqlite_storage import SQLiteStorage

    (logged,) = SQLiteStorage.get_logs("equisep", "run")
    assert profile.scalars().items() <= logged.items()


@needs("aim")
def test_aim_tracks_them_one_by_one(tmp_path: Path) -> None:
    names = recipe("Aim", tmp_path, "Loggers")
    tracked = {metric.name: metric.values.last()[1] for metric in names["run"].metrics()}
    names["run"].close()
    assert names["profile"].scalars().items() <= tracked.items()
