"""Sentences about figures, made of their verdicts: counts, what the paper says, what was found, how samples were read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from equisep.figures.judge import WORDS, ClaimVerdicts
from equisep.report.figures.cells import is_ours
from equisep.report.figures.markdown import escaped
from equisep.report.figures.pages.recorded import Recorded
from equisep.report.figures.summary import Summary
from equisep.results.wording import plural

MARKS = {
    "held": "●",
    "contradicted": "✕",
    "undecided": "◐",
    "supported": "○",
    "against": "×",
    "not testable": "–",
    "not run": "–",
}
READING_WORDS = {
    "drawn": "*drawn* (BatchNorm by batches of 100 in the order in which the samples were drawn: He & Su's own)",
    "mixed": "*mixed* (BatchNorm by batches of 100 that mix the classes)",
    "eval": "*eval* (running statistics, as a network is used)",
}
_NUMBERS = {2: "two", 3: "three"}
_QUOTES = 2  # of the paper, in a sentence on what it shows


def joined(words: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def counted(counts: Mapping[str, int]) -> str:
    """`3 held, 1 contradicted and 2 undecided`; what does not occur is left out."""
    return joined([f"{counts[word]} {word}" for word in WORDS if counts[word]])


def marked(counts: Mapping[str, int]) -> str:
    """The same with a mark for each verdict, in a short line."""
    return " · ".join(f"{MARKS[word]} {counts[word]} {word}" for word in WORDS if counts[word])


def paper_sentence(each: Recorded) -> str:
    """What the paper shows, in its own words; in ours where those were not to be had, and then its claims say so."""
    theirs = [claim.claim for claim in each.claims if not is_ours(each.figure, claim.claim)]
    if not theirs:
        return "No paper makes these claims: the experiment is ours." if each.claims else ""
    quoted = [f"“{claim.quote}” ({claim.source})" for claim in theirs if claim.quote]
    said = list(dict.fromkeys(quoted or [f"{claim.text} ({claim.source})" for claim in theirs]))
    more = f"; {len(said) - _QUOTES} more in the table" if len(said) > _QUOTES else ""
    return f"{joined([escaped(words) for words in said[:_QUOTES]])}{more}."


def found_sentence(each: Recorded) -> str:
    """How its claims fare, over how many seeds, in which reading."""
    if each.summary is None:
        return "Not run."
    trained = any(row.rates_tried for row in each.summary.series)
    seeds = (
        sorted({one.main.n for one in each.claims if one.main.n and one.main.verdict != "not run"}) if trained else []
    )
    span = "" if not seeds else plural(seeds[0], "seed") if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]} seeds"
    over = f", over {span}" if span else ""
    read = [name for name in READING_WORDS if any(one.main.reading == name for one in each.claims)]
    where = f", read in {joined([f'*{name}*' for name in read])}" if read else ""
    claims = plural(len(each.claims), "claim")
    drawn = _drawn_readings(each.summary)
    picture = (
        f" The picture shows D read in {joined([f'*{name}*' for name in drawn])}." if read and drawn != read else ""
    )
    return (
        f"Of {claims}, {counted(each.counts)}{over}{where}.{picture}"
        if each.claims
        else "It makes no claim that a rule could judge."
    )


def _drawn_readings(summary: Summary) -> list[str]:
    """In which readings the curves are that the picture shows: the first of every network."""
    chosen = [entry for found in summary.evidence.series.values() for entry in found.chosen.values()]
    return list(dict.fromkeys(entry.outcome.readings[0].reading for entry in chosen if entry.outcome.readings))


def reading_statement(claims: Iterable[ClaimVerdicts]) -> str:
    """What claim × reading shows: how many claims hold in which reading, and how many change with it.

    Of the claims that were judged in the most readings; nothing where none was judged in two.
    """
    known = list(claims)
    judged = {id(each): _run_in(each) for each in known}
    most = max((len(names) for names in judged.values()), default=0)
    whole = [each for each in known if len(judged[id(each)]) == most]
    if most < 2:
        return ""
    names = [name for name in READING_WORDS if any(name in judged[id(each)] for each in whole)]
    held = [sum(each.by_reading[name].verdict == "held" for each in whole if name in each.by_reading) for name in names]
    turned = sum(each.standing == "reading" for each in whole)
    parts = [
        f"{count} {'hold in ' if at == 0 else 'in '}{READING_WORDS[name]}"
        for at, (name, count) in enumerate(zip(names, held, strict=True))
    ]
    one = turned == 1
    return (
        f"**What D says depends on how samples are read.** {plural(len(whole), 'claim')} on feed-forward networks were judged in "
        f"{_NUMBERS.get(most, most)} readings of the same trained weights: {joined(parts)}. {turned or 'None'} "
        f"{'holds' if one else 'hold'} in one reading and {'is' if one else 'are'} contradicted in another: "
        f"{'a property' if one else 'properties'} of the reading, not of the trained networks ([readings](../readings.md))."
    )


def _run_in(each: ClaimVerdicts) -> list[str]:
    return [name for name, verdict in each.by_reading.items() if verdict.verdict != "not run"]
