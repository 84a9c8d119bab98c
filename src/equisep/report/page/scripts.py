"""The two scripts that stand in every page: the vendored bundle of Observable Plot, and what draws with it.

`assets/plot.min.js` is made by `scripts/make_plot_bundle.py`, which records its version, size and SHA-256 in
`assets/plot.json`. The page's own script is written in files of one subject each, joined here in an order in which each uses
only what stands before it, inside one strict function: a page has no global but `Plot`.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

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
