"""Groups of cells on a Ray cluster: one task a group, plain JSON there and back, the driver keeps what arrives."""

from __future__ import annotations

import importlib
import json
import os
import socket
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, cast

from equisep import errors
from equisep.errors import EquisepError, InputError, MissingExtraError, NumericalError
from equisep.figures.cell import Cell
from equisep.figures.outcome import Outcome
from equisep.files import json_text
from equisep.progress import Progress, silent

Finished = Sequence[tuple[Cell, Outcome, dict[str, Any]]]
RUNNER = "equisep.runs.run:run_group"
RETRIES = 3
REACH_S = 10.0
SETTINGS = 4
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, SETTINGS, 0, 0, 0, 0, 0])
QUIET = {"RAY_USAGE_STATS_ENABLED": "0"}


def run_groups_on_ray(
    groups: Sequence[Sequence[Cell]],
    *,
    address: str,
    device: str | None,
    data_dir: str | None,
    on_done: Callable[[Finished], None],
    progress: Progress = silent,
    runner: str = RUNNER,
) -> None:
    """Run every group as one task of a Ray cluster, and hand each one's results to `on_done` here as they arrive.

    address     `ray`: the cluster that runs on this machine, or one that is started for this call; `ray://host:port` or
                `host:port`: that cluster. A cluster that this call did not start is left running, and one that this process
                is connected to already is used as it is.
    device      a `cuda` device takes one whole GPU for each task; otherwise a task takes one CPU.
    data_dir    the same folder on every machine.
    runner      `module:function`, called on the worker as `run_group` of `equisep.runs.run` is.

    The task of a worker that dies is run again, up to 3 times. An error of a task is raised here as the same sentence and
    class, once what had finished by then was handed over; the other tasks are cancelled.
    """
    if not groups:
        return
    ray = _ray()
    with _connected(ray, address):
        gpu = device is not None and device.startswith("cuda")
        if gpu and ray.cluster_resources().get("GPU", 0) < 1:
            raise InputError(
                f"`device={device!r}` was asked for on the Ray cluster `{address}`, which has no GPU. "
                "Add a machine with one, or pass `device='cpu'`."
            )
        # the worker sees only the GPU that Ray gave it, which is its first
        given = "cuda" if gpu else device
        folder = None if data_dir is None else str(Path(data_dir).absolute())
        task = ray.remote(num_cpus=1, num_gpus=int(gpu), max_retries=RETRIES)(run_text)
        pending = {
            task.remote(runner, json_text([cell.to_dict() for cell in group]), given, folder): len(group)
            for group in groups
        }
        _collect(ray, pending, on_done, progress)


def _collect(ray: Any, pending: dict[Any, int], on_done: Callable[[Finished], None], progress: Progress) -> None:
    """Hand over what arrives; after the first failure only what has finished by then."""
    total = len(pending)
    progress("groups on Ray", 0, total)
    failure: Exception | None = None
    try:
        while pending:
            wanted, wait = (1, None) if failure is None else (len(pending), 0)
            ready, _ = ray.wait(list(pending), num_returns=wanted, timeout=wait)
            if not ready:
                break
            for reference in ready:
                result = _result(ray, reference, cells=pending.pop(reference))
                if isinstance(result, Exception):
                    failure = failure or result
                    continue
                on_done(result)
                progress("groups on Ray", total - len(pending), total)
    finally:
        for reference in pending:
            ray.cancel(reference, force=True)
    if failure is not None:
        raise failure


def _result(ray: Any, reference: Any, *, cells: int) -> Finished | Exception:
    """The results of a finished task, or what went wrong in it."""
    try:
        content: Mapping[str, Any] = json.loads(ray.get(reference))
    except ray.exceptions.RayTaskError as error:  # a bug there: its traceback is the message
        return cast(Exception, error)
    except ray.exceptions.RayError as error:
        return NumericalError(
            f"A group of {cells} cells could not be run on the Ray cluster: its worker died {RETRIES + 1} times, most often for "
            f"want of memory ({str(error).strip().splitlines()[0].rstrip('.')}). Finished cells are kept; give the cluster more "
            "memory, and run the same command again."
        )
    if "error" in content:
        kind = getattr(errors, content["error"], EquisepError)
        # `__new__` alone: some classes make their sentence themselves, and this one is made already
        failed = kind.__new__(kind, content["text"])
        assert isinstance(failed, EquisepError)
        return failed
    return [(Cell.from_dict(cell), Outcome.from_dict(outcome), made) for cell, outcome, made in content["done"]]


def run_text(runner: str, cells: str, device: str | None, data_dir: str | None) -> str:
    """What a worker does: cells as JSON in, their outcomes or the library's error as JSON out."""
    module, _, name = runner.partition(":")
    run_group = getattr(importlib.import_module(module), name)
    group = [Cell.from_dict(content) for content in json.loads(cells)]
    try:
        results = run_group(group, device=device, data_dir=data_dir, progress=silent)
    except EquisepError as error:
        return json_text({"error": type(error).__name__, "text": str(error)})
    return json_text({"done": [[cell.to_dict(), outcome, made] for cell, outcome, made in results]})


def _ray() -> Any:
    try:
        with _quiet():
            import ray
    except ImportError as error:
        raise MissingExtraError(needed_for="Running on a Ray cluster", package="ray", extra="ray") from error
    return ray


@contextmanager
def _quiet() -> Iterator[None]:
    """Ray asked to say nothing and to report nothing, which it reads from the environment; a user's own wish stands."""
    added = {name: value for name, value in QUIET.items() if name not in os.environ}
    os.environ.update(added)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for name in added:
            os.environ.pop(name, None)


@contextmanager
def _connected(ray: Any, address: str) -> Iterator[None]:
    """Connected to the cluster; one that this process was connected to before stays so."""
    if ray.is_initialized():
        yield
        return
    options = {"logging_level": "ERROR", "log_to_driver": False}
    try:
        with _quiet():
            if address == "ray":
                _join_or_start(ray, options)
            else:
                _reach(address)
                ray.init(address=address, **options)
    except (ConnectionError, TimeoutError, RuntimeError, ValueError) as error:
        if isinstance(error, EquisepError):
            raise
        _forget(ray)
        reason = str(error).strip().splitlines()[0].rstrip(".") if str(error).strip() else type(error).__name__
        raise InputError(
            f"No Ray cluster could be used at `{address}`: {reason}. Start one with `ray start --head`, or pass `ray` for "
            "one on this machine; for a cluster that asks for a token, set RAY_AUTH_MODE=token."
        ) from error
    try:
        yield
    finally:
        ray.shutdown()  # ends a cluster that this process started, and only leaves one that it joined


def _forget(ray: Any) -> None:
    """Ray as it was before a connection failed: a client that reached nobody would otherwise answer every later call."""
    ray.shutdown()
    with suppress(ImportError, AttributeError):  # what turns the client on has no public way to turn it off again
        hooks = importlib.import_module("ray._private.client_mode_hook")
        hooks._explicitly_disable_client_mode()
        hooks._set_client_hook_status(True)


def _join_or_start(ray: Any, options: Mapping[str, Any]) -> None:
    try:
        ray.init(address="auto", **options)
    except ConnectionError:
        ray.init(address="local", include_dashboard=False, **options)


def _reach(address: str) -> None:
    """A Ray cluster listens there: where none does, Ray itself tries for minutes and then ends the whole process."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdecimal():
        raise InputError(f"`{address}` is no address of a Ray cluster. Write `ray`, `ray://host:port` or `host:port`.")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=REACH_S) as asking:
            frame = None if os.environ.get("RAY_USE_TLS") == "1" else _first_frame(asking)
    except (OSError, OverflowError) as error:
        raise InputError(
            f"No Ray cluster answers at `{address}` ({getattr(error, 'strerror', None) or error}). Start one there with "
            "`ray start --head`, or pass `ray` for one on this machine."
        ) from error
    if frame not in (None, SETTINGS):
        raise InputError(
            f"What answers at `{address}` is no Ray cluster. `ray start --head` names the address of one; a client's port, "
            "10001 by default, is written `ray://host:port`."
        )


def _first_frame(asking: socket.socket) -> int:
    """The type of the first frame that a server of HTTP/2 sends, which has to be its settings (RFC 9113, 3.4); −1: none."""
    asking.sendall(PREFACE)
    head = b""
    while len(head) < 4 and (more := asking.recv(9)):
        head += more
    return head[3] if len(head) >= 4 else -1
