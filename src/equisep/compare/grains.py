"""Which grain of two profiles is compared, layers or blocks: the one that both report, or else one that both hold."""

from __future__ import annotations

from dataclasses import dataclass, replace

from equisep.results import LawFit, Note, Profile, SiteReading


@dataclass(frozen=True, slots=True)
class Grain:
    """One grain of a profile: its sites in order, their law, and the effective depth counted in them, where it is known."""

    grain: str | None
    sites: tuple[SiteReading, ...]
    law: LawFit
    depth: int | None


def _grains(profile: Profile) -> dict[str | None, Grain]:
    """Every grain that a profile holds, the one it reports first."""
    choice = profile.grains
    named = profile.settings.get("grain") if choice is None else choice.chosen
    held = {named: Grain(named, profile.sites, profile.law, profile.effective_depth)}
    if choice is None:
        return held
    known = {reading.name: reading for reading in (*choice.others, *profile.sites)}
    begins = profile.sites[0].index if profile.sites else 0
    for grain, names in choice.sites.items():
        law = profile.laws.get(grain)
        if grain != named and law is not None and all(name in known for name in names):
            sites = tuple(replace(known[name], index=begins + position) for position, name in enumerate(names))
            held[grain] = Grain(grain, sites, law, None)  # depth is counted in the sites that are reported
    return held


def shared_grain(a: Profile, b: Profile) -> tuple[Grain, Grain, list[Note]]:
    """The grain to compare: the one that both report, else one that both hold, else what each reports."""
    left, right = _grains(a), _grains(b)
    mine, other = next(iter(left.values())), next(iter(right.values()))
    if mine.grain == other.grain:
        return mine, other, []
    both = next((grain for grain in (*left, *right) if grain is not None and grain in left and grain in right), None)
    if both is None:
        return mine, other, []
    text = (
        f"The profiles report {mine.grain} and {other.grain}; both hold {both}, which are compared. Effective depth is known "
        "for the grain that a profile reports."
    )
    return left[both], right[both], [Note("grain-shared", text)]
