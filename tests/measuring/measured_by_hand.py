"""A small network, small data, and every number of a profile computed from features captured without the library's taps."""

from collections.abc import Iterable
from functools import cache

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from equisep.models import Fnn, build
from equisep.results import Profile
from equisep.training import Recipe, train

Batch = tuple[Tensor, Tensor]
SIZES = {"balanced": [30, 30, 30, 30], "imbalanced": [60, 35, 20, 9]}


def network() -> Fnn:
    """An Fnn trained a little on `samples()`, in training mode; a new copy every time."""
    model = Fnn(widths=[9, 7, 6], inputs=8, classes=4)
    model.load_state_dict(_trained())
    return model


@cache
def _trained() -> dict[str, Tensor]:
    model = build("fnn", seed=0, widths=[9, 7, 6], inputs=8, classes=4)
    train(model, *samples(seed=3), recipe=Recipe(epochs=30, batch_size=30, rate=0.01))
    return model.state_dict()


def samples(sizes: Iterable[int] = (30, 30, 30, 30), *, seed: int = 1, d: int = 8, spread: float = 1.0) -> Batch:
    """Gaussian classes of the given sizes around different centers, in a mixed order."""
    generator = torch.Generator().manual_seed(seed)
    centers = torch.randn(len(list(sizes)), d, generator=torch.Generator().manual_seed(99))
    y = torch.cat([torch.full((size,), k) for k, size in enumerate(sizes)])
    y = y[torch.randperm(len(y), generator=generator)]
    return centers[y] + spread * torch.randn(len(y), d, generator=generator), y


def batches(data: Batch, size: int = 25) -> list[Batch]:
    return list(zip(data[0].split(size), data[1].split(size), strict=True))


@torch.no_grad()
def features(model: Fnn, parts: list[Batch], mode: str = "eval") -> tuple[list[Tensor], Tensor, Tensor]:
    """The features of all sites, the labels and the class scores: an Fnn's layers called one by one."""
    sites: list[list[Tensor]] = [[] for _ in range(len(model.blocks) + 1)]
    scores = []
    for x, _ in parts:
        h = x.flatten(1)
        sites[0].append(h)
        for place, block in zip(sites[1:], model.blocks, strict=True):
            h = block.linear(h)
            norm = block.norm
            if mode == "mixed":
                h = functional.batch_norm(h, None, None, norm.weight, norm.bias, training=True, eps=norm.eps)
            else:
                h = functional.batch_norm(h, norm.running_mean, norm.running_var, norm.weight, norm.bias, eps=norm.eps)
            h = h.relu()
            place.append(h)
        scores.append(model.head(h))
    return [torch.cat(place) for place in sites], torch.cat([y for _, y in parts]), torch.cat(scores)


def between_rows(x: Tensor, y: Tensor) -> np.ndarray:
    """The matrix B: rows √(n_k/n)(m_k − m)."""
    means, shares = class_means(x, y), np.bincount(y.numpy()) / len(y)
    return np.sqrt(shares)[:, None] * (means - shares @ means)


def scatter(x: Tensor, y: Tensor, *, within: str = "sample", between: str = "sample") -> tuple[np.ndarray, np.ndarray]:
    """SSw and SSb as d × d matrices in float64, classes weighed by `sample` or by `class`, absent ones left out."""
    h, labels = x.double().numpy(), y.numpy()
    present = np.unique(labels)
    means = {k: h[labels == k].mean(axis=0) for k in present}
    shares = {
        "sample": {k: (labels == k).mean() for k in present},
        "class": dict.fromkeys(present, 1 / len(present)),
    }
    center = sum(shares[between][k] * means[k] for k in present)
    ssw = sum(shares[within][k] * np.cov(h[labels == k].T, bias=True).reshape(len(center), -1) for k in present)
    ssb = sum(shares[between][k] * np.outer(means[k] - center, means[k] - center) for k in present)
    return ssw, ssb


def class_means(x: Tensor, y: Tensor) -> np.ndarray:
    h, labels = x.double().numpy(), y.numpy()
    return np.stack([h[labels == k].mean(axis=0) for k in np.unique(labels)])


def geometry(vectors: np.ndarray) -> dict[str, float]:
    """NC2 of the rows, centered on their mean, entry by entry."""
    rows = vectors - vectors.mean(axis=0)
    k = len(rows)
    norms = np.linalg.norm(rows, axis=1)
    cosines = np.array([rows[i] @ rows[j] / norms[i] / norms[j] for i in range(k) for j in range(k) if i != j])
    gram = rows @ rows.T
    etf = (np.eye(k) - 1 / k) / np.sqrt(k - 1)
    return {
        "norm_spread": norms.std() / norms.mean(),
        "angle_spread": cosines.std(),
        "angle_gap": np.abs(cosines + 1 / (k - 1)).mean(),
        "etf_distance": np.linalg.norm(gram / np.linalg.norm(gram) - etf),
    }


def nearest(x: Tensor, means: np.ndarray) -> np.ndarray:
    return np.linalg.norm(x.double().numpy()[:, None] - means[None], axis=2).argmin(axis=1)


def nc3(head: nn.Linear, means: np.ndarray) -> float:
    w = head.weight.detach().double().numpy()
    m = means - means.mean(axis=0)
    return float(np.linalg.norm(w / np.linalg.norm(w) - m / np.linalg.norm(m)))


def codes(profile: Profile) -> list[str]:
    return [note.code for note in profile.notes]


def note(profile: Profile, code: str) -> str:
    """The text of the one Note with this code."""
    (found,) = [entry.text for entry in profile.notes if entry.code == code]
    return found
