"""What the Layer-Peeled wing found, in the terminal (rich): solutions, diagrams, and the parts that its tables are made of."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from equisep.peeled.classes import group_margins, group_states
from equisep.peeled.diagrams import STATES, CosineCurve, PhaseDiagram
from equisep.peeled.long_tail import LongTail
from equisep.peeled.solution import Result, Solution
from equisep.peeled.two_layer.solution import TwoLayerSolution
from equisep.peeled.vectors import ClassVectors
from equisep.report.formatting import Glyphs, number
from equisep.report.tables import grid_of, plain_table
from equisep.report.terminal import View

STYLES = {Result.SOLVED: "bold green", Result.STATIONARY: "bold yellow", Result.STOPPED: "bold red"}
SAVED = 1e-6  # of the loss of neural collapse: less is rounding
_LAYERS = {"linear": "two linear layers", "relu": "two layers with ReLU between them"}
Row = list[str | Text]
MOST_ROWS = 40  # of a table; --json has them all
LOST = "Lost: on its own samples another class scores as high or higher, a margin that is not above 0."


def render_solution(solution: Solution) -> RenderableType:
    """A solution: how it is proven, and the geometry of each group; no geometry where it is not solved."""
    return View(lambda glyphs, width: Group(*_solution_blocks(solution, glyphs)))


def render_diagram(
    made: list[tuple[ClassVectors, ...]] | tuple[CosineCurve, ...] | PhaseDiagram | LongTail,
) -> RenderableType:
    """A diagram in numbers: thresholds of each curve or some rows, the classes of a long tail, or vectors."""
    if isinstance(made, list):
        return View(lambda glyphs, width: _vector_table([one for sets in made for one in sets], glyphs))
    if isinstance(made, tuple):
        return View(lambda glyphs, width: _curve_table(made, glyphs))
    if isinstance(made, PhaseDiagram):
        return View(lambda glyphs, width: Group(*_phase_blocks(made, glyphs)))
    return View(lambda glyphs, width: Group(*_tail_blocks(made, glyphs)))


def _vector_table(sets: Sequence[ClassVectors], glyphs: Glyphs) -> RenderableType:
    titles = ("K", "R", "R*", "small classes", "cosine of\nsmall classes", "norms of classifiers\nlarge, small")
    rows: list[Row] = []
    for one in sets:
        large, small = (math.sqrt(float(row @ row)) for row in (one.classifiers[0], one.classifiers[-1]))
        rows.append(
            [
                str(one.classes),
                f"{one.ratio:.4g}",
                glyphs.missing if one.threshold is None else f"{one.threshold:.4g}",
                state_word(one.state),
                shown(one.cosine, glyphs) if math.isnan(one.cosine) else f"{one.cosine:.3f}",
                f"{large:.3f}, {small:.3f}",
            ]
        )
    return table_of(titles, rows, glyphs, left=("small classes",))


def _solution_blocks(solution: Solution, glyphs: Glyphs) -> Iterable[RenderableType]:
    problem, proof = solution.problem, solution.certificate
    verdict = (solution.result.value, STYLES[solution.result])
    groups = "1 group" if problem.groups == 1 else f"{problem.groups} groups"
    heading = f"Layer-Peeled Model, {problem.classes} classes in {groups}: "
    yield Text.assemble((heading, "bold"), verdict)
    rows = [
        ("value", number(solution.value, 8)),
        (
            "duality gap",
            f"{proof.gap:.2g}, {proof.relative_gap:.2g} of the value"
            if solution.value > 0
            else "none: the losses are below the smallest float",
        ),
        ("multiplier", number(proof.multiplier, 6)),
        ("energies", f"features {problem.feature_energy:g}, classifiers {problem.weight_energy:g}"),
        ("solver", f"{solution.solver}, {solution.iterations} iterations"),
    ]
    if proof.distance_to_convex is not None:
        rows.insert(2, ("above the convex optimum", f"{proof.distance_to_convex:.2g}"))
    if proof.stationarity is not None:
        rows.insert(2, ("stationary to", f"{proof.stationarity:.2g}"))
    yield grid_of(rows)
    if solution.result is not Result.STOPPED:
        yield _group_table(solution, glyphs)
        yield Text(
            "Rows are classifiers, means the features of a class; cosines are between two classes of the group.",
            style="dim",
        )


def _group_table(solution: Solution, glyphs: Glyphs) -> RenderableType:
    problem, geometry, margin = solution.problem, solution.geometry, group_margins(solution)
    rows: list[Row] = [
        [
            str(problem.group_sizes[group]),
            number(problem.weights[group], 3),
            state_word(state),
            number(margin[group], 3),
            number(geometry.classifier_norms[group], 3),
            number(geometry.feature_norms[group], 3),
            number(geometry.classifier_cosines[group][group], 3, missing=glyphs.missing),
            number(geometry.feature_cosines[group][group], 3, missing=glyphs.missing),
        ]
        for group, state in enumerate(group_states(solution))
    ]
    titles = (
        "classes",
        "weight",
        "state",
        "margin",
        "row\nnorm",
        "mean\nnorm",
        "row\ncosine",
        "mean\ncosine",
    )
    return table_of(titles, rows, glyphs, left=("state",))


def _curve_table(curves: Sequence[CosineCurve], glyphs: Glyphs) -> RenderableType:
    rows: list[Row] = [
        [
            number(limits.weight_energy),
            number(limits.feature_energy),
            str(limits.majority),
            str(limits.minority),
            shown(limits.collapse, glyphs),
            shown(limits.vanishing, glyphs),
            str(len(curve.ratios)),
            str(curve.unsolved),
        ]
        for curve in curves
        for limits in [curve.thresholds]
    ]
    titles = ("E_W", "E_H", "majority", "minority", "collapsed\nfrom R", "vanished\nfrom R", "points", "not\nsolved")
    return table_of(titles, rows, glyphs)


def _phase_blocks(diagram: PhaseDiagram, glyphs: Glyphs) -> Iterable[RenderableType]:
    counts = {state: int((diagram.states == k).sum()) for k, state in enumerate(STATES)}
    yield Text(
        f"{diagram.states.size} points: " + ", ".join(f"{n} {state}" for state, n in counts.items()), style="bold"
    )
    step = max(1, len(diagram.rows) // 10)
    rows: list[Row] = [
        [
            number(diagram.feature_energies[k]),
            f"{diagram.majorities[k]} + {diagram.minorities[k]}",
            shown(diagram.collapse[k], glyphs),
            shown(diagram.vanishing[k], glyphs),
        ]
        for k in range(0, len(diagram.rows), step)
    ]
    yield table_of(("E_H", "classes", "collapsed\nfrom R", "vanished\nfrom R"), rows, glyphs)
    yield from _skipped(step, "row")


def _tail_blocks(tail: LongTail, glyphs: Glyphs) -> Iterable[RenderableType]:
    found = tail.prediction
    words = f"{len(tail.sizes)} classes, {max(tail.sizes)} to {min(tail.sizes)} samples"
    yield Text(f"{words}: {len(found.lost)} lost", style="bold")
    yield Text(LOST, style="dim")
    yield Text(f"solved, relative gap {tail.solution.certificate.relative_gap:.2g}", style="dim")
    step = max(1, len(tail.sizes) // 20)
    rows: list[Row] = [
        [
            str(k),
            str(tail.sizes[k]),
            state_word(found.states[k]),
            number(found.classifier_norms[k]),
            number(found.feature_norms[k]),
            shown(found.nearest_cosines[k], glyphs),
            number(found.margins[k], 3),
            number(found.losses[k], 3),
        ]
        for k in range(0, len(tail.sizes), step)
    ]
    titles = ("class", "samples", "state", "classifier\nnorm", "feature\nnorm", "nearest\ncosine", "margin", "loss")
    yield table_of(titles, rows, glyphs, left=("state",))
    yield from _skipped(step, "class")


def _skipped(step: int, what: str) -> Iterable[RenderableType]:
    if step > 1:
        yield Text(f"One {what} in {step} is shown; --json prints them all.", style="dim")


def two_layer_lines(solution: TwoLayerSolution, collapse: TwoLayerSolution | None) -> Iterator[str]:
    """The verdict, the loss between its bound and itself, and neural collapse beside it, where classes are equal."""
    classes, proof = solution.problem.classes, solution.certificate
    state = "" if solution.result is None else f": {solution.result.value}"
    yield f"2-Layer-Peeled Model, {classes} classes, {_LAYERS[solution.activation]}{state}"
    yield (
        f"Loss {number(solution.value, 6)}; no point is below {number(proof.lower_bound, 6)}. The logits have rank "
        f"{solution.rank}; those of neural collapse have {classes - 1}."
    )
    if collapse is None:
        return
    saved = 1 - solution.value / collapse.value
    if saved > SAVED:
        yield (
            f"Neural collapse has the loss {number(collapse.value, 6)}. This point has {100 * saved:.3g} % less, so neural "
            "collapse is not the optimum."
        )
    else:
        yield f"Neural collapse has the loss {number(collapse.value, 6)}: nothing better was found."


def table_of(titles: Sequence[str], rows: Sequence[Row], glyphs: Glyphs, *, left: Iterable[str] = ()) -> RenderableType:
    """A table, with the number of rows that did not find room."""
    table = plain_table(titles, rows[:MOST_ROWS], glyphs, left=left)
    if len(rows) <= MOST_ROWS:
        return table
    return Group(table, Text(f"{len(rows) - MOST_ROWS} more; --json prints them all.", style="dim"))


def state_word(state: str) -> Text:
    """The state in its color: what is told apart needs none."""
    return Text(state, style="bold red" if state.startswith(("lost", "not solved")) else "")


def shown(value: Any, glyphs: Glyphs | None = None) -> str:
    """A number, or the words that stand for one in JSON."""
    if value is None or value != value:  # noqa: PLR0124 (NaN)
        return glyphs.missing if glyphs else "none"
    return str(value) if isinstance(value, str | int) else number(float(value), 6)
