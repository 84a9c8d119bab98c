"""How much faster is the Layer-Peeled sweep by symmetry than by a semidefinite program, and what does scale cost?

The rival is the published way: for each of the 41 ratios R = 10⁰ … 10⁴ the 2K×2K semidefinite program (K = 10, five majority and
five minority classes, E_W = 1, E_H = 5), here by cvxpy with Clarabel at its default tolerance. At some ratios Clarabel
calls its own answer inaccurate; it is timed all the same, and how many were proven is told.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import numpy as np

from _record import finish, interleaved
from equisep.peeled import (
    Problem,
    Result,
    Solution,
    long_tail_sizes,
    phase_by_energy,
    solve_general,
    solve_reduced,
    solve_reference,
    threshold,
)
from equisep.peeled.diagrams import SLIDES_RATIOS

ENERGIES = {"feature_energy": 5.0, "weight_energy": 1.0}
REPEATS = 3


def seconds_of(run: Callable[[], Any], *, repeats: int = REPEATS) -> float:
    """Median seconds of one thing alone."""
    return interleaved({"it": run}, repeats=repeats)["it"]


def sweep() -> dict[str, Any]:
    """The 41 ratios by three solvers in turns."""
    problems = [Problem.two_groups(5, 5, ratio, **ENERGIES) for ratio in SLIDES_RATIOS]
    contestants: dict[str, Callable[[], list[Solution]]] = {
        "reduced": lambda: solve_reduced(problems),
        "general": lambda: solve_general(problems),
        "cvxpy": lambda: [solve_reference(problem, precision=None, throw=False) for problem in problems],
    }
    seconds = interleaved(contestants, repeats=REPEATS)
    found = {name: run() for name, run in contestants.items()}
    best = np.array([solution.value for solution in found["reduced"]])
    return {
        "seconds": seconds,
        "ratio": seconds["cvxpy"] / seconds["reduced"],
        "ratio_general": seconds["cvxpy"] / seconds["general"],
        "solvers": {
            name: {
                "solved": sum(solution.result is Result.SOLVED for solution in solutions),
                "greatest_relative_gap": max(solution.certificate.relative_gap for solution in solutions),
                "greatest_relative_difference": float(
                    np.abs(np.array([solution.value for solution in solutions]) / best - 1).max()
                ),
            }
            for name, solutions in found.items()
        },
    }


def scale() -> list[dict[str, Any]]:
    """Two groups of ever more classes: the cost should not move."""
    rows = []
    for classes in (10, 1000, 100_000, 1_000_000):
        half = classes // 2
        problem = Problem.two_groups(half, half, 1.05, feature_energy=20.0, weight_energy=1.0)
        solution = solve_reduced([problem])[0]
        rows.append(
            {
                "classes": classes,
                "seconds": seconds_of(lambda problem=problem: solve_reduced([problem])),  # type: ignore[misc]
                "result": solution.result.word,
                "relative_gap": solution.certificate.relative_gap,
            }
        )
    return rows


def long_tail() -> dict[str, Any]:
    """100 classes whose sizes all differ, of which there is no symmetry to use, and with every class taken alone."""
    sizes = long_tail_sizes(100, 50_000, 100)
    problem = Problem.of_sizes(sizes, feature_energy=5.0, weight_energy=1.0)
    found = {"reduced": solve_reduced([problem])[0], "general": solve_general([problem])[0]}
    return {
        "classes": problem.classes,
        "different_sizes": problem.groups,
        "seconds": interleaved(
            {"reduced": lambda: solve_reduced([problem]), "general": lambda: solve_general([problem])}, repeats=REPEATS
        ),
        "relative_gap": {name: solution.certificate.relative_gap for name, solution in found.items()},
        "result": {name: solution.result.word for name, solution in found.items()},
        "relative_difference": abs(found["general"].value / found["reduced"].value - 1),
    }


def phase_diagram() -> dict[str, Any]:
    """One diagram of 121 × 81 points, each solved, certified and read out."""
    ratios, energies = np.geomspace(1, 1e4, 121), np.geomspace(0.1, 30, 81)
    start = time.perf_counter()
    diagram = phase_by_energy(5, 5, ratios=ratios, feature_energies=energies, weight_energy=1.0)
    return {"points": diagram.states.size, "unsolved": diagram.unsolved, "seconds": time.perf_counter() - start}


def main() -> None:
    """All of it, into one record."""
    compared = sweep()
    result = {
        "ratio": compared["ratio"],
        "sweep": compared,
        "scale": scale(),
        "long_tail": long_tail(),
        "phase_diagram": phase_diagram(),
        "packages": {name: version(name) for name in ("cvxpy", "clarabel")},
        "threshold_seconds": seconds_of(lambda: threshold(5, 5, 5.0, 1.0), repeats=5),
    }
    finish("peeled", result)


if __name__ == "__main__":
    main()
