"""Every error the library raises on purpose, and the exit code each has on the command line.

    EquisepError                 2   catch this for everything below
    ├── InputError               2   an argument that cannot be used (also a ValueError)
    │   ├── LabelError           2   targets that are no class labels, or outside the range
    │   └── FeatureError         2   NaN or Inf in inputs or activations
    ├── DataError                2   a data set that is missing, damaged or cannot be read (again)
    ├── SiteError                2   a site that does not exist or was never reached
    ├── ModelError               2   a model that cannot be loaded or run
    ├── ProfileError             2   a saved profile that cannot be read
    ├── StoreError               2   a store or a record of results that cannot be read or written
    ├── MissingExtraError        2   an optional package that is not installed (also an ImportError)
    └── NumericalError           3   a computation that failed: a solver stopped early, memory ran out
        └── DivergenceError      3   training whose loss or weights are no longer finite

A message has three parts: what was asked, what was found with the numbers, what to do.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class EquisepError(Exception):
    """Base of all errors raised on purpose.

    `profile` holds what was computed before the error, where there is something: `measure` that fails on the test data
    leaves the whole profile of the training data there.
    """

    exit_code = 2
    profile: object | None = None


class InputError(EquisepError, ValueError):
    """An argument that cannot be used."""


class LabelError(InputError):
    """Targets that are no class labels, or outside the range."""


class FeatureError(InputError):
    """NaN or Inf where a finite number is needed."""


class DataError(EquisepError):
    """A data set that is missing, damaged, or cannot be read the way it was asked."""


class SiteError(EquisepError):
    """A site that does not exist or was never reached."""


class ModelError(EquisepError):
    """A model that cannot be loaded or run."""


class ProfileError(EquisepError):
    """A saved profile that cannot be read."""


class StoreError(EquisepError):
    """A store or a record of results that cannot be read or written."""


class MissingExtraError(EquisepError, ImportError):
    """An optional package that is not installed."""

    def __init__(self, *, needed_for: str, package: str, extra: str) -> None:
        super().__init__(
            f'{needed_for} needs the package `{package}`, which is not installed. Run: pip install "equisep[{extra}]"'
        )


class NumericalError(EquisepError):
    """A computation that failed, as opposed to one that was asked wrongly."""

    exit_code = 3


class DivergenceError(NumericalError):
    """Training whose loss or weights are no longer finite; `epoch`, counted from 1, is the first where they are not."""

    epoch: int | None = None


def did_you_mean(wrong: str, known: Iterable[str]) -> str:
    """The clause ` Did you mean …?` with the nearest known names in whatever case, or nothing where none is near."""
    by_folded: dict[str, list[str]] = {}
    for name in known:
        by_folded.setdefault(name.casefold(), []).append(name)
    folded = wrong.casefold()
    close = [folded] if folded in by_folded else get_close_matches(folded, by_folded, n=3)
    near = [name for each in close for name in by_folded[each]]
    return f" Did you mean {' or '.join(f'`{name}`' for name in near)}?" if near else ""
