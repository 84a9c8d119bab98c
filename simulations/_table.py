"""What every simulation shares: a table of rates that says how it was made, kept as JSON in simulations/results."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy

import equisep

RESULTS = Path(__file__).parent / "results"
Rows = Sequence[Mapping[str, Any]]


def finish(name: str, tables: Callable[[int], Mapping[str, Rows]], *, draws: int) -> None:
    """Make the tables, print them, and keep them with `--save`; `--draws` asks for a smaller or greater run."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=draws, help="simulations per entry")
    parser.add_argument("--save", action="store_true", help="keep the tables in simulations/results")
    asked = parser.parse_args()
    made = {
        "simulation": name,
        "draws": asked.draws,
        "tables": tables(asked.draws),
        "versions": {"equisep": equisep.__version__, "numpy": numpy.__version__},
    }
    text = json.dumps(made, indent=1, ensure_ascii=False, default=_rounded)
    print(text)
    if asked.save:
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / f"{name}.json").write_text(text + "\n", encoding="utf-8")


def rate(hits: Any) -> float:
    """The share of hits, to the digits that matter."""
    return round(float(numpy.mean(hits)), 4)


def _rounded(value: Any) -> Any:
    return value.item() if isinstance(value, numpy.generic) else str(value)
