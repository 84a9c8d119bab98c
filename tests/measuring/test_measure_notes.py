"""Numbers that stand but need care come with a Note; numbers that do not exist are None."""

import math

import pytest
import torch
from measured_by_hand import batches, codes, network, note, samples
from torch import Tensor, nn

from equisep.measuring import measure
from equisep.models import Fnn

X, Y = samples()
ways = pytest.mark.parametrize("memory", [None, 0], ids=["buffered", "streamed"])


def plain(*parts: nn.Module) -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(*parts, nn.Linear(8, 4))


class Replace(nn.Module):
    """Features that depend on the sample's class alone: the inputs' own first column says which."""

    def __init__(self, table: Tensor) -> None:
        super().__init__()
        self.table = table

    def forward(self, x: Tensor) -> Tensor:
        return self.table[x[:, 0].long()]


def labeled() -> list[tuple[Tensor, Tensor]]:
    x = X.clone()
    x[:, 0] = Y
    return batches((x, Y))


@ways
def test_a_quiet_measurement_has_no_notes(memory: int | None) -> None:
    data = batches(samples(spread=0.05))
    other = batches(samples(spread=0.051))
    profile = measure(network(), data, other, memory=memory, intervals="none")
    assert codes(profile) == []


@ways
def test_an_absent_class_is_left_out(memory: int | None) -> None:
    keep = Y != 1
    data = batches((X[keep], Y[keep]))
    profile = measure(network(), data, data, memory=memory)
    assert profile.counts == profile.counts_test == (30, 0, 30, 30)
    assert note(profile, "absent-training") == (
        "1 of 4 classes (1) have no sample in the training data; they are left out of all means over classes."
    )
    assert "absent-test" in codes(profile)
    assert all(site.class_fuzziness[1] is None for site in profile.sites)
    assert all(site.rank == 2 for site in profile.sites)
    assert "rank" not in codes(profile)
    known = {"corrected", "corrected test", "test", "cdnv", "cdnv_directional", "class 0", "class 2", "class 3"}
    assert profile.laws.keys() == known


@ways
def test_a_class_with_a_single_sample_stands(memory: int | None) -> None:
    x, y = samples([30, 30, 30, 1])
    profile = measure(network(), batches((x, y)), memory=memory)
    assert note(profile, "single-training") == (
        "1 of 4 classes (3) have one sample in the training data; they are without within-class spread of their own, "
        "and in these data each is its own class mean."
    )
    assert all(site.class_fuzziness[3] == 0 for site in profile.sites)
    assert all(math.isfinite(value) for value in profile.curve())


@ways
def test_test_data_that_are_the_training_data_are_noted_first(memory: int | None) -> None:
    profile = measure(network(), batches((X, Y)), batches((X, Y)), memory=memory)
    assert profile.notes[0].code == "test-is-training"
    assert "test samples" not in profile.explain()
    other = measure(network(), batches((X, Y)), batches((X + 1e-3, Y)), memory=memory)
    assert "test-is-training" not in codes(other)


def test_batches_of_one_class_are_noted_before_test_data_that_are_the_training_data() -> None:
    order = Y.argsort()
    pure = batches((X[order], Y[order]), 30)
    first = codes(measure(network(), pure, pure, reading="drawn"))[:3]
    assert first == ["unmixed-batches", "unmixed-batches", "test-is-training"]  # of both sets


def test_many_absent_classes_are_named_briefly() -> None:
    profile = measure(network(), batches((X, Y)), classes=30)
    assert note(profile, "absent-training").startswith("26 of 30 classes (4, 5, 6, 7, 8, …) have no sample")


@ways
def test_small_classes_against_wide_features_are_noted(memory: int | None) -> None:
    profile = measure(network(), batches(samples([40, 40, 40, 7])), memory=memory)
    assert note(profile, "small-classes").startswith(
        "The smallest class has 7 samples against up to 9 features at 2 of 4 sites: D depends on n against d there"
    )


@ways
def test_half_precision_is_noted(memory: int | None) -> None:
    profile = measure(network().to(torch.bfloat16), batches((X, Y)), memory=memory)
    assert note(profile, "half-precision").startswith("4 sites came in half precision")
    assert note(profile, "cast") == "The inputs came as torch.float32 and were cast to the model's torch.bfloat16."
    assert profile.provenance["dtype"] == "bfloat16"
    exact = measure(network(), batches((X, Y)))
    assert profile.curve()[0] == pytest.approx(exact.curve()[0], rel=0.05)
    assert "half-precision" not in codes(exact)


@ways
@pytest.mark.parametrize("which", ["training", "test"])
def test_batches_less_class_mixed_than_chance_are_noted_first_of_all(which: str, memory: int | None) -> None:
    order = Y.argsort()
    mixed, pure = batches((X, Y)), batches((X[order], Y[order]), 30)
    data = (pure, mixed) if which == "training" else (mixed, pure)
    profile = measure(network(), *data, reading="drawn", memory=memory)
    assert codes(profile)[0] == "unmixed-batches"
    assert note(profile, "unmixed-batches") == (
        f"The batches of the {which} data are less class-mixed than a random order makes them (4 of 4 batches hold one class "
        "only; two samples of one class share a batch 4.1 times as often): BatchNorm normalizes a class by the company it is "
        "read in, which changes D, the more so the deeper the layer. `readings='eval,drawn'` shows by how much."
    )
    assert "unmixed-batches" not in codes(measure(network(), *data, reading="eval", memory=memory))


def test_one_class_batches_without_batchnorm_are_no_trouble() -> None:
    order = Y.argsort()
    for reading in ("mixed", "drawn"):
        profile = measure(plain(nn.ReLU()), batches((X[order], Y[order]), 30), reading=reading)
        assert "unmixed-batches" not in codes(profile)


def test_batchnorm_without_running_statistics_is_noted_in_every_reading() -> None:
    """`eval` says that batches do not matter: here they do."""
    model = plain(nn.Linear(8, 8), nn.BatchNorm1d(8, track_running_stats=False), nn.ReLU())
    order = Y.argsort()
    pure = measure(model, batches((X[order], Y[order]), 30))
    assert codes(pure)[0] == "batch-statistics"
    assert note(pure, "batch-statistics") == (
        "1 BatchNorm layer (first `1`) keeps no running statistics: in `eval` too samples are normalized by their batch, so that "
        "D and accuracy depend on which samples share one. Pass batches as the network will meet them."
    )
    assert pure.sites[-1].fuzziness != pytest.approx(measure(model, (X, Y)).sites[-1].fuzziness, rel=0.01)
    assert "batch-statistics" not in codes(measure(network(), (X, Y)))


@pytest.mark.parametrize("size", [1, 15, 60])
def test_class_sorted_data_have_the_chance_level_of_their_features(size: int) -> None:
    """Random labels go by sample number, whatever the order; batches were permuted inside before."""
    order = Y.argsort()
    streamed = measure(network(), batches((X[order], Y[order]), size), memory=0)
    kept = measure(network(), batches((X[order], Y[order]), 60))
    assert streamed.curve("null") == pytest.approx(kept.curve("null"), rel=1e-5)
    assert min(kept.curve("null")) > 2 * max(kept.curve())


@ways
def test_collapsed_features_have_d_zero_and_no_law(memory: int | None) -> None:
    table = torch.tensor([[1.0, 0, 0, 0, 2, 0, 0, 1], [0, 1, 0, 0, 0, 0, 1, 0], [0, 0, 4, 0, 0, 1, 0, 0], [0] * 8])
    model = plain(Replace(table), nn.ReLU(), nn.ReLU())
    profile = measure(model, labeled(), sites=["0", "1", "2"], memory=memory)
    assert profile.curve()[1:] == (0.0, 0.0, 0.0)
    assert profile.curve("nc1")[1:] == (0.0, 0.0, 0.0)
    assert profile.curve("cdnv")[1:] == (0.0, 0.0, 0.0)
    assert (profile.law.rho, profile.law.r, profile.law.half_life) == (None, None, None)
    assert note(profile, "zero-fuzziness").startswith("D is exactly 0 at 3 positions, first 1, of 4")
    assert profile.effective_depth == 1
    assert not {"changed", "shuffled"} & set(codes(profile))


@ways
def test_collapse_to_rounding_is_not_taken_for_a_changing_loader(memory: int | None) -> None:
    table = torch.rand(4, 8, generator=torch.Generator().manual_seed(0))  # means of equal numbers round
    profile = measure(plain(Replace(table), nn.ReLU()), labeled(), sites=["0", "1"], memory=memory)
    assert "changed" not in codes(profile)
    assert max(profile.curve()[1:]) < 1e-25


@ways
def test_constant_features_have_no_d(memory: int | None) -> None:
    model = plain(Replace(torch.ones(4, 8)), nn.ReLU())
    profile = measure(model, labeled(), labeled(), sites=["0", "1"], memory=memory)
    for site in profile.sites[1:]:
        assert site.rank == 0
        assert (
            site.fuzziness
            is site.fuzziness_test
            is site.class_fuzziness
            is site.nc1
            is site.cdnv
            is site.cdnv_test
            is None
        )
        assert site.etf_distance is None
        assert site.trace_between == pytest.approx(0, abs=1e-25)
    assert [entry.site for entry in profile.notes if entry.code == "no-separation"] == ["0", "1"]
    assert note(profile, "no-curve") == "No law: D exists at 1 of 3 sites."
    assert profile.law.rho is None
    assert profile.settings["intervals_by"] is None


@ways
def test_constant_features_have_no_nc1_where_classes_are_unequal(memory: int | None) -> None:
    """Then NC1 weighs the class means otherwise than D does, on the directions of these, of which there is none."""
    model = plain(Replace(torch.ones(4, 8)), nn.ReLU())
    x, y = (torch.cat(part)[:-3] for part in zip(*labeled(), strict=True))
    assert len(set(y.bincount().tolist())) > 1
    profile = measure(model, batches((x, y)), sites=["0", "1"], memory=memory)
    assert profile.sites[0].nc1 is not None
    assert all(site.rank == 0 and site.fuzziness is None and site.nc1 is None for site in profile.sites[1:])


@ways
def test_dependent_class_means_are_noted_with_their_rank(memory: int | None) -> None:
    table = torch.zeros(4, 8)
    table[:, 0] = torch.arange(4.0)  # four means on one line

    class Noisy(Replace):
        def forward(self, x: Tensor) -> Tensor:
            return super().forward(x) + torch.nn.functional.pad(0.1 * x[:, 1:2], (0, 7))

    profile = measure(plain(Noisy(table)), labeled(), sites=["0"], memory=memory)
    assert profile.sites[1].rank == 1
    (found,) = [entry for entry in profile.notes if entry.code == "rank"]
    assert found.site == "0"
    assert found.text.startswith("The class means span 1 of 3 directions (cut at ")


def test_two_sites_have_a_line_but_no_r() -> None:
    torch.manual_seed(0)
    profile = measure(Fnn(2, width=6, inputs=8, classes=4), batches((X, Y)))
    assert profile.law.rho == pytest.approx(profile.curve()[1] / profile.curve()[0])
    assert profile.law.r is None
    assert note(profile, "few-sites").startswith("The curve has 2 sites")


def test_rising_d_has_a_rho_above_one_and_no_half_life() -> None:
    x = torch.randn(120, 8, generator=torch.Generator().manual_seed(0))
    x[:, 0] = Y + 0.1 * x[:, 0]  # the classes differ along one feature, which the untrained layer mixes with the rest
    profile = measure(plain(nn.Linear(8, 8), nn.Tanh()), batches((x, Y)))
    assert profile.law.rho > 1
    assert profile.law.half_life is None
    assert "rho-not-below-one" in codes(profile)


def test_notes_come_once() -> None:
    double = [(x.double(), y) for x, y in batches((X, Y))]
    profile = measure(network(), double, double)
    assert len(profile.notes) == len(set(profile.notes))
    assert codes(profile).count("cast") == 1


def test_a_zero_row_of_means_is_none_not_nan() -> None:
    """Three means at the corners of a triangle and the fourth at their center has no angle."""
    table = torch.zeros(4, 8)
    table[0, :2], table[1, :2], table[2, :2] = torch.tensor([2.0, 0]), torch.tensor([-1.0, 1]), torch.tensor([-1.0, -1])
    profile = measure(plain(Replace(table)), labeled(), sites=["0"])
    site = profile.sites[1]
    assert (site.norm_spread, site.angle_spread, site.angle_gap, site.etf_distance) == (None,) * 4
    assert site.nc1 == 0


@ways
def test_of_too_many_classes_the_directional_cdnv_is_left_out_with_a_note(memory: int | None) -> None:
    y = torch.arange(2 * 1100) % 1100
    x = torch.randn(len(y), 8, generator=torch.Generator().manual_seed(0))
    model = nn.Sequential(nn.ReLU(), nn.Linear(8, 1100))
    asked = ["cdnv", "cdnv_directional", "confusion", "pairs"]
    profile = measure(model, (x, y), metrics=asked, sites=["0"], memory=memory, coordinates=0)
    site = profile.sites[-1]
    assert "1,100" in note(profile, "no-directional")
    assert site.cdnv_directional is None and site.cdnv is not None
    assert len(site.confused) == len(site.nearest) == len(site.cosines.least) == len(profile.confused_train) == 20
