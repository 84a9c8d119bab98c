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
    total = float(points.square().sum()) or 1.0
    values, places = _leading(points)
    signs = places.gather(0, places.abs().argmax(dim=0, keepdim=True)).sign()
    plane = (places * signs).tolist()
    return Coordinates(
        points=tuple((float(f"{a:.5g}"), float(f"{b:.5g}")) for a, b in plane),
        labels=tuple(y[chosen.to(y.device)].tolist()),
        explained=(float(values[0]) / total, float(values[1]) / total),
    )


def _leading(points: Float64[Tensor, "m e"]) -> tuple[Float64[Tensor, " two"], Float64[Tensor, "m two"]]:
    """The two largest eigenvalues and the points along them, by the smaller of m×m and e×e: half the digits do here."""
    tall = len(points) > points.shape[1]
    values, vectors = torch.linalg.eigh(points.T @ points if tall else points @ points.T)
    values, vectors = values.flip(0)[:2].clamp(min=0), vectors.flip(1)[:, :2]
    if len(values) < 2:  # a single feature
        values, vectors = (
            torch.cat([values, values.new_zeros(1)]),
            torch.cat([vectors, torch.zeros_like(vectors)], dim=1),
        )
    return values, points @ vectors if tall else vectors * values.sqrt()


def _rows(parts: list[Shaped[Tensor, "b d"]], chosen: Int[Tensor, " m"]) -> Float64[Tensor, "m e"]:
    """The chosen rows, thinned, on the CPU."""
    step = -(-parts[0].shape[1] // THINNED)
    begin, found = 0, []
    for part in parts:
        mine = chosen[(chosen >= begin) & (chosen < begin + len(part))] - begin
        found.append(part[:, ::step][mine.to(part.device)].cpu().to(torch.float64))
        begin += len(part)
    return torch.cat(found)
