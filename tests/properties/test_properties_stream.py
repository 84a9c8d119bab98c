"""The streaming state equals all samples at once, whatever the batches, the processes and the data."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from closeness import close
from equisep import cdnv, class_fuzziness, fuzziness
from equisep.errors import NumericalError
from equisep.separation import Convention
from equisep.separation.stream import ClassScatter, scattered_class_fuzziness, scattered_numbers
from reference.merging import merged_in_any_order, random_parts
from reference.scenes import Scene, blobs

unhurried = settings(max_examples=80, deadline=None)


@st.composite
def scenes(draw: st.DrawFn) -> Scene:
    """Unequal classes, some without samples, more classes than features or fewer; far from zero; tight to a millionth."""
    sizes = draw(st.lists(st.integers(0, 15), min_size=2, max_size=9).filter(lambda each: sum(n > 0 for n in each) > 1))
    offset, spread = draw(st.sampled_from([0.0, 1.0, 1e3, 1e6])), draw(st.sampled_from([1.0, 1e-3, 1e-6]))
    return blobs(draw(st.integers(0, 2**32 - 1)), sizes, draw(st.integers(1, 12)), spread=spread, offset=offset)


def streamed(
    scene: Scene, rng: np.random.Generator, *, dtype: torch.dtype, processes: int, per_class: bool
) -> ClassScatter:
    """Every process has a random share and reads it in random batches; their states are merged in any order."""
    classes, states = int(scene.y.max()) + 2, []  # one class never comes
    for share in random_parts(scene, rng, parts=processes):
        state = ClassScatter.empty(classes=classes, dim=scene.x.shape[1], per_class=per_class)
        for part in random_parts(share, rng, parts=4):
            if len(part.y):
                state.add(torch.tensor(part.x).to(dtype), torch.tensor(part.y))
        states.append(state)
    return merged_in_any_order(states, rng)


@unhurried
@given(
    scene=scenes(),
    seed=st.integers(0, 2**32 - 1),
    dtype=st.sampled_from([torch.float64, torch.float32, torch.bfloat16]),
    processes=st.integers(1, 4),
    weighting=st.sampled_from(["sample", "class", "mixed"]),
)
def test_streams_equal_all_samples_at_once(
    scene: Scene, seed: int, dtype: torch.dtype, processes: int, weighting: str
) -> None:
    rng, convention = np.random.default_rng(seed), Convention(weighting=weighting)
    x, y = torch.tensor(scene.x).to(dtype), torch.tensor(scene.y)
    per_class = weighting == "class"
    state = streamed(scene, rng, dtype=dtype, processes=processes, per_class=per_class)
    numbers, space = scattered_numbers(state, convention)
    for name, function in {
        "fuzziness": lambda: fuzziness(x, y, weighting=weighting),
        "cdnv": lambda: cdnv(x, y),
    }.items():
        try:
            expected = function()
        except NumericalError:  # the means coincide
            assert numbers[name] is None
            continue
        close(numbers[name], expected, rtol=1e-10)
        if per_class and name == "fuzziness":
            found = scattered_class_fuzziness(state, space)[torch.tensor(np.unique(scene.y))]
            close(found, class_fuzziness(x, y, weighting=weighting), rtol=1e-10)
