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
    from equisep.peeled import Problem


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
        typer.Option(
            "--classifier-decay",
            help="Weight decay of the classifier, λ_W: also its threshold.",
        ),
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
    decay = {"classifier_decay": classifier_decay, "feature_decay": feature_decay}
    record: dict[str, Any] = {}
    if constrained and two:
        record = _two_groups(majority, minority, feature_energy, weight_energy, quiet=quiet)
    elif constrained:
        problem = stated_problem(
            sizes=sizes, groups=groups, two=(None, None, None), loss_weights=loss_weights,
            feature_energy=feature_energy, weight_energy=weight_energy, quiet=quiet, example="--majority 5 --minority 5",
        )  # fmt: skip
        record = _rescue(problem, sizes, loss_weights, every=every, saving=saving, quiet=quiet)
    if decaying:
        found = (
            _decay_threshold(majority, minority, minority_size, decay)
            if two
            else _decay_rescue(sizes, loss_weights, decay, mean)
        )
        record["weight_decay"] = found
    if json:
        print_json(record)
        return
    from equisep.report.peeled.terminal import render_threshold

    out.print(render_threshold(record))


def _two_groups(
    majority: int | None,
    minority: int | None,
    feature_energy: float | None,
    weight_energy: float | None,
    *,
    quiet: bool,
) -> dict[str, Any]:
    from equisep.files import encode
    from equisep.peeled import threshold, thresholds_of

    assert majority is not None and minority is not None
    energies = energies_or_assumed(feature_energy, weight_energy, quiet=quiet)
    value = threshold(majority, minority, **energies)  # refuses a minority of one class
    found: dict[str, Any] = encode(thresholds_of(majority, minority, **energies), nonfinite="text")
    first = {
        "threshold": encode(value, nonfinite="text"),
        "log_threshold": found.pop("log_collapse"),
        "vanishing": found.pop("vanishing"),
    }
    found.pop("collapse")
    return first | found


def _rescue(
    problem: Problem, sizes: str | None, loss_weights: str | None, *, every: bool, saving: bool, quiet: bool
) -> dict[str, Any]:
    """What becomes of each class of `sizes`, otherwise of each group; with sizes also the loss weight to set."""
    from equisep.files import encode
    from equisep.peeled import State, rescue

    with progress_bars(quiet=quiet) as progress:
        found = rescue(problem, weights=saving, every=every, progress=progress)
    solution = found.solution
    asked = ("least_weight", "factor", "checked") if saving else ()
    groups: list[dict[str, Any]] = [
        {name: getattr(one, name) for name in ("group", "classes", "weight", "state", "margin", *asked)}
        for one in found.groups
    ]
    whole = {
        "feature_energy": problem.feature_energy,
        "weight_energy": problem.weight_energy,
        "multiplier": solution.certificate.multiplier,
        "value": solution.value,
        "relative_gap": solution.certificate.relative_gap,
    }
    counts = numbers(sizes, flag="--sizes")
    rows = groups if counts is None else _by_class(problem, groups, counts, loss_weights)
    name = "group" if counts is None else "class"
    lost = {
        "lost": [row[name] for row in rows if row["state"].lost],
        "collapsed": [row[name] for row in rows if row["state"] is State.COLLAPSED],
        "vanished": [row[name] for row in rows if row["state"] is State.VANISHED],
    }
    record: dict[str, Any] = encode(
        {**lost, **whole, "groups" if counts is None else "classes": rows}, nonfinite="text"
    )
    return record


def _by_class(
    problem: Problem, groups: list[dict[str, Any]], counts: list[float], loss_weights: str | None
) -> list[dict[str, Any]]:
    factors = numbers(loss_weights, flag="--loss-weights") or [1.0] * len(counts)
    rows = []
    for k, (group, count, factor) in enumerate(zip(problem.class_groups, counts, factors, strict=True)):
        found = {name: value for name, value in groups[group].items() if name not in ("group", "classes")}
        row = {"class": k, "size": count, "loss_weight": factor, **found}
        if "factor" in found:
            row["least_loss_weight"] = None if found["factor"] is None else factor * found["factor"]
        rows.append(row)
    return rows


def _decay_threshold(
    majority: int | None, minority: int | None, minority_size: int | None, decay: dict[str, Any]
) -> dict[str, Any]:
    from equisep.peeled import weight_decay_threshold

    needed({"--minority-size": minority_size})
    assert majority is not None and minority is not None and minority_size is not None
    found = weight_decay_threshold(majority, minority, minority_size, **decay)
    return {"threshold": found, "minority_size": minority_size, **decay}


def _decay_rescue(sizes: str | None, loss_weights: str | None, decay: dict[str, Any], mean: str) -> dict[str, Any]:
    from equisep.files import encode
    from equisep.peeled import weight_decay_rescue

    counts = numbers(sizes, flag="--sizes")
    if counts is None:
        raise InputError("Weight decay needs class sizes; found none. Pass `--sizes`, or majority and minority.")
    found = weight_decay_rescue(counts, loss_weights=numbers(loss_weights, flag="--loss-weights"), mean=mean, **decay)
    rows = [{"class": k, **encode(one, nonfinite="text")} for k, one in enumerate(found)]
    return {"collapsed": [row["class"] for row in rows if row["collapsed"]], "mean": mean, **decay, "classes": rows}
