"""How a record shows itself: a repr of one line, and in notebooks a table; one way for all frozen records.

@brief
@dataclass(frozen=True, slots=True)
class LawFit: …

>>> profile.law
LawFit(curve=(47.14, …, 0.07246; 8), rho=0.4102, intercept=3.81, half_life=0.7779, r=-0.9974, …)
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from html import escape
from typing import Any, TypeVar

T = TypeVar("T")
WIDTH = 200  # characters of a repr
MOST_ROWS = 12  # of a list of records in a notebook
_FEW, _LONGEST_TEXT = 4, 40
_SPOKEN = ("sentences", "sentence", "answer", "text")  # what a record says of itself in words

# Colors are the theme's own, only fainter or stronger, so that a table is readable on any background.
TABLE = "border-collapse:collapse;font-variant-numeric:tabular-nums;margin:.5em 0;color:inherit;background:none;font-size:inherit"
CELL = "padding:.15em .7em;text-align:{side};border:0;background:none;color:inherit;white-space:nowrap"
HEAD = CELL + ";border-bottom:1px solid currentColor;font-weight:600;vertical-align:bottom"


def brief(cls: type[T]) -> type[T]:
    """Give a dataclass a repr of at most 200 characters, unless it has one of its own, and a table for notebooks."""
    made = getattr(cls.__dict__.get("__repr__"), "__globals__", {}).get("__name__")
    if made in ("dataclasses", "reprlib"):  # the one that `dataclass` made, whatever else is wrapped around methods
        cls.__repr__ = record_line  # type: ignore[method-assign]
    if "_repr_html_" not in cls.__dict__:
        cls._repr_html_ = record_html  # type: ignore[attr-defined]
    return cls


def record_line(record: Any) -> str:
    """A record on one line: fields that hold something, long ones by their size, as many as there is room for."""
    name, text = type(record).__name__, ""
    for field, value in _filled(record):
        more = f"{', ' if text else ''}{field}={short(value)}"
        if len(name) + len(text) + len(more) + len("(, …)") > WIDTH:
            return f"{name}({text}, …)"
        text += more
    return f"{name}({text})"


def short(value: Any) -> str:
    """A value in a few characters: numbers to four digits, collections by their ends and size, arrays by their shape."""
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, str):
        return repr(value if len(value) <= _LONGEST_TEXT else f"{value[: _LONGEST_TEXT - 1]}…")
    if value is None or isinstance(value, bool | int):
        return repr(value)
    if isinstance(value, Mapping):
        keys = ", ".join(str(key) for key in list(value)[:_FEW])
        text = f"{{{keys}{', …' if len(value) > _FEW else ''}}}"
        return text if len(text) <= 2 * _LONGEST_TEXT else f"<{len(value)} entries>"
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return f"<{'×'.join(map(str, value.shape)) or 'one'} {value.dtype}>"
    if isinstance(value, list | tuple | set | frozenset):
        return _ends(list(value))
    return f"{type(value).__name__}(…)" if is_dataclass(value) else f"<{type(value).__name__}>"


def _ends(values: Sequence[Any]) -> str:
    """The first and the last of many, and how many there are; records by their kind."""
    if values and all(is_dataclass(value) for value in values):
        return f"<{len(values)} {type(values[0]).__name__}>"
    if len(values) <= _FEW:
        text = f"({', '.join(map(short, values))}{',' if len(values) == 1 else ''})"
        return text if len(text) <= 2 * _LONGEST_TEXT else f"<{len(values)} values>"
    text = f"({short(values[0])}, …, {short(values[-1])}; {len(values)})"
    return text if len(text) <= 2 * _LONGEST_TEXT else f"<{len(values)} values>"


def _filled(record: Any) -> Iterable[tuple[str, Any]]:
    """The fields that hold something, in their order."""
    for field in fields(record):
        value = getattr(record, field.name)
        empty = value is None or (isinstance(value, list | tuple | Mapping | str | set | frozenset) and not value)
        if field.repr and not empty:
            yield field.name, value


def record_html(record: Any) -> str:
    """A record as a table of its fields, headed by what it is; lists of records as tables of their own. All is escaped."""
    kind = type(record)
    meaning = (inspect.getdoc(kind) or "").partition("\n")[0]
    head = f'<div><strong>{escape(kind.__name__)}</strong> <span style="opacity:.7">{escape(meaning)}</span></div>'
    rows = [(name, value) for name, value in _filled(record)]
    spoken = _spoken(record)
    plain = [(name, _words(value)) for name, value in rows if not _tabular(value)]
    lists = [(name, value) for name, value in rows if _tabular(value)]
    return "".join(
        [
            '<div class="equisep-record">',
            head,
            *(f"<p>{escape(sentence)}</p>" for sentence in spoken),
            table_html(("", ""), plain) if plain else "",
            *(f"<div>{escape(name)}</div>{_list_html(value)}" for name, value in lists),
            "</div>",
        ]
    )


def _words(value: Any) -> str:
    return value if isinstance(value, str) else record_line(value) if is_dataclass(value) else short(value)


def _spoken(record: Any) -> list[str]:
    for name in _SPOKEN:
        said = getattr(record, name, None)
        if isinstance(said, str):
            return [said]
        if isinstance(said, tuple) and said and all(isinstance(each, str) for each in said):
            return list(said)
    return []


def _tabular(value: Any) -> bool:
    return isinstance(value, list | tuple) and bool(value) and all(is_dataclass(each) for each in value)


def _list_html(records: Sequence[Any]) -> str:
    """Records of one kind, one row each; fields that none fills are left out."""
    shown = records[:MOST_ROWS]
    names = [
        field.name
        for field in fields(shown[0])
        if any(dict(_filled(each)).get(field.name) is not None for each in shown)
    ]
    rows = [
        [short(value) if (value := getattr(each, name, None)) is not None else "" for name in names] for each in shown
    ]
    rest = len(records) - len(shown)
    return table_html(names, rows) + (f'<div style="opacity:.7">and {rest} more</div>' if rest else "")


def table_html(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A plain table, numbers at the right; everything in it is text."""
    head = "".join(_cell("th", HEAD, "left", title) for title in titles)
    body = "".join(f"<tr>{''.join(_cell('td', CELL, _side(cell), cell) for cell in row)}</tr>" for row in rows)
    top = f"<thead><tr>{head}</tr></thead>" if any(titles) else ""
    return f'<div style="overflow-x:auto"><table style="{TABLE}">{top}<tbody>{body}</tbody></table></div>'


def _cell(tag: str, style: str, side: str, text: str) -> str:
    if len(text) > _LONGEST_TEXT:
        style = style.replace("white-space:nowrap", "white-space:normal")
    return f'<{tag} style="{style.format(side=side)}">{escape(text)}</{tag}>'


def _side(cell: str) -> str:
    try:
        return "right" if not math.isnan(float(cell)) else "left"
    except ValueError:
        return "left"
