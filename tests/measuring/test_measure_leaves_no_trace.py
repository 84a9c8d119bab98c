"""After `measure` the model, its surroundings and its training are exactly as they were without it."""

import numpy as np
import pytest
import torch
from measured_by_hand import batches, network, samples
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import equisep
from equisep.errors import FeatureError
from equisep.measuring import measure

X, Y = samples()
ways = pytest.mark.parametrize("memory", [None, 0], ids=["buffered", "streamed"])
modes = pytest.mark.parametrize("mode", ["eval", "mixed"])


class Dropped(nn.Module):
    """The small network with dropout before it, so that training draws random numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.drop = nn.Dropout(0.3)
        self.net = network()

    def forward(self, x: Tensor) -> Tensor:
        return self.net(self.drop(x))


def training_step(model: nn.Module) -> None:
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1, momentum=0.9)
    for x, y in DataLoader(TensorDataset(X, Y), batch_size=40, shuffle=True):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()


def prepared() -> Dropped:
    """A model with gradients, a frozen parameter, and one BatchNorm in eval mode inside a model in training mode."""
    model = Dropped()
    nn.functional.cross_entropy(model.net(X[:50]), Y[:50]).backward()
    model.net.blocks[1].linear.bias.requires_grad_(False)
    model.net.blocks[2].norm.eval()
    return model


def state(model: nn.Module) -> dict[str, object]:
    """Everything as comparable values: tensors as bytes."""
    found: dict[str, object] = {"torch": torch.get_rng_state().numpy().tobytes()}
    kind, keys, *rest = np.random.get_state()  # noqa: NPY002
    found["numpy"] = (kind, keys.tobytes(), *rest)
    for name, module in model.named_modules():
        found[f"{name} flags"] = (module.training, getattr(module, "track_running_stats", None))
        found[f"{name} hooks"] = (len(module._forward_hooks), len(module._forward_pre_hooks))
    for name, value in (*model.named_parameters(), *model.named_buffers()):
        found[name] = (id(value), value.detach().numpy().tobytes(), value.requires_grad, value.dtype)
        found[f"{name} grad"] = None if value.grad is None else value.grad.numpy().tobytes()
    return found


def differing(before: dict[str, object], after: dict[str, object]) -> list[str]:
    return [key for key in before.keys() | after.keys() if before.get(key) != after.get(key)]


@ways
@modes
def test_everything_is_as_it_was(mode: str, memory: int | None) -> None:
    model, data = prepared(), DataLoader(TensorDataset(X, Y), batch_size=40, shuffle=True)
    before = state(model)
    profile = measure(model, data, data, reading=mode, memory=memory, sites=["net.blocks.*"])  # type: ignore[arg-type]
    assert len(profile.sites) == 4
    assert differing(before, state(model)) == []
    assert torch.is_grad_enabled()


@ways
@modes
def test_everything_is_as_it_was_when_measuring_fails_on_nan(mode: str, memory: int | None) -> None:
    x = X.clone()
    x[100] = float("nan")
    model = prepared()
    before = state(model)
    with pytest.raises(FeatureError):
        measure(model, batches((x, Y)), reading=mode, memory=memory, sites=["net.blocks.*"])  # type: ignore[arg-type]
    assert differing(before, state(model)) == []


@ways
@modes
def test_training_goes_on_bit_for_bit_as_if_nothing_had_been_measured(mode: str, memory: int | None) -> None:
    one, two = Dropped(), Dropped()
    for model, measured in ((one, False), (two, True)):
        torch.manual_seed(3)
        training_step(model)
        if measured:
            measure(model, DataLoader(TensorDataset(X, Y), batch_size=40, shuffle=True), reading=mode, memory=memory)  # type: ignore[arg-type]
        training_step(model)
    for (name, a), b in zip(one.state_dict().items(), two.state_dict().values(), strict=True):
        assert a.numpy().tobytes() == b.numpy().tobytes(), name


@modes
def test_measuring_twice_gives_the_same_profile(mode: str) -> None:
    model = prepared()
    one, two = (measure(model, batches((X, Y)), batches((X, Y)), reading=mode) for _ in range(2))  # type: ignore[arg-type]
    assert one == two


@ways
def test_a_model_that_works_in_place_does_not_change_the_data(memory: int | None) -> None:
    data = batches((X.clone(), Y))
    model = nn.Sequential(nn.ReLU(inplace=True), nn.Linear(8, 4))
    profile = measure(model, data, data, memory=memory)
    assert torch.equal(torch.cat([x for x, _ in data]), X)
    assert profile.curve() == pytest.approx([equisep.fuzziness(X, Y), equisep.fuzziness(X.relu(), Y)], rel=1e-10)
    assert "changed" not in [note.code for note in profile.notes]
