"""Where and how numbers are computed: the one device check, the precision of products, provenance."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy
import torch

from equisep._version import __version__
from equisep.errors import InputError


def usable_device(device: str | int | torch.device | None, *, asked: str) -> torch.device:
    """The device by name, none being the CPU; one that is not here, or gives no number back (`meta`), is one sentence.

    `asked` is the function that was called or, on the command line, the option: the sentence speaks of either.
    """
    try:
        probe = torch.zeros(1, device="cpu" if device is None else device)
        probe.item()  # `meta` takes weights and never gives them back
    except (RuntimeError, AssertionError, TypeError, ValueError, NotImplementedError) as error:
        if asked.startswith("--"):
            words, advice = f"`{asked} {device}`", "Name a device that this machine has, such as cpu."
        else:
            words = f"`{asked}` was asked for device `{device}`, which"
            advice = "Pass a device that this machine has, such as `device='cpu'`."
        raise InputError(f"{words} cannot be used here: {_reason(device, error)}. {advice}") from error
    return probe.device


def _reason(device: object, error: Exception) -> str:
    if isinstance(error, TypeError):
        return f"a device is a name, and this is a {type(device).__name__}"
    return str(error).split("\n")[0].split(". ")[0].rstrip(".")


@contextmanager
def precision(*, tf32: bool) -> Iterator[None]:
    """TF32 in matrix products and convolutions as asked, then as it was."""
    switches = _tf32_switches().values()
    before = [switch.fp32_precision for switch in switches]
    try:
        for switch in switches:
            switch.fp32_precision = "tf32" if tf32 else "ieee"
        yield
    finally:
        for switch, was in zip(switches, before, strict=True):
            switch.fp32_precision = was


def tf32_allowed(device: torch.device) -> list[str]:
    """What a GPU may shorten to TF32 (10 bits) here: `convolutions`, which torch allows by default, and `products`."""
    if device.type != "cuda":
        return []
    return [kind for kind, switch in _tf32_switches().items() if switch.fp32_precision == "tf32"]


def _tf32_switches() -> dict[str, Any]:
    # torch refuses to read the older `allow_tf32` once anyone has set these
    convolutions = torch.backends.cudnn.conv  # type: ignore[attr-defined]
    return {"convolutions": convolutions, "products": torch.backends.cuda.matmul}


def out_of_memory(error: BaseException) -> bool:
    """Whether memory ran out: torch says so in its own words for each device and library."""
    told = ("allocate memory", "out of memory", "ALLOC_FAILED")
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or any(words in str(error) for words in told)


def provenance(device: torch.device, dtype: torch.dtype | None) -> dict[str, Any]:
    """Versions, device and number type, as saved beside results."""
    return {
        "equisep": __version__,
        "torch": torch.__version__,
        "numpy": numpy.__version__,
        "python": platform.python_version(),
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else device.type,
        "dtype": str(dtype).removeprefix("torch."),
        "threads": torch.get_num_threads(),
    }
