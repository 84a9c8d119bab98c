"""On a GPU: a tracked training is bit for bit the training without, once two untracked ones agree."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from tracked import loader, network, samples

from equisep import Tracker

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


@pytest.fixture(autouse=True)
def deterministic() -> Iterator[None]:
    before = torch.are_deterministic_algorithms_enabled()
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(before)


def trained(*, tracked: bool, late: bool = False) -> dict[str, bytes]:
    """Weights, momentum and random states after six epochs on the GPU, dropout by the GPU's random numbers."""
    x, y = (part.cuda() for part in samples(400))
    model = network() if late else network().cuda()
    torch.manual_seed(7)
    tracker = Tracker(model, (x.cpu(), y.cpu()), test=(x.cpu(), y.cpu()), per_class=20) if tracked else None
    model.cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for _ in range(6):
        for rows in torch.randperm(len(y), device="cuda").split(50):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x[rows]), y[rows]).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        if tracker is not None:
            assert tracker.epoch() is not None
    state = {name: value.cpu().numpy().tobytes() for name, value in model.state_dict().items()}
    state["cuda"] = torch.cuda.get_rng_state().numpy().tobytes()
    state["cpu"] = torch.get_rng_state().numpy().tobytes()
    for index, value in enumerate(model.parameters()):
        state[f"moment {index}"] = optimizer.state[value]["momentum_buffer"].cpu().numpy().tobytes()
    return state


@pytest.mark.parametrize("late", [False, True], ids=["model on the GPU", "model moved there later"])
def test_a_tracked_training_is_the_same_training(late: bool) -> None:
    one, two = trained(tracked=False, late=late), trained(tracked=False, late=late)
    assert one == two, "two untracked trainings must agree before a tracked one can be compared"
    tracked = trained(tracked=True, late=late)
    assert [name for name in one if one[name] != tracked[name]] == []


@pytest.mark.parametrize("framework", ["lightning", "transformers"])
@pytest.mark.filterwarnings("ignore:.*")
def test_a_framework_trains_the_same_beside_a_callback(framework: str, tmp_path: Path) -> None:
    """Two untracked trainings on the GPU agree, and one with the callback is them, whatever it reads."""
    run = by_lightning if framework == "lightning" else by_transformers
    states = [run(tmp_path / str(number), tracked=number == 2) for number in range(3)]
    assert states[0] == states[1], "two untracked trainings must agree before a tracked one can be compared"
    assert [name for name in states[0] if states[0][name] != states[2][name]] == []


def by_lightning(folder: Path, *, tracked: bool) -> dict[str, bytes]:
    pytest.importorskip("lightning.pytorch")
    from test_framework_lightning import Classifier, trainer

    from equisep.tracking.lightning import EquisepCallback

    callback = EquisepCallback(test=samples(seed=1), per_class=6, history=folder.with_suffix(".jsonl"))
    module = Classifier()
    torch.manual_seed(5)
    run = trainer(folder, *([callback] if tracked else []), accelerator="gpu", deterministic=True)
    run.fit(module, loader())
    assert not tracked or (callback.tracker is not None and len(callback.tracker.history) == 3)
    return left_behind(module, run.optimizers[0])


def by_transformers(folder: Path, *, tracked: bool) -> dict[str, bytes]:
    pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    from test_framework_transformers import trainer

    from equisep.tracking.transformers import EquisepCallback

    run = trainer(folder, use_cpu=False, full_determinism=True)
    callback = EquisepCallback(per_class=6, history=folder.with_suffix(".jsonl"))
    if tracked:
        run.add_callback(callback)
    run.train()
    assert not tracked or (callback.tracker is not None and len(callback.tracker.history) == 3)
    return left_behind(run.model, run.optimizer)


def left_behind(model: nn.Module, optimizer: Any) -> dict[str, bytes]:
    """Weights, what the optimizer keeps, and random states."""
    kept = {
        f"{index} {key}": value for index, entry in enumerate(optimizer.state.values()) for key, value in entry.items()
    }
    tensors = {**model.state_dict(), **{key: torch.as_tensor(value) for key, value in kept.items()}}
    tensors |= {"cuda": torch.cuda.get_rng_state(), "cpu": torch.get_rng_state()}
    return {name: value.cpu().numpy().tobytes() for name, value in tensors.items()}


def test_readings_agree_with_those_of_the_cpu() -> None:
    model = network()
    data = samples(400)
    tracker = Tracker(model, data, per_class=20)
    here = tracker.epoch(1)
    model.cuda()
    there = tracker.epoch(2)
    assert here is not None and there is not None
    assert here.curve() == pytest.approx(there.curve(), rel=1e-4)
    assert there.provenance["device"] != "cpu"
