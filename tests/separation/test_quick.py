"""Products in float32: the bound on D is never exceeded, small on ordinary data, and float64 is taken where it is not."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch

from closeness import relative_error
from equisep import fuzziness
from equisep.separation.site import quick, rounding_bound
from equisep.separation.site.quick import QuickProducts, pays
from equisep.separation.site.rounding_bound import COMBINATIONS, FAILURE, smallest_share
from reference.scenes import Scene, blobs, with_singular_values


class Asked:
    """The float32 products of one call, and what they were said to be off by when they were last trusted."""

    def __init__(self) -> None:
        self.products: list[QuickProducts] = []

    @property
    def rows(self) -> int:
        """Rows that float32 served."""
        return sum(each.rows for each in self.products)

    @property
    def bound(self) -> float:
        """The largest bound of all threads."""
        bounds = [each.bound.relative(each.combinations) for each in self.products if each.bound is not None]
        return max(bounds, default=0.0)

    def of(self, x: np.ndarray, y: np.ndarray, **options: str) -> float:
        """The error of D by float32."""
        self.products.clear()
        return relative_error(fuzziness(x, y, precision="float32", **options), fuzziness(x, y, **options))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[Asked]:
    """Float32 asked of few directions as well, of which it is not worth its proof."""
    seen, begin = Asked(), QuickProducts.__init__

    def beginning(self, *rest, **named) -> None:
        begin(self, *rest, **named)
        seen.products.append(self)

    monkeypatch.setattr(QuickProducts, "__init__", beginning)
    monkeypatch.setattr(quick, "pays", lambda d, r: True)
    yield seen
    seen.products.clear()


def turned(x: np.ndarray, seed: int = 20) -> np.ndarray:
    """Features in other axes, so that no direction is one of them."""
    q, _ = np.linalg.qr(np.random.default_rng(seed).standard_normal((x.shape[1], x.shape[1])))
    return x @ q


def drowned(wide: float, *, size: int = 800, rows: slice = slice(None)) -> Scene:
    """Classes differ and spread along 40 features; 40 others spread by `wide` of some rows, and their class means by nothing."""
    scene = blobs(19, [size] * 5, 40, spread=1e-3)
    other = np.zeros((len(scene.x), 40))
    other[rows] = wide * np.random.default_rng(20).standard_normal(other[rows].shape)
    for k in range(5):
        mine = (scene.y == k) & other.any(axis=1)
        other[mine] -= other[mine].mean(axis=0) if mine.any() else 0
    return Scene(turned(np.hstack([scene.x, other])), scene.y)


def in_turns() -> Scene:
    """Sixteen classes in turns, one of which has a spread that float32 drowns in."""
    scene, generator = blobs(19, [500] * 16, 40, spread=1e-3), np.random.default_rng(20)
    order = np.argsort(scene.y).reshape(16, 500).T.ravel()
    x, y = scene.x[order], scene.y[order]
    wide = 1e5 * generator.standard_normal((len(y), 40)) * (y == 5)[:, None]
    wide[y == 5] -= wide[y == 5].mean(axis=0)
    return Scene(turned(np.hstack([x, wide])), y)


def giant() -> Scene:
    """One row a million times as long as all others."""
    scene = blobs(3, [400] * 6, 30)
    scene.x[1234] *= 1e6
    return scene


def one_sided() -> Scene:
    """Residuals ±m(1 + 0.49 · 2⁻²⁴) with m of few bits, which float32 makes shorter, every one of them; means are exact."""
    generator = np.random.default_rng(5)
    half = generator.integers(2**10, 2**11, size=(600, 24)) * generator.choice([-1.0, 1.0], size=(600, 24))
    half *= 1 + 0.49 * 2.0**-24
    y = np.arange(600) % 4
    means = 2.0**14 * np.eye(4, 24)
    return Scene(np.vstack([means[y] + half, means[y] - half]), np.concatenate([y, y]))


ADVERSE = {
    "random": blobs(1, [300] * 8, 60),
    "unequal classes": blobs(2, [900, 400, 90, 9, 2, 1], 40),
    "far from zero": blobs(10, [300] * 5, 40, spread=1e-2, offset=1e4),
    "one giant row": giant(),
    "rounded the same way": one_sided(),
    "spread beside the directions": drowned(0.1),
    "drowned": drowned(1e3),
    "drowned in the end": drowned(1e3, rows=slice(3500, None)),
    "one class of sixteen": in_turns(),
    "three decades": with_singular_values(list(np.logspace(0, -3, 9)), [200] * 10, 40, spread=0.1, seed=4),
}


@pytest.mark.parametrize("weighting", ["sample", "class"])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("scene", ADVERSE.values(), ids=ADVERSE.keys())
def test_no_bound_is_exceeded(
    scene: Scene, kind: type, weighting: str, asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = scene.x.astype(kind)
    error = asked.of(x, scene.y, weighting=weighting)
    assert error <= asked.bound + 1e-12
    assert asked.bound <= 1e-6
    for most in (1e-3, np.inf):  # float32 taken where it should not be: what is said of it is true all the same
        monkeypatch.setattr(quick, "QUICK_ERROR", most)
        error = asked.of(x, scene.y, weighting=weighting)
        assert error <= asked.bound + 1e-12


def test_rounding_the_same_way_is_seen_and_not_averaged_away(asked: Asked) -> None:
    error = asked.of(*one_sided())
    assert asked.rows == 1200
    assert 5e-8 < error <= asked.bound <= 1e-6


@pytest.mark.parametrize("wide", [10.0, 1e3, 1e5])
def test_float64_is_taken_at_once_where_rows_are_nearly_orthogonal_to_all_directions(wide: float, asked: Asked) -> None:
    scene = drowned(wide)
    for kind in (np.float32, np.float64):
        assert asked.of(scene.x.astype(kind), scene.y) == 0
        assert asked.rows == 0


def test_float64_is_taken_from_the_block_on_that_fails(asked: Asked) -> None:
    scene = drowned(1e4, size=8000, rows=slice(30_000, None))
    error = asked.of(*scene)
    assert 0 < asked.rows < len(scene.y)
    assert 0 < error <= 1e-6


@pytest.mark.parametrize(("n", "d", "classes"), [(4000, 700, 400), (3000, 1024, 200)])
def test_ordinary_data_are_all_served_by_float32(n: int, d: int, classes: int, asked: Asked) -> None:
    assert pays(d, classes - 1)
    generator = np.random.default_rng(7)
    y = np.arange(n) % classes
    x = generator.standard_normal((classes, d))[y] + 0.3 * generator.standard_normal((n, d))
    error = asked.of(x.astype(np.float32), y)
    assert asked.rows == n
    assert 0 < error <= asked.bound <= 6e-7


def test_few_directions_are_left_to_float64() -> None:
    assert not pays(4096, 9)
    assert not pays(256, 199)
    scene = blobs(1, [300] * 8, 60)
    assert fuzziness(*scene, precision="float32") == fuzziness(*scene)


def test_directions_that_rounding_may_cut_are_left_to_float64(asked: Asked) -> None:
    """The bound is about D along all directions: one that may be cut would hide what happens along the others."""
    scene = with_singular_values([1.0, 0.5, 0.3, 3e-6], [200] * 5, 12, spread=0.1, seed=4)
    x = (scene.x + 5.0).astype(np.float32)
    assert asked.of(x, scene.y) == 0
    assert asked.rows == 0
    assert asked.of(x, scene.y, tol=0.4) == 0
    assert asked.rows == 0


def test_numbers_beyond_float32_are_left_to_float64(asked: Asked) -> None:
    scene = blobs(1, [300] * 8, 60)
    for scale in (1e38, 1e42, 1e-42):
        assert asked.of(scale * scene.x, scene.y) <= 1e-6
        assert asked.bound <= 1e-6


def test_classes_of_one_sample_or_of_one_point_have_nothing_to_lose(asked: Asked) -> None:
    assert asked.of(np.eye(40)[np.arange(400) % 40], np.arange(400) % 40) == 0


def test_the_seed_is_no_part_of_the_data(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same call gives the same number; other seeds other bounds, every one above the error."""
    scene, bounds = blobs(1, [300] * 8, 60), set()
    x = scene.x.astype(np.float32)
    assert fuzziness(x, scene.y, precision="float32") == fuzziness(x, scene.y, precision="float32")
    for seed in range(40):
        monkeypatch.setattr(rounding_bound, "SEED", seed)
        assert asked.of(x, scene.y) <= asked.bound
        bounds.add(asked.bound)
    assert len(bounds) == 40
    assert max(bounds) < 10 * min(bounds)


@pytest.mark.parametrize("rank", [1, 5, 100])
@pytest.mark.parametrize("failure", [0.3, 0.03, 0.003])
def test_traces_are_seldom_larger_than_their_estimates_say(rank: int, failure: float) -> None:
    """(1/h) Σ zᵀMz < ε tr M with probability (ε e^{1−ε})^{h/2} at most."""
    share, draws = smallest_share(failure), 20_000
    assert (share * np.exp(1 - share)) ** (COMBINATIONS / 2) == pytest.approx(failure)
    normal = np.random.default_rng(rank).chisquare(COMBINATIONS, size=(draws, rank)) / COMBINATIONS
    weights = np.arange(1, rank + 1) / (rank * (rank + 1) / 2)
    assert (normal @ weights < share).mean() <= failure + 4 * np.sqrt(failure / draws)


@pytest.mark.parametrize("signs", [(1.0,), (1.0, -1.0), (3.0, -1.0, -1.0, -1.0)])
@pytest.mark.parametrize("tail", [1.0, 3.0, 5.0])
def test_estimates_of_traces_are_seldom_further_off_than_said(signs: tuple[float, ...], tail: float) -> None:
    eigenvalues, draws = np.array(signs), 20_000
    normal = np.random.default_rng(3).chisquare(COMBINATIONS, size=(draws, len(signs))) / COMBINATIONS
    off = np.abs((normal - 1) @ eigenvalues) / np.linalg.norm(eigenvalues)
    said = 2 * np.sqrt(tail / COMBINATIONS) + 2 * tail / COMBINATIONS
    assert (off > said).mean() <= 2 * np.exp(-tail) + 4 * np.sqrt(2 * np.exp(-tail) / draws)


def test_the_failures_of_all_blocks_add_up_to_one_in_a_million(asked: Asked) -> None:
    scene = blobs(1, [3000] * 8, 60)
    asked.of(scene.x.astype(np.float32), scene.y)
    (only,) = asked.products
    assert only.bound is not None
    assert only.rows == 24_000
    assert only.bound.failure < FAILURE
    assert torch.equal(only.combinations.shares, torch.full((8,), 1 / 24_000, dtype=torch.float64))
