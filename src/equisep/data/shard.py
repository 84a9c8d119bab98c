"""Shard: which batches of the data are read here, and what number every sample has in the whole."""

from __future__ import annotations

import re
from dataclasses import dataclass

from equisep.errors import InputError


@dataclass(frozen=True, slots=True)
class Shard:
    """One of `count` parts of the data: the batches `index`, `index + count`, … of the whole, counted from 0.

    Whole batches are dealt out, those that one process would read, so that features are the same to the last bit and
    BatchNorm sees the same company. None is padded or read twice; a shard may be empty.
    """

    index: int
    count: int

    @staticmethod
    def of(text: str) -> Shard:
        """`3/64` is the third of 64."""
        match = re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", text.strip())
        if match is None or not 1 <= int(match[1]) <= int(match[2]):
            raise InputError(
                f"`--shard` takes I/N, such as 3/64, with I from 1 to N; found `{text}`. A job array that counts from 0 adds 1."
            )
        return Shard(int(match[1]) - 1, int(match[2]))

    def __str__(self) -> str:
        return f"{self.index + 1}/{self.count}"


@dataclass(frozen=True, slots=True)
class Numbering:
    """What number the samples of a part have in the whole: `first`, `first + step`, … in the order read.

    `own` is how many of them are the part's own, where more come: a sampler that deals out equal parts repeats samples.
    """

    first: int = 0
    step: int = 1
    own: int | None = None
