"""Many classes, more than features: the same numbers as of few, with no K × K × d, no dense one-hot, no K × K of a labeling."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch

import equisep
from closeness import close
from equisep.separation import PAPER, Assignments, SiteTask, TrainSite
from equisep.separation.centers import cdnv_of
from equisep.separation.collapse import centered_means, geometry_of
from equisep.separation.fuzziness import class_fuzziness_of, fuzziness_of
from equisep.separation.pairs.means import cosines_of, nearest_pairs, squared_distances
from equisep.separation.subspace import of_many_rows
from reference import plain


@pytest.fixture
def as_if_many(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """60 classes are many: every rule for many classes is in force, with tiles of a few numbers."""
    for name, value in (
        ("site.second_pass.TOUCHED_CLASSES", 8), ("group_sums.MATMUL_GROUPS", 8), ("subspace.BLOCK_WIDTHS", 2),
        ("nearest.SCREENED", 1), ("nearest.TILE_NUMBERS", 300), ("collapse.TILE_NUMBERS", 300), ("pairs.means.TILE_NUMBERS", 300),
        ("pairs.means.FEW_CLASSES", 8), ("pairs.confusion.DENSE_CLASSES", 8),
    ):  # fmt: skip
        monkeypatch.setattr(f"equisep.separation.{name}", value)
    return


@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
@pytest.mark.usefixtures("as_if_many")
def test_more_classes_than_features_have_the_numbers_of_the_definitions(kind: torch.dtype) -> None:
    rng = np.random.default_rng(0)
    y = np.concatenate([np.arange(60), rng.integers(0, 60, 400)])  # no class is absent, some have few samples
    x = torch.tensor(rng.normal(size=(460, 7)) + 2 * rng.normal(size=(60, 7))[y]).to(kind)
    wide, labels = x.double().numpy(), torch.tensor(y)
    site = TrainSite(SiteTask(60, confusion=True, collapse=True))
    parts, rows = list(x.split(50)), [Assignments(part) for part in labels.split(50)]
    for step in (site.first, site.second):
        for part, row in zip(parts, rows, strict=True):
            step([part], row)
        if site.sums is not None:
            site.turn()
    found = site.statistics()
    close(fuzziness_of(found.spread, PAPER), plain.fuzziness(wide, y))
    close(class_fuzziness_of(found.spread).tolist(), plain.class_fuzziness(wide, y))
    close(cdnv_of(found.spread), plain.cdnv(wide, y))
    assert found.nearest is not None
    assert int(found.nearest.hits.sum()) / 460 == plain.ncc_accuracy(wide, y)
    space = found.spread.subspace
    geometry, means = geometry_of(centered_means(space)), plain.centered_class_means(wide, y)
    assert geometry is not None
    close(geometry.etf_distance, plain.etf_distance(means))
    close(geometry.angle_gap, plain.nc2(means).angle_gap)
    assert [(pair.first, pair.second) for pair in nearest_pairs(space)] == [
        (i, j) for i, j, _ in plain.nearest_pairs(wide, y)
    ]
    assert cosines_of(space) is not None
    close(equisep.fuzziness(x, labels), plain.fuzziness(wide, y))
    assert equisep.ncc_accuracy(x, labels) == plain.ncc_accuracy(wide, y)


@pytest.mark.usefixtures("as_if_many")
@pytest.mark.parametrize("apart", [1e-3, 1e-9])
@pytest.mark.parametrize("together", [2, 40])
def test_near_means_keep_the_digits_of_their_distance(apart: float, together: int) -> None:
    rng = np.random.default_rng(1)
    points = torch.tensor(rng.normal(size=(50, 6)))
    points[:together] = points[0] + apart * torch.tensor(rng.normal(size=(together, 6)))
    expected = (points.unsqueeze(1) - points).square().sum(dim=2)
    for rows, columns, tile in squared_distances(points):
        later = tile.isfinite()
        close(tile[later], expected[rows, columns][later])


def test_the_means_of_many_classes_keep_small_singular_values() -> None:
    rng = np.random.default_rng(2)
    values = 10.0 ** -np.arange(8)
    left, _ = np.linalg.qr(rng.normal(size=(500, 8)))
    right, _ = np.linalg.qr(rng.normal(size=(8, 8)))
    rows = torch.tensor(left * values @ right.T)
    v, s = of_many_rows(rows, torch.ones(500, 1, dtype=torch.float64))
    assert torch.allclose(s, torch.tensor(values), rtol=0, atol=4e-15)
    overlaps = (v.T @ torch.tensor(right)).abs()
    assert torch.allclose(overlaps, torch.eye(8, dtype=torch.float64), atol=1e-7)


def test_beyond_1536_classes_a_profile_says_what_it_leaves_out() -> None:
    generator = torch.Generator().manual_seed(0)
    y = torch.arange(4000) % 2000
    x = torch.randn(4000, 5, generator=generator) + 3 * torch.randn(2000, 5, generator=generator)[y]
    metrics = ("fuzziness", "class_fuzziness", "null", "ncc", "confusion")
    profile = equisep.measure_features({"a": x}, y, coordinates=0, metrics=metrics)
    site = profile.sites[0]
    close(site.fuzziness, equisep.fuzziness(x, y))
    assert site.null is None and site.fuzziness_interval is None and site.confused
    assert not any(name.startswith("class ") for name in profile.laws)
    (note,) = [note for note in profile.notes if note.code == "many-classes"]
    assert note.text == (
        "Left out of 2,000 classes: intervals, the chance level and the law of each class, which are computed up to 1,536 "
        "classes."
    )
