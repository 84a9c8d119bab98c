"""Write docs/figures.md, and the summary in README.md, from the committed record in results/."""

from __future__ import annotations

from pathlib import Path

from equisep.figures.catalogue import all_figures
from equisep.figures.figure import Figure
from equisep.report.figures.page import figures_page, recorded_figures, summary_table
from equisep.runs.cost import Prediction, predict

REPO = Path(__file__).resolve().parents[1]
PAGE, README = REPO / "docs" / "figures.md", REPO / "README.md"
BEGIN = "<!-- summary of the record, by scripts/make_figures_page.py -->"
END = "<!-- end of the summary -->"


def cost_of(figure: Figure) -> Prediction:
    """On the kind of machine that the record was made on."""
    return predict(figure, scale="paper", device="cuda")


def page() -> str:
    """The page as it should be."""
    return figures_page(all_figures(), REPO / "results", predict=cost_of)


def readme() -> str:
    """README.md as it should be: the summary stands between its marks."""
    before, begin, rest = README.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"README.md has lost `{BEGIN}` or `{END}`. Put both back where the summary should stand.")
    table = summary_table(recorded_figures(all_figures(), REPO / "results"))
    return f"{before}{BEGIN}\n\n{table}\n\n{END}{after}"


if __name__ == "__main__":
    for target, text in ((PAGE, page()), (README, readme())):
        target.write_text(text, encoding="utf-8")
        print(f"equisep: wrote {target}")
