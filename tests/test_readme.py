"""What README.md claims: its links lead somewhere, and every number it states stands in the record that it links."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

REPO = Path(__file__).parents[1]
TEXT = (REPO / "README.md").read_text(encoding="utf-8")
PROSE = " ".join(TEXT.split())


def record(path: str) -> dict[str, Any]:
    assert f"({path})" in TEXT, "the record is linked"
    content: dict[str, Any] = json.loads((REPO / path).read_text(encoding="utf-8"))
    return content


def test_links_and_pictures_are_there() -> None:
    targets = re.findall(r"\]\(([^)#]+)", TEXT) + re.findall(r'src="([^"]+)"', TEXT)
    assert len(targets) > 20
    missing = [target for target in targets if not target.startswith("http") and not (REPO / target).exists()]
    assert missing == []


def test_how_often_sentences_were_right() -> None:
    draws = record("simulations/results/situations.json")["tables"]["draws"]
    right, said = sum(row["right"] for row in draws), sum(row["sentences"] for row in draws)
    false = sum(len(row["false"]) for row in draws)
    assert f"of {len(draws)} drawn after the rules were set, the first sentence was right for {right}" in PROSE
    assert f"of {said:,} sentences {false} were false" in PROSE


def test_how_far_float32_is_off_and_how_fast_d_is() -> None:
    rows = record("benchmarks/results/fuzziness-cpu-x86_64-torch2.13.0.json")["sizes"]
    factors = [row["three_decades_off_by_factor_pinv32"] for row in rows]
    assert f"off by a factor of {min(factors):.0f} to {max(factors):,.0f}" in PROSE
    assert f"off by {max(row['three_decades_error_equisep'] for row in rows):.0e}".replace("e-0", "e-") in PROSE
    wide = next(row for row in rows if row["d"] == 3072)
    assert f"with 3,072 features {wide['ratio_pinv32']:.0f} times faster" in PROSE


def test_every_solution_of_the_record_has_a_gap() -> None:
    sweep = record("benchmarks/results/peeled-cpu-x86_64-torch2.13.0.json")["sweep"]["solvers"]
    assert sweep["reduced"]["greatest_relative_gap"] < 1e-9
