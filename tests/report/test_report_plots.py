"""Figures: all points inside the axes, nothing global touched, and clear words where nothing can be drawn."""

from __future__ import annotations

import subprocess
import sys
import warnings
from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from report_profiles import bare_profile, coordinates, full_profile, without_intervals, zero_profile

from equisep.errors import InputError
from equisep.report.plots import plot_law, plot_sites, save_figure


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
        "r = −0.9998, residual ≤ 0.067",
        "test data",
    ):
        assert part in words
    assert "imbalance 1.00, two-slope BIC gain 0.32" in words
    assert "permuted labels" in words
    saved = save_figure(ax, tmp_path / "deep" / "law.png")
    assert saved.read_bytes().startswith(b"\x89PNG")


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
    assert figure.axes[3].get_title() == "3  blocks.2.relu"
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
    before = dict(mpl.rcParams)
    plot_law(full_profile(), null=True)
    plot_sites(full_profile())
    assert dict(mpl.rcParams) == before
    assert not mpl._pylab_helpers.Gcf.figs


def test_reports_need_no_torch_and_no_pyplot() -> None:
    code = (
        "import sys; import equisep.report.terminal, equisep.report.html;"
        "assert 'matplotlib' not in sys.modules; import equisep.report.plots;"
        "bad = {'torch', 'pandas', 'scipy', 'matplotlib.pyplot'} & set(sys.modules); assert not bad, bad"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_blocks_and_reductions_are_named() -> None:
    profile = full_profile()
    assert plot_law(profile).get_xlabel() == "site (layers passed)"
    blocks = replace(profile, settings={**profile.settings, "grain": "blocks", "reduction": "mean"})
    axes = plot_law(blocks)
    assert axes.get_xlabel() == "site (blocks passed)"
    assert axes.get_title().endswith("batch mode, features as mean")
