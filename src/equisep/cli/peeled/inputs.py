"""How the commands of `equisep peeled` are told which classes there are, and which numbers to go through."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from equisep.cli.console import say
from equisep.errors import InputError

if TYPE_CHECKING:
    from equisep.peeled import Problem

MOST_STEPS = 100_000

FeatureEnergy = Annotated[
    float | None, typer.Option("--feature-energy", help="E_H, the mean squared norm allowed to features (5).")
]
WeightEnergy = Annotated[
    float | None, typer.Option("--weight-energy", help="E_W, the mean squared norm allowed to classifier rows (1).")
]
Sizes = Annotated[str | None, typer.Option("--sizes", help="Samples of each class: 500,500,50,50.")]
Groups = Annotated[
    str | None, typer.Option("--groups", help="Groups of equal classes, classes:weight of one class: 5:1,5:0.1.")
]
Majority = Annotated[int | None, typer.Option("--majority", help="k_A, the number of majority classes.")]
Minority = Annotated[int | None, typer.Option("--minority", help="k_B, the number of minority classes.")]
LossWeights = Annotated[
    str | None, typer.Option("--loss-weights", help="A factor on the loss of each class, with --sizes: 1,1,5,5.")
]


def numbers(text: str | None, *, flag: str) -> list[float] | None:
    """`1,2.5,10` as numbers; whole ones as such."""
    if text is None:
        return None
    try:
        return [_number(part) for part in text.split(",")]
    except ValueError:
        raise InputError(f"`{flag}` takes numbers with commas between them; found `{text}`.") from None


def pairs(text: str | None, *, flag: str, example: str) -> list[tuple[float, float]] | None:
    """`5:1,5:0.1` as pairs of numbers."""
    if text is None:
        return None
    parts = [part.split(":") for part in text.split(",")]
    try:
        if any(len(part) != 2 for part in parts):
            raise ValueError
        return [(_number(first), _number(second)) for first, second in parts]
    except ValueError:
        raise InputError(f"`{flag}` takes pairs such as {example}; found `{text}`.") from None


def steps(text: str | None, *, flag: str) -> list[float] | None:
    """`1:10000:41` as 41 numbers from 1 to 10000, each the same factor from the next; or a list, `1,10,100`."""
    if text is None or ":" not in text:
        return numbers(text, flag=flag)
    try:
        low, high, count = text.split(":")
        first, last, many = float(low), float(high), int(count)
    except ValueError:
        first, last, many = 0.0, 0.0, 0
    if not (0 < first < last < math.inf and 2 <= many <= MOST_STEPS):
        raise InputError(
            f"`{flag}` takes FROM:TO:STEPS, such as 1:10000:41, or a list of numbers; found `{text}`. FROM must be above "
            f"0, TO above FROM, STEPS from 2 to {MOST_STEPS}."
        )
    factor = math.log(last / first) / (many - 1)
    return [first, *(first * math.exp(factor * step) for step in range(1, many - 1)), last]


def stated_problem(
    *,
    sizes: str | None,
    groups: str | None,
    two: tuple[int | None, int | None, float | None],
    loss_weights: str | None,
    feature_energy: float | None,
    weight_energy: float | None,
    quiet: bool,
    example: str = "--majority 5 --minority 5 --ratio 10",
) -> Problem:
    """The problem that the flags state, in exactly one of three ways; `two` are majority, minority and ratio.

    `example` shows the third way in the sentence for none or several.
    """
    from equisep.peeled import Problem, problem_of

    ways = [sizes is not None, groups is not None, any(value is not None for value in two)]
    if sum(ways) != 1:
        raise InputError(
            "State the classes in one way: `--sizes 500,500,50` (samples of each class), or `--groups 5:1,5:0.1` (classes: "
            f"weight of one), or `{example}`; found {sum(ways) or 'none'} of them."
        )
    energy = energies_or_assumed(feature_energy, weight_energy, quiet=quiet)
    if loss_weights is not None and sizes is None:
        raise InputError(
            "`--loss-weights` multiplies the class sizes; found it without `--sizes`. Pass both, or neither."
        )
    if sizes is not None:
        return problem_of(
            numbers(sizes, flag="--sizes"), loss_weights=numbers(loss_weights, flag="--loss-weights"), **energy
        )
    if groups is not None:
        found = pairs(groups, flag="--groups", example="5:1,5:0.1 (classes:weight)") or []
        return problem_of(groups=[count for count, _ in found], weights=[weight for _, weight in found], **energy)
    majority, minority, ratio = needed({"--majority": two[0], "--minority": two[1], "--ratio": two[2]})
    return Problem.two_groups(majority, minority, ratio, **energy)


def energies_or_assumed(feature_energy: float | None, weight_energy: float | None, *, quiet: bool) -> dict[str, Any]:
    """Both energies; one that was not given is that of the paper's figures, which is said."""
    from equisep.peeled.problem import FEATURE_ENERGY, WEIGHT_ENERGY

    assumed = [
        f"{name} = {value:g}"
        for name, value, given in (("E_H", FEATURE_ENERGY, feature_energy), ("E_W", WEIGHT_ENERGY, weight_energy))
        if given is None
    ]
    if assumed:
        say(
            f"Energies: {' and '.join(assumed)} as in the figures of Fang, He, Long & Su 2021, since none was given (E_H: mean "
            "squared norm of the features, E_W: of the classifier rows). `equisep peeled network` reads both off your model.",
            quiet=quiet,
        )
    return {
        "feature_energy": FEATURE_ENERGY if feature_energy is None else feature_energy,
        "weight_energy": WEIGHT_ENERGY if weight_energy is None else weight_energy,
    }


def needed(flags: Mapping[str, Any]) -> list[Any]:
    """The values of these flags, all of which must have been given."""
    missing = [f"`{flag}`" for flag, value in flags.items() if value is None]
    if missing:
        raise InputError(f"{' and '.join(missing)} must be given here as well.")
    return list(flags.values())


def refused(flags: Mapping[str, Any], *, reason: str) -> None:
    """An error where one of these flags was given, which would be ignored otherwise."""
    given = [f"`{flag}`" for flag, value in flags.items() if value is not None]
    if given:
        raise InputError(f"{' and '.join(given)} {'has' if len(given) == 1 else 'have'} no place here: {reason}.")


def _number(text: str) -> float:
    value = float(text)
    return int(value) if value.is_integer() else value
