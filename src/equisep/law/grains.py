"""Which grain of a network follows the law better: its layers or its blocks, judged on the same sites."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from equisep.law.curve import line_through, positive_logs, rounding_of
from equisep.results import GrainChoice, LawFit, Note

LEAST_SITES = 3  # two lie on a line whatever they are
LINE = 3  # intercept, slope, σ
CLEAR = 6.0  # in BIC; strong evidence (Kass & Raftery 1995)


def grain_bic(curve: Sequence[float | None], chosen: Sequence[int]) -> float | None:
    """BIC of `the chosen sites lie on a straight line of ln D, every other site where it likes`.

    Two grains read different sites, whose fits do not compare. On the sites of both together they do: a grain explains
    its own sites by one line and spends a number on every other one. With N sites, L of them chosen, and RSS of the line
    through these, BIC = N ln(RSS/N) + (3 + N − L) ln N (Schwarz 1978); RSS is not taken below the rounding of ln D.
    None where D is missing or 0 at a site, or fewer than three are chosen.
    """
    if len(chosen) < LEAST_SITES or any(not value for value in curve):
        return None
    logs = positive_logs(curve, asked="grain_bic", least=LEAST_SITES)
    mine = logs[list(chosen)]
    intercept, slope = line_through(mine)
    residuals = [float(mine[place] - intercept - slope * place) for place in range(len(mine))]
    n = len(logs)
    rss = max(math.fsum(value * value for value in residuals), n * rounding_of(logs) ** 2)
    return n * math.log(rss / n) + (LINE + n - len(mine)) * math.log(n)


def choose_grain(
    laws: Mapping[str, LawFit], bics: Mapping[str, float | None], sites: Mapping[str, tuple[str, ...]]
) -> tuple[GrainChoice, Note]:
    """The grain of least BIC; where there is none, of the most negative r; of equals the first."""
    known = {grain: value for grain, value in bics.items() if value is not None}
    whole = len(known) == len(laws)
    chosen = min(laws, key=lambda grain: known[grain] if whole else _r(laws[grain]))
    other = next(grain for grain in laws if grain != chosen)
    gain = known[other] - known[chosen] if whole else None
    choice = GrainChoice(chosen=chosen, gain=gain, bic=known, sites=dict(sites))
    return choice, Note("grain", _words(choice, other, laws))


def _r(law: LawFit) -> float:
    return 1.0 if law.r is None else law.r


def _words(choice: GrainChoice, other: str, laws: Mapping[str, LawFit]) -> str:
    def fit(grain: str) -> str:
        r = laws[grain].r
        return f"{len(choice.sites[grain])} sites, r {'unknown' if r is None else format(r, '.4f')}"

    text = f"Both grains were measured, {choice.chosen} ({fit(choice.chosen)}) and {other} ({fit(other)})"
    if choice.gain is None:
        return f"{text}; there is no BIC to tell them apart, so `law` is that of the {choice.chosen} by r."
    clear = "clearly" if choice.gain > CLEAR else "hardly"
    return (
        f"{text}: the {choice.chosen} follow the law {clear} better, by {choice.gain:.1f} in BIC, and `law` is theirs."
    )
