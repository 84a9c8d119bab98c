"""The page's section that sets several profiles side by side: two with intervals of what differs, more in one table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from equisep.compare import Difference, ProfileDifference, Ratio, compare_many, compare_profiles
from equisep.report.formatting import correlation, interval_words, limits, number, percent, verdict_words
from equisep.report.page.markup import Cell, Head, Section, bullets, folded, marked, paragraph, table
from equisep.report.page.subject import Subject


def comparison_section(subjects: Sequence[Subject]) -> Section:
    """What differs between two profiles or more."""
    body = [_all(subjects)]
    if len(subjects) == 2:
        body.extend(_two(*subjects))
    else:
        notes = compare_many(
            [subject.profile for subject in subjects], names=[subject.label for subject in subjects]
        ).notes
        body.append(bullets((marked(str(note)) for note in notes), "notes"))
    return Section("compare", "Side by side", "".join(body), "Compared")


def _all(subjects: Sequence[Subject]) -> str:
    heads = [
        Head("profile", "profile", "", "text"),
        Head("verdict", "verdict", "", "text"),
        Head("rho", "ρ", "what each layer leaves of D"),
        Head("half_life", "half-life"),
        Head("r", "r", "correlation of ln D with depth"),
        Head("last", "last D"),
        Head("effective_depth", "effective depth"),
        Head("accuracy_train", "train %"),
        Head("accuracy_test", "test %"),
    ]
    rows = []
    for subject in subjects:
        profile, law = subject.profile, subject.profile.law
        last = None if subject.last is None else subject.last.fuzziness
        rows.append(
            [
                Cell(subject.label, subject.label),
                Cell(law.verdict, verdict_words(law)[0]),
                Cell(law.rho, number(law.rho)),
                Cell(law.half_life, number(law.half_life, 3)),
                Cell(law.r, correlation(law.r)),
                Cell(last, number(last)),
                Cell(profile.effective_depth, str(profile.effective_depth)),
                Cell(profile.accuracy_train, percent(profile.accuracy_train)),
                Cell(profile.accuracy_test, percent(profile.accuracy_test)),
            ]
        )
    return table(heads, rows, label="All profiles", sortable=True, csv="profiles.csv")


def _two(a: Subject, b: Subject) -> Iterable[str]:
    difference = compare_profiles(a.profile, b.profile)
    law = difference.law
    parts: dict[str, Difference] = {"ρ": law.rho, "half-life": law.half_life, "r": law.r, "evenness": law.imbalance}
    known = (*(part.interval for part in parts.values()), law.last.interval)
    intervals = [interval for interval in known if interval is not None]
    heads = [
        Head("law", "law", "", "text"), Head("a", a.label), Head("b", b.label), Head("difference", "second less first"),
        Head("interval", "interval", "", "text"), Head("clear", "told apart", "clear: no change lies outside", "text"),
    ]  # fmt: skip
    rows = [_difference(name, part) for name, part in parts.items()]
    rows.append(_ratio("last D, second over first", law.last))
    shown = len(heads) if intervals else len(heads) - 2  # without intervals two columns would be empty
    yield "<h3>What differs</h3>"
    yield table(heads[:shown], [row[:shown] for row in rows], label="Difference of the laws")
    if intervals:
        yield paragraph(f"Intervals {interval_words(intervals[0])}. Clear: the interval leaves out no change.", "aside")
    if difference.sites:
        yield folded(_sites(difference), "D layer by layer, second over first")
    yield bullets((marked(str(note)) for note in difference.notes), "notes")
    if difference.settings:
        names = ", ".join(f"`{entry.name}`" for entry in difference.settings)
        yield paragraph(f"They were read or made with other settings: {names}.", "aside")


def _difference(name: str, part: Difference) -> list[Cell]:
    return [
        Cell(name, name), Cell(part.a, number(part.a)), Cell(part.b, number(part.b)), Cell(part.value, number(part.value, 3)),
        Cell(None, limits(part.interval).strip()), Cell(None, part.told_apart),
    ]  # fmt: skip


def _ratio(name: str, part: Ratio) -> list[Cell]:
    return [
        Cell(name, name), Cell(part.a, number(part.a)), Cell(part.b, number(part.b)),
        Cell(part.value, f"×{number(part.value, 3)}"),
        Cell(None, limits(part.interval).strip()), Cell(None, part.told_apart),
    ]  # fmt: skip


def _sites(difference: ProfileDifference) -> str:
    heads = [
        Head("layer", "layer"), Head("name", "name", "", "text"), Head("a", "D, first"), Head("b", "D, second"),
        Head("ratio", "ratio"),
        Head("interval", "interval", "", "text"), Head("clear", "told apart", "", "text"),
    ]  # fmt: skip
    rows = []
    for site in difference.sites:
        ratio = site.fuzziness
        name = " / ".join(dict.fromkeys((site.name_a, site.name_b)))
        rows.append(
            [
                Cell(site.index_a, str(site.index_a)),
                Cell(name, name),
                Cell(ratio.a, number(ratio.a)),
                Cell(ratio.b, number(ratio.b)),
                Cell(ratio.value, number(ratio.value, 3)),
                Cell(None, limits(ratio.interval).strip()),
                Cell(None, ratio.told_apart),
            ]
        )
    return table(heads, rows, label="D of both profiles layer by layer")
