"""Which machine and which libraries made a number."""

from __future__ import annotations

import platform
from typing import Any

import numpy
import torch

from equisep._version import __version__


def provenance(place: torch.device, dtype: torch.dtype | None) -> dict[str, Any]:
    """Versions, device and number type, as saved beside results."""
    return {
        "equisep": __version__,
        "torch": torch.__version__,
        "numpy": numpy.__version__,
        "python": platform.python_version(),
        "device": torch.cuda.get_device_name(place) if place.type == "cuda" else place.type,
        "dtype": str(dtype).removeprefix("torch."),
        "threads": torch.get_num_threads(),
    }


def tf32_allowed(place: torch.device) -> list[str]:
    """What a GPU may shorten to TF32 (10 bits) here: `convolutions`, which torch allows by default, and `products`."""
    if place.type != "cuda":
        return []
    # not `allow_tf32`, which raises where the newer switches were used
    convolutions = torch.backends.cudnn.conv  # type: ignore[attr-defined]
    kinds = {"convolutions": convolutions, "products": torch.backends.cuda.matmul}
    return [kind for kind, switch in kinds.items() if switch.fp32_precision == "tf32"]
