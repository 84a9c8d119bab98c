"""The top of the page: what was measured, the verdict, the numbers that matter most, and the findings in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from equisep.findings.facts import wilson
from equisep.report.formatting import correlation, data_words, number, one_line, percent, reading_words
from equisep.report.page.markup import Section, absent, command, link, marked, paragraph, plain, typeset
from equisep.report.page.subject import Subject
from equisep.results import Finding, Profile
from equisep.results.wording import law_span_words

CHIPS = {
    "law": ("good", "The law holds"),
    "between": ("warn", "Between law and none"),
    "no law": ("bad", "No law"),
    "undetermined": ("unknown", "Law: cannot be said"),
}
# where a rule's sentence is drawn
ANCHORS = {
    "fit": ("centers", "nearest class means"),
    "memorizing": ("law", "D on training and test data"),
    "classes": ("classes", "class by class"),
    "head": ("centers", "nearest class means"),
    "samples": ("trust", "how far to trust it"),
    "depth": ("centers", "nearest class means"),
    "work": ("work", "share of the work"),
    "law": ("law", "the law"),
    "collapse": ("geometry", "class means"),
    "rare": ("rare", "rare classes"),
    "missing": ("trust", "how far to trust it"),
    "training": ("training", "over the training"),
}
_WHAT_D_IS = (
    "D, the separation fuzziness, is the spread within classes over the distance between their means: the smaller, the better "
    "a layer separates the classes. The law of equi-separation (He & Su 2023) says that every layer multiplies D by the same "
    "factor, so that log D falls along a straight line."
)


@dataclass(frozen=True, slots=True)
class Large:
    """One large number: what it is, its text, its interval, and what it means."""

    title: str
    text: str
    interval: str
    words: str


def verdict_section(subjects: Sequence[Subject], title: str, subtitle: str = "") -> Section:
    """The band: one per profile, the first with the title of the page."""
    head = f'<h1 id="verdict-title">{plain(title)}</h1>' + (
        f'<p class="lead">{plain(subtitle)}</p>' if subtitle else ""
    )
    bands = "".join(_band(subject, named=len(subjects) > 1) for subject in subjects)
    return Section("verdict", "Verdict", f'<header class="band">{head}{bands}</header>{paragraph(_WHAT_D_IS, "aside")}')


def findings_section(
    subjects: Sequence[Subject], training: Sequence[Finding] = (), sections: Sequence[str] = ()
) -> Section:
    """What was found, in words; `training` are sentences on a history, `sections` the anchors that the page has."""
    blocks = []
    if training:
        blocks.append(_findings(training, sections))
    for subject in subjects:
        said = {finding.code for finding in training}
        own = [finding for finding in subject.findings if finding.code not in said]
        if len(subjects) > 1:
            blocks.append(f"<h3>{plain(subject.label)}</h3>")
        elif training and own:
            blocks.append("<h3>Of the last reading</h3>")
        blocks.append(_findings(own, sections) if own else "")
        if not own and not training:
            blocks.append(absent("No rule has anything to say of this profile."))
    words = "Each sentence is sure unless it says otherwise; it links to the drawing behind it."
    return Section("findings", "What was found", paragraph(words, "aside") + "".join(blocks), "Found")


def large_numbers(subject: Subject) -> list[Large]:
    """The factor per layer, how straight the line is, the effective depth and the accuracy, each with its interval."""
    profile, law = subject.profile, subject.profile.law
    tested = profile.accuracy_test is not None
    accuracy = profile.accuracy_test if tested else profile.accuracy_train
    return [
        Large(
            f"factor per {subject.each}", "–" if law.rho is None else f"×{number(law.rho, 3)}",
            _factor_span(profile),
            "what each leaves of D (ρ)",
        ),
        Large("straightness r", correlation(law.r), "", "−1 is a straight line"),
        _depth(subject),
        Large(
            "test accuracy" if tested else "training accuracy", "–" if accuracy is None else f"{percent(accuracy)} %",
            _share_limits(accuracy, sum(profile.counts_test or ()) if tested else 0),
            "of the network itself" if tested else "no test data were given",
        ),
    ]  # fmt: skip


def _depth(subject: Subject) -> Large:
    profile = subject.profile
    if all(site.ncc_train is None for site in profile.sites):
        return Large("effective depth", "–", "", "nearest class means were not measured")
    epsilon, depth = float(profile.settings.get("epsilon") or 0.0), profile.effective_depth
    share = "all" if epsilon == 0 else f"{100 * (1 - epsilon):g} % of the"
    words = f"first {subject.each} from which on {share} training samples are nearest to the mean of their class"
    return Large("effective depth", "none" if depth is None else f"{depth} of {profile.sites[-1].index}", "", words)


def _band(subject: Subject, *, named: bool) -> str:
    profile = subject.profile
    kind, word = CHIPS[profile.law.verdict]
    name = f"<h2>{plain(subject.label)}</h2>" if named else ""
    chip = f'<span class="chip {kind}">{plain(word)}</span>'
    lines = f"{data_words(profile)}; {reading_words(profile)}"
    tiles = "".join(
        f'<div class="tile"><dt>{plain(large.title)}</dt><dd><span class="large">{typeset(plain(large.text))}</span>'
        + (f'<span class="interval">{typeset(plain(large.interval))}</span>' if large.interval else "")
        + f'<span class="meaning">{plain(large.words)}</span></dd></div>'
        for large in large_numbers(subject)
    )
    about = f'<p>{chip} <span class="data">{marked(lines)}</span></p>'
    return f'<div class="subject">{name}{about}<dl class="tiles">{tiles}</dl></div>'


def _findings(findings: Sequence[Finding], sections: Sequence[str]) -> str:
    items = []
    for finding in findings:
        sure = "" if finding.confidence == "sure" else f' <span class="tag">{plain(finding.confidence)}</span>'
        anchor, words = ANCHORS.get(finding.rule, ("law", "the law"))
        to = f" {link(anchor, f'See {words}')}." if anchor in sections else ""
        then = "" if finding.next is None else _next(one_line(finding.next))
        items.append(
            f'<li data-code="{plain(finding.code)}"><p>{typeset(marked(finding.text))}{sure}{to}</p>{then}</li>'
        )
    return f'<ol class="findings">{"".join(items)}</ol>'


def _next(text: str) -> str:
    """What to do: a command or call to copy, or a sentence."""
    code = text.startswith(("equisep ", "equisep.", "tracker = equisep."))
    return command(text) if code else paragraph(f"Next: {text}.", "next")


def _factor_span(profile: Profile) -> str:
    span, words = profile.law.intervals.get("rho"), law_span_words(profile, "rho")
    return words if span is None else f"{100 * span.level:g} %: {words}"


def _share_limits(share: float | None, samples: int) -> str:
    """Wilson's limits of an accuracy on a number of test samples."""
    if share is None or not samples:
        return ""
    low, high = wilson(share, samples)
    return f"[{percent(max(low, 0.0))}, {percent(min(high, 1.0))}] at 95 %"
