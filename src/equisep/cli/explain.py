"""`equisep explain`: what a saved profile means, in words."""

from __future__ import annotations

from typing import Annotated

import typer

from equisep.cli.console import out, print_json, reported
from equisep.cli.options import OUTPUT, Json, ProfileFile, Quiet
from equisep.files import plain
from equisep.report.terminal import render_findings
from equisep.results import load_profile


@reported
def explain(
    profile: ProfileFile,
    everything: Annotated[
        bool, typer.Option("--all", help="Also every number: layers, law, classifier, notes.", rich_help_panel=OUTPUT)
    ] = False,
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
