"""Networks of many depths (Figs. 1, 2 and 6): from which layer on classes collapse, and whether more layers change it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from equisep.figures.figure import IN_OUR_WORDS, Claim, Figure, Panel, Printed, Series
from equisep.figures.papers.galanti2022.common import (
    BASE,
    CITE,
    CONV,
    FITTED,
    METRICS,
    MLP_EFFECTIVE,
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

MLP_DEPTHS = (2, 3, 4, 8, 16)
MLP_RATES = (0.1, 0.01)
CONV_DEPTHS = (3, 4, 5, 8, 16)
BY_FIT = (
    "So `plain` networks are trained at a tenth of it as well, which counts where they do not fit at the printed one."
)
AT_THE_TOP = "for networks deeper than a threshold we obtain (near perfect) NCC separability in all of the top layers"


def over_depths(
    group: str, depths: Sequence[int], *, classifier: int = 0, rates: tuple[float, ...] | None = None, **changes: Any
) -> tuple[Series, ...]:
    """One series for each depth d, plain (at these rates) and augmented (at the first); an FNN's classifier is one too."""
    return tuple(
        Series(
            f"{group}-{way}-{d}",
            {**changes, "depth": d + classifier, "augment": augment},
            label=f"d = {d}, {way}",
            x=d,
            seeds=1 if augment else None,  # augmented networks cannot share an ensemble
            rates=rates and rates[:1] if augment else rates,
        )
        for way, augment in WAYS.items()
        for d in depths
    )


def depth_panels(group: str, depths: Sequence[int]) -> tuple[Panel, ...]:
    """A column for each depth; rows of each metric over epochs with a line per layer, for either way of training; then
    effective depths.
    """
    rows = tuple(
        epoch_panel(
            metric, range(1, d + 1), f"{group}-{way}-{d}", name=f"{way}-{metric}-{d}", title=f"d = {d}", way=way
        )
        for way in WAYS
        for metric in METRICS
        for d in depths
    )
    return (
        *rows,
        Panel("effective", "effective depth at the end", "sweep", "effective_depth", x_label="hidden layers d", log_y=False,
              series=(f"{group}-*",), heading="at the last epoch", absent="no layer separates\nmore than 99 %"),
        Panel("fit", "training accuracy at the end", "sweep", "accuracy", x_label="hidden layers d", log_y=False,
              series=(f"{group}-*",), heading="at the last epoch"),
    )  # fmt: skip


def depth_claims(
    group: str, depths: Sequence[int], printed_in: str, *, effective: int | None = None, collapsed: int | None = None
) -> tuple[Claim, ...]:
    """What is claimed of networks that differ in depth, for either way of training; the two deepest are the deep ones.

    `effective` is the printed effective depth, below which networks are shallow; layers from `collapsed` on collapse.
    """
    claims: list[Claim] = []
    for way in WAYS:
        name, text = f"{group}-{way}-", f" ({way})"
        where = cited(printed_in, way)
        deep = tuple(f"{name}{d}" for d in depths[-2:])
        if effective is not None:
            shallow = tuple(f"{name}{d}" for d in depths if d < effective)
            claims += [
                Claim(f"Effective depth {effective} in all networks that deep{text}", "near", (f"{name}{effective}", *deep),
                      "effective_depth", float(effective), source=where,
                      quote=f"effectively of depth {effective}, which is exactly the minimal depth that allows > 99% fitting"
                      if effective == MLP_EFFECTIVE else str(effective)),
                Claim(f"Shallower networks fit{text}", "at least", shallow, "accuracy", FITTED, fit=False,
                      source=f"{IN_OUR_WORDS} {where}"),
                Claim(f"Shallower networks do not collapse{text}", "at most", shallow, "ncc", FITTED, source=where,
                      quote="we do not necessarily achieve an emergence of neural collapse"),
            ]  # fmt: skip
        if collapsed is not None:
            claims.append(
                Claim(f"Layers from {collapsed} on of the deep networks collapse{text}", "at least", deep,
                      ";".join(f"ncc@site={layer}" for layer in range(collapsed, depths[-2] + 1)), FITTED,
                      source=where, quote="the fifth and higher layers enjoy neural collapse")
            )  # fmt: skip
        claims += [
            Claim(f"The deep networks collapse at the top{text}", "at least", deep, "ncc", FITTED, quote=AT_THE_TOP,
                  source=cited("appendix A of a later version", way)),
            Claim(f"More layers show the same degree of collapse: CDNV at the top is alike{text}", "alike", deep, "cdnv",
                  source=where, quote="would exhibit the same degree of collapse"),
            Claim(f"More layers show more collapse: CDNV at the top is less{text}", "above", deep, "cdnv",
                  source="section 1.1", quote="generally improves when increasing the number of layers"),
        ]  # fmt: skip
    return of_augmented(claims)


FIG1 = Figure(
    id="galanti2022/fig1",
    title="MLP-d-100 on CIFAR-10: layers over epochs",
    source=f"{SOURCE}, Fig. 1",
    cite=CITE,
    fit=FITTED,
    base=BASE.with_(width=100),
    series=over_depths("mlp", MLP_DEPTHS, classifier=1, rates=MLP_RATES),
    panels=depth_panels("mlp", MLP_DEPTHS),
    claims=depth_claims("mlp", MLP_DEPTHS, "Fig. 1", effective=4, collapsed=5),
    printed=tuple(Printed(f"mlp-augmented-{d}", "effective_depth", 4.0, "Fig. 1") for d in (4, 8, 16)),
    smoke=SMALL,
    columns=len(MLP_DEPTHS),
    notes=(UNPRINTED, BY_FIT, TWO_WAYS),
    choose="best fit",
)

FIG2 = Figure(
    id="galanti2022/fig2",
    title="ConvNet-d-400 on CIFAR-10: layers over epochs",
    source=f"{SOURCE}, Fig. 2",
    cite=CITE,
    fit=FITTED,
    base=CONV.with_(width=400),
    series=over_depths("convnet", CONV_DEPTHS),
    panels=depth_panels("convnet", CONV_DEPTHS),
    claims=depth_claims("convnet", CONV_DEPTHS, "Fig. 2", effective=5),
    printed=tuple(Printed(f"convnet-augmented-{d}", "effective_depth", 5.0, "Fig. 2") for d in (5, 8, 16)),
    seeds=1,
    smoke=NARROW,
    columns=len(CONV_DEPTHS),
    notes=(UNPRINTED, TWO_WAYS),
)

FIG6 = Figure(
    id="galanti2022/fig6",
    title="ConvNet-d-100 on CIFAR-10: layers over epochs",
    source=f"{SOURCE}, Fig. 6",
    cite=CITE,
    fit=FITTED,
    base=CONV.with_(width=100),
    series=FIG2.series,
    panels=FIG2.panels,
    claims=depth_claims("convnet", CONV_DEPTHS, "Fig. 2, of wider networks"),
    seeds=1,
    smoke=NARROW,
    columns=len(CONV_DEPTHS),
    notes=FIG2.notes,
)
