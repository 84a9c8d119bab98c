"""Cells, trained or solved: frozen, flat, there and back through JSON, one key for one set of settings, others refused."""

from __future__ import annotations

import hashlib
import json
import math
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from equisep.errors import EquisepError, InputError, ProfileError
from equisep.figures.catalogue import all_figures
from equisep.figures.cell import Cell, Solve, Training, field_names
from equisep.results import Reading
from equisep.runs.plan import RunOptions, cells_to_run

REALS = st.floats(allow_nan=False, allow_infinity=False).map(lambda value: value + 0.0)  # no -0.0
COUNTS = st.integers(0, 10**6)
WORDS = st.text(max_size=12)
READ = st.lists(st.sampled_from(get_args(Reading)), max_size=3).map(tuple)
FROZEN = Path(__file__).with_name("keys_of_version_0_1.json")
SOLVED: dict[str, Any] = {"problem": "qnorm"}


def any_value(hint: Any) -> st.SearchStrategy[Any]:
    """Values of a field by its annotation."""
    plain = {bool: st.booleans(), int: COUNTS, float: REALS, str: WORDS, type(None): st.none()}
    if hint in plain:
        return plain[hint]
    parts = get_args(hint)
    if get_origin(hint) is Literal:
        return st.sampled_from([part for part in parts if part])
    if len(parts) == 2 and parts[1] is Ellipsis:
        return st.lists(any_value(parts[0]), max_size=4).map(tuple)
    return st.one_of([any_value(part) for part in parts])


def changes_of(kind: type[Cell]) -> st.SearchStrategy[dict[str, Any]]:
    hints = get_type_hints(kind)
    values = {name: READ if name == "readings" else any_value(hints[name]) for name in field_names(kind)}
    always = {"problem": values.pop("problem")} if kind is Solve else {}
    return st.fixed_dictionaries(always, optional=values)


CHANGES = changes_of(Training) | changes_of(Solve)


@given(CHANGES)
def test_any_cell_comes_back_from_json_with_its_key(changes: dict[str, Any]) -> None:
    cell = Cell(**changes)
    assert type(cell) is (Solve if "problem" in changes else Training)
    text = json.dumps(cell.to_dict(), allow_nan=False)
    back = Cell.from_dict(json.loads(text))
    assert back == cell and hash(back) == hash(cell) and back.key == cell.key
    assert type(cell)(**changes) == cell == (Solve(**SOLVED) if "problem" in changes else Training()).with_(**changes)
    assert Cell.from_dict(cell.own_fields()) == cell  # what is left out has its default
    assert pickle.loads(pickle.dumps(cell)) == cell


@given(CHANGES, CHANGES)
def test_cells_have_one_key_where_they_are_equal_and_two_where_they_are_not(
    one: dict[str, Any], two: dict[str, Any]
) -> None:
    a, b = Cell(**one), Cell(**two)
    same = a.to_dict() == b.to_dict()
    assert (a.key == b.key) == same


@pytest.mark.parametrize("base", [Training(), Solve(problem="minority")])
def test_every_field_makes_another_key(base: Cell) -> None:
    others: dict[str, Any] = {"kind": "staged", "problem": "qnorm", "readings": ("eval",), "init": "he"}
    for name in field_names(type(base)):
        if isinstance(base, Solve) and name == "kind":
            continue
        before = getattr(base, name)
        value = others.get(name)
        if value is None:
            value = not before if isinstance(before, bool) else f"{before}x" if isinstance(before, str) else None
        if value is None:
            value = before + 1 if isinstance(before, int | float) else (1,) if before != (1,) else (2,)
        changed = base.with_(**{name: value})
        assert changed != base and changed.key != base.key, name


# series, and rates, that came after version 0.1, by figure
LATER = {
    "he2023/fig9": "he-*",
    "he2023/figS10": "he-*",
    "he2023/figS11": "deep",
    "he2023/figS9": "minilm mpnet",
    "he2023/linear": "relu",
    "he2023/prop1": "he",
    "he2023/transfer": "wide-*",
    "fang2021/oversampling": "copies-*",
    "fang2021/networks": "vgg11-part-*",
    "fang2021/qnorm": "q0.5-* q1-*",
    "fang2021/two-layer": "*",
    "galanti2022/bound-shallow": "*",
}
LATER_RATES = {"galanti2022/fig1": 0.01}


def _later(figure: str, series: str, cell: Cell) -> bool:
    named = any(fnmatchcase(series, pattern) for pattern in LATER.get(figure, "").split())
    return named or (isinstance(cell, Training) and cell.rate == LATER_RATES.get(figure))


def test_the_keys_of_every_figure_stay_what_they_were() -> None:
    """Series and keys of all cells of the papers' figures, as version 0.1 planned them, but for the reading `drawn`.

    At smoke scale the whole run that short ones choose is counted at the rate that is tried there. What was stored in fewer
    readings is another cell: a network has to be there to be read once more.
    """
    frozen = json.loads(FROZEN.read_text())
    ours = "equisep2026/"  # which came later
    of_papers = [each for each in all_figures() if not each.id.startswith(ours) and LATER.get(each.id) != "*"]
    assert {name.rpartition(".")[0] for name in frozen} == {figure.id for figure in of_papers}
    for figure in of_papers:
        # figures that try every rate to the end now were planned with short runs and one seed
        before = replace(figure, choose="short runs", seeds=1) if figure.choose == "best two" else figure
        for scale in ("paper", "smoke"):
            planned = (
                each
                for each in cells_to_run(before, RunOptions(scale=scale))
                if not _later(figure.id, each.series, each.cell)
            )
            keys = [[each.series, _without_drawn(each.cell).key] for each in planned]
            digest = hashlib.sha256(json.dumps(keys, separators=(",", ":")).encode()).hexdigest()
            assert {"cells": len(keys), "sha256": digest} == frozen[f"{figure.id}.{scale}"], figure.id


def _without_drawn(cell: Cell) -> Cell:
    if not isinstance(cell, Training) or "drawn" not in cell.readings:
        return cell
    return cell.with_(readings=tuple(name for name in cell.readings if name != "drawn"))


def test_the_keys_of_stored_results_stay_what_they_are() -> None:
    """A changed default, name or encoding would lose every result that was ever stored."""
    assert Cell().key == "44136fa355b3678a1146ad16f7e8649e"  # the first half of the SHA-256 of {}
    own: dict[str, Any] = {
        "class_weights": [1.0, 2.0],
        "depth": 20,
        "first_epochs": 900,
        "kind": "staged",
        "rate": 3e-4,
    }
    digest = hashlib.sha256(json.dumps(own, sort_keys=True).encode()).hexdigest()
    assert Cell.from_dict(own).key == digest[:32]
    assert Cell(**{**own, "class_weights": (1, 2), "data": "fashion-mnist"}).key == digest[:32]


def test_readings_are_hashed_under_their_former_names() -> None:
    own = {"modes": ["eval", "batch"], "seed": 2}
    cell = Training(readings=("eval", "mixed"), seed=2)
    assert cell.own_fields() == own and cell == Cell.from_dict(own)
    assert cell.key == hashlib.sha256(json.dumps(own, sort_keys=True).encode()).hexdigest()[:32]
    with pytest.warns(FutureWarning, match='`mode="batch"` is now `reading="mixed"`'):
        assert Cell(modes=("eval", "batch"), seed=2) == cell
    with pytest.warns(FutureWarning):
        assert Training(seed=2).with_(modes=("eval", "batch")) == cell
    with pytest.raises(InputError, match=r"No reading `evil`. Did you mean `eval`"):
        Cell(readings=("evil",))


def test_a_solved_problem_says_that_it_is_one() -> None:
    """Version 0.1 hashed its kind, which was not the default one."""
    solved = Solve(problem="minority", majority=5, ratios=(1, 2))
    own = {"kind": "solve", "majority": 5, "problem": "minority", "ratios": [1.0, 2.0]}
    assert solved.own_fields() == own and Cell.from_dict(own) == solved == Cell(**{**own, "ratios": (1.0, 2.0)})
    assert solved.key == hashlib.sha256(json.dumps(own, sort_keys=True).encode()).hexdigest()[:32]


def test_fields_of_the_other_kind_are_refused_where_they_are_asked_for_and_left_out_where_they_are_read() -> None:
    with pytest.raises(InputError, match=r"^A cell that is solved has no field `epochs`, which trainings have"):
        Solve(problem="qnorm").with_(epochs=3)
    with pytest.raises(InputError, match=r"^A cell that is trained has no field `ratios`, which solved problems have"):
        Cell(kind="train", ratios=(1.0,))
    # `--set dtype=float64` of version 0.1 went to all cells of all figures
    former = {"kind": "solve", "problem": "qnorm", "dtype": "float64", "modes": ["eval"]}
    assert Cell.from_dict(former) == Solve(problem="qnorm")


def test_stages_are_there_where_the_kind_says_so() -> None:
    assert Training(first_epochs=3).stages is None
    staged = Training(kind="staged", first_epochs=3, keep=2).stages
    assert staged is not None and (staged.first_epochs, staged.keep, staged.renew) == (3, 2, False)


def test_the_defaults_are_the_papers() -> None:
    """He & Su 2023: Fashion-MNIST at 10 × 10, 100 a class; 8 layers of width 100; Adam, 600 epochs in batches of 128."""
    cell = Training()
    assert (cell.kind, cell.data, cell.preparation, cell.per_class) == ("train", "fashion-mnist", "he2023-10x10", 100)
    assert (cell.network, cell.depth, cell.width, cell.norm, cell.activation) == ("fnn", 8, 100, True, True)
    assert (cell.optimizer, cell.epochs, cell.batch_size, cell.weight_decay, cell.momentum) == (
        "adam",
        600,
        128,
        5e-4,
        0.9,
    )
    assert (cell.milestones, cell.factor, cell.readings, cell.test_per_class) == (
        (1 / 3, 2 / 3),
        0.1,
        ("mixed", "eval"),
        None,
    )


def test_one_and_one_point_zero_are_one_setting() -> None:
    assert Cell(rate=1).key == Cell(rate=1.0).key and isinstance(Training(rate=1).rate, float)
    weighted = Cell(class_weights=(1, 2))
    assert weighted == Cell(class_weights=(1.0, 2.0)) and weighted.key == Cell(class_weights=(1.0, 2.0)).key


def test_a_cell_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        Training().rate = 2.0  # type: ignore[misc]


@pytest.mark.parametrize(
    ("name", "near"), [("learning_rate", ""), ("rates", "rate"), ("epoch", "epochs"), ("bach_size", "batch_size")]
)
def test_an_unknown_field_is_refused_with_near_matches(name: str, near: str) -> None:
    makers: tuple[Callable[[dict[str, Any]], Cell], ...] = (lambda own: Cell().with_(**own), Cell.from_dict)
    for make in makers:
        with pytest.raises(InputError, match=f"^A cell has no field `{name}`.") as caught:
            make({name: 1})
        assert (f"Did you mean `{near}`" in str(caught.value)) == bool(near)
        assert "It has kind, data, stands_for," in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value", "near"),
    [("kind", "staged ", "staged"), ("kind", "trian", "train"), ("problem", "minorty", "minority")],
)
def test_an_unknown_kind_or_problem_is_refused(name: str, value: str, near: str) -> None:
    with pytest.raises(InputError, match=f"^A cell's `{name}` was '{value}'. Did you mean `{near}`"):
        Cell(**{name: value})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "content", [{"epochs": "many"}, {"epochs": 1.5}, {"norm": 1}, {"widths": 3}, {"widths": ["a"]}, {"rate": None}]
)
def test_a_value_of_another_type_is_refused(content: dict[str, Any]) -> None:
    with pytest.raises(EquisepError) as caught:
        Cell.from_dict(content)
    assert isinstance(caught.value, ProfileError | InputError) and next(iter(content)) in str(caught.value)


def test_infinity_has_no_place_in_json() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        json.dumps(Cell(rate=math.inf).to_dict(), allow_nan=False)


def test_whole_numbers_are_one_cell_however_they_are_written() -> None:
    assert Cell(epochs=10.0).key == Cell(epochs=10).key  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"`epochs` is a whole number; found 2\.5"):
        Cell(epochs=2.5)  # type: ignore[arg-type]
