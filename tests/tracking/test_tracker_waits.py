"""On a GPU a light reading is told in few steps and waited for a fixed number of times, however many layers there are."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch.utils.backend_registration as registration

TESTS = Path(__file__).parents[1]


@pytest.mark.skipif(
    not hasattr(registration, "_setup_privateuseone_for_python_backend"),
    reason="this torch cannot pretend to have another device",
)
def test_a_light_reading_on_a_gpu_is_few_steps_and_few_waits() -> None:
    paths = os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])
    script = TESTS / "tracking" / "count_waits.py"
    ran = subprocess.run(
        [sys.executable, script], env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    counted = json.loads(ran.stdout.splitlines()[-1])
    assert counted["apart"] < 1e-9
    assert (
        counted["waits"] <= 40
    )  # of 20 layers, training and test data: one wait per layer and data set would be 40 more
    assert counted["steps"] <= 600
