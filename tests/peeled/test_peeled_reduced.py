"""The reduced solver against reference values, closed forms, other solvers, and at the ends of what numbers can hold.

Reference values are those of three independent solvers, collected with the formulas of the project (five majority classes of
weight 1, five minority classes of weight 1/R, E_W = 1, E_H = 5, where nothing else is said).
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from closeness import close
from equisep.errors import InputError, NumericalError
from equisep.peeled import Problem, ReducedForm, solve_general, solve_reduced
from equisep.peeled.solvers.batch import Batch, reduced_gap
from equisep.peeled.solvers.sphere import solve_factored
from equisep.peeled.solvers.two_groups import solve_two

E = {"feature_energy": 5, "weight_energy": 1}


def exponential(classes: int, ratio: float) -> np.ndarray:
    """A long-tailed profile: weights that fall exponentially by `ratio` from the first class to the last."""
    return ratio ** (-np.arange(classes) / (classes - 1))


@pytest.mark.parametrize(
    ("ratio", "value", "cosine"),
    [(1, 5.597815, -0.111111), (10, 1.439224, 0.517496), (100, 0.461061, 1), (1000, 0.357699, 1)],
)
def test_reference_values_of_five_against_five(ratio: float, value: float, cosine: float) -> None:
    solution = solve_reduced([Problem.two_groups(5, 5, ratio, **E)])[0]
    assert solution.result == "solved"
    close(solution.value, value, rtol=1e-5)
    close(solution.geometry.within(1), cosine, rtol=1e-5)


def test_reference_cosine_of_features() -> None:
    solution = solve_reduced([Problem.two_groups(5, 5, 10, **E)])[0]
    assert solution.geometry.feature_cosines[1][1] == pytest.approx(0.3868, abs=5e-5)


def test_reference_values_of_three_groups() -> None:
    solution = solve_reduced([Problem.of_groups((3, 4, 5), (1, 0.3, 0.05), **E)])[0]
    close(solution.value, 1.18559125, rtol=1e-8)
    close(solution.form.s[:2], (5.270096, 3.821425), rtol=1e-6)
    assert solution.form.s[2] == 0
    sigma = np.linalg.svd(solution.form.M, compute_uv=False)
    close(sigma[:2], (4.718023, 0.110325), rtol=1e-5)
    assert sigma[2] < 1e-12
    close(solution.certificate.multiplier, 0.07849571, rtol=1e-6)
    geometry = solution.geometry
    close([geometry.within(g) for g in range(3)], (-0.165123, -0.161268, 1), rtol=1e-5)
    assert geometry.collapsed == (False, False, True)


def test_reference_values_of_a_hundred_thousand_classes() -> None:
    problem = Problem.of_groups((50_000, 50_000), (1, 1 / 1.05), feature_energy=20, weight_energy=1)
    solution = solve_reduced([problem])[0]
    assert solution.result == "solved" and solution.certificate.relative_gap <= 1e-9
    close(solution.value, 680119.1043, rtol=1e-9)
    close(solution.form.s, (8.517545, 0.426816), rtol=1e-5)


def test_the_sweep_of_41_ratios_is_solved_to_a_relative_gap_of_1e_9() -> None:
    ratios = 10.0 ** np.linspace(0, 4, 41)
    solutions = solve_reduced([Problem.two_groups(5, 5, ratio, **E) for ratio in ratios])
    assert {solution.result for solution in solutions} == {"solved"}
    assert max(solution.certificate.relative_gap for solution in solutions) < 1e-12
    cosines = [solution.geometry.within(1) for solution in solutions]
    assert (np.diff(cosines) > -1e-14).all() and cosines[-1] == pytest.approx(1, abs=1e-14)


@pytest.mark.parametrize("classes", [2, 3, 10, 37, 100])
@pytest.mark.parametrize("energies", [(5, 1), (1e-3, 1), (10, 0.1), (1e3, 1)])
def test_balanced_classes_are_the_simplex_etf(classes: int, energies: tuple[float, float]) -> None:
    """FHLS21: own logit √(E_W E_H), others −√(E_W E_H)/(K−1); one group, and the same split into two and three."""
    root = math.sqrt(energies[0] * energies[1])
    loss = math.log1p((classes - 1) * math.exp(-root * classes / (classes - 1)))
    splits = [(classes,), (1, classes - 1), (1, classes - 2, 1)]
    for sizes in (split for split in splits if min(split) > 0):
        problem = Problem.of_groups(sizes, [1] * len(sizes), feature_energy=energies[0], weight_energy=energies[1])
        solution = solve_reduced([problem])[0]
        assert solution.result == "solved"
        close(solution.value, classes * loss)
        close(np.diag(solution.Z), np.full(classes, root), rtol=1e-6)
        for row, absent in zip(solution.geometry.classifier_cosines, sizes, strict=True):
            defined = [cosine for cosine in row if cosine is not None]
            assert len(defined) == len(row) - (absent == 1)
            assert defined == pytest.approx([-1 / (classes - 1)] * len(defined), abs=1e-6)
        assert solution.geometry.duality < 1e-6


def test_two_to_a_hundred_balanced_classes() -> None:
    """The ETF and h = √(E_H/E_W) w, from one group and from two groups of equal weight."""
    for groups in (1, 2):
        sizes = [(k,) if groups == 1 else (k // 2, k - k // 2) for k in range(2, 101)]
        problems = [Problem.of_groups(size, [0.1] * groups, feature_energy=5, weight_energy=0.5) for size in sizes]
        for classes, solution in enumerate(solve_reduced(problems), start=2):
            assert solution.result == "solved"
            for row in solution.geometry.classifier_cosines:
                found = [cosine for cosine in row if cosine is not None]
                assert found == pytest.approx([-1 / (classes - 1)] * len(found), abs=1e-6)
            assert [solution.geometry.ratio(g) for g in range(groups)] == pytest.approx(
                [math.sqrt(10)] * groups, rel=1e-6
            )
            assert solution.geometry.duality < 1e-6


def test_two_groups_by_equations_and_by_newton_on_factors_agree() -> None:
    rng = np.random.default_rng(5)
    problems = [
        Problem.of_groups(
            rng.integers(1, 40, 2),
            10 ** -rng.uniform(0, 4, 2),
            feature_energy=10 ** rng.uniform(-2, 2),
            weight_energy=1,
        )
        for _ in range(60)
    ]
    batch = Batch.of(problems)
    by_equations, by_newton = (reduced_gap(batch, *method(batch)[:2]) for method in (solve_two, solve_factored))
    assert (by_equations.gap <= 1e-10 * by_equations.value).all()
    assert (by_newton.gap <= 1e-9 * by_newton.value).all()
    close(by_equations.value, by_newton.value)


def test_extreme_problems_of_two_groups_are_solved() -> None:
    """Group sizes 1 to 10⁵, ratios to 10²⁰ either way, E_W·E_H from 10⁻³ to 10³."""
    rng = np.random.default_rng(0)
    problems = [
        Problem.two_groups(
            *np.floor(10 ** rng.uniform(0, 5, 2)),
            10 ** rng.uniform(-20, 20),
            feature_energy=10 ** rng.uniform(-3, 3),
            weight_energy=1,
        )
        for _ in range(500)
    ]
    solutions = solve_reduced(problems)
    assert {solution.result for solution in solutions} == {"solved"}


def test_extreme_problems_of_several_groups_are_solved() -> None:
    rng = np.random.default_rng(1)
    problems = []
    for groups in (3, 4, 6):
        problems += [
            Problem.of_groups(
                np.floor(10 ** rng.uniform(0, 5, groups)),
                10 ** -rng.uniform(0, 8, groups),
                feature_energy=10 ** rng.uniform(-3, 3),
                weight_energy=1,
            )
            for _ in range(40)
        ]
    solutions = solve_reduced(problems)
    assert {solution.result for solution in solutions} == {"solved"}


def test_an_infinite_ratio_is_the_limit_of_large_ones() -> None:
    last, absent = solve_reduced([Problem.two_groups(5, 5, ratio, **E) for ratio in (1e14, math.inf)])
    close(last.value, absent.value)
    close(last.geometry.classifier_cosines, absent.geometry.classifier_cosines)
    assert absent.geometry.within(1) == pytest.approx(1, abs=1e-14)
    assert absent.geometry.feature_norms[1] == 0 and absent.geometry.feature_cosines[1][1] is None
    assert not absent.geometry.vanished[1]  # its classifiers are not zero


def test_a_group_that_is_absent_beside_one_class_leaves_a_tiny_but_proven_loss() -> None:
    problem = Problem((238, 1), (0.0, 0.019), 3.28, 1.0)
    solution = solve_reduced([problem])[0]
    assert solution.result == "solved"
    close(solution.value, 0.019 * 238 * math.exp(-problem.budget * math.sqrt(239 / 238)), rtol=1e-9)


def test_an_answer_does_not_depend_on_its_batch() -> None:
    problems = [
        Problem.two_groups(5, 5, 10, **E),
        Problem.of_groups((3, 4, 5), (1, 0.3, 0.05), **E),
        Problem.two_groups(2, 9, 1e6, feature_energy=50, weight_energy=2),
        Problem.of_groups((4,), (1,), **E),
        Problem.of_groups((30, 2, 1), (1e-3, 1, 0.2), feature_energy=0.1, weight_energy=1),
    ]
    for together, alone in zip(solve_reduced(problems), (solve_reduced([p])[0] for p in problems), strict=True):
        assert together.problem is alone.problem
        close(together.value, alone.value, rtol=1e-12)
        assert together.form.s == pytest.approx(alone.form.s, rel=1e-7, abs=1e-12)


def test_no_problems_have_no_solutions() -> None:
    assert solve_reduced([]) == []


def test_the_general_solver_agrees() -> None:
    problems = [
        Problem.of_groups((3, 4, 5), (1, 0.3, 0.05), **E),
        Problem.two_groups(5, 5, 10, **E),
        Problem.of_weights(exponential(8, 100), **E),
        Problem.two_groups(4, 4, math.inf, feature_energy=1, weight_energy=1),
    ]
    for mine, other in zip(solve_reduced(problems), solve_general(problems), strict=True):
        close(mine.value, other.value, rtol=1e-8)
        assert pytest.approx(other.Z, abs=1e-5) == mine.Z


def test_a_long_tail_of_a_hundred_distinct_sizes() -> None:
    sizes = np.round(10_000 * exponential(100, 100)).astype(int)
    solution = solve_reduced([Problem.of_sizes(sizes, **E)])[0]
    assert solution.problem.groups == 100
    assert solution.result == "solved" and solution.certificate.relative_gap <= 1e-8
    assert not any(solution.geometry.collapsed) and not any(solution.geometry.vanished)


def test_a_long_tail_agrees_with_cvxpy() -> None:
    pytest.importorskip("cvxpy")
    from equisep.peeled import solve_reference

    problem = Problem.of_weights(exponential(7, 50), **E)
    mine, other = solve_reduced([problem])[0], solve_reference(problem)
    close(mine.value, other.value, rtol=1e-6)
    assert pytest.approx(other.Z, abs=1e-3) == mine.Z
    assert mine.value <= other.value * (1 + 1e-9)


def test_what_is_not_proven_is_not_called_solved() -> None:
    problem = Problem.of_groups((3, 4, 5), (1, 0.3, 0.05), **E)
    solution = solve_reduced([problem], tolerance=1e-30, throw=False)[0]
    assert solution.result.word == "stopped" and solution.certificate.gap > 0
    with pytest.raises(NumericalError, match=r"reduced solver .* stopped after .* gap of .* constraint exceeded by"):
        solution.or_raise()
    assert solve_reduced([problem])[0].or_raise().result == "solved"


def test_a_loss_that_underflows_is_not_called_solved() -> None:
    for sizes, weights in (((5,), (1,)), ((5, 5), (1, 0.1)), ((3, 4, 5), (1, 0.3, 0.05))):
        with np.errstate(all="raise", under="ignore"):
            problem = Problem.of_groups(sizes, weights, feature_energy=1e7, weight_energy=1)
            solution = solve_reduced([problem], throw=False)[0]
        assert solution.value == 0 and solution.result.word == "stopped"
        with pytest.raises(
            NumericalError, match="losses below the smallest float, a value of 0: a duality gap proves nothing there"
        ):
            solution.or_raise()
        assert np.isfinite(solution.form.M).all()


def test_matrices_of_too_many_classes_are_refused_and_the_groups_named() -> None:
    solution = solve_reduced([Problem.two_groups(5000, 5000, 1.5, **E)])[0]
    for name in ("Z", "W", "H"):
        with pytest.raises(InputError, match=f"`{name}` was asked for 10000 classes.*Read `geometry`"):
            getattr(solution, name)
    assert solution.geometry.within(0) is not None


def test_a_start_changes_the_way_and_not_the_optimum() -> None:
    """From the optimum of other weights, where other groups are zero, and from one that is no help at all."""
    first = Problem.of_groups((3, 4, 3, 1), (1, 0.3, 0.01, 0.2), **E)
    second = Problem.of_groups((3, 4, 3, 1), (0.05, 0.3, 1, 0.001), **E)
    cold = solve_reduced([first, second])
    warm = solve_reduced([first, second], near=[cold[1].form, cold[0].form])
    for one, other in zip(cold, warm, strict=True):
        assert other.result == "solved" and one.geometry.collapsed == other.geometry.collapsed
        close(other.value, one.value, rtol=1e-9)
        assert np.abs(other.Z - one.Z).max() < 1e-4
    here = solve_reduced([first], near=[cold[0].form])[0]
    assert here.iterations < cold[0].iterations and here.result == "solved"
    nothing = ReducedForm(np.zeros(4), np.zeros((4, 4)))
    close(solve_reduced([first], near=[nothing])[0].value, cold[0].value, rtol=1e-9)
