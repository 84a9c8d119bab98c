"""Write the tables of docs/intervals.md and docs/advice.md from the committed results of the simulations."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

import _findings_page
import _population_page
from _page import DOCS, Row, markdown, percent, rows_of

SITUATIONS = ("situation", "first sentence right", "sentences", "false ones", "first sentence, where it was another")
SELDOM = 0.1  # intervals that are printed less often are too few to count


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
            cases.append((f"{'' if 'correlation' in kind else 'independent '}loads, {kind}", row))
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
    lasts = {name: _findings_page.kinds(rows_of("situations", name))[-1] for name in _findings_page.FORMER}
    return markdown(SITUATIONS, [[name, *last[1:]] for name, last in lasts.items()])


# long tables, folded under what they show
FOLDED = {
    "population values": "One population by one: D of the population where d ≥ 5 K",
    "population beyond": "One population by one: fewer features, few samples, heavy tails, steep spectra, many classes",
    "population limits": "One population by one: few directions, and rare classes that spread more",
    "losers": "Medians of other forms over the truth",
    "population laws": "ρ and half-life over eight sites",
    "population bootstrap": "Intervals of plain D by bootstrap",
    "paired": "Coverage of paired intervals",
    "apart": "Coverage for samples drawn apart",
    "false alarms": "Two slopes called where there is one",
    "recorded": "Neighboring residuals of recorded curves",
    "power": "Two slopes called where the slope halves",
    "laws": "How often the verdict is `law`",
}
PARTS: Mapping[str, Mapping[str, Callable[[], str]]] = {
    "intervals.md": {
        "false alarms": false_alarms, "power": power, "laws": laws, "recorded": recorded, "paired": paired,
        "apart": apart, **_population_page.PARTS,
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
        made = make()
        if name in FOLDED:
            made = f"<details markdown><summary>{FOLDED[name]}</summary>\n\n{made}\n\n</details>"
        text = pattern.sub(f"{begin}\n\n{made}\n\n{end}".replace("\\", r"\\"), text)
    return text


if __name__ == "__main__":
    for each in PARTS:
        (DOCS / each).write_text(page(each), encoding="utf-8")
