"""What the tests open: a measured network, a training, two networks compared, and names that try to be markup."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import nn

import equisep
from equisep.law import fit_law
from equisep.results import Profile
from equisep.tracking import History

CLASSES, FEATURES = 5, 12
NAMES = ("Shirt", "Coat", "Dress", "Bag", "Sandal")
HOSTILE = (
    "<script>document.title='taken'</script>",
    "</script><script>document.title='taken'</script>",
    '"><img src=x onerror="document.title=\'taken\'">',
    "\u202eright to left\u2067 and nothing turns it back",
    "a name without an end " * 40,
)


def samples(n: int = 150, *, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Gaussian classes, the last two of which have a third of the samples of the others."""
    generator = torch.Generator().manual_seed(seed)
    centers = torch.randn(CLASSES, FEATURES, generator=torch.Generator().manual_seed(9))
    y = torch.cat([torch.arange(n) % 3, 3 + torch.arange(2 * n // 9) % 2])
    return centers[y] + 0.9 * torch.randn(len(y), FEATURES, generator=generator), y


def trained(depth: int, *, history: bool = False, epochs: int = 12) -> tuple[nn.Module, History | None]:
    """A small network after a few epochs, and its history where one is asked for."""
    torch.manual_seed(0)
    model = equisep.Fnn(depth, width=16, inputs=FEATURES, classes=CLASSES)
    x, y = samples()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    tracker = equisep.Tracker(model, (x, y), test=samples(seed=1), every=3) if history else None
    for _ in range(epochs):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        if tracker is not None:
            tracker.epoch()
    return model, tracker.history if tracker else None


def profile_of(model: nn.Module) -> Profile:
    """Everything that `measure` measures, in two readings."""
    return equisep.measure(
        model, samples(), samples(seed=1), class_names=NAMES, readings=("eval", "mixed"), coordinates=60, whole=False
    )


def hostile(profile: Profile) -> Profile:
    """The same numbers under names that would be markup, were they not text."""
    sites = [
        replace(site, name=HOSTILE[site.index % len(HOSTILE)] + str(site.index) if site.index else site.name)
        for site in profile.sites
    ]
    return replace(profile, model=HOSTILE[1], class_names=HOSTILE, sites=tuple(sites))


def poor(profile: Profile) -> dict[str, Profile]:
    """Profiles in which much is missing, for each of which the page says so and shows the rest."""
    first = replace(
        profile, sites=profile.sites[:1], law=fit_law([2.0]), laws={}, effective_depth=None, network_depth=None
    )
    lacking = {"fuzziness_test": None, "ncc_test": None, "cdnv_test": None, "corrected_test": None}
    untested = [replace(site, **lacking) for site in profile.sites]
    nothing = {
        "fuzziness": 0.0,
        "fuzziness_interval": None,
        "class_fuzziness": (0.0,) * CLASSES,
        "ncc_train": float("nan"),
    }
    zero = [replace(site, **nothing) for site in profile.sites]
    return {
        "one layer": replace(first, other_readings={}, company={}),
        "no test data": replace(profile, sites=tuple(untested), counts_test=None, accuracy_test=None, laws={}),
        "zero": replace(profile, sites=tuple(zero)),
    }
