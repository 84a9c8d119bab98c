"""Groups as they are run: stages, frozen and grafted layers, noise on weights, second samples, divergence, provenance."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from equisep.data import Batches
from equisep.errors import EquisepError, InputError
from equisep.figures.catalogue import figure_of
from equisep.figures.cell import Cell
from equisep.figures.figure import Figure
from equisep.measuring import measure
from equisep.runs.cell_data import cell_data_of
from equisep.runs.plan import scaled
from equisep.runs.run import run_group
from equisep.runs.runners import ensembles, networks
from equisep.runs.runners.architecture import network_of
from equisep.runs.runners.cells import recipe_of, shape_of
from equisep.runs.runners.ensembles import _first_milestones
from equisep.runs.runners.networks import head_of
from equisep.training import Ensemble, Member, train, train_ensemble

SMALL = Cell(
    data="embedded-10x10", per_class=6, test_per_class=4, depth=4, width=12, epochs=2, batch_size=32, rate=3e-3
)
Trained = list[tuple[list[Member], Ensemble, dict[str, Any]]]


@pytest.fixture
def trainings(monkeypatch: pytest.MonkeyPatch) -> Trained:
    """Every training of an ensemble: its members, what came of it, and how it was called."""
    kept: Trained = []
    plain = train_ensemble

    def keep(members: list[Member], *data: Any, **options: Any) -> Ensemble:
        made = plain(members, *data, **options)
        kept.append((members, made, options))
        return made

    monkeypatch.setattr(ensembles, "train_ensemble", keep)
    return kept


def at_smoke(figure: Figure, name: str, **changes: Any) -> Cell:
    """A series of a figure, small, on the embedded images."""
    (series,) = figure.named(name)
    cell = scaled(figure.cell(series), figure, "smoke")
    return cell.with_(data="embedded-10x10", stands_for=cell.data, **changes)


def layer(weights: dict[str, Tensor], number: int) -> dict[str, Tensor]:
    """The tensors of one hidden layer that learn; running statistics follow the data, frozen or not."""
    own = {name: value for name, value in weights.items() if name.startswith(f"blocks.{number}.")}
    assert own
    return {name: value for name, value in own.items() if "running" not in name and "tracked" not in name}


def same(one: dict[str, Tensor], two: dict[str, Tensor]) -> bool:
    return one.keys() == two.keys() and all(torch.equal(one[name], two[name]) for name in one)


# stages


def test_frozen_layers_stay_bit_identical_in_the_second_stage(trainings: Trained) -> None:
    """Fig. 9: a first stage alone ends where the frozen half of the whole training is."""
    cell = at_smoke(figure_of("he2023/fig9"), "frozen", first_epochs=2, epochs=2)
    run_group([cell])
    run_group([cell.with_(epochs=0)])
    run_group([cell.with_(epochs=0, first_epochs=0)])
    whole, first, start = (made.weights(0) for _, made, _ in trainings)
    assert len(trainings) == 3
    for number in range(10):
        assert same(layer(whole, number), layer(first, number)) and not same(layer(first, number), layer(start, number))
    for number in range(10, 19):
        assert same(layer(first, number), layer(start, number)) and not same(layer(whole, number), layer(first, number))


def test_leaky_layers_move_on(trainings: Trained) -> None:
    cell = at_smoke(figure_of("he2023/fig9"), "leaky", first_epochs=2, epochs=2)
    run_group([cell])
    run_group([cell.with_(leaky=False)])
    leaky, frozen = (made.weights(0) for _, made, _ in trainings)
    assert not any(same(layer(leaky, number), layer(frozen, number)) for number in range(10))


def test_all_layers_learn_once_they_are_reactivated(trainings: Trained) -> None:
    figure = figure_of("he2023/reactivate")
    run_group([at_smoke(figure, "frozen", first_epochs=1, epochs=1)])
    run_group([at_smoke(figure, "reactivated", first_epochs=1, epochs=1, last_epochs=1)])
    frozen, again = (made.weights(0) for _, made, _ in trainings)
    assert not any(same(layer(frozen, number), layer(again, number)) for number in range(19))
    assert trainings[1][1].reading().epoch == 3


@pytest.mark.parametrize(
    ("id", "name", "depths", "keep"),
    [("he2023/figS11", "grafted", (20, 15), 10), ("he2023/transfer", "t-600", (8, 8), 5)],
)
def test_grafted_layers_come_from_the_first_training_and_stay(
    id: str, name: str, depths: tuple[int, int], keep: int, trainings: Trained
) -> None:
    cell = at_smoke(figure_of(id), name, first_epochs=2, epochs=2)
    cells = [cell.with_(seed=seed, data_seed=seed) for seed in (0, 1)]
    run_group(cells)
    (before, first, _), (after, whole, options) = trainings
    assert (before[0].shape.depth, after[0].shape.depth) == depths
    assert first.members[0].shape.classes == (5 if cell.first_classes else 10)
    for index, own in enumerate(cells):
        old, new = first.weights(index), whole.weights(index)
        fresh = shape_of(own, inputs=100, classes=after[0].shape.classes).build(own.seed).state_dict()
        for number in range(keep):
            assert same(layer(new, number), layer(old, number)) and not same(layer(new, number), layer(fresh, number))
        for number in range(keep, depths[1] - 1):
            start = options["starts"][index]
            assert same(layer(start, number), layer(fresh, number)) and not same(
                layer(new, number), layer(fresh, number)
            )
    assert options["stages"][0].trains == tuple(range(keep + 1, depths[1] + 1))


def test_the_transfer_trains_on_its_source_and_then_on_its_target(trainings: Trained) -> None:
    cell = at_smoke(figure_of("he2023/transfer"), "t-600", first_epochs=1, epochs=1)
    run_group([cell])
    source, target = (cell_data_of([cell], classes=classes) for classes in (cell.first_classes, cell.classes))
    for (_, _, options), cell_data in zip(trainings, (source, target), strict=True):
        assert torch.equal(options["samples"][0][0], cell_data.rows[0])
        assert torch.equal(options["samples"][0][1], cell_data.labels[0]) and cell_data.classes == 5
    # untrained layers are kept too: t = 0
    ((_, outcome, _),) = run_group([cell.with_(first_epochs=0)])
    assert outcome.readings[-1].accuracy is not None


def test_a_first_stage_cuts_the_schedule_of_a_longer_training() -> None:
    """Milestones at 200 and 400 of 600 epochs: of 300 epochs the first is at 2/3; of 100 there is none; 0 is constant."""
    cell = Cell(kind="staged", first_schedule=600)

    def milestones(**changes: int) -> tuple[float, ...]:
        staged = cell.with_(**changes).stages
        assert staged is not None
        return _first_milestones(staged, cell.milestones)

    assert milestones(first_epochs=600) == pytest.approx((1 / 3, 2 / 3))
    assert milestones(first_epochs=300) == pytest.approx((2 / 3,))
    assert milestones(first_epochs=100) == ()
    assert milestones(first_epochs=900, first_schedule=0) == ()


# noise


def noisy(*levels: float, **changes: Any) -> list[Cell]:
    return [SMALL.with_(noise=levels, noise_draws=2, seed=seed, data_seed=seed, **changes) for seed in range(3)]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_no_noise_changes_nothing_exactly(dtype: str) -> None:
    for _, outcome, _ in run_group(noisy(0.0, 0.05, dtype=dtype)):
        still, moved = outcome.arrays["noise_change"]
        assert still == 0.0 and moved is not None and moved > 0
        assert outcome.arrays["noise"] == (0.0, 0.05)
        assert outcome.numbers["change"] == moved  # of the middle ε


def test_more_noise_changes_more_and_readings_stay_as_they_were() -> None:
    plain = [outcome for _, outcome, _ in run_group([cell.with_(noise=(), noise_draws=0) for cell in noisy(0.1)])]
    for (cell, outcome, _), without in zip(run_group(noisy(0.001, 0.01, 0.5)), plain, strict=True):
        change = outcome.arrays["noise_change"]
        small, middling, large = (float(value or 0) for value in change)
        assert 0 < small < middling < large
        assert outcome.readings == without.readings
        curve = np.array(outcome.readings[-2].fuzziness, dtype=np.float64)
        assert outcome.readings[-2].reading == cell.readings[0]
        # Proposition 1: the least change at this R is (L − 1) R^{−1/(L−1)} times ε
        least = (len(curve) - 1) * (curve[-1] / curve[0]) ** (-1 / (len(curve) - 1))
        middle, matched = outcome.numbers["change"], outcome.numbers["change_matched"]
        assert middle is not None and matched == pytest.approx(middle / least, rel=1e-9)


def test_noise_has_the_size_it_says() -> None:
    chance = torch.Generator().manual_seed(1)
    weights = {
        "blocks.0.linear.weight": torch.randn(60, 50),
        "blocks.0.linear.bias": torch.ones(60),
        "head.weight": torch.ones(3, 60),
    }
    moved = ensembles._noisy(weights, 0.1, chance)
    gap = moved["blocks.0.linear.weight"] - weights["blocks.0.linear.weight"]
    # ‖noise‖ = ε‖W‖ in expectation; its relative deviation is 1/√(2·3000)
    assert float(gap.norm() / weights["blocks.0.linear.weight"].norm()) == pytest.approx(0.1, rel=0.06)
    assert torch.equal(moved["blocks.0.linear.bias"], weights["blocks.0.linear.bias"])
    assert torch.equal(moved["head.weight"], weights["head.weight"])


# readings


def test_a_member_is_what_the_plain_loop_trains_and_measure_reads() -> None:
    """Everything of a cell again by `train` and `measure`, in float64."""
    cell = SMALL.with_(dtype="float64", test_sites=True, class_wise=True, read_epochs=(0, 1), seed=3, data_seed=1)
    ((_, outcome, made),) = run_group([cell])
    cell_data = cell_data_of([cell])
    x, y = cell_data.of(0)
    x, test = x.double().flatten(1), (cell_data.test[0].double().flatten(1), cell_data.test[1])
    network = shape_of(cell, inputs=100, classes=10).build(3).double()
    read: dict[tuple[int, str], Any] = {}

    def after(epoch: int) -> None:
        for mode in cell.readings:
            read[epoch, mode] = measure(
                network, Batches(x, y), Batches(*test), reading=mode, intervals="none", coordinates=0,  # type: ignore[arg-type]
                metrics=["fuzziness", "cdnv", "ncc", "class_fuzziness"],
            )  # fmt: skip

    history = train(network, x, y, recipe=recipe_of(cell), after_epoch=after)
    assert (
        [(curves.epoch, curves.reading) for curves in outcome.readings]
        == list(read)
        == [(epoch, mode) for epoch in (0, 1, 2) for mode in ("mixed", "eval")]
    )
    for curves, profile in zip(outcome.readings, read.values(), strict=True):
        for ours, theirs in (("fuzziness", "fuzziness"), ("cdnv", "cdnv"), ("ncc", "ncc_train"), ("ncc_test", "ncc_test"),
                             ("fuzziness_test", "fuzziness_test"), ("cdnv_test", "cdnv_test")):  # fmt: skip
            assert getattr(curves, ours) == pytest.approx(
                [getattr(site, theirs) for site in profile.sites], rel=1e-8
            ), ours
        assert [own[-1] for own in curves.class_fuzziness] == pytest.approx(
            list(profile.sites[-1].class_fuzziness), rel=1e-8
        )
        assert curves.accuracy == pytest.approx(profile.accuracy_train)
        assert curves.accuracy_test == pytest.approx(profile.accuracy_test)
        assert curves.sites == ("input", "blocks.0", "blocks.1", "blocks.2")
    assert outcome.numbers["final_loss"] == pytest.approx(history.loss[-1], rel=1e-6)
    assert made["dtype"] == "float64" and made["together"] == 1 and made["data"] == cell_data.checksum
    assert {"equisep", "torch", "python", "device", "engine", "tf32", "wall_s"} <= made.keys()


def test_a_convolutional_cell_is_read_at_every_epoch_mode_grain_and_reduction() -> None:
    cell = SMALL.with_(
        network="resnet-2-layer", depth=None, width=None, preparation="he2023-10x10", epochs=2, read_epochs=(0, 2),
        grains=("blocks", "layers"), reductions=("pca=5", "flatten"), width_multiplier=0.2, classifier=True, coordinates=9,
    )  # fmt: skip
    ((_, outcome, made),) = run_group([cell])
    ways = [(curves.epoch, curves.reading, curves.grain, curves.reduction) for curves in outcome.readings]
    assert ways == [
        (epoch, mode, grain, reduction)
        for epoch in (0, 2)
        for mode in ("mixed", "eval")
        for grain in ("blocks", "layers")
        for reduction in ("pca=5", "flatten")
    ]
    blocks, layers = (outcome.reading(grain=grain) for grain in ("blocks", "layers"))
    assert blocks is not None and layers is not None and len(blocks.sites) == 5 and len(layers.sites) == 9
    assert outcome.numbers.keys() >= {"final_loss", "minority_cosine"} and set(outcome.points) == set(blocks.sites)
    assert all(len(points) == 9 for points in outcome.points.values())
    assert made["engine"] == "single"
    again = run_group([cell])
    assert again[0][1] == outcome  # to the bit


def test_augmented_networks_are_read_on_images_as_they_are() -> None:
    cell = SMALL.with_(read_epochs=(0,))
    ((_, plain, _),), ((_, augmented, _),) = run_group([cell]), run_group([cell.with_(augment=True)])
    assert plain.readings[0].fuzziness == pytest.approx(augmented.readings[0].fuzziness, rel=1e-4)  # before training
    assert plain.readings[-1].fuzziness != pytest.approx(augmented.readings[-1].fuzziness, rel=1e-2)


def test_the_second_sample_is_learned_or_only_shown() -> None:
    joined = SMALL.with_(second=4, second_noise=0.5)
    shown = SMALL.with_(second=4, second_read=True)
    ((_, alone, _),), ((_, outcome, _),), ((_, both, _),) = (run_group([cell]) for cell in (SMALL, shown, joined))
    assert outcome.readings == alone.readings and outcome.numbers["final_loss"] == alone.numbers["final_loss"]
    balance = outcome.numbers["balance"]
    assert balance is not None and 0 <= balance <= 2 and "balance" not in alone.numbers
    assert both.readings != alone.readings and "balance" not in both.numbers


def test_coordinates_have_a_cloud_for_every_site_with_the_labels_of_its_samples() -> None:
    ((_, outcome, _),) = run_group([SMALL.with_(coordinates=25)])
    assert list(outcome.points) == ["input", "blocks.0", "blocks.1", "blocks.2"]
    for cloud in outcome.points.values():
        assert len(cloud) == 25 and {label for _, _, label in cloud} <= set(map(float, range(10)))


# what goes wrong


def test_a_network_that_diverges_is_kept_without_numbers_and_harms_no_other() -> None:
    cells = [SMALL.with_(optimizer="sgd", norm=False, rate=rate, noise=(0.1,), noise_draws=1) for rate in (0.01, 1e30)]
    (_, sound, _), (_, lost, _) = run_group(cells)
    ((_, alone, _),) = run_group(cells[:1])
    assert lost.diverged is not None and lost.numbers["final_loss"] is None and "noise_change" not in lost.arrays
    assert all(value is None for value in lost.readings[-1].fuzziness[1:])
    assert sound.diverged is None and sound.readings[-1].fuzziness == pytest.approx(
        alone.readings[-1].fuzziness, rel=1e-4
    )
    single = SMALL.with_(
        network="vgg11", depth=None, width=None, preparation="he2023-32x32", width_multiplier=1 / 16, optimizer="sgd",
        rate=1e30, classifier=True,
    )  # fmt: skip
    ((_, outcome, _),) = run_group([single])
    assert outcome.diverged == 1 and outcome.notes == ("Training diverged at epoch 1.",) and outcome.readings == ()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"dtype": "float16"}, "A cell trains in float32 or float64; found `float16`."),
        (
            {"augment": True, "kind": "staged"},
            "`fnn` on augmented images trains by itself, where stages cannot be had.",
        ),
        (
            {"network": "vgg11", "noise": (0.1,), "noise_draws": 1},
            "`vgg11` trains by itself, where noise on weights cannot be had",
        ),
        (
            {"augment": True, "second": 2, "second_read": True},
            "where `second_read` cannot be had. Use `fnn` with its own activation and sgd, momentum or adam, without ",
        ),
        ({"network": "vgg12", "depth": None, "width": None}, "No network `vgg12`. Did you mean"),
        ({"read_epochs": (7,)}, "A reading is asked at epoch 7, but training ends at 2."),
    ],
)
def test_a_cell_that_cannot_be_run_is_one_sentence(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(EquisepError) as caught:
        run_group([SMALL.with_(**changes)])
    assert words in str(caught.value)


@pytest.mark.parametrize("changes", [{"grains": ("x",)}, {"reductions": ("mean",)}, {"grains": ("layers", "blocks")}])
def test_what_a_feed_forward_network_cannot_be_read_by_is_told(changes: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"is read by layers, as it is; the cell asks for grains="):
        run_group([SMALL.with_(**changes)])


def test_a_gpu_that_is_absent_is_one_sentence() -> None:
    if torch.cuda.is_available():
        pytest.skip("there is one")
    for network in ("fnn", "pure-cnn"):
        with pytest.raises(InputError, match="cuda"):
            run_group([SMALL.with_(network=network)], device="cuda")


# layout

NARROW = {"depth": None, "width": None, "preparation": "he2023-32x32", "width_multiplier": 1 / 16}


@pytest.mark.parametrize(
    "changes",
    [
        {"network": "vgg11", **NARROW},
        {"network": "resnet18", **NARROW},
        {"network": "pure-cnn", "width": None, "channels": 6},
    ],
    ids=lambda changes: str(changes["network"]),
)
def test_how_images_lie_changes_no_more_than_digits(changes: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    cell = SMALL.with_(dtype="float64", epochs=1, **changes)
    ((_, plain, made),) = run_group([cell])
    monkeypatch.setattr(networks, "_layout", lambda cell, x: torch.channels_last)
    ((_, other, told),) = run_group([cell])
    assert "layout" not in made and told["layout"] == "channels last"
    assert other.readings[-1].fuzziness == pytest.approx(plain.readings[-1].fuzziness, rel=1e-9)
    assert other.numbers["final_loss"] == pytest.approx(plain.numbers["final_loss"], rel=1e-9)


def test_images_lie_channels_last_on_a_gpu_but_for_code_that_is_not_ours() -> None:
    images, rows = (Batch(torch.device("cuda"), ndim) for ndim in (4, 2))
    ours, theirs = SMALL.with_(network="vgg11"), SMALL.with_(network="./mine.py:net")
    assert networks._layout(ours, images) == torch.channels_last  # type: ignore[arg-type]
    for cell, batch in ((ours, Batch(torch.device("cpu"), 4)), (ours, rows), (theirs, images)):
        assert networks._layout(cell, batch) == torch.preserve_format  # type: ignore[arg-type]


class Batch(NamedTuple):
    """What is asked of images before they are laid out."""

    device: torch.device
    ndim: int


# networks by name


@pytest.mark.parametrize(
    ("changes", "channels"),
    [
        ({"network": "pure-cnn", "depth": 4, "channels": 6, "kernel": 5}, 1),
        ({"network": "convnet", "depth": 3, "width": 8}, 3),
        ({"network": "vgg11", "depth": None, "width": None, "pooling": False}, 1),
        ({"network": "resnet18", "depth": None, "width": None}, 3),
        ({"network": "densenet161", "depth": None, "width": None}, 1),
        ({"network": "alexnet-wide", "depth": None, "width": None}, 3),
        ({"network": "fnn", "augment": True}, 1),
    ],
)
def test_networks_are_built_for_the_images_by_their_seed(changes: dict[str, Any], channels: int) -> None:
    cell = Cell(width_multiplier=1 / 16, **changes)
    images = torch.zeros(2, channels, 32, 32)
    one, two, other = (network_of(cell.with_(seed=seed), images, classes=7) for seed in (4, 4, 5))
    assert one(images).shape == (2, 7) and isinstance(head_of(one), nn.Linear) and head_of(one).out_features == 7
    pairs = list(zip(one.parameters(), two.parameters(), other.parameters(), strict=True))
    assert all(torch.equal(a, b) for a, b, _ in pairs) and not all(torch.equal(a, c) for a, _, c in pairs)


def test_widths_are_multiplied_and_parts_left_out() -> None:
    cell = Cell(depth=4, widths=(100, 50, 2), width_multiplier=0.1)
    assert shape_of(cell, inputs=9, classes=3).widths == (10, 5, 1)
    assert shape_of(Cell(depth=4), inputs=9, classes=3, depth=6).widths == (100,) * 5
    assert not shape_of(Cell(network="fnn-no-batchnorm"), inputs=9, classes=3).norm
    assert not shape_of(Cell(network="fnn-linear"), inputs=9, classes=3).activation
    assert shape_of(Cell(norm=False), inputs=9, classes=3) == shape_of(
        Cell(network="fnn-no-batchnorm"), inputs=9, classes=3
    )
