"""`eval` and `mixed` reading, and a model, its gradients and all random states left exactly as they were found."""

import contextlib
import random
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from tapped_models import batch, differing, random_states, same, small, snapshot
from torch import Tensor, nn
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset

from equisep.measuring import measure
from equisep.taps import random_state_kept, tap

MODES = ["eval", "mixed"]


class Writing(nn.Module):
    """Writes its buffers in every forward pass, whatever the mode, in all the ways there are."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("moved", torch.ones(3))
        self.register_buffer("replaced", torch.ones(()))
        self.register_buffer("uncounted", torch.ones(2))
        self.register_buffer("resized", torch.zeros(0))
        self.register_buffer("missing", None)
        self.register_buffer("cache", torch.zeros(1), persistent=False)
        self.cached = 1

    def forward(self, x: Tensor) -> Tensor:
        self.moved.mul_(0.9).add_(x.detach().mean())
        self.replaced = 0.9 * self.replaced + x.detach().mean()
        self.uncounted.data.add_(1)
        self.resized.resize_(len(x)).copy_(x.detach()[:, 0])
        self.missing = x.detach().mean(dim=0)
        if len(x) > self.cached:
            self.cache, self.cached = torch.zeros(len(x)), len(x)
        return x * self.moved.sum() + self.replaced + self.cache.sum()


def trained_a_little() -> nn.Module:
    """Running statistics that are not those of a fresh model, and gradients."""
    model = small()
    model(batch(seed=5) * 3 + 1).square().sum().backward()
    model.second.bias.requires_grad_(False)
    model.norm.eval()  # a frozen BatchNorm inside a model in training mode
    return model


def read(model: nn.Module, x: Tensor, sites: list[str], mode: str) -> dict[str, Tensor]:
    kept: dict[str, Tensor] = {}
    with tap(model, sites, consume=lambda site, features: kept.update({site: features.clone()}), reading=mode):  # type: ignore[arg-type]
        model(x)
    return kept


def test_batch_mode_normalizes_with_the_statistics_of_the_batch() -> None:
    model, x = trained_a_little(), batch(16)
    kept = read(model, x, ["first", "norm"], "mixed")
    h = kept["first"].double()
    spread = h.var(dim=0, correction=0)  # the biased variance, as in training
    wanted = (h - h.mean(dim=0)) / (spread + model.norm.eps).sqrt()
    torch.testing.assert_close(kept["norm"].double(), wanted, rtol=1e-5, atol=1e-6)


def test_eval_mode_normalizes_with_the_running_statistics() -> None:
    model, x = trained_a_little(), batch(16)
    kept = read(model, x, ["first", "norm"], "eval")
    norm = model.norm
    wanted = (kept["first"] - norm.running_mean) / (norm.running_var + norm.eps).sqrt()
    torch.testing.assert_close(kept["norm"], wanted, rtol=1e-5, atol=1e-6)
    assert not torch.allclose(kept["norm"], read(model, x, ["norm"], "mixed")["norm"], atol=0.1)


@pytest.mark.parametrize("mode", MODES)
def test_dropout_is_off(mode: str) -> None:
    model, x = small(), batch(16)
    kept: dict[str, list[Tensor]] = {}
    with tap(model, ["relu", "drop"], consume=lambda s, f: kept.setdefault(s, []).append(f.clone()), reading=mode):  # type: ignore[arg-type]
        model(x)
    assert torch.equal(kept["drop"][0], kept["relu"][0])


@pytest.mark.parametrize("kind", [nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d])
def test_every_kind_of_batch_norm_is_switched(kind: type[nn.Module]) -> None:
    dims = {"BatchNorm1d": (), "BatchNorm2d": (2, 2), "BatchNorm3d": (2, 2, 2)}[kind.__name__]
    norm = kind(3)
    model = nn.Sequential(norm)
    x = 5 + 2 * torch.randn(64, 3, *dims, generator=torch.Generator().manual_seed(0))
    found = read(model, x, ["0"], "mixed")["0"].reshape(x.shape)
    assert abs(float(found.mean())) < 1e-5
    assert abs(float(found.std()) - 1) < 0.05
    assert torch.equal(norm.running_mean, torch.zeros(3))


@pytest.mark.parametrize("options", [{"momentum": None}, {"track_running_stats": False}, {"affine": False}])
def test_batch_norms_of_any_make_come_back_as_they_were(options: dict[str, object]) -> None:
    model = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6, **options))
    before = snapshot(model)
    read(model, batch(), ["1"], "mixed")
    assert differing(before, snapshot(model)) == []


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("bad", [None, float("nan"), float("inf")])
def test_the_model_is_left_exactly_as_found(mode: str, bad: float | None) -> None:
    model, x = trained_a_little(), batch()
    if bad is not None:
        x[2, 1] = bad
    before = snapshot(model)
    assert before["norm.num_batches_tracked value"] == 1
    assert any(value is not None for key, value in before.items() if key.endswith(" grad"))
    with tap(model, ["first", "norm", "relu", "head"], consume=lambda *_: None, reading=mode):  # type: ignore[arg-type]
        model(x)
        model(x)
    assert differing(before, snapshot(model)) == []


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("fails", [False, True])
def test_buffers_that_a_forward_pass_writes_are_put_back(mode: str, fails: bool) -> None:
    model = nn.Sequential(nn.Linear(4, 5), Writing(), nn.ReLU())
    writing = model[1]
    before = {name: value for name, value in writing._buffers.items() if name != "cache"}
    kept = {name: None if value is None else value.clone() for name, value in before.items()}
    with contextlib.suppress(RuntimeError), tap(model, ["2"], consume=lambda *_: None, reading=mode):  # type: ignore[arg-type]
        model(batch())
        model(batch(8, 7) if fails else batch())
    for name, value in before.items():
        now = writing._buffers[name]
        assert now is value, name
        assert now is None or torch.equal(now, kept[name]), name
    # the model remembers by a plain number how long its cache is: without the cache it would fail
    assert len(writing.cache) == writing.cached == 8


def test_buffers_that_nobody_writes_are_not_touched() -> None:
    """A backward pass that is under way would fail."""
    model = nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5).eval())
    model[1].register_buffer("expanded", torch.zeros(1).expand(3))  # cannot be written at all
    versions = [buffer._version for buffer in model.buffers()]
    loss = model(batch()).sum()
    read(model, batch(), ["1"], "eval")
    assert [buffer._version for buffer in model.buffers()] == versions
    loss.backward()


def test_of_weights_in_buffers_only_small_ones_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("equisep.taps.modes.MOST_BUFFERS", 100)
    monkeypatch.setattr("equisep.taps.modes.SMALL_BUFFER", 12)
    model = nn.Sequential(nn.Linear(4, 5), Writing())
    model[1].register_buffer("weights", torch.zeros(1000))
    read(model, batch(), ["1"], "eval")
    assert torch.equal(model[1].moved, torch.ones(3))


@pytest.mark.parametrize("mode", MODES)
def test_the_model_is_left_exactly_as_found_when_reading_fails(mode: str) -> None:
    model = trained_a_little()
    before = snapshot(model)
    with pytest.raises(RuntimeError), tap(model, ["norm"], consume=lambda *_: None, reading=mode):  # type: ignore[arg-type]
        model(batch())
        model(batch(8, 7))
    assert differing(before, snapshot(model)) == []


@pytest.mark.parametrize("mode", MODES)
def test_global_random_states_are_left_as_found_by_a_tap(mode: str) -> None:
    class Noisy(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x + torch.rand_like(x) + np.random.rand() + random.random()  # noqa: NPY002

    model = nn.Sequential(nn.Linear(4, 4), Noisy())
    before = random_states()
    with tap(model, ["0", "1"], consume=lambda *_: None, reading=mode):  # type: ignore[arg-type]
        model(batch())
        assert not same(before[0], random_states()[0])
    assert all(same(a, b) for a, b in zip(before, random_states(), strict=True))


@pytest.mark.usefixtures("as_users_run_it")  # beartype draws from it
def test_python_random_state_is_left_as_found_too() -> None:
    class Noisy(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x + random.random()

    class Loader:
        def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
            order = list(range(40))
            random.shuffle(order)
            for part in (order[:20], order[20:]):
                yield torch.randn(40, 4, generator=torch.Generator().manual_seed(0))[part], torch.tensor(part) % 3

    model = nn.Sequential(nn.Linear(4, 4), Noisy(), nn.Linear(4, 3))
    before = random.getstate()
    with tap(model, ["0", "1"], consume=lambda *_: None):
        model(torch.zeros(5, 4))
        assert random.getstate() != before
    assert random.getstate() == before, "tap"
    for memory in (2**30, 0):
        measure(model, Loader(), test=Loader(), classes=3, memory=memory)
        assert random.getstate() == before, memory


@pytest.mark.parametrize("place", ["loader", "sampler", "batch sampler"])
def test_generators_of_loaders_are_given_back(place: str) -> None:
    data = TensorDataset(torch.arange(20))
    generator = torch.Generator().manual_seed(3)
    loader = {
        "loader": lambda: DataLoader(data, batch_size=4, shuffle=True, generator=generator),
        "sampler": lambda: DataLoader(data, batch_size=4, sampler=RandomSampler(data, generator=generator)),
        "batch sampler": lambda: DataLoader(
            data, batch_sampler=BatchSampler(RandomSampler(data, generator=generator), 4, drop_last=False)
        ),
    }[place]()
    before = generator.get_state()
    orders = []
    for _ in range(2):
        with random_state_kept(loader):
            orders.append(torch.cat([values for (values,) in loader]))
        assert torch.equal(generator.get_state(), before)
    assert torch.equal(orders[0], orders[1])
    assert not torch.equal(orders[0], torch.arange(20))


def test_states_come_back_when_the_body_raises() -> None:
    before = random_states()
    with pytest.raises(KeyError), random_state_kept():
        torch.rand(3)
        random.random()
        raise KeyError
    assert all(same(a, b) for a, b in zip(before, random_states(), strict=True))


@pytest.mark.parametrize("mode", MODES)
def test_a_training_step_after_reading_is_bit_identical_to_one_without(mode: str) -> None:
    def step(model: nn.Module) -> None:
        optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad])
        for seed in range(2):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(batch(seed=seed)), torch.arange(8) % 3).backward()
            optimizer.step()

    with_reading, without = small(), small()
    torch.manual_seed(9)  # dropout draws from the global generator
    step(without)
    torch.manual_seed(9)
    with tap(with_reading, ["norm", "relu"], consume=lambda *_: None, reading=mode):  # type: ignore[arg-type]
        with_reading(batch())
    step(with_reading)
    for name, value in without.state_dict().items():
        assert same(value, with_reading.state_dict()[name]), name
