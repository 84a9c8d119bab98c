"""`equisep explain`, and the sentences that `measure` begins with."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from cli.running import equisep, equisep_process
from equisep import Profile, findings
from equisep.cli.app import COMMANDS
from equisep.law import fit_law
from equisep.results import SiteReading

NETWORK = """
from equisep import Fnn

def small():
    return Fnn(4, width=8, inputs=6, classes=3)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    curve, ncc = (45.0, 18.0, 7.2, 2.9), (0.65, 0.8, 0.95, 1.0)
    sites = tuple(SiteReading(step, f"step{step}", 9, fuzziness=curve[step], ncc_train=ncc[step]) for step in range(4))
    Profile("Net", 3, (50, 50, 50), sites, fit_law(curve), accuracy_train=1.0, reading="eval").save(tmp_path / "p.json")
    return tmp_path


def test_sentences_in_80_columns(folder: Path) -> None:
    done = equisep_process("explain", "p.json", folder=folder, COLUMNS="80")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("1. ") and max(map(len, lines)) <= 80
    assert "Cannot be said from this profile: whether it memorizes" in " ".join(done.stdout.split())
    assert "   → equisep.measure(model, train, test)" in lines
    ascii_only = equisep_process("explain", "p.json", folder=folder, COLUMNS="80", PYTHONIOENCODING="ascii")
    assert ascii_only.stdout.isascii() and "-> equisep.measure" in ascii_only.stdout and "?" not in ascii_only.stdout


def test_json_has_all_of_every_finding(folder: Path) -> None:
    content = json.loads(equisep("explain", "p.json", "--json", folder=folder).stdout)
    assert content["model"] == "Net" and content["whole"] is None
    first = content["findings"][0]
    assert first.keys() == {"code", "text", "confidence", "rule", "weight", "numbers", "next", "site", "classes"}
    assert [each["text"] for each in content["findings"]] == [
        finding.text for finding in Profile.load(folder / "p.json").findings
    ]


def test_what_is_no_profile_is_one_sentence(folder: Path) -> None:
    (folder / "q.json").write_text("{}")
    for name, words in (("none.json", "No profile at `none.json`"), ("q.json", "is no equisep profile")):
        done = equisep("explain", name, folder=folder)
        assert done.returncode == 2 and words in done.stderr and not done.stdout


def test_measure_says_what_it_means_before_the_table(folder: Path) -> None:
    rng = np.random.default_rng(0)
    y = np.arange(90) % 3
    x = rng.standard_normal((90, 6)).astype(np.float32) + y[:, None]
    np.savez(folder / "mine.npz", x_train=x, y_train=y, x_test=x, y_test=y)
    (folder / "explained_net.py").write_text(NETWORK)
    words = ("measure", "--model", "./explained_net.py:small", "--data", "mine.npz", "--out", "m.json")
    done = equisep(*words, folder=folder)
    sys.modules.pop("explained_net", None)
    assert done.returncode == 0, done.stderr
    text = " ".join(done.stdout.split())
    profile = Profile.load(folder / "m.json")
    assert text.startswith(f"1. {profile.findings[0].text}"[:60])
    assert text.index("1. ") < text.index("layer name")
    first = profile.findings[0]
    assert first.code == "unfitted"


def test_what_to_do_next_names_commands_that_there_are() -> None:
    """Also those in the rules that no profile here sets off."""
    source = "".join(path.read_text(encoding="utf-8") for path in Path(findings.__file__).parent.glob("*.py"))
    named = set(re.findall(r"(?:equisep |command\(\")([a-z]+)", source))
    assert {"measure", "cut", "history", "rare"} <= named <= COMMANDS.keys()
