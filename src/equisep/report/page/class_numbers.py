"""The numbers of the page's drawings of classes: D per class, class means and their cosines, samples on two components."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from equisep.report.page.subject import Subject
from equisep.results import ClassCosines, Coordinates
from equisep.shapes import Float64

MOST_MATRICES = 24  # layers whose cosines are drawn; of more an even choice
MOST_POINTS = 40_000  # samples drawn over all layers (and epochs) of the page
GRID = 1000  # samples are drawn to a thousandth of the greatest coordinate


def class_numbers(subject: Subject) -> dict[str, Any]:
    """The classes that are drawn, the hardest first."""
    profile, shown = subject.profile, subject.shown_classes
    rows = [site.class_fuzziness for site in profile.sites]
    per_class = None
    if any(row is not None for row in rows):
        per_class = [[None if row is None else short(row[kind]) for row in rows] for kind in shown]
    last = subject.last
    return {
        "total": profile.classes,
        "shown": shown,
        "names": [subject.class_names[kind] for kind in shown],
        "counts": [profile.counts[kind] for kind in shown],
        "rare": [kind in subject.rare for kind in shown],
        "lost": [kind in subject.lost for kind in shown],
        "fuzziness": per_class,
        "ncc_train": _chosen(None if last is None else last.ncc_class_train, shown),
        "ncc_test": _chosen(None if last is None else last.ncc_class_test, shown),
        "accuracy_train": _chosen(profile.accuracy_class_train, shown),
        "accuracy_test": _chosen(profile.accuracy_class_test, shown),
    }


def cosine_numbers(subject: Subject) -> dict[str, Any] | None:
    """Cosines between the centered means of the classes that are drawn, layer by layer; None where they were not kept."""
    every = _with_rows(subject)
    layers = evenly(every, MOST_MATRICES)
    if not layers:
        return None
    kinds = sorted(subject.shown_classes)
    matrices = []
    for layer in layers:
        cosines = _cosines(subject, layer)
        matrices.append(
            [[_rounded(cosines.between(one, other), 3) for other in kinds[:i]] for i, one in enumerate(kinds) if i]
        )
    return {
        "etf": -1 / (subject.profile.classes - 1),
        "classes": kinds,
        "names": [subject.class_names[kind] for kind in kinds],
        "layers": layers,
        "left_out": len(every) - len(layers),
        "rows": matrices,
    }


def space_numbers(subject: Subject) -> dict[str, Any] | None:
    """The directions of the centered class means on three dimensions, from their cosines; None where these were not kept.

    The cosines of K unit vectors are their Gram matrix G = VΛVᵀ, so that the rows of VΛ^½ are the vectors up to a rotation;
    the three columns of the largest eigenvalues show the most of them. Each layer is turned onto the one after it (orthogonal
    Procrustes), so that a class moves as little as it can from layer to layer. The simplex ETF of neural collapse, its Gram
    matrix (K I − 11ᵀ)/(K − 1), is turned onto the last layer.
    """
    layers = evenly(_with_rows(subject), MOST_MATRICES)
    if not layers:
        return None
    kinds = sorted(subject.shown_classes)
    grams = [_gram(_cosines(subject, layer), subject.profile.classes) for layer in layers]
    shown = np.asarray(kinds)
    points: list[Float64[np.ndarray, "k three"]] = []
    for gram in reversed(grams):
        here = _three_dimensions(gram)
        points.insert(0, _turned(here, points[0]) if points else here)
    simplex = _simplex_on(points[-1])
    return {
        "classes": kinds,
        "names": [subject.class_names[kind] for kind in kinds],
        "layers": layers,
        "points": [_point_rows(here[shown], np.diag(gram)[shown]) for here, gram in zip(points, grams, strict=True)],
        "etf": _point_rows(simplex[shown], np.ones(len(shown))),
        "kept": [
            _rounded(float((here**2).sum() / max(np.trace(gram), 1)), 4)
            for here, gram in zip(points, grams, strict=True)
        ],
    }


def map_numbers(subject: Subject, *, most: int = MOST_POINTS) -> dict[str, Any] | None:
    """Samples on two principal components, layer by layer; None where the profile holds none."""
    sites = [
        (layer, site.coordinates) for layer, site in enumerate(subject.profile.sites) if site.coordinates is not None
    ]
    if not sites:
        return None
    chosen = points_drawn(sites[0][1], most // len(sites))
    labels = [sites[0][1].labels[number] for number in chosen]
    alike = [(layer, each) for layer, each in sites if each.labels == sites[0][1].labels]
    kinds = sorted(set(labels))
    return {
        "labels": labels,
        "classes": kinds,
        "names": [subject.class_names[kind] if kind < len(subject.class_names) else str(kind) for kind in kinds],
        "layers": [layer for layer, _ in alike],
        "points": mirrored([on_grid(each, chosen) for _, each in alike]),
        "explained": [[_rounded(share, 4) for share in each.explained] for _, each in alike],
        "left_out": len(sites[0][1].labels) - len(chosen),
    }


def points_drawn(coordinates: Coordinates, most: int) -> list[int]:
    """Which samples are drawn: all, or of many an even choice."""
    return evenly(range(len(coordinates.labels)), max(most, 1))


def on_grid(coordinates: Coordinates, chosen: Sequence[int]) -> list[int]:
    """X and y of the chosen samples one after the other, in thousandths of the greatest coordinate."""
    points = [coordinates.points[number] for number in chosen]
    greatest = max((abs(part) for point in points for part in point), default=0.0) or 1.0
    return [round(GRID * part / greatest) for point in points for part in point]


def mirrored(frames: Sequence[list[int]]) -> list[list[int]]:
    """Frames of samples, each axis mirrored where that brings it nearer to the frame after: a component has no sign."""
    after: list[list[int]] = []
    for frame in reversed(frames):
        here = list(frame)
        for axis in (0, 1) if after else ():
            if sum(one * other for one, other in zip(here[axis::2], after[0][axis::2], strict=True)) < 0:
                here[axis::2] = [-part for part in here[axis::2]]
        after.insert(0, here)
    return after


def short(value: float | None, digits: int = 4) -> float | None:
    """A number to a few digits, as a drawing needs it."""
    return None if value is None or not math.isfinite(value) else float(f"{value:.{digits}g}")


def _rounded(value: float | None, places: int) -> float | None:
    return None if value is None or not math.isfinite(value) else round(value, places)


def _chosen(values: Sequence[float | None] | None, kinds: Sequence[int]) -> list[float | None] | None:
    return None if values is None else [values[kind] for kind in kinds]


def evenly(entries: Sequence[int], most: int) -> list[int]:
    """All entries, or `most` of them evenly spread, the first and the last among them."""
    if len(entries) <= most:
        return list(entries)
    if most == 1:
        return [entries[-1]]
    return [entries[round(step * (len(entries) - 1) / (most - 1))] for step in range(most)]


def _with_rows(subject: Subject) -> list[int]:
    """The positions of the layers whose cosines were all kept."""
    sites = subject.profile.sites
    return [layer for layer, site in enumerate(sites) if site.cosines is not None and site.cosines.rows is not None]


def _cosines(subject: Subject, layer: int) -> ClassCosines:
    cosines = subject.profile.sites[layer].cosines
    assert cosines is not None
    return cosines


def _gram(cosines: ClassCosines, classes: int) -> Float64[np.ndarray, "k k"]:
    """The cosines as a matrix; a class without a mean of its own has a row of zeros."""
    gram = np.zeros((classes, classes))
    known = np.zeros(classes, dtype=bool)
    for i, row in enumerate(cosines.rows or (), start=1):
        for j, value in enumerate(row):
            if value is not None:
                gram[i, j] = gram[j, i] = value
                known[i] = known[j] = True
    gram[known, known] = 1.0
    return gram


def _three_dimensions(gram: Float64[np.ndarray, "k k"]) -> Float64[np.ndarray, "k three"]:
    """The vectors behind a Gram matrix on their three leading dimensions; missing dimensions are zero."""
    values, vectors = np.linalg.eigh(gram)
    size = np.sqrt(np.clip(values[::-1][:3], 0, None))
    points = np.zeros((len(gram), 3))
    leading = vectors[:, ::-1][:, :3] * size
    signs = np.sign(leading[np.abs(leading).argmax(axis=0), np.arange(leading.shape[1])])
    points[:, : leading.shape[1]] = leading * np.where(signs == 0, 1, signs)
    return points


def _turned(
    points: Float64[np.ndarray, "k three"], onto: Float64[np.ndarray, "k three"]
) -> Float64[np.ndarray, "k three"]:
    """The points, turned (or mirrored) so that they come as near as they can to others (Schönemann 1966)."""
    u, _, vt = np.linalg.svd(points.T @ onto)
    return np.asarray(points @ (u @ vt))


def _simplex_on(points: Float64[np.ndarray, "k three"]) -> Float64[np.ndarray, "k three"]:
    """K vectors of a simplex ETF on those three of its dimensions in which the points lie, as near to them as can be.

    With P = I − 11ᵀ/K its vectors are the rows of √(K/(K−1)) P; those three orthonormal directions in the space that P
    leaves whole which come nearest to the points are the polar factor of P times the points.
    """
    classes = len(points)
    centered = points - points.mean(axis=0)
    u, _, vt = np.linalg.svd(centered, full_matrices=False)
    basis = u @ vt
    basis -= basis.mean(axis=0)  # where the points lie in fewer dimensions, u may leave that space
    return np.asarray(math.sqrt(classes / max(classes - 1, 1)) * basis)


def _point_rows(points: Float64[np.ndarray, "k three"], known: Float64[np.ndarray, " k"]) -> list[list[float] | None]:
    return [
        [round(float(part), 4) for part in point] if there > 0 else None
        for point, there in zip(points, known, strict=True)
    ]
