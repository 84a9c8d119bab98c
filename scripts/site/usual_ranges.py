"""Measure what is usual, and write it into docs/reading-a-result.md: `python scripts/site/usual_ranges.py` (some minutes).

He & Su's feed-forward networks of 4, 8 and 20 layers on the embedded pictures: 100 per class, 600 epochs of Adam at the rates of
docs/readings.md, three seeds each, read in `eval`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

import equisep
from equisep import Profile
from equisep.data import load_data, prepare_split
from equisep.results.records import work_shares
from equisep.training import Member, Recipe, Shape, train_ensemble

PAGE = Path(__file__).parents[2] / "docs" / "reading-a-result.md"
RATES = {4: 3e-3, 8: 3e-3, 20: 1e-3}  # by depth: those at which each has its line in `eval`
SEEDS = range(3)
EPOCHS = 600

Values = Callable[[Profile], Sequence[float | None]]
ROWS: dict[str, Values] = {
    "training accuracy, %": lambda p: [100 * (p.accuracy_train or 0)],
    "test accuracy, %": lambda p: [100 * (p.accuracy_test or 0)],
    "D of the input": lambda p: [p.sites[0].fuzziness],
    "D of the last layer": lambda p: [p.sites[-1].fuzziness],
    "D of the last layer, test": lambda p: [p.sites[-1].fuzziness_test],
    "chance level / D, least of all layers": lambda p: [min((s.null or 0) / (s.fuzziness or 1) for s in p.sites)],
    "largest / smallest D of a class, last layer": lambda p: [_spread(p.sites[-1].class_fuzziness or ())],
    "work of one layer, %": lambda p: [100 * share for share in work_shares(p.law) or () if share is not None],
    "ρ": lambda p: [p.law.rho],
    "ρ, half the width of its interval, %": lambda p: [_width(p)],
    "half-life, layers": lambda p: [p.law.half_life],
    "r": lambda p: [p.law.r],
    "greatest residual, in ln D": lambda p: [p.law.max_residual],
    "evenness": lambda p: [p.law.imbalance],
    "nearest class mean, last layer, train, %": lambda p: [100 * (p.sites[-1].ncc_train or 0)],
    "nearest class mean, last layer, test, %": lambda p: [100 * (p.sites[-1].ncc_test or 0)],
    "effective depth": lambda p: [p.effective_depth],
    "as good as the network": lambda p: [p.network_depth],
    "CDNV, last layer": lambda p: [p.sites[-1].cdnv],
    "NC1, last layer": lambda p: [p.sites[-1].nc1],
    "NC2, distance from a simplex": lambda p: [p.sites[-1].etf_distance],
    "NC3": lambda p: [p.classifier.nc3 if p.classifier else None],
    "NC4, %": lambda p: [100 * p.classifier.nc4 if p.classifier and p.classifier.nc4 is not None else None],
    "smallest margin of a class": lambda p: sorted(value for value in _margins(p) if value is not None)[:1],
}


def profiles(depth: int) -> list[Profile]:
    """Three networks of one depth, trained and measured."""
    data = load_data("embedded-10x10")
    x, y = prepare_split(data, "he2023-10x10")
    test = prepare_split(data, "he2023-10x10", split="test")
    recipes = [Recipe(optimizer="adam", rate=RATES[depth], epochs=EPOCHS, seed=seed) for seed in SEEDS]
    members = [Member(recipe, Shape.deep(depth), data_seed=recipe.seed) for recipe in recipes]
    ensemble = train_ensemble(members, x, y, per_class=100)
    found = []
    for seed in SEEDS:
        drawn = prepare_split(data, "he2023-10x10", per_class=100, seed=seed)
        found.append(equisep.measure(ensemble.network(seed), drawn, test))
    return found


def table(measured: dict[int, list[Profile]]) -> str:
    """Least and greatest of every number over the seeds, a column for each depth."""
    heads = [f"{depth} layers" for depth in measured]
    lines = [f"| number | {' | '.join(heads)} |", f"| :-- |{' --: |' * len(heads)}"]
    for name, values in ROWS.items():
        cells = [_range([value for profile in group for value in values(profile)]) for group in measured.values()]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    kinks = [sum(_has_kink(profile) for profile in group) for group in measured.values()]
    lines.append(f"| networks with a kink | {' | '.join(f'{count} of {len(SEEDS)}' for count in kinks)} |")
    return "\n".join(lines)


def _margins(profile: Profile) -> Sequence[float | None]:
    return (profile.classifier.margins if profile.classifier else None) or ()


def _has_kink(profile: Profile) -> bool:
    kink = profile.law.two_slopes
    return kink is not None and kink.p is not None and kink.p <= 0.05


def _range(values: Sequence[float | None]) -> str:
    there = [value for value in values if value is not None]
    if not there:
        return "none"
    low, high = _digits(min(there)), _digits(max(there))
    return low if low == high else f"{low} to {high}"


def _digits(value: float) -> str:
    """Three digits, four just below 1: r and shares lie there."""
    return f"{value:.4g}" if 0.9 < abs(value) < 1 else f"{value:.3g}"


def _spread(values: Sequence[float | None]) -> float | None:
    there = [value for value in values if value]
    return max(there) / min(there) if there else None


def _width(profile: Profile) -> float | None:
    interval = profile.law.intervals.get("rho")
    return (
        None if interval is None or profile.law.rho is None else 50 * (interval.high - interval.low) / profile.law.rho
    )


def main() -> None:
    """Train, measure, and put the table into the page."""
    torch.set_num_threads(1)
    made = table({depth: profiles(depth) for depth in RATES})
    text = PAGE.read_text(encoding="utf-8")
    block = re.compile(
        r"(<!-- usual, by scripts/site/usual_ranges.py -->\n\n).*?(\n\n<!-- end of usual -->)", re.DOTALL
    )
    assert block.search(text), "the page has no place for the table"
    PAGE.write_text(block.sub(lambda found: found[1] + made + found[2], text), encoding="utf-8")


if __name__ == "__main__":
    main()
