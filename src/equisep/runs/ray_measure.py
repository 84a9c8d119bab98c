"""A measurement on a Ray cluster: its shards are tasks, in two rounds, whose parts are merged here into the profile."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from equisep.errors import DataError, EquisepError, InputError, NumericalError
from equisep.measuring.distributed.merge import merge_files
from equisep.measuring.distributed.part import Means, write_part
from equisep.progress import Progress, silent
from equisep.results import Profile
from equisep.runs.ray_tasks import RayTasks, Work, ray_cluster

UNBROKEN = "100000"  # columns, so that a sentence stays on one line
EXIT_CODES: dict[int, type[EquisepError]] = {kind.exit_code: kind for kind in (InputError, NumericalError)}


class KilledError(RuntimeError):
    """A shard whose process was killed, which is run again."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What a worker sends back: the bytes of a part, or how the command ended that should have made it."""

    part: bytes = b""
    code: int = 0
    text: str = ""


def measure_on_ray(
    words: Sequence[str],
    *,
    address: str,
    shards: int | None = None,
    device: str | None = None,
    folder: Path | None = None,
    progress: Progress = silent,
) -> Profile:
    """The profile that `equisep measure WORDS` makes, read by the workers of a Ray cluster, each one shard at a time.

    words       of the command, without where it runs and what it writes; model and data are found by them on every machine, in
                the same `folder`, the current one unless told.
    shards      as many as tasks run at a time, unless told; more make less of what a lost worker costs.
    address, device   as `equisep.runs.ray_tasks.ray_cluster` has them.

    Only sums travel, a part of K·d numbers per site and shard. A worker that dies costs its shard, which is read again.
    """
    if shards is not None and (isinstance(shards, bool) or not isinstance(shards, int) or shards < 1):
        raise InputError(f"`shards` is how many parts the data are read in, 1 or more; found {shards!r}.")
    here = str((folder or Path.cwd()).absolute())
    with ray_cluster(address, device=device) as cluster, TemporaryDirectory() as kept:
        count = shards or cluster.places
        told = [*words, *(("--device", cluster.device) if cluster.device else ())]
        means = _round(cluster, told, count, here, None, Path(kept) / "first", progress)
        assert not isinstance(means, Profile)
        file = Path(kept) / "means.npz"
        write_part(file, means)
        profile = _round(cluster, told, count, here, file.read_bytes(), Path(kept) / "second", progress)
    assert isinstance(profile, Profile)
    return profile


def _round(
    cluster: RayTasks,
    words: Sequence[str],
    count: int,
    folder: str,
    means: bytes | None,
    parts: Path,
    progress: Progress,
) -> Means | Profile:
    """All shards once, merged."""
    parts.mkdir()
    files = [parts / f"{number}.npz" for number in range(count)]
    sent = None if means is None else cluster.ray.put(means)  # once for all tasks
    shards = [f"{number + 1}/{count}" for number in range(count)]

    def keep(number: int, part: bytes) -> None:
        files[number].write_bytes(part)

    work = Work(
        decode=_part,
        on_done=keep,
        names=[f"Shard {shard}" for shard in shards],
        what=f"shards on Ray, {parts.name} round",
    )
    tasks = [(list(words), shard, folder, sent) for shard in shards]
    cluster.run(run_shard, tasks, work, progress=progress, again=(KilledError,))
    return merge_files(files)


def _part(reply: Reply) -> bytes:
    if reply.code == 0:
        return reply.part
    raise EXIT_CODES.get(reply.code, DataError)(reply.text)


def run_shard(words: Sequence[str], shard: str, folder: str, means: bytes | None) -> Reply:
    """What a worker does: the command of one shard, in a process of its own, and the bytes that it wrote."""
    if not Path(folder).is_dir():
        return Reply(
            code=2, text=f"No folder `{folder}` on the machine of a worker. Model and data are looked for there."
        )
    with TemporaryDirectory() as kept:
        out, file = Path(kept) / "part.npz", Path(kept) / "means.npz"
        more = ["--shard", shard, "--out", str(out), "--quiet"]
        if means is not None:
            file.write_bytes(means)
            more += ["--means", str(file)]
        done = subprocess.run(
            [sys.executable, "-m", "equisep", "measure", *words, *more],
            cwd=folder, env={**os.environ, "COLUMNS": UNBROKEN}, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode < 0:
            raise KilledError(f"Shard {shard} was ended by signal {-done.returncode}.")
        if done.returncode:
            lines = done.stderr.strip().splitlines() or [f"Shard {shard} ended with code {done.returncode}."]
            return Reply(code=done.returncode, text=lines[-1].removeprefix("equisep: "))
        return Reply(part=out.read_bytes())
