"""The Lightning callback with the real Lightning: the same training, the numbers where Lightning keeps numbers."""

from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import Any

import pytest
import torch
from recipes import recipe
from torch import Tensor, nn
from torch.utils.data import DataLoader
from tracked import everything, loader, network, samples

import equisep
from equisep import History, Tracker
from equisep.errors import DataError, InputError, ModelError
from measuring.distributed.processes import in_processes

lightning = pytest.importorskip("lightning.pytorch")
from lightning.pytorch.callbacks import EarlyStopping  # noqa: E402
from lightning.pytorch.loggers import CSVLogger, TensorBoardLogger  # noqa: E402

from equisep.tracking.lightning import EquisepCallback  # noqa: E402
from equisep.tracking.stopping import Stopping  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:.*")  # Lightning advises on workers, steps to log and more


class Classifier(lightning.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.net, self.seen = network(), list[list[int]]()

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x)

    def training_step(self, batch: tuple[Tensor, Tensor], index: int) -> Tensor:
        x, y = batch
        self.seen.append(y.tolist())
        return nn.functional.cross_entropy(self(x), y)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.05, momentum=0.9)


class Data(lightning.LightningDataModule):
    """A data module that has nothing before `setup`."""

    def setup(self, stage: str) -> None:
        self.train, self.val = samples(), samples(seed=1)

    def train_dataloader(self) -> DataLoader[Any]:
        return loader(list(zip(*self.train, strict=True)))  # type: ignore[arg-type]

    def val_dataloader(self) -> DataLoader[Any]:
        return loader(list(zip(*self.val, strict=True)), shuffle=False)  # type: ignore[arg-type]


def trainer(folder: Path, *callbacks: Any, epochs: int = 3, **options: Any) -> Any:
    quiet = dict.fromkeys(("enable_checkpointing", "enable_progress_bar", "enable_model_summary"), False)
    chosen = {"logger": False, "accelerator": "cpu", "devices": 1, **quiet, **options}
    return lightning.Trainer(max_epochs=epochs, callbacks=list(callbacks), default_root_dir=folder, **chosen)


def trained(folder: Path, *callbacks: Any, **options: Any) -> tuple[dict[str, object], list[list[int]], Any]:
    module, batches = Classifier(), loader()
    torch.manual_seed(5)
    run = trainer(folder, *callbacks, **options)
    run.fit(module, batches)
    return everything(module, run.optimizers[0], batches), module.seen, run


def different(one: dict[str, object], two: dict[str, object]) -> list[str]:
    return [key for key in one.keys() | two.keys() if one.get(key) != two.get(key)]


def test_another_module_is_another_training(tmp_path: Path) -> None:
    callback = EquisepCallback(unit="step", per_class=6)
    trackers = []
    for _ in range(2):
        module = Classifier()
        trainer(tmp_path, callback, epochs=1, limit_train_batches=1).fit(module, loader())
        assert callback.tracker is not None and callback.tracker.model is module
        assert callback.tracker.history.numbers == (1,)
        trackers.append(callback.tracker)
    assert trackers[0] is not trackers[1]


@pytest.mark.parametrize(("unit", "every", "numbers"), [("epoch", 1, (1, 2, 3)), ("step", 6, (6, 12, 18))])
def test_the_same_training_with_every_number_in_the_log(
    unit: str, every: int, numbers: tuple[int, ...], tmp_path: Path
) -> None:
    plain, order, _ = trained(tmp_path)
    options = {"test": samples(seed=1), "per_class": 6, "history": tmp_path / "run.jsonl"}
    callback = EquisepCallback(unit=unit, every=every, **options)  # type: ignore[arg-type]
    logger = CSVLogger(tmp_path)
    tracked, seen, run = trained(tmp_path, callback, logger=logger, log_every_n_steps=1)
    assert seen == order
    assert different(plain, tracked) == []
    assert callback.tracker is not None
    history = callback.tracker.history
    assert history.numbers == numbers
    assert History.load(tmp_path / "run.jsonl").numbers == history.numbers
    last = history.scalars()
    assert {name: run.callback_metrics[name].item() for name in last} == pytest.approx(last, rel=1e-6)
    with (Path(logger.log_dir) / "metrics.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["equisep/law/rho"]]
    rho = [history.profile(number).law.rho for number in history.numbers]
    assert [float(row["equisep/law/rho"]) for row in rows] == pytest.approx(rho, rel=1e-6)


def test_early_stopping_monitors_them_and_the_tracker_stops_by_itself(tmp_path: Path) -> None:
    watch = EarlyStopping("equisep/law/rho", stopping_threshold=9.0, check_on_train_epoch_end=True)  # below it at once
    _, _, run = trained(tmp_path, EquisepCallback(per_class=6), watch, epochs=5)
    assert run.current_epoch == 1
    anything = Stopping(window=1, rho=0.99, fuzziness=0.99, ncc=0.99)
    _, _, run = trained(tmp_path, EquisepCallback(per_class=6, stop=True, stopping=anything), epochs=9)
    assert run.current_epoch == 2


def test_tensorboard_by_lightnings_own_logger(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    logger = TensorBoardLogger(tmp_path)
    trained(tmp_path, EquisepCallback(per_class=6), logger=logger)
    logger.finalize("success")
    tags = EventAccumulator(logger.log_dir).Reload().Tags()
    assert {"equisep/law/rho", "equisep/fuzziness/00_input"} <= set(tags["scalars"])
    assert tags["images"] == ["equisep/law"]


def test_a_module_without_forward_is_read_at_its_only_part(tmp_path: Path) -> None:
    class Bare(lightning.LightningModule):
        configure_optimizers = Classifier.configure_optimizers

        def __init__(self) -> None:
            super().__init__()
            self.net = network()

        def training_step(self, batch: tuple[Tensor, Tensor], index: int) -> Tensor:
            return nn.functional.cross_entropy(self.net(batch[0]), batch[1])

    callback = EquisepCallback(per_class=6)
    trainer(tmp_path, callback, epochs=1).fit(Bare(), loader())
    assert callback.tracker is not None and isinstance(callback.tracker.model, nn.Sequential)
    both = Bare()
    both.other = nn.Linear(2, 2)
    with pytest.raises(InputError, match=r"`Bare` has no `forward`, and 2 parts with weights\. Say which"):
        trainer(tmp_path, EquisepCallback(per_class=6), epochs=1).fit(both, loader())
    callback = EquisepCallback(network=lambda module: module.net, per_class=6)
    trainer(tmp_path, callback, epochs=1).fit(both, loader())
    assert callback.tracker is not None and callback.tracker.model is both.net


def test_a_training_goes_on_from_a_checkpoint(tmp_path: Path) -> None:
    whole = EquisepCallback(per_class=6)
    module = Classifier()
    run = trainer(tmp_path, whole, epochs=4)
    run.fit(module, loader(shuffle=False))
    first = EquisepCallback(per_class=6, history=tmp_path / "run.jsonl")
    run = trainer(tmp_path, first, epochs=2)
    torch.manual_seed(0)
    run.fit(Classifier(), loader(shuffle=False))
    run.save_checkpoint(tmp_path / "two.ckpt")
    again = EquisepCallback(per_class=6, history=tmp_path / "run.jsonl")
    trainer(tmp_path, again, epochs=4).fit(Classifier(), loader(shuffle=False), ckpt_path=str(tmp_path / "two.ckpt"))
    assert History.load(tmp_path / "run.jsonl").numbers == (1, 2, 3, 4)


def test_a_data_module_and_a_trainer_are_data(tmp_path: Path) -> None:
    module, data = Classifier(), Data()
    profile = equisep.measure(module, data, data)
    plain = equisep.measure(module, samples(), samples(seed=1))
    assert profile.curve() == pytest.approx(plain.curve(), rel=1e-6)
    assert profile.curve("fuzziness_test") == pytest.approx(plain.curve("fuzziness_test"), rel=1e-6)
    said = [note.text for note in profile.notes if note.code == "loader"]
    assert said == [
        "The training data are those of `Data.train_dataloader`.",
        "The test data are those of `Data.val_dataloader`.",
    ]
    tracker = Tracker(module, data, per_class=6)
    run = trainer(tmp_path, EquisepCallback(tracker), epochs=1)
    with pytest.raises(DataError, match="`Trainer` gave no loader of the training data"):
        equisep.measure(module, run)
    run.fit(module, datamodule=data)
    assert tracker.history.numbers == (1,)
    assert sum(equisep.measure(module, run).counts) == 120


def test_of_several_loaders_one_is_to_be_named(tmp_path: Path) -> None:
    class Both(Classifier):
        def training_step(self, batch: Any, index: int) -> Tensor:
            return super().training_step(batch["one"], index)

    loaders = {"one": loader(), "two": loader()}
    with pytest.raises(
        InputError, match=r"has 2 training loaders \(`one`, `two`\)\. Say which data are read: `Equisep"
    ):
        trainer(tmp_path, EquisepCallback(per_class=6), epochs=1).fit(Both(), loaders)
    callback = EquisepCallback(per_class=6, every=2, batches=loaders["one"])
    logger = CSVLogger(tmp_path)
    trainer(tmp_path, callback, epochs=3, logger=logger).fit(Both(), loaders)
    with (Path(logger.log_dir) / "metrics.csv").open() as file:
        steps = [row["step"] for row in csv.DictReader(file) if row["equisep/law/rho"]]
    assert callback.tracker is not None and callback.tracker.history.numbers == (2, 3)
    assert steps == ["11", "18"]  # the last epoch, which `every` passed over, too


def test_options_beside_a_tracker_are_refused() -> None:
    with pytest.raises(InputError, match="has its options: per_class cannot be set here"):
        EquisepCallback(Tracker(network(), loader(), per_class=5), per_class=6)
    with pytest.raises(InputError, match=r"No unit `batch`\. Known: epoch, step"):
        EquisepCallback(unit="batch")  # type: ignore[arg-type]


def test_two_processes_train_and_the_first_one_or_all_of_them_read(tmp_path: Path) -> None:
    """Two ranks over gloo, by fork: the history has every epoch once, and the weights are those of a training without."""
    weights = []
    readers = [
        EquisepCallback(per_class=6, history=tmp_path / f"{name}.jsonl", ranks=name) for name in ("first", "all")
    ]
    for callbacks in ([], *([each] for each in readers)):
        torch.manual_seed(5)
        module = Classifier()
        run = trainer(tmp_path, *callbacks, epochs=2, devices=2, strategy="ddp_fork", use_distributed_sampler=True)
        run.fit(module, loader())
        weights.append([value.detach().clone() for value in module.state_dict().values()])
    assert all(torch.equal(one, two) and torch.equal(one, three) for one, two, three in zip(*weights, strict=True))
    first, both = (History.load(tmp_path / f"{name}.jsonl") for name in ("first", "all"))
    assert first.numbers == both.numbers == (1, 2)
    for number in (1, 2):
        assert both.profile(number).provenance["ranks"] == 2
        assert both.profile(number).curve() == pytest.approx(first.profile(number).curve(), rel=1e-6)


class Sharded(Classifier):
    """Divided by `fully_shard` where Lightning asks for it."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 4))

    def configure_model(self) -> None:
        from torch.distributed.fsdp import fully_shard

        fully_shard(self.net, mesh=self.device_mesh["data_parallel"])


def sharded(rank: int, folder: Path) -> Any:
    """What Lightning, started by torchrun, trains: without a callback, with one of all ranks, with one of the first."""
    from lightning.pytorch.strategies import ModelParallelStrategy

    os.environ.update(
        TORCHELASTIC_RUN_ID="test", RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE="2", LOCAL_WORLD_SIZE="2"
    )
    os.environ.update(GROUP_RANK="0", MASTER_ADDR="127.0.0.1", MASTER_PORT="0")
    found: list[Any] = []
    for options in (None, {"ranks": "all"}, {}):
        callback = None if options is None else EquisepCallback(per_class=6, history=folder / "run.jsonl", **options)
        watch = EarlyStopping("equisep/law/rho", patience=9, check_on_train_epoch_end=True)
        torch.manual_seed(5)
        strategy = ModelParallelStrategy(data_parallel_size=2, tensor_parallel_size=1, process_group_backend="gloo")
        run = trainer(folder, *([callback, watch] if callback else []), epochs=2, devices=2, strategy=strategy)
        module = Sharded()
        try:
            run.fit(module, loader())
        except ModelError as error:
            return *found, str(error)
        local = [value.to_local() for value in module.parameters()]  # type: ignore[attr-defined]
        found.append(
            ([value.tolist() for value in local], None if callback is None else callback.tracker.history.numbers)
        )  # type: ignore[union-attr]
    return found


def test_a_module_that_lightning_divides_is_read_by_all(tmp_path: Path) -> None:
    """Every rank has the numbers, for other callbacks to monitor; a callback of the first alone is refused in all."""
    for plain, tracked, refused in in_processes(2, lambda rank: sharded(rank, tmp_path)):
        assert tracked == (plain[0], (1, 2))
        assert "Make the tracker in all of them with `ranks='all'`" in refused
    assert History.load(tmp_path / "run.jsonl").numbers == (1, 2)


def test_the_recipe_runs(tmp_path: Path) -> None:
    names = recipe("Lightning", tmp_path)
    assert names["callback"].tracker.history.numbers == (1, 2)
