"""Rows of noise alone, and what they say of its covariance: its second moment where the class means are not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from equisep.separation.noise.root import Values, root
from equisep.shapes import Float64, Int

TINY = np.finfo(np.float64).tiny


@dataclass(frozen=True, slots=True)
class NoiseRows:
    """Of s sites alike: m rows that have the covariance of a class and the trace of all, as products.

    `gram` with each other, `along` with the directions of the class means. Of every class that has rows: `owners` names it for
    each of them, `free` says how many are independent, `shares` what it puts into the noise of the means and into the scatter
    along them, each of which sums to 1.
    """

    gram: Float64[np.ndarray, "s m m"]
    along: Float64[np.ndarray, "s m r"]
    owners: Int[np.ndarray, " m"]
    free: Int[np.ndarray, " c"]
    shares: Float64[np.ndarray, "s 2 c"]

    @property
    def kind(self) -> tuple[object, ...]:
        """Sites of one kind can stand side by side."""
        return self.gram.shape, self.along.shape, self.owners.tobytes()

    @property
    def independent(self) -> int:
        """How many rows are: those of a class sum up to its mean."""
        return int(self.free.sum())

    def off(self) -> Float64[np.ndarray, "s q"]:
        """Eigenvalues of their Gram matrix off the directions of the class means, rising, as many as are independent."""
        off = torch.from_numpy(self.gram - self.along @ self.along.swapaxes(1, 2))
        # by torch, whose threads are counted: numpy's own would stand in the way of other sites
        values: Float64[np.ndarray, "s m"] = torch.linalg.eigvalsh(off).clamp(min=0).numpy()
        return values[:, values.shape[1] - self.independent :]

    def turned(self, turn: Float64[np.ndarray, "s r r"]) -> tuple[Float64[np.ndarray, " s"], Float64[np.ndarray, " s"]]:
        """Tr ΣT of the noise and Tr ΣTΣT of the noise with the scatter, T = I − V `turn` Vᵀ, V the directions of the class means.

        Products of rows of two classes tell Tr Σ_kTΣ_lT by their squares without bias, of any distribution; of one class, with
        f rows free, E ‖W‖² = f(f + 1) Tr (ΣT)² + f (Tr ΣT)² of normal rows.
        """
        products = self.gram - self.along @ turn @ self.along.swapaxes(1, 2)
        chosen = (self.owners == np.arange(len(self.free))[:, None]).astype(np.float64)  # c m
        squares = chosen @ np.square(products) @ chosen.T  # s c c
        traces = np.diagonal(products, axis1=1, axis2=2) @ chosen.T  # s c
        free = np.maximum(self.free, 1).astype(np.float64)
        weights = self.shares[:, 0, :, None] * self.shares[:, 1, None, :] * ((self.free > 0)[:, None] & (self.free > 0))
        pairs = squares / (free[:, None] * free)
        own = np.arange(len(free))
        inner = np.diagonal(squares, axis1=1, axis2=2) - np.square(traces) / free
        pairs[:, own, own] = inner / np.maximum(free * (free + 1) - 2, 1.0)
        weights[:, own, own] *= self.free > 1
        told = self.shares[:, 0] * (self.free > 0)
        first = (told * traces / free).sum(axis=1) / np.maximum(told.sum(axis=1), TINY)
        return first, (weights * pairs).sum(axis=(1, 2)) / np.maximum(weights.sum(axis=(1, 2)), TINY)


def rows_side_by_side(parts: Sequence[NoiseRows]) -> NoiseRows:
    """Sites of one kind as one record."""
    gram, along, shares = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("gram", "along", "shares")
    )
    return NoiseRows(gram, along, parts[0].owners, parts[0].free, shares)


def alike_moments(values: Float64[np.ndarray, "l q"], delta: Values) -> tuple[Values, Values]:
    """Tr S(I + δS)⁻¹ and Tr S²(I + δS)⁻² from the eigenvalues of W, the Gram matrix of m rows that all have covariance S.

    For such rows Tr(W − z)⁻¹ = δ gives Tr S(I + δS)⁻¹ = z + m/δ, whatever the spectrum of S (Marčenko & Pastur 1967,
    Silverstein 1995), and its derivative by −δ the second moment.
    """
    m, least, top = values.shape[1], values[:, :1], np.log(values[:, -1])
    above = values - least
    # z = least − e^t; Tr(W − z)⁻¹ falls as t grows
    at = root(lambda t: delta - (1 / (above + np.exp(t)[:, None])).sum(axis=1), top - 45, top + 25)
    gaps = above + np.exp(at)[:, None]
    mean = m / (1 / gaps).sum(axis=1)
    # m/δ² − 1/Tr(W − z)⁻², and z + m/δ, without their cancellation where δ is small
    spread = ((mean[:, None] / gaps - 1) ** 2).mean(axis=1)
    second: Values = mean * mean * spread / (m * (1 + spread))
    first: Values = values.mean(axis=1) - ((gaps - mean[:, None]) ** 2 / gaps).mean(axis=1)
    return first, second
