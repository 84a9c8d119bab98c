"""Sites by declaration, name, glob, or a sensible choice from the module tree."""

from collections import OrderedDict

import pytest
import torch
from torch import Tensor, nn

from equisep.errors import SiteError
from equisep.models import Fnn
from equisep.taps import resolve_sites, site_modules


def net() -> Fnn:
    return Fnn(4, width=5, inputs=3, classes=2)


def conv_net() -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 8, 3), nn.ReLU(inplace=True),
        nn.Flatten(), nn.Linear(8, 3),
    )  # fmt: skip


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.act = nn.GELU()

    def forward(self, x: Tensor) -> Tensor:
        return x + self.act(self.linear(x))


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Linear(4, 6)
        self.layers = nn.ModuleList(Block(6) for _ in range(3))
        self.head = nn.Linear(6, 2)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


@pytest.mark.parametrize("grain", ["auto", "layers", "blocks"])
def test_declared_sites_are_taken(grain: str) -> None:
    assert resolve_sites(net(), grain) == ("input", "blocks.0", "blocks.1", "blocks.2")


def test_names_are_taken_in_the_order_asked_without_doubles_and_the_input_first() -> None:
    assert resolve_sites(net(), ["head", "blocks.0.relu", "head", "input"]) == ("input", "head", "blocks.0.relu")
    assert resolve_sites(net(), "head") == ("input", "head")


def test_one_star_stands_for_one_part_of_a_name() -> None:
    assert resolve_sites(net(), "blocks.*") == ("input", "blocks.0", "blocks.1", "blocks.2")
    assert resolve_sites(net(), "blocks.*.relu") == ("input", "blocks.0.relu", "blocks.1.relu", "blocks.2.relu")
    assert resolve_sites(net(), "*") == ("input", "blocks", "head")
    assert resolve_sites(net(), "blocks.?.n*") == ("input", "blocks.0.norm", "blocks.1.norm", "blocks.2.norm")


def test_two_stars_stand_for_any_number_of_parts() -> None:
    assert resolve_sites(net(), "**.linear") == ("input", "blocks.0.linear", "blocks.1.linear", "blocks.2.linear")
    assert resolve_sites(net(), "**") == ("input", *site_modules(net()))


def test_a_dot_in_a_glob_is_a_dot() -> None:
    with pytest.raises(SiteError, match=r"The glob `blocks\.0\.r\*\.x` matches none of the 14 modules of `Fnn`"):
        resolve_sites(net(), "blocks.0.r*.x")
    with pytest.raises(SiteError, match="matches none"):
        resolve_sites(net(), "blocksx*")


def test_a_name_that_does_not_exist_gives_near_matches_and_the_count() -> None:
    with pytest.raises(SiteError) as caught:
        resolve_sites(net(), ["blocks.2.rele"])
    text = str(caught.value)
    assert text.startswith("No module `blocks.2.rele` in `Fnn`. Did you mean `blocks.2.relu`")
    assert text.endswith("`equisep sites` lists all 14.")


def test_a_name_near_to_nothing_gives_no_false_hint() -> None:
    with pytest.raises(SiteError) as caught:
        resolve_sites(net(), "zzzzzz")
    assert str(caught.value) == "No module `zzzzzz` in `Fnn`. `equisep sites` lists all 14."


def test_a_glob_without_a_match_says_what_the_stars_mean() -> None:
    with pytest.raises(SiteError, match=r"`\*` stands for one part of a name, `\*\*` for any number\.$"):
        resolve_sites(net(), "layers.*")


@pytest.mark.parametrize("nothing", [[], ["input"], "input"])
def test_the_input_alone_is_no_choice(nothing: object) -> None:
    with pytest.raises(SiteError, match=r"No site was asked for\. Name modules of `Fnn`, or use `auto`\."):
        resolve_sites(net(), nothing)  # type: ignore[arg-type]


def test_a_conv_net_is_read_after_its_activations() -> None:
    assert resolve_sites(conv_net()) == ("input", "2", "5")


def test_a_net_without_activation_modules_is_read_after_its_weights_but_for_the_classifier() -> None:
    model = nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5), nn.Dropout(), nn.Linear(5, 6), nn.Linear(6, 2))
    assert resolve_sites(model) == ("input", "0", "1", "3")


def test_a_single_linear_layer_is_its_own_site() -> None:
    assert resolve_sites(nn.Sequential(nn.Linear(4, 2))) == ("input", "0")
    assert resolve_sites(Fnn(1)) == ("input", "head")


def test_blocks_are_repeated_siblings_of_one_class() -> None:
    assert resolve_sites(Residual(), "blocks") == ("input", "layers.0", "layers.1", "layers.2")
    assert resolve_sites(Residual(), "layers") == ("input", "layers.0.act", "layers.1.act", "layers.2.act")


def test_blocks_fall_back_to_layers_where_nothing_repeats() -> None:
    assert resolve_sites(conv_net(), "blocks") == ("input", "2", "5")


def test_blocks_inside_blocks_are_not_listed_twice() -> None:
    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Sequential(Block(3), Block(3))

    model = nn.Sequential(Outer(), Outer())
    assert resolve_sites(model, "blocks") == ("input", "0", "1")


def test_a_model_without_modules_is_refused() -> None:
    class Bare(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x

    with pytest.raises(
        SiteError, match=r"`Bare` has no module inside .* `equisep.fuzziness\(x, y\)` gives D of the inputs"
    ):
        resolve_sites(Bare())


def test_attributes_called_sites_that_are_no_mapping_are_ignored() -> None:
    model = conv_net()
    model.sites = torch.zeros(3)
    assert resolve_sites(model) == ("input", "2", "5")


def test_two_stars_and_a_dot_stand_for_no_part_too() -> None:
    model = torch.nn.Sequential(
        OrderedDict(relu=torch.nn.ReLU(), inner=torch.nn.Sequential(OrderedDict(relu=torch.nn.ReLU())))
    )
    assert resolve_sites(model, "**.relu") == ("input", "relu", "inner.relu")
