"""The comparative bound (Prop. 1), estimated from networks of many depths trained on two samples."""

from __future__ import annotations

from equisep.figures.figure import Claim, ComparativeBound, Figure, Panel, Series
from equisep.figures.papers.galanti2022.common import BASE, CITE, CLASSES, EPSILON, FITTED, MLP_EFFECTIVE, SMALL, SOURCE

SHARES = (10, 20, 30, 40, 50, 60, 70, 80, 90)  # per cent of the second sample's labels that differ, p
BOUND_DEPTHS = tuple(range(2, 13))
DEEPEST = BOUND_DEPTHS[-1]
PILOT = "ours: chosen after a pilot of a few trainings"
MINIMAL = (
    "an implicit bias that favors solutions of minimal effective depth. Namely, SGD trains neural networks for which the top "
    "several layers are redundant"
)


BOUND = Figure(
    id="galanti2022/bound",
    title="The comparative bound, estimated from two samples S1 and S2",
    source=f"{SOURCE}, Prop. 1",
    cite=CITE,
    fit=FITTED,
    # the embedded images: both samples are small, anyone has them, and an FNN errs on them little enough to tell p apart
    lacks="data that the paper trained on",
    base=BASE.with_(data="embedded-10x10", preparation="he2023-10x10", width=100, per_class=50, second=50, read_epochs=(),
                    milestones=(1 / 3, 2 / 3), factor=0.1),
    series=(
        *(
            Series(f"first-{d}", {"depth": d + 1, "second_read": True}, label=f"S1, d = {d}", x=d) for d in BOUND_DEPTHS
        ),
        *(
            Series(f"joined{d}-{share}", {"depth": d + 1, "second_noise": share / 100 * CLASSES / (CLASSES - 1)},
                   label=f"d = {d}, p = {share / 100:g}", x=share / 100, seeds=5)
            for d in BOUND_DEPTHS
            for share in SHARES
        ),
    ),
    panels=(
        Panel("balance", "how evenly networks trained on S1 predict classes on S2", "sweep", "balance", x_label="hidden layers d",
              log_y=False, y_label="distance of predicted class shares from 1/10", series=("first-*",)),
        Panel("effective", "effective depth on S1", "sweep", "effective_depth", x_label="hidden layers d", log_y=False,
              y_label="effective depth", series=("first-*",)),
        Panel("separated", "networks trained on S1 and relabeled S2", "sweep", "ncc_error",
              x_label="share p of the labels of S2 that differ", y_label="samples nearer to another class center, train",
              series=("joined*",), ordered="hidden layers d", levels=((1 - FITTED, "separated below"),)),
    ),
    claims=(
        Claim("Shallow networks separate S1 and S2 less the more labels of S2 differ", "falling", ("joined2-*",), "ncc",
              source=PILOT, fit=False),
        Claim("Layer 4 of the deepest networks separates S1 and S2 less the more labels of S2 differ",
              "falling", (f"joined{DEEPEST}-*",), "ncc@site=4", source=PILOT, fit=False),
        Claim("Layer 4 of the deepest networks separates S1 alone better",
              "below", (f"joined{DEEPEST}-{SHARES[0]}", f"first-{DEEPEST}"),
              "ncc@site=4", source=PILOT, fit=False),
        Claim("Effective depth does not grow with depth, from 4 layers on", "alike",
              tuple(f"first-{d}" for d in BOUND_DEPTHS if d >= MLP_EFFECTIVE), "effective_depth",
              quote=MINIMAL, source="abstract of the first version, a hypothesis; from 4 layers on: Fig. 1"),
        Claim("Effective depth grows with depth", "rising", ("first-*",), "effective_depth",
              source="ours: found in the record after it was run"),
    ),
    seeds=10,
    smoke=SMALL,
    notes=(
        "An estimate, not a bound: P[effective depth on S1 ≥ least depth that separates S1 and relabeled S2] + p + δ, where "
        "the least depth is that of trained networks on labels drawn at random, which may be greater than that of the best "
        f"networks on the easiest labels. δ: the share of draws with answers out of balance by more than ε = {EPSILON:g}.",
        f"Relabeling a share q at random changes p = q(1 − 1/{CLASSES}) of the labels.",
        "The embedded Fashion-MNIST at 10×10: S1 and S2 have 50 samples per class.",
        "The rate falls by 10 at 1/3 and 2/3: eight batches an epoch would see little of a rate that falls from epoch 60 on.",
    ),
    bound=ComparativeBound(
        first={d: f"first-{d}" for d in BOUND_DEPTHS},
        joined={share / 100: {d: f"joined{d}-{share}" for d in BOUND_DEPTHS} for share in SHARES},
        epsilon=EPSILON,
    ),
)  # fmt: skip
