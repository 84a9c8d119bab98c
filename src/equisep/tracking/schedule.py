"""Schedule: the epochs or steps of a loop, counted, and which of them are read."""

from __future__ import annotations

from numbers import Integral
from typing import Any

from equisep.errors import InputError
from equisep.tracking.history import Entry, Unit


class Schedule:
    """Counts epochs, or steps and the epochs beside them, and says which calls are due: one in `every`.

    `last` is everywhere the latest reading of the history, where there is one.
    """

    def __init__(self, every: int, last: Entry | None) -> None:
        self.every = every
        self.unit: Unit | None = None if last is None else last.unit
        self.number = 0 if last is None else last.number
        self.epochs = _epochs_at(last)
        self._begun = False  # whether a call was counted, or a number told to go on from
        self._passed: int | None = 0  # calls since the latest that was due; None where they are not known

    @property
    def named(self) -> Unit:
        """What is counted: epochs, where nothing has been counted yet."""
        return self.unit or "epoch"

    def count(self, number: int | None, last: Entry | None) -> bool:
        """One epoch (or step) more; whether it is to be read.

        By the number itself, so that a training that was resumed is read where it would have been without. Where numbers
        advance by more than one, as those of batches do whose gradients are summed up, calls are counted.
        """
        before, self.number = self.number, self.number + 1 if number is None else checked_number(number)
        ahead = self.number - before
        if self._begun and ahead > 1:
            if self._passed is None:  # resumed: as many calls as fit between the latest reading and there, by this one
                self._passed = 0 if last is None else (before - last.number) // ahead
            due = self._passed + 1 >= self.every
        else:
            due = self.number % self.every == 0
        self._begun, self._passed = True, 0 if due else (self._passed or 0) + 1
        return due

    def count_epoch(self, number: int | None) -> None:
        """One epoch more, where steps are what is numbered."""
        self.epochs = self.epochs + 1 if number is None else checked_number(number)

    def resume(self, number: int, epochs: int | None, last: Entry | None, *, passed: int | None) -> bool:
        """Go on after `number`, with `passed` calls since the latest that was due, where they are known.

        Whether `number` itself was due.
        """
        self.number, self._begun, self._passed = number, True, passed
        if last is None and not number:
            self.unit, self._passed = None, 0
        self.epochs = _epochs_at(last) if epochs is None else checked_number(epochs)
        return number > 0 and (number % self.every == 0 if passed is None else passed == 0)

    def state_dict(self) -> dict[str, Any]:
        """What to put into a checkpoint."""
        return {"number": self.number, "unit": self.unit, "epochs": self.epochs, "passed": self._passed}


def _epochs_at(last: Entry | None) -> int:
    return 0 if last is None else last.epoch or 0


def checked_count(name: str, value: Any) -> int:
    """`every` or `per_class`, as an int."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        words = "counts epochs or steps" if name == "every" else "is a number of samples"
        raise InputError(f"`{name}` {words}, 1 or more; found {value!r}.")
    return int(value)


def checked_number(number: Any) -> int:
    """The number of an epoch or step, as an int."""
    if isinstance(number, bool) or not isinstance(number, Integral) or number < 0:
        raise InputError(f"Epochs and steps are whole numbers from 0 on; found {number!r}.")
    return int(number)
