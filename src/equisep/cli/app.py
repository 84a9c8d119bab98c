"""The command `equisep`: one file a command, joined here."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Annotated

import typer

from equisep._version import __version__
from equisep.cli import compare, demo, figures, law, measure, peeled, sites

app = typer.Typer(
    name="equisep",
    help="See how a neural network separates its classes, layer by layer.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"equisep {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    """See how a neural network separates its classes, layer by layer."""


app.command("demo")(demo.demo)
app.command("measure")(measure.measure)
app.command("sites")(sites.sites)
app.command("law")(law.law)
app.command("compare")(compare.compare)
app.add_typer(peeled.group)
app.add_typer(figures.group)


def main() -> None:
    """The entry point that the package installs."""
    sys.path.insert(0, str(Path.cwd()))  # a model of the user's lies there, and may import as late as in its forward
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without ρ shows ?, and no traceback
    app()
