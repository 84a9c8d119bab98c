"""Which grain follows the law better: blocks win where the layers inside them leave the line, and only there."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equisep.errors import InputError
from equisep.law import choose_grain, fit_law, grain_bic

LAYERS = tuple(range(17))
BLOCKS = tuple(range(0, 17, 2))
NAMES = {"layers": tuple(f"l{i}" for i in LAYERS), "blocks": tuple(f"b{i}" for i in range(9))}


def curve(inside: float, *, noise: float = 0.05, seed: int = 0) -> list[float]:
    """ln D falls by 0.4 a site; every second site, inside a block, lies off the line by normal draws of size `inside`."""
    draws = np.random.default_rng(seed).standard_normal(17)
    size = np.where(np.arange(17) % 2 == 1, inside, noise)
    return [float(value) for value in np.exp(3 - 0.4 * np.arange(17) + size * draws)]


def both(values: list[float]) -> dict[str, float | None]:
    return {"layers": grain_bic(values, LAYERS), "blocks": grain_bic(values, BLOCKS)}


def chosen(values: list[float]) -> str:
    laws = {"layers": fit_law(values), "blocks": fit_law(values[::2])}
    return choose_grain(laws, both(values), NAMES)[0].chosen


def test_blocks_win_where_the_layers_inside_them_leave_the_line() -> None:
    assert all(chosen(curve(0.5, seed=seed)) == "blocks" for seed in range(50))


def test_layers_have_the_lower_bic_where_all_sites_keep_to_the_line_alike() -> None:
    found = [both(curve(0.05, seed=seed)) for seed in range(200)]
    assert sum(bics["layers"] < bics["blocks"] for bics in found) >= 180  # type: ignore[operator]


def test_where_bic_is_not_clear_r_decides() -> None:
    laws = {"layers": fit_law([8.0, 4.0, 2.1, 1.0]), "blocks": fit_law([8.0, 3.0, 2.5, 1.0])}
    for bics, chosen in (
        ({"layers": -10.0, "blocks": -14.0}, "layers"),
        ({"layers": -10.0, "blocks": -17.0}, "blocks"),
        ({"layers": -14.0, "blocks": -10.0}, "layers"),
    ):
        choice, note = choose_grain(laws, bics, {"layers": ("a",) * 4, "blocks": ("b",) * 4})
        assert choice.chosen == chosen
        assert choice.gain == bics["blocks" if chosen == "layers" else "layers"] - bics[chosen]
        assert ("clearly better" in note.text) is (chosen == "blocks")
    assert (
        "BIC hardly tells them apart (4.0 in favor of the layers), so `law` is that of the layers, whose r" in note.text
    )


def test_the_bic_by_hand() -> None:
    values = [math.exp(v) for v in (4.0, 9.0, 2.1, 9.0, -0.1, 9.0, -2.0)]
    chosen = (0, 2, 4, 6)
    slope = (-3 * 4.0 - 1 * 2.1 + 1 * -0.1 + 3 * -2.0) / 20 * 2
    intercept = 1.0 - slope * 1.5
    rss = sum((v - intercept - slope * i) ** 2 for i, v in enumerate((4.0, 2.1, -0.1, -2.0)))
    off = sum((9.0 - intercept - slope * i) ** 2 for i in (0.5, 1.5, 2.5))
    by_hand = 4 * math.log(rss / 2) + 2 + 3 * math.log(off / 3) + 3 + 4 * math.log(7)
    assert grain_bic(values, chosen) == pytest.approx(by_hand, rel=1e-9)


def test_sites_outside_the_chosen_ones_stand_on_the_line_drawn_on() -> None:
    values = [math.exp(-0.5 * place) for place in range(9)]
    exact = grain_bic(values, (2, 4, 6, 8))
    assert exact is not None
    assert exact < 9 * math.log(1e-28) + 20  # all of them, rounding apart


@settings(max_examples=40, deadline=None)
@given(st.floats(1e-6, 1e6), st.integers(0, 1000))
def test_a_common_factor_of_d_changes_no_difference(factor: float, seed: int) -> None:
    plain, scaled = both(curve(0.2, seed=seed)), both([factor * value for value in curve(0.2, seed=seed)])
    assert plain["layers"] is not None and plain["blocks"] is not None
    assert scaled["layers"] is not None and scaled["blocks"] is not None
    assert plain["layers"] - plain["blocks"] == pytest.approx(scaled["layers"] - scaled["blocks"], abs=1e-6)


def test_exact_lines_have_no_infinite_evidence() -> None:
    found = both([math.exp(-0.3 * place) for place in range(17)])
    assert all(value is not None and math.isfinite(value) for value in found.values())


@pytest.mark.parametrize("missing", [None, 0.0])
def test_there_is_no_bic_where_d_is_missing_or_zero(missing: float | None) -> None:
    values: list[float | None] = [*curve(0.1)]
    values[3] = missing
    assert grain_bic(values, BLOCKS) is None


def test_three_sites_are_too_few_and_the_other_grain_is_taken() -> None:
    values = curve(0.1)
    laws = {"layers": fit_law(values), "blocks": fit_law([values[0], values[8], values[16]])}
    bics = {"layers": grain_bic(values, LAYERS), "blocks": grain_bic(values, (0, 8, 16))}
    choice, note = choose_grain(laws, bics, {**NAMES, "blocks": ("a", "b", "c")})
    assert (choice.chosen, choice.gain) == ("layers", None)
    assert "the blocks are too few for a BIC" in note.text


def test_without_any_bic_r_decides() -> None:
    laws = {"layers": fit_law([8.0, 4.0, 3.0]), "blocks": fit_law([8.0, 4.0, 2.0])}
    choice, note = choose_grain(laws, {"layers": None, "blocks": None}, {"layers": ("a",) * 3, "blocks": ("b",) * 3})
    assert choice.chosen == "blocks"
    assert "by r" in note.text


def test_the_note_says_by_how_much() -> None:
    values = curve(0.5)
    laws = {"layers": fit_law(values), "blocks": fit_law(values[::2])}
    choice, note = choose_grain(laws, both(values), NAMES)
    assert choice.gain is not None and choice.gain > 6
    assert f"the blocks follow the law clearly better, by {choice.gain:.1f} in BIC" in note.text
    assert f"9 sites, r {laws['blocks'].r:.4f}" in note.text


@pytest.mark.parametrize("places", [(0, 0, 1, 2), (3, 2, 1, 0), (0, 1, 2, 17), (-1, 0, 1, 2)])
def test_places_out_of_order_are_refused(places: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match="in order, from 0 to 16"):
        grain_bic(curve(0.1), places)
