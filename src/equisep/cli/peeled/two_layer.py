"""`equisep peeled two-layer`: the 2-Layer-Peeled Model, searched, with neural collapse and a bound beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from equisep.cli.console import out, print_json, reported
from equisep.cli.options import Json, Quiet
from equisep.cli.peeled.inputs import FeatureEnergy, Groups, Sizes, WeightEnergy, stated_problem

if TYPE_CHECKING:
    from equisep.peeled import TwoLayerSolution


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
