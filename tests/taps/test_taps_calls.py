"""Modules called more than once, selection by class and function, what modules return, and forward passes cut short."""

from collections import OrderedDict, namedtuple
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from tapped_models import batch, differing, small, snapshot
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from equisep.errors import InputError, SiteError
from equisep.taps import first_tensor, recorded_calls, resolve_sites, scores_of, tap


def seen(model: nn.Module, sites: Any, *runs: Any, **options: Any) -> list[str]:
    found: list[str] = []
    with tap(model, sites, consume=lambda site, _: found.append(site), **options):
        for x in runs or (batch(),):
            model(x)
    return found


# --- one call of several


def test_one_call_is_chosen_by_its_number() -> None:
    assert seen(small(), ["relu:2"]) == ["input", "relu:2"]
    assert seen(small(), ["relu:1"]) == ["input", "relu"]
    assert seen(small(), ["relu:*"]) == ["input", "relu", "relu:2"]
    assert seen(small(), ["r*u:2", "head"]) == ["input", "relu:2", "head"]


def test_a_number_alone_is_no_module() -> None:
    with pytest.raises(SiteError, match=r"No module `reul` in `Small`\. Did you mean `relu`"):
        resolve_sites(small(), "reul:2")
    with pytest.raises(SiteError, match="The glob `z\\*` matches none"):
        resolve_sites(small(), "z*:2")


def test_the_last_call_alone_comes_when_the_forward_pass_ends() -> None:
    model, x = small().eval(), batch()
    kept: list[tuple[str, Tensor]] = []
    with tap(model, ["relu", "norm"], consume=lambda s, f: kept.append((s, f.clone())), calls="last"):
        model(x)
    assert [site for site, _ in kept] == ["input", "norm", "relu"]
    with torch.no_grad():
        h = model.norm(model.first(x))
        assert torch.equal(kept[1][1], h)  # though the ReLU after it works in place
        assert torch.equal(kept[2][1], model.second(h.relu()).relu())


def test_the_last_call_of_a_failed_forward_pass_is_dropped() -> None:
    model = small()
    found: list[str] = []
    with tap(model, ["relu"], consume=lambda site, _: found.append(site), calls="last"):
        model.head.forward = lambda _: 1 / 0  # type: ignore[assignment,method-assign]
        with pytest.raises(ZeroDivisionError):
            model(batch())
        del model.head.forward
        model(batch())
    assert found == ["input", "input", "relu"]


def test_unknown_calls_are_refused() -> None:
    with pytest.raises(InputError, match=r"No calls `lsat`\. Did you mean `last`\? Known: each, last\."):
        from equisep.taps import check_calls

        check_calls("lsat")


def test_a_module_with_two_names_is_found_by_both() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    model.add_module("again", model[1])
    assert resolve_sites(model, ["again"]) == ("input", "1")
    assert seen(model, ["again"]) == ["input", "1", "1:2"]


# --- classes and functions


def test_sites_by_class() -> None:
    assert resolve_sites(small(), nn.ReLU) == ("input", "relu")
    assert resolve_sites(small(), (nn.Linear, nn.BatchNorm1d)) == ("input", "first", "second", "head", "norm")
    assert seen(small(), [nn.Linear, "norm"]) == ["input", "first", "norm", "second", "head"]


def test_sites_by_function() -> None:
    assert resolve_sites(small(), lambda name, module: name.startswith("s")) == ("input", "second")
    assert resolve_sites(small(), lambda _, module: isinstance(module, nn.Dropout)) == ("input", "drop")


def test_what_selects_nothing_is_refused() -> None:
    with pytest.raises(SiteError, match=r"The class Conv2d selects none of the 6 modules of `Small`\. `equisep sites`"):
        resolve_sites(small(), nn.Conv2d)

    def never(name: str, module: nn.Module) -> bool:
        return False

    with pytest.raises(SiteError, match="The function never selects none of the 6 modules"):
        resolve_sites(small(), never)


@pytest.mark.parametrize("nonsense", [7, [7], {"relu": 1}, [["relu"]]])
def test_what_is_no_site_is_refused(nonsense: object) -> None:
    with pytest.raises(
        InputError, match="`sites` takes `auto`, `layers`, `blocks`, module names, globs, module classes"
    ):
        resolve_sites(small(), nonsense)


# --- what modules return


@dataclass
class Record:
    loss: Tensor
    state: Tensor


class Output(OrderedDict):  # type: ignore[type-arg]
    """As Hugging Face's: a mapping whose entries are attributes too."""

    def __getattr__(self, name: str) -> Any:
        if name in self:
            return self[name]
        raise AttributeError(name)


Pair = namedtuple("Pair", ["logits", "aux"])
ONE, TWO = torch.ones(2, 3), torch.zeros(2, 5)


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (ONE, ONE),
        ((None, [ONE], TWO), ONE),
        ({"mask": None, "state": ONE}, ONE),
        (Record(loss=ONE, state=TWO), ONE),
        (Output(loss=TWO, logits=ONE), ONE),
        (Output(hidden_states=(TWO, TWO), last_hidden_state=ONE), ONE),
        (Pair(logits=ONE, aux=TWO), ONE),
        ("words", None),
        ({"n": 3}, None),
    ],
)
def test_the_tensor_to_read(value: Any, wanted: Tensor | None) -> None:
    assert first_tensor(value) is wanted


def test_the_scores_of_a_model() -> None:
    assert scores_of(ONE) is ONE
    assert scores_of(Output(loss=torch.tensor(1.0), logits=ONE)) is ONE
    assert scores_of(Pair(logits=ONE, aux=None)) is ONE
    assert scores_of((ONE, TWO)) is None
    assert scores_of(torch.zeros(2, 3, 4)) is None
    assert scores_of(torch.zeros(2, 1)) is None
    assert scores_of({"scores": ONE}) is None


def test_a_single_number_is_no_feature() -> None:
    class Loss(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.sum()

    with pytest.raises(SiteError, match=r"Site `0` gives a single number\. Choose another site\."):
        seen(nn.Sequential(Loss()), ["0"])


def test_complex_numbers_are_no_features() -> None:
    class Fourier(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.fft.fft(x)

    with pytest.raises(SiteError, match=r"Site `0` gives complex numbers\."):
        seen(nn.Sequential(Fourier()), ["0"])


# --- forward passes cut short


class Counting(nn.Module):
    """Counts how often its second half runs."""

    def __init__(self) -> None:
        super().__init__()
        self.one = nn.Linear(4, 3)
        self.two = nn.Linear(3, 3)
        self.ran = 0

    def forward(self, x: Tensor) -> Tensor:
        try:
            h = self.one(x)
            self.ran += 1
            return self.two(h)
        except Exception:  # a model that swallows errors does not swallow the end
            return x


def test_a_forward_pass_ends_after_the_last_site() -> None:
    model, outputs = Counting(), []
    with tap(model, ["one"], consume=lambda *_: None, stop=True):
        outputs += [model(batch()) for _ in range(3)]
    assert outputs[0].shape == (8, 3)  # the first pass runs through, to learn which site is the last
    assert outputs[1:] == [None, None]
    assert model.ran == 1
    assert model(batch()).shape == (8, 3)


def test_what_is_read_is_the_same_when_cut_short() -> None:
    model = small().eval()
    runs = [batch(seed=seed) for seed in range(3)]
    kept: dict[bool, list[Tensor]] = {True: [], False: []}
    for stop, found in kept.items():
        with tap(model, ["relu"], consume=lambda _, x, found=found: found.append(x.clone()), stop=stop):
            for x in runs:
                model(x)
    assert all(torch.equal(a, b) for a, b in zip(kept[True], kept[False], strict=True))
    assert len(kept[True]) == 9


def test_nothing_is_left_of_a_pass_cut_short() -> None:
    model = small()
    before = snapshot(model)
    with tap(model, ["first"], consume=lambda *_: None, stop=True):
        model(batch())
        model(batch())
        assert "forward" in vars(model)
    assert "forward" not in vars(model)
    assert differing(before, snapshot(model)) == []


def test_a_forward_of_the_users_own_is_given_back() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))
    mine = model.forward
    model.forward = mine  # type: ignore[method-assign]
    with pytest.raises(RuntimeError), tap(model, ["0"], consume=lambda *_: None, stop=True):
        model(torch.zeros(3, 9))
    assert vars(model)["forward"] is mine


# --- checkpoints inside the forward pass, and the order of calls


class Thrifty(nn.Module):
    """Recomputes its layers in the backward pass."""

    def __init__(self, reentrant: bool) -> None:
        super().__init__()
        self.first, self.second, self.reentrant = nn.Linear(4, 6), nn.Linear(6, 6), reentrant

    def forward(self, x: Tensor) -> Tensor:
        h = checkpoint(self.first, x, use_reentrant=self.reentrant)
        return checkpoint(self.second, h.relu(), use_reentrant=self.reentrant)


@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.filterwarnings("ignore:None of the inputs have requires_grad")
def test_gradient_checkpointing_is_read_once_a_call(reentrant: bool) -> None:
    torch.manual_seed(0)
    assert seen(Thrifty(reentrant), ["first", "second"], batch(), batch()) == ["input", "first", "second"] * 2


def test_calls_are_recorded_with_what_they_were_given() -> None:
    model = small().eval()
    with recorded_calls(model) as calls, torch.no_grad():
        model(batch())
    assert [call.site for call in calls] == ["first", "norm", "relu", "drop", "second", "relu:2", "head"]
    assert [call.after for call in calls] == [None, "first", "norm", "relu", "drop", "second", "relu"]
    assert calls[-1].shape == (8, 3)
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())


# --- what a module is given


class Functional(nn.Module):
    """Activations are functions, so that the input of `head` is the output of no module; `block` is called by name."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.block, self.head = nn.Linear(6, 5), nn.Linear(5, 5), nn.Linear(5, 3)

    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x).relu()
        h = self.block(input=h).relu_()
        return self.head(self.block(h).tanh())


def gathered(model: nn.Module, sites: Any, x: Tensor, **options: Any) -> dict[str, Tensor]:
    kept: dict[str, Tensor] = {}
    with tap(model, sites, consume=lambda site, features: kept.update({site: features.clone()}), **options):
        model(x)
    return kept


def test_the_input_of_a_module_is_a_site() -> None:
    model, x = Functional(), torch.randn(4, 6)
    found = gathered(model, ["head:in", "block:in", "first"], x)
    assert list(found) == ["input", "first", "block:in", "block:in:2", "head:in"]
    with torch.no_grad():
        one = model.first(x).relu()
        two = model.block(one).relu()
        assert torch.equal(found["block:in"], one)  # though later steps work in place
        assert torch.equal(found["block:in:2"], two)
        assert torch.equal(found["head:in"], model.block(two).tanh())


def test_inputs_by_call_glob_class_of_call_and_last_call() -> None:
    model, x = Functional(), torch.randn(4, 6)
    assert list(gathered(model, "block:in:2", x)) == ["input", "block:in:2"]
    assert list(gathered(model, "block:in:1", x)) == ["input", "block:in"]
    assert list(gathered(model, "block:in:*", x)) == ["input", "block:in", "block:in:2"]
    assert list(gathered(model, ["*:in"], x)) == ["input", "first:in", "block:in", "block:in:2", "head:in"]
    last = gathered(model, ["block:in", "block"], x, calls="last")
    assert list(last) == ["input", "block:in", "block"]
    assert torch.equal(last["block:in"], gathered(model, "block:in", x)["block:in:2"])
    declared = small()
    declared.sites = {"layers": ["relu"], "blocks": ["head:in"]}
    assert resolve_sites(declared, "blocks") == ("input", "head:in")
    assert resolve_sites(declared, "layers:in") == ("input", "relu:in")


def test_a_forward_pass_ends_before_the_module_whose_input_is_the_last_site() -> None:
    model, x = Functional(), torch.randn(4, 6)
    ran: list[str] = []
    model.head.register_forward_hook(lambda *_: ran.append("head"))
    with tap(model, "head:in", consume=lambda *_: None, stop=True):
        assert model(x) is not None
        assert model(x) is None
    assert ran == ["head"]


def test_hooks_on_inputs_come_off() -> None:
    model = Functional()
    with pytest.raises(ZeroDivisionError), tap(model, "*:in", consume=lambda *_: 1 / 0):
        model(torch.randn(2, 6))
    assert not any(module._forward_pre_hooks or module._forward_hooks for module in model.modules())


def test_the_calls_of_a_forward_pass_tell_what_was_given() -> None:
    with recorded_calls(Functional()) as calls:
        model = Functional()
        assert calls == []
    with recorded_calls(model) as calls:
        model(torch.randn(4, 6))
    assert [(call.given_site, call.given, call.shape) for call in calls] == [
        ("first:in", (4, 6), (4, 5)),
        ("block:in", (4, 5), (4, 5)),
        ("block:in:2", (4, 5), (4, 5)),
        ("head:in", (4, 5), (4, 3)),
    ]


# --- names that could be two things


class Doubled(nn.Module):
    """`r` is called twice, and another module has the name of its second call."""

    def __init__(self, *, twice: bool = True) -> None:
        super().__init__()
        self.twice = twice
        self.add_module("r", nn.Linear(3, 3))
        self.add_module("r:2", nn.Linear(3, 4))

    def forward(self, x: Tensor) -> Tensor:
        x = self.r(self.r(x)) if self.twice else self.r(x)
        return self.get_submodule("r:2")(x)


def test_a_module_with_the_name_of_a_call_is_not_taken_for_it() -> None:
    x = torch.randn(2, 3)
    with pytest.raises(SiteError) as caught:
        gathered(Doubled(), ["r", "r:2"], x)
    assert str(caught.value) == (
        "Call 2 of the module `r` would be the site `r:2`, which is the name of another module. "
        "Rename that module, or read only last calls (`calls='last'`)."
    )
    for model, sites, options in (
        (Doubled(twice=False), ["r", "r:2"], {}),
        (Doubled(), ["r:1", "r:2"], {}),
        (Doubled(), ["r", "r:2"], {"calls": "last"}),
    ):
        found = gathered(model, sites, x, **options)
        assert {site: features.shape[1] for site, features in found.items()} == {"input": 3, "r": 3, "r:2": 4}


@pytest.mark.parametrize("name", ["1:10:3", "1:2:3:4", "1:in:in"])
def test_a_call_of_a_call_is_no_site(name: str) -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
    module = name.rpartition(":")[0]
    with pytest.raises(SiteError, match=rf"^No module `{module}` in `Sequential`\.") as caught:
        resolve_sites(model, name)
    assert "`equisep sites` lists all 2." in str(caught.value)


@pytest.mark.parametrize("name", ["", " ", ":in", ":2"])
def test_an_empty_name_is_no_site(name: str) -> None:
    with pytest.raises(SiteError, match=r"^An empty name is no site\. Name modules of `Small`, or use `auto`"):
        resolve_sites(small(), [name])


@pytest.mark.parametrize("name", ["input:2", "input:in"])
def test_the_raw_input_comes_once_and_is_given_to_no_module(name: str) -> None:
    with pytest.raises(SiteError, match=rf"^No site `{name}`: the raw input `input` is no module and comes once\."):
        resolve_sites(small(), name)
    model = nn.Sequential()
    model.add_module("input", nn.Linear(3, 3))
    model.add_module("again", nn.ReLU())
    assert resolve_sites(model, "input:in") == ("input", "input:1:in")
    assert list(gathered(model, ["input:in", "input:1"], torch.randn(2, 3))) == ["input", "input:1:in", "input:1"]
