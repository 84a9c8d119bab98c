"""How many sites are worked off at once: one thread a site is quicker than many threads a product."""

from __future__ import annotations

import torch

from equisep.measuring.options import FOLDS
from equisep.measuring.reading import Subject

SHARE = 4  # of the memory budget that may go into sites under work


def site_threads(subject: Subject, sites: int) -> int:
    """As many as there are threads, and as the memory of the widest site's statistics allows."""
    if next((p.device.type for p in subject.model.parameters()), "cpu") != "cpu":
        return 1
    numbers = 8 * (FOLDS + 6) * subject.probe.classes + 4 * (FOLDS + 1) * (subject.probe.classes - 1)  # a feature
    room = subject.options.memory // SHARE // max(1, numbers * max(subject.probe.dims))
    return max(1, min(torch.get_num_threads(), sites, room))
