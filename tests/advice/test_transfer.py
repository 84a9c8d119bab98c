"""Transfer: what is fixed stays fixed, what is new is new, and which number of kept layers is named."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from advice.networks import SmallResNet, bits, exclusive_or, sequential, vectors
from cli.running import equisep
from equisep.advice.standings import Enough, select
from equisep.advice.transfer import TransferAnswer, transfer_model
from equisep.advice.transfer.answer import TransferTrial, balanced_between
from equisep.advice.transfer.freeze import Order, Transferred
from equisep.data.inputs import Inputs
from equisep.errors import DataError, InputError, ModelError, SiteError
from equisep.measuring.forward import Calling
from equisep.training import Recipe, train


def order_of(model: nn.Module, x: Tensor, sites: list[str]) -> Order:
    inputs = Inputs((x,))
    return Order.of(model, inputs, Calling.of(model, inputs)[0], sites)


def state(model: nn.Module) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in model.state_dict().items()}


def test_kept_layers_stay_bit_by_bit_and_all_others_are_trained() -> None:
    torch.manual_seed(0)
    model = sequential()  # four layers with BatchNorm
    x, y = vectors(60, seed=0)
    before = state(model)
    copy = Transferred(model, order_of(model, x, ["1.2"]), keep="1.2", classes=3, start="pretrained")
    assert copy.trained == sum(p.numel() for name, p in model.named_parameters() if name[0] in "234")
    train(copy, x, y, recipe=Recipe(epochs=2, batch_size=20))
    after = copy.model.state_dict()
    kept = [name for name in after if name[0] in "01"]
    assert kept and all(torch.equal(after[name], before[name]) for name in kept)  # BatchNorm's statistics among them
    moved = [name for name in after if name[0] in "23" and after[name].is_floating_point()]
    assert moved and not any(torch.equal(after[name], before[name]) for name in moved if "weight" in name)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_new_layers_forget_and_kept_ones_do_not() -> None:
    torch.manual_seed(0)
    model = sequential()
    x, _ = vectors(8, seed=0)
    copy = Transferred(model, order_of(model, x, ["1.2"]), keep="1.2", classes=5, start="new")
    assert torch.equal(copy.model.get_parameter("1.0.weight"), model.get_parameter("1.0.weight"))
    assert not torch.equal(copy.model.get_parameter("2.0.weight"), model.get_parameter("2.0.weight"))
    assert copy(x).shape == (8, 5)


def test_blocks_and_what_they_hold_are_kept_together() -> None:
    model = SmallResNet()
    x = torch.randn(4, 1, 6, 6)
    order = order_of(model, x, ["blocks.0", "blocks.1"])
    assert order.classifier == "fc" and order.width == 4
    assert {"stem", "blocks.0.conv1", "blocks.0.bn2", "blocks.0"} <= order.ran["blocks.0"]
    assert not any(name.startswith("blocks.1") for name in order.ran["blocks.0"])
    copy = Transferred(model, order, keep="blocks.0", classes=3, start="new")
    trained = {name for name, value in copy.model.named_parameters() if value.requires_grad}
    assert trained == {name for name, _ in model.named_parameters() if name.startswith(("blocks.1", "fc"))}


def test_what_torch_cannot_draw_anew_is_named() -> None:
    class Scaled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.factor = nn.Parameter(torch.ones(6))

        def forward(self, x: Tensor) -> Tensor:
            return x * self.factor

    model = nn.Sequential(nn.Linear(6, 6), nn.ReLU(), Scaled(), nn.Linear(6, 3))
    train_data, test_data = vectors(40, seed=0), vectors(40, seed=1)
    with pytest.raises(ModelError, match=r"Module `2` \(Scaled\) has no `reset_parameters`.*`start='pretrained'`"):
        transfer_model(model, train_data, test_data, start="new", seeds=3, epochs=1)
    assert transfer_model(model, train_data, test_data, seeds=3, epochs=1, keep=[0, 1]).layers == 1


def test_as_many_layers_are_kept_as_cost_nothing() -> None:
    """The first layers already make the exclusive or linear: nothing has to be trained but the classifier."""
    answer = transfer_model(
        exclusive_or(3), bits(120, seed=0), bits(300, seed=1), keep=[0, 3], seeds=3, epochs=40, rate=0.02, batch_size=10
    )
    assert answer.layers == 3 and [trial.kept for trial in answer.trials] == [0, 3]
    assert answer.recommended == 1 and answer.sentences[0].startswith(
        "Keep all 3 layers fixed, up to `5`: test accuracy 100 %"
    )
    whole, classifier = answer.trials
    assert whole.bottom == (None,) * 3 and classifier.top == (None,) * 3
    assert whole.parameters > classifier.parameters == 6
    assert len(set(classifier.bottom)) == 1  # fixed layers are the same for every seed
    again = transfer_model(
        exclusive_or(3), bits(120, seed=0), bits(300, seed=1), keep=[3], seeds=3, epochs=40, rate=0.02, batch_size=10
    )
    assert again.trials[0] == classifier and again.recommended is None
    assert "nothing to compare it with" in again.sentences[0]


def trial(kept: int, gap: float | None, share: float = 0.9) -> TransferTrial:
    return TransferTrial(
        kept, f"layer{kept}", 10, (1.0,) * 3, (share,) * 3, (None if gap is None else 1 + gap,) * 3, (1.0,) * 3
    )


def test_where_bottom_and_top_balance() -> None:
    assert balanced_between([trial(0, None), trial(2, -0.5), trial(4, 0.25), trial(6, None)]) == (2, 4)
    assert balanced_between([trial(1, -0.5), trial(2, 0.0), trial(3, 0.5)]) == (2, 2)
    assert balanced_between([trial(1, -0.5), trial(2, 0.0)]) == (2, 2)
    assert balanced_between([trial(1, -0.5), trial(2, -0.1)]) is None
    assert balanced_between([]) is None


def answer_of(trials: list[TransferTrial], hits: dict[int, np.ndarray]) -> TransferAnswer:
    made = TransferAnswer(
        "Net", 4, "new", 3, 100, 200, 20, 1e-3, 0.95, tuple(trials), balanced=balanced_between(trials)
    )
    if not hits:
        return made
    chosen = select(hits, order=sorted(hits, reverse=True), margin=0.01, level=0.95)
    return replace(
        made, margin=chosen.margin, recommended=chosen.recommended, best=chosen.best, standings=chosen.standings,
        enough=chosen.enough,
    )  # fmt: skip


def test_sentences() -> None:
    right = np.ones((3, 200), dtype=bool)
    wrong = right.copy()
    wrong[:, :40] = False
    told = answer_of([trial(1, -0.5, 1.0), trial(3, 0.5, 0.8)], {0: right, 1: wrong}).sentences
    assert told[0].startswith(
        "Keep the first 1 of 4 layers fixed, up to `layer1`: test accuracy 100 %, the highest of all tried"
    )
    assert (
        "evenly (mean loads) between 1 and 3 layers kept" in told[1]
        and "test accuracy is 100 % and 80 % there" in told[1]
    )
    assert "trained from new weights" in told[-1]
    chance = np.random.default_rng(0)
    open_ones = {index: chance.random((3, 200)) < 0.5 for index in (0, 1)}
    undecided = answer_of([trial(1, -0.5), trial(3, -0.2)], open_ones)
    assert undecided.recommended is None and undecided.sentences[0].startswith("The evidence does not tell: ")
    assert "does less of the separation than a trained one" in undecided.sentences[1]
    gone = answer_of([replace(trial(1, None), diverged=3), replace(trial(2, None), diverged=1)], {})
    assert "trainings diverged for every number" in gone.sentences[0]
    assert "With 1 layer kept 3 of 3 trainings diverged" in gone.sentences[1]
    assert gone.enough == Enough()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"keep": [9]}, r"`keep` takes numbers of layers from 0 to 4, which is all that were found; found \[9\]"),
        ({"keep": []}, r"`keep` takes numbers of layers"),
        ({"start": "old"}, r"`start` is pretrained or new; found 'old'"),
        ({"seeds": 2}, r"`seeds` is how many trainings there are of each choice, 3 or more; found 2"),
        ({"level": 1.0}, r"`level` is the confidence"),
        ({"margin": 1.0}, r"`margin` is a share"),
    ],
)
def test_bad_settings(options: dict[str, object], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        transfer_model(sequential(), vectors(40, seed=0), vectors(20, seed=1), **options)  # type: ignore[arg-type]


def test_models_and_data_that_it_cannot_take() -> None:
    with pytest.raises(ModelError, match=r"puts a new classifier in place of the last linear layer, and none gives"):
        model = nn.Sequential(nn.Linear(6, 3), nn.Softmax(dim=1), nn.Flatten(0))
        order_of(model, torch.randn(4, 6), [])
    with pytest.raises(SiteError, match=r"`4` lies behind the classifier `4`"):
        order_of(sequential(), torch.randn(4, 6), ["4"])
    x, y = vectors(20, seed=0)
    with pytest.raises(DataError, match=r"trains on samples of one tensor each; the training data hold 0, 1"):
        transfer_model(sequential(), [((x, x), y)], (x, y))
    with pytest.raises(InputError, match=r"needs a torch.nn.Module"):
        transfer_model("net", (x, y), (x, y))  # type: ignore[arg-type]


def test_the_command(tmp_path: Path) -> None:
    (tmp_path / "transfer_net.py").write_text(
        "from advice.networks import exclusive_or\n\n\ndef net():\n    return exclusive_or(2)\n"
    )
    parts = {f"{name}_{split}": value.numpy() for split, seed in (("train", 0), ("test", 1))
             for name, value in zip("xy", bits(60, seed=seed), strict=True)}  # fmt: skip
    np.savez(tmp_path / "mine.npz", **parts)
    asked = [
        "transfer",
        "--model",
        "./transfer_net.py:net",
        "--data",
        "mine.npz",
        "--seeds",
        "3",
        "--epochs",
        "5",
    ]
    result = equisep(*asked, "--json", "--quiet", folder=tmp_path)
    answer = json.loads(result.stdout)
    assert answer["layers"] == 2 and [each["kept"] for each in answer["trials"]] == [0, 1, 2]
    shown = equisep(*asked, "--quiet", "--keep", "0,2", folder=tmp_path).stdout
    assert shown.startswith(("Keep", "The evidence")) and "bottom load" in shown
    failed = equisep(*asked, "--keep", "a", folder=tmp_path)
    assert failed.returncode == 2 and "`--keep` takes whole numbers with commas between them" in failed.stderr
