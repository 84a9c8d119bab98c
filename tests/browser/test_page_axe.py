"""axe-core finds nothing that keeps anybody from using the page, in light and dark, narrow and wide."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import Opened

# every light and width of a profile; of the other pages the two that differ most
SIGHTS = [("one", width, dark) for width in (380, 1280) for dark in (False, True)]
SIGHTS += [("two", 380, True), ("training", 1280, False)]


@pytest.mark.parametrize(("kind", "width", "dark"), SIGHTS)
def test_axe_finds_no_violation(
    open_page: Callable[..., Opened], pages: dict[str, Path], kind: str, width: int, dark: bool
) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    opened = open_page(pages[kind], width=width, dark=dark)
    opened.draw_all()
    results = axe.run(opened.page)
    assert results.violations_count == 0, results.generate_report()
