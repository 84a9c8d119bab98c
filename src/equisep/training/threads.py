"""How many of torch's threads a training step is worth: one, where it is too small to be shared.

Torch's threads split every operation and wait for one another at its end, hundreds of times a step. A step of an 8-layer
network of width 100 takes as long on two quiet cores as on one (the `plain` loops of `benchmarks/results/ensemble-cpu-*`), and
on a busy machine, where a thread that is waited for may not be running, ten times as long and more
(`benchmarks/results/threads-cpu-*`). From a few times its work on, a second core that is free is worth that risk.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

# multiplications and additions of one step, forward and backward: about five times those of the network above
WORTH_SHARING = 2**28


class Operations(TorchDispatchMode):
    """Counts the multiplications and additions of matrix products and convolutions while it is entered."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.count = 0

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Torch is to leave the method below as it is: its guard imports the compiler, which takes longer than a training.

        Networks that were compiled are to run eagerly meanwhile: nothing keeps this method out of what is compiled now.
        """
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """What the operation gives; its work is added to `count`."""
        result = func(*args, **(kwargs or {}))
        work = flop_registry.get(func._overloadpacket)
        self.count += 0 if work is None else int(work(*args, **(kwargs or {}), out_val=result))
        return result


class StepThreads:
    """Torch's number of threads while steps run: one until `decide` has seen the work of a step; given back at the end."""

    def __init__(self, device: torch.device) -> None:
        self.undecided = device.type == "cpu" and torch.get_num_threads() > 1
        self._alone = self.undecided
        self._before = torch.get_num_threads()

    def __enter__(self) -> StepThreads:
        self._before = torch.get_num_threads()
        if self._alone:
            torch.set_num_threads(1)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        torch.set_num_threads(self._before)

    def decide(self, operations: int) -> None:
        """One thread for steps of so many operations, or those there are; 0 says that nothing is known."""
        if self.undecided:
            self.undecided, self._alone = False, 0 < operations < WORTH_SHARING
            torch.set_num_threads(1 if self._alone else self._before)
