"""The catalogue names every figure, refuses unknown ones with near matches, and takes figures from a user's file."""

from __future__ import annotations

import subprocess
import sys
from datetime import date
from pathlib import Path

import pytest

from equisep.errors import InputError
from equisep.figures.catalogue import all_figures, figure_of
from equisep.figures.changes import CHANGES
from equisep.figures.evidence import gather
from equisep.figures.figure import Figure
from equisep.figures.judge import judge
from equisep.figures.papers import PAPERS
from equisep.figures.quantities import Query
from equisep.figures.rules import NO_LESS, check_claims
from equisep.report.figures.cells import counts_as_ours

# every experiment of the three papers, and ours; one that has no figure here would be forgotten
HE = (
    *(f"fig{n}" for n in range(1, 11)), *(f"figS{n}" for n in range(1, 12)),
    "cnn-factors", "linear", "prop1", "reactivate", "transfer",
)  # fmt: skip
FANG = ("balanced", "qnorm", "minority", "networks", "fnn", "oversampling", "two-layer")
GALANTI = (*(f"fig{n}" for n in range(1, 7)), "bound", "bound-shallow")
OURS = ("rare", "stopping", "imbalance", "minority")

USERS = """
from equisep.figures.cell import Cell
from equisep.figures.figure import Claim, Figure, Panel, Series

FIGURES = (
    Figure(
        id="mine/depths", title="Depths", source="mine", cite="me", base=Cell(epochs=2),
        series=(Series("d-3", {"depth": 3}, panel="D", x=3), Series("d-4", {"depth": 4}, panel="D", x=4)),
        panels=(Panel("D"),), claims=(Claim("It falls", "falling", ("d-*",), "last"),),
    ),
)
"""


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(USERS)
    return path


def test_every_figure_of_the_papers_is_there() -> None:
    papers = {"he2023": HE, "fang2021": FANG, "galanti2022": GALANTI, "equisep2026": OURS}
    wanted = {f"{paper}/{name}" for paper, own in papers.items() for name in own}
    ids = [figure.id for figure in all_figures()]
    assert set(ids) == wanted
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("figure", all_figures(), ids=lambda figure: figure.id)
def test_a_figure_says_what_it_is_and_can_be_judged(figure: Figure) -> None:
    assert figure.title and figure.source and figure.cite and figure.series and figure.panels
    assert figure.claims, "a figure without a claim shows nothing"
    check_claims(figure)
    verdicts = judge(gather(figure, (), scale="paper"))
    assert [verdict.verdict for verdict in verdicts] == ["not run"] * len(figure.claims)
    for printed in figure.printed:
        Query.of(printed.quantity)
        assert printed.place, "a printed number has a place"


OF_PAPERS = [figure for figure in all_figures() if not figure.id.startswith("equisep2026/")]


@pytest.mark.parametrize("figure", all_figures(), ids=lambda figure: figure.id)
def test_every_claim_says_what_the_paper_says_and_where(figure: Figure) -> None:
    """Its sentence or number, exact, with its place; a claim without one does not count as the paper's, and says so."""
    for claim in figure.claims:
        assert claim.source, claim.text
        assert claim.quote or counts_as_ours(figure, claim), claim.text
        assert not (claim.quote and claim.in_our_words), claim.text
        if figure in OF_PAPERS and not claim.source.startswith("ours"):
            assert figure.fit is not None or figure.id.startswith("fang2021/") or figure.choose == "given", claim.text


def test_claims_say_what_their_rule_asks_for() -> None:
    """The rule `no less` holds of what may be less: its claims name the share, or quote a paper that asks for about the same."""
    for figure in all_figures():
        for claim in figure.claims:
            assert "no less" not in claim.text, claim.text
            if claim.rule == "no less":
                assert f"at least {NO_LESS:g} times" in claim.text or "about the same or better" in claim.quote, (
                    claim.text
                )
            if claim.rule == "no law":  # a law that is not clear, or somewhat fuzzy, is short of none
                assert "not clear" not in claim.quote and "fuzzy" not in claim.quote, claim.text


def test_changes_name_figures_and_claims_that_there_are() -> None:
    figures = {figure.id: figure for figure in all_figures()}
    for change in CHANGES:
        assert change.was or change.now
        assert change.why.endswith(".") and date.fromisoformat(change.date) >= date(2026, 11, 16)
        if "*" not in change.figure and change.now:
            assert change.now in {claim.text for claim in figures[change.figure].claims}, change.now


def test_a_figure_by_its_id() -> None:
    assert figure_of("he2023/fig1").id == "he2023/fig1"


def test_an_unknown_id_is_refused_with_near_matches() -> None:
    with pytest.raises(InputError) as caught:
        figure_of("he2023/fg1")
    assert str(caught.value).startswith("No figure `he2023/fg1`. Did you mean `he2023/fig1`")
    assert str(caught.value).endswith(f"`equisep figures list` names all {len(all_figures())}.")


def test_a_name_without_its_paper_finds_those_that_have_it() -> None:
    with pytest.raises(InputError, match=r"No figure `minority`. Did you mean `fang2021/minority`\?"):
        figure_of("minority")
    with pytest.raises(InputError, match=r"^No figure `xyz`. `equisep figures list`"):
        figure_of("xyz")


def test_a_file_of_the_users_adds_figures(mine: Path) -> None:
    assert len(all_figures(mine)) == len(all_figures()) + 1
    assert figure_of("mine/depths", mine).title == "Depths"
    assert figure_of("he2023/fig1", mine).id == "he2023/fig1"


def test_one_figure_alone_need_be_no_tuple(mine: Path) -> None:
    text = USERS.replace("FIGURES = (", "FIGURE = (").replace("    ),\n)\n", "    )\n)\n")
    mine.write_text(text)
    assert figure_of("mine/depths", mine).title == "Depths"
    mine.write_text(text.replace("FIGURE =", "FIGURES ="))
    assert figure_of("mine/depths", mine).title == "Depths"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "has neither `FIGURES` nor `FIGURE`."),
        ("1/0", "failed: ZeroDivisionError: division by zero"),
        ("def", "failed: SyntaxError"),
        ("import sys; sys.exit(3)", "failed: SystemExit: 3"),
        ("FIGURES = (1, 'a')", "should each be a `Figure`; found int, str."),
        ("FIGURES = None", "should each be a `Figure`; found NoneType."),
        (USERS.replace("mine/depths", "he2023/fig1"), "has a figure `he2023/fig1`, an id that is taken."),
        (USERS + "\nFIGURES = FIGURES * 2", "has a figure `mine/depths`, an id that is taken."),
        (USERS.replace("mine/depths", "depths"), "An id is PAPER/FIGURE"),
        (USERS.replace("mine/depths", "../etc/depths"), "An id is PAPER/FIGURE"),
        (USERS.replace('"falling"', '"faling"'), "No rule `faling`. Did you mean `falling`"),
        (USERS.replace('"falling"', '"near"'), "has the rule `near` and no `value`."),
        (USERS.replace('"last"', '"last@site=x"'), "`site` should be a whole number; found `x`."),
        (USERS.replace('"last"', '"last@epoch=1/0"'), "`epoch` should be a whole number; found `1/0`."),
        (USERS.replace('"last"', '"last@sight=3"'), "has `sight=3`. Did you mean `site`"),
        (USERS.replace('"depth": 3', '"depht": 3'), "A cell has no field `depht`. Did you mean `depth`"),
        (USERS.replace('("d-*",)', '("e-*",)'), "has no series `e-*`"),
    ],
)
def test_a_bad_file_is_one_sentence(mine: Path, text: str, words: str) -> None:
    mine.write_text(text)
    with pytest.raises(InputError) as caught:
        all_figures(mine)
    assert words in str(caught.value)


def test_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"No file `.*nowhere.py` to take figures from."):
        all_figures(tmp_path / "nowhere.py")


def test_figures_are_declared_where_they_are_asked_for_and_not_before() -> None:
    """`equisep --help`, and every command but `figures`, does without them; importing the folder checks no paper."""
    code = """
import sys
import equisep.cli.app
assert "equisep.figures" not in sys.modules
import equisep.figures
assert not [name for name in sys.modules if name.startswith("equisep.figures.papers.")]
assert equisep.figures.all_figures() and "equisep.figures.papers.he2023" in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_what_belongs_to_one_paper_is_of_series_that_its_figure_has() -> None:
    for figure in all_figures():
        assert figure.id.partition("/")[0] in PAPERS
        bound = figure.bound
        joined = [] if bound is None else [name for depths in bound.joined.values() for name in depths.values()]
        for name in (*figure.code_rates, *joined, *(() if bound is None else bound.first.values())):
            assert [series.name for series in figure.named(name)] == [name]
    assert figure_of("he2023/fig1").code_rates and figure_of("galanti2022/bound").bound
