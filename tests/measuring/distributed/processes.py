"""Several processes of one group for tests: forked, since a new Python would take seconds to load torch."""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import re
import signal
import socket
import tempfile
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

SECONDS = 120.0  # that all cases of one group may take
CRASHED = (-signal.SIGABRT, -signal.SIGSEGV)


def in_processes(world: int, work: Callable[[int], Any], *, seconds: float = SECONDS) -> list[Any]:
    """What `work(rank)` gives in each of `world` processes of one gloo group: a value, or the exception that it raised.

    Where one of them died inside torch's own code (seen once in many runs, while gloo waited for a tensor of a loaded machine),
    all is done once more, and a warning says so; what dies twice, or elsewhere, has failed.
    """
    found, crashes = _in_processes(world, work, seconds)
    if crashes and all(_inside_torch(trace) for trace in crashes.values()):
        warnings.warn(f"All ranks were run again: {_told(crashes)}", stacklevel=2)
        found, crashes = _in_processes(world, work, seconds)
    assert not crashes, _told(crashes)
    return found


def _in_processes(world: int, work: Callable[[int], Any], seconds: float) -> tuple[list[Any], dict[str, str]]:
    """What each rank gives, and the traces of those that crashed, by rank and signal."""
    fork = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory() as folder:
        port = _port()
        children = [fork.Process(target=_run, args=(rank, world, work, Path(folder), port)) for rank in range(world)]
        for child in children:
            child.start()
        for child in children:
            child.join(seconds)
        alive = [child for child in children if child.is_alive()]
        for child in alive:
            child.kill()
        assert not alive, f"{len(alive)} of {world} processes hang"
        crashes = {
            f"rank {rank} died by {signal.Signals(-child.exitcode).name}": _trace_of(Path(folder), rank).read_text()
            for rank, child in enumerate(children)
            if child.exitcode in CRASHED
        }
        return [_result(Path(folder) / str(rank)) for rank in range(world)], crashes


def _inside_torch(trace: str) -> bool:
    """Whether the thread that crashed was in a function of torch's, or one of torch's own, in which Python has no frame."""
    _, _, crashed = trace.partition("Current thread")
    innermost = re.search(r'File "(.+?)"', crashed)
    return innermost is None or Path(torch.__file__).parent in Path(innermost[1]).parents


def _told(crashes: Mapping[str, str]) -> str:
    until_here = f'  File "{__file__}"'  # the way to `_run` says nothing
    return "\n".join(f"{who}\n{trace.partition(until_here)[0]}" for who, trace in crashes.items())


def outcomes(runs: Mapping[str, Callable[[], Any]]) -> dict[str, Any]:
    """What each run gives in this process, or the exception that it raised: one group of processes serves many cases."""
    found: dict[str, Any] = {}
    for name, run in runs.items():
        try:
            found[name] = run()
        except Exception as error:
            found[name] = error
    return found


def _port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _run(rank: int, world: int, work: Callable[[int], Any], folder: Path, port: int) -> None:
    torch.set_num_threads(1)
    os.environ.update({"GLOO_SOCKET_IFNAME": "lo"})
    with _trace_of(folder, rank).open("w") as trace:
        faulthandler.enable(trace)
        dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=world)
        try:
            found: Any = work(rank)
        except Exception as error:
            found = error
        torch.save(found, folder / f"{rank}.part")
        (folder / f"{rank}.part").rename(folder / str(rank))
        os._exit(0)  # without what the parent would clean up


def _trace_of(folder: Path, rank: int) -> Path:
    return folder / f"{rank}.trace"


def _result(path: Path) -> Any:
    return torch.load(path, weights_only=False) if path.exists() else None
