"""He & Su's feed-forward networks, trained once and read three ways, as further evidence of their figures; no torch.

`results/readings/readings.json` (`scripts/readings.py`) holds, of ten seeds each, the law of D in `drawn`, `mixed` and `eval`:
of the same weights, where the figures' own records have `mixed` and `eval` alone. Which series of a figure it covers is told
by their cells: the same data, optimizer, depth, class sizes and rates, all that the figure tries or the one that the authors'
code names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from equisep.errors import StoreError
from equisep.figures.cell import Training
from equisep.figures.evidence import Entry, Evidence, gather
from equisep.figures.figure import Figure
from equisep.figures.outcome import Outcome
from equisep.files import parse_json

PLACE = Path("readings") / "readings.json"
_BATCH = 100  # of the reading, as in the figures
_READ = (
    "epochs",
    "read_epochs",
    "readings",
    "grains",
    "reductions",
    "weightings",
    "coordinates",
    "test_sites",
    "class_wise",
)


def evidence_beside(figure: Figure, results: Path) -> Evidence | None:
    """What the record of three readings holds of a figure's series; None where that is nothing."""
    path = results / PLACE
    if not figure.readings or not path.is_file():
        return None
    try:
        content = parse_json(path.read_bytes(), name=path.name)
        entries = list(_entries(figure, content))
    except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
        raise StoreError(f"The record `{path}` is damaged: {error}. Take it from the repository again.") from error
    return gather(figure, entries, scale="paper") if entries else None


def _entries(figure: Figure, content: Mapping[str, Any]) -> Iterator[Entry]:
    made, epochs = content["provenance"], int(content["settings"]["epochs"])
    stored = content["settings"]["data"]
    rows: dict[Training, Mapping[str, Any]] = {}
    for row in content["entries"]:
        if row["batch_size"] == _BATCH:
            rows[_trained(row, epochs)] = row
    for series in figure.series:
        cell = figure.cell(series)
        if not isinstance(cell, Training) or cell.epochs != epochs:
            continue
        by_rate = {rate: rows.get(_bare(cell.with_(rate=rate), epochs)) for rate in figure.rates_of(series)}
        known = {rate: row for rate, row in by_rate.items() if row is not None}
        if len(known) < len(
            by_rate
        ):  # a rate that was not chosen among all is no best one, unless the authors chose it
            known = {rate: row for rate, row in known.items() if figure.code_rates.get(series.name) == rate}
        for rate, row in known.items():
            for seed in range(len(row["accuracy"])):
                data = stored[row["data"]]["stored"]
                kind = {} if data == cell.data else {"data": data, "stands_for": cell.data}
                own = cell.with_(rate=rate, seed=seed, data_seed=seed, **kind)
                yield Entry(series.name, own, Outcome(numbers=dict(_numbers(row, seed))), made)


def _trained(row: Mapping[str, Any], epochs: int) -> Training:
    """The cell that a row was trained as."""
    color = row["data"] == "cifar10"
    equal = row["large"] == row["small"]
    return Training(
        data=row["data"], preparation="he2023-10x10-cifar" if color else "he2023-10x10", optimizer=row["optimizer"],
        depth=int(row["depth"]), rate=float(row["rate"]), epochs=epochs, readings=("drawn", "mixed", "eval"),
        per_class=int(row["large"]) if equal else None,
        sizes=None if equal else (int(row["large"]),) * 5 + (int(row["small"]),) * 5,
    )  # fmt: skip


def _bare(cell: Training, epochs: int) -> Training:
    """A cell as it is trained, without what else is read of it."""
    plain = Training(epochs=epochs, readings=("drawn", "mixed", "eval"))
    return cell.with_(**{name: getattr(plain, name) for name in _READ})


def _numbers(row: Mapping[str, Any], seed: int) -> Iterator[tuple[str, float | None]]:
    yield "accuracy", row["accuracy"][seed]
    for reading, table in row["readings"].items():
        for name in ("r", "rho", "half_life", "last"):
            yield f"{name}@reading={reading}", table[name][seed]
