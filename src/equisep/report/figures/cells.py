"""The tables of a figure as plain text, before they are laid out in a terminal or written as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from equisep.figures.cell import trainings
from equisep.figures.evidence import SeriesEvidence
from equisep.figures.figure import Claim, Figure
from equisep.figures.judge import Verdict
from equisep.figures.papers import NETWORK_STAND_INS, STAND_INS
from equisep.figures.papers.galanti2022_bound import Estimate, least_estimates
from equisep.figures.quantities import CLAIMED, NEVER, Column, entry_of, quantity_words, standard_quantities
from equisep.figures.rules import LAWS
from equisep.report.figures.summary import PrintedSummary, SeriesSummary, Summary, drawn_from
from equisep.report.formatting import UNICODE, correlation, duration, number
from equisep.results import Interval

_SINGLE = (*LAWS, "at least", "at most", "near")  # rules whose number is the quantity itself, no slope or difference
_OURS = re.compile(r"ours\b[:,]?\s*")  # what begins the source of a claim that no paper makes
OWN = "equisep2026"  # the experiments that no paper has
# what a series has beside its quantities: a heading, and when it leaves a narrow terminal
_BESIDE = {
    "rate": Column("learning\nrate", 10),
    "n": Column("seeds", 11),
    "r_eval": Column("r eval", 0),
    "r_optimistic": Column("r\noptimistic", 2),
}


@dataclass(frozen=True, slots=True)
class TextTable:
    """Headings and rows; the columns named in `left` are text. `leaves` says when each leaves a narrow terminal."""

    titles: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    left: tuple[str, ...] = ()
    leaves: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class ClaimWords:
    """A claim as readers see it: its verdict, what the paper says and where, what was found here, the verdict in each reading.

    Of a claim that is `ours` there stands why it is asked in place of what a paper says.
    """

    verdict: str
    claim: str
    paper: str
    here: str
    readings: Mapping[str, str]
    ours: bool = False

    @property
    def asked(self) -> str:
        """Why a claim of ours is asked, without the word that says whose it is."""
        return _OURS.sub("", self.paper)


def claim_words(summary: Summary) -> tuple[ClaimWords, ...]:
    """All claims of a figure, in their order; every number once, in the sentence of what was found."""
    return tuple(
        ClaimWords(
            verdict=each.main.verdict,
            claim=each.claim.text,
            paper=_paper_words(summary.figure, each.main),
            here=each.main.reason,
            readings={name: _in_reading(verdict) for name, verdict in each.by_reading.items()},
            ours=each.claim.ours or (is_ours(summary.figure, each.claim) and not each.claim.quote),
        )
        for each in summary.claims
    )


def is_ours(figure: Figure, claim: Claim) -> bool:
    """Whether no paper makes this claim."""
    return figure.id.startswith(f"{OWN}/") or claim.ours


def counts_as_ours(figure: Figure, claim: Claim) -> bool:
    """Whether it is no claim of the paper's own: no paper makes it, or none in a sentence or number that can be quoted."""
    return is_ours(figure, claim) or claim.in_our_words


def _paper_words(figure: Figure, verdict: Verdict) -> str:
    """The quotation, the printed number where it is not in it, and where they stand."""
    claim = verdict.claim
    if is_ours(figure, claim):
        quoted = f"“{claim.quote}” ({claim.source})" if claim.quote else "ours"
        return claim.source if claim.ours else quoted
    number = _shown_as_printed(claim.quantity, verdict.printed)
    printed = "" if verdict.printed is None or number.replace("-", "−") in claim.quote else f" {number}"
    said = f"“{claim.quote}”" if claim.quote else ""
    return f"{said}{printed}{f' ({claim.source})' if claim.source else ''}".strip()


def _in_reading(verdict: Verdict) -> str:
    """`held (−0.9981)`: the verdict, and the number of the weakest part where it is a quantity itself."""
    name = verdict.claim.quantity if verdict.claim.rule in _SINGLE else ""
    alone = bool(name) and verdict.ours is not None and ";" not in name
    return f"{verdict.verdict} ({_shown(name, verdict.ours)})" if alone else verdict.verdict


def _shown_as_printed(quantity: str, value: float | None) -> str:
    """A number with the digits of print: r with three decimals."""
    if value is None:
        return UNICODE.missing
    return f"{value:.3f}" if entry_of(_bare(quantity)).style == "correlation" else f"{value:g}"


def series_table(summary: Summary) -> TextTable:
    """A row for each series that was run; columns that no series fills are left out."""
    rows = [row for row in summary.series if row.n]
    columns = [(Column("series", NEVER), [row.name for row in rows])]
    for name, head in _heads(summary).items():
        cells = [_in_column(name, row) for row in rows]
        if name == "n" or any(cell != UNICODE.missing for cell in cells):
            columns.append((head, cells))
    return TextTable(
        titles=tuple(head.title for head, _ in columns),
        rows=tuple(zip(*(cells for _, cells in columns), strict=True)),
        left=("series",),
        leaves=tuple(head.leaves for head, _ in columns),
    )


def _heads(summary: Summary) -> dict[str, Column]:
    """The columns of a table of series: rate and seeds, what every series shows, what stands beside r, what is claimed."""
    standard = {entry.name: entry.column for entry in standard_quantities() if entry.column is not None}
    if _by_block(summary):
        standard["half_life"] = Column("half-life\nblocks", standard["half_life"].leaves)
    heads = {"rate": _BESIDE["rate"], "n": _BESIDE["n"], **standard, **_BESIDE}
    return heads | {text: Column(quantity_words(text), CLAIMED) for text in summary.claimed if text not in heads}


def _by_block(summary: Summary) -> bool:
    """Whether the numbers of all series are of curves over blocks, so that a half-life counts these."""
    chosen = (entry.outcome for found in summary.evidence.series.values() for entry in found.chosen.values())
    grains = {outcome.readings[0].grain for outcome in chosen if outcome.readings}
    return grains == {"blocks"}


def _in_column(name: str, row: SeriesSummary) -> str:
    """A number under its heading, which says percent of accuracies."""
    value, entry = row.number(name), entry_of(_bare(name))
    if value is not None and entry.column is not None and entry.style == "share":
        return f"{100 * value:.2f}"
    return _shown(name, value)


def printed_table(rows: Sequence[PrintedSummary]) -> TextTable:
    """The numbers that the paper prints, beside ours."""
    titles = ("series", "quantity", "paper", "here", "seeds", "95 % interval", "place")
    leaves = (NEVER, NEVER, NEVER, NEVER, 2.0, 1.0, 0.0)
    return TextTable(titles, tuple(map(_printed_row, rows)), left=("series", "quantity", "place"), leaves=leaves)


def _printed_row(row: PrintedSummary) -> tuple[str, ...]:
    name = row.printed.quantity
    return (
        row.printed.series,
        quantity_words(name),
        _shown_as_printed(name, row.printed.value),
        _shown(name, row.ours),
        str(row.n),
        _between(name, row.interval),
        row.printed.place,
    )


def estimates_table(rows: Sequence[Estimate]) -> TextTable:
    """The comparative bound at each share p; of networks of several depths on S1 at the p where it is least."""
    shown = rows if len({row.depth for row in rows}) == 1 else least_estimates(rows)
    asked = any(row.own is not None for row in rows)
    titles = ("d", "p", "draws", "P", "δ", "P + p + δ", *(("P\nown too", "P + p + δ\nown too") if asked else ()))
    return TextTable(
        (*titles, "limit\nat 95 %", "test\nerror"),
        tuple(_estimate_row(row, asked=asked) for row in shown),
        leaves=(*(NEVER,) * len(titles), 0.0, NEVER),
    )


def _estimate_row(row: Estimate, *, asked: bool) -> tuple[str, ...]:
    drawn, own = row.drawn, row.own or row.drawn
    more = (number(own.probability, 3), number(own.value, 3)) if asked else ()
    return (
        str(row.depth), f"{drawn.p:g}", str(drawn.n), number(drawn.probability, 3), number(drawn.delta, 3),
        number(drawn.value, 3), *more, number(own.upper, 3), number(row.error, 3),
    )  # fmt: skip


def state_line(summary: Summary) -> str:
    """Scale, cells, state and claims in a line."""
    if summary.state == "not run":
        return "not run"
    counts = ", ".join(f"{n} {word}" for word, n in summary.counts.items() if n)
    claims = f"; claims: {counts}" if counts else ""
    run = summary.evidence.done
    return f"{summary.evidence.scale} scale, {run} {'run' if run == 1 else 'runs'}, {summary.state}{claims}"


def stand_in_lines(summary: Summary) -> Iterator[str]:
    """A sentence for each data set or network that stands in for the paper's; of data that are drawn from alone a note tells."""
    known, drawn = {**STAND_INS, **NETWORK_STAND_INS}, drawn_from(summary.evidence)
    whose = "" if summary.figure.id.startswith(f"{OWN}/") else "the paper's "
    series = {name: _trained_with(found) for name, found in summary.evidence.series.items()}
    for wanted, several in summary.evidence.stand_ins.items():
        some = len(several) > 1 or any(wanted in names for names in series.values())
        for used in () if wanted in drawn else several:
            part = f" ({known[used]})" if used in known else ""
            where = f" in {', '.join(name for name, names in series.items() if used in names)}" if some else ""
            yield f"{used}{part} stands in for {whose}{wanted}{where}."


def _trained_with(found: SeriesEvidence) -> set[str]:
    """The data sets and networks of a series."""
    return {name for cell in trainings(entry.cell for entry in found.entries) for name in (cell.data, cell.network)}


def provenance_line(summary: Summary) -> str:
    """Devices, versions and time; nothing where nothing was run."""
    made = summary.made
    devices, versions = " and ".join(made.device), version_words(made.versions)
    if not devices and not versions:
        return ""
    tf32 = ", TF32 allowed" if made.tf32 else ""
    return f"Made on {devices or 'an unnamed device'}{tf32}, with {versions}, in {duration(made.wall_s)} of computing."


def version_words(versions: Mapping[str, Sequence[str]]) -> str:
    """`torch 2.11, numpy 2.2 and 2.3`."""
    return ", ".join(f"{name} {' and '.join(known)}" for name, known in versions.items() if known)


def _bare(name: str) -> str:
    return name.partition("@")[0]


def _shown(name: str, value: float | None) -> str:
    """A number as its quantity is read: r to as many digits as it takes, rates and seeds as they are."""
    if value is None:
        return UNICODE.missing
    bare = _bare(name)
    if bare in ("rate", "n"):
        return f"{value:g}"
    if bare in ("r_eval", "r_optimistic") or entry_of(bare).style == "correlation":
        return correlation(value)
    return number(value, 4)


def _between(name: str, interval: Interval | None) -> str:
    if interval is None:
        return UNICODE.missing
    return f"[{_shown(name, interval.low)}, {_shown(name, interval.high)}]"
