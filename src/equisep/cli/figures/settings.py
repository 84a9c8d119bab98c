"""The settings of a run as the command line gives them: fields of cells, the device, the place."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any, get_args

from equisep.errors import InputError, ProfileError, did_you_mean
from equisep.figures.cell import Cell, Problem, Solve, Training, field_names, trainings
from equisep.figures.figure import Figure
from equisep.results.codec import decode
from equisep.results.readings import reading_named

# what has a flag of its own, since a plan is made of it
ELSEWHERE = {
    "seed": "--seeds", "data_seed": "--seeds", "data": "--data NAME=OTHER", "stands_for": "--data NAME=OTHER",
    "network_for": "--network NAME=OTHER",
}  # fmt: skip

NAMED = ("kind", "problem")  # the cell refuses unknown ones itself, with near matches


def cell_changes(texts: Sequence[str]) -> dict[str, Any]:
    """`FIELD=VALUE` of `--set`, each once, with the value as the cell's field wants it."""
    changes: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise InputError(f"`--set` takes FIELD=VALUE, such as dtype=float64; found `{text}`.")
        if name in ELSEWHERE:
            raise InputError(f"`--set {name}` would make all cells alike. Use `{ELSEWHERE[name]}`.")
        field = "readings" if name == "modes" else name
        if field in changes:
            raise InputError(f"`--set {name}` was given twice. Give it once.")
        try:
            changes[field] = _field(name, value)
        except ProfileError as error:  # of a value that the field cannot hold
            raise InputError(f"`--set {text}`: `{name}` is of the type {_type_of(name)}; found `{value}`.") from error
    return changes


def _field(name: str, text: str) -> Any:
    """The value of a field of trainings or of solved problems; one that no cell has is refused with its near matches."""
    if name == "modes":  # the former name of `readings`
        return tuple(reading_named(None, mode=mode) for mode in text.split(","))
    kind = _kind_with(name)
    if kind is None or name in NAMED:
        return getattr(Cell(**{name: text}), name)
    problem = {"problem": get_args(Problem)[1]} if kind is Solve else {}
    return getattr(decode(kind, {**problem, name: _value(name, text)}, where="cell"), name)


def _kind_with(name: str) -> type[Training] | type[Solve] | None:
    return next((kind for kind in (Training, Solve) if name in field_names(kind)), None)


def _value(name: str, text: str) -> Any:
    """As JSON where it is JSON; `1,2,3` where the field is a list of numbers or names; else the text itself."""
    try:
        value = json.loads(text)
    except ValueError:
        value = {"none": None, "true": True, "false": False}.get(text.lower(), text)
    if _type_of(name).startswith("tuple") and not isinstance(value, list) and value is not None:
        return [_value("", part) for part in text.split(",") if part]
    return value


def _type_of(name: str) -> str:
    entries = (entry for kind in (Training, Solve) for entry in fields(kind))
    return next((str(entry.type) for entry in entries if entry.name == name), "")


def check_stand_ins(data: Mapping[str, str], networks: Mapping[str, str], figures: Iterable[Figure]) -> None:
    """Refuse a stand-in for a data set or a network that no figure has: it would change nothing, and nobody would notice."""
    cells = trainings(figure.cell(series) for figure in figures for series in figure.series)
    _check_known("--data", "trains on", data, sorted({cell.data for cell in cells}))
    _check_known("--network", "trains", networks, sorted({cell.network for cell in cells}))


def _check_known(flag: str, verb: str, stand_ins: Mapping[str, str], known: Sequence[str]) -> None:
    for name, other in stand_ins.items():
        if name not in known:
            raise InputError(
                f"`{flag} {name}={other}`: no figure {verb} `{name}`.{did_you_mean(name, known)} They "
                f"{verb.replace('trains', 'train')} {', '.join(known)}."
            )


def check_runner_address(on: str) -> str:
    """`local`, `ray`, or the address of a Ray cluster."""
    if on in ("local", "ray") or on.startswith("ray://"):
        return on
    raise InputError(f"`--on {on}` names no place to run. Known: local, ray, ray://ADDRESS.")
