"""Tables that set laws and profiles side by side in the terminal (rich): two, many in groups, nested parts of one data set."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from equisep.compare import (
    Difference,
    LawDifference,
    ManyProfiles,
    ProfileDifference,
    ProfileGroup,
    Ratio,
    SiteDifference,
)
from equisep.report.formatting import (
    Glyphs,
    correlation,
    interval_words,
    limits,
    number,
    one_line,
    percent,
    shortened,
    shortened_names,
    verdict_words,
)
from equisep.report.tables import plain_table, room_beside
from equisep.report.terminal import View, notes_block
from equisep.results import Profile

_STYLES = {"clear": "bold green", "unclear": "yellow"}
_PAIRED = (
    "They are for all that such samples are drawn from, where the networks were not trained on these; of these samples every "
    "difference is exact. D of few samples lies too low: intervals are widened by what the folds tell of that, and left out "
    "where it is much."
)
_LEAST_NAME = 8
_LEAST_SETTING = 8
_MOST_NAME = 28
_FIRST_TO_GO = ("train %", "depth", "half-life", "test %", "verdict")
_SUBSAMPLES = (
    "D of nested parts of the data. Where it rises with n, noise of the class means keeps it down: compare the corrected "
    "numbers, which estimate D of the population, or read more samples."
)


def render_comparison(
    difference: ProfileDifference | LawDifference, *, beside: tuple[str, str] = ("", "")
) -> RenderableType:
    """What differs between two profiles or laws, with intervals; `beside` is a remark on each profile."""
    if isinstance(difference, LawDifference):
        return View(
            lambda glyphs, width: Group(law_comparison(difference, glyphs), *notes_block(difference.notes, glyphs))
        )
    notes = (*difference.notes, *difference.law.notes)
    return View(
        lambda glyphs, width: Group(
            *profile_comparison(difference, glyphs, width, beside=beside), *notes_block(notes, glyphs)
        )
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
    return [label, *both, step, limits(part.interval).strip(), _told_apart(part)]


def _ratio_row(label: str, part: Ratio, glyphs: Glyphs) -> list[str | Text]:
    both = [number(value, missing=glyphs.missing) for value in (part.a, part.b)]
    ratio = number(part.value, 3, missing=glyphs.missing)
    return [label, *both, ratio, limits(part.interval).strip(), _told_apart(part)]


def _told_apart(part: Difference | Ratio) -> Text:
    return Text(part.told_apart, style=_STYLES.get(part.told_apart, ""))


def _points(part: Difference, glyphs: Glyphs) -> str:
    """A difference of two shares in percentage points."""
    return _signed(None if part.value is None else 100 * part.value, glyphs, ".1f")


def _signed(value: float | None, glyphs: Glyphs, spec: str = "") -> str:
    if value is None:
        return glyphs.missing
    text = format(value, spec) if spec else number(value, 3)
    return f"+{text}" if value > 0 else text


def render_groups(many: ManyProfiles) -> RenderableType:
    """Every profile, the means of every group of seeds, and D at every site."""
    return View(lambda glyphs, width: Group(*_blocks(many, glyphs, width), *notes_block(many.notes, glyphs)))


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
    columns = {_short(group.name, glyphs): _group_cells(group, glyphs) for group in many.groups}
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


def _group_cells(group: ProfileGroup, glyphs: Glyphs) -> dict[int, str]:
    return {site.index: number(site.fuzziness, missing=glyphs.missing) + limits(site.band) for site in group.sites}


def _short(name: str, glyphs: Glyphs) -> str:
    return shortened(one_line(name), _MOST_NAME, glyphs.ellipsis)


def render_subsamples(profiles: Sequence[Profile]) -> RenderableType:
    """One line per number of samples: first and last D, ρ and r, plain and corrected."""

    def build(glyphs: Glyphs, width: int) -> RenderableType:
        titles = ["n", "D\nfirst", "D\nlast", glyphs.rho, "r", "verdict", f"corrected {glyphs.rho}", "layers\ntold"]
        rows = [_subsample_cells(profile, glyphs) for profile in profiles]
        return Group(
            plain_table(titles, rows, glyphs, left=("verdict", titles[6]), fold=("verdict",)),
            Text(_SUBSAMPLES, style="dim"),
        )

    return View(build)


def _subsample_cells(profile: Profile, glyphs: Glyphs) -> list[str]:
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
