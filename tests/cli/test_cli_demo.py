"""`equisep demo` in its smoke form: what it prints, writes and says without a terminal."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from cli.running import Done, equisep, equisep_process
from documents import wide
from equisep import Profile
from equisep.cli.demo import _paper_words
from equisep.findings.wording import without_meaning
from equisep.law import fit_law
from equisep.models import Fnn
from equisep.report.formatting import ascii_text, number, percent


@pytest.fixture(scope="module")
def smoke(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, str]:
    folder = tmp_path_factory.mktemp("demo")
    done = equisep_process("demo", "--smoke", "--json", folder=folder)
    assert done.returncode == 0, done.stderr
    return folder, done.stdout, done.stderr


@pytest.fixture(scope="module")
def again(tmp_path_factory: pytest.TempPathFactory) -> Done:
    """The same in this process, and quiet."""
    return equisep("demo", "--smoke", "--quiet", "--json", folder=tmp_path_factory.mktemp("again"))


def test_json_is_one_object_with_the_promised_fields(smoke: tuple[Path, str, str]) -> None:
    content = json.loads(smoke[1])
    assert {"rho", "half_life", "r"} <= content["law"].keys()
    assert "effective_depth" in content
    assert len(content["sites"]) == 8
    for site in content["sites"]:
        assert {"name", "fuzziness", "ncc_train", "ncc_test", "cdnv"} <= site.keys()
        assert site["fuzziness"] > 0
    assert content["settings"]["readings"] == ["eval", "drawn"]
    assert content["reading"] == "eval" and list(content["other_readings"]) == ["drawn"]
    assert content["settings"]["training"]["epochs"] == 20
    assert len(content["settings"]["data"]["checksum"]) == 64


def test_all_rates_of_the_paper_are_tried_and_the_most_negative_r_is_shown(smoke: tuple[Path, str, str]) -> None:
    content = json.loads(smoke[1])
    training = content["settings"]["training"]
    tried = {row["rate"]: row["r"] for row in training["rates_tried"]}
    assert list(tried) == [3e-5, 1e-4, 3e-4, 1e-3, 3e-3]  # He & Su 2023, Adam
    assert tried[training["rate"]] == min(tried.values())
    assert content["law"]["r"] == pytest.approx(tried[training["rate"]], abs=1e-9)
    assert training["rate_chosen_by"] == "most negative r after the last epoch"


def test_a_given_rate_is_the_only_one_tried_and_read_as_asked(tmp_path: Path) -> None:
    words = ("demo", "--smoke", "--json", "--quiet", "--rate", "1e-3", "--reading", "drawn")
    content = json.loads(equisep(*words, folder=tmp_path).stdout)
    training = content["settings"]["training"]
    (tried,) = training["rates_tried"]
    assert tried["rate"] == training["rate"] == 1e-3 and training["rate_chosen_by"] == "given"
    assert content["reading"] == "drawn" and content["law"]["r"] == pytest.approx(tried["r"], abs=1e-9)


def test_profile_plots_and_weights_are_saved(smoke: tuple[Path, str, str]) -> None:
    folder = smoke[0] / "equisep-demo"
    profile = Profile.load(folder / "profile.json")
    assert profile.to_dict() == json.loads(smoke[1])
    for picture in ("law.png", "sites.png"):
        assert (folder / picture).read_bytes().startswith(b"\x89PNG")
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>") and "Fnn-8" in page and len(page.encode()) <= 2**20
    network = Fnn()
    network.load_state_dict(torch.load(folder / "model.pt", weights_only=True))


def test_the_same_seed_gives_the_same_numbers(smoke: tuple[Path, str, str], again: Done, tmp_path: Path) -> None:
    first = json.loads(smoke[1])
    assert json.loads(again.stdout)["law"] == first["law"]
    rate = first["settings"]["training"]["rate"]
    words = ("demo", "--smoke", "--json", "--quiet", "--seed", "1", "--rate", str(rate))
    assert json.loads(equisep(*words, folder=tmp_path).stdout)["law"] != first["law"]


def test_one_screen_says_what_was_found(tmp_path: Path) -> None:
    with wide(80):
        done = equisep("demo", "--smoke", folder=tmp_path)
    assert done.returncode == 0
    profile = Profile.load(tmp_path / "equisep-demo" / "profile.json")
    shown = " ".join(done.stdout.split())
    headline = next(one for one in profile.findings if one.weight >= 80 or one.code in ("law", "near-law", "no-law"))
    for words in ("the straightest of 5", "D: spread within classes", "share of the work", "What this means"):
        assert words in shown
    assert without_meaning(headline.text) in shown
    assert number(profile.sites[3].fuzziness, 3) in shown and percent(profile.accuracy_test) in shown
    for words in ("now your own model", "equisep measure --model", "law.png"):
        assert words in done.stderr
    lines = done.stdout.splitlines() + [line for line in done.stderr.splitlines() if "training:" not in line]
    assert len(lines) <= 32 and max(map(len, lines)) <= 80
    assert "\x1b[" not in done.stdout + done.stderr  # no terminal, no escapes


def test_all_shows_every_sentence_and_number(tmp_path: Path) -> None:
    done = equisep("demo", "--smoke", "--all", folder=tmp_path)
    for words in ("layer", "NCC", "CDNV", "of equi-separation", "half-life", "D by layer", "All rates tried"):
        assert words in done.stdout
    again = equisep("explain", "equisep-demo/profile.json", "--all", folder=tmp_path).stdout
    assert again in done.stdout


@pytest.mark.parametrize("words", [("--depth", "20", "--optimizer", "sgd"), ("--depth", "2")])
def test_other_networks_have_a_screen_too(words: tuple[str, ...], tmp_path: Path) -> None:
    """Read by a terminal without color, without Unicode and with 60 columns."""
    with wide(60):
        shown = ("demo", "--smoke", "--epochs", "2", "--rate", "1e-3", *words)
        done = equisep(*shown, folder=tmp_path, charset="ascii")
    assert done.returncode == 0, done.stderr
    profile = Profile.load(tmp_path / "equisep-demo" / "profile.json")
    assert done.stdout.isascii() and "?" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 60
    assert len(done.stdout.splitlines()) <= 40
    first = " ".join(done.stdout.split())
    assert ascii_text(without_meaning(profile.findings[0].text)) in first


def test_quiet_says_nothing_but_the_result(again: Done) -> None:
    assert again.stderr == ""
    json.loads(again.stdout)


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--rate", "-1"), "`--rate` must be a positive number; found -1.0."),
        (("--depth", "0"), "A network needs a depth of at least 1; found 0."),
        (("--device", "cuda:77"), "`--device cuda:77` cannot be used here"),
        (("--reading", "mxed"), "No reading `mxed`. Did you mean `mixed`? Known: eval, mixed, drawn."),
        (("--epochs", "-1"), "Training needs epochs ≥ 0"),
        (("--optimizer", "adan"), "No optimizer `adan`. Did you mean `adam`"),
        (("--optimizer", "adamw"), "side by side with sgd, momentum, adam; found `adamw`."),
        (("--depth", "9" * 20), f"`--depth` takes 1 to 1000 layers; found {'9' * 20}."),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(words: tuple[str, ...], sentence: str, tmp_path: Path) -> None:
    done = equisep("demo", "--smoke", *words, folder=tmp_path)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_divergence_is_a_numerical_failure_with_exit_code_3(tmp_path: Path) -> None:
    done = equisep("demo", "--smoke", "--rate", "1e38", folder=tmp_path)
    assert done.returncode == 3
    assert "diverged" in done.stderr
    assert "Lower the rate" in done.stderr


INTERRUPTIBLE = """
import runpy, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a runner in the background may have it ignored
from equisep import progress
progress.LINE_SECONDS = 0.2  # it need not be ten
sys.argv = ["equisep", "demo", "--epochs", "100000"]
runpy.run_module("equisep", run_name="__main__")
"""


def test_an_interrupt_leaves_in_one_sentence_with_exit_code_130(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", INTERRUPTIBLE], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith("training:"):
                break
        process.send_signal(signal.SIGINT)
        assert "Stopped. What was saved stays." in process.communicate(timeout=60)[1]
        assert process.returncode == 130
    finally:
        process.kill()


def test_a_folder_that_cannot_be_written_is_refused_before_training(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    done = equisep("demo", "--out", "file", folder=tmp_path)
    assert done.returncode == 2
    assert "`--out file` cannot be written to" in done.stderr


def test_an_earlier_demo_is_not_written_over_unasked(smoke: tuple[Path, str, str]) -> None:
    profile = smoke[0] / "equisep-demo" / "profile.json"
    before = profile.read_bytes()
    done = equisep("demo", "--smoke", "--quiet", folder=smoke[0])
    assert done.returncode == 2
    assert "holds an earlier demo (report.html, law.png, sites.png, profile.json, model.pt). Add --force" in done.stderr
    assert profile.read_bytes() == before
    other = smoke[0] / "other"
    other.mkdir()
    (other / "notes.txt").write_text("mine")
    words = ("demo", "--smoke", "--quiet", "--rate", "1e-3", "--out", "other")
    assert equisep(*words, folder=smoke[0]).returncode == 0
    assert (other / "notes.txt").read_text() == "mine"
    assert equisep(*words, folder=smoke[0]).returncode == 2
    assert equisep(*words, "--force", folder=smoke[0]).returncode == 0


def test_one_layer_is_no_law_and_no_lack_of_one(tmp_path: Path) -> None:
    done = equisep("demo", "--depth", "1", "--epochs", "2", "--rate", "1e-3", folder=tmp_path)
    assert done.returncode == 0
    assert "law of equi-separation" not in done.stdout
    done = equisep("law", "equisep-demo/profile.json", folder=tmp_path)
    assert "Law of equi-separation: cannot be judged (" in done.stdout
    assert "of at least 3 layers" in " ".join(done.stdout.split())


def test_classes_have_their_names(smoke: tuple[Path, str, str]) -> None:
    assert json.loads(smoke[1])["class_names"][:2] == ["T-shirt/top", "Trouser"]
    assert "class 0, T-shirt/top" in equisep("law", "equisep-demo/profile.json", folder=smoke[0]).stdout


def test_numbers_of_the_paper_stand_beside_those_read_and_chosen_as_there() -> None:
    def row(rate: float, r: float) -> dict[str, object]:
        return {"rate": rate, "as_the_paper": {"r": r, "rho": 0.53, "half_life": 1.09}}

    def words(series: str, *rows: dict[str, object]) -> list[str]:
        training = {"rate": 3e-3, "rates_tried": list(rows)}
        law = fit_law([4.0, 2.0, 1.0])
        return _paper_words(
            Profile(model="Fnn", classes=10, counts=(1,) * 10, sites=(), law=law, settings={"training": training}),
            series,
        )

    rows = row(1e-3, -0.998), row(3e-3, -0.992), {"rate": 1.0, "as_the_paper": None}
    assert words("adam-8", *rows) == [
        "Paper  r -0.997 (Fig. 1); ρ 0.53, half-life 1.1 (Su's slides, 2024)",
        "Here   r -0.9980, ρ 0.530, half-life 1.09 (as there: `drawn`, rate 0.001)",
    ]
    assert words("sgd-4", rows[1]) == [
        "Paper  r -1.000 (Fig. 1)",
        "Here   r -0.9920, ρ 0.530, half-life 1.09 (as there: `drawn`)",
    ]
    assert words("adam-5", *rows) == words("adam-8", rows[2]) == []
