"""What the files of this folder share."""

import fcntl
import os
from collections.abc import Iterator

import pytest

# Ray reads this once, when it is imported. A cluster that asks for a token would let a test's luck depend on what lies in the
# home folder: newer versions write a token there with the first cluster that they start.
os.environ["RAY_AUTH_MODE"] = "disabled"


@pytest.fixture(scope="module")
def one_ray(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """One file of tests at a time has clusters: who asks Ray for any cluster of this machine finds another's, too."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent  # that of all processes
    with (folder / "ray.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
