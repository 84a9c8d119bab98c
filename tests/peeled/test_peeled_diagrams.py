"""Diagrams: the slides' curves, phases that agree with the thresholds point by point, long tails as published."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from closeness import close
from equisep.errors import InputError, NumericalError
from equisep.peeled import (
    Problem,
    State,
    cosine_curves,
    long_tail,
    long_tail_sizes,
    phase_by_energy,
    phase_by_share,
    predict_classes,
    solve_general,
    solve_reduced,
    thresholds_of,
)
from equisep.peeled.diagrams import STATES, vanishing_line

# R* for K = 10, E_W = 1 by (k_A, E_H): the reference values of the Layer-Peeled wing, by three independent solvers
COLLAPSE = {(3, 5): 245.497, (5, 5): 12.1924, (7, 5): 4.00047, (3, 10): 6350.85, (5, 10): 81.1022}


def test_the_slides_two_panels() -> None:
    curves = cosine_curves()
    assert [(c.thresholds.majority, c.thresholds.feature_energy) for c in curves] == [
        (k, energy) for energy in (5.0, 10.0) for k in (3, 5, 7)
    ]
    for curve in curves:
        limits, ratios, cosines = curve.thresholds, curve.ratios, curve.classifier_cosines
        assert len(ratios) == 41 and curve.unsolved == 0 and curve.relative_gaps.max() <= 1e-9
        close(cosines[0], -1 / 9, rtol=1e-9)
        below = ratios < limits.collapse
        assert (np.diff(cosines[below]) > 0).all() and cosines[below].max() < 1
        shown = ~below & (ratios < (limits.vanishing or math.inf))
        assert np.abs(cosines[shown] - 1).max() <= 1e-12 and np.abs(curve.feature_cosines[shown] - 1).max() <= 1e-12
        # features and classifiers part: class means no longer equal the classifiers
        assert (curve.feature_cosines[below][1:] < cosines[below][1:]).all()
        if (known := COLLAPSE.get((limits.majority, limits.feature_energy))) is not None:
            close(limits.collapse, known, rtol=5e-6)
    close(curves[1].classifier_cosines[10], 0.517496, rtol=1e-5)
    close(curves[1].feature_cosines[10], 0.3868, rtol=1e-4)


def test_a_vanished_stretch_is_undefined_not_one() -> None:
    (curve,) = cosine_curves(majorities=[7], energies=[(1, 5)], ratios=[1, 4.5, 5.7, 5.8, 1e4])
    assert curve.states == ("told apart", *["lost: collapsed"] * 2, *["lost: vanished"] * 2)
    assert np.isnan(curve.classifier_cosines).tolist() == [False, False, False, True, True]
    assert np.isnan(curve.feature_cosines).tolist() == [False, False, False, True, True]
    content = json.loads(json.dumps(curve.to_dict(), allow_nan=False))
    assert content["classifier_cosines"][3:] == [None, None]
    assert content["collapse"] == curve.thresholds.collapse and content["unsolved"] == 0


def test_thousands_of_points_close_in_on_the_threshold() -> None:
    ratios = np.geomspace(12, 12.4, 1001)
    (curve,) = cosine_curves(majorities=[5], energies=[(1, 5)], ratios=ratios)
    assert curve.unsolved == 0
    first = curve.states.index(State.COLLAPSED)
    assert curve.ratios[first - 1] < curve.thresholds.collapse <= curve.ratios[first]


def test_ratios_come_sorted_and_once() -> None:
    (curve,) = cosine_curves(majorities=[5, 5], energies=[(1, 5)], ratios=[100, 1, 100])
    assert curve.ratios.tolist() == [1, 100]


def test_a_minority_of_one_class_has_no_cosine() -> None:
    (curve,) = cosine_curves(classes=4, majorities=[3], energies=[(1, 1)], ratios=[1, 2, 1000])
    assert np.isnan(curve.classifier_cosines).all()
    assert curve.thresholds.collapse is None and curve.states[0] == "told apart" and curve.states[2] == "lost: vanished"


@settings(max_examples=15)
@given(st.integers(1, 40), st.integers(2, 40), st.floats(0.05, 15), st.floats(0.05, 4))
def test_states_change_exactly_at_the_thresholds(k: int, m: int, feature_energy: float, weight_energy: float) -> None:
    limits = thresholds_of(k, m, feature_energy, weight_energy)
    assert limits.collapse is not None
    edges = [limits.collapse] + ([] if limits.vanishing is None else [limits.vanishing])
    ratios = [edge * side for edge in edges for side in (1 - 1e-5, 1 + 1e-5)]
    (curve,) = cosine_curves(k + m, majorities=[k], energies=[(weight_energy, feature_energy)], ratios=ratios)
    assert curve.states == ("told apart", "lost: collapsed", "lost: collapsed", "lost: vanished")[: len(curve.ratios)]


def near(actual: np.ndarray, expected: np.ndarray, tolerance: float) -> None:
    """For another solver's vectors, which are right to about the root of its gap, whatever their size."""
    assert np.abs(actual - expected).max() <= tolerance


def expected(diagram) -> np.ndarray:
    """The state of every point by the thresholds alone."""
    gone = diagram.ratios[None, :] >= np.nan_to_num(diagram.vanishing, nan=np.inf)[:, None]
    joined = diagram.ratios[None, :] >= np.nan_to_num(diagram.collapse, nan=np.inf)[:, None]
    return np.where(gone, STATES.index(State.VANISHED), np.where(joined, STATES.index(State.COLLAPSED), 0))


def test_phases_over_energy_agree_with_the_thresholds_everywhere() -> None:
    diagram = phase_by_energy(
        5, 5, ratios=np.geomspace(1, 1e4, 37), feature_energies=np.geomspace(0.1, 30, 25), weight_energy=1
    )
    assert diagram.unsolved == 0
    assert (diagram.states == expected(diagram)).all()
    assert {STATES[state] for state in np.unique(diagram.states)} == {"told apart", "lost: collapsed", "lost: vanished"}
    assert (np.diff(diagram.collapse) > 0).all()  # more energy, later collapse
    content = json.loads(json.dumps(diagram.to_dict(), allow_nan=False))
    assert content["states"][0][0] == "told apart" and content["states"][0][-1] == "lost: vanished"
    assert content["vanishing"][-1] is None


def test_phases_over_share_agree_with_the_thresholds_everywhere() -> None:
    diagram = phase_by_share(20, ratios=np.geomspace(1, 1e4, 37), feature_energy=5, weight_energy=1)
    assert diagram.unsolved == 0
    assert (diagram.states == expected(diagram)).all()
    close(diagram.rows, np.arange(1, 20) / 20, rtol=1e-15)
    assert np.isnan(diagram.collapse[-1])  # one minority class does not collapse …
    assert np.isfinite(diagram.vanishing[-1])  # … but vanishes
    assert (np.diff(diagram.collapse[:-1]) < 0).all()  # the larger the majority, the sooner


def test_the_vanishing_line_follows_r0_to_infinity() -> None:
    diagram = phase_by_energy(5, 5, ratios=[1, 10], feature_energies=np.geomspace(0.5, 10, 12), weight_energy=1)
    ratios, rows = vanishing_line(diagram)
    assert (np.diff(rows) >= 0).all() and (np.diff(ratios) >= 0).all()
    close(rows[-1], (2 * math.log(1 + math.sqrt(2))) ** 2, rtol=1e-9)
    assert ratios[-1] > 1e5
    known = np.isfinite(diagram.vanishing)
    close(ratios[: known.sum()], diagram.vanishing[known], rtol=0)
    never = phase_by_energy(5, 5, ratios=[1, 10], feature_energies=[4, 8], weight_energy=1)
    assert not np.isfinite(vanishing_line(never)[0]).any()


def test_points_that_are_not_solved_are_counted_and_have_no_number() -> None:
    (curve,) = cosine_curves(majorities=[5], energies=[(1, 1e7)], ratios=[1, 10])  # every loss underflows
    assert curve.states == ("not solved", "not solved") and curve.unsolved == 2
    assert np.isnan(curve.classifier_cosines).all()
    diagram = phase_by_energy(5, 5, ratios=[1, 10], feature_energies=[5, 1e7], weight_energy=1)
    assert diagram.unsolved == 2
    assert [STATES[state] for state in diagram.states[1]] == ["not solved", "not solved"]
    assert json.loads(json.dumps(diagram.to_dict(), allow_nan=False))["collapse"][1] == "inf"
    with pytest.raises(NumericalError, match="stopped after"):
        long_tail(5, 100, 10, feature_energy=1e7, weight_energy=1)


def test_long_tails_have_the_published_sizes() -> None:
    """Cui et al. 2019: long-tailed CIFAR-10 and CIFAR-100 at an imbalance of 100 hold 12,406 and 10,847 images."""
    ten = long_tail_sizes(10, 5000, 100)
    assert ten == (5000, 2997, 1796, 1077, 645, 387, 232, 139, 83, 50) and sum(ten) == 12406
    assert sum(long_tail_sizes(100, 500, 100)) == 10847
    assert long_tail_sizes(3, 7, 1) == (7, 7, 7)
    assert long_tail_sizes(4, 10, 1e6)[-1] == 1


def test_a_long_tail_agrees_with_the_general_solver_class_by_class() -> None:
    tail = long_tail(10, 5000, 100, feature_energy=5, weight_energy=1)
    assert tail.solution.result == "solved" and tail.solution.certificate.relative_gap <= 1e-9
    other = solve_general([Problem.of_sizes(tail.sizes, feature_energy=5, weight_energy=1)])[0]
    close(tail.solution.value, other.value, rtol=1e-9)
    Z, W = other.Z, other.W
    others = np.where(np.eye(10, dtype=bool), -np.inf, Z)
    near(tail.prediction.margins, np.diag(Z) - others.max(axis=1), 1e-4)
    near(tail.prediction.losses, np.log(np.exp(Z).sum(axis=1)) - np.diag(Z), 1e-4)
    near(tail.prediction.classifier_norms, np.linalg.norm(W, axis=1), 1e-4)
    unit = W / np.linalg.norm(W, axis=1, keepdims=True)
    cosines = np.where(np.eye(10, dtype=bool), -np.inf, unit @ unit.T)
    near(tail.prediction.nearest_cosines, cosines.max(axis=1), 1e-3)
    assert tail.prediction.states == ("told apart",) * 7 + ("lost",) * 3 and tail.prediction.lost == (7, 8, 9)
    assert (np.diff(tail.prediction.classifier_norms) < 0).all()
    content = json.loads(json.dumps(tail.to_dict(), allow_nan=False))
    assert content["lost"] == [7, 8, 9] and content["result"] == "solved"


def test_a_tail_without_a_tail_is_the_simplex() -> None:
    tail = long_tail(7, 30, 1, feature_energy=4, weight_energy=1)
    close(tail.prediction.margins, np.full(7, 2 * 7 / 6), rtol=1e-12)  # √(E_W E_H) K/(K−1)
    close(tail.prediction.nearest_cosines, np.full(7, -1 / 6), rtol=1e-12)
    close(tail.prediction.feature_norms, np.full(7, 2.0), rtol=1e-12)


def test_loss_weights_bring_a_tail_back() -> None:
    sizes = np.array(long_tail_sizes(6, 100, 50))
    tail = long_tail(6, 100, 50, feature_energy=3, weight_energy=1, loss_weights=100 / sizes)
    assert not tail.prediction.lost and len(set(np.round(tail.prediction.margins, 9))) == 1


def test_predictions_follow_the_order_of_the_classes() -> None:
    sizes, order = np.array([100, 100, 40, 5, 5, 5]), np.array([3, 0, 5, 2, 1, 4])
    first, second = (
        predict_classes(solve_reduced([Problem.of_sizes(chosen, feature_energy=4, weight_energy=1)])[0])
        for chosen in (sizes, sizes[order])
    )
    assert second.states == tuple(first.states[place] for place in order)
    assert first.states[3:] == ("lost: collapsed",) * 3
    for name in ("classifier_norms", "feature_norms", "nearest_cosines", "margins", "losses"):
        close(getattr(second, name), getattr(first, name)[order], rtol=1e-12)
    assert first.margins[3:].tolist() == [0, 0, 0] and first.lost == (3, 4, 5)  # a tie, exactly


def test_a_prediction_needs_groups() -> None:
    problem = Problem.of_sizes([5, 5, 1], feature_energy=1, weight_energy=1)
    with pytest.raises(InputError, match="found one of the general solver"):
        predict_classes(solve_general([problem])[0])


GOOD = {"ratios": [1, 2], "feature_energies": [1, 2], "weight_energy": 1}
BAD = {
    "no majority left": (lambda: cosine_curves(4, majorities=[4]), "4 majority classes of 4 leave no minority"),
    "half a class": (lambda: cosine_curves(majorities=[2.5]), "must be a whole number, 1 or more; found 2.5"),
    "no energies": (lambda: cosine_curves(energies=[]), "needs at least one pair of energies; found none"),
    "infinite ratio": (lambda: cosine_curves(ratios=[1, math.inf]), "needs finite imbalance ratios; found inf"),
    "negative ratio": (lambda: cosine_curves(ratios=[-1]), "imbalance ratio must be above 0; found -1"),
    "no ratio": (lambda: cosine_curves(ratios=[]), "Imbalance ratios must not be empty"),
    "zero energy": (lambda: phase_by_energy(5, 5, **{**GOOD, "feature_energies": [1, 0]}), "above 0; found 0"),
    "no weight energy": (lambda: phase_by_energy(5, 5, **{**GOOD, "weight_energy": 0}), "`weight_energy` must be"),
    "one class": (lambda: phase_by_share(1, ratios=[1], feature_energy=1, weight_energy=1), "at least 2 classes"),
    "one class in a tail": (lambda: long_tail_sizes(1, 5, 2), "at least 2 classes; found 1"),
    "a tail that rises": (lambda: long_tail_sizes(5, 5, 0.5), "must be 1 or more; found 0.5"),
    "an endless tail": (lambda: long_tail_sizes(5, 5, math.inf), "must be a finite number above 0; found inf"),
    "no samples": (lambda: long_tail_sizes(5, 0, 2), "size of the largest class must be a whole number, 1 or more"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_sentence(case: str) -> None:
    call, sentence = BAD[case]
    with pytest.raises(InputError) as caught:
        call()
    assert sentence in str(caught.value)
