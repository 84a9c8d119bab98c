"""The tables of docs/findings.md: one row per rule and one per kind of situation, from the committed result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Row = Mapping[str, Any]
FORMER = (  # of rules that are no more
    "first run", "second run", "third run", "fourth run", "fifth run", "sixth run", "seventh run",
)  # fmt: skip
ENOUGH = 0.9  # of the draws of its kinds: a rule is supported from here on, if none of its sentences was false
SELDOM = 0.05  # of its sentences, with exceptions


@dataclass(frozen=True)
class RuleRow:
    """What stands in the row of one rule; `kinds` are the situations that its codes are right for."""

    rule: str
    codes: tuple[str, ...]
    kinds: tuple[str, ...]
    paper: str
    experiment: str
    limits: str


RULES = (
    RuleRow(
        "fit", ("unfitted",), ("undertrained",),
        "Papyan, Han & Donoho 2020: collapse belongs to the terminal phase of training, after the training error is zero",
        "2 to 8 epochs at a low rate; every network gains 10 points or more when it is trained on",
        "does not tell why: training, size and contradicting labels look alike",
    ),
    RuleRow(
        "memorizing", ("labels-unrelated", "memorizing", "test-gain"), ("random labels", "memorizing"),
        "Galanti & Galanti 2022: “the degree of separability in the intermediate layers is related to generalization”",
        "all, or 35 to 65 %, of the training labels replaced at random",
        "wrong labels and too few samples are not told apart",
    ),
    RuleRow(
        "classes", ("lost-classes", "hardest-class"), ("collapsed minority",),
        "Fang, He, Long & Su 2021: “Minority Collapse … fundamentally limits the performance … on the minority classes”",
        "3 to 5 classes of 1 to 4 samples beside 150 to 300 of the others",
        "a rare class may be hard for another reason than its size",
    ),
    RuleRow(
        "head", ("head-worse", "head-at-chance"), ("head worse than features",),
        "Papyan, Han & Donoho 2020, NC4: under collapse the network decides as nearest class means do",
        "head trained anew without most of 3 to 5 classes; a balanced ridge head on the same features must be better",
        "nearest class means are no proof of the best head",
    ),
    RuleRow(
        "samples", ("too-few-samples",), ("too few samples",),
        "ours: class means of few samples are too far apart, D too small ([intervals.md](intervals.md))",
        "2 to 5 samples per class, of networks trained on as few or on more; D of halves must differ by a third",
        "how many samples would do is a lower estimate, not tested here",
    ),
    RuleRow(
        "depth", ("too-deep", "cut", "no-cut"), ("too deep",),
        "Galanti & Galanti 2022: “SGD implicitly selects neural networks of small effective depths”",
        "12 to 20 layers; really cut, and a network that ends at the cut trained from scratch (2.5 points allowed)",
        "feed-forward networks on one data set; `equisep cut` and `equisep depth` answer for yours",
    ),
    RuleRow(
        "work", ("every-layer-works", "idle-layers", "work"), ("well sized",),
        "He & Su 2023, Prop. 1: equal shares of the work are least sensitive to a change of one layer",
        "networks of 3 and 4 layers",
        "a layer can be idle for D and still be needed by those after it",
    ),
    RuleRow(
        "law", ("law", "near-law", "no-law", "law-by-block"), ("no law", "law by block only"),
        "He & Su 2023: “each layer improves data separation at a constant geometric rate”",
        "first 2 to 4 layers frozen at random weights; blocks with a narrow side branch",
        "r of few points is near −1 for any falling curve; depends on the reading ([readings.md](readings.md))",
    ),
    RuleRow(
        "collapse", ("collapse", "no-collapse"), (),
        "Papyan, Han & Donoho 2020, NC1: features of a class become one vector",
        "said in all kinds; NC1 computed again from raw features",
        "of training data; no recommendation is drawn from it",
    ),
    RuleRow(
        "rare", ("rare-geometry",), (),
        "Fang, He, Long & Su 2021: beyond a threshold of imbalance minority classifiers coincide",
        "said of rare classes; cosines computed again from raw features, the prediction not tested here",
        "energies of the network are not in a profile; no recommendation is drawn from it",
    ),
)  # fmt: skip


def kinds(draws: Sequence[Row]) -> list[list[str]]:
    """One line per kind of situation, and all together."""
    table = []
    for kind in dict.fromkeys(row["kind"] for row in draws):
        mine = [row for row in draws if row["kind"] == kind]
        others = sorted({str(row["first"]) for row in mine if not row["right"]})
        table.append([kind, *_counts(mine), ", ".join(f"`{code}`" for code in others) or "–"])
    others = sorted({f"{row['kind']}: `{row['first']}`" for row in draws if not row["right"]})
    return [*table, ["all", *_counts(draws), "; ".join(others) or "–"]]


def _counts(rows: Sequence[Row]) -> list[str]:
    right, false = sum(row["right"] for row in rows), sum(len(row["false"]) for row in rows)
    return [f"{right} of {len(rows)}", f"{sum(row['sentences'] for row in rows):,}", str(false)]


def rules(draws: Sequence[Row]) -> list[list[str]]:
    """One line per rule, from all draws that were made."""
    table = []
    for rule in RULES:
        mine = [row for row in draws if row["kind"] in rule.kinds]
        said = sum(code in rule.codes for row in draws for code in row["codes"])
        false = [words for row in draws for words in row["false"] if words.split(":")[0] in rule.codes]
        right = sum(row["right"] for row in mine)
        result = f"first sentence right in {right} of {len(mine)}; " if mine else ""
        result += f"{said:,} sentences, {len(false) or 'none'} false"
        supported = len(false) <= SELDOM * said and right >= ENOUGH * len(mine) and said > 0
        verdict = ("*supported*" if mine else "*true as stated*") if supported else "*not supported here*"
        if supported and false:
            verdict = "*supported, with exceptions*"
        cells = (rule.paper, rule.experiment, str(len(mine) or len(draws)), result, rule.limits, verdict)
        table.append([f"`{rule.rule}`", *cells])
    return table
