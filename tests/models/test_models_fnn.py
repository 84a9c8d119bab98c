"""Fnn is the papers' network: its wiring, sizes, sites and weights."""

import pytest
import torch
from torch import nn

from equisep.errors import InputError, ModelError
from equisep.models import MODELS, Fnn, build


def test_a_hidden_layer_is_linear_then_norm_then_relu() -> None:
    model = Fnn()
    for block in model.blocks:
        assert [type(part) for part in block] == [nn.Linear, nn.BatchNorm1d, nn.ReLU]
        assert block.linear.bias is not None
    assert isinstance(model.head, nn.Linear)
    assert model.head.bias is not None
    assert model.depth == 8


def test_eight_layers_of_width_100_have_the_parameters_counted_by_hand() -> None:
    # 7 hidden layers: 100·100 weights, 100 biases, 100 + 100 of BatchNorm; the classifier: 100·10 weights, 10 biases
    assert sum(p.numel() for p in Fnn().parameters()) == 7 * (100 * 100 + 100 + 200) + 100 * 10 + 10


def test_the_forward_pass_is_the_formula() -> None:
    torch.manual_seed(0)
    model = Fnn(3, widths=[7, 4], inputs=6, classes=3).eval()
    with torch.no_grad():
        for buffer in model.buffers():
            if buffer.is_floating_point():
                buffer.uniform_(0.5, 2)
    x = torch.randn(5, 2, 3)
    h = x.reshape(5, 6)
    for block in model.blocks:
        norm = block.norm
        h = h @ block.linear.weight.T + block.linear.bias
        h = (h - norm.running_mean) / (norm.running_var + norm.eps).sqrt() * norm.weight + norm.bias
        h = h.clamp(min=0)
    torch.testing.assert_close(model(x), h @ model.head.weight.T + model.head.bias)


def test_widths_replace_depth_and_width() -> None:
    model = Fnn(depth=99, width=99, widths=[7, 4, 9], inputs=6, classes=3)
    assert [(b.linear.in_features, b.linear.out_features) for b in model.blocks] == [(6, 7), (7, 4), (4, 9)]
    assert (model.head.in_features, model.head.out_features, model.depth) == (9, 3, 4)


@pytest.mark.parametrize("norm", [True, False])
@pytest.mark.parametrize("activation", [True, False])
def test_norm_and_activation_can_be_left_out(norm: bool, activation: bool) -> None:
    model = Fnn(3, width=4, inputs=5, classes=2, norm=norm, activation=activation)
    wanted = [nn.Linear] + [nn.BatchNorm1d] * norm + [nn.ReLU] * activation
    assert all([type(part) for part in block] == wanted for block in model.blocks)
    assert model.sites["layers"] == ("blocks.0", "blocks.1")
    assert model.eval()(torch.zeros(2, 5)).shape == (2, 2)


def test_the_linear_control_is_linear() -> None:
    torch.manual_seed(0)
    model = Fnn(4, width=5, inputs=3, classes=2, norm=False, activation=False)
    x, y, zero = torch.randn(1, 3), torch.randn(1, 3), torch.zeros(1, 3)
    torch.testing.assert_close(model(x) + model(y) - model(zero), model(x + y))


def test_the_sites_are_the_hidden_layers() -> None:
    model = Fnn(8)
    names = tuple(f"blocks.{i}" for i in range(7))
    assert model.sites == {"layers": names, "blocks": names}
    assert all(model.get_submodule(name) is model.blocks[i] for i, name in enumerate(names))


def test_one_layer_is_the_classifier_alone() -> None:
    model = Fnn(1, inputs=6, classes=3)
    assert model.sites["layers"] == ()
    torch.testing.assert_close(model(torch.ones(2, 6)), model.head(torch.ones(2, 6)))


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({"depth": 0}, "depth=0"),
        ({"widths": [5, 0]}, r"widths=\[5, 0\]"),
        ({"inputs": 0}, "inputs=0"),
        ({"classes": 0}, "classes=0"),
    ],
)
def test_sizes_below_one_are_refused(options: dict[str, object], found: str) -> None:
    with pytest.raises(InputError, match=f"`Fnn` needs depth, widths, inputs and classes of at least 1.*{found}"):
        Fnn(**options)  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", [0, 7])
def test_build_gives_the_weights_of_manual_seed_bit_for_bit(seed: int) -> None:
    torch.manual_seed(seed)
    wanted = Fnn(5, width=9).state_dict()
    found = build("fnn", seed=seed, depth=5, width=9).state_dict()
    assert found.keys() == wanted.keys()
    assert all(torch.equal(found[name], wanted[name]) for name in wanted)


def test_build_with_another_seed_gives_other_weights() -> None:
    one, two = (build("fnn", seed=seed, depth=2).head.weight for seed in (0, 1))
    assert not torch.equal(one, two)


def test_build_leaves_the_global_generators_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    reseeded: list[int] = []
    monkeypatch.setattr(torch.cuda, "manual_seed_all", reseeded.append)
    torch.manual_seed(3)
    reseeded.clear()
    before = torch.get_rng_state()
    build("fnn", seed=12)
    assert torch.equal(torch.get_rng_state(), before)
    assert reseeded == []


def test_an_unknown_network_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ModelError, match=r"^No network `fn`\. Did you mean `fnn`\? Known: .*fnn"):
        build("fn", seed=0)
    assert "fnn" in MODELS
