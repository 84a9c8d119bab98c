"""`equisep peeled solve`: one Layer-Peeled problem, its optimum and the proof of it."""

from __future__ import annotations

import json as json_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from equisep.cli.console import out, print_json, reported, say_saved, usable_file
from equisep.cli.options import Json, Quiet
from equisep.cli.peeled.inputs import (
    FeatureEnergy,
    Groups,
    LossWeights,
    Majority,
    Minority,
    Sizes,
    WeightEnergy,
    refused,
    stated_problem,
)

if TYPE_CHECKING:
    from equisep.peeled import Problem, Solution, TwoLayerSolution


@reported
def solve(
    feature_energy: FeatureEnergy = None,
    weight_energy: WeightEnergy = None,
    sizes: Sizes = None,
    groups: Groups = None,
    majority: Majority = None,
    minority: Minority = None,
    ratio: Annotated[
        float | None,
        typer.Option("--ratio", help="R, majority over minority weight; inf: minority absent from the loss."),
    ] = None,
    loss_weights: LossWeights = None,
    solver: Annotated[
        str, typer.Option("--solver", help="auto, reduced, general, cvxpy (extra `peeled`) or nonconvex.")
    ] = "auto",
    dimension: Annotated[
        int | None, typer.Option("--dimension", help="Width p of the features, for the nonconvex solver.")
    ] = None,
    q: Annotated[
        float | None, typer.Option("--q", help="Bound features in the q-norm instead, for the nonconvex solver.")
    ] = None,
    starts: Annotated[
        int | None, typer.Option("--starts", help="Random starts of the nonconvex solver (default 8).")
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", min=0, help="Seed of the nonconvex solver (default 0).")] = None,
    out_file: Annotated[
        Path | None, typer.Option("--out", help="Save Z, W, H as .npz, or what --json prints as .json.")
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Solve one Layer-Peeled problem, with a duality gap that proves how good the answer is."""
    usable_file(out_file, flag="--out", endings=(".npz", ".json"))
    options = {"dimension": dimension, "q": q, "starts": starts, "seed": seed}
    if solver != "nonconvex":
        refused({f"--{name}": value for name, value in options.items()}, reason="it is for `--solver nonconvex`")
    problem = stated_problem(
        sizes=sizes, groups=groups, two=(majority, minority, ratio), loss_weights=loss_weights,
        feature_energy=feature_energy, weight_energy=weight_energy, quiet=quiet,
    )  # fmt: skip
    solution = _solved(problem, solver, {name: value for name, value in options.items() if value is not None})
    record = solution_record(solution, q=q)
    if json:
        print_json(record)
    else:
        from equisep.report.peeled.terminal import render_solution

        out.print(render_solution(solution))
        etf = record.get("etf")
        if etf is not None and not quiet:
            out.print(
                f"The best feasible simplex ETF found has value {etf['etf_value']:.7g}; this one is lower by "
                f"{etf['advantage']:.3g}, with feature cosines from {etf['least_cosine']:.4f} to {etf['largest_cosine']:.4f}.",
                highlight=False,
            )
    solution.or_raise()  # what stopped early leaves as exit code 3, and is not saved
    if out_file is not None:
        _save(out_file, solution, record)
        say_saved(out_file, "solution", quiet=quiet)


def _solved(problem: Problem, solver: str, options: dict[str, Any]) -> Solution:
    if options:
        from equisep.peeled import solve_nonconvex

        return solve_nonconvex(problem, **options, throw=False)
    from equisep.peeled import solve_problem  # which loads torch only where it is needed

    return solve_problem(problem, solver=solver, throw=False)


def solution_record(solution: Solution, *, q: float | None = None) -> dict[str, Any]:
    """A solution for JSON; without a geometry where the solver stopped early."""
    from equisep.files import encode
    from equisep.peeled import Result
    from equisep.peeled.classes import group_margins, group_states

    problem = solution.problem
    record: dict[str, Any] = {
        "value": solution.value,
        "result": solution.result.word,
        "solver": solution.solver,
        "iterations": solution.iterations,
        "certificate": solution.certificate,
        "classes": problem.classes,
        "group_sizes": problem.group_sizes,
        "weights": problem.weights,
        "feature_energy": problem.feature_energy,
        "weight_energy": problem.weight_energy,
        "budget": problem.budget,
        "states": None,
        "margins": None,
        "geometry": None,
    }
    if solution.result is not Result.STOPPED:
        record |= {
            "states": group_states(solution),
            "margins": group_margins(solution),
            "geometry": solution.geometry,
        }
        if q not in (None, 2.0) and solution.H.shape[1] >= problem.classes - 1:
            from equisep.peeled import compare_with_etf

            record["etf"] = compare_with_etf(solution, q=q)
    plainly: dict[str, Any] = encode(record, nonfinite="text")
    return plainly


def _save(path: Path, solution: Solution, record: dict[str, Any]) -> None:
    import numpy

    if path.suffix.lower() == ".json":
        path.write_text(json_module.dumps(record, indent=1, allow_nan=False) + "\n", encoding="utf-8")
        return
    weights = solution.problem.class_weights
    numpy.savez(path, Z=solution.Z, W=solution.W, H=solution.H, weights=weights, value=numpy.float64(solution.value))


@reported
def two_layer(
    sizes: Sizes = None,
    groups: Groups = None,
    feature_energy: FeatureEnergy = None,
    hidden_energy: Annotated[
        float, typer.Option("--hidden-energy", help="E_1, the squared norm allowed to the first layer, per class.")
    ] = 1.0,
    weight_energy: WeightEnergy = None,
    activation: Annotated[str, typer.Option("--activation", help="Between the layers: linear or relu.")] = "linear",
    dimension: Annotated[int | None, typer.Option("--dimension", help="Width p of both layers (K).")] = None,
    starts: Annotated[int, typer.Option("--starts", help="Random starts of the search.")] = 16,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the search.")] = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Search the 2-Layer-Peeled Model: the last two layers as they are, and free features below them."""
    from equisep.peeled import solve_two_layer, two_layer_collapse

    problem = stated_problem(
        sizes=sizes, groups=groups, two=(None, None, None), loss_weights=None, feature_energy=feature_energy,
        weight_energy=weight_energy, quiet=quiet, example="--sizes 1,1,1,1",
    )  # fmt: skip
    asked: dict[str, Any] = {"hidden_energy": hidden_energy, "activation": activation}
    solution = solve_two_layer(problem, **asked, dimension=dimension, starts=starts, seed=seed, throw=False)
    collapse = two_layer_collapse(problem, **asked) if problem.groups == 1 else None
    if json:
        print_json(two_layer_record(solution, collapse))
    else:
        from equisep.report.peeled.terminal import two_layer_lines

        for line in two_layer_lines(solution, collapse):
            out.print(line, highlight=False)
    solution.or_raise()  # what stopped early leaves as exit code 3


def two_layer_record(solution: TwoLayerSolution, collapse: TwoLayerSolution | None) -> dict[str, Any]:
    """The search for JSON."""
    from equisep.files import encode

    problem = solution.problem
    plainly: dict[str, Any] = encode(
        {
            "value": solution.value,
            "result": None if solution.result is None else solution.result.word,
            "activation": solution.activation,
            "iterations": solution.iterations,
            "certificate": solution.certificate,
            "rank": solution.rank,
            "collapse_distance": solution.collapse_distance,
            "collapse_value": None if collapse is None else collapse.value,
            "classes": problem.classes,
            "weights": problem.weights,
            "group_sizes": problem.group_sizes,
            "feature_energy": problem.feature_energy,
            "hidden_energy": solution.hidden_energy,
            "weight_energy": problem.weight_energy,
        },
        nonfinite="text",
    )
    return plainly
