"""What files a page is made of: profiles, one history, or the folder that a demo or a training left."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from equisep.errors import InputError
from equisep.report.page import MOST_PROFILES, history_page, profile_page
from equisep.results.codec import FIRST_WORDS, HISTORY, KIND, load_profile
from equisep.tracking.history import History

STORE = "equisep store"
_HEAD = 4 * FIRST_WORDS  # characters in which a file says what it is


def page_of(paths: Sequence[Path]) -> str:
    """The page of these files as text."""
    files = [file for path in paths for file in _files(path)]
    histories = [file for file in files if _is_history(file)]
    if histories and len(files) > 1:
        raise InputError(
            f"A page shows profiles, or one history; found {len(files) - len(histories)} profiles and {len(histories)} "
            f"histories. Name one kind: `equisep report {histories[0]}`."
        )
    if histories:
        return history_page(History.load(histories[0]), sources=[histories[0].name])
    if len(files) > MOST_PROFILES:
        raise InputError(f"A page compares at most {MOST_PROFILES} profiles; found {len(files)}. Name fewer.")
    profiles = [load_profile(file) for file in files]
    return profile_page(profiles, names=_told_apart(files), sources=[file.name for file in files])


def page_target(paths: Sequence[Path]) -> Path:
    """Where the page goes unless told: `report.html` in a folder, else beside the first file, under its name."""
    first = paths[0]
    if first.is_dir():
        return first / "report.html"
    return first.with_suffix(".html")


def _files(path: Path) -> list[Path]:
    """The file itself; of a folder its profiles, or else its one history."""
    if not path.is_dir():
        return [path]
    if (path / "store.json").is_file():
        raise InputError(
            f"`{path}` is a store of figures' runs, which holds outcomes and no profile. Look at them with "
            f"`equisep figures show FIGURE --store {path}`."
        )
    profiles = [file for file in sorted(path.glob("*.json")) if KIND in _beginning(file)]
    if profiles:
        return profiles
    histories = [file for file in sorted(path.glob("*.jsonl")) if _is_history(file)]
    if not histories:
        raise InputError(
            f"`{path}` holds no profile (*.json) and no history (*.jsonl). `equisep demo`, `equisep measure --out FILE` and "
            "`equisep.Tracker(…, history=FILE)` write them."
        )
    if len(histories) > 1:
        names = ", ".join(file.name for file in histories[:3])
        raise InputError(f"`{path}` holds {len(histories)} histories ({names}): name one of them.")
    return histories


def _is_history(path: Path) -> bool:
    return f'"{HISTORY}"' in _beginning(path)


def _beginning(path: Path) -> str:
    """The first characters of a file; none where it cannot be read, which its reader says better."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.read(_HEAD)
    except OSError:
        return ""


def _told_apart(files: Sequence[Path]) -> list[str]:
    """The names of files, with that of their folders where two have the same."""
    names = [file.stem for file in files]
    return [
        f"{file.resolve().parent.name}/{name}" if names.count(name) > 1 else name
        for file, name in zip(files, names, strict=True)
    ]
