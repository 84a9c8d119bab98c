"""Query: a quantity as claims and panels write it, `NAME@key=value,…`, and the reading of an outcome that it is about.

r                             of the law of D at the last epoch, read the first way
r@epoch=100,reading=eval      … at another epoch, or read another way (`epoch`, `reading`, `grain`, `reduction`, `weighting`)
accuracy_test                 of the whole network, as `accuracy` and `loss`: in eval reading where it was read, unless it says
ncc@site=4                    a metric of one site (counted from 0, the input; -1 is the last)
ncc_test@epoch=0,site=-1
r@from=10                     the law of the sites from 10 on
minority_cosine               a number of the outcome by its own name
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from equisep.errors import InputError, did_you_mean
from equisep.figures.outcome import Curve, Curves, Outcome
from equisep.results.readings import reading_named

METRICS = (
    "fuzziness",
    "chance",
    "cdnv",
    "ncc",
    "fuzziness_test",
    "cdnv_test",
    "ncc_test",
)  # curves over sites, of `Curves`
BY_CLASS = "class_fuzziness"  # a curve for each class
WAYS = ("epoch", "reading", "grain", "reduction", "weighting", "site", "from", "of", "class", "split")
HALF = 0.5 + 1e-9  # of an epoch, to which shares of a shortened training are rounded


@dataclass(frozen=True, slots=True)
class Query:
    """The name of a quantity, and the way it is read."""

    name: str
    ways: Mapping[str, str]

    @staticmethod
    def of(text: str) -> Query:
        """From `NAME@key=value,…`."""
        return _parsed(text) if "mode=" in text else _known(text)  # a former name warns every time

    def renamed(self, name: str, **ways: str) -> str:
        """Another quantity read the same way, but for the ways given, as text."""
        wanted = {**self.ways, **ways}
        return f"{name}@{','.join(f'{key}={value}' for key, value in wanted.items())}" if wanted else name

    def number(self, key: str, default: int) -> int:
        """A way that is a whole number, as `site` or `split`."""
        return int(self.ways.get(key, default))


def _parsed(text: str) -> Query:
    name, _, rest = text.partition("@")
    ways: dict[str, str] = {}
    for part in rest.split(",") if rest else ():
        key, equals, value = part.partition("=")
        if key == "mode":  # its former name
            key, value = "reading", reading_named(None, mode=value)
        if not equals or key not in WAYS:
            raise InputError(
                f"The quantity `{text}` has `{part}`.{did_you_mean(key, WAYS)} Write NAME@key=value,…, with the keys "
                f"{', '.join(WAYS)}."
            )
        ways[key] = value
    return Query(name, ways)


_known = lru_cache(maxsize=4096)(_parsed)  # judging a figure asks for the same few quantities thousands of times


def reading_of(outcome: Outcome, query: Query, *, reading: str | None = None) -> Curves | None:
    """The curves that a query is about, of `reading` where it names none; None where they are not there."""
    ways = query.ways
    epoch = _epoch(outcome, ways["epoch"]) if "epoch" in ways else None
    if "epoch" in ways and epoch is None:
        return None
    return outcome.reading(
        epoch=epoch,
        reading=ways.get("reading", reading),
        grain=ways.get("grain"),
        reduction=ways.get("reduction"),
        weighting=ways.get("weighting"),
    )


def curve(outcome: Outcome, text: str) -> Curve:
    """A metric over sites, as `fuzziness`, `ncc@reading=eval`, `class_fuzziness@class=3`; empty where it was not read."""
    query = Query.of(text)
    reading = reading_of(outcome, query)
    return () if reading is None else curve_of(reading, query.name, query)


def curve_of(reading: Curves, name: str, query: Query) -> Curve:
    """The curve `name` of a reading: of the class, and from the site on, that the query says."""
    if "class" in query.ways:
        label = query.number("class", 0)
        values = reading.class_fuzziness[label] if label < len(reading.class_fuzziness) else ()
    elif name in METRICS:
        values = getattr(reading, name)
    else:
        raise InputError(f"No curve `{name}`.{did_you_mean(name, METRICS)} Known: {', '.join(METRICS)}.")
    return values[query.number("from", 0) :]


def _epoch(outcome: Outcome, text: str) -> int | None:
    """An epoch by number, or as a share `a/b` of all: the one read within half an epoch of it."""
    part, slash, whole = text.partition("/")
    if not slash:
        return int(part)
    last = outcome.last_epoch
    if last is None:
        return None
    wanted = int(part) / int(whole) * last
    known = sorted({reading.epoch for reading in outcome.readings})
    return next((epoch for epoch in known if abs(epoch - wanted) <= HALF), None)
