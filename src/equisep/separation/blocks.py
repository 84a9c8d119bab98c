"""Features in blocks of rows and columns that stay in a processor's cache while several things are done to them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from equisep.shapes import Float64, Shaped

BLOCK_NUMBERS = 2**19  # 4 MiB in float64: what a core's cache holds
GPU_NUMBERS = 2**25  # a GPU wants few and large pieces: 256 MiB in float64
QUICK_NUMBERS = 2**20  # 4 MiB in float32
BLOCK_ROWS = 128  # rows handled together at least, where there are so many: products with fewer are thin
QUICK_ROWS = 256  # … where they are used in float32: what is done once per block costs less


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


class Room:
    """Memory that the pieces of one pass take turns in: to get it anew for each costs as much as what is done there."""

    def __init__(self) -> None:
        self._held: dict[str, Tensor] = {}

    def like(self, x: Tensor, name: str, dtype: torch.dtype = torch.float64) -> Tensor:
        """Memory of the shape of x, whose numbers are anything; one `name` is one place, whatever is kept there."""
        held, size = self._held.get(name), x.numel() * dtype.itemsize
        if held is None or held.numel() < size or held.device != x.device:
            held = self._held[name] = torch.empty(size, dtype=torch.uint8, device=x.device)
        return held[:size].view(dtype).view(x.shape)


def blocks_of(
    features: Sequence[Shaped[Tensor, "_ d"]], *, across: int = 0, as_given: bool = False, quick: bool = False
) -> Iterator[tuple[slice, Block]]:
    """Rows in pieces: large tensors divided, small ones taken together; and where each piece stands.

    `across` is how many numbers a row becomes, where these are more than its features, or where features are read `as_given`,
    so that nothing as wide as they are is made of them. Where they are used in float32, `quick`, wide ones come in more rows.
    """
    d = features[0].shape[1]
    wanted = min(QUICK_ROWS, QUICK_NUMBERS // max(1, d, across)) if quick else 0
    joined = max(BLOCK_ROWS, wanted, _numbers(features[0]) // max(1, d, across))
    size = max(BLOCK_ROWS, _numbers(features[0]) // max(1, across)) if as_given else joined
    begin, group, rows = 0, list[Tensor](), 0
    for part in (piece for tensor in features for piece in with_float64(tensor).split(size)):
        if group and rows + len(part) > joined:
            yield slice(begin, begin + rows), Block(group)
            begin, group, rows = begin + rows, [], 0
        group.append(part)
        rows += len(part)
    yield slice(begin, begin + rows), Block(group)


def squared_norms(rows: Shaped[Tensor, "n d"]) -> Float64[Tensor, " n"]:
    """‖r_i‖², read once: squares are never written down, which takes as long as to add them up."""
    norms: Tensor = torch.linalg.vector_norm(rows, dim=1)
    return norms.to(torch.float64).square_()


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


def exact_products() -> bool:
    """Whether products of float32 are left whole; torch refuses to say where its newer switches were used."""
    if torch.is_autocast_enabled("cpu"):
        return False
    try:
        return torch.get_float32_matmul_precision() == "highest"
    except RuntimeError:
        return False
