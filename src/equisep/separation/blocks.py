"""Features in blocks of rows and columns that stay in a processor's cache while several things are done to them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from equisep.shapes import Shaped

BLOCK_NUMBERS = 2**19  # 4 MiB in float64: what a core's cache holds
GPU_NUMBERS = 2**25  # a GPU wants few and large pieces: 256 MiB in float64
BLOCK_ROWS = 128  # rows handled together at least, where there are so many: products with fewer are thin
WIDE = 2048  # features from which on digits are worth their time


class Block:
    """Some rows of features, which may lie in several tensors; only columns of them are ever joined."""

    def __init__(self, parts: Sequence[Shaped[Tensor, "_ d"]]) -> None:
        self.parts = parts
        self.rows = sum(len(part) for part in parts)

    def columns(self) -> Iterator[tuple[slice, Shaped[Tensor, "n c"]]]:
        """Columns in pieces."""
        d = self.parts[0].shape[1]
        size = max(1, _numbers(self.parts[0]) // max(1, self.rows))
        for start in range(0, d, size):
            columns = slice(start, min(start + size, d))
            yield columns, self.at(columns)

    def at(self, columns: slice) -> Shaped[Tensor, "n c"]:
        """Some columns."""
        return _joined([part[:, columns] for part in self.parts])

    def whole(self) -> Shaped[Tensor, "n d"]:
        """All columns: for narrow features."""
        return _joined(self.parts)


def blocks_of(
    features: Sequence[Shaped[Tensor, "_ d"]], *, across: int = 0, as_given: bool = False
) -> Iterator[tuple[slice, Block]]:
    """Rows in pieces: large tensors divided, small ones taken together; and where each piece stands.

    `across` is how many numbers a row becomes, where these are more than its features, or where features are read `as_given`,
    so that nothing as wide as they are is made of them.
    """
    d = features[0].shape[1]
    joined = max(BLOCK_ROWS, _numbers(features[0]) // max(1, d, across))
    size = max(BLOCK_ROWS, _numbers(features[0]) // max(1, across)) if as_given else joined
    begin, group, rows = 0, list[Tensor](), 0
    for part in (piece for tensor in features for piece in with_float64(tensor).split(size)):
        if group and rows + len(part) > joined:
            yield slice(begin, begin + rows), Block(group)
            begin, group, rows = begin + rows, [], 0
        group.append(part)
        rows += len(part)
    yield slice(begin, begin + rows), Block(group)


def _joined(parts: Sequence[Tensor]) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(list(parts))


def _numbers(features: Tensor) -> int:
    return BLOCK_NUMBERS if features.device.type == "cpu" else GPU_NUMBERS


def column_pieces(features: Shaped[Tensor, "n d"]) -> list[slice]:
    """Columns divided alike whatever the number of rows."""
    size, d = max(1, _numbers(features) // BLOCK_ROWS), features.shape[1]
    return [slice(start, min(start + size, d)) for start in range(0, d, size)]


def column_blocks(features: Shaped[Tensor, "n d"]) -> Iterator[slice]:
    """Where the columns of a tensor are divided."""
    yield from (columns for columns, _ in Block([features]).columns())


def with_float64(features: Shaped[Tensor, "n d"]) -> Shaped[Tensor, "n d"]:
    """The features where float64 exists: on the CPU instead of an MPS device."""
    return features.cpu() if features.device.type == "mps" else features


def quick_type(features: Shaped[Tensor, "n d"]) -> torch.dtype:
    """The type of sums that need six digits, not twelve, where features are wide.

    float32 on the CPU, where it is twice as fast, unless the user lets torch shorten its products; elsewhere float64.
    """
    exact = exact_products()
    narrow = features.dtype.is_floating_point and features.dtype.itemsize <= 4
    quick = features.device.type == "cpu" and exact and narrow and features.shape[1] >= WIDE
    return torch.float32 if quick else torch.float64


def exact_products() -> bool:
    """Whether products of float32 are left whole; torch refuses to say where its newer switches were used."""
    if torch.is_autocast_enabled("cpu"):
        return False
    try:
        return torch.get_float32_matmul_precision() == "highest"
    except RuntimeError:
        return False
