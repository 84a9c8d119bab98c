"""Groups of cells on a Ray cluster: one task per group, plain JSON there and back, the driver keeps what arrives."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from equisep import errors
from equisep.errors import EquisepError
from equisep.figures.cell import Cell
from equisep.figures.outcome import Outcome
from equisep.files import json_text
from equisep.progress import Progress, silent
from equisep.runs.ray_tasks import Work, ray_cluster

Finished = Sequence[tuple[Cell, Outcome, dict[str, Any]]]
RUNNER = "equisep.runs.run:run_group"


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

    address, device   as `equisep.runs.ray_tasks.ray_cluster` has them.
    data_dir          the same folder on every machine.
    runner            `module:function`, called on the worker as `run_group` of `equisep.runs.run` is.

    The task of a worker that dies is run again, up to 3 times. An error of a task is raised here as the same sentence and
    class, once what had finished by then was handed over; the other tasks are cancelled.
    """
    if not groups:
        return
    with ray_cluster(address, device=device) as cluster:
        given = cluster.device or device
        folder = None if data_dir is None else str(Path(data_dir).absolute())
        texts = [json_text([cell.to_dict() for cell in group]) for group in groups]
        work = Work(
            decode=finished,
            on_done=lambda number, results: on_done(results),
            names=[f"A group of {len(group)} cells" for group in groups],
            what="groups on Ray",
        )
        cluster.run(run_text, [(runner, text, given, folder) for text in texts], work, progress=progress)


def finished(reply: str) -> Finished:
    """The results of a finished task; the library's error, where it ended with one."""
    content: Mapping[str, Any] = json.loads(reply)
    if "error" in content:
        kind = getattr(errors, content["error"], EquisepError)
        # `__new__` alone: some classes make their sentence themselves, and this one is made already
        failed = kind.__new__(kind, content["text"])
        assert isinstance(failed, EquisepError)
        raise failed
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
