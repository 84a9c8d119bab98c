"""`equisep compare`: the difference of two saved profiles, with intervals; or many, with bands over seeds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from equisep.cli.console import out, print_json, reported, say
from equisep.cli.options import Json, Quiet
from equisep.compare import compare_many, compare_profiles
from equisep.errors import InputError
from equisep.files import encode
from equisep.results import Profile, load_profile


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
    if len(files) < 2:
        raise InputError(f"`equisep compare` needs two profiles or more; found {len(files)}. Name another file.")
    parts = [_named(text) for text in files]
    profiles = [load_profile(path) for _, path in parts]
    grouped = any(name for name, _ in parts)
    many = None
    if draw is not None or grouped or len(profiles) > 2:
        names = [str(path) for _, path in parts]
        many = compare_many(_groups(parts, profiles) if grouped else profiles, names=_in_groups(parts, names, grouped))
    if len(profiles) == 2 and not grouped:
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
