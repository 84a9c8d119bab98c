"""Many profiles in the terminal (rich): a line each, and the groups of seeds with D over depth."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.text import Text

from equisep.compare import ManyProfiles, ProfileGroup
from equisep.report.formatting import Glyphs, correlation, interval_words, limits, number, one_line, percent, shortened
from equisep.report.tables import plain_table, room_beside
from equisep.report.terminal import View, notes_block

_MOST_NAME = 28
_FIRST_TO_GO = ("train %", "depth", "half-life", "test %", "verdict")


def render_groups(many: ManyProfiles) -> RenderableType:
    """Every profile, the means of every group of seeds, and D at every site."""
    return View(lambda glyphs, width: Group(*_blocks(many, glyphs, width), *notes_block(many.notes)))


def _blocks(many: ManyProfiles, glyphs: Glyphs, width: int) -> Iterator[RenderableType]:
    yield _profile_table(many, glyphs, width)
    seeds = [group for group in many.groups if len(group.members) > 1]
    if seeds:
        yield _law_table(many, glyphs, width)
    yield from _site_tables(many, glyphs, width)
    if seeds:
        known = [interval for group in seeds for interval in group.law.intervals.values()]
        level = interval_words(known[0]).partition(",")[0] if known else "95 %"
        words = (
            f"Profiles of one network are taken as its seeds. D: geometric mean over them, with the {level} t-interval of the "
            "mean of ln D, which tells how far other seeds would move it."
        )
        yield Text(words, style="dim")


def _profile_table(many: ManyProfiles, glyphs: Glyphs, width: int) -> RenderableType:
    """A line per profile; in a narrow terminal the columns that say least are left out."""
    missing, rows = glyphs.missing, many.profiles
    columns: dict[str, list[str]] = {
        "profile": [_short(row.name, glyphs) for row in rows],
        "network": [_short(row.group, glyphs) for row in rows],
        glyphs.rho: [number(row.rho, missing=missing) for row in rows],
        "half-life": [number(row.half_life, missing=missing) for row in rows],
        "r": [correlation(row.r, missing=missing) for row in rows],
        "verdict": [row.verdict for row in rows],
        "last D": [number(row.last, missing=missing) for row in rows],
        "depth": [missing if row.effective_depth is None else str(row.effective_depth) for row in rows],
        "train %": [percent(row.accuracy_train, missing=missing) for row in rows],
        "test %": [percent(row.accuracy_test, missing=missing) for row in rows],
    }
    for title in ("test %", "train %"):
        if all(cell == missing for cell in columns[title]):
            del columns[title]
    for title in _FIRST_TO_GO:
        if room_beside(columns, width) < 0:
            columns.pop(title, None)
    return plain_table(
        list(columns), zip(*columns.values(), strict=True), glyphs, left=("profile", "network", "verdict")
    )


def _law_table(many: ManyProfiles, glyphs: Glyphs, width: int) -> RenderableType:
    """The mean law of every group, with intervals over its seeds."""
    titles = {"rho": f"mean {glyphs.rho}", "half_life": "mean half-life", "r": "mean r"}
    columns: dict[str, list[str]] = {
        "network": [_short(group.name, glyphs) for group in many.groups],
        "seeds": [str(len(group.members)) for group in many.groups],
    }
    for name, title in titles.items():
        values = [getattr(group.law, name) for group in many.groups]
        plain = [
            correlation(value, missing=glyphs.missing) if name == "r" else number(value, 3, missing=glyphs.missing)
            for value in values
        ]
        spans = [limits(group.law.intervals.get(name)) for group in many.groups]
        columns[title] = [value + span for value, span in zip(plain, spans, strict=True)]
    if room_beside(columns, width) < 0:
        del columns[titles["half_life"]]
    left = ("network", *titles.values())
    return plain_table(list(columns), zip(*columns.values(), strict=True), glyphs, left=left)


def _site_tables(many: ManyProfiles, glyphs: Glyphs, width: int) -> Iterator[RenderableType]:
    """D over depth, a column per group; as many columns side by side as there is room for."""
    columns = {_short(group.name, glyphs): _cells(group, glyphs) for group in many.groups}
    depth = max((group.sites[-1].index + 1 for group in many.groups if group.sites), default=0)
    while columns:
        shown: dict[str, dict[int, str]] = {}
        used = len("layer") + 2
        for title in list(columns):
            need = max(len(title) + 2, *(len(cell) for cell in columns[title].values()), 0) + 2
            if shown and used + need > width - 2:
                break
            used += need
            shown[title] = columns.pop(title)
        rows = [[str(index), *(cells.get(index, "") for cells in shown.values())] for index in range(depth)]
        yield plain_table(("layer", *(f"D {title}" for title in shown)), rows, glyphs)


def _cells(group: ProfileGroup, glyphs: Glyphs) -> dict[int, str]:
    return {site.index: number(site.fuzziness, missing=glyphs.missing) + limits(site.band) for site in group.sites}


def _short(name: str, glyphs: Glyphs) -> str:
    return shortened(one_line(name), _MOST_NAME, glyphs.ellipsis)
