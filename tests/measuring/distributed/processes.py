"""Several processes of one group for tests: forked, since a new Python would take seconds to load torch."""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import tempfile
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
    all is done once more; what dies twice has failed.
    """
    found, crashed = _in_processes(world, work, seconds)
    return _in_processes(world, work, seconds)[0] if crashed else found


def _in_processes(world: int, work: Callable[[int], Any], seconds: float) -> tuple[list[Any], bool]:
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
        crashed = any(child.exitcode in CRASHED for child in children)
        return [_result(Path(folder) / str(rank)) for rank in range(world)], crashed


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
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=world)
    try:
        found: Any = work(rank)
    except Exception as error:
        found = error
    torch.save(found, folder / f"{rank}.part")
    (folder / f"{rank}.part").rename(folder / str(rank))
    os._exit(0)  # without what the parent would clean up


def _result(path: Path) -> Any:
    return torch.load(path, weights_only=False) if path.exists() else None
