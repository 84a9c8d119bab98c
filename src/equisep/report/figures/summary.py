"""What was run of a figure, summed up in records that tables, pages and JSON share: claims, series, the paper's numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from equisep.figures.cell import Training, trainings
from equisep.figures.evidence import Evidence, SeriesEvidence
from equisep.figures.figure import Figure, Printed
from equisep.figures.judge import LEVEL, WORDS, ClaimVerdicts, Part, Verdict, judge_readings
from equisep.figures.papers import CLASS_NAMES, DATA_NAMES, STAND_INS, is_part
from equisep.figures.papers.galanti2022_bound import Estimate, estimates
from equisep.figures.quantities import span_of, standard_quantities
from equisep.figures.rules import quantities_of
from equisep.law import seed_interval
from equisep.report.figures.readings import reading_notes
from equisep.results import Interval

_FEW_SERIES = 3  # that a note names
LIBRARIES = ("equisep", "torch", "numpy", "python")


@dataclass(frozen=True, slots=True)
class SeriesSummary:
    """One series: the chosen rate, means over seeds of the quantities that every series shows and of those claimed.

    `r` and `r_eval` (read in eval reading) are of each seed; `r_optimistic` lets each seed choose its rate.
    """

    name: str
    label: str
    rate: float | None
    rates_tried: tuple[float, ...]
    n: int
    diverged: int
    means: Mapping[str, float | None]
    r: tuple[float, ...]
    r_interval: Interval | None
    r_eval: tuple[float, ...]
    r_optimistic: float | None

    def number(self, name: str) -> float | None:
        """A number of the series by the name of its column."""
        if name in self.means:
            return self.means[name]
        own = {"rate": self.rate, "n": self.n, "r_eval": mean_of(self.r_eval), "r_optimistic": self.r_optimistic}
        return own[name]


@dataclass(frozen=True, slots=True)
class PrintedSummary:
    """A number that the paper prints, and ours: the mean over seeds at the chosen rate."""

    printed: Printed
    ours: float | None
    n: int
    interval: Interval | None


@dataclass(frozen=True, slots=True)
class Made:
    """Which devices, versions and commits made the numbers (several where cells differ), whether TF32 was allowed, seconds."""

    device: tuple[str, ...]
    versions: Mapping[str, tuple[str, ...]]
    commit: tuple[str, ...]
    tf32: bool
    wall_s: float


@dataclass(frozen=True, slots=True)
class Summary:
    """Everything that `equisep figures show` tells of a figure; `recorded` where it is of the committed record."""

    evidence: Evidence
    claims: tuple[ClaimVerdicts, ...]
    recorded: bool
    series: tuple[SeriesSummary, ...]
    printed: tuple[PrintedSummary, ...]
    estimates: tuple[Estimate, ...]
    notes: tuple[str, ...]
    made: Made

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """One for each claim: in the paper's reading, where it was run."""
        return tuple(each.main for each in self.claims)

    @property
    def figure(self) -> Figure:
        """What was run."""
        return self.evidence.figure

    @property
    def state(self) -> str:
        """See `state_of`."""
        return state_of(self.evidence, recorded=self.recorded)

    @property
    def counts(self) -> dict[str, int]:
        """How the claims fared."""
        return counts_of(self.verdicts)

    @property
    def claimed(self) -> tuple[str, ...]:
        """The quantities that the claims are of, each once."""
        return tuple(dict.fromkeys(text for claim in self.figure.claims for text in quantities_of(claim)))


def _notes_of(evidence: Evidence) -> list[str]:
    """What outcomes say, each once: seeds may say the same; a note of few series names them."""
    by_note: dict[str, dict[str, None]] = {}
    for name, found in evidence.series.items():
        for note in (note for entry in found.chosen.values() for note in entry.outcome.notes):
            by_note.setdefault(note, {})[name] = None
    few = [len(names) <= min(_FEW_SERIES, len(evidence.series) - 1) for names in by_note.values()]
    return [
        f"{', '.join(names)}: {note[:1].lower()}{note[1:]}" if own else note
        for (note, names), own in zip(by_note.items(), few, strict=True)
    ]


def drawn_from(evidence: Evidence) -> dict[str, str]:
    """The paper's data set → the part of it that was at hand, where every training draws as many samples as the figure asks.

    That is no other training set than the paper's, as all of the part would be: it stands in for none.
    """
    return {
        wanted: used
        for wanted, (used, *others) in evidence.stand_ins.items()
        if not others and is_part(used, wanted) and not any(cell.takes_all for _, cell in _trained_on(evidence, used))
    }


def _trained_on(evidence: Evidence, data: str) -> list[tuple[str, Training]]:
    """Every training on a data set, with the name of its series."""
    return [
        (name, cell)
        for name, found in evidence.series.items()
        for cell in trainings(entry.cell for entry in found.entries)
        if cell.data == data
    ]


def _drawn_notes(evidence: Evidence) -> list[str]:
    """A sentence for each part of a data set that samples were drawn from."""
    notes = []
    for wanted, used in drawn_from(evidence).items():
        own = _trained_on(evidence, used)
        some = f" in {', '.join(dict.fromkeys(name for name, _ in own))}" if _trained_on(evidence, wanted) else ""
        counts = {_sample_count(cell) for _, cell in own}
        many = f"{min(counts):,} images" if len(counts) == 1 else "images"
        tested = "" if any(cell.test_per_class for _, cell in own) else ", and is tested on the latter"
        name = DATA_NAMES[wanted]
        notes.append(f"Each network on {name}{some} trains on {many} drawn from {used}, {STAND_INS[used]}{tested}.")
    return notes


def _sample_count(cell: Training) -> int:
    """How many samples a training draws."""
    if cell.sizes is not None:
        return sum(cell.sizes)
    return (cell.per_class or 0) * len(cell.classes or CLASS_NAMES[cell.data])


def summarize(
    evidence: Evidence,
    verdicts: Sequence[Verdict],
    *,
    recorded: bool = False,
    claims: tuple[ClaimVerdicts, ...] | None = None,
) -> Summary:
    """Sum up what was run; `claims` are the verdicts in every reading, which are judged where they are not given."""
    notes = (*evidence.figure.notes, *_drawn_notes(evidence), *reading_notes(evidence), *_notes_of(evidence))
    claimed = (text for claim in evidence.figure.claims for text in quantities_of(claim))
    names = tuple(dict.fromkeys((*(entry.name for entry in standard_quantities()), *claimed)))
    return Summary(
        evidence=evidence,
        claims=_claims(evidence, verdicts) if claims is None else claims,
        recorded=recorded,
        series=tuple(_series(found, names) for found in evidence.series.values()),
        printed=tuple(_printed(evidence, printed) for printed in evidence.figure.printed),
        estimates=estimates(evidence),
        notes=tuple(dict.fromkeys(notes)),
        made=_made(evidence),
    )


def _claims(evidence: Evidence, verdicts: Sequence[Verdict]) -> tuple[ClaimVerdicts, ...]:
    """The verdicts in every reading where the figure is judged in several; else those given."""
    if evidence.figure.readings and verdicts:
        return judge_readings(evidence)
    return tuple(ClaimVerdicts(verdict.claim, (verdict,)) for verdict in verdicts)


def state_of(evidence: Evidence | None, *, recorded: bool = False) -> str:
    """`not run`, `partly run (a of b cells)`, `run`, or `recorded` where the evidence is the committed record's."""
    if evidence is None or not evidence.done:
        return "not run"
    if evidence.done < evidence.planned:
        return f"partly run ({evidence.done} of {evidence.planned} cells)"
    return "recorded" if recorded else "run"


def counts_of(verdicts: Sequence[Verdict]) -> dict[str, int]:
    """How many claims have each verdict."""
    return {word: sum(verdict.verdict == word for verdict in verdicts) for word in WORDS}


def mean_of(values: Sequence[float]) -> float | None:
    """None of no values."""
    return float(np.mean(values)) if values else None


def _series(found: SeriesEvidence, names: Sequence[str]) -> SeriesSummary:
    rates = sorted({cell.rate for cell in trainings(entry.cell for entry in found.entries)})
    r = tuple(found.values("r").values())
    return SeriesSummary(
        name=found.series.name,
        label=found.series.label or found.series.name,
        rate=found.rate if rates else None,
        rates_tried=tuple(rates),
        n=len(found.chosen),
        diverged=sum(entry.outcome.diverged is not None for entry in found.chosen.values()),
        means={name: mean_of([*found.values(name).values()]) for name in names},
        r=r,
        r_interval=_interval(r, "r"),
        r_eval=tuple(found.values("r@reading=eval").values()),
        r_optimistic=mean_of([*found.optimistic("r").values()]),
    )


def _printed(evidence: Evidence, printed: Printed) -> PrintedSummary:
    named = evidence.figure.named(printed.series)
    values = [own for series in named for own in evidence.series[series.name].values(printed.quantity).values()]
    return PrintedSummary(printed, mean_of(values), len(values), _interval(values, printed.quantity))


def _interval(values: Sequence[float], quantity: str) -> Interval | None:
    return seed_interval(values, LEVEL, within=span_of(quantity)) if len(values) > 1 else None


def _made(evidence: Evidence) -> Made:
    entries = [entry for found in evidence.series.values() for entry in found.entries]
    made = [entry.provenance for entry in entries]

    def distinct(name: str) -> tuple[str, ...]:
        return tuple(sorted({str(each[name]) for each in made if each.get(name) is not None}))

    return Made(
        device=distinct("device"),
        versions={name: distinct(name) for name in LIBRARIES},
        commit=distinct("commit"),
        tf32=any(cell.tf32 for cell in trainings(entry.cell for entry in entries)),
        wall_s=round(sum(float(each.get("wall_s") or 0.0) for each in made), 1),
    )


def figure_json(evidence: Evidence, verdicts: Sequence[Verdict], *, recorded: bool = False) -> dict[str, Any]:
    """Everything that `equisep figures show` knows of a figure, as plain JSON types."""
    summary, figure = summarize(evidence, verdicts, recorded=recorded), evidence.figure
    made = summary.made
    return {
        "id": figure.id,
        "title": figure.title,
        "source": figure.source,
        "cite": figure.cite,
        "state": summary.state,
        "scale": evidence.scale,
        "cells": {"run": evidence.done, "planned": evidence.planned},
        "stand_ins": {wanted: list(used) for wanted, used in evidence.stand_ins.items()},
        "counts": summary.counts,
        "claims": [_claim_json(each) for each in summary.claims],
        "series": [_series_json(row) for row in summary.series],
        "printed": [_printed_json(row) for row in summary.printed],
        "estimates": [_estimate_json(row) for row in summary.estimates],
        "notes": list(summary.notes),
        "provenance": {
            "device": list(made.device),
            **{name: list(versions) for name, versions in made.versions.items()},
            "commit": list(made.commit),
            "tf32": made.tf32,
            "wall_s": made.wall_s,
        },
    }


def _estimate_json(row: Estimate) -> dict[str, Any]:
    own = (
        {} if row.own is None else {f"own_{name}": getattr(row.own, name) for name in ("probability", "value", "upper")}
    )
    return {"depth": row.depth, **asdict(row.drawn), **own, "error": row.error}


def _claim_json(each: ClaimVerdicts) -> dict[str, Any]:
    claim, verdict = each.claim, each.main
    return {
        "claim": claim.text,
        "rule": claim.rule,
        "quantity": claim.quantity,
        "of": list(claim.of),
        "quote": claim.quote,
        "source": claim.source,
        "reading": verdict.reading or None,
        "exact": claim.exact,
        "verdict": verdict.verdict,
        "held": verdict.held,
        "ours": verdict.ours,
        "paper": verdict.printed,
        "value": claim.value,
        "n": verdict.n,
        "interval": _ends(verdict.interval),
        "reason": verdict.reason,
        "standing": each.standing,
        "readings": {name: _reading_json(own) for name, own in each.by_reading.items()},
        "parts": [_part_json(part) for part in verdict.parts],
    }


def _reading_json(verdict: Verdict) -> dict[str, Any]:
    return {
        "verdict": verdict.verdict,
        "ours": verdict.ours,
        "n": verdict.n,
        "interval": _ends(verdict.interval),
        "reason": verdict.reason,
    }


def _part_json(part: Part) -> dict[str, Any]:
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
        "unfit": part.unfit,
        "accuracy": part.accuracy,
        "rates": dict(part.rates),
    }


def _series_json(row: SeriesSummary) -> dict[str, Any]:
    return {
        "series": row.name,
        "label": row.label,
        "rate": row.rate,
        "rates_tried": list(row.rates_tried),
        "n": row.n,
        "diverged": row.diverged,
        **row.means,
        "r_interval": _ends(row.r_interval),
        "r_eval": mean_of(row.r_eval),
        "r_by_seed": list(row.r),
        "r_eval_by_seed": list(row.r_eval),
        "r_optimistic": row.r_optimistic,
    }


def _printed_json(row: PrintedSummary) -> dict[str, Any]:
    return {
        "series": row.printed.series,
        "quantity": row.printed.quantity,
        "paper": row.printed.value,
        "ours": row.ours,
        "n": row.n,
        "interval": _ends(row.interval),
        "place": row.printed.place,
    }


def _ends(interval: Interval | None) -> list[float] | None:
    return None if interval is None else [interval.low, interval.high]
