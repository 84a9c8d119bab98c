"""The tap hands activations on in call order, inside the hook, and takes its hooks off whatever happens."""

import pytest
import torch
from tapped_models import Pair, batch, small, snapshot
from torch import Tensor, nn

from equisep.errors import InputError, SiteError
from equisep.taps import tap


def read(model: nn.Module, sites: object, x: Tensor, mode: str = "eval") -> dict[str, Tensor]:
    kept: dict[str, Tensor] = {}
    with tap(model, sites, consume=lambda site, features: kept.update({site: features.clone()}), reading=mode):  # type: ignore[arg-type]
        model(x)
    return kept


def hook_count(model: nn.Module) -> int:
    return sum(len(module._forward_hooks) + len(module._forward_pre_hooks) for module in model.modules())


def test_features_come_in_the_order_of_the_calls_not_of_the_names() -> None:
    seen: list[str] = []
    model = small()
    with tap(model, ["head", "norm", "first"], consume=lambda site, _: seen.append(site)) as names:
        model(batch())
    assert seen == ["input", "first", "norm", "head"]
    assert names == ("input", "head", "norm", "first")


def test_each_feature_is_handed_on_before_the_next_module_runs() -> None:
    model, events = small(), []
    handles = [
        module.register_forward_pre_hook(lambda _, args, name=name: events.append(f"run {name}"))
        for name, module in model.named_children()
    ]
    with tap(model, ["first", "norm"], consume=lambda site, _: events.append(f"take {site}")):
        model(batch())
    for handle in handles:
        handle.remove()
    assert events[:5] == ["take input", "run first", "take first", "run norm", "take norm"]


def test_values_are_those_of_the_modules() -> None:
    model, x = small().eval(), batch()
    kept = read(model, ["first", "norm", "head"], x)
    with torch.no_grad():
        h = model.first(x)
        assert torch.equal(kept["input"], x)
        assert torch.equal(kept["first"], h)
        assert torch.equal(kept["norm"], model.norm(h))
        assert torch.equal(kept["head"], model(x))


def test_an_in_place_activation_does_not_overwrite_the_site_before_it() -> None:
    model, x = small().eval(), batch()
    kept = read(model, ["norm", "relu"], x)
    with torch.no_grad():
        wanted = model.norm(model.first(x))
    assert (wanted < 0).any()
    assert torch.equal(kept["norm"], wanted)
    assert torch.equal(kept["relu"], wanted.clamp(min=0))


def test_a_module_called_twice_is_two_sites_in_every_forward_pass() -> None:
    seen: list[str] = []
    model = small()
    with tap(model, ["relu"], consume=lambda site, _: seen.append(site)):
        model(batch())
        model(batch())
    assert seen == ["input", "relu", "relu:2"] * 2


def test_the_count_of_calls_begins_anew_after_a_forward_pass_that_failed() -> None:
    seen: list[str] = []
    model = small()
    with tap(model, ["relu"], consume=lambda site, _: seen.append(site)):
        model.second.forward = lambda _: 1 / 0  # type: ignore[assignment,method-assign]
        with pytest.raises(ZeroDivisionError):
            model(batch())
        del model.second.forward
        model(batch())
    assert seen == ["input", "relu", "input", "relu", "relu:2"]


def test_a_module_named_input_is_read_beside_the_raw_input() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.input = nn.Linear(4, 6)
            self.output = nn.Linear(6, 3)

        def forward(self, x: Tensor) -> Tensor:
            return self.output(torch.relu(self.input(x)))

    torch.manual_seed(0)
    model, x = Net(), batch()
    kept = read(model, "auto", x)
    assert list(kept) == ["input", "input:1"]
    assert torch.equal(kept["input"], x)
    assert torch.equal(kept["input:1"], model.input(x).detach())
    assert list(read(model, ["input:1"], x)) == ["input", "input:1"]


def test_the_first_tensor_of_tuples_and_mappings_is_read() -> None:
    model = nn.Sequential(Pair())
    kept = read(model, ["0"], batch())
    assert torch.equal(kept["0"], 2 * batch())


def test_keyword_inputs_are_read_too() -> None:
    model = small()
    kept: list[str] = []
    with tap(model, ["first"], consume=lambda site, _: kept.append(site)):
        model(x=batch())
    assert kept == ["input", "first"]


def test_a_site_without_a_tensor_is_refused_by_name() -> None:
    class Words(nn.Module):
        def forward(self, x: Tensor) -> str:
            return "no tensor"

    with pytest.raises(SiteError, match=r"Site `0` gives no tensor but str\. Choose another site\."):
        read(nn.Sequential(Words()), ["0"], batch())


def test_the_features_carry_no_gradient() -> None:
    model, flags = small(), []
    with tap(model, ["first", "head"], consume=lambda _, features: flags.append(features.requires_grad)):
        out = model(batch())
    assert flags == [False] * 3
    assert not out.requires_grad
    assert torch.is_grad_enabled()


@pytest.mark.parametrize("mode", ["eval", "mixed"])
def test_hooks_come_off_at_the_end(mode: str) -> None:
    model = small()
    with tap(model, ["first", "relu", "head"], consume=lambda *_: None, reading=mode):  # type: ignore[arg-type]
        assert hook_count(model) == 5  # three sites, and the beginning and the end of the forward pass
    assert hook_count(model) == 0


@pytest.mark.parametrize("mode", ["eval", "mixed"])
def test_hooks_come_off_when_the_forward_pass_raises(mode: str) -> None:
    model = small()
    before = snapshot(model)
    with pytest.raises(RuntimeError), tap(model, ["relu"], consume=lambda *_: None, reading=mode):  # type: ignore[arg-type]
        model(torch.zeros(8, 5))
    assert hook_count(model) == 0
    assert {key: value for key, value in before.items() if "training" in key} == {
        key: value for key, value in snapshot(model).items() if "training" in key
    }
    assert torch.is_grad_enabled()


def test_hooks_come_off_when_the_consumer_raises() -> None:
    def consume(site: str, features: Tensor) -> None:
        if site == "norm":
            raise KeyError("enough")

    model = small()
    with pytest.raises(KeyError), tap(model, ["first", "norm"], consume=consume):
        model(batch())
    assert hook_count(model) == 0
    assert model.training


def test_hooks_of_the_user_stay() -> None:
    model, calls = small(), []
    model.first.register_forward_hook(lambda *_: calls.append("mine"))
    with tap(model, ["first"], consume=lambda *_: None):
        model(batch())
    model(batch())
    assert calls == ["mine", "mine"]
    assert hook_count(model) == 1


@pytest.mark.usefixtures("as_users_run_it")
def test_only_modules_can_be_tapped() -> None:
    sentence = r"^`tap` reads a torch\.nn\.Module; found builtin_function_or_method\."
    with pytest.raises(InputError, match=sentence), tap(len, consume=print):  # type: ignore[arg-type]
        pass


def test_a_wrong_site_leaves_the_model_untouched() -> None:
    model = small()
    with pytest.raises(SiteError), tap(model, ["frist"], consume=lambda *_: None):
        pass
    assert hook_count(model) == 0
    assert model.training
