"""What only a GPU can show of `train`: steps replayed from captured graphs are the eager ones, and can be read between."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from trained_alone import same, worst

from equisep.errors import DivergenceError, InputError
from equisep.models import Fnn, build
from equisep.training import CROP_FLIP_ROTATE, Recipe, train
from equisep.training.captured import CapturedSteps

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")

CLASSES = 3
NARROW: dict[str, dict[str, Any]] = {
    "resnet-2-layer": {"width_multiplier": 0.5, "size": 8},
    "resnet-mixed": {"width_multiplier": 0.5, "size": 8, "colors": 3},
    "pure-cnn": {"width_multiplier": 1 / 16, "size": 8, "colors": 3},
    "vgg11": {"width_multiplier": 1 / 32},
    "convnet": {"width_multiplier": 0.06, "size": 8, "depth": 3},
    "resnet20": {"width_multiplier": 1 / 8},
    "densenet161": {"width_multiplier": 1 / 48},
    "fnn": {"depth": 4, "width": 16, "inputs": 64},
}
OPTIMIZERS = {
    "sgd": Recipe("sgd", 0.1, epochs=6, batch_size=16, weight_decay=0.0, seed=1),
    "momentum": Recipe("momentum", 0.01, epochs=6, batch_size=16, momentum=0.5, milestones=(0.0, 0.6), seed=2),
    "adam": Recipe("adam", 3e-4, epochs=6, batch_size=16, seed=3),  # its rate falls at epochs 2 and 4
}


@pytest.fixture(autouse=True)
def in_fixed_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some kernels of cuDNN add in no fixed order: two runs of one network then differ after a few epochs."""
    monkeypatch.setattr(torch.backends.cudnn, "deterministic", True)


@pytest.fixture
def replayed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The batch sizes of all steps that were replayed."""
    told: list[int] = []
    call = CapturedSteps.__call__

    def counted(self: CapturedSteps, *batch: Tensor) -> None:
        call(self, *batch)
        told.append(len(batch[0]))

    monkeypatch.setattr(CapturedSteps, "__call__", counted)
    return told


def pictures(name: str = "pure-cnn", *, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    """Classes around pictures of their own; 40 make batches of 16, 16 and 8."""
    colors, size = NARROW[name].get("colors", 1), NARROW[name].get("size", 32 if name == "vgg11" else 8)
    generator = torch.Generator("cpu").manual_seed(4)
    y = torch.arange(40) % CLASSES
    centers = torch.randn(CLASSES, colors, size, size, generator=generator, dtype=torch.float64)
    x = centers[y] + torch.randn(40, colors, size, size, generator=generator, dtype=torch.float64)
    return x.to("cuda", dtype), y.cuda()


def fresh(name: str = "pure-cnn", *, dtype: torch.dtype = torch.float64) -> nn.Module:
    """The untrained network of a name on the GPU."""
    options = {"classes": CLASSES, **({} if name == "fnn" else {"colors": 1}), **NARROW[name]}
    return build(name, seed=0, **options).to("cuda", dtype)


def state(model: nn.Module) -> dict[str, Tensor]:
    """Weights and buffers on the CPU."""
    return {name: value.detach().cpu().clone() for name, value in model.state_dict().items()}


@pytest.mark.parametrize("optimizer", sorted(OPTIMIZERS))
@pytest.mark.parametrize("name", sorted(NARROW))
def test_replayed_steps_are_the_eager_ones_in_float64(name: str, optimizer: str, replayed: list[int]) -> None:
    """Both batch sizes and changes of the rate."""
    recipe, found = OPTIMIZERS[optimizer], {}
    for engine in ("eager", "auto", "graphs"):
        model = fresh(name)
        history = train(model, *pictures(name), recipe=recipe, engine=engine)  # type: ignore[arg-type]
        found[engine] = (state(model), history)
        assert replayed == ([] if engine == "eager" else [16, 8] + [16, 16, 8] * 4)
        replayed.clear()
    assert worst(found["auto"][0], found["eager"][0]) <= 1e-10
    assert found["auto"][1].loss == pytest.approx(found["eager"][1].loss, rel=1e-6)
    assert found["auto"][1].accuracy == found["eager"][1].accuracy
    assert same(found["auto"][0], found["graphs"][0])


@pytest.mark.parametrize("name", sorted(set(NARROW) - {"densenet161"}))
def test_float64_on_the_gpu_is_the_cpus_training(name: str) -> None:
    there, here = fresh(name), fresh(name).cpu()
    (x, y), recipe = pictures(name), replace(OPTIMIZERS["adam"], epochs=3)
    train(there, x, y, recipe=recipe)
    train(here, x.cpu(), y.cpu(), recipe=recipe)
    assert worst(state(there), state(here)) <= 1e-8


def test_feed_forward_steps_are_the_eager_ones_to_the_bit() -> None:
    for dtype in (torch.float32, torch.float64):
        states = []
        for engine in ("eager", "graphs", "graphs"):
            model = fresh("fnn", dtype=dtype)
            weights = (1.0, 2.0, 0.5)
            train(model, *pictures("fnn", dtype=dtype), recipe=OPTIMIZERS["adam"], engine=engine, class_weights=weights)  # type: ignore[arg-type]
            states.append(state(model))
        assert same(states[0], states[1]) and same(states[1], states[2])


def test_readings_between_epochs_see_what_eager_training_shows(replayed: list[int]) -> None:
    x, y = pictures()
    seen: dict[str, list[dict[str, Tensor]]] = {"eager": [], "auto": []}
    for engine, states in seen.items():
        model = fresh()

        def read(epoch: int, model: nn.Module = model, states: list[dict[str, Tensor]] = states) -> None:
            model.eval()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()  # a reader may use gradients, and leaves them behind
            states.append({**state(model), "loss": loss.detach().cpu()})

        train(model, x, y, recipe=OPTIMIZERS["adam"], engine=engine, after_epoch=read)  # type: ignore[arg-type]
        assert model.training
    assert len(replayed) == 14 and len(seen["auto"]) == 7
    assert max(worst(a, b) for a, b in zip(seen["auto"], seen["eager"], strict=True)) <= 1e-10


def test_what_a_reader_changes_of_the_network_is_trained_on(replayed: list[int]) -> None:
    """Weights in new memory, a layer that learns no more, another momentum of BatchNorm."""
    states = []
    for engine in ("eager", "auto"):
        model = fresh("fnn")

        def read(epoch: int, model: nn.Module = model) -> None:
            if epoch == 2:
                model.cpu().cuda()
            if epoch == 3:
                model.get_submodule("head").requires_grad_(False)
                model.get_submodule("blocks.0.norm").momentum = 0.5  # type: ignore[assignment]

        train(model, *pictures("fnn"), recipe=OPTIMIZERS["momentum"], engine=engine, after_epoch=read)  # type: ignore[arg-type]
        states.append(state(model))
    assert len(replayed) == 14 and worst(states[0], states[1]) <= 1e-12


def test_chance_on_the_device_is_the_eager_one(replayed: list[int]) -> None:
    """Dropout draws from the device's generator, which a graph moves on as eager steps do."""
    states = []
    for engine in ("eager", "auto"):
        torch.manual_seed(0)
        inner = [nn.Flatten(), nn.Linear(64, 16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, CLASSES)]
        model = nn.Sequential(*inner).to("cuda", torch.float64)
        train(model, *pictures("fnn"), recipe=OPTIMIZERS["sgd"], engine=engine)  # type: ignore[arg-type]
        states.append(state(model))
    assert replayed and worst(states[0], states[1]) <= 1e-12


def test_moved_images_are_replayed_as_they_are_trained_on_eagerly(replayed: list[int]) -> None:
    """Crops, flips and rotations are a part of the graph; what is drawn on the host goes in with the batch."""
    states = []
    for engine in ("eager", "graphs"):
        model = fresh()
        recipe = OPTIMIZERS["momentum"]
        train(model, *pictures(), recipe=recipe, engine=engine, augment=CROP_FLIP_ROTATE)  # type: ignore[arg-type]
        states.append(state(model))
    assert len(replayed) == 14 and worst(states[0], states[1]) <= 1e-10
    still = fresh()
    train(still, *pictures(), recipe=OPTIMIZERS["momentum"])
    assert not same(state(still), states[0])


class Through(nn.Module):
    """A network that passes its scores through a function."""

    def __init__(self, change: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.inner, self.change = fresh("fnn"), change

    def forward(self, x: Tensor) -> Tensor:
        """The scores, changed."""
        return self.change(self.inner(x))


@pytest.mark.parametrize(
    "change",
    [
        lambda scores: scores * (2.0 if float(scores.detach().sum()) > 0 else 1.0),  # waits for a number
        lambda scores: scores + scores[scores > 0].sum(),  # and for a shape
        lambda scores: scores * float(torch.rand(())),
    ],
    ids=["number", "shape", "chance"],
)
def test_a_network_that_needs_the_host_is_trained_eagerly(
    change: Callable[[Tensor], Tensor], replayed: list[int]
) -> None:
    states = []
    for engine in ("eager", "auto"):
        torch.manual_seed(1)
        model = Through(change)
        train(model, *pictures("fnn"), recipe=OPTIMIZERS["sgd"], engine=engine)  # type: ignore[arg-type]
        states.append(state(model))
    assert not replayed and worst(states[0], states[1]) <= 1e-12
    with pytest.raises(InputError, match=r"^`engine='graphs'` cannot replay `Through`: .+\. Use `engine='auto'`\.$"):
        train(Through(change), *pictures("fnn"), recipe=OPTIMIZERS["sgd"], engine="graphs")


def test_a_hook_sees_every_batch(replayed: list[int]) -> None:
    model, sizes = fresh("fnn"), []
    model.register_forward_pre_hook(lambda _, inputs: sizes.append(len(inputs[0])))
    train(model, *pictures("fnn"), recipe=OPTIMIZERS["sgd"])
    assert not replayed and sizes == [16, 16, 8] * 6


def test_divergence_is_told_with_its_epoch() -> None:
    model = Fnn(4, width=16, inputs=64, classes=CLASSES, norm=False).cuda()
    with pytest.raises(DivergenceError) as caught:
        train(model, *pictures("fnn", dtype=torch.float32), recipe=Recipe("sgd", 1e30, epochs=9, batch_size=16))
    assert caught.value.epoch is not None and caught.value.epoch <= 9


def test_memory_of_the_graphs_is_given_back() -> None:
    """Graphs of former rates and of former trainings are not kept."""
    x, y = pictures()
    train(fresh(), x, y, recipe=OPTIMIZERS["adam"])
    torch.cuda.empty_cache()
    before = torch.cuda.memory_reserved()
    for _ in range(5):
        train(fresh(), x, y, recipe=OPTIMIZERS["adam"])
    torch.cuda.empty_cache()
    assert torch.cuda.memory_reserved() <= before + 2**22
