"""Mistakes in declared figures are refused in one sentence, before anything is trained."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

from equisep.errors import InputError
from equisep.figures.catalogue import all_figures
from equisep.figures.cell import Cell
from equisep.figures.figure import Claim, Figure, Panel, Series
from equisep.figures.rules import check_claims


def figure(**changes: Any) -> Figure:
    own = {"id": "a/b", "title": "", "source": "", "cite": "", "base": Cell(), "series": (Series("a"),), "panels": ()}
    return Figure(**{**own, **changes})


def test_an_unknown_field_of_a_cell_is_refused_with_near_matches() -> None:
    with pytest.raises(InputError, match="Did you mean `epochs`"):
        Cell(epocs=3)  # type: ignore[call-arg]
    cell = Cell(epochs=3, readings=("eval",))
    assert pickle.loads(pickle.dumps(cell)) == cell


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"choose": "bestr"}, "No way to choose the rate `bestr`. Did you mean `best r` or `best two` or `best fit`?"),
        ({"seeds": "x"}, "has seeds='x'"),
        ({"seeds": 0}, "has seeds=0"),
        ({"choose": "best r", "rates": {"adam": ()}}, "Series `a` of `a/b` has no rate to try."),
    ],
)
def test_a_figure_that_cannot_be_run_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError) as caught:
        figure(**changes)
    assert words in str(caught.value)


def test_panels_and_claims() -> None:
    with pytest.raises(InputError, match="No kind of panel `sweeep`"):
        Panel("p", kind="sweeep")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="Write its series in a tuple"):
        Claim("All", "law", "a-*")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("id=3, base=Cell()", "has a figure `3`"),
        ("id='a/b', base=Cell(epochs='6')", "`epochs` should be a whole number; found '6'."),
        ("id='a/b', base=Cell(norm='layer')", "series `a`: `norm` should be True or False; found 'layer'."),
        ("id='a/b', base=Cell(activation=3)", "series `a`: `activation` should be "),
        ("id='a/b', base=Cell(preparation=None)", "`preparation` should be a name; found None."),
        ("id='a/b', base=Cell(depth='8')", "`depth` should be a whole number or None; found '8'."),
        (
            "id='a/b', base=Cell(read_epochs=(1, 'x'))",
            "`read_epochs` should be whole numbers in a tuple; found (1, 'x').",
        ),
        ("id='a/b', base=Cell(activaton=False)", "Did you mean `activation`?"),
    ],
)
def test_types_in_a_file_are_checked(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "mine.py"
    path.write_text(
        "from equisep.figures.cell import Cell\nfrom equisep.figures.figure import Figure, Series\n"
        f"FIGURE = Figure(title='', source='', cite='', series=(Series('a'),), panels=(), {text})\n"
    )
    with pytest.raises(InputError) as caught:
        all_figures(path)
    assert words in str(caught.value) and "damaged" not in str(caught.value)


def test_a_misspelled_quantity_is_told_before_anything_is_trained() -> None:
    with pytest.raises(InputError, match=r"asks for `rhoo`\. Did you mean `rho`"):
        check_claims(figure(claims=(Claim("…", "at least", ("a",), "rhoo", value=0.0),)))
    check_claims(figure(claims=(Claim("…", "at least", ("a",), "my_own_number", value=0.0),)))
