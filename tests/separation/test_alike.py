"""Sites done at once have the numbers that each has alone, where all were read at once on a GPU: forced here, on the CPU."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from equisep.separation import Assignments, TrainSite, alike
from equisep.separation.alike import cdnv_of_sites, geometry_of_sites
from equisep.separation.centers import cdnv_of
from equisep.separation.collapse import centered_means, geometry_of
from equisep.separation.site import SiteTask, Spread, train_and_test, whole_sites

WIDTHS = (40, 40, 40, 25, 25, 5, 2)  # the last ones have fewer directions than others


def sites(y: Tensor, *, classes: int, seed: int = 0) -> list[list[Tensor]]:
    draw = torch.Generator().manual_seed(seed)
    means = [torch.randn(classes, width, generator=draw) for width in WIDTHS]
    return [
        [mean[y] + torch.rand((), generator=draw) * torch.randn(len(y), mean.shape[1], generator=draw)]
        for mean in means
    ]


def read(y: Tensor, parts: list[list[Tensor]], *, classes: int) -> list[Spread]:
    task = SiteTask(classes=classes)
    return [each.spread for each in whole_sites([TrainSite(task) for _ in parts], parts, Assignments(y))]


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(train_and_test, "few_on_gpu", lambda features, classes: True)


@pytest.mark.parametrize("classes", [2, 3, 10, 26])
@pytest.mark.parametrize("absent", [False, True])
def test_all_sites_at_once_are_each_alone(classes: int, absent: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    y = torch.arange(150) % classes
    if absent and classes > 2:
        y = torch.where(y == 1, 0, y)
    spreads = read(y, sites(y, classes=classes), classes=classes)
    alone = [cdnv_of(each) for each in spreads], [geometry_of(centered_means(each.subspace)) for each in spreads]
    done: list[int] = []
    for name in ("_cdnv", "_geometry"):
        several = getattr(alike, name)
        monkeypatch.setattr(alike, name, lambda group, several=several: done.append(len(group)) or several(group))
    assert (cdnv_of_sites(spreads), geometry_of_sites(spreads)) == alone
    assert max(done) > 2 and all(value is not None for values in alone for value in values)


def test_a_site_whose_numbers_do_not_exist_leaves_the_others_theirs() -> None:
    y = torch.arange(150) % 6
    parts = sites(y, classes=6)
    for x in parts[1]:
        x[y == 2] = x[y == 3]  # two class means coincide
    for x in parts[2]:
        x.zero_().add_(torch.eye(6, x.shape[1])[y - (y == 5).long()] * 5).add_(torch.eye(6, x.shape[1])[0])
    spreads = read(y, parts, classes=6)
    found = cdnv_of_sites(spreads)
    assert found == [cdnv_of(each) for each in spreads]
    assert found[1] is None and found[2] is None and found[0] is not None
    geometries = geometry_of_sites(spreads)
    assert geometries == [geometry_of(centered_means(each.subspace)) for each in spreads]


def test_sites_that_were_not_read_at_once_are_done_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(train_and_test, "few_on_gpu", lambda features, classes: False)
    monkeypatch.setattr(alike, "_cdnv", lambda group: pytest.fail("their class sizes are tensors of their own"))
    y = torch.arange(60) % 3
    spreads = read(y, sites(y, classes=3), classes=3)
    assert cdnv_of_sites(spreads) == [cdnv_of(each) for each in spreads]
