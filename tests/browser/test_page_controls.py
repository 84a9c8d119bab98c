"""What a reader can do with the page, by mouse and by keyboard."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from conftest import Opened
from equisep.report.columns import frame_values
from equisep.report.page import profile_page
from equisep.results import Profile

if TYPE_CHECKING:
    from playwright.sync_api import Locator


@pytest.fixture
def one(open_page: Callable[..., Opened], pages: dict[str, Path]) -> Opened:
    opened = open_page(pages["one"])
    opened.draw_all()
    return opened


def figure(opened: Opened, name: str) -> Locator:
    return opened.page.locator(f"figure[data-plot={name}]").first


def ticks(drawn: Locator) -> list[float]:
    """The labels of the vertical axis."""
    words = drawn.locator('g[data-mark="y-axis tick label"] text').all_text_contents()
    return [float(word.replace("−", "-").rstrip(" %")) for word in words]


def test_the_axis_of_the_law_is_logarithmic_or_linear(one: Opened) -> None:
    law = figure(one, "law")
    before = ticks(law)
    assert 0 not in before
    linear = law.get_by_role("button", name="linear")
    linear.click()
    assert linear.get_attribute("aria-pressed") == "true"
    assert law.get_by_role("button", name="log").get_attribute("aria-pressed") == "false"
    after = ticks(law)
    assert 0 in after
    steps = {round(high - low, 9) for low, high in pairwise(after)}
    assert len(steps) == 1
    one.check_quiet()


def test_curves_are_shown_and_hidden(one: Opened) -> None:
    law = figure(one, "law")
    points = law.locator('svg[role=img] g[data-mark="dot"]')
    shown = points.count()
    law.get_by_label("training data", exact=True).uncheck()
    assert points.count() == shown - 1
    law.get_by_label("reading “mixed”").check()
    assert points.count() == shown
    for box in law.get_by_role("checkbox").all():
        box.uncheck()
    assert points.count() == 0
    one.check_quiet()


@pytest.mark.parametrize("name", ["map", "cosines", "space"])
def test_a_slider_goes_through_the_layers(one: Opened, name: str) -> None:
    drawn = figure(one, name)
    slider = drawn.get_by_role("slider")
    image = drawn.locator("svg[role=img], canvas").first
    last, label = drawn.locator("output").inner_text(), image.get_attribute("aria-label")
    slider.focus()
    one.page.keyboard.press("Home")
    assert drawn.locator("output").inner_text() != last
    assert slider.get_attribute("aria-valuetext") == drawn.locator("output").inner_text()
    assert image.get_attribute("aria-label") != label
    one.page.keyboard.press("End")
    assert drawn.locator("output").inner_text() == last
    one.check_quiet()


def test_play_walks_from_the_first_layer_on_and_can_be_stopped(one: Opened) -> None:
    drawn = figure(one, "map")
    slider = drawn.get_by_role("slider")
    play = drawn.locator("button.play")
    play.click()
    assert slider.input_value() == "0"
    one.page.wait_for_function("() => document.querySelector('figure[data-plot=map] input').value === '1'")
    play.click()
    assert "Play" in play.inner_text()
    one.check_quiet()


def test_a_class_can_be_looked_at_alone(one: Opened) -> None:
    drawn = figure(one, "map")
    button = drawn.locator(".key button").first
    button.click()
    assert button.get_attribute("aria-pressed") == "true"
    faint = drawn.locator('svg[role=img] g[data-mark="dot"][fill-opacity="0.08"]')
    assert faint.count() == 4
    button.click()
    assert faint.count() == 0


def test_training_has_a_slider_through_its_epochs(open_page: Callable[..., Opened], pages: dict[str, Path]) -> None:
    opened = open_page(pages["training"])
    opened.draw_all()
    drawn = figure(opened, "law-epochs")
    drawn.get_by_role("slider").focus()
    opened.page.keyboard.press("Home")
    assert drawn.locator("output").inner_text().startswith("epoch 3")
    opened.check_quiet()


def test_class_means_are_turned_by_keys_and_by_dragging(one: Opened) -> None:
    canvas = figure(one, "space").locator("canvas")
    before = canvas.screenshot()
    canvas.focus()
    one.page.keyboard.press("ArrowLeft")
    by_key = canvas.screenshot()
    assert by_key != before
    box = canvas.bounding_box()
    assert box is not None
    middle = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    one.page.mouse.move(*middle)
    one.page.mouse.down()
    one.page.mouse.move(middle[0] + 60, middle[1] + 20, steps=3)
    one.page.mouse.up()
    assert canvas.screenshot() != by_key
    one.check_quiet()


def test_arrow_keys_say_what_hovering_shows(one: Opened, network: Profile) -> None:
    law = figure(one, "law")
    for box in ("test data", "chance level (shuffled labels)", "test, corrected"):
        law.get_by_label(box, exact=True).uncheck()
    law.get_by_label("training, corrected for the number of samples").uncheck()
    image = law.locator("svg[role=img]")
    image.focus()
    for site in network.sites:
        one.page.keyboard.press("ArrowRight")
        said = law.locator("[aria-live]").inner_text()
        assert site.name in said
        assert f"{site.fuzziness:.3f}" in said
    assert law.locator('g[aria-label="tip"] text').count() > 0
    one.check_quiet()


def test_hovering_a_bar_of_the_heat_map_names_the_class(one: Opened) -> None:
    drawn = figure(one, "class-d")
    cells = drawn.locator('svg[role=img] g[data-mark="cell"] rect')
    cells.last.scroll_into_view_if_needed()
    cells.last.hover()
    tip = drawn.locator('g[aria-label="tip"]')
    assert "D of this class" in "".join(tip.all_text_contents())
    drawn.get_by_role("button", name="one chart per class").click()
    assert drawn.locator('g[data-mark="cell"]').count() == 0
    one.check_quiet()


def test_tables_are_sorted_both_ways_with_what_is_missing_last(one: Opened) -> None:
    table = one.page.locator("#numbers table.sortable")
    head = table.locator("th[data-name=load]")
    column = one.page.evaluate(
        "[...document.querySelectorAll('#numbers th')].findIndex(h => h.dataset.name === 'load')"
    )

    def values() -> list[str | None]:
        return [
            cell.get_attribute("data-value") for cell in table.locator(f"tbody tr > :nth-child({column + 1})").all()
        ]

    head.get_by_role("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    rising = [float(value) for value in values() if value]
    assert rising == sorted(rising) and values()[-1] == ""
    head.get_by_role("button").press("Enter")
    assert head.get_attribute("aria-sort") == "descending"
    falling = [float(value) for value in values() if value]
    assert falling == rising[::-1] and values()[-1] == ""
    one.check_quiet()


def test_the_table_is_copied_with_every_digit(one: Opened, network: Profile) -> None:
    one.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    one.page.locator("#numbers").get_by_role("button", name="Copy as CSV").click()
    one.page.wait_for_selector("#numbers .said:has-text('Copied')")
    rows = list(csv.DictReader(io.StringIO(one.page.evaluate("navigator.clipboard.readText()"))))
    for name, values in frame_values(network).items():
        if name not in rows[0]:
            continue
        for row, value in zip(rows, values, strict=True):
            assert row[name] == "" if value is None else row[name] == str(value) or float(row[name]) == value, name
    one.check_quiet()


def test_a_name_that_a_spreadsheet_would_compute_is_copied_as_text(
    open_page: Callable[..., Opened], network: Profile, tmp_path: Path
) -> None:
    names = ("=1+1", "@SUM(A1)", "+1,2", "-3", "plain")
    path = tmp_path / "page.html"
    path.write_text(profile_page([replace(network, class_names=names)]), encoding="utf-8")
    opened = open_page(path)
    opened.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    opened.page.locator("#classes").get_by_role("button", name="Copy as CSV").click()
    opened.page.wait_for_selector("#classes .said:has-text('Copied')")
    rows = list(csv.DictReader(io.StringIO(opened.page.evaluate("navigator.clipboard.readText()"))))
    assert {row["class"] for row in rows} == {"'=1+1", "'@SUM(A1)", "'+1,2", "-3", "plain"}
    opened.check_quiet()


def test_one_profile_of_several_is_chosen_section_by_section(
    open_page: Callable[..., Opened], pages: dict[str, Path]
) -> None:
    opened = open_page(pages["two"])
    for name in ("classes", "maps", "geometry"):
        section = opened.page.locator(f"#{name}")
        first, second = section.locator(":scope > .of-profile").all()
        assert first.is_visible() and second.is_hidden()
        choice = section.get_by_label("Profile", exact=True)
        assert choice.locator("option").count() == 3
        choice.select_option("1")
        assert first.is_hidden() and second.is_visible()
        second.locator("figure.plot").first.scroll_into_view_if_needed()
        second.locator("figure[data-drawn]").first.wait_for()
        choice.select_option("all")
        assert first.is_visible() and second.is_visible()
        choice.select_option("0")
        assert first.is_visible() and second.is_hidden()
    opened.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert opened.page.locator(".of-profile[hidden]").count() == 0  # paper has no choices
    opened.page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert opened.page.locator("#maps .of-profile[hidden]").count() == 1
    opened.check_quiet()
    bare = open_page(pages["two"], scripts=False)
    assert bare.page.locator("#classes .of-profile").last.is_visible() and bare.page.locator("select").count() == 0


def test_where_the_clipboard_is_refused_the_text_is_selected(one: Opened) -> None:
    page = one.page
    page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(new Error('refused')); }")
    page.locator("pre.command + .controls button").first.click()
    area = page.locator("textarea.copied")
    area.wait_for()
    assert page.evaluate(
        "getSelection().toString() || document.activeElement.value.slice(document.activeElement.selectionStart)"
    )
    page.keyboard.press("Tab")
    assert area.count() == 0
    one.check_quiet()
