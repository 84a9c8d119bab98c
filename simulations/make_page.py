"""Write the tables of docs/intervals.md and docs/advice.md from the committed results of the simulations."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import _findings_page

REPO = Path(__file__).resolve().parents[1]
DOCS, RESULTS = REPO / "docs", REPO / "simulations" / "results"
Row = Mapping[str, Any]
SITUATIONS = ("situation", "first sentence right", "sentences", "false ones", "first sentence, where it was another")
SELDOM = 0.1  # intervals that are printed less often are too few to count


def rows_of(simulation: str, table: str) -> list[Row]:
    """One table of a simulation's committed result."""
    content = json.loads((RESULTS / f"{simulation}.json").read_text(encoding="utf-8"))
    return list(content["tables"][table])


def markdown(titles: Sequence[str], rows: Iterable[Sequence[str]], *, words: bool = False) -> str:
    """A table, all but its first column to the right, unless they hold words."""
    lines = [titles, [":--", *[":--" if words else "--:"] * (len(titles) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def percent(share: float | None) -> str:
    """A rate; the simulations know no more than a tenth of a percent."""
    return "–" if share is None else f"{100 * share:.1f} %"


def by_sites(cases: Sequence[tuple[str, Row]], value: str) -> str:
    """A line per case, a column per number of sites; of several rows of one case the greatest."""
    sites = sorted({row["sites"] for _, row in cases})
    table: dict[str, dict[int, float]] = {}
    for name, row in cases:
        line = table.setdefault(name, {})
        line[row["sites"]] = max(row[value], line.get(row["sites"], 0.0))
    return markdown(
        ["sites", *map(str, sites)],
        [[name, *(percent(line.get(count)) for count in sites)] for name, line in table.items()],
    )


def false_alarms() -> str:
    """Two slopes called where there is one."""
    rows = rows_of("law_shape", "false_alarms")
    names = {
        (False, True): "wiggle alone",
        (True, False): "sampling alone, the worst of seven kinds",
        (True, True): "sampling and wiggle, the worst of fourteen",
    }
    cases = [(names[row["sampling"] is not None, row["wiggle"] > 0], row) for row in rows]
    for row in rows_of("law_shape", "laws"):
        _, falls, kind = row["curve"].partition("random falls, ")
        if falls and row["sites"] >= 5:
            cases.append((f"independent loads, {kind}", row))
    former = "the former rule (BIC gain above 6), wiggle alone"
    cases += [(former, {**row, "two_slopes": row["bic_above_6"]}) for row in rows if row["sampling"] is None]
    return by_sites(cases, "two_slopes")


def power() -> str:
    """Two slopes called where the slope halves at the middle."""
    kinds = {None: "wiggle", "white": "sampling, independent sites", "ar 0.9": "sampling, correlation 0.9"}
    cases = [
        (f"{kinds[row['sampling']]}, deviation {row['deviation']:g}", row) for row in rows_of("law_shape", "power")
    ]
    return by_sites(sorted(cases, key=lambda case: list(kinds).index(case[1]["sampling"])), "two_slopes")


def laws() -> str:
    """How often the verdict is `law`."""
    return by_sites([(row["curve"], row) for row in rows_of("law_shape", "laws")], "law")


def recorded() -> str:
    """Neighboring residuals of recorded curves beside both kinds of noise; fewer than 20 curves say little."""
    names = ("recorded", "wiggle", "loads")
    table = [
        [str(row["sites"]), str(row["curves"]), *(f"{row[name]:.2f}" for name in names)]
        for row in rows_of("law_shape", "recorded")
        if row["curves"] >= 20
    ]
    return markdown(["sites", "recorded curves", "their correlation", "of wiggle", "of independent loads"], table)


def paired() -> str:
    """Coverage of paired intervals."""
    return _coverage(rows_of("paired", "coverage"))


def apart() -> str:
    """Coverage of the intervals of two samples drawn apart."""
    return _coverage(rows_of("paired", "apart"))


def _coverage(rows: Sequence[Row]) -> str:
    """A line per setup; of a setup's sites those that cover the least and the most."""
    setups = ("counts", "dim", "first", "shared", "decay")
    table = []
    for setup in dict.fromkeys(tuple(row[key] for key in setups) for row in rows):
        mine = {row["number"]: row for row in rows if tuple(row[key] for key in setups) == setup}
        sites = [
            row
            for name, row in mine.items()
            if name.startswith("D ") and row["covers"] is not None and row["printed"] > 0.1
        ]
        least, most = (pick(sites, key=lambda row: row["covers"], default=None) for pick in (min, max))
        counts, dim, first, shared, decay = setup
        remark = [f"{100 * shared:g} % shared"] if shared != 0.8 else []
        remark += ["decaying noise"] if decay else []
        name = f"{counts}, d {dim}, first D {first:g}{''.join(f', {word}' for word in remark)}"
        table.append([name, *(_covered(row) for row in (mine["rho"], least, most, mine["half_life"]))])
    return markdown(["samples, features", "ρ", "D, least", "D, most", "half-life, left out"], table)


def _covered(row: Row | None) -> str:
    """`95.1 % (of 98 %)`: coverage of those printed, and how many are."""
    if row is None or row["printed"] <= SELDOM:
        return "not printed" if row is None or row["printed"] < 0.005 else f"– (of {100 * row['printed']:.0f} %)"
    return f"{percent(row['covers'])} (of {100 * row['printed']:.0f} %)"


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
    """The tables in three lines: how often there is no value, where medians lie, which intervals cover."""
    rows = rows_of("population", "values")
    table = []
    for title, low, high in (
        ("up to the chance level", 0, 1),
        ("2 and 3 times the chance level", 1, 3),
        ("10 times the chance level", 3, 10),
    ):
        for spectrum in ("flat", "decaying"):
            mine = [row for row in rows if low < row["share"] <= high and row["spectrum"] == spectrum]
            told = [row for row in mine if row["no_value"] <= 0.5]
            refused = sum(row["no_value"] for row in mine) / len(mine)
            medians = [row["corrected"] for row in told]
            covers = [row["covers"] for row in told]
            table.append(
                [
                    f"{title}, {spectrum}", f"{len(mine)}", percent(refused), f"{len(told)}",
                    f"{min(medians):.2f} to {max(medians):.2f}" if told else "–",
                    f"{100 * min(covers):.1f} to {percent(max(covers))}" if told else "–",
                ]
            )  # fmt: skip
    titles = ["D", "populations", "no value, mean", "told in half or more", "their medians", "they cover"]
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


def published() -> str:
    """Trained networks: what a fifth of the samples tells of what all tell."""
    rows = rows_of("published", "sites")
    whole = {(row["network"], row["site"]): row for row in rows if row["part"] is None}
    table = []
    for network in dict.fromkeys(row["network"] for row in rows):
        for part in dict.fromkeys(row["part"] for row in rows if row["network"] == network and row["part"] is not None):
            mine = [row for row in rows if row["network"] == network and row["part"] == part]
            pairs = [(row, whole[network, row["site"]]) for row in mine if row["value"] is not None]
            pairs = [(row, other) for row, other in pairs if other["value"] is not None]
            near = sum(abs(row["value"] / other["value"] - 1) <= 0.25 for row, other in pairs)
            held = sum(row["low"] <= other["high"] and other["low"] <= row["high"] for row, other in pairs)
            plain = sum(abs(row["plain"] / whole[network, row["site"]]["plain"] - 1) <= 0.25 for row in mine)
            table.append(
                [
                    f"{network}, fifth {part + 1}", str(len(mine)), str(sum(row["value"] is None for row in mine)),
                    f"{near} of {len(pairs)}", f"{held} of {len(pairs)}", f"{plain} of {len(mine)}",
                ]
            )  # fmt: skip
    titles = [
        "network, n 1000", "sites", "no value", "within 25 % of n 5000", "intervals meet", "plain within 25 %",
    ]  # fmt: skip
    return markdown(titles, table)


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
    table = [
        [
            f"{row['classes']} classes, d {row['dim']}, n {row['n']}, {row['spectrum']}", f"{row['share']:g}",
            f"{row['plain_rho']:.3f}", percent(row["plain_rho_covers_truth"]), f"{row['rho']:.3f}", percent(row["rho_covers"]),
            percent(row["half_life_covers"]), percent(row["all_sites"]), str(row["draws"]),
        ]
        for row in rows_of("population", "laws")
    ]  # fmt: skip
    titles = [
        "population", "first D / chance", "plain ρ", "its interval covers 0.5", "corrected ρ", "covers 0.5", "half-life covers",
        "all 8 sites told", "draws",
    ]  # fmt: skip
    return markdown(titles, table)


def few_shots() -> str:
    """Errors of few shots and their certificates at the chosen layers, and what the certificate was asked to be."""
    rows = [*rows_of("few_shot", "pairs"), *rows_of("few_shot", "seen")]
    sizes = [shot["m"] for shot in rows[0]["shots"]]
    table = [
        [
            f"{row['model']}, {row['task']}",
            *(f"{shot['error']:.1f} ≤ {shot['certificate']:.1f}" for shot in row["shots"]),
            f"{row['chance']:.0f}",
        ]
        for row in rows
    ]
    (found,) = rows_of("few_shot", "summary")
    holds = 2 * found["chosen_below_chance"] >= found["chosen_from_10"] and found["above"] >= 0.95 * found["cells"]
    words = (
        f"Over all {found['all_cells']} cells (layer × m) of all pairs, the certificate is at or above the error in "
        f"{found['all_above']}. Over ResNets on CIFAR-10 and encoders on SST-2: above in {found['above']} of {found['cells']} "
        f"cells (asked: 95 %), below chance in {found['below_chance']} of the {found['cells_from_10']} with m ≥ 10, and in "
        f"{found['chosen_below_chance']} of {found['chosen_from_10']} at the chosen layers (asked: half): "
        f"**{_supported(holds)}**."
    )
    return f"{words}\n\n{markdown(['error ≤ certificate, %, of m =', *map(str, sizes), 'chance'], table)}"


def best_layers() -> str:
    """The layer that training data choose beside the best one on held-out data, by logistic regression."""
    (found,) = rows_of("few_shot", "summary")
    table = [
        [
            f"{row['model']}, {row['task']}", str(row["n"]), str(row["held_out"]), row["chosen"], f"{row['logistic']:.1f}",
            row["best"], f"{row['best_logistic']:.1f}", f"{row['gap']:.1f}", "yes" if row["apart"] else "no",
        ]
        for row in (*rows_of("few_shot", "pairs"), *rows_of("few_shot", "seen"))
    ]  # fmt: skip
    (before,) = rows_of("few_shot_first", "summary")
    words = (
        f"Within 1 point of the best logistic regression on {found['within_1_point']} of {found['pairs']} pairs (asked: 8), and "
        f"told apart from it on {found['told_apart_from_best']}. In the first run, of 100 images per class in both parts, it was "
        f"{before['within_1_point']} of {before['pairs']}, and the number of images was raised after that: "
        f"**{_supported(min(found['within_1_point'], before['within_1_point']) >= 8)}**. So the answer names a layer with what "
        "cannot be told apart from it, and does not call it the best one."
    )
    titles = ["pair", "n", "held out", "chosen", "%", "best", "%", "gap", "told apart"]
    return f"{words}\n\n{markdown(titles, table)}"


def _supported(holds: bool) -> str:
    return "supported" if holds else "not supported here"


def situations() -> str:
    """What the first sentence was, kind by kind."""
    return markdown(SITUATIONS, _findings_page.kinds(rows_of("situations", "draws")))


def rules() -> str:
    """One row per rule of findings."""
    titles = ["rule", "the paper's sentence, or the reason", "experiment", "n", "result", "limits", "verdict"]
    return markdown(titles, _findings_page.rules(rows_of("situations", "draws")), words=True)


def former_runs() -> str:
    """What the rules before these came to."""
    lasts = {name: _findings_page.kinds(rows_of("situations", name))[-1] for name in ("first run", "second run")}
    return markdown(SITUATIONS, [[name, *last[1:]] for name, last in lasts.items()])


PARTS: Mapping[str, Mapping[str, Callable[[], str]]] = {
    "intervals.md": {
        "false alarms": false_alarms, "power": power, "laws": laws, "recorded": recorded, "paired": paired,
        "apart": apart, "population values": population_values, "population beyond": population_beyond,
        "population laws": population_laws, "population summary": population_summary,
        "population bootstrap": population_bootstrap, "published": published,
    },
    "advice.md": {"few shots": few_shots, "best layers": best_layers},
    "findings.md": {"rules": rules, "situations": situations, "former runs": former_runs},
}  # fmt: skip


def page(title: str) -> str:
    """A page as it should be: every part stands between its marks."""
    text = (DOCS / title).read_text(encoding="utf-8")
    for name, make in PARTS[title].items():
        begin, end = f"<!-- {name}, by simulations/make_page.py -->", f"<!-- end of {name} -->"
        pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
        if len(pattern.findall(text)) != 1:
            raise SystemExit(f"docs/{title} has lost `{begin}` or `{end}`. Put both back where the table should stand.")
        text = pattern.sub(f"{begin}\n\n{make()}\n\n{end}".replace("\\", r"\\"), text)
    return text


if __name__ == "__main__":
    for each in PARTS:
        (DOCS / each).write_text(page(each), encoding="utf-8")
