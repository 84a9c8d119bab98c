"""The catalogue: every figure by its id `<paper>/<figure>`, those of the papers and those in a file of the user's."""

from __future__ import annotations

import re
import runpy
from collections.abc import Iterable, Sequence
from dataclasses import InitVar
from functools import cache
from pathlib import Path
from typing import get_type_hints

from equisep.errors import InputError, ProfileError, did_you_mean
from equisep.figures.cell import Cell
from equisep.figures.figure import Figure
from equisep.figures.rules import check_claims
from equisep.files import encode
from equisep.results.codec import decode

_ID = re.compile(r"[A-Za-z0-9_-]+/[A-Za-z0-9_-]+")  # both parts name files, of the store and of the record
_MODULE = "equisep_user_figures"  # the `__name__` under which a user's file runs


@cache
def _of_papers() -> tuple[Figure, ...]:
    """Those of the papers; they are declared, and checked, where they are asked for and not before."""
    from equisep.figures.papers import equisep2026, fang2021, fang2021_two_layer, galanti2022, he2023

    fang = (*fang2021.FIGURES, *fang2021_two_layer.FIGURES)
    return (*he2023.FIGURES, *fang, *galanti2022.FIGURES, *equisep2026.FIGURES)


def all_figures(extra: Path | None = None) -> tuple[Figure, ...]:
    """Every figure, paper by paper; `extra` is a Python file with `FIGURES = (Figure(…), …)` or `FIGURE`: its code is run."""
    known = _of_papers()
    return known if extra is None else (*known, *_of_file(Path(extra), taken=[figure.id for figure in known]))


def figure_of(id: str, extra: Path | None = None) -> Figure:
    """The figure of that id; an unknown one is refused with its near matches."""
    return find_figure(id, all_figures(extra))


def find_figure(id: str, figures: Sequence[Figure]) -> Figure:
    """The one of that id among these."""
    for figure in figures:
        if figure.id == id:
            return figure
    ids = [figure.id for figure in figures]
    near = did_you_mean(id, ids) or _same_name(id, ids)
    raise InputError(f"No figure `{id}`.{near} `equisep figures list` names all {len(ids)}.")


def _same_name(id: str, ids: Sequence[str]) -> str:
    """The papers that have a figure of that name, where only the name or another paper was given."""
    found = [f"`{known}`" for known in ids if known.rpartition("/")[2] == id.rpartition("/")[2]]
    return f" Did you mean {' or '.join(found)}?" if found else ""


def _of_file(path: Path, *, taken: Iterable[str]) -> tuple[Figure, ...]:
    """The figures of a user's file, checked as those of the papers are by the tests."""
    figures = _declared(path)
    seen = set(taken)
    for figure in figures:
        if not _ID.fullmatch(str(figure.id)):
            raise InputError(
                f"`{path}` has a figure `{figure.id}`. An id is PAPER/FIGURE, each of letters, digits, - and _."
            )
        if figure.id in seen:
            raise InputError(f"`{path}` has a figure `{figure.id}`, an id that is taken. Give it another.")
        seen.add(figure.id)
        for series in figure.series:
            _check_types(figure.cell(series), f"`{path}`, figure `{figure.id}`, series `{series.name}`")
        check_claims(figure)
    return figures


def _declared(path: Path) -> tuple[Figure, ...]:
    """What a file declares as `FIGURES` or `FIGURE`; its code is run."""
    if not path.is_file():
        raise InputError(f"No file `{path}` to take figures from. Name a Python file with `FIGURES = (Figure(…),)`.")
    try:
        made = runpy.run_path(str(path), run_name=_MODULE)
    except (Exception, SystemExit) as error:
        raise InputError(f"Running `{path}` failed: {type(error).__name__}: {error}") from error
    if "FIGURES" not in made and "FIGURE" not in made:
        raise InputError(f"`{path}` has neither `FIGURES` nor `FIGURE`. Write `FIGURES = (Figure(…),)` in it.")
    given = made["FIGURES"] if "FIGURES" in made else made["FIGURE"]
    entries = tuple(given) if isinstance(given, list | tuple) else (given,)
    figures = tuple(entry for entry in entries if isinstance(entry, Figure))
    if len(figures) < len(entries):
        others = sorted({type(entry).__name__ for entry in entries if not isinstance(entry, Figure)})
        raise InputError(f"The figures of `{path}` should each be a `Figure`; found {', '.join(others)}.")
    return figures


_TYPES = {
    "bool": "True or False",
    "str": "a name",
    "int": "a whole number",
    "float": "a number",
    "tuple[str, ...]": "names in a tuple",
    "tuple[int, ...]": "whole numbers in a tuple",
    "tuple[float, ...]": "numbers in a tuple",
}


def _check_types(cell: Cell, where: str) -> None:
    """Refuse a declared cell with a value that its field cannot hold: a training would only fail of it later."""
    for name, hint in get_type_hints(type(cell)).items():
        if isinstance(hint, InitVar):
            continue
        value = getattr(cell, name)
        try:
            decode(hint, encode(value), where=name)
        except ProfileError as error:
            kind, either, _ = (hint.__name__ if isinstance(hint, type) else str(hint)).partition(" | None")
            wanted = _TYPES.get(kind, kind) + (" or None" if either else "")
            raise InputError(
                f"{where}: `{name}` should be {wanted}; found {value!r}. Correct the declaration."
            ) from error
