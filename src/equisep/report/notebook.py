"""A profile or a tracked training as one self-contained piece of HTML for notebooks: all escaped, no script, any theme."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from html import escape

from equisep.display import CELL, HEAD, TABLE, short, table_html
from equisep.findings.wording import NEXT
from equisep.report.columns import READING_COLUMNS, Column, columns_named
from equisep.report.curve_svg import curve_svg
from equisep.report.formatting import (
    UNICODE,
    accuracy_words,
    classifier_rows,
    correlation,
    data_words,
    depth_words,
    interval_words,
    kink_words,
    law_sentence,
    number,
    one_line,
    passed_words,
    reading_words,
    verdict_words,
)
from equisep.report.history_tables import MOST_ROWS, law_rows
from equisep.results import Finding, Profile
from equisep.results.wording import law_span_words
from equisep.tracking.history import History

_CODE = '<code style="color:inherit;background:none">{}</code>'
_BAR = '<span style="display:inline-block;height:.6em;width:{}px;background:currentColor;opacity:.35"></span>'
_BAR_WIDTH = 90  # pixels of the greatest D
_VERDICT_COLORS = {"law": "#2e8b57", "between": "#b8860b", "no law": "#cd5c5c", "undetermined": "#808080"}
_SHOWN = (
    *("site", "name", "fuzziness", "fuzziness_low", "fuzziness_high", *(column.name for column in READING_COLUMNS)),
    *("share", "fuzziness_test"),
    *("ncc_train", "ncc_test", "cdnv", "nc1", "null", "dim"),
)
_LEFT = ("name", "bar")
_BARS = Column("bar", "", "D on a logarithmic scale, from its least value to its greatest", lambda profile: ())
_HISTORY_COLUMNS = (
    "rho",
    "r",
    "verdict",
    "fuzziness_last",
    "ncc_train",
    "ncc_test",
    "effective_depth",
    "accuracy_train",
    "accuracy_test",
)


def profile_html(profile: Profile) -> str:
    """The profile's findings, curve, table and law as HTML; names from the model are text in it, never markup."""
    lines = [_paragraph(line) for line in _summary(profile)]
    notes = dict.fromkeys((*profile.notes, *profile.law.notes))
    if notes:
        items = "".join(f"<li>{_marked(str(note))}</li>" for note in notes)
        lines.append(f'<ul style="margin:.3em 0;padding-left:1.4em;opacity:.8">{items}</ul>')
    model = f"<strong>{escape(one_line(profile.model))}</strong>"
    words = _marked(f"{data_words(profile)}; {reading_words(profile)}")
    head = f'<div>{model}<br><span style="opacity:.7">{words}</span></div>'
    law = _law_line(profile)
    found = findings_html(profile.findings)
    return f'<div class="equisep-profile">{head}{found}{curve_svg(profile)}{_site_table(profile)}{law}{"".join(lines)}</div>'


def findings_html(findings: Sequence[Finding]) -> str:
    """What was found, the most important first, with what to do next."""
    items = "".join(f"<li>{_finding(finding)}</li>" for finding in findings)
    return f'<ol style="margin:.4em 0;padding-left:1.6em;max-width:60em">{items}</ol>' if items else ""


def _finding(finding: Finding) -> str:
    unsure = "" if finding.confidence == "sure" else f' <span style="opacity:.7">[{escape(finding.confidence)}]</span>'
    code = "" if finding.next is None else _CODE.format(escape(one_line(finding.next)))
    then = f'<br><span style="opacity:.7">{NEXT} {code}</span>' if code else ""
    return f"{_marked(finding.text)}{unsure}{then}"


def _site_table(profile: Profile) -> str:
    columns = dict(_columns(profile))
    titles = "".join(_head(column, profile) for column in columns)
    sides = ["left" if column.name in _LEFT else "right" for column in columns]
    rows = zip(*columns.values(), strict=True)
    body = "".join(f"<tr>{''.join(_cells(row, sides))}</tr>" for row in rows)
    return f'<table style="{TABLE}"><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>'


def _columns(profile: Profile) -> Iterable[tuple[Column, list[str]]]:
    """The columns that some site fills, as HTML, with the bars beside D."""
    for column in columns_named(_SHOWN):
        cells = column.cells(profile)
        if any(cell != UNICODE.missing for cell in cells):
            yield column, [escape(cell) for cell in cells]
            bars = _bars(profile.curve("fuzziness"))
            if column.name == "fuzziness" and any(bars):
                yield _BARS, bars


def _head(column: Column, profile: Profile) -> str:
    """The head of a column, which says what it is to whoever points at it."""
    side = "left" if column.name in _LEFT else "right"
    title = passed_words(profile).removesuffix("s") if column.name == "site" else column.title
    words = escape(column.words, quote=True)
    return f'<th style="{HEAD.format(side=side)}" title="{words}">{escape(title).replace(chr(10), "<br>")}</th>'


def _cells(row: Iterable[str], sides: Iterable[str]) -> Iterable[str]:
    for cell, side in zip(row, sides, strict=True):
        yield f'<td style="{CELL.format(side=side)}">{cell}</td>'


def _bars(curve: Sequence[float | None]) -> list[str]:
    """A bar per site, as long as ln D lies above its least value; none where there are not two values to compare."""
    logs = [math.log(value) if value else None for value in curve]
    known = [log for log in logs if log is not None]
    low, high = min(known, default=0.0), max(known, default=0.0)
    if low == high:
        return [""] * len(curve)
    shares = [None if log is None else (log - low) / (high - low) for log in logs]
    return ["" if share is None else _BAR.format(round(3 + (_BAR_WIDTH - 3) * share)) for share in shares]


def _law_line(profile: Profile) -> str:
    """The verdict in color and in words, ρ, half-life and r, then what stands beside r."""
    law = profile.law
    if law.rho is None:
        return _paragraph(law_sentence(law))
    color = _VERDICT_COLORS[law.verdict]
    why = verdict_words(law)[1]
    verdict = (
        f'<strong style="color:{color}">{law_sentence(law)}</strong> <span style="opacity:.8">({escape(why)})</span>'
    )
    lines = " · ".join(_law_numbers(profile)), " · ".join(_beside(profile))
    return f'<div>{verdict}<br>{lines[0]}<br><span style="opacity:.8">{lines[1]}</span></div>'


def _law_numbers(profile: Profile) -> Iterable[str]:
    law, passed = profile.law, passed_words(profile)
    rho, half_life = law_span_words(profile, "rho"), law_span_words(profile, "half_life")
    yield _said(f"ρ {number(law.rho)} {rho}".strip(), f"what each {passed.removesuffix('s')} leaves of D")
    unit = "" if law.half_life is None else f" {passed}"
    yield _said(f"half-life {number(law.half_life, 3)}{unit} {half_life}".strip(), f"{passed} until D has halved")
    yield _said(f"r {correlation(law.r)}", "correlation of ln D with depth: -1 is a straight line")


def _beside(profile: Profile) -> Iterable[str]:
    law = profile.law
    yield _said(f"R² {number(law.r2)}", "share of the variance of ln D that the line explains")
    yield _said(f"greatest residual {number(law.max_residual, 2)}", "in ln D, of the layer farthest from the line")
    yield _said(f"evenness {number(law.imbalance)}", "1: every layer lowers D by the same factor")
    kink = f"kink: {kink_words(law, first=profile.sites[0].index if profile.sites else 0)}"
    yield _said(kink, "whether two slopes describe D better than one")
    for name, other in profile.other_readings.items():
        words = f"reading {name}: ρ {number(other.law.rho)}, r {correlation(other.law.r)}"
        yield _said(words, "the law of the same network and samples in another reading")
    if "rho" in law.intervals:
        yield escape(f"intervals {interval_words(law.intervals['rho'])}")


def _summary(profile: Profile) -> Iterable[str]:
    yield from (f"{label}: {words}" for label, words in depth_words(profile))
    if parts := accuracy_words(profile):
        yield f"Accuracy: {', '.join(parts)}"
    if profile.classifier is not None:
        rows = " · ".join(f"{label} {words}" for label, words in classifier_rows(profile.classifier))
        yield f"Classifier {one_line(profile.classifier.name)}: {rows}"


def _said(text: str, meaning: str) -> str:
    """A text that says what it means to whoever points at it."""
    return f'<span title="{escape(meaning, quote=True)}">{escape(text)}</span>'


def _marked(text: str) -> str:
    """Escaped text in which `backticks` have become code."""
    return re.sub(r"`([^`]+)`", lambda match: _CODE.format(match[1]), escape(one_line(text)))


def _paragraph(text: str) -> str:
    return f"<div>{escape(text)}</div>"


def history_html(history: History) -> str:
    """Findings and the law over the epochs; names from the model are text in it, never markup."""
    rows = law_rows(history)[-MOST_ROWS:]
    shown = [name for name in _HISTORY_COLUMNS if any(row.get(name) is not None for row in rows)]
    cells = [
        [str(row[history.unit]), *(_history_cell(row.get(name)) for name in shown)]
        for row in rows
    ]  # fmt: skip
    table = table_html([history.unit, *(name.replace("_", " ") for name in shown)], cells) if rows else ""
    return (
        f'<div class="equisep-history"><div>{escape(repr(history))}</div>{findings_html(history.findings)}{table}</div>'
    )


def _history_cell(value: float | str | None) -> str:
    return "" if value is None else value if isinstance(value, str) else short(value)
