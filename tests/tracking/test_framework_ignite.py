"""The Ignite handler with the real Ignite: the same training, the numbers among the engine's metrics."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from recipes import recipe
from torch import nn
from tracked import everything, loader, network, samples

from equisep import History, Tracker
from equisep.errors import InputError

pytest.importorskip("ignite.engine")
from ignite.engine import Engine, Events, create_supervised_trainer

from equisep.tracking.ignite import EquisepHandler
from equisep.tracking.stopping import Stopping


def engine_for(model: nn.Module, seen: list[list[int]]) -> tuple[Engine, torch.optim.Optimizer]:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    engine = create_supervised_trainer(model, optimizer, nn.functional.cross_entropy)
    engine.add_event_handler(Events.ITERATION_STARTED, lambda run: seen.append(run.state.batch[1].tolist()))
    return engine, optimizer


def trained(**options: Any) -> tuple[dict[str, object], list[list[int]], EquisepHandler | None, list[dict[str, float]]]:
    model, batches, seen = network(), loader(), list[list[int]]()
    torch.manual_seed(5)
    engine, optimizer = engine_for(model, seen)
    handler = EquisepHandler(model, **options).attach(engine) if options else None
    logged: list[dict[str, float]] = []
    engine.add_event_handler(Events.EPOCH_COMPLETED, lambda run: logged.append(dict(run.state.metrics)))
    engine.run(batches, max_epochs=3)
    return everything(model, optimizer, batches), seen, handler, logged


@pytest.mark.parametrize(("unit", "every", "numbers"), [("epoch", 1, (1, 2, 3)), ("step", 6, (6, 12, 18))])
def test_the_same_training_with_every_number_among_the_metrics(
    unit: str, every: int, numbers: tuple[int, ...], tmp_path: Path
) -> None:
    plain, order, _, none = trained()
    tracked, seen, handler, logged = trained(unit=unit, every=every, per_class=6, test=samples(seed=1))
    assert seen == order and none == [{}] * 3
    assert [key for key in plain.keys() | tracked.keys() if plain.get(key) != tracked.get(key)] == []
    assert handler is not None and handler.tracker is not None
    history = handler.tracker.history
    assert history.numbers == numbers
    assert [row["equisep/law/rho"] for row in logged] == [p.law.rho for p in history.profiles().values()]


def test_ignites_own_logger_takes_them(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from ignite.handlers import TensorboardLogger
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    model = network()
    engine, _ = engine_for(model, [])
    EquisepHandler(model, per_class=6).attach(engine)
    with TensorboardLogger(log_dir=str(tmp_path)) as logger:
        logger.attach_output_handler(engine, Events.EPOCH_COMPLETED, tag="training", metric_names="all")
        engine.run(loader(), max_epochs=2)
    assert "training/equisep/law/rho" in EventAccumulator(str(tmp_path)).Reload().Tags()["scalars"]


def test_it_stops_goes_on_and_takes_a_tracker(tmp_path: Path) -> None:
    model, path = network(), tmp_path / "run.jsonl"
    engine, _ = engine_for(model, [])
    anything = Stopping(window=1, rho=0.99, fuzziness=0.99, ncc=0.99)
    EquisepHandler(model, per_class=6, stop=True, stopping=anything, history=path).attach(engine)
    engine.run(loader(), max_epochs=9)
    assert engine.state.epoch == 2
    tracker = Tracker(model, loader(), per_class=6, stopping=anything, history=path)
    engine, _ = engine_for(model, [])
    tracker.callback("ignite").attach(engine)
    engine.load_state_dict({"epoch": 2, "max_epochs": 4, "epoch_length": 6})
    engine.run(loader())
    assert History.load(path).numbers == (1, 2, 3, 4)
    with pytest.raises(InputError, match="needs the model, which an engine does not know, or a tracker of it"):
        EquisepHandler()
    with pytest.raises(InputError, match=r"No callback for `ignight`\. Did you mean `ignite`\? Known: lightning, "):
        tracker.callback("ignight")


def test_the_recipe_runs(tmp_path: Path) -> None:
    names = recipe("Ignite", tmp_path)
    assert names["handler"].tracker.history.numbers == (1, 2)
