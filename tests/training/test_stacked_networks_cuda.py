"""What only a GPU can show of stacked networks: captured graphs, and the same numbers as the CPU and as each alone."""

from __future__ import annotations

import math

import pytest
import torch
from test_stacked_networks import CLASSES, NARROW, TINY, mixed, pictures, recipe, tiny
from trained_alone import same, worst

from equisep.models import build
from equisep.training import train, train_stacked

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


@pytest.fixture(autouse=True)
def in_fixed_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some kernels of cuDNN add in no fixed order: two runs of one network then differ by 1e-4 to 1e-3 after a few epochs."""
    monkeypatch.setattr(torch.backends.cudnn, "deterministic", True)


@pytest.mark.parametrize("name", sorted(NARROW))
def test_float64_on_the_gpu_is_the_member_trained_alone_on_the_cpu(name: str) -> None:
    options = {"colors": 1, "classes": CLASSES, **NARROW[name]}
    x, y = pictures(colors=options["colors"], size=options.get("size", 32 if name == "vgg11" else 8))
    found = train_stacked(mixed(), x, y, network=name, options=options, dtype=torch.float64, device="cuda", chunk=6)
    assert found.settings["at_once"] == 6 and found.settings["engine"] == "eager"
    for member, one in enumerate(mixed()):
        network = build(name, seed=one.seed, **options).to(torch.float64)
        train(network, x, y, recipe=one)
        assert worst(found.weights(member), network.state_dict()) <= 1e-8


@pytest.mark.parametrize("name", sorted(set(NARROW) - {"convnet", "pure-cnn"}))
def test_graphs_are_the_eager_steps(name: str) -> None:
    """Both batch sizes, changes of the rate, three optimizers.

    In float32 the ConvNet and the pure CNN cannot tell: shifts that stand before another BatchNorm have a gradient of
    rounding, which Adam makes as large as any other.
    """
    options = {"colors": 1, "classes": CLASSES, **NARROW[name]}
    x, y = pictures(colors=options["colors"], size=options.get("size", 32 if name == "vgg11" else 8))
    eager, graphs = (
        train_stacked(mixed(), x, y, network=name, options=options, device="cuda", engine=engine, chunk=6)
        for engine in ("eager", "auto")
    )
    assert graphs.settings["engine"] == "graphs" and eager.settings["engine"] == "eager"
    for member in range(6):
        assert worst(graphs.weights(member), eager.weights(member)) < 1e-2
        assert graphs.histories[member].loss == pytest.approx(eager.histories[member].loss, rel=1e-3)
        network = graphs.network(member)
        assert all(value.device.type == "cpu" for value in network.state_dict().values())


def test_graphs_follow_the_member_trained_alone() -> None:
    x, y = pictures()
    found = tiny(mixed(), (x.float(), y), dtype=torch.float32, device="cuda", engine="graphs", chunk=6)
    for member, one in enumerate(mixed()):
        network = build("pure-cnn", seed=one.seed, **TINY)
        history = train(network, x.float(), y, recipe=one)
        assert worst(found.weights(member), network.state_dict()) < 1e-2
        assert found.histories[member].loss == pytest.approx(history.loss, rel=1e-3)
        assert found.histories[member].accuracy == pytest.approx(history.accuracy, abs=0.051)  # two of 40 at a boundary


def test_one_after_the_other_is_side_by_side() -> None:
    options = {"dtype": torch.float32, "device": "cuda"}
    together, turns = tiny(mixed(), chunk=6, **options), tiny(mixed(), chunk=1, **options)
    assert (together.settings["at_once"], turns.settings["at_once"]) == (6, 1)
    assert all(worst(together.weights(member), turns.weights(member)) < 1e-2 for member in range(6))


@pytest.mark.parametrize("tf32", [False, True])
@pytest.mark.parametrize("channels", [1, 4, 8, 16, 32])
def test_a_member_that_diverges_disturbs_no_other_on_the_gpu(channels: int, tf32: bool) -> None:
    """Whatever kernels the library takes for so many channels a group; some multiply another member's NaN by zero."""
    recipes = [recipe("adam", epochs=4), recipe("sgd", 1e30, epochs=4), recipe("momentum", 0.01, seed=1, epochs=4)]
    calm = [one if one.rate < 1 else recipe("sgd", 0.1, epochs=4) for one in recipes]
    options = {**TINY, "channels": channels}
    found, without = (
        tiny(each, options=options, dtype=torch.float32, device="cuda", tf32=tf32, chunk=chunk)
        for each, chunk in ((recipes, 3), (calm, 1))  # after one diverged, all train one after the other
    )
    assert found.diverged[1] is not None and not math.isfinite(found.histories[1].loss[-1])
    assert (found.diverged[0], found.diverged[2]) == (None, None)
    assert all(worst(found.weights(member), without.weights(member)) < 1e-4 for member in (0, 2))


def test_the_same_call_starts_from_the_same_bits() -> None:
    one, two = (tiny([recipe(seed=seed, epochs=0) for seed in (0, 1)], device="cuda") for _ in range(2))
    assert all(same(one.weights(member), two.weights(member)) for member in range(2))
