"""`equisep peeled …`: numbers, pictures, every bad input, and nothing called solved that is not."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from cli.running import equisep, equisep_process
from equisep import peeled
from equisep.compare import compare_network
from equisep.data import load_data, prepare_split

ENERGIES = ("--feature-energy", "5", "--weight-energy", "1")
HALVES = ("--majority", "5", "--minority", "5")
NETWORK = """
import torch
from torch import nn

def small():
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(100, 16), nn.ReLU(), nn.Linear(16, 10))

def loud():
    model = small()
    model[3].weight.data *= 1e6
    return model

def no_head():
    return nn.Sequential(nn.Flatten(), nn.Linear(100, 40), nn.Unflatten(1, (10, 4)), nn.AvgPool1d(4), nn.Flatten())
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a user's network and a data set as npz, 25 of each class."""
    folder = tmp_path_factory.mktemp("user")
    (folder / "peeled_net.py").write_text(NETWORK)
    data = load_data("embedded-10x10")
    rows = np.concatenate([np.flatnonzero(data.y_train == k)[:25] for k in range(10)])
    np.savez(
        folder / "mine.npz",
        x_train=data.x_train[rows], y_train=data.y_train[rows], x_test=data.x_test[:200], y_test=data.y_test[:200],
    )  # fmt: skip
    return folder


def found(*words: str | Path, folder: Path) -> dict:
    done = equisep("peeled", *words, "--json", folder=folder)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_threshold_stands_first_in_its_json(tmp_path: Path) -> None:
    done = equisep("peeled", "threshold", *HALVES, *ENERGIES, "--json", folder=tmp_path)
    assert done.stdout.startswith('{"threshold": 12.1924')
    content = json.loads(done.stdout)
    assert content["threshold"] == peeled.threshold(5, 5, 5, 1)
    assert content["vanishing"] is None and content["majority"] == 5
    text = equisep(
        "peeled", "threshold", *HALVES, "--feature-energy", "1e7", "--weight-energy", "1", folder=tmp_path
    ).stdout
    assert "which no float holds" in text and "R = 10^" in text
    text = equisep("peeled", "threshold", *HALVES, *ENERGIES, folder=tmp_path).stdout
    assert "Minority collapse from R = 12.1924" in text and "never" in text


def test_the_threshold_of_class_sizes_names_who_collapses_and_what_saves_them(tmp_path: Path) -> None:
    sizes = "100,100,100,30,30,30,30,5,5,5"
    content = found("threshold", "--sizes", sizes, *ENERGIES, folder=tmp_path)
    assert content["lost"] == content["collapsed"] == [7, 8, 9] and content["vanished"] == []
    row = content["classes"][7]
    problem = peeled.Problem.of_groups([3, 4, 3], [1, 0.3, 0.05], feature_energy=5, weight_energy=1)
    assert row["checked"] and row["factor"] == pytest.approx(peeled.rescue(problem).groups[2].factor, rel=1e-8)
    assert row["least_loss_weight"] == row["factor"]
    weights = ["1"] * 7 + [f"{1.001 * row['least_loss_weight']}"] * 3
    again = found("threshold", "--sizes", sizes, *ENERGIES, "--loss-weights", ",".join(weights), folder=tmp_path)
    assert again["lost"] == again["collapsed"] == []
    quick = found("threshold", "--sizes", sizes, *ENERGIES, "--no-saving", folder=tmp_path)
    assert quick["collapsed"] == [7, 8, 9] and "factor" not in quick["classes"][7]
    text = equisep("peeled", "threshold", "--sizes", sizes, *ENERGIES, folder=tmp_path).stdout
    assert "3 of 10 classes lost" in text and "checked by solving again" in " ".join(text.split())


LONG_TAIL = "5000,2997,1796,1077,645,387,232,139,83,50"


def test_classes_of_unequal_size_are_lost_by_their_margin_and_rescued(tmp_path: Path) -> None:
    """Classes of different size never coincide exactly, and were called separate at a cosine of 1 and no margin."""
    content = found("threshold", "--sizes", LONG_TAIL, *ENERGIES, folder=tmp_path)
    assert content["lost"] == [7, 8, 9] and content["collapsed"] == content["vanished"] == []
    weights = ["1"] * 10
    for row in content["classes"]:
        assert (row["margin"] > 0) is (row["state"] == "told apart") is (row["least_loss_weight"] is None)
        if row["state"] == "lost":
            assert row["factor"] > 1 and row["checked"]
            for side, lost in ((0.99, True), (1.01, False)):
                weights[row["class"]] = f"{side * row['least_loss_weight']}"
                again = found(
                    "threshold", "--sizes", LONG_TAIL, *ENERGIES, "--no-saving", "--loss-weights", ",".join(weights),
                    folder=tmp_path,
                )  # fmt: skip
                assert (row["class"] in again["lost"]) is lost
            weights[row["class"]] = "1"
    text = " ".join(equisep("peeled", "threshold", "--sizes", LONG_TAIL, *ENERGIES, folder=tmp_path).stdout.split())
    assert "3 of 10 classes lost" in text and "A class is told apart from its least weight on" in text
    assert "separate" not in text and "…" not in text
    mixed = found("threshold", "--sizes", "5000,5000,5000,50,50,50,40", *ENERGIES, folder=tmp_path)
    assert mixed["lost"] == [3, 4, 5, 6] and mixed["collapsed"] == [3, 4, 5]
    smallest = mixed["classes"][6]
    assert smallest["state"] == "lost" and smallest["margin"] < 0 and smallest["factor"] > 1.2
    solved = found("solve", "--sizes", "5000,5000,5000,50,50,50,40", *ENERGIES, folder=tmp_path)
    assert solved["states"] == ["told apart", "lost: collapsed", "lost"]


def test_energies_that_are_not_given_are_those_of_the_paper_and_said(tmp_path: Path) -> None:
    for words in (("threshold", *HALVES), ("threshold", "--sizes", "60,60,3,3"), ("solve", "--sizes", "60,60,3,3")):
        done = equisep("peeled", *words, "--json", folder=tmp_path)
        content = json.loads(done.stdout)
        assert (content["feature_energy"], content["weight_energy"]) == (5, 1)
        assert "E_H = 5 and E_W = 1" in done.stderr and "`equisep peeled network` reads both" in done.stderr
        assert equisep("peeled", *words, "--json", "-q", folder=tmp_path).stderr == ""
        given = equisep("peeled", *words, *ENERGIES, "--json", folder=tmp_path)
        assert given.stderr == "" and json.loads(given.stdout) == content
    half = equisep("peeled", "threshold", *HALVES, "--feature-energy", "10", "--json", folder=tmp_path)
    assert json.loads(half.stdout)["threshold"] == peeled.threshold(5, 5, 10) and "E_W = 1 as" in half.stderr


def test_a_long_tail_of_given_sizes(tmp_path: Path) -> None:
    words = ("diagram", "long-tail", "--sizes", LONG_TAIL, "--plot", "t.png")
    content = found(*words, folder=tmp_path)
    made = found("diagram", "long-tail", "--classes", "10", "--largest", "5000", folder=tmp_path)
    assert content == made and content["lost"] == [7, 8, 9]
    refused = equisep("peeled", *words, "--classes", "10", folder=tmp_path)
    assert refused.returncode == 2 and "`--classes` has no place here: `--sizes` states the classes." in refused.stderr


def test_the_threshold_of_groups_is_by_group(tmp_path: Path) -> None:
    content = found("threshold", "--groups", "3:1,4:0.3,3:0.05", *ENERGIES, "--every", folder=tmp_path)
    assert content["collapsed"] == [2]
    assert content["groups"][2]["least_weight"] == pytest.approx(0.119763, rel=1e-5)
    assert content["groups"][1]["least_weight"] < 0.3  # how far a group that is well could fall
    assert "group" in equisep("peeled", "threshold", "--groups", "5:1,5:0.01", *ENERGIES, folder=tmp_path).stdout


def test_weight_decay_beside_or_instead(tmp_path: Path) -> None:
    decay = ("--classifier-decay", "5e-4", "--feature-decay", "5e-4")
    alone = found("threshold", *HALVES, "--minority-size", "10", *decay, folder=tmp_path)
    assert alone == {"weight_decay": {**alone["weight_decay"]}}
    assert alone["weight_decay"]["threshold"] == pytest.approx((1 / (5e-4 * 10**0.5) - 5) / 5, rel=1e-12)
    both = found("threshold", *HALVES, "--minority-size", "10", *decay, *ENERGIES, folder=tmp_path)
    assert both["threshold"] == peeled.threshold(5, 5, 5, 1) and both["weight_decay"] == alone["weight_decay"]
    sizes = ("--sizes", ",".join(["2000"] * 5 + ["10"] * 5))
    fates = found("threshold", *sizes, *decay, folder=tmp_path)["weight_decay"]
    assert fates["collapsed"] == [5, 6, 7, 8, 9]
    text = equisep("peeled", "threshold", *sizes, *decay, folder=tmp_path).stdout
    assert "5 of 10 classes collapsed" in " ".join(text.split())
    words = equisep("peeled", "threshold", *HALVES, "--minority-size", "10", *decay, folder=tmp_path).stdout
    assert "minority collapse" in words and "R = 125.491" in words


@pytest.mark.parametrize("solver", ["auto", "reduced", "general", "cvxpy", "nonconvex"])
def test_every_solver_finds_one_optimum(solver: str, tmp_path: Path) -> None:
    if solver == "cvxpy":
        pytest.importorskip("cvxpy")
    words = ("solve", "--majority", "3", "--minority", "3", "--ratio", "4", *ENERGIES, "--solver", solver)
    content = found(*words, folder=tmp_path)
    value = peeled.solve(groups=[3, 3], weights=[1, 0.25], feature_energy=5, weight_energy=1).value
    assert content["result"] == "solved" and content["value"] == pytest.approx(value, rel=1e-6)
    assert content["certificate"]["relative_gap"] < 1e-3
    assert content["solver"] == ("reduced" if solver == "auto" else solver)


def test_a_solution_is_told_and_saved(tmp_path: Path) -> None:
    words = ("peeled", "solve", "--sizes", "60,60,60,3,3", *ENERGIES)
    done = equisep(*words, "--out", "deep/s.npz", folder=tmp_path)
    assert done.returncode == 0 and "solved" in done.stdout and "collapsed" in done.stdout
    assert "deep/s.npz" in done.stderr
    saved = np.load(tmp_path / "deep" / "s.npz")
    assert saved["Z"].shape == (5, 5) and np.abs(saved["H"] @ saved["W"].T - saved["Z"]).max() < 1e-12
    assert equisep(*words, "--out", "s.json", "--json", "-q", folder=tmp_path).stderr == ""
    content = json.loads((tmp_path / "s.json").read_text())
    assert content["states"] == ["told apart", "lost: collapsed"] and content["margins"][1] == 0
    assert content["geometry"]["classifier_cosines"][1][1] == 1.0
    assert content["value"] == saved["value"]


def test_an_infinite_ratio_leaves_the_minority_out_of_the_loss(tmp_path: Path) -> None:
    content = found("solve", *HALVES, "--ratio", "inf", *ENERGIES, folder=tmp_path)
    assert content["weights"] == [1.0, 0.0] and content["states"][1] == "lost: collapsed"
    assert content["geometry"]["feature_norms"][1] == 0.0


def test_the_q_norm_variant_stands_beside_the_best_etf(tmp_path: Path) -> None:
    words = ("solve", "--sizes", "1,1,1,1", *ENERGIES, "--solver", "nonconvex", "--q", "3", "--dimension")
    inside, beside = (found(*words, p, folder=tmp_path) for p in ("6", "8"))
    assert inside["value"] == pytest.approx(0.1299657, abs=5e-8) and abs(inside["etf"]["advantage"]) < 1e-9
    assert beside["value"] == pytest.approx(0.1136930, abs=5e-8) and beside["etf"]["advantage"] > 1e-4
    assert inside["result"] == "solved"  # the bound of the 2-norm problem is reached, and proves it
    assert beside["result"] == "stationary"  # a nonconvex point proves nothing by itself
    text = equisep("peeled", *words, "8", folder=tmp_path).stdout
    assert "stationary, not proven" in text and "solved" not in text
    assert "best feasible simplex ETF" in text


def test_a_solver_that_stops_early_says_so_and_exits_3(tmp_path: Path) -> None:
    extreme = (
        "peeled",
        "solve",
        "--sizes",
        "5,5,1",
        "--feature-energy",
        "5e7",
        "--weight-energy",
        "1",
        "--out",
        "s.npz",
    )
    done = equisep(*extreme, folder=tmp_path)
    assert done.returncode == 3
    assert "stopped early, not solved" in done.stdout and "0 of the value" not in done.stdout
    assert "losses below the smallest float, a value of 0: a duality gap proves nothing there" in done.stderr
    content = json.loads(equisep(*extreme, "--json", folder=tmp_path).stdout)
    assert content["result"] == "stopped" and content["geometry"] is None and content["states"] is None
    assert not (tmp_path / "s.npz").exists()


def test_the_cosine_diagram(tmp_path: Path) -> None:
    words = ("diagram", "cosine", "--majorities", "5,7", "--energies", "1:5", "--ratios", "1:1000:13")
    content = found(*words, "--plot", "c.svg", folder=tmp_path)
    first, second = content["curves"]
    assert first["collapse"] == peeled.threshold(5, 5, 5, 1) and first["unsolved"] == 0
    assert first["ratios"][0] == 1 and first["ratios"][-1] == 1000 and len(first["ratios"]) == 13
    assert second["states"][-1] == "lost: vanished" and second["classifier_cosines"][-1] is None
    assert "<svg" in (tmp_path / "c.svg").read_text()
    done = equisep("peeled", *words, folder=tmp_path)
    assert "12.1924" in done.stdout and "5.70533" in done.stdout
    assert "Nothing was drawn; add `--plot FILE.png`" in done.stderr


def test_phase_diagrams(tmp_path: Path) -> None:
    words = ("diagram", "phase-energy", "--ratios", "1:100:5", "--feature-energies", "1,5,10", "--plot", "e.png")
    content = found(*words, folder=tmp_path)
    assert content["diagram"] == "phase-energy" and content["feature_energies"] == [1, 5, 10]
    assert content["collapse"][1] == peeled.threshold(5, 5, 5, 1)
    assert content["states"][0] == ["told apart"] + ["lost: vanished"] * 4
    assert (tmp_path / "e.png").read_bytes().startswith(b"\x89PNG")
    share = ("diagram", "phase-share", "--classes", "6", "--ratios", "1:100:5")
    assert found(*share, folder=tmp_path)["majorities"] == [1, 2, 3, 4, 5]
    assert "25 points" in equisep("peeled", *share, folder=tmp_path).stdout


def test_the_vectors_diagram(tmp_path: Path) -> None:
    content = found("diagram", "vectors", "--classes", "4", "--ratios", "1,100", "--plot", "v.png", folder=tmp_path)
    assert [one["state"] for one in content["vectors"]] == ["told apart", "lost: collapsed"]
    assert (tmp_path / "v.png").stat().st_size > 1000


def test_the_long_tail_diagram(tmp_path: Path) -> None:
    words = ("diagram", "long-tail", "--classes", "10", "--largest", "5000", "--plot", "t.pdf")
    content = found(*words, folder=tmp_path)
    assert content["sizes"][0] == 5000 and content["lost"] == [7, 8, 9]
    assert (tmp_path / "t.pdf").read_bytes().startswith(b"%PDF")
    assert "10 classes, 5000 to 50 samples: 3 lost" in equisep("peeled", *words, folder=tmp_path).stdout


def test_a_diagram_with_points_that_were_not_solved_exits_3(tmp_path: Path) -> None:
    done = equisep("peeled", "diagram", "cosine", "--energies", "1:1e7", "--ratios", "1,10", "--json", folder=tmp_path)
    assert done.returncode == 3 and "6 points of the diagram were not solved" in done.stderr
    assert json.loads(done.stdout)["curves"][0]["states"] == ["not solved"] * 2


READ = ("network", "--model", "peeled_net:small", "--data", "mine.npz")


def test_a_network_is_read_as_the_library_reads_it(place: Path) -> None:
    sizes = [20] * 5 + [4] * 5
    content = found(*READ, "--sizes", ",".join(map(str, sizes)), "--seed", "3", folder=place)
    x, y = prepare_split(load_data(place / "mine.npz"), sizes=sizes, seed=3)
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Flatten(), torch.nn.Linear(100, 16), torch.nn.ReLU(), torch.nn.Linear(16, 10)
    )  # fmt: skip
    by_library = compare_network(model, (x, y))
    assert content["sizes"] == sizes and content["minority"] == [5, 6, 7, 8, 9] and content["classifier"] == "3"
    assert content["feature_energy"] == pytest.approx(by_library.feature_energy, rel=1e-6)
    assert content["measured"]["classifiers"] == pytest.approx(
        {name: getattr(by_library.measured.classifiers, name) for name in ("minority", "majority", "between")}, rel=1e-9
    )
    assert content["predicted"]["thresholds"]["majority"] == 5
    assert len(content["accuracy"]) == len(content["test_accuracy"]) == 10
    centered = found(
        *READ, "--sizes", ",".join(map(str, sizes)), "--seed", "3", "--centered", "--no-test", folder=place
    )
    assert centered["feature_energy"] < content["feature_energy"] and centered["test_accuracy"] is None


def test_the_reading_is_asked_for_and_told(place: Path) -> None:
    assert found(*READ, "--no-test", "--reading", "mixed", folder=place)["reading"] == "mixed"
    former = equisep("peeled", *READ, "--no-test", "--mode", "batch", "--json", folder=place)
    assert json.loads(former.stdout)["reading"] == "mixed" and "is now `--reading mixed`" in former.stderr
    wrong = equisep("peeled", *READ, "--no-test", "--reading", "evl", folder=place)
    assert wrong.returncode == 2 and "Did you mean `eval`?" in wrong.stderr


def test_a_network_in_words(place: Path) -> None:
    done = equisep("peeled", *READ, "--minority", "3,4", "--loss-weights", ",".join(["1"] * 10), folder=place)
    assert done.returncode == 0
    assert "Running the code of `peeled_net:small`" in done.stderr and "No --checkpoint" in done.stderr
    for words in (
        "Classifier 3, uncentered",
        "2 of them minority (named)",
        "classes lost; predicted:",
        "measured",
        "mean cosine",
        "predicted",
        "acc. %",
        "has a bias",
    ):
        assert words in done.stdout, words
    assert "…" not in done.stdout  # 80 columns are enough


def test_a_network_without_a_proven_prediction_exits_3_with_what_was_measured(place: Path) -> None:
    done = equisep(
        "peeled", "network", "--model", "peeled_net:loud", "--data", "mine.npz", "--json", "-q", folder=place
    )
    assert done.returncode == 3 and "duality gap" in done.stderr
    content = json.loads(done.stdout)
    assert content["predicted"] is None and content["measured"]["classifiers"]["majority"] is not None


BAD = {
    "no classes": (("solve", *ENERGIES), "State the classes in one way"),
    "two ways": (("solve", "--sizes", "5,5", "--groups", "5:1", *ENERGIES), "found 2 of them"),
    "no ratio": (("solve", *HALVES, *ENERGIES), "`--ratio` must be given here as well."),
    "zero energy": (("solve", "--sizes", "5,5", "--feature-energy", "0", "--weight-energy", "1"), "above 0; found 0.0"),
    "negative energy": (("threshold", *HALVES, "--feature-energy", "-5", "--weight-energy", "1"), "found -5.0"),
    "one class": (("solve", "--sizes", "5", *ENERGIES), "needs at least 2 classes; found 1"),
    "zero size": (("solve", "--sizes", "5,0", *ENERGIES), "The size of class 1 must be a whole number, 1 or more; found 0"),
    "zero weight": (("solve", "--groups", "5:1,5:0", *ENERGIES), "The weight of group 1 must be"),
    "zero ratio": (("solve", *HALVES, "--ratio", "0", *ENERGIES), "imbalance ratio must be above 0; found 0.0"),
    "no number": (("solve", "--sizes", "5,five", *ENERGIES), "takes numbers with commas between them; found `5,five`"),
    "no pair": (("solve", "--groups", "5,5", *ENERGIES), "`--groups` takes pairs such as 5:1,5:0.1"),
    "weights of nothing": (("solve", "--groups", "5:1,2:1", "--loss-weights", "1,2", *ENERGIES), "without `--sizes`"),
    "weights too few": (("solve", "--sizes", "5,5", "--loss-weights", "1", *ENERGIES), "must be 2 numbers"),
    "no solver": (("solve", "--sizes", "5,5", *ENERGIES, "--solver", "reducd"), "Did you mean `reduced`?"),
    "q elsewhere": (("solve", "--sizes", "5,5", *ENERGIES, "--q", "3"), "`--q` has no place here"),
    "bad q": (("solve", "--sizes", "5,5", *ENERGIES, "--solver", "nonconvex", "--q", "0"), "q"),
    "bad out": (("solve", "--sizes", "5,5", *ENERGIES, "--out", "s.txt"), "should end in .npz, .json"),
    "one minority class": (("threshold", "--majority", "5", "--minority", "1", *ENERGIES), "at least 2 minority classes"),
    "classes of a threshold": (("threshold", *ENERGIES), "or `--majority 5 --minority 5`; found none of them."),
    "every of two": (("threshold", *HALVES, *ENERGIES, "--every"), "`--every` has no place here"),
    "every and none": (
        ("threshold", "--sizes", "5,5,1", *ENERGIES, "--every", "--no-saving"), "Give one of them.",
    ),
    "half a threshold": (("threshold", "--majority", "5", *ENERGIES), "`--minority` must be given here as well."),
    "threshold of both": (("threshold", *HALVES, "--sizes", "5,5", *ENERGIES), "`--sizes` has no place here"),
    "half a decay": (("threshold", *HALVES, "--classifier-decay", "1e-3"), "`--feature-decay` must be given"),
    "decay of groups": (
        ("threshold", "--groups", "5:1,5:1", "--classifier-decay", "1", "--feature-decay", "1"),
        "Weight decay needs class sizes; found `--groups`",
    ),
    "decay of nothing": (("threshold", "--classifier-decay", "1", "--feature-decay", "1"), "needs class sizes; found none"),
    "decay without n": (
        ("threshold", *HALVES, "--classifier-decay", "1", "--feature-decay", "1"), "`--minority-size` must be given",
    ),
    "n without decay": (("threshold", *HALVES, *ENERGIES, "--minority-size", "5"), "`--minority-size` has no place here"),
    "bad mean": (
        ("threshold", "--sizes", "5,5", "--classifier-decay", "1", "--feature-decay", "1", "--mean", "all"),
        "divided by `samples` or by `weights`; found `all`",
    ),
    "no diagram": (("diagram", "cosin"), "No diagram `cosin`. Did you mean `cosine`?"),
    "flag of another diagram": (("diagram", "cosine", "--largest", "5"), "`--largest` has no place here: `cosine` takes"),
    "bad steps": (("diagram", "cosine", "--ratios", "10:1:5"), "`--ratios` takes FROM:TO:STEPS"),
    "bad plot": (("diagram", "cosine", "--plot", "c.xyz"), "should end in .png, .svg, .pdf"),
    "no minority left": (("diagram", "cosine", "--classes", "5", "--majorities", "5"), "leave no minority"),
    "infinite ratios": (("diagram", "cosine", "--ratios", "1,inf"), "finite imbalance ratios; found inf"),
    "two draws": ((*READ, "--per-class", "5", "--sizes", "5,5"), "both say how many samples to draw"),
    "half a sample": ((*READ, "--sizes", "5,2.5"), "`--sizes` takes whole numbers"),
    "draw too few": ((*READ, "-q", "--sizes", "5,5"), "`--sizes` has 2 numbers for 10 classes"),
    "no head": (("network", "--model", "peeled_net:no_head", "--data", "mine.npz", "-q"), "calls no nn.Linear with 10 outputs"),
    "no model": (("network", "--model", "peeled_net:smal", "--data", "mine.npz", "-q"), "Did you mean `small`?"),
    "no device": ((*READ, "-q", "--device", "warp"), "`--device warp` cannot be used here"),
    "no such minority": ((*READ, "-q", "--minority", "10"), "must be one of 10; found 10"),
    "two layers of nothing": (("two-layer", "-q"), "State the classes in one way"),
    "no activation": (("two-layer", "--sizes", "1,1", *ENERGIES, "--activation", "relus"), "Did you mean `relu`?"),
    "no such layer": ((*READ, "-q", "--classifier", "9"), "The classifier `9` should be an nn.Linear"),
}  # fmt: skip


def test_two_layers_are_searched_and_compared_with_neural_collapse(tmp_path: Path) -> None:
    words = ("peeled", "two-layer", "--groups", "6:1", *ENERGIES, "--starts", "2")
    content = json.loads(equisep(*words, "--json", folder=tmp_path).stdout)
    assert content["rank"] == 3 and content["value"] < content["collapse_value"]
    assert content["certificate"]["lower_bound"] < content["value"] and content["result"] == "stationary"
    text = " ".join(equisep(*words, folder=tmp_path).stdout.split())
    assert "so neural collapse is not the optimum" in text and "stationary, not proven to be the optimum" in text
    unequal = equisep("peeled", "two-layer", "--sizes", "9,3,1", *ENERGIES, "--starts", "2", folder=tmp_path)
    assert unequal.returncode == 0 and "Neural collapse" not in unequal.stdout


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_sentence_and_exit_code_2(case: str, place: Path) -> None:
    words, sentence = BAD[case]
    done = equisep("peeled", *words, folder=place)
    assert done.returncode == 2, (done.stdout, done.stderr)
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1 and done.stdout == ""


def test_a_terminal_without_greek_gets_no_traceback(tmp_path: Path) -> None:
    words = ("peeled", "solve", *HALVES, "--ratio", "9", *ENERGIES)
    plain = equisep_process(*words, folder=tmp_path, PYTHONIOENCODING="ascii")
    assert plain.returncode == 0 and plain.stdout.isascii() and "Traceback" not in plain.stderr
