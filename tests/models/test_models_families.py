"""Every network of the house: its sites, its weights by seed, a smoke training whose law is read, and no trace of reading."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from network_families import CLASSES, SMOKE, images, seen, smoke
from torch import nn

from equisep.errors import InputError, ModelError
from equisep.measuring import measure
from equisep.models import MODELS, Fnn, build
from equisep.taps import resolve_sites
from equisep.training import Recipe, train

families = pytest.mark.parametrize("name", MODELS)
FNNS = ("fnn", "fnn-linear", "fnn-no-batchnorm", "mlp")
CHEAP: dict[str, Any] = {"metrics": "fuzziness", "intervals": "none", "coordinates": 0}


def test_every_network_is_tested_here() -> None:
    assert SMOKE.keys() == MODELS.keys()


@families
def test_sites_are_called_once_each_in_the_declared_order(name: str) -> None:
    model = smoke(name)
    x, _ = images()
    assert set(model.sites) == {"layers", "blocks"}
    for grain in ("layers", "blocks"):
        names = model.sites[grain]
        assert [site for site, _ in seen(model, x[:2], names)] == list(names)
        assert resolve_sites(model, grain) == ("input", *names)
    assert len(model.sites["layers"]) >= len(model.sites["blocks"]) >= 3


@families
def test_sites_are_read_after_relu_and_before_pooling(name: str) -> None:
    model = smoke(name)
    after_relu = {site for site in model.sites["layers"] if name != "fnn-linear"}
    pools = (nn.MaxPool2d, nn.AvgPool2d, nn.AdaptiveAvgPool2d)
    for site, output in seen(model, images()[0][:4], model.sites["layers"]):
        assert bool((output >= 0).all()) == (site in after_relu), site
        assert not isinstance(list(model.get_submodule(site).modules())[-1], pools)


@families
def test_build_makes_the_same_weights_for_the_same_seed_only(name: str) -> None:
    torch.manual_seed(3)
    wanted = MODELS[name](**SMOKE[name]).state_dict()
    state = torch.get_rng_state()
    one, two, other = (smoke(name, seed=seed).state_dict() for seed in (3, 3, 4))
    assert torch.equal(torch.get_rng_state(), state)
    assert one.keys() == wanted.keys()
    assert all(torch.equal(one[key], wanted[key]) and torch.equal(one[key], two[key]) for key in wanted)
    assert any(not torch.equal(one[key], other[key]) for key in wanted)


@families
def test_it_trains_and_its_law_is_read_at_both_grains(name: str) -> None:
    model = smoke(name)
    x, y = images()
    before = {key: value.clone() for key, value in model.named_parameters()}
    rate = 1e-2 if name == "fnn-no-batchnorm" else 3e-3
    history = train(model, x, y, recipe=Recipe(epochs=6, rate=rate, batch_size=12))
    assert min(history.loss[-2:]) < history.loss[0]
    assert not [key for key, value in model.named_parameters() if torch.equal(before[key], value)]
    for grain in ("layers", "blocks"):
        profile = measure(model, (x, y), sites=grain, reading="mixed", **CHEAP)
        assert [site.name for site in profile.sites] == ["input", *model.sites[grain]]
        assert profile.law.rho is not None
        assert math.isfinite(profile.law.rho) and -1 <= profile.law.r <= 1
        assert all(site.fuzziness > 0 for site in profile.sites)
    assert profile.classes == CLASSES


def everything(model: nn.Module) -> dict[str, object]:
    """Flags, hooks, values, gradients and random states, as comparable values."""
    found: dict[str, object] = {"torch": torch.get_rng_state().numpy().tobytes()}
    kind, keys, *rest = np.random.get_state()  # noqa: NPY002
    found["numpy"] = (kind, keys.tobytes(), *rest)
    for name, module in model.named_modules():
        hooks = (module._forward_hooks, module._forward_pre_hooks, module._backward_hooks, module._backward_pre_hooks)
        found[f"{name} hooks"] = tuple(len(entry) for entry in hooks)
        found[f"{name} flags"] = (module.training, getattr(module, "track_running_stats", None))
    for name, value in (*model.named_parameters(), *model.named_buffers()):
        found[name] = (id(value), value.detach().numpy().tobytes(), value.requires_grad)
        found[f"{name} grad"] = None if value.grad is None else (id(value.grad), value.grad.numpy().tobytes())
    return found


@families
def test_reading_leaves_no_trace(name: str) -> None:
    model, (x, y) = smoke(name), images()
    nn.functional.cross_entropy(model(x), y).backward()
    norms = [module for module in model.modules() if isinstance(module, nn.modules.batchnorm._BatchNorm)]
    for norm in norms[:1]:
        norm.eval()
    next(model.parameters()).requires_grad_(False)
    before = everything(model)
    for grain, mode in (("layers", "mixed"), ("blocks", "eval")):
        measure(model, (x, y), sites=grain, reading=mode, **CHEAP)  # type: ignore[arg-type]
    after = everything(model)
    assert [key for key in before.keys() | after.keys() if before.get(key) != after.get(key)] == []
    assert torch.is_grad_enabled()

    untouched = smoke(name)
    untouched(x)  # the same step of the running statistics as the other took
    with torch.no_grad():
        assert torch.equal(model.eval()(x[:2]), untouched.eval()(x[:2]))


@families
def test_sizes_below_one_are_refused(name: str) -> None:
    with pytest.raises(InputError, match=r"^`\w+` needs .*classes of at least 1; found .*classes=0"):
        build(name, seed=0, **SMOKE[name] | {"classes": 0})


@pytest.mark.parametrize("name", [name for name in MODELS if name not in FNNS])
@pytest.mark.parametrize("multiplier", [0.0, -1.0, math.nan, math.inf])
def test_a_width_multiplier_is_a_positive_number(name: str, multiplier: float) -> None:
    with pytest.raises(InputError, match=rf"needs a positive width_multiplier; found {multiplier}"):
        build(name, seed=0, **SMOKE[name] | {"width_multiplier": multiplier})


@pytest.mark.parametrize("name", [name for name in MODELS if name not in FNNS])
@pytest.mark.parametrize("multiplier", [1e-3, 0.3])
def test_a_width_multiplier_keeps_the_wiring(name: str, multiplier: float) -> None:
    """The same modules under the same names, whatever the width: no shortcut appears or goes."""
    for colors in (1, 3):
        with torch.device("meta"):
            full, narrow = (MODELS[name](colors=colors, width_multiplier=m) for m in (1.0, multiplier))
        kinds = [[(key, type(module)) for key, module in model.named_modules()] for model in (full, narrow)]
        assert kinds[0] == kinds[1]
        assert full.sites == narrow.sites
        assert narrow(torch.zeros(2, colors, 32, 32, device="meta")).shape == (2, 10)


@families
def test_an_unknown_option_is_refused_with_the_known_ones(name: str) -> None:
    with pytest.raises(
        ModelError, match=rf"^The network `{name}` takes no `classs`\. Did you mean `classes`\? It takes"
    ):
        build(name, seed=0, classs=3)


def test_a_name_fixes_what_it_says() -> None:
    with pytest.raises(ModelError, match="The network `vgg11` takes no `depth`"):
        build("vgg11", seed=0, depth=13)
    with pytest.raises(ModelError, match="The network `resnet-mixed` takes no `blocks`"):
        build("resnet-mixed", seed=0, blocks=(2, 2))


def test_the_controls_and_the_mlp_are_feed_forward_networks() -> None:
    linear, bare, mlp = (build(name, seed=0) for name in ("fnn-linear", "fnn-no-batchnorm", "mlp"))
    assert isinstance(linear, Fnn) and isinstance(bare, Fnn) and isinstance(mlp, Fnn)
    assert (linear.depth, bare.depth, mlp.depth) == (20, 20, 9)  # MLP-8 has L = 9
    assert {type(part) for block in linear.blocks for part in block} == {nn.Linear, nn.BatchNorm1d}
    assert {type(part) for block in bare.blocks for part in block} == {nn.Linear, nn.ReLU}
    assert {type(part) for block in mlp.blocks for part in block} == {nn.Linear, nn.BatchNorm1d, nn.ReLU}


def test_the_mlp_counts_hidden_layers() -> None:
    model = build("mlp", seed=0, depth=4, width=100)
    first, others, last = 3072 * 100 + 100 + 200, 3 * (100 * 100 + 100 + 200), 100 * 10 + 10
    assert sum(parameter.numel() for parameter in model.parameters()) == first + others + last
    assert model.sites["layers"] == ("blocks.0", "blocks.1", "blocks.2", "blocks.3")
    assert model(torch.zeros(2, 3, 32, 32)).shape == (2, 10)
    with pytest.raises(InputError, match="`mlp` needs depth, width, inputs and classes of at least 1; found depth=0"):
        build("mlp", seed=0, depth=0)


def test_the_controls_have_the_parameters_counted_by_hand() -> None:
    linear, bare = (build(name, seed=0) for name in ("fnn-linear", "fnn-no-batchnorm"))
    head = 100 * 10 + 10
    assert sum(parameter.numel() for parameter in linear.parameters()) == 19 * (100 * 100 + 100 + 200) + head
    assert sum(parameter.numel() for parameter in bare.parameters()) == 19 * (100 * 100 + 100) + head
