"""Tests of the data folder see no folder, cache or network of the machine they run on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from official_files import packed_files, small_source

from equisep.data.official.sources import SOURCES


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty cache, no EQUISEP_DATA and no network; gives the cache."""
    pooch = pytest.importorskip("pooch")
    cache = tmp_path_factory.mktemp("cache")

    def refuse(*args: Any, **kwargs: Any) -> str:
        raise AssertionError("a test tried to download")

    monkeypatch.delenv("EQUISEP_DATA", raising=False)
    monkeypatch.setattr(pooch, "os_cache", lambda project: cache / project)
    monkeypatch.setattr(pooch, "retrieve", refuse)
    return cache


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Any:
    """`small(name)` gives the files of a small data set and makes the library expect exactly them."""

    def make(name: str) -> dict[str, bytes]:
        files = packed_files(name)
        monkeypatch.setitem(SOURCES, name, small_source(name, files))
        return files

    return make
