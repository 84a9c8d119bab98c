"""Galanti & Galanti 2022: the comparative bound where it is not vacuous, of networks of two hidden layers, as a figure.

Deep networks separate S1 at a depth at which the joined samples are separated as well, and the bound of `galanti2022/bound` is
above 1. Two hidden layers of width 100 separate S1 and no relabeled S2 with it, so that the probability can be 0.
"""

from __future__ import annotations

from equisep.figures.figure import Claim, ComparativeBound, Figure, Panel, Series
from equisep.figures.papers.galanti2022.bound import BOUND
from equisep.figures.papers.galanti2022.common import CITE, CLASSES, EPSILON, FITTED, SMALL, SOURCE

DEPTH = 2  # hidden layers
TRIED = (1, DEPTH)  # of the networks that might separate both: deeper ones do not count against an effective depth of 2
SHARES = (10, 20, 30)  # per cent of the labels of S2 that differ, p
SEEDS = 20
NON_TRIVIAL = "ours: what has to be so for the “non-trivial estimations” of the later abstracts"
OURS = "ours: Prop. 1 takes the least depth over all balanced labels"

SHALLOW = Figure(
    id="galanti2022/bound-shallow",
    title="The comparative bound of networks of two hidden layers",
    source=f"{SOURCE}, Prop. 1, two hidden layers",
    cite=CITE,
    fit=FITTED,
    lacks=BOUND.lacks,
    base=BOUND.base.with_(test_sites=False, readings=("eval",)),
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
        Panel("balance", "answers of the S1 networks to S2", "scatter", "balance", "second_error", log_y=False,
              y_label="distance of class shares from 1/10", x_label="share of S2 that is misnamed", series=("first-*",),
              levels=((EPSILON, f"ε = {EPSILON:g}"),)),
        Panel("own", "S1 and S2, under labels of their own", "scatter", "own_separated", "own_error", log_y=False,
              y_label="share nearest to its class center", x_label="share of S2 that is relabeled", series=("first-*",),
              levels=((FITTED, "separated above"),)),
        Panel("separated", "S1 and S2, relabeled at random", "sweep", "ncc_error",
              x_label="share p of S2 that is relabeled", y_label="share nearer to another center",
              series=("joined*",), levels=((1 - FITTED, "separated below"),)),
    ),
    claims=(
        Claim(f"Answers are balanced: class shares on S2 within ε = {EPSILON:g} of 1/10", "at most", (f"first-{DEPTH}",),
              "balance", EPSILON, source="ours: that the condition of Prop. 1 is met, Def. 3"),
        Claim("With labels drawn at random the estimate says something: at p = 0.1, networks that shallow do not separate both "
              "samples, on average", "at most", tuple(f"joined{d}-{SHARES[0]}" for d in TRIED), "ncc", FITTED, fit=False,
              source=NON_TRIVIAL),
        Claim("With labels drawn at random the estimate is no bound: the networks misname more than p = 0.1 of S2",
              "at least", (f"first-{DEPTH}",),
              "second_error", SHARES[0] / 100, source=OURS),
        Claim("The networks of S1 separate S1 and S2 under labels of their own", "at least", (f"first-{DEPTH}",), "own_separated",
              FITTED, source=OURS),
        Claim("Labels of their own are balanced", "at most", (f"first-{DEPTH}",), "own_balance", EPSILON, source=OURS),
        Claim("Labels of their own differ from the true ones on more than p = 0.1, so that Prop. 1 admits them there", "at least",
              (f"first-{DEPTH}",), "own_error", SHARES[0] / 100, source=OURS),
        Claim("At p = 0.3 labels of their own differ too little to be admitted", "at most", (f"first-{DEPTH}",), "own_error",
              SHARES[-1] / 100, source=OURS),
        Claim("At p = 0.3 labels drawn at random are not separated, on average: the estimate is not vacuous", "at most",
              tuple(f"joined{d}-{SHARES[-1]}" for d in TRIED), "ncc", FITTED, fit=False, source=NON_TRIVIAL),
        Claim("At p = 0.3 the estimate is not too small: the networks misname less than p = 0.3 of S2",
              "at most", (f"first-{DEPTH}",), "second_error",
              SHARES[-1] / 100, source=OURS),
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
