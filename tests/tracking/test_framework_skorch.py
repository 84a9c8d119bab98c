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


def build(*callbacks: Any, **options: Any) -> Any:
    """A net that makes a new module at every `fit`: two epochs of two steps."""
    return skorch.NeuralNetClassifier(
        network,
        criterion=nn.CrossEntropyLoss,
        max_epochs=2,
        batch_size=60,
        train_split=None,
        callbacks=list(callbacks),
        verbose=0,
        **options,
    )


def test_clones_have_the_options() -> None:
    from sklearn.base import clone
    from sklearn.model_selection import GridSearchCV

    x, y = (each.numpy() for each in samples())
    test = samples(seed=1)
    net = build(("reads", EquisepCallback(every=2, per_class=6, batches=(x, y), test=test, log="none", unit="step")))
    for _ in range(2):  # of a net, and of a net that was fitted
        net = clone(net)
        net.fit(x, y)
        tracker = net.callbacks[0][1].tracker
        assert tracker.history.numbers == (2, 4) and tracker.subset_test is not None
        assert tracker.subset.counts == (6,) * 4
        assert "equisep/law/rho" not in net.history[-1]
    search = GridSearchCV(build(("reads", EquisepCallback(log="all"))), {"callbacks__reads__every": [2]}, cv=2).fit(
        x, y
    )
    tracker = search.best_estimator_.callbacks[0][1].tracker
    assert tracker.history.numbers == (2,)
    assert "equisep/fuzziness/00_input" in search.best_estimator_.history[-1]


def test_steps_are_counted_by_the_net(tmp_path: Path) -> None:
    x, y = (each.numpy() for each in samples())
    options: dict[str, Any] = {"unit": "step", "per_class": 6, "history": tmp_path / "run.jsonl"}
    callback = EquisepCallback(**options)
    net = build(callback)
    for _ in range(2):  # two modules, two trainings
        net.fit(x, y)
        assert callback.tracker is not None and callback.tracker.history.numbers == (1, 2, 3, 4)
    files = {f"f_{part}": tmp_path / part for part in ("params", "optimizer", "history")}
    net.save_params(**files)
    net.partial_fit(x, y)
    assert callback.tracker.history.numbers == tuple(range(1, 9))
    again = build(EquisepCallback(**options)).initialize()
    again.load_params(**files)
    again.partial_fit(x, y, epochs=1)
    history = History.load(tmp_path / "run.jsonl")
    assert history.numbers == (1, 2, 3, 4, 5, 6)
    assert [entry.epoch for entry in history] == [0, 0, 1, 1, 2, 2]


def test_another_fit_reads_its_own_samples() -> None:
    callback = EquisepCallback(per_class=6)
    net = build(callback)
    drawn = []
    for seed in (0, 1):
        x, y = samples(seed=seed)
        net.fit(x.numpy(), y.numpy())
        assert callback.tracker is not None
        drawn.append(callback.tracker.subset.fingerprint)
    assert drawn[0] != drawn[1]


def test_the_recipe_runs(tmp_path: Path) -> None:
    names = recipe("skorch", tmp_path)
    assert names["callback"].tracker.history.numbers == (1, 2)
