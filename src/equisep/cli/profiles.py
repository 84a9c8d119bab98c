"""Commands that read what was saved, profiles and histories: `equisep explain`, `law`, `compare`, `report`, `history`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from equisep.cli.console import out, print_json, reported, say, usable_file
from equisep.cli.options import OUTPUT, Json, ProfileFile, Quiet, option
from equisep.errors import InputError
from equisep.files import encode, plain
from equisep.report.formatting import passed_words, size
from equisep.report.terminal import render_findings, render_law, render_laws
from equisep.results import Profile, load_profile

if TYPE_CHECKING:
    from equisep.tracking.history import Entry, History


@reported
def explain(
    profile: ProfileFile,
    everything: Annotated[bool, option("--all", OUTPUT, "Also every number: layers, law, classifier, notes.")] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Say in at most seven sentences what a saved profile means, the one that changes a decision first.

    Each sentence has its numbers and, below it, what to do next. It is sure unless it says `likely` or `cannot be said`.
    """
    content = load_profile(profile)
    if json:
        whole = {"profile": content.to_dict()} if everything else {}
        print_json({"model": content.model, "whole": content.whole, "findings": plain(content.findings), **whole})
        return
    out.print(render_findings(content.findings))
    if everything:
        out.print("", content, sep="\n")


@reported
def law(profile: ProfileFile, json: Json = False, quiet: Quiet = False) -> None:
    """Print the law of equi-separation of a saved profile, on training data, test data and class by class."""
    content = load_profile(profile)
    if json:
        print_json(
            {
                "law": {**encode(content.law), "verdict": content.law.verdict},
                "laws": encode(content.laws),
                "effective_depth": content.effective_depth,
            }
        )
        return
    heading = f"{content.model}, training data, reading `{content.reading or '?'}`"
    out.print(heading, markup=False, highlight=False)
    first = content.sites[0].index if content.sites else 0
    out.print(render_law(content.law, passed=passed_words(content), first=first))
    if content.laws:
        out.print(render_laws(content))


@reported
def compare(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="A B …", help="Saved profiles, two or more; NAME=FILE puts a profile into the group NAME."
        ),
    ],
    draw: Annotated[
        Path | None, typer.Option("--draw", help="Draw D against depth into this file (.png, .svg, .pdf).")
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Print what differs from profile A to profile B: the law, the depth, and D layer by layer, with intervals.

    Of more than two profiles, a table of all; those of one network are taken as its seeds, and have a mean and a band.
    """
    from equisep.compare import compare_many

    if len(files) < 2:
        raise InputError(f"`equisep compare` needs two profiles or more; found {len(files)}. Name another file.")
    parts = [_named(text) for text in files]
    profiles = [load_profile(path) for _, path in parts]
    grouped = any(name for name, _ in parts)
    two = len(profiles) == 2 and not grouped
    many = None
    if draw is not None or not two:
        names = [str(path) for _, path in parts]
        if two:  # set against each other, they are no seeds of one network; the table calls them a and b
            parts = [(f"{letter}, {path.stem}", path) for letter, (_, path) in zip("ab", parts, strict=True)]
        apart = grouped or two
        many = compare_many(_groups(parts, profiles) if apart else profiles, names=_in_groups(parts, names, apart))
    if two:
        _two(profiles[0], profiles[1], [str(path) for _, path in parts], json=json)
    elif json:
        print_json(encode(many))
    else:
        from equisep.report.comparison import render_groups

        assert many is not None
        out.print(render_groups(many))
    if draw is not None and many is not None:
        from equisep.report.group_plots import plot_groups

        plot_groups(many, draw)
        if not quiet and not json:
            say(f"Drawn into {draw}.")


def _two(a: Profile, b: Profile, files: list[str], *, json: bool) -> None:
    from equisep.compare import compare_profiles

    difference = compare_profiles(a, b)
    if json:
        print_json(encode(difference))
        return
    from equisep.report.comparison import render_comparison

    beside = [f"{file}, reading `{profile.reading or '?'}`" for file, profile in zip(files, (a, b), strict=True)]
    out.print(render_comparison(difference, beside=(beside[0], beside[1])))


def _named(text: str) -> tuple[str, Path]:
    """`NAME=FILE` apart; a file whose own name has an equals sign is taken as it is."""
    name, equals, path = text.partition("=")
    return (name, Path(path)) if equals and path and not Path(text).exists() else ("", Path(text))


def _groups(parts: list[tuple[str, Path]], profiles: list[Profile]) -> dict[str, list[Profile]]:
    """By name; a profile without one stands alone, under the name of its file."""
    groups: dict[str, list[Profile]] = {}
    for (name, path), profile in zip(parts, profiles, strict=True):
        groups.setdefault(name or path.stem, []).append(profile)
    return groups


def _in_groups(parts: list[tuple[str, Path]], names: list[str], grouped: bool) -> list[str]:
    """The files in the order of their groups."""
    if not grouped:
        return names
    order = list(dict.fromkeys(name or path.stem for name, path in parts))
    return [
        file for group in order for (name, path), file in zip(parts, names, strict=True) if (name or path.stem) == group
    ]


@reported
def report(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PROFILE… | HISTORY | RUN",
            help="Saved profiles, several to compare them; or the history of a training; or a folder that holds them.",
        ),
    ],
    out_file: Annotated[
        Path | None, option("--out", OUTPUT, "The page.", default="beside the first file, its name with .html")
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write one HTML file that shows a profile, compares several, or follows a training: to open in any browser, or to send.

    The file holds everything it shows: no network is used, by whoever opens it.
    """
    from equisep.report.page import ENDINGS, page_of, page_target, write_page

    target = out_file if out_file is not None else page_target(paths)
    usable_file(target, flag="--out", endings=ENDINGS)
    page = page_of(paths)
    written = write_page(target, page)
    if json:
        print_json({"page": str(written), "bytes": len(page.encode())})
        return
    out.print(str(written), markup=False, highlight=False, soft_wrap=True)
    say(f"{size(len(page.encode()))}: open it in any browser, or send it.", quiet=quiet)


@reported
def history(
    path: Annotated[
        Path, typer.Argument(metavar="HISTORY", help="A history that `equisep.Tracker` wrote; it may still grow.")
    ],
    draw: Annotated[Path | None, typer.Option("--draw", help="Draw it into this file (.png, .svg, .pdf).")] = None,
    to: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="Write the profile of one reading, the last unless told."),
    ] = None,
    epoch: Annotated[
        int | None, typer.Option("--epoch", metavar="N", help="Which reading, by its epoch (or step); with --out.")
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Print the law over the epochs of a training, when it emerged, and whether the training has settled."""
    from equisep.report.history_tables import emergence_words, law_rows, render_history
    from equisep.tracking.history import History

    if epoch is not None and to is None:
        raise InputError(f"`--epoch {epoch}` says which profile to write: say where to, with `--out FILE`.")
    content = History.load(path)
    chosen = None if to is None else _chosen(content, epoch)
    if json:
        emergence = {
            what: {**encode(each), "words": emergence_words(content, each)}
            for what, each in content.emergence().items()
        }
        print_json(
            {
                "header": encode(content.header),
                "unit": content.unit,
                "findings": plain(content.findings),
                "readings": law_rows(content),
                "emergence": emergence,
                "settled": encode(content.settled()),
                "damaged_lines": content.damaged,
            }
        )
    else:
        out.print(render_history(content))
    if to is not None and chosen is not None and chosen.profile is not None:
        chosen.profile.save(to)
        if not quiet and not json:
            say(f"The profile of {chosen.unit} {chosen.number}: {to}.")
    if draw is not None:
        content.plot(draw)
        if not quiet and not json:
            say(f"Drawn into {draw}.")


def _chosen(history: History, number: int | None) -> Entry:
    """The reading of that number, or the last one; one that has a profile."""
    if number is not None:
        history.profile(number)  # which says what is wrong with it
        return history[number]
    if history.last_read is None:
        raise InputError(f"`{history.path}` holds no reading with a profile, so `--out` has none to write.")
    return history.last_read
