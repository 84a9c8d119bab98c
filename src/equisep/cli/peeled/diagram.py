"""`equisep peeled diagram`: cosines over the imbalance ratio, phase diagrams, the long tail, class vectors."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from equisep.cli.console import fail, out, print_json, reported, say, say_saved, usable_file
from equisep.cli.options import PICTURES, Json, Quiet
from equisep.cli.peeled.inputs import (
    FeatureEnergy,
    LossWeights,
    Majority,
    Minority,
    Sizes,
    numbers,
    pairs,
    refused,
    steps,
)
from equisep.errors import InputError, did_you_mean

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from equisep.peeled.diagrams import CosineCurve, PhaseDiagram
    from equisep.peeled.long_tail import LongTail
    from equisep.peeled.vectors import ClassVectors

# which flags say something to which kind, and what they are where they are not given
DEFAULTS: dict[str, dict[str, Any]] = {
    "cosine": {"classes": 10, "majorities": "3,5,7", "energies": "1:5,1:10", "ratios": "1:10000:41"},
    "phase-energy": {
        "majority": 5, "minority": 5, "feature_energies": "0.1:30:81", "weight_energy": 1.0, "ratios": "1:10000:121",
    },
    "phase-share": {"classes": 100, "feature_energy": 5.0, "weight_energy": 1.0, "ratios": "1:10000:121"},
    "long-tail": {
        "sizes": None, "classes": 100, "largest": 500, "ratio": 100.0,
        "feature_energy": 5.0, "weight_energy": 1.0, "loss_weights": None,
    },
    "vectors": {"classes": None, "ratios": None, "feature_energy": 5.0, "weight_energy": 1.0},
}  # fmt: skip


@reported
def diagram(
    kind: Annotated[str, typer.Argument(help="cosine, phase-energy, phase-share, long-tail or vectors.")],
    classes: Annotated[
        int | None, typer.Option("--classes", help="K (10; phase-share and long-tail 100; vectors 2, 3 and 4).")
    ] = None,
    majority: Majority = None,
    minority: Minority = None,
    majorities: Annotated[str | None, typer.Option("--majorities", help="k_A of each curve (3,5,7).")] = None,
    energies: Annotated[
        str | None, typer.Option("--energies", help="E_W:E_H of each panel of `cosine` (1:5,1:10).")
    ] = None,
    feature_energy: FeatureEnergy = None,
    feature_energies: Annotated[
        str | None,
        typer.Option("--feature-energies", help="Rows of phase-energy, FROM:TO:STEPS or a list (0.1:30:81)."),
    ] = None,
    weight_energy: Annotated[float | None, typer.Option("--weight-energy", help="E_W (1).")] = None,
    ratios: Annotated[
        str | None,
        typer.Option(
            "--ratios", help="Imbalance ratios, FROM:TO:STEPS or a list (1:10000:41; vectors: 1, below and beyond R*)."
        ),
    ] = None,
    largest: Annotated[int | None, typer.Option("--largest", help="Samples of the largest class (500).")] = None,
    ratio: Annotated[
        float | None, typer.Option("--ratio", help="Largest over smallest class of long-tail (100).")
    ] = None,
    sizes: Sizes = None,
    loss_weights: LossWeights = None,
    plot: Annotated[Path | None, typer.Option("--plot", help="Draw it here (PNG, SVG or PDF).")] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compute a diagram of minority collapse, every point solved and certified; draw it with --plot."""
    usable_file(plot, flag="--plot", endings=PICTURES)
    if kind not in DEFAULTS:
        raise InputError(f"No diagram `{kind}`.{did_you_mean(kind, DEFAULTS)} Known: {', '.join(DEFAULTS)}.")
    given = {
        "classes": classes, "majority": majority, "minority": minority, "majorities": majorities, "energies": energies,
        "feature_energy": feature_energy, "feature_energies": feature_energies, "weight_energy": weight_energy,
        "ratios": ratios, "largest": largest, "ratio": ratio, "sizes": sizes, "loss_weights": loss_weights,
    }  # fmt: skip
    known = DEFAULTS[kind]
    if sizes is not None and kind == "long-tail":
        made_of = {"--classes": classes, "--largest": largest, "--ratio": ratio}
        refused(made_of, reason="`--sizes` states the classes")
    strange = {f"--{name.replace('_', '-')}": value for name, value in given.items() if name not in known}
    refused(strange, reason=f"`{kind}` takes {', '.join('--' + name.replace('_', '-') for name in known)}")
    settings = {name: value if given[name] is None else given[name] for name, value in known.items()}
    made, unsolved = _made(kind, settings)
    if plot is not None:
        from equisep.report.plots import save_figure

        say_saved(save_figure(_drawn(kind, made), plot), "plot", quiet=quiet)
    if json:
        print_json(_record(kind, made))
    else:
        from equisep.report.peeled.terminal import render_diagram

        out.print(render_diagram(made))
        if plot is None:
            say("Nothing was drawn; add `--plot FILE.png` (or .svg, .pdf) for the picture.", quiet=quiet)
    if unsolved:
        fail(
            f"{unsolved} points of the diagram were not solved: the solver stopped early there. They are marked "
            "`not solved` and have no cosine. Use less extreme energies and ratios.",
            code=3,
        )


def _made(kind: str, settings: dict[str, Any]) -> tuple[Any, int]:
    """The diagram, and how many of its points were not solved."""
    from equisep.peeled.diagrams import cosine_curves, phase_by_energy, phase_by_share
    from equisep.peeled.long_tail import long_tail, tail_of_sizes

    if kind == "long-tail":  # where it is not solved, it is an error
        weights = numbers(settings.pop("loss_weights"), flag="--loss-weights")
        sizes = numbers(settings.pop("sizes"), flag="--sizes")
        if sizes is None:
            return long_tail(**settings, loss_weights=weights), 0
        energies = {name: settings[name] for name in ("feature_energy", "weight_energy")}
        return tail_of_sizes(sizes, **energies, loss_weights=weights), 0
    if settings["ratios"] is not None:
        settings["ratios"] = steps(settings["ratios"], flag="--ratios")
    if kind == "vectors":
        from equisep.peeled.vectors import MOST_CLASSES, class_vectors

        asked = settings.pop("classes")
        return [class_vectors(k, **settings) for k in (range(2, MOST_CLASSES + 1) if asked is None else [asked])], 0
    if kind == "cosine":
        curves = cosine_curves(
            settings["classes"],
            majorities=numbers(settings["majorities"], flag="--majorities") or (),
            energies=pairs(settings["energies"], flag="--energies", example="1:5,1:10 (E_W:E_H)") or (),
            ratios=settings["ratios"],
        )
        return curves, sum(curve.unsolved for curve in curves)
    if kind == "phase-energy":
        settings["feature_energies"] = steps(settings["feature_energies"], flag="--feature-energies")
    found = phase_by_energy(**settings) if kind == "phase-energy" else phase_by_share(**settings)
    return found, found.unsolved


def _drawn(kind: str, made: Any) -> Figure:
    from equisep.report.peeled.plots import plot_cosines, plot_long_tail, plot_phases

    if kind == "vectors":
        from equisep.report.peeled.vector_plots import plot_vectors

        return plot_vectors(made)
    if kind == "cosine":
        return plot_cosines(made)
    return plot_long_tail(made) if kind == "long-tail" else plot_phases(made).figure  # type: ignore[return-value]


def _record(
    kind: str, made: list[tuple[ClassVectors, ...]] | tuple[CosineCurve, ...] | PhaseDiagram | LongTail
) -> dict[str, Any]:
    if isinstance(made, list):
        return {"diagram": kind, "vectors": [one.to_dict() for sets in made for one in sets]}
    if isinstance(made, tuple):
        return {"diagram": kind, "curves": [curve.to_dict() for curve in made]}
    return {"diagram": kind, **made.to_dict()}
