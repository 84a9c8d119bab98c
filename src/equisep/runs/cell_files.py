"""The file of one stored cell: its fields, what made it and its outcome, under a checksum; of version 0.1 three files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from equisep.figures.cell import Cell
from equisep.figures.outcome import Outcome
from equisep.files import json_text, parse_json, read_json


def key_of(own: Any) -> str:
    """The key of stored fields, also of those that only a newer version knows; see `Cell.key`."""
    return _sha256(json.dumps(own, sort_keys=True).encode())[:32]


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def cell_text(own: Mapping[str, Any], outcome: Outcome, provenance: Mapping[str, Any]) -> str:
    """A cell as its file: the first line holds the checksum of all others."""
    parts = {"cell": own, "provenance": provenance, "outcome": outcome}
    rest = ",\n".join(f'"{name}":{json_text(part)}' for name, part in parts.items()) + "}\n"
    return f'{{"sha256":"{_sha256(rest.encode())}",\n{rest}'


def read_cell(path: Path) -> dict[str, Any] | None:
    """What `cell_text` wrote, None where nothing was; a ValueError says in a clause how it is damaged."""
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return _read_former(path.with_suffix(""))
    except IsADirectoryError:
        raise ValueError(f"`{path.name}` is a folder") from None
    head, _, rest = raw.partition(b"\n")
    if head != f'{{"sha256":"{_sha256(rest)}",'.encode():
        raise ValueError(f"`{path.name}` is truncated or was changed")
    return parse_json(raw, name=path.name)


def _read_former(folder: Path) -> dict[str, Any] | None:
    """The same of a cell that version 0.1 stored: `cell.json` beside it holds the checksums of the other two files."""
    try:
        head = read_json(folder / "cell.json")
        content = {"cell": head.get("cell")}
        for part in ("outcome", "provenance"):
            raw = (folder / f"{part}.json").read_bytes()
            if _sha256(raw) != dict(head.get("sha256") or {}).get(f"{part}.json"):
                raise ValueError(f"`{part}.json` is truncated or was changed")
            content[part] = parse_json(raw, name=f"{part}.json")
    except FileNotFoundError as error:
        if folder.exists():
            raise ValueError(f"`{Path(error.filename).name}` is missing") from error
        return None
    except (NotADirectoryError, IsADirectoryError, TypeError) as error:
        raise ValueError(f"`{folder.name}` is not what it should be") from error
    return content


def group_folder(folder: Path, cells: Sequence[Cell]) -> Path:
    """Where the training of cells that train together is kept while they do."""
    return folder / _sha256("".join(cell.key for cell in cells).encode())[:32]


def checkpoint_path(folder: Path, cell: Cell) -> Path:
    """Where the training of a cell is kept while it trains."""
    return folder / f"{cell.key}.pt"
