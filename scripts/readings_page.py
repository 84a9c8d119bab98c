"""The tables and the drawing of docs/readings.md, and what must hold, from the record of scripts/readings.py."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any, Literal

from equisep.files import write_whole
from equisep.law import seed_interval

REPO = Path(__file__).resolve().parents[1]
PAGE, DRAWING = REPO / "docs" / "readings.md", REPO / "results" / "readings" / "readings.png"
MARKS = "<!-- {}, by scripts/readings.py -->", "<!-- end of {} -->"
READINGS = ("eval", "mixed", "drawn")
COLORS = {"eval": "#0072B2", "mixed": "#009E73", "drawn": "#D55E00"}
# of the number of layers: marker and line
STYLES: dict[int, tuple[str, Literal["-", "--"]]] = {8: ("s", "--"), 20: ("o", "-")}
NAMES = {"adam": "Adam", "momentum": "momentum", "sgd": "SGD"}
SETS = {
    "mnist": ("MNIST", 6),
    "fashion-mnist": ("Fashion-MNIST", 10),
    "cifar10": ("CIFAR-10", 12),
}  # and the paper's depth
NEAR, LAWFUL = 0.02, -0.995  # how near the printed ρ the mean must lie, and how straight ln D must be
FITS = 0.99  # training accuracy in `eval` of every seed, from which on a rate counts as fitted
LEVEL = 0.95
DIGITS = {"r": 4, "rho": 3, "half_life": 2, "last": 2}

Record = Mapping[str, Any]
Entry = Mapping[str, Any]
Values = Sequence[float | None]


def entries(record: Record, **asked: Any) -> list[Entry]:
    """Those whose fields are as asked; the size of the reading's batches is 100 unless it is asked for."""
    wanted = {"batch_size": 100, **asked}
    return [each for each in record["entries"] if all(each[name] == value for name, value in wanted.items())]


def authors(record: Record, optimizer: str, depth: int, **asked: Any) -> Entry | None:
    """The network at the rate of the authors' program, on Fashion-MNIST; equal classes unless asked otherwise."""
    rate = record["settings"]["authors_rates"][optimizer][str(depth)]
    about = {"data": "fashion-mnist", "large": 100, "small": 100, "optimizer": optimizer, "depth": depth, **asked}
    return next(iter(entries(record, rate=rate, **about)), None)


def spread(own: Mapping[str, Values], quantity: str) -> str:
    """Mean and 95 % interval over draws (Student's t) of a quantity; what has no number is counted."""
    values, digits = own[quantity], DIGITS[quantity]
    known = [value for value in values if value is not None]
    if not known:
        return "–"
    missing = "" if len(known) == len(values) else f" ({len(values) - len(known)} without)"
    if len(known) == 1:
        return f"{known[0]:.{digits}f}{missing}"
    span = seed_interval(known, LEVEL, within=(-1.0, 1.0) if quantity == "r" else (0.0, math.inf))
    return f"{mean(known):.{digits}f} [{span.low:.{digits}f}, {span.high:.{digits}f}]{missing}"


def paired(one: Entry | None, other: Entry | None, reading: str, quantity: str, *, ratio: bool = False) -> list[float]:
    """Draw by draw the difference other − one of a quantity, or the logarithm of their ratio."""
    if one is None or other is None:
        return []
    pairs = zip(one["readings"][reading][quantity], other["readings"][reading][quantity], strict=True)
    known = [(a, b) for a, b in pairs if a is not None and b is not None]
    return [math.log(b / a) if ratio else b - a for a, b in known]


def ratio_words(logs: Sequence[float]) -> str:
    """A geometric mean of ratios with its interval, and in how many draws it is above 1."""
    if not logs:
        return "–"
    above = f", {sum(value > 0 for value in logs)} of {len(logs)} draws above 1"
    if len(logs) == 1:
        return f"{math.exp(logs[0]):.2f}"
    span = seed_interval(logs, LEVEL)
    return f"{math.exp(mean(logs)):.2f} [{math.exp(span.low):.2f}, {math.exp(span.high):.2f}]{above}"


def difference_words(values: Sequence[float]) -> str:
    """A mean difference with its interval, and in how many draws it is above 0."""
    if not values:
        return "–"
    if len(values) == 1:
        return f"{values[0]:+.2f}"
    span = seed_interval(values, LEVEL)
    above = sum(value > 0 for value in values)
    return f"{mean(values):+.2f} [{span.low:+.2f}, {span.high:+.2f}], {above} of {len(values)} draws above 0"


def fitted(record: Record, data: str, depth: int, reading: str) -> Entry | None:
    """A depth at its fitted rate in a reading: of the rates at which every draw fits, that with the most negative mean r."""
    found = [
        each
        for each in entries(record, data=data, optimizer="adam", depth=depth, small=100, large=100)
        if all(value is not None and value >= FITS for value in each["accuracy"])
        and None not in (*each["readings"][reading]["r"], *each["readings"][reading]["last"])
    ]
    return min(found, key=lambda each: mean(each["readings"][reading]["r"]), default=None)


def final_by_depth(record: Record, data: str, reading: str) -> dict[int, list[float]]:
    """The last D of every draw by depth, each depth at its fitted rate."""
    depths = sorted({each["depth"] for each in entries(record, data=data, optimizer="adam", small=100, large=100)})
    found = {depth: fitted(record, data, depth, reading) for depth in depths}
    return {depth: each["readings"][reading]["last"] for depth, each in found.items() if each is not None}


def least_depth(record: Record, data: str, reading: str) -> tuple[int | None, list[int]]:
    """The depth of the least mean final D, and that of every draw."""
    curves = final_by_depth(record, data, reading)
    if not curves:
        return None, []
    draws = range(len(next(iter(curves.values()))))
    return min(curves, key=lambda depth: mean(curves[depth])), [
        min(curves, key=lambda depth: curves[depth][draw]) for draw in draws
    ]


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def law_table(record: Record) -> str:
    """r, ρ, half-life and last D of every optimizer and depth in all readings."""
    rows = []
    for optimizer, name in NAMES.items():
        for depth in (4, 8, 20):
            found = authors(record, optimizer, depth)
            if found is None:
                continue
            for reading in READINGS:
                own = found["readings"][reading]
                first = f"{name}, {depth} layers, {found['rate']:g}" if reading == READINGS[0] else ""
                rows.append([first, f"`{reading}`", *(spread(own, each) for each in DIGITS)])
    return table(("network, rate", "reading", "r", "ρ", "half-life", "last D"), rows)


def own_rate_table(record: Record) -> str:
    """Adam's networks in each reading at the fitted rate of that reading."""
    rows = []
    for depth in (4, 8, 20):
        for reading in READINGS:
            found = fitted(record, "fashion-mnist", depth, reading)
            if found is not None:
                own = found["readings"][reading]
                first = f"Adam, {depth} layers" if reading == READINGS[0] else ""
                rows.append([first, f"`{reading}`", f"{found['rate']:g}", *(spread(own, each) for each in DIGITS)])
    return table(("network", "reading", "rate", "r", "ρ", "half-life", "last D"), rows)


def depth_table(record: Record) -> str:
    """Last D of 20 layers over that of 8."""
    rows = [
        [f"`{reading}`", *(
            ratio_words(paired(authors(record, name, 8), authors(record, name, 20), reading, "last", ratio=True))
            for name in NAMES
        )]
        for reading in READINGS
    ]  # fmt: skip
    return table(("reading", *NAMES.values()), rows)


def least_table(record: Record) -> str:
    """The depth of the least final D, of the mean and of every draw."""
    rows = []
    for data, (name, printed) in SETS.items():
        cells = []
        for reading in READINGS:
            depth, draws = least_depth(record, data, reading)
            cells.append("–" if depth is None else f"**{depth}** ({' '.join(map(str, draws))})")
        if any(cell != "–" for cell in cells):
            rows.append([name, str(printed), *cells])
    return table(("data", "paper", *(f"`{reading}`" for reading in READINGS)), rows)


def rise_table(record: Record) -> str:
    """The final D of the deepest network over the least one, draw by draw, with both rates."""
    rows = []
    for data, (name, _) in SETS.items():
        cells = []
        for reading in READINGS:
            curves, (least, _) = final_by_depth(record, data, reading), least_depth(record, data, reading)
            if least is None:
                continue
            logs = [math.log(b / a) for a, b in zip(curves[least], curves[max(curves)], strict=True)]
            ends = [fitted(record, data, depth, reading) or {} for depth in (least, max(curves))]
            cells.append(f"{ratio_words(logs)} (rates {ends[0]['rate']:g}, {ends[1]['rate']:g})")
        if cells:
            rows.append([f"{name}, {max(curves)} layers", *cells])
    return table(("", *(f"`{reading}`" for reading in READINGS)), rows)


def half_life_table(record: Record) -> str:
    """Half-life of unequal classes less that of equal ones, by depth."""
    rows = [
        [f"Adam, {depth} layers", *(
            difference_words(paired(
                authors(record, "adam", depth), authors(record, "adam", depth, large=500), reading, "half_life"
            ))
            for reading in READINGS
        )]
        for depth in (4, 8, 20)
    ]  # fmt: skip
    return table(("", *(f"`{reading}`" for reading in READINGS)), rows)


def batch_sizes(record: Record) -> list[int]:
    """The sizes that were read."""
    return sorted({each["batch_size"] for each in record["entries"]})


def batch_table(record: Record) -> str:
    """The 8- and 20-layer Adam networks against the size of the reading's batches; `eval` does not depend on it."""
    asked = [("eval", 100), *((reading, size) for reading in ("mixed", "drawn") for size in batch_sizes(record))]
    rows = []
    for reading, size in asked:
        row = [f"`{reading}`", "any" if reading == "eval" else str(size)]
        for depth in (8, 20):
            one, two = (authors(record, "adam", depth, batch_size=size, large=large) for large in (100, 500))
            if one is None:
                row += ["–"] * 3
                continue
            own, more = one["readings"][reading], paired(one, two, reading, "half_life")
            row += [spread(own, "rho"), spread(own, "last"), f"{mean(more):+.2f}" if more else "–"]
        rows.append(row)
    words = ("ρ", "last D", "half-life, unequal − equal")
    return table(("reading", "batch", *(f"{depth} layers: {each}" for depth in (8, 20) for each in words)), rows)


def imbalance_table(record: Record) -> str:
    """Half-life of the 8-layer network against the size of the small classes."""
    rows = []
    for small in sorted({each["small"] for each in record["entries"] if each["large"] == 500}, reverse=True):
        found = authors(record, "adam", 8, large=500, small=small)
        if found is not None:
            cells = (spread(found["readings"][reading], "half_life") for reading in READINGS)
            rows.append([f"5 × 500 + 5 × {small}", *cells])
    return table(("samples", *(f"`{reading}`" for reading in READINGS)), rows)


def checks(record: Record) -> Iterator[str]:
    """What must hold of the paper's own reading, with the others beside it, and whether it does."""
    printed = _printed()
    for depth in (8, 20):
        for reading in ("drawn", "mixed", "eval"):
            found = authors(record, "adam", depth)
            if found is None:
                continue
            own = found["readings"][reading]
            rho, r = ([value for value in own[name] if value is not None] for name in ("rho", "r"))
            held = bool(rho) and abs(mean(rho) - printed[depth]) <= NEAR and mean(r) <= LAWFUL
            words = f"Adam-{depth}, {reading}: ρ {spread(own, 'rho')} (printed {printed[depth]}), r {spread(own, 'r')}"
            yield f"{words}: {'holds' if held else 'does not hold'}" if reading == "drawn" else words
    for optimizer, name in NAMES.items():
        for reading in ("drawn", "mixed", "eval"):
            logs = paired(authors(record, optimizer, 8), authors(record, optimizer, 20), reading, "last", ratio=True)
            words = f"{name}, {reading}: last D of 20 layers over that of 8: {ratio_words(logs)}"
            yield _judged(words, logs) if (optimizer, reading) == ("adam", "drawn") else words
    for depth in (4, 8, 20):
        for reading in ("drawn", "mixed", "eval"):
            more = paired(
                authors(record, "adam", depth), authors(record, "adam", depth, large=500), reading, "half_life"
            )
            words = f"Adam-{depth}, {reading}: half-life of unequal classes less that of equal ones: {difference_words(more)}"
            yield _judged(words, more) if reading == "drawn" else words
    for data, (name, depth) in SETS.items():
        for reading in ("drawn", "mixed", "eval"):
            least, draws = least_depth(record, data, reading)
            if least is not None:
                yield f"{name}, {reading}: least final D at {least} layers (paper {depth}; draws {' '.join(map(str, draws))})"


def _judged(words: str, values: Sequence[float]) -> str:
    """Holds where the whole interval of the paired differences lies above 0."""
    if len(values) < 2:
        return f"{words}: too few draws"
    return f"{words}: {'holds' if seed_interval(values, LEVEL).low > 0 else 'does not hold'}"


def _printed() -> dict[int, float]:
    """The paper's ρ of Adam, by depth."""
    from equisep.figures.papers.he2023 import FIG1

    known = {entry.series: entry.value for entry in FIG1.printed if entry.quantity == "rho"}
    return {depth: known[f"adam-{depth}"] for depth in (8, 20)}


TABLES = {
    "the law": law_table,
    "each reading at its own rate": own_rate_table,
    "20 layers over 8": depth_table,
    "the depth of the least final D": least_table,
    "the rise after it": rise_table,
    "unequal classes": half_life_table,
    "batch sizes": batch_table,
    "imbalance": imbalance_table,
}


def page_text(record: Record, text: str) -> str:
    """The page with every table between its marks, and the line that says what made it."""
    for name, make in {**TABLES, "where it comes from": made_by}.items():
        begin, end = (mark.format(name) for mark in MARKS)
        before, found, rest = text.partition(begin)
        _, ended, after = rest.partition(end)
        if not found or not ended:
            raise SystemExit(
                f"docs/readings.md has lost `{begin}` or `{end}`. Put both back where the table should stand."
            )
        text = f"{before}{begin}\n\n{make(record)}\n\n{end}{after}"
    return text


def made_by(record: Record) -> str:
    """One line: draws, epochs, machine, versions."""
    made, settings = record["provenance"], record["settings"]
    stored = ", ".join(f"{name} (`{own['stored']}`)" for name, own in settings["data"].items())
    return (
        f"{settings['seeds']} draws, {settings['epochs']} epochs, {stored}; {made['device']}, torch {made['torch']}, "
        f"{made['dtype']}, {made['seconds']} s in all."
    )


def write_page(record: Record) -> list[Path]:
    """The tables into docs/readings.md and the drawing beside the others."""
    write_whole(PAGE, page_text(record, PAGE.read_text(encoding="utf-8")))
    draw(record).savefig(DRAWING, dpi=90)
    return [PAGE, DRAWING]


def draw(record: Record) -> Any:
    """D over depth, last D over the number of layers, and both effects over the size of the reading's batches."""
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    from equisep.report.plots import tidy

    figure = Figure(figsize=(11, 7.8), layout="constrained")
    axes = figure.subplots(2, 2)
    _draw_curves(axes[0, 0], record)
    _draw_depths(axes[0, 1], record)
    _draw_batches(axes[1, 0], record, "last")
    _draw_batches(axes[1, 1], record, "half_life")
    for each in axes.flat:
        tidy(each)
    keys: list[Any] = [Line2D([], [], color=COLORS[reading], label=f"{reading} reading") for reading in READINGS]
    keys += [
        Line2D([], [], color="0.3", linestyle=line, marker=marker, markersize=4, label=f"{depth} layers")
        for depth, (marker, line) in STYLES.items()
    ]
    keys.append(Patch(color="0.3", alpha=0.2, linewidth=0, label=f"{100 * LEVEL:g} % interval of the mean"))
    figure.legend(handles=keys, loc="outside lower center", ncols=len(keys), frameon=False)
    return figure


def _draw_curves(axes: Any, record: Record) -> None:
    found = authors(record, "adam", 20)
    for reading in READINGS if found else ():
        curves = (found or {})["readings"][reading]["curves"]
        for curve in curves:
            axes.plot(curve, color=COLORS[reading], alpha=0.5, lw=0.8)
    _log_depth(axes, "layer (0 = input)", "separation fuzziness D", from_input=True)
    axes.set_title("Adam, 20 layers: the same networks, read three ways", fontsize="medium")


def _draw_depths(axes: Any, record: Record) -> None:
    for reading in READINGS:
        curves = final_by_depth(record, "fashion-mnist", reading)
        points = [(depth, mean(last), *_limits(last)) for depth, last in curves.items()]
        if points:
            _draw_band(axes, points, ("o", "-"), COLORS[reading])
    _log_depth(axes, "layers of the network", "D of the last layer")
    axes.set_title("Fashion-MNIST, each depth at its fitted rate", fontsize="medium")


def _log_depth(axes: Any, across: str, up: str, *, from_input: bool = False) -> None:
    """Axes of D against a number of layers, as every drawing of a profile has them."""
    from equisep.report.plots import depth_axes

    depth_axes(axes, "fuzziness", kinds=["layers"], from_input=from_input)
    axes.set(xlabel=across, ylabel=up)


def _draw_band(axes: Any, points: Sequence[tuple[float, ...]], style: tuple[str, str], color: str) -> None:
    """A line through means with a band of their intervals."""
    x, y, low, high = zip(*points, strict=True)
    axes.plot(x, y, marker=style[0], linestyle=style[1], color=color, ms=4)
    axes.fill_between(x, low, high, color=color, alpha=0.2, lw=0)


def _draw_batches(axes: Any, record: Record, quantity: str) -> None:
    for depth, style in STYLES.items():
        for reading in READINGS:
            points = []
            for size in batch_sizes(record):
                one, two = (authors(record, "adam", depth, batch_size=size, large=large) for large in (100, 500))
                if one is None:
                    continue
                values = (
                    [value for value in one["readings"][reading]["last"] if value is not None]
                    if quantity == "last"
                    else paired(one, two, reading, "half_life")
                )
                if values:
                    points.append((size, mean(values), *_limits(values)))
            if points:
                _draw_band(axes, points, style, COLORS[reading])
    sizes = batch_sizes(record)
    if quantity == "last":
        _log_depth(axes, "", "D of the last layer")
    axes.set(xscale="log", xlabel="samples in a batch of the reading")
    axes.set_xticks(sizes, list(map(str, sizes)))
    axes.minorticks_off()
    if quantity == "last":
        axes.set_title("Adam: D of the last layer", fontsize="medium")
    else:
        axes.axhline(0, color="0.6", lw=0.8)
        axes.set_ylabel("layers")
        axes.set_title("Adam: half-life of unequal classes less that of equal ones", fontsize="medium")


def _limits(values: Sequence[float]) -> tuple[float, float]:
    if len(values) < 2:
        return values[0], values[0]
    span = seed_interval(values, LEVEL)
    return max(span.low, 0.5 * min(values)) if min(values) > 0 else span.low, span.high
