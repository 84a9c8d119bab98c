"""A history as rows: one per reading and site, or one per reading with its law, depth and accuracy."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from equisep.law import Emergence
from equisep.peeled.classes import HALF
from equisep.report.columns import frame_values
from equisep.report.formatting import Glyphs, correlation, percent
from equisep.report.formatting import number as digits
from equisep.report.tables import plain_table
from equisep.report.terminal import View, render_findings
from equisep.tracking.history import Entry, History

EMERGED = {"law": "The law", "collapse": "Neural collapse", "minority": "Minority collapse"}
MOST_ROWS = 30  # readings that a terminal shows; of more, as many evenly spread, the last among them


def site_rows(history: History) -> list[dict[str, Any]]:
    """One row per reading and site, with the columns of a profile."""
    values = {number: frame_values(profile) for number, profile in history.profiles().items()}
    return [
        {history.unit: number, **dict(zip(columns, row, strict=True))}
        for number, columns in values.items()
        for row in zip(*columns.values(), strict=True)
    ]


def law_rows(history: History) -> list[dict[str, Any]]:
    """One row per reading, also of those that failed."""
    return [{history.unit: entry.number, **_law_row(entry)} for entry in history.entries]


def _law_row(entry: Entry) -> dict[str, Any]:
    profile = entry.profile
    row: dict[str, Any] = dict.fromkeys(
        ("rho", "half_life", "r", "verdict", "fuzziness_first", "fuzziness_last", "nc1", "cdnv", "ncc_train", "ncc_test",
         "effective_depth", "network_depth", "accuracy_train", "accuracy_test")
    )  # fmt: skip
    if profile is not None:
        law, last = profile.law, profile.sites[-1]
        row |= {
            "rho": law.rho,
            "half_life": law.half_life,
            "r": law.r,
            "verdict": law.verdict,
            "fuzziness_first": profile.sites[0].fuzziness,
            "fuzziness_last": last.fuzziness,
            "nc1": last.nc1,
            "cdnv": last.cdnv,
            "ncc_train": last.ncc_train,
            "ncc_test": last.ncc_test,
            "effective_depth": profile.effective_depth,
            "network_depth": profile.network_depth,
            "accuracy_train": profile.accuracy_train,
            "accuracy_test": profile.accuracy_test,
        }
    return {**row, "minority_cosine": entry.minority_cosine, "seconds": entry.seconds, "failure": entry.failure}


def emergence_words(history: History, emerged: Emergence) -> str:
    """When something emerged, in words; of minority collapse also why it cannot be said."""
    minority = history.header.minority
    if emerged.what == "minority" and not emerged.judged and not minority:
        known = (
            f"no class is a minority ({HALF})" if minority is not None else "the class sizes of the data are not known"
        )
        return f"cannot be said: {known}"
    return emerged.sentence(history.unit)


def damaged_words(history: History) -> str:
    """That lines of the file could not be read."""
    lines = "1 line of the file is" if history.damaged == 1 else f"{history.damaged} lines of the file are"
    return f"{lines} damaged and passed over: readings may be missing."


def render_history(history: History) -> RenderableType:
    """The law over the epochs, when it emerged, and whether the training has settled."""
    return View(lambda glyphs, width: Group(*_blocks(history, glyphs)))


def _blocks(history: History, glyphs: Glyphs) -> Iterable[RenderableType]:
    header, missing = history.header, glyphs.missing
    yield render_findings(history.findings)
    yield Text()
    words = f"{header.model}: {len(history)} readings of {header.samples} samples at {len(header.sites)} sites"
    yield Text(
        words if not header.samples_test else f"{words}, and of {header.samples_test} test samples", style="bold"
    )
    rows = law_rows(history)
    tested = any(row["accuracy_test"] is not None for row in rows)
    titles = [history.unit, glyphs.rho, "r", "verdict", "D last", "NC1 last", "NCC %", "depth", "acc. %"]
    titles += ["acc. %\ntest"] if tested else []
    yield plain_table(
        titles, [_cells(row, history.unit, tested, missing) for row in _some(rows)], glyphs, left=["verdict"]
    )
    failed = [entry for entry in history.entries if entry.failure is not None]
    if failed:
        yield Text(f"{len(failed)} of {len(history)} readings failed; the last: {failed[-1].failure}", style="yellow")
    if history.damaged:
        yield Text(damaged_words(history), style="yellow")
    for what, emerged in history.emergence().items():
        words = emergence_words(history, emerged)
        yield Text.assemble((f"{EMERGED[what]}: ", "bold"), words, ". ", (f"{emerged.rule}.", "dim"))


def _cells(row: dict[str, Any], unit: str, tested: bool, missing: str) -> list[str | Text]:
    cells: list[str | Text] = [
        str(row[unit]),
        digits(row["rho"], 3, missing=missing),
        correlation(row["r"], missing=missing),
        row["verdict"] or missing,
        digits(row["fuzziness_last"], 3, missing=missing),
        digits(row["nc1"], 3, missing=missing),
        percent(row["ncc_train"], missing=missing),
        missing if row["effective_depth"] is None else str(row["effective_depth"]),
        percent(row["accuracy_train"], missing=missing),
    ]
    return [*cells, percent(row["accuracy_test"], missing=missing)] if tested else cells


def _some(rows: Sequence[dict[str, Any]]) -> Sequence[dict[str, Any]]:
    """All rows, or of many some, evenly spread, the first and the last among them."""
    if len(rows) <= MOST_ROWS:
        return rows
    steps = MOST_ROWS - 1
    return [rows[round(step * (len(rows) - 1) / steps)] for step in range(MOST_ROWS)]
