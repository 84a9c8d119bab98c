"""The curve in characters: inside its width, every site on it, and whole in ASCII."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equisep.law import fit_law
from equisep.report.terminal_plot import LEAST_WIDTH, render_curve

CURVE = [27.0, 13.6, 7.3, 3.6, 1.8, 0.95, 0.52, 0.26]


def test_points_line_and_axis() -> None:
    lines = render_curve(CURVE, fit_law(CURVE), 72, 14).splitlines()
    assert len(lines) == 14
    assert sum(line.count("●") for line in lines) == len(CURVE)
    assert any("⠀" < char <= "⣿" for line in lines for char in line)
    assert lines[-1].split() == [str(site) for site in range(8)]
    assert lines[0].lstrip().startswith("20┤ ●")
    assert lines[-3].endswith("●")
    assert [line.index("●") for line in lines if "●" in line] == sorted(
        line.index("●") for line in lines if "●" in line
    )


def test_ascii_is_ascii() -> None:
    drawing = render_curve(CURVE, fit_law(CURVE), 72, 14, ascii=True)
    assert drawing.isascii()
    assert drawing.count("o") == len(CURVE)
    assert "." in drawing


@settings(max_examples=60, deadline=None)
@given(
    curve=st.lists(st.one_of(st.none(), st.just(0.0), st.floats(1e-300, 1e300)), max_size=60),
    width=st.integers(1, 120),
    height=st.integers(1, 30),
    ascii=st.booleans(),
)
def test_any_curve_fits_any_width(curve: list[float | None], width: int, height: int, ascii: bool) -> None:
    whole = [value for value in curve if value is not None]
    drawing = render_curve(curve, fit_law(whole) if len(whole) == len(curve) else None, width, height, ascii=ascii)
    assert max(map(len, drawing.splitlines())) <= max(width, LEAST_WIDTH)


@pytest.mark.parametrize("curve", [[], [None, None], [0.0]])
def test_nothing_to_draw_is_said(curve: list[float | None]) -> None:
    assert render_curve(curve, None) == "(no D above 0 to draw)"


def test_gaps_and_zeros() -> None:
    drawing = render_curve([4.0, None, 1.0, 0.0], None, 40, 8)
    assert drawing.count("●") == 2
    assert drawing.count("▼") == 1


def test_one_site_and_flat_curves() -> None:
    assert render_curve([2.0], fit_law([2.0]), 30, 8).count("●") == 1
    flat = render_curve([2.0] * 5, fit_law([2.0] * 5), 40, 9)
    assert any(line.count("●") == 5 for line in flat.splitlines())


def test_many_sites_number_only_what_fits() -> None:
    curve = (0.9 ** np.arange(150)).tolist()
    numbers = render_curve(curve, fit_law(curve), 60, 10).splitlines()[-1].split()
    assert numbers[0] == "0"
    assert len(set(np.diff([int(each) for each in numbers]))) == 1


def test_sites_have_the_numbers_of_the_table() -> None:
    assert render_curve(CURVE, fit_law(CURVE), 72, 14, first=1).splitlines()[-1].split() == [
        str(n) for n in range(1, 9)
    ]
