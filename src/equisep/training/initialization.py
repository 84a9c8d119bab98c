"""Weights before training: He initialization, and a classifier that does not learn."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from equisep.errors import InputError
from equisep.shapes import Float64


def he_start(network: nn.Module, *, seed: int) -> dict[str, Tensor]:
    """The network's state with every matrix and kernel drawn anew from N(0, 2/inputs), and biases of such layers 0.

    (He, Zhang, Ren & Sun 2015; torch's own draw has the variance 1/(3·inputs), under which 20 layers of ReLU hand on almost
    nothing.) The inputs of a kernel are those of one output: channels × height × width. BatchNorm stays as it is.
    """
    chance = torch.Generator("cpu").manual_seed(seed)
    start = {name: value.clone() for name, value in network.state_dict().items()}
    for name, module in network.named_modules():
        weight = getattr(module, "weight", None)
        if not isinstance(weight, Tensor) or weight.ndim < 2 or isinstance(module, nn.Embedding):
            continue
        spread = math.sqrt(2 / weight[0].numel())
        drawn = spread * torch.randn(weight.shape, generator=chance, dtype=torch.float64, device="cpu")
        start[f"{name}.weight"] = drawn.to(weight)
        if isinstance(getattr(module, "bias", None), Tensor):
            start[f"{name}.bias"] = torch.zeros_like(start[f"{name}.bias"])
    return start


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
