"""The page asks nothing of the network and says nothing to the console: in any light, at any width, on paper, without script."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from shown_networks import HOSTILE

from conftest import Opened

KINDS = ("one", "two", "training", "hostile", "hostile two")
POOR = ("one layer", "no test data", "zero")


@pytest.mark.parametrize("kind", (*KINDS, *POOR))
def test_a_page_draws_everything_and_asks_for_nothing(
    open_page: Callable[..., Opened], pages: dict[str, Path], kind: str
) -> None:
    opened = open_page(pages[kind])
    opened.draw_all()
    page = opened.page
    assert page.locator("figure.plot").count() >= 5
    for drawn in page.locator("figure.plot .drawing").all():
        labels = [image.get_attribute("aria-label") for image in drawn.locator("svg[role=img], canvas[role=img]").all()]
        assert all(labels) and (labels or drawn.inner_text())  # a picture, or a sentence that says why there is none
    opened.check_quiet()


@pytest.mark.parametrize("kind", KINDS)
def test_on_a_telephone_nothing_is_wider_than_the_screen(
    open_page: Callable[..., Opened], pages: dict[str, Path], kind: str
) -> None:
    opened = open_page(pages[kind], width=380, dark=True)
    opened.draw_all()
    assert opened.page.evaluate("document.documentElement.scrollWidth") == 380
    drawn = opened.page.locator("figure.plot svg[role=img], figure.plot canvas").all()
    assert max(box["x"] + box["width"] for node in drawn if (box := node.bounding_box())) <= 380
    opened.check_quiet()


def test_figures_are_drawn_as_the_reader_comes_to_them(
    open_page: Callable[..., Opened], pages: dict[str, Path]
) -> None:
    opened = open_page(pages["one"])
    page = opened.page
    page.wait_for_selector("figure[data-plot=law][data-drawn]")
    last = page.locator("figure[data-plot=residuals]")
    assert last.get_attribute("data-drawn") is None
    last.scroll_into_view_if_needed()
    page.wait_for_selector("figure[data-plot=residuals][data-drawn]")
    opened.check_quiet()


def test_on_paper_every_figure_is_drawn_though_nobody_scrolled(
    open_page: Callable[..., Opened], pages: dict[str, Path]
) -> None:
    opened = open_page(pages["one"])
    opened.page.emulate_media(media="print")
    opened.page.wait_for_function("() => !document.querySelector('figure.plot:not([data-drawn])')")
    assert opened.page.locator("figure[data-plot=law] .key").get_by_text("test data").is_visible()
    assert opened.page.pdf().startswith(b"%PDF")
    opened.check_quiet()


def test_width_and_colors_may_change_while_it_is_open(open_page: Callable[..., Opened], pages: dict[str, Path]) -> None:
    opened = open_page(pages["one"])
    opened.draw_all()
    page = opened.page
    before = page.locator("figure[data-plot=law] svg[role=img]").bounding_box()
    light = page.locator("figure[data-plot=space] canvas").screenshot()
    page.set_viewport_size({"width": 500, "height": 900})
    page.wait_for_function(
        "() => document.querySelector('figure[data-plot=law] svg[role=img]').getAttribute('width') < 500"
    )
    after = page.locator("figure[data-plot=law] svg[role=img]").bounding_box()
    assert before is not None and after is not None and after["width"] < before["width"]
    page.emulate_media(color_scheme="dark")
    page.set_viewport_size({"width": 1280, "height": 900})
    page.wait_for_function(
        "() => document.querySelector('figure[data-plot=law] svg[role=img]').getAttribute('width') > 500"
    )
    assert page.locator("figure[data-plot=space] canvas").screenshot() != light
    opened.check_quiet()


def test_without_script_the_page_is_read_all_the_same(open_page: Callable[..., Opened], pages: dict[str, Path]) -> None:
    opened = open_page(pages["one"], scripts=False)
    page = opened.page
    assert page.locator("figure.plot .drawing >> visible=true").count() == 0
    assert page.locator("figure.plot figcaption >> visible=true").count() == page.locator("figure.plot").count()
    assert page.locator("#law details.numbers table >> visible=true").count() == 1  # nobody has to open it
    assert page.locator("#findings").inner_text()
    assert page.locator("#numbers table tbody tr").count() == 5
    assert opened.requests == []


@pytest.mark.parametrize("kind", ["hostile", "hostile two"])
def test_names_stay_text_whatever_they_contain(
    open_page: Callable[..., Opened], pages: dict[str, Path], kind: str
) -> None:
    opened = open_page(pages[kind])
    opened.draw_all()
    page = opened.page
    assert page.title() != "taken"
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 3  # the numbers and two scripts, none of a name's making
    text = page.locator("main").inner_text()
    assert HOSTILE[1] in page.locator("h1").inner_text() or kind == "hostile two"
    assert "<script>" in text
    assert page.evaluate("document.documentElement.scrollWidth") == 1280
    opened.check_quiet()
