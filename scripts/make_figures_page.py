"""Write docs/figures.md from the committed record in results/: what the papers claim, and what was found."""

from __future__ import annotations

import sys
from pathlib import Path

from equisep.figures.catalogue import all_figures
from equisep.figures.figure import Figure
from equisep.report.figure_page import figures_page
from equisep.runs.cost import Prediction, predict

REPO = Path(__file__).resolve().parents[1]


def cost_of(figure: Figure) -> Prediction:
    """On the kind of machine that the record was made on."""
    return predict(figure, scale="paper", device="cuda")


def page() -> str:
    """The page as it should be."""
    return figures_page(all_figures(), REPO / "results", predict=cost_of)


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else REPO / "docs" / "figures.md"
    target.write_text(page(), encoding="utf-8")
    print(f"equisep: wrote {target}")
