"""What `equisep peeled threshold` found: as a record, as JSON, and in the terminal."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from equisep.files import encode
from equisep.peeled.classes import State
from equisep.peeled.rescue import GroupRescue, Rescue
from equisep.peeled.thresholds import Thresholds
from equisep.peeled.weight_decay import WeightDecayRescue
from equisep.report.formatting import Glyphs, number
from equisep.report.peeled.terminal import LOST, Row, shown, state_word, table_of
from equisep.report.tables import grid_of
from equisep.report.terminal import View

LARGE = 500  # samples of a large class, as in the figures of Fang et al.
LEAST_WEIGHTS = {"least_weight": "least\nweight", "factor": "factor", "least_loss_weight": "least\nloss weight"}


@dataclass(frozen=True, slots=True)
class ClassState:
    """What becomes of one class of `size` samples, or of one group where sizes are not given."""

    number: int
    found: GroupRescue
    size: float | None = None
    loss_weight: float = 1.0

    @property
    def least_loss_weight(self) -> float | None:
        """The loss weight from which on a class is told apart."""
        factor = self.found.factor
        return None if factor is None or self.size is None else self.loss_weight * factor

    def least(self, name: str) -> float | None:
        """One of `LEAST_WEIGHTS`."""
        value: float | None = getattr(self if name == "least_loss_weight" else self.found, name)
        return value


@dataclass(frozen=True, slots=True)
class ClassStates:
    """Who is lost among given classes, or groups of them; with the least weights that rescue them where these were asked for."""

    rescue: Rescue
    rows: tuple[ClassState, ...]
    weighed: bool

    @property
    def by_class(self) -> bool:
        """Whether rows are classes."""
        return bool(self.rows) and self.rows[0].size is not None

    def numbers(self, *states: State) -> list[int]:
        """The classes or groups in one of these states."""
        return [row.number for row in self.rows if row.found.state in states]

    @property
    def lost(self) -> list[int]:
        """The classes or groups that are lost."""
        return self.numbers(*(state for state in State if state.lost))

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it."""
        solution = self.rescue.solution
        least = ("least_weight", "factor", "checked") if self.weighed else ()
        rows = []
        for row in self.rows:
            more = {name: getattr(row.found, name) for name in ("weight", "state", "margin", *least)}
            if self.by_class:
                first: dict[str, Any] = {"class": row.number, "size": row.size, "loss_weight": row.loss_weight}
                last = {"least_loss_weight": row.least_loss_weight} if self.weighed else {}
                rows.append(first | more | last)
            else:
                rows.append({"group": row.number, "classes": row.found.classes, **more})
        return {
            "lost": self.lost,
            "collapsed": self.numbers(State.COLLAPSED),
            "vanished": self.numbers(State.VANISHED),
            "feature_energy": solution.problem.feature_energy,
            "weight_energy": solution.problem.weight_energy,
            "multiplier": solution.certificate.multiplier,
            "value": solution.value,
            "relative_gap": solution.certificate.relative_gap,
            "classes" if self.by_class else "groups": rows,
        }


@dataclass(frozen=True, slots=True)
class UnderDecay:
    """The same under weight decay: of two groups a threshold (None: collapsed at every R), of given sizes each class."""

    classifier_decay: float
    feature_decay: float
    threshold: float | None = None
    minority_size: int | None = None
    classes: tuple[WeightDecayRescue, ...] | None = None
    mean: str = "samples"

    @property
    def collapsed(self) -> list[int]:
        """The classes that have collapsed."""
        return [k for k, one in enumerate(self.classes or ()) if one.collapsed]

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it."""
        decay = {"classifier_decay": self.classifier_decay, "feature_decay": self.feature_decay}
        if self.classes is None:
            return {"threshold": self.threshold, "minority_size": self.minority_size, **decay}
        rows = [{"class": k, **encode(one, nonfinite="text")} for k, one in enumerate(self.classes)]
        return {"collapsed": self.collapsed, "mean": self.mean, **decay, "classes": rows}


@dataclass(frozen=True, slots=True)
class ThresholdAnswer:
    """All that one call found: of two groups their thresholds, of given classes who is lost; and under weight decay."""

    limits: Thresholds | None = None
    states: ClassStates | None = None
    decay: UnderDecay | None = None

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it."""
        record: dict[str, Any] = {}
        if self.limits is not None:
            rest = encode(self.limits, nonfinite="text")
            first = {"threshold": "collapse", "log_threshold": "log_collapse", "vanishing": "vanishing"}
            record = {name: rest.pop(old) for name, old in first.items()} | rest
        elif self.states is not None:
            record = encode(self.states.to_dict(), nonfinite="text")
        return record if self.decay is None else {**record, "weight_decay": self.decay.to_dict()}


def render_threshold(answer: ThresholdAnswer) -> RenderableType:
    """What was found, for the terminal."""
    return View(lambda glyphs, width: Group(*_blocks(answer, glyphs)))


def _blocks(answer: ThresholdAnswer, glyphs: Glyphs) -> Iterable[RenderableType]:
    if answer.limits is not None:
        yield from _limit_blocks(answer.limits)
    if answer.states is not None:
        yield from _state_blocks(answer.states, glyphs)
    if answer.decay is not None:
        yield from _decay_blocks(answer.decay, glyphs)


def _limit_blocks(limits: Thresholds) -> Iterable[RenderableType]:
    ratio, gone = shown(limits.collapse), limits.vanishing
    if limits.collapse == math.inf and limits.log_collapse is not None:
        ratio = f"10^{limits.log_collapse / math.log(10):.6g}, which no float holds"
    small = f"the {limits.minority} small classes have one and the same classifier"
    yield Text.assemble(("Minority collapse from R = ", "bold"), (ratio, "bold yellow"), f": {small}")
    least = math.floor(LARGE / limits.collapse) if limits.collapse else 0
    example = [("for example", f"{LARGE} samples against {least} or fewer")] if least >= 1 else []  # what R means
    yield grid_of(
        [
            ("R", "samples of a large class over those of a small one"),
            *example,
            ("classes", f"{limits.majority} majority, {limits.minority} minority"),
            ("energies", f"features {limits.feature_energy:g}, classifiers {limits.weight_energy:g}"),
            ("vanished from", "never: the minority vectors stay above zero" if gone is None else f"R = {shown(gone)}"),
        ]
    )


def _state_blocks(states: ClassStates, glyphs: Glyphs) -> Iterable[RenderableType]:
    rows, name, plural = states.rows, *(("class", "classes") if states.by_class else ("group", "groups"))
    yield Text(f"{len(states.lost)} of {len(rows)} {plural} lost", style="bold")
    yield Text(LOST, style="dim")
    columns = [key for key in LEAST_WEIGHTS if any(row.least(key) is not None for row in rows)]
    if all(row.loss_weight == 1 for row in rows):
        columns = [key for key in columns if key != "least_loss_weight"]  # which is the factor then
    cells: list[Row] = [
        [
            str(row.number),
            str(row.size if states.by_class else row.found.classes),
            number(row.found.weight),
            state_word(row.found.state),
            number(row.found.margin, 3),
            *(number(row.least(key), missing=glyphs.missing) for key in columns),
        ]
        for row in rows
    ]
    titles = [name, "size" if states.by_class else "classes", "weight", "state", "margin"]
    yield table_of([*titles, *(LEAST_WEIGHTS[key] for key in columns)], cells, glyphs, left=("state",))
    if states.numbers(State.COLLAPSED):
        today = number(states.rescue.solution.certificate.multiplier, 6)
        yield Text(
            f"Classes of equal weight coincide where that weight is {today} (the multiplier) or less.", style="dim"
        )
    if columns and states.lost:
        yield Text(
            "A class is told apart from its least weight on, if all other weights stay. Multiply its loss weight by the factor, "
            "or repeat its samples as often.",
            style="dim",
        )
        if all(row.found.checked for row in rows if row.found.checked is not None):
            yield Text("Each was checked by solving again slightly below and above it.", style="dim")
        else:
            yield Text("A least weight failed its check by solving again: do not rely on it.", style="bold red")


def _decay_blocks(decay: UnderDecay, glyphs: Glyphs) -> Iterable[RenderableType]:
    words = f"weight decay {decay.classifier_decay:g} on classifiers, {decay.feature_decay:g} on features"
    if decay.classes is None:
        since = "at every R" if decay.threshold is None else f"from R = {shown(decay.threshold)} on"
        yield Text.assemble((f"Under {words}: minority collapse ", "bold"), (since, "bold yellow"))
        return
    yield Text(f"Under {words}: {len(decay.collapsed)} of {len(decay.classes)} classes collapsed", style="bold")
    yield Text(
        "Only classes of one size are judged here, by whether their classifiers coincide; the margins under energies tell who is "
        "lost among unequal ones.",
        style="dim",
    )
    cells: list[Row] = [
        [
            str(k),
            str(one.size),
            state_word("lost: collapsed" if one.collapsed else "not collapsed"),
            shown(one.least_loss_weight, glyphs),
            shown(one.oversampling, glyphs),
        ]
        for k, one in enumerate(decay.classes)
    ]
    yield table_of(("class", "size", "state", "least\nloss weight", "oversampling"), cells, glyphs, left=("state",))
