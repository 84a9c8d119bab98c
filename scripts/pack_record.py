"""Pack a store's full-scale runs into the committed record: results/<paper>/<figure>.json, and the figure drawn from it.

    python scripts/pack_record.py runs
    python scripts/pack_record.py runs --results results --only he2023/fig1 he2023/fig2
    python scripts/pack_record.py runs --keep                 # what the store has not stays as it is recorded
    python scripts/pack_record.py --redraw                    # the pictures alone, from the record as it is

Every record is read back and judged again; that its verdicts are those of the store is checked, not hoped. A figure of which
cells are missing is packed too, and its state says so. A picture carries the fingerprint of what it shows, by which a test
sees that it is up to date. What several figures have run alike is stored once, in the record of the first of them.
`scripts/make_figures_page.py` then writes docs/figures/.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

from PIL import Image
from PIL.PngImagePlugin import PngInfo

from equisep.errors import StoreError
from equisep.figures.catalogue import all_figures, figure_of
from equisep.figures.cell import Cell, Training
from equisep.figures.evidence import Entry, Evidence, gather
from equisep.figures.figure import Figure
from equisep.figures.judge import Verdict, judge
from equisep.report.figures.drawing.draw import fingerprint, save_drawn
from equisep.report.figures.summary import state_of
from equisep.report.formatting import size
from equisep.runs.packing import lines_of
from equisep.runs.plan import RunOptions, cells_to_run, declared, short_cells
from equisep.runs.record import Record, read_record, record_content, recorded_evidence, write_record
from equisep.runs.run import evidence_of
from equisep.runs.store import Store

REPO = Path(__file__).resolve().parents[1]
SCALE = "paper"
DPI = 160
COLORS = 256
MOST_BYTES = 12 * 2**20  # of the whole folder
FINGERPRINT = "equisep-shows"  # the text of a picture that says what it shows


def main() -> None:
    """Pack what the store has, and say how large it is."""
    asked = arguments()
    store = None if asked.redraw else Store.open(asked.store, create=False)
    known = [id for id, scale in store.figures() if scale == SCALE] if store else recorded_ids(asked.results)
    records = {id: read_record(asked.results / f"{id}.json") for id in recorded_ids(asked.results)}
    for id in asked.only or known:
        figure, former = figure_of(id), records.get(id) if asked.keep else None
        found = pack_figure(figure, store, asked.results, former) if store else redraw(figure, asked.results)
        print(f"{size(bytes_of(asked.results, id)):>10}  {id}: {state_of(found, recorded=True)}", flush=True)
        if found.done:
            records[id] = read_record(asked.results / f"{id}.json")
    store_once(records, asked.results)
    whole = sum(path.stat().st_size for path in asked.results.rglob("*") if path.is_file())
    print(f"{size(whole):>10}  in {asked.results}")
    if whole > MOST_BYTES:
        raise SystemExit(f"The record is larger than {size(MOST_BYTES)}. Draw with fewer dots an inch, or keep less.")


def pack_figure(figure: Figure, store: Store, results: Path, former: Record | None = None) -> Evidence:
    """Write the record of one figure, read it back, check its verdicts, and draw the figure from it alone.

    Where nothing was run, nothing is written. Series of which the store has nothing stay as a `former` record has them, and of
    the others what the figure still asks for, at any of its rates.
    """
    entries = [entry for found in evidence_of(figure, store, SCALE).series.values() for entry in found.entries]
    plan = plan_of(figure, store)
    path = results / f"{figure.id}.json"
    if former is not None and entries:
        left = {series.name for series in figure.series} - {entry.series for entry in entries}
        kept_on = [entry for entry in former.entries if entry.series in left]
        again = {entry.series for entry in kept_on}
        known = {(entry.series, entry.cell) for entry in (*entries, *kept_on)}
        kept_on += [entry for entry in _still_asked(figure, former, entries) if (entry.series, entry.cell) not in known]
        entries += kept_on
        plan = [each for each in plan if each[0] not in again] + [(entry.series, entry.cell) for entry in kept_on]
    stored = gather(figure, entries, scale=SCALE, plan=plan)
    if not stored.done:
        return stored
    write_record(path, entries, figure, SCALE, plan=plan)
    kept = recorded_evidence(figure, path)
    if difference := differences(stored, kept):
        raise SystemExit(f"The record of `{figure.id}` does not say what the store says: {difference}.")
    save_small(kept, results / f"{figure.id}.png")
    return kept


def _still_asked(figure: Figure, former: Record, entries: Sequence[Entry]) -> list[Entry]:
    """The recorded trainings that the figure asks for as it is declared now: short runs, and whole ones on the data and network
    that the others of their series have.

    Figures that try the best two rates to the end had one of them chosen by short runs before.
    """
    asked = RunOptions(SCALE)
    by_short = figure.choose in ("short runs", "best two")
    short = {(each.series, _of_paper(each.cell)) for each in short_cells(figure, asked)} if by_short else set()
    whole = declared(figure, asked)
    alike = {(entry.series, _trained_on(entry.cell)) for entry in entries}
    return [
        entry
        for entry in former.entries
        if (entry.series, _of_paper(entry.cell)) in short
        or (whole(entry.series, entry.cell) and (entry.series, _trained_on(entry.cell)) in alike)
    ]


def _trained_on(cell: Cell) -> tuple[str, ...]:
    return (cell.data, cell.network) if isinstance(cell, Training) else ()


def _of_paper(cell: Cell) -> Cell:
    return cell.of_paper if isinstance(cell, Training) else cell


def store_once(records: Mapping[str, Record], results: Path) -> None:
    """An entry that several records hold stays in the first of them: the others are written anew, and name it."""
    held: dict[str, dict[str, str]] = {}
    for id in recorded_ids(results):
        path, record = results / f"{id}.json", records[id]
        if held.keys() & lines_of(record_content(path)).keys() or not _says(path, record):
            plan = [*((entry.series, entry.cell) for entry in record.entries), *record.missing]
            write_record(path, record.entries, figure_of(id), record.scale, plan=plan, keep="all", elsewhere=held)
            if not _says(path, record):
                raise SystemExit(f"The record of `{id}` does not say any more what it said.")
        held = {**lines_of(record_content(path)), **held}


def _says(path: Path, record: Record) -> bool:
    """Whether a file still says what was read of it; not where a record that it names was packed anew."""
    try:
        return read_record(path) == record
    except StoreError:
        return False


def redraw(figure: Figure, results: Path) -> Evidence:
    """Draw a figure anew from its record."""
    kept = recorded_evidence(figure, results / f"{figure.id}.json")
    save_small(kept, results / f"{figure.id}.png")
    return kept


def recorded_ids(results: Path) -> list[str]:
    """The figures that have a record."""
    return [figure.id for figure in all_figures() if (results / f"{figure.id}.json").is_file()]


def plan_of(figure: Figure, store: Store) -> list[tuple[str, Cell]]:
    """The cells of the whole figure: those that runs asked for, and those of series that no run asked for yet."""
    manifest = store.manifest(figure.id, SCALE)
    entries = list(manifest.entries) if manifest else []
    asked = {series for series, _ in entries}
    rest = [each for each in cells_to_run(figure, RunOptions(scale=SCALE)) if each.series not in asked]
    return [*entries, *((each.series, each.cell) for each in rest)]


def differences(stored: Evidence, kept: Evidence) -> str:
    """What a record says otherwise than the store it was packed from; nothing where they agree."""
    for name, found in stored.series.items():
        if found.rate != kept.series[name].rate:
            return f"the rate of `{name}` is {found.rate} and then {kept.series[name].rate}"
    for before, after in zip(judge(stored), judge(kept), strict=True):
        if before.verdict != after.verdict or words_of(before) != words_of(after):
            return f"`{before.claim.text}` was {before.verdict} and is then {after.verdict}"
    return ""


def words_of(verdict: Verdict) -> list[tuple[str, int, str, str]]:
    """What a verdict says part by part, without the digits that a record rounds."""
    return [(part.name, part.n, part.verdict, part.found) for part in verdict.parts]


def save_small(evidence: Evidence, path: Path) -> Path:
    """Draw a figure as a PNG with a palette, a third of the size of one in full color."""
    verdicts = judge(evidence)
    drawn = save_drawn(evidence, path, verdicts=verdicts, dpi=DPI)
    with Image.open(drawn) as image:
        small = image.convert("RGB").quantize(COLORS, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    told = PngInfo()
    told.add_text(FINGERPRINT, fingerprint(evidence, verdicts))
    small.save(drawn, optimize=True, pnginfo=told)
    return drawn


def bytes_of(results: Path, id: str) -> int:
    """The record of one figure with its picture."""
    files = [results / f"{id}{ending}" for ending in (".json", ".png")]
    return sum(path.stat().st_size for path in files if path.is_file())


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("store", type=Path, nargs="?", help="where runs are kept")
    parser.add_argument(
        "--redraw", action="store_true", help="draw the pictures anew from the record, and pack nothing"
    )
    parser.add_argument("--keep", action="store_true", help="leave recorded what the store has not")
    parser.add_argument("--results", type=Path, default=REPO / "results", help="where the record goes")
    parser.add_argument("--only", nargs="+", metavar="ID", help="these figures alone")
    asked = parser.parse_args(given)
    if (asked.store is None) != asked.redraw:
        parser.error("name a store to pack, or say --redraw")
    return asked


if __name__ == "__main__":
    main()
