"""How much faster is D by the class-mean subspace than by d×d matrices, and how far off is float32 `pinv`?

The rival `pinv` is the published way: form SSw and SSb as d×d matrices, multiply by `torch.linalg.pinv(SSb)`; here in
float64, where it is right. `pinv32` is the same in float32, as the published scripts run it: timed, and its error shown.
`numpy` is what a careful user would write: thin QR and SVD of the class means in twenty lines, all numbers in float64 at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

import equisep
from _record import finish, interleaved

SIZES = ((1000, 100, 10), (1000, 1000, 10), (1000, 3072, 10), (10_000, 1024, 10), (10_000, 4096, 10))
FLOAT64 = 3072  # features up to which the d×d matrices are formed in float64 as well


def by_matrices(x: Tensor, y: Tensor) -> float:
    """Tr(SSw SSb⁺) with both matrices formed."""
    n, mean = len(y), x.mean(dim=0)
    within = torch.zeros(x.shape[1], x.shape[1], dtype=x.dtype)
    between = torch.zeros_like(within)
    for k in y.unique():
        rows = x[y == k]
        center = rows.mean(dim=0)
        within += (rows - center).T @ (rows - center) / n
        between += len(rows) / n * torch.outer(center - mean, center - mean)
    return float(torch.trace(within @ torch.linalg.pinv(between, hermitian=True)))


def by_hand(x: NDArray[np.float32], y: NDArray[np.int64]) -> float:
    """D = Σ_j (1/s_j²) (1/n) Σ_i (v_jᵀ(x_i − m_{y_i}))², in plain numpy."""
    wide, counts = x.astype(np.float64), np.bincount(y)
    means = np.stack([wide[y == k].mean(axis=0) for k in range(len(counts))])
    shares = counts / len(y)
    rows = np.sqrt(shares)[:, None] * (means - shares @ means)
    q, r = np.linalg.qr(rows.T)
    u, s, _ = np.linalg.svd(r)
    kept = s > 1e-13 * s[0]
    z = (wide - means[y]) @ (q @ u)[:, kept]
    return float((z**2).mean(axis=0) @ (1 / s[kept] ** 2))


def data(n: int, d: int, k: int, *, decades: float, spread: float = 1e-2) -> tuple[Tensor, Tensor]:
    """K Gaussian classes whose means have singular values spread over some decades."""
    generator = torch.Generator().manual_seed(0)
    y = torch.arange(n) % k
    basis = torch.linalg.qr(torch.randn(d, k, generator=generator, dtype=torch.float64)).Q  # d r, r = min(k, d)
    rank = basis.shape[1]
    means = torch.randn(k, rank, generator=generator, dtype=torch.float64) * torch.logspace(0, -decades, rank) @ basis.T
    noise = spread * torch.randn(n, d, generator=generator, dtype=torch.float64)
    return means[y] + noise, y


def main() -> None:
    """Time all, at five sizes; check that they give one number."""
    rows: list[dict[str, Any]] = []
    for n, d, k in SIZES:
        x, y = data(n, d, k, decades=1)
        x32 = x.to(torch.float32)
        plain = x32.numpy(), y.numpy()
        ways: dict[str, Callable[[], float]] = {
            "equisep": lambda x=x32, y=y: equisep.fuzziness(x, y),  # type: ignore[misc]
            "numpy": lambda plain=plain: by_hand(*plain),  # type: ignore[misc]
            "pinv32": lambda x=x32, y=y: by_matrices(x, y),  # type: ignore[misc]
        }
        if d <= FLOAT64:
            ways["pinv"] = lambda x=x, y=y: by_matrices(x, y)  # type: ignore[misc]
        seconds = interleaved(ways, repeats=5 if n * d <= 10**6 else 3 if d <= FLOAT64 else 2)
        right = by_hand(*plain)
        hard, labels = data(n, d, k, decades=3, spread=1e-4)
        hard32 = hard.to(torch.float32)
        truth = equisep.fuzziness(hard, labels)
        rows.append(
            {
                "n": n,
                "d": d,
                "classes": k,
                "seconds": seconds,
                "ratio": seconds["pinv"] / seconds["equisep"] if "pinv" in seconds else None,
                "ratio_numpy": seconds["numpy"] / seconds["equisep"],
                "ratio_pinv32": seconds["pinv32"] / seconds["equisep"],
                "relative_difference": abs(equisep.fuzziness(x32, y) / right - 1),
                "three_decades_error_equisep": abs(equisep.fuzziness(hard32, labels) / truth - 1),
                "three_decades_off_by_factor_pinv32": truth / by_matrices(hard32, labels),
            }
        )
    finish("fuzziness", {"ratio": max(row["ratio_pinv32"] for row in rows), "sizes": rows})


if __name__ == "__main__":
    main()
