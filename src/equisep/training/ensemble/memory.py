"""How much memory members take, and how many of them fit."""

from __future__ import annotations

import os
from pathlib import Path

import torch

from equisep.training.ensemble.kernel import layout
from equisep.training.ensemble.member import Member

CGROUP = Path("/sys/fs/cgroup")
# of what is free: the rest is left to the reading of sites, to others, and to the allocator, which on a CPU was seen to
# hold 1.4 times the memory in use
SHARE = 0.6


def bytes_per_member(member: Member, n: int, dtype: torch.dtype, *, epochs: int) -> int:
    """What one member adds to the memory of its ensemble while training, rounded up.

    Parameters with gradient and moments (3 or 4 numbers a parameter); inputs, linear outputs and activations of one
    batch, for two captured batch sizes or as buffers that are kept on a CPU, and the gradients on their way down;
    positions and labels of the samples; the history of loss and accuracy. Or what the training kernel takes, where it can
    train such members and takes more: it has room for batches of 128, whatever their size. Reading sites takes up to
    `watch.READ_BYTES` more, whatever the number of members.
    """
    shape, item = member.shape, torch.finfo(dtype).bits // 8
    moments = {"adam": 2, "momentum": 1, "sgd": 0}[member.recipe.optimizer]
    widest = max(shape.inputs, *shape.widths, shape.classes)
    activations = shape.inputs + (3 if shape.norm else 2) * sum(shape.widths) + 6 * shape.classes + 4 * widest
    matrices = widest * widest  # the product before it is copied to its place
    numbers = shape.parameters * (2 + moments) + member.recipe.batch_size * activations + matrices
    needed = numbers * item + 8 * 8 * n
    if dtype is torch.float32 and layout.obstacle(shape, member.recipe.batch_size) is None:
        needed = max(needed, layout.bytes_needed(shape, member.recipe.optimizer, n))
    return needed + 2 * 4 * epochs


def free_bytes(device: torch.device) -> int:
    """Memory that is free on the device now; for the CPU, within the limit of the control group."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    try:
        free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        return 2**32  # a system that does not say; a small guess only costs more chunks
    available = _meminfo("MemAvailable")
    free = max(free, available or 0)
    limit, used = _cgroup("memory.max"), _cgroup("memory.current")
    return free if limit is None or used is None else min(free, max(0, limit - used))


def _meminfo(name: str) -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    values = [line.split()[1] for line in lines if line.startswith(f"{name}:")]
    return int(values[0]) * 1024 if values else None


def _cgroup(name: str) -> int | None:
    try:
        text = (CGROUP / name).read_text(encoding="ascii").strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None
