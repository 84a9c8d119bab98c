"""`recommend_depth` on small data: what it trains on, what it compares, what it keeps, and what it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import equisep
from equisep.advice.depth import DepthSettings, Trial
from equisep.advice.depth.recommend import _shared
from equisep.advice.depth.sweep import train_depths
from equisep.errors import InputError

SMALL: dict[str, Any] = {"depths": (2, 3), "widths": (8,), "seeds": 3, "epochs": 6, "batch_size": 16}


def blobs(n: int, *, classes: int = 3, inputs: int = 6, seed: int = 0, apart: float = 4.0) -> tuple[Tensor, Tensor]:
    """Well separated normal classes, the same for every seed but for their samples."""
    centers = torch.randn(classes, inputs, generator=torch.Generator().manual_seed(99)) * apart
    chance = torch.Generator().manual_seed(seed)
    y = torch.arange(n) % classes
    return centers[y] + torch.randn(n, inputs, generator=chance), y


def test_an_easy_problem_needs_the_least_depth() -> None:
    heard: list[Trial] = []
    words: dict[str, Any] = {**SMALL, "epochs": 40, "rates": (3e-2,)}
    advice = equisep.recommend_depth(blobs(60), blobs(90, seed=1), finished=heard.append, **words)
    assert advice.depth == 2
    assert tuple(heard[0].accuracy_test) == advice.trials[0].accuracy_test
    assert [each.depth for each in heard] == [2, 3]
    assert advice.data["samples"] == 60 and advice.data["test_samples"] == 90
    assert not advice.data["drawn_anew"] and "the same for every seed" in advice.sentences[-1]


def test_accuracies_are_those_of_the_hits_and_seeds_pair_the_trials() -> None:
    settings = DepthSettings(**SMALL)
    shared = _shared(blobs(48, apart=1.0), blobs(50, seed=1, apart=1.0), settings)
    sweep = train_depths(shared, settings)
    for trial, hits in zip(sweep.trials, sweep.hits, strict=True):
        assert hits is not None and hits.shape == (3, 50)
        assert hits.mean(axis=1) == pytest.approx(trial.accuracy_test)
        assert len(set(trial.accuracy_test)) > 1 or len(set(trial.last)) > 1  # seeds differ
    again = train_depths(shared, settings)
    assert again.trials == sweep.trials


def test_every_seed_draws_its_own_samples_in_the_proportions_of_the_classes() -> None:
    x, _ = blobs(200)
    y = torch.tensor([0] * 150 + [1] * 40 + [2] * 10)
    settings = DepthSettings(**SMALL, samples=60)
    shared = _shared((x, y), blobs(30), settings)
    assert shared.sizes == (45, 12, 3)
    assert _shared((x, y), blobs(30), DepthSettings(**SMALL, samples=None)).sizes is None
    assert _shared((x, y), blobs(30), DepthSettings(**SMALL, per_class=9)).sizes == (9, 9, 9)


def test_without_test_data_a_part_of_every_class_is_held_out() -> None:
    shared = _shared(blobs(60), None, DepthSettings(**SMALL, held_out=0.25))
    assert len(shared.test[1]) == 15 and len(shared.pool[1]) == 45
    assert torch.bincount(shared.test[1]).tolist() == [5, 5, 5]
    together = torch.cat([shared.pool[0], shared.test[0]])
    assert len(torch.unique(together, dim=0)) == 60  # no sample is in both
    advice = equisep.recommend_depth(blobs(60), **SMALL)
    assert advice.data["held_out"] and "held out of the data" in advice.sentences[-1]


def test_a_batch_of_one_never_comes_up() -> None:
    assert _shared(blobs(33), blobs(30), DepthSettings(**SMALL)).batch_size == 15
    assert _shared(blobs(9), blobs(30), DepthSettings(**SMALL)).batch_size == 9


def test_bytes_are_divided_by_255_as_images_are_everywhere() -> None:
    image = np.arange(12 * 4, dtype=np.uint8).reshape(12, 2, 2)
    shared = _shared((image, np.arange(12) % 2), (image, np.arange(12) % 2), DepthSettings(**SMALL))
    assert float(shared.pool[0].max()) == pytest.approx(47 / 255)


def test_finished_trials_are_taken_from_the_store(tmp_path: Path) -> None:
    class StoppedError(Exception):
        pass

    def stop(trial: Trial) -> None:
        if trial.depth == 3:
            raise StoppedError

    words: dict[str, Any] = {**SMALL, "depths": (2, 3, 4)}
    with pytest.raises(StoppedError):
        equisep.recommend_depth(blobs(60), blobs(60, seed=1), store=tmp_path, finished=stop, **words)
    kept = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*.npz")}
    assert len(kept) == 2
    whole = equisep.recommend_depth(blobs(60), blobs(60, seed=1), store=tmp_path, **words)
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    assert len([*tmp_path.glob("*.npz")]) == 3
    assert whole == equisep.recommend_depth(blobs(60), blobs(60, seed=1), **words)


def test_widths_rates_and_depth_one_are_tried_too() -> None:
    words: dict[str, Any] = {**SMALL, "depths": (1, 2), "widths": (4, 8), "rates": (1e-3, 1e-2)}
    advice = equisep.recommend_depth(blobs(60), blobs(60, seed=1), **words)
    kinds = {(each.depth, each.width, each.rate) for each in advice.trials}
    assert kinds == {(1, 0, 1e-3), (1, 0, 1e-2), *((2, w, r) for w in (4, 8) for r in (1e-3, 1e-2))}
    assert len(advice.trials) == 6  # a single layer has no width


@pytest.mark.parametrize(
    ("choices", "sentence"),
    [
        ({"depths": (4,)}, "chosen among several; found 4"),
        ({"depths": (0, 2)}, "A depth is 1 to 1000"),
        ({"family": "fnn-liner"}, "`family` was `fnn-liner`. Did you mean `fnn-linear`?"),
        ({"family": "resnet18"}, "Families that train side by side: fnn, fnn-linear, fnn-no-batchnorm"),
        ({"seeds": 2}, "from 3 on; `seeds` was 2"),
        ({"widths": ()}, "`widths` are whole numbers"),
        ({"rates": (0.0,)}, "`rates` are numbers above 0"),
        ({"epochs": 0}, "`epochs` was 0"),
        ({"fit": 1.5}, "`fit` is a share"),
        ({"margin": 1.0}, "`margin` is a share"),
        ({"reading": "evil"}, "No reading `evil`. Did you mean `eval`?"),
        ({"per_class": 21}, "asked for 21 samples of class 0; there are 20"),
    ],
)
def test_bad_choices_are_refused_in_one_sentence(choices: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError) as error:
        equisep.recommend_depth(blobs(60), blobs(60, seed=1), **{**SMALL, **choices})
    assert sentence in str(error.value)


@pytest.mark.parametrize(
    ("data", "test", "sentence"),
    [
        ((torch.randn(9, 2), torch.tensor([0] * 8 + [1])), blobs(9), "class 1 has 1. Add samples"),
        (
            (torch.randn(9, 2), torch.tensor([0] * 7 + [1] * 2)),
            None,
            "some are held out, as there are no test data; class 1 has 2",
        ),
        ((torch.randn(9, 2), torch.zeros(9, dtype=torch.int64)), None, "the data have one"),
        ((torch.randn(9, 2), torch.arange(8) % 2), None, "9 samples and 8 labels"),
        (torch.randn(9, 2), None, "should be a pair (x, y)"),
        (blobs(60), blobs(1), "compared on test samples; found 1"),
        (blobs(60), (torch.randn(9, 5), torch.arange(9) % 3), "the test samples have 5"),
    ],
)
def test_data_that_cannot_be_used_are_refused_in_one_sentence(data: Any, test: Any, sentence: str) -> None:
    with pytest.raises(InputError) as error:
        equisep.recommend_depth(data, test, **SMALL)
    assert sentence in str(error.value)
