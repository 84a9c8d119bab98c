"""The page as one file: its head with what the browser may run, its contents, its numbers and its scripts.

`assets/plot.min.js` is made by `scripts/make_plot_bundle.py`, which records its version, size and SHA-256 in
`assets/plot.json`. The page's own script is written in files of one subject each, joined here in an order in which each uses
only what stands before it, inside one strict function: a page has no global but `Plot`.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from equisep._version import __version__
from equisep.files import plain as json_types
from equisep.report.page.markup import Section, link, plain

# nothing is fetched, framed or sent; of scripts the page's own run, known by their hashes
POLICY = "default-src 'none'; script-src {scripts}; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
_INERT = {ord(char): f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"}
_WITHOUT_SCRIPT = "details.numbers::details-content{content-visibility:visible;block-size:auto}"


def document(title: str, sections: Sequence[Section], numbers: Mapping[str, Any]) -> str:
    """A whole HTML file; `title` is text, sections are HTML, and `numbers` are what the scripts draw from."""
    scripts = (plot_script(), page_script())
    policy = POLICY.format(scripts=" ".join(f"'{script_hash(script)}'" for script in scripts))
    contents = "".join(f"<li>{link(section.id, section.short or section.title)}</li>" for section in sections)
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            f'<meta name="generator" content="equisep {__version__}">',
            f"<title>{plain(title)}</title>",
            f"<style>{style()}</style>",
            f"<noscript><style>{_WITHOUT_SCRIPT}</style></noscript>",
            "</head>",
            "<body>",
            '<a class="skip" href="#content">To the content</a>',
            f'<nav id="contents" aria-label="Contents"><ul>{contents}</ul></nav>',
            '<main id="content">',
            *map(_section, sections),
            "</main>",
            f'<script type="application/json" id="equisep-data">{embedded(numbers)}</script>',
            *(f"<script>{script}</script>" for script in scripts),
            "</body>",
            "</html>",
            "",
        ]
    )


def embedded(numbers: Any) -> str:
    """JSON inside HTML: no `</script`, no `<!--`, no line separator can end it; numbers that are not finite are null."""
    text = json.dumps(json_types(numbers), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.translate(_INERT)


def script_hash(script: str) -> str:
    """The hash by which the page's policy knows a script."""
    return f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}"


@cache
def style() -> str:
    """The style sheet."""
    return _asset("page.css")


def _section(section: Section) -> str:
    title = f"{section.id}-title"
    head = f'<h2 id="{title}">{plain(section.title)}</h2>' if section.id != "verdict" else ""
    return f'<section id="{section.id}" aria-labelledby="{title}">{head}{section.body}</section>'


PARTS = (
    "values",  # the embedded numbers, digits, elements
    "theme",  # colors of the style sheet, light and dark
    "profiles",  # which of several is shown, and before printing all of them
    "figures",  # when a figure is drawn and drawn again
    "controls",  # toggles, sliders, play, keys
    "curves",  # what the charts over layers share: axes, hover, arrow keys
    "law",
    "work",
    "layers",  # nearest centers, CDNV, residuals
    "classes",  # heat maps of D per class and of cosines
    "maps",  # samples on two principal components
    "space",  # class means in three dimensions, on a canvas
    "training",  # epochs
    "rare",
    "tables",  # sorting, CSV, copying
    "start",
)


@cache
def plot_script() -> str:
    """Observable Plot as a classic script that sets the global `Plot`; begins with its licenses."""
    return _asset("plot.min.js")


@cache
def page_script() -> str:
    """What draws a page from its embedded numbers, as one classic script that sets no global."""
    parts = [f"// {name}\n{_asset(f'script/{name}.js')}" for name in PARTS]
    return '(() => {\n"use strict";\n' + "\n".join(parts) + "})();\n"


def _asset(name: str) -> str:
    return (files("equisep.report.page") / "assets" / name).read_text(encoding="utf-8")
