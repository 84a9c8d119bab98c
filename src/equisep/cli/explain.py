"""`equisep explain`: what a saved profile means, in words."""

from __future__ import annotations

from equisep.cli.console import out, print_json, reported
from equisep.cli.options import Json, ProfileFile, Quiet
from equisep.files import plain
from equisep.report.findings import render_findings
from equisep.results import load_profile


@reported
def explain(profile: ProfileFile, json: Json = False, quiet: Quiet = False) -> None:
    """Say in at most seven sentences what a saved profile means, the one that changes a decision first.

    Each sentence has its numbers and, below it, what to do next. It is sure unless it says `likely` or `cannot be said`.
    """
    content = load_profile(profile)
    if json:
        print_json({"model": content.model, "findings": plain(content.findings)})
        return
    out.print(render_findings(content.findings))
