"""The numbers of a profile under flat names, as loggers take them: `equisep/law/rho`, `equisep/fuzziness/03_fc3`."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from typing import Any

from equisep.results.profile import CURVES, Profile

PREFIX = "equisep"
LAW = ("rho", "half_life", "r", "r2", "imbalance", "max_residual")
WHOLE = ("effective_depth", "effective_depth_balanced", "network_depth", "accuracy_train", "accuracy_test")
CLASSIFIER = ("nc3", "nc4", "nc4_test", "norm_spread", "angle_spread", "angle_gap", "etf_distance")


def profile_scalars(profile: Profile, *, prefix: str = PREFIX, sites: bool = True) -> dict[str, float]:
    """Every number of the profile that exists, by name; the names and their order depend on the sites alone."""
    return flat([*_whole(profile), *(_of_sites(profile) if sites else ())], prefix=prefix)


def _whole(profile: Profile) -> Iterator[tuple[str, Any]]:
    """The law, depths, accuracies and the classifier."""
    yield from ((f"law/{name}", getattr(profile.law, name)) for name in LAW)
    if "test" in profile.laws:
        yield from ((f"law_test/{name}", getattr(profile.laws["test"], name)) for name in LAW)
    yield from ((name, getattr(profile, name)) for name in WHOLE)
    if profile.classifier is not None:
        yield from ((f"classifier/{name}", getattr(profile.classifier, name)) for name in CLASSIFIER)


def _of_sites(profile: Profile) -> Iterator[tuple[str, Any]]:
    """Every curve, site by site."""
    width = max(2, len(str(max((site.index for site in profile.sites), default=0))))
    for curve in CURVES:
        for site in profile.sites:
            yield f"{curve}/{site.index:0{width}d}_{_plain(site.name)}", getattr(site, curve)


def flat(entries: Iterable[tuple[str, Any]], *, prefix: str) -> dict[str, float]:
    """The finite numbers among the entries, their names after the prefix; what does not exist is left out."""
    begin = f"{prefix}/" if prefix else ""
    return {f"{begin}{name}": float(value) for name, value in entries if value is not None and math.isfinite(value)}


def _plain(name: str) -> str:
    """A site's name in the letters that every logger takes; a slash would make a group of its own."""
    return re.sub(r"[^A-Za-z0-9_.\-]", "_", name)
