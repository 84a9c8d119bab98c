"""`equisep peeled threshold`: from which imbalance on small classes are lost, and what rescues them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from equisep.cli.console import out, print_json, progress_bars, reported
from equisep.cli.options import Json, Quiet
from equisep.cli.peeled.inputs import (
    FeatureEnergy,
    Groups,
    LossWeights,
    Majority,
    Minority,
    Sizes,
    WeightEnergy,
    energies_or_assumed,
    needed,
    numbers,
    refused,
    stated_problem,
)
from equisep.errors import InputError

if TYPE_CHECKING:
    from equisep.peeled import Problem, Thresholds
    from equisep.report.peeled.threshold import ClassStates, UnderDecay


@reported
def threshold(
    majority: Majority = None,
    minority: Minority = None,
    feature_energy: FeatureEnergy = None,
    weight_energy: WeightEnergy = None,
    sizes: Sizes = None,
    groups: Groups = None,
    loss_weights: LossWeights = None,
    every: Annotated[
        bool,
        typer.Option("--every", help="Also show how much weight the other classes could lose before they are lost."),
    ] = False,
    saving: Annotated[
        bool, typer.Option("--saving/--no-saving", help="Find the least weight that rescues each class that is lost.")
    ] = True,
    classifier_decay: Annotated[
        float | None,
        typer.Option("--classifier-decay", help="Weight decay of the classifier, λ_W: also its threshold."),
    ] = None,
    feature_decay: Annotated[
        float | None, typer.Option("--feature-decay", help="λ_H, with --classifier-decay.")
    ] = None,
    minority_size: Annotated[
        int | None, typer.Option("--minority-size", help="n_B, samples of one minority class, for weight decay.")
    ] = None,
    mean: Annotated[
        str, typer.Option("--mean", help="What a weighted loss is divided by: samples, or weights (as torch does).")
    ] = "samples",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """The imbalance ratio R* from which on minority collapse is the optimum; of given sizes, who is lost and what rescues it."""
    if every and not saving:
        raise InputError("`--every` asks for more least weights, `--no-saving` for none. Give one of them.")
    two = majority is not None or minority is not None
    decays = {"--classifier-decay": classifier_decay, "--feature-decay": feature_decay}
    decaying = any(value is not None for value in decays.values())
    constrained = feature_energy is not None or weight_energy is not None or not decaying
    if decaying:
        needed(decays)
        if groups is not None:
            raise InputError(
                "Weight decay needs class sizes; found `--groups`. Pass `--sizes`, or majority and minority."
            )
    if two:
        refused({"--sizes": sizes, "--groups": groups}, reason="`--majority` and `--minority` state the classes")
        refused({"--loss-weights": loss_weights}, reason="it goes with `--sizes`")
        more = {"--every": every or None, "--no-saving": True if not saving else None}
        refused(more, reason="it goes with `--sizes` or `--groups`")
        needed({"--majority": majority, "--minority": minority})
    if not (two and decaying):
        refused({"--minority-size": minority_size}, reason="it goes with `--majority`, `--minority` and weight decay")
    limits, states, decay = None, None, None
    if constrained and majority is not None and minority is not None:
        limits = _limits(majority, minority, energies_or_assumed(feature_energy, weight_energy, quiet=quiet))
    elif constrained:
        problem = stated_problem(
            sizes=sizes, groups=groups, two=(None, None, None), loss_weights=loss_weights,
            feature_energy=feature_energy, weight_energy=weight_energy, quiet=quiet, example="--majority 5 --minority 5",
        )  # fmt: skip
        states = _states(problem, sizes, loss_weights, every=every, saving=saving, quiet=quiet)
    if classifier_decay is not None and feature_decay is not None:
        rates = {"classifier_decay": classifier_decay, "feature_decay": feature_decay}
        if majority is not None and minority is not None:
            decay = _decay_threshold(majority, minority, minority_size, rates)
        else:
            decay = _decay_rescue(sizes, loss_weights, rates, mean)
    from equisep.report.peeled.threshold import ThresholdAnswer, render_threshold

    answer = ThresholdAnswer(limits, states, decay)
    if json:
        print_json(answer.to_dict())
    else:
        out.print(render_threshold(answer))


def _limits(majority: int, minority: int, energies: dict[str, float]) -> Thresholds:
    from equisep.peeled import threshold, thresholds_of

    threshold(majority, minority, **energies)  # refuses a minority of one class
    return thresholds_of(majority, minority, **energies)


def _states(
    problem: Problem, sizes: str | None, loss_weights: str | None, *, every: bool, saving: bool, quiet: bool
) -> ClassStates:
    """What becomes of each class of `sizes`, otherwise of each group; with sizes also the loss weight to set."""
    from equisep.peeled import rescue
    from equisep.report.peeled.threshold import ClassState, ClassStates

    with progress_bars(quiet=quiet) as progress:
        found = rescue(problem, weights=saving, every=every, progress=progress)
    counts = numbers(sizes, flag="--sizes")
    if counts is None:
        return ClassStates(found, tuple(ClassState(one.group, one) for one in found.groups), weighed=saving)
    factors = numbers(loss_weights, flag="--loss-weights") or [1.0] * len(counts)
    each = zip(found.classes, counts, factors, strict=True)
    return ClassStates(found, tuple(ClassState(k, *row) for k, row in enumerate(each)), weighed=saving)


def _decay_threshold(majority: int, minority: int, minority_size: int | None, rates: dict[str, Any]) -> UnderDecay:
    from equisep.peeled import weight_decay_threshold
    from equisep.report.peeled.threshold import UnderDecay

    needed({"--minority-size": minority_size})
    assert minority_size is not None
    found = weight_decay_threshold(majority, minority, minority_size, **rates)
    return UnderDecay(**rates, threshold=found, minority_size=minority_size)


def _decay_rescue(sizes: str | None, loss_weights: str | None, rates: dict[str, Any], mean: str) -> UnderDecay:
    from equisep.peeled import weight_decay_rescue
    from equisep.report.peeled.threshold import UnderDecay

    counts = numbers(sizes, flag="--sizes")
    if counts is None:
        raise InputError("Weight decay needs class sizes; found none. Pass `--sizes`, or majority and minority.")
    found = weight_decay_rescue(counts, loss_weights=numbers(loss_weights, flag="--loss-weights"), mean=mean, **rates)
    return UnderDecay(**rates, classes=tuple(found), mean=mean)
