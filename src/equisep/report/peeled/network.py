"""A network beside its Layer-Peeled prediction, in the terminal (rich)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from equisep.compare.geometry import NetworkComparison
from equisep.peeled.classes import Cosines
from equisep.report.formatting import Glyphs, number, one_line, percent
from equisep.report.peeled.terminal import Row, shown, state_word, table_of
from equisep.report.tables import grid_of
from equisep.report.terminal import View

MOST_NAMED = 10
ABSENT = "unknown, as a class has no samples"


def render_network(found: NetworkComparison) -> RenderableType:
    """A network beside its prediction: who is lost, cosines, then margins, accuracy and norms class by class."""
    return View(lambda glyphs, width: Group(*_network_blocks(found, glyphs)))


def _network_blocks(found: NetworkComparison, glyphs: Glyphs) -> Iterable[RenderableType]:
    yield Text(
        f"Classifier {one_line(found.classifier)}, {'centered' if found.centered else 'uncentered'}"
        + ("" if found.reading is None else f", reading {found.reading}"),
        style="bold",
    )
    yield Text(_lost_words(found), style="bold red" if found.lost else "bold")
    share = found.mean_energy / found.feature_energy
    ratio = ABSENT if found.ratio is None else number(found.ratio)
    limits = None if found.predicted is None else found.predicted.thresholds
    rows = [
        (
            "classes",
            f"{len(found.sizes)}, {len(found.minority)} of them minority ({found.minority_rule}), largest over smallest {ratio}",
        ),
        ("energies read off", f"classifiers {number(found.weight_energy)}, features {number(found.feature_energy)}"),
        ("within-class spread", f"{percent(1 - share)} % of the feature energy (0 at the optimum)"),
    ]
    if limits is not None and limits.collapse is not None:
        rows.append(("predicted collapse", f"from R = {shown(limits.collapse)}"))
    yield grid_of(rows)
    yield _cosine_table(found, glyphs)
    yield _class_table(found, glyphs)
    yield _norm_table(found, glyphs)
    for note in found.notes:
        yield Text.assemble(("Note  ", "yellow"), one_line(str(note)))


def _lost_words(found: NetworkComparison) -> str:
    """The network's own state first: the optimum may tell apart what it does not."""
    classes = len(found.sizes)
    words = f"Measured: {_some(found.lost)} of {classes} classes lost"
    if found.predicted is not None:
        words += f"; predicted: {_some([k for k, state in enumerate(found.predicted.states) if state.lost])}"
    return f"{words}. Lost: on its own samples another class scores as high or higher."


def _some(classes: Sequence[int]) -> str:
    """How many, and the first of them by number."""
    if not classes:
        return "0"
    shown = ", ".join(map(str, classes[:MOST_NAMED])) + (", …" if len(classes) > MOST_NAMED else "")
    return f"{len(classes)} ({shown})"


def _cosine_table(found: NetworkComparison, glyphs: Glyphs) -> RenderableType:
    predicted = None if found.predicted is None else found.predicted.geometry
    nothing = Cosines(None, None, None)
    rows: list[Row] = []
    for name in ("minority", "majority", "between"):
        pairs = (
            (found.measured.classifiers, predicted.classifiers if predicted else nothing),
            (found.measured.features, predicted.features if predicted else nothing),
        )
        values = [getattr(cosines, name) for pair in pairs for cosines in pair]
        rows.append([name, *(number(value, missing=glyphs.missing) for value in values)])
    titles = ("mean cosine", "classifiers\nmeasured", "\npredicted", "class means\nmeasured", "predicted")
    return table_of(titles, rows, glyphs, left=("mean cosine",))


def _class_table(found: NetworkComparison, glyphs: Glyphs) -> RenderableType:
    """Class by class what the network does, in its own numbers, beside what is predicted."""
    predicted, missing = found.predicted, glyphs.missing
    accuracies = [
        (title, shares)
        for title, shares in (("acc. %\ntrain", found.accuracy), ("acc. %\ntest", found.test_accuracy))
        if shares is not None
    ]
    rows: list[Row] = []
    for k, size in enumerate(found.sizes):
        state = found.states[k]
        row: Row = [str(k), str(size), *(percent(shares[k], missing=missing) for _, shares in accuracies)]
        row += [number(found.margins[k], 3, missing=missing), missing if state is None else state_word(state)]
        if predicted is not None:
            row += [number(predicted.margins[k], 3), state_word(predicted.states[k])]
        rows.append(row)
    titles = ["class", "size", *(title for title, _ in accuracies), "margin", "measured"]
    titles += ["margin", "predicted"] if predicted is not None else []
    return table_of(titles, rows, glyphs, left=("measured", "predicted"))


def _norm_table(found: NetworkComparison, glyphs: Glyphs) -> RenderableType:
    measured, predicted = found.measured, None if found.predicted is None else found.predicted.geometry
    rows: list[Row] = []
    for k in range(len(found.sizes)):
        row: Row = [str(k)]
        for name in ("classifier_norms", "feature_norms"):
            row += [
                number(getattr(geometry, name)[k], missing=glyphs.missing)
                for geometry in (measured, predicted)
                if geometry is not None
            ]
        rows.append(row)
    beside = ["predicted"] if predicted is not None else []
    titles = ["class", "classifier norm\nmeasured", *beside, "class mean norm\nmeasured", *beside]
    return table_of(titles, rows, glyphs)
