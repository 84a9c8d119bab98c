"""`equisep law`: the laws of a saved profile."""

from __future__ import annotations

from equisep.cli.console import out, print_json, reported
from equisep.cli.options import Json, ProfileFile
from equisep.report.terminal import render_law
from equisep.results import load_profile
from equisep.results.codec import encode


@reported
def law(profile: ProfileFile, json: Json = False) -> None:
    """Print the law of equi-separation of a saved profile, on training data, test data and class by class."""
    content = load_profile(profile)
    if json:
        print_json(
            {"law": encode(content.law), "laws": encode(content.laws), "effective_depth": content.effective_depth}
        )
        return
    out.print(f"{content.model}, training data, `{content.settings.get('mode', '?')}` mode", markup=False)
    out.print(render_law(content.law))
    for name, other in content.laws.items():
        rho = "—" if other.rho is None else f"{other.rho:.3f}"
        r = "—" if other.r is None else f"{other.r:.4f}"
        out.print(f"{name:>10}  ρ {rho}  r {r}  {other.verdict}", markup=False, highlight=False)
