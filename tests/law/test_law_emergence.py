"""Emergence: by two thresholds and a number of readings that must not contradict, and never by chance of one reading."""

from __future__ import annotations

import pytest

from equisep.errors import InputError
from equisep.law import fit_law
from equisep.law.emergence import (
    Standing,
    collapse_standing,
    emerged,
    emergences,
    law_standing,
    minority_standing,
)

WORDS: dict[str, Standing | None] = {"+": "there", "o": "between", "-": "not there", "?": None}


def when(marks: str, *, confirm: int = 2) -> tuple[int | None, int | None, tuple[int, ...], int | None]:
    found = emerged(range(1, len(marks) + 1), [WORDS[mark] for mark in marks], what="law", confirm=confirm)
    return found.first, found.since, found.lost, found.pending


@pytest.mark.parametrize(
    ("marks", "expected"),
    [
        ("---+++", (4, 4, (), None)),
        ("-+-+++", (4, 4, (), None)),  # one reading alone does not make it
        ("-+oo--", (2, 2, (), None)),  # between neither makes nor loses; two more readings could lose it
        ("-+oo---", (2, None, (5,), None)),
        ("+++-+-+", (1, 1, (), None)),  # single contradictions do not lose it
        ("+++---+++", (1, 7, (4,), None)),  # lost, and there again
        ("--+", (None, None, (), 3)),  # too early to say
        ("--++", (None, None, (), 3)),
        ("--+?+?+", (3, 3, (), None)),  # readings that cannot say are passed over
        ("ooo", (None, None, (), None)),
        ("", (None, None, (), None)),
    ],
)
def test_hysteresis(marks: str, expected: tuple[int | None, int | None, tuple[int, ...], int | None]) -> None:
    assert when(marks) == expected


def test_without_confirmation_every_reading_counts() -> None:
    assert when("-+-+", confirm=0) == (2, 4, (3,), None)


def test_standings_have_two_thresholds() -> None:
    assert [collapse_standing(value) for value in (0.005, 0.015, 0.03, None)] == ["there", "between", "not there", None]
    assert [minority_standing(value) for value in (0.99, 0.92, 0.5, None)] == ["there", "between", "not there", None]
    assert law_standing(fit_law([8, 4, 2, 1])) == "there"
    assert law_standing(fit_law([8, 3.6, 2, 1.2])) == "between"
    assert law_standing(fit_law([8, 8.5, 2, 2])) == "not there"
    assert law_standing(fit_law([1, 2, 4])) == "not there"
    assert law_standing(fit_law([8, 4])) is None and law_standing(None) is None


def test_sentences() -> None:
    law, none = fit_law([8, 4, 2, 1]), fit_law([8, 8.5, 2, 2])
    found = emergences([1, 2, 3, 4], laws=[none, law, law, law], nc1=[0.5] * 4, minority=[None] * 4)
    assert {what: each.sentence() for what, each in found.items()} == {
        "law": "emerged at epoch 2",
        "collapse": "not there in 4 readings",
        "minority": "cannot be said from these readings",
    }
    assert "r ≤ -0.996" in found["law"].rule and "NC1" in found["collapse"].rule
    again = emerged(range(1, 10), [WORDS[mark] for mark in "+++---+++"], what="law")
    assert again.sentence("step") == "emerged at step 1, lost at step 4, there again since 7"
    early = emerged([1, 2], ["not there", "there"], what="law")
    assert early.sentence() == "not there in 2 readings for sure; seen at epoch 2, to be confirmed"


def test_bad_input() -> None:
    with pytest.raises(InputError, match="one standing per reading; found 1 for 2"):
        emerged([1, 2], ["there"], what="law")
    with pytest.raises(InputError, match="`confirm` is a number of readings, 0 or more; found -1"):
        emerged([1], ["there"], what="law", confirm=-1)
