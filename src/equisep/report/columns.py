"""The table of sites, declared once: every column's name, head, meaning and digits, for frames, terminal, HTML and drawings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import Any

from equisep.report.formatting import UNICODE, class_labels, number, one_line, percent
from equisep.results import LawFit, Profile
from equisep.results.readings import BY_BATCH, READINGS
from equisep.results.records import work_shares
from equisep.results.wording import OTHER_SAMPLES

Values = Sequence[Any]
Cell = Callable[..., str]  # (value, missing=…) → text


@dataclass(frozen=True, slots=True)
class Column:
    """One number per site: its `name` in a frame, its `title` over a table, what it means in `words`, and how it is written.

    A line break in a title is where a narrow head breaks. `of` takes the values from a profile; `None` is a missing one.
    """

    name: str
    title: str
    words: str
    of: Callable[[Profile], Values]
    cell: Cell = number

    def cells(self, profile: Profile, *, missing: str = UNICODE.missing) -> list[str]:
        """The values as text."""
        return [missing if value is None else self.cell(value, missing=missing) for value in self.of(profile)]


def _over_sites(path: str, profile: Profile) -> Values:
    """One field of every reading; a dotted path leads into a record that may be missing."""
    first, _, rest = path.partition(".")
    parts = [getattr(site, first) for site in profile.sites]
    return [None if part is None else attrgetter(rest)(part) for part in parts] if rest else parts


def _after_first(of: Callable[[LawFit], Sequence[float] | None], profile: Profile) -> Values:
    """Numbers of the steps between sites, each at the site where the step ends."""
    steps = of(profile.law) or ()
    before = profile.begin() + 1  # sites before the first step of the law
    whole = len(steps) == len(profile.sites) - before
    return [*[None] * before, *steps] if whole else [None] * len(profile.sites)


def _field(name: str, title: str, words: str, *, of: str = "", cell: Cell = number) -> Column:
    return Column(name, title, words, partial(_over_sites, of or name), cell)


def _of_reading(reading: str, profile: Profile) -> Values:
    """D in a reading that stands beside the profile's own; nothing where there is none."""
    other = profile.other_readings.get(reading)
    return [None] * len(profile.sites) if other is None else other.curve()


def _company(reading: str, profile: Profile) -> Values:
    """D over D in `eval`, where that reading or this one stands beside the profile's own."""
    factors = profile.company.get(reading) if profile.other_readings else None
    return [None] * len(profile.sites) if factors is None else factors


def _whole(value: int, *, missing: str) -> str:
    return str(value)


def _text(value: str, *, missing: str) -> str:
    return one_line(value)


def _whole_percent(value: float, *, missing: str) -> str:
    return f"{100 * value:.0f}"


def _two_places(value: float, *, missing: str) -> str:
    return f"{value:.2f}"


_three = partial(number, digits=3)
_SPREAD = partial(number, digits=2)

COLUMNS: tuple[Column, ...] = (
    _field("site", "layer", "number of the layer: 0 is the raw input", of="index", cell=_whole),
    _field("name", "name", "module whose output is read", cell=_text),
    _field("fuzziness", "D", "separation fuzziness D: spread within classes over distance between their means"),
    _field(
        "fuzziness_low",
        "D from",
        f"lower end of the interval of D {OTHER_SAMPLES}",
        of="fuzziness_interval.low",
        cell=_three,
    ),
    _field(
        "fuzziness_high",
        "D to",
        f"upper end of the interval of D {OTHER_SAMPLES}",
        of="fuzziness_interval.high",
        cell=_three,
    ),
    _field("corrected", "D\ncorr.", "D of the population behind the samples", of="corrected.value", cell=_three),
    _field("corrected_low", "corr.\nfrom", "lower end of its interval", of="corrected.low", cell=_three),
    _field("corrected_high", "corr.\nto", "upper end of its interval", of="corrected.high", cell=_three),
    Column(
        "share",
        "work\n%",
        "share of the work: of the whole fall of ln D, what this layer takes",
        partial(_after_first, work_shares),
        _whole_percent,
    ),
    Column(
        "load",
        "load",
        "load: ln D of the layer before minus ln D",
        partial(_after_first, attrgetter("loads")),
        _two_places,
    ),
    _field("fuzziness_test", "D test", "separation fuzziness D on test data", cell=_three),
    _field(
        "corrected_test",
        "corr.\ntest",
        "D of the population behind the test data",
        of="corrected_test.value",
        cell=_three,
    ),
    _field("ncc_train", "NCC %\ntrain", "training samples nearest to the mean of their own class", cell=percent),
    _field("ncc_test", "NCC %\ntest", "test samples nearest to the training mean of their own class", cell=percent),
    _field("cdnv", "CDNV", "class-distance normalized variance, mean over pairs of classes", cell=_three),
    _field("cdnv_test", "CDNV\ntest", "class-distance normalized variance on test data", cell=_three),
    _field(
        "cdnv_directional",
        "CDNV\ndir.",
        "CDNV along the lines between class means, mean over pairs of classes",
        cell=_three,
    ),
    _field("nc1", "NC1", "within-class variability, as neural collapse measures it", cell=_three),
    _field("null", "chance", "chance level: D with shuffled labels", cell=_three),
    _field("dim", "dim", "features per sample", cell=_whole),
    _field("rank", "rank", "directions that the class means span", cell=_whole),
    _field("trace_within", "within", "trace of the within-class covariance", cell=_three),
    _field("trace_between", "between", "trace of the between-class covariance", cell=_three),
    _field("norm_spread", "norms", "spread of the norms of the centered class means (NC2)", cell=_SPREAD),
    _field("angle_spread", "angles", "spread of the cosines of the centered class means (NC2)", cell=_SPREAD),
    _field("angle_gap", "gap", "mean distance of these cosines from -1/(K - 1) (NC2)", cell=_SPREAD),
    _field("etf_distance", "simplex", "distance of the class means from a simplex (NC2)", cell=_SPREAD),
)
READING_COLUMNS: tuple[Column, ...] = (  # of profiles that hold several readings
    *(
        Column(
            f"fuzziness_{reading}", f"D\n{reading}", f"separation fuzziness D in the reading `{reading}`",
            partial(_of_reading, reading), _three,
        )
        for reading in READINGS
    ),
    *(
        Column(
            f"company_{reading}", f"/ eval\n{reading}",
            f"what company does: D in the reading `{reading}` over D in `eval`", partial(_company, reading), _two_places,
        )
        for reading in BY_BATCH
    ),
)  # fmt: skip
BY_NAME = {column.name: column for column in (*COLUMNS, *READING_COLUMNS)}


def columns_named(names: Iterable[str]) -> list[Column]:
    """Columns by name, in this order."""
    return [BY_NAME[name] for name in names]


def frame_values(profile: Profile, *, classes: bool = False) -> dict[str, Values]:
    """Every column as numbers, those of other readings where there are any; with `classes` also D_k, one column per class."""
    values = {column.name: column.of(profile) for column in COLUMNS}
    others = {column.name: column.of(profile) for column in READING_COLUMNS}
    values |= {name: own for name, own in others.items() if any(value is not None for value in own)}
    if classes:
        for kind, label in enumerate(class_labels(profile)):
            rows = (site.class_fuzziness for site in profile.sites)
            values[f"fuzziness of {label}"] = [None if row is None else row[kind] for row in rows]
    return values
