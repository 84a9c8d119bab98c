"""The training kernel compiled for this processor by g++, thread by thread as on a GPU: see kernel_on_cpu.h."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from equisep.training.ensemble.kernel.compile import SOURCES
from equisep.training.ensemble.kernel.layout import Build

HERE = Path(__file__).parent
COMPILER = shutil.which("g++")


class CpuLaunch:
    """`Launch` on the processor, in float64 or float32; threads take turns in the `order` that `run` names.

    The factors of a build for TF32 are `rounded` to 10 bits as on a GPU, or stay as they are.
    """

    def __init__(self, folder: Path, dtype: torch.dtype, *, order: int = 0, rounded: bool = False) -> None:
        self.folder, self.dtype, self.order, self.rounded = folder, dtype, order, rounded

    def __call__(self, arguments: Sequence[Tensor], *, members: int, build: Build, depth: int) -> None:
        assert all(tensor.is_contiguous() for tensor in arguments)
        pointers = (ctypes.c_void_p * len(arguments))(*[tensor.data_ptr() for tensor in arguments])
        library = ctypes.CDLL(str(self._built(build)))
        assert library.run(pointers, members, build.shared_bytes(depth), self.order) == 0

    def _built(self, build: Build) -> Path:
        real = "double" if self.dtype is torch.float64 else "float"
        source = self.folder / "train.cu"
        source.write_bytes(b"".join(path.read_bytes() for path in SOURCES))
        values: dict[str, object] = {**build.options, "ROUNDED": int(self.rounded)}
        name = "-".join(map(str, values.values()))
        values |= {"REAL": real, "KERNEL": f'"{source}"'}
        target = self.folder / f"{real}-{name}.so"
        if not target.exists():
            assert COMPILER is not None
            words = [COMPILER, "-O1", "-std=c++17", "-shared", "-fPIC", "-Wno-psabi", "-x", "c++"]
            words += [f"-D{name}={value}" for name, value in values.items()]
            subprocess.run([*words, "-o", str(target), str(HERE / "kernel_on_cpu.h")], check=True)
        return target
