"""A training has settled when nothing gets better any more, all three numbers together."""

from __future__ import annotations

import pytest

from equisep.errors import InputError
from equisep.tracking import Stopping
from equisep.tracking.stopping import Watched

RULE = Stopping(window=3)


def readings(rho: list[float | None], d: list[float | None], ncc: list[float | None]) -> list[Watched]:
    return [Watched(n, *each) for n, each in enumerate(zip(rho, d, ncc, strict=True), start=1)]


def test_it_takes_a_window_of_readings() -> None:
    few = RULE.settled(readings([0.5] * 3, [0.1] * 3, [1.0] * 3))
    assert not few and few.reason == "3 of the 4 readings that it takes."
    settled = RULE.settled(readings([0.5] * 4, [0.1] * 4, [1.0] * 4))
    assert settled and settled.since == 1
    assert settled.reason.startswith("Since epoch 1 neither ρ (0.5) got lower by more than 0.005, nor D")
    assert not Stopping(window=3, least=9).settled(readings([0.5] * 8, [0.1] * 8, [1.0] * 8))


@pytest.mark.parametrize(
    ("name", "values"),
    [("rho", [0.5, 0.5, 0.5, 0.49]), ("d", [0.1, 0.1, 0.1, 0.09]), ("ncc", [0.9, 0.9, 0.9, 0.91])],
)
def test_any_one_that_still_gets_better_goes_on(name: str, values: list[float | None]) -> None:
    still: dict[str, list[float | None]] = {"rho": [0.5] * 4, "d": [0.1] * 4, "ncc": [0.9] * 4}
    answer = RULE.settled(readings(**{**still, name: values}))
    assert not answer and answer.reason.startswith("Still better in the last 3 readings: ")


def test_nearest_centers_are_told_in_percent_and_of_which_data() -> None:
    watched = [Watched(n, 0.5, 0.1, ncc, tested=True) for n, ncc in enumerate([0.9, 0.9, 0.9, 0.91], start=1)]
    assert RULE.settled(watched).reason.endswith("nearest-center accuracy on test data from 90 to 91 %.")


def test_noise_below_the_tolerance_and_what_gets_worse_settle() -> None:
    assert RULE.settled(readings([0.5, 0.52, 0.499, 0.6], [0.1, 0.2, 0.097, 0.3], [0.9, 0.8, 0.901, 0.7]))


def test_a_number_that_does_not_exist_settles_nothing() -> None:
    answer = RULE.settled(readings([0.5, 0.5, None, 0.5], [0.1] * 4, [1.0] * 4))
    assert not answer and answer.reason == "ρ does not exist in all of the last 3 readings."


@pytest.mark.parametrize("options", [{"window": 0}, {"least": -1}, {"rho": -0.1}, {"ncc": 1.0}, {"fuzziness": "x"}])
def test_bad_tolerances(options: dict[str, object]) -> None:
    with pytest.raises(InputError, match=f"`{next(iter(options))}` of `Stopping` is a"):
        Stopping(**options)  # type: ignore[arg-type]
