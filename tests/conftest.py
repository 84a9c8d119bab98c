"""Shapes are checked while the tests run: jaxtyping's annotations, enforced by beartype."""

from jaxtyping import install_import_hook

# where tensors have shapes; the command line is typer's to check, and records are checked by their reader
SHAPED = ("data", "labels", "law", "measuring", "metrics", "models", "stats", "taps", "training")
hook = install_import_hook([f"equisep.{name}" for name in SHAPED], "beartype.beartype")

import os  # noqa: E402
from pathlib import Path  # noqa: E402

import pytest  # noqa: E402
import torch  # noqa: E402

torch.set_num_threads(1)  # the tensors are small; threads would only wait for each other


@pytest.fixture
def data_dir() -> Path:
    """The folder of real data sets that EQUISEP_DATA names; tests that need it skip where it is absent."""
    folder = os.environ.get("EQUISEP_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("EQUISEP_DATA names no folder with real data sets")
    return Path(folder)
