"""How long work says how far it is: a callback, so that the library itself never prints."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str, int, int | None], None]
"""Called as `progress(what, done, total)`; `total` is None where it is not known."""


def silent(what: str, done: int, total: int | None) -> None:
    """The progress callback of code that nobody watches."""
