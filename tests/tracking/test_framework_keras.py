"""The Keras callback with the real Keras on torch: the same training, the numbers in its logs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from recipes import recipe
from tracked import CLASSES, FEATURES, samples

import equisep
from equisep import History
from equisep.errors import InputError, ModelError
from equisep.tracking.stopping import Stopping

os.environ.setdefault("KERAS_BACKEND", "torch")
keras = pytest.importorskip("keras")
if keras.backend.backend() != "torch":
    pytest.skip("keras was imported on another backend", allow_module_level=True)

from equisep.models.keras import KerasNetwork  # noqa: E402
from equisep.tracking.keras import EquisepCallback  # noqa: E402
from equisep.tracking.light import identity_of  # noqa: E402


def network(seed: int = 0) -> Any:
    keras.utils.set_random_seed(seed)
    keras.backend.clear_session()  # names of layers from the beginning
    layers = keras.layers
    model = keras.Sequential(
        [
            keras.Input((FEATURES,)),
            layers.Dense(10),
            layers.BatchNormalization(),
            layers.ReLU(),
            layers.Dropout(0.2),
            layers.Dense(10, activation="relu"),
            layers.Dropout(0.2),
            layers.Dense(CLASSES),
        ]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer=keras.optimizers.SGD(0.05, momentum=0.9), loss=loss, metrics=["accuracy"])
    return model


def fitted(*callbacks: Any, epochs: int = 3, **options: Any) -> tuple[Any, Any]:
    model = network()
    x, y = samples()
    record = model.fit(
        x.numpy(), y.numpy(), epochs=epochs, batch_size=20, verbose=0, callbacks=list(callbacks), **options
    )
    return model, record.history


def numbers_of(model: Any) -> list[bytes]:
    """Weights, moving statistics, the state of the optimizer and of every random generator."""
    everything = [*model.variables, *model.optimizer.variables]
    return [np.asarray(value.value.detach()).tobytes() for value in everything] + [
        torch.get_rng_state().numpy().tobytes()
    ]


def test_the_same_training_with_the_numbers_in_its_logs() -> None:
    plain, before = fitted(epochs=2)
    state = numbers_of(plain)
    by_step = EquisepCallback(samples(), unit="step", every=6, per_class=6, log="none")
    callback = EquisepCallback(samples(), per_class=6, test=samples(seed=1))
    model, logs = fitted(by_step, callback, epochs=2)
    assert numbers_of(model) == state
    assert by_step.tracker is not None and by_step.tracker.history.numbers == (6, 12)
    assert logs["loss"] == before["loss"]
    assert callback.tracker is not None
    history = callback.tracker.history
    assert history.numbers == (1, 2)
    assert logs["equisep/law/rho"] == [profile.law.rho for profile in history.profiles().values()]
    assert history.header.sites == ("input", "re_lu", "dense_1")


def test_a_keras_network_is_measured_as_keras_infers() -> None:
    model, _ = fitted(epochs=1)
    x, y = samples()
    profile = equisep.measure(KerasNetwork(model), (x, y))
    assert [site.name for site in profile.sites] == ["input", "re_lu", "dense_1"]
    inner = keras.Model(model.inputs, model.get_layer("dense_1").output)
    features = torch.as_tensor(inner.predict(x.numpy(), verbose=0))
    assert profile.sites[-1].fuzziness == pytest.approx(equisep.fuzziness(features, y), rel=1e-5)
    accuracy = float((torch.as_tensor(model.predict(x.numpy(), verbose=0)).argmax(dim=1) == y).double().mean())
    assert profile.accuracy_train == pytest.approx(accuracy)


def test_it_stops_and_goes_on(tmp_path: Path) -> None:
    anything = Stopping(window=1, rho=0.99, fuzziness=0.99, ncc=0.99)
    options = {"per_class": 6, "history": tmp_path / "run.jsonl"}
    _, logs = fitted(EquisepCallback(samples(), stop=True, stopping=anything, **options), epochs=5)
    assert len(logs["loss"]) < 5
    fitted(EquisepCallback(samples(), **options), epochs=4, initial_epoch=2)
    assert History.load(tmp_path / "run.jsonl").numbers == (1, 2, 3, 4)


def fit(model: Any, *callbacks: Any, epochs: int, **options: Any) -> dict[str, Any]:
    x, y = samples()
    history: dict[str, Any] = model.fit(
        x.numpy(), y.numpy(), epochs=epochs, batch_size=60, verbose=0, callbacks=list(callbacks), **options
    ).history
    return history


def test_another_model_is_another_training() -> None:
    callback = EquisepCallback(samples(), unit="step")
    for seed in (0, 1):
        model = network(seed)
        logs = fit(model, callback, epochs=2)
        assert callback.tracker is not None and callback.tracker.history.numbers == (1, 2, 3, 4)
        now = equisep.Tracker(KerasNetwork(model), samples()).read()
        assert now is not None and logs["equisep/law/rho"][-1] == now.law.rho
    tracker = equisep.Tracker(KerasNetwork(model), samples())
    fit(model, tracker.callback("keras"), epochs=1)
    with pytest.raises(
        InputError, match=r"reads another model than `sequential`, which is .* assign it: `tracker\.model = K"
    ):
        fit(network(), tracker.callback("keras"), epochs=1)


def test_the_same_callback_goes_on_with_a_model_that_was_loaded(tmp_path: Path) -> None:
    model, callback = network(), EquisepCallback(samples())
    fit(model, callback, epochs=2)
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    fit(again, callback, epochs=3, initial_epoch=2)
    assert callback.tracker is not None and callback.tracker.history.numbers == (1, 2, 3)
    assert callback.tracker.model.keras_model is again


@pytest.mark.parametrize("known", [True, False])
def test_steps_are_counted_on_from_the_optimizer_or_else_from_the_history(tmp_path: Path, known: bool) -> None:
    options = {"unit": "step", "every": 2, "per_class": 6, "history": tmp_path / "run.jsonl"}
    model = network()
    fit(model, EquisepCallback(samples(), **options), epochs=2 if known else 3)
    if not known:  # as where the weights after epoch 2 are loaded, without their optimizer
        model.compile(optimizer=keras.optimizers.SGD(0.05), loss=model.loss)
    fit(model, EquisepCallback(samples(), **options), epochs=4, initial_epoch=2)
    history = History.load(tmp_path / "run.jsonl")
    assert {entry.number: entry.epoch for entry in history} == {2: 0, 4: 1, 6: 2, 8: 3}


def test_a_model_that_was_saved_and_loaded_is_known_again(tmp_path: Path) -> None:
    """Keras names its weights otherwise once it loads them."""
    model = network()
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    assert identity_of(KerasNetwork(again)) == identity_of(KerasNetwork(model))


def test_what_keras_cannot_do_is_told() -> None:
    with pytest.raises(InputError, match="does not tell callbacks its data"):
        EquisepCallback()
    with pytest.raises(InputError, match="only the reading `eval` can be had"):
        EquisepCallback(samples(), reading="mixed")
    with pytest.raises(ModelError, match=r"has no weights yet\. Call `model\.build"):
        KerasNetwork(keras.Sequential([keras.layers.Dense(3)]))
    with pytest.raises(ModelError, match="on another backend than torch"):
        KerasNetwork(object())


def test_the_recipe_runs(tmp_path: Path) -> None:
    names = recipe("Keras", tmp_path)
    assert names["callback"].tracker.history.numbers == (1, 2)
