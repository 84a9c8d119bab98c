"""Tasks on a Ray cluster, joined or started for the while: results are handed over as they arrive, an error after them."""

from __future__ import annotations

import importlib
import os
import socket
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, cast

from equisep.errors import EquisepError, InputError, MissingExtraError, NumericalError
from equisep.progress import Progress, silent

RETRIES = 3
REACH_S = 10.0
SETTINGS = 4
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, SETTINGS, 0, 0, 0, 0, 0])
QUIET = {"RAY_USAGE_STATS_ENABLED": "0"}


@dataclass(frozen=True, slots=True)
class Work:
    """What becomes of the replies of tasks: `decode` makes a result of one, or raises what the task ended with.

    `on_done` is called with the number of a task and its result; `names` say what each task is, where its worker dies, and
    `what` all of them are, for the progress.
    """

    decode: Callable[[Any], Any]
    on_done: Callable[[int, Any], None]
    names: Sequence[str]
    what: str


class RayTasks:
    """A cluster that this process is connected to, for functions that run there with one CPU, or one whole GPU, each.

    The task of a worker that dies is run again, up to 3 times, and so is one that ends with an error among `again`.
    """

    def __init__(self, ray: Any, *, address: str, device: str | None) -> None:
        self.ray = ray
        self.gpu = device is not None and device.startswith("cuda")
        if self.gpu and ray.cluster_resources().get("GPU", 0) < 1:
            raise InputError(
                f"`device={device!r}` was asked for on the Ray cluster `{address}`, which has no GPU. "
                "Add a machine with one, or pass `device='cpu'`."
            )

    @property
    def device(self) -> str | None:
        """What a task calls its device: it sees only the GPU that Ray gave it, which is its first."""
        return "cuda" if self.gpu else None

    @property
    def places(self) -> int:
        """How many tasks run at a time."""
        return max(1, int(self.ray.cluster_resources().get("GPU" if self.gpu else "CPU", 1)))

    def run(
        self,
        function: Callable[..., Any],
        tasks: Sequence[tuple[Any, ...]],
        work: Work,
        *,
        progress: Progress = silent,
        again: Sequence[type[Exception]] = (),
    ) -> None:
        """Call the function with the arguments of each task, and hand over what each gives as it arrives.

        An error of a task is raised once what had finished by then was handed over; the other tasks are cancelled.
        """
        remote = self.ray.remote(
            num_cpus=1, num_gpus=int(self.gpu), max_retries=RETRIES, retry_exceptions=list(again) or False
        )(function)
        pending = {remote.remote(*arguments): number for number, arguments in enumerate(tasks)}
        collect(self.ray, pending, work, progress)


def collect(ray: Any, pending: dict[Any, int], work: Work, progress: Progress) -> None:
    """Hand over what arrives; after the first failure only what has finished by then."""
    total = len(pending)
    progress(work.what, 0, total)
    failure: Exception | None = None
    try:
        while pending:
            wanted, wait = (1, None) if failure is None else (len(pending), 0)
            ready, _ = ray.wait(list(pending), num_returns=wanted, timeout=wait)
            if not ready:
                break
            for reference in ready:
                number = pending.pop(reference)
                result = _result(ray, reference, work, name=work.names[number])
                if isinstance(result, Exception):
                    failure = failure or result
                    continue
                work.on_done(number, result)
                progress(work.what, total - len(pending), total)
    finally:
        for reference in pending:
            ray.cancel(reference, force=True)
    if failure is not None:
        raise failure


def _result(ray: Any, reference: Any, work: Work, *, name: str) -> Any:
    """What a finished task gave, or what went wrong in it."""
    try:
        return work.decode(ray.get(reference))
    except ray.exceptions.RayTaskError as error:  # a bug there: its traceback is the message
        return cast(Exception, error)
    except ray.exceptions.RayError as error:
        return NumericalError(
            f"{name} could not be run on the Ray cluster: its worker died {RETRIES + 1} times, most often for want of memory "
            f"({str(error).strip().splitlines()[0].rstrip('.')}). What has finished is kept; give the cluster more memory, "
            "and run the same command again."
        )
    except EquisepError as error:
        return error


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
def ray_cluster(address: str, *, device: str | None) -> Iterator[RayTasks]:
    """Connected to a cluster; one that this process was connected to before stays so.

    address     `ray`: the cluster that runs on this machine, or one that is started for the while; `ray://host:port` or
                `host:port`: that cluster. A cluster that was not started here is left running.
    device      a `cuda` device takes one whole GPU for each task; otherwise a task takes one CPU.
    """
    ray = _ray()
    if ray.is_initialized():
        yield RayTasks(ray, address=address, device=device)
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
        yield RayTasks(ray, address=address, device=device)
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
