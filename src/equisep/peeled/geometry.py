"""From logits Z back to classifiers W and class-mean features H, and the geometry of both, group by group."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from equisep.display import brief
from equisep.peeled.problem import Problem
from equisep.shapes import Float64

# size against the largest vector below which one is rounding and has no direction; the reduced solver writes zeros
NOTHING = 1e-7


@brief
@dataclass(frozen=True, slots=True)
class GroupGeometry:
    """Norms and cosines of the classifiers (rows of W) and class-mean features (rows of H), by group.

    `classifier_cosines[g][h]` is the cosine between classes of groups g and h, for g = h between two *different* classes
    of the group; `None` where it is undefined: a zero vector, or a group of one class. `ratio` is ‖h_g‖/‖w_g‖.
    `duality_cosines` are the cosines between w_k and h_k. `duality` is ‖W/‖W‖_F − H/‖H‖_F‖_F (NC3 without centring,
    which the optimum does not need), `etf_distance` ‖A/‖A‖_F − (I − 11ᵀ/K)/√(K−1)‖_F for the Gram matrices A of W and of
    H. A group has `vanished` where its vectors are zero, and is `collapsed` where its classifiers coincide.
    """

    classifier_norms: tuple[float, ...]
    feature_norms: tuple[float, ...]
    classifier_cosines: tuple[tuple[float | None, ...], ...]
    feature_cosines: tuple[tuple[float | None, ...], ...]
    duality_cosines: tuple[float | None, ...]
    duality: float
    classifier_etf_distance: float
    feature_etf_distance: float
    collapsed: tuple[bool, ...]
    vanished: tuple[bool, ...]

    def within(self, group: int) -> float | None:
        """The cosine between two classifiers of one group."""
        return self.classifier_cosines[group][group]

    def ratio(self, group: int) -> float | None:
        """The ratio ‖h‖/‖w‖ of one group, √(E_H/E_W) where both are dual; `None` where the classifiers are zero."""
        if self.classifier_norms[group] == 0:
            return None
        return self.feature_norms[group] / self.classifier_norms[group]


@brief
@dataclass(frozen=True, slots=True, eq=False)
class GramBlocks:
    """A K×K matrix that is constant on groups: `same` on the diagonal, `other` elsewhere (Z, WWᵀ, HHᵀ, HWᵀ all are)."""

    same: Float64[np.ndarray, " g"]
    other: Float64[np.ndarray, "g g"]


def expand(problem: Problem, s: Float64[np.ndarray, " g"], M: Float64[np.ndarray, "g g"]) -> Float64[np.ndarray, "k k"]:
    """The K×K matrix of the reduced form: Z_kj = s_g[k=j] + c_gh, c_gh = (M_gh − s_g[g=h])/√(k_g k_h)."""
    blocks = blocks_of(problem, s, M)
    groups = problem.class_groups
    Z: Float64[np.ndarray, "k k"] = blocks.other[np.ix_(groups, groups)]
    np.fill_diagonal(Z, blocks.same[groups])
    return Z


def blocks_of(problem: Problem, s: Float64[np.ndarray, " g"], M: Float64[np.ndarray, "g g"]) -> GramBlocks:
    """The two numbers a pair of groups has in the K×K matrix of a reduced form."""
    k = np.asarray(problem.group_sizes, dtype=np.float64)
    other = (M - np.diag(s)) / np.sqrt(np.outer(k, k))
    return GramBlocks(same=s + np.diag(other), other=other)


def factors_of_reduced(
    problem: Problem, s: Float64[np.ndarray, " g"], M: Float64[np.ndarray, "g g"]
) -> tuple[Float64[np.ndarray, "k k"], Float64[np.ndarray, "k k"]]:
    """W and H (classes in rows) with Z = H Wᵀ, from the small singular value decomposition M = UΣVᵀ alone.

    W = (E_W/E_H)^¼ (√s_g on the sum-zero vectors of group g, VΣ^½Vᵀ on the group means), H with UΣ^½Vᵀ: equal to
    V S^½ and U S^½ of the K×K matrix up to one rotation of both.
    """
    U, sigma, Vt = np.linalg.svd(M)
    tilt = (problem.weight_energy / problem.feature_energy) ** 0.25
    roots = np.sqrt(np.maximum(s, 0.0))
    W = tilt * expand(problem, roots, (Vt.T * np.sqrt(sigma)) @ Vt)
    H = expand(problem, roots, (U * np.sqrt(sigma)) @ Vt) / tilt
    return W, H


def factors_of_dense(
    problem: Problem, Z: Float64[np.ndarray, "k k"]
) -> tuple[Float64[np.ndarray, "k k"], Float64[np.ndarray, "k k"]]:
    """W = (E_W/E_H)^¼ V S^½ and H = (E_H/E_W)^¼ U S^½ (classes in rows) of Z = U S Vᵀ = H Wᵀ."""
    U, sigma, Vt = np.linalg.svd(Z)
    tilt = (problem.weight_energy / problem.feature_energy) ** 0.25
    return tilt * Vt.T * np.sqrt(sigma), U * np.sqrt(sigma) / tilt


def geometry_of_reduced(problem: Problem, s: Float64[np.ndarray, " g"], M: Float64[np.ndarray, "g g"]) -> GroupGeometry:
    """The geometry of a reduced form; cost independent of K.

    WWᵀ = √(E_W/E_H) (ZᵀZ)^½ is s_g on the sum-zero vectors of group g and T = VΣVᵀ on the group means, HHᵀ = √(E_H/E_W)
    (ZZᵀ)^½ is s_g and UΣUᵀ: with t_g = (k_g−1)s_g + T_gg, ‖w_g‖² = √(E_W/E_H) t_g/k_g, the cosine within g is
    (T_gg − s_g)/t_g, between g and h T_gh/√(t_g t_h).
    """
    U, sigma, Vt = np.linalg.svd(M)
    tilt = np.sqrt(problem.weight_energy / problem.feature_energy)
    classifiers = blocks_of(problem, tilt * s, tilt * (Vt.T * sigma) @ Vt)
    features = blocks_of(problem, s / tilt, (U * sigma) @ U.T / tilt)
    # W and H differ in V and U alone; 1 − cos of the angle between them would lose half the digits
    duality = np.sqrt((((U - Vt.T) ** 2) @ sigma).sum() / problem.budget)
    crossed = blocks_of(problem, s, M)
    return _geometry(problem, classifiers, features, crossed, duality=float(duality), collapsed=s == 0, nothing=NOTHING)


def geometry_of_factors(
    problem: Problem, W: Float64[np.ndarray, "k p"], H: Float64[np.ndarray, "k p"], *, tolerance: float
) -> GroupGeometry:
    """The geometry of any W and H (classes in rows), each pair of groups by its mean over pairs of classes.

    Solvers without the groups built in leave s_g ≈ 0 where it is 0: a group counts as collapsed where its classifiers
    differ by at most `tolerance` of the largest classifier, as vanished where they are no longer than that.
    """
    means = [_block_means(problem, left, right) for left, right in ((W, W), (H, H), (H, W))]
    classifiers, features, crossed = means
    spread = np.sqrt(np.maximum(classifiers.same - np.diag(classifiers.other), 0.0))
    largest = np.sqrt(classifiers.same.max(initial=0.0))
    duality = float(np.linalg.norm(W / np.linalg.norm(W) - H / np.linalg.norm(H)))
    collapsed = spread <= tolerance * largest
    return _geometry(problem, classifiers, features, crossed, duality=duality, collapsed=collapsed, nothing=tolerance)


def _block_means(problem: Problem, left: Float64[np.ndarray, "k p"], right: Float64[np.ndarray, "k p"]) -> GramBlocks:
    """Means of ⟨l_k, r_k⟩ over classes of a group and of ⟨l_k, r_j⟩ over pairs of different classes of two groups."""
    groups, k = problem.class_groups, np.asarray(problem.group_sizes, dtype=np.float64)
    own = np.bincount(groups, weights=(left * right).sum(axis=1), minlength=problem.groups)
    onto = np.eye(problem.groups)[groups]  # k g
    sums = (onto.T @ left) @ (onto.T @ right).T
    pairs = np.outer(k, k) - np.diag(k)
    other = (sums - np.diag(own)) / np.where(pairs == 0, 1.0, pairs)
    return GramBlocks(same=own / k, other=other)


def _geometry(
    problem: Problem,
    classifiers: GramBlocks,
    features: GramBlocks,
    crossed: GramBlocks,
    *,
    duality: float,
    collapsed: np.ndarray,
    nothing: float,
) -> GroupGeometry:
    k = np.asarray(problem.group_sizes, dtype=np.float64)
    single = k == 1
    norms, absent, cosines = [], [], []
    for gram in (classifiers, features):
        square = np.maximum(gram.same, 0.0)
        zero = square <= nothing**2 * square.max(initial=0.0)
        norms.append(np.where(zero, 0.0, np.sqrt(square)))
        absent.append(zero)
        cosines.append(_cosines(gram, zero, single))
    vanished = absent[0] & absent[1]
    sizes = np.where(absent[0] | absent[1], 1.0, norms[0] * norms[1])
    angles = np.clip(crossed.same / sizes, -1.0, 1.0)
    return GroupGeometry(
        classifier_norms=tuple(norms[0].tolist()),
        feature_norms=tuple(norms[1].tolist()),
        classifier_cosines=cosines[0],
        feature_cosines=cosines[1],
        duality_cosines=tuple(
            None if gone else float(angle) for gone, angle in zip(absent[0] | absent[1], angles, strict=True)
        ),
        duality=duality,
        classifier_etf_distance=_etf_distance(classifiers, k),
        feature_etf_distance=_etf_distance(features, k),
        collapsed=tuple((collapsed & ~vanished & ~single).tolist()),
        vanished=tuple(vanished.tolist()),
    )


def _cosines(gram: GramBlocks, zero: np.ndarray, single: np.ndarray) -> tuple[tuple[float | None, ...], ...]:
    norms = np.sqrt(np.where(zero, 1.0, np.maximum(gram.same, 0.0)))
    cosines = np.clip(gram.other / np.outer(norms, norms), -1.0, 1.0)
    undefined = zero[:, None] | zero[None, :] | np.diag(single)
    return tuple(
        tuple(None if absent else float(cosine) for cosine, absent in zip(row, gone, strict=True))
        for row, gone in zip(cosines, undefined, strict=True)
    )


def _etf_distance(gram: GramBlocks, k: Float64[np.ndarray, " g"]) -> float:
    """‖A/‖A‖_F − (I − 11ᵀ/K)/√(K−1)‖_F summed over blocks, the entries of each being equal."""
    classes = k.sum()
    pairs = np.outer(k, k) - np.diag(k)
    size = np.sqrt((k * gram.same**2).sum() + (pairs * gram.other**2).sum())
    same = gram.same / size - (1 - 1 / classes) / np.sqrt(classes - 1)
    other = gram.other / size + 1 / classes / np.sqrt(classes - 1)
    return float(np.sqrt((k * same**2).sum() + (pairs * other**2).sum()))
