"""`Separation`: the checks that torchmetrics makes of a metric, on torchmetrics' base and on our own."""

from __future__ import annotations

import math
import pickle
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from metric_faces import FACES, needs_torchmetrics
from recipes import recipe
from torch import Tensor, multiprocessing, nn

import equisep
from closeness import close
from equisep.errors import FeatureError, InputError, LabelError
from reference import plain
from reference.scenes import Scene, around, blobs, frame

SIZES, DIM = (30, 17, 8, 25), 6
NUMBERS = ["fuzziness", "nc1", "cdnv", "norm_spread", "angle_spread", "angle_gap", "etf_distance"]
faces = pytest.mark.parametrize("face", FACES)


def scene(**options: Any) -> Scene:
    return blobs(3, SIZES, DIM, **options)


def batches(data: Scene, size: int = 16) -> list[tuple[Tensor, Tensor]]:
    x, y = torch.as_tensor(data.x), torch.as_tensor(data.y)
    return list(zip(x.split(size), y.split(size), strict=True))


def fed(metric: Any, data: Scene, size: int = 16) -> Any:
    for x, y in batches(data, size):
        metric.update(x, y)
    return metric


@faces
def test_one_pass_gives_the_numbers_of_all_samples_at_once(face: Callable[..., Any]) -> None:
    data = scene()
    values = fed(face(4), data).compute()
    assert list(values) == NUMBERS
    close(values["fuzziness"], equisep.fuzziness(*data), rtol=1e-10)
    close(values["cdnv"], equisep.cdnv(*data), rtol=1e-10)
    close(values["nc1"], plain.nc1(*data), rtol=1e-10)
    expected = plain.nc2(plain.centered_class_means(*data))
    for name in NUMBERS[3:]:
        close(values[name], getattr(expected, name), rtol=1e-10)


@faces
@pytest.mark.parametrize("passes", [1, 2])
def test_forward_gives_the_value_of_the_batch_and_keeps_the_whole(face: Callable[..., Any], passes: int) -> None:
    data, metric = scene(), face(4, DIM, passes=passes)
    for x, y in batches(data, 40):
        close(metric(x, y)["fuzziness"], equisep.fuzziness(x, y), rtol=1e-10)
    close(metric.compute()["fuzziness"], equisep.fuzziness(*data), rtol=1e-10)
    if passes == 2:
        metric.next_pass()
        for x, y in batches(data, 25):
            close(metric(x, y)["fuzziness"], equisep.fuzziness(x, y), rtol=1e-10)
        assert float(metric.compute()["ncc"]) == equisep.ncc_accuracy(*data)


@faces
@pytest.mark.parametrize("weighting", ["sample", "class", "mixed"])
def test_a_second_pass_gives_every_class_and_nearest_centers(face: Callable[..., Any], weighting: str) -> None:
    data = scene(offset=1e3)
    metric = fed(face(4, passes=2, weighting=weighting), data)
    first = metric.compute()
    assert first["class_fuzziness"].isnan().all() and first["ncc"].isnan()
    metric.next_pass()
    values = fed(metric, data, size=9).compute()
    close(values["fuzziness"], equisep.fuzziness(*data, weighting=weighting), rtol=1e-10)
    close(values["class_fuzziness"], equisep.class_fuzziness(*data, weighting=weighting), rtol=1e-10)
    assert float(values["ncc"]) == equisep.ncc_accuracy(*data)


@faces
def test_matrices_per_class_give_every_class_in_one_pass(face: Callable[..., Any]) -> None:
    data = scene()
    values = fed(face(6, per_class=True, weighting="class"), data).compute()
    close(values["fuzziness"], equisep.fuzziness(*data, weighting="class"), rtol=1e-10)
    close(values["class_fuzziness"][:4], equisep.class_fuzziness(*data, weighting="class"), rtol=1e-10)
    assert values["class_fuzziness"][4:].isnan().all()


@faces
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_features_in_any_precision_are_summed_in_float64(face: Callable[..., Any], dtype: torch.dtype) -> None:
    data = scene()
    x, y = torch.as_tensor(data.x).to(dtype), torch.as_tensor(data.y)
    holder = nn.ModuleDict({"metric": face(4)})
    holder.half().to(torch.bfloat16)  # as a training in half precision does to all it holds
    metric = holder["metric"].set_dtype(dtype)
    for i in range(0, 80, 13):
        metric.update(x[i : i + 13], y[i : i + 13])
    holder.to("cpu", dtype)
    assert metric.within.dtype == torch.float64
    close(metric.compute()["fuzziness"], equisep.fuzziness(x, y), rtol=1e-10)


@faces
def test_state_dict_pickle_copy_reset_and_hash(face: Callable[..., Any]) -> None:
    data = scene()
    metric = fed(face(4), data)
    assert metric.state_dict() == {}
    assert metric.update_called and metric.update_count == 5
    value = metric.compute()["fuzziness"]
    copies = [pickle.loads(pickle.dumps(metric)), metric.clone(), face(4)]
    metric.persistent(True)
    saved = metric.state_dict()
    assert set(saved) == set(metric.metric_state)
    copies[2].persistent(True)
    copies[2].load_state_dict(saved)
    for copy in copies:
        close(copy.compute()["fuzziness"], value, rtol=1e-15)
        assert hash(copy) != hash(metric)
    metric.reset()
    assert not metric.update_called
    other = blobs(5, SIZES, 9)  # another number of features: a metric that has seen nothing knows none
    close(fed(metric, other).compute()["fuzziness"], equisep.fuzziness(*other), rtol=1e-10)
    close(copies[1].compute()["fuzziness"], value, rtol=1e-15)


@faces
def test_validation_without_gradients_and_training_with_them_share_a_metric(face: Callable[..., Any]) -> None:
    data, metric = scene(), face(4)
    for number, (x, y) in enumerate(batches(data)):
        with torch.inference_mode(number % 2 == 0):
            metric(x.clone().requires_grad_(number % 2 == 1), y)
            metric.compute()
    close(metric.compute()["fuzziness"], equisep.fuzziness(*data), rtol=1e-10)


@faces
def test_it_scripts(face: Callable[..., Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # torch.jit itself
        torch.jit.script(face(3))


@faces
def test_states_merge(face: Callable[..., Any]) -> None:
    data = scene(offset=1e6, spread=1e-6)
    halves = [Scene(data.x[:33], data.y[:33]), Scene(data.x[33:], data.y[33:])]
    one, other = (fed(face(4), half) for half in halves)
    empty = face(4)
    empty.merge_state(one)
    empty.merge_state(other.metric_state)
    one.merge_state(face(4))
    one.merge_state(other)
    for metric in (one, empty):
        close(metric.compute()["fuzziness"], equisep.fuzziness(*data), rtol=1e-10)
    close(other.compute()["fuzziness"], equisep.fuzziness(*halves[1]), rtol=1e-10)  # nobody else's state has changed
    with pytest.raises(InputError, match="merges with another of its kind"):
        one.merge_state(3)
    with pytest.raises(InputError, match=r"one kind merge; found .*\(4, 6, False\) and \(4, 6, True\)"):
        one.merge_state(fed(face(4, per_class=True), data))


@needs_torchmetrics
def test_it_is_a_metric_of_torchmetrics() -> None:
    from torchmetrics import Metric, MetricCollection

    data, metric = scene(), equisep.Separation(4)
    assert isinstance(metric, Metric)
    assert (metric.is_differentiable, metric.higher_is_better, metric.full_state_update) == (False, False, True)
    for constant in ("is_differentiable", "higher_is_better"):
        with pytest.raises(RuntimeError, match="Can't change const"):
            setattr(metric, constant, True)
    collection = MetricCollection({"a": equisep.Separation(4), "b": equisep.Separation(4, normalization="classes")})
    for x, y in batches(data):
        collection.update(x, y)
    values = collection.compute()
    close(values["a_fuzziness"], equisep.fuzziness(*data), rtol=1e-10)
    close(values["b_fuzziness"], equisep.fuzziness(*data) / 4, rtol=1e-10)


@needs_torchmetrics
def test_a_collection_keeps_second_passes_of_other_conventions_apart() -> None:
    from torchmetrics import MetricCollection

    data = scene()
    kinds: dict[str, dict[str, Any]] = {"a": {}, "b": {}, "c": {"center": "classes"}, "d": {"weighting": "class"}}
    collection = MetricCollection(
        {"one": equisep.Separation(4), "same": equisep.Separation(4, normalization="classes")}
        | {name: equisep.Separation(4, passes=2, **options) for name, options in kinds.items()}
    )
    for x, y in batches(data):
        collection.update(x, y)
    assert sorted(map(sorted, collection.compute_groups.values())) == [["a", "b"], ["c"], ["d"], ["one", "same"]]
    for name in kinds:
        collection[name].next_pass()
    for x, y in batches(data, 9):
        collection.update(x, y)
    values = collection.compute()
    for name, options in kinds.items():
        close(values[f"{name}_fuzziness"], equisep.fuzziness(*data, **options), rtol=1e-10)
        assert float(values[f"{name}_ncc"]) == equisep.ncc_accuracy(*data)


@faces
def test_a_state_of_another_convention_is_loaded_and_merged_as_samples(face: Callable[..., Any]) -> None:
    data, other = scene(), face(4, passes=2, center="classes")
    metric = fed(face(4, passes=2), data)
    metric.persistent(True)
    other.persistent(True)
    saved = metric.state_dict()
    del saved["second_convention"]  # as it was saved before there was one
    kept = other.second_convention.clone()
    other.load_state_dict(saved)
    close(other.compute()["fuzziness"], equisep.fuzziness(*data, center="classes"), rtol=1e-10)
    assert torch.equal(other.second_convention, kept)
    other.reset()
    other.merge_state(metric)
    assert torch.equal(other.second_convention, kept) and not torch.equal(metric.second_convention, kept)


@faces
def test_what_cannot_be_said_is_nan(face: Callable[..., Any]) -> None:
    one_class = face(4)
    one_class.update(torch.randn(5, 3), torch.zeros(5, dtype=torch.int64))
    assert all(value.isnan() for value in one_class.compute().values())
    alike = face(2)
    alike.update(torch.ones(6, 3), torch.arange(6) % 2)
    assert math.isnan(alike.compute()["fuzziness"]) and math.isnan(alike.compute()["cdnv"])


@faces
def test_bad_input_gets_one_sentence_and_loses_nothing(face: Callable[..., Any]) -> None:
    data = scene()
    metric = fed(face(4), data)
    x, y = batches(data)[0]
    with pytest.raises(FeatureError, match="2 of 96 numbers are NaN or Inf"):
        metric.update(_spoiled(x), y)
    with pytest.raises(LabelError, match=r"lie in 0 … 3 \(`Separation\(classes=4\)`\); found 0 … 7"):
        metric.update(x, torch.full_like(y, 7).index_fill_(0, torch.tensor([0]), 0))
    with pytest.raises(LabelError, match="found -1"):
        metric.update(x, y - 1)
    with pytest.raises(InputError, match="seen features of 6 numbers; found 5"):
        metric.update(x[:, :5], y)
    with pytest.raises(InputError, match="one label per sample; found 16 samples and 15 labels"):
        metric.update(x, y[:15])
    with pytest.raises(FeatureError, match="largest of a batch is 1e\\+200"):
        metric.update(torch.full_like(x, 1e200), y)
    metric.update(x[:0], y[:0])
    close(metric.compute()["fuzziness"], equisep.fuzziness(*data), rtol=1e-10)


def _spoiled(x: Tensor) -> Tensor:
    x = x.clone()
    x[3, 1], x[5, 2] = torch.nan, torch.inf
    return x


@faces
def test_choices_that_cannot_be_are_refused(face: Callable[..., Any]) -> None:
    with pytest.raises(InputError, match="`classes` is a whole number from 2"):
        face(1)
    with pytest.raises(InputError, match="`passes` is a whole number from 1 to 2; found 3"):
        face(3, passes=3)
    with pytest.raises(InputError, match=r'`weighting="class"`.*Pass `per_class=True` or `passes=2`'):
        face(3, weighting="class")
    with pytest.raises(InputError, match=r"1,000 × 4,096² numbers are 125 GiB\. Pass `passes=2` instead"):
        face(1000, 4096, per_class=True)
    with pytest.raises(InputError, match=r"1 × 25,088² numbers are 4\.69 GiB"):
        face(10).update(torch.zeros(2, 25088), torch.tensor([0, 1]))
    with pytest.raises(InputError, match="seen no samples"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torchmetrics warns as well
        face(3).compute()
    with pytest.raises(InputError, match="seen no samples"):
        face(3, passes=2).next_pass()
    with pytest.raises(InputError, match="made for one pass"):
        face(3).next_pass()
    with pytest.raises((InputError, ValueError), match="sync_on_step"):
        face(3, sync_on_step=True)


@faces
def test_a_second_pass_over_other_samples_is_told(face: Callable[..., Any]) -> None:
    data = scene()
    metric = fed(face(4, passes=2), data)
    metric.next_pass()
    with pytest.raises(InputError, match="in its second pass already"):
        metric.next_pass()
    fed(metric, Scene(data.x[:70], data.y[:70]))
    assert metric.compute()["ncc"].isnan()  # not all of them yet
    fed(metric, Scene(data.x[70:] + 1, data.y[70:]))
    with pytest.warns(UserWarning, match="class means moved by .* the features were not the same"):
        metric.compute()
    with pytest.raises(InputError, match=r"brings 31 samples of class 0, the first 30\. Pass the same"):
        metric.update(data.x[:1], np.array([0]))


@faces
def test_digits_that_one_pass_loses_are_told(face: Callable[..., Any]) -> None:
    """Classes a hundred thousand times tighter along their means than elsewhere: a matrix of squares cannot hold both."""
    rng = np.random.default_rng(0)
    means, spread = np.zeros((3, DIM)), around(np.zeros((3, DIM)), [50, 60, 70], spread=1.0, seed=3)
    means[:, :2] = [[1, 0], [0, 1], [-1, -1]]
    tight = spread.x * np.array([1e-5, 1e-5, 1, 1, 1, 1])
    data = Scene((means[spread.y] + tight) @ frame(DIM, DIM, rng), spread.y)
    metric = fed(face(3, passes=2), data)
    with pytest.warns(UserWarning, match="may have fewer than nine digits after one pass"):
        metric.compute()
    metric.next_pass()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        close(fed(metric, data).compute()["fuzziness"], equisep.fuzziness(*data), rtol=1e-10)


def _rank(rank: int, face: Any, store: str, results: Any) -> None:
    """One of two processes: uneven shares, a share without samples, two passes, and `sync` by hand."""
    torch.distributed.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    data = scene(offset=1e6, spread=1e-6)
    shares = [slice(0, 55), slice(55, None)]
    mine = Scene(data.x[shares[rank]], data.y[shares[rank]])
    found: dict[str, Any] = {}
    metric = fed(face(4, passes=2), mine)
    found["one pass"] = metric.compute()
    found["still mine"] = int(metric.counts.sum()) == len(mine.y)
    metric.sync()
    found["synced"] = int(metric.counts.sum())
    metric.unsync()
    metric.next_pass()
    found["two passes"] = fed(metric, mine, size=7).compute()
    lazy = face(4)
    if rank == 0:
        fed(lazy, data)
    found["one share"] = lazy.compute()
    found["batch"] = face(4)(*batches(mine)[0])
    found["mine"] = fed(face(4, sync_on_compute=False), mine).compute()
    found["batch of all"] = face(4, dist_sync_on_step=True)(mine.x, mine.y)
    torch.distributed.destroy_process_group()
    results.put((rank, pickle.dumps(found)))


@faces
def test_two_processes_give_the_numbers_of_one(face: Callable[..., Any], tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")  # no second import of torch
    results = context.SimpleQueue()
    workers = [context.Process(target=_rank, args=(rank, face, str(tmp_path / "store"), results)) for rank in (0, 1)]
    for worker in workers:
        worker.start()
    answers = dict(results.get() for _ in workers)
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    data = scene(offset=1e6, spread=1e-6)
    for rank, answer in answers.items():
        found = pickle.loads(answer)
        for name in ("one pass", "two passes", "one share", "batch of all"):
            close(found[name]["fuzziness"], equisep.fuzziness(*data), rtol=1e-10)
            close(found[name]["cdnv"], equisep.cdnv(*data), rtol=1e-10)
        close(found["two passes"]["class_fuzziness"], equisep.class_fuzziness(*data), rtol=1e-10)
        assert float(found["two passes"]["ncc"]) == 1
        assert found["still mine"] and found["synced"] == sum(SIZES)
        own = Scene(*(part[:55] if rank == 0 else part[55:] for part in data))
        close(found["mine"]["fuzziness"], equisep.fuzziness(*own), rtol=1e-10)
        first = batches(Scene(data.x[55 * rank :], data.y[55 * rank :]))[0]
        close(found["batch"]["fuzziness"], equisep.fuzziness(*first), rtol=1e-10)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@faces
def test_on_a_gpu(face: Callable[..., Any]) -> None:
    data, metric = scene(offset=1e6, spread=1e-6), face(4, passes=2).cuda()
    for x, y in batches(data):
        metric.update(x.cuda(), y.cuda())
    close(metric.compute()["fuzziness"].cpu(), equisep.fuzziness(*data), rtol=1e-10)
    metric.next_pass()
    values = fed(metric, data).compute()  # features of the CPU come along
    assert values["ncc"].device.type == "cuda"
    close(values["class_fuzziness"].cpu(), equisep.class_fuzziness(*data), rtol=1e-10)
    close(metric.cpu().compute()["cdnv"], equisep.cdnv(*data), rtol=1e-10)


def test_the_recipe_runs(tmp_path: Path) -> None:
    names = recipe("torchmetrics", tmp_path)
    with torch.no_grad():
        expected = equisep.fuzziness(names["model"].blocks(names["x"]), names["y"])
    close(names["values"]["fuzziness"], expected, dtype=torch.float32)  # products of other batches round otherwise
