"""D of the population on its page: what to trust, how values, intervals and laws came out, and what trained networks say."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence

from _networks_page import agreement, none_of, published, published_rule, seeds
from _page import Row, markdown, percent, rows_of


def trust() -> str:
    """What a reader may believe, in a few lines: the conclusions of all tables."""
    values, laws = rows_of("population", "values"), _laws()
    near = [row for row in values if row["share"] <= 1]
    flat, decaying = (
        sum(row["no_value"] for row in rows) / len(rows)
        for rows in ([row for row in near if row["spectrum"] == name] for name in ("flat", "decaying"))
    )
    found = {name: agreement("sites", name) for name in ("resnet20", "resnet56")}
    others = [agreement("others", seed=seed) for seed in seeds()]
    median, covers = _medians_and_covers(near)
    elsewhere = [row for name in ("beyond", "limits") for row in rows_of("population", name) if row["share"] <= 1]
    worst_median, worst_covers = _medians_and_covers(elsewhere)
    few = [row for row in rows_of("population", "limits") if row["spectrum"] == "flat" and not row["kind"]]
    refused = [row["no_value"] for row in few if row["share"] == 1]
    falls = [row for row in rows_of("law_shape", "laws") if row["curve"].startswith("random falls")]
    correlated = max(row["two_slopes"] for row in falls if "correlation 0.5" in row["curve"])
    skewed = max(row["two_slopes"] for row in falls if "correlation" not in row["curve"])
    points = (
        "**D of the samples you read is exact.** Where they are all there are (`whole=True`), nothing below is needed.",
        "**Of a sample, believe corrected D where there is one**, if features are 50 or more, five times as many as classes or "
        "more, and no few directions hold most of the variance within classes (variances that fall as 1/√j or slower): up to the "
        f"chance level its median is {median} of the truth, and its 95 % interval holds the truth in {covers} of simulated "
        "samples. In all other populations that were tried, where half of the samples or more have a value, it is "
        f"{worst_median} and {worst_covers}. Plain D is mostly too small, in wide, early layers by half and more.",
        f"**No value is an answer: take more samples.** Up to the chance level {100 * flat:.0f} % have none where features vary "
        f"alike, {100 * decaying:.0f} % where a few vary most; of two to five classes with 10 to 30 features "
        f"{_span(refused)} have none at the chance level, and at ten times that level {_span(_refused_far(values))}, wherever. "
        f"Layers of trained ResNets, 100 images per class, have none in {none_of(found['resnet20'])} (ResNet-20) and "
        f"{none_of(found['resnet56'])} (ResNet-56); {sum(each.near for each in found.values())} of "
        f"{sum(each.pairs for each in found.values())} that have one are within 25 % of what 500 per class tell. By two other "
        "divisions of these images, by which no limit was chosen, "
        f"{' and '.join(none_of(each) for each in others)} have none, and "
        f"{' and '.join(f'{each.near} of {each.pairs}' for each in others)} of the others are as near.",
        f"**Of a sample, believe the corrected ρ**: its interval holds in {_span(row['rho_covers'] for row in laws)}, that of "
        f"the plain one in {_span(row['plain_rho_covers_truth'] for row in laws)}.",
        "**The word *law* is a convention** that many a falling curve passes. A kink is called at a level of 5 % where layers "
        "take shares of the work that vary normally, each by itself; of curves without one in up to "
        f"{100 * skewed:.0f} % where the shares are skewed, and in up to {100 * correlated:.0f} % where those of neighboring "
        "layers have a correlation of 0.5.",
    )
    return "\n".join(textwrap.fill(each, 138, initial_indent="- ", subsequent_indent="  ") for each in points)


def _medians_and_covers(rows: Sequence[Row]) -> tuple[str, str]:
    """The span of both, where half or more are told."""
    told = [row for row in rows if row["no_value"] <= 0.5]
    medians, covers = ([row[name] for row in told] for name in ("corrected", "covers"))
    return f"{min(medians):.2f} to {max(medians):.2f}", f"{100 * min(covers):.1f} to {percent(max(covers))}"


def _refused_far(rows: Sequence[Row]) -> list[float]:
    """Of D at ten times the chance level, of these and of what lies beyond."""
    return [row["no_value"] for row in (*rows, *rows_of("population", "beyond")) if row["share"] == 10]


def _laws() -> list[Row]:
    return [*rows_of("population", "laws"), *rows_of("population", "more laws")]


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


def population_limits() -> str:
    """… and where it is hard."""
    return _population(rows_of("population", "limits"))


def losers() -> str:
    """Medians of other forms over the truth."""
    names = {
        "plain": "plain", "chance": "by the chance level", "halves": "by halves", "cross_fit": "cross-fitted",
        "shrinkage": "shrunk",
    }  # fmt: skip
    ours = {_who(row): row.get("median_of_all") for row in rows_of("population", "values")}
    table = []
    for row in rows_of("losers", "forms"):
        middles = [row[name][1] for name in names]
        mine = ours[_who(row)]
        table.append(
            [
                _words(row), f"{row['share']:g}",
                *("–" if each is None else f"{each:.2f}" for each in (*middles, mine)),
            ]
        )  # fmt: skip
    return markdown(["population", "D / chance", *names.values(), "in use"], table)


def _who(row: Row) -> tuple[object, ...]:
    return tuple(row.get(name, 1) for name in ("classes", "dim", "n", "spectrum", "odds", "share"))


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
            _words(row), f"{row['share']:g}",
            percent(row["covers_this_size"]), percent(row["covers_truth"]), str(row["draws"]),
        ]
        for row in rows_of("population", "bootstrap")
    ]  # fmt: skip
    return markdown(["population", "D / chance", "covers its own", "covers D", "draws"], table)


def _population(rows: Sequence[Row], *, least: bool = False) -> str:
    """A line per population and share of the chance level."""
    table = []
    for row in sorted(
        rows, key=lambda row: (row["classes"], row["dim"], row["n"], row["spectrum"], row["odds"], row["kind"])
    ):
        value = "–" if row.get("corrected") is None or row["no_value"] > 0.98 else f"{row['corrected']:.2f}"
        covers = "–" if value == "–" else percent(row["covers"])
        table.append(
            [
                _words(row), f"{row['share']:g}", f"{row['plain']:.2f}", value, covers, percent(row["no_value"]),
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


def _words(row: Row) -> str:
    """Which population it is."""
    words = [f"{row['classes']} classes, d {row['dim']}, n {row['n']}, {row['spectrum']}"]
    words += [f"{row['odds']:g} : 1"] if row.get("odds", 1) != 1 else []
    return ", ".join([*words, row["kind"]] if row.get("kind") else words)


def population_laws() -> str:
    """ρ and half-life over eight sites."""
    rows = _laws()
    table = [
        [
            _words(row), f"{row['share']:g}",
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
    "population limits": population_limits,
    "losers": losers,
    "population laws": population_laws,
    "published": published,
    "published rule": published_rule,
    "population bootstrap": population_bootstrap,
}
