"""Real data files, which tests read where EQUISEP_DATA names a folder that holds them; else they skip, and say why."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

FOLDER = os.environ.get("EQUISEP_DATA")  # as it was at the start: tests of data take it away


def real_folder(*names: str, one_of: tuple[str, ...] = ()) -> Path:
    """The folder that holds all these files, and one of those."""
    if not FOLDER:
        pytest.skip("EQUISEP_DATA names no folder with real data files")
    for name in names:
        if not (Path(FOLDER) / name).exists():
            pytest.skip(f"EQUISEP_DATA holds no {name}")
    if one_of and not any((Path(FOLDER) / name).exists() for name in one_of):
        pytest.skip(f"EQUISEP_DATA holds none of {', '.join(one_of)}")
    return Path(FOLDER)


def real_file(name: str) -> Path:
    return real_folder(name) / name
