"""`equisep measure`, `sites`, `law`, `compare`: with a model and data of the user's, good and bad."""

from __future__ import annotations

import inspect
import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import get_type_hints

import numpy as np
import pytest
import torch
from rich.console import Console

import equisep as library
from cli.running import equisep, equisep_process
from equisep.cli.app import COMMANDS
from equisep.cli.console import in_options, options_of
from equisep.cli.measure import measure
from equisep.compare import ManyProfiles
from equisep.data import load_data, prepare_split
from equisep.measuring.request import MEMORY

NETWORK = """
import torch
from torch import nn

def small():
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(100, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 10))

def broken():
    raise RuntimeError("no weights on this machine")

number = 3

def not_a_model():
    return "a string"
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a user's network, a data set as npz, and two measured profiles."""
    folder = tmp_path_factory.mktemp("user")
    (folder / "mynet.py").write_text(NETWORK)
    data = load_data("embedded-10x10")
    np.savez(
        folder / "mine.npz",
        x_train=data.x_train[::20], y_train=data.y_train[::20], x_test=data.x_test[::20], y_test=data.y_test[::20],
    )  # fmt: skip
    for name, more in (("a.json", ()), ("b.json", ("--reading", "mixed", "--weighting", "class"))):
        done = equisep("measure", "--model", "mynet:small", "--data", "mine.npz", "--out", name, *more, folder=folder)
        assert done.returncode == 0, done.stderr
    return folder


def test_measure_agrees_with_the_library(place: Path) -> None:
    profile = library.Profile.load(place / "a.json")
    x, y = prepare_split(load_data(place / "mine.npz"))
    assert profile.sites[0].fuzziness == pytest.approx(library.fuzziness(x, y), rel=1e-12)
    assert [site.name for site in profile.sites] == ["input", "2", "4"]
    assert profile.settings["data"]["name"] == "mine"


def test_measure_says_what_it_runs_and_how_it_prepares(place: Path) -> None:
    done = equisep("measure", "--model", "mynet:small", "--data", "mine.npz", folder=place)
    assert "Running the code of `mynet:small`" in done.stderr
    assert "bytes divided by 255, channels first, not normalized" in done.stderr
    assert "No --checkpoint" in done.stderr
    assert "law of equi-separation" in done.stdout.lower()


def test_preparation_flags_reach_the_data(place: Path) -> None:
    words = (
        "--normalize",
        "0.5/0.25",
        "--resize",
        "10x10",
        "--per-class",
        "7",
        "--batch-size",
        "35",
        "--split",
        "train",
    )
    done = equisep("measure", "--model", "mynet:small", "--data", "mine.npz", "--json", *words, folder=place)
    content = json.loads(done.stdout)
    assert content["counts"] == [7] * 10
    assert content["counts_test"] is None
    assert content["settings"]["batch_sizes"] == [35]
    assert content["settings"]["data"]["preparation"] == {
        "channels": "all", "resize": [10, 10], "normalize": [[0.5], [0.25]],
    }  # fmt: skip
    assert "(x − 0.5)/0.25" in done.stderr


def test_a_plot_is_drawn_where_asked(place: Path, tmp_path: Path) -> None:
    words = ("--plot", tmp_path / "law.svg", "--quiet")
    done = equisep("measure", "--model", "mynet:small", "--data", "mine.npz", *words, folder=place)
    assert done.returncode == 0
    assert "<svg" in (tmp_path / "law.svg").read_text()


def test_checkpoint_weights_are_used(place: Path, tmp_path: Path) -> None:
    network = torch.nn.Sequential(
        torch.nn.Flatten(), torch.nn.Linear(100, 32), torch.nn.ReLU(), torch.nn.Linear(32, 16), torch.nn.ReLU(),
        torch.nn.Linear(16, 10),
    )  # fmt: skip
    torch.save({"state_dict": {f"module.{k}": v for k, v in network.state_dict().items()}}, tmp_path / "wrapped.pt")
    words = ("--model", "mynet:small", "--data", "mine.npz", "--checkpoint", tmp_path / "wrapped.pt", "--json", "-q")
    content = json.loads(equisep("measure", *words, folder=place).stdout)
    x, y = prepare_split(load_data(place / "mine.npz"))
    features = network[:3](x).detach()
    assert content["sites"][1]["fuzziness"] == pytest.approx(library.fuzziness(features, y), rel=1e-6)


def test_sites_lists_modules_and_marks_the_chosen(place: Path) -> None:
    content = json.loads(equisep("sites", "--model", "mynet:small", "--json", folder=place).stdout)
    assert content["sites"] == ["input", "2", "4"]
    assert [row["name"] for row in content["modules"]] == ["0", "1", "2", "3", "4", "5"]
    text = equisep("sites", "--model", "mynet:small", "--sites", "1", "--sites", "3", folder=place).stdout
    assert "3 marked with * are read" in text
    inputs = ("sites", "--model", "mynet:small", "--sites", "5:in", "--json")
    for more in ((), ("--input", "1x10x10")):
        rows = json.loads(equisep(*inputs, *more, folder=place).stdout)["modules"]
        assert [(row["name"], row["kind"]) for row in rows if row["site"]] == [("5:in", "input of Linear")]
    assert rows[-2]["shape"] == [16]


def test_law_of_a_saved_profile(place: Path) -> None:
    content = json.loads(equisep("law", "a.json", "--json", folder=place).stdout)
    profile = library.Profile.load(place / "a.json")
    assert content["law"]["rho"] == profile.law.rho
    assert "test" in content["laws"]
    assert "ρ" in equisep("law", "a.json", folder=place).stdout


def test_compare_shows_the_difference_and_what_was_read_differently(place: Path) -> None:
    content = json.loads(equisep("compare", "a.json", "b.json", "--json", folder=place).stdout)
    a, b = library.Profile.load(place / "a.json"), library.Profile.load(place / "b.json")
    assert a.law.rho is not None and b.law.rho is not None
    assert content["law"]["rho"]["value"] == pytest.approx(b.law.rho - a.law.rho, rel=1e-9)
    text = equisep("compare", "a.json", "b.json", folder=place).stdout
    assert "reading" in text and "weighting" in text
    assert content["paired"] == "samples" and content["law"]["last"]["a"] == a.law.curve[-1]


def test_compare_takes_many_profiles_and_draws_them(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(place / "a.json", place / "c.json")
    done = equisep("compare", "a.json", "b.json", "a.json", "--draw", "many.png", folder=place)
    assert "Sequential, eval reading" in done.stdout and "one training, measured twice" in " ".join(done.stdout.split())
    assert "Drawn into many.png" in done.stderr and (place / "many.png").is_file()
    named = equisep("compare", "one=a.json", "other=b.json", "one=a.json", "--json", folder=place)
    content = json.loads(named.stdout)
    assert [(group["name"], group["members"]) for group in content["groups"]] == [
        ("one", ["a.json", "a.json"]),
        ("other", ["b.json"]),
    ]
    drawn = list[ManyProfiles]()
    monkeypatch.setattr("equisep.report.group_plots.plot_groups", lambda many, path: drawn.append(many))
    equisep("compare", "a.json", "c.json", "--draw", "two.png", folder=place)  # of one network, and no seeds of it
    assert [group.name for group in drawn[0].groups] == ["a, a", "b, c"]
    alone = equisep("compare", "a.json", folder=place)
    assert alone.returncode == 2 and "needs two profiles or more; found 1" in alone.stderr


def test_version_help_and_completion(tmp_path: Path) -> None:
    assert equisep("--version", folder=tmp_path).stdout == f"equisep {library.__version__}\n"
    assert "demo" in equisep("--help", folder=tmp_path).stdout
    command = Path(sys.executable).with_name("equisep")
    script = subprocess.run(
        [command], env={**os.environ, "_EQUISEP_COMPLETE": "source_bash"}, capture_output=True, text=True, check=False
    ).stdout
    assert "complete -o default -F" in script


NOT_FOR_HELP = ("numpy", "torch", "matplotlib", "equisep.figures", "equisep.measuring", "equisep.report")


def test_help_loads_no_command_and_no_framework() -> None:
    """It took 0.5 s of CPU and all figures; typer and rich alone take 0.2 s."""
    code = f"""
import sys
from equisep.cli.app import app
app(["--help"], standalone_mode=False)
loaded = [name for name in {NOT_FOR_HELP!r} if name in sys.modules]
assert not loaded, loaded
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert all(name in done.stdout for name in COMMANDS)


COMMAND_LINES = [(name,) for name in COMMANDS] + [
    *(("figures", name) for name in ("list", "run", "show")),
    *(("peeled", name) for name in ("solve", "threshold", "diagram", "network", "two-layer")),
]


@pytest.mark.parametrize("words", [(), *COMMAND_LINES], ids=" ".join)
def test_flags_are_shown_as_flags(words: tuple[str, ...], tmp_path: Path) -> None:
    done = equisep(*words, "--help", folder=tmp_path)
    assert done.returncode == 0
    assert "bool" not in done.stdout
    assert "--help" in done.stdout


def test_a_misspelt_command_is_answered_with_the_nearest(tmp_path: Path) -> None:
    done = equisep("mesure", folder=tmp_path)
    assert done.returncode == 2
    assert "measure" in done.stderr


def test_the_help_names_the_defaults_of_the_library() -> None:
    of_library = inspect.signature(library.measure).parameters
    shown = get_type_hints(measure, include_extras=True)
    for name, parameter in inspect.signature(measure).parameters.items():
        told = name in of_library and of_library[name].default not in (None, inspect.Parameter.empty)
        if told and parameter.default is None:
            (option,) = shown[name].__metadata__
            assert option.show_default == str(of_library[name].default), name
    assert MEMORY == 2**30  # --memory: 1 GiB


@pytest.mark.parametrize(
    ("sentence", "spoken"),
    [
        ("Pass `classes=K`.", "Pass `--classes K`."),
        ("`measure` needs 2 classes; found classes=1.", "`measure` needs 2 classes; found --classes 1."),
        ("`epsilon` is a share; found 2.0.", "`--epsilon` is a share; found 2.0."),
        ("Name one, such as `device='cpu'`.", "Name one, such as `--device cpu`."),
        ("They need more than `memory=1073741824` bytes.", "They need more than `--memory 1` GiB."),
        ("Add it to `sites`, or leave `classifier=` out.", "Add it to `--sites`, or leave `--classifier` out."),
        ("A larger `epsilon` accepts less.", "A larger `--epsilon` accepts less."),
        ("No module `data` in `Net`. Did you mean `sites`?", "No module `data` in `Net`. Did you mean `sites`?"),
        ("No data set `data`; subclasses=3.", "No data set `data`; subclasses=3."),
        ("Samples per batch: batch_size=0.", "Samples per batch: --batch-size 0."),
    ],
)
def test_the_command_line_speaks_of_options(sentence: str, spoken: str) -> None:
    assert in_options(sentence, options_of(measure)) == spoken


def test_errors_and_notes_speak_of_options(place: Path) -> None:
    done = equisep("measure", "--model", "mynet:small", "--data", "mine.npz", "--classes", "1", folder=place)
    assert done.returncode == 2
    assert "found --classes 1." in done.stderr
    done = equisep("measure", "--model", "mynet:small", "--data", "mine.npz", folder=place)
    assert "`epsilon`" not in done.stdout


def test_the_former_name_of_a_reading_is_taken_with_a_remark(place: Path) -> None:
    for flag in ("--mode", "--reading"):
        words = ("measure", "--model", "mynet:small", "--data", "mine.npz", "--json", flag, "batch")
        done = equisep(*words, folder=place)
        assert json.loads(done.stdout)["reading"] == "mixed"
        assert f"`{flag} batch` is now `--reading mixed`." in done.stderr
    assert "--mode " not in equisep("measure", "--help", folder=place).stdout


def test_several_readings_with_commas_and_one_by_one(place: Path) -> None:
    words = ("measure", "--model", "mynet:small", "--data", "mine.npz", "--json", "--coordinates", "0")
    content = json.loads(equisep(*words, "--reading", "eval,mixed", "--reading", "drawn", folder=place).stdout)
    assert content["reading"] == "eval" and content["settings"]["readings"] == ["eval", "mixed", "drawn"]
    done = equisep(*words, "--reading", "eval,drwan", folder=place)
    assert done.returncode == 2 and "No reading `drwan`. Did you mean `drawn`?" in done.stderr


@pytest.mark.parametrize("command", [("sites",), ("measure", "--data", "mine.npz")])
def test_an_empty_name_is_no_site(command: tuple[str, ...], place: Path) -> None:
    done = equisep(*command, "--model", "mynet:small", "--sites", "", folder=place)
    assert done.returncode == 2
    assert "An empty name is no site." in done.stderr


@pytest.mark.parametrize("flag", ["--tokenizer", "--length"])
def test_flags_of_sentences_are_refused_for_pictures(flag: str, place: Path) -> None:
    done = equisep("measure", "--model", "mynet:small", "--data", "mine.npz", flag, "3", folder=place)
    assert done.returncode == 2
    assert f"`{flag}` is for sentences, and `mine.npz` holds none. Leave it out." in done.stderr


MEASURE = ("measure", "--data", "mine.npz", "--quiet", "--model")
BAD = {
    "factory not there": ((*MEASURE, "mynet:smal"), "`mynet` has no `smal`. Did you mean `small`?"),
    "module not there": ((*MEASURE, "nomod:f"), "No module `nomod`"),
    "no factory named": ((*MEASURE, "mynet"), "`--model` takes a network by name, pkg.module:factory, "),
    "factory raises": ((*MEASURE, "mynet:broken"), "`mynet:broken()` failed: RuntimeError: no weights on this machine"),
    "not callable": ((*MEASURE, "mynet:number"), "should be a model or a function that makes one; it is a int."),
    "no model made": ((*MEASURE, "mynet:not_a_model"), "should return a torch.nn.Module; it returned str."),
    "no data": (("measure", "--model", "mynet:small", "--data", "gone.npz", "-q"), "gone.npz"),
    "no such site": ((*MEASURE, "mynet:small", "--sites", "22"), "No module `22` in `Sequential`."),
    "call of a call": ((*MEASURE, "mynet:small", "--sites", "1:10:3"), "No module `1:10` in `Sequential`."),
    "empty site": ((*MEASURE, "mynet:small", "--sites", ""), "An empty name is no site."),
    "no device": ((*MEASURE, "mynet:small", "--device", "meta"), "`--device meta` cannot be used here"),
    "bad split": ((*MEASURE, "mynet:small", "--split", "dev"), "`--split` takes both, train or test; found `dev`."),
    "bad resize": ((*MEASURE, "mynet:small", "--resize", "big"), "`--resize` takes a size, 10 or 10x12"),
    "bad normalize": ((*MEASURE, "mynet:small", "--normalize", "1"), "`--normalize` takes MEAN/STD"),
    "too many asked": ((*MEASURE, "mynet:small", "--per-class", "9999"), "9999"),
    "shape does not fit": ((*MEASURE, "mynet:small", "--resize", "12"), "could not run the first batch"),
    "no checkpoint": ((*MEASURE, "mynet:small", "--checkpoint", "gone.pt"), "No checkpoint at `gone.pt`."),
    "no profile": (("law", "gone.json"), "No profile at `gone.json`."),
    "plot format": ((*MEASURE, "mynet:small", "--plot", "law.xyz"), "law.xyz"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_sentence_and_exit_code_2(case: str, place: Path) -> None:
    words, sentence = BAD[case]
    done = equisep(*words, folder=place)
    assert done.returncode == 2, done.stderr
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.count("\n") <= 1 or case == "shape does not fit"


def test_checkpoint_that_does_not_fit_names_the_first_keys(place: Path, tmp_path: Path) -> None:
    torch.save({"1.weight": torch.zeros(32, 100), "head.weight": torch.zeros(3)}, tmp_path / "other.pt")
    done = equisep(*MEASURE, "mynet:small", "--checkpoint", tmp_path / "other.pt", folder=place)
    assert done.returncode == 2
    assert "5 keys are missing (`1.bias`, `3.weight`, `3.bias`, …), 1 unexpected (`head.weight`)" in done.stderr


def test_checkpoint_with_code_inside_is_refused(place: Path, tmp_path: Path) -> None:
    torch.save(torch.nn.Linear(2, 2), tmp_path / "whole.pt")
    done = equisep(*MEASURE, "mynet:small", "--checkpoint", tmp_path / "whole.pt", folder=place)
    assert done.returncode == 2
    assert "cannot be read as a checkpoint of plain weights" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_newer_profile_is_refused_with_the_way_out(place: Path, tmp_path: Path) -> None:
    content = json.loads((place / "a.json").read_text())
    (tmp_path / "newer.json").write_text(json.dumps({**content, "schema": 99}))
    (tmp_path / "cut.json").write_text((place / "a.json").read_text()[:500])
    newer = equisep("law", tmp_path / "newer.json", folder=place)
    assert newer.returncode == 2
    assert "was written by a newer equisep (schema 99; this version reads up to 3). Upgrade equisep" in newer.stderr
    cut = equisep("compare", tmp_path / "cut.json", "a.json", folder=place)
    assert cut.returncode == 2
    assert "is not valid JSON" in cut.stderr


def test_the_seed_makes_the_factory_draw_the_same_weights(place: Path) -> None:
    words = (
        "measure",
        "--model",
        "equisep.models:Fnn",
        "--data",
        "mine.npz",
        "--split",
        "train",
        "--json",
        "-q",
        "--seed",
    )
    runs = [json.loads(equisep(*words, seed, folder=place).stdout)["sites"] for seed in ("0", "0", "1")]
    assert runs[0] == runs[1]
    assert runs[0][1]["fuzziness"] != runs[2][1]["fuzziness"]


def test_the_test_split_alone_says_so(place: Path) -> None:
    words = ("measure", "--model", "mynet:small", "--data", "mine.npz", "--split", "test", "--json", "-q")
    content = json.loads(equisep(*words, folder=place).stdout)
    assert sum(content["counts"]) == len(np.load(place / "mine.npz")["y_test"])
    assert "test-split" in [note["code"] for note in content["notes"]]


@pytest.mark.parametrize(
    ("flag", "path", "sentence"),
    [
        ("--out", "p.png", "`--out p.png` should end in .json."),
        ("--out", "folder.json", "`--out folder.json` is a folder. Name a file."),
        ("--out", "mine.npz/p.json", "cannot be written to"),
        ("--plot", "law.xyz", "`--plot law.xyz` should end in .png, .svg, .pdf."),
    ],
)
def test_unusable_paths_are_refused_before_the_work(flag: str, path: str, sentence: str, place: Path) -> None:
    (place / "folder.json").mkdir(exist_ok=True)
    done = equisep("measure", "--model", "mynet:small", "--data", "mine.npz", flag, path, folder=place)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert "Running the code" not in done.stderr


@pytest.mark.parametrize("words", [("law", "a.json"), ("measure", "--help"), ("sites", "--model", "mynet:small")])
def test_a_terminal_without_greek_gets_no_traceback(words: tuple[str, ...], place: Path) -> None:
    done = equisep_process(*words, folder=place, PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert "Traceback" not in done.stderr
    assert done.stdout.isascii()


def test_json_is_ascii_everywhere(place: Path) -> None:
    words = ("measure", "--model", "mynet:small", "--data", "mine.npz", "--json", "-q")
    assert equisep(*words, folder=place).stdout.isascii()


@pytest.mark.parametrize("words", [("sites", "--model", "resnet20", "-q"), ("law", "a.json", "--json")])
def test_a_reader_that_has_gone_is_no_error(words: tuple[str, ...], place: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "equisep", *words]
    with os.fdopen(writing, "wb") as pipe:
        done = subprocess.run(command, cwd=place, stdout=pipe, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 141  # 1 would say that a claim is contradicted
    assert done.stderr == ""


DAMAGED = {
    "deep": '{"kind": ' + "[" * 100_000 + "]" * 100_000 + "}",
    "digits": '{"kind": "equisep profile", "schema": 1, "classes": ' + "9" * 5000 + "}",
    "infinite": '{"kind": "equisep profile", "schema": 1, "classes": Infinity}',
    "schema": '{"kind": "equisep profile", "schema": true}',
    "empty": "",
    "list": "[]",
}


@pytest.mark.parametrize("case", DAMAGED)
def test_damaged_profiles_are_refused_in_one_sentence(case: str, tmp_path: Path) -> None:
    (tmp_path / "damaged.json").write_text(DAMAGED[case])
    done = equisep("law", "damaged.json", folder=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("equisep: ")


@pytest.mark.parametrize(
    ("field", "value"), [("rho", -1.0), ("rho", 0.0), ("loads", [0.5]), ("residuals", [1.0] * 9), ("r", 10**400)]
)
def test_laws_that_cannot_be_are_refused(field: str, value: object, place: Path, tmp_path: Path) -> None:
    content = json.loads((place / "a.json").read_text())
    content["law"][field] = value
    (tmp_path / "made.json").write_text(json.dumps(content))
    done = equisep("law", "made.json", folder=tmp_path)
    assert done.returncode == 2
    assert f"law.{field}" in done.stderr


def test_a_line_beyond_all_numbers_is_still_drawn(place: Path, tmp_path: Path) -> None:
    content = json.loads((place / "a.json").read_text())
    content["law"]["intercept"] = 1e308
    (tmp_path / "made.json").write_text(json.dumps(content))
    printed = io.StringIO()
    Console(file=printed, width=80).print(library.Profile.load(tmp_path / "made.json"))
    assert "D by layer" in printed.getvalue()


def test_one_hot_labels_in_a_file_are_noted(place: Path, tmp_path: Path) -> None:
    data = np.load(place / "mine.npz")
    hot = {name: np.eye(10, dtype=np.int64)[data[name]] for name in ("y_train", "y_test")}
    np.savez(tmp_path / "hot.npz", x_train=data["x_train"], x_test=data["x_test"], **hot)
    words = ("measure", "--model", "mynet:small", "--data", tmp_path / "hot.npz", "--json", "-q")
    content = json.loads(equisep(*words, folder=place).stdout)
    assert [note["code"] for note in content["notes"]].count("one-hot") == 1


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 no zip", bytes(range(256)) * 8])
def test_damaged_checkpoints_are_refused_in_one_sentence(content: bytes, place: Path, tmp_path: Path) -> None:
    (tmp_path / "damaged.pt").write_bytes(content)
    done = equisep(*MEASURE, "mynet:small", "--checkpoint", tmp_path / "damaged.pt", folder=place)
    assert done.returncode == 2
    assert "cannot be read as a checkpoint of plain weights" in done.stderr


def test_an_error_in_the_test_data_saves_the_profile_of_the_training_data(place: Path, tmp_path: Path) -> None:
    data = dict(np.load(place / "mine.npz"))
    data["x_test"] = data["x_test"].astype(np.float32)
    data["x_test"][-1] = np.nan
    data["x_train"] = data["x_train"].astype(np.float32)
    np.savez(tmp_path / "bad.npz", **data)
    words = ("measure", "--model", "mynet:small", "--data", tmp_path / "bad.npz", "--batch-size", "20", "--out")
    done = equisep(*words, tmp_path / "kept.json", folder=place)
    assert done.returncode == 2
    assert "of the test data" in done.stderr
    assert library.Profile.load(tmp_path / "kept.json").law.rho is not None
