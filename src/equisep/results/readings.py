"""Readings: how BatchNorm and batches were used while features were read. One name everywhere, old names kept."""

from __future__ import annotations

import warnings
from typing import Any, Literal, get_args

from equisep.errors import InputError, did_you_mean

Reading = Literal["eval", "mixed"]
READINGS: tuple[Reading, ...] = get_args(Reading)
_FORMER: dict[str, Reading] = {"eval": "eval", "batch": "mixed"}  # the values of `mode=`, the option's former name


def reading_named(reading: Any, *, mode: Any = None) -> Reading:
    """The reading that was asked for; `mode=` and its value `batch`, the former names, are taken with a warning.

    eval   BatchNorm uses its running statistics.
    mixed  BatchNorm uses the statistics of the batch being read, which should mix classes; running statistics untouched.
    """
    asked = reading if mode is None else mode
    if mode is not None or asked == "batch":
        known = _FORMER.get(asked) if isinstance(asked, str) else None
        if known is not None:
            _warn(f'`{"mode" if mode is not None else "reading"}="{asked}"` is now `reading="{known}"`.')
            return known
    if asked not in READINGS:
        hint = did_you_mean(str(asked), READINGS)
        raise InputError(f"No reading `{asked}`.{hint} Known: {', '.join(READINGS)}.")
    return asked  # type: ignore[no-any-return]


def former_reading(mode: str) -> str:
    """The reading that a file of an earlier version calls its `mode`."""
    return _FORMER.get(mode, mode)


def _warn(text: str) -> None:
    warnings.warn(text, FutureWarning, stacklevel=4)
