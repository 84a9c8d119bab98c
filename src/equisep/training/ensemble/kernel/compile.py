"""The training kernel built at run time: NVRTC, which torch brings along, the driver, and a cache of what was built."""

from __future__ import annotations

import ctypes
import hashlib
import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

import torch
from torch import Tensor

from equisep.files import write_whole
from equisep.training.ensemble.kernel.layout import WARPS, Build

# in this order they are one source: each builds on those before it
SOURCES = [
    Path(__file__).parent / "source" / name
    for name in ("gpu.cuh", "plan.cuh", "products.cuh", "member.cuh", "tiles.cuh", "train.cu")
]
THREADS = 32 * WARPS
OLDEST = (8, 0)  # copies past the registers; clusters need 9.0
MOST_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES


class KernelError(RuntimeError):
    """The kernel cannot be built or started here."""


def device_obstacle(build: Build, depth: int, device: torch.device) -> str | None:
    """Why this device cannot run a build, or None."""
    if device.type != "cuda" or torch.version.cuda is None:
        return f"the device is {device}"
    known = torch.cuda.get_device_properties(device)
    wanted = OLDEST if build.cluster == 1 else (9, 0)
    if (known.major, known.minor) < wanted:
        return f"{known.name} has compute capability {known.major}.{known.minor}, and {wanted[0]}.{wanted[1]} is needed"
    room, need = int(known.shared_memory_per_block_optin), build.shared_bytes(depth)  # type: ignore[attr-defined]
    if need > room:
        return f"a block needs {need} bytes of shared memory, and {known.name} has {room}"
    return None


def prepare(build: Build, depth: int, device: torch.device) -> None:
    """Build and load it now, so that nothing is waited for later; `KernelError` where that cannot be done."""
    with torch.cuda.device(device):
        _function(build, torch.cuda.current_device(), build.shared_bytes(depth))


def launch(arguments: Sequence[Tensor], *, members: int, build: Build, depth: int) -> None:
    """The kernel on its arguments, on the stream that is current; it is built or loaded where that was not done yet."""
    device = arguments[0].device
    for tensor in arguments:
        if tensor.device != device or not tensor.is_contiguous():
            raise KernelError("the kernel takes contiguous tensors of one device")
    with torch.cuda.device(device):
        bytes_shared = build.shared_bytes(depth)
        function = _function(build, torch.cuda.current_device(), bytes_shared)
        pointers = [ctypes.c_void_p(tensor.data_ptr()) for tensor in arguments]
        places = (ctypes.c_void_p * len(pointers))(*[ctypes.addressof(pointer) for pointer in pointers])
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        blocks = members * build.cluster
        _check(_driver().cuLaunchKernel(function, blocks, 1, 1, THREADS, 1, 1, bytes_shared, stream, places, None))


@cache
def _function(build: Build, device: int, bytes_shared: int) -> ctypes.c_void_p:
    """The kernel of a build on a device, with room for so much shared memory."""
    torch.zeros(1, device=f"cuda:{device}")  # the context that it is loaded into
    capability = torch.cuda.get_device_capability(device)
    try:
        function = _loaded(binary(build, capability))
    except KernelError:  # what was kept may be damaged
        function = _loaded(binary(build, capability, anew=True))
    _check(_driver().cuFuncSetAttribute(function, MOST_SHARED, bytes_shared))
    return function


def _loaded(code: bytes) -> ctypes.c_void_p:
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    _check(_driver().cuModuleLoadData(ctypes.byref(module), code))
    _check(_driver().cuModuleGetFunction(ctypes.byref(function), module, b"train"))
    return function


def binary(build: Build, capability: tuple[int, int], *, anew: bool = False) -> bytes:
    """The machine code of a build, from the cache where it is there and not to be built anew.

    What is kept is named by the hash of everything it depends on: the source, the options, the GPU, the version of NVRTC.
    """
    source = b"".join(path.read_bytes() for path in SOURCES)
    words = [f"--gpu-architecture=sm_{capability[0]}{capability[1]}", "--std=c++17"]
    words += [f"-D{name}={value}" for name, value in build.options.items()]
    key = hashlib.sha256(source + repr((words, _version())).encode()).hexdigest()[:24]
    folder = _folder()
    kept = None if folder is None else folder / f"train-{key}.cubin"
    try:
        if kept is not None and not anew:
            return kept.read_bytes()
    except OSError:
        pass  # not built yet
    code = _compiled(source, words)

    def write(file: BinaryIO) -> None:
        file.write(code)

    try:
        if kept is not None:
            write_whole(kept, write)
    except OSError:
        pass  # no cache: it is built again next time
    return code


def _folder() -> Path | None:
    """Where builds are kept; None where there is no home."""
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "equisep" / "kernels"
    except RuntimeError:
        return None


def _version() -> tuple[int, int]:
    major, minor = ctypes.c_int(), ctypes.c_int()
    _nvrtc().nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    return major.value, minor.value


def _compiled(source: bytes, words: Sequence[str]) -> bytes:
    library, program = _nvrtc(), ctypes.c_void_p()
    options = (ctypes.c_char_p * len(words))(*[word.encode() for word in words])
    library.nvrtcCreateProgram(ctypes.byref(program), source, b"train.cu", 0, None, None)
    try:
        if library.nvrtcCompileProgram(program, len(words), options) != 0:
            lines = _text(library, program, "ProgramLog").decode(errors="replace").strip("\0\n ").splitlines()
            told = [line for line in lines if "error" in line] or lines or ["NVRTC does not say why"]
            raise KernelError(f"it cannot be built ({told[0].strip()})")
        return _text(library, program, "CUBIN")
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


def _text(library: Any, program: ctypes.c_void_p, what: str) -> bytes:
    size = ctypes.c_size_t()
    getattr(library, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    getattr(library, f"nvrtcGet{what}")(program, text)
    return text.raw


@cache
def _driver() -> Any:
    return ctypes.CDLL("libcuda.so.1")


@cache
def _nvrtc() -> Any:
    """The library of the CUDA that torch was built for: on the loader's path, or among the packages beside torch."""
    major = str(torch.version.cuda).split(".", maxsplit=1)[0]
    beside = Path(torch.__file__).parent.parent / "nvidia"
    # it looks for its own other half on the loader's path alone, unless that is loaded already
    _any_of([str(path) for path in sorted(beside.glob(f"*/lib/libnvrtc-builtins.so.{major}*"))])
    packaged = [str(path) for path in sorted(beside.glob(f"*/lib/libnvrtc.so.{major}*"))]
    found = _any_of([f"libnvrtc.so.{major}", *packaged, "libnvrtc.so"])
    if found is None or not hasattr(found, "nvrtcGetCUBIN"):
        raise KernelError(f"there is no NVRTC library of CUDA {major} to build it with")
    return found


def _any_of(names: Sequence[str]) -> Any:
    """The first of these libraries that can be loaded, or None."""
    for name in names:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


def _check(status: int) -> None:
    if status != 0:
        words = ctypes.c_char_p()
        _driver().cuGetErrorString(status, ctypes.byref(words))
        raise KernelError(f"CUDA error {status}: {(words.value or b'unknown').decode()}")
