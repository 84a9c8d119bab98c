"""What the search of the 2-Layer-Peeled Model came to, in sentences."""

from __future__ import annotations

from collections.abc import Iterator

from equisep.peeled.two_layer.solution import TwoLayerSolution
from equisep.report.formatting import number

SAVED = 1e-6  # of the loss of neural collapse: less is rounding
_LAYERS = {"linear": "two linear layers", "relu": "two layers with ReLU between them"}


def two_layer_lines(solution: TwoLayerSolution, collapse: TwoLayerSolution | None) -> Iterator[str]:
    """The verdict, the loss between its bound and itself, and neural collapse beside it, where classes are equal."""
    classes, proof = solution.problem.classes, solution.certificate
    state = "" if solution.result is None else f": {solution.result.value}"
    yield f"2-Layer-Peeled Model, {classes} classes, {_LAYERS[solution.activation]}{state}"
    yield (
        f"Loss {number(solution.value, 6)}; no point is below {number(proof.lower_bound, 6)}. The logits have rank "
        f"{solution.rank}; those of neural collapse have {classes - 1}."
    )
    if collapse is None:
        return
    saved = 1 - solution.value / collapse.value
    if saved > SAVED:
        yield (
            f"Neural collapse has the loss {number(collapse.value, 6)}. This point has {100 * saved:.3g} % less, so neural "
            "collapse is not the optimum."
        )
    else:
        yield f"Neural collapse has the loss {number(collapse.value, 6)}: nothing better was found."
