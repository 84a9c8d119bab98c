"""Where and how side-by-side training runs: the device, captured graphs or not, the precision of products."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal, get_args

import torch

from equisep.errors import InputError, did_you_mean

Engine = Literal["auto", "eager", "graphs"]


def place_of(device: str | torch.device | None, *, asked: str) -> torch.device:
    """The device by name, or one sentence why it cannot be used; none is the CPU."""
    try:
        return torch.zeros(1, device=device or "cpu").device
    except (RuntimeError, AssertionError) as error:
        reason = str(error).split("\n")[0].split(". ")[0].rstrip(".")
        raise InputError(
            f"`{asked}` was asked for device `{device}`, which cannot be used here: {reason}. "
            "Pass a device that this machine has, such as `device='cpu'`."
        ) from error


def captures(engine: str, place: torch.device, dtype: torch.dtype) -> bool:
    """Whether steps are replayed from captured CUDA graphs, whose optimizers read rates in float32."""
    if engine not in get_args(Engine):
        raise InputError(f"No engine `{engine}`.{did_you_mean(engine, get_args(Engine))} Known: auto, eager, graphs.")
    if dtype not in (torch.float32, torch.float64):
        raise InputError(f"Networks train side by side in float32 or float64; found {dtype}.")
    possible = place.type == "cuda" and dtype is torch.float32
    if engine == "graphs" and not possible:
        raise InputError(
            f"Captured graphs need a CUDA device and float32; found {place} and {dtype}. Use `engine='auto'`."
        )
    return possible and engine != "eager"


@contextmanager
def precision(*, tf32: bool) -> Iterator[None]:
    """TF32 in matrix products and convolutions as asked, then as it was."""
    # torch refuses to read the older `allow_tf32` once anyone has set these
    places: tuple[Any, ...] = (torch.backends.cuda.matmul, torch.backends.cudnn.conv)  # type: ignore[attr-defined]
    before = [place.fp32_precision for place in places]
    try:
        for place in places:
            place.fp32_precision = "tf32" if tf32 else "ieee"
        yield
    finally:
        for place, was in zip(places, before, strict=True):
            place.fp32_precision = was


def out_of_memory(error: BaseException) -> bool:
    """Whether memory ran out: torch says so in its own words for each device and library."""
    told = ("allocate memory", "out of memory", "ALLOC_FAILED")
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or any(words in str(error) for words in told)
