"""A profile that holds several readings shows them: columns, laws, lines; one that holds one shows nothing of it."""

from __future__ import annotations

import io
from functools import cache

import torch
from matplotlib.figure import Figure
from rich.console import Console

from equisep.measuring import measure
from equisep.models import Fnn
from equisep.report.notebook import profile_html
from equisep.report.plots import plot_law
from equisep.results import Profile

Y = torch.arange(240) % 4
X = torch.randn(240, 8, generator=torch.Generator().manual_seed(0)) + 2 * torch.eye(4, 8)[Y]
COLUMNS = {"fuzziness_mixed", "fuzziness_drawn", "company_mixed", "company_drawn"}


@cache
def profile(*readings: str) -> Profile:
    torch.manual_seed(0)
    order = Y.argsort()
    return measure(Fnn(widths=[9, 7], inputs=8, classes=4), (X[order], Y[order]), readings=readings, coordinates=0)


def printed(one: Profile, width: int = 130) -> str:
    text = io.StringIO()
    Console(file=text, width=width).print(one)
    return text.getvalue()


def test_frames_have_a_column_for_each_reading_and_for_what_company_does() -> None:
    frame = profile("eval", "mixed", "drawn").to_frame()
    assert set(frame.columns) >= COLUMNS and "fuzziness_eval" not in frame.columns
    assert frame["company_drawn"].tolist() == list(profile("eval", "mixed", "drawn").company["drawn"])
    assert not COLUMNS & set(profile("eval").to_frame().columns)
    other = profile("drawn", "eval").to_frame()  # the first of them is the profile's own D
    assert {"fuzziness_eval", "company_drawn"} <= set(other.columns) and "fuzziness_drawn" not in other.columns


def test_the_terminal_shows_columns_and_laws() -> None:
    text = printed(profile("eval", "mixed", "drawn"))
    assert text.count("/ eval") == 2 and "reading mixed" in text and "reading drawn" in text
    assert "D of the last layer is" in text.replace("\n", " ")
    alone = printed(profile("eval"))
    assert "/ eval" not in alone and "reading mixed" not in alone
    assert max(map(len, printed(profile("eval", "mixed", "drawn"), 80).splitlines())) <= 80


def test_html_shows_them_too() -> None:
    page = profile_html(profile("eval", "mixed", "drawn"))
    assert "D<br>drawn" in page and "reading drawn: ρ" in page
    assert "reading drawn" not in profile_html(profile("eval"))


def test_a_new_drawing_has_a_line_for_each_reading() -> None:
    axes = plot_law(profile("eval", "mixed", "drawn"))
    names = [label.partition(":")[0] for label in axes.get_legend_handles_labels()[1]]
    assert names == ["reading eval", "reading mixed", "reading drawn"] and axes.get_title() == "Fnn, 3 readings"
    shared = plot_law(profile("eval", "mixed", "drawn"), Figure().add_subplot())
    assert len(shared.get_legend_handles_labels()[1]) == 1
