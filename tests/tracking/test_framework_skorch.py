"""The skorch callback with the real skorch: the same training, the numbers in the net's history."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from recipes import recipe
from torch import nn
from tracked import everything, network, samples

from equisep import History
from equisep.tracking.stopping import Stopping

skorch = pytest.importorskip("skorch")

from equisep.tracking.skorch import EquisepCallback  # noqa: E402


def fitted(*callbacks: Any, epochs: int = 3, **options: Any) -> Any:
    model = network()
    torch.manual_seed(5)
    net = skorch.NeuralNetClassifier(
        model,
        criterion=nn.CrossEntropyLoss,
        max_epochs=epochs,
        batch_size=20,
        lr=0.05,
        optimizer__momentum=0.9,
        iterator_train__shuffle=True,
        callbacks=list(callbacks),
        verbose=0,
        **options,
    )
    x, y = samples()
    return net.fit(x.numpy(), y.numpy())


@pytest.mark.parametrize(("unit", "every", "numbers"), [("epoch", 1, (1, 2, 3)), ("step", 5, (5, 10, 15))])
def test_the_same_training_with_the_numbers_in_its_history(unit: str, every: int, numbers: tuple[int, ...]) -> None:
    plain = fitted()
    one = everything(plain.module_, plain.optimizer_, plain.get_iterator(plain.get_dataset(samples()[0])))
    callback = EquisepCallback(unit=unit, every=every, per_class=6, test=samples(seed=1))  # type: ignore[arg-type]
    net = fitted(callback)
    two = everything(net.module_, net.optimizer_, net.get_iterator(net.get_dataset(samples()[0])))
    assert [key for key in one.keys() | two.keys() if one.get(key) != two.get(key)] == []
    assert net.history[:, "train_loss"] == plain.history[:, "train_loss"]
    assert callback.tracker is not None
    history = callback.tracker.history
    assert history.numbers == numbers
    assert net.history[:, "equisep/law/rho"] == [profile.law.rho for profile in history.profiles().values()]
    assert not any(name.startswith("equisep/fuzziness/") for name in net.history[-1])


def test_it_stops_and_goes_on(tmp_path: Path) -> None:
    anything = Stopping(window=1, rho=0.99, fuzziness=0.99, ncc=0.99)
    assert len(fitted(EquisepCallback(per_class=6, stop=True, stopping=anything), epochs=9).history) < 9
    callback = EquisepCallback(per_class=6, log="all", history=tmp_path / "run.jsonl")
    net = fitted(callback, epochs=2)
    assert "equisep/fuzziness/00_input" in net.history[-1]
    x, y = samples()
    net.partial_fit(x.numpy(), y.numpy())
    assert History.load(tmp_path / "run.jsonl").numbers == (1, 2, 3, 4)


def test_the_recipe_runs(tmp_path: Path) -> None:
    names = recipe("skorch", tmp_path)
    assert names["callback"].tracker.history.numbers == (1, 2)
