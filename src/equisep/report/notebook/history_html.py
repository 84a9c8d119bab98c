"""A tracked training as HTML for notebooks: what was found, then one row per reading, the last ones of many."""

from __future__ import annotations

from html import escape

from equisep.display import short, table_html
from equisep.report.history_tables import MOST_ROWS, law_rows
from equisep.report.notebook.profile_html import findings_html
from equisep.tracking.history import History

COLUMNS = (
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


def history_html(history: History) -> str:
    """Findings and the law over the epochs; names from the model are text in it, never markup."""
    rows = law_rows(history)[-MOST_ROWS:]
    shown = [name for name in COLUMNS if any(row.get(name) is not None for row in rows)]
    cells = [
        [str(row[history.unit]), *(_cell(row.get(name)) for name in shown)]
        for row in rows
    ]  # fmt: skip
    table = table_html([history.unit, *(name.replace("_", " ") for name in shown)], cells) if rows else ""
    return (
        f'<div class="equisep-history"><div>{escape(repr(history))}</div>{findings_html(history.findings)}{table}</div>'
    )


def _cell(value: float | str | None) -> str:
    return "" if value is None else value if isinstance(value, str) else short(value)
