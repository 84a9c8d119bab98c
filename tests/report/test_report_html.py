"""The notebook's HTML: well formed, escaped, and whole when numbers are missing."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from report_profiles import bare_profile, full_profile, sampled_profile, without_intervals, zero_profile

from equisep.report.curve_svg import Frame, _ticks, curve_svg
from equisep.report.notebook import profile_html
from equisep.results import ClassifierReading, Note

EVIL = "<script>alert('x')</script>&\"\x00"


class Reader(HTMLParser):
    """Collects tags and text, and checks that tags close in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.words: list[str] = []
        self.titles: dict[str, str] = {}
        self.head = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs) -> None:
        self.tags.add(tag)
        if tag == "th":
            self.head = dict(attrs)["title"]
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data) -> None:
        self.words.append(data)
        if self.open[-1:] == ["th"]:
            self.titles.setdefault(data, self.head)


@pytest.mark.parametrize(
    "profile",
    [full_profile(), without_intervals(full_profile()), bare_profile(), bare_profile(0), zero_profile()],
    ids=["full", "no intervals", "bare", "empty", "zero"],
)
def test_every_profile_is_well_formed(profile) -> None:
    reader = Reader(profile_html(profile))
    words = {"div", "span", "strong", "br", "table", "thead", "tbody", "tr", "th", "td", "ul", "ol", "li", "code"}
    assert reader.tags <= words | {"svg", "path", "circle", "text", "title"}
    assert "None" not in " ".join(reader.words)


def test_the_numbers_are_there() -> None:
    text = " ".join(Reader(profile_html(full_profile())).words)
    for words in (
        "ρ 0.5149 [0.506, 0.524]",
        "r -0.9998",
        "greatest residual 0.067",
        "evenness 1.001",
        "kink: none that can be told (p = ",
        "law",
        "(r -0.9998, at most -0.996)",
    ):
        assert words in text
    for words in ("27.24", "D from", "Effective depth: layer 6 of 7", "80.5 % test", "8 directions of 9"):
        assert words in text
    assert full_profile()._repr_html_() == profile_html(full_profile())


def test_intervals_say_what_they_are_of() -> None:
    for profile, more in ((sampled_profile(), True), (replace(sampled_profile(), whole=True), False)):
        text = profile._repr_html_()
        assert text.count("] in other samples of this size") == 3  # of ρ, of the half-life, and in the sentence
        assert (text.count("] in the population, from layer 2 on") == 3) == more


def test_columns_without_numbers_are_left_out() -> None:
    text = " ".join(Reader(profile_html(bare_profile())).words)
    assert "not fitted" in text
    assert "CDNV" not in text


def test_everything_from_outside_is_escaped() -> None:
    plain = full_profile()
    profile = replace(
        plain,
        model=EVIL,
        sites=tuple(replace(site, name=EVIL) for site in plain.sites),
        notes=(Note("x", EVIL, site=EVIL),),
        classifier=ClassifierReading(EVIL, 0.1, 0.1, 0.1, 0.1),
        settings={"reading": EVIL, "weighting": EVIL},
    )
    text = profile_html(profile)
    assert "<script" not in text
    assert "\x00" not in text
    assert text.count("&lt;script&gt;") >= len(plain.sites) + 4
    assert "script" not in Reader(text).tags


def test_colors_are_the_themes() -> None:
    text = profile_html(full_profile())
    assert "currentColor" in text
    assert "background:#" not in text
    assert "http" not in text


def test_backticks_are_code() -> None:
    text = profile_html(replace(full_profile(), notes=(Note("x", "Set `a < b` or `c`."),)))
    assert "`" not in text
    assert ">a &lt; b</code> or <code" in text


def test_heads_explain_themselves() -> None:
    reader = Reader(profile_html(full_profile()))
    assert reader.titles["D"].startswith("separation fuzziness D: spread within classes")
    assert "nearest to the mean" in reader.titles["NCC %"]
    assert all(reader.titles.values())


def test_a_bar_per_layer_follows_ln_d() -> None:
    widths = [int(width) for width in re.findall(r"width:(\d+)px", profile_html(full_profile()))]
    assert len(widths) == 8
    assert widths == sorted(widths, reverse=True)
    assert widths[0] == 90
    assert np.ptp(np.diff(widths)) < 5  # a law: equal steps
    assert not re.findall(r"width:\d+px", profile_html(bare_profile()))


def test_findings_stand_first_then_the_curve() -> None:
    profile = full_profile()
    text = profile_html(profile)
    reader = Reader(text)
    shown = " ".join(" ".join(reader.words).split())
    assert profile.findings[0].text.replace("`", " ").split(":")[0] in shown
    assert text.index("<ol") < text.index("<svg") < text.index("<table")


def test_the_curve_has_a_point_per_layer_and_split_where_its_d_is() -> None:
    profile = full_profile()
    svg = curve_svg(profile)
    points = [(float(x), float(y)) for x, y in re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)"', svg)]
    curves = [profile.curve("fuzziness_test"), profile.curve("fuzziness")]
    values = [value for curve in curves for value in curve if value]
    assert len(points) == len(values)
    slope = np.polyfit(np.log(values), [y for _, y in points], 1)
    assert (
        np.abs(np.polyval(slope, np.log(values)) - [y for _, y in points]).max() < 0.1
    )  # rounded to 0.05, and so is the line
    assert slope[0] < 0 and all(0 <= x <= 460 and 0 <= y <= 230 for x, y in points)
    assert re.search(r'aria-label="D against layer, on a logarithmic axis: [\d.]+ to [\d.]+ on training data"', svg)
    assert curve_svg(bare_profile()) == curve_svg(bare_profile(0)) == ""


@pytest.mark.parametrize(("low", "high"), [(0.0, 5.0), (1.0, 1.4), (0.72, 0.86), (0.72, 0.7201)])
def test_an_axis_has_a_tick_however_little_d_changes(low: float, high: float) -> None:
    ticks = _ticks(Frame(0, 3, low, high))
    assert 1 <= len(ticks) <= 7 and all(tick > 0 for tick in ticks)
    assert len(ticks) == 1 or all(low <= math.log(tick) <= high for tick in ticks)
