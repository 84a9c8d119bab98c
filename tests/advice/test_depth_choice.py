"""From trials to a recommended depth: what is recommended, what is refused, and how often many depths fool it."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from equisep.advice.depth.choice import Hits, choose_depth
from equisep.advice.depth.records import DepthAdvice, DepthSettings, Trial
from equisep.report.advice.depth import render_depth
from equisep.report.advice.depth_plots import plot_depths

SEEDS, TEST = 8, 2000


def trial(
    depth: int, *, accuracy: float = 1.0, last: float = 0.1, diverged: int | None = None, ncc: float = 1.0
) -> Trial:
    def same(value: float) -> tuple[float, ...]:
        return (value,) * SEEDS

    return Trial(
        depth=depth, width=100, rate=3e-3, parameters=10_000 * depth, accuracy=same(accuracy), accuracy_test=same(0.8),
        last=tuple(last * (1 + 0.01 * seed) for seed in range(SEEDS)), rho=same(0.5), r=same(-0.99),
        effective_depth=(depth - 1,) * SEEDS, ncc=same(ncc), diverged=(diverged, *[None] * (SEEDS - 1)),
    )  # fmt: skip


def hits_of(
    chance: np.random.Generator,
    accuracies: Sequence[float],
    *,
    seeds: int = SEEDS,
    test: int = TEST,
    spread: float = 0.004,
) -> list[Hits]:
    """Networks that mostly agree on which samples are hard, as trained ones do, with seeds that differ by `spread`.

    A sample is hit where its difficulty (shared by all, normal) with noise of its own network and depth stays below a limit.
    """
    from statistics import NormalDist

    hard = chance.normal(size=(1, test))
    tables = []
    for accuracy in accuracies:
        own = np.clip(accuracy + spread * chance.normal(size=(seeds, 1)), 0.01, 0.99)
        limit = np.vectorize(NormalDist().inv_cdf)(own)
        depth_noise, noise = chance.normal(size=(1, test)), chance.normal(size=(seeds, test))
        score = np.sqrt(0.85) * hard + np.sqrt(0.03) * depth_noise + np.sqrt(0.12) * noise
        tables.append(score < limit)
    return tables


def tried(depths: Sequence[int], tables: Sequence[Hits]) -> list[Trial]:
    """Trials whose test accuracies are those of the tables."""
    return [
        replace(trial(depth), accuracy_test=tuple(float(share) for share in table.mean(axis=1)))
        for depth, table in zip(depths, tables, strict=True)
    ]


def advised(accuracies: Sequence[float], seed: int = 0, **changes: float) -> DepthAdvice:
    depths = tuple(range(2, 2 + len(accuracies)))
    settings = DepthSettings(depths=depths, seeds=SEEDS, **changes)  # type: ignore[arg-type]
    tables = hits_of(np.random.default_rng(seed), accuracies)
    return choose_depth(tried(depths, tables), tables, settings)


def test_the_shallowest_of_equals_is_recommended() -> None:
    advice = advised([0.9, 0.9, 0.9, 0.9], margin=0.02)
    assert advice.depth == 2
    assert str(advice).startswith("Depth 2: test accuracy")
    assert "below the best of all at 95 % (asked: 2 points)" in str(advice)
    assert any("the least that was tried" in sentence for sentence in advice.sentences)


def test_a_depth_that_is_worse_is_not_recommended_however_shallow() -> None:
    advice = advised([0.8, 0.9, 0.9, 0.9], margin=0.02)
    assert advice.depth == 3
    assert [each.below for each in advice.standings] == [True, False, False, False]
    assert "depth 2 is worse" in str(advice)


def test_what_is_neither_shown_to_be_as_good_nor_worse_is_not_recommended() -> None:
    """Absence of evidence is none: with a small margin nothing is shown, and the advice says what would tell."""
    advice = advised([0.9, 0.9, 0.9], margin=0.001)
    assert advice.depth is None
    assert str(advice).startswith("The evidence does not tell: of all tried test accuracy is highest at depth")
    assert "cannot be told apart" in str(advice)
    assert advice.enough.seeds is not None or advice.enough.samples is not None or "Neither" in str(advice)


def test_as_many_seeds_as_it_asks_for_do_tell() -> None:
    accuracies, margin = [0.9, 0.905, 0.9], 0.012
    depths = (2, 4, 8)

    def search(seeds: int, chance: int) -> DepthAdvice:
        tables = hits_of(np.random.default_rng(chance), accuracies, seeds=seeds, test=20_000, spread=0.012)
        settings = DepthSettings(depths=depths, seeds=seeds, margin=margin)
        return choose_depth([trial(depth) for depth in depths], tables, settings)

    refused = next(advice for chance in range(20) if (advice := search(4, chance)).enough.seeds is not None)
    assert refused.depth is None
    told = [search(2 * (refused.enough.seeds or 0), chance).depth is not None for chance in range(5)]
    assert sum(told) >= 4
    assert f"`seeds={refused.enough.seeds}`" in str(refused)


def test_many_depths_do_not_fool_it() -> None:
    """Six depths, five of them as far below the best as the margin: 40 searches recommend one of them in 5 % at most.

    `simulations/depth.py` has more of it.
    """
    margin = 0.01
    accuracies = [0.9 - margin] * 5 + [0.9]
    depths = tuple(range(2, 8))
    settings = DepthSettings(depths=depths, seeds=SEEDS, margin=margin)
    trials = [trial(depth) for depth in depths]
    chance = np.random.default_rng(4)
    wrong = 0
    for _ in range(40):
        tables = hits_of(chance, accuracies, test=400)
        wrong += choose_depth(trials, tables, settings).depth in depths[:-1]
    assert wrong <= 0.05 * 40


def test_the_margin_shrinks_with_the_errors() -> None:
    assert advised([0.9, 0.9]).margin == 0.01
    tables = hits_of(np.random.default_rng(0), [0.985, 0.985])
    easy = choose_depth(tried((2, 3), tables), tables, DepthSettings(depths=(2, 3), seeds=SEEDS))
    assert easy.margin == pytest.approx(0.2 * (1 - max(table.mean() for table in tables)))
    assert easy.margin < 0.005


def test_depths_that_did_not_fit_are_left_out_with_a_sentence() -> None:
    depths = (2, 4, 8)
    tables = hits_of(np.random.default_rng(5), [0.95, 0.9, 0.9])
    first, *others = tried(depths, tables)
    trials = [replace(first, accuracy=(0.975,) * SEEDS), *others]
    advice = choose_depth(trials, tables, DepthSettings(depths=depths, seeds=SEEDS, margin=0.02))
    assert advice.left_out == (0,)
    assert advice.depth == 4
    assert any(sentence.startswith("Depth 2 is left out: less than 99 %") for sentence in advice.sentences)
    assert any("Final D, He & Su's guideline, is of all that count least at" in each for each in advice.sentences)
    (beware,) = [sentence for sentence in advice.sentences if sentence.startswith("Beware")]
    assert "higher test accuracy (9" in beware and "with `fit=0.97` they count" in beware
    counted = choose_depth(trials, tables, DepthSettings(depths=depths, seeds=SEEDS, margin=0.02, fit=0.97))
    assert counted.depth == 2


def test_a_depth_that_diverged_is_left_out() -> None:
    tables = hits_of(np.random.default_rng(6), [0.9, 0.9, 0.9])
    trials = [trial(2, diverged=7), trial(4), trial(8)]
    advice = choose_depth(trials, [None, *tables[1:]], DepthSettings(depths=(2, 4, 8), seeds=SEEDS, margin=0.02))
    assert advice.depth == 4
    assert "Depth 2 is left out: 1 of 8 trainings diverged, the first in epoch 7." in advice.sentences


def test_nothing_fits_and_one_alone_fits() -> None:
    tables = hits_of(np.random.default_rng(7), [0.9, 0.9])
    settings = DepthSettings(depths=(2, 4), seeds=SEEDS)
    nothing = choose_depth([trial(2, accuracy=0.9), trial(4, accuracy=0.95)], tables, settings)
    assert nothing.depth is None and nothing.best is None
    assert "no depth tried fits the training data to 99 % (at best 95 %)" in str(nothing)
    alone = choose_depth([trial(2, accuracy=0.9), trial(4)], tables, settings)
    assert alone.depth is None
    assert "depth 4 alone fits" in str(alone)
    assert not any("guideline" in sentence or "a deeper network" in sentence for sentence in alone.sentences)
    gone = choose_depth([trial(2, diverged=1), trial(4, diverged=1)], [None, None], settings)
    assert "trainings diverged at every depth" in str(gone)


def test_the_least_final_d_stands_beside_and_the_two_may_disagree() -> None:
    depths = (2, 4, 8)
    tables = hits_of(np.random.default_rng(8), [0.9, 0.9, 0.9])
    trials = [trial(2, last=5.0), trial(4, last=0.5), trial(8, last=0.1)]
    advice = choose_depth(trials, tables, DepthSettings(depths=depths, seeds=SEEDS, margin=0.02))
    assert advice.depth == 2 and advice.least == 2 and advice.near_least == ()
    (guideline,) = [sentence for sentence in advice.sentences if "guideline" in sentence]
    assert "least at depth 8" in guideline and "The two disagree" in guideline


@pytest.mark.parametrize("level", [0.9, 0.99])
def test_more_depths_or_a_higher_level_ask_for_more(level: float) -> None:
    tables = hits_of(np.random.default_rng(9), [0.9] * 4)
    trials = [trial(depth) for depth in (2, 4, 6, 8)]

    def limit(count: int, level: float) -> float:
        settings = DepthSettings(depths=(2, 4, 6, 8)[:count], seeds=SEEDS, margin=0.02, level=level)
        return choose_depth(trials[:count], tables[:count], settings).standings[0].at_most

    assert limit(2, level) < limit(4, level)
    assert limit(4, 0.9) <= limit(4, level)


def test_widths_and_rates_have_room_in_80_columns_and_are_named_in_words() -> None:
    tables = hits_of(np.random.default_rng(10), [0.9] * 4)
    settings = DepthSettings(depths=(2, 4), widths=(50, 100), rates=(1e-3, 3e-3), seeds=SEEDS, margin=0.02)
    kinds = [(50, 1e-3), (100, 3e-3), (50, 1e-3), (100, 3e-3)]
    wide = [
        replace(each, width=width, rate=rate, parameters=each.depth * width)
        for each, (width, rate) in zip(tried((2, 2, 4, 4), tables), kinds, strict=True)
    ]
    advice = choose_depth(wide, tables, settings)
    assert str(advice).startswith("Depth 2 width 50 rate 0.001: ")
    stream = io.StringIO()
    Console(file=stream, width=80).print(render_depth(advice, advice.sentences))
    lines = stream.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    assert any(line.split()[:3] == [">2", "50", "0.001"] for line in lines)
    labels = plot_depths(advice).axes[0].get_legend_handles_labels()[1]
    assert {"width 50, rate 0.001", "width 100, rate 0.003", "recommended", "paired with the best"} <= set(labels)


def test_a_terminal_that_has_ascii_alone_loses_no_word() -> None:
    advice = advised([0.9, 0.9], margin=0.02)
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii", errors="strict")
    Console(file=stream, width=80).print(render_depth(advice, advice.sentences))
    stream.flush()
    assert b"+/-" in stream.buffer.getvalue()  # type: ignore[attr-defined]
