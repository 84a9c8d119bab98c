"""Modules and parameters are listed as torch lists them: each once, in its order, where they are shared too."""

from __future__ import annotations

import torch
from torch import nn

from equisep.models import build
from equisep.taps import modules_of, parameters_of


def _shared() -> nn.Module:
    layer, norm = nn.Linear(4, 4), nn.BatchNorm1d(4)
    twin = nn.Linear(4, 4)
    twin.weight = layer.weight
    model = nn.Sequential(nn.Sequential(layer, norm), nn.ModuleList([norm, twin]), layer)
    model.register_module("nothing", None)
    return model


def test_modules_and_parameters_come_as_torch_lists_them() -> None:
    scripted = nn.Sequential(torch.jit.script(nn.Linear(3, 3)), nn.ReLU())  # type: ignore[no-untyped-call]
    for model in (_shared(), build("resnet18", seed=0), nn.Transformer(8, 2, 1, 1), nn.Linear(2, 2)):
        assert [id(each) for each in modules_of(model)] == [id(each) for each in model.modules()]
        assert [id(each) for each in parameters_of(model)] == [id(each) for each in model.parameters()]
    assert len(modules_of(scripted)) == len(list(scripted.modules()))
    assert [value.shape for value in parameters_of(scripted)] == [value.shape for value in scripted.parameters()]
