"""How the features were read that a figure shows, in words: for the lines below its picture, and for its notes.

BatchNorm goes by the batch or by running statistics; networks without it have the same features in every reading. Test data are
taken whole: in `drawn` they come in no order of their own, and are read in batches that mix the classes, as in `mixed`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from equisep.figures.cell import Cell, Training
from equisep.figures.course import PREFIX
from equisep.figures.evidence import Evidence
from equisep.figures.figure import Panel
from equisep.figures.papers import SENTENCES
from equisep.figures.quantities import Query, entry_of
from equisep.figures.query import BY_CLASS

_READ = {
    "drawn": "in batches in the order of drawing (drawn)",
    "mixed": "in batches that mix the classes (mixed)",
    "eval": "by running statistics (eval)",
}
_OF_TEST = {"drawn": "mixed"}  # how test data are read where training data are read otherwise
# numbers of D that outcomes hold under names of their own, beside curves by class and their ratios
_OF_D = (BY_CLASS, "ratios", "change", "change_matched", *(f"{PREFIX}{name}" for name in ("r", "rho", "last", "nc1")))


def reading_words(evidence: Evidence) -> list[str]:
    """How the features were read that the figure shows, where it shows any of networks with BatchNorm."""
    read = dict.fromkeys(pair for panel in evidence.figure.panels for pair in _shown(evidence, panel))
    train, test = ([name for name, of_test in read if of_test == wanted] for wanted in (False, True))
    if not test or set(test) == set(train):
        return [f"read {_joined(train)}"] if train else []
    parts = (("training data", train), ("test data", test))
    return [f"{what} read {_joined(names)}" for what, names in parts if names]


def reading_notes(evidence: Evidence) -> list[str]:
    """A sentence on how the features were read that tables and pictures show; none where there are none."""
    chosen = [entry for found in evidence.series.values() for entry in found.chosen.values()]
    read = [entry for entry in chosen if any(curves.fuzziness or curves.ncc for curves in entry.outcome.readings)]
    if not read:
        return []
    normed = [entry for entry in read if has_norm(entry.cell)]
    if not normed:
        return ["The networks have no BatchNorm: their features are the same in every reading."]
    names = dict.fromkeys(entry.outcome.readings[0].reading for entry in normed)
    others = "" if len(normed) == len(read) else "; networks without BatchNorm have the same features in every reading"
    tested = any(isinstance(entry.cell, Training) and entry.cell.test_sites for entry in normed)
    test = dict.fromkeys(_OF_TEST.get(name, name) for name in names)
    apart = f", of test data {_joined(test)}" if tested and set(test) != set(names) else ""
    return [f"Features, of which D and r are made, were read {_joined(names)}{apart}{others}."]


def _shown(evidence: Evidence, panel: Panel) -> Iterator[tuple[str, bool]]:
    """The readings of a panel, each with whether it is of test data."""
    texts = [text.strip() for part in (panel.y, panel.x, panel.behind) for text in part.split(";") if text.strip()]
    asked = [] if panel.kind == "points" else [query for query in map(Query.of, texts) if _of_features(query)]
    for series in evidence.figure.drawn_in(panel) if asked else ():
        found = evidence.series.get(series.name)
        for entry in found.chosen.values() if found else ():
            if entry.outcome.readings and has_norm(entry.cell):
                for query in asked:
                    name = query.ways.get("reading", entry.outcome.readings[0].reading)
                    of_test = query.ways.get("of", query.name).endswith("_test")
                    yield (_OF_TEST.get(name, name) if of_test else name), of_test


def _of_features(query: Query) -> bool:
    return query.name in _OF_D or bool(entry_of(query.name).made_of)


def has_norm(cell: Cell) -> bool:
    """Whether a network has BatchNorm: all image networks of the papers do unless told, transformers of sentences do not."""
    return isinstance(cell, Training) and cell.norm and cell.data not in SENTENCES


def _joined(names: Iterable[str]) -> str:
    return " and ".join(_READ[name] for name in names)
