"""The papers' figures, drawn: all of the evidence inside the axes, gaps where it is missing, the same bytes each time."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure as Drawing
from matplotlib.lines import Line2D
from matplotlib.text import Text

from equisep.data.official.sources import SOURCES
from equisep.errors import InputError
from equisep.figures.catalogue import all_figures, figure_of
from equisep.figures.cell import Cell
from equisep.figures.evidence import Entry, Evidence, gather
from equisep.figures.figure import Claim, Figure, Panel, Printed, Rule, Series
from equisep.figures.judge import WORDS, judge
from equisep.figures.outcome import Curves, Outcome
from equisep.figures.papers import CLASS_NAMES, STAND_INS
from equisep.law import fit_law
from equisep.report.figures.drawing.curves import lines_of
from equisep.report.figures.drawing.draw import draw_figure, fingerprint, save_drawn
from equisep.report.figures.drawing.labels import common_label, data_words, own_labels, typeset, way_words, wrapped
from equisep.report.figures.drawing.strokes import Scale
from equisep.report.figures.drawing.ticks import log_words
from equisep.report.figures.readings import reading_notes, reading_words
from equisep.report.plots import LAW_STYLES
from equisep.results import law_verdict
from equisep.results.records import FUZZY_R, NO_LAW_R
from equisep.runs.record import recorded_evidence
from figures.synthetic_figures import asked_for, shown_evidence

Maker = Callable[[str, int], Outcome | None]


def noisy_curve(length: int, rho: float, seed: int, first: float = 25.0) -> tuple[float, ...]:
    noise = np.random.default_rng([length, seed]).normal(0, 0.08, length)
    return tuple(float(value) for value in first * rho ** np.arange(length) * np.exp(noise))


def reading(epoch: int = 600, mode: str = "mixed", **curves: object) -> Curves:
    return Curves(epoch=epoch, reading=mode, **curves)  # type: ignore[arg-type]


def evidence_of(
    series: Sequence[Series],
    panels: Sequence[Panel],
    make: Maker,
    *,
    seeds: int = 3,
    scale: str = "paper",
    printed: Sequence[Printed] = (),
    columns: int = 3,
    asked: int = 0,
    device: str = "NVIDIA H200",
    fit: float | None = None,
) -> Evidence:
    figure = Figure(
        id="paper/fig",
        title="A figure",
        source="Authors (2023), Fig. 1",
        cite="",
        base=Cell(),
        series=tuple(series),
        panels=tuple(panels),
        printed=tuple(printed),
        columns=columns,
        fit=fit,
    )
    entries = []
    for one in series:
        for seed in range(seeds):
            outcome = make(one.name, seed)
            if outcome is not None:
                cell = figure.cell(one).with_(seed=seed, data_seed=seed)
                entries.append(Entry(one.name, cell, outcome, {"device": device}))
    return gather(figure, entries, scale=scale, plan=asked_for(figure, asked))


def nine_panels(**settings: object) -> Evidence:
    """Three optimizers, three depths, and the sites of one network as points: as He & Su 2023, Fig. 1."""
    names = [f"{optimizer}-{depth}" for depth in (4, 8, 20) for optimizer in ("sgd", "momentum", "adam")]
    rho = {4: 0.25, 8: 0.53, 20: 0.818}

    def make(name: str, seed: int) -> Outcome:
        depth = int(name.split("-")[1])
        return Outcome(
            readings=(reading(fuzziness=noisy_curve(depth, rho[depth], seed)),),
            points=clouds(8) if name == "adam-8" else {},
        )

    panels = [Panel(name, name.replace("-", ", ")) for name in names]
    panels.append(Panel("points", "Sites", "points", series=("adam-8",)))
    printed = (Printed("sgd-4", "r", -1.0, "Fig. 1"), Printed("adam-20", "rho", 0.818, "text"))
    series = [Series(name, {"depth": int(name.split("-")[1])}, name) for name in names]
    return evidence_of(series, panels, make, printed=printed, **settings)  # type: ignore[arg-type]


def clouds(sites: int, classes: int = 10) -> Mapping[str, tuple[tuple[float, ...], ...]]:
    rng = np.random.default_rng(0)
    found = {}
    for site in range(sites):
        centers = rng.normal(0, 1 + site, (classes, 2))
        points = [(*(centers[k] + rng.normal(0, 1, 2)), float(k)) for k in range(classes) for _ in range(12)]
        found[f"blocks.{site}.relu"] = tuple(tuple(map(float, point)) for point in points)
    return found


def one_panel(
    panel: Panel, make: Maker, names: Sequence[str] = ("a",), *, seeds: int = 3, printed: Sequence[Printed] = ()
) -> Axes:
    series = [Series(name, panel="" if panel.series else panel.name) for name in names]
    return draw_figure(evidence_of(series, [panel], make, seeds=seeds, printed=printed)).axes[0]


def assert_all_inside(drawing: Drawing) -> None:
    """Every finite point of every line, band and cloud lies inside the limits of its axes."""
    drawing.draw_without_rendering()
    for axes in drawing.axes:
        places = [
            np.column_stack(line.get_data()).astype(float)
            for line in axes.lines
            if line.get_transform() == axes.transData
        ]
        for collection in axes.collections:
            if isinstance(collection, PathCollection):
                places.append(np.asarray(collection.get_offsets(), dtype=float))
            else:
                places += [path.vertices for path in collection.get_paths()]
        (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
        for points in places:
            x, y = points[np.isfinite(points).all(axis=1)].T
            assert (x >= left).all() and (x <= right).all() and (y >= low).all() and (y <= high).all()
            assert axes.get_yscale() != "log" or (y > 0).all()


def whole(axes: Axes) -> Drawing:
    drawing = axes.get_figure(root=True)
    assert isinstance(drawing, Drawing)
    return drawing


def words_of(drawing: Drawing | Axes) -> str:
    return "\n".join(text.get_text() for text in drawing.findobj(Text) if text.get_text())


def legend_of(axes: Axes) -> list[str]:
    legend = axes.get_legend()
    return [] if legend is None else [text.get_text() for text in legend.get_texts()]


def curves_of(axes: Axes) -> list[np.ndarray]:
    """The y of the lines with markers, without those on the floor and the paper's crosses."""
    return [
        np.asarray(line.get_ydata(), dtype=float)
        for line in axes.lines
        if line.get_marker() not in ("None", "x", "", "v")
    ]


@pytest.fixture(scope="module")
def nine() -> Drawing:
    return draw_figure(nine_panels())


def test_nine_panels_and_the_sites_below_them(nine: Drawing) -> None:
    drawing = nine
    assert len(drawing.axes) == 9 + 8
    assert_all_inside(drawing)
    grid, small = drawing.axes[:9], drawing.axes[9:]
    boxes = [axes.get_window_extent() for axes in grid]
    for row in range(3):
        assert len({round(box.y0) for box in boxes[3 * row : 3 * row + 3]}) == 1
        assert boxes[3 * row].x1 < boxes[3 * row + 1].x0 < boxes[3 * row + 2].x0
    assert boxes[0].y0 > boxes[3].y1 and boxes[3].y0 > boxes[6].y1
    assert all(axes.get_window_extent().y1 < boxes[8].y0 for axes in small)
    assert [axes.get_title() for axes in small] == ["input", *(f"layer {site}" for site in range(1, 8))]
    for axes in grid:
        assert axes.get_yscale() == "log"
        assert len(axes.lines) == 2 and len(axes.collections) == 1  # the points and the law; the band
    assert [axes.get_ylabel() for axes in grid[:3]] == ["separation fuzziness D", "", ""]
    assert [axes.get_xlabel() for axes in grid[::3]] == ["", "", "layer (0 = input)"]
    for row in range(3):  # heights of a row are compared, so their scale is one
        assert len({axes.get_ylim() for axes in grid[3 * row : 3 * row + 3]}) == 1
        assert [axes.yaxis.get_tick_params()["labelleft"] for axes in grid[3 * row : 3 * row + 3]] == [
            True,
            False,
            False,
        ]
    words = words_of(drawing)
    assert "A figure" in words and "Authors (2023), Fig. 1" in words
    assert "100 images per class · read in batches that mix the classes (mixed) · run on NVIDIA H200" in words
    assert "dots: mean of 3 seeds (geometric where the axis is logarithmic); band: lowest to highest seed" in words
    assert "paper r −1.000" in words and "paper ρ 0.818" in words


def test_points_are_geometric_means_and_the_line_is_their_law(nine: Drawing) -> None:
    axes = nine.axes[8]
    seeds = np.array([noisy_curve(20, 0.818, seed) for seed in range(3)])
    middle = np.exp(np.log(seeds).mean(axis=0))
    points, fitted = (np.asarray(line.get_ydata(), dtype=float) for line in axes.lines)
    np.testing.assert_allclose(points, middle, rtol=1e-12)
    law = fit_law(middle)
    assert law.intercept is not None and law.rho is not None
    np.testing.assert_allclose(fitted, np.exp(law.intercept) * law.rho ** np.array([0.0, 19.0]), rtol=1e-12)
    edges = axes.collections[0].get_paths()[0].vertices
    for site in range(20):
        own = edges[edges[:, 0] == site, 1]
        np.testing.assert_allclose([own.min(), own.max()], [seeds[:, site].min(), seeds[:, site].max()], rtol=1e-12)
    laws = [fit_law(own) for own in seeds]
    expected = f"r = {np.mean([law.r for law in laws]):.3f}, ρ = {np.mean([law.rho for law in laws]):.3f}"
    assert expected.replace("-", "−") in words_of(axes)


@pytest.mark.parametrize("rho", [0.6, 0.995, 1.2])
def test_words_in_a_corner_cover_nothing(rho: float) -> None:
    """Falling, flat and rising: the words move, or the limits make room."""
    evidence = evidence_of(
        [Series("a", panel="p")],
        [Panel("p")],
        lambda _, seed: Outcome(readings=(reading(fuzziness=noisy_curve(12, rho, seed)),)),
        printed=[Printed("a", "r", -0.9, "p. 1")],
    )
    drawing = draw_figure(evidence)
    assert_all_inside(drawing)
    axes = drawing.axes[0]
    extent = axes.get_legend().get_window_extent()
    assert axes.get_window_extent().containsx(extent.x0) and axes.get_window_extent().containsy(extent.y1)
    edges = axes.collections[0].get_paths()[0].vertices
    for x, y in [*axes.lines[0].get_xydata(), *axes.lines[1].get_xydata(), *edges]:
        assert not extent.contains(*axes.transData.transform((x, y)))
    assert ("no law (r > −0.971 or ρ ≥ 1)" in words_of(drawing)) == (rho != 0.6)


@pytest.mark.parametrize(
    ("noise", "verdict", "style"),
    [(0.0, "law (r ≤ −0.996)", "-"), (0.15, "between law and no law", "-."), (0.5, "no law (r > −0.971", ":")],
)
def test_the_line_of_a_law_has_the_style_of_its_verdict(noise: float, verdict: str, style: str) -> None:
    """Of the mean r over seeds, as claims are judged, not of the r of the mean curve, which is better."""

    def make(_: str, seed: int) -> Outcome:
        bent = np.exp(noise * np.random.default_rng(seed).normal(size=10))
        return Outcome(readings=(reading(fuzziness=tuple(float(v) for v in 20 * 0.7 ** np.arange(10) * bent)),))

    axes = one_panel(Panel("p"), make, seeds=4)
    (stretch,) = lines_of(evidence_of([Series("a", panel="p")], [Panel("p")], make, seeds=4), Panel("p"))[0].laws
    assert LAW_STYLES[stretch.verdict] == {"-": "-", "-.": LAW_STYLES["between"], ":": LAW_STYLES["no law"]}[style]
    assert verdict in words_of(whole(axes))
    fits = [fit_law(curve_of_seed(make("a", seed))) for seed in range(4)]
    assert stretch.verdict == law_verdict(
        np.mean([fit.r for fit in fits]), np.mean([fit.rho for fit in fits]), sites=10
    )


@pytest.mark.parametrize(
    ("r", "printed"),
    [
        (-0.9971, "−0.997"), (-0.9957, "−0.9957"), (-0.99598, "−0.99598"), (-0.995996, "−0.995996"), (-0.97099, "−0.97099"),
        (-0.94999, "−0.94999"),
    ],
)  # fmt: skip
def test_r_has_the_digits_that_show_on_which_side_of_a_law_it_is(r: float, printed: str) -> None:
    def make(*_: object) -> Outcome:
        return Outcome(readings=(reading(fuzziness=(4.0, 2.0, 1.0)),), numbers={"r": r, "rho": 0.5})

    (line,) = lines_of(evidence_of([Series("a", panel="p")], [Panel("p")], make, seeds=1), Panel("p"))
    assert line.words == f"r = {printed}, ρ = 0.500"


@pytest.mark.parametrize(("rule", "quantity"), [("fuzzy law", "r"), ("law", "r"), ("fuzzy law", "r@of=fuzziness_test")])
def test_a_fuzzy_law_is_called_so_where_it_is_claimed_of_the_curve(rule: Rule, quantity: str) -> None:
    def make(_: str, seed: int) -> Outcome:
        bent = np.exp(0.5 * np.random.default_rng(7 + seed).normal(size=10))
        return Outcome(readings=(reading(fuzziness=tuple(float(v) for v in 20 * 0.7 ** np.arange(10) * bent)),))

    evidence = evidence_of([Series("a", panel="p")], [Panel("p")], make, seeds=1)
    law = fit_law(curve_of_seed(make("a", 0)))
    assert law.r is not None and FUZZY_R > law.r > NO_LAW_R
    claimed = replace(evidence, figure=replace(evidence.figure, claims=(Claim("", rule, ("a",), quantity),)))
    words = words_of(draw_figure(claimed, []))
    fuzzy = (rule, quantity) == ("fuzzy law", "r")
    assert ("fuzzy law (r ≤ −0.95)" in words) == fuzzy and ("no law (r > −0.971 or ρ ≥ 1)" in words) != fuzzy


def test_no_law_means_one_thing_and_what_is_not_even_fuzzy_is_called_so() -> None:
    noise = np.random.default_rng(0).normal(size=10)
    bent = tuple(float(value) for value in 20 * 0.7 ** np.arange(10) * np.exp(2 * noise))
    assert (fit_law(bent).r or 0) > FUZZY_R

    def words(*claimed: str) -> str:
        series = [Series(name, panel=name) for name in "ab"]
        evidence = evidence_of(
            series, [Panel("a"), Panel("b")], lambda *_: Outcome(readings=(reading(fuzziness=bent),)), seeds=1
        )
        claims = (Claim("", "fuzzy law", claimed),) if claimed else ()
        return words_of(draw_figure(replace(evidence, figure=replace(evidence.figure, claims=claims)), []))

    plain, fuzzy = "no law (r > −0.971 or ρ ≥ 1)", "not even a fuzzy law (r > −0.95 or ρ ≥ 1)"
    assert plain in words() and fuzzy not in words()
    assert fuzzy in words("a", "b") and plain not in words("a", "b")
    assert f"{plain} / {fuzzy}" in words("a")  # one style, so one key


def test_lines_that_look_the_same_have_one_key() -> None:
    def make(_: str, seed: int) -> Outcome:
        return Outcome(readings=(reading(ncc=(0.2, 0.9), ncc_test=(0.2, 0.5), accuracy=1.0, accuracy_test=0.5),))

    panels = [
        Panel(y, y, "epochs", f"{y}@site=0;{y}@site=1;{own}", series=("a",), ordered="layer", log_y=False)
        for y, own in (("ncc", "accuracy"), ("ncc_test", "accuracy_test"))
    ]
    drawing = draw_figure(evidence_of([Series("a")], panels, make))
    (legend,) = (legend for part in drawing.subfigs[0].subfigs for legend in part.legends)
    assert [text.get_text() for text in legend.get_texts()] == ["training accuracy / test accuracy"]


def test_the_reading_is_named_of_all_that_is_made_of_features() -> None:
    def make(_: str, seed: int) -> Outcome:
        curves = {"fuzziness": noisy_curve(4, 0.5, seed), "fuzziness_test": noisy_curve(4, 0.7, seed)}
        by_class = (noisy_curve(4, 0.6, seed),)
        return Outcome(
            readings=(reading(mode="drawn", class_fuzziness=by_class, **curves),),
            arrays={"course_nc1": (1.0, 0.1), "course_epoch": (1.0, 2.0)}, numbers={"change": 0.1, "energy": 2.0},
        )  # fmt: skip

    def read(panel: Panel, **changes: object) -> list[str]:
        return reading_words(evidence_of([Series("a", changes, "p")], [panel], make))

    drawn, mixed = "in batches in the order of drawing (drawn)", "in batches that mix the classes (mixed)"
    for panel in (
        Panel("p"), Panel("p", y="class_fuzziness@class=0"), Panel("p", kind="epochs", y="ratios@site=1"),
        Panel("p", kind="array", y="course_nc1", x="course_epoch"), Panel("p", kind="categories", y="change"),
        Panel("p", kind="scatter", y="energy", x="last"),
    ):  # fmt: skip
        assert read(panel) == [f"read {drawn}"]
        assert read(panel, norm=False) == read(panel, data="sst2") == []
    assert read(Panel("p", kind="categories", y="energy")) == []
    assert read(Panel("p", y="fuzziness_test")) == [f"test data read {mixed}"]
    assert read(Panel("p", y="fuzziness;fuzziness_test")) == [f"training data read {drawn}", f"test data read {mixed}"]
    both = evidence_of([Series("a", {"test_sites": True}, "p"), Series("b", {"norm": False})], [Panel("p")], make)
    assert reading_notes(both) == [
        f"Features, of which D and r are made, were read {drawn}, of test data {mixed}; networks without BatchNorm have the same "
        "features in every reading."
    ]
    bare = evidence_of([Series("a", {"norm": False}, "p")], [Panel("p")], make)
    assert reading_notes(bare) == ["The networks have no BatchNorm: their features are the same in every reading."]


def curve_of_seed(outcome: Outcome) -> tuple[float, ...]:
    return tuple(value for value in outcome.readings[0].fuzziness if value is not None)


def test_networks_that_do_not_fit_are_hollow_and_a_key_says_so() -> None:
    def make(name: str, seed: int) -> Outcome:
        fit = 0.5 if name == "b" else 1.0
        return Outcome(readings=(reading(mode="eval", fuzziness=noisy_curve(5, 0.5, seed), accuracy=fit),))

    series = [Series("a", panel="p", x=1.0), Series("b", panel="p", x=2.0)]
    panels = [
        Panel("p"),
        Panel("q", kind="sweep", y="last", series=("*",)),
        Panel("c", kind="categories", y="last", series=("*",)),
    ]
    drawing = draw_figure(evidence_of(series, panels, make, fit=0.999))
    assert "network does not fit (training accuracy below 99.9 %)" in words_of(drawing)
    curves, sweep, categories = drawing.axes
    faces = [line.get_markerfacecolor() for line in curves.lines if line.get_marker() not in ("None", "")]
    assert [face == "white" for face in faces] == [False, True]
    assert [line.get_xdata().tolist() for line in sweep.lines if line.get_markerfacecolor() == "white"] == [[2.0]]
    white = [line.get_xdata() for line in categories.lines if line.get_markerfacecolor() == "white"]
    assert [list(x) for x in white] == [[1.0] * 3]
    assert [tick.get_text() for tick in categories.get_xticklabels()] == ["a", "b"]
    unasked = draw_figure(evidence_of(series, panels, make))  # a figure that asks for no fit is drawn by the same rule
    assert "network does not fit (training accuracy below 99.0 %)" in words_of(unasked)
    assert "does not fit" not in words_of(draw_figure(evidence_of(series[:1], panels[:1], make)))


def seeds_by_name(name: str, seed: int) -> Outcome | None:
    """Three seeds of `a`, one of `b`."""
    if name == "b" and seed:
        return None
    return Outcome(
        readings=(reading(fuzziness=noisy_curve(5, 0.5, seed), ncc=(0.1, 0.5, 0.8, 0.9, 1.0), accuracy=1.0),)
    )


def test_numbers_of_seeds_that_differ_are_told() -> None:
    series = [Series("a", panel="p", x=1.0), Series("b", panel="q", x=2.0)]
    panels = [Panel("p", "first"), Panel("q", "second")]
    drawing = draw_figure(evidence_of(series, panels, seeds_by_name))
    assert [axes.get_title() for axes in drawing.axes] == ["first, 3 seeds", "second, one seed"]
    assert "seed" not in draw_figure(evidence_of(series[:1], panels[:1], seeds_by_name)).axes[0].get_title()
    series = [replace(one, panel="") for one in series]
    both = Panel("r", series=("*",), y="ncc")
    assert legend_of(draw_figure(evidence_of(series, [both], seeds_by_name)).axes[0]) == ["a, 3 seeds", "b, one seed"]
    shared = draw_figure(evidence_of(series, [both, replace(both, name="s", y="ncc@from=1")], seeds_by_name))
    (legend,) = (legend for part in shared.subfigs[0].subfigs for legend in part.legends)
    assert [text.get_text() for text in legend.get_texts()] == ["a, 3 seeds", "b, one seed"]
    columns = Panel("c", kind="categories", y="last", series=("*",))
    axes = draw_figure(evidence_of(series, [columns], seeds_by_name)).axes[0]
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["a, n = 3", "b, n = 1"]
    headed = [
        replace(panel, heading=f"above {panel.name}", series=(name,)) for panel, name in zip(panels, "ab", strict=True)
    ]
    words = words_of(draw_figure(evidence_of(series, headed, seeds_by_name)))
    assert "above p, 3 seeds" in words and "above q, one seed" in words


def test_the_series_that_have_a_part_of_the_data_are_named() -> None:
    part = {"data": "cifar10_7k", "stands_for": "cifar10", "per_class": None}
    series = [
        Series(f"{way}-{d}", more, "p", f"d = {d}, {way}")
        for way, more in (("plain", {"data": "cifar10"}), ("augmented", part))
        for d in (2, 3)
    ]
    words = data_words(evidence_of(series, [Panel("p")], lambda *_: Outcome()))
    assert words == [
        "CIFAR-10, augmented: cut to 5,000 of its 50,000 training images, tested on 2,000 images instead of 10,000"
    ]


def test_a_bar_says_which_mean_it_is() -> None:
    series = [Series("a"), Series("b")]

    def words(**more: object) -> str:
        panel = Panel("c", kind="categories", y="last", series=("*",), **more)  # type: ignore[arg-type]
        return words_of(draw_figure(evidence_of(series, [panel], seeds_by_name)))

    assert "bar: geometric mean" in words() and "bar: mean" in words(log_y=False)


def test_a_problem_that_is_solved_has_no_network_that_does_not_fit() -> None:
    axes = one_panel(Panel("p", kind="sweep", y="score", series=("*",)), lambda *_: Outcome(numbers={"score": 1.0}))
    assert "does not fit" not in words_of(whole(axes))


def test_a_curve_that_is_cut_has_a_law_for_each_part() -> None:
    def make(_: str, seed: int) -> Outcome:
        return Outcome(readings=(reading(fuzziness=(64.0, 16.0, 4.0, 2.0, 1.0 + 0.01 * seed)),))

    axes = one_panel(Panel("p", cut=2), make)
    points, rule, *fits = (axes.lines[1], axes.lines[0], *axes.lines[2:])
    assert list(rule.get_xdata()) == [2, 2] and len(points.get_xdata()) == 5
    assert [list(fit.get_xdata()) for fit in fits] == [[0, 2], [2, 4]]
    np.testing.assert_allclose(fits[0].get_ydata(), [64, 4], rtol=1e-9)
    assert "up to 2: r = −1.000, ρ = 0.250" in words_of(axes)
    assert "from 2 on: r = −1.000, ρ = 0.50" in words_of(axes)
    early = words_of(one_panel(Panel("p", cut=1), make))  # two points always lie on a line
    assert "up to 1: ρ = 0.250" in early and "from 1 on: r = −0." in early


def test_words_that_cross_a_vertical_line_do_not_stretch_the_axis_for_it() -> None:
    def make(_: str, seed: int) -> Outcome:
        return Outcome(readings=(reading(fuzziness=(64.0, 16.0, 4.0, 2.0, 1.0 + 0.01 * seed)),))

    low, high = one_panel(Panel("p", cut=2), make).get_ylim()
    assert high / 64 < 4 and 1 / low < 4


def test_rows_that_are_compared_have_one_scale_for_each_data_set() -> None:
    series = [
        Series(f"{data}-{row}", {"data": data}, f"{data}-{row}") for row in range(2) for data in ("first", "second")
    ]

    def make(name: str, seed: int) -> Outcome:
        data, row = name.split("-")
        curve = noisy_curve(5, 0.6, seed, first=(9.0 if data == "first" else 300.0) * 5 ** int(row))
        return Outcome(readings=(reading(fuzziness=curve),))

    evidence = evidence_of(series, [Panel(one.name) for one in series], make, columns=2)
    shared = replace(evidence, figure=replace(evidence.figure, same_heights=True))
    limits = [[axes.get_ylim() for axes in draw_figure(each).axes] for each in (evidence, shared)]
    assert [len(set(own)) for own in limits] == [4, 2]
    assert limits[1][0] == limits[1][2] != limits[1][1] == limits[1][3]
    assert_all_inside(draw_figure(shared))
    assert fingerprint(evidence, []) != fingerprint(shared, [])


def test_lines_in_an_order_have_one_bar_of_colors() -> None:
    def make(name: str, seed: int) -> Outcome:
        layers = int(name.split("-")[1])
        return Outcome(readings=(reading(fuzziness=noisy_curve(layers, 0.5, seed), accuracy=1.0),))

    series = [Series(f"d-{d}", x=float(d)) for d in (3, 5, 9)]
    drawing = draw_figure(evidence_of(series, [Panel("p", ordered="layers", series=("*",))], make))
    axes, bar = drawing.axes
    assert bar.get_ylabel() == "layers" and axes.get_legend() is None
    colors = [line.get_color() for line in axes.lines]
    assert len(colors) == len({tuple(color) for color in colors}) == 3
    assert "r =" not in words_of(axes)


def test_colors_of_many_layers_go_by_logarithms() -> None:
    few, many = Scale(2, 12, "layers"), Scale(1, 16, "layers")
    assert few.norm(7) == pytest.approx(0.5) and many.norm(4) == pytest.approx(0.5)
    assert few.ticks(range(2, 13)) == list(range(2, 13))
    assert many.ticks(range(1, 17)) == [1, 2, 3, 4, 6, 8, 11, 16]
    assert Scale(3, 3, "layers").ticks([3.0]) == [3]


def test_arrays_in_an_order_have_its_colors_and_infinity_a_place_beyond() -> None:
    def make(name: str, seed: int) -> Outcome:
        return Outcome(arrays={"up": (1.0, 2.0 + seed, float(len(name)))})

    series = [Series(f"R-{x}", x=x) for x in (1.0, 10.0, 100.0, math.inf)]
    panel = Panel("p", kind="array", y="up", log_y=False, ordered="ratio R", series=("*",))
    drawing = draw_figure(evidence_of(series, [panel], make))
    axes, bar = drawing.axes
    assert [text.get_text() for text in bar.get_yticklabels()] == ["1", "10", "100", "∞"]
    assert len({tuple(line.get_color()) for line in axes.lines}) == 4
    assert len(axes.collections) == 4  # the seeds of each as a band
    assert "band: lowest to highest seed" in words_of(drawing)


def test_levels_and_what_stands_behind() -> None:
    def make(_: str, seed: int) -> Outcome:
        return Outcome(
            readings=(reading(fuzziness=noisy_curve(5, 0.5, seed), class_fuzziness=(noisy_curve(5, 0.6, seed),)),)
        )

    panel = Panel("p", y="class_fuzziness@class=0", behind="fuzziness", levels=((0.5, "half"),))
    axes = one_panel(panel, make)
    assert "half" in words_of(axes) and axes.get_ylim()[0] < 0.5
    assert "all classes together" in words_of(whole(axes))
    assert len(curves_of(axes)) == 1  # what stands behind has no points


@pytest.mark.parametrize(("values", "side"), [((9.0, 5.0, 1.1), "left"), ((1.1, 5.0, 9.0), "right")])
def test_the_words_of_a_level_stand_where_no_line_runs(values: tuple[float, ...], side: str) -> None:
    def make(name: str, _: int) -> Outcome:
        return Outcome(numbers={"score": values[int(name)]})

    panel = Panel("p", kind="sweep", y="score", log_y=False, levels=((1.0, "as low as it gets"),), series=("*",))
    series = [Series(str(at), x=float(at)) for at in range(3)]
    drawing = draw_figure(evidence_of(series, [panel], make))
    (words,) = (text for text in drawing.axes[0].texts if text.get_text() == "as low as it gets")
    assert words.get_horizontalalignment() == side


def test_the_words_of_a_level_hide_no_line() -> None:
    def make(_: str, seed: int) -> Outcome:
        return Outcome(arrays={"up": tuple(1 + 0.2 * (-1) ** at for at in range(40))})

    axes = one_panel(Panel("p", kind="array", y="up", log_y=False, levels=((1.0, "as low as it gets"),)), make)
    drawing = whole(axes)
    drawing.draw_without_rendering()
    (words,) = (text for text in axes.texts if "as low" in text.get_text())
    assert words.get_window_extent().x0 > axes.get_window_extent().x1  # beside the axes, and inside the page
    assert words.get_window_extent().x1 < drawing.bbox.x1


def test_no_row_begins_with_the_sign_between_two_parts() -> None:
    assert wrapped("one part here · the second part · a third", 15) == "one part here ·\nthe second\npart · a third"


def test_what_ends_early_says_why() -> None:
    def dead(_: str, seed: int) -> Outcome:
        return Outcome(readings=(reading(fuzziness=(*noisy_curve(4, 0.9, seed), None, None), accuracy=0.1),))

    words = words_of(one_panel(Panel("p"), dead))
    assert "from layer 4 on all class\nmeans are equal: no D\ntraining accuracy 10.0 %" in words


def test_rows_and_columns_of_which_nothing_was_run_are_left_out_and_named() -> None:
    series = [Series(f"{way}-{d}") for way in ("plain", "augmented") for d in (2, 3)]
    panels = [
        Panel(f"{way}-{d}", f"d = {d}", series=(f"{way}-{d}",), heading=f"{way} images")
        for way in ("plain", "augmented")
        for d in (2, 3)
    ]

    def make(name: str, seed: int) -> Outcome | None:
        return Outcome(readings=(reading(fuzziness=noisy_curve(5, 0.5, seed)),)) if name.startswith("plain") else None

    drawing = draw_figure(evidence_of(series, panels, make, columns=2))
    assert [axes.get_title() for axes in drawing.axes] == ["d = 2", "d = 3"]
    assert "plain images" in words_of(drawing)
    assert "not run and left out: augmented images" in words_of(drawing)


def test_claims_are_counted_below_the_title() -> None:
    found = shown_evidence()
    counts = [(sum(one.verdict == word for one in judge(found)), word) for word in WORDS]
    assert f"claims: {', '.join(f'{n} {word}' for n, word in counts if n)}" in words_of(draw_figure(found))


def test_formulas_are_set_and_other_words_left() -> None:
    assert typeset("E_W = 1, n_A/n_B, R*") == "$E_{W}$ = 1, $n_{A}$/$n_{B}$, $R^*$"
    assert typeset("$D_{l+1}/D_l$ here") == "$D_{l+1}/D_l$ here"
    assert typeset("$\\broken{ 5 $") == r"\$\broken{ 5 \$" and typeset("no_norm") == "no_norm"
    assert wrapped("$a$ word $b$ word", 10) == "$a$ word\n$b$ word"
    assert wrapped("long $a + b$ words that stay", 12) == "long $a + b$ words that stay"


def test_classes_go_by_their_names_where_these_are_known() -> None:
    assert CLASS_NAMES["fashion-mnist"] == CLASS_NAMES["embedded-10x10"] == SOURCES["fashion-mnist"].class_names
    assert CLASS_NAMES["cifar10"] == CLASS_NAMES["cifar10_7k"] == SOURCES["cifar10"].class_names
    part = STAND_INS["cifar10_7k"]
    assert (part.of_train, part.of_test) == SOURCES["cifar10"].samples


def test_several_series_say_their_law_in_the_legend() -> None:
    def make(name: str, seed: int) -> Outcome | None:
        sites = {"narrow": 5, "wide": 9}.get(name)
        return sites and Outcome(readings=(reading(fuzziness=noisy_curve(sites, 0.5, seed)),))

    drawing = draw_figure(
        evidence_of(
            [Series(name, panel="p") for name in ("narrow", "absent", "wide")],
            [Panel("p")],
            make,
            printed=[Printed("wi*", "r", -0.998, "p. 1")],
        )
    )
    assert_all_inside(drawing)
    axes = drawing.axes[0]
    narrow, absent, wide = legend_of(axes)
    assert narrow.startswith("narrow: r = −0.9") and "ρ = 0." in narrow
    assert absent == "absent: not run"
    assert wide.endswith("(paper r −0.998)")
    assert [len(values) for values in curves_of(axes)] == [5, 9]
    colors = [line.get_color() for line in axes.lines]
    assert colors[0] == colors[1] == "#0072B2" and colors[2] == "#009E73"  # the second color is kept for the absent one


def test_ways_tell_lines_apart() -> None:
    def make(_: str, seed: int) -> Outcome:
        classes = tuple(noisy_curve(4, 0.5, seed + k, first=5.0 + k) for k in range(3))
        return Outcome(
            readings=(
                reading(ncc=(0.2, 0.5, 1.0, 1.0), ncc_test=(0.2, 0.4, 0.5, 0.5), class_fuzziness=classes),
                reading(mode="eval", ncc=(0.3, 0.6, 1.0, 1.0)),
            )
        )

    axes = one_panel(Panel("p", y="ncc; ncc_test"), make)
    assert legend_of(axes) == ["training data", "test data"]
    assert axes.get_yscale() == "linear" and axes.get_ylabel() == "nearest class-center accuracy"
    assert all(tick <= 1 for tick in axes.get_yticks())
    assert legend_of(one_panel(Panel("p", y="ncc;ncc@reading=eval"), make)) == ["mixed reading", "eval reading"]
    both = one_panel(Panel("p", y="ncc;ncc@reading=eval", series=("*",)), make, ["x", "y"])
    assert legend_of(both) == ["x, mixed reading", "x, eval reading", "y, mixed reading", "y, eval reading"]
    by_class = one_panel(Panel("p", y=";".join(f"class_fuzziness@class={k}" for k in range(3))), make)
    assert [words.split(":")[0] for words in legend_of(by_class)] == ["class 0", "class 1", "class 2"]
    assert len(by_class.lines) == 6


def test_a_curve_from_a_later_site_keeps_its_sites() -> None:
    axes = one_panel(
        Panel("p", y="fuzziness@from=6"),
        lambda _, seed: Outcome(readings=(reading(fuzziness=noisy_curve(10, 0.5, seed)),)),
    )
    assert np.asarray(axes.lines[0].get_xdata()).tolist() == [6, 7, 8, 9]
    assert np.asarray(axes.lines[1].get_xdata()).tolist() == [6, 9]


def test_blocks_are_called_so_and_printed_values_of_a_site_are_marked() -> None:
    def make(_: str, seed: int) -> Outcome:
        return Outcome(readings=(reading(grain="blocks", cdnv=noisy_curve(6, 0.6, seed)),))

    axes = one_panel(
        Panel("p", y="cdnv@grain=blocks"), make, printed=[Printed("a", "cdnv@grain=blocks,site=4", 1e-3, "p. 2")]
    )
    assert axes.get_xlabel() == "block (0 = input)"
    (mark,) = (line for line in axes.lines if line.get_marker() == "x")
    assert mark.get_xydata().tolist() == [[4.0, 1e-3]]
    assert axes.get_ylim()[0] < 1e-3
    assert "paper" in words_of(whole(axes)) and legend_of(axes) == []


def test_the_axis_reaches_over_sites_and_epochs_that_have_no_value() -> None:
    def dead(_: str, seed: int) -> Outcome:
        return Outcome(readings=(reading(fuzziness=(*noisy_curve(10, 0.9, seed), *[None] * 10)),))

    axes = one_panel(Panel("p"), dead)
    assert axes.get_xlim()[1] > 19
    assert_all_inside(whole(axes))

    def late(_: str, seed: int) -> Outcome:
        return Outcome(readings=tuple(reading(epoch, ncc=(0.1, epoch / 500)) for epoch in (1, 100, 500)))

    axes = one_panel(Panel("p", kind="epochs", y="effective_depth", log_y=False), late)
    assert axes.get_xlim()[0] < 1 and axes.get_xlim()[1] > 500


def test_printed_values_are_marked_where_ours_do_not_exist() -> None:
    def make(name: str, _: int) -> Outcome:
        return Outcome(readings=(reading(400, ncc=(0.1, 1.0 if name == "a" else 0.5)),))

    panel = Panel("p", kind="epochs", y="effective_depth", log_y=False)
    axes = one_panel(panel, make, ("a", "b"), printed=[Printed("b", "effective_depth", 4.0, "Fig. 1")])
    (mark,) = (line for line in axes.lines if line.get_marker() == "x")
    assert mark.get_xydata().tolist() == [[400.0, 4.0]]
    assert_all_inside(whole(axes))
    assert "paper" in words_of(whole(axes)) and legend_of(axes) == ["a", "b: no values"]
    axes = one_panel(replace(panel, absent="no layer separates\nmore than 99 %"), make, ("a", "b"))
    assert legend_of(axes) == ["a", "b: no layer separates more than 99 %"]  # as in an empty panel


def test_missing_values_are_gaps() -> None:
    def make(_: str, seed: int) -> Outcome:
        curve = (8.0, None, 2.0 + seed, None if seed else 1.0, math.inf, 0.3)
        return Outcome(readings=(reading(cdnv=curve, fuzziness=curve),))

    axes = one_panel(Panel("p", y="cdnv"), make, seeds=2)
    (values,) = curves_of(axes)
    assert np.isnan(values).tolist() == [False, True, False, False, True, False]
    assert values[2] == pytest.approx(math.sqrt(6)) and values[3] == 1.0
    law = one_panel(Panel("p"), make, seeds=2)
    assert len(law.lines) == 1 and "r =" not in words_of(law)  # a curve with gaps has no law


def test_zero_is_marked_on_the_floor_of_a_logarithmic_axis() -> None:
    drawing = draw_figure(
        evidence_of(
            [Series("a", panel="p")],
            [Panel("p")],
            lambda _, seed: Outcome(readings=(reading(fuzziness=(4.0 * 3**seed, 2.0, 1.0, 0.0 if seed else 0.5)),)),
        )
    )
    assert_all_inside(drawing)
    (floor,) = (line for line in drawing.axes[0].lines if line.get_marker() == "v")
    assert np.asarray(floor.get_xdata()).tolist() == [3]
    assert "0 in some run, below any logarithm" in words_of(drawing)
    (values,) = curves_of(drawing.axes[0])
    assert values[3] == pytest.approx(0.5 / 3)  # no seed is left out of a mean
    assert values[0] == pytest.approx((4 + 12 + 36) / 3)  # one kind of mean along a line
    said = "geometric where the axis is logarithmic, arithmetic on lines with a 0 in some run"
    assert said in words_of(drawing).replace("\n", " ")


def test_zeros_of_several_lines_are_one_gray_mark() -> None:
    def make(name: str, seed: int) -> Outcome:
        last = 0.0 if seed == 0 else 0.5
        return Outcome(readings=(reading(cdnv=(4.0, 1.0 if name == "a" else last, last)),))

    axes = one_panel(Panel("p", y="cdnv"), make, ["a", "b"])
    floor = {float(line.get_xdata()[0]): line.get_color() for line in axes.lines if line.get_ydata()[0] == 0.015}
    assert floor == {1.0: "#D55E00", 2.0: "0.45"}


def test_correlations_are_spaced_by_their_distance_from_minus_one() -> None:
    def make(_: str, seed: int) -> Outcome:
        return Outcome(
            arrays={"course_r": (0.5, -0.9, -0.99, -0.999 + 1e-4 * seed), "course_epoch": (1.0, 2.0, 3.0, 4.0)}
        )

    panel = Panel("p", kind="array", y="course_r", x="course_epoch", levels=((-0.996, "law"),))
    axes = one_panel(panel, make)
    assert_all_inside(whole(axes))
    heights = axes.transData.transform([(0, r) for r in (-0.9, -0.99, -0.999)])[:, 1]
    assert heights[0] - heights[1] == pytest.approx(heights[1] - heights[2])
    (values,) = curves_of(axes)
    assert values[-1] == pytest.approx(-0.9989)  # the mean of r, as claims have it
    assert {-0.9, -0.99, -0.999} <= set(axes.get_yticks()) and "log(1 + r)" in axes.get_ylabel().replace("\n", " ")


def test_what_was_not_run_says_so() -> None:
    evidence = nine_panels()
    empty = gather(evidence.figure, [], scale="paper", plan=asked_for(evidence.figure, 5))
    drawing = draw_figure(empty)
    assert len(drawing.axes) == 10
    assert all("not run" in words_of(axes) for axes in drawing.axes)
    assert "0 of 45 runs finished" in words_of(drawing)
    run = one_panel(Panel("p"), lambda *_: Outcome(diverged=3))
    assert "no values" in words_of(run) and "not run" not in words_of(run)
    assert not draw_figure(gather(Figure("x/y", "", "", "", Cell(), (), ()), [], scale="paper")).axes


@pytest.mark.parametrize("seeds", [1, 2])
def test_a_band_takes_two_seeds(seeds: int) -> None:
    axes = one_panel(
        Panel("p"), lambda _, seed: Outcome(readings=(reading(fuzziness=noisy_curve(5, 0.5, seed)),)), seeds=seeds
    )
    assert len(axes.collections) == seeds - 1
    assert ("band: lowest to highest seed" in words_of(whole(axes))) == (seeds == 2)
    assert ("one seed: nothing says how much another would differ" in words_of(whole(axes))) == (seeds == 1)


def over_epochs(_: str, seed: int) -> Outcome:
    readings = tuple(
        reading(epoch, fuzziness=noisy_curve(6, 1.0 - 0.4 * epoch / 600, seed + epoch)) for epoch in (0, 10, 100, 600)
    )
    return Outcome(readings=readings, numbers={"last": 5.0})


def test_quantities_over_epochs() -> None:
    axes = one_panel(
        Panel("p", kind="epochs", y="last", log_x=True),
        over_epochs,
        printed=[Printed("a", "last@epoch=100", 3e4, "p. 1"), Printed("a", "last", 2.0, "p. 2")],
    )
    assert_all_inside(whole(axes))
    assert axes.get_xscale() == "symlog" and axes.get_yscale() == "log"
    (values,) = curves_of(axes)
    expected = [
        np.exp(np.mean([np.log(noisy_curve(6, 1 - 0.4 * e / 600, s + e)[-1]) for s in range(3)]))
        for e in (0, 10, 100, 600)
    ]
    np.testing.assert_allclose(
        values, expected, rtol=1e-12
    )  # not the cell's number of that name, the same at each epoch
    marks = [line.get_xydata().tolist() for line in axes.lines if line.get_marker() == "x"]
    assert marks == [[[100.0, 3e4], [600.0, 2.0]]]
    r = one_panel(Panel("p", kind="epochs", y="r", log_y=False), over_epochs)
    assert r.get_yscale() == "linear" and r.get_xscale() == "linear" and r.get_ylabel() == "correlation r"
    site = one_panel(Panel("p", kind="epochs", y="fuzziness@site=2", log_y=False), over_epochs)
    assert site.get_ylabel() == "separation fuzziness D at layer 2"
    late = one_panel(Panel("p", kind="epochs", y="last", start=100), over_epochs)
    assert np.asarray(late.lines[0].get_xdata()).tolist() == [100, 600]


def test_shares_of_the_epochs_are_marked_where_they_fall() -> None:
    axes = one_panel(
        Panel("p", kind="epochs", y="last"), over_epochs, printed=[Printed("a", "last@epoch=1/2", 3.0, "p. 1")]
    )
    (mark,) = (line for line in axes.lines if line.get_marker() == "x")
    assert mark.get_xydata().tolist() == [[300.0, 3.0]]


def test_ratios_of_layers_over_epochs() -> None:
    evidence = evidence_of(
        [Series("a", panel="p"), Series("b", panel="p")], [Panel("p", kind="epochs", y="ratios")], over_epochs, seeds=1
    )
    drawing = draw_figure(evidence)
    assert_all_inside(drawing)
    axes = drawing.axes[0]
    lines = curves_of(axes)
    assert len(lines) == 5
    for place, epoch in enumerate((0, 10, 100, 600)):
        ratios = [after / before for before, after in pairwise(noisy_curve(6, 1 - 0.4 * epoch / 600, epoch))]
        np.testing.assert_allclose([line[place] for line in lines], ratios, rtol=1e-12)
    assert legend_of(axes) == [f"layer {layer}" for layer in range(1, 6)]
    third = one_panel(Panel("p", kind="epochs", y="ratios@site=3"), over_epochs, seeds=1)
    np.testing.assert_allclose(curves_of(third)[0], lines[2], rtol=1e-12)


def test_a_sweep_has_one_line_a_group_and_room_for_infinity() -> None:
    xs = {"1": 1.0, "10": 10.0, "100": 100.0, "inf": math.inf}
    series = [Series(f"{net}-{x}", label=f"{net.upper()}, R = {x}", x=xs[x]) for net in ("vgg", "resnet") for x in xs]

    def make(name: str, seed: int) -> Outcome | None:
        if name == "resnet-10":
            return None
        return Outcome(numbers={"cosine": 0.1 * list(xs).index(name.split("-")[1]) + 0.01 * seed})

    panel = Panel("p", kind="sweep", y="cosine", log_x=True, log_y=False, x_label="R", series=("*",))
    drawing = draw_figure(evidence_of(series, [panel], make, printed=[Printed("vgg-100", "cosine", 0.9, "p. 1")]))
    assert_all_inside(drawing)
    axes = drawing.axes[0]
    vgg, resnet = curves_of(axes)
    np.testing.assert_allclose(vgg, [0.01, 0.11, 0.21, 0.31])
    joined = [line for line in axes.lines if line.get_linestyle() == "-"]
    assert all(max(line.get_xdata()) == 100 for line in joined)  # nothing lies between 100 and ∞
    assert np.isnan(resnet).tolist() == [False, True, False, False]
    assert legend_of(axes) == ["VGG", "RESNET"] and "paper" in words_of(drawing)
    assert [text.get_text() for text in axes.get_xticklabels()] == ["1", "10", "100", "∞"]
    assert axes.get_ylim()[1] > 0.9


def test_a_scatter_has_one_point_a_seed() -> None:
    def make(name: str, seed: int) -> Outcome:
        factor = 1.0 if name == "law" else 2.0
        change = None if name == "no law" and seed == 1 else 0.1 * factor + 0.01 * seed
        return Outcome(numbers={"change": change, "factor": factor + 0.1 * seed})

    axes = one_panel(Panel("p", kind="scatter", y="change", x="factor", log_y=False), make, ["law", "no law"])
    assert_all_inside(whole(axes))
    assert [line.get_xydata().round(3).tolist() for line in axes.lines] == [
        [[1.0, 0.1], [1.1, 0.11], [1.2, 0.12]],
        [[2.0, 0.2], [2.2, 0.22]],
    ]
    assert all(line.get_linestyle() == "None" for line in axes.lines)
    assert axes.get_xlabel() == "factor" and legend_of(axes) == ["law", "no law"]
    assert "dots: one of 3 seeds each" in words_of(whole(axes))


def test_scatters_below_one_heading_share_both_axes_and_none_stands_alone() -> None:
    def make(name: str, seed: int) -> Outcome:
        accuracy = 0.5  # far from a fit, which what a stop saves does not ask for
        numbers = {f"{kind}_{at}": 0.1 * at + 0.01 * (1 + seed) for kind in ("up", "across") for at in range(4)}
        return Outcome(readings=(reading(accuracy=accuracy),), numbers={**numbers, "saved_law": 0.4 + 0.1 * seed})

    look: dict[str, str] = {"y_label": "up", "x_label": "across", "heading": "compared"}
    panels = [Panel(str(at), str(at), "scatter", f"up_{at}", f"across_{at}", series=("a",), **look) for at in range(4)]
    drawing = draw_figure(evidence_of([Series("a")], panels, make))
    assert_all_inside(drawing)
    assert len({(axes.get_xlim(), axes.get_ylim()) for axes in drawing.axes}) == 1
    tops = [round(axes.get_window_extent().y1) for axes in drawing.axes]
    assert tops[0] == tops[1] > tops[2] == tops[3]  # two and two, not three and one
    hollow = [line.get_markerfacecolor() == "white" for axes in drawing.axes for line in axes.lines]
    assert all(hollow)
    saved = one_panel(Panel("p", kind="scatter", y="lost_law", x="saved_law", log_y=False), stopped)
    assert [line.get_markerfacecolor() for line in saved.lines] == [saved.lines[0].get_color()]
    assert all(tick.get_text().endswith(" %") for tick in saved.get_xticklabels())


def noise_and_ways(name: str, seed: int) -> Outcome | None:
    """Three seeds of plain networks, one of augmented ones, which do not fit, and none of one of these."""
    way, share = name.split("-")
    if way == "augmented" and (seed or share == "50"):
        return None
    fit = 1.0 if way == "plain" else 0.5
    numbers = {"up": int(share) / 100 + 0.01 * seed, "other": 0.5, "across": fit}
    return Outcome(readings=(reading(mode="eval", accuracy=fit),), numbers=numbers)


def noise_series() -> list[Series]:
    return [
        Series(f"{way}-{share}", label=f"{share} %, {way}", x=share / 100)
        for way in ("plain", "augmented")
        for share in (0, 25, 50)
    ]


def test_dots_of_several_groups_have_the_colors_of_their_x_and_the_markers_of_their_group() -> None:
    panels = [Panel(y, y, "scatter", y, "across", log_y=False, series=("*",)) for y in ("up", "other")]
    drawing = draw_figure(evidence_of(noise_series(), panels, noise_and_ways))
    assert_all_inside(drawing)
    for axes in drawing.axes:
        *plain, first, second = axes.lines
        assert [line.get_color() for line in plain] == ["#0072B2", "#D55E00", "#009E73"]
        assert [line.get_color() for line in (first, second)] == ["#0072B2", "#D55E00"]
        assert [{line.get_marker() for line in lines} for lines in (plain, (first, second))] == [{"o"}, {"s"}]
        assert {line.get_markerfacecolor() for line in (first, second)} == {"white"}
    (legend,) = (legend for part in drawing.subfigs[0].subfigs for legend in part.legends)
    assert [text.get_text() for text in legend.get_texts()] == [
        "0 %", "25 %", "50 %", "plain, 3 seeds", "augmented, one seed", "50 %, augmented: not run",
    ]  # fmt: skip
    markers = [key.get_marker() for key in legend.legend_handles if isinstance(key, Line2D)]
    assert markers == ["None", "None", "None", "o", "s", "None"]


def test_dots_of_one_panel_have_such_a_key_beside_them() -> None:
    panel = Panel("p", kind="scatter", y="up", x="across", log_y=False, series=("*",))
    drawing = draw_figure(evidence_of(noise_series(), [panel], noise_and_ways))
    assert legend_of(drawing.axes[0])[:5] == ["0 %", "25 %", "50 %", "plain, 3 seeds", "augmented, one seed"]
    uneven = [one for one in noise_series() if one.name != "augmented-25"]  # groups of other x have lines of their own
    other = draw_figure(evidence_of(uneven, [panel], noise_and_ways)).axes[0]
    assert len({line.get_marker() for line in other.lines}) == len(other.lines) == 4


def test_a_group_of_unequal_numbers_of_seeds_says_from_how_many_to_how_many() -> None:
    def make(name: str, seed: int) -> Outcome | None:
        return None if name == "plain-0" and seed else noise_and_ways(name, seed)

    panels = [Panel(y, y, "scatter", y, "across", log_y=False, series=("*",)) for y in ("up", "other")]
    words = words_of(draw_figure(evidence_of(noise_series(), panels, make)))
    assert "plain, 1 to 3 seeds" in words and "augmented, one seed" in words


def test_panels_that_do_not_fill_their_row_stand_below_the_middle_of_their_heading() -> None:
    series = [Series(name) for name in "abcdef"]
    panels = [Panel(name, series=(name,), heading="above" if name < "e" else "below") for name in "abcdef"]
    drawing = draw_figure(evidence_of(series, panels, over_epochs, columns=4))
    drawing.draw_without_rendering()
    boxes = [axes.get_window_extent() for axes in drawing.axes]
    (heading,) = (text for text in drawing.findobj(Text) if text.get_text() == "below")
    middle = (heading.get_window_extent().x0 + heading.get_window_extent().x1) / 2
    assert boxes[4].x0 > (boxes[0].x0 + boxes[0].x1) / 2 and boxes[5].x1 < (boxes[3].x0 + boxes[3].x1) / 2
    assert abs((boxes[4].x0 + boxes[5].x1) / 2 - middle) < 0.05 * drawing.bbox.width


def stopped(_: str, seed: int) -> Outcome:
    """What a rule that stops a training saves and costs; the network does not fit."""
    return Outcome(readings=(reading(accuracy=0.5),), numbers={"lost_law": 0.1 * seed, "saved_law": 0.4 + 0.1 * seed})


def test_names_that_have_no_room_stand_aslant() -> None:
    def make(*_: object) -> Outcome:
        return Outcome(numbers={"score": 1.0})

    panel = Panel("c", kind="categories", y="score", series=("*",))
    few = draw_figure(evidence_of([Series(name) for name in ("one", "two")], [panel], make)).axes[0]
    assert {tick.get_rotation() for tick in few.get_xticklabels()} == {0}
    drawing = draw_figure(evidence_of([Series(f"the method {at}") for at in range(15)], [panel], make))
    drawing.draw_without_rendering()
    ticks = drawing.axes[0].get_xticklabels()
    assert all(tick.get_rotation() > 0 for tick in ticks)
    assert all(tick.get_window_extent().y0 > 0 for tick in ticks)


def test_one_axis_has_one_notation() -> None:
    assert log_words([1.0, 100.0]) == {1.0: "1", 100.0: "100"}
    assert list(log_words([1.0, 100.0, 1e8]).values()) == ["$10^{0}$", "$10^{2}$", "$10^{8}$"]


def test_arrays_have_gaps_and_seeds_at_other_places_lines_of_their_own() -> None:
    def make(name: str, seed: int) -> Outcome:
        shift = float(seed) if name == "other" else 0.0
        ratios = (1.0 + shift, 10.0 + shift, 100.0 + shift, None)
        return Outcome(arrays={"ratios": ratios, "cosines": (-0.1, None, 0.5 + 0.1 * seed, 1.0)})

    panel = Panel("p", kind="array", y="cosines", x="ratios", log_x=True, log_y=False)
    axes = one_panel(panel, make, ["same", "other", "none"], seeds=2)
    assert_all_inside(whole(axes))
    same, *others = curves_of(axes)
    np.testing.assert_allclose(same, [-0.1, np.nan, 0.55, 1.0])
    assert len(others) == 3  # two of `other`, one of `none`
    assert legend_of(axes) == ["same", "other", "none"]
    assert axes.get_xscale() == "log"
    missing = one_panel(panel, lambda *_: Outcome(arrays={"ratios": (1.0, 2.0)}))
    assert "no values" in words_of(missing)
    by_index = one_panel(Panel("p", kind="array", y="cosines", log_y=False), make, seeds=1)
    assert np.asarray(by_index.lines[0].get_xdata()).tolist() == [0, 1, 2, 3]


def test_points_are_colored_by_class(nine: Drawing) -> None:
    axes = nine.axes[9]
    assert len(axes.collections) == 10
    assert sum(len(entry.get_offsets()) for entry in axes.collections) == 120
    assert axes.get_aspect() == 1
    (legend,) = (legend for part in nine.subfigs[0].subfigs for legend in part.legends)
    assert [text.get_text() for text in legend.get_texts()] == list(CLASS_NAMES["fashion-mnist"])


def test_long_clouds_fill_their_axes_and_lost_samples_are_left_out() -> None:
    samples = (*((100.0 * k, 0.01 * (k % 3), float(k % 2)) for k in range(9)), (math.nan, 0.0, 1.0))

    def make(_: str, seed: int) -> Outcome:
        return Outcome(points={"a site": samples, "all lost": ((math.nan, 0.0, 0.0),)} if seed else {})

    evidence = evidence_of([Series("a", panel="p")], [Panel("p", kind="points")], make)
    drawing = draw_figure(evidence)
    assert_all_inside(drawing)
    first, second = drawing.axes
    assert first.get_aspect() == "auto"
    assert sum(len(entry.get_offsets()) for entry in first.collections) == 9
    assert "no values" in words_of(second)


def test_panels_with_the_same_lines_share_a_legend() -> None:
    def make(name: str, seed: int) -> Outcome | None:
        if name == "d3-b":
            return None
        return Outcome(readings=(reading(ncc=(0.2, 0.9, 1.0), cdnv=noisy_curve(3, 0.5, seed)),))

    series = [Series(f"d{d}-{kind}", label=f"d = {d}, {kind}") for d in (2, 3) for kind in "ab"]
    panels = [Panel(f"{y}{d}", f"d = {d}", y=y, series=(f"d{d}-*",)) for y in ("cdnv", "ncc") for d in (2, 3)]
    panels.append(Panel("other", y="cdnv", series=("d2-a",)))
    drawing = draw_figure(evidence_of(series, panels, make, columns=2))
    assert_all_inside(drawing)
    legends = [legend for part in drawing.subfigs[0].subfigs for legend in part.legends]
    assert [[text.get_text() for text in legend.get_texts()] for legend in legends] == [["a", "b"]]
    own = [axes.get_legend() for axes in drawing.axes]
    absent = [[text.get_text() for text in legend.get_texts()] for legend in own if legend is not None]
    assert absent == [["b: not run"]] * 2
    assert "b: not run" in words_of(drawing.axes[1]) and "not run" not in words_of(drawing.axes[0])


def test_a_long_legend_stands_beside_its_axes() -> None:
    axes = one_panel(
        Panel("p", series=("*",)),
        lambda name, seed: Outcome(readings=(reading(fuzziness=noisy_curve(5, 0.4 + int(name) / 50, seed)),)),
        [str(k) for k in range(9)],
    )
    assert_all_inside(whole(axes))
    assert axes.get_legend().get_window_extent().x0 >= axes.get_window_extent().x1
    assert len({str(line.get_color()) for line in axes.lines}) == 9


def test_long_labels_are_broken_and_the_law_begins_a_row() -> None:
    name = "a network with a very long name that no panel has room for in one row"
    axes = one_panel(
        Panel("p"),
        lambda _, seed: Outcome(readings=(reading(fuzziness=noisy_curve(5, 0.5, seed)),)),
        [name, "b"],
        printed=[Printed("b", "rho", 0.5, "p. 1"), Printed(name, "r", -1.0, "p. 1")],
    )
    assert_all_inside(whole(axes))
    first, second = legend_of(axes)
    *label, law = first.split("\n")
    assert " ".join(label) == f"{name}:" and law.startswith("r = −") and law.endswith("(paper r −1.000)")
    assert "\n" not in second
    legend, inside = axes.get_legend().get_window_extent(), axes.get_window_extent()
    assert inside.x0 <= legend.x0 and legend.x1 <= inside.x1
    assert not any(legend.contains(*axes.transData.transform(at)) for line in axes.lines for at in line.get_xydata())


def test_smoke_and_stand_ins_are_told() -> None:
    series = [Series("a", {"data": "cifar10_7k", "stands_for": "cifar10", "per_class": 500}, "p")]
    evidence = evidence_of(
        series,
        [Panel("p")],
        lambda _, seed: Outcome(readings=(reading(fuzziness=noisy_curve(5, 0.5, seed)),)),
        scale="smoke",
        asked=7,
        device="cpu",
    )
    words = words_of(draw_figure(evidence)).replace("\n", " ")
    assert "CIFAR-10: 500 images per class, tested on 2,000 images instead of 10,000 · read in" in words
    assert "run on a CPU · 3 of 7 runs" in words
    assert "trial run at smoke scale: not for publication" in words


def test_texts_do_not_overlap() -> None:
    drawing = draw_figure(nine_panels(scale="smoke"))
    drawing.draw_without_rendering()
    body = drawing.subfigs[0]
    boxes = [drawing._suptitle, body._suptitle, drawing.axes[0].title]
    for above, below in pairwise(boxes):
        assert below.get_window_extent().y1 <= above.get_window_extent().y0
    (legend,) = (legend for part in body.subfigs for legend in part.legends)
    assert drawing._supxlabel.get_window_extent().y1 <= legend.get_window_extent().y0
    for axes in drawing.axes[:9]:
        ticks = [tick.get_window_extent() for tick in axes.get_xticklabels() if tick.get_text()]
        assert all(a.x1 < b.x0 for a, b in pairwise(ticks))


@pytest.mark.parametrize(("ending", "start"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_the_same_evidence_gives_the_same_bytes(tmp_path, ending: str, start: bytes) -> None:
    one, two = (
        save_drawn(
            evidence_of(
                [Series("a", panel="p")],
                [Panel("p"), Panel("q", kind="points", series=("a",))],
                lambda _, seed: Outcome(
                    readings=(reading(fuzziness=noisy_curve(5, 0.5, seed)),), points=clouds(2, classes=3)
                ),
            ),
            tmp_path / folder / f"figure.{ending}",
            dpi=80,
        ).read_bytes()
        for folder in ("one", "two")
    )
    assert one.startswith(start) and one == two


@pytest.mark.parametrize("name", ["figure", "figure.jpg", "figure."])
def test_other_endings_are_refused(tmp_path, name: str) -> None:
    with pytest.raises(InputError, match=r"cannot be saved as `figure.*Use one of \.pdf, \.png, \.svg"):
        save_drawn(nine_panels(), tmp_path / name)


def test_names_are_text(tmp_path) -> None:
    series = [Series("a", label="_$x{", panel="p"), Series("b", label="50 $", panel="p")]
    evidence = evidence_of(
        series,
        [Panel("p", r"$\broken{", y_label="$y", x_label="x$")],
        lambda _, seed: Outcome(readings=(reading(fuzziness=noisy_curve(5, 0.5, seed)),)),
    )
    save_drawn(evidence, tmp_path / "names.svg")
    assert len(legend_of(draw_figure(evidence).axes[0])) == 2


@pytest.mark.parametrize("figure", [pytest.param(figure, id=figure.id) for figure in all_figures()])
def test_every_declared_panel_can_be_looked_up_without_evidence(figure: Figure) -> None:
    evidence = gather(figure, [], scale="paper")
    for panel in figure.panels:
        lines = lines_of(evidence, panel)
        assert bool(lines) == (panel.kind != "points")
        assert not any(line.drawn or line.run for line in lines)


def test_words() -> None:
    assert common_label(["MNIST, 3 layers", "MNIST, 4 layers"]) == "MNIST"
    assert common_label(["VGG11, R = 1", "VGG11, R = 10"]) == "VGG11"
    assert common_label(["K = 2", "K = 3"]) == "" == common_label([])
    assert common_label(["Fashion-MNIST"] * 2) == "Fashion-MNIST"
    assert own_labels(["d = 2, plain", "d = 2, augmented"]) == ["plain", "augmented"]
    assert own_labels(["plain", "augmented"]) == ["plain", "augmented"]
    assert own_labels(["only"]) == ["only"]
    assert way_words(["ncc"], {}) == [""]
    assert way_words(["fuzziness@epoch=0", "fuzziness@epoch=1/6", "fuzziness"], {}) == [
        "epoch 0", "epoch 1 of 6", "last epoch",
    ]  # fmt: skip
    assert way_words(["fuzziness", "cdnv_test@site=-1"], {}) == ["D, last layer", "CDNV on test data, last layer"]
    assert way_words(["ncc@site=4", "accuracy"], {}) == ["NCC accuracy, layer 4", "training accuracy"]


def test_matplotlib_is_left_as_found(tmp_path) -> None:
    before, figures = dict(mpl.rcParams), list(mpl._pylab_helpers.Gcf.figs)
    save_drawn(evidence_of([Series("a", panel="p")], [Panel("p")], over_epochs), tmp_path / "figure.svg")
    assert dict(mpl.rcParams) == before
    assert list(mpl._pylab_helpers.Gcf.figs) == figures


def test_drawing_needs_no_torch_and_no_pyplot() -> None:
    code = (
        "import sys; import equisep.report.figures.drawing.draw;"
        "bad = {'torch', 'pandas', 'scipy', 'matplotlib.pyplot'} & set(sys.modules); assert not bad, bad"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("figure", "all_seeds", "first_seed"),
    [("equisep2026/rare", "cifar10-R10-", "fm-tail-"), ("galanti2022/bound-shallow", "joined1-10", "none")],
)
def test_what_was_run_in_part_is_drawn(figure: str, all_seeds: str, first_seed: str) -> None:
    """Panels of which nothing was run have no seeds to count, and no line in the legend of the others."""
    made = figure_of(figure)
    held = recorded_evidence(made, Path(__file__).parents[2] / "results" / f"{figure}.json")
    entries = [entry for found in held.series.values() for entry in found.entries]
    part = [
        entry
        for entry in entries
        if entry.series.startswith(all_seeds)
        or (entry.series.startswith(first_seed) and not getattr(entry.cell, "seed", 0))
    ]
    assert 0 < len(part) < len(entries)
    planned = [(entry.series, entry.cell) for entry in entries]
    assert draw_figure(gather(made, part, scale="paper", plan=planned)).axes
