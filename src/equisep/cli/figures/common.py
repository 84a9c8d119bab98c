"""What is there of a figure: in the user's store first, else in the committed record; and how it is shown."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from equisep.cli.console import out, say, usable_file, usable_folder
from equisep.cli.options import PICTURES
from equisep.errors import InputError

if TYPE_CHECKING:
    from equisep.figures.evidence import Evidence
    from equisep.figures.figure import Figure
    from equisep.figures.judge import Verdict
    from equisep.runs.store import Store

STORE = Path("equisep-runs")
# of a kind of file, as `.docx` and `.mp4`; `.v2` is of a folder
FILE_ENDING = re.compile(r"\.[a-z]{2,}\d*", re.IGNORECASE)
FigureFile = Annotated[
    Path | None,
    typer.Option("--from", metavar="FILE", help="A Python file with FIGURES = (Figure(…),) of your own: its code is run."),
]  # fmt: skip
ReadStore = Annotated[
    Path | None, typer.Option("--store", metavar="DIR", help=f"Where runs are kept ({STORE}, where there is one).")
]
Scale = Annotated[
    str, typer.Option("--scale", help="paper, or smoke: a small run that only shows that everything works.")
]
Strict = Annotated[
    bool, typer.Option("--strict", help="Exit with 1 where a claim is contradicted, or where nothing was run.")
]


@dataclass(frozen=True, slots=True)
class FigureResult:
    """The evidence of a figure, its verdicts, whether it is the committed record's, and then where that lies."""

    evidence: Evidence
    verdicts: tuple[Verdict, ...]
    recorded: bool = False
    folder: Path | None = None

    @property
    def remarks(self) -> tuple[str, ...]:
        """What a reader should know of recorded numbers."""
        from equisep.runs.record import remarks_in

        return () if self.folder is None else tuple(remarks_in(self.folder).get(self.evidence.figure.id, ()))

    @property
    def picture(self) -> str:
        """Where the drawing of the record lies, or how to make one."""
        id = self.evidence.figure.id
        if self.folder is not None and (self.folder / f"{id}.png").is_file():
            return str(self.folder / f"{id}.png")
        return f"equisep figures show {id} --draw {id.rpartition('/')[2]}.png" if self.evidence.done else ""

    @property
    def failed(self) -> bool:
        """Whether `--strict` objects."""
        return not self.evidence.done or any(verdict.verdict == "contradicted" for verdict in self.verdicts)

    def json(self) -> dict[str, Any]:
        """As plain JSON types."""
        from equisep.report.figures.summary import figure_json

        return figure_json(self.evidence, self.verdicts, recorded=self.recorded)


def known_figures(file: Path | None, *, quiet: bool) -> tuple[Figure, ...]:
    """All figures, those of a user's file too; that its code is run is said."""
    from equisep.figures.catalogue import all_figures

    if file is not None and file.is_file():
        say(f"Running the code of `{file}`.", quiet=quiet)
    return all_figures(file)


def open_store(path: Path | None) -> Store | None:
    """The store to read from; the usual one need not be there, one that is asked for has to."""
    from equisep.runs.store import Store

    if path is None and not STORE.exists():
        return None
    return Store.open(STORE if path is None else path, create=False)


def say_notes(store: Store | None, *, quiet: bool) -> None:
    """What was found damaged in the store."""
    for note in store.notes if store is not None else ():
        say(note, quiet=quiet)


def result_of(figure: Figure, store: Store | None, *, scale: str) -> FigureResult:
    """What the store has of a figure at a scale, else what the record has, else nothing."""
    from equisep.figures.evidence import gather

    stored = stored_result(figure, store, scale=scale)
    if stored is not None:
        return stored
    recorded = _recorded(figure) if scale == "paper" else None
    return judged(gather(figure, (), scale=scale)) if recorded is None else recorded


def stored_result(figure: Figure, store: Store | None, *, scale: str) -> FigureResult | None:
    """What the store has of a figure at a scale; None where that is nothing."""
    from equisep.runs.plan import check_scale
    from equisep.runs.run import evidence_of

    check_scale(scale)
    evidence = None if store is None else evidence_of(figure, store, scale)
    return judged(evidence) if evidence is not None and evidence.done else None


def judged(evidence: Evidence, *, folder: Path | None = None) -> FigureResult:
    """Evidence with its verdicts; of a record, the folder that it lies in."""
    from equisep.figures.judge import judge

    return FigureResult(evidence, judge(evidence), folder is not None, folder)


def _recorded(figure: Figure) -> FigureResult | None:
    from equisep.runs.record import find_results, recorded_evidence

    folder = find_results()
    path = None if folder is None else folder / f"{figure.id}.json"
    if path is None or not path.is_file():
        return None
    return judged(recorded_evidence(figure, path), folder=folder)


def draw_target(path: Path | None, figures: Sequence[Figure]) -> Callable[[Figure], Path] | None:
    """Where `--draw` puts each figure: into the file that it names, or as PNG into the folder; asked before the work."""
    if path is None:
        return None
    picture = path.suffix.lower() in PICTURES
    if not picture and FILE_ENDING.fullmatch(path.suffix) and not path.is_dir():
        raise InputError(
            f"`--draw {path}` should end in {', '.join(PICTURES)}, or name a folder; one whose name ends in {path.suffix} has "
            "to be there already."
        )
    if not picture:
        usable_folder(path, flag="--draw")
        return lambda figure: path / f"{figure.id}.png"
    usable_file(path, flag="--draw", endings=PICTURES)
    if len(figures) > 1:
        raise InputError(
            f"`--draw {path}` names one file, and {len(figures)} figures are drawn. Name a folder for them, or run one figure."
        )
    return lambda figure: path


def print_result(result: FigureResult, *, markdown: bool = False) -> None:
    """The figure as text, or as Markdown."""
    from equisep.report.figures.markdown import figure_markdown
    from equisep.report.figures.tables import render_figure

    if markdown:
        text = figure_markdown(result.evidence, result.verdicts, recorded=result.recorded, remarks=result.remarks)
        out.print(text, markup=False, highlight=False, soft_wrap=True, end="")
    else:
        out.print(
            render_figure(
                result.evidence,
                result.verdicts,
                recorded=result.recorded,
                remarks=result.remarks,
                picture=result.picture,
            )
        )
