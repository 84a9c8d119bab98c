"""How much faster is D by the class-mean subspace than by d×d matrices, and how far off is float32 `pinv`?

The rival `pinv` is the published way: form SSw and SSb as d×d matrices, multiply by `torch.linalg.pinv(SSb)`; here in
float64, where it is right. `pinv32` is the same in float32, as the published scripts run it: timed, and its error shown.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

import equisep
from _record import finish, interleaved

SIZES = ((1000, 100, 10), (1000, 1000, 10), (1000, 3072, 10))


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


def data(n: int, d: int, k: int, *, decades: float, spread: float = 1e-2) -> tuple[Tensor, Tensor]:
    """K Gaussian classes whose means have singular values spread over some decades."""
    generator = torch.Generator().manual_seed(0)
    y = torch.arange(n) % k
    basis = torch.linalg.qr(torch.randn(d, k, generator=generator, dtype=torch.float64)).Q
    means = torch.randn(k, k, generator=generator, dtype=torch.float64) * torch.logspace(0, -decades, k) @ basis.T
    noise = spread * torch.randn(n, d, generator=generator, dtype=torch.float64)
    return means[y] + noise, y


def main() -> None:
    """Time both, at three widths; check that both give one number."""
    rows: list[dict[str, Any]] = []
    for n, d, k in SIZES:
        x, y = data(n, d, k, decades=1)
        x32 = x.to(torch.float32)
        seconds = interleaved(
            {
                "equisep": lambda x=x32, y=y: equisep.fuzziness(x, y),  # type: ignore[misc]
                "pinv": lambda x=x, y=y: by_matrices(x, y),  # type: ignore[misc]
                "pinv32": lambda x=x32, y=y: by_matrices(x, y),  # type: ignore[misc]
            },
            repeats=5 if d <= 1000 else 3,
        )
        right = by_matrices(x32.to(torch.float64), y)
        hard, labels = data(n, d, k, decades=3, spread=1e-4)
        hard32 = hard.to(torch.float32)
        truth = equisep.fuzziness(hard, labels)
        rows.append(
            {
                "n": n,
                "d": d,
                "classes": k,
                "seconds": seconds,
                "ratio": seconds["pinv"] / seconds["equisep"],
                "ratio_pinv32": seconds["pinv32"] / seconds["equisep"],
                "relative_difference": abs(equisep.fuzziness(x32, y) / right - 1),
                "three_decades_error_equisep": abs(equisep.fuzziness(hard32, labels) / truth - 1),
                "three_decades_off_by_factor_pinv32": truth / by_matrices(hard32, labels),
            }
        )
    finish("fuzziness", {"ratio": max(row["ratio"] for row in rows), "sizes": rows})


if __name__ == "__main__":
    main()
