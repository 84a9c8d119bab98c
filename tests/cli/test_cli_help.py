"""The help: commands in panels, options in panels, and an example below each command that really parses."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from typer.main import get_command

from cli.running import equisep
from equisep.cli.app import COMMANDS, EXAMPLES, PANELS, _loaded, app

GROUPS = {"figures": ("list", "run", "show"), "peeled": ("solve", "threshold", "diagram", "network", "two-layer")}
NAMES = [*(COMMANDS.keys() - GROUPS.keys()), *(f"{group} {name}" for group, names in GROUPS.items() for name in names)]


def test_every_command_has_an_example() -> None:
    assert EXAMPLES.keys() == set(NAMES)


@pytest.mark.parametrize("name", sorted(NAMES))
def test_examples_parse_and_stand_below_the_help(name: str, tmp_path: Path) -> None:
    first, *rest = name.split()
    command = _loaded(first)
    for group in rest:
        command = command.commands[group]
    for example in EXAMPLES[name]:
        program, *words = shlex.split(example)
        assert program == "equisep" and words[: len(name.split())] == name.split()
        command.make_context(name, words[len(name.split()) :])  # raises where an option or argument is unknown
    shown = " ".join(equisep(*name.split(), "--help", folder=tmp_path).stdout.split())
    assert all(" ".join(example.split()) in shown for example in EXAMPLES[name])
    assert not re.search("[\U0001f000-\U0001ffff]", shown)  # rich made a picture of `:factory:`


@pytest.mark.parametrize("words", [["--model", "fnn"], ["--model=fnn"], ["fnn"]])
@pytest.mark.parametrize(
    ("name", "models"), [("layer", "fnn"), ("rank", ["fnn"]), ("features", "fnn"), ("rare", "fnn")]
)
def test_a_model_in_its_place_can_be_given_as_an_option(name: str, models: str | list[str], words: list[str]) -> None:
    """It is one in `measure` and `cut`."""
    more = ["--out", "new"] if name == "features" else []
    params = _loaded(name).make_context(name, ["--data", "d.npz", *words, *more]).params
    assert (params.get("model") or params.get("models")) == models


def test_commands_stand_in_panels(tmp_path: Path) -> None:
    shown = equisep("--help", folder=tmp_path).stdout
    assert get_command(app).name == "equisep"
    for panel, commands in PANELS.items():
        assert panel in shown and all(f" {name} " in shown for name in commands)


def test_the_options_of_measure_stand_in_panels(tmp_path: Path) -> None:
    shown = equisep("measure", "--help", folder=tmp_path).stdout
    at = [shown.index(f"─ {panel} ─") for panel in ("Model", "Data", "What is read", "Statistics", "Output")]
    assert at == sorted(at)
    sites = " ".join(shown[shown.index("--sites") :].replace("│", " ").split())
    assert "[default: (auto)]" in sites[:200]
