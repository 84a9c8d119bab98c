"""`equisep measure --features`: what it has no use for, and the profile of what is stored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from equisep.errors import InputError
from equisep.progress import Progress

if TYPE_CHECKING:
    from equisep.results import Profile

# how a model would have been read: the features have been already
OF_MODELS = {"calls": "--calls", "classifier": "--classifier", "readings": "--reading"}


def refuse_with_features(given: Mapping[str, Any], **others: object) -> None:
    """Raise where a flag was given that stored features have no use for."""
    flags = [f"--{name.replace('_', '-')}" for name, value in others.items() if value is not None]
    flags += [flag for name, flag in OF_MODELS.items() if name in given]
    if flags:
        raise InputError(
            f"`{flags[0]}` is for a model that is run; with `--features` its layers have been. Leave it out."
        )


def stored_profile(
    features: str, labels: str | None, split: str, given: Mapping[str, Any], *, progress: Progress
) -> Profile:
    """The profile of stored features: both splits that lie there, or one of them."""
    from equisep.measuring.features import measure_features

    return measure_features(features, labels, split=split, **given, progress=progress)
