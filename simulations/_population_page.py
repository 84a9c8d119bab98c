"""D of the population on its page: what to trust, how values, intervals and laws came out, and what trained networks say."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from _page import Row, markdown, percent, rows_of
from equisep.law.population import NOT_WIDE, SHORTEST


def trust() -> str:
    """What a reader may believe, in a few lines: the conclusions of all tables."""
    values, laws = rows_of("population", "values"), rows_of("population", "laws")
    near = [row for row in values if row["share"] <= 1]
    told = [row for row in near if row["no_value"] <= 0.5]
    flat, decaying = (
        sum(row["no_value"] for row in rows) / len(rows)
        for rows in ([row for row in near if row["spectrum"] == name] for name in ("flat", "decaying"))
    )
    medians = [row["corrected"] for row in told]
    found, others = _of_networks("sites"), _of_networks("others")
    points = (
        "**D of the samples you read is exact.** Where they are all there are (`whole=True`), nothing below is needed.",
        "**Of a sample, believe corrected D where there is one.** Up to the chance level its median is "
        f"{min(medians):.2f} to {max(medians):.2f} of the truth, and its 95 % interval holds the truth in "
        f"{_span(row['covers'] for row in told)} of simulated samples. Plain D is too small, in wide, early layers by half and "
        "more.",
        f"**No value is an answer: take more samples.** Up to the chance level {100 * flat:.0f} % have none where features vary "
        f"alike, {100 * decaying:.0f} % where a few vary most; at ten times that level "
        f"{_span(row['no_value'] for row in values if row['share'] == 10)}. Layers of trained ResNets, 100 images per class: "
        f"{found.none} of {found.sites} have none; of {found.pairs} that have one, {found.near} are within 25 % of what 500 per "
        "class tell. By other divisions of these images, which no limit was chosen by, it is "
        f"{others.none} of {others.sites}, and {others.near} of {others.pairs}.",
        f"**Of a sample, believe the corrected ρ**: its interval holds in {_span(row['rho_covers'] for row in laws)}, that of "
        f"the plain one in {_span(row['plain_rho_covers_truth'] for row in laws)}.",
        "**The word *law* is a convention** that many a falling curve passes. A kink is called at a level of 5 %.",
    )
    return "\n".join(textwrap.fill(each, 138, initial_indent="- ", subsequent_indent="  ") for each in points)


def _span(rates: Iterable[float]) -> str:
    """The least and the greatest, in whole percent."""
    every = [100 * each for each in rates]
    return f"{min(every):.0f} to {max(every):.0f} %"


def population_values() -> str:
    """D of the population where d ≥ 5 K."""
    return _population(rows_of("population", "values"), least=True)


def population_beyond() -> str:
    """… and elsewhere."""
    return _population(rows_of("population", "beyond"))


def least_error(row: Row) -> float:
    """√(2 Tr Σ⁴/(K − 1))/Tr Σ² · (D/chance)(d/e)², e = (Tr Σ)²/Tr Σ²: by how much noise alone may change ln D."""
    power = {"flat": 0.0, "decaying": 0.5, "steep": 1.0}[row["spectrum"]]
    first, second, fourth = (sum(j ** (-power * k) for j in range(1, row["dim"] + 1)) for k in (1, 2, 4))
    even = first**2 / second / row["dim"]
    return float((2 * fourth / (row["classes"] - 1)) ** 0.5 / second * row["share"] / even**2)


def population_summary() -> str:
    """The tables in a few lines: how often there is no value, where medians lie, which intervals cover."""
    rows = rows_of("population", "values")
    table = []
    for title, low, high in (
        ("up to the chance level", 0, 1),
        ("2 and 3 times the chance level", 1, 3),
        ("10 times the chance level", 3, 10),
    ):
        for spectrum in ("flat", "decaying"):
            mine = [row for row in rows if low < row["share"] <= high and row["spectrum"] == spectrum]
            refused = [row["no_value"] for row in mine]
            medians = [row["median_of_all"] for row in mine if row.get("median_of_all") is not None]
            covers = [row["covers"] for row in mine if row["no_value"] <= 0.8]
            table.append(
                [
                    f"{title}, {spectrum}", f"{len(mine)}", percent(sum(refused) / len(refused)), percent(max(refused)),
                    f"{min(medians):.2f} to {max(medians):.2f} ({len(medians)})" if medians else "–",
                    f"{100 * min(covers):.1f} to {percent(max(covers))} ({len(covers)})" if covers else "–",
                ]
            )  # fmt: skip
    titles = [
        "D", "populations", "no value, mean", "no value, most", "medians of all draws (where half are told)",
        "intervals cover (where a fifth are told)",
    ]  # fmt: skip
    return markdown(titles, table)


def population_bootstrap() -> str:
    """Intervals by bootstrap."""
    table = [
        [
            f"{row['classes']} classes, d {row['dim']}, n {row['n']}, {row['spectrum']}", f"{row['share']:g}",
            percent(row["covers_this_size"]), percent(row["covers_truth"]), str(row["draws"]),
        ]
        for row in rows_of("population", "bootstrap")
    ]  # fmt: skip
    return markdown(["population", "D / chance", "covers its own", "covers D", "draws"], table)


class Agreement(NamedTuple):
    """Of what a fifth of the samples tells: within 25 % of what all tell, told by both, not told, all."""

    near: int
    pairs: int
    none: int
    sites: int


def _networks(table: str = "sites") -> Mapping[tuple[str, int], Sequence[tuple[Row, Row]]]:
    """Every site as a fifth of the samples and as all of them tell it, by network and fifth."""
    whole = {(row["network"], row["site"]): row for row in rows_of("published", "sites") if row["part"] is None}
    found: dict[tuple[str, int], list[tuple[Row, Row]]] = {}
    for row in rows_of("published", table):
        if row["part"] is not None:
            found.setdefault((row["network"], row["part"]), []).append((row, whole[row["network"], row["site"]]))
    return found


def _of_networks(table: str) -> Agreement:
    """Of all fifths."""
    return Agreement(*(sum(column) for column in zip(*map(_agreement, _networks(table).values()), strict=True)))


def _told(sites: Sequence[tuple[Row, Row]]) -> list[tuple[Row, Row]]:
    return [(row, other) for row, other in sites if row["value"] is not None and other["value"] is not None]


def _agreement(sites: Sequence[tuple[Row, Row]]) -> Agreement:
    pairs = _told(sites)
    near = sum(abs(row["value"] / other["value"] - 1) <= 0.25 for row, other in pairs)
    return Agreement(near, len(pairs), sum(row["value"] is None for row, _ in sites), len(sites))


def published() -> str:
    """Trained networks: what a fifth of the samples tells of what all tell."""
    table = []
    for (network, part), sites in _networks().items():
        found, pairs = _agreement(sites), _told(sites)
        held = sum(row["low"] <= other["high"] and other["low"] <= row["high"] for row, other in pairs)
        plain = sum(abs(row["plain"] / other["plain"] - 1) <= 0.25 for row, other in sites)
        table.append(
            [
                f"{network}, fifth {part + 1}", str(found.sites), str(found.none),
                f"{found.near} of {found.pairs}", f"{held} of {found.pairs}", f"{plain} of {found.sites}",
            ]
        )  # fmt: skip
    titles = [
        "network, n 1000", "sites", "no value", "within 25 % of n 5000", "intervals meet", "plain within 25 %",
    ]  # fmt: skip
    return markdown(titles, table)


def published_rule() -> str:
    """What refuses layers of the networks, how well that does on other fifths, and what width alone would cost."""
    chosen, others = (list(chain.from_iterable(_networks(table).values())) for table in ("sites", "others"))
    refused = [row for row, _ in chosen if row["value"] is None]
    by_length = sum(row["reason"] == SHORTEST for row in refused)
    there, elsewhere = _of_networks("sites"), _of_networks("others")
    ratios = sorted(row["value"] / other["value"] for row, other in _told(others))
    far = ", ".join(f"{ratio:.2f}" for ratio in ratios if abs(ratio - 1) > 0.25)
    off = f" (the others at {far} of what 500 per class tell)" if far else ""
    meet = sum(row["low"] <= other["high"] and other["low"] <= row["high"] for row, other in _told(others))
    widths = {
        (row["spectrum"], row["classes"], row["dim"]): row
        for row in rows_of("population", "widths")
        if row["odds"] == 1
    }
    flat, decaying = (
        100 - 10 * sum(end is not None and end < NOT_WIDE for end in widths[name, 10, 100]["upper"])
        for name in ("flat", "decaying")
    )
    text = (
        f"Of these fifths {there.none} of {there.sites} layers have no value ({100 * there.none / there.sites:.1f} %; a third "
        f"was allowed), {by_length} of them because class means are a decade longer along some directions than along others "
        f"while the upper end stands above {NOT_WIDE} times the value. **Both limits were chosen with these fifths in view**, so "
        f"that {there.near} of {there.pairs} within 25 % prove little. Of the fifths of two shuffles, by which nothing was "
        f"chosen, {elsewhere.none} of {elsewhere.sites} layers have no value ({100 * elsewhere.none / elsewhere.sites:.1f} %), "
        f"and {elsewhere.near} of {elsewhere.pairs} that have one are within 25 %{off}; intervals meet in {meet}. Width alone "
        f"would not do: to refuse every interval that reaches above {NOT_WIDE} times its value would refuse, at the chance "
        f"level, {flat - 10} to {flat} % of the simulated samples of ten classes with 100 flat directions, and {decaying - 10} "
        f"to {decaying} % with decaying ones, whose medians are right."
    )
    return textwrap.fill(text, 138)


def _population(rows: Sequence[Row], *, least: bool = False) -> str:
    """A line per population and share of the chance level."""
    table = []
    for row in sorted(
        rows, key=lambda row: (row["classes"], row["dim"], row["n"], row["spectrum"], row["odds"], row["kind"])
    ):
        words = [f"{row['classes']} classes, d {row['dim']}, n {row['n']}, {row['spectrum']}"]
        words += [f"{row['odds']:g} : 1"] if row["odds"] != 1 else []
        words += [row["kind"]] if row["kind"] else []
        value = "–" if row.get("corrected") is None or row["no_value"] > 0.98 else f"{row['corrected']:.2f}"
        covers = "–" if value == "–" else percent(row["covers"])
        table.append(
            [
                ", ".join(words), f"{row['share']:g}", f"{row['plain']:.2f}", value, covers, percent(row["no_value"]),
                percent(row["plain_covers_this_size"]), str(row["draws"]), *([f"{least_error(row):.2f}"] if least else []),
            ]
        )  # fmt: skip
    titles = [
        "population",
        "D / chance",
        "plain / D",
        "corrected / D",
        "covers D",
        "no value",
        "plain covers its own",
        "draws",
        *(["least error"] if least else []),
    ]
    return markdown(titles, table)


def population_laws() -> str:
    """ρ and half-life over eight sites."""
    rows = rows_of("population", "laws")
    table = [
        [
            f"{row['classes']} classes, d {row['dim']}, n {row['n']}, {row['spectrum']}", f"{row['share']:g}",
            f"{row['plain_rho']:.3f}", percent(row["plain_rho_covers_truth"]), f"{row['rho']:.3f}", percent(row["rho_covers"]),
            percent(row["half_life_covers"]), percent(row["all_sites"]), str(row["draws"]),
        ]
        for row in rows
    ]  # fmt: skip
    titles = [
        "population", "first D / chance", "plain ρ", "its interval covers 0.5", "corrected ρ", "covers 0.5", "half-life covers",
        "all 8 sites told", "draws",
    ]  # fmt: skip
    return markdown(titles, table)


PARTS: Mapping[str, Callable[[], str]] = {
    "what to trust": trust,
    "population summary": population_summary,
    "population values": population_values,
    "population beyond": population_beyond,
    "population laws": population_laws,
    "published": published,
    "published rule": published_rule,
    "population bootstrap": population_bootstrap,
}
