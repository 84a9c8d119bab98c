"""Rows of arrays in parts, one for each thread: the same numbers, whatever classes a part holds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pytest
import torch

from closeness import close, relative_error
from equisep import cdnv, class_fuzziness, fuzziness
from equisep.errors import FeatureError
from equisep.separation import arrays
from equisep.separation.arrays import in_parts
from equisep.separation.site import quick
from equisep.workers import parallel_map
from reference import plain, precise
from reference.scenes import Scene, blobs

SCENES = {
    "in turns": blobs(1, [40] * 5, 12),
    "one class after the other": Scene(
        *(a[np.argsort(blobs(2, [80, 40, 30, 24], 9).y)] for a in blobs(2, [80, 40, 30, 24], 9))
    ),
    "far from zero": blobs(10, [40] * 4, 10, offset=100.0),
}


@dataclass
class Watched:
    """How many parts each step had."""

    parts: list[int] = field(default_factory=list)


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Iterator[Watched]:
    """Three threads, and arrays so small that they are divided; torch has its three threads still when this is over."""
    seen, before = Watched(), torch.get_num_threads()

    def watching(work, items, *, threads):
        seen.parts.append(len(items))
        return parallel_map(work, items, threads=threads)

    monkeypatch.setattr(arrays, "PART_NUMBERS", 64)
    monkeypatch.setattr(arrays, "parallel_map", watching)
    torch.set_num_threads(3)
    try:
        yield seen
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("kind", [np.float64, np.float32])
@pytest.mark.parametrize("scene", SCENES.values(), ids=SCENES.keys())
def test_parts_give_the_numbers_of_the_reference(
    scene: Scene, kind: type, watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = scene.x.astype(kind)
    close(fuzziness(x, scene.y), plain.fuzziness(x.astype(np.float64), scene.y))
    assert watched.parts == [3, 3, 3]  # norms, sums, products
    close(class_fuzziness(x, scene.y), plain.class_fuzziness(x.astype(np.float64), scene.y))
    close(cdnv(x, scene.y), plain.cdnv(x.astype(np.float64), scene.y))
    assert watched.parts == [3] * 9
    monkeypatch.setattr(quick, "pays", lambda d, r: True)  # else so few directions are float64
    assert relative_error(fuzziness(x, scene.y, precision="float32"), fuzziness(x, scene.y)) <= 1e-6


def test_collapsed_classes_keep_their_digits_in_parts(watched: Watched) -> None:
    """Every part has an origin of its own per class; of samples a millionth apart, float64 residuals have ten digits."""
    scene = blobs(3, [30, 40, 30], 4, spread=1e-6)
    close(fuzziness(*scene), precise.fuzziness(*scene), rtol=1e-12)
    assert fuzziness(np.eye(5)[np.arange(200) % 5], np.arange(200) % 5) == 0
    assert watched.parts == [3] * 6


def test_a_number_that_is_none_is_found_in_any_part(watched: Watched) -> None:
    scene = blobs(1, [40] * 5, 12)
    scene.x[150, 3], scene.x[2, 1] = np.nan, np.inf
    with pytest.raises(FeatureError, match=r"^`fuzziness` needs finite features; 2 of 2400 numbers are NaN or Inf\.$"):
        fuzziness(*scene)
    assert watched.parts == [3]


def test_few_numbers_have_one_thread_and_few_rows_of_many_classes_those_of_torch(watched: Watched) -> None:
    few, many = torch.zeros(2, 32), torch.zeros(6, 64)
    assert in_parts(lambda rows: (rows, torch.get_num_threads()), few) == [(slice(0, 2), 1)]
    assert in_parts(lambda rows: (rows, torch.get_num_threads()), many, least=4) == [(slice(0, 6), 3)]
    assert in_parts(lambda rows: (rows, torch.get_num_threads()), many, least=2) == [
        (slice(0, 2), 1),
        (slice(2, 4), 1),
        (slice(4, 6), 1),
    ]
