"""`equisep figures run`: run figures of the papers, here or on a cluster, and judge their claims."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from equisep.cli.console import out, print_json, progress_bars, reported, say, say_saved
from equisep.cli.figures.common import (
    STORE,
    FigureFile,
    FigureResult,
    Scale,
    Strict,
    draw_target,
    judged,
    known_figures,
    print_result,
    say_notes,
)
from equisep.cli.options import DataFolder, Device, Json, Quiet
from equisep.errors import EquisepError, InputError

if TYPE_CHECKING:
    from equisep.figures.figure import Figure
    from equisep.progress import Progress
    from equisep.report.figures.list import CostRow


@reported
def run(
    ids: Annotated[list[str] | None, typer.Argument(metavar="ID…", help="Figures, as he2023/fig1 he2023/fig2.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every figure of the catalogue, in its order.")] = False,
    scale: Scale = "paper",
    seeds: Annotated[
        int | None, typer.Option("--seeds", min=1, help="How many; if absent, each figure's own number.")
    ] = None,
    store: Annotated[
        Path, typer.Option("--store", metavar="DIR", help="Where runs are kept; what is there is not run again.")
    ] = STORE,
    device: Device = None,
    on: Annotated[
        str, typer.Option("--on", help="local, ray (a cluster on this machine), or ray://ADDRESS.")
    ] = "local",
    data: Annotated[
        list[str] | None,
        typer.Option(
            "--data", metavar="NAME=OTHER", help="Let another data set stand in: cifar10=mine.npz. May be repeated."
        ),
    ] = None,
    data_dir: DataFolder = None,
    network: Annotated[
        list[str] | None,
        typer.Option(
            "--network",
            metavar="NAME=OTHER",
            help="Let another network stand in: a name, or any MODEL. May be repeated.",
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="FIELD=VALUE", help="Set a field of every cell, as dtype=float64. May be repeated."
        ),
    ] = None,
    file: FigureFile = None,
    plan: Annotated[
        bool, typer.Option("--plan", help="Say what would be run and what it costs, and run nothing.")
    ] = False,
    draw: Annotated[
        Path | None,
        typer.Option(
            "--draw", metavar="PATH", help="Draw into this file (PNG, SVG or PDF), or each figure into this folder."
        ),
    ] = None,
    json: Json = False,
    strict: Strict = False,
    quiet: Quiet = False,
) -> None:
    """Run what is missing of figures, and show every claim with its verdict; the same command goes on where it stopped."""
    from equisep.cli.figures.settings import cell_changes, check_runner_address, check_stand_ins
    from equisep.runs.plan import check_scale, parse_stand_ins
    from equisep.runs.store import Store

    known = known_figures(file, quiet=quiet) if everything or ids else ()
    figures = _figures(ids or [], known, everything=everything)
    check_scale(scale)
    stand_ins = parse_stand_ins(data or [])
    other_networks = parse_stand_ins(network or [])
    check_stand_ins(stand_ins, other_networks, known)
    asked: dict[str, Any] = {
        "scale": scale, "seeds": seeds, "data": stand_ins, "networks": other_networks,
        "changes": cell_changes(settings or []),
    }  # fmt: skip
    runs_on = check_runner_address(on)
    if runs_on == "local":
        from equisep.devices import usable_device  # torch, which a cluster of workers has for itself

        usable_device(device, asked="--device")
    if plan:
        _show_plans(figures, asked, store=store, device=device, data_dir=data_dir, json=json)
        return
    target = draw_target(draw, figures)
    held = Store.open(store)
    where = {"store": held, "device": device, "on": runs_on, "data_dir": None if data_dir is None else str(data_dir)}
    try:
        with progress_bars(quiet=quiet) as progress:
            results, failed = _run_all(
                figures, {**asked, **where}, draw=target, quiet=quiet, show=not json, progress=progress
            )
    finally:
        say_notes(held, quiet=quiet)
    if json:
        content = [each.json() for each in results]
        print_json(content[0] if len(figures) == 1 and content else content)
    if failed:
        raise InputError(f"{len(failed)} of {len(figures)} figures were not run: {', '.join(failed)}. See above.")
    if strict and any(each.failed for each in results):
        raise typer.Exit(1)


def _figures(ids: Sequence[str], known: Sequence[Figure], *, everything: bool) -> list[Figure]:
    from equisep.figures.catalogue import find_figure

    if everything and ids:
        raise InputError(f"`--all` runs every figure, and `{ids[0]}` is named beside it. Give one or the other.")
    if not everything and not ids:
        raise InputError("No figure was named. Name one or more, or say `--all`; `equisep figures list` has all ids.")
    return list(known) if everything else [find_figure(id, known) for id in dict.fromkeys(ids)]


def _run_all(
    figures: Sequence[Figure],
    settings: Mapping[str, Any],
    *,
    draw: Callable[[Figure], Path] | None,
    quiet: bool,
    show: bool,
    progress: Progress,
) -> tuple[list[FigureResult], list[str]]:
    """Every figure in turn; among several, one that cannot be run does not keep the others from it."""
    from equisep.runs.run import run_figure

    results, failed = [], []
    for figure in figures:
        if len(figures) > 1:
            say(f"{figure.id}: {figure.title}", quiet=quiet)
        try:
            made = judged(run_figure(figure, **settings, progress=progress))
        except EquisepError as error:
            if len(figures) == 1:
                raise
            say(f"{figure.id}: {error}")
            failed.append(figure.id)
            continue
        results.append(made)
        if draw is not None:
            from equisep.report.figures.drawing.draw import save_drawn

            say_saved(save_drawn(made.evidence, draw(figure)), figure.id, quiet=quiet)
        if show:
            print_result(made)
    return results, failed


def _show_plans(
    figures: Sequence[Figure],
    asked: Mapping[str, Any],
    *,
    store: Path,
    device: str | None,
    data_dir: Path | None,
    json: bool,
) -> None:
    """What would be run, with its cost."""
    from equisep.report.figures.list import render_plans

    rows = [_plan(figure, asked, store=store, device=device, data_dir=data_dir) for figure in figures]
    if json:
        content = [asdict(row) for row in rows]
        print_json(content[0] if len(content) == 1 else content)
    else:
        out.print(render_plans(rows))


def _plan(
    figure: Figure, asked: Mapping[str, Any], *, store: Path, device: str | None, data_dir: Path | None
) -> CostRow:
    from equisep.report.figures.list import CostRow
    from equisep.runs.cost import predict_cells
    from equisep.runs.plan import RunOptions, cells_to_run, check_changes, groups_of
    from equisep.runs.run import check_data, substitutes
    from equisep.runs.store import Store

    check_changes(figure, asked["changes"])
    folder = None if data_dir is None else str(data_dir)
    whole = RunOptions(**asked, substitute=substitutes(folder))
    cells = [plan.cell for plan in cells_to_run(figure, whole)]
    check_data(cells, folder, stand_ins_alone=True)
    done = Store.open(store, create=False).done([cell.key for cell in cells]) if store.exists() else set()
    left = [cell for group in groups_of(cells) if any(cell.key not in done for cell in group) for cell in group]
    cost = predict_cells(left, device=device)
    return CostRow(
        id=figure.id,
        scale=asked["scale"],
        cells=len({cell.key for cell in cells}),
        stored=len(done),
        cells_to_run=cost.cells,
        groups=cost.groups,
        seconds=cost.seconds,
        bytes=cost.bytes,
        device=cost.device,
    )
