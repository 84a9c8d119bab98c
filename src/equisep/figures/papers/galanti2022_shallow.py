"""Galanti & Galanti 2022: the comparative bound where it is not vacuous, of networks of two hidden layers, as a figure.

Deep networks separate S1 at a depth at which the joined samples are separated as well, and the bound of `galanti2022/bound` is
above 1. Two hidden layers of width 100 separate S1 and no relabeled S2 with it, so that the probability can be 0.
"""

from __future__ import annotations

from equisep.figures.figure import Claim, ComparativeBound, Figure, Panel, Series
from equisep.figures.papers.galanti2022 import BOUND, CITE, CLASSES, EPSILON, FITTED, SMALL, SOURCE

DEPTH = 2  # hidden layers
TRIED = (1, DEPTH)  # of the networks that might separate both: deeper ones do not count against an effective depth of 2
SHARES = (10, 20, 30, 40)  # per cent of the labels of S2 that differ, p
SEEDS = 20
NON_TRIVIAL = "Remarkably, this bound provides non-trivial estimations of the test performance."
ABSTRACT = "abstract of the later versions"
OURS = "ours: Prop. 1 takes the least depth over all balanced labels"

SHALLOW = Figure(
    id="galanti2022/bound-shallow",
    title="The comparative bound of networks of two hidden layers",
    source=SOURCE,
    cite=CITE,
    fit=FITTED,
    base=BOUND.base.with_(epochs=200, test_sites=False, readings=("eval",)),
    series=(
        Series(f"first-{DEPTH}", {"depth": DEPTH + 1, "second_read": True}, label=f"S1, d = {DEPTH}", x=DEPTH),
        *(
            Series(f"joined{d}-{share}", {"depth": d + 1, "second_noise": share / 100 * CLASSES / (CLASSES - 1)},
                   label=f"d = {d}, p = {share / 100:g}", x=share / 100)
            for d in TRIED
            for share in SHARES
        ),
    ),
    panels=(
        Panel("balance", "how evenly S2 is labeled (S1 network, d = 2)", "categories", "balance;own_balance", log_y=False,
              y_label="distance of class shares from 1/10", series=("first-*",), levels=((EPSILON, f"ε = {EPSILON:g}"),)),
        Panel("errors", "share of S2 that is labeled otherwise", "categories", "second_error;own_error", log_y=False,
              y_label="share of labels that are not the true ones", series=("first-*",)),
        Panel("separated", "networks trained on S1 and relabeled S2", "sweep", "ncc_error",
              x_label="share p of the labels of S2 that differ", y_label="samples nearer to another class center, train",
              series=("joined*",), levels=((1 - FITTED, "separated below this line"),)),
    ),
    claims=(
        Claim(f"Answers are balanced: class shares on S2 within ε = {EPSILON:g} of 1/10", "at most", (f"first-{DEPTH}",),
              "balance", EPSILON, source="in our words, after Def. 3"),
        Claim("With labels drawn at random the estimate says something: at p = 0.1 no network that shallow separates both",
              "at most", tuple(f"joined{d}-{SHARES[0]}" for d in TRIED), "ncc", FITTED, fit=False, quote=NON_TRIVIAL,
              source=ABSTRACT),
        Claim("… but it is no bound: the networks misname more than p = 0.1 of S2", "at least", (f"first-{DEPTH}",),
              "second_error", SHARES[0] / 100, source=OURS),
        Claim("The networks of S1 separate S1 and S2 under labels of their own", "at least", (f"first-{DEPTH}",), "own_separated",
              FITTED, source=OURS),
        Claim("… which are balanced", "at most", (f"first-{DEPTH}",), "own_balance", EPSILON, source=OURS),
        Claim("… and differ from the true ones on more than p = 0.1, where the bound is therefore above 1", "at least",
              (f"first-{DEPTH}",), "own_error", SHARES[0] / 100, source=OURS),
        Claim("… and on less than p = 0.3, where nothing that was tried separates both and the estimate is above the error",
              "at most", (f"first-{DEPTH}",), "own_error", SHARES[2] / 100, source=OURS),
    ),
    seeds=SEEDS,
    smoke=SMALL,
    notes=(
        "Prop. 1 takes the least depth over all labels of S2 that are ε-balanced and differ on a share p or more. Two kinds are "
        "tried: drawn at random, as in the paper, and those that the network of S1 gives S2 itself, each sample that of its "
        "nearest class center at the effective depth. The second kind needs no training: the network separates both samples.",
        "An estimate, not a bound: other labels, and networks that training does not find, may be separated at less depth.",
        f"Relabeling a share q at random changes q(1 − 1/{CLASSES}) of the labels. δ: the share of draws with answers out of "
        f"balance by more than ε = {EPSILON:g}.",
        "The embedded Fashion-MNIST at 10×10: S1 and S2 have 50 samples per class.",
    ),
    bound=ComparativeBound(
        first={DEPTH: f"first-{DEPTH}"},
        joined={share / 100: {d: f"joined{d}-{share}" for d in TRIED} for share in SHARES},
        epsilon=EPSILON,
    ),
)  # fmt: skip

FIGURES: tuple[Figure, ...] = (SHALLOW,)
