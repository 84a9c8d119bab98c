"""Simplex ETFs of ±1 vectors: where features bounded in a q-norm, q > 2, collapse after all.

K vectors of ±1 in p dimensions are a simplex ETF if each two have the inner product −p/(K − 1). They sum to zero, so in every
coordinate half of them are +1: K is even. Then m = p/(K − 1) is whole; and since a·b + a·c + b·c ≡ −p (mod 4) for three vectors
of ±1, 4 divides mK. Where they exist, every minimizer of the q-norm problem is collapsed (docs/peeled.md has the proof).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from itertools import product
from typing import Literal

import numpy as np

from equisep.errors import InputError
from equisep.peeled.problem import Whole, checked_count
from equisep.shapes import Int

Existence = Literal["exists", "cannot exist", "not known"]
Signs = Int[np.ndarray, "_ _"]
# where there is no field of K − 1 elements: found among all sequences of this length, the first pair there is
LEGENDRE_PAIRS = {21: ("+------++-+++-+-+++-+", "+++-+--+-++-+---+++--")}


def sign_simplex(classes: Whole, dimension: Whole) -> Signs | None:
    """K vectors of ±1 in p dimensions whose cosines are all −1/(K − 1), or None where none can be, or none was found.

    By a Hadamard matrix of order K (Sylvester 1867, Paley 1933: its rows without the first column), or, where K ≡ 2 (mod 4), by
    two coordinates for each element a of a field of K − 1 elements: a point x is χ(x − a) in both, a itself is 1 and −1, and the
    point at infinity −1 and 1; as Σ_a χ(x − a) χ(y − a) = −1, all inner products are −2. Or by a Legendre pair of length K − 1:
    two sequences of ±1 with sum ±1 whose periodic autocorrelations add up to −2, in all their shifts. Repeated for larger p.
    """
    known, p = _sizes(classes, dimension)
    if sign_simplex_exists(known, p) != "exists":
        return None
    base = _base(known)
    assert base is not None
    return np.tile(base, (1, p // base.shape[1]))


def sign_simplex_exists(classes: Whole, dimension: Whole) -> Existence:
    """Whether such vectors exist: constructed here, impossible by counting, or not known to this function."""
    known, p = _sizes(classes, dimension)
    times, left = divmod(p, known - 1)
    if known % 2 or left or (times * known % 4 and known > 2):
        return "cannot exist"
    base = _base(known)
    return "exists" if base is not None and p % base.shape[1] == 0 else "not known"


def _sizes(classes: Whole, dimension: Whole) -> tuple[int, int]:
    known = checked_count(classes, "`classes`", "Pass the number of classes, 2 or more.")
    if known < 2:
        raise InputError(f"`classes` must be 2 or more, so that two of them have an angle; found {known}.")
    return known, checked_count(dimension, "`dimension`", "Pass p, the width of the features.")


@cache
def _base(classes: int) -> Signs | None:
    """The vectors of the least dimension that is constructed: K − 1, or twice that."""
    if classes == 2:
        return np.array([[1], [-1]], dtype=np.int64)
    if classes % 4 == 2:
        field = _field(classes - 1)
        return _of_legendre_pair(classes - 1) if field is None else _two_for_each(field)
    hadamard = _hadamard(classes)
    return None if hadamard is None else (hadamard * hadamard[:, :1])[:, 1:]


def _hadamard(order: int) -> Signs | None:
    """A matrix of ±1 with orthogonal rows, by doubling or from a field; None where neither gives one."""
    if order == 1:
        return np.ones((1, 1), dtype=np.int64)
    if order == 2 or order % 4 == 0:
        for made in (_paley_one, _paley_two, _doubled):
            matrix = made(order)
            if matrix is not None:
                return matrix
    return None


def _doubled(order: int) -> Signs | None:
    half = _hadamard(order // 2)
    return None if half is None else np.kron(np.array([[1, 1], [1, -1]]), half)


def _paley_one(order: int) -> Signs | None:
    """From a field of order − 1 ≡ 3 (mod 4) elements: I + S, S skew with S Sᵀ = (order − 1) I."""
    jacobsthal = _field(order - 1)
    if jacobsthal is None or order % 4:
        return None
    skew = np.zeros((order, order), dtype=np.int64)
    skew[0, 1:], skew[1:, 0], skew[1:, 1:] = 1, -1, jacobsthal
    return skew + np.eye(order, dtype=np.int64)


def _paley_two(order: int) -> Signs | None:
    """From a field of order/2 − 1 ≡ 1 (mod 4) elements: C symmetric with C Cᵀ = (order/2 − 1) I."""
    half = order // 2
    jacobsthal = _field(half - 1)
    if jacobsthal is None or half % 4 != 2:
        return None
    conference = np.zeros((half, half), dtype=np.int64)
    conference[0, 1:], conference[1:, 0], conference[1:, 1:] = 1, 1, jacobsthal
    one = np.eye(half, dtype=np.int64)
    return np.block([[conference + one, conference - one], [conference - one, -conference - one]])


def _two_for_each(jacobsthal: Signs) -> Signs:
    """The construction of `sign_simplex` for K ≡ 2 (mod 4), infinity last."""
    size = len(jacobsthal)
    one = np.eye(size, dtype=np.int64)
    finite = np.hstack([jacobsthal + one, jacobsthal - one])
    infinity = np.hstack([-np.ones((1, size), dtype=np.int64), np.ones((1, size), dtype=np.int64)])
    return np.vstack([finite, infinity])


def _of_legendre_pair(length: int) -> Signs | None:
    """All shifts of both sequences of a pair, and a last point for which each of them sums to 0."""
    if length not in LEGENDRE_PAIRS:
        return None
    blocks = []
    for text in LEGENDRE_PAIRS[length]:
        signs = np.array([1 if sign == "+" else -1 for sign in text], dtype=np.int64)
        shifts = np.stack([np.roll(signs, shift) for shift in range(length)], axis=1)
        blocks.append(np.vstack([shifts, -shifts.sum(axis=0, keepdims=True)]))
    return np.hstack(blocks)


def _field(size: int) -> Signs | None:
    """χ(x − y) for all elements of the field of `size`, an odd prime power: 1 for squares, −1 for others, 0 for 0."""
    prime = next((p for p in range(3, size + 1, 2) if size % p == 0), 0)
    power = size
    while prime and power % prime == 0:
        power //= prime
    if size < 3 or size % 2 == 0 or power != 1:
        return None
    degree = round(np.log(size) / np.log(prime))
    elements = list(product(range(prime), repeat=degree))
    times = _multiplication(prime, degree)
    squares = {times(x, x) for x in elements if any(x)}
    rows = [[tuple((a - b) % prime for a, b in zip(x, y, strict=True)) for y in elements] for x in elements]
    return np.array([[0 if not any(d) else 1 if d in squares else -1 for d in row] for row in rows], dtype=np.int64)


def _multiplication(prime: int, degree: int) -> Callable[[tuple[int, ...], tuple[int, ...]], tuple[int, ...]]:
    """Products of polynomials, constant term first, modulo a monic polynomial that makes a field."""

    def under(modulus: tuple[int, ...]) -> Callable[[tuple[int, ...], tuple[int, ...]], tuple[int, ...]]:
        def times(x: tuple[int, ...], y: tuple[int, ...]) -> tuple[int, ...]:
            whole = [0] * (2 * degree - 1)
            for i, a in enumerate(x):
                for j, b in enumerate(y):
                    whole[i + j] += a * b
            for top in range(2 * degree - 2, degree - 1, -1):
                for j, c in enumerate(modulus):
                    whole[top - degree + j] -= whole[top] * c
            return tuple(value % prime for value in whole[:degree])

        return times

    if degree == 1:
        return under((0,))
    return next(
        times
        for modulus in product(range(prime), repeat=degree)
        if _no_divisors(times := under(modulus), prime, degree)
    )


def _no_divisors(times: Callable[[tuple[int, ...], tuple[int, ...]], tuple[int, ...]], prime: int, degree: int) -> bool:
    """Whether no product of two elements other than 0 is 0: a finite ring like that is a field."""
    elements = [x for x in product(range(prime), repeat=degree) if any(x)]
    return all(any(times(x, y)) for x, y in _pairs(elements))


def _pairs(elements: list[tuple[int, ...]]) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    return ((x, y) for i, x in enumerate(elements) for y in elements[i:])
