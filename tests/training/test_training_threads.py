"""Small steps run on one thread, large ones on those there are, and whatever happens torch's number is given back."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch._dynamo
from torch import Tensor, nn

from equisep.models import build
from equisep.training import Member, Recipe, Shape, threads, train, train_ensemble
from equisep.training.ensemble.stepper import Stepper
from equisep.training.threads import Operations
from training.small_loop import data, equal, fresh

RECIPE = Recipe(rate=3e-3, epochs=2, batch_size=32, seed=5)


@pytest.fixture(autouse=True)
def three_threads() -> Iterator[None]:
    """Three threads before each test, and what there was after it."""
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


def watched(model: nn.Module) -> list[int]:
    """The numbers of threads that forward passes of the model are going to have."""
    seen: list[int] = []
    model.register_forward_pre_hook(lambda *_: seen.append(torch.get_num_threads()))
    return seen


def test_small_steps_have_one_thread_and_readers_those_there_were() -> None:
    model, readers = fresh(), []
    seen = watched(model)
    train(model, *data(), recipe=RECIPE, after_epoch=lambda _: readers.append(torch.get_num_threads()))
    assert seen == [1] * 6 and readers == [3] * 3 and torch.get_num_threads() == 3


def test_large_steps_have_those_there_are_from_the_second_on(monkeypatch: pytest.MonkeyPatch) -> None:
    operations = 6 * 32 * (6 * 8 + 8 * 8 + 8 * 3)
    for limit, expected in ((operations, 3), (operations + 1, 1)):
        monkeypatch.setattr(threads, "WORTH_SHARING", limit)
        model = fresh()
        seen = watched(model)
        train(model, *data(), recipe=RECIPE)
        assert seen == [1] + [expected] * 5 and torch.get_num_threads() == 3


def test_a_network_of_unknown_work_keeps_its_threads() -> None:
    class Scale(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(3))

        def forward(self, x: Tensor) -> Tensor:
            return x[:, :3] * self.weight

    model = Scale()
    seen = watched(model)
    train(model, *data(), recipe=RECIPE)
    assert seen == [1] + [3] * 5


def test_one_thread_is_left_at_one() -> None:
    torch.set_num_threads(1)
    model = fresh()
    seen = watched(model)
    train(model, *data(), recipe=RECIPE)
    assert seen == [1] * 6 and torch.get_num_threads() == 1


@pytest.mark.parametrize("error", [RuntimeError("something"), KeyboardInterrupt()], ids=["error", "interrupt"])
@pytest.mark.parametrize("step", [0, 1, 4])
def test_threads_are_given_back_on_errors(error: BaseException, step: int) -> None:
    model, calls = fresh(), 0

    def fail(*_: object) -> None:
        nonlocal calls
        calls += 1
        if calls > step:
            raise error

    model.register_forward_pre_hook(fail)
    with pytest.raises(type(error)):
        train(model, *data(), recipe=RECIPE)
    assert torch.get_num_threads() == 3


def test_threads_are_given_back_where_a_reader_or_the_numbers_fail() -> None:
    def stop(epoch: int) -> None:
        raise KeyError(epoch)

    with pytest.raises(KeyError):
        train(fresh(), *data(), recipe=RECIPE, after_epoch=stop)
    assert torch.get_num_threads() == 3
    with pytest.raises(ArithmeticError):
        train(fresh(), *data(), recipe=RECIPE, progress=lambda *_: 1 // 0)  # type: ignore[arg-type,return-value]
    assert torch.get_num_threads() == 3


def test_a_small_network_is_the_same_to_the_bit_on_any_number_of_threads() -> None:
    networks, histories = [], []
    for count in (1, 2, 3):
        torch.set_num_threads(count)
        networks.append(build("fnn", seed=0, depth=4, width=100, inputs=100, classes=3))
        x = torch.randn(200, 100, generator=torch.Generator().manual_seed(0))
        histories.append(train(networks[-1], x, torch.arange(200) % 3, recipe=RECIPE))
    assert histories[0] == histories[1] == histories[2]
    assert equal(networks[0], networks[1]) and equal(networks[1], networks[2])


def test_operations_are_those_of_products_and_convolutions() -> None:
    with Operations() as seen:
        nn.Linear(5, 7)(torch.ones(3, 5))
    assert seen.count == 2 * 3 * 5 * 7
    with Operations() as seen:
        nn.Conv2d(2, 4, 3)(torch.ones(1, 2, 6, 6)).relu().sum()
    assert seen.count == 2 * 4 * 2 * 9 * 16


class Plain(nn.Module):
    """A network of no checks at run time, which the compiler would stumble on."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden, self.head = nn.Linear(6, 8), nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        scores: Tensor = self.head(self.hidden(x).relu())
        return scores


@pytest.mark.parametrize("how", ["around", "in place", "inside"])
def test_a_compiled_network_is_compiled_once_and_whole(how: str) -> None:
    """Counting its operations must not get into the graph, break it, or keep torch from compiling the network later."""
    graphs, passes = 0, 0

    def backend(graph: torch.fx.GraphModule, _: list[Tensor]) -> Callable[..., object]:
        nonlocal graphs
        graphs += 1

        def run(*values: Tensor) -> object:
            nonlocal passes
            passes += 1
            return graph(*values)

        return run

    torch._dynamo.reset()
    options: dict[str, Any] = {"backend": backend, "fullgraph": True, "dynamic": False}
    torch.manual_seed(0)
    network = Plain()
    plain = copy.deepcopy(network)
    model: nn.Module = network
    if how == "in place":
        network.compile(**options)
    else:
        compiled: Any = torch.compile(network, **options)
        model = compiled if how == "around" else nn.Sequential(compiled)
    history = train(model, *data(64), recipe=RECIPE)
    assert (graphs, passes) == (1, 3)  # of four steps, one of which is run eagerly to be counted
    assert history == train(plain, *data(64), recipe=RECIPE) and equal(network, plain)


def test_one_member_of_an_ensemble_trains_on_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several members have a thread each; one alone would have every operation split."""
    seen: list[int] = []
    step = Stepper.step

    def counted(self: Stepper, *batch: Tensor) -> None:
        seen.append(torch.get_num_threads())
        step(self, *batch)

    monkeypatch.setattr(Stepper, "step", counted)
    one = Member(RECIPE, Shape((8, 8), inputs=6, classes=3))
    train_ensemble([one], *data())
    assert set(seen) == {1} and torch.get_num_threads() == 3
    seen.clear()
    monkeypatch.setattr(threads, "WORTH_SHARING", 6 * 32 * (6 * 8 + 8 * 8 + 8 * 3))
    train_ensemble([one], *data())
    assert set(seen) == {3} and torch.get_num_threads() == 3
    monkeypatch.setattr(Stepper, "step", lambda *_: 1 // 0)
    with pytest.raises(ArithmeticError):
        train_ensemble([one], *data())
    assert torch.get_num_threads() == 3
