"""Shapes are checked while the tests run: jaxtyping's annotations, enforced by beartype."""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import is_dataclass
from functools import wraps
from importlib.util import find_spec
from inspect import isclass, isfunction, isgeneratorfunction
from itertools import count
from types import CodeType, FunctionType, SimpleNamespace
from typing import Any, get_args, get_origin, get_type_hints

# where tensors have shapes; the command line is typer's to check, and records are checked by their reader
SHAPED = ("compare", "data", "labels", "law", "measuring", "models", "peeled", "separation", "taps", "training")
CHECKED = 100  # calls of a function in each test
TEST = [0]  # the number of the test that runs
INNER: dict[CodeType, int] = {}  # functions inside others, by the last test that checked them
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
    from jaxtyping import AbstractArray, install_import_hook, jaxtyped

    def hints_of(function: FunctionType) -> dict[str, Any]:
        """What the annotations of a function stand for; those that name what is not imported stand for nothing."""
        found = {}
        for name, hint in function.__annotations__.items():
            try:
                found |= get_type_hints(
                    SimpleNamespace(__annotations__={name: hint}), function.__globals__, include_extras=True
                )
            except Exception:
                continue
        return found

    def has_shape(hint: Any) -> bool:
        if isinstance(hint, list | tuple) or get_origin(hint) is not None:
            return any(map(has_shape, hint if isinstance(hint, list | tuple) else get_args(hint)))
        return isclass(hint) and issubclass(hint, AbstractArray)

    def first_calls(*, typechecker: Any) -> Callable[[Any], Any]:
        """`jaxtyped` where there are shapes and the plain check elsewhere, made at the first call, for the first calls of a test.

        Of functions that one test calls again and again the checks would take most of the time, and so would checking anew a
        function inside another whenever that one is called.
        """
        whole = jaxtyped(typechecker=typechecker)

        def made(function: FunctionType) -> Any:
            hints = hints_of(function)
            if any(map(has_shape, hints.values())):
                return whole(function)
            written, function.__annotations__ = function.__annotations__, hints
            try:
                return typechecker(function)
            finally:
                function.__annotations__ = written

        def decorate(function: Any) -> Any:
            if isclass(function):
                start = vars(function).get("__init__")
                if is_dataclass(function) and isfunction(start) and not hasattr(start, "__wrapped__"):
                    function.__init__ = decorate(start)
                return function
            if not isfunction(function) or isgeneratorfunction(function):
                return whole(function)
            if "<locals>" in function.__qualname__:
                if INNER.get(function.__code__) == TEST[0]:
                    return function
                INNER[function.__code__] = TEST[0]
            checked, test, calls = None, -1, 0

            @wraps(function)
            def call(*args: Any, **kwargs: Any) -> Any:
                nonlocal checked, test, calls
                test, calls = TEST[0], 1 if test != TEST[0] else calls + 1
                if calls > CHECKED or jaxtyping.config.jaxtyping_disable:
                    return function(*args, **kwargs)
                checked = checked or made(function)
                return checked(*args, **kwargs)

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


@contextmanager
def unchecked() -> Iterator[None]:
    """Types and shapes as users have them: nobody checks."""
    if find_spec("beartype") is None:
        yield
        return
    before = jaxtyping.config.jaxtyping_disable
    jaxtyping.config.update("jaxtyping_disable", True)
    try:
        yield
    finally:
        jaxtyping.config.update("jaxtyping_disable", before)


@pytest.fixture
def as_users_run_it() -> Iterator[None]:
    """Without type checks, which would refuse a wrong word before the library's own sentence does."""
    with unchecked():
        yield


@pytest.fixture(scope="module")
def shapes_are_checked_elsewhere() -> Iterator[None]:
    """For files that run whole trainings and figures, each part of which checks its shapes in its own tests."""
    with unchecked():
        yield


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Functions are checked anew in every test."""
    TEST[0] = next(_numbers)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Where processes share the tests, files that take long come first, so that none of them is alone at the end."""
    if hasattr(config, "workerinput"):
        long = {item.path for item in items if item.get_closest_marker("slow")}
        items.sort(key=lambda item: item.path not in long)
