"""Figures: all points inside the axes, nothing global touched, and clear words where nothing can be drawn."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from report_profiles import bare_profile, coordinates, full_profile, without_intervals, zero_profile

from equisep.errors import InputError
from equisep.law import fit_law
from equisep.report.plots import CLASS_COLORS, LAW_STYLES, plot_law, save_figure
from equisep.report.site_plots import plot_sites
from equisep.results import Interval, Profile


def legend_text(ax: Axes) -> str:
    return "\n".join(text.get_text() for text in ax.get_legend().get_texts())


def inside(ax: Axes, values) -> bool:
    low, high = ax.get_ylim()
    return all(low <= value <= high for value in values if value)


def test_the_law_is_drawn_and_told(tmp_path) -> None:
    profile = full_profile()
    ax = plot_law(profile, null=True, title="8 layers")
    assert ax.get_yscale() == "log"
    assert ax.get_title() == "8 layers"
    for curve in ("fuzziness", "fuzziness_test", "null"):
        assert inside(ax, profile.curve(curve))
    limits = [site.fuzziness_interval for site in profile.sites]
    assert inside(ax, [limit.low for limit in limits] + [limit.high for limit in limits])
    words = legend_text(ax)
    for part in (
        "training data: ρ = 0.515 [0.506, 0.524], half-life 1.04",
        "r = −0.9998: law, residual ≤ 0.067",
        "test data",
    ):
        assert part in words
    assert "chance (shuffled labels)" in words
    saved = save_figure(ax, tmp_path / "deep" / "law.png")
    assert saved.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("bend", "verdict", "words"),
    [(0.0, "law", "law"), (0.3, "between", "between law and none"), (0.6, "no law", "no law")],
)
def test_the_line_has_the_style_of_its_verdict_and_the_legend_its_word(bend: float, verdict: str, words: str) -> None:
    profile = full_profile()
    curve = [20 * 0.5**site * float(np.exp(bend * (-1) ** site)) for site in range(8)]
    sites = tuple(replace(site, fuzziness=value) for site, value in zip(profile.sites, curve, strict=True))
    ax = plot_law(replace(profile, sites=sites, law=fit_law(curve)), interval=False)
    assert fit_law(curve).verdict == verdict
    (fitted,) = (line for line in ax.lines if line.get_linewidth() == 1.4)
    drawn = Line2D([], [], linestyle=LAW_STYLES[verdict], linewidth=1.4)
    assert fitted._unscaled_dash_pattern == drawn._unscaled_dash_pattern
    assert f": {words}, residual" in legend_text(ax)
    (test,) = (line for line in ax.lines if line.get_marker() == "s")
    assert test.get_markerfacecolor() == test.get_color()  # hollow is what does not fit


def test_the_title_counts_the_readings_that_are_drawn() -> None:
    profile = full_profile()
    profile = replace(profile, other_readings={"eval": replace(profile, reading="eval")})
    assert plot_law(profile).get_title().endswith(", 2 readings")
    assert plot_law(profile, metric="cdnv").get_title().endswith(", mixed reading")


def test_ticks_are_sites() -> None:
    for sites in (3, 8, 20, 60):
        ax = plot_law(full_profile(sites=sites, rho=0.9))
        ax.figure.canvas.draw()
        assert all(tick == round(tick) for tick in ax.get_xticks())
        assert len([tick for tick in ax.get_xticks() if 0 <= tick < sites]) <= 21


def test_several_profiles_share_axes_in_their_colors() -> None:
    ax = Figure().add_subplot()
    assert plot_law(full_profile(), ax) is ax
    full_profile(rho=0.8, seed=1).plot(ax, label="other")
    points = [line for line in ax.lines if line.get_gid()]
    assert len({line.get_color() for line in points}) == 2
    assert "Fnn(depth=8, width=100): ρ = 0.515" in legend_text(ax)
    assert "other: ρ = " in legend_text(ax)
    assert "test data" not in legend_text(ax)
    plot_law(full_profile(), ax, test=True, color="red")
    assert "test data" in legend_text(ax)
    assert ax.lines[-1].get_color() == "red"


@pytest.mark.parametrize("metric", ["fuzziness_test", "nc1", "cdnv", "cdnv_test", "null", "ncc_train", "ncc_test"])
def test_other_metrics(metric: str) -> None:
    profile = full_profile()
    ax = plot_law(profile, metric=metric)
    assert ax.get_yscale() == ("linear" if metric.startswith("ncc") else "log")
    assert inside(ax, profile.curve(metric))
    assert ("ρ" in legend_text(ax)) == (metric == "fuzziness_test")
    assert ("test data" in legend_text(ax)) == metric.endswith("test")


def test_missing_parts_are_left_out() -> None:
    assert "[" not in legend_text(plot_law(without_intervals(full_profile())))
    assert not plot_law(full_profile(), interval=False).containers
    trained = replace(
        full_profile(), laws={}, sites=tuple(replace(s, fuzziness_test=None) for s in full_profile().sites)
    )
    assert "test data" not in legend_text(plot_law(trained, test=True))
    assert "test data" not in legend_text(plot_law(full_profile(), test=False))
    sites = full_profile().sites
    holes = replace(full_profile(), sites=(*sites[:3], replace(sites[3], fuzziness=None), *sites[4:]))
    assert len(plot_law(holes).lines[0].get_xdata()) == 7


def test_zero_is_marked_below_the_axis() -> None:
    ax = plot_law(zero_profile(), null=True)
    assert "D = 0" in legend_text(ax)
    assert inside(ax, zero_profile().curve())


def test_nothing_to_draw_is_an_error() -> None:
    with pytest.raises(InputError, match="no `fuzziness` to draw"):
        plot_law(bare_profile())
    with pytest.raises(InputError, match="No curve `fuzzines`"):
        plot_law(full_profile(), metric="fuzzines")


def test_names_are_text(tmp_path) -> None:
    ax = Figure().add_subplot()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plot_law(replace(full_profile(), model=r"_$\broken{"), ax, title="$x")
        save_figure(ax, tmp_path / "names.svg")
    assert legend_text(ax).startswith(r" _\$\broken{: ρ")


def test_sites_are_panels(tmp_path) -> None:
    figure = plot_sites(full_profile(), title="all")
    assert len(figure.axes) == 8
    assert figure.get_suptitle() == "all" and figure.axes[0].get_title() == "input"
    assert figure.axes[3].get_title() == "layer 3\nblocks.2.relu"
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [str(kind) for kind in range(10)]
    assert save_figure(figure, tmp_path / "sites.pdf").read_bytes().startswith(b"%PDF")


def test_many_classes_have_colors_and_no_legend() -> None:
    profile = full_profile(sites=2)
    sites = tuple(replace(site, coordinates=coordinates(40, site.index)) for site in profile.sites)
    figure = plot_sites(replace(profile, classes=40, sites=sites))
    assert figure.legends == []
    colors = {tuple(np.round(entry.get_facecolor()[0], 3)) for entry in figure.axes[0].collections}
    assert len(colors) == 40


def test_only_sites_with_coordinates_are_drawn() -> None:
    profile = full_profile()
    some = tuple(site if site.index % 2 else replace(site, coordinates=None) for site in profile.sites)
    assert len(plot_sites(replace(profile, sites=some), columns=3).axes) == 4
    with pytest.raises(InputError, match="`bare` holds none"):
        plot_sites(bare_profile())


@pytest.mark.parametrize("name", ["figure", "figure.xyz", "figure."])
def test_unknown_formats_are_refused(tmp_path, name: str) -> None:
    with pytest.raises(InputError, match=r"Use one of .*\.pdf.*\.png"):
        save_figure(plot_law(full_profile()), tmp_path / name)


def test_matplotlib_is_left_as_found() -> None:
    before, figures = dict(mpl.rcParams), list(mpl._pylab_helpers.Gcf.figs)
    plot_law(full_profile(), null=True)
    plot_sites(full_profile())
    assert dict(mpl.rcParams) == before
    assert list(mpl._pylab_helpers.Gcf.figs) == figures


def test_reports_need_no_torch_and_no_pyplot() -> None:
    code = (
        "import sys; import equisep.report.terminal, equisep.report.notebook;"
        "assert 'matplotlib' not in sys.modules; import equisep.report.plots;"
        "bad = {'torch', 'pandas', 'scipy', 'matplotlib.pyplot'} & set(sys.modules); assert not bad, bad"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_blocks_and_reductions_are_named() -> None:
    profile = full_profile()
    assert plot_law(profile).get_xlabel() == "layer (0 = input)"
    blocks = replace(profile, settings={**profile.settings, "grain": "blocks", "reduction": "mean"})
    axes = plot_law(blocks)
    assert axes.get_xlabel() == "block (0 = input)"
    assert axes.get_title().endswith("mixed reading, reduction mean")


def without_input(profile: Profile) -> Profile:
    """As a profile of token sequences, whose raw input is no site: the first site is 1."""
    return replace(profile, sites=tuple(replace(site, index=site.index + 1) for site in profile.sites))


def test_sites_have_the_numbers_of_the_table() -> None:
    profile = without_input(full_profile())
    ax = plot_law(profile, null=True)
    assert ax.get_xlabel() == "layer"
    for line in ax.lines:
        assert (min(line.get_xdata()), max(line.get_xdata())) == (1, 8)
    (fitted,) = (line for line in ax.lines if len(line.get_xdata()) == 2 and line.get_linewidth() == 1.4)
    assert profile.law.intercept is not None
    assert fitted.get_ydata()[0] == pytest.approx(np.exp(profile.law.intercept))


def test_an_overlay_is_labeled_for_all_its_curves() -> None:
    ax = Figure().add_subplot()
    layers = full_profile()
    plot_law(layers, ax)
    plot_law(replace(layers, settings={**layers.settings, "grain": "blocks"}), ax)
    assert ax.get_xlabel() == "layer or block (0 = input)"
    plot_law(without_input(layers), ax)
    assert ax.get_xlabel() == "layer or block"
    names = [text.get_text().split(": ρ")[0] for text in ax.get_legend().get_texts()]
    assert names == ["Fnn(depth=8, width=100)", "Fnn(depth=8, width=100) (2)", "Fnn(depth=8, width=100) (3)"]


def covered(ax: Axes) -> int:
    """How many drawn points, of markers, lines and error bars alike, lie under the legend."""
    ax.figure.draw_without_rendering()
    box = ax.get_legend().get_window_extent()
    pieces = [line.get_transform().transform(line.get_xydata()) for line in ax.lines]
    pieces += [
        entry.get_transform().transform(piece)
        for entry in ax.collections
        if isinstance(entry, LineCollection)
        for piece in entry.get_segments()
    ]
    pieces += [patch.get_window_extent().get_points() for patch in ax.patches]
    shares = np.linspace(0, 1, 50)[:, None, None]
    points = np.concatenate([((1 - shares) * each[:-1] + shares * each[1:]).reshape(-1, 2) for each in pieces])
    inside = (box.x0 < points[:, 0]) & (points[:, 0] < box.x1) & (box.y0 < points[:, 1]) & (points[:, 1] < box.y1)
    return int(inside.sum())


def wide_intervals(profile: Profile) -> Profile:
    bars = [Interval(0.01, 30.0 * site.index + 40.0, 0.95, "jackknife", 10) for site in profile.sites]
    sites = zip(profile.sites, bars, strict=True)
    return replace(profile, sites=tuple(replace(site, fuzziness_interval=bar) for site, bar in sites))


@pytest.mark.parametrize("profile", [full_profile(), full_profile(rho=1.3), wide_intervals(full_profile())])
@pytest.mark.parametrize("null", [False, True])
def test_the_legend_covers_nothing(profile: Profile, null: bool) -> None:
    assert covered(plot_law(profile, null=null)) == 0
    ax = Figure(figsize=(6, 4)).add_subplot()
    for other in (profile, full_profile(rho=0.9, seed=2), full_profile(rho=0.7, seed=3), profile):
        plot_law(other, ax, null=null, test=True)
        assert covered(ax) == 0


def test_d_class_by_class() -> None:
    profile = full_profile()
    with pytest.raises(InputError, match="no `class_fuzziness` to draw"):
        plot_law(profile, metric="class_fuzziness")
    sites = [
        replace(site, class_fuzziness=tuple((site.fuzziness or 0) * (1 + k) for k in range(10)))
        for site in profile.sites
    ]
    profile = without_input(replace(profile, sites=tuple(sites)))
    ax = plot_law(profile, metric="class_fuzziness")
    assert legend_text(ax).split() == [str(kind) for kind in range(10)]
    assert ax.get_legend().get_title().get_text() == "class"
    assert covered(ax) == 0
    assert ax.lines[3].get_ydata()[2] == pytest.approx(4 * profile.sites[2].fuzziness)
    assert ax.lines[3].get_xdata()[2] == profile.sites[2].index


def test_each_layers_share_of_the_work() -> None:
    profile = full_profile()
    ax = plot_law(profile, metric="load")
    heights = [bar.get_height() for bar in ax.patches]
    assert sum(heights) == pytest.approx(1)
    assert heights[0] == pytest.approx(profile.law.loads[0] / sum(profile.law.loads))
    assert "equal shares" in legend_text(ax)
    shared = Figure().add_subplot()
    for _ in range(2):
        plot_law(profile, shared, metric="load")
    assert len(shared.get_legend().get_texts()) == 2
    with pytest.raises(InputError, match="no `load` to draw"):
        plot_law(bare_profile(), metric="load")
    with pytest.raises(InputError, match="D rises, or rises again by much"):
        plot_law(full_profile(rho=1.3), metric="load")


def test_a_path_is_where_the_plot_is_saved(tmp_path) -> None:
    full_profile().plot(tmp_path / "law.png")
    assert (tmp_path / "law.png").read_bytes().startswith(b"\x89PNG")
    full_profile().plot(str(tmp_path / "law.pdf"), metric="load")
    assert (tmp_path / "law.pdf").read_bytes().startswith(b"%PDF")
    with pytest.raises(InputError, match="`plot` draws onto matplotlib axes or into a file; found Figure"):
        full_profile().plot(Figure())


# What a notebook does after a cell: it sends every figure that pyplot knows.
BACKEND = """
from matplotlib._pylab_helpers import Gcf
from matplotlib.backend_bases import FigureManagerBase as FigureManager
from matplotlib.backends.backend_agg import FigureCanvasAgg as FigureCanvas
import io

def show(*args, **kwargs):
    for manager in Gcf.get_all_fig_managers():
        file = io.BytesIO()
        manager.canvas.figure.savefig(file, format="png")
        print("image/png", file.getvalue()[:4])
    Gcf.destroy_all()
"""
SESSION = """
import sys
from report_profiles import full_profile
profile = full_profile()
{before}
profile.plot()
{after}
from matplotlib._pylab_helpers import Gcf
print(len(Gcf.get_all_fig_managers()), 'matplotlib.pyplot' in sys.modules)
"""
IPYTHON = """
import types
from unittest.mock import MagicMock
sys.modules['IPython'] = types.SimpleNamespace(version_info=(9, 0), get_ipython=lambda: {shell})
"""


def session(folder: Path, *, before: str = "", after: str = "") -> list[str]:
    (folder / "notebook_backend.py").write_text(BACKEND)
    paths = [str(folder), str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "MPLBACKEND": "module://notebook_backend", "PYTHONPATH": os.pathsep.join(paths)}
    code = [sys.executable, "-c", SESSION.format(before=before, after=after)]
    done = subprocess.run(code, cwd=folder, env=environment, check=True, capture_output=True, text=True)
    return done.stdout.splitlines()


def test_a_notebook_shows_the_picture(tmp_path) -> None:
    """As in Jupyter: a session runs, and its backend sends what pyplot knows after the cell."""
    lines = session(
        tmp_path, before=IPYTHON.format(shell="MagicMock()"), after="from matplotlib import pyplot; pyplot.show()"
    )
    assert lines == ["image/png b'\\x89PNG'", "0 True"]


def test_pyplot_in_use_knows_the_picture_but_not_the_saved_one(tmp_path) -> None:
    assert session(tmp_path, before="from matplotlib import pyplot", after="profile.plot('law.png')") == ["1 True"]


def test_without_pyplot_or_a_session_nothing_global_is_touched(tmp_path) -> None:
    onto = "from matplotlib.figure import Figure; profile.plot(Figure().add_subplot())"
    assert session(tmp_path, before=IPYTHON.format(shell="None"), after=onto) == ["0 False"]


# Machado, Oliveira & Fernandes (2009), full strength, on linear RGB
BLINDNESS = {
    "normal": np.eye(3),
    "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
}


def lab(color: str, seen: np.ndarray) -> np.ndarray:
    """CIELAB (D65) of a color as someone sees it."""
    rgb = np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    xyz = to_xyz @ np.clip(seen @ linear, 0, 1) / [0.9505, 1.0, 1.089]
    x, y, z = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("kind", BLINDNESS)
def test_class_colors_differ_to_any_eye(kind: str) -> None:
    """Two of them, #CC6677 and #777777, were one color to a protanope (distance 1.5)."""
    points = [lab(color, np.asarray(BLINDNESS[kind])) for color in CLASS_COLORS]
    distances = [np.linalg.norm(a - b) for i, a in enumerate(points) for b in points[:i]]
    assert min(distances) > 10
