"""Weights from checkpoints as trainers write them: wrapped, prefixed, old."""

from pathlib import Path

import pytest
import torch
from torch import nn

from equisep.errors import ModelError
from equisep.models import load_model, load_weights


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


def test_a_model_object_serves_as_well_as_a_factory() -> None:
    assert type(load_model("equisep.models:Fnn")).__name__ == "Fnn"
