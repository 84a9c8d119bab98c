"""Noise on weights: its size, its removal, what it does, and which layer is named."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from advice.networks import bits, exclusive_or, sequential, vectors
from cli.running import equisep
from equisep.advice.noise import noisy_weights, weight_noise
from equisep.advice.noise.answer import LayerNoise, Mean, falls_at, most_fragile
from equisep.advice.noise.noise import weight_tensors
from equisep.errors import DataError, InputError, ModelError


def bits_of(model: nn.Module) -> list[bytes]:
    return [value.numpy().tobytes() for value in model.state_dict().values()]


def test_weights_are_put_back_bit_by_bit_even_after_an_error() -> None:
    torch.manual_seed(0)
    model = sequential()
    model[0][0].weight.data[0, 0] = float("nan")
    before = bits_of(model)
    weights = weight_tensors(model)
    with pytest.raises(RuntimeError, match="stop"), noisy_weights(weights, 0.3, seed=1):
        assert bits_of(model) != before
        raise RuntimeError("stop")
    assert bits_of(model) == before


def test_noise_has_the_size_asked_for_and_a_draw_has_one_direction() -> None:
    layer = nn.Linear(200, 100)
    clean, weights = layer.weight.detach().clone(), weight_tensors(layer)
    assert list(weights) == ["weight"]
    parts = []
    for sigma in (0.1, 0.4):
        with noisy_weights(weights, sigma, seed=7):
            parts.append(layer.weight.detach() - clean)
        assert float(parts[-1].norm() / clean.norm()) == pytest.approx(sigma, rel=0.05)
    torch.testing.assert_close(4 * parts[0], parts[1], rtol=1e-3, atol=1e-5)
    with noisy_weights(weights, 0.1, seed=8):
        other = layer.weight.detach() - clean
    cosine = float(torch.dot(other.flatten(), parts[0].flatten()) / other.norm() / parts[0].norm())
    assert abs(cosine) < 0.05  # 20,000 numbers: 0.007 is one standard deviation


def test_a_tensor_gets_the_same_noise_alone_and_among_others() -> None:
    torch.manual_seed(0)
    model = sequential()
    weights = weight_tensors(model)
    with noisy_weights(weights, 0.2, seed=3):
        among = weights["1.0.weight"].detach().clone()
    with noisy_weights({"1.0.weight": weights["1.0.weight"]}, 0.2, seed=3):
        assert torch.equal(weights["1.0.weight"], among)


def test_accuracy_falls_and_the_model_is_left_as_it_was() -> None:
    model = exclusive_or(4)
    before = bits_of(model)
    answer = weight_noise(model, bits(80, seed=0), bits(200, seed=1), sigmas=(0.001, 1.0), draws=3)
    assert bits_of(model) == before and all(module.training for module in model.modules())
    assert answer.accuracy == 1 and answer.n_test == 200
    assert answer.levels[0].accuracy.value > 0.99 > answer.levels[-1].accuracy.value + 0.2
    assert answer.falls_at is not None and 0.001 < answer.falls_at.value < 1
    assert answer.sentence.startswith("Noise of ") and "costs 10 points of test accuracy 100.0 %" in answer.sentence
    assert [layer.name for layer in answer.layers] == list(weight_tensors(model))
    again = weight_noise(model, bits(80, seed=0), bits(200, seed=1), sigmas=(0.001, 1.0), draws=3, layers=False)
    assert again.levels == answer.levels and again.layers == ()


def test_the_layer_that_matters_is_named() -> None:
    """Noise on a layer behind which nothing depends on its scale, beside one that decides."""
    torch.manual_seed(0)
    x, y = vectors(300, seed=0)
    x = x + 6 * nn.functional.one_hot(y, 6)
    idle, last = nn.Linear(6, 600), nn.Linear(600, 3)
    with torch.no_grad():
        idle.weight.copy_(torch.eye(6).repeat(100, 1))
        idle.bias.zero_()
        last.weight.copy_(torch.eye(3, 6).repeat(1, 100) / 100)
        last.bias.zero_()
    rotated = nn.Sequential(nn.Linear(6, 6), nn.ReLU(), idle, nn.ReLU(), last)
    with torch.no_grad():
        rotated[0].weight.copy_(torch.eye(6))
        rotated[0].bias.zero_()
    answer = weight_noise(rotated, (x, y), (x, y), sigmas=(0.1, 2.0), draws=3)
    worst = max(answer.layers, key=lambda layer: layer.loss.value)
    assert worst.name == "0.weight"  # the others average their noise over a hundred copies
    assert answer.fragile in (None, "0.weight")


def test_where_accuracy_has_fallen_by_ten_points() -> None:
    value = falls_at([0.1, 0.2, 0.4], [[0.9, 0.85, 0.75], [0.9, 0.85, 0.75]], clean=0.9, level=0.95)
    assert value is not None and value.value == pytest.approx(math.sqrt(0.2 * 0.4), rel=1e-12)
    assert value.low == pytest.approx(value.value) and value.high == pytest.approx(value.value)
    assert falls_at([0.1, 0.2], [[0.9, 0.85]], clean=0.9, level=0.95) is None  # not so far
    assert falls_at([0.1, 0.2], [[0.5, 0.4]], clean=0.9, level=0.95) is None  # before the smallest


def test_a_fragile_layer_is_named_only_where_it_can_be_told() -> None:
    def layer(name: str, *draws: float) -> LayerNoise:
        return LayerNoise(name, Mean.of(draws, 0.95), draws)

    clear = [layer("a", 0.30, 0.31, 0.29), layer("b", 0.1, 0.11, 0.09), layer("c", 0.0, 0.0, 0.0)]
    assert most_fragile(clear, level=0.95) == "a"
    assert most_fragile([layer("a", 0.3, 0.1, 0.2), layer("b", 0.2, 0.1, 0.15)], level=0.95) is None
    assert most_fragile([layer("a", 0.3), layer("b", 0.1)], level=0.95) is None  # one draw tells no spread


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"sigmas": (0.2, 0.1)}, "`sigmas` are relative sizes of noise above 0, the smallest first"),
        ({"sigmas": ()}, "`sigmas` are relative sizes"),
        ({"draws": 0}, "`draws` is how often noise is drawn, 1 or more; found 0"),
        ({"level": 1.0}, "`level` is the confidence"),
    ],
)
def test_bad_input_in_one_sentence(asked: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        weight_noise(sequential(), vectors(30, seed=0), vectors(30, seed=1), **asked)


def test_what_cannot_get_noise_or_be_read_again_is_refused() -> None:
    with pytest.raises(ModelError, match="`ReLU` has no weight matrix"):
        weight_tensors(nn.ReLU())
    with pytest.raises(DataError, match="the test data end after one reading"):
        weight_noise(sequential(), vectors(30, seed=0), iter([vectors(30, seed=1)]))
    with pytest.raises(InputError, match="gives no class scores"):
        weight_noise(
            nn.Sequential(nn.Linear(6, 6), nn.ReLU(), nn.Unflatten(1, (2, 3))),
            vectors(30, seed=0),
            vectors(30, seed=1),
            classes=3,
        )


def test_the_command_answers_first(tmp_path: Path) -> None:
    words = ("noise", "--model", "equisep.models:Fnn,depth=3", "--data", "embedded-10x10", "--per-class", "10")
    done = equisep(*words, "--sigmas", "0.1,1", "--draws", "2", "--no-layers", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0].startswith(("Noise of ", "Up to noise of ", "Its test accuracy "))
    done = equisep(*words, "--sigmas", "0.5", "--draws", "1", "--json", "--quiet", folder=tmp_path)
    record = json.loads(done.stdout)
    assert len(record["layers"]) == 3 and record["layers"][0]["loss"]["low"] is None and not done.stderr
    done = equisep(*words, "--sigmas", "a", folder=tmp_path)
    assert done.returncode == 2 and "`--sigmas` takes numbers with commas between them" in done.stderr
