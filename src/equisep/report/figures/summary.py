"""What was run of a figure as rows of plain numbers: claims, series, printed numbers, provenance; tables and JSON share them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from equisep.figures.evidence import Evidence, SeriesEvidence
from equisep.figures.judge import LEVEL, WORDS, Part, Verdict
from equisep.figures.papers.galanti2022 import BOUND
from equisep.figures.papers.galanti2022_bound import estimates
from equisep.figures.quantities import span_of, standard_quantities
from equisep.figures.rules import quantities_of
from equisep.files import encode
from equisep.law import seed_interval
from equisep.results import Interval

LIBRARIES = ("equisep", "torch", "numpy", "python")


def state_of(evidence: Evidence | None, *, recorded: bool = False) -> str:
    """`not run`, `partly run (a of b cells)`, `run`, or `recorded` where the evidence is the committed record's."""
    if evidence is None or not evidence.done:
        return "not run"
    if evidence.done < evidence.planned:
        return f"partly run ({evidence.done} of {evidence.planned} cells)"
    return "recorded" if recorded else "run"


def figure_json(evidence: Evidence, verdicts: Sequence[Verdict], *, recorded: bool = False) -> dict[str, Any]:
    """Everything that `equisep figures show` knows of a figure, as plain JSON types."""
    figure = evidence.figure
    return {
        "id": figure.id,
        "title": figure.title,
        "source": figure.source,
        "cite": figure.cite,
        "state": state_of(evidence, recorded=recorded),
        "scale": evidence.scale,
        "cells": {"run": evidence.done, "planned": evidence.planned},
        "stand_ins": evidence.stand_ins,
        "counts": counts_of(verdicts),
        "claims": [claim_row(verdict) for verdict in verdicts],
        "series": series_rows(evidence),
        "printed": printed_rows(evidence),
        "estimates": estimate_rows(evidence),
        "notes": notes_of(evidence),
        "provenance": provenance_of(evidence),
    }


def counts_of(verdicts: Sequence[Verdict]) -> dict[str, int]:
    """How many claims held, did not, are indicated, were not run."""
    return {word: sum(verdict.verdict == word for verdict in verdicts) for word in WORDS}


def claim_row(verdict: Verdict) -> dict[str, Any]:
    """One claim as plain types."""
    claim = verdict.claim
    return {
        "claim": claim.text,
        "rule": claim.rule,
        "quantity": claim.quantity,
        "of": list(claim.of),
        "place": claim.place,
        "exact": claim.exact,
        "verdict": verdict.verdict,
        "held": verdict.held,
        "ours": verdict.ours,
        "paper": verdict.printed,
        "value": claim.value,
        "n": verdict.n,
        "interval": _ends(verdict.interval),
        "reason": verdict.reason,
        "parts": [_part_row(part) for part in verdict.parts],
    }


def _part_row(part: Part) -> dict[str, Any]:
    return {
        "name": part.name,
        "mean": part.mean,
        "n": part.n,
        "interval": _ends(part.interval),
        "rate": part.rate,
        "verdict": part.verdict,
        "found": part.found or None,
        "beside": dict(part.beside),
        "without_it": part.lost,
        "diverged": part.diverged,
    }


def _ends(interval: Interval | None) -> list[float] | None:
    return None if interval is None else [interval.low, interval.high]


def series_rows(evidence: Evidence) -> list[dict[str, Any]]:
    """One row a series: the chosen rate, the law and what stands beside r, and the numbers that the claims are of."""
    asked = [text for claim in evidence.figure.claims for text in quantities_of(claim)]
    names = tuple(dict.fromkeys((*(entry.name for entry in standard_quantities()), *asked)))
    return [_series_row(found, names) for found in evidence.series.values()]


def _series_row(found: SeriesEvidence, names: Sequence[str]) -> dict[str, Any]:
    rates = sorted({entry.cell.rate for entry in found.entries if entry.cell.kind != "solve"})
    row: dict[str, Any] = {
        "series": found.series.name,
        "label": found.series.label or found.series.name,
        "rate": found.rate if rates else None,
        "rates_tried": rates,
        "n": len(found.chosen),
        "diverged": sum(entry.outcome.diverged is not None for entry in found.chosen.values()),
    }
    row |= {name: _mean(found.values(name)) for name in names}
    spread = found.values("r")
    row["r_interval"] = (
        _ends(seed_interval([*spread.values()], LEVEL, within=span_of("r"))) if len(spread) > 1 else None
    )
    row["r_eval"] = _mean(found.values("r@mode=eval"))
    row["r_by_seed"] = [*spread.values()]
    row["r_eval_by_seed"] = [*found.values("r@mode=eval").values()]
    row["r_optimistic"] = _mean(found.optimistic("r"))
    return row


def printed_rows(evidence: Evidence) -> list[dict[str, Any]]:
    """The numbers that the paper prints, beside ours: the mean over seeds at the chosen rate."""
    return [_printed_row(evidence, row.series, row.quantity, row.value, row.place) for row in evidence.figure.printed]


def _printed_row(evidence: Evidence, pattern: str, name: str, value: float, place: str) -> dict[str, Any]:
    named = evidence.figure.named(pattern)
    values = [own for series in named for own in evidence.series[series.name].values(name).values()]
    interval = seed_interval(values, LEVEL, within=span_of(name)) if len(values) > 1 else None
    return {
        "series": pattern,
        "quantity": name,
        "paper": value,
        "ours": float(np.mean(values)) if values else None,
        "n": len(values),
        "interval": _ends(interval),
        "place": place,
    }


def estimate_rows(evidence: Evidence) -> list[dict[str, Any]]:
    """The comparative bound at each share p, where that is what the figure is about; see `figures.papers.galanti2022_bound`."""
    return [dict(encode(row)) for row in estimates(evidence)] if evidence.figure is BOUND else []


def notes_of(evidence: Evidence) -> list[str]:
    """The figure's notes, and those that the cells brought, each once."""
    entries = [entry for found in evidence.series.values() for entry in found.chosen.values()]
    return list(dict.fromkeys((*evidence.figure.notes, *(note for entry in entries for note in entry.outcome.notes))))


def provenance_of(evidence: Evidence) -> dict[str, Any]:
    """Which devices and versions made the numbers, in what time; a list where cells differ."""
    made = [entry.provenance for found in evidence.series.values() for entry in found.entries]
    row: dict[str, Any] = {name: _distinct(made, name) for name in ("device", *LIBRARIES, "commit")}
    row["tf32"] = any(entry.cell.tf32 for found in evidence.series.values() for entry in found.entries)
    row["wall_s"] = round(sum(float(each.get("wall_s") or 0.0) for each in made), 1)
    return row


def _distinct(made: Sequence[Mapping[str, Any]], name: str) -> list[str]:
    return sorted({str(each[name]) for each in made if each.get(name) is not None})


def _mean(values: Mapping[int, float]) -> float | None:
    return float(np.mean(list(values.values()))) if values else None
