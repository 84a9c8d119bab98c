"""A record's content: every cell that was run of a figure, compact enough for a repository, and back; no torch.

    {"kind": "equisep record", "schema": 3, "figure": …, "scale": …, "planned": …,
     "base":        fields of most cells that differ from their defaults
     "series":      {name: fields that all its cells share and that differ from the base}; a cell holds the others
     "missing":     [{"series", "cell"}, …]: what runs asked for and did not get to; left out where nothing is missing
     "made":        [provenance, …]; an entry names one by its place, and holds what is its own, as `wall_s`
     "ways":        [[reading, grain, reduction, weighting, sites], …]; `sites` is a place in
     "sites":       [[name, …], …]
     "entries":     [{"series", "cell", "made", "own", "readings", "numbers", …}, …], one a line; one that another record
                    holds is {"series", "in": its figure, "line": the fingerprint of its line there}}

The readings of an entry are columns: `epoch`, `way`, and of each metric the curves in that order. Numbers of outcomes are
rounded to 7 digits, points to 4. Entries at rates that were not chosen keep what choosing and tabulating rates needs.
Schema 1 had no `series`: there every cell holds all that differs from the base. Schema 2 held every entry itself.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, Literal, get_args

from equisep.errors import InputError
from equisep.figures.cell import Cell, field_defaults
from equisep.figures.evidence import Entry, Evidence, gather
from equisep.figures.figure import Figure
from equisep.figures.outcome import Curves, Outcome
from equisep.files import json_text, plain
from equisep.results.readings import former_reading

KIND, SCHEMA = "equisep record", 3
DIGITS, POINT_DIGITS = 7, 4
Keep = Literal["chosen", "all"]
WAY = ("reading", "grain", "reduction", "weighting", "sites")
COLUMNS = tuple(entry.name for entry in fields(Curves) if entry.name not in ("epoch", *WAY))
SLIM = ("fuzziness", "loss", "accuracy", "accuracy_test")
NOTHING: Mapping[str, Any] = {name: plain(getattr(Curves(epoch=0, reading=""), name)) for name in COLUMNS}


def pack(
    entries: Sequence[Entry],
    figure: Figure,
    scale: str,
    *,
    plan: Iterable[tuple[str, Cell]] = (),
    keep: str = "chosen",
    elsewhere: Mapping[str, Mapping[str, str]] | None = None,
) -> dict[str, Any]:
    """A figure's entries as a record, in plain JSON types.

    plan        what runs asked for, as (series, cell): what of it was not run is listed.
    keep        `chosen`: entries at the chosen rate keep everything, their points for the first seed only; so do those that
                are best for their own seed, without points; the others keep the last epoch's fuzziness, loss and
                accuracies, read in every way, and their numbers. `all`: every entry keeps everything.
    elsewhere   what other records hold (`lines_of`): such entries are named, not held.
    """
    if keep not in get_args(Keep):
        raise InputError(f"A record keeps `chosen` entries or `all` of them; found `{keep}`.")
    plan = list(plan)
    held = [replace(entry, outcome=rounded(entry.outcome)) for entry in entries]
    if keep == "chosen":
        held = _slimmed(held, gather(figure, held, scale=scale, plan=plan))
    named = [elsewhere.get(_content_of(entry)) for entry in held] if elsewhere else [None] * len(held)
    own = [entry for entry, place in zip(held, named, strict=True) if place is None]
    base = _most_common([entry.cell.own_fields() for entry in own])
    owned = _owned([entry.provenance for entry in own])
    made, sites, ways = _Table(), _Table(), _Table()
    lines = []
    for entry in own:
        cell, made_by = entry.cell.to_dict(), plain(entry.provenance)
        line = {
            "series": entry.series,
            "cell": _difference(cell, base),
            "made": made.index_of({name: value for name, value in made_by.items() if name not in owned}),
            "own": {name: _short(value, DIGITS) for name, value in made_by.items() if name in owned},
            "readings": _columns(entry.outcome.readings, ways, sites),
            **{name: value for name, value in plain(entry.outcome).items() if name != "readings"},
        }
        line["points"] = {
            site: [list(each) for each in zip(*rows, strict=True)] for site, rows in line["points"].items()
        }
        lines.append({name: _short(value, None) for name, value in line.items() if value not in ({}, [], None)})
    shared = _shared(lines)
    written = iter([_without(line, shared[line["series"]]) for line in lines])
    lines = [
        next(written) if place is None else {"series": entry.series, **place}
        for entry, place in zip(held, named, strict=True)
    ]
    run = {(entry.series, entry.cell) for entry in held}
    missing = [pair for pair in dict.fromkeys(plan) if pair not in run]
    absent = [{"series": series, "cell": _difference(cell.to_dict(), base)} for series, cell in missing]
    return {
        "kind": KIND,
        "schema": SCHEMA,
        "figure": figure.id,
        "scale": scale,
        "planned": len(held) + len(missing),
        "base": base,
        "series": {name: common for name, common in shared.items() if common},
        **({"missing": absent} if absent else {}),
        "made": made.rows,
        "ways": ways.rows,
        "sites": sites.rows,
        "entries": lines,
    }


def unpack(content: Mapping[str, Any], other: Callable[[str], Mapping[str, Any]] | None = None) -> list[Entry]:
    """The entries that `pack` packed; `other` has the contents of the records that it names."""
    places: dict[str, tuple[Mapping[str, Any], dict[str, Any]]] = {}
    entries = []
    for line in content["entries"]:
        if (figure := line.get("in")) is None:
            entries.append(_entry(content, line))
            continue
        if figure not in places:
            held = other(figure) if other is not None else {"entries": []}
            places[figure] = held, {fingerprint(each): each for each in held["entries"] if "in" not in each}
        held, lines = places[figure]
        if line["line"] not in lines:
            raise InputError(f"the record of `{figure}` does not hold the cell `{line['line']}` any more")
        entries.append(replace(_entry(held, lines[line["line"]]), series=line["series"]))
    return entries


def lines_of(content: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """By what an entry says, where it stands: in the record with this content, which holds it itself."""
    held = [line for line in content["entries"] if "in" not in line]
    return {_content_of(_entry(content, line)): {"in": content["figure"], "line": fingerprint(line)} for line in held}


def fingerprint(line: Mapping[str, Any]) -> str:
    """Of an entry as its record has it."""
    return hashlib.sha256(json_text(line).encode()).hexdigest()[:16]


def _content_of(entry: Entry) -> str:
    """All that an entry says, in the digits that a record keeps, but for its series."""
    return json_text([entry.cell.to_dict(), plain(entry.outcome), _short(plain(entry.provenance), DIGITS)])


def _entry(content: Mapping[str, Any], line: Mapping[str, Any]) -> Entry:
    shared = content.get("series", {}).get(line["series"], {})
    outcome = {name: value for name, value in line.items() if name in ("numbers", "arrays", "diverged", "notes")}
    points = {
        site: [list(row) for row in zip(*columns, strict=True)] for site, columns in line.get("points", {}).items()
    }
    readings = _rows(line.get("readings", {}), content["ways"], content["sites"])
    return Entry(
        line["series"],
        Cell.from_dict({**content["base"], **shared, **line.get("cell", {})}),
        Outcome.from_dict({**outcome, "points": points, "readings": readings}),
        {**content["made"][line["made"]], **line.get("own", {})},
    )


def rounded(outcome: Outcome) -> Outcome:
    """The outcome to the digits that a record keeps, so that what is chosen from a record is what was chosen before."""
    content = plain(outcome)
    points = _short(content.pop("points"), POINT_DIGITS)
    return Outcome.from_dict({**_short(content, DIGITS), "points": points})


def _short(value: Any, digits: int | None) -> Any:
    """Numbers rounded to so many significant digits (None: not at all), and written in their shortest form."""
    if isinstance(value, float):
        value = value if digits is None else float(f"{value:.{digits}g}")
        return int(value) if abs(value) < 10**DIGITS and value.is_integer() and math.copysign(1, value) > 0 else value
    if isinstance(value, dict):
        return {name: _short(entry, digits) for name, entry in value.items()}
    if isinstance(value, list):
        return [_short(entry, digits) for entry in value]
    return value


def _slimmed(entries: Sequence[Entry], evidence: Evidence) -> list[Entry]:
    """Entries that were not chosen without what only chosen ones are asked for."""
    gathered = evidence.series.values()
    chosen = {id(entry) for one in gathered for entry in one.chosen.values()}
    best = {id(entry) for one in gathered for entry in one.best.values()}
    drawn = {id(one.chosen[min(one.chosen)]) for one in gathered if one.chosen}
    slim = []
    for entry in entries:
        outcome = entry.outcome
        if id(entry) not in chosen | best:
            outcome = replace(_last_epoch(outcome), arrays={})
        slim.append(replace(entry, outcome=outcome if id(entry) in drawn else replace(outcome, points={})))
    return slim


def _last_epoch(outcome: Outcome) -> Outcome:
    last = max((reading.epoch for reading in outcome.readings), default=0)
    names = ("epoch", *WAY, *SLIM)
    readings = (reading for reading in outcome.readings if reading.epoch == last)
    return replace(
        outcome, readings=tuple(Curves(**{name: getattr(each, name) for name in names}) for each in readings)
    )


def _most_common(owns: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Of every field the value that most cells have, where that is not its default; of several the first."""
    defaults, base = field_defaults(), {}
    for name in defaults:
        counts = Counter(json.dumps(own.get(name, defaults[name])) for own in owns)
        most = json.loads(counts.most_common(1)[0][0]) if counts else defaults[name]
        if most != defaults[name]:
            base[name] = most
    return base


def _difference(cell: Mapping[str, Any], base: Mapping[str, Any]) -> dict[str, Any]:
    common = {**field_defaults(), **base}
    return {name: value for name, value in cell.items() if value != common[name]}


def _shared(lines: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """By series, the fields that all its cells hold with one value."""
    shared: dict[str, dict[str, Any]] = {}
    for line in lines:
        cell = line.get("cell", {})
        common = shared.setdefault(line["series"], dict(cell))
        shared[line["series"]] = {name: value for name, value in common.items() if cell.get(name, ...) == value}
    return shared


def _without(line: Mapping[str, Any], shared: Mapping[str, Any]) -> dict[str, Any]:
    """An entry whose cell leaves out what its series shares."""
    own = {name: value for name, value in line.get("cell", {}).items() if name not in shared}
    return {name: own if name == "cell" else value for name, value in line.items() if name != "cell" or own}


def _owned(provenances: Sequence[Mapping[str, Any]]) -> set[str]:
    """What an entry holds itself: its time, and whatever else takes so many values that a table would not be shorter."""
    values: dict[str, set[str]] = {}
    for provenance in provenances:
        for name, value in provenance.items():
            values.setdefault(name, set()).add(json_text(value))
    return {"wall_s"} | {name for name, taken in values.items() if len(taken) > max(8, len(provenances) // 4)}


class _Table:
    """Rows, each once, by their index."""

    def __init__(self) -> None:
        self.rows: list[Any] = []
        self._places: dict[str, int] = {}

    def index_of(self, row: Any) -> int:
        text = json_text(row)
        if text not in self._places:
            self._places[text] = len(self.rows)
            self.rows.append(row)
        return self._places[text]


def _columns(readings: Sequence[Curves], ways: _Table, sites: _Table) -> dict[str, list[Any]]:
    """Readings as columns; a metric that none of them has is left out."""
    columns: dict[str, list[Any]] = {"epoch": [], "way": [], **{name: [] for name in COLUMNS}}
    for reading in readings:
        columns["epoch"].append(reading.epoch)
        read = (reading.reading, reading.grain, reading.reduction, reading.weighting)
        way = [*read, sites.index_of(list(reading.sites))]
        columns["way"].append(ways.index_of(way))
        for name in COLUMNS:
            columns[name].append(plain(getattr(reading, name)))
    return {name: column for name, column in columns.items() if any(value != NOTHING.get(name) for value in column)}


def _rows(columns: Mapping[str, list[Any]], ways: Sequence[Any], sites: Sequence[Any]) -> list[dict[str, Any]]:
    names: Iterable[str] = [name for name in columns if name != "way"]
    rows = []
    for index, way in enumerate(columns.get("way", [])):
        *read, site = ways[way]
        row = {name: columns[name][index] for name in names}
        way_read = dict(zip(WAY, [former_reading(read[0]), *read[1:]], strict=False))
        rows.append({**row, **way_read, "sites": sites[site]})
    return rows
