"""The residual networks and DenseNet161: sizes counted by hand, shapes at every site, blocks as formulas."""

import pytest
import torch
from network_families import Weights, bare_conv, classifier, on_meta, parameters, shapes, unsettled
from torch import Tensor, nn
from torch.nn.functional import avg_pool2d, relu

from equisep.errors import InputError
from equisep.models import CifarResNet, DenseNet161, ResNet, ResNet18, build
from equisep.models.families.densenet import DenseLayer
from equisep.models.families.resnet import ResidualBlock
from equisep.models.families.resnet_cifar import PadShortcut

GRAY, COLOR = torch.zeros(2, 1, 32, 32), torch.zeros(2, 3, 32, 32)
X3 = torch.randn(3, 3, 32, 32, generator=torch.Generator().manual_seed(2))
colors = pytest.mark.parametrize("colors", [1, 3])


@pytest.mark.parametrize(
    ("name", "blocks"),
    [("resnet-2-layer", (2, 2, 2, 2)), ("resnet-3-layer", (3, 3, 3, 3)), ("resnet-mixed", (3, 3, 2, 2))],
)
@colors
def test_the_four_blocks_of_the_paper(name: str, blocks: tuple[int, ...], colors: int) -> None:
    model = on_meta(name, colors=colors)
    kernel = {2: 3, 3: 5}
    plain = sum(layers * bare_conv(8, 8, kernel[layers]) for layers in blocks)  # 8 copies of one color: no shortcut
    # 24 channels come in for three colors: a wider first convolution, and a 1 × 1 shortcut with BatchNorm
    more = 0 if colors == 1 else (24 - 8) * 8 * kernel[blocks[0]] ** 2 + bare_conv(24, 8, 1)
    assert parameters(model) == plain + more + classifier(8 * 32 * 32, 10)
    x = (GRAY if colors == 1 else COLOR).to("meta")
    assert model(x).shape == (2, 10)
    assert shapes(model, x, "layers") == [(8, 32, 32)] * sum(blocks)
    assert shapes(model, x, "blocks") == [(8, 32, 32)] * 4
    assert set(model.sites["blocks"]) <= set(model.sites["layers"])
    shortcuts = [type(block.shortcut) for block in model.blocks]
    assert shortcuts == [nn.Identity if colors == 1 else nn.Sequential, nn.Identity, nn.Identity, nn.Identity]


def test_layers_are_the_inner_relus_and_the_block_outputs() -> None:
    sites = on_meta("resnet-mixed").sites["layers"]
    assert sites[:3] == ("blocks.0.inner.0", "blocks.0.inner.1", "blocks.0")
    assert sites[-2:] == ("blocks.3.inner.0", "blocks.3")


@pytest.mark.parametrize("layers", [2, 3])
@pytest.mark.parametrize("inputs", [4, 6])
def test_a_block_of_the_paper_is_the_formula(layers: int, inputs: int) -> None:
    torch.manual_seed(0)
    block = unsettled(ResidualBlock(inputs, 4, layers=layers))
    of = Weights(block.state_dict())
    x = torch.randn(2, inputs, 9, 9)
    padding = {2: 1, 3: 2}[layers]
    h = x
    for index in range(layers - 1):
        h = of.conv_layer(h, f"inner.{index}", padding=padding)
    h = of.norm(of.conv(h, "outer.conv", padding=padding), "outer.norm")
    past = x if inputs == 4 else of.norm(of.conv(x, "shortcut.conv"), "shortcut.norm")
    torch.testing.assert_close(block(x), relu(h + past))


def test_the_input_is_repeated_as_often_as_the_blocks_have_channels() -> None:
    torch.manual_seed(0)
    model = unsettled(ResNet((2, 3), colors=3, width_multiplier=1 / 2, classes=4))
    h = X3.repeat(1, 4, 1, 1)
    for block in model.blocks:
        h = block(h)
    torch.testing.assert_close(model(X3), model.head(h.flatten(1)))


@colors
def test_resnet18(colors: int) -> None:
    model = on_meta("resnet18", colors=colors)
    assert parameters(model) == (
        bare_conv(colors, 64, 3)
        + 4 * bare_conv(64, 64, 3)
        + bare_conv(64, 128, 3) + 3 * bare_conv(128, 128, 3) + bare_conv(64, 128, 1)
        + bare_conv(128, 256, 3) + 3 * bare_conv(256, 256, 3) + bare_conv(128, 256, 1)
        + bare_conv(256, 512, 3) + 3 * bare_conv(512, 512, 3) + bare_conv(256, 512, 1)
        + classifier(512, 10)
    )  # fmt: skip
    x = (GRAY if colors == 1 else COLOR).to("meta")
    assert model(x).shape == (2, 10)
    stages = [(64, 32, 32), (128, 16, 16), (256, 8, 8), (512, 4, 4)]
    assert shapes(model, x, "layers") == [stages[0], *(shape for shape in stages for _ in range(4))]
    assert shapes(model, x, "blocks") == [shape for shape in stages for _ in range(2)]
    assert model.sites["layers"][:3] == ("relu", "layer1.0.relu1", "layer1.0")


def test_resnet18_is_the_formula() -> None:
    torch.manual_seed(0)
    model = unsettled(ResNet18(width_multiplier=1 / 16, classes=4))
    of = Weights(model.state_dict())

    def block(h: Tensor, name: str, stride: int) -> Tensor:
        inner = relu(of.norm(of.conv(h, f"{name}.conv1", stride=stride, padding=1), f"{name}.bn1"))
        outer = of.norm(of.conv(inner, f"{name}.conv2", padding=1), f"{name}.bn2")
        past = h if stride == 1 else of.norm(of.conv(h, f"{name}.shortcut.0", stride=2), f"{name}.shortcut.1")
        return relu(outer + past)

    h = relu(of.norm(of.conv(X3, "conv1", padding=1), "bn1"))
    for stage in (1, 2, 3, 4):
        h = block(block(h, f"layer{stage}.0", 1 if stage == 1 else 2), f"layer{stage}.1", 1)
    torch.testing.assert_close(model(X3), of.linear(avg_pool2d(h, 4).flatten(1), "linear"))


@pytest.mark.parametrize("size", [28, 96])
def test_resnet18_takes_the_images_of_mnist_and_stl10(size: int) -> None:
    assert on_meta("resnet18")(torch.zeros(2, 3, size, size, device="meta")).shape == (2, 10)


@pytest.mark.parametrize("depth", [20, 32, 44, 56])
def test_cifar_resnets(depth: int) -> None:
    n = {20: 3, 32: 5, 44: 7, 56: 9}[depth]
    model = on_meta(f"resnet{depth}")
    assert parameters(model) == (
        bare_conv(3, 16, 3)
        + 2 * n * bare_conv(16, 16, 3)
        + bare_conv(16, 32, 3) + (2 * n - 1) * bare_conv(32, 32, 3)
        + bare_conv(32, 64, 3) + (2 * n - 1) * bare_conv(64, 64, 3)
        + classifier(64, 10)
    )  # fmt: skip
    x = COLOR.to("meta")
    assert model(x).shape == (2, 10)
    stages = [(16, 32, 32), (32, 16, 16), (64, 8, 8)]
    assert shapes(model, x, "layers") == [stages[0], *(shape for shape in stages for _ in range(2 * n))]
    assert shapes(model, x, "blocks") == [shape for shape in stages for _ in range(n)]
    assert len(model.sites["layers"]) == depth - 1  # every layer but the classifier


def test_the_names_of_the_parameters_are_those_of_published_weights() -> None:
    blocks = [
        f"layer{stage}.{block}.{part}"
        for stage in (1, 2, 3)
        for block in range(3)
        for part in ("conv1", "bn1", "conv2", "bn2")
    ]
    found = {name.rsplit(".", 1)[0] for name in build("resnet20", seed=0).state_dict()}
    assert found == {"conv1", "bn1", "linear", *blocks}


def test_option_a_takes_every_second_pixel_and_pads_zeros_on_both_sides() -> None:
    x = torch.randn(2, 6, 8, 8)
    out = PadShortcut(6, 12, stride=2)(x)
    assert out.shape == (2, 12, 4, 4)
    for row in range(4):
        for column in range(4):
            assert torch.equal(out[:, 3:9, row, column], x[:, :, 2 * row, 2 * column])
    assert not out[:, :3].any() and not out[:, 9:].any()
    assert list(PadShortcut(6, 12, stride=2).parameters()) == []
    with pytest.raises(InputError, match="pads channels on both sides equally; 3 → 6 cannot be"):
        PadShortcut(3, 6, stride=2)


def test_the_cifar_resnet_is_the_formula() -> None:
    torch.manual_seed(0)
    model = unsettled(CifarResNet(20, width_multiplier=1 / 4, classes=4))
    of = Weights(model.state_dict())
    h = relu(of.norm(of.conv(X3, "conv1", padding=1), "bn1"))
    for stage, width in ((1, 4), (2, 8), (3, 16)):
        for block in range(3):
            name, stride = f"layer{stage}.{block}", 2 if stage > 1 and block == 0 else 1
            inner = relu(of.norm(of.conv(h, f"{name}.conv1", stride=stride, padding=1), f"{name}.bn1"))
            past = h
            if stride == 2:
                zeros = torch.zeros(len(h), width // 4, h.shape[2] // 2, h.shape[3] // 2)
                past = torch.cat([zeros, h[:, :, ::2, ::2], zeros], dim=1)
            h = relu(of.norm(of.conv(inner, f"{name}.conv2", padding=1), f"{name}.bn2") + past)
    torch.testing.assert_close(model(X3), of.linear(h.mean(dim=(2, 3)), "linear"))


@colors
def test_densenet161(colors: int) -> None:
    model = on_meta("densenet161", colors=colors)

    def dense(inputs: int, layers: int) -> int:
        """BatchNorm and 1 × 1 to 4·48 of all channels so far, BatchNorm and 3 × 3 to 48 of those; no bias."""
        widths = [inputs + 48 * index for index in range(layers)]
        return sum(2 * c + c * 192 + 2 * 192 + 192 * 48 * 9 for c in widths)

    def transition(inputs: int) -> int:
        return 2 * inputs + inputs * inputs // 2

    # 96 + 6·48 = 384 → 192; + 12·48 = 768 → 384; + 36·48 = 2112 → 1056; + 24·48 = 2208
    assert parameters(model) == (
        colors * 96 * 9
        + dense(96, 6) + transition(384)
        + dense(192, 12) + transition(768)
        + dense(384, 36) + transition(2112)
        + dense(1056, 24) + 2 * 2208
        + classifier(2208, 10)
    )  # fmt: skip
    x = (GRAY if colors == 1 else COLOR).to("meta")
    assert model(x).shape == (2, 10)
    assert shapes(model, x, "blocks") == [(384, 32, 32), (768, 16, 16), (2112, 8, 8), (2208, 4, 4)]
    layers = shapes(model, x, "layers")
    assert len(layers) == 2 * (6 + 12 + 36 + 24) + 3 + 1
    assert layers[:3] == [(96, 32, 32), (192, 32, 32), (144, 32, 32)]
    assert layers[12] == (384, 32, 32)  # the first transition
    assert layers[-1] == (2208, 4, 4)


def test_a_dense_layer_is_the_formula() -> None:
    torch.manual_seed(0)
    layer = unsettled(DenseLayer(5, 2))
    of = Weights(layer.state_dict())
    x = torch.randn(3, 5, 6, 6)
    new = of.conv(relu(of.norm(x, "norm1")), "conv1")
    new = of.conv(relu(of.norm(new, "norm2")), "conv2", padding=1)
    torch.testing.assert_close(layer(x), torch.cat([x, new], dim=1))


def test_densenet161_joins_its_parts_as_it_says() -> None:
    torch.manual_seed(0)
    model = unsettled(DenseNet161(width_multiplier=1 / 48, classes=4))
    of = Weights(model.state_dict())
    h = of.conv(X3, "stem", padding=1)
    for index in (1, 2, 3, 4):
        h = model.get_submodule(f"features.dense{index}")(h)
        if index < 4:
            name = f"features.transition{index}"
            h = avg_pool2d(of.conv(relu(of.norm(h, f"{name}.norm")), f"{name}.conv"), 2)
    h = avg_pool2d(relu(of.norm(h, "norm")), 4).flatten(1)
    torch.testing.assert_close(model(X3), of.linear(h, "head"))


def test_bad_wiring_is_refused() -> None:
    with pytest.raises(InputError, match=r"`ResNet` needs at least one block, each of 2 or 3 layers; found \[2, 4\]"):
        ResNet((2, 4))
    with pytest.raises(InputError, match=r"`ResNet` needs at least one block, .*; found \[\]"):
        ResNet(())
    for depth in (18, 2, -4):
        with pytest.raises(InputError, match=rf"a depth of 6n \+ 2, such as 20, 32, 44 or 56; found {depth}\."):
            CifarResNet(depth)
