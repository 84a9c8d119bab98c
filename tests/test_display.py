"""Records show themselves: a repr of one line that a notebook can hold, and a table in which names are text."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, is_dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import torch

import equisep
from equisep.advice.rare import rare_classes
from equisep.compare import compare_many, compare_profiles
from equisep.display import WIDTH, brief, record_line, short
from equisep.peeled import rescue, thresholds_of
from equisep.results import Note
from equisep.training import Recipe
from report.report_profiles import full_profile

SOURCE = Path(equisep.__file__).parent
HOSTILE = "<script>alert(1)</script>"


def records() -> Iterator[object]:
    profile = full_profile()
    yield from (profile, profile.law, profile.sites[1], profile.classifier, *profile.notes[:1], *profile.findings[:1])
    solution = equisep.peeled.solve(sizes=[500] * 2 + [50] * 2, feature_energy=5, weight_energy=1)
    yield from (solution, solution.problem, solution.certificate, solution.geometry, solution.form)
    yield from (rescue(solution.problem), thresholds_of(majority=2, minority=2, feature_energy=5, weight_energy=1))
    yield rare_classes([100, 100, 10, 10], energies=[1.0])
    difference = compare_profiles(profile, replace(profile, model="other"))
    yield from (difference, difference.law, difference.sites[0])
    yield compare_many([profile, profile], names=["a", "b"])
    x, y = torch.randn(60, 8), torch.arange(60) % 3
    model = equisep.Fnn(2, inputs=8, width=8, classes=3)
    yield equisep.train(model, x, y, recipe=Recipe(epochs=1))
    tracker = equisep.Tracker(model, (x, y))
    tracker.epoch()
    yield from (tracker, tracker.history, tracker.history.entries[0], tracker.history.settled())
    measured = equisep.measure(model, (x, y))
    yield from (measured, *measured.sites[:1], measured.grains)
    yield equisep.summarize_laws([measured.law, measured.law])
    yield from (equisep.corrected_fuzziness(x, y), equisep.load_data("embedded-10x10"))


def test_what_the_public_functions_return_fits_on_a_line_and_has_a_table() -> None:
    for record in records():
        if record is None:
            continue
        assert len(repr(record)) <= 1.3 * WIDTH, type(record)
        assert "\n" not in repr(record), type(record)
        html = record._repr_html_()  # type: ignore[attr-defined]
        assert html.startswith("<div") and html.count("<table") == html.count("</table"), type(record)
        assert len(html) < 60_000, type(record)


@pytest.mark.parametrize("name", ["results", "peeled", "compare"])
def test_every_record_that_a_folder_offers_is_brief(name: str) -> None:
    folder = importlib.import_module(f"equisep.{name}")
    kinds = [getattr(folder, each) for each in folder.__all__]
    plain = [
        kind for kind in kinds if isinstance(kind, type) and is_dataclass(kind) and not hasattr(kind, "_repr_html_")
    ]
    assert plain == []


@brief
@dataclass(frozen=True, slots=True)
class Kept:
    """What <b>was</b> kept."""

    name: str
    values: tuple[float, ...] = ()
    array: object = None
    notes: tuple[Note, ...] = ()


def test_fields_are_cut_to_what_tells() -> None:
    many = tuple(float(step) for step in range(1000))
    record = Kept("x" * 100, many, np.zeros((3, 4)), (Note("a", "b"),) * 20)
    assert repr(record) == f"Kept(name='{'x' * 39}…', values=(0, …, 999; 1000), array=<3×4 float64>, notes=<20 Note>)"
    assert repr(Kept("x")) == "Kept(name='x')" == record_line(Kept("x"))
    assert short({"a": 1, "b": 2}) == "{a, b}"
    assert short((1, 2)) == "(1, 2)" and short((1,)) == "(1,)"
    assert short(torch.zeros(2, 5)) == "<2×5 torch.float32>"


def test_names_are_text_in_a_table() -> None:
    html = Kept(HOSTILE, notes=(Note(HOSTILE, HOSTILE),) * 20)._repr_html_()  # type: ignore[attr-defined]
    assert "<script" not in html and "<b>" not in html and html.count("&lt;script") == 25
    assert "and 8 more" in html


def test_a_repr_of_ones_own_stays() -> None:
    @brief
    @dataclass(frozen=True)
    class Own:
        value: int = 1

        def __repr__(self) -> str:
            return "mine"

    assert repr(Own()) == "mine" and re.search("value", Own()._repr_html_())  # type: ignore[attr-defined]
