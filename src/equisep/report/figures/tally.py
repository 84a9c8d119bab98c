"""The tally of a record: how every figure fared, kept beside the records, so that a list need not judge them all again.

A row counts only while the record, the figure as declared and the files that judge are those it was made of: of each it holds a
fingerprint. Whatever differs is judged anew. `scripts/make_figures_page.py` writes the tally, and a test compares it with what
judging gives, so that no other change can leave it out of date unseen.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any

from equisep.figures.figure import Figure
from equisep.figures.judge import WORDS
from equisep.files import json_text, parse_json
from equisep.report.figures.list import ListRow

TALLY = "tally.json"
KIND = "equisep-tally"
_JUDGE = ("claim_parts", "evidence", "judge", "quantities", "rules", "verdict")  # of `equisep.figures`


def tally_text(rows: Iterable[ListRow], results: Path) -> str:
    """The file, one line a figure, of those that have a record in the folder."""
    lines = [
        f"{json_text(row.figure.id)}:{json_text(_content(row, results))}"
        for row in rows
        if _record(row.figure, results).is_file()
    ]
    return f'{{"kind":"{KIND}",\n"figures":{{\n' + ",\n".join(lines) + "\n}}\n"


@dataclass(frozen=True, slots=True)
class Tally:
    """What a folder of records has kept of each figure, by id."""

    results: Path | None
    figures: Mapping[str, Any]

    @staticmethod
    def of(results: Path | None) -> Tally:
        """The tally in a folder; empty where there is none, or where it cannot be read: all in it can be judged anew."""
        path = None if results is None else results / TALLY
        try:
            content = {} if path is None or not path.is_file() else parse_json(path.read_bytes(), name=path.name)
        except (OSError, ValueError):
            content = {}
        figures = content.get("figures")
        return Tally(results, figures if content.get("kind") == KIND and isinstance(figures, dict) else {})

    def row(self, figure: Figure) -> ListRow | None:
        """How a figure fared, where that was made of all that is there now; else None."""
        kept = self.figures.get(figure.id)
        if self.results is None or not isinstance(kept, dict) or not _record(figure, self.results).is_file():
            return None
        claims = kept.get("claims")
        if kept.get("made_of") != made_of(figure, self.results) or not isinstance(claims, dict):
            return None
        return ListRow(figure, str(kept.get("state")), kept.get("scale"), {word: claims.get(word, 0) for word in WORDS})


def made_of(figure: Figure, results: Path) -> str:
    """A fingerprint of the record, of the figure as declared, and of the rules it is judged by."""
    parts = [_record(figure, results).read_bytes(), json_text(_declared(figure)).encode(), _rules()]
    return hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()[:16]


def _content(row: ListRow, results: Path) -> dict[str, Any]:
    return {
        "state": row.state, "scale": row.scale, "claims": dict(row.claims), "made_of": made_of(row.figure, results),
    }  # fmt: skip


def _record(figure: Figure, results: Path) -> Path:
    return results / f"{figure.id}.json"


@cache
def _rules() -> bytes:
    folder = Path(__file__).resolve().parents[2] / "figures"
    return b"".join((folder / f"{name}.py").read_bytes() for name in _JUDGE)


def _declared(value: Any) -> Any:
    """A record as plain types without the fields that have their defaults: one that is added later changes nothing."""
    if is_dataclass(value):
        return {
            entry.name: _declared(own)
            for entry in fields(value)
            if (own := getattr(value, entry.name)) != entry.default
            and (entry.default_factory is MISSING or own != entry.default_factory())
        }
    if isinstance(value, Mapping):
        return {str(key): _declared(own) for key, own in value.items()}
    return [_declared(own) for own in value] if isinstance(value, list | tuple) else value
