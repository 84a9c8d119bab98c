"""When to stop a training: what the rule "the law has settled" saves and costs, beside early stopping on validation data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from equisep.figures.cell import Training
from equisep.figures.figure import Claim, Figure, Panel, Series

EPOCHS = 100
MOST_LOST = 0.5  # points of test accuracy
LEAST_SAVED = 0.2  # of the epochs
EMBEDDED: Mapping[str, Any] = {"data": "embedded-10x10", "preparation": "he2023-10x10"}
# name → title, label, changes; a fifth or a sixth of the samples is held out for validation
SETTINGS: Mapping[str, tuple[str, str, Mapping[str, Any]]] = {
    "fm8": ("Fashion-MNIST, 8 layers", "8 layers", {}),
    "fm20": ("Fashion-MNIST, 20 layers", "20 layers", {"depth": 20}),
    "cifar8": (
        "CIFAR-10, 8 layers",
        "CIFAR-10",
        {"data": "cifar10", "preparation": "he2023-32x32-cifar", "per_class": 400},
    ),
    "noise8": ("Fashion-MNIST, 20 % random labels", "random labels", {"label_noise": 0.2}),
    "few8": (
        "Fashion-MNIST, 100 per class",
        "100 per class",
        {"per_class": 100, "validation": 25, "batch_size": 32},
    ),
}
CLEAN, HARD = ("fm8", "fm20", "cifar8"), ("noise8", "few8")
# name → label, milestones of the rate, which is divided by 10 there
SCHEDULES: Mapping[str, tuple[str, tuple[float, ...]]] = {
    "steps": ("rate in steps", (1 / 3, 2 / 3)),
    "constant": ("constant rate", ()),
}
ALL = tuple(f"{setting}-{schedule}" for setting in SETTINGS for schedule in SCHEDULES)
# name → title of a panel
LOST = ((0.0, ""), (MOST_LOST, f"{MOST_LOST:g} points"))  # nothing, and what claims allow
DRAWN = {"law": "law settled", "loss": "validation loss", "accuracy": "validation accuracy", "r": "r alone"}


def _words(series: str) -> str:
    setting, _, schedule = series.partition("-")
    return f"{SETTINGS[setting][0]}, {SCHEDULES[schedule][0]}"


def _costs(series: str) -> tuple[Claim, ...]:
    """What is claimed of one setting and schedule."""
    title, of = _words(series), (series,)
    return (
        Claim(f"{title}: law settled costs at most {MOST_LOST:g} points of test accuracy against the whole schedule",
              "at most", of, "lost_law", MOST_LOST, source="ours: what does it cost?"),
        Claim(f"{title}: law settled in 10 readings costs at most {MOST_LOST:g} points against the whole schedule", "at most",
              of, "lost_law10", MOST_LOST, source="ours: what does it cost?"),
        Claim(f"{title}: law settled costs at most {MOST_LOST:g} points more than early stopping on validation loss",
              "at most", of, "behind_law", MOST_LOST, source="ours: against validation loss"),
    )  # fmt: skip


STOPPING = Figure(
    id="equisep2026/stopping",
    title="Stopping: what “the law has settled” saves and costs beside validation loss",
    source="equisep",
    cite="Ours: experiments of the equisep library, declared with their claims before they were run.",
    base=Training(
        **EMBEDDED, per_class=500, validation=100, depth=8, epochs=EPOCHS, readings=("eval",), course=1,
    ),
    series=tuple(
        Series(f"{setting}-{schedule}", {**changes, "milestones": milestones}, panel=setting, label=f"{name}, {label}")
        for setting, (_, name, changes) in SETTINGS.items()
        for schedule, (label, milestones) in SCHEDULES.items()
    ),
    panels=(
        *(
            Panel(setting, title, "array", "course_accuracy_test", "course_epoch", y_label="test accuracy",
                  x_label="epoch", log_y=False)
            for setting, (title, *_) in SETTINGS.items()
        ),
        *(
            Panel(f"rule-{rule}", title, "scatter", f"lost_{rule}", f"saved_{rule}", y_label="points of test accuracy lost",
                  x_label="share of the epochs saved", log_y=False, series=ALL, levels=LOST,
                  heading="what each rule saves and costs")
            for rule, title in DRAWN.items()
        ),
    ),
    claims=(
        *(claim for series in ALL for claim in _costs(series)),
        *(
            Claim(f"{_words(series)}: early stopping on validation loss keeps more test accuracy than law settled", "below",
                  (series,), "lost_loss;lost_law", source="ours: where early stopping should help")
            for series in ALL if series.startswith(HARD)
        ),
        *(
            Claim(f"{_words(series)}: law settled keeps more test accuracy than early stopping on validation loss", "below",
                  (series,), "lost_law;lost_loss", source="ours: where training on should help")
            for series in ALL if series.startswith(CLEAN)
        ),
        *(
            Claim(f"{label}: law settled saves at least {100 * LEAST_SAVED:g} % of the epochs, in every setting", "at least",
                  (f"*-{schedule}",), "saved_law", LEAST_SAVED, source="ours: what does it save?")
            for schedule, (label, _) in SCHEDULES.items()
        ),
        *(
            Claim(f"{label}: the law has emerged when law settled stops, in every setting", "at least", (f"*-{schedule}",),
                  "law_ahead", 0.0, source="ours: does it wait for the law?")
            for schedule, (label, _) in SCHEDULES.items()
        ),
        *(
            Claim(f"{label}: the law emerges before neural collapse, in every setting", "at least", (f"*-{schedule}",),
                  "collapse_lag", 1.0, source="ours: what comes first?")
            for schedule, (label, _) in SCHEDULES.items()
        ),
        *(
            Claim(f"{title}: r alone costs at least {MOST_LOST:g} points against the whole schedule", "at least",
                  (f"{setting}-*",), "lost_r", MOST_LOST, source="ours: r alone is no rule")
            for setting, (title, *_) in SETTINGS.items()
        ),
    ),
    seeds=10,
    smoke={"epochs": 6, "test_per_class": 3, **EMBEDDED, "width": 12},
    notes=(
        "Adam at 0.001, batches of 128 (32 of few samples). Everything is read after each epoch, in `eval`, on all training "
        "samples; nearest centers of the rule are of the validation data, whose labels are as noisy as those that are "
        "trained on. Law settled and r alone keep the network as it is when they stop; early stopping keeps the best.",
    ),
)  # fmt: skip
