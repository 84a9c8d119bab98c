"""Sentences about figures, made of their verdicts: counts, what the paper says, what was found, how samples were read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from equisep.figures.cell import Training
from equisep.figures.figure import IN_OUR_WORDS, Claim, Figure
from equisep.figures.judge import WORDS, ClaimVerdicts, Part
from equisep.figures.papers import FIT_OR_NOT
from equisep.figures.rules import series_of
from equisep.report.figures.cells import is_ours
from equisep.report.figures.markdown import escaped
from equisep.report.figures.readings import has_norm
from equisep.report.figures.summary import Summary
from equisep.results.records import LAW_R, NO_LAW_R
from equisep.results.wording import plural
from figure_pages.recorded import Recorded

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
    "drawn": "*drawn* (BatchNorm by batches of 100 in the order in which the samples were drawn, as He & Su's public code reads; "
    "that their figures were made so is our inference)",
    "mixed": "*mixed* (BatchNorm by batches of 100 that mix the classes)",
    "eval": "*eval* (running statistics, as a network is used)",
}
_NUMBERS = {2: "two", 3: "three"}
_QUOTES = 2  # of the paper, in a sentence on what it shows
_OURS = re.compile(r"ours, (?:on|against) ")  # before the place of what a claim of ours quotes
_BRACKET = re.compile(r"(.*) \(([^()]*)\)")
_NAMED = 3  # claims of a verdict, in a sentence on what was found
_SENTENCE = 4  # words from which on a quotation says by itself what it is about


def joined(words: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def counted(counts: Mapping[str, int]) -> str:
    """`3 held, 1 contradicted and 2 undecided`; what does not occur is left out."""
    return joined([f"{counts[word]} {word}" for word in WORDS if counts[word]])


def marked(counts: Mapping[str, int]) -> str:
    """The same with a mark for each verdict, in a short line."""
    return " · ".join(f"{MARKS[word]} {counts[word]} {word}" for word in WORDS if counts[word])


def asked_words(each: Recorded) -> str:
    """What heads the sentence below: `the paper shows`, with whose words; `it asks` where no claim is a paper's."""
    if all(is_ours(each.figure, claim.claim) for claim in each.claims):
        return "it asks"
    return "the paper shows" if each.theirs else "the paper shows, in our words"


def paper_sentence(each: Recorded) -> str:
    """What the paper shows, in its own words; in ours where those were not to be had, and then its claims say so."""
    theirs = [claim.claim for claim in each.claims if not is_ours(each.figure, claim.claim)]
    if not each.claims:
        return ""
    if not theirs:
        asked = _said([claim.claim for claim in each.claims if claim.claim.quote])
        return (
            f"The experiment is ours; it asks of what the papers say: {asked}." if asked else "The experiment is ours."
        )
    return f"{_said(theirs)}."


def _said(claims: Sequence[Claim]) -> str:
    """Each quotation once; a number, or a claim without any, with what is claimed."""
    quoted = [claim for claim in claims if claim.quote]
    by_words: dict[str, Claim] = {}
    for claim in quoted or claims:
        by_words.setdefault(claim.quote or claim.text, claim)
    said = [_quotation(claim) for claim in by_words.values()]
    more = [f"{len(said) - _QUOTES} more in the table"] if len(said) > _QUOTES else []
    return "; ".join(said[:_QUOTES] + more)


def _quotation(claim: Claim) -> str:
    if not claim.quote:  # what heads the sentence says whose words they are
        return escaped(f"{claim.text} ({claim.source.replace(IN_OUR_WORDS, 'after')})")
    alone = sum(word.isalpha() for word in claim.quote.split()) >= _SENTENCE
    place = _OURS.sub("", claim.source)
    return escaped(f"{'' if alone else f'{claim.text}, '}“{claim.quote}” ({place})")


def found_sentence(each: Recorded) -> str:
    """How its claims fare, over how many seeds, in which reading; and how many of them belong to that reading."""
    if each.summary is None:
        return "Not run."
    if not each.claims:
        return "It makes no claim that a rule could judge."
    trained = any(row.rates_tried for row in each.summary.series)
    seeds = (
        sorted({one.main.n for one in each.claims if one.main.n and one.main.verdict != "not run"}) if trained else []
    )
    span = "" if not seeds else plural(seeds[0], "seed") if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]} seeds"
    over = f", over {span}" if span else ""
    read = [name for name in READING_WORDS if any(one.main.reading == name for one in each.claims)]
    where = f", read in {joined([f'*{name}*' for name in read])}" if read else ""
    drawn = _drawn_readings(each.summary)
    picture = f" The picture shows D read in {joined([f'*{name}*' for name in drawn])}." if {*drawn} != {*read} else ""
    return f"{_fared(each)}{over}{where}.{_decided_words(each)}{_turned_words(each)}{picture if read else ''}"


def _fared(each: Recorded) -> str:
    """`All 7 claims held`, `The evidence is against the claim`, or the counts."""
    words = [word for word in WORDS if each.counts[word]]
    if len(words) > 1:
        return f"Of {len(each.claims)} claims, {counted(each.counts)}"
    count = len(each.claims)
    many = {1: "The claim", 2: "Both claims"}.get(count, f"All {count} claims")
    if words[0] == "not run":
        any_of = {1: "the claim", 2: "either claim"}.get(count, f"any of the {count} claims")
        return f"Nothing was run that would test {any_of}"
    if words[0] == "against":
        return f"The evidence is against {many[:1].lower()}{many[1:]}"
    return f"{many}{'' if words[0] == 'held' else ' is' if count == 1 else ' are'} {words[0]}"


def _decided_words(each: Recorded) -> str:
    """Which claims are held and which contradicted, where there are others beside; the first ones of many."""
    words = []
    for word in ("held", "contradicted"):
        said = merged([(one, "") for one in each.claims if one.main.verdict == word])
        if said and each.counts[word] < len(each.claims):
            more = [f"{len(said) - _NAMED} more in the table"] if len(said) > _NAMED else []
            words.append(f" {word.capitalize()}: {'; '.join(said[:_NAMED] + more)}.")
    return "".join(words)


def merged(claims: Iterable[tuple[ClaimVerdicts, str]]) -> list[str]:
    """Claims in words, each with what stands behind it.

    Those that differ in their last bracket alone are told once: `ρ rises (MNIST; CIFAR-10)`.
    """
    by_stem: dict[tuple[str, str], list[str]] = {}
    for claim, behind in claims:
        found = _BRACKET.fullmatch(claim.claim.text)
        stem, own = found.groups() if found else (claim.claim.text, "")
        by_stem.setdefault((stem, behind), []).append(own)
    return [
        escaped(f"{stem} ({'; '.join(own)})" if any(own) else stem) + behind for (stem, behind), own in by_stem.items()
    ]


def behind_words(figure: Figure, claim: ClaimVerdicts) -> str:
    """What a list has to say of a claim: that it is from slides, of networks that need not fit, how readings judge it."""
    slides = claim.claim.source if "slides" in claim.claim.source else ""
    unfit = FIT_OR_NOT.get(figure.id, "") if figure.fit_of(claim.claim) is None else ""
    return "".join(f" ({words})" for words in (escaped(slides), escaped(unfit), _turns(claim)) if words)


def _turns(claim: ClaimVerdicts) -> str:
    """Of a property of the reading: the verdict in each."""
    if claim.standing != "reading":
        return ""
    return ", ".join(f"*{name}* {verdict.verdict}" for name, verdict in claim.by_reading.items())


def _turned_words(each: Recorded) -> str:
    """How many claims another reading contradicts of those that held, and holds of the others."""
    turned = [one.main.verdict == "held" for one in each.claims if one.standing == "reading"]
    lost, won = sum(turned), len(turned) - sum(turned)
    words = [f"{lost} of those that held {'is' if lost == 1 else 'are'} contradicted"] if lost else []
    words += [f"{won} of the others {'holds' if won == 1 else 'hold'}"] if won else []
    return f" In another reading of the same networks {joined(words)}." if words else ""


def _drawn_readings(summary: Summary) -> list[str]:
    """In which readings the curves are that the picture shows: the first of every network."""
    chosen = [entry for found in summary.evidence.series.values() for entry in found.chosen.values()]
    return list(dict.fromkeys(entry.outcome.readings[0].reading for entry in chosen if entry.outcome.readings))


def reading_statement(claims: Iterable[tuple[Recorded, ClaimVerdicts]]) -> str:
    """What claim × reading shows: how many claims hold in which reading, and how many change with it.

    Of the claims that were judged in the most readings; nothing where none was judged in two. Claims on networks without
    BatchNorm alone do not count: these read the same in every reading.
    """
    known = [claim for each, claim in claims if _reads_apart(each.figure, claim.claim)]
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
        "**What D says depends on how samples are read.** (D: the spread within classes relative to the distance between them; "
        "by the *law* every layer lowers it by one factor.) "
        f"{plural(len(whole), 'claim')} on feed-forward networks with BatchNorm {'was' if len(whole) == 1 else 'were'} judged "
        f"in {_NUMBERS.get(most, most)} readings of the same trained weights: {joined(parts)}. {turned or 'None'} "
        f"{'holds' if one else 'hold'} in one reading and {'is' if one else 'are'} contradicted in another: "
        f"{'a property' if one else 'properties'} of the reading, not of the trained networks ([readings](../readings.md))."
    )


def _reads_apart(figure: Figure, claim: Claim) -> bool:
    """Whether any network of a claim has BatchNorm, so that readings of it may differ."""
    names = series_of(figure, claim)
    return any(has_norm(figure.cell(series)) for series in figure.series if series.name in names)


def law_statement(claims: Sequence[tuple[Recorded, ClaimVerdicts]]) -> str:
    """How many panels of which a law is claimed have one, in each reading; nothing where no claim was judged in two.

    Of the claims that were judged in the most readings; a network that several figures show counts once.
    """
    wanted = [pair for pair in claims if pair[1].claim.rule == "law" and "epoch" not in pair[1].claim.quantity]
    most = max((len(_run_in(claim)) for _, claim in wanted), default=0)
    judged = [(each.figure, claim) for each, claim in wanted if len(_run_in(claim)) == most > 1]
    names = [name for name in READING_WORDS if any(name in claim.by_reading for _, claim in judged)]
    if not names:
        return ""
    parts = {name: _of_networks(judged, name) for name in names}

    def counts(word: str) -> str:
        return joined(
            [f"{sum(word in (part.found, part.verdict) for part in parts[name])} in *{name}*" for name in names]
        )

    panels = plural(len(parts[names[0]]), "panel")
    return (
        f"**The law itself.** Of {panels} in which a sentence that is quoted claims it of feed-forward networks, the mean r over "
        f"seeds makes a law (r ≤ {LAW_R:g}, by the paper's own numbers) of {counts('law')}, and with its whole interval of "
        f"{counts('held')}; it makes none (r > {NO_LAW_R:g}) of {counts('no law')}. All others lie between."
    ).replace(" -", " −")


def _of_networks(judged: Sequence[tuple[Figure, ClaimVerdicts]], reading: str) -> list[Part]:
    """The parts of claims in a reading, one for each network, be it shown by several figures."""
    parts: dict[object, Part] = {}
    for figure, claim in judged:
        for part in claim.by_reading[reading].parts:
            (series,) = figure.named(part.name)
            cell = figure.cell(series)
            if isinstance(cell, Training):  # without what is read of it beside
                cell = cell.with_(rate=part.rate, read_epochs=(), class_wise=False, coordinates=0)
            parts.setdefault((cell, claim.claim.quantity), part)
    return list(parts.values())


def _run_in(each: ClaimVerdicts) -> list[str]:
    return [name for name, verdict in each.by_reading.items() if verdict.verdict != "not run"]
