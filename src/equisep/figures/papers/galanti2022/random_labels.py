"""Networks trained on random labels (Figs. 3 and 4): what noise does to the collapse of layer 4 and to effective depth."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from equisep.figures.figure import Claim, Figure, Panel, Printed, Series
from equisep.figures.papers.galanti2022.common import (
    BASE,
    CITE,
    CONV,
    FITTED,
    METRICS,
    NARROW,
    SMALL,
    SOURCE,
    TWO_WAYS,
    UNPRINTED,
    WAYS,
    cited,
    epoch_panel,
    of_augmented,
)

NOISE = (0, 25, 50, 75)  # per cent of labels drawn at random
LAYERS = (4, 6, 8, 10)
CDNV_PRINTED = ((0, 0.28), (25, 0.6))  # of layer 4, read off one training, by per cent of noise
LATER = (
    "Finally, we empirically show that the effective depth of a trained neural network monotonically increases when "
    "increasing the number of random labels in data."
)
OTHERS = "above 1 for the others"
SENSITIVE = (
    "the rate of collapse in the intermediate layers is more sensitive, and is closely intertwined with generalization"
)


def over_noise(group: str, **changes: Any) -> tuple[Series, ...]:
    """One series for each share of random labels, plain and augmented."""
    return tuple(
        Series(
            f"{group}-{way}-{share}",
            {**changes, "label_noise": share / 100, "augment": augment},
            label=f"{share} % random labels, {way}",
            x=share / 100,
            seeds=1 if augment else None,
        )
        for way, augment in WAYS.items()
        for share in NOISE
    )


def noise_panels(group: str) -> tuple[Panel, ...]:
    """A column for each share of random labels, a row for each metric over epochs; then what may predict test accuracy."""
    rows = tuple(
        epoch_panel(metric, LAYERS, f"{group}-{way}-{share}", name=f"{way}-{metric}-{share}",
                    title=f"{share} % random labels", way=way)
        for way in WAYS
        for metric in METRICS
        for share in NOISE
    )  # fmt: skip
    predictors = {
        f"ncc@site={LAYERS[0]}": f"nearest-center accuracy of layer {LAYERS[0]}, train",
        "accuracy": "train accuracy",
    }
    return rows + tuple(
        Panel(f"predicted-{row}", f"test accuracy against {words}", "scatter", "accuracy_test", x, "test accuracy", words,
              log_y=False, series=(f"{group}-*",), heading="what predicts test accuracy")
        for row, (x, words) in enumerate(predictors.items())
    )  # fmt: skip


def noise_claims(group: str, printed_in: str, *, printed: str = "") -> tuple[Claim, ...]:
    """What is claimed of networks trained on random labels, for either way of training; `printed`: CDNV of layer 4."""
    claims: list[Claim] = []
    for way in WAYS:
        every, text = (f"{group}-{way}-*",), f" ({way})"
        where = cited(printed_in, way)
        clean, *noisy = (f"{group}-{way}-{share}" for share in NOISE)
        claims += [
            Claim(f"CDNV of layer 4 grows with noise{text}", "rising", every, "cdnv@site=4", quote=printed or SENSITIVE,
                  source=where if printed else f"abstract of the seventh version; layer 4: {where}"),
            Claim(f"The network fits its labels{text}", "at least", every, "accuracy", FITTED, fit=False,
                  quote="the network itself achieved 100% accuracy", source=where),
            Claim(f"Layer 4 does not separate noisy labels{text}", "at most", tuple(noisy), "ncc@site=4", FITTED, quote=LATER,
                  source=f"abstract of the later versions; layer 4: {where}"),
            Claim(f"Effective depth is greater with {NOISE[1]} % random labels than without{text}", "below",
                  (clean, noisy[0]), "effective_depth", quote=LATER, source="abstract of the later versions"),
            Claim(f"Effective depth grows on with every further step of noise{text}", "below", tuple(noisy), "effective_depth",
                  quote=LATER, source="abstract of the later versions"),
        ]  # fmt: skip
    return of_augmented(claims)


def _whose(claim: Claim, way: str) -> Claim:
    """A claim on a printed CDNV: the paper's of augmented networks, ours of plain ones, of which nothing is printed."""
    if way == "augmented":
        return claim
    return replace(claim, quote="", source=f"ours, against Fig. 3, which has “{claim.quote}” of augmented networks")


FIG3 = Figure(
    id="galanti2022/fig3",
    title="MLP-10-500 on CIFAR-10 with random labels",
    source=f"{SOURCE}, Fig. 3",
    cite=CITE,
    fit=FITTED,
    base=BASE.with_(depth=11, width=500),
    series=over_noise("mlp"),
    panels=noise_panels("mlp"),
    claims=(
        *noise_claims("mlp", "Fig. 3", printed=" … ".join([*(f"≈ {value:g}" for _, value in CDNV_PRINTED), OTHERS])),
        *(
            _whose(claim, way)
            for way, of in (("plain", " of augmented networks"), ("augmented", ""))
            for claim in (
                *(
                    Claim(f"CDNV of layer 4 is as printed{of} with {share} % noise ({way})", "as printed",
                          (f"mlp-{way}-{share}",), "cdnv@site=4", quote=f"≈ {value:g}", source="Fig. 3")
                    for share, value in CDNV_PRINTED
                ),
                *(
                    Claim(f"CDNV of layer 4 is above 1 with {share} % noise ({way})",
                          "at least", (f"mlp-{way}-{share}",), "cdnv@site=4", 1.0, quote=OTHERS, source="Fig. 3")
                    for share in (50, 75)
                ),
            )
        ),
    ),
    printed=tuple(
        Printed(f"mlp-{way}-{share}", "cdnv@site=4", value, cited("Fig. 3", way), 0.05 * value)
        for way in WAYS
        for share, value in CDNV_PRINTED
    ),
    smoke=SMALL,
    columns=len(LAYERS),
    notes=(UNPRINTED, TWO_WAYS, "Train accuracy and train metrics are against the labels trained on, random ones included."),
)  # fmt: skip

FIG4 = Figure(
    id="galanti2022/fig4",
    title="ConvNet-10-500 on CIFAR-10 with random labels",
    source=f"{SOURCE}, Fig. 4",
    cite=CITE,
    fit=FITTED,
    base=CONV.with_(depth=10, width=500),
    series=over_noise("convnet"),
    panels=noise_panels("convnet"),
    claims=noise_claims("convnet", "Fig. 4"),
    seeds=1,
    smoke=NARROW,
    columns=len(LAYERS),
    notes=FIG3.notes,
)
