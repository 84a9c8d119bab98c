"""`scalars` through the loggers that people use, the real packages, offline."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest
from tracked import loader, network, samples, train

from equisep import History, Profile, Tracker

LEFT_OUT = {  # of the extra `dev`, and why
    "aim": "aim is not installed: 150 MB and half a minute of every installation",
    "trackio": "trackio is not installed: it holds back pillow",
}


def needs(package: str) -> pytest.MarkDecorator:
    reason = LEFT_OUT.get(package, f"{package} is not installed")
    return pytest.mark.skipif(find_spec(package) is None, reason=reason)


@pytest.fixture(scope="module")
def history() -> History:
    model, batches = network(), loader()
    tracker = Tracker(model, batches, test=samples(seed=1), per_class=10)
    train(model, batches, epochs=3, after_epoch=tracker.epoch)
    return tracker.history


@pytest.fixture
def profile(history: History) -> Profile:
    return history.profile(3)


def test_a_history_gives_the_numbers_of_its_latest_reading(history: History, profile: Profile) -> None:
    scalars = history.scalars()
    assert profile.scalars().items() <= scalars.items()
    assert set(scalars) - set(profile.scalars()) <= {"equisep/seconds", *(f"equisep/emergence/{n}" for n in ("law",))}
    assert history.scalars("x", number=1)["x/law/rho"] == history.profile(1).law.rho
    assert History(history.header).scalars() == {}


@needs("tensorboard")
def test_tensorboard_holds_the_numbers_and_the_law_as_a_figure(history: History, tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(tmp_path)) as writer:
        for epoch, profile in history.profiles().items():
            for name, value in profile.scalars().items():
                writer.add_scalar(name, value, epoch)
            writer.add_figure("equisep/law", profile.plot().figure, epoch)
    events = EventAccumulator(str(tmp_path)).Reload()
    names = {name for profile in history.profiles().values() for name in profile.scalars()}
    assert set(events.Tags()["scalars"]) == names
    assert events.Tags()["images"] == ["equisep/law"]
    written = {event.step: event.value for event in events.Scalars("equisep/law/rho")}
    assert written == pytest.approx({n: p.law.rho for n, p in history.profiles().items()}, rel=1e-6)


@needs("wandb")
def test_weights_and_biases_takes_them_in_one_call(
    profile: Profile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("WANDB_DIR", "WANDB_CACHE_DIR", "WANDB_CONFIG_DIR", "WANDB_DATA_DIR"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setenv("WANDB_SILENT", "true")
    import wandb

    settings = wandb.Settings(x_disable_stats=True, x_disable_meta=True, console="off")
    with wandb.init(mode="offline", project="equisep", settings=settings) as run:
        run.log(profile.scalars(), step=3, commit=True)
        assert profile.scalars().items() <= dict(run.summary).items()


@needs("mlflow")
def test_mlflow_takes_them_in_one_call(profile: Profile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # the small package has no database
    import mlflow

    mlflow.set_tracking_uri((tmp_path / "mlruns").as_uri())
    with mlflow.start_run() as run:
        mlflow.log_metrics(profile.scalars(), step=3)
    assert mlflow.get_run(run.info.run_id).data.metrics == profile.scalars()


@needs("trackio")
def test_trackio_takes_them_in_one_call(profile: Profile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path))
    import trackio

    trackio.init(project="equisep", name="run")
    trackio.log(profile.scalars(), step=3)
    trackio.finish()
    from trackio.sqlite_storage import SQLiteStorage

    (logged,) = SQLiteStorage.get_logs("equisep", "run")
    assert profile.scalars().items() <= logged.items()


@needs("aim")
def test_aim_tracks_them_one_by_one(profile: Profile, tmp_path: Path) -> None:
    import aim

    run = aim.Run(repo=str(tmp_path), system_tracking_interval=None, log_system_params=False)
    for name, value in profile.scalars().items():
        run.track(value, name=name, step=3)
    assert {metric.name: metric.values.last()[1] for metric in run.metrics()} == profile.scalars()
    run.close()
