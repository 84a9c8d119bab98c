"""Three readings of one network: which batches each takes, several in one call, what company does, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from measured_by_hand import batches, codes, network, note, samples
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, Dataset, RandomSampler, TensorDataset, WeightedRandomSampler

from equisep.data import Batches
from equisep.errors import DataError, InputError
from equisep.measuring import measure
from equisep.results import Profile

X, Y = samples([75, 75, 75, 76])
SORTED = Y.argsort()
SHUFFLED = torch.randperm(len(Y), generator=torch.Generator().manual_seed(0))
ALL = ("eval", "mixed", "drawn")
FAST = {"metrics": ("fuzziness",), "intervals": "none", "coordinates": 0}
ways = pytest.mark.parametrize("memory", [None, 0], ids=["buffered", "streamed"])


def read(data: object, reading: str = "drawn", **options: object) -> Profile:
    return measure(network(), data, reading=reading, **{**FAST, **options})  # type: ignore[arg-type]


# --- which batches


def test_drawn_reads_pairs_data_sets_and_mappings_in_the_order_given() -> None:
    x, y = X[SORTED], Y[SORTED]
    by_hand = read([(x[start : start + 100], y[start : start + 100]) for start in (0, 100)] + [(x[200:], y[200:])])
    for data in ((x, y), TensorDataset(x, y), Batches(x, y), Batches(x, y, order="given"), ({"x": x}, y)):
        found = read(data, memory=0)
        assert found.curve() == pytest.approx(by_hand.curve(), rel=1e-9)
        assert found.settings["batch_sizes"] == [101, 100] and found.reading == "drawn"
        assert codes(found)[0] == "unmixed-batches"
    assert read((x, y), "mixed").curve() != by_hand.curve()


def test_batches_know_the_order_in_which_their_samples_were_drawn() -> None:
    walk = Batches(X, Y, drawn=SORTED)
    assert read(walk).curve() == read((X[SORTED], Y[SORTED])).curve()
    for reading in ("eval", "mixed"):
        assert read(walk, reading).curve() == read(Batches(X, Y), reading).curve()
    with pytest.raises(InputError, match="`drawn` is no order of the 301 samples"):
        Batches(X, Y, drawn=torch.zeros(301, dtype=torch.int64))


def test_a_loader_is_read_as_it_comes() -> None:
    loader = DataLoader(TensorDataset(X[SHUFFLED], Y[SHUFFLED]), batch_size=64)
    given = Batches(X[SHUFFLED], Y[SHUFFLED], batch_size=64, order="given")
    assert read(loader).curve() == read(loader, "mixed").curve() == pytest.approx(read(given).curve(), rel=1e-9)


# --- several in one call


@ways
def test_several_readings_are_those_of_each_alone(memory: int | None) -> None:
    x, y = X[SORTED], Y[SORTED]
    found = measure(network(), (x, y), (X, Y), readings=ALL, memory=memory, **FAST)
    assert found.reading == "eval" and list(found.readings) == list(ALL) and found.readings["eval"] is found
    for name, own in found.readings.items():
        alone = measure(network(), (x, y), (X, Y), reading=name, memory=memory, **FAST)
        assert own.sites == alone.sites and own.law == alone.law and own.laws == alone.laws and own.reading == name
    factor = found.company["drawn"][-1]
    assert note(found, "unmixed-batches").endswith(f" D of the last layer is {factor:.3g} times that in `eval`.")
    assert note(found.readings["drawn"], "unmixed-batches").endswith("`readings='eval,drawn'` shows by how much.")
    assert codes(found)[0] == "unmixed-batches"
    for name in ("mixed", "drawn"):
        expected = [a / b for a, b in zip(found.readings[name].curve(), found.curve(), strict=True)]
        assert list(found.company[name]) == pytest.approx(expected, rel=1e-12)
        assert found.company[name][0] == pytest.approx(1, rel=1e-9)  # the input knows no BatchNorm
    assert found.company["drawn"][-1] != pytest.approx(found.company["mixed"][-1], rel=1e-3)


def test_several_readings_survive_a_file(tmp_path: Path) -> None:
    found = measure(network(), (X, Y), readings=("mixed", "eval"), **FAST)
    again = Profile.load(found.save(tmp_path / "profile.json"))
    assert again == found and again.readings["eval"].law == found.readings["eval"].law
    single = measure(network(), (X, Y), **FAST)
    assert single.readings == {"eval": single} and single.company == {} and single.other_readings == {}


def test_without_eval_there_is_nothing_to_compare_company_with() -> None:
    found = measure(network(), (X, Y), readings=("mixed", "drawn"), **FAST)
    assert found.company == {} and list(found.readings) == ["mixed", "drawn"]


def test_a_network_without_batchnorm_is_read_once() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 4))
    found = measure(model, (X[SORTED], Y[SORTED]), readings=ALL, **FAST)
    assert found.other_readings == {} and all(own is found for own in found.readings.values())
    assert note(found, "one-reading") == (
        "The network has no BatchNorm: `eval` and `mixed` and `drawn` are one reading of it, taken once."
    )
    assert found.company["drawn"] == (1.0,) * len(found.sites)


def test_mixed_and_drawn_of_a_loader_are_one_reading() -> None:
    loader = DataLoader(TensorDataset(X[SHUFFLED], Y[SHUFFLED]), batch_size=64)
    found = measure(network(), loader, readings=ALL, **FAST)
    assert "same-batches" in codes(found)
    assert found.readings["mixed"].sites == found.readings["drawn"].sites
    assert found.readings["drawn"].reading == found.readings["drawn"].settings["reading"] == "drawn"


@pytest.mark.parametrize("kind", ["pair", "data set", "loader"])
def test_mixed_and_drawn_are_one_reading_only_where_the_test_data_come_as_they_are_too(kind: str) -> None:
    loader = DataLoader(TensorDataset(X[SHUFFLED], Y[SHUFFLED]), batch_size=64)
    x, y = X[SORTED] + 0.1, Y[SORTED]
    test = {"pair": (x, y), "data set": TensorDataset(x, y), "loader": batches((x[SHUFFLED], y[SHUFFLED]), 64)}[kind]
    found = measure(network(), loader, test, readings=ALL, **FAST)
    for name, own in found.readings.items():
        alone = measure(network(), loader, test, reading=name, **FAST)
        assert own.sites == alone.sites and own.laws == alone.laws
    assert ("same-batches" in codes(found)) == (kind == "loader")
    if kind != "loader":  # the order of the test data is by class in `drawn` alone
        assert found.readings["drawn"].curve("fuzziness_test") != found.readings["mixed"].curve("fuzziness_test")
        assert codes(found)[0] == codes(found.readings["drawn"])[0] == "unmixed-batches"


# --- bad input


def test_one_reading_beside_several_must_be_the_first_of_them() -> None:
    with pytest.raises(InputError) as caught:
        measure(network(), (X, Y), reading="drawn", readings="eval,drawn", **FAST)
    assert str(caught.value) == (
        "`reading` asks for a profile in `drawn`, `readings` for one in `eval`, their first. Leave `reading` out, or write "
        "readings='drawn,eval'."
    )
    found = measure(network(), (X, Y), reading="drawn", readings="drawn,eval", **FAST)
    assert found.reading == "drawn" and list(found.readings) == ["drawn", "eval"]


@pytest.mark.parametrize("kind", ["shuffle", "weights", "whole batches"])
def test_drawn_without_a_known_order_is_refused(kind: str) -> None:
    data = TensorDataset(X, Y)
    loader = {
        "shuffle": DataLoader(data, batch_size=64, shuffle=True),
        "weights": DataLoader(data, batch_size=64, sampler=WeightedRandomSampler([1.0] * len(Y), len(Y))),
        "whole batches": DataLoader(data, batch_size=None, sampler=BatchSampler(RandomSampler(data), 64, False)),
    }[kind]
    for readings in (("drawn",), ALL):
        with pytest.raises(DataError) as caught:
            measure(network(), loader, readings=readings, **FAST)
        assert str(caught.value) == (
            "`drawn` reads samples in the order in which they were drawn, and the training loader shuffles them anew at every "
            "reading: their order is not known. Pass a loader with `shuffle=False`, or a pair (X, Y), or read `mixed`."
        )


class Restless:
    """Batches in another order every time, by no random state that a measurement could put back."""

    def __init__(self) -> None:
        self.times = 0

    def __len__(self) -> int:
        return 5

    def __iter__(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        self.times += 1
        order = torch.randperm(len(Y), generator=torch.Generator().manual_seed(self.times))
        yield from batches((X[order], Y[order]), 64)


def test_drawn_of_an_order_that_does_not_stay_is_refused_unless_it_is_read_once() -> None:
    assert read(Restless()).reading == "drawn"
    with pytest.raises(DataError) as caught:
        read(Restless(), memory=0)
    assert str(caught.value) == (
        "`drawn` reads samples in the order in which they were drawn, and the training data came in another order when they were "
        "read again. Pass data that keep their order, or enough `memory` to read them once, or read `eval`."
    )
    assert read(Restless(), "eval", memory=0).reading == "eval"


@pytest.mark.parametrize(("which", "memory"), [("training", None), ("test", 0)])
def test_mixed_refuses_batches_that_are_not_class_mixed(which: str, memory: int | None) -> None:
    good, bad = batches((X[SHUFFLED], Y[SHUFFLED]), 64), batches((X[SORTED], Y[SORTED]), 64)
    data = (bad, good) if which == "training" else (good, bad)
    with pytest.raises(DataError) as caught:
        measure(network(), *data, reading="mixed", memory=memory, **FAST)
    assert str(caught.value) == (
        f"The reading `mixed` needs class-mixed batches, and those of the {which} data are less mixed than a random order makes "
        "them (2 of 5 batches hold one class only; two samples of one class share a batch 2.91 times as often). Shuffle the "
        "loader, or pass the pair (X, Y), which is mixed for you; `reading='drawn'` reads the batches as they are, and "
        "`reading='eval'` does not depend on them."
    )
    assert (caught.value.profile is not None) == (which == "test")  # what was measured is not lost


def test_a_reading_that_is_refused_loses_none_before_it() -> None:
    bad = batches((X[SORTED], Y[SORTED]), 64)
    with pytest.raises(DataError, match="needs class-mixed batches") as caught:
        measure(network(), bad, readings=("eval", "drawn", "mixed"), **FAST)
    kept = caught.value.profile
    assert isinstance(kept, Profile) and kept.reading == "eval" and list(kept.other_readings) == ["drawn"]
    assert kept.company.keys() == {"drawn"}


def test_a_loader_that_shuffles_is_mixed_whatever_the_draw() -> None:
    """A uniform permutation is not tested: one in a thousand would be refused."""
    loader = DataLoader(TensorDataset(X, Y), batch_size=64, shuffle=True)
    assert read(loader, "mixed").reading == "mixed"


class Ready(Dataset[tuple[torch.Tensor, torch.Tensor]]):
    """A data set whose entries are batches, each of one class."""

    def __init__(self) -> None:
        self.entries = [(X[Y.eq(k)][:64], Y[Y.eq(k)][:64]) for k in range(4)]

    def __len__(self) -> int:
        return len(self.entries)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        return self.entries[index]


class Grouped:
    """A batch sampler that draws samples at random and puts those of a class together."""

    def __init__(self) -> None:
        self.sampler = RandomSampler(range(len(Y)))

    def __iter__(self) -> Iterator[list[int]]:
        drawn = list(self.sampler)
        yield from ([each for each in drawn if Y[each] == k] for k in range(4))


@pytest.mark.parametrize(
    "loader",
    [
        DataLoader(Ready(), batch_size=None, shuffle=True),
        DataLoader(Ready(), batch_size=1, shuffle=True, collate_fn=lambda entries: entries[0]),
        DataLoader(TensorDataset(X, Y), batch_sampler=Grouped()),  # type: ignore[arg-type]
    ],
    ids=["ready batches", "unwrapped", "grouped"],
)
def test_a_loader_that_shuffles_batches_of_one_class_is_not_class_mixed(loader: DataLoader[object]) -> None:
    with pytest.raises(DataError, match="needs class-mixed batches"):
        read(loader, "mixed")
    assert read(loader, "eval").reading == "eval"


def test_data_that_can_be_read_only_once_have_one_reading() -> None:
    with pytest.raises(DataError, match=r"can be read only once .* the readings eval, drawn read them once each"):
        measure(network(), iter(batches((X, Y), 64)), readings="eval,drawn", **FAST)
    assert read(iter(batches((X, Y), 64)), "drawn").reading == "drawn"


def test_readings_that_cannot_be() -> None:
    with pytest.raises(InputError, match=r"No reading `drwan`\. Did you mean `drawn`"):
        measure(network(), (X, Y), readings=("eval", "drwan"), **FAST)
    with pytest.raises(InputError, match="at least one of eval, mixed, drawn"):
        measure(network(), (X, Y), readings=(), **FAST)
