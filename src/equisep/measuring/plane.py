"""Samples of one site on their first two principal components, for plots only."""

from __future__ import annotations

import torch
from torch import Tensor

from equisep.results import Coordinates
from equisep.shapes import Float64, Int, Shaped

THINNED = 1024  # features of a site that a picture needs; of wider ones every so many are taken


def plane_of(parts: list[Shaped[Tensor, "b d"]], y: Int[Tensor, " n"], *, most: int, seed: int) -> Coordinates | None:
    """At most `most` rows on their first two principal components, of 1024 evenly spaced features where there are more."""
    n = y.numel()
    if most < 3 or n < 3:
        return None
    generator = torch.Generator("cpu").manual_seed(seed)
    chosen = torch.randperm(n, generator=generator, device="cpu")[:most].sort().values
    points = _rows(parts, chosen)  # m d
    points -= points.mean(dim=0)
    # the m×m Gram matrix costs half the digits and saves the d×d one: enough for a picture
    values, vectors = torch.linalg.eigh(points @ points.T)
    total = float(values.clamp(min=0).sum()) or 1.0
    values, vectors = values.flip(0)[:2].clamp(min=0), vectors.flip(1)[:, :2]
    signs = vectors.gather(0, vectors.abs().argmax(dim=0, keepdim=True)).sign()
    plane = (vectors * signs * values.sqrt()).tolist()
    return Coordinates(
        points=tuple((float(f"{a:.5g}"), float(f"{b:.5g}")) for a, b in plane),
        labels=tuple(y[chosen.to(y.device)].tolist()),
        explained=(float(values[0]) / total, float(values[1]) / total),
    )


def _rows(parts: list[Shaped[Tensor, "b d"]], chosen: Int[Tensor, " m"]) -> Float64[Tensor, "m e"]:
    """The chosen rows, thinned, on the CPU."""
    step = -(-parts[0].shape[1] // THINNED)
    begin, found = 0, []
    for part in parts:
        mine = chosen[(chosen >= begin) & (chosen < begin + len(part))] - begin
        found.append(part[:, ::step][mine.to(part.device)].cpu().to(torch.float64))
        begin += len(part)
    return torch.cat(found)
