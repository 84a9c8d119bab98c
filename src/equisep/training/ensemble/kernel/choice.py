"""Which members the training kernel takes, and how many blocks train each."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from equisep.training.ensemble.kernel import layout
from equisep.training.ensemble.kernel.compile import device_obstacle, prepare
from equisep.training.ensemble.kernel.layout import Build
from equisep.training.ensemble.member import Member, Shape, Stage

# operations of a whole task from which `auto` takes the kernel: the first build for a shape takes seconds, once a machine, and
# smaller tasks are done before by graphs. By the task alone, not by what is built: the same call has to choose the same again
WORTH_BUILDING = 10**12
GROUPS = 8  # parts of a Hopper, each an even number of multiprocessors; no cluster reaches from one into another


def operations(members: Sequence[Member], stages: Sequence[Stage], *, samples: int) -> int:
    """Multiplications and additions of the products of a whole task: forward, and backward twice as many."""
    weights = sum(inputs * outputs for inputs, outputs in members[0].shape.layers)
    return 6 * weights * samples * len(members) * sum(stage.epochs for stage in stages)


def kernel_obstacle(
    shape: Shape,
    stages: Sequence[Stage],
    *,
    members: int,
    batch_size: int,
    device: torch.device,
    dtype: torch.dtype,
    tf32: bool,
) -> str | None:
    """Why the kernel is not made for such members or this device, or None; then it is built and loaded.

    `KernelError` where it should run here but cannot be built: without NVRTC, say.
    """
    if dtype is not torch.float32:
        return f"it computes in float32, and members train in {dtype}"
    if tf32:
        return "its products are float32, and TF32 was asked for"
    if any(stage.leaky for stage in stages):
        return "it begins every stage with a new optimizer, and a stage is leaky"
    found = layout.obstacle(shape, batch_size)
    if found is not None:
        return found
    build = build_for(shape, members=members, device=device)
    found = device_obstacle(build, shape.depth, device)
    if found is None:
        prepare(build, shape.depth, device)
    return found


def build_for(shape: Shape, *, members: int, device: torch.device) -> Build:
    """As many blocks for each member as leave none waiting; two on a multiprocessor where there are more members."""
    if device.type != "cuda":
        return Build.of(shape)
    known = torch.cuda.get_device_properties(device)
    if known.major >= 9:
        for cluster in (4, 2):
            # a cluster of four leaves up to two multiprocessors of each group alone; one that waits costs all the time again
            if members * cluster <= known.multi_processor_count - GROUPS * (cluster - 2):
                return Build.of(shape, cluster=cluster)
    shared = Build.of(shape, resident=2)
    fits = 2 * (shared.shared_bytes(shape.depth) + 1024) <= known.shared_memory_per_multiprocessor
    return shared if fits and members > known.multi_processor_count else Build.of(shape)
