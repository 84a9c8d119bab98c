"""The sites of a network on their first two principal components, one panel per site, colored by class (matplotlib)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from equisep.errors import InputError
from equisep.report.formatting import class_labels, one_line, passed_words, shortened_names
from equisep.report.plots import CLASS_COLORS, class_color, plain_text
from equisep.results import Profile, SiteReading


def plot_sites(profile: Profile, *, columns: int = 4, title: str | None = None) -> Figure:
    """Draw every site on its first two principal components, one panel per site, colored by class."""
    sites = [site for site in profile.sites if site.coordinates is not None]
    if not sites:
        raise InputError(
            f"`plot_sites` needs the principal-component coordinates of the sites; the profile of `{profile.model}` "
            "holds none. Measure again with coordinates switched on."
        )
    across = min(columns, len(sites))
    down = math.ceil(len(sites) / across)
    figure = Figure(figsize=(2.2 * across, 2.4 * down + 0.5), layout="constrained")
    names = shortened_names([one_line(site.name) for site in sites], 22)
    classes = class_labels(profile)
    each = passed_words(profile).removesuffix("s")
    for number, (site, name) in enumerate(zip(sites, names, strict=True), start=1):
        words = f"{each} {site.index}\n{name}" if site.index else name  # the input is no layer
        _draw_site(figure.add_subplot(down, across, number), site, words, classes)
    if profile.classes <= 2 * len(CLASS_COLORS):
        handles, labels = _class_keys(figure.axes, classes)
        fitting = max(1, 28 * across // (max(map(len, labels), default=1) + 5))  # a panel is about 28 characters wide
        rows = math.ceil(len(labels) / fitting)
        look: dict[str, Any] = {"ncols": math.ceil(len(labels) / rows), "frameon": False, "fontsize": "small"}
        figure.legend(handles, labels, loc="outside lower center", markerscale=2, handletextpad=0.1, **look)
    if title is not None:
        figure.suptitle(plain_text(title))
    return figure


def _draw_site(axes: Axes, site: SiteReading, title: str, classes: Sequence[str]) -> None:
    assert site.coordinates is not None
    points, labels = site.coordinates.points, site.coordinates.labels
    for kind in sorted(set(labels)):
        mine = [point for point, label in zip(points, labels, strict=True) if label == kind]
        color, label = class_color(kind, len(classes)), plain_text(classes[kind])
        x, y = zip(*mine, strict=True)
        axes.scatter(x, y, s=8, color=color, linewidths=0, alpha=0.85, label=label, rasterized=True)
    axes.set_title("\n".join(map(plain_text, title.split("\n"))), fontsize="small")
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[:].set_alpha(0.3)
    first, second = site.coordinates.explained
    axes.set_xlabel(f"{100 * first:.0f} % + {100 * second:.0f} % of variance", fontsize="x-small")
    axes.margins(0.08)


def _class_keys(panels: Sequence[Axes], classes: Sequence[str]) -> tuple[list[Any], list[str]]:
    """One handle per class, from the first panel that shows it, drawn larger than its dots."""
    handles: dict[str, Any] = {}
    for panel in panels:
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    labels = [label for kind in classes if (label := plain_text(kind)) in handles]
    return [handles[label] for label in labels], labels
