"""A training with a tracker is bit for bit the training without."""

from __future__ import annotations

import random
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, IterableDataset, SubsetRandomSampler
from tracked import everything, loader, network, samples, train

from equisep import Tracker


class Augmented(Dataset[tuple[Tensor, Tensor]]):
    """Samples with noise from all three random states."""

    def __init__(self) -> None:
        self.x, self.y = samples()

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        noise = torch.randn(1) + random.random() + np.random.rand()  # noqa: NPY002
        return self.x[index] + 0.01 * noise.float(), self.y[index]


class Stream(IterableDataset[tuple[Tensor, Tensor]]):
    """The samples in a row, shuffled by the global random state."""

    def __iter__(self) -> Any:
        x, y = samples()
        for index in torch.randperm(len(y)).tolist():
            yield x[index], y[index]


LOADERS = {
    "global": lambda: loader(),
    "own generator": lambda: loader(generator=torch.Generator().manual_seed(3)),
    "augmented": lambda: loader(Augmented()),
    "augmented, own generator": lambda: loader(Augmented(), generator=torch.Generator().manual_seed(3)),
    "sampler": lambda: loader(shuffle=None, sampler=SubsetRandomSampler(range(100))),
    "stream": lambda: loader(Stream(), shuffle=None),
    "workers": lambda: loader(num_workers=1, persistent_workers=True),
}


def trained(make: Any, *, tracked: str | None, **options: Any) -> tuple[dict[str, object], list[list[int]]]:
    random.seed(1)
    np.random.seed(2)  # noqa: NPY002
    model, batches = network(), make()
    torch.manual_seed(5)
    model[1].eval()  # one layer in another mode than the rest
    tracker = None
    if tracked is not None:
        tracker = Tracker(model, batches, test=samples(seed=1), **options)
    after = {f"after_{tracked}": getattr(tracker, tracked)} if tracker is not None and tracked is not None else {}
    optimizer, seen = train(model, batches, epochs=2, **after)
    if tracker is not None:
        assert len(tracker.history.numbers) == (2 if tracked == "epoch" else len(seen))
    return everything(model, optimizer, batches), seen


def same(one: tuple[dict[str, object], Any], two: tuple[dict[str, object], Any]) -> None:
    assert one[1] == two[1], "the order of the loader"
    assert [key for key in one[0].keys() | two[0].keys() if one[0].get(key) != two[0].get(key)] == []


@pytest.mark.parametrize("name", LOADERS)
def test_a_tracked_training_is_the_same_training(name: str) -> None:
    make = LOADERS[name]
    same(trained(make, tracked=None), trained(make, tracked="epoch", per_class=6))


@pytest.mark.parametrize("reading", ["eval", "mixed"])
def test_at_every_step_and_in_a_file(reading: str, tmp_path: Any) -> None:
    make = partial(loader, batch_size=60)
    options = {"reading": reading, "history": tmp_path / "h.jsonl", "per_class": 6, "sites": ["2", "6"]}
    same(trained(make, tracked=None), trained(make, tracked="step", **options))


class Scaled(nn.Module):
    """Follows the scale of what it is given, also in `eval`: as observers of quantization-aware training do."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("scale", torch.ones(()))
        self.register_buffer("counted", torch.zeros((), dtype=torch.int64))

    def forward(self, x: Tensor) -> Tensor:
        self.scale.mul_(0.9).add_(0.1 * x.detach().abs().mean())
        self.counted = self.counted + 1
        return x / self.scale


@pytest.mark.parametrize("observer", ["own", "torch.ao"])
def test_buffers_that_are_written_in_eval_too(observer: str) -> None:
    def trained(tracked: bool) -> dict[str, object]:
        random.seed(1)
        np.random.seed(2)  # noqa: NPY002
        model, batches = network(), loader()
        if observer == "own":
            model.insert(1, Scaled())
        else:
            quantization = pytest.importorskip("torch.ao.quantization")
            model.insert(1, quantization.FakeQuantize())
        torch.manual_seed(5)
        tracker = Tracker(model, batches, per_class=6) if tracked else None
        optimizer, _ = train(model, batches, epochs=2, after_epoch=None if tracker is None else tracker.epoch)
        return everything(model, optimizer, batches)

    one, two = trained(False), trained(True)
    assert [key for key in one.keys() | two.keys() if one.get(key) != two.get(key)] == []


def test_with_too_little_memory_to_keep_the_samples() -> None:
    make = LOADERS["augmented"]
    same(trained(make, tracked=None), trained(make, tracked="epoch", per_class=30, memory=2_000))


def test_readings_that_fail_leave_no_trace_either() -> None:
    make = LOADERS["global"]
    model, batches = network(), make()
    torch.manual_seed(5)
    tracker = Tracker(model, batches, per_class=6)
    with torch.no_grad():
        model[0].weight[0, 0] = torch.nan
    before = everything(model, torch.optim.SGD(model.parameters(), lr=0.1), batches)
    with pytest.warns(UserWarning, match="The reading of epoch 1 failed"):
        assert tracker.epoch() is None
    assert everything(model, torch.optim.SGD(model.parameters(), lr=0.1), batches) == before


def test_an_iterator_in_use_goes_on() -> None:
    batches = loader(num_workers=1, persistent_workers=True, generator=torch.Generator().manual_seed(3))
    labels = [y.tolist() for _, y in batches]
    again = loader(num_workers=1, persistent_workers=True, generator=torch.Generator().manual_seed(3))
    live = iter(again)
    first = [next(live)[1].tolist() for _ in range(2)]
    tracker = Tracker(network(), again, per_class=5)
    tracker.epoch()
    assert first + [y.tolist() for _, y in live] == labels


def test_under_autocast_and_without_gradients() -> None:
    model, batches = network(), loader()
    tracker = Tracker(model, batches, per_class=5)
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        tracker.epoch()
        assert torch.is_autocast_enabled("cpu") and not torch.is_grad_enabled()
    assert torch.is_grad_enabled() and not torch.is_autocast_enabled("cpu")


def test_a_training_that_insists_on_deterministic_algorithms(monkeypatch: pytest.MonkeyPatch) -> None:
    model = network()
    tracker = Tracker(model, loader(), per_class=5)
    seen = []

    class Looked(nn.Identity):
        def forward(self, input: Tensor) -> Tensor:
            seen.append(
                (torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled())
            )
            return input

    model[3] = Looked()
    torch.use_deterministic_algorithms(True)
    try:
        assert tracker.epoch() is not None
        assert torch.are_deterministic_algorithms_enabled()
        assert not torch.is_deterministic_algorithms_warn_only_enabled()
    finally:
        torch.use_deterministic_algorithms(False)
    assert set(seen) == {(True, True)}
    tracker.epoch()
    assert not torch.are_deterministic_algorithms_enabled()


def test_a_parametrized_classifier_is_looked_at_without_a_step() -> None:
    """Spectral norm takes a step of its own whenever a training model's weight is looked at."""
    x, y = samples()
    model = nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.utils.parametrizations.spectral_norm(nn.Linear(5, 4)))
    tracker = Tracker(model, (torch.cat([x, x[y < 2]]), torch.cat([y, y[y < 2]])), per_class=5)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    tracker.epoch()
    assert tracker.history[1].minority_cosine is not None
    assert all(torch.equal(value, model.state_dict()[name]) for name, value in before.items())


def test_a_gpu_that_is_not_in_use_is_not_seeded(monkeypatch: pytest.MonkeyPatch) -> None:
    """`torch.manual_seed` would leave a seed for a GPU that is used later."""

    def refuse(*args: object) -> None:
        raise AssertionError("seeded")

    monkeypatch.setattr(torch.cuda, "manual_seed_all", refuse)
    monkeypatch.setattr(torch, "manual_seed", refuse)
    Tracker(
        nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 4)), DataLoader(Augmented(), 10), per_class=5
    ).epoch()
