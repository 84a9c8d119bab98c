"""What trained networks say of D of the population, on its page: a fifth of the samples against all."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import NamedTuple

from _page import Row, markdown, rows_of
from equisep.law.population import NOT_WIDE, SHORTEST


class Agreement(NamedTuple):
    """Of what a fifth of the samples tells: within 25 % of what all tell, told by both, intervals that meet, not told, all."""

    near: int
    pairs: int
    meet: int
    none: int
    sites: int


def _networks(table: str, network: str | None = None, seed: int | None = None) -> list[tuple[Row, Row]]:
    """Every site as a fifth of the samples and as all of them tell it; of one network and shuffle, if asked."""
    whole = {(row["network"], row["site"]): row for row in rows_of("published", "sites") if row["part"] is None}
    return [
        (row, whole[row["network"], row["site"]])
        for row in rows_of("published", table)
        if row["part"] is not None and network in (None, row["network"]) and seed in (None, row.get("seed"))
    ]


def seeds() -> list[int]:
    return sorted({row["seed"] for row in rows_of("published", "others")})


def agreement(table: str, network: str | None = None, seed: int | None = None) -> Agreement:
    sites = _networks(table, network, seed)
    pairs = _told(sites)
    near = sum(abs(row["value"] / other["value"] - 1) <= 0.25 for row, other in pairs)
    meet = sum(row["low"] <= other["high"] and other["low"] <= row["high"] for row, other in pairs)
    return Agreement(near, len(pairs), meet, sum(row["value"] is None for row, _ in sites), len(sites))


def _told(sites: Sequence[tuple[Row, Row]]) -> list[tuple[Row, Row]]:
    return [(row, other) for row, other in sites if row["value"] is not None and other["value"] is not None]


def none_of(found: Agreement) -> str:
    return f"{found.none} of {found.sites}"


def published() -> str:
    """Trained networks: what a fifth of the samples tells of what all tell, by network and division."""
    table = []
    for network in sorted({row["network"] for row in rows_of("published", "sites")}):
        for seed in (None, *seeds()):
            of = ("sites" if seed is None else "others", network, seed)
            found = agreement(*of)
            plain = sum(abs(row["plain"] / other["plain"] - 1) <= 0.25 for row, other in _networks(*of))
            table.append(
                [
                    f"{network}, {'in their own order' if seed is None else f'shuffle {seed}'}", str(found.sites),
                    f"{found.none} ({100 * found.none / found.sites:.0f} %)", f"{found.near} of {found.pairs}",
                    f"{found.meet} of {found.pairs}", f"{plain} of {found.sites}",
                ]
            )  # fmt: skip
    titles = [
        "network, five fifths", "sites", "no value", "within 25 % of n 5000", "intervals meet", "plain within 25 %",
    ]  # fmt: skip
    return markdown(titles, table)


def published_rule() -> str:
    """What refuses layers of the networks, how well that does on other fifths, and what width alone would cost."""
    chosen, others = (_networks(table) for table in ("sites", "others"))
    refused = [row for row, _ in chosen if row["value"] is None]
    by_length = sum(row["reason"] == SHORTEST for row in refused)
    there, elsewhere = agreement("sites"), agreement("others")
    ratios = sorted(row["value"] / other["value"] for row, other in _told(others))
    far = ", ".join(f"{ratio:.2f}" for ratio in ratios if abs(ratio - 1) > 0.25)
    off = f" (the others at {far} of what 500 per class tell)" if far else ""
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
        f"In the images' own order {none_of(there)} layers have no value ({100 * there.none / there.sites:.1f} %), {by_length} "
        "of them because class means are a decade longer along some directions than along others while the upper end stands "
        f"above {NOT_WIDE} times the value. **Both limits were chosen with these fifths in view**, so that {there.near} of "
        f"{there.pairs} within 25 % prove little. Of the fifths of the shuffles, by which nothing was chosen, "
        f"{none_of(elsewhere)} layers have no value ({100 * elsewhere.none / elsewhere.sites:.1f} %), and {elsewhere.near} of "
        f"{elsewhere.pairs} that have one are within 25 %{off}; intervals meet in {elsewhere.meet}. A third was to be refused "
        "at most: of all layers of both networks that is about met, of each network and shuffle by itself not everywhere (the "
        f"table). Width alone would not do: to refuse every interval that reaches above {NOT_WIDE} times its value would refuse, "
        f"at the chance level, {flat - 10} to {flat} % of the simulated samples of ten classes with 100 flat directions, and "
        f"{decaying - 10} to {decaying} % with decaying ones, whose medians are right."
    )
    return textwrap.fill(text, 138)
