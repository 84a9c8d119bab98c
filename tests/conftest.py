"""Shapes are checked while the tests run: jaxtyping's annotations, enforced by beartype."""

import random
from collections.abc import Callable
from functools import wraps
from importlib.util import find_spec
from inspect import isfunction, isgeneratorfunction
from itertools import count
from typing import Any

# where tensors have shapes; the command line is typer's to check, and records are checked by their reader
SHAPED = ("compare", "data", "labels", "law", "measuring", "models", "peeled", "separation", "taps", "training")
CHECKED = 100  # calls of a function in each test
TEST = [0]  # the number of the test that runs
_numbers = count(1)
if find_spec("beartype") is not None:  # machines with accelerators may lack it
    # it looks at entries of lists drawn by Python's random numbers, which tests of untouched random states look at too:
    # it takes the function when it first checks a list, and shall have one of its own
    shared, random.getrandbits = random.getrandbits, random.Random(0).getrandbits
    from beartype import beartype

    @beartype
    def _checked(entries: list[int]) -> list[int]:
        return entries

    _checked([1])
    random.getrandbits = shared
    import jaxtyping
    from jaxtyping import install_import_hook, jaxtyped

    def first_calls(*, typechecker: Any) -> Callable[[Any], Any]:
        """`jaxtyped`, but for functions that one test calls again and again: there the checks would take most of the time."""
        whole = jaxtyped(typechecker=typechecker)

        def decorate(function: Any) -> Any:
            checked = whole(function)
            if not isfunction(function) or isgeneratorfunction(function):
                return checked
            test, calls = -1, 0

            @wraps(function)
            def call(*args: Any, **kwargs: Any) -> Any:
                nonlocal test, calls
                test, calls = TEST[0], 1 if test != TEST[0] else calls + 1
                return (checked if calls <= CHECKED else function)(*args, **kwargs)

            return call

        return decorate

    jaxtyping.jaxtyped = first_calls  # what the hook puts before every function
    hook = install_import_hook([f"equisep.{name}" for name in SHAPED], "beartype.beartype")

import os  # noqa: E402

import pytest  # noqa: E402
import torch  # noqa: E402
from hypothesis import settings  # noqa: E402

torch.set_num_threads(1)  # the tensors are small; threads would only wait for each other

# no deadline: timing never decides a test; in CI the same examples every time, so that a red run can be repeated
settings.register_profile("house", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("house")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Functions are checked anew in every test."""
    TEST[0] = next(_numbers)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Where processes share the tests, files that take long come first, so that none of them is alone at the end."""
    if hasattr(config, "workerinput"):
        long = {item.path for item in items if item.get_closest_marker("slow")}
        items.sort(key=lambda item: item.path not in long)
