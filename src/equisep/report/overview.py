"""A profile on one screen: the result in a sentence, one row per layer with its share of the work, train beside test."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.text import Text

from equisep.findings.facts import Facts, finite
from equisep.findings.ranking import WEIGHTS
from equisep.findings.wording import without_meaning, wrapped
from equisep.report.formatting import ASCII, Glyphs, ascii_text, number, one_line, percent
from equisep.report.tables import GAP, plain_table, room_beside
from equisep.report.terminal import MOST_COLUMNS, View
from equisep.results import Finding, Profile

MOST_ROWS = 12  # deeper networks have several layers to a row
MEANS_LINES = 6  # what the other findings may take of the screen
BAR = 12
_LAW = ("law", "near-law", "no-law", "law-by-block")
_CUT = ("too-deep", "cut")
_KEY = "D: spread within classes over the distance between them."
_KEY_SHARES = " %: nearest to own mean."
_WORK = "share of the work"


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: a layer, or several that are passed between two readings of it."""

    label: str
    share: float | None
    index: int
    position: int


def render_overview(profile: Profile, *, lead: Sequence[str] = (), more: str = "") -> RenderableType:
    """What a newcomer wants first, below the lines of `lead`; `more` says where the findings are that have no room."""

    def build(glyphs: Glyphs, width: int) -> RenderableType:
        columns = min(width, MOST_COLUMNS)
        first, rest = _headline(profile.findings)
        blocks: list[RenderableType] = [
            Text(line, style="dim") for each in lead for line in _lines(each, columns, glyphs)
        ]
        if first is not None:
            blocks += [Text(line, style="bold") for line in _lines(_said(first), columns, glyphs)]
        blocks += _table(profile, glyphs, columns)
        blocks += _meanings(rest, columns, glyphs, more)
        return Group(*blocks)

    return View(build)


def _headline(findings: Sequence[Finding]) -> tuple[Finding | None, list[Finding]]:
    """The sentence on the law, or one that makes it moot (an unfitted network, too few samples); and the others."""
    moot = WEIGHTS["too-few-samples"]
    first = next((one for one in findings if one.code in _LAW or one.weight >= moot), findings[0] if findings else None)
    return first, [one for one in findings if one is not first]


def _said(finding: Finding) -> str:
    """The sentence, with how sure it is where it is not; what D is stands above the table."""
    words = one_line(without_meaning(finding.text))
    return words if finding.confidence == "sure" else f"{words} [{finding.confidence}]"


def _lines(text: str, columns: int, glyphs: Glyphs, mark: str = "") -> list[str]:
    return wrapped(ascii_text(text, glyphs), width=columns, mark=mark).split("\n")


def _meanings(findings: Sequence[Finding], columns: int, glyphs: Glyphs, more: str) -> Iterator[Text]:
    """The next findings, as many as there is room for but at least one; the others are counted."""
    shown: list[list[str]] = []
    for finding in findings:
        lines = _lines(_said(finding), columns, glyphs, " * " if glyphs is ASCII else " • ")
        if shown and sum(map(len, shown)) + len(lines) > MEANS_LINES:
            break
        shown.append(lines)
    if not shown:
        return
    rest = len(findings) - len(shown)
    left = f" ({rest} more: {more})" if rest and more else ""
    yield Text.assemble(("What this means", "bold"), (ascii_text(left, glyphs), "dim"))
    yield from (Text(line) for lines in shown for line in lines)


def _rows(profile: Profile, facts: Facts) -> list[Row]:
    """Every layer, or of deep networks every second, third, …, the last in any case; shares are summed since the row before."""
    sites = profile.sites
    begin = profile.begin() if facts.shares else 0
    step = math.ceil(max(1, len(sites) - begin - 1) / (MOST_ROWS - 1))
    chosen = sorted({*range(begin, len(sites), step), len(sites) - 1}) if sites else []
    rows = []
    for before, at in zip([None, *chosen], chosen, strict=False):
        passed = [] if before is None else [site.index for site in sites[before + 1 : at + 1]]
        shares = [facts.shares[index] for index in passed if index in facts.shares]
        name = "input" if sites[at].index == 0 else str(sites[at].index)
        label = f"{passed[0]}-{passed[-1]}" if len(passed) > 1 else name
        rows.append(Row(label, sum(shares) if shares else None, sites[at].index, at))
    return rows


def _table(profile: Profile, glyphs: Glyphs, width: int) -> Iterator[RenderableType]:
    """D, share of the work and nearest class means per layer, the network itself last; what has no room is named below."""
    facts = Facts(profile)
    rows = _rows(profile, facts)
    if not rows or all(finite(site.fuzziness) is None for site in profile.sites):
        return
    sites = [profile.sites[row.position] for row in rows]
    missing = glyphs.missing
    columns: dict[str, list[str]] = {
        facts.each: [*(row.label for row in rows), "network"],
        "D train": [*(number(finite(site.fuzziness), 3, missing=missing) for site in sites), ""],
        "D test": [*(number(finite(site.fuzziness_test), 3, missing=missing) for site in sites), ""],
        _WORK: [*("" if row.share is None else _share(row.share) for row in rows), ""],
        "train %": _percents([*(site.ncc_train for site in sites), facts.accuracy_train], missing),
        "test %": _percents([*(site.ncc_test for site in sites), facts.accuracy_test], missing),
        "": [*_marks(profile, rows, glyphs), ""],
    }
    columns = {title: cells for title, cells in columns.items() if any(cell not in ("", missing) for cell in cells)}
    edgeless = width + 2 + GAP  # this table has no edges, and no gap behind its last column
    hidden = [title for title in ("", "test %", "train %", "D test", _WORK)
              if room_beside(columns, edgeless) < 0 and columns.pop(title, [])]  # fmt: skip
    if _WORK in columns:
        room = room_beside(columns, edgeless) + len(_WORK) - len(_share(1.0))
        columns[_WORK] = _with_bars([row.share for row in rows], min(BAR, room), glyphs)
    shares = "train %" in columns or "test %" in columns
    if not shares:
        columns = {title: cells[: len(rows)] for title, cells in columns.items()}  # the network has nothing else
    yield Text(wrapped(f"{_KEY}{_KEY_SHARES if shares else ''}", width=width), style="dim")
    rows_shown = zip(*columns.values(), strict=True)
    yield plain_table([*columns], rows_shown, glyphs, left=(facts.each, _WORK, ""), edges=False)
    yield Text(
        f"No room for {', '.join(filter(None, hidden))}: widen the terminal." if any(hidden) else "", style="dim"
    )


def _percents(shares: Iterable[float | None], missing: str) -> list[str]:
    return [percent(finite(share), missing=missing) for share in shares]


def _share(share: float) -> str:
    return f"{100 * share:3.0f} % "


def _with_bars(shares: Sequence[float | None], room: int, glyphs: Glyphs) -> list[str]:
    """`16 % ███████`, the longest for the largest share; a layer after which D has risen has none. The network ends the list."""
    most = max((share for share in shares if share is not None), default=0.0)
    sign = "#" if glyphs is ASCII else "█"
    cells = []
    for share in shares:
        length = 0 if share is None or most <= 0 else round(room * max(0.0, share) / most)
        cells.append("" if share is None else _share(share) + sign * length)
    return [*cells, ""]


def _marks(profile: Profile, rows: Sequence[Row], glyphs: Glyphs) -> list[str]:
    """The layer after which the network could end, where a finding says so."""
    cut = next((one.site for one in profile.findings if one.code in _CUT), None)
    at = next((site.index for site in profile.sites if cut is not None and site.name == cut), None)
    reached = next((row.index for row in rows if at is not None and row.index >= at), None)
    arrow = "<-" if glyphs is ASCII else "←"
    return [f"{arrow} could end here" if row.index == reached else "" for row in rows]
