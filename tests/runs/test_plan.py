"""Plans: cells of a figure, who trains with whom, stand-ins, short runs, and what one store does not mix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from equisep.errors import DataError, InputError, StoreError
from equisep.figures.catalogue import all_figures, figure_of
from equisep.figures.cell import Cell, Training
from equisep.figures.figure import Figure, Panel, Series
from equisep.figures.outcome import Curves, Outcome
from equisep.runs import run
from equisep.runs.plan import (
    OWN,
    SEEDS_TOGETHER,
    RunOptions,
    cells_to_run,
    groups_of,
    parse_stand_ins,
    planned_cells,
    runner_of,
    short_cells,
)
from equisep.runs.record import recorded_evidence, write_record
from equisep.runs.run import run_figure
from equisep.runs.store import Store

FIG1 = figure_of("he2023/fig1")
TINY = Figure(
    id="test/tiny", title="", source="", cite="", panels=(Panel("D"),), seeds=2,
    base=Cell(data="embedded-10x10", per_class=4, test_per_class=4, depth=3, width=6, epochs=1, batch_size=20),
    series=(Series("a", panel="D"), Series("b", {"depth": 4}, panel="D")),
)  # fmt: skip


def cells_of(figure: Figure, seeds: int, scale: str = "paper") -> list[Cell]:
    return [plan.cell for plan in planned_cells(figure, RunOptions(scale, seeds))]


# cells


def test_every_series_rate_and_seed_once() -> None:
    planned = planned_cells(FIG1, RunOptions("paper", 3))
    assert len(planned) == len(set(planned)) == 3 * (7 + 7 + 5) * 3 + 5  # three depths, three seeds; one seed of points
    assert {plan.cell.seed for plan in planned} == {0, 1, 2}
    assert all(plan.cell.seed == plan.cell.data_seed for plan in planned)
    assert {plan.cell.rate for plan in planned if plan.series == "adam-8"} == {3e-5, 1e-4, 3e-4, 1e-3, 3e-3}


def test_rates_can_be_given() -> None:
    planned = planned_cells(FIG1, RunOptions("paper", 1), rates=lambda series: (0.5,))
    assert {plan.cell.rate for plan in planned} == {0.5} and len(planned) == len(FIG1.series)


def test_a_solved_problem_is_one_cell_whatever_the_seeds() -> None:
    figure = figure_of("fang2021/balanced")
    assert len(planned_cells(figure, RunOptions("paper", 7))) == len(figure.series)


def test_short_runs_have_one_seed_and_a_tenth_of_the_epochs_and_read_only_the_end() -> None:
    figure = figure_of("galanti2022/fig2")
    figure = replace(figure, choose="short runs", rates={"momentum": (0.01, 0.1)})
    found = short_cells(figure, RunOptions("paper", 4))
    assert len(found) == 2 * len(figure.series)
    assert {(plan.cell.epochs, plan.cell.read_epochs, plan.cell.seed) for plan in found} == {(50, (), 0)}
    assert not any(plan.cell.test_sites for plan in found)
    assert {plan.cell.rate for plan in found} == {0.01, 0.1}


# company


def test_a_group_shares_everything_but_what_members_may_differ_in() -> None:
    for group in groups_of(cells_of(FIG1, 10)):
        first = group[0]
        for cell in group:
            assert cell.with_(**{name: getattr(first, name) for name in OWN}) == first
            assert cell.seed // SEEDS_TOGETHER == first.seed // SEEDS_TOGETHER


def test_five_seeds_train_together_and_more_of_them_add_groups_without_changing_any() -> None:
    before = groups_of(cells_of(FIG1, 5))
    after = groups_of(cells_of(FIG1, 13))
    assert set(before) <= set(after)
    sizes = sorted(len(group) for group in groups_of(cells_of(figure_of("he2023/figS6"), 13)))
    assert sizes == [3 * 5, 5 * 5, 5 * 5]  # rates × seeds


@given(st.permutations(range(20)))
def test_groups_do_not_depend_on_the_order_of_cells(order: Sequence[int]) -> None:
    cells = cells_of(figure_of("he2023/fig6"), 2)[:20]
    found = groups_of([cells[place] for place in order])
    assert {frozenset(group) for group in found} == {frozenset(group) for group in groups_of(cells)}


def test_a_cell_that_two_series_share_is_run_once() -> None:
    cells = cells_of(TINY, 2)
    assert groups_of([*cells, *cells]) == groups_of(cells)
    assert sorted(chain(*groups_of(cells)), key=repr) == sorted(cells, key=repr)


@pytest.mark.parametrize(
    "changes", [{"network": "vgg11"}, {"augment": True}, {"problem": "balanced"}, {"network": "bert"}]
)
def test_what_cannot_share_an_ensemble_trains_alone(changes: dict[str, Any]) -> None:
    cells = [Cell(**changes, seed=seed) for seed in range(3)]
    assert runner_of(cells[0]) != "ensembles"
    assert groups_of(cells) == tuple((cell,) for cell in cells)


def test_stages_and_noise_do_share_one() -> None:
    for changes in ({"kind": "staged", "first_epochs": 1}, {"noise": (0.1,)}, {"network": "fnn-linear"}):
        assert len(groups_of([Cell(**changes, seed=seed) for seed in range(3)])) == 1


@pytest.mark.parametrize("figure", all_figures(), ids=lambda figure: figure.id)
def test_groups_hold_every_cell_of_a_figure_once(figure: Figure) -> None:
    cells = cells_of(figure, 6)
    grouped = list(chain(*groups_of(cells)))
    assert len(grouped) == len(set(grouped)) and set(grouped) == set(cells)


def ran(groups: list[tuple[Cell, ...]], *, unfit: Sequence[float] = ()) -> Any:
    """A runner that trains nothing and writes down who came together; networks fit but at the rates that are `unfit`."""

    def given(cell: Cell) -> Outcome:
        accuracy = 0.5 if cell.rate in unfit else 1.0
        # r is least where log D is straightest: D = 4, 2, 1 + rate, at the least rate
        curves = Curves(epoch=cell.epochs, reading="mixed", fuzziness=(4.0, 2.0, 1.0 + cell.rate), accuracy=accuracy)
        return Outcome(readings=(curves,))

    def run_group(cells: Sequence[Cell], **options: Any) -> list[tuple[Cell, Outcome, dict[str, Any]]]:
        groups.append(tuple(cells))
        return [(cell, given(cell), {}) for cell in cells]

    return run_group


def test_a_group_of_which_one_cell_is_missing_is_trained_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who trains with whom decides the last digits, so what was run before must not."""
    groups: list[tuple[Cell, ...]] = []
    monkeypatch.setattr(run, "run_group", ran(groups))
    store = Store.open(tmp_path)
    cells = cells_of(TINY, 2)
    kept = Outcome(numbers={"mine": 1.0})
    store.put(cells[0], kept, {})
    run_figure(TINY, store=store)
    assert groups == list(groups_of(cells)) and store.get(cells[0].key).outcome == kept
    groups.clear()
    run_figure(TINY, store=store, seeds=2)
    assert not groups
    run_figure(TINY, store=store, seeds=3)
    assert groups == list(groups_of(cells_of(TINY, 3)))


def test_short_runs_choose_the_rate_of_the_whole_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    groups: list[tuple[Cell, ...]] = []
    monkeypatch.setattr(run, "run_group", ran(groups))
    figure = replace(
        TINY, choose="short runs", rates={"adam": (0.5, 0.125, 0.25)}, base=TINY.base.with_(epochs=30), seeds=2
    )
    evidence = run_figure(figure, store=tmp_path)
    shorts, wholes = ([group for group in groups if group[0].epochs == epochs] for epochs in (3, 30))
    assert {cell.rate for cell in chain(*shorts)} == {0.5, 0.125, 0.25} and {cell.seed for cell in chain(*shorts)} == {
        0
    }
    assert {cell.rate for cell in chain(*wholes)} == {0.125} and {cell.seed for cell in chain(*wholes)} == {0, 1}
    assert evidence.planned == evidence.done == 2 * 3 + 2 * 2
    assert {found.rate for found in evidence.series.values()} == {0.125}
    assert all(set(found.chosen) == {0, 1} for found in evidence.series.values())


def test_every_rate_with_one_seed_chooses_two_for_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    groups: list[tuple[Cell, ...]] = []
    monkeypatch.setattr(run, "run_group", ran(groups))
    figure = replace(TINY, choose="best two", rates={"adam": (0.5, 0.125, 0.25)}, seeds=3)
    evidence = run_figure(figure, store=tmp_path)
    first = [cell for cell in chain(*groups) if cell.seed == 0]
    others = [cell for cell in chain(*groups) if cell.seed]
    assert {cell.rate for cell in first} == {0.5, 0.125, 0.25}
    assert {(cell.rate, cell.seed) for cell in others} == {(rate, seed) for rate in (0.125, 0.25) for seed in (1, 2)}
    assert {cell.epochs for cell in chain(*groups)} == {TINY.base.epochs}
    assert evidence.planned == evidence.done == 7 * len(figure.series)
    assert {found.rate for found in evidence.series.values()} == {0.125}
    assert all(set(found.chosen) == {0, 1, 2} for found in evidence.series.values())
    assert len(cells_to_run(figure, RunOptions("paper"))) == 7 * len(figure.series)
    groups.clear()
    run_figure(figure, store=tmp_path)
    assert not groups


@pytest.mark.parametrize(("fit", "chosen"), [(0.999, {0.25, 0.5}), (None, {0.125, 0.25})])
def test_the_two_are_chosen_among_rates_at_which_networks_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fit: float | None, chosen: set[float]
) -> None:
    groups: list[tuple[Cell, ...]] = []
    monkeypatch.setattr(run, "run_group", ran(groups, unfit=(0.125,)))
    figure = replace(TINY, choose="best two", rates={"adam": (0.5, 0.125, 0.25)}, fit=fit)
    evidence = run_figure(figure, store=tmp_path)
    assert {cell.rate for cell in chain(*groups) if cell.seed} == chosen
    assert {found.rate for found in evidence.series.values()} == {min(chosen)}


def test_short_runs_choose_also_a_rate_at_which_networks_do_not_fit_yet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups: list[tuple[Cell, ...]] = []
    monkeypatch.setattr(run, "run_group", ran(groups, unfit=(0.125,)))
    base = TINY.base.with_(epochs=30)
    run_figure(replace(TINY, choose="short runs", rates={"adam": (0.125, 0.25)}, base=base, fit=0.999), store=tmp_path)
    assert {cell.rate for cell in chain(*groups) if cell.epochs == 30} == {0.125}


# settings


def test_changes_and_stand_ins_reach_every_cell() -> None:
    asked = RunOptions("paper", 1, data={"embedded-10x10": "mine"}, changes={"dtype": "float64", "epochs": 7})
    found = [plan.cell for plan in planned_cells(TINY, asked)]
    assert {(cell.data, cell.stands_for, cell.dtype, cell.epochs) for cell in found} == {
        ("mine", "embedded-10x10", "float64", 7)
    }
    same = RunOptions("paper", 1, data={"embedded-10x10": "embedded-10x10", "cifar10": "other"})
    assert planned_cells(TINY, same) == planned_cells(TINY, RunOptions("paper", 1))


def test_a_network_stands_in_for_another_and_the_record_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "run_group", ran([]))
    evidence = run_figure(TINY, store=tmp_path / "runs", networks={"fnn": "fnn-linear", "vgg13": "vgg11"})
    assert evidence.done == 4 and evidence.stand_ins == {"fnn": ("fnn-linear",)}
    entries = [entry for found in evidence.series.values() for entry in found.entries]
    assert {(entry.training.network, entry.training.network_for) for entry in entries} == {("fnn-linear", "fnn")}
    assert {entry.training.of_paper for entry in entries} == {
        plan.cell for plan in planned_cells(TINY, RunOptions("paper"))
    }
    kept = recorded_evidence(TINY, write_record(tmp_path / "t" / "tiny.json", entries, TINY, "paper"))
    assert kept.stand_ins == evidence.stand_ins and kept.done == 4


def test_what_stands_in_for_a_stand_in_is_still_for_the_papers_network() -> None:
    declared = replace(TINY, base=TINY.base.with_(network="fnn-linear", network_for="fnn"))
    asked = RunOptions("paper", 1, networks={"fnn-linear": "vgg11"})
    found = [plan.cell for plan in planned_cells(declared, asked)]
    assert {(cell.network, cell.network_for) for cell in found if isinstance(cell, Training)} == {("vgg11", "fnn")}


def test_a_substitute_stands_in_at_smoke_scale_alone() -> None:
    absent = replace(TINY, base=TINY.base.with_(data="cifar10"))
    for scale, data in (("smoke", "embedded-28x28"), ("paper", "cifar10")):
        asked = RunOptions(scale, 1, substitute=lambda cell: "embedded-28x28")
        assert {plan.cell.data for plan in planned_cells(absent, asked)} == {data}
    chosen = RunOptions("smoke", 1, data={"cifar10": "mine"}, substitute=lambda cell: "embedded-28x28")
    assert {(plan.cell.data, plan.cell.stands_for) for plan in planned_cells(absent, chosen)} == {("mine", "cifar10")}
    named = replace(absent, smoke={"data": "tokens"})
    asked = RunOptions("smoke", 1, substitute=lambda cell: "embedded-28x28")
    assert {plan.cell.data for plan in planned_cells(named, asked)} == {"tokens"}


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: RunOptions("large"), "No scale `large`. Known: paper, smoke."),
        (lambda: RunOptions("smok"), "Did you mean `smoke`?"),
        (lambda: planned_cells(TINY, RunOptions("paper", 0)), "`seeds` was 0; a number from 1 to 10,000 is needed."),
        (
            lambda: planned_cells(TINY, RunOptions(changes={"epoch": 3})),
            "A cell has no field `epoch`. Did you mean `epochs`",
        ),
        (lambda: parse_stand_ins(["cifar10"]), "A stand-in is written NAME=OTHER, such as cifar10=cifar10_7k"),
        (lambda: parse_stand_ins(["=mine"]), "found `=mine`"),
    ],
)
def test_bad_settings_are_one_sentence(make: Any, words: str) -> None:
    with pytest.raises(InputError) as caught:
        make()
    assert words in str(caught.value)


def test_stand_ins_are_parsed() -> None:
    assert parse_stand_ins([]) == {}
    assert parse_stand_ins(["cifar10=cifar10_7k", "mnist=a=b.npz"]) == {"cifar10": "cifar10_7k", "mnist": "a=b.npz"}


def test_an_unknown_field_is_refused_before_anything_is_stored(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"A cell has no field `dtyp`. Did you mean `dtype`"):
        run_figure(TINY, store=tmp_path / "runs", changes={"dtyp": "float64"})
    assert Store.open(tmp_path / "runs", create=False).figures() == []


def test_data_that_are_not_there_are_told_before_anything_is_trained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups: list[tuple[Cell, ...]] = []
    monkeypatch.setattr(run, "run_group", ran(groups))
    late = replace(TINY, series=(*TINY.series, Series("late", {"data": "absent.npz"})))
    with pytest.raises(DataError, match=r"absent.npz.* Or let another data set stand in: `--data absent.npz=OTHER`;"):
        run_figure(late, store=tmp_path / "runs")
    assert not groups and Store.open(tmp_path / "runs").figures() == []
    evidence = run_figure(late, store=tmp_path / "runs", data={"absent.npz": "embedded-10x10"})
    assert evidence.done == 6 and evidence.stand_ins == {"absent.npz": ("embedded-10x10",)}


# one store, one choice


@pytest.fixture
def held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """A store with the tiny figure at paper scale, run with nothing changed."""
    monkeypatch.setattr(run, "run_group", ran([]))
    store = Store.open(tmp_path / "runs")
    run_figure(TINY, store=store)
    return store


@pytest.mark.parametrize(
    ("settings", "asked"),
    [
        ({"changes": {"dtype": "float64", "widths": (3, 4)}}, "--set dtype=float64 --set widths=[3, 4]"),
        ({"data": {"embedded-10x10": "embedded-28x28"}}, "--data embedded-10x10=embedded-28x28"),
        ({"networks": {"fnn": "fnn-linear"}}, "--network fnn=fnn-linear"),
    ],
)
def test_runs_with_other_settings_are_not_joined(held: Store, settings: dict[str, Any], asked: str) -> None:
    flag = asked.split(maxsplit=1)[0]
    with pytest.raises(InputError) as caught:
        run_figure(TINY, store=held, **settings)
    assert str(caught.value) == (
        f"`test/tiny` was asked for with {asked}; `{held.root}` holds `test/tiny` run with no {flag}, and joining them "
        "would mix their numbers. Use another `--store`."
    )
    assert len(held.entries("test/tiny", "paper")) == 4
    other = Store.open(held.root.parent / "other")
    run_figure(TINY, store=other, **settings)
    run_figure(TINY, store=other, **settings)  # the same settings, tuples and all, go on
    with pytest.raises(InputError, match=rf"with no {flag}; .* run with {flag}"):
        run_figure(TINY, store=other)


def test_other_scales_more_seeds_and_stand_ins_for_other_data_are_joined(held: Store) -> None:
    run_figure(TINY, store=held, seeds=4)
    run_figure(TINY, store=held, data={"cifar10": "cifar10_7k"}, networks={"vgg13": "vgg11"})
    run_figure(TINY, store=held, changes={}, data={})
    run_figure(TINY, store=held, scale="smoke", changes={"dtype": "float64"})
    assert len(held.entries("test/tiny", "paper")) == 8


def test_a_damaged_manifest_is_made_anew(held: Store) -> None:
    path = held.root / "figures" / "test" / "tiny.paper.json"
    path.write_text(path.read_text()[:-40])
    with pytest.raises(StoreError, match=r"is damaged: .* Run the figure again; its finished cells are kept."):
        held.manifest("test/tiny", "paper")
    assert run_figure(TINY, store=held).done == 4
