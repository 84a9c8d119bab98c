"""A profile as one self-contained piece of HTML for notebooks: everything escaped, no script, light and dark themes."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from equisep.report.formatting import (
    correlation,
    data_words,
    interval_words,
    limits,
    number,
    one_line,
    percent,
    reading_words,
    slopes_words,
)
from equisep.results import LawFit, Profile

# Colors are the theme's own, only fainter or stronger, so that the table is readable on any background.
_TABLE = "border-collapse:collapse;font-variant-numeric:tabular-nums;margin:.5em 0;color:inherit;background:none"
_CELL = "padding:.15em .7em;text-align:{side};border:0;background:none;color:inherit"
_HEAD = _CELL + ";border-bottom:1px solid currentColor;font-weight:600;vertical-align:bottom"
_VERDICT_COLORS = {"law": "#2e8b57", "between": "#b8860b", "no law": "#cd5c5c", "undetermined": "#808080"}


def profile_html(profile: Profile) -> str:
    """The profile's table and law as HTML; names from the model are text in it, never markup."""
    lines = [_paragraph(line) for line in _summary(profile)]
    notes = dict.fromkeys((*profile.notes, *profile.law.notes))
    if notes:
        items = "".join(f"<li>{escape(one_line(str(note)))}</li>" for note in notes)
        lines.append(f'<ul style="margin:.3em 0;padding-left:1.4em;opacity:.8">{items}</ul>')
    model = f"<strong>{escape(one_line(profile.model))}</strong>"
    words = escape(f"{data_words(profile)}; {reading_words(profile)}")
    head = f'<div>{model}<br><span style="opacity:.7">{words}</span></div>'
    return f'<div class="equisep-profile">{head}{_site_table(profile)}{_law_line(profile.law)}{"".join(lines)}</div>'


def _site_table(profile: Profile) -> str:
    columns = {title: cells for title, cells in _columns(profile).items() if any(cell != "–" for cell in cells)}
    sides = {title: "left" if title == "name" else "right" for title in columns}
    titles = "".join(f'<th style="{_HEAD.format(side=sides[title])}">{escape(title)}</th>' for title in columns)
    rows = zip(*columns.values(), strict=True)
    body = "".join(f"<tr>{''.join(_cells(row, sides.values()))}</tr>" for row in rows)
    return f'<table style="{_TABLE}"><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>'


def _cells(row: Iterable[str], sides: Iterable[str]) -> Iterable[str]:
    for cell, side in zip(row, sides, strict=True):
        yield f'<td style="{_CELL.format(side=side)}">{escape(cell)}</td>'


def _columns(profile: Profile) -> dict[str, list[str]]:
    sites, law = profile.sites, profile.law
    loads = (None, *law.loads) if len(law.loads) == len(sites) - 1 else (None,) * len(sites)
    return {
        "site": [str(site.index) for site in sites],
        "name": [one_line(site.name) for site in sites],
        "dim": [str(site.dim) for site in sites],
        "D": [number(site.fuzziness) for site in sites],
        "D interval": [limits(site.fuzziness_interval).strip() or "–" for site in sites],
        "load": ["–" if load is None else f"{load:.2f}" for load in loads],
        "D test": [number(site.fuzziness_test) for site in sites],
        "NCC % train": [percent(site.ncc_train) for site in sites],
        "NCC % test": [percent(site.ncc_test) for site in sites],
        "CDNV": [number(site.cdnv, 3) for site in sites],
        "NC1": [number(site.nc1, 3) for site in sites],
        "null": [number(site.null, 3) for site in sites],
    }


def _law_line(law: LawFit) -> str:
    """ρ, half-life and r, then what stands beside r; the verdict in color and in words."""
    if law.rho is None:
        return _paragraph("Law: not fitted")
    known = law.intervals
    color = _VERDICT_COLORS[law.verdict]
    verdict = f'<strong style="color:{color}">{escape(law.verdict)}</strong>'
    numbers = (
        f"ρ {number(law.rho)}{limits(known.get('rho'))} · half-life {number(law.half_life, 3)}"
        f"{limits(known.get('half_life'))} · r {correlation(law.r)}{limits(known.get('r'), 4)}"
    )
    beside = (
        f"R² {number(law.r2)} · greatest residual {number(law.max_residual, 2)} · "
        f"imbalance {number(law.imbalance)} · two slopes: {slopes_words(law)}"
    )
    if "rho" in known:
        beside += f" · intervals {interval_words(known['rho'])}"
    return f'<div>{verdict}: {escape(numbers)}<br><span style="opacity:.8">{escape(beside)}</span></div>'


def _summary(profile: Profile) -> Iterable[str]:
    if any(site.ncc_train is not None for site in profile.sites):
        depth = profile.effective_depth
        yield f"Effective depth: {'none' if depth is None else f'site {depth}'}"
    shares = {"train": profile.accuracy_train, "test": profile.accuracy_test}
    parts = [f"{percent(share)} % {name}" for name, share in shares.items() if share is not None]
    if parts:
        yield f"Accuracy: {', '.join(parts)}"
    if profile.classifier is not None:
        reading = profile.classifier
        yield (
            f"Classifier {one_line(reading.name)}: NC2 norms {number(reading.norm_spread, 3)}, angles "
            f"{number(reading.angle_spread, 3)}, NC3 {number(reading.nc3, 3)}, NC4 {number(reading.nc4, 3)}"
        )


def _paragraph(text: str) -> str:
    return f"<div>{escape(text)}</div>"
