"""The words of a drawn figure: axis labels, the ways that quantities are read, and the lines below it."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import takewhile

from matplotlib.mathtext import MathTextParser

from equisep.figures.cell import Cell, Training, trainings
from equisep.figures.evidence import Evidence, SeriesEvidence
from equisep.figures.judge import WORDS, Verdict
from equisep.figures.papers import DATA_NAMES, SENTENCES, STAND_INS
from equisep.figures.quantities import WAYS, Query, axis_label, entry_of
from equisep.report.figures.readings import reading_words
from equisep.report.formatting import one_line

_WHOLE = ("accuracy", "accuracy_test", "loss")  # of the network, not of one of its layers
_DEVICES = {"cpu": "a CPU"}
_AXIS = {"epochs": "epoch", "array": "index"}
_UNSAID = {"epoch": "last epoch", "site": "last layer", "class": "all classes", "from": "all layers", "of": "D"}
# `E_W`, `n_A`, `R_ε` and `R*`: one letter with an index or a star
_INDEXED = re.compile(r"(?<![A-Za-z0-9_])([A-Za-zλ])_([A-Za-z0-9ε]+)(?![A-Za-z0-9_])")
_STARRED = re.compile(r"(?<![A-Za-z0-9_])([A-Za-z])\*(?=[\s:,.;)]|$)")
_FORMULA = re.compile(r"\$[^$]*\$")
_BUT_ZEROS = ", arithmetic on lines with a 0 in some run"
_SHORTEST = 10  # letters of a row


def axis_words(text: str) -> str:
    """A quantity as the label of an axis: `cdnv@site=4` is `CDNV at layer 4`."""
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
        return "block (0 = input)" if grain == "blocks" else "layer (0 = input)"
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
        unsaid_here = {} if found.name in _WHOLE else default
        ways = [_way_word(key, found.ways[key]) if key in found.ways else unsaid_here.get(key, "") for key in keys]
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


def common_end(labels: Sequence[str]) -> str:
    """What stands after the last comma, where it is the same in all: `plain` of `d = 2, plain` and `d = 3, plain`."""
    ends = {label.rpartition(", ")[2] if ", " in label else "" for label in labels}
    return ends.pop() if len(ends) == 1 else ""


def own_labels(labels: Sequence[str]) -> list[str]:
    """The labels of one panel without what all begin with: `plain` and `augmented` of `d = 2, plain` and `d = 2, augmented`."""
    shared = common_label(labels) if len(labels) > 1 else ""
    rest = [label.removeprefix(shared) for label in labels]
    own = [label.lstrip(" ,;:·") for label in rest]
    cut = shared and all(label[:1] in {",", ";", ":", "·"} for label in rest)
    return own if cut and all(own) and len(set(own)) == len(own) else list(labels)


def footer_lines(evidence: Evidence, *, signs: str, left_out: Sequence[str]) -> list[str]:
    """What a reader must know beside the figure: data, seeds, device, what dots and bands are, what was not run."""
    entries = [entry for found in evidence.series.values() for entry in found.entries]
    devices = sorted({str(entry.provenance["device"]) for entry in entries if entry.provenance.get("device")})
    where = " and ".join(_DEVICES.get(device, device) for device in devices)
    parts = [
        *data_words(evidence),
        *network_words(entry.cell for entry in entries),
        *reading_words(evidence),
        *([f"run on {where}"] if where else []),
    ]
    if evidence.done < evidence.planned:
        parts.append(f"{evidence.done} of {evidence.planned} runs finished")
    rows = [" · ".join(parts), signs]
    if left_out:
        rows.append(f"not run and left out: {'; '.join(left_out)}")
    return [row for row in rows if row]


def sign_words(evidence: Evidence, *, means: bool, single: bool, bars: str, bands: bool, log: bool, zeros: bool) -> str:
    """`dots: mean of 5 seeds; band: lowest to highest seed`, in the words that the figure needs.

    `means`: whether any dots are means over seeds; `single`: whether any stand for one; `bars`: which mean a bar beside them
    stands at; empty without bars.
    """
    counts = seed_counts(evidence)
    if not counts:
        words = []
    elif max(counts) == 1:
        words = ["one seed: nothing says how much another would differ"]
    else:
        words = []
        if means:
            where = " on a curve" if single else ""
            kind = f" (geometric where the axis is logarithmic{_BUT_ZEROS if zeros else ''})" if log else ""
            words.append(f"dots{where}: mean of {_span(counts)} seeds{kind}")
        if single:
            words.append(
                f"{'others' if means else 'dots'}: one of {_span(counts)} seeds each{f', bar: {bars}' if bars else ''}"
            )
    if bands:
        words.append("band: lowest to highest seed")
    if zeros:
        words.append("▾ on the floor: 0 in some run, below any logarithm (gray: in runs of several lines)")
    return "; ".join(words)


def seed_counts(evidence: Evidence) -> list[int]:
    """How many seeds each series has that is drawn as a line; problems are solved without one."""
    grids = [panel for panel in evidence.figure.panels if panel.kind != "points"]
    lines = {series.name for panel in grids for series in evidence.figure.drawn_in(panel)}
    counts = (seed_count(found) for name, found in evidence.series.items() if name in lines)
    return [count for count in counts if count is not None]


def seed_count(found: SeriesEvidence) -> int | None:
    """How many seeds a series has; None of what is solved, or of what was not run."""
    return len(found.chosen) if trainings(entry.cell for entry in found.chosen.values()) else None


def count_words(seeds: int) -> str:
    """`one seed`, `3 seeds`."""
    return "one seed" if seeds == 1 else f"{seeds} seeds"


def span_words(counts: Collection[int]) -> str:
    """`one seed`, `3 seeds`, `1 to 3 seeds`."""
    return count_words(max(counts)) if min(counts) == max(counts) else f"{_span(counts)} seeds"


def scale_words(evidence: Evidence) -> str:
    """What a run at smoke scale is good for; nothing where it is of full scale."""
    return "trial run at smoke scale: not for publication" if evidence.scale == "smoke" else ""


def verdict_words(verdicts: Sequence[Verdict]) -> str:
    """`the paper's claims: 3 held, 1 undecided`; nothing where none is made."""
    counts = [(sum(one.verdict == word for one in verdicts), word) for word in WORDS]
    return f"claims: {', '.join(f'{n} {word}' for n, word in counts if n)}" if verdicts else ""


def data_words(evidence: Evidence) -> list[str]:
    """A phrase for each data set: how many images or sentences per class, and what of the paper's it lacks."""
    by_name: dict[tuple[str, str], list[Training]] = {}
    labels: dict[str, dict[str, None]] = {}
    for found in evidence.series.values():
        for cell in trainings(entry.cell for entry in found.entries):
            by_name.setdefault((cell.stands_for or cell.data, cell.data), []).append(cell)
            labels.setdefault(cell.data, {})[found.series.label or found.series.name] = None
    whole = {paper for paper, own in by_name if own == paper}
    parted = {paper for paper, own in by_name if own != paper}
    return [
        _data_phrase(paper, own, mine, some=_group_words(list(labels[own])) if own != paper and paper in whole else "")
        for (paper, own), mine in by_name.items()
        if own != paper or paper not in parted  # its stand-in says so of some series
    ]


def network_words(cells: Iterable[Cell]) -> list[str]:
    """A phrase for each network that stands in for the paper's."""
    pairs = dict.fromkeys((cell.network, cell.network_for) for cell in trainings(cells) if cell.network_for)
    return [f"{used.removeprefix('hf:')} in place of {paper.removeprefix('hf:')}" for used, paper in pairs]


def _data_phrase(paper: str, own: str, cells: Sequence[Training], *, some: str) -> str:
    """`CIFAR-10: 100 images per class, tested on 2,000 images instead of 10,000`.

    `some`: the series that this is said of where others have the whole of it.
    """
    counts = [count for cell in cells for count in cell.sizes or (cell.per_class,)]
    known = [count for count in counts if count is not None]
    name = DATA_NAMES.get(paper, paper)
    things = "sentences" if paper in SENTENCES else "images"
    who = f"{name}, {some}" if some else name
    each = f"{who}: {_span(known)} {things} per class" if known else who
    if own == paper:
        return each
    if own not in STAND_INS:
        return f"{each} ({DATA_NAMES.get(own, own)} in place of {name})"
    part = STAND_INS[own]
    tested = f"tested on {part.test:,} images instead of {part.of_test:,}"
    cut = f"{who}: cut to {part.train:,} of its {part.of_train:,} training images" if len(known) < len(counts) else each
    return f"{cut}, {tested}"


def _group_words(labels: Sequence[str]) -> str:
    """What series are called together: what their labels begin or end with alike, else all of them."""
    return common_label(labels) or common_end(labels) or ", ".join(labels)


def _span(counts: Collection[int]) -> str:
    return f"{min(counts)}" if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"


def _name_words(names: Sequence[str]) -> list[str]:
    if len(set(names)) == 1:
        return ["" for _ in names]
    if len({name.removesuffix("_test") for name in names}) == 1:
        return ["test data" if name.endswith("_test") else "training data" for name in names]
    return [entry_of(name).words for name in names]


def _way_word(key: str, value: str) -> str:
    if key == "site":
        return "last layer" if value == "-1" else f"layer {value}"
    if key == "epoch":
        return f"epoch {value.replace('/', ' of ')}"
    forms = {"reading": "{} reading", "grain": "by {}", "reduction": "{}", "weighting": "weighed by {}"}
    forms |= {"from": "from layer {} on", "of": "of {}"}
    return forms.get(key, f"{key} {{}}").format(value)


def typeset(text: str) -> str:
    """Words for matplotlib: what stands between dollar signs is a formula if it is one, and letters with an index are set.

    Dollar signs that begin no formula stay dollar signs.
    """
    plain = one_line(text)
    if "$" in plain:
        return plain if _is_formula(plain) else plain.replace("$", r"\$")
    return _STARRED.sub(r"$\1^*$", _INDEXED.sub(r"$\1_{\2}$", plain))


def wrapped(text: str, letters: float) -> str:
    """Long words on several lines, about equally long ones; formulas stay whole."""
    if any(" " in formula for formula in _FORMULA.findall(text)):
        return text
    most = max(_SHORTEST, int(letters))
    rows = _rows(text, most)
    even = next((own for least in range(_SHORTEST, most) if len(own := _rows(text, least)) == len(rows)), rows)
    return "\n".join(even)


def _rows(text: str, letters: int) -> list[str]:
    kept = text.replace(" · ", "\N{NO-BREAK SPACE}· ")  # no row begins with the sign between two parts
    rows = textwrap.wrap(kept, letters, break_long_words=False, break_on_hyphens=False)
    return [row.replace("\N{NO-BREAK SPACE}", " ") for row in rows]


@lru_cache(maxsize=512)
def _is_formula(text: str) -> bool:
    if text.count("$") % 2:
        return False
    try:
        MathTextParser("path").parse(text)
    except ValueError:
        return False
    return True
