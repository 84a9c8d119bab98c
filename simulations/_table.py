"""What every simulation shares: entries worked off by several processes, and tables that say how they were made, kept as JSON."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy
import torch

import equisep

RESULTS = Path(__file__).parent / "results"
Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Job:
    """One entry of a table: a function of this file and what it is given, its seed among it; dear ones are begun first."""

    table: str
    make: Callable[..., Rows]
    given: tuple[Any, ...]
    cost: float = 1.0

    @property
    def key(self) -> str:
        """The same in every run that would make the same rows."""
        return f"{self.table}: {self.make.__name__}{self.given!r}"


def finish(name: str, tables: Callable[[int], Mapping[str, Rows]], *, draws: int) -> None:
    """Make the tables, print them, and keep them with `--save`; `--draws` asks for a smaller or greater run."""
    asked = _parser(draws).parse_args()
    _keep(name, asked.draws, tables(asked.draws), [RESULTS] if asked.save else [])


def finish_jobs(name: str, jobs: Callable[[int], Sequence[Job]], *, draws: int) -> None:
    """The same entry by entry, in several processes (`--jobs`).

    Finished entries are kept line by line in `OUT/NAME.jsonl`, so that a run that `--minutes` ended goes on where it stopped;
    the tables are kept when all are there, in OUT as well.
    """
    parser = _parser(draws)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument(
        "--minutes", type=float, default=24 * 60.0, help="stop after so long; finished entries are kept"
    )
    parser.add_argument("--out", type=Path, help="folder of finished entries and of the tables")
    asked = parser.parse_args()
    listed = jobs(asked.draws)
    lines = None if asked.out is None else asked.out / f"{name}.jsonl"
    done = _read(lines)
    left = sorted((job for job in listed if job.key not in done), key=lambda job: -job.cost)
    for key, rows in _worked(left, asked.jobs, time.monotonic() + 60 * asked.minutes):
        done[key] = rows
        _add(lines, key, rows)
    missing = [job.key for job in listed if job.key not in done]
    if missing:
        raise SystemExit(f"{name}: {len(missing)} of {len(listed)} entries are not made yet, the first: {missing[0]}")
    tables: dict[str, list[Mapping[str, Any]]] = {}
    for job in listed:
        tables.setdefault(job.table, []).extend(done[job.key])
    _keep(name, asked.draws, tables, [RESULTS] * asked.save + ([] if asked.out is None else [asked.out]))


def _parser(draws: int) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=draws, help="simulations per entry")
    parser.add_argument("--save", action="store_true", help="keep the tables in simulations/results")
    return parser


def _keep(name: str, draws: int, tables: Mapping[str, Rows], folders: Sequence[Path]) -> None:
    made = {
        "simulation": name,
        "draws": draws,
        "tables": tables,
        "versions": {"equisep": equisep.__version__, "numpy": numpy.__version__},
    }
    text = json.dumps(made, indent=1, ensure_ascii=False, default=_rounded)
    print(text)
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.json").write_text(text + "\n", encoding="utf-8")


def rate(hits: Any) -> float:
    """The share of hits, to the digits that matter."""
    return round(float(numpy.mean(hits)), 4)


def _worked(jobs: Sequence[Job], processes: int, until: float) -> Iterator[tuple[str, Rows]]:
    """Rows as they are made, until time is up."""
    torch.set_num_threads(1)  # as many cores as processes
    with multiprocessing.get_context("fork").Pool(processes) as pool:
        each = pool.imap_unordered(_made, jobs)
        for _ in jobs:
            try:
                yield each.next(timeout=max(0.0, until - time.monotonic()))
            except multiprocessing.TimeoutError:
                return


def _made(job: Job) -> tuple[str, Rows]:
    return job.key, job.make(*job.given)


def _read(lines: Path | None) -> dict[str, Rows]:
    if lines is None or not lines.is_file():
        return {}
    return {each["key"]: each["rows"] for each in map(json.loads, lines.read_text(encoding="utf-8").splitlines())}


def _add(lines: Path | None, key: str, rows: Rows) -> None:
    if lines is not None:
        lines.parent.mkdir(parents=True, exist_ok=True)
        with lines.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"key": key, "rows": rows}, ensure_ascii=False, default=_rounded) + "\n")


def _rounded(value: Any) -> Any:
    return value.item() if isinstance(value, numpy.generic) else str(value)
