"""Sites share the memory budget: deep ones are kept, the first ones read twice, and no number depends on which."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from measured_by_hand import batches, network, samples
from torch import Tensor, nn

from equisep.measuring import measure
from equisep.results import Profile

DATA = samples([100] * 4)
LOADER = batches(DATA, 50)


def everything(profile: Profile) -> list[tuple[Any, ...]]:
    """What a site says, apart from what depends on how folds and permutations are drawn."""
    return [
        (
            site.name,
            site.dim,
            site.fuzziness,
            site.class_fuzziness,
            site.nc1,
            site.cdnv,
            site.ncc_train,
            site.trace_within,
        )
        for site in profile.sites
    ]


class Unsized:
    """Batches whose number is not known beforehand."""

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        return iter(LOADER)


WHOLE = measure(network(), LOADER)
STATES = [8 * 12 * 4 * site.dim for site in WHOLE.sites]  # bytes of the sums of every site
FEATURES = [4 * 400 * site.dim for site in WHOLE.sites]  # … and of its features


def budget(kept: int) -> int:
    """Bytes that are just enough to keep the last `kept` sites."""
    cut = len(STATES) - kept
    return sum(STATES[:cut]) + sum(FEATURES[cut:])


def kept(profile: Profile) -> list[bool]:
    """Coordinates exist where features were kept."""
    return [site.coordinates is not None for site in profile.sites]


@pytest.mark.parametrize("count", range(5))
@pytest.mark.parametrize("sized", [True, False])
def test_numbers_do_not_depend_on_which_sites_are_kept(count: int, sized: bool) -> None:
    profile = measure(network(), LOADER if sized else Unsized(), memory=budget(count))
    assert kept(profile) == [False] * (4 - count) + [True] * count
    for ours, theirs in zip(everything(profile), everything(WHOLE), strict=True):
        for a, b in zip(ours, theirs, strict=True):
            assert a == (b if isinstance(b, str) else pytest.approx(b, rel=1e-10))


def test_one_byte_less_keeps_one_site_less() -> None:
    assert kept(measure(network(), LOADER, memory=budget(2) - 1)) == [False, False, False, True]


@pytest.mark.parametrize("count", range(4))
def test_folds_and_permutations_are_the_same_at_kept_sites_and_others(count: int) -> None:
    streamed = measure(network(), LOADER, memory=budget(0))
    shared = measure(network(), LOADER, memory=budget(count))
    assert shared.settings["intervals_by"] == "jackknife"
    for a, b in zip(shared.sites, streamed.sites, strict=True):
        assert a.null == pytest.approx(b.null, rel=1e-9)
        assert a.fuzziness_interval is not None and b.fuzziness_interval is not None
        assert a.fuzziness_interval.low == pytest.approx(b.fuzziness_interval.low, rel=1e-9)


@pytest.mark.parametrize("count", range(4))
def test_test_data_are_shared_likewise(count: int) -> None:
    whole = measure(network(), LOADER, LOADER)
    shared = measure(network(), LOADER, LOADER, memory=budget(count))
    assert shared.curve("fuzziness_test") == pytest.approx(whole.curve("fuzziness_test"), rel=1e-10)
    assert shared.curve("ncc_test") == whole.curve("ncc_test")
    assert shared.curve("fuzziness_test") == pytest.approx(shared.curve(), rel=1e-10)


def test_the_second_forward_pass_ends_after_the_last_site_that_was_not_kept() -> None:
    model = network()
    times: Counter[str] = Counter()
    for name, module in model.named_modules():
        if isinstance(module, nn.Linear):
            module.register_forward_pre_hook(lambda *_, name=name: times.update([name]))
    measure(model, LOADER, memory=budget(2))
    first, *_, last = [name for name, module in model.named_modules() if isinstance(module, nn.Linear)]
    batches_read = len(LOADER)
    assert times[first] == 1 + 2 * batches_read  # the probe, the first reading, and the second
    assert times[last] == 1 + batches_read


def test_sequences_that_grow_longer_than_foreseen_go_over_to_the_second_reading() -> None:
    class Growing:
        """Batches of more and more tokens: the probe sees the shortest."""

        def __len__(self) -> int:
            return 5

        def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
            generator = torch.Generator().manual_seed(0)
            for length in range(2, 7):
                y = torch.arange(40) % 4
                yield torch.randn(40, length, 6, generator=generator) + y[:, None, None], y

    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU())
    whole = measure(model, Growing(), reduction="tokens", classes=4, sites=["1", "3"])
    foreseen = 4 * 200 * 2 * (6 + 8 + 8)
    shared = measure(model, Growing(), reduction="tokens", classes=4, sites=["1", "3"], memory=foreseen + 1000)
    assert kept(whole) == [True] * 3
    assert kept(shared)[0] is False
    assert shared.curve() == pytest.approx(whole.curve(), rel=1e-9)
    assert shared.curve("cdnv") == pytest.approx(whole.curve("cdnv"), rel=1e-9)
