"""The callback of Hugging Face's Trainer with the real Trainer: the same training, the numbers in its log."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from recipes import recipe
from torch import Tensor, nn
from torch.utils.data import Dataset
from tracked import CLASSES, FEATURES, everything, network, samples

import equisep
from equisep import History

transformers = pytest.importorskip("transformers")
pytest.importorskip("accelerate")

from equisep.tracking.transformers import EquisepCallback  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:.*")


class Rows(Dataset[dict[str, Tensor]]):
    def __init__(self, seed: int = 0) -> None:
        self.x, self.y = samples(seed=seed)

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, index: int) -> dict[str, Tensor]:
        return {"x": self.x[index], "labels": self.y[index]}


class Classifier(nn.Module):
    """A model as the Trainer calls it: a loss where it is given labels."""

    def __init__(self) -> None:
        super().__init__()
        self.net, self.seen = network(), list[list[int]]()

    def forward(self, x: Tensor, labels: Tensor | None = None) -> dict[str, Tensor]:
        logits = self.net(x)
        if labels is None:
            return {"logits": logits}
        if self.training:
            self.seen.append(labels.tolist())
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


def trainer(folder: Path, **options: Any) -> Any:
    chosen = {"num_train_epochs": 3, "per_device_train_batch_size": 20, "learning_rate": 0.05, "save_strategy": "no"}
    quiet = {"use_cpu": True, "report_to": "none", "disable_tqdm": True}
    arguments = transformers.TrainingArguments(output_dir=str(folder), **{**quiet, **chosen, **options})
    torch.manual_seed(5)
    return transformers.Trainer(model=Classifier(), args=arguments, train_dataset=Rows(), eval_dataset=Rows(seed=1))


def state(run: Any) -> dict[str, object]:
    """All that a training is; Adam keeps two moments for every weight."""
    base: Any = run.optimizer
    while hasattr(base, "optimizer"):
        base = base.optimizer
    moments = {
        f"{name} {index}": value.numpy().tobytes()
        for index, entry in enumerate(base.state.values())
        for name, value in entry.items()
    }
    return {**everything(run.model, base, run.get_train_dataloader()), **moments}


@pytest.mark.parametrize(("unit", "every", "numbers"), [("epoch", 1, (1, 2, 3)), ("step", 6, (6, 12, 18))])
def test_the_same_training_with_every_number_in_the_log(
    unit: str, every: int, numbers: tuple[int, ...], tmp_path: Path
) -> None:
    plain = trainer(tmp_path)
    plain.train()
    run = trainer(tmp_path)
    callback = EquisepCallback(run, unit=unit, every=every, test=Rows(seed=1), per_class=6)  # type: ignore[arg-type]
    run.add_callback(callback)
    run.train()
    assert run.model.seen == plain.model.seen
    one, two = state(plain), state(run)
    assert [key for key in one.keys() | two.keys() if one.get(key) != two.get(key)] == []
    assert callback.tracker is not None
    history = callback.tracker.history
    assert history.numbers == numbers
    logged = [row for row in run.state.log_history if "equisep/law/rho" in row]
    assert [row["equisep/law/rho"] for row in logged] == [p.law.rho for p in history.profiles().values()]
    assert [row["step"] for row in logged] == [6, 12, 18]


def test_every_report_has_the_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    monkeypatch.setenv("TENSORBOARD_LOGGING_DIR", str(tmp_path / "logs"))
    run = trainer(tmp_path, num_train_epochs=1)
    run.add_callback(transformers.integrations.TensorBoardCallback())
    run.add_callback(EquisepCallback(run, per_class=6))
    run.train()
    (events,) = (tmp_path / "logs").rglob("events*")
    names = EventAccumulator(str(events)).Reload().Tags()["scalars"]
    assert any(name.endswith("equisep/law/rho") for name in names)


def test_without_the_trainer_and_with_an_end_that_was_passed_over(tmp_path: Path) -> None:
    run = trainer(tmp_path)
    callback = EquisepCallback(per_class=6, every=2)
    run.add_callback(callback)
    run.train()
    assert callback.tracker is not None
    assert callback.tracker.history.numbers == (2, 3)
    assert [row["step"] for row in run.state.log_history if "equisep/law/rho" in row] == [12, 18]


def test_a_training_goes_on_from_a_checkpoint(tmp_path: Path) -> None:
    run = trainer(tmp_path, num_train_epochs=2, save_strategy="epoch")
    run.add_callback(EquisepCallback(run, per_class=6, history=tmp_path / "run.jsonl"))
    run.train()
    run = trainer(tmp_path, num_train_epochs=3, save_strategy="no")
    run.add_callback(EquisepCallback(run, per_class=6, history=tmp_path / "run.jsonl"))
    run.train(resume_from_checkpoint=str(tmp_path / "checkpoint-6"))
    assert History.load(tmp_path / "run.jsonl").numbers == (1, 2, 3)


def test_trainings_that_end_and_go_on_within_an_epoch(tmp_path: Path) -> None:
    """The trainer counts epochs by fractions: a training of one and a third has a second, and lies behind the first one."""
    run = trainer(tmp_path, max_steps=8, save_strategy="steps", save_steps=4)
    callback = EquisepCallback(run, per_class=6, history=tmp_path / "run.jsonl")
    run.add_callback(callback)
    run.train()
    assert callback.tracker is not None and callback.tracker.history.numbers == (1, 2)
    run = trainer(tmp_path, max_steps=8, save_strategy="steps", save_steps=4)
    again = EquisepCallback(run, per_class=6, history=tmp_path / "run.jsonl")
    run.add_callback(again)
    run.train(resume_from_checkpoint=str(tmp_path / "checkpoint-4"))
    assert History.load(tmp_path / "run.jsonl").numbers == (1, 2)
    assert again.tracker is not None and again.tracker.history[1].profile is not None
    assert again.tracker.history.profile(1).curve() == pytest.approx(
        callback.tracker.history.profile(1).curve(), rel=1e-5
    )


def test_a_trainer_is_data(tmp_path: Path) -> None:
    run = trainer(tmp_path)
    profile = equisep.measure(run.model, run, run)
    plain = equisep.measure(network(), samples(), samples(seed=1))
    assert profile.curve() == pytest.approx(plain.curve(), rel=1e-6)
    assert (profile.classes, profile[0].dim) == (CLASSES, FEATURES)
    said = [note.text for note in profile.notes if note.code == "loader"]
    assert said == [
        "The training data are those of `Trainer.get_train_dataloader`.",
        "The test data are those of `Trainer.get_eval_dataloader`.",
    ]


def test_the_recipe_runs(tmp_path: Path) -> None:
    names = recipe("Hugging Face", tmp_path)
    assert names["callback"].tracker.history.numbers == (1, 2)
