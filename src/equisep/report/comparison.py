"""The tables that set two laws or two profiles side by side in the terminal (rich)."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Group, RenderableType
from rich.text import Text

from equisep.compare import Difference, LawDifference, ProfileDifference, Ratio, SiteDifference
from equisep.report.formatting import (
    Glyphs,
    interval_words,
    limits,
    number,
    one_line,
    percent,
    shortened,
    shortened_names,
)
from equisep.report.tables import plain_table, room_beside
from equisep.report.terminal import View, notes_block

_CLEAR = {True: ("clear", "bold green"), False: ("unclear", "yellow"), None: ("", "")}
_PAIRED = (
    "They are for all that such samples are drawn from, where the networks were not trained on these; of these samples every "
    "difference is exact. D of few samples lies too low: intervals are widened by what the folds tell of that, and left out "
    "where it is much."
)
_LEAST_NAME = 8
_LEAST_SETTING = 8


def render_comparison(
    difference: ProfileDifference | LawDifference, *, beside: tuple[str, str] = ("", "")
) -> RenderableType:
    """What differs between two profiles or laws, with intervals; `beside` is a remark on each profile."""
    if isinstance(difference, LawDifference):
        return View(lambda glyphs, width: Group(law_comparison(difference, glyphs), *notes_block(difference.notes)))
    notes = (*difference.notes, *difference.law.notes)
    return View(
        lambda glyphs, width: Group(*profile_comparison(difference, glyphs, width, beside=beside), *notes_block(notes))
    )


def law_comparison(difference: LawDifference, glyphs: Glyphs) -> Group:
    """ρ, half-life, r and evenness of two laws, the ratio of the last D, and whether the intervals tell them apart."""
    parts = {
        glyphs.rho: difference.rho,
        "half-life": difference.half_life,
        "r": difference.r,
        "evenness": difference.imbalance,
    }
    rows = [_difference_row(label, part, glyphs) for label, part in parts.items()]
    rows.append(_ratio_row("last D, b / a", difference.last, glyphs))
    titles = ("law", "a", "b", f"b {glyphs.minus} a", "interval", "difference")
    table = plain_table(titles, rows, glyphs, left=("law", "interval", "difference"))
    known = [part.interval for part in parts.values() if part.interval is not None]
    known += [] if difference.last.interval is None else [difference.last.interval]
    if not known:
        return Group(table)
    words = f"Intervals {interval_words(known[0])}; clear: the interval does not hold zero change."
    if known[0].kind == "paired":
        words += f" {_PAIRED}"
    return Group(table, Text(words, style="dim"))


def profile_comparison(
    difference: ProfileDifference, glyphs: Glyphs, width: int, *, beside: tuple[str, str] = ("", "")
) -> Iterable[RenderableType]:
    """The laws, depths, accuracies and sites of two profiles, and the settings that differ; `beside` their names, a remark."""
    models = (difference.model_a, difference.model_b)
    for letter, model, remark in zip("ab", models, beside, strict=True):
        more = (f" ({one_line(remark)})", "dim") if remark else ""
        yield Text.assemble((f"{letter}  ", "bold"), one_line(model), more)
    yield law_comparison(difference.law, glyphs)
    yield _whole_table(difference, glyphs)
    if difference.sites:
        yield _site_table(difference.sites, glyphs, width)
    if difference.settings:
        room = max(_LEAST_SETTING, (width - max(len(entry.name) for entry in difference.settings) - 8) // 2)
        rows = [
            [entry.name, *(shortened(one_line(str(part)), room, glyphs.ellipsis) for part in (entry.a, entry.b))]
            for entry in difference.settings
        ]
        yield plain_table(("setting", "a", "b"), rows, glyphs, left=("setting", "a", "b"))


def _whole_table(difference: ProfileDifference, glyphs: Glyphs) -> RenderableType:
    """What is one number a profile: effective depth and accuracies."""
    depth = difference.effective_depth
    sites = [glyphs.missing if part is None else f"{part:g}" for part in (depth.a, depth.b)]
    rows = [["effective depth", *sites, _signed(depth.value, glyphs, "g")]]
    shares = {"accuracy train %": difference.accuracy_train, "accuracy test %": difference.accuracy_test}
    for label, part in shares.items():
        if part.a is not None or part.b is not None:
            both = [percent(share, missing=glyphs.missing) for share in (part.a, part.b)]
            rows.append([label, *both, _points(part, glyphs)])
    return plain_table(("network", "a", "b", f"b {glyphs.minus} a"), rows, glyphs, left=("network",))


def _site_table(sites: tuple[SiteDifference, ...], glyphs: Glyphs, width: int) -> RenderableType:
    missing, step = glyphs.missing, f"b {glyphs.minus} a"
    ratios = [site.fuzziness for site in sites]
    styles = ["bold" if ratio.excludes_one else "" for ratio in ratios]
    values = [number(ratio.value, 3, missing=missing) for ratio in ratios]
    columns: dict[str, list[str | Text]] = {
        "layer": [str(site.index_a) for site in sites],
        "D of a": [number(ratio.a, missing=missing) for ratio in ratios],
        "D of b": [number(ratio.b, missing=missing) for ratio in ratios],
        "b / a": [Text(value, style=style) for value, style in zip(values, styles, strict=True)],
        "interval": [limits(ratio.interval).strip() for ratio in ratios],
        f"NCC %\n{step}": [_points(site.ncc_train, glyphs) for site in sites],
    }
    if any(site.ncc_test.value is not None for site in sites):
        columns[f"test\n{step}"] = [_points(site.ncc_test, glyphs) for site in sites]
    pairs = [dict.fromkeys((site.name_a, site.name_b)) for site in sites]  # one name where both are equal
    names = [one_line(" / ".join(pair)) for pair in pairs]
    room = max(_LEAST_NAME, room_beside(columns, width))
    columns["name"] = [*shortened_names(names, room, glyphs.ellipsis)]
    titles = ["layer", "name", *(title for title in columns if title not in ("layer", "name"))]
    rows = zip(*(columns[title] for title in titles), strict=True)
    return plain_table(titles, rows, glyphs, left=("name", "interval"))


def _difference_row(label: str, part: Difference, glyphs: Glyphs) -> list[str | Text]:
    both = [number(value, missing=glyphs.missing) for value in (part.a, part.b)]
    step = _signed(part.value, glyphs)
    return [label, *both, step, limits(part.interval).strip(), Text(*_CLEAR[part.excludes_zero])]


def _ratio_row(label: str, part: Ratio, glyphs: Glyphs) -> list[str | Text]:
    both = [number(value, missing=glyphs.missing) for value in (part.a, part.b)]
    ratio = number(part.value, 3, missing=glyphs.missing)
    return [label, *both, ratio, limits(part.interval).strip(), Text(*_CLEAR[part.excludes_one])]


def _points(part: Difference, glyphs: Glyphs) -> str:
    """A difference of two shares in percentage points."""
    return _signed(None if part.value is None else 100 * part.value, glyphs, ".1f")


def _signed(value: float | None, glyphs: Glyphs, spec: str = "") -> str:
    if value is None:
        return glyphs.missing
    text = format(value, spec) if spec else number(value, 3)
    return f"+{text}" if value > 0 else text
