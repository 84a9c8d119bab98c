"""Shapes are checked while the tests run: jaxtyping's annotations, enforced by beartype."""

import random
from importlib.util import find_spec

# where tensors have shapes; the command line is typer's to check, and records are checked by their reader
SHAPED = ("compare", "data", "labels", "law", "measuring", "models", "peeled", "separation", "taps", "training")
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
    from jaxtyping import install_import_hook

    hook = install_import_hook([f"equisep.{name}" for name in SHAPED], "beartype.beartype")

import os  # noqa: E402

import pytest  # noqa: E402
import torch  # noqa: E402
from hypothesis import settings  # noqa: E402

torch.set_num_threads(1)  # the tensors are small; threads would only wait for each other

# no deadline: timing never decides a test; in CI the same examples every time, so that a red run can be repeated
settings.register_profile("house", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("house")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Where processes share the tests, files that take long come first, so that none of them is alone at the end."""
    if hasattr(config, "workerinput"):
        long = {item.path for item in items if item.get_closest_marker("slow")}
        items.sort(key=lambda item: item.path not in long)
