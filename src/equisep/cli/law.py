"""`equisep law`: the laws of a saved profile."""

from __future__ import annotations

from equisep.cli.console import out, print_json, reported
from equisep.cli.options import Json, ProfileFile, Quiet
from equisep.files import encode
from equisep.report.formatting import correlation, number, passed_words
from equisep.report.terminal import render_law
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
    out.print(f"{content.model}, training data, reading `{content.reading or '?'}`", markup=False)
    out.print(render_law(content.law, passed=passed_words(content)))
    symbol = "ρ" if out.encoding.startswith("utf") else "rho"
    for name, other in content.laws.items():
        line = f"{name:>10}  {symbol} {number(other.rho, 3, missing='-')}  r {correlation(other.r, missing='-')}  {other.verdict}"
        out.print(line, markup=False, highlight=False)
