"""Executing a group of cells on this machine, whatever they are: solved, trained side by side, one by one, or on text."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from equisep._version import __version__
from equisep.figures.cell import Cell
from equisep.figures.outcome import Outcome
from equisep.progress import Progress, silent
from equisep.runs.plan import TEXT, trains_in_ensembles

Result = tuple[Cell, Outcome, dict[str, Any]]


def run_group(
    cells: Sequence[Cell], *, device: str | None = None, data_dir: str | None = None, progress: Progress = silent
) -> list[Result]:
    """The outcomes of a group of the plan, each with its provenance; `wall_s` is a cell's share of the group's time."""
    began = time.perf_counter()
    outcomes, made = _run(cells, device=device, data_dir=data_dir, progress=progress)
    share = (time.perf_counter() - began) / len(cells)
    made = {"equisep": __version__, **made, "together": len(cells), "wall_s": round(share, 4)}
    return [(cell, outcome, dict(made)) for cell, outcome in zip(cells, outcomes, strict=True)]


def _solved(cells: Sequence[Cell]) -> tuple[list[Outcome], dict[str, Any]]:
    import torch

    from equisep.devices import provenance
    from equisep.runs.runners.peeled import solve_cell

    return [solve_cell(cell) for cell in cells], provenance(torch.device("cpu"), torch.float64)


def _run(
    cells: Sequence[Cell], *, device: str | None, data_dir: str | None, progress: Progress
) -> tuple[list[Outcome], dict[str, Any]]:
    # each kind brings its own libraries, which the others need not wait for
    if cells[0].kind == "solve":
        return _solved(cells)
    if cells[0].network.startswith(TEXT):
        from equisep.runs.runners.encoders import run_text

        return run_text(cells, device=device, data_dir=data_dir, progress=progress)
    if trains_in_ensembles(cells[0]):
        from equisep.runs.runners.ensembles import run_ensemble

        return run_ensemble(cells, device=device, data_dir=data_dir, progress=progress)
    from equisep.runs.runners.networks import run_single

    return run_single(cells, device=device, data_dir=data_dir, progress=progress)
