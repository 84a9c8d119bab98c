"""How sites are named: a module, what it is given (`fc:in`), one call of it (`relu:2`, `fc:in:2`), the raw input."""

from __future__ import annotations

import re
from collections.abc import Collection

INPUT = "input"
INPUT_MODULE = "input:1"  # the first call of a module that is itself called `input`
GIVEN = ":in"  # behind a module's name: its input instead of its output

_NUMBER = re.compile(r":([1-9][0-9]*|\*)$")


def parts(name: str) -> tuple[str, bool, str | None]:
    """What a name asks for: a module (or a glob), whether its input is meant, and the number of the call, or `*`."""
    number = _NUMBER.search(name)
    head = name if number is None else name[: number.start()]
    return head.removesuffix(GIVEN), head.endswith(GIVEN), None if number is None else number[1]


def call_site(port: str, number: int) -> str:
    """The name of one call of a module or of its input: `relu`, `relu:2`, …; `fc:in`, `fc:in:2`, …."""
    if number == 1:
        return port
    return f"{INPUT if port == INPUT_MODULE else port}:{number}"


def port_of(site: str, modules: Collection[str]) -> tuple[str, int]:
    """The module (`relu`) or the input of one (`fc:in`) that a site is a call of, and the number of that call."""
    if site in modules:
        return site, 1
    module, given, number = parts(site)
    module = INPUT_MODULE if module == INPUT else module
    return f"{module}{GIVEN}" if given else module, int(number or 1)


def module_of(port: str, modules: Collection[str]) -> str:
    """The module whose output or input is read."""
    return port if port in modules else port.removesuffix(GIVEN)


def every_call(site: str) -> str:
    """The name that asks for all calls of which a site is one: `relu` of `relu:2`, `fc:in` of `fc:in:2`."""
    return _NUMBER.sub("", site)


def first_call(site: str) -> str:
    """The name that asks for one call alone: `relu:1` of `relu`, `relu:2` of itself."""
    return site if site == INPUT or _NUMBER.search(site) else f"{site}:1"


def is_among(site: str, names: Collection[str]) -> bool:
    """Whether names ask for a site: by itself, by every call, or as the first call, `relu:1`."""
    return site in names or every_call(site) in names or f"{site}:1" in names
