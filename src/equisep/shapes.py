"""The symbol table of tensor shapes, as jaxtyping annotations where jaxtyping is loaded already and as plain types elsewhere.

    n  samples      k  classes      d  features of a site      r  directions of the class-mean subspace
    l  sites (layers)               e  epochs                  b  samples of one batch

Shapes are checked in tests only (jaxtyping's import hook with beartype); at run time they are documentation, and jaxtyping, which
takes longer to import than all that a saved profile needs, is left alone.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or sys.modules.get("jaxtyping") is not None:
    from jaxtyping import Bool, Float, Float64, Int, Shaped
else:

    class _Plain:
        """`Float[Tensor, "n d"]` is `Tensor` where nobody checks shapes."""

        def __class_getitem__(cls, item: Any) -> Any:
            return item[0]

    Bool = Float = Float64 = Int = Shaped = _Plain

__all__ = ["Bool", "Float", "Float64", "Int", "Shaped"]
