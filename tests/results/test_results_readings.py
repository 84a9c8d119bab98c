"""Readings by name: the new names, the former ones with a warning, and what is none."""

from __future__ import annotations

import pytest

from equisep.errors import InputError
from equisep.results import READINGS, former_reading, reading_named


@pytest.mark.parametrize("name", READINGS)
def test_names_are_taken_silently(name: str, recwarn: pytest.WarningsRecorder) -> None:
    assert reading_named(name) == name
    assert not recwarn.list


@pytest.mark.parametrize(("former", "name"), [("eval", "eval"), ("batch", "mixed")])
def test_former_names_are_taken_with_a_warning(former: str, name: str) -> None:
    with pytest.warns(FutureWarning, match=f'is now `reading="{name}"`'):
        assert reading_named("eval", mode=former) == name
    assert former_reading(former) == name


def test_batch_as_a_reading_is_mixed() -> None:
    with pytest.warns(FutureWarning, match="mixed"):
        assert reading_named("batch") == "mixed"


@pytest.mark.parametrize("wrong", ["mixt", 3, None, "train"])
def test_others_are_refused(wrong: object) -> None:
    with pytest.raises(InputError, match=r"No reading .* Known: eval, mixed"):
        reading_named(wrong)
