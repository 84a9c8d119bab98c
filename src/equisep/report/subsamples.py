"""D and its law against the number of samples, as a table in the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from equisep.report.formatting import Glyphs, correlation, limits, number, verdict_words
from equisep.report.tables import plain_table
from equisep.report.terminal import View
from equisep.results import Profile

_WORDS = (
    "D of nested parts of the data. Where it rises with n, noise of the class means keeps it down: compare the corrected "
    "numbers, which estimate D of the population, or read more samples."
)


def render_subsamples(profiles: Sequence[Profile]) -> RenderableType:
    """One line per number of samples: first and last D, ρ and r, plain and corrected."""

    def build(glyphs: Glyphs, width: int) -> RenderableType:
        titles = ["n", "D\nfirst", "D\nlast", glyphs.rho, "r", "verdict", f"corrected {glyphs.rho}", "layers\ntold"]
        rows = [_cells(profile, glyphs) for profile in profiles]
        return Group(
            plain_table(titles, rows, glyphs, left=("verdict", titles[6]), fold=("verdict",)), Text(_WORDS, style="dim")
        )

    return View(build)


def _cells(profile: Profile, glyphs: Glyphs) -> list[str]:
    law, beyond, missing = profile.law, profile.laws.get("corrected"), glyphs.missing
    told = sum(site.corrected is not None and site.corrected.value is not None for site in profile.sites)
    first, last = (number(profile.sites[index].fuzziness, 3, missing=missing) for index in (0, -1))
    other = missing
    if beyond is not None and beyond.rho is not None:
        other = f"{number(beyond.rho, 3)}{limits(beyond.intervals.get('rho'))}"
    return [
        str(sum(profile.counts)), first, last, number(law.rho, 3, missing=missing), correlation(law.r, missing=missing),
        verdict_words(law)[0], other, f"{told}/{len(profile.sites)}",
    ]  # fmt: skip


def subsample_record(profile: Profile) -> dict[str, Any]:
    """The same as plain JSON types."""
    beyond = profile.laws.get("corrected")
    span = None if beyond is None else beyond.intervals.get("rho")
    return {
        "n": sum(profile.counts),
        "fuzziness": list(profile.curve()),
        "chance": list(profile.curve("null")),
        "corrected": [None if site.corrected is None else site.corrected.value for site in profile.sites],
        "rho": profile.law.rho,
        "r": profile.law.r,
        "corrected_rho": None if beyond is None else beyond.rho,
        "corrected_rho_interval": None if span is None else [span.low, span.high],
    }
