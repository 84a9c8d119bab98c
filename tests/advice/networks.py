"""Small networks of the kinds that a cut must take, and data for them."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Skip(nn.Module):
    """A residual block."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv1, self.bn1, self.relu1 = nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU()
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width)
        self.relu2 = nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.relu2(self.bn2(self.conv2(self.relu1(self.bn1(self.conv1(x))))) + x)
        return y


class SmallResNet(nn.Module):
    """A stem, two residual blocks, pooling and a linear classifier."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(1, 4, 3, padding=1)
        self.blocks = nn.Sequential(*(Skip(4) for _ in range(2)))
        self.fc = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.fc(self.blocks(self.stem(x)).mean(dim=(2, 3)))
        return y


class Encoder(nn.Module):
    """Token ids through torch's transformer encoder, with a padding mask; the mean of real tokens is classified."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(20, 8)
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.fc = nn.Linear(8, 3)

    def forward(self, ids: Tensor, key_padding_mask: Tensor) -> Tensor:
        hidden = self.encoder(self.embed(ids), src_key_padding_mask=key_padding_mask)
        kept = (~key_padding_mask).to(hidden.dtype).unsqueeze(2)
        y: Tensor = self.fc((hidden * kept).sum(dim=1) / kept.sum(dim=1))
        return y


def sequential(depth: int = 4) -> nn.Sequential:
    """Linear, BatchNorm and an activation in place, one behind the other."""
    parts = [nn.Sequential(nn.Linear(6, 6), nn.BatchNorm1d(6), nn.ReLU(inplace=True)) for _ in range(depth)]
    return nn.Sequential(*parts, nn.Linear(6, 3))


def vectors(n: int, *, seed: int, shape: tuple[int, ...] = (6,)) -> tuple[Tensor, Tensor]:
    """Three classes that overlap."""
    generator = torch.Generator().manual_seed(seed)
    y = torch.arange(n) % 3
    x = torch.randn(n, *shape, generator=generator)
    return x + y.view(-1, *[1] * len(shape)), y


def tokens(n: int, *, seed: int) -> tuple[dict[str, Tensor], Tensor]:
    """Token ids whose range tells the class, padded."""
    generator = torch.Generator().manual_seed(seed)
    y = torch.arange(n) % 3
    ids = torch.randint(0, 14, (n, 5), generator=generator) + 3 * y.unsqueeze(1)
    lengths = torch.randint(2, 6, (n, 1), generator=generator)
    return {"ids": ids, "key_padding_mask": torch.arange(5) >= lengths}, y


def exclusive_or(depth: int = 9) -> nn.Sequential:
    """Layers that change nothing, then one that makes an exclusive or of two bits linear: none before it can be spared."""
    layers: list[nn.Module] = []
    for number in range(depth):
        linear = nn.Linear(2, 2)
        weight, bias = torch.eye(2), torch.full((2,), 5.0 if number == 0 else 0.0)
        if number == depth - 1:
            weight, bias = torch.tensor([[1.0, 1.0], [-1.0, -1.0]]), torch.tensor([-10.0, 10.0])
        linear.weight.data, linear.bias.data = weight, bias
        layers += [linear, nn.ReLU()]
    last = nn.Linear(2, 2)
    last.weight.data, last.bias.data = torch.tensor([[1.0, 1.0], [-1.0, -1.0]]), torch.tensor([-1.0, 1.0])
    return nn.Sequential(*layers, last)


def bits(n: int, *, seed: int) -> tuple[Tensor, Tensor]:
    """Two noisy bits, and whether they differ."""
    generator = torch.Generator().manual_seed(seed)
    signs = 2.0 * torch.randint(0, 2, (n, 2), generator=generator) - 1
    x = signs + 0.1 * torch.randn(n, 2, generator=generator)
    return x, (signs[:, 0] != signs[:, 1]).long()
