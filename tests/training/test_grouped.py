"""Many networks as one module: the same numbers as each alone, or a refusal; never other numbers."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import relu
from trained_alone import worst

from equisep.errors import InputError, ModelError
from equisep.models import MODELS
from equisep.training import StackedModule, stack_modules
from equisep.training.grouped import MemberLinear, Memberwise
from models.network_families import SMOKE, smoke

ROUNDING = 1e-9
GRAY, COLOR = (1, 32, 32), (3, 6, 6)
UNSTACKED = "Train these networks one after the other with `train`."


def made(make: Callable[[], nn.Module], members: int = 3) -> list[nn.Module]:
    """Networks of different weights in float64."""
    found = []
    for seed in range(members):
        torch.manual_seed(seed)
        found.append(make().to(torch.float64))
    return found


def chain(*parts: nn.Module, width: int) -> Callable[[], nn.Module]:
    """A network of these parts after a convolution to 4 channels, with a classifier at the end; made anew each time."""

    def make() -> nn.Module:
        own = [type(part)(**options(part)) if type(part) in REMADE else part for part in parts]
        return nn.Sequential(nn.Conv2d(3, 4, 3), *own, nn.Flatten(), nn.Linear(width, 5))

    return make


REMADE: dict[type[nn.Module], tuple[str, ...]] = {
    nn.Conv2d: (
        "in_channels",
        "out_channels",
        "kernel_size",
        "groups",
        "padding_mode",
        "padding",
        "dilation",
        "stride",
    ),
    nn.BatchNorm2d: ("num_features", "affine", "track_running_stats", "eps", "momentum"),
    nn.Linear: ("in_features", "out_features"),
}


def options(part: Any) -> dict[str, Any]:
    return {name: getattr(part, name) for name in REMADE[type(part)]}


def agree(networks: list[nn.Module], sample: tuple[int, ...]) -> StackedModule:
    """Scores, gradients and buffers of a stack are those of its networks, in both modes."""
    stacked = stack_modules(networks, sample=sample)
    x = torch.randn(4, len(networks), *sample, dtype=torch.float64)
    for training in (True, False):
        stacked.train(training).zero_grad()
        scores = stacked(x)
        scores.square().sum().backward()
        for member, network in enumerate(networks):
            network.train(training).zero_grad()
            own = network(x[:, member])
            own.square().sum().backward()
            assert worst({"scores": scores[:, member].detach()}, {"scores": own.detach()}) < ROUNDING
            assert worst(stacked.state(member), network.state_dict()) < ROUNDING
            for name, value in network.named_parameters():
                whole = stacked.network.get_parameter(name).grad
                assert whole is not None and value.grad is not None
                slope = whole.view(len(networks), *value.shape)[member]
                assert float((slope - value.grad).norm()) <= ROUNDING * (1 + float(value.grad.norm())), name
    return stacked


@pytest.mark.parametrize("name", sorted(set(MODELS) - {"densenet161"}))
def test_every_family_but_densenet_can_be_stacked(name: str) -> None:
    networks = [smoke(name, seed=seed).to(torch.float64) for seed in (0, 1)]
    stacked = stack_modules(networks, sample=GRAY)
    x = torch.randn(3, 2, *GRAY, dtype=torch.float64)
    scores = stacked.eval()(x)
    for member, network in enumerate(networks):
        own = network.eval()(x[:, member])
        assert worst({"scores": scores[:, member].detach()}, {"scores": own.detach()}) < ROUNDING
        network.load_state_dict(stacked.state(member), strict=True)


def test_densenet_concatenates_channels_and_is_refused() -> None:
    with pytest.raises(
        ModelError, match=r"^`DenseNet161` cannot be stacked: in evaluation mode network 0 of 2 gives other "
    ):
        stack_modules([smoke("densenet161", seed=seed) for seed in (0, 1)], sample=GRAY)


def test_one_network_is_a_stack_whatever_it_does_with_its_channels() -> None:
    stack_modules([smoke("densenet161")], sample=GRAY)


@pytest.mark.parametrize("members", [1, 2, 5])
@pytest.mark.parametrize("name", ["resnet-mixed", "resnet20", "vgg11-wide"])
def test_scores_gradients_and_buffers_are_those_of_each_network(name: str, members: int) -> None:
    size = (1, 32, 32) if name == "vgg11-wide" else (1, 8, 8)
    changed = SMOKE[name] | ({"size": 8} if name == "resnet-mixed" else {})
    agree(made(lambda: MODELS[name](**changed), members), size)


@pytest.mark.parametrize(
    "make",
    [
        chain(nn.Conv2d(4, 6, 3, groups=2), nn.BatchNorm2d(6), width=6 * 2 * 2),
        chain(nn.Conv2d(4, 4, 3, groups=4), nn.ReLU(), width=4 * 2 * 2),
        chain(nn.Conv2d(4, 2, 3, padding=1, padding_mode="circular"), width=2 * 4 * 4),
        chain(nn.Conv2d(4, 2, 3, padding=2, padding_mode="reflect", dilation=2), width=2 * 4 * 4),
        chain(nn.Conv2d(4, 2, (1, 3), stride=(2, 1), padding=(0, 1)), width=2 * 2 * 4),
        chain(nn.BatchNorm2d(4, affine=False), width=4 * 4 * 4),
        chain(nn.BatchNorm2d(4, track_running_stats=False), width=4 * 4 * 4),
        chain(nn.BatchNorm2d(4, momentum=0.5, eps=0.1), width=4 * 4 * 4),
        chain(nn.Softmax(dim=1), width=4 * 4 * 4),  # over the channels of a member, not of all
        chain(nn.ChannelShuffle(2), width=4 * 4 * 4),
        chain(nn.PixelShuffle(2), width=8 * 8),
        chain(nn.GLU(dim=1), width=2 * 4 * 4),
        chain(nn.LocalResponseNorm(3, alpha=1.0), width=4 * 4 * 4),
        chain(nn.InstanceNorm2d(4), nn.ELU(), width=4 * 4 * 4),
        chain(nn.MaxPool2d(2), nn.GELU(), nn.AdaptiveAvgPool2d(1), nn.Identity(), width=4),
        chain(nn.Dropout(0.0), width=4 * 4 * 4),
        lambda: nn.Sequential(nn.Flatten(), nn.Linear(3 * 6 * 6, 7, bias=False), nn.BatchNorm1d(7), nn.Linear(7, 2)),
    ],
)  # fmt: skip
def test_parts_and_their_settings(make: Callable[[], nn.Module]) -> None:
    agree(made(make), COLOR)


def test_a_lone_layer_is_a_network() -> None:
    stacked = agree(made(lambda: nn.Linear(4, 3)), (4,))
    assert isinstance(stacked.network, MemberLinear)


def test_a_part_under_two_names_stays_one_part() -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Conv2d(3, 3, 3, padding=1)
            self.second = self.first
            self.head = nn.Linear(3, 2)

        def forward(self, x: Tensor) -> Tensor:
            logits: Tensor = self.head(self.second(relu(self.first(x))).mean(dim=(2, 3)))
            return logits

    stacked: Any = agree(made(Twice), COLOR)
    assert stacked.network.first is stacked.network.second


def test_only_parts_that_may_mix_channels_are_applied_memberwise() -> None:
    stacked = stack_modules([smoke("resnet20", seed=seed) for seed in (0, 1)], sample=GRAY)
    wrapped = {type(part.part).__name__ for part in stacked.modules() if isinstance(part, Memberwise)}
    assert wrapped == {"PadShortcut"}


class Rewired(nn.Module):
    """A convolution, its features mixed in some way, a classifier."""

    def __init__(self, mix: Callable[[Tensor], Tensor], channels: int = 4) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(channels)
        self.head = nn.Linear(channels, 2)
        self.mix = mix

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.head(self.norm(self.mix(self.conv(x))).mean(dim=(2, 3)))
        return logits


@pytest.mark.parametrize(
    ("mix", "channels"),
    [
        (lambda h: torch.cat([h, relu(h)], dim=1), 8),
        (lambda h: h.flip(1), 4),
        (lambda h: h.roll(1, dims=1), 4),
        (lambda h: h - h.mean(dim=1, keepdim=True), 4),
        (lambda h: h.softmax(dim=1), 4),
        (lambda h: h + 1e-3 * h.sum(dim=(1, 2, 3), keepdim=True), 4),
        (lambda h: h + torch.randn_like(h), 4),
        (lambda h: torch.dropout(h, 0.5, train=True), 4),
    ],
    ids=["concatenated", "flipped", "rolled", "centered", "softmax", "a touch of all", "noise", "dropout"],
)
def test_what_mixes_members_is_refused(mix: Callable[[Tensor], Tensor], channels: int) -> None:
    with pytest.raises(
        ModelError, match=r"^`Rewired` cannot be stacked: in (evaluation|training) mode network \d of 3 gives "
    ):
        stack_modules(made(lambda: Rewired(mix, channels)), sample=COLOR)


def test_what_mixes_members_only_while_training_is_refused() -> None:
    class Sometimes(Rewired):
        def forward(self, x: Tensor) -> Tensor:
            h = self.conv(x)
            logits: Tensor = self.head(self.norm(h.flip(1) if self.training else h).mean(dim=(2, 3)))
            return logits

    with pytest.raises(ModelError, match="in training mode network 0 of 3 gives other numbers than alone"):
        stack_modules(made(lambda: Sometimes(relu)), sample=COLOR)


class RewiredLate(Rewired):
    """The mixing behind BatchNorm, which no running statistic sees."""

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.head(self.mix(self.norm(self.conv(x))).mean(dim=(2, 3)))
        return logits


@pytest.mark.parametrize("alike", [True, False])
def test_equal_weights_and_zeros_hide_no_mistake(alike: bool) -> None:
    """A scale of zero before the mixing, and members that are copies of each other, as one seed at five rates makes them."""
    networks = made(lambda: RewiredLate(lambda h: h.flip(1)))
    for network in networks:
        network.load_state_dict(networks[0].state_dict() if alike else network.state_dict())
        nn.init.zeros_(network.get_parameter("norm.weight"))
    with pytest.raises(ModelError, match="gives other numbers than alone"):
        stack_modules(networks, sample=COLOR)


def test_a_forward_pass_that_counts_on_its_channels_is_refused_with_the_reason() -> None:
    with pytest.raises(
        ModelError, match=r"^`Rewired` cannot run as a stack of 3: .+\. Train these networks one after the"
    ):
        stack_modules(made(lambda: Rewired(lambda h: h * torch.ones(1, 4, 1, 1, dtype=h.dtype))), sample=COLOR)


def test_networks_and_the_random_state_are_left_as_they_were() -> None:
    networks = [smoke("resnet-2-layer", seed=seed) for seed in (0, 1)]
    before = [{name: value.clone() for name, value in network.state_dict().items()} for network in networks]
    networks[1].eval()
    state = torch.get_rng_state()
    stacked = stack_modules(networks, sample=GRAY)
    with torch.no_grad():
        for value in (*stacked.parameters(), *stacked.buffers()):
            value.fill_(7)
    assert networks[0].training and not networks[1].training
    assert torch.equal(torch.get_rng_state(), state)
    for network, was in zip(networks, before, strict=True):
        assert all(torch.equal(value, was[name]) for name, value in network.state_dict().items())


class Scaled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(3))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.scale


def tied() -> nn.Module:
    network = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    network[1].weight = network[0].weight
    return network


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (
            lambda: nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4)),
            "`1` is a LayerNorm and holds `weight`, which only BatchNorm1d, BatchNorm2d, Conv2d, Linear may in a stack.",
        ),
        (
            Scaled,
            "the network is a Scaled and holds `scale`, which only BatchNorm1d, BatchNorm2d, Conv2d, Linear may in a stack.",
        ),
        (
            lambda: nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(3, 3))),
            "`0` is a ParametrizedLinear and holds `bias`, which only BatchNorm1d, BatchNorm2d, Conv2d, Linear may in a stack.",
        ),
        (
            lambda: nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.1)),
            "`1` is a Dropout, which would draw other numbers than alone.",
        ),
        (
            lambda: nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4, momentum=None)),
            "`1` averages statistics without a momentum, which no stack does.",
        ),
        (tied, "`0.weight` and `1.weight` are one tensor, which a stack would tear apart."),
    ],
)
def test_parts_without_a_stacked_form_are_refused_by_name(make: Callable[[], nn.Module], sentence: str) -> None:
    with pytest.raises(ModelError) as caught:
        stack_modules([make(), make()], sample=(3,))
    assert str(caught.value) == f"{sentence} {UNSTACKED}"


def frozen() -> nn.Module:
    return nn.Sequential(nn.Linear(3, 4).requires_grad_(False), nn.ReLU())


@pytest.mark.parametrize(
    ("first", "other", "difference"),
    [
        (lambda: nn.Linear(3, 4), lambda: nn.Linear(3, 5), ("the network", "Linear(in_features=3, out_features=4, bias=True)",
         "Linear(in_features=3, out_features=5, bias=True)")),
        (lambda: MODELS["vgg11"](width_multiplier=1 / 32), lambda: MODELS["vgg13"](width_multiplier=1 / 32),
         ("`depth`", "11", "13")),
        (lambda: nn.Sequential(nn.ReLU()), lambda: nn.Sequential(nn.GELU()), ("`0`", "ReLU()", "GELU(approximate='none')")),
        (lambda: nn.Sequential(nn.ReLU()), lambda: nn.Sequential(nn.ReLU(), nn.ReLU()), ("`1`", "not there", "ReLU()")),
        (lambda: nn.Sequential(nn.ReLU(), nn.ReLU()), lambda: nn.Sequential(nn.ReLU()), ("`1`", "ReLU()", "not there")),
        (lambda: nn.Sequential(nn.Linear(3, 4), nn.ReLU()), frozen,
         ("`0.weight`", "float32 (4, 3) on cpu", "float32 (4, 3) on cpu (frozen)")),
        (lambda: nn.Linear(3, 4), lambda: nn.Linear(3, 4).double(),
         ("`weight`", "float32 (4, 3) on cpu", "float64 (4, 3) on cpu")),
    ],
)  # fmt: skip
def test_another_architecture_is_refused_with_the_first_difference(
    first: Callable[[], nn.Module], other: Callable[[], nn.Module], difference: tuple[str, str, str]
) -> None:
    where, one, two = difference
    with pytest.raises(ModelError) as caught:
        stack_modules([first(), first(), other()], sample=(3,))
    assert str(caught.value) == (
        f"Networks of one stack share an architecture; {where} is {one} in network 0 and {two} in network 2. "
        "Train one stack for each."
    )


def test_samples_that_no_network_takes_are_refused() -> None:
    networks = [smoke("pure-cnn", seed=seed) for seed in (0, 1)]
    for sample in ((), (1, 0, 32)):
        with pytest.raises(InputError, match=re.escape("`sample` is the shape of one sample, such as (3, 32, 32)")):
            stack_modules(networks, sample=sample)
    with pytest.raises(ModelError, match=r"^`PureCnn` cannot take samples of shape \(1, 20, 20\): .+\.$"):
        stack_modules(networks, sample=(1, 20, 20))
    with pytest.raises(
        ModelError, match=r"^`Conv2d` has to give one row of class scores a sample; found \(3, 4, 4, 4\) for 3"
    ):
        stack_modules(made(lambda: nn.Conv2d(3, 4, 3)), sample=COLOR)
    with pytest.raises(InputError, match=r"^A stack needs at least one network; found none\.$"):
        stack_modules([], sample=COLOR)


def test_members_lie_one_after_the_other_in_every_tensor() -> None:
    networks = made(lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(64, 2)), 4)
    stacked = stack_modules(networks, sample=COLOR)
    for name, value in stacked.network.state_dict().items():
        parts = value.split(max(1, len(value) // 4))
        assert len(parts) == 4
        assert all(torch.equal(part.squeeze(), network.state_dict()[name].squeeze())
                   for part, network in zip(parts, networks, strict=True))  # fmt: skip
    assert all(one.data_ptr() != two.data_ptr() for one, two in pairwise(stacked.parameters()))
