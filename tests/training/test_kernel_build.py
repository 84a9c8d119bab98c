"""How the training kernel is built and kept, one file for all that it depends on, and who trains where it cannot be."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import warnings
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from trained_alone import SMALL, mixed

from equisep.errors import InputError
from equisep.training import Shape, Stage
from equisep.training.ensemble import train as training
from equisep.training.ensemble.kernel import compile, stage
from equisep.training.ensemble.kernel.compile import KernelError, binary
from equisep.training.ensemble.kernel.layout import Build
from equisep.training.ensemble.stepper import Orders

HOPPER, BUILD = (9, 0), Build.of(Shape.deep(4))
CUDA = torch.device("cuda")


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[bytes, Sequence[str]]]:
    """What is asked of a compiler that takes any source, and a home that is empty."""
    asked: list[tuple[bytes, Sequence[str]]] = []

    def compiled(source: bytes, words: Sequence[str]) -> bytes:
        asked.append((source, words))
        return b"code " + str(len(asked)).encode()

    monkeypatch.setattr(compile, "_compiled", compiled)
    monkeypatch.setattr(compile, "_version", lambda: (13, 0))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return asked


def kept(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_it_is_built_once_for_all_that_it_depends_on(
    built: list[tuple[bytes, Sequence[str]]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert binary(BUILD, HOPPER) == binary(BUILD, HOPPER) == b"code 1"
    binary(Build.of(Shape.deep(4), cluster=2), HOPPER)
    binary(BUILD, (8, 0))
    monkeypatch.setattr(compile, "_version", lambda: (13, 1))
    binary(BUILD, HOPPER)
    monkeypatch.setattr(compile, "SOURCES", compile.SOURCES[1:])
    binary(BUILD, HOPPER)
    assert len(built) == 5 and len(kept(tmp_path)) == 5
    assert built[0][1][0] == "--gpu-architecture=sm_90" and "-DCLUSTER=2" in built[1][1]
    assert all(path.name.startswith("train-") and path.suffix == ".cubin" for path in kept(tmp_path))


def test_what_is_kept_can_be_built_anew(built: list[tuple[bytes, Sequence[str]]], tmp_path: Path) -> None:
    binary(BUILD, HOPPER)
    kept(tmp_path)[0].write_bytes(b"")
    assert binary(BUILD, HOPPER) == b""
    assert binary(BUILD, HOPPER, anew=True) == binary(BUILD, HOPPER) == b"code 2"


def test_damaged_code_is_built_anew_once(
    built: list[tuple[bytes, Sequence[str]]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def loaded(code: bytes) -> ctypes.c_void_p:
        if not code.startswith(b"code"):
            raise KernelError("CUDA error 200: device kernel image is invalid")
        return ctypes.c_void_p(7)

    driver = SimpleNamespace(cuFuncSetAttribute=lambda *_: 0)
    monkeypatch.setattr(compile, "_loaded", loaded)
    monkeypatch.setattr(compile, "_driver", lambda: driver)
    monkeypatch.setattr(torch, "zeros", lambda *_, **__: None)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: HOPPER)
    binary(BUILD, HOPPER)
    kept(tmp_path)[0].write_bytes(b"half")
    assert compile._function.__wrapped__(BUILD, 0, 1).value == 7
    assert len(built) == 2 and kept(tmp_path)[0].read_bytes() == b"code 2"


def test_without_a_home_that_can_be_written_it_is_built_each_time(
    built: list[tuple[bytes, Sequence[str]]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))  # no folder: as a disk that is read-only
    assert [binary(BUILD, HOPPER) for _ in range(2)] == [b"code 1", b"code 2"]

    def nowhere() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", nowhere)
    assert binary(BUILD, HOPPER) == b"code 3" and kept(tmp_path) == [tmp_path / "file"]


def test_nothing_stays_of_a_file_that_could_not_be_written(
    built: list[tuple[bytes, Sequence[str]]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("equisep.files.os.fsync", full)
    assert binary(BUILD, HOPPER) == b"code 1" and kept(tmp_path) == []


def test_without_the_library_there_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(compile, "_any_of", lambda _: None)
    with pytest.raises(KernelError, match=r"^there is no NVRTC library of CUDA 13 to build it with$"):
        compile._nvrtc.__wrapped__()


def test_a_build_that_fails_is_told_by_its_first_error(monkeypatch: pytest.MonkeyPatch) -> None:
    log = b"train.cu(3): warning: unused\ntrain.cu(7): error: no such name\n\0"

    def text(_: object, program: object, buffer: ctypes.Array[ctypes.c_char]) -> int:
        buffer.raw = log
        return 0

    def size(_: object, number: ctypes._Pointer[ctypes.c_size_t]) -> int:
        number._obj.value = len(log)  # type: ignore[attr-defined]
        return 0

    library = SimpleNamespace(
        nvrtcCreateProgram=lambda *_: 0,
        nvrtcCompileProgram=lambda *_: 6,
        nvrtcDestroyProgram=lambda *_: 0,
        nvrtcGetProgramLogSize=size,
        nvrtcGetProgramLog=lambda program, buffer: text(library, program, buffer),
    )
    monkeypatch.setattr(compile, "_nvrtc", lambda: library)
    with pytest.raises(KernelError, match=r"^it cannot be built \(train.cu\(7\): error: no such name\)$"):
        compile._compiled(b"", [])


def engine(asked: str) -> str:
    options = {"device": CUDA, "dtype": torch.float32, "tf32": False}
    return training._engine(asked, mixed(), [Stage(epochs=3)], 70, **options)  # type: ignore[arg-type]


def test_graphs_take_over_with_a_warning_where_it_cannot_be_built(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise KernelError("there is no NVRTC library of CUDA 13 to build it with")

    monkeypatch.setattr(stage, "kernel_obstacle", broken)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert engine("auto") == "graphs"  # a small task asks for no build
    monkeypatch.setattr(stage, "WORTH_BUILDING", 1)
    with pytest.warns(RuntimeWarning, match=r"^Graphs train instead of the CUDA kernel: there is no NVRTC library"):
        assert engine("auto") == "graphs"
    with pytest.raises(
        InputError, match=r"but there is no NVRTC library of CUDA 13 to build it with\. Use `engine='auto'`"
    ):
        engine("kernel")


def test_graphs_take_over_without_a_word_what_it_is_not_made_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "WORTH_BUILDING", 1)
    monkeypatch.setattr(stage, "kernel_obstacle", lambda *_, **__: "the kernel has room for 16 classes")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert engine("auto") == "graphs"


# name, compute capability, multiprocessors, shared memory of a block and of a multiprocessor, as devices tell
GPUS = {
    "hopper": ("NVIDIA H200", 9, 0, 132, 232448, 233472),
    "ampere": ("NVIDIA A100", 8, 0, 108, 166912, 167936),
    "ada": ("NVIDIA L4", 8, 9, 58, 101376, 102400),
    "turing": ("Tesla T4", 7, 5, 40, 65536, 65536),
}
TOLD = (
    "name",
    "major",
    "minor",
    "multi_processor_count",
    "shared_memory_per_block_optin",
    "shared_memory_per_multiprocessor",
)


@pytest.mark.parametrize(
    ("gpu", "members", "cluster", "resident", "why"),
    [
        ("hopper", 1, 4, 1, None),
        ("hopper", 29, 4, 1, None),
        ("hopper", 33, 2, 1, None),  # 33 clusters of four have no room side by side: the last would wait for the first
        ("hopper", 67, 1, 1, None),
        ("hopper", 133, 1, 2, None),
        ("ampere", 1, 1, 1, None),
        ("ampere", 500, 1, 1, None),
        ("ada", 1, 1, 1, "a block needs 113536 bytes of shared memory, and NVIDIA L4 has 101376"),
        ("turing", 1, 1, 1, "Tesla T4 has compute capability 7.5, and 8.0 is needed"),
    ],
)
def test_what_other_gpus_get(
    gpu: str, members: int, cluster: int, resident: int, why: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By what devices say of themselves; clusters are Hopper's."""
    told = dict(zip(TOLD, GPUS[gpu], strict=True))
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: SimpleNamespace(**told))
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    shape = Shape.deep(8)
    build = stage.build_for(shape, members=members, device=CUDA)
    assert (build.cluster, build.resident) == (cluster, resident)
    assert compile.device_obstacle(build, shape.depth, CUDA) == why


def test_orders_drawn_before_are_skipped_in_small_pieces() -> None:
    one, other = (Orders([3, 4, 3], 50, device=torch.device("cpu")) for _ in range(2))
    one.skip(4)
    assert torch.equal(one.draw(2), other.draw(6)[4:])


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs CUDA's compiler")
@pytest.mark.parametrize("tf32", [False, True])
def test_the_source_is_cuda_for_hopper(tmp_path: Path, tf32: bool) -> None:
    """The processor's compiler takes what CUDA's would not."""
    source = tmp_path / "train.cu"
    source.write_bytes(b"".join(path.read_bytes() for path in compile.SOURCES))
    words = [f"-D{name}={value}" for name, value in Build.of(SMALL, cluster=4, tf32=tf32).options.items()]
    words = ["nvcc", "-arch=sm_90", "-std=c++17", "-cubin", *words, "-o", str(tmp_path / "out"), str(source)]
    subprocess.run(words, check=True)
    assert (tmp_path / "out").stat().st_size > 0
