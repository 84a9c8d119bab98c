"""Whatever holds (x, y): loaders, data sets, arrays, generators; and what is noted of loaders that change."""

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from measured_by_hand import Batch, batches, codes, network, note, samples
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

from equisep.data import Batches
from equisep.errors import DataError, InputError, ModelError, SiteError
from equisep.measuring import measure
from equisep.results import Profile

DATA = samples()
ways = pytest.mark.parametrize("memory", [None, 0], ids=["buffered", "streamed"])


class Shuffled:
    """Shuffles with a generator of its own that nobody seeds or restores."""

    def __init__(self, data: Batch, size: int = 25) -> None:
        self.data, self.size, self.random = data, size, random.Random(5)

    def __iter__(self) -> Iterator[Batch]:
        order = list(range(len(self.data[1])))
        self.random.shuffle(order)
        yield from batches((self.data[0][order], self.data[1][order]), self.size)


class Augmented(Shuffled):
    """Adds noise that differs from reading to reading."""

    def __iter__(self) -> Iterator[Batch]:
        generator = torch.Generator().manual_seed(self.random.getrandbits(30))
        for x, y in batches(self.data, self.size):
            yield x + 0.5 * torch.randn(x.shape, generator=generator), y


class Growing:
    """Gives one more batch every time."""

    def __init__(self) -> None:
        self.readings = 1

    def __iter__(self) -> Iterator[Batch]:
        self.readings += 1
        yield from batches(DATA)[: self.readings]


class Once:
    """Looks like a loader, but its samples come from a stream that runs dry."""

    def __init__(self) -> None:
        self.stream = iter(batches(DATA))

    def __iter__(self) -> Iterator[Batch]:
        yield from self.stream


class Stream(IterableDataset):  # type: ignore[type-arg]
    def __iter__(self) -> Iterator[tuple[Tensor, int]]:
        for x, y in zip(*DATA, strict=True):
            yield x, int(y)


def same_numbers(one: Profile, two: Profile) -> bool:
    return one.sites == two.sites and one.law == two.law


# --- kinds of data


@ways
def test_pairs_of_tensors_are_read_in_mixed_batches_of_100(memory: int | None) -> None:
    x, y = samples([75, 75, 75, 76])  # 301 samples: the last one joins the third batch
    order = y.argsort()
    profile = measure(network(), (x[order], y[order]), reading="mixed", memory=memory)
    assert profile.settings["batch_sizes"] == [101, 100]
    assert "unmixed-batches" not in codes(profile)
    assert same_numbers(profile, measure(network(), Batches(x[order], y[order]), reading="mixed", memory=memory))


@ways
@pytest.mark.parametrize("mode", ["eval", "mixed"])
def test_a_torch_dataset_is_read_like_the_pair_of_its_arrays(mode: str, memory: int | None) -> None:
    x, y = samples([75, 75, 75, 76])
    order = y.argsort()
    x, y = x[order], y[order]  # sorted by class, as folders of images are
    one = measure(network(), TensorDataset(x, y), reading=mode, memory=memory)  # type: ignore[arg-type]
    assert same_numbers(one, measure(network(), (x, y), reading=mode, memory=memory))  # type: ignore[arg-type]
    assert one.settings["batch_sizes"] == [101, 100]


def test_a_dataset_without_length_is_refused() -> None:
    class Unsized(Dataset):  # type: ignore[type-arg]
        def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
            return DATA[0][index], DATA[1][index]

    with pytest.raises(
        DataError, match=r"The training data are a Unsized without a length\. Give it `__len__`, or pass a"
    ):
        measure(network(), Unsized())


@ways
def test_a_pair_of_float64_arrays_is_cast_with_a_note(memory: int | None) -> None:
    pair = (DATA[0].double().numpy(), DATA[1].numpy().astype(np.int32))
    profile = measure(network(), pair, memory=memory)
    assert note(profile, "cast") == "The inputs came as torch.float64 and were cast to the model's torch.float32."
    assert same_numbers(profile, measure(network(), DATA, memory=memory))


def test_arrays_that_torch_does_not_like_are_read_without_a_warning(recwarn: pytest.WarningsRecorder) -> None:
    x, y = DATA[0].numpy()[::-1], DATA[1].numpy()[::-1]
    frozen = x.copy(), y.copy()
    for part in frozen:
        part.setflags(write=False)
    assert same_numbers(measure(network(), (x, y)), measure(network(), frozen))
    assert not list(recwarn)


@pytest.mark.parametrize("way", ["pair", "loader"])
@pytest.mark.parametrize("kind", [torch.float32, torch.int64])
def test_one_hot_labels_are_turned_into_indices_with_a_note(way: str, kind: torch.dtype) -> None:
    x, y = DATA
    hot = nn.functional.one_hot(y, 4).to(kind)
    data: Any = (x, hot) if way == "pair" else batches((x, hot))
    plain: Any = DATA if way == "pair" else batches(DATA)
    profile = measure(network(), data, data)
    assert note(profile, "one-hot") == "The targets are one-hot rows; they were turned into class indices."
    assert same_numbers(profile, measure(network(), plain, plain))
    assert "one-hot" not in codes(measure(network(), plain))


def test_labels_in_a_column_are_labels() -> None:
    x, y = DATA
    assert same_numbers(measure(network(), batches((x, y.unsqueeze(1)))), measure(network(), batches(DATA)))


@ways
def test_a_loader_over_an_iterable_dataset_is_read(memory: int | None) -> None:
    profile = measure(network(), DataLoader(Stream(), batch_size=25), memory=memory)
    assert same_numbers(profile, measure(network(), batches(DATA), memory=memory))


def test_a_generator_is_read_once_from_its_first_batch_on() -> None:
    profile = measure(network(), (batch for batch in batches(DATA)), (batch for batch in batches(DATA)))
    assert same_numbers(profile, measure(network(), batches(DATA), batches(DATA)))
    assert profile.counts == (30, 30, 30, 30)


def test_a_stream_that_only_looks_like_a_loader_loses_no_batch() -> None:
    assert same_numbers(measure(network(), Once(), Once()), measure(network(), batches(DATA), batches(DATA)))


def test_no_batch_is_fetched_in_vain_where_features_are_kept() -> None:
    fetched = []

    class Counting:
        def __iter__(self) -> Iterator[Batch]:
            for index, batch in enumerate(batches(DATA)):
                fetched.append(index)
                yield batch

    measure(network(), Counting())
    assert fetched == [0, 1, 2, 3, 4]


def test_empty_batches_are_skipped_even_at_the_start() -> None:
    x, y = DATA
    holes = [(x[:0], y[:0]), *batches(DATA), (x[:0], y[:0])]
    assert same_numbers(measure(network(), holes), measure(network(), batches(DATA)))
    assert measure(network(), iter(holes)).settings["batch_sizes"] == [25, 20]


def test_progress_tells_readings_and_sites() -> None:
    told: list[tuple[str, int, int | None]] = []
    measure(network(), batches(DATA), progress=lambda *args: told.append(args))
    assert told[0] == ("reading the training data", 1, 5)
    assert told[-1] == ("statistics", 4, 4)


# --- data that can be read once only


def test_a_generator_that_does_not_fit_is_a_data_error_with_the_budget() -> None:
    with pytest.raises(DataError) as caught:
        measure(network(), iter(batches(DATA)), memory=10_000)
    assert str(caught.value) == (
        "The training data can be read only once (they are an iterator), and the features of 4 sites need more than "
        "`memory=10000` bytes. Pass a loader that can be read twice, fewer sites, or more memory."
    )


def test_a_test_generator_that_does_not_fit_is_named_as_such() -> None:
    with pytest.raises(DataError, match="The test data can be read only once"):
        measure(network(), batches(DATA), iter(batches(DATA)), memory=0)


def test_a_stream_that_only_looks_like_a_loader_is_found_out_when_read_twice() -> None:
    with pytest.raises(DataError) as caught:
        measure(network(), Once(), memory=0)
    assert str(caught.value) == (
        "The training data can be read only once: a further reading found no batch. "
        "Pass data that can be read twice, or enough `memory` to keep their features."
    )


def test_content_that_changes_between_readings_is_a_data_error_with_both_counts() -> None:
    with pytest.raises(DataError) as caught:
        measure(network(), Growing(), memory=0)
    text = str(caught.value)
    assert text.startswith(
        "The training data cannot be read twice: 75 samples in the first reading, 100 in the second, classes ["
    )
    assert text.endswith("Pass data that repeat, or more `memory`.")


# --- loaders that shuffle or augment


def shuffling(generator: torch.Generator | None = None) -> DataLoader[Any]:
    return DataLoader(TensorDataset(*DATA), batch_size=25, shuffle=True, generator=generator)


@pytest.mark.parametrize("mode", ["eval", "mixed"])
@pytest.mark.parametrize("own", [False, True])
def test_a_loader_that_shuffles_is_repeated_exactly_and_given_back(mode: str, own: bool) -> None:
    generator = torch.Generator().manual_seed(4) if own else None
    loader = shuffling(generator)
    model = network()
    before = torch.get_rng_state(), generator.get_state() if generator else None
    profile = measure(model, loader, loader, reading=mode, memory=0)  # type: ignore[arg-type]
    assert not {"shuffled", "changed"} & set(codes(profile))
    assert all(site.null is not None for site in profile.sites)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert generator is None or torch.equal(generator.get_state(), before[1])


def test_a_shuffled_and_a_plain_loader_give_the_same_d() -> None:
    plain = measure(network(), batches(DATA))
    for memory in (None, 0):
        profile = measure(network(), shuffling(), memory=memory)
        assert profile.curve() == pytest.approx(plain.curve(), rel=1e-5)  # float32 sums in another order


def test_a_loader_that_shuffles_beyond_control_is_noted() -> None:
    data = samples([100] * 4)  # 400 × 30 features × 4 bytes do not fit, 10 folds of 4 × 30 means do
    profile = measure(network(), Shuffled(data), memory=30_000)
    assert note(profile, "shuffled") == (
        "The training loader shuffles between readings; D is not affected; its samples have no number that "
        "stays, so the chance level and intervals are left out."
    )
    assert profile.curve() == pytest.approx(measure(network(), batches(data)).curve(), rel=1e-5)
    assert profile.curve("null") == (None,) * 4
    assert profile.law.intervals == {}
    steady = measure(network(), batches(data), memory=30_000)
    assert None not in steady.curve("null")
    assert "rho" in steady.law.intervals


def test_a_test_loader_that_shuffles_beyond_control_is_noted() -> None:
    profile = measure(network(), batches(DATA), Shuffled(DATA), memory=0)
    assert note(profile, "shuffled") == "The test loader shuffles between readings; D is not affected."
    assert profile.curve("null") != (None,) * 4


@pytest.mark.parametrize("which", ["training", "test"])
def test_a_loader_that_augments_is_noted(which: str) -> None:
    plain, noisy = batches(DATA), Augmented(DATA)
    data = (noisy, plain) if which == "training" else (plain, noisy)
    profile = measure(network(), *data, memory=0)
    assert note(profile, "changed").startswith(
        f"The {which} features changed between the two readings (class means moved by"
    )
    assert note(profile, "changed").endswith("D is of both readings mixed.")


def test_a_loader_that_shuffles_in_batch_mode_changes_the_features() -> None:
    profile = measure(network(), Shuffled(DATA), reading="mixed", memory=0)
    assert "changed" in codes(profile)


def test_kept_features_need_no_second_reading_and_no_note() -> None:
    for data in (Shuffled(DATA), Augmented(DATA)):
        assert not {"shuffled", "changed"} & set(codes(measure(network(), data, data)))


def test_augmentation_by_the_global_generator_repeats_itself() -> None:
    class Noisy:
        def __iter__(self) -> Iterator[Batch]:
            for x, y in batches(DATA):
                yield x + 0.5 * torch.randn_like(x), y

    assert not {"shuffled", "changed"} & set(codes(measure(network(), Noisy(), memory=0)))


# --- what is no data


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (5, r"The training data should be an iterable of \(x, y\) batches; found int\."),
        ([torch.zeros(4, 8)] * 3, r"Batch 0 of the training data should be a pair \(x, y\); found Tensor\."),
        (
            [(1, 2, 3)] * 3,
            r"should be a pair \(x, y\); found tuple of 3, whose second entry is no vector of class labels",
        ),
        ([{"x": 1}] * 3, r"should be a pair \(x, y\); found dict\."),
        (
            [(torch.zeros(8), 3)] * 3,
            r"Batch 0 of the training data is a single sample \(its label is the number 3\)\. Put",
        ),
        (
            [(torch.zeros(5, 8), torch.zeros(4).long())],
            r"Batch 0 of the training data holds 5 samples and 4 labels\. Each",
        ),
        (
            (torch.zeros(5, 8), torch.zeros(4).long()),
            r"The training data hold 5 samples and 4 labels\. Each sample needs one",
        ),
    ],
)
def test_what_is_no_data_is_refused_with_what_was_found(data: object, sentence: str) -> None:
    with pytest.raises(DataError, match=sentence):
        measure(network(), data)


def test_inputs_that_are_no_numbers_are_refused() -> None:
    with pytest.raises(
        InputError, match="The inputs of batch 0 of the training data should be a tensor or an array; found"
    ):
        measure(network(), [(["a", "b"], torch.tensor([0, 1]))])


def test_the_batch_that_is_wrong_is_named_by_its_number_also_from_a_generator() -> None:
    bad = [*batches(DATA)[:3], (DATA[0][:5], DATA[1][:4])]
    for data in (bad, iter(bad)):
        with pytest.raises(DataError, match="Batch 3 of the training data holds 5 samples and 4 labels"):
            measure(network(), data)


def test_a_model_that_cannot_run_says_on_what() -> None:
    with pytest.raises(ModelError) as caught:
        measure(network(), samples(d=5))
    assert str(caught.value).startswith(
        "`Fnn` could not run the first batch (inputs of shape (100, 5), torch.float32, on cpu): "
    )


def test_features_of_changing_width_are_refused() -> None:
    model = nn.Sequential(nn.ReLU(), nn.Flatten(), nn.AdaptiveAvgPool1d(4))
    x, y = DATA
    with pytest.raises(SiteError, match=r"Site `input` gives 6 features at batch 1 of the training data, 8 before\."):
        measure(model, [(x[:20], y[:20]), (x[20:40, :6], y[20:40])])


def test_sites_that_mix_samples_are_refused() -> None:
    model = nn.Sequential(nn.Unflatten(1, (2, 4)), nn.Flatten(0, 1), nn.ReLU(), nn.Unflatten(0, (-1, 2)), nn.Flatten())
    with pytest.raises(SiteError, match=r"Site `2` gives 8 rows for the first 4 samples of the training data\."):
        measure(model, batches(DATA), classes=4)
