"""The residual networks of practice in CIFAR form: ResNet18, and ResNet-20, -32, -44, -56 whose published weights load."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from torch import Tensor, nn
from torch.nn.functional import pad

from equisep.errors import InputError
from equisep.models.families.parts import check_sizes, scaled
from equisep.shapes import Float


class PadShortcut(nn.Module):
    """Option A of He et al. 2016: every `stride`-th pixel, and zero channels, as many before as after; no parameters."""

    def __init__(self, inputs: int, outputs: int, *, stride: int) -> None:
        super().__init__()
        if outputs < inputs or (outputs - inputs) % 2:
            raise InputError(f"Option A pads channels on both sides equally; {inputs} → {outputs} cannot be.")
        self.stride = stride
        self.padding = (outputs - inputs) // 2

    def forward(self, x: Float[Tensor, "b _ _ _"]) -> Float[Tensor, "b _ _ _"]:
        """The subsampled, padded image."""
        return pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, self.padding, self.padding))

    def extra_repr(self) -> str:
        """What `print` shows between the parentheses."""
        return f"stride={self.stride}, padding={self.padding}"


class BasicBlock(nn.Module):
    """ReLU(two 3 × 3 convolutions + shortcut), the first with the stride, without bias; names as published weights have."""

    def __init__(self, inputs: int, outputs: int, *, stride: int, shortcut: nn.Module) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.relu1 = nn.ReLU()
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.shortcut = shortcut
        self.relu2 = nn.ReLU()

    def forward(self, x: Float[Tensor, "b _ _ _"]) -> Float[Tensor, "b _ _ _"]:
        """The block's output, after addition and ReLU."""
        h = self.relu1(self.bn1(self.conv1(x)))
        out: Tensor = self.relu2(self.bn2(self.conv2(h)) + self.shortcut(x))
        return out


class ResNet18(nn.Module):
    """ResNet18 in CIFAR form (He & Su 2023, Fig. 10; Fang et al. 2021; Galanti & Galanti 2022, Fig. 5).

    Stem 3 × 3 of 64 channels with BatchNorm and ReLU; stages `layer1` … `layer4` of 64, 128, 256, 512 channels, two
    blocks each, stride 2 at the start of all but the first, where the shortcut is 1 × 1 convolution and BatchNorm;
    average over the image (a pool of 4 at 32 × 32, so that any size will do); classifier. Convolutions without bias.

    Sites: the stem's ReLU, each inner ReLU and each block's output (`layers`); the latter (`blocks`). After each stage:
    `sites="layer?"`. `width_multiplier` scales every width but those of the input and of the output.
    """

    def __init__(self, *, colors: int = 3, classes: int = 10, width_multiplier: float = 1.0) -> None:
        super().__init__()
        check_sizes("ResNet18", colors=colors, classes=classes, width_multiplier=width_multiplier)
        base = scaled(64, width_multiplier)
        self.conv1 = nn.Conv2d(colors, base, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(base)
        self.relu = nn.ReLU()
        self.layer1 = _stage(base, base, blocks=2, stride=1, padded=False)
        self.layer2 = _stage(base, 2 * base, blocks=2, stride=2, padded=False)
        self.layer3 = _stage(2 * base, 4 * base, blocks=2, stride=2, padded=False)
        self.layer4 = _stage(4 * base, 8 * base, blocks=2, stride=2, padded=False)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.linear = nn.Linear(8 * base, classes)

    @property
    def sites(self) -> Mapping[str, tuple[str, ...]]:
        """Where features are read, by grain."""
        return _sites(layer1=self.layer1, layer2=self.layer2, layer3=self.layer3, layer4=self.layer4)

    def forward(self, x: Float[Tensor, "b c h w"]) -> Float[Tensor, "b k"]:
        """Class scores of a batch of images."""
        h = self.relu(self.bn1(self.conv1(x)))
        h = self.layer4(self.layer3(self.layer2(self.layer1(h))))
        logits: Tensor = self.linear(self.pool(h).flatten(1))
        return logits


class CifarResNet(nn.Module):
    """ResNet-20, -32, -44, -56, … of He et al. 2016 for CIFAR-10: depth 6n + 2, three stages of n blocks.

    Stem 3 × 3 of 16 channels with BatchNorm and ReLU; stages `layer1` … `layer3` of 16, 32, 64 channels, stride 2 at
    the start of the second and third, where the shortcut is option A; average over the image; classifier. Convolutions
    without bias. Published weights load by name; their inputs are normalized with the mean and deviation of ImageNet.

    Sites: the stem's ReLU, each inner ReLU and each block's output (`layers`); the latter (`blocks`).
    `width_multiplier` scales the three widths; the first is kept even, so that zeros are padded on both sides equally.
    """

    def __init__(self, depth: int = 20, *, colors: int = 3, classes: int = 10, width_multiplier: float = 1.0) -> None:
        super().__init__()
        blocks, rest = divmod(depth - 2, 6)
        if blocks < 1 or rest:
            raise InputError(f"`CifarResNet` has a depth of 6n + 2, such as 20, 32, 44 or 56; found {depth}.")
        check_sizes("CifarResNet", colors=colors, classes=classes, width_multiplier=width_multiplier)
        base = 2 * scaled(8, width_multiplier)
        self.depth = depth
        self.conv1 = nn.Conv2d(colors, base, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(base)
        self.relu = nn.ReLU()
        self.layer1 = _stage(base, base, blocks=blocks, stride=1, padded=True)
        self.layer2 = _stage(base, 2 * base, blocks=blocks, stride=2, padded=True)
        self.layer3 = _stage(2 * base, 4 * base, blocks=blocks, stride=2, padded=True)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.linear = nn.Linear(4 * base, classes)

    @property
    def sites(self) -> Mapping[str, tuple[str, ...]]:
        """Where features are read, by grain."""
        return _sites(layer1=self.layer1, layer2=self.layer2, layer3=self.layer3)

    def forward(self, x: Float[Tensor, "b c h w"]) -> Float[Tensor, "b k"]:
        """Class scores of a batch of images."""
        h = self.relu(self.bn1(self.conv1(x)))
        h = self.layer3(self.layer2(self.layer1(h)))
        logits: Tensor = self.linear(self.pool(h).flatten(1))
        return logits


resnet20 = partial(CifarResNet, 20)
resnet32 = partial(CifarResNet, 32)
resnet44 = partial(CifarResNet, 44)
resnet56 = partial(CifarResNet, 56)


def _stage(inputs: int, outputs: int, *, blocks: int, stride: int, padded: bool) -> nn.Sequential:
    """Blocks of one width; the first takes the stride, and the shortcut where the shape changes."""
    first = BasicBlock(inputs, outputs, stride=stride, shortcut=_shortcut(inputs, outputs, stride, padded=padded))
    others = (BasicBlock(outputs, outputs, stride=1, shortcut=nn.Identity()) for _ in range(blocks - 1))
    return nn.Sequential(first, *others)


def _shortcut(inputs: int, outputs: int, stride: int, *, padded: bool) -> nn.Module:
    if stride == 1 and inputs == outputs:
        return nn.Identity()
    if padded:
        return PadShortcut(inputs, outputs, stride=stride)
    return nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))


def _sites(**stages: nn.Sequential) -> Mapping[str, tuple[str, ...]]:
    blocks = tuple(f"{name}.{index}" for name, stage in stages.items() for index in range(len(stage)))
    layers = tuple(site for name in blocks for site in (f"{name}.relu1", name))
    return {"layers": ("relu", *layers), "blocks": blocks}
