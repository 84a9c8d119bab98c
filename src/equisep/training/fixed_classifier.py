"""A classifier that does not learn: the rows of a simplex ETF in a direction drawn by a seed."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from equisep.errors import InputError
from equisep.shapes import Float64


def simplex_etf(classes: int, dimension: int, *, seed: int = 0) -> Float64[Tensor, "k p"]:
    """K unit vectors with cosines −1/(K−1), rotated at random: √(K/(K−1)) · B Qᵀ, BBᵀ = I − 11ᵀ/K and QᵀQ = I.

    (Yang et al. 2022 fix a classifier to such rows, so that no class can lose its angle while the features learn.)
    """
    if classes < 2 or dimension < classes - 1:
        raise InputError(
            f"A simplex ETF needs 2 classes or more and a dimension of at least K − 1; found {classes} classes in "
            f"{dimension} dimensions. Use wider features."
        )
    chance = torch.Generator("cpu").manual_seed(seed)
    drawn = torch.randn(dimension, classes - 1, generator=chance, dtype=torch.float64, device="cpu")
    rotation = torch.linalg.qr(drawn).Q
    centered = torch.eye(classes, dtype=torch.float64, device="cpu") - 1 / classes
    basis = torch.linalg.eigh(centered).eigenvectors[:, 1:]  # eigenvalues ascend: the first is that of the ones
    rows: Tensor = math.sqrt(classes / (classes - 1)) * (basis @ rotation.T)
    return rows
