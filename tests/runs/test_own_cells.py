"""Experiments of one's own: any activation, optimizer, model and unprepared data, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from equisep.errors import EquisepError, InputError
from equisep.figures.cell import Cell, Training
from equisep.figures.figure import Figure, Panel, Series
from equisep.models.networks import activation_named, activation_names
from equisep.runs.cell_data import cell_data_of
from equisep.runs.cost import predict_cells
from equisep.runs.plan import groups_of, runner_of
from equisep.runs.run import run_figure, run_group
from equisep.runs.runners.architecture import network_of
from equisep.training import Member, Recipe, train
from equisep.training.recipe import optimizer_names

SMALL = Training(
    data="embedded-10x10", per_class=6, test_per_class=4, depth=3, width=12, epochs=2, batch_size=32, rate=3e-3,
    readings=("eval",),
)  # fmt: skip
CODE = """
from torch import nn


def net(classes, inputs, width=7, depth=3):
    layers = [nn.Flatten(), nn.Linear(inputs, width), nn.ReLU()]
    for _ in range(depth - 2):
        layers += [nn.Dropout(0.5), nn.Linear(width, width), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(width, classes))


def not_a_net(classes):
    return classes
"""


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """A file of the user's with a function that makes a network."""
    path = tmp_path / "mine.py"
    path.write_text(CODE)
    return path


def data_of(cell: Training) -> tuple[torch.Tensor, torch.Tensor]:
    return cell_data_of([cell]).of(0)


# which runner


@pytest.mark.parametrize(
    ("changes", "runner"),
    [
        ({}, "ensembles"),
        ({"activation": False, "optimizer": "momentum"}, "ensembles"),
        ({"activation": "gelu"}, "networks"),
        ({"optimizer": "adamw"}, "networks"),
        ({"optimizer": "adam,betas=[0.8,0.99]"}, "networks"),
        ({"network": "./mine.py:net"}, "networks"),
        ({"network": "hf:some/encoder"}, "encoders"),
    ],
)
def test_what_ensembles_cannot_do_trains_by_itself(changes: dict[str, Any], runner: str) -> None:
    cells = [SMALL.with_(seed=seed, data_seed=seed, **changes) for seed in (0, 1)]
    assert {runner_of(cell) for cell in cells} == {runner}
    assert len(groups_of(cells)) == (1 if runner == "ensembles" else 2)


def test_an_activation_is_a_name_or_a_switch_in_keys_and_files() -> None:
    assert Training(activation=True).key == Training().key == Cell().key
    cells = [Training(activation=each) for each in (True, False, "gelu", "true")]
    assert len({cell.key for cell in cells}) == 4
    assert [Cell.from_dict(cell.to_dict()) for cell in cells] == cells


# activations and optimizers


def test_a_cell_is_the_training_that_a_user_would_write() -> None:
    cell = SMALL.with_(activation="leakyrelu,negative_slope=0.2", optimizer="rmsprop,alpha=0.9,centered=true")
    ((_, outcome, made),) = run_group([cell])
    x, y = data_of(cell)
    torch.manual_seed(cell.seed)
    layers: list[nn.Module] = [nn.Flatten()]
    for inputs in (100, 12):
        layers += [nn.Linear(inputs, 12), nn.BatchNorm1d(12), nn.LeakyReLU(0.2)]
    own = nn.Sequential(*layers, nn.Linear(12, 10))
    optimizer = torch.optim.RMSprop(own.parameters(), lr=3e-3, alpha=0.9, centered=True, weight_decay=5e-4)
    order = torch.Generator().manual_seed(cell.seed)
    for epoch in range(2):
        total = 0.0
        for group in optimizer.param_groups:
            group["lr"] = 3e-3 * 0.1 ** sum(epoch >= share * 2 for share in cell.milestones)
        for rows in torch.randperm(len(y), generator=order).split(32):
            loss = nn.functional.cross_entropy(own(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += float(loss.detach()) * len(rows)
    assert outcome.numbers["final_loss"] == pytest.approx(total / len(y), rel=1e-6)
    assert len(outcome.readings[0].fuzziness) == 3 and made["engine"] == "single" and "code" not in made


@pytest.mark.parametrize("name", sorted(optimizer_names()))
def test_every_optimizer_of_torch_trains(name: str) -> None:
    decay = 0.0 if name == "rprop" else 5e-4
    torch.manual_seed(0)
    model = nn.Linear(8, 3, bias=False)  # Muon steps matrices alone
    before = model.weight.detach().clone()
    x, y = torch.randn(12, 8), torch.arange(12) % 3
    train(model, x, y, recipe=Recipe(optimizer=name, rate=1e-3, epochs=1, batch_size=6, weight_decay=decay))
    assert bool(torch.isfinite(model.weight).all()) and not torch.equal(model.weight, before)


def test_every_activation_acts_unit_by_unit() -> None:
    for name in activation_names():
        layer = activation_named("threshold,threshold=0.1,value=0" if name == "threshold" else name)
        assert layer(torch.randn(2, 3, 4, 4)).shape == (2, 3, 4, 4), name


def test_the_relus_of_any_network_are_replaced() -> None:
    images = torch.zeros(2, 3, 32, 32)
    cell = Training(network="resnet20", depth=None, width=None, width_multiplier=0.25, activation="PReLU")
    network = network_of(cell, images, classes=10)
    kinds = [type(module) for module in network.modules()]
    assert nn.ReLU not in kinds and kinds.count(nn.PReLU) == 19
    assert len({id(module) for module in network.modules() if isinstance(module, nn.PReLU)}) == 19
    without = network_of(cell.with_(activation=False), images, classes=10)
    assert nn.ReLU not in [type(module) for module in without.modules()]


# models and data of the user's


def test_a_function_of_the_users_makes_the_network(mine: Path, tmp_path: Path) -> None:
    cell = SMALL.with_(network=f"{mine}:net,width=9", depth=4, activation="tanh", optimizer="AdamW")
    x, _ = data_of(cell)
    one, two, other = (network_of(cell.with_(seed=seed), x, classes=10) for seed in (1, 1, 2))
    widths = [(layer.in_features, layer.out_features) for layer in one.modules() if isinstance(layer, nn.Linear)]
    assert widths == [(100, 9), (9, 9), (9, 9), (9, 10)]
    assert [type(layer) for layer in one][2] is nn.Tanh
    states = [network.state_dict() for network in (one, two, other)]
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])
    assert not all(torch.equal(states[0][name], states[2][name]) for name in states[0])
    figure = Figure(
        id="mine/own", title="", source="", cite="", panels=(Panel("D"),), seeds=2, base=cell, series=(Series("a", panel="D"),)
    )  # fmt: skip
    torch.manual_seed(5)
    evidence = run_figure(figure, store=tmp_path / "one")
    torch.manual_seed(6)
    again = run_figure(figure, store=tmp_path / "two")
    entry = evidence.series["a"].chosen[0]
    assert entry.outcome == again.series["a"].chosen[0].outcome  # dropout comes from the cell's seed
    assert len(entry.provenance["code"]) == 64 and len(entry.outcome.readings[0].fuzziness) >= 3
    assert predict_cells([cell.with_(preparation="he2023-10x10")]).seconds > 0


def test_vectors_are_taken_as_they_are_stored(tmp_path: Path) -> None:
    labels = np.arange(40) % 4
    rows = np.random.default_rng(0).normal(size=(40, 6)) + 3 * np.eye(4, 6)[labels]
    np.savez(tmp_path / "mine.npz", x_train=rows, y_train=labels, x_test=rows, y_test=labels)
    cell = SMALL.with_(data=str(tmp_path / "mine.npz"), preparation="none")
    x, y = data_of(cell)
    assert np.array_equal(np.sort(x.numpy(), axis=0), np.sort(_drawn(rows, y.numpy(), x), axis=0))
    for changes in ({}, {"activation": "silu"}):
        ((_, outcome, _),) = run_group([cell.with_(**changes)])
        assert len(outcome.readings[0].fuzziness) == 3


def _drawn(rows: Any, labels: Any, x: Any) -> Any:
    """The stored rows, in float32, that stand in x."""
    known = {tuple(row) for row in x.numpy().tolist()}
    return np.array([row for row in rows.astype(np.float32) if tuple(row.tolist()) in known])


# refused


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"activation": "gelo"}, r"No activation `gelo`. Did you mean `gelu`"),
        (
            {"activation": "gelu,slope=1"},
            r"`gelu,slope=1` is no activation: .*`?slope'?.* Options of `GELU`: approximate",
        ),
        ({"optimizer": "rmsprob"}, r"No optimizer `rmsprob`. Did you mean `rmsprop`"),
        ({"optimizer": "adm"}, r"No optimizer `adm`. Did you mean `adam`"),
        ({"optimizer": "lbfgs"}, r"No optimizer `lbfgs`."),
        ({"optimizer": "adamw,beta=1"}, r"`AdamW` takes no `beta`. Did you mean `betas`"),
        ({"optimizer": "adamw,lr=1"}, r"`adamw,lr=1`: `lr` is not an option here. Use `rate`."),
        ({"optimizer": "rmsprop,alpha=-1"}, r"`rmsprop,alpha=-1` cannot be used here: Invalid alpha value: -1"),
        ({"optimizer": "rprop"}, r"`Rprop` has no weight decay, and the training asks for 0.0005"),
        ({"network": "vgg14"}, r"No network `vgg14`. Did you mean `vgg1"),
        (
            {"network": "fnn-linear", "activation": "gelu"},
            r"`fnn-linear` has no `nn.ReLU` that `gelu` could take the place of",
        ),
        ({"network": "./nowhere.py:net"}, r"There is no file `nowhere.py`"),
        ({"activation": "gelu", "noise": (0.1,)}, r"`fnn` trains by itself, where noise on weights cannot be had"),
        ({"preparation": "non"}, r"There is no preparation `non`. Did you mean `none`"),
    ],
)
def test_what_there_is_not_is_refused_in_one_sentence(tmp_path: Path, changes: dict[str, Any], sentence: str) -> None:
    figure = Figure(
        id="mine/own", title="", source="", cite="", panels=(Panel("D"),), seeds=1, base=SMALL.with_(**changes),
        series=(Series("a", panel="D"),),
    )  # fmt: skip
    with pytest.raises(EquisepError, match=sentence) as caught:
        run_figure(figure, store=tmp_path / "runs")
    assert "\n" not in str(caught.value)


def test_code_that_makes_no_network_is_refused(mine: Path) -> None:
    with pytest.raises(EquisepError, match=r"should return a torch.nn.Module; it returned int"):
        run_group([SMALL.with_(network=f"{mine}:not_a_net", depth=8, width=100)])
    with pytest.raises(EquisepError, match=r"has no `nets`. Did you mean `net`"):
        run_group([SMALL.with_(network=f"{mine}:nets")])
    with pytest.raises(InputError, match=r"`classifier` reads the last layer of a network"):
        run_group([SMALL.with_(network=f"{mine}:net", depth=3, classifier=True)])
    with pytest.raises(
        InputError, match=r"What `.*:net,inputs=7` costs cannot be told without running it, on images of 1 × 28 × 28"
    ):
        predict_cells([SMALL.with_(network=f"{mine}:net,inputs=7", preparation="none")])


def test_networks_side_by_side_keep_to_three_optimizers() -> None:
    with pytest.raises(
        InputError, match=r"side by side with sgd, momentum, adam; found `adamw`. Use one of these, or `train`"
    ):
        Member(Recipe(optimizer="adamw"))
