"""A network beside its Layer-Peeled prediction, in the terminal (rich)."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Group, RenderableType
from rich.text import Text

from equisep.compare.geometry import Cosines, NetworkComparison
from equisep.report.formatting import Glyphs, number, one_line, percent
from equisep.report.peeled.tables import Row, grid_of, shown, state_word, table_of
from equisep.report.terminal import View

ABSENT = "unknown, as a class has no samples"


def render_network(found: NetworkComparison) -> RenderableType:
    """A network beside its prediction: cosines, then norms and accuracy class by class."""
    return View(lambda glyphs, width: Group(*_network_blocks(found, glyphs)))


def _network_blocks(found: NetworkComparison, glyphs: Glyphs) -> Iterable[RenderableType]:
    yield Text(
        f"Classifier {one_line(found.classifier)}, {'centered' if found.centered else 'uncentered'}", style="bold"
    )
    share = found.mean_energy / found.feature_energy
    ratio = ABSENT if found.ratio is None else number(found.ratio)
    limits = None if found.predicted is None else found.predicted.thresholds
    rows = [
        ("classes", f"{len(found.sizes)}, {len(found.minority)} of them minority, largest over smallest {ratio}"),
        ("energies read off", f"classifiers {number(found.weight_energy)}, features {number(found.feature_energy)}"),
        ("within-class spread", f"{percent(1 - share)} % of the feature energy (0 at the optimum)"),
    ]
    if limits is not None and limits.collapse is not None:
        rows.append(("predicted collapse", f"from R = {shown(limits.collapse)}"))
    yield grid_of(rows)
    yield _cosine_table(found, glyphs)
    yield _class_table(found, glyphs)
    for note in found.notes:
        yield Text.assemble(("Note  ", "yellow"), one_line(str(note)))


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
    predicted, missing = found.predicted, glyphs.missing
    rows: list[Row] = []
    for place, size in enumerate(found.sizes):
        measured = found.measured
        row: Row = [
            str(place),
            str(size),
            number(measured.classifier_norms[place]),
            number(measured.feature_norms[place], missing=missing),
        ]
        if predicted is not None:
            row[3:3] = [number(predicted.geometry.classifier_norms[place])]
            row += [number(predicted.geometry.feature_norms[place]), state_word(predicted.states[place])]
        row += [
            percent(shares[place], missing=missing)
            for shares in (found.accuracy, found.test_accuracy)
            if shares is not None
        ]
        rows.append(row)
    norms = ("row\nnorm", "pre-\ndicted", "mean\nnorm", "pre-\ndicted", "predicted\nstate")  # within 80 columns
    titles = ["class", "size", *(norms if predicted is not None else (norms[0], norms[2]))]
    titles += [
        title
        for title, shares in (("acc. %\ntrain", found.accuracy), ("acc. %\ntest", found.test_accuracy))
        if shares is not None
    ]
    return table_of(titles, rows, glyphs, left=("predicted\nstate",))
