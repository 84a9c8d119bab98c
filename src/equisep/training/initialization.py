"""He initialization: weights with which signals keep their size through many layers of ReLU without BatchNorm."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


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
