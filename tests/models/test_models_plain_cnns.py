"""AlexNet, VGG, the pure CNN and ConvNet-d-w: sizes counted by hand, shapes at every site, forward passes as formulas."""

import pytest
import torch
from network_families import Weights, classifier, conv, hidden, on_meta, parameters, shapes, unsettled
from torch.nn.functional import max_pool2d, relu

from equisep.errors import InputError
from equisep.models import AlexNet, ConvNet, PureCnn, Vgg
from equisep.models.families.alexnet import alexnet_wide
from equisep.models.families.parts import Repeat
from equisep.models.families.vgg import vgg_wide

GRAY, COLOR = torch.zeros(2, 1, 32, 32), torch.zeros(2, 3, 32, 32)
X = torch.randn(3, 1, 32, 32, generator=torch.Generator().manual_seed(1))
X3 = torch.randn(3, 3, 32, 32, generator=torch.Generator().manual_seed(2))
colors = pytest.mark.parametrize("colors", [1, 3])
depths = pytest.mark.parametrize("depth", [11, 13, 16, 19])

# (inputs, outputs) of the convolutions after the first, which takes the image to 64 channels
VGG11 = [(64, 128), (128, 256), (256, 256), (256, 512), (512, 512), (512, 512), (512, 512)]
VGG13 = [(64, 64), (64, 128), (128, 128), (128, 256), (256, 256), (256, 512), (512, 512), (512, 512), (512, 512)]
VGG16 = [*VGG13, (256, 256), (512, 512), (512, 512)]  # one more in each of the last three blocks
VGG19 = [*VGG16, (256, 256), (512, 512), (512, 512)]  # and another
VGG = {11: VGG11, 13: VGG13, 16: VGG16, 19: VGG19}
# convolutions in each block
COUNTS = {11: (1, 1, 2, 2, 2), 13: (2, 2, 2, 2, 2), 16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}
BLOCKS = [(64, 32, 32), (128, 16, 16), (256, 8, 8), (512, 4, 4), (512, 2, 2)]  # before each pool


def test_repeated_channels_are_whole_copies() -> None:
    assert torch.equal(Repeat(3)(X3), torch.cat([X3, X3, X3], dim=1))
    assert Repeat(1)(X3) is X3


@colors
def test_alexnet_original(colors: int) -> None:
    model = on_meta("alexnet", colors=colors)
    convolutions = [
        conv(colors, 64, 11), conv(64, 192, 5), conv(192, 384, 3), conv(384, 256, 3), conv(256, 256, 3),
    ]  # fmt: skip
    assert parameters(model) == (sum(convolutions) + hidden(256, 4096) + hidden(4096, 4096) + classifier(4096, 10))
    x = (GRAY if colors == 1 else COLOR).to("meta")
    assert model(x).shape == (2, 10)
    # 32 → 8 by the stride of 4, then 4, 2 and 1 by the pools
    layers = [(64, 8, 8), (192, 4, 4), (384, 2, 2), (256, 2, 2), (256, 2, 2), (4096,), (4096,)]
    assert shapes(model, x, "layers") == layers
    assert shapes(model, x, "blocks") == [layers[0], layers[1], layers[4], layers[5], layers[6]]


@colors
def test_alexnet_wide(colors: int) -> None:
    model = on_meta("alexnet-wide", colors=colors)
    convolutions = [
        conv(32 * colors, 64, 5), conv(64, 192, 5), conv(192, 384, 5), conv(384, 256, 5), conv(256, 256, 5),
    ]  # fmt: skip
    assert parameters(model) == (
        sum(convolutions) + hidden(256 * 4 * 4, 4096) + hidden(4096, 4096) + classifier(4096, 10)
    )
    x = (GRAY if colors == 1 else COLOR).to("meta")
    assert model(x).shape == (2, 10)
    layers = [(64, 32, 32), (192, 16, 16), (384, 8, 8), (256, 8, 8), (256, 8, 8), (4096,), (4096,)]
    assert shapes(model, x, "layers") == layers


@pytest.mark.parametrize("wide", [True, False])
def test_the_forward_pass_of_alexnet_is_the_formula(wide: bool) -> None:
    torch.manual_seed(0)
    model = unsettled(AlexNet(wide=wide, width_multiplier=1 / 16, colors=3, classes=4))
    of = Weights(model.state_dict())
    h = X3.repeat(1, 2, 1, 1) if wide else X3  # 32/16 copies
    first, third = ((1, 2), 2) if wide else ((4, 5), 1)
    h = of.conv_layer(h, "features.block1.0", stride=first[0], padding=first[1])
    h = max_pool2d(h, 3, stride=2, padding=1)
    h = max_pool2d(of.conv_layer(h, "features.block2.0", padding=2), 3, stride=2, padding=1)
    for index in range(3):
        h = of.conv_layer(h, f"features.block3.{index}", padding=third)
    h = max_pool2d(h, 3, stride=2, padding=1).flatten(1)
    h = of.linear_layer(of.linear_layer(h, "hidden.0"), "hidden.1")
    torch.testing.assert_close(model(X3), of.linear(h, "head"))


@depths
@colors
def test_vgg_original(depth: int, colors: int) -> None:
    model = on_meta(f"vgg{depth}", colors=colors)
    convolutions = [conv(colors, 64, 3), *(conv(a, b, 3) for a, b in VGG[depth])]
    assert len(convolutions) == depth - 3  # the usual name counts three linear layers; this form has one
    assert parameters(model) == sum(convolutions) + classifier(512, 10)
    x = (GRAY if colors == 1 else COLOR).to("meta")
    assert model(x).shape == (2, 10)
    layers = [shape for shape, count in zip(BLOCKS, COUNTS[depth], strict=True) for _ in range(count)]
    assert shapes(model, x, "layers") == layers
    assert shapes(model, x, "blocks") == BLOCKS


@depths
@colors
def test_vgg_wide(depth: int, colors: int) -> None:
    model = on_meta(f"vgg{depth}-wide", colors=colors)
    convolutions = [conv(16 * colors, 64, 5), *(conv(a, b, 5) for a, b in VGG[depth])]
    assert parameters(model) == (sum(convolutions) + hidden(512, 4096) + hidden(4096, 4096) + classifier(4096, 10))
    x = (GRAY if colors == 1 else COLOR).to("meta")
    assert model(x).shape == (2, 10)
    layers = [shape for shape, count in zip(BLOCKS, COUNTS[depth], strict=True) for _ in range(count)]
    assert shapes(model, x, "layers") == [*layers, (4096,), (4096,)]
    assert shapes(model, x, "blocks") == [*BLOCKS, (4096,), (4096,)]


@pytest.mark.parametrize("wide", [True, False])
def test_the_forward_pass_of_vgg_is_the_formula(wide: bool) -> None:
    torch.manual_seed(0)
    make = vgg_wide if wide else Vgg
    model = unsettled(make(16, width_multiplier=1 / 8, classes=4))
    of = Weights(model.state_dict())
    h = X.repeat(1, 2, 1, 1) if wide else X
    for block, count in enumerate(COUNTS[16], start=1):
        for index in range(count):
            h = of.conv_layer(h, f"features.block{block}.{index}", padding=2 if wide else 1)
        h = max_pool2d(h, 2)
    h = h.flatten(1)
    if wide:
        h = of.linear_layer(of.linear_layer(h, "hidden.0"), "hidden.1")
    torch.testing.assert_close(model(X), of.linear(h, "head"))


def test_factors_of_vgg_can_be_varied_one_by_one() -> None:
    larger = on_meta("vgg11", size=64)
    assert larger.head.in_features == 512 * 2 * 2
    assert larger(torch.zeros(2, 1, 64, 64, device="meta")).shape == (2, 10)
    unpooled = on_meta("vgg11", pool=False)
    assert unpooled.head.in_features == 512 * 32 * 32
    assert shapes(unpooled, GRAY, "blocks") == [(c, 32, 32) for c, _, _ in BLOCKS]
    deeper = on_meta("vgg11", hidden=(4096, 4096), kernel=7)
    convolutions = [conv(1, 64, 7), *(conv(a, b, 7) for a, b in VGG11)]
    assert parameters(deeper) == sum(convolutions) + hidden(512, 4096) + hidden(4096, 4096) + classifier(4096, 10)


def test_every_width_but_the_images_and_the_classes_is_multiplied() -> None:
    model = alexnet_wide(colors=3, width_multiplier=1 / 32)
    assert parameters(model) == (
        conv(3, 2, 5) + conv(2, 6, 5) + conv(6, 12, 5) + conv(12, 8, 5) + conv(8, 8, 5)
        + hidden(8 * 4 * 4, 128) + hidden(128, 128) + classifier(128, 10)
    )  # fmt: skip
    model = vgg_wide(11, width_multiplier=1 / 8)
    convolutions = [conv(2, 8, 5), *(conv(a // 8, b // 8, 5) for a, b in VGG11)]
    assert parameters(model) == sum(convolutions) + hidden(64, 512) + hidden(512, 512) + classifier(512, 10)


@pytest.mark.parametrize(("colors", "channels"), [(1, 64), (3, 16)])  # Fashion-MNIST, CIFAR-10
def test_the_pure_cnn(colors: int, channels: int) -> None:
    model = on_meta("pure-cnn", colors=colors, channels=channels)
    assert parameters(model) == (
        conv(colors, channels, 3) + 7 * conv(channels, channels, 3) + classifier(channels * 32 * 32, 10)
    )
    x = (GRAY if colors == 1 else COLOR).to("meta")
    assert model(x).shape == (2, 10)
    assert shapes(model, x, "layers") == [(channels, 32, 32)] * 8
    assert model.sites["layers"] == model.sites["blocks"]


def test_the_forward_pass_of_the_pure_cnn_is_the_formula() -> None:
    torch.manual_seed(0)
    model = unsettled(PureCnn(channels=5, classes=4))
    of = Weights(model.state_dict())
    h = X
    for index in range(8):
        h = of.conv_layer(h, f"features.{index}", padding=1)
    torch.testing.assert_close(model(X), of.linear(h.flatten(1), "head"))


@pytest.mark.parametrize("depth", [3, 16])
@pytest.mark.parametrize("width", [100, 400])
def test_convnet(depth: int, width: int) -> None:
    model = on_meta("convnet", depth=depth, width=width)
    stem = conv(3, width, 2) + conv(width, width, 2)
    assert parameters(model) == stem + depth * conv(width, width, 3) + classifier(width * 8 * 8, 10)
    assert model(COLOR.to("meta")).shape == (2, 10)
    assert shapes(model, COLOR, "layers") == [(width, 8, 8)] * depth
    assert model.sites["layers"] == model.sites["blocks"]


def test_the_forward_pass_of_convnet_is_the_formula() -> None:
    torch.manual_seed(0)
    model = unsettled(ConvNet(3, width=5, classes=4))
    of = Weights(model.state_dict())
    h = of.norm(of.conv(X3, "stem.conv1", stride=2), "stem.norm1")  # no ReLU between the two
    h = relu(of.norm(of.conv(h, "stem.conv2", stride=2), "stem.norm2"))
    for index in range(3):
        h = of.conv_layer(h, f"layers.{index}", padding=1)
    torch.testing.assert_close(model(X3), of.linear(h.flatten(1), "head"))


def test_bad_sizes_are_refused() -> None:
    with pytest.raises(InputError, match=r"`Vgg` has a depth of 11, 13, 16, 19; found 12\."):
        Vgg(12)
    with pytest.raises(InputError, match=r"`Vgg` leaves nothing of an image of size=28\. Use larger images\."):
        Vgg(11, size=28)
    with pytest.raises(InputError, match=r"`ConvNet` leaves nothing of an image of size=3\."):
        ConvNet(size=3)
    with pytest.raises(InputError, match=r"`Vgg` needs an odd kernel, .*; found 4"):
        Vgg(11, kernel=4)
    with pytest.raises(InputError, match=r"`PureCnn` needs an odd kernel, .*; found 2"):
        PureCnn(kernel=2)
    with pytest.raises(InputError, match=r"`Vgg` needs repeat, hidden, .*found repeat=1, hidden=0"):
        Vgg(11, hidden=(5, 0))
    with pytest.raises(InputError, match=r"`PureCnn` needs depth, channels, .*found depth=0"):
        PureCnn(0)
