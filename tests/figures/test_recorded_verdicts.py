"""Verdicts on the committed record: what they may rest on, and what the three readings show."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from equisep.figures.catalogue import all_figures, figure_of
from equisep.figures.evidence import Evidence
from equisep.figures.judge import FEW, ClaimVerdicts, judge_readings
from equisep.figures.quantities import quantity
from equisep.figures.rules import series_of
from equisep.runs.record import recorded_evidence

RESULTS = Path(__file__).parents[2] / "results"
# our own experiments ask for no fit, and have ten seeds each
OF_PAPERS = [figure for figure in all_figures() if not figure.id.startswith("equisep2026/")]
IDS = [figure.id for figure in OF_PAPERS if (RESULTS / f"{figure.id}.json").is_file()]
pytestmark = pytest.mark.skipif(not IDS, reason="there is no record in this copy of the code")


@cache
def recorded(id: str) -> tuple[Evidence, tuple[ClaimVerdicts, ...]]:
    evidence = recorded_evidence(figure_of(id), RESULTS / f"{id}.json")
    return evidence, judge_readings(evidence)


@pytest.mark.parametrize("id", IDS)
def test_nothing_is_decided_by_networks_that_do_not_fit_or_by_few_seeds(id: str) -> None:
    evidence, judged = recorded(id)
    for verdict in (verdict for each in judged for verdict in each.verdicts):
        claim = verdict.claim
        if verdict.verdict not in ("held", "contradicted") or claim.exact:
            continue
        deciding = [part for part in verdict.parts if part.verdict == verdict.verdict]
        assert deciding and all(part.n >= FEW for part in deciding), claim.text
        assert not any(part.other_data or part.other_network for part in deciding), claim.text
        own = evidence.beside if verdict.beside else evidence
        if own is None or not claim.fit or evidence.figure.fit is None:
            continue
        fitting = {}  # counted here anew, from the accuracies themselves
        for name in series_of(evidence.figure, claim):
            found = own.series[name]
            networks = found.best if claim.rule == "as printed" else found.chosen
            shares = [quantity(entry.outcome, "accuracy") for entry in networks.values()]
            fitting[name] = sum(share is not None and round(share, 6) >= evidence.figure.fit for share in shares)
        for part in deciding:
            assert part.n <= fitting.get(part.name, max(fitting.values())), claim.text


def words(id: str, start: str) -> dict[str, str]:
    (each,) = (each for each in recorded(id)[1] if each.claim.text.startswith(start))
    return {reading: verdict.verdict for reading, verdict in each.by_reading.items()}


def test_three_claims_of_the_paper_are_properties_of_its_reading() -> None:
    """A higher final D at 20 layers, a longer half-life of unequal classes, and ρ as printed hold in `drawn` alone."""
    for optimizer in ("SGD)", "SGD with momentum)"):
        assert words("he2023/fig1", f"The 20-layer final D is higher than the 8-layer one ({optimizer}") == {
            "drawn": "held", "mixed": "contradicted", "eval": "contradicted",
        }  # fmt: skip
    assert words("he2023/fig1", "The 20-layer final D is higher than the 8-layer one (Adam)")["eval"] == "contradicted"
    for layers in (8, 20):
        assert words("he2023/fig3", f"Unequal classes have a longer half-life ({layers} layers, both") == {
            "drawn": "held", "mixed": "contradicted", "eval": "contradicted",
        }  # fmt: skip
    assert words("he2023/fig1", "Adam, 20 layers: ρ and half-life") == {
        "drawn": "held", "mixed": "contradicted", "eval": "contradicted",
    }  # fmt: skip


def test_readings_of_other_trainings_are_taken_only_where_they_cover_a_claim() -> None:
    evidence, judged = recorded("he2023/fig3")
    assert evidence.beside is not None
    assert set(evidence.beside.series["cifar-8"].chosen) == set(range(10))
    assert not evidence.beside.series["imbalanced-8"].entries  # one rate of five, which nobody chose
    assert not evidence.beside.series["sgd-0.1"].entries
    beside = {each.claim.text: each.main.beside for each in judged}
    assert beside["The law holds on CIFAR-10"] and not beside["The law holds for unequal classes"]
    fig1, _ = recorded("he2023/fig1")
    assert fig1.beside is not None and fig1.beside.series["sgd-20"].rate == fig1.figure.code_rates["sgd-20"]
    assert fig1.beside.series["adam-8"].rate == 1e-3
