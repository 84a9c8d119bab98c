"""Probes of features: a closed-form ridge classifier, nearest centers of few samples, a certificate for them, own labels."""

from equisep.separation.probes.axes import ProbeRows, probe_rows
from equisep.separation.probes.certificate import CenterMoments, center_moments, few_shot_certificate
from equisep.separation.probes.few_shot import few_shot_errors
from equisep.separation.probes.own_labels import OwnLabels, own_labels
from equisep.separation.probes.ridge import RidgeProbe, left_out_scores, ridge_probe, scattered_ridge

__all__ = [
    "CenterMoments",
    "OwnLabels",
    "ProbeRows",
    "RidgeProbe",
    "center_moments",
    "few_shot_certificate",
    "few_shot_errors",
    "left_out_scores",
    "own_labels",
    "probe_rows",
    "ridge_probe",
    "scattered_ridge",
]
