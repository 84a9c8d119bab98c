"""The notebook's HTML: well formed, escaped, and whole when numbers are missing."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser

import pytest
from report_profiles import bare_profile, full_profile, without_intervals, zero_profile

from equisep.report.html import profile_html
from equisep.results import ClassifierReading, Note

EVIL = "<script>alert('x')</script>&\"\x00"


class Reader(HTMLParser):
    """Collects tags and text, and checks that tags close in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs) -> None:
        self.tags.add(tag)
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data) -> None:
        self.words.append(data)


@pytest.mark.parametrize(
    "profile",
    [full_profile(), without_intervals(full_profile()), bare_profile(), bare_profile(0), zero_profile()],
    ids=["full", "no intervals", "bare", "empty", "zero"],
)
def test_every_profile_is_well_formed(profile) -> None:
    reader = Reader(profile_html(profile))
    assert reader.tags <= {"div", "span", "strong", "br", "table", "thead", "tbody", "tr", "th", "td", "ul", "li"}
    assert "None" not in " ".join(reader.words)


def test_the_numbers_are_there() -> None:
    text = " ".join(Reader(profile_html(full_profile())).words)
    for words in (
        "ρ 0.5149 [0.506, 0.524]",
        "r -0.9998",
        "greatest residual 0.067",
        "imbalance 1.001",
        "BIC gain 0.32",
    ):
        assert words in text
    for words in ("27.24", "D interval", "NCC % test", "Effective depth: site 6", "80.5 % test", "8 directions of 9"):
        assert words in text
    assert full_profile()._repr_html_() == profile_html(full_profile())


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
