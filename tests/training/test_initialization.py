"""He initialization: its variance, its seed, and cells that start from it, side by side and alone."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from equisep.figures.cell import Training
from equisep.runs.run import run_group
from equisep.runs.runners import networks
from equisep.training import Shape
from equisep.training.initialization import he_start


def test_matrices_and_kernels_have_the_variance_of_their_inputs_and_norms_stay() -> None:
    network = nn.Sequential(nn.Conv2d(3, 400, 3), nn.BatchNorm2d(400), nn.Flatten(), nn.Linear(400, 300))
    start = he_start(network, seed=1)
    assert float(start["0.weight"].std()) == pytest.approx(math.sqrt(2 / 27), rel=0.03)
    assert float(start["3.weight"].std()) == pytest.approx(math.sqrt(2 / 400), rel=0.03)
    assert not start["0.bias"].any() and not start["3.bias"].any() and bool((start["1.weight"] == 1).all())
    assert torch.equal(he_start(network, seed=1)["3.weight"], start["3.weight"])
    assert not torch.equal(he_start(network, seed=2)["3.weight"], start["3.weight"])


def test_signals_keep_their_size_through_twenty_layers_only_with_it() -> None:
    network = Shape.deep(20, norm=False).build(0)
    x = torch.randn(200, 100, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        small = network(x).std(dim=0).mean()
        network.load_state_dict(he_start(network, seed=0))
        kept = network(x).std(dim=0).mean()
    assert small < 1e-3 < 0.1 < kept


def test_cells_start_from_it_side_by_side_and_alone() -> None:
    cell = Training(
        data="embedded-10x10", per_class=5, test_per_class=3, depth=4, width=12, norm=False, init="he", epochs=2,
        dtype="float64", readings=("eval",), seed=3,
    )  # fmt: skip
    side = run_group([cell])[0][1]
    alone = networks.run_cells([cell])[0][0]
    assert side.numbers["final_loss"] == pytest.approx(alone.numbers["final_loss"], rel=1e-5)
    plain = run_group([cell.with_(init="")])[0][1]
    assert abs(plain.numbers["final_loss"] - side.numbers["final_loss"]) > 1e-3
