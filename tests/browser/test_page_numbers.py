"""Every number that the page shows or embeds is the profile's."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from conftest import Opened
from equisep.report.columns import frame_values
from equisep.results import Profile
from equisep.results.profile import CURVES
from equisep.results.wording import number, percent


def test_embedded_numbers_and_tables_are_the_profiles(
    open_page: Callable[..., Opened], pages: dict[str, Path], network: Profile
) -> None:
    page = open_page(pages["one"]).page
    embedded = json.loads(page.locator("#equisep-data").text_content() or "")["profiles"][0]
    for metric in CURVES:
        assert embedded["layers"][metric] == list(network.curve(metric)), metric
    assert embedded["laws"]["train"]["rho"] == network.law.rho
    assert embedded["laws"]["train"]["r"] == network.law.r
    heads = [head.get_attribute("data-name") for head in page.locator("#numbers table.sortable thead th").all()]
    columns = frame_values(network)
    for position, row in enumerate(page.locator("#numbers table.sortable tbody tr").all()):
        cells = dict(zip(heads, [cell.get_attribute("data-value") for cell in row.locator("> *").all()], strict=True))
        for name in columns.keys() & cells.keys():
            value, cell = columns[name][position], cells[name]
            assert (cell == "") if value is None else cell == str(value) or float(cell or "nan") == value, name


def test_the_script_writes_numbers_as_the_library_does(
    open_page: Callable[..., Opened], pages: dict[str, Path], network: Profile
) -> None:
    """What is said of every point of the charts over layers, read out by the arrow keys."""
    opened = open_page(pages["one"])
    opened.draw_all()
    page = opened.page
    said = {}
    for name in ("centers", "cdnv"):
        drawn = page.locator(f"figure[data-plot={name}]")
        drawn.get_by_label("test data", exact=True).uncheck()
        if name == "cdnv":
            drawn.get_by_label("along the lines between class means").uncheck()
        drawn.locator("svg[role=img]").focus()
        said[name] = []
        for _ in network.sites:
            page.keyboard.press("ArrowRight")
            said[name].append(drawn.locator("[aria-live]").inner_text())
    for site, words in zip(network.sites, said["centers"], strict=True):
        assert f"{percent(site.ncc_train)} %" in words
    for site, words in zip(network.sites, said["cdnv"], strict=True):
        assert number(site.cdnv).replace("-", "−") in words
    opened.check_quiet()
