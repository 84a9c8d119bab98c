"""What a reader sees in the charts of the page: words that cover no mark, colors of one meaning each, axes with names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from conftest import Opened
from equisep.report.page import profile_page
from equisep.results import Profile

if TYPE_CHECKING:
    from playwright.sync_api import Locator


# pixels that the box of a text has above and below, and beside its letters
LEADING, OUTLINE = 4, 4


@pytest.fixture
def drawn(open_page: Callable[..., Opened], tmp_path: Path) -> Callable[..., Opened]:
    """The page of a profile on a screen as narrow as a telephone's, all of it drawn."""

    def opened(profile: Profile) -> Opened:
        path = tmp_path / "page.html"
        path.write_text(profile_page([profile]), encoding="utf-8")
        page = open_page(path, width=380)
        page.draw_all()
        return page

    return opened


def figure(page: Opened, name: str) -> Locator:
    return page.page.locator(f"figure[data-plot={name}]").first


def box(part: Locator) -> tuple[float, float, float, float]:
    found = part.bounding_box()
    assert found is not None
    return found["x"], found["y"], found["x"] + found["width"], found["y"] + found["height"]


def overlap(one: tuple[float, float, float, float], other: tuple[float, float, float, float]) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


@pytest.mark.parametrize("depths", [(3, 2), (2, 3), (1, 2), (0, 4), (4, 3), (2, 2)])
def test_words_of_two_depths_cover_neither_each_other_nor_a_line(
    drawn: Callable[..., Opened], network: Profile, depths: tuple[int, int]
) -> None:
    centers = figure(drawn(replace(network, effective_depth=depths[0], network_depth=depths[1])), "centers")
    chart = centers.locator("svg[role=img]")
    around = [box(chart.get_by_text(text)) for text in ("effective depth", "as good as the network")]
    words = [(left + OUTLINE, top + LEADING, right - OUTLINE, bottom - LEADING) for left, top, right, bottom in around]
    rules = [box(rule) for rule in chart.locator('g[data-mark="rule"][stroke-dasharray="3 3"] line').all()]
    assert len(rules) == 2
    assert not any(overlap(one, other) for one, other in combinations(words, 2))
    assert not any(overlap(text, rule) for text in words for rule in rules)
    assert all(left >= 0 and right <= 380 for left, _, right, _ in words)


def test_level_lines_stand_inside_the_axes(drawn: Callable[..., Opened], network: Profile) -> None:
    chart = figure(drawn(replace(network, accuracy_train=0.4, accuracy_test=0.3)), "centers").locator("svg[role=img]")
    axis = box(chart.locator('g[data-mark="x-axis tick label"]'))
    levels = [box(line) for line in chart.locator('g[data-mark="rule"][stroke-opacity="0.55"] line').all()]
    assert len(levels) == 2 and all(bottom < axis[1] for _, _, _, bottom in levels)


def test_a_reading_has_a_color_that_no_other_curve_has(drawn: Callable[..., Opened], network: Profile) -> None:
    law = figure(drawn(network), "law")
    for check in law.get_by_role("checkbox").all():
        check.check()
    colors = [
        curve.evaluate("node => getComputedStyle(node).stroke")
        for curve in law.locator('svg[role=img] g[data-mark="line"]').all()
    ]
    dots = [
        curve.evaluate("node => getComputedStyle(node.querySelector('path, circle')).stroke")
        for curve in law.locator('svg[role=img] g[data-mark="dot"]').all()
    ]
    reading = dots[-1]  # the last that was checked
    assert reading not in dots[:-1] and colors.count(reading) <= 1


def test_cosines_have_names_on_both_axes_and_an_empty_diagonal(drawn: Callable[..., Opened], network: Profile) -> None:
    chart = figure(drawn(network), "cosines").locator("svg[role=img]")
    sides = [chart.locator(f'g[data-mark="{axis}-axis tick label"] text').all_text_contents() for axis in "xy"]
    assert sides[0] == sides[1] == list(network.class_names or ())
    whole = box(chart)
    assert all(box(text)[3] <= whole[3] + 1 for text in chart.locator('g[data-mark="x-axis tick label"] text').all())
    fills = [
        cell.evaluate("node => getComputedStyle(node).fill")
        for cell in chart.locator('g[data-mark="cell"]').first.locator("rect").all()
    ]
    assert set(fills) == {"rgb(255, 255, 255)"} and len(fills) == len(sides[0])
