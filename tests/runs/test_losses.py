"""The losses of cells by rule, the fixed classifier, and our own experiment on rare classes at smoke scale."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from equisep.errors import InputError
from equisep.figures.catalogue import figure_of
from equisep.figures.cell import Training
from equisep.figures.figure import Claim, Series
from equisep.figures.judge import judge
from equisep.figures.papers.equisep2026 import HARD, IMBALANCES, METHODS, RARE
from equisep.peeled import Problem, floor_of
from equisep.runs import run_figure
from equisep.runs.plan import groups_of
from equisep.runs.run import run_group
from equisep.runs.runners import networks
from equisep.runs.runners.cells import LossTerms, loss_terms
from equisep.training.class_weights import effective_number, inverse_frequency, logit_adjustment
from equisep.training.initialization import simplex_etf

pytestmark = pytest.mark.usefixtures("shapes_are_checked_elsewhere")
SIZES = [500] * 5 + [5] * 5
SMALL = Training(
    data="embedded-10x10", sizes=(24, 24, 24, 24, 24, 3, 3, 3, 3, 3), per_class=None, test_per_class=5, depth=3, width=12,
    epochs=2, readings=("eval",), classifier=True, rare_classes=RARE,
)  # fmt: skip


def test_every_rule_makes_of_class_sizes_what_it_says() -> None:
    def terms(loss: str) -> LossTerms | None:
        return loss_terms(Training(loss=loss), SIZES)

    floor = floor_of(Problem.of_sizes(SIZES, feature_energy=5, weight_energy=1), half=True)
    assert loss_terms(Training(), SIZES) is None
    assert terms("plain") == LossTerms()
    assert terms("inverse") == LossTerms(inverse_frequency(SIZES))
    assert terms("effective=0.99") == LossTerms(effective_number(SIZES, 0.99))
    assert terms("adjusted=1") == LossTerms(added=logit_adjustment(SIZES))
    assert terms("collapse=5") == LossTerms(floor.factors(floor.collapse))
    assert terms("margin=5") == LossTerms(floor.factors(floor.margin))
    assert terms("half=5") == LossTerms(floor.factors(floor.half))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"loss": "invers"}, "No loss `invers`. Did you mean `inverse`"),
        ({"loss": "margin"}, "The loss `margin` needs a number"),
        ({"loss": "effective=much"}, "The loss `effective=much` needs a number"),
        ({"loss": "inverse", "class_weights": (1.0,) * 10}, "has `class_weights` and the loss `inverse`"),
    ],
)
def test_a_loss_that_is_none(changes: dict[str, object], words: str) -> None:
    with pytest.raises(InputError) as caught:
        loss_terms(Training(**changes), SIZES)
    assert words in str(caught.value)


def test_losses_of_rules_share_an_ensemble_and_leave_others_alone() -> None:
    cells = [SMALL.with_(loss=loss) for loss in ("plain", "inverse", "adjusted=1")]
    others = [SMALL, SMALL.with_(class_weights=(1.0,) * 5 + (2.0,) * 5), SMALL.with_(loss="plain", fixed_etf=True)]
    assert [len(group) for group in groups_of([*cells, *others])] == [3, 2, 1]


def test_a_network_alone_is_trained_by_the_same_rule() -> None:
    """`fnn` side by side and, where it must, alone: one rule, one training."""
    cells = [SMALL.with_(loss=loss, dtype="float64") for loss in ("margin=1", "adjusted=1")]
    side = [outcome for _, outcome, _ in run_group(cells)]
    alone, _ = networks.run_cells(cells)
    for one, other in zip(side, alone, strict=True):
        assert one.numbers["final_loss"] == pytest.approx(other.numbers["final_loss"], rel=1e-5)
        assert one.numbers["minority_cosine"] == pytest.approx(other.numbers["minority_cosine"], rel=1e-4)
    assert side[0].numbers["rarest_weight"] == pytest.approx(24 / 3 / 1.73542, rel=2e-3)


def test_a_fixed_classifier_is_the_simplex_it_began_as() -> None:
    outcome = run_group([SMALL.with_(loss="plain", fixed_etf=True, seed=4)])[0][1]
    assert outcome.numbers["minority_cosine"] == pytest.approx(-1 / 9, abs=1e-6)
    assert outcome.arrays["classifier_norms"] == pytest.approx([1.0] * 10, abs=1e-6)
    assert torch.allclose(simplex_etf(10, 12, seed=4).norm(dim=1), torch.ones(10, dtype=torch.float64))
    with pytest.raises(InputError, match="`fixed_etf` cannot be had"):
        run_group([SMALL.with_(fixed_etf=True, augment=True)])
    with pytest.raises(InputError, match="2 layers or more"):
        run_group([SMALL.with_(fixed_etf=True, depth=1)])


def test_the_floors_of_the_experiment_end_collapse_and_give_margins_at_once() -> None:
    """What the figure's note says, so that one series stands for both kinds of w*."""
    for imbalance in {imbalance for _, imbalance in HARD}:
        found = floor_of(Problem.of_sizes(IMBALANCES[imbalance][1], feature_energy=5, weight_energy=1))
        assert found.collapse is not None and found.margin is not None
        assert found.collapse.weight == pytest.approx(found.margin.weight, rel=2e-3)
    assert not floor_of(Problem.of_sizes(IMBALANCES["R10"][1], feature_energy=5, weight_energy=1)).lost


def test_the_experiment_runs_at_smoke_scale(tmp_path: Path) -> None:
    whole = figure_of("equisep2026/rare")
    assert len(whole.series) == 6 * len(METHODS) - 4
    part = tuple(replace(series, panel="") for series in whole.named("fm-R100-*"))
    figure = replace(whole, series=part, panels=(), claims=tuple(claim for claim in whole.claims if _of(claim, part)))
    evidence = run_figure(figure, store=tmp_path / "runs", scale="smoke", seeds=1)
    assert evidence.done == len(part) == len(METHODS)
    numbers = [entry.outcome.numbers for found in evidence.series.values() for entry in found.chosen.values()]
    for name in ("minority_accuracy_test", "balanced_accuracy_test", "minority_cosine", "minority_margin", "energy"):
        assert all(each[name] is not None for each in numbers)
    verdicts = judge(evidence)
    assert len(verdicts) == 10 and {verdict.verdict for verdict in verdicts} == {"not run"}


def _of(claim: Claim, part: tuple[Series, ...]) -> bool:
    return {series.name for series in part} >= set(claim.of)
