"""Samples in principal components: small axes, one for each site, colored by class."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import SubFigure
from matplotlib.lines import Line2D

from equisep.figures.cell import trainings
from equisep.figures.evidence import Evidence
from equisep.figures.figure import Panel
from equisep.figures.papers import CLASS_NAMES
from equisep.report.figures.drawing.axes import SMALL
from equisep.report.figures.drawing.labels import typeset
from equisep.report.figures.drawing.strokes import GREY
from equisep.report.plots import CLASS_COLORS

ACROSS = 4  # sites in a row, as He & Su 2023 arrange them
_LONG = 8.0  # a cloud longer than this many times its width would be a line in axes of equal units


@dataclass(frozen=True, slots=True)
class Cloud:
    """The samples of one site of one cell: `points` are (x, y), `labels` their classes, `classes` how these are called."""

    title: str
    points: tuple[tuple[float, float], ...]
    labels: tuple[int, ...]
    classes: tuple[str, ...] = ()


def clouds_of(evidence: Evidence, panel: Panel) -> tuple[Cloud, ...]:
    """The sites of the first seed of each series that kept samples; samples that are no numbers are left out."""
    drawn = evidence.figure.drawn_in(panel)
    clouds: list[Cloud] = []
    for series in drawn:
        found = evidence.series.get(series.name)
        kept = [found.chosen[seed] for seed in sorted(found.chosen)] if found else []
        first = next((entry for entry in kept if entry.outcome.points), None)
        names = next((CLASS_NAMES.get(cell.data, ()) for cell in trainings([first.cell] if first else [])), ())
        for index, samples in enumerate(first.outcome.points.values() if first else ()):
            whole = [sample for sample in samples if len(sample) >= 3 and all(map(math.isfinite, sample))]
            layer = f"layer {index}" if index else "input"
            title = layer if len(drawn) == 1 else f"{series.label or series.name}: {layer}"
            labels = tuple(int(sample[2]) for sample in whole)
            clouds.append(Cloud(title, tuple((x, y) for x, y, *_ in whole), labels, names))
    return tuple(clouds)


def rows_of(clouds: Sequence[Cloud]) -> int:
    """How many rows of small axes."""
    return max(1, math.ceil(len(clouds) / ACROSS))


def draw_points(part: SubFigure, panel: Panel, clouds: Sequence[Cloud]) -> None:
    """Draw the sites in rows of four, with one legend of classes; without any the panel says so."""
    if panel.title:
        part.suptitle(typeset(panel.title), fontsize=SMALL + 1.5)
    if not clouds:
        axes = part.add_subplot()
        axes.text(
            0.5, 0.5, "not run", transform=axes.transAxes, ha="center", va="center", color=GREY, fontsize=SMALL + 2
        )
        _bare(axes)
        return
    classes = sorted({label for cloud in clouds for label in cloud.labels})
    for index, cloud in enumerate(clouds):
        _draw_cloud(part.add_subplot(rows_of(clouds), ACROSS, index + 1), cloud, classes)
    if 1 < len(classes) <= 2 * len(CLASS_COLORS):
        look: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 4}
        names = clouds[0].classes
        called = [names[label] if label < len(names) else f"class {label}" for label in classes]
        keys = [
            Line2D([], [], color=_color(label, classes), label=name, **look)
            for label, name in zip(classes, called, strict=True)
        ]
        where: dict[str, Any] = {"loc": "outside lower center", "ncols": min(len(keys), 5), "handletextpad": 0.0}
        part.legend(handles=keys, fontsize=SMALL, frameon=False, columnspacing=1.2, **where)


def _draw_cloud(axes: Axes, cloud: Cloud, classes: Sequence[int]) -> None:
    axes.set_title(typeset(cloud.title), fontsize=SMALL)
    _bare(axes)
    points = np.array(cloud.points, dtype=float).reshape(-1, 2)
    if not len(points):
        axes.text(0.5, 0.5, "no values", transform=axes.transAxes, ha="center", va="center", color=GREY, fontsize=SMALL)
        return
    labels = np.array(cloud.labels)
    for label in classes:
        mine = points[labels == label]
        if len(mine):
            axes.scatter(
                mine[:, 0],
                mine[:, 1],
                s=_dot(len(points)),
                color=_color(label, classes),
                linewidths=0,
                alpha=0.8,
                rasterized=True,
            )
    axes.margins(0.08)
    wide, high = np.ptp(points, axis=0)
    if min(wide, high) * _LONG > max(wide, high):
        axes.set_aspect("equal", adjustable="datalim")


def _dot(samples: int) -> float:
    """The area of a point: larger where there are fewer."""
    return min(14.0, max(4.0, 2500.0 / samples))


def _bare(axes: Axes) -> None:
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[:].set_color("0.8")


def _color(label: int, classes: Sequence[int]) -> Any:
    index = list(classes).index(label)
    if len(classes) <= len(CLASS_COLORS):
        return CLASS_COLORS[index]
    return colormaps["turbo"](index / max(1, len(classes) - 1))
