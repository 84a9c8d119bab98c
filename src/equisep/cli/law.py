"""`equisep law`: the laws of a saved profile."""

from __future__ import annotations

from equisep.cli.console import out, print_json, reported
from equisep.cli.options import Json, ProfileFile, Quiet
from equisep.files import encode
from equisep.report.formatting import passed_words
from equisep.report.terminal import render_law, render_laws
from equisep.results import load_profile


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
