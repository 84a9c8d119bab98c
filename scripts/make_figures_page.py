"""Write docs/figures/, its thumbnails, the summary in README.md and results/tally.json from the committed record in results/."""

from __future__ import annotations

import io
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from PIL import Image

from equisep.figures.catalogue import all_figures
from equisep.figures.cell import Cell
from equisep.figures.changes import CHANGES
from equisep.figures.figure import Figure
from equisep.report.figures.tally import TALLY, tally_text
from equisep.runs.cost import Prediction, predict, predict_cells
from figure_pages.figure_page import figure_page
from figure_pages.index import changes_page, index_page
from figure_pages.recorded import Recorded, recorded_figures, summary_table

REPO = Path(__file__).resolve().parents[1]
RESULTS, PAGES, README = REPO / "results", REPO / "docs" / "figures", REPO / "README.md"
THUMBNAILS = PAGES / "thumbnails"
BEGIN = "<!-- summary of the record, by scripts/make_figures_page.py -->"
END = "<!-- end of the summary -->"
WIDE, HIGH = 400, 600  # pixels that a thumbnail takes at most
COLORS = 64


def main() -> None:
    """Write what differs, and take away pages of figures that have no record any more."""
    THUMBNAILS.mkdir(parents=True, exist_ok=True)
    made = {**{THUMBNAILS / name: data for name, data in thumbnails().items()}, **page_bytes()}
    for path, data in made.items():
        if not path.is_file() or path.read_bytes() != data:
            path.write_bytes(data)
            print(f"equisep: wrote {path}")
    for path in sorted({*PAGES.glob("*.md"), *THUMBNAILS.glob("*.png")} - set(made)):
        path.unlink()
        print(f"equisep: removed {path}")


def page_bytes() -> dict[Path, bytes]:
    """Every page, README.md and the tally, as they should be."""
    texts = {PAGES / name: text for name, text in pages().items()}
    tally = tally_text((each.row for each in judged()), RESULTS)
    return {path: text.encode() for path, text in {**texts, README: readme(), RESULTS / TALLY: tally}.items()}


@cache
def judged() -> list[Recorded]:
    """Every figure of the record with its verdicts, which all that is written here is made of."""
    return recorded_figures(all_figures(), RESULTS)


def pages() -> dict[str, str]:
    """The pages by name, as they should be."""
    found = judged()
    own = {each.page: figure_page(each, RESULTS) for each in found if each.summary is not None}
    index = index_page(found, thumbnails=THUMBNAILS, predict=cost_of)
    return {"index.md": index, "changes.md": changes_page(CHANGES), **own}


def thumbnails() -> dict[str, bytes]:
    """A small picture of every drawing of the record, by name; of very tall drawings the upper part."""
    paths = [RESULTS / f"{figure.id}.png" for figure in all_figures()]
    return {f"{path.parent.name}-{path.name}": thumbnail(path) for path in paths if path.is_file()}


def thumbnail(path: Path) -> bytes:
    """One drawing as wide as a cell of the gallery: whole unless it is very tall, for what it shows may stand at its end."""
    with Image.open(path) as image:
        whole = image.convert("RGB")
    whole = whole.crop((0, 0, whole.width, min(whole.height, whole.width * HIGH // WIDE)))
    small = whole.resize((WIDE, whole.height * WIDE // whole.width), Image.Resampling.LANCZOS)
    held = io.BytesIO()
    small.quantize(COLORS, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE).save(held, "PNG", optimize=True)
    return held.getvalue()


def cost_of(figure: Figure, cells: Sequence[Cell]) -> Prediction:
    """Of some cells of a figure, or of all, on the kind of machine that the record was made on."""
    return predict_cells(cells, device="cuda") if cells else predict(figure, scale="paper", device="cuda")


def readme() -> str:
    """README.md as it should be: the summary stands between its marks."""
    before, begin, rest = README.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"README.md has lost `{BEGIN}` or `{END}`. Put both back where the summary should stand.")
    table = summary_table(judged())
    return f"{before}{BEGIN}\n\n{table}\n\n{END}{after}"


if __name__ == "__main__":
    main()
