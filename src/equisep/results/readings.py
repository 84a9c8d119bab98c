"""Readings: how BatchNorm and batches were used while features were read. One name everywhere, old names kept."""

from __future__ import annotations

import warnings
from typing import Any, Literal, get_args

from equisep.errors import InputError, did_you_mean

Reading = Literal["eval", "mixed", "drawn"]
READINGS: tuple[Reading, ...] = get_args(Reading)
BY_BATCH: tuple[Reading, ...] = ("mixed", "drawn")  # the readings in which BatchNorm goes by the batch being read
_FORMER: dict[str, Reading] = {"eval": "eval", "batch": "mixed"}  # the values of `mode=`, the option's former name


def reading_named(reading: Any, *, mode: Any = None) -> Reading:
    """The reading that was asked for; `mode=` and its value `batch`, the former names, are taken with a warning.

    eval   BatchNorm uses its running statistics.
    mixed  BatchNorm uses the statistics of the batch being read, which mixes the classes as a uniform permutation does;
           running statistics untouched.
    drawn  the same, of batches in the order in which the samples were drawn: the figures of He & Su 2023 are read so.
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


def readings_named(readings: Any) -> tuple[Reading, ...]:
    """One reading or several, each once, in the order asked; several in one word are parted by commas."""
    names = readings.split(",") if isinstance(readings, str) else readings
    if not isinstance(names, list | tuple) or not names:
        raise InputError(f"`readings` takes at least one of {', '.join(READINGS)}; found {readings!r}.")
    return tuple(dict.fromkeys(reading_named(name.strip() if isinstance(name, str) else name) for name in names))


def former_reading(mode: str) -> str:
    """The reading that a file of an earlier version calls its `mode`."""
    return _FORMER.get(mode, mode)


def _warn(text: str) -> None:
    warnings.warn(text, FutureWarning, stacklevel=4)
