"""The committed record of figures: written from entries, read back, and found, in a checkout or in a wheel; no torch."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from equisep.errors import EquisepError, StoreError
from equisep.figures.cell import Cell, Training
from equisep.figures.evidence import Entry, Evidence, gather
from equisep.figures.figure import Figure
from equisep.files import json_text, parse_json, write_whole, writing
from equisep.runs.packing import KIND, SCHEMA, pack, unpack
from equisep.runs.plan import RunOptions, cells_to_run

REMARKS = "remarks.json"


class Record(NamedTuple):
    """What `read_record` found: the cells that were run, how many were asked for, and which of these are missing.

    Records of version 0.1 do not list what is missing.
    """

    entries: list[Entry]
    scale: str
    planned: int
    missing: list[tuple[str, Cell]]


def write_record(
    path: str | Path,
    entries: Sequence[Entry],
    figure: Figure,
    scale: str,
    *,
    plan: Iterable[tuple[str, Cell]] = (),
    keep: str = "chosen",
    elsewhere: Mapping[str, Mapping[str, str]] | None = None,
) -> Path:
    """Write a figure's record, one line an entry, so that a difference between two of them can be read."""
    target = Path(path)
    content = pack(entries, figure, scale, plan=plan, keep=keep, elsewhere=elsewhere)
    parts = []
    for name, value in content.items():
        if name in ("missing", "made", "sites", "entries") and value:
            rows = ",\n".join(json_text(row) for row in value)
            parts.append(f"{json_text(name)}:[\n{rows}\n]")
        else:
            parts.append(f"{json_text(name)}:{json_text(value)}")
    with writing(f"The record of `{figure.id}`", target.parent):
        target.parent.mkdir(parents=True, exist_ok=True)
        write_whole(target, "{" + ",\n".join(parts) + "}\n")
    return target


def read_record(path: str | Path) -> Record:
    """What a record holds, with the entries that it names in other records of its folder."""
    source = Path(path)
    content = record_content(source)
    try:
        missing = [
            (line["series"], Cell.from_dict({**content["base"], **line["cell"]})) for line in content.get("missing", ())
        ]
        entries = unpack(content, lambda figure: record_content(source.parent.parent / f"{figure}.json"))
        return Record(entries, str(content["scale"]), int(content["planned"]), missing)
    except (EquisepError, KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        reason = f"it has no {error}" if isinstance(error, KeyError) else str(error).rstrip(".")
        raise StoreError(
            f"The record `{source}` is damaged, or written by a newer equisep: {reason}. Take it from the repository again, "
            "or upgrade."
        ) from error


def record_content(source: Path) -> dict[str, Any]:
    """The JSON object of a record, of a schema that this version reads."""
    try:
        content = parse_json(source.read_bytes(), name=source.name)
    except FileNotFoundError:
        raise StoreError(f"No record at `{source}`. `equisep figures list` names those there are.") from None
    except OSError as error:
        raise StoreError(
            f"The record `{source}` cannot be read: {error.strerror or error}. Give another file."
        ) from error
    except ValueError as error:
        raise StoreError(f"The record `{source}` is damaged: {error}. Take it from the repository again.") from error
    schema = content.get("schema")
    if content.get("kind") != KIND or type(schema) is not int:
        raise StoreError(
            f"`{source}` is no record of a figure: its field `kind` is {content.get('kind')!r}. Give another file."
        )
    if schema > SCHEMA:
        raise StoreError(
            f"The record `{source}` was written by a newer equisep (schema {schema}; this version reads up to {SCHEMA}). "
            "Upgrade equisep to read it."
        )
    return content


def recorded_evidence(figure: Figure, path: str | Path) -> Evidence:
    """The evidence of a figure that its record holds; what a record of version 0.1 lacks, the figure as declared tells."""
    record = read_record(path)
    missing = list(record.missing)
    lacking = record.planned - len(record.entries) - len(missing)
    if lacking > 0:
        run = {(entry.series, _of_paper(entry.cell)) for entry in record.entries}
        asked = [(each.series, each.cell) for each in cells_to_run(figure, RunOptions(record.scale))]
        missing += [(series, cell) for series, cell in asked if (series, _of_paper(cell)) not in run][:lacking]
    planned = [*((entry.series, entry.cell) for entry in record.entries), *missing]
    return gather(figure, record.entries, scale=record.scale, plan=planned)


def _of_paper(cell: Cell) -> Cell:
    """A cell without what stood in for its data or network."""
    return cell.of_paper if isinstance(cell, Training) else cell


def remarks_in(results: Path) -> Mapping[str, Sequence[str]]:
    """What readers should know of recorded numbers, by figure, written by hand beside a record; none without such a file."""
    written = results / REMARKS
    found: Mapping[str, Sequence[str]] = json.loads(written.read_text(encoding="utf-8")) if written.is_file() else {}
    return found


def find_results(folder: str | Path | None = None) -> Path | None:
    """The folder of committed records: `folder`, else EQUISEP_RESULTS, else ./results, else that of the checkout or wheel.

    None where it does not exist. `./results` counts only if it holds a record: other programs have such folders too.
    """
    given = folder or os.environ.get("EQUISEP_RESULTS")
    if given:
        return Path(given) if Path(given).is_dir() else None
    if _holds_records(Path("results")):
        return Path("results")
    package = Path(__file__).resolve().parents[1]
    checkout = package.parents[1]
    if (checkout / "pyproject.toml").is_file() and (checkout / "results").is_dir():
        return checkout / "results"
    packed = package / "record"  # a wheel puts the JSON files of `results/` there
    return packed if packed.is_dir() else None


def _holds_records(folder: Path) -> bool:
    start = f'{{"kind":"{KIND}"'.encode()
    for path in sorted(folder.glob("*/*.json")):
        with path.open("rb") as file:
            if file.read(len(start)) == start:
                return True
    return False
