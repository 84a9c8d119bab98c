"""Cells of text encoders: token sets by seed, fine-tuning by seed, readings of the first token and of the mean."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from equisep.errors import MissingExtraError
from equisep.figures.catalogue import figure_of
from equisep.figures.cell import Cell
from equisep.figures.quantities import quantity
from equisep.runs.plan import RunOptions, planned_cells
from equisep.runs.run import run_group
from equisep.runs.runners.encoders import CLASSES, LENGTH, VOCABULARY, _model, _precision_note, _seeded_rows

FIGURE = figure_of("he2023/figS9")


def cell(**changes: Any) -> Cell:
    """The figure's cell at smoke scale, smaller still."""
    made = planned_cells(FIGURE, RunOptions("smoke", 1))[0].cell
    return made.with_(**{"per_class": 8, "test_per_class": 6, "epochs": 1, "batch_size": 8, **changes})


def test_the_figure_runs_on_seeded_tokens_at_smoke_scale() -> None:
    made = cell()
    assert (made.network, made.data, made.stands_for) == ("bert", "seeded-tokens", "sst2")
    *others, bert = (
        each.cell for each in planned_cells(FIGURE, RunOptions("paper", 1))
    )  # what may not be had is the last
    assert bert.network == "hf:google-bert/bert-base-cased" == others[0].network_for == others[1].network_for


def test_tokens_depend_on_the_seed_alone() -> None:
    tokens, labels = _seeded_rows(50, seed=3)
    again, _ = _seeded_rows(50, seed=3)
    other, _ = _seeded_rows(50, seed=4)
    assert torch.equal(tokens, again) and not torch.equal(tokens, other)
    more, _ = _seeded_rows(60, seed=3)
    assert torch.equal(more[: len(tokens)], tokens)  # a larger set extends a smaller one
    assert tokens.shape == (50 * CLASSES, LENGTH) and torch.bincount(labels).tolist() == [50, 50]
    assert int(tokens.min()) == 1 and int(tokens.max()) < VOCABULARY


def test_each_class_prefers_its_half_of_the_vocabulary_three_times_in_four() -> None:
    tokens, labels = _seeded_rows(500, seed=0)
    assert set(tokens[:, 0].tolist()) == {1}  # the first token is the same in every sentence
    upper = (tokens[:, 1:] >= 2 + (VOCABULARY - 2) // 2).double()
    for label, share in ((0, 0.25), (1, 0.75)):
        found = float(upper[labels == label].mean())
        assert abs(found - share) < 4 * math.sqrt(share * (1 - share) / (500 * (LENGTH - 1)))


def test_an_encoder_has_the_weights_of_its_seed_and_leaves_the_generator_alone() -> None:
    pytest.importorskip("transformers", exc_type=ImportError)
    before = torch.get_rng_state()
    one, two, other = (dict(_model(cell(seed=seed)).named_parameters()) for seed in (1, 1, 2))
    assert torch.equal(torch.get_rng_state(), before)
    assert all(torch.equal(one[name], two[name]) for name in one)
    assert not all(torch.equal(one[name], other[name]) for name in one)
    assert sum(name.endswith("attention.self.query.weight") for name in one) == 12  # BERT-base's wiring, narrow


def test_a_cell_is_read_at_the_first_token_and_at_the_mean() -> None:
    pytest.importorskip("transformers", exc_type=ImportError)
    before = torch.get_rng_state()
    ((_, outcome, made),) = run_group([cell()])
    assert torch.equal(torch.get_rng_state(), before)
    assert [(curves.epoch, curves.reading, curves.reduction) for curves in outcome.readings] == [
        (1, "eval", "first"), (1, "eval", "mean"),
    ]  # fmt: skip
    first, mean = outcome.readings
    # the embedding of the first token holds no classes, so that only the twelve layers are read there
    assert len(first.sites) == 12 and len(mean.sites) == 13
    assert all(value is not None and value > 0 for value in (*first.fuzziness, *mean.fuzziness))
    assert quantity(outcome, "r@reduction=mean") is not None and quantity(outcome, "r@reduction=first") is not None
    loss = outcome.numbers["final_loss"]
    assert loss is not None and loss == pytest.approx(math.log(2), rel=0.5)
    assert made["engine"] == "single" and made["data"] == "seeded-tokens"
    ((_, again, _),) = run_group([cell()])
    ((_, other, _),) = run_group([cell(seed=1)])
    assert again == outcome and other != outcome


def test_weights_of_fewer_digits_are_told() -> None:
    pytest.importorskip("transformers", exc_type=ImportError)
    made = cell()
    assert _precision_note(_model(made), made) == ()
    half = _model(made).half()
    assert _precision_note(half, made) == (
        "The weights of `bert` were read in float16, and trained and measured in float32.",
    )


def test_without_transformers(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(MissingExtraError, match=r"The encoder `bert` needs the package `transformers`"):
        run_group([cell()])
