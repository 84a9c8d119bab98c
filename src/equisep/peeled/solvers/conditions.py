"""The optimality conditions of two groups at a given direction θ and multiplier μ, with derivatives.

As M(√k_A, √k_B)ᵀ = 0, M = (a_A, −a_B)ᵀ v with v = (√k_B, −√k_A)/√K, and ‖M‖_* = ‖a‖. At the optimum −Γ = μ M/‖M‖, so with
(a_A, a_B) = t (cos θ, sin θ) the masses q_A = k_B p_AB and q_B = k_A p_BA on the other group are

    q_A = (μ/ω_A) cos θ √(k_B/K),      q_B = (μ/ω_B) sin θ √(k_A/K).

Within group g either s_g = 0 (where ω_g ≤ μ) and all classes share 1 − q_g, or |γ_g| = μ, that is k_g p_gg = μ/ω_g − q_g. So
(μ, θ) give every probability, the probabilities give s_g and a_g, and there remain a_A sin θ = a_B cos θ and the budget
(k_A−1) s_A + (k_B−1) s_B + t = τ.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from equisep.shapes import Bool, Float64

FULL = -1e-14  # log q from which on a group would put all its mass on the other one


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """One of the two groups: k_g, k_h of the other group, ω_g, and whether s_g may move."""

    k: Float64[np.ndarray, " b"]
    other: Float64[np.ndarray, " b"]
    log_omega: Float64[np.ndarray, " b"]
    free: Bool[np.ndarray, " b"]

    @property
    def log_share(self) -> Float64[np.ndarray, " b"]:
        """The logarithm of q/(μ cos θ), or of q/(μ sin θ) for the second group."""
        return np.asarray(0.5 * np.log(self.other / (self.k + self.other)) - self.log_omega)

    def at(self, log_q: Float64[np.ndarray, " b"], log_mu: Float64[np.ndarray, " b"]) -> Row:
        """The s_g and a_g that the mass q on the other group and μ give, with their derivatives in log q and log μ."""
        log_u = log_mu - self.log_omega
        q, u = np.exp(log_q), np.exp(log_u)
        open_ = self.free & (log_u < 0)
        inside = np.where(open_, u, 1.0) - q  # k_g p_gg where s_g moves, otherwise that and the own class together
        # the own class keeps 1 − u + inside/k; a small s_g of many classes needs every digit of 1 − u
        ahead = np.where(open_, -self.k * np.expm1(log_u) / inside, 0.0)
        s = np.log1p(ahead)
        p_q, p_mu = -q / inside, np.where(open_, u / inside, 0.0)
        s_q, s_mu = -ahead / (1 + ahead) * p_q, -(self.k + ahead) / (1 + ahead) * p_mu
        scale = self.k * np.sqrt(self.other / (self.k + self.other))
        return Row(
            s=s,
            s_q=s_q,
            s_mu=s_mu,
            a=scale * (np.log(inside / self.k) - log_q + np.log(self.other) + s / self.k),
            a_q=scale * (p_q - 1 + s_q / self.k),
            a_mu=scale * (p_mu + s_mu / self.k),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """s_g, a_g and their derivatives in log q and in log μ."""

    s: Float64[np.ndarray, " b"]
    s_q: Float64[np.ndarray, " b"]
    s_mu: Float64[np.ndarray, " b"]
    a: Float64[np.ndarray, " b"]
    a_q: Float64[np.ndarray, " b"]
    a_mu: Float64[np.ndarray, " b"]


@dataclass(frozen=True, slots=True, eq=False)
class Point:
    """Both equations at (x, y) = (log tan θ, log μ): `turn` = a_A sin θ − a_B cos θ and `spent`, with derivatives.

    `reach` = a_A cos θ + a_B sin θ is t where turn = 0, and negative where M = 0 is better at this μ.
    """

    first: Row
    second: Row
    reach: Float64[np.ndarray, " b"]
    size: Float64[np.ndarray, " b"]
    turn: Float64[np.ndarray, " b"]
    turn_x: Float64[np.ndarray, " b"]
    turn_y: Float64[np.ndarray, " b"]
    spent: Float64[np.ndarray, " b"]
    spent_x: Float64[np.ndarray, " b"]
    spent_y: Float64[np.ndarray, " b"]


def evaluate(sides: tuple[Side, ...], x: Float64[np.ndarray, " b"], y: Float64[np.ndarray, " b"]) -> Point:
    """Both equations at x = log tan θ and y = log μ."""
    half = 0.5 * np.logaddexp(0.0, 2 * x)
    cosine, sine = np.exp(-half), np.exp(x - half)
    first, second = sides
    log_q = second.log_share + y + x - half
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        a = first.at(first.log_share + y - half, y)
        b = second.at(log_q, y)
        # where the lighter group would put more than all its mass on the other one, θ is too large
        beyond = ~(second.free & (y < second.log_omega)) & (log_q >= FULL)
        turn = np.where(beyond, np.inf, a.a * sine - b.a * cosine)
        reach = a.a * cosine + b.a * sine
        spend_a, spend_b = first.k - 1, second.k - 1
        # d log q_A/dx = −sin²θ, d log q_B/dx = cos²θ; both are 1 in y
        a_x, b_x = -(sine**2) * a.a_q, cosine**2 * b.a_q
        a_y, b_y = a.a_q + a.a_mu, b.a_q + b.a_mu
        return Point(
            first=a,
            second=b,
            reach=reach,
            size=np.abs(a.a * sine) + np.abs(b.a * cosine),
            turn=turn,
            turn_x=a_x * sine - b_x * cosine + reach * sine * cosine,
            turn_y=a_y * sine - b_y * cosine,
            spent=spend_a * a.s + spend_b * b.s + reach,
            spent_x=-spend_a * sine**2 * a.s_q + spend_b * cosine**2 * b.s_q + a_x * cosine + b_x * sine,
            spent_y=spend_a * (a.s_q + a.s_mu) + spend_b * (b.s_q + b.s_mu) + a_y * cosine + b_y * sine,
        )
