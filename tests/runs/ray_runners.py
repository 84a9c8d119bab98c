"""What workers of a Ray cluster run in the tests; each has the signature of `equisep.runs.run.run_group`."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from equisep.errors import DataError, MissingExtraError, NumericalError
from equisep.figures.cell import Cell
from equisep.figures.outcome import Outcome

Result = list[tuple[Cell, Outcome, dict[str, Any]]]


def doubled(cells: Sequence[Cell], *, device: str | None, data_dir: str | None, progress: Any) -> Result:
    """Twice the seed, and a number that is not finite."""
    made = {"device": device, "data_dir": data_dir, "pid": os.getpid(), "wall_s": float("inf")}
    return [(cell, Outcome(numbers={"twice": 2.0 * cell.seed, "none": float("nan")}), made) for cell in cells]


def waits_to_be_killed(cells: Sequence[Cell], *, device: str | None, data_dir: str | None, progress: Any) -> Result:
    """The first time that the group of seed 1 is run, it tells its process and never ends by itself."""
    assert data_dir is not None
    told = Path(data_dir) / "pid"
    if cells[0].seed == 1 and not told.exists():
        part = told.with_name("part")
        part.write_text(str(os.getpid()))
        part.rename(told)
        while True:
            time.sleep(0.05)
    return doubled(cells, device=device, data_dir=data_dir, progress=progress)


def dies(cells: Sequence[Cell], *, device: str | None, data_dir: str | None, progress: Any) -> Result:
    """A worker that no second try helps."""
    assert data_dir is not None
    with (Path(data_dir) / "tries").open("a") as file:
        file.write(f"{os.getpid()}\n")
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


def fails(cells: Sequence[Cell], *, device: str | None, data_dir: str | None, progress: Any) -> Result:
    """Errors of the library by seed; others go well."""
    if cells[0].seed == 1:
        raise DataError("No file `train.npz` in `data`. Run: equisep data get")
    if cells[0].seed == 2:
        raise MissingExtraError(needed_for="A sentence", package="transformers", extra="text")
    if cells[0].seed == 3:
        raise NumericalError("The solver stopped early.")
    if cells[0].seed == 4:
        return [(cell, Outcome(numbers={"twice": 1 / 0}), {}) for cell in cells]
    return doubled(cells, device=device, data_dir=data_dir, progress=progress)


def waits_for_the_others(cells: Sequence[Cell], *, device: str | None, data_dir: str | None, progress: Any) -> Result:
    """Seed 1 fails once the driver has kept two groups; seeds from 20 on never end by themselves."""
    assert data_dir is not None
    while cells[0].seed >= 20 or (cells[0].seed == 1 and len(list(Path(data_dir).iterdir())) < 2):
        time.sleep(0.05)
    return fails(cells, device=device, data_dir=data_dir, progress=progress)
