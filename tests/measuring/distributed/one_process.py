"""What the tests of shards and ranks share: small data and networks, and profiles compared number by number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from equisep.errors import EquisepError
from equisep.results import Profile

Pair = tuple[Tensor, Tensor]
EXACT = 1e-12  # relative
LIGHT: dict[str, Any] = {"metrics": ("fuzziness", "null", "ncc", "cdnv")}
QUICK: dict[str, Any] = {"metrics": ("ncc", "cdnv"), "coordinates": 0}


def data(
    sizes: tuple[int, ...] = (140, 90, 61, 16), *, seed: int = 1, d: int = 8, kind: torch.dtype = torch.float64
) -> Pair:
    draw = torch.Generator().manual_seed(seed)
    y = torch.cat([torch.full((n,), k) for k, n in enumerate(sizes)])
    centers = 2 * torch.randn(len(sizes), d, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    x = centers[y] + torch.randn(len(y), d, generator=draw, dtype=torch.float64)
    return x.to(kind), y


def batches(pair: Pair, size: int = 50) -> list[Pair]:
    return list(zip(pair[0].split(size), pair[1].split(size), strict=True)) if len(pair[1]) else []


def network(classes: int = 4, *, d: int = 8, norm: bool = True, kind: torch.dtype = torch.float64) -> nn.Sequential:
    torch.manual_seed(5)
    between: list[nn.Module] = [nn.BatchNorm1d(12)] if norm else []
    layers = [nn.Linear(d, 12), *between, nn.ReLU(), nn.Linear(12, 10), nn.ReLU(), nn.Linear(10, classes)]
    return nn.Sequential(*layers).to(kind)


def wide(features: int = 2100) -> nn.Sequential:
    """Features so wide that products are divided, in float32, whose sums must not depend on how."""
    torch.manual_seed(5)
    return nn.Sequential(nn.Linear(8, features), nn.ReLU(), nn.Linear(features, 4))


def images(n: int = 50) -> tuple[nn.Sequential, Pair]:
    """A small convolutional network and its data."""
    torch.manual_seed(6)
    model = nn.Sequential(nn.Conv2d(1, 3, 3), nn.ReLU(), nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(16, 3))
    y = torch.arange(n) % 3
    x = torch.randn(3, 1, 6, 6)[y] + torch.randn(n, 1, 6, 6)
    return model, (x, y)


def differences(one: Profile, two: Profile, *, besides: tuple[str, ...] = ("provenance",)) -> list[str]:
    """Where two profiles differ: numbers by more than `EXACT`, all else at all."""
    return list(_differing(one.to_dict(), two.to_dict(), "", besides))


def all_have(expected: Profile, found: Sequence[Any], *, besides: tuple[str, ...] = ()) -> None:
    """Every rank has the profile of one process, and says how many ranks there were."""
    for profile in found:
        assert isinstance(profile, Profile), profile
        assert profile.provenance["ranks"] == len(found)
        assert not differences(profile, expected, besides=("provenance", *besides))


def all_refuse(sentence: str, found: Sequence[Any]) -> None:
    """Every rank has ended with this sentence."""
    for error in found:
        assert isinstance(error, EquisepError), error
        assert sentence in str(error)


def _differing(a: Any, b: Any, where: str, besides: tuple[str, ...]) -> Iterator[str]:
    if isinstance(a, dict) and isinstance(b, dict):
        for key in sorted(a.keys() | b.keys()):
            if key not in besides:
                yield from _differing(a.get(key), b.get(key), f"{where}.{key}", besides)
    elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        for index, (u, v) in enumerate(zip(a, b, strict=True)):
            yield from _differing(u, v, f"{where}[{index}]", besides)
    elif isinstance(a, float) and isinstance(b, float):
        size = 1.0 if ".law" in where else 0.0  # of a law, logarithms: a number near zero is a difference of them
        if abs(a - b) > EXACT * max(abs(a), abs(b), size):
            yield f"{where}: {a} and {b}"
    elif a != b:
        yield f"{where}: {a} and {b}"
