"""Several readings of one network on the same samples: the first as the profile, the others beside it, what company does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from torch import nn

from equisep.data.feed import Feed
from equisep.errors import DataError, EquisepError
from equisep.measuring.notes import SHOW_COMPANY, Notes
from equisep.results import Note, Profile, Reading
from equisep.taps import batch_norms

LIFTED = ("unmixed-batches",)  # Notes of another reading that the profile begins with
Read = Callable[[Reading], tuple[Profile, EquisepError | None]]


def distinct_readings(
    model: nn.Module, names: Sequence[Reading], feeds: Sequence[Feed | None]
) -> dict[Reading, Reading]:
    """For each reading asked for the one whose numbers it has.

    Without BatchNorm all readings are one. Of batches that are all read as they come, test data included, `drawn` is what `mixed`
    was before it; not the other way round, since `mixed` has to test them.
    """
    if not batch_norms(model):
        return dict.fromkeys(names, names[0])
    taken = {name: name for name in names}
    as_they_come = all(feed.as_it_comes for feed in feeds if feed is not None)
    if as_they_come and "mixed" in names[: names.index("drawn") if "drawn" in names else 0]:
        taken["drawn"] = "mixed"
    return taken


def check_repeatable(taken: dict[Reading, Reading], feeds: Sequence[Feed | None]) -> None:
    """Data that can be read only once have one reading."""
    several = list(dict.fromkeys(taken.values()))
    once = next((feed for feed in feeds if feed is not None and not feed.again), None)
    if once is not None and len(several) > 1:
        raise DataError(
            f"The {once.what} data can be read only once (they are an iterator), and the readings {', '.join(several)} read "
            "them once each. Pass a loader or a pair (X, Y), or ask for one reading."
        )


def with_other_readings(
    profile: Profile, names: Sequence[Reading], taken: dict[Reading, Reading], read: Read
) -> tuple[Profile, EquisepError | None]:
    """The profile of the first reading with the others; an error in one of them comes back beside what was read before it."""
    found: dict[Reading, Profile] = {names[0]: profile}
    failure: EquisepError | None = None
    for name in names[1:]:
        twin = taken[name]
        if twin not in found:
            try:
                found[twin], failure = read(twin)
            except EquisepError as error:
                failure = error
            if failure is not None:
                break
        if twin != name and len(set(taken.values())) > 1:
            settings = {**found[twin].settings, "reading": name}
            found[name] = replace(found[twin], reading=name, settings=settings)
    company = company_of(found | {name: found[twin] for name, twin in taken.items() if twin in found})
    others: dict[str, Profile] = {name: own for name, own in found.items() if name != names[0]}
    own = [_measured(note, company.get(names[0])) for note in profile.notes]
    lifted = [
        _measured(note, company.get(name))
        for name, each in others.items()
        for note in each.notes
        if note.code in LIFTED
    ]
    notes = Notes((*own, *lifted, *_twin_notes(names, taken)))
    whole = replace(
        profile,
        settings={**profile.settings, "readings": list(names)},
        other_readings=others,
        company=company,
        notes=notes.ranked(),
    )
    return whole, failure


def _measured(note: Note, factors: Sequence[float | None] | None) -> Note:
    """A Note on company with the factor at the last layer, in place of the way to find it."""
    if note.code not in LIFTED or not factors or factors[-1] is None or "training data" not in note.text:
        return note
    return replace(
        note, text=note.text.replace(SHOW_COMPANY, f"D of the last layer is {factors[-1]:.3g} times that in `eval`.")
    )


def company_of(readings: dict[Reading, Profile]) -> dict[str, tuple[float | None, ...]]:
    """What the statistics of batches add at every site: D of each reading over D in `eval`, where that was read too."""
    alone = readings.get("eval")
    if alone is None:
        return {}
    return {
        name: tuple(
            None if with_others is None or not d else with_others / d
            for with_others, d in zip(own.curve(), alone.curve(), strict=True)
        )
        for name, own in readings.items()
        if name != "eval"
    }


def _twin_notes(names: Sequence[Reading], taken: dict[Reading, Reading]) -> list[Note]:
    if len(set(taken.values())) == 1:
        words = " and ".join(f"`{name}`" for name in names)
        return [Note("one-reading", f"The network has no BatchNorm: {words} are one reading of it, taken once.")]
    if any(name != twin for name, twin in taken.items()):
        return [
            Note(
                "same-batches", "The data are batches, read as they come: `mixed` and `drawn` are one reading of them."
            )
        ]
    return []
