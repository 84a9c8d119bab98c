"""Weights from checkpoints as trainers write them: wrapped, prefixed, old."""

import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from equisep.errors import MissingExtraError, ModelError
from equisep.models import load_weights


def net(seed: int) -> nn.Sequential:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 2))


def loaded(content: object, folder: Path) -> nn.Sequential:
    torch.save(content, folder / "weights.pt")
    model = net(1)
    load_weights(model, folder / "weights.pt")
    return model


@pytest.mark.parametrize("prefix", ["", "module.", "_orig_mod.", "model."])
@pytest.mark.parametrize("wrapper", [None, "state_dict", "model_state_dict", "model", "net"])
def test_wrapped_and_prefixed_weights_fit(prefix: str, wrapper: str | None, tmp_path: Path) -> None:
    weights = {prefix + name: value for name, value in net(0).state_dict().items()}
    model = loaded(weights if wrapper is None else {wrapper: weights, "epoch": 3}, tmp_path)
    for name, value in net(0).state_dict().items():
        assert torch.equal(model.state_dict()[name], value)


def test_old_checkpoints_without_batch_counts_fit(tmp_path: Path) -> None:
    weights = {name: value for name, value in net(0).state_dict().items() if "num_batches_tracked" not in name}
    assert torch.equal(loaded(weights, tmp_path)[0].weight, net(0)[0].weight)


def test_a_wrong_shape_is_named(tmp_path: Path) -> None:
    weights = net(0).state_dict() | {"3.weight": torch.zeros(5, 4)}
    with pytest.raises(ModelError, match=r"`3.weight` has shape \(5, 4\), the model \(2, 4\)"):
        loaded(weights, tmp_path)


def test_something_else_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="holds no state dict"):
        loaded({"epoch": 3}, tmp_path)
    (tmp_path / "text.pt").write_text("no checkpoint")
    with pytest.raises(ModelError, match="cannot be read as a checkpoint of plain weights"):
        load_weights(net(0), tmp_path / "text.pt")


def test_missing_and_unexpected_keys_name_the_first_few(tmp_path: Path) -> None:
    weights = net(0).state_dict()
    del weights["0.bias"]
    extra = {f"head.{index}": torch.zeros(1) for index in range(5)}
    with pytest.raises(
        ModelError, match=r"^`\S*weights.pt` does not fit `Sequential`: 1 keys are missing \(`0.bias`\), "
    ) as e:
        loaded(weights | extra, tmp_path)
    assert str(e.value).endswith("5 unexpected (`head.0`, `head.1`, `head.2`, …).")


def test_a_checkpoint_never_runs_code(tmp_path: Path) -> None:
    marker = tmp_path / "ran"

    class Runs:
        def __reduce__(self) -> tuple[object, tuple[object, ...]]:
            return Path.touch, (marker,)

    with pytest.raises(ModelError, match="cannot be read as a checkpoint of plain weights"):
        loaded({"state_dict": Runs()}, tmp_path)
    assert not marker.exists()


class Numbered(nn.Module):
    """Saved with its position numbers once, which it now computes itself."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(2, 2)
        self.register_buffer("positions", torch.arange(3), persistent=False)


def test_buffers_that_the_model_computes_itself_may_be_in_the_file(tmp_path: Path) -> None:
    model = Numbered()
    torch.save(model.state_dict() | {"positions": torch.arange(3)}, tmp_path / "old.pt")
    load_weights(model, tmp_path / "old.pt")


def test_safetensors(tmp_path: Path) -> None:
    files = pytest.importorskip("safetensors.torch", reason="safetensors is not installed")
    files.save_file(net(0).state_dict(), tmp_path / "weights.safetensors")
    model = net(1)
    load_weights(model, tmp_path / "weights.safetensors")
    assert torch.equal(model[0].weight, net(0)[0].weight)
    (tmp_path / "damaged.safetensors").write_bytes(b"nothing")
    with pytest.raises(ModelError, match=r"damaged.safetensors` cannot be read as a checkpoint of plain weights \("):
        load_weights(model, tmp_path / "damaged.safetensors")


def test_safetensors_without_the_package_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "weights.safetensors").touch()
    monkeypatch.setitem(sys.modules, "safetensors", None)
    monkeypatch.setitem(sys.modules, "safetensors.torch", None)
    with pytest.raises(
        MissingExtraError, match=r'needs the package `safetensors`.* pip install "equisep\[transformers\]"'
    ):
        load_weights(net(0), tmp_path / "weights.safetensors")
