"""Evidence: entries in any order, by series, rate and seed, with the rate that the figure's rule chooses."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from equisep.figures.cell import Cell
from equisep.figures.evidence import Entry, gather
from equisep.figures.figure import Choice
from equisep.figures.outcome import Outcome
from figures.synthetic_figures import asked_for, figure, law_curve, outcome, shown_evidence

R = {
    (1e-3, 0): -0.99, (1e-3, 1): -0.99, (1e-3, 2): -0.99,
    (3e-3, 0): -0.999, (3e-3, 1): -0.999, (3e-3, 2): -0.95,
}  # fmt: skip


def entries(r: dict[tuple[float, int], float] | None = None, **cell: object) -> list[Entry]:
    return [
        Entry("a", Cell(rate=rate, seed=seed, data_seed=seed).with_(**cell), outcome(law_curve(r=value)))
        for (rate, seed), value in (R if r is None else r).items()
    ]


def test_the_rate_is_chosen_once_by_the_mean_r() -> None:
    found = gather(figure(), entries(), scale="paper").series["a"]
    assert found.rate == 1e-3  # 3e-3 is better in two of three seeds, and worse in the mean
    assert sorted(found.chosen) == [0, 1, 2]
    assert list(found.values("r").values()) == pytest.approx([-0.99] * 3)
    assert {seed: entry.cell.rate for seed, entry in found.best.items()} == {0: 3e-3, 1: 3e-3, 2: 1e-3}
    assert list(found.optimistic("r").values()) == pytest.approx([-0.999, -0.999, -0.99])


def test_the_order_of_entries_does_not_matter() -> None:
    shuffled = entries()
    random.Random(0).shuffle(shuffled)
    assert gather(figure(), shuffled, scale="paper").series["a"].chosen == gather(
        figure(), entries(), scale="paper"
    ).series["a"].chosen  # fmt: skip


def test_a_rate_that_fewer_seeds_were_run_at_is_not_chosen() -> None:
    lucky = {**R, (1e-2, 0): -0.9999}
    assert gather(figure(), entries(lucky), scale="paper").series["a"].rate == 1e-3


def test_a_seed_without_an_r_counts_as_the_worst() -> None:
    rows = entries()
    lost = [
        replace(entry, outcome=Outcome(diverged=1)) if (entry.cell.rate, entry.cell.seed) == (1e-3, 0) else entry
        for entry in rows
    ]
    found = gather(figure(), lost, scale="paper").series["a"]
    assert found.rate == 3e-3
    assert found.best[0].cell.rate == 3e-3


def test_runs_that_were_shortened_to_choose_a_rate_are_never_shown() -> None:
    short = entries({(1e-2, 0): -0.9999}, epochs=60)
    found = gather(figure(), [*short, *entries()], scale="paper").series["a"]
    assert (found.rate, len(found.entries)) == (1e-3, 7)


def test_entries_of_series_that_the_figure_does_not_have_are_left_out() -> None:
    stranger = replace(entries()[0], series="z")
    found = gather(figure(), [*entries(), stranger], scale="paper")
    assert (found.done, found.planned) == (6, 6)
    assert list(found.series) == ["a"]


def test_nothing_run() -> None:
    found = gather(figure(), (), scale="smoke", plan=asked_for(figure(), 4))
    assert (found.done, found.planned, found.scale) == (0, 4, "smoke")
    assert found.series["a"].rate is None
    assert found.series["a"].values("r") == {}


def test_what_stood_in_for_what() -> None:
    assert shown_evidence().stand_ins == {"cifar10": ("cifar10_7k",)}
    assert gather(figure(), entries(), scale="paper").stand_ins == {}


@pytest.mark.parametrize("choose", ["short runs", "best two"])
def test_short_runs_alone_are_never_taken_for_the_whole_training(choose: Choice) -> None:
    made = replace(figure(), choose=choose)
    short = [
        replace(entry, cell=entry.cell.with_(epochs=60)) for entry in entries({(1e-3, 0): -0.99, (3e-3, 0): -0.999})
    ]
    found = gather(made, short, scale="paper").series["a"]
    assert found.rate is None and not found.chosen and len(found.entries) == 2
    # a run that was asked for so many epochs is whole, as at another scale
    asked = [(each.series, each.cell) for each in short]
    assert gather(made, short, scale="paper", plan=asked).series["a"].rate == 3e-3
    assert gather(made, short, scale="smoke").series["a"].rate == 3e-3
    whole = Entry("a", short[1].cell.with_(epochs=600), outcome(law_curve(r=-0.98)))
    found = gather(made, [*short, whole], scale="paper").series["a"]
    assert found.rate == 3e-3 and found.values("r") == pytest.approx({0: -0.98})


@pytest.mark.parametrize("choose", ["short runs", "best two"])
def test_a_rate_is_chosen_for_good_when_every_other_one_was_trained_to_the_end(choose: Choice) -> None:
    """By what was run: the record may be of an older plan. Seeds of the first rates do not matter."""
    made = replace(figure(), choose=choose, rates={"adam": (1e-3, 3e-3)})
    both = entries({(1e-3, 0): -0.99, (1e-3, 1): -0.98, (3e-3, 0): -0.97})
    found = gather(made, both, scale="paper").series["a"]
    assert not found.untried(made) and found.rate == 1e-3
    cut = [*both[:2], replace(both[2], cell=both[2].cell.with_(epochs=60))]
    assert gather(made, cut, scale="paper").series["a"].untried(made)
    every = replace(made, choose="best r")
    assert not gather(every, cut, scale="paper").series["a"].untried(every)


def fitting(shares: dict[float, tuple[float, ...]], r: dict[float, float]) -> list[Entry]:
    """By rate the training accuracy of each seed, and one r for all of them."""
    return [
        Entry(
            "a",
            Cell(rate=rate, seed=seed, data_seed=seed),
            replace(outcome(law_curve(r=r[rate])), numbers={"accuracy": share}),
        )
        for rate, own in shares.items()
        for seed, share in enumerate(own)
    ]


def test_the_rate_is_chosen_among_those_at_which_networks_fit() -> None:
    r = {1e-4: -0.9999, 1e-3: -0.999, 3e-3: -0.99}
    shares = {1e-4: (0.9, 1.0), 1e-3: (0.9995, 1.0), 3e-3: (1.0, 1.0)}
    found = gather(figure(fit=0.999), fitting(shares, r), scale="paper").series["a"]
    assert found.rate == 1e-3 and [found.fits(seed) for seed in (0, 1)] == [True, True]
    assert {seed: entry.cell.rate for seed, entry in found.best.items()} == {0: 1e-3, 1: 1e-4}  # each seed by itself
    assert gather(figure(), fitting(shares, r), scale="paper").series["a"].rate == 1e-4  # no figure of ours asks
    none = gather(figure(fit=0.999), fitting({1e-3: (0.5, 1.0), 3e-3: (0.5, 0.5)}, r), scale="paper").series["a"]
    assert none.rate == 1e-3 and [none.fits(seed) for seed in (0, 1)] == [False, True]


def test_a_rate_that_fit_chooses_is_the_cells_own_where_networks_fit_at_it() -> None:
    made = replace(figure(fit=0.99), choose="best fit")
    assert made.base.rate == 1e-3

    def chosen(shares: dict[float, tuple[float, ...]]) -> tuple[float | None, dict[int, float]]:
        found = gather(made, fitting(shares, dict.fromkeys(shares, -0.9)), scale="paper").series["a"]
        assert found.rate_in("eval") is None
        return found.rate, {seed: entry.training.rate for seed, entry in found.best.items()}

    assert chosen({1e-3: (0.991, 0.992), 3e-3: (1.0, 1.0)}) == (1e-3, {0: 1e-3, 1: 1e-3})
    assert chosen({1e-3: (0.991, 0.9), 3e-3: (1.0, 1.0)}) == (3e-3, {0: 1e-3, 1: 3e-3})
    assert chosen({1e-3: (0.8, 0.9), 3e-3: (0.7, 0.7)}) == (1e-3, {0: 1e-3, 1: 1e-3})
    assert chosen({1e-3: (0.7, 0.7), 3e-3: (0.7, 0.8)}) == (3e-3, {0: 1e-3, 1: 3e-3})


def test_the_rate_is_chosen_in_the_papers_reading_where_it_is_known() -> None:
    def entry(rate: float, mixed: float, drawn: float) -> Entry:
        return Entry("a", Cell(rate=rate), outcome(**{"r@reading=mixed": mixed, "r@reading=drawn": drawn}))

    found = gather(figure(), [entry(1e-3, -0.999, -0.9), entry(3e-3, -0.99, -0.998)], scale="paper").series["a"]
    assert (found.rate, found.rate_in("drawn"), found.rate_in("mixed"), found.rate_in("eval")) == (
        3e-3,
        3e-3,
        1e-3,
        None,
    )


def test_evidence_as_a_frame_has_a_row_per_cell() -> None:
    pytest.importorskip("pandas")
    frame = shown_evidence().to_frame("rho", "r")
    assert len(frame) == 12 and list(frame.columns) == [
        "series",
        "seed",
        "rate",
        "epochs",
        "chosen",
        "fits",
        "rho",
        "r",
    ]
    chosen = frame[frame.chosen & (frame.series == "deep")]
    assert list(chosen.rate) == [1e-3] * 3 and chosen.rho.mean() == pytest.approx(0.601)
    assert frame.fits.isna().all()  # the figure does not ask
    whole = gather(figure(fit=0.999), fitting({1e-3: (0.5, 1.0)}, {1e-3: -0.99}), scale="paper").to_frame()
    assert list(whole.fits) == [False, True] and {"half_life", "accuracy_test"} <= set(whole.columns)
