"""The words of a drawn figure: axis labels, the ways that quantities are read, and the lines below it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile

from equisep.figures.cell import Cell, trainings
from equisep.figures.evidence import Evidence
from equisep.figures.quantities import WAYS, Query, axis_label, entry_of

_AXIS = {"epochs": "epoch", "array": "index"}
_UNSAID = {"epoch": "last epoch", "site": "last site", "class": "all classes", "from": "all sites", "of": "D"}


def axis_words(text: str) -> str:
    """A quantity as the label of an axis: `cdnv@site=4` is `CDNV at site 4`."""
    asked = Query.of(text)
    words = axis_label(asked.name)
    return f"{words} at {_way_word('site', asked.ways['site'])}" if "site" in asked.ways else words


def y_words(asked: Sequence[str]) -> str:
    """The label of an axis that several quantities share: what they have in common."""
    stems = list(dict.fromkeys(Query.of(text).name.removesuffix("_test") for text in asked))
    if len(asked) == 1 or not stems:
        return axis_words(asked[0]) if asked else ""
    return " · ".join(axis_label(stem) for stem in stems)


def x_words(kind: str, x: str, grain: str) -> str:
    """The label of the axis across."""
    if kind == "sites":
        return "block" if grain == "blocks" else "site"
    return axis_words(x) if x else _AXIS.get(kind, "")


def way_words(asked: Sequence[str], unsaid: Mapping[str, str]) -> list[str]:
    """What tells the quantities of one panel apart; empty strings where there is only one.

    `unsaid` is how the sites were read where a quantity does not say it.
    """
    if len(asked) < 2:
        return ["" for _ in asked]
    quantities = [Query.of(text) for text in asked]
    names = _name_words([found.name for found in quantities])
    keys = [key for key in WAYS if len({found.ways.get(key) for found in quantities}) > 1]
    words = []
    for found, name in zip(quantities, names, strict=True):
        default = {**_UNSAID, **{key: _way_word(key, value) for key, value in unsaid.items()}}
        ways = [_way_word(key, found.ways[key]) if key in found.ways else default.get(key, "") for key in keys]
        words.append(", ".join(part for part in (name, *ways) if part))
    return words


def common_label(labels: Sequence[str]) -> str:
    """What the labels of a group begin with alike: `MNIST` of `MNIST, 3 layers` and `MNIST, 4 layers`."""
    parts = [re.findall(r"[^\s,;:·=]+|[,;:·=]", label) for label in labels]
    alike = [words[0] for words in takewhile(lambda words: len(set(words)) == 1, zip(*parts, strict=False))]
    if alike and len(alike) < max(map(len, parts)):
        # what stands before a sign of equality, or after the last comma, belongs to the part that differs
        alike = alike[:-2] if alike[-1] == "=" else alike
        breaks = [index for index, word in enumerate(alike) if word in ",;:·"]
        alike = alike[: breaks[-1]] if breaks else alike
    return re.sub(r" ([,;:])", r"\1", " ".join(alike))


def own_labels(labels: Sequence[str]) -> list[str]:
    """The labels of one panel without what all begin with: `plain` and `augmented` of `d = 2, plain` and `d = 2, augmented`."""
    shared = common_label(labels) if len(labels) > 1 else ""
    rest = [label.removeprefix(shared) for label in labels]
    own = [label.lstrip(" ,;:·") for label in rest]
    cut = shared and all(label[:1] in {",", ";", ":", "·"} for label in rest)
    return own if cut and all(own) and len(set(own)) == len(own) else list(labels)


def footer_lines(evidence: Evidence, *, seeds_words: str) -> list[str]:
    """What a reader must know beside the figure: source, scale, stand-ins, seeds, device, and what bands and lines are."""
    entries = [entry for found in evidence.series.values() for entry in found.entries]
    counts = _seed_counts(evidence)
    parts = [evidence.figure.source, scale_words(evidence)]
    if counts:
        parts.append(f"{_span(counts)} {'seed' if max(counts) == 1 else 'seeds'}")
    if evidence.done < evidence.planned:
        parts.append(f"{evidence.done} of {evidence.planned} cells run")
    devices = sorted({str(entry.provenance["device"]) for entry in entries if entry.provenance.get("device")})
    rows = [" · ".join(part for part in (*parts, *devices) if part)]
    if evidence.stand_ins:
        cells = [entry.cell for entry in entries]
        named = [stand_in_words(paper, own, cells) for paper, own in sorted(evidence.stand_ins.items())]
        rows.append(f"stand-ins: {'; '.join(named)}")
    return [*rows, seeds_words] if seeds_words else rows


def _seed_counts(evidence: Evidence) -> list[int]:
    """How many seeds each series has that is drawn as a line; problems are solved without one."""
    grids = [panel for panel in evidence.figure.panels if panel.kind != "points"]
    lines = {series.name for panel in grids for series in evidence.figure.drawn_in(panel)}
    drawn = [found for name, found in evidence.series.items() if name in lines]
    return [len(found.chosen) for found in drawn if trainings(entry.cell for entry in found.chosen.values())]


def scale_words(evidence: Evidence) -> str:
    """The scale; nothing of a smoke run can be quoted."""
    return "smoke scale: nothing to quote" if evidence.scale == "smoke" else f"{evidence.scale} scale"


def stand_in_words(paper: str, own: str, cells: Iterable[Cell]) -> str:
    """`CIFAR-10: 500 per class (cifar10_7k)`."""
    mine = [cell for cell in trainings(cells) if cell.stands_for == paper]
    counts = [count for cell in mine for count in cell.sizes or (cell.per_class,)]
    known = [count for count in counts if count is not None]
    return f"{paper}: {_span(known)} per class ({own})" if known else f"{paper}: {own}"


def _span(counts: Sequence[int]) -> str:
    return f"{min(counts)}" if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"


def _name_words(names: Sequence[str]) -> list[str]:
    if len(set(names)) == 1:
        return ["" for _ in names]
    if len({name.removesuffix("_test") for name in names}) == 1:
        return ["test data" if name.endswith("_test") else "training data" for name in names]
    return [entry_of(name).words for name in names]


def _way_word(key: str, value: str) -> str:
    if key == "site" and value == "-1":
        return "last site"
    if key == "epoch":
        return f"epoch {value.replace('/', ' of ')}"
    forms = {"reading": "{} reading", "grain": "by {}", "reduction": "{}", "weighting": "weighed by {}"}
    forms |= {"from": "from site {}", "of": "of {}"}
    return forms.get(key, f"{key} {{}}").format(value)
