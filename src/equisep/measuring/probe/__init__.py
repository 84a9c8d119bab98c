"""One batch through the model before anything is measured, and the checks that every batch after it must pass."""

from equisep.measuring.probe.probe import (
    Probe,
    attends_to_patches,
    check_batch,
    check_finite,
    largest,
    probe,
    reduction_for,
    refuse_extreme,
)

__all__ = [
    "Probe",
    "attends_to_patches",
    "check_batch",
    "check_finite",
    "largest",
    "probe",
    "reduction_for",
    "refuse_extreme",
]
