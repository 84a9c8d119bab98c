"""A training killed at any moment leaves a history that goes on: five kills here, as many as you like by the script."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "kill_tracking.py"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")
def test_five_kills() -> None:
    done = subprocess.run([sys.executable, SCRIPT, "--kills", "5"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("5 kills, ")
