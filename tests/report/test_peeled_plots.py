"""Figures of the Layer-Peeled wing: every point inside the axes, nothing drawn where there is nothing, nothing covered."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from mpl_toolkits.mplot3d.proj3d import proj_transform
from PIL import Image

from draw_collapse import CollapseFrame, collapse_frame, plot_collapse, save_collapse_film
from equisep.errors import InputError
from equisep.peeled import cosine_curves, long_tail, phase_by_energy, phase_by_share
from equisep.peeled.vectors import class_vectors, simplex
from equisep.report.peeled.plots import plot_cosines, plot_long_tail, plot_phases
from equisep.report.peeled.vector_plots import plot_vectors
from equisep.report.plots import save_figure

RATIOS = np.geomspace(1, 1e4, 21)


def words_of(axes: Axes) -> str:
    return "\n".join(text.get_text() for text in axes.get_legend().get_texts())


def assert_all_inside(axes: Axes) -> None:
    """All finite points of all lines lie in the axes, a marker's width beyond the last ratio excepted."""
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    for line in axes.lines:
        if line.get_transform() == axes.transData:
            x, y = np.asarray(line.get_xdata(), dtype=float), np.asarray(line.get_ydata(), dtype=float)
            known = np.isfinite(x) & np.isfinite(y)
            assert (x[known] >= left).all() and (x[known] <= right).all()
            assert (y[known] >= low).all() and (y[known] <= high).all()


def test_cosines_have_a_panel_for_each_pair_of_energies(tmp_path) -> None:
    figure = plot_cosines(cosine_curves())
    first, second = figure.axes
    assert first.get_title() == "energy of classifiers $E_W$ = 1, of features $E_H$ = 5"
    assert second.get_title().endswith("$E_H$ = 10")
    assert "$k_A$ = 3 majority, $k_B$ = 7 minority: $R^*$ = 245.5" in words_of(first)
    assert "$k_A$ = 7 majority, $k_B$ = 3 minority: $R^*$ = 4.000, $R_0$ = 5.705" in words_of(first)
    assert "$k_B$ = 5 minority: $R^*$ = 81.10" in words_of(second)
    below = [text.get_text() for text in figure.legends[0].get_texts()]
    assert below == ["classifiers", "class means", "$R^*$: collapsed from here on", "$R_0$: vanished from here on"]
    for axes in figure.axes:
        assert axes.get_xscale() == "log"
        assert_all_inside(axes)
    assert save_figure(figure, tmp_path / "cosines.png").read_bytes().startswith(b"\x89PNG")


def test_nothing_covers_the_curves() -> None:
    figure = plot_cosines(cosine_curves())
    figure.draw_without_rendering()
    for axes in figure.axes:
        legend, label = axes.get_legend().get_window_extent(), axes.xaxis.label.get_window_extent()
        assert legend.y1 <= label.y0 <= axes.get_window_extent().y0
        assert figure.legends[0].get_window_extent().y1 <= legend.y0
        ticks = [tick.get_window_extent() for tick in axes.get_xticklabels() if tick.get_text()]
        assert all(a.x1 < b.x0 for a, b in pairwise(ticks))


def test_a_vanished_stretch_is_not_drawn_and_the_corner_is() -> None:
    (curve,) = cosine_curves(majorities=[7], energies=[(1, 5)], ratios=RATIOS)
    axes = plot_cosines([curve]).axes[0]
    x, y = (np.asarray(values) for values in axes.lines[1].get_data())  # line 0 is the guide at cosine 1
    assert x[np.isfinite(y)].max() == curve.thresholds.vanishing
    assert y[x == curve.thresholds.collapse].tolist() == [1.0]
    assert np.isnan(y[x > curve.thresholds.vanishing]).all()


def test_class_means_can_be_left_out_and_long_curves_have_no_markers() -> None:
    figure = plot_cosines(
        cosine_curves(majorities=[3], energies=[(1, 5)], ratios=np.geomspace(1, 100, 80)), features=False
    )
    assert "class means" not in [text.get_text() for text in figure.legends[0].get_texts()]
    assert len(figure.axes[0].lines) == 2  # the guide and one curve: R* = 245 lies outside
    assert_all_inside(figure.axes[0])


def test_points_that_were_not_solved_are_told() -> None:
    figure = plot_cosines(cosine_curves(majorities=[5], energies=[(1, 1e7)], ratios=[1, 10]))
    assert "2 points not solved" in [text.get_text() for text in figure.legends[0].get_texts()]
    diagram = phase_by_energy(5, 5, ratios=[1, 10], feature_energies=[5, 1e7], weight_energy=1)
    assert "not solved" in words_of(plot_phases(diagram))


def test_phases_over_energy() -> None:
    diagram = phase_by_energy(5, 5, ratios=RATIOS, feature_energies=np.geomspace(0.1, 30, 15), weight_energy=1)
    axes = plot_phases(diagram)
    assert words_of(axes).split("\n") == [
        "told apart", "lost: collapsed", "lost: vanished",
        "$R^*$: collapsed from", "here on (root finding)", "$R_0$: vanished from", "here on (closed form)",
    ]  # fmt: skip
    assert axes.get_ylabel() == "feature energy $E_H$ (mean squared norm)" and axes.get_yscale() == "log"
    assert axes.get_title() == "$k_A$ = 5 majority, $k_B$ = 5 minority classes; classifier energy $E_W$ = 1"
    assert axes.get_xlim() == (1.0, 1e4) and axes.get_ylim() == (diagram.rows[0], diagram.rows[-1])
    assert np.asarray(axes.lines[1].get_xdata()).max() > 1e4  # R₀ leaves at the right edge
    axes.figure.draw_without_rendering()
    assert axes.get_legend().get_window_extent().x0 >= axes.get_window_extent().x1


def test_phases_over_share_share_axes_and_take_a_title() -> None:
    diagram = phase_by_share(12, ratios=RATIOS, feature_energy=5, weight_energy=1)
    given = Figure().add_subplot()
    axes = plot_phases(diagram, given, title="shares")
    assert axes is given and axes.get_title() == "shares" and axes.get_yscale() == "linear"
    assert axes.get_ylabel() == "share of majority classes $k_A/K$"
    assert plot_phases(diagram).get_title() == "K = 12 classes; energy of classifiers $E_W$ = 1, of features $E_H$ = 5"


def test_a_long_tail_shows_who_is_lost() -> None:
    tail = long_tail(10, 5000, 100, feature_energy=5, weight_energy=1)
    figure = plot_long_tail(tail)
    sizes, norms, cosines = figure.axes
    assert words_of(sizes).split("\n") == ["told apart (7)", "lost: no margin (3)"]
    assert [round(bar.get_height()) for bar in sizes.patches] == list(tail.sizes)
    assert len({bar.get_facecolor() for bar in sizes.patches[:7]}) == 1
    assert sizes.patches[6].get_facecolor() != sizes.patches[7].get_facecolor()
    for axes in (norms, cosines):
        assert_all_inside(axes)
    low, high = sizes.get_ylim()
    assert low < 50 and high > 5000
    figure.draw_without_rendering()
    legend = norms.get_legend().get_window_extent()
    points = norms.transData.transform(np.column_stack([np.arange(10), tail.prediction.feature_norms]))
    assert not any(legend.contains(x, y) for x, y in points)


def test_a_tail_without_losses_has_one_key() -> None:
    axes = plot_long_tail(long_tail(4, 10, 1, feature_energy=5, weight_energy=1)).axes[0]
    assert words_of(axes) == "told apart (4)"


def test_bad_input() -> None:
    with pytest.raises(InputError, match="needs at least one curve; found none"):
        plot_cosines([])
    diagram = phase_by_energy(5, 5, ratios=[1, 10], feature_energies=[5], weight_energy=1)
    with pytest.raises(InputError, match="needs at least 2 ratios and 2 rows; found 2 and 1"):
        plot_phases(diagram)


def test_drawing_touches_no_state_and_needs_no_torch() -> None:
    before = dict(mpl.rcParams)
    plot_cosines(cosine_curves(majorities=[5], energies=[(1, 5)], ratios=[1, 10]))
    assert dict(mpl.rcParams) == before
    code = """
import sys
import equisep.report.peeled.plots, equisep.report.peeled.terminal, equisep.report.peeled.network
assert "torch" not in sys.modules and "matplotlib.pyplot" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_vectors_have_a_row_for_each_number_of_classes(tmp_path) -> None:
    figure = plot_vectors([class_vectors(k) for k in (2, 3, 4)])
    assert len(figure.axes) == 9
    titles = [axes.get_title() for axes in figure.axes]
    assert titles[3] == "K = 3, R = 1\nsimplex ETF, cosine −0.5"
    assert "beyond $R^*$ = 47.68" in titles[8] and titles[8].endswith("cosine of small classes 1")
    assert titles[1].endswith("one small class: nothing to collapse with")
    assert "3 = 4" in {text.get_text() for text in figure.axes[8].texts}
    save_figure(figure, tmp_path / "vectors.png")
    with pytest.raises(InputError, match="needs at least one set of vectors"):
        plot_vectors([])


def collapsing(epoch: int, spread: float) -> CollapseFrame:
    rng = np.random.default_rng(epoch)
    labels = np.repeat(np.arange(4), 10)
    corners = 3 * np.eye(4, 6) + 1.0
    features = corners[labels] + spread * rng.normal(size=(40, 6))
    return collapse_frame(epoch, features, labels, 2 * corners, fuzziness=spread, accuracy=1.0)


def test_no_sample_is_cut_off_or_runs_through_a_title() -> None:
    frames = [collapsing(epoch, spread) for epoch, spread in ((0, 4.0), (7, 1.0), (300, 0.0))]
    figure = plot_collapse(frames, ["a", "b", "c", "d"])
    figure.canvas.draw()
    for axes, frame in zip(figure.axes, frames, strict=True):
        x, y, _ = proj_transform(*frame.samples.T, axes.get_proj())  # type: ignore[attr-defined]
        shown = axes.transAxes.inverted().transform(axes.transData.transform(np.stack([x, y], axis=1)))
        assert shown.min() >= 0 and shown.max() <= 1
        assert axes.title.get_window_extent().y0 >= axes.bbox.y1


def test_neural_collapse_in_three_dimensions(tmp_path) -> None:
    """Features at the corners of a simplex stay there, whatever their offset, size and dimension."""
    last = collapsing(300, 0.0)
    np.testing.assert_allclose(last.means, simplex(4), atol=1e-9)
    np.testing.assert_allclose(last.samples, simplex(4)[last.labels], atol=1e-9)
    np.testing.assert_allclose(last.classifiers, simplex(4), atol=1e-9)
    frames = [collapsing(0, 1.0), last]
    names = ["a", "b", "c", "d"]
    figure = plot_collapse(frames, names)
    assert [axes.get_title().split("\n")[0] for axes in figure.axes] == ["epoch 0", "epoch 300"]
    with Image.open(save_collapse_film(frames, names, tmp_path / "film.gif", dpi=30)) as film:
        assert film.format == "GIF" and film.is_animated  # type: ignore[attr-defined]
    with pytest.raises(InputError, match=r"Let its name end in \.gif"):
        save_collapse_film(frames, names, tmp_path / "film.mp4")
    with pytest.raises(InputError, match="found 3 classes"):
        collapse_frame(0, np.eye(3), np.arange(3), np.eye(4, 3), fuzziness=0.0, accuracy=1.0)
