"""`equisep figures list | run | show`: with a small figure of the user's, really run; and with a store made by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cli.running import Done, equisep
from equisep.cli.figures.settings import cell_changes
from equisep.errors import InputError
from equisep.figures.catalogue import all_figures, figure_of
from equisep.figures.evidence import Entry
from equisep.figures.judge import WORDS
from equisep.runs.record import write_record
from equisep.runs.store import Store
from figures.synthetic_figures import law_curve, outcome

MINE = """
from equisep.figures.cell import Cell
from equisep.figures.figure import Claim, Figure, Panel, Printed, Series

FIGURES = (
    Figure(
        id="mine/depths", title="Two depths", source="mine", cite="me",
        base=Cell(data="embedded-10x10", per_class=5, test_per_class=5, width=10, epochs=2, batch_size=25),
        series=(Series("d-3", {"depth": 3}, panel="D", x=3), Series("d-4", {"depth": 4}, panel="D", x=4)),
        panels=(Panel("D"),), seeds=3,
        claims=(
            Claim("D is there", "at most", ("d-*",), "log_last", 100.0),
            Claim("D is huge", "at least", ("d-*",), "last", 1e6),
        ),
        printed=(Printed("d-3", "last", 5.0, "nowhere"),),
    ),
)
"""

ABSENT = """
from dataclasses import replace

absent = replace(FIGURES[0], id="mine/absent", base=FIGURES[0].base.with_(data="absent.npz"))
FIGURES = (absent, *FIGURES)
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a user's figure, run once."""
    folder = tmp_path_factory.mktemp("figures")
    (folder / "mine.py").write_text(MINE)
    (folder / "no-results").mkdir()
    done = equisep("figures", "run", "mine/depths", "--from", "mine.py", "--store", "runs", "--json", folder=folder)
    assert done.returncode == 0, done.stderr
    (folder / "run.json").write_text(done.stdout)
    return folder


@pytest.fixture(autouse=True)
def no_record(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what these tests record: the repository's own record grows."""
    monkeypatch.setenv("EQUISEP_RESULTS", str(place / "no-results"))


def show(place: Path, *words: str | Path, id: str = "mine/depths") -> Done:
    return equisep("figures", "show", id, "--from", "mine.py", "--store", "runs", *words, folder=place)


def read(done: Done) -> Any:
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_run_prints_what_show_prints(place: Path) -> None:
    run = json.loads((place / "run.json").read_text())
    assert run == read(show(place, "--json"))
    assert (run["state"], run["cells"]) == ("run", {"run": 6, "planned": 6})
    assert [(row["verdict"], row["n"]) for row in run["claims"]] == [("held", 3), ("contradicted", 3)]
    assert run["printed"][0]["paper"] == 5.0 and run["printed"][0]["ours"] > 0


def test_the_same_command_runs_nothing_again(place: Path) -> None:
    cells = {path: path.stat().st_mtime_ns for path in (place / "runs" / "cells").rglob("*.json")}
    done = equisep(
        "figures", "run", "mine/depths", "--from", "mine.py", "--store", "runs", "--json", folder=place
    )  # fmt: skip
    assert json.loads(done.stdout) == json.loads((place / "run.json").read_text())
    assert cells == {path: path.stat().st_mtime_ns for path in (place / "runs" / "cells").rglob("*.json")}


def test_that_code_of_the_users_is_run_is_said(place: Path) -> None:
    assert "Running the code of `mine.py`." in show(place).stderr
    assert show(place, "--quiet").stderr == ""


def test_show_as_text_markdown_and_picture(place: Path) -> None:
    assert "D is there" in show(place).stdout
    assert show(place, "--markdown").stdout.startswith("## mine/depths: Two depths\n")
    for ending in ("png", "svg", "pdf"):
        assert show(place, "--draw", f"drawn.{ending}").returncode == 0
        assert (place / f"drawn.{ending}").stat().st_size > 1000
    assert show(place, "--draw", "folder").returncode == 0  # a name without an ending is a folder, as for `run`
    assert (place / "folder" / "mine" / "depths.png").stat().st_size > 1000
    done = show(place, "--draw", "drawn.gif")
    assert (done.returncode, "`--draw drawn.gif` should end in .png, .svg, .pdf" in done.stderr) == (2, True)
    assert show(place, "--json", "--markdown").returncode == 2


def test_a_name_with_the_ending_of_a_file_is_a_folder_where_there_is_one(place: Path) -> None:
    """`--draw x.docx` made a folder of that name."""
    done = show(place, "--draw", "drawn.docx")
    assert (done.returncode, (place / "drawn.docx").exists()) == (2, False)
    assert "or name a folder; one whose name ends in .docx has to be there already." in done.stderr
    (place / "there.old").mkdir()
    assert show(place, "--draw", "there.old").returncode == 0
    assert (place / "there.old" / "mine" / "depths.png").is_file()


def test_run_draws_into_the_file_that_is_named(place: Path) -> None:
    """`--draw fig.pdf` made a folder of that name."""
    words = ("figures", "run", "mine/depths", "--from", "mine.py", "--store", "runs", "--quiet", "--draw")
    for ending, start in (("pdf", b"%PDF"), ("png", b"\x89PNG")):
        assert equisep(*words, f"fig.{ending}", folder=place).returncode == 0
        assert (place / f"fig.{ending}").read_bytes().startswith(start)
    assert equisep(*words, "drawings.v2", folder=place).returncode == 0
    assert (place / "drawings.v2" / "mine" / "depths.png").is_file()


def test_strict_exits_with_1_where_a_claim_fails(place: Path) -> None:
    assert show(place, "--strict").returncode == 1
    assert show(place).returncode == 0
    words = ("figures", "run", "mine/depths", "--from", "mine.py", "--store", "runs")
    assert equisep(*words, "--strict", folder=place).returncode == 1
    assert equisep("figures", "show", "he2023/fig1", "--strict", "--store", "runs", folder=place).returncode == 1


def test_strict_is_content_where_every_claim_holds(place: Path) -> None:
    (place / "good.py").write_text(
        MINE.replace('            Claim("D is huge", "at least", ("d-*",), "last", 1e6),\n', "")
    )
    done = equisep(
        "figures", "show", "mine/depths", "--from", "good.py", "--store", "runs", "--strict", folder=place
    )  # fmt: skip
    assert done.returncode == 0


def test_list_names_all_with_their_state(place: Path) -> None:
    rows = read(equisep("figures", "list", "--from", "mine.py", "--store", "runs", "--json", folder=place))
    states = {row["id"]: row["state"] for row in rows}
    assert len(rows) == len(all_figures()) + 1
    assert (states["mine/depths"], states["he2023/fig1"], states["galanti2022/bound"]) == ("run", "not run", "not run")
    assert rows[-1]["claims"] == dict.fromkeys(WORDS, 0) | {"held": 1, "contradicted": 1}
    assert all(row["title"] for row in rows)
    text = equisep("figures", "list", folder=place).stdout
    assert f"{len(all_figures())} figures, 0 of them run" in text


def test_a_run_that_was_stopped_is_partly_run(place: Path) -> None:
    store = Store.open(place / "stopped")
    figure = figure_of("he2023/fig9")
    (series,) = figure.named("standard")
    cells = [cell for cell in figure.cells(series, seeds=range(5)) if cell.rate == 1e-3]
    store.add_manifest(figure.id, "paper", [("standard", cell) for cell in cells], {})
    for cell in cells[:2]:
        store.put(cell, outcome(law_curve(r=-0.999), accuracy=1.0), {"device": "cpu"})
    rows = read(equisep("figures", "list", "--store", "stopped", "--json", folder=place))
    assert {row["id"]: row["state"] for row in rows}["he2023/fig9"] == "partly run (2 of 5 cells)"
    done = read(equisep("figures", "show", "he2023/fig9", "--store", "stopped", "--json", folder=place))
    assert {claim["verdict"] for claim in done["claims"]} == {"not run"}
    assert done["claims"][0]["ours"] == pytest.approx(-0.999)


def test_the_committed_record_is_shown_where_nothing_was_run(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    figure = figure_of("he2023/linear")
    entries = [
        Entry(series.name, cell, outcome(law_curve(1.0 + 1e-3)), {"device": "a GPU"})
        for series in figure.series
        for cell in figure.cells(series, seeds=range(3))
    ]
    write_record(place / "record" / "he2023" / "linear.json", entries, figure, "paper")
    monkeypatch.setenv("EQUISEP_RESULTS", str(place / "record"))
    content = read(equisep("figures", "show", "he2023/linear", "--json", folder=place))
    assert content["state"] == "recorded"
    assert content["provenance"]["device"] == ["a GPU"]
    rows = read(equisep("figures", "list", "--json", folder=place))
    assert {row["id"]: row["state"] for row in rows}["he2023/linear"] == "recorded"
    smoke = read(equisep("figures", "show", "he2023/linear", "--scale", "smoke", "--json", folder=place))
    assert smoke["state"] == "not run"


def test_a_smoke_run_is_listed_as_such_and_claims_nothing(place: Path) -> None:
    done = equisep("figures", "run", "fang2021/minority", "--scale", "smoke", "--store", "small", folder=place)
    assert done.returncode == 0, done.stderr
    assert "not for publication" in " ".join(done.stdout.split())
    rows = {row["id"]: row for row in read(equisep("figures", "list", "--store", "small", "--json", folder=place))}
    assert (rows["fang2021/minority"]["state"], rows["fang2021/minority"]["scale"]) == ("run", "smoke")
    assert rows["fang2021/minority"]["claims"]["held"] == 0


def test_a_damaged_cell_is_told_of_by_every_command_and_run_again(place: Path) -> None:
    words = ("mine/depths", "--from", "mine.py", "--store", "damaged")
    before = read(equisep("figures", "run", *words, "--json", folder=place))
    path = min((place / "damaged" / "cells").rglob("*.json"))
    path.write_text(path.read_text()[:100])
    key = path.stem
    listed = equisep("figures", "list", *words[1:], folder=place)
    assert f"Cell {key} is damaged and does not count" in listed.stderr
    assert f"Cell {key} is damaged and does not count" in equisep("figures", "show", *words, folder=place).stderr
    again = equisep("figures", "run", *words, "--json", folder=place)
    assert f"Cell {key} is damaged and does not count" in again.stderr
    after = read(again)
    assert [row["r_by_seed"] for row in after["series"]] == [row["r_by_seed"] for row in before["series"]]


def test_plan_says_what_it_costs_and_runs_nothing(place: Path) -> None:
    words = ("figures", "run", "he2023/fig1", "he2023/fig2", "--plan", "--store", "never")
    done = equisep(*words, folder=place)
    assert done.returncode == 0, done.stderr
    assert "Nothing was run." in " ".join(done.stdout.split())
    assert not (place / "never").exists()
    first, second = read(equisep(*words, "--json", folder=place))
    assert (first["id"], first["stored"], second["id"]) == ("he2023/fig1", 0, "he2023/fig2")
    assert first["cells"] == first["cells_to_run"] >= 9 * 5
    assert first["seconds"] > 0 and first["bytes"] > 0 and first["groups"] >= 3
    more = read(equisep(*words[:3], "--plan", "--seeds", "10", "--json", folder=place))
    assert more["cells"] > 1.5 * first["cells"]
    done = read(
        equisep(
            "figures", "run", "mine/depths", "--from", "mine.py", "--store", "runs", "--plan", "--json", folder=place
        )
    )
    assert (done["cells"], done["stored"], done["cells_to_run"]) == (6, 6, 0)


def test_draw_into_a_folder(place: Path) -> None:
    done = equisep(
        "figures", "run", "mine/depths", "--from", "mine.py", "--store", "runs", "--draw", "pictures", folder=place
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (place / "pictures" / "mine" / "depths.png").stat().st_size > 1000


def test_fields_of_cells_can_be_set_in_a_store_of_their_own(place: Path) -> None:
    words = ("figures", "run", "mine/depths", "--from", "mine.py", "--seeds", "1", "--json", "--set", "dtype=float64")
    content = read(equisep(*words, "--store", "double", folder=place))
    assert content["cells"]["run"] == 2
    assert [row["verdict"] for row in content["claims"]] == ["supported", "against"]
    done = equisep(*words, "--store", "runs", folder=place)
    assert done.returncode == 2
    assert "`runs` holds `mine/depths` run with no --set" in done.stderr
    done = equisep(*words[:-2], "--store", "double", folder=place)
    assert (done.returncode, "run with --set dtype=float64" in done.stderr) == (2, True)


def test_values_are_read_as_the_field_wants_them() -> None:
    texts = [
        "epochs=3",
        "rate=1e-2",
        "norm=false",
        "widths=4,5",
        "readings=eval",
        "per_class=none",
        "network=vgg11",
        "tf32=True",
    ]
    assert cell_changes(texts) == {
        "epochs": 3, "rate": 0.01, "norm": False, "widths": (4, 5), "readings": ("eval",), "per_class": None,
        "network": "vgg11", "tf32": True,
    }  # fmt: skip
    assert cell_changes(["milestones=[0.5]", "kind=staged"]) == {"milestones": (0.5,), "kind": "staged"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("epochs", "`--set` takes FIELD=VALUE"),
        ("epoch=3", "A cell has no field `epoch`. Did you mean `epochs`"),
        ("epochs=many", "`--set epochs=many`: `epochs` is of the type int; found `many`."),
        ("widths=4,x", "`widths` is of the type tuple[int, ...] | None"),
        ("kind=trian", "A cell's `kind` was 'trian'. Did you mean `train`?"),
        ("seed=3", "`--set seed` would make all cells alike. Use `--seeds`."),
        ("data=mnist", "Use `--data NAME=OTHER`."),
    ],
)
def test_bad_settings_are_one_sentence(text: str, words: str) -> None:
    with pytest.raises(InputError) as caught:
        cell_changes([text])
    assert words in str(caught.value)
    with pytest.raises(InputError, match="was given twice"):
        cell_changes(["epochs=3", "epochs=4"])


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("show", "he2023/fg1"), "No figure `he2023/fg1`. Did you mean `he2023/fig1`"),
        (("show", "HE2023/FIG9"), "No figure `HE2023/FIG9`. Did you mean `he2023/fig9`?"),
        (("show", "he2023/fig1", "--scale", "smok"), "No scale `smok`. Did you mean `smoke`?"),
        (("show", "he2023/fig1", "--store", "nowhere"), "No store at `nowhere`."),
        (("show", "mine/depths", "--from", "nowhere.py"), "No file `nowhere.py` to take figures from."),
        (("run",), "No figure was named."),
        (("run", "he2023/fig1", "--all"), "Give one or the other."),
        (("run", "he2023/fg1"), "No figure `he2023/fg1`."),
        (("run", "he2023/fig1", "--scale", "large"), "No scale `large`."),
        (
            ("run", "he2023/fig1", "--on", "mars"),
            "`--on mars` names no place to run. Known: local, ray, ray://ADDRESS.",
        ),
        (("run", "he2023/fig1", "--device", "cuda:99"), "`--device cuda:99` cannot be used here"),
        (("run", "he2023/fig1", "--device", "gpu"), "`--device gpu` cannot be used here"),
        (("run", "he2023/fig1", "--device", "meta"), "`--device meta` cannot be used here"),
        (
            ("run", "he2023/fig1", "--data", "cifar11=embedded-28x28"),
            "`--data cifar11=embedded-28x28`: no figure trains on `cifar11`. Did you mean `cifar10`",
        ),
        (
            ("run", "he2023/fig1", "--network", "vgg3=vgg11"),
            "`--network vgg3=vgg11`: no figure trains `vgg3`. Did you mean `vgg13`",
        ),
        (("run", "he2023/fig1", "--data", "cifar10"), "A stand-in is written NAME=OTHER"),
        (("run", "he2023/fig1", "--set", "epoch=3"), "A cell has no field `epoch`."),
        (("run", "he2023/fig1", "--seeds", "0"), "Invalid value for '--seeds'"),
        (
            ("run", "he2023/fig1", "--seeds", "9" * 20),
            f"`--seeds` was {'9' * 20}; a number from 1 to 10,000 is needed.",
        ),
        (("run", "he2023/fig1", "--seeds", "9" * 20, "--plan"), "a number from 1 to 10,000 is needed."),
        (("run", "he2023/fig1", "--data-dir", "nowhere", "--plan"), "'nowhere' does not exist"),
        (("run", "he2023/fig1", "--data-dir", "nowhere", "--scale", "smoke"), "'nowhere' does not exist"),
        (
            ("run", "he2023/fig1", "he2023/fig2", "--draw", "fig.pdf"),
            "`--draw fig.pdf` names one file, and 2 figures are drawn. Name a folder for them, or run one figure.",
        ),
        (
            ("run", "he2023/fig1", "--draw", "fig.gif"),
            "`--draw fig.gif` should end in .png, .svg, .pdf, or name a folder;",
        ),
        (("run", "he2023/fig1", "--draw", "fig.docx"), "one whose name ends in .docx has to be there already."),
        (("run", "he2023/fig9", "--data", "cifar10=nope.npz", "--plan"), "There is no file `nope.npz`."),
        (("run", "he2023/fig9", "--data", "cifar10=nope", "--plan"), "There is no data set `nope`"),
        (
            ("run", "fang2021/minority", "--set", "dtype=float64", "--plan"),
            "`fang2021/minority` solves problems, which have no field `dtype`. Leave it out.",
        ),
        (("run", "he2023/fig1", "--set", "ratios=1,2", "--plan"), "trains networks, which have no field `ratios`."),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(place: Path, words: tuple[str, ...], sentence: str) -> None:
    done = equisep("figures", *words, folder=place)
    assert done.returncode == 2
    assert sentence in " ".join(done.stderr.replace("│", " ").split())
    assert "Traceback" not in done.stderr


def test_among_several_one_that_cannot_be_run_does_not_stop_the_others(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EQUISEP_DATA", str(place / "no-data"))
    (place / "two.py").write_text(f"{MINE}\n{ABSENT}")
    words = ("figures", "run", "mine/absent", "mine/depths", "--from", "two.py", "--store", "runs", "--json")
    done = equisep(*words, folder=place)
    assert done.returncode == 2
    assert [row["id"] for row in json.loads(done.stdout)] == ["mine/depths"]
    assert "1 of 2 figures were not run: mine/absent." in done.stderr
    assert "absent.npz" in done.stderr
