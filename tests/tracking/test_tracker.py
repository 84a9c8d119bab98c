"""The tracker: the numbers of `measure`, what is counted, restarts, and what happens to a model meanwhile."""

from __future__ import annotations

import json
import pickle
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from tracked import CLASSES, loader, network, samples, train

import equisep
from equisep import History, Tracker
from equisep.errors import EquisepError, InputError, ModelError, SiteError, StoreError
from equisep.tracking import Stopping

X, Y = samples()
TEST = samples(seed=1)


def stepped(model: nn.Module) -> None:
    """A step of training, so that weights differ."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    nn.functional.cross_entropy(model(X), Y).backward()  # type: ignore[no-untyped-call]
    optimizer.step()


def test_the_numbers_are_those_of_measure() -> None:
    model = network()
    tracker = Tracker(model, (X, Y), test=TEST, per_class=12)
    profile = tracker.epoch()
    assert profile is not None and tracker.subset_test is not None
    kept, tested = (list(subset.on(torch.device("cpu"))) for subset in (tracker.subset, tracker.subset_test))
    whole = equisep.measure(model, kept, tested, sites="layers")
    for one, two in zip(profile.sites, whole.sites, strict=True):
        for name in ("fuzziness", "fuzziness_test", "nc1", "cdnv", "cdnv_test", "ncc_train", "ncc_test"):
            assert getattr(one, name) == pytest.approx(getattr(two, name), rel=1e-12), name
    assert profile.law.rho == pytest.approx(whole.law.rho, rel=1e-12)
    assert profile.effective_depth == whole.effective_depth
    assert (profile.accuracy_train, profile.accuracy_test) == (whole.accuracy_train, whole.accuracy_test)
    # of 12 per class it does not say that they are all there are
    assert profile.whole is None and whole.whole and Tracker(model, (X, Y), TEST, per_class=len(Y)).epoch().whole
    assert profile.sites[0].null is None and profile.sites[0].fuzziness_interval is None
    assert profile.sites[0].ncc_class_train is None and profile.sites[-1].ncc_class_train is not None


def test_every_counts_epochs_and_the_end_of_a_with_reads_the_last() -> None:
    model = network()
    with Tracker(model, loader(), every=2, per_class=5, sites=["2"]) as tracker:
        train(model, loader(batch_size=60), epochs=5, after_epoch=tracker.epoch)
        assert tracker.history.numbers == (2, 4)
    assert tracker.history.numbers == (2, 4, 5)
    with pytest.raises(RuntimeError), Tracker(model, loader(), every=2, per_class=5) as failed:
        failed.epoch()
        raise RuntimeError
    assert failed.history.numbers == ()


def test_every_counts_steps_where_steps_are_called() -> None:
    model = network()
    tracker = Tracker(model, loader(), every=4, per_class=5, sites=["2"])
    train(model, loader(), epochs=2, after_step=tracker.step, after_epoch=tracker.epoch)
    assert tracker.history.unit == "step" and tracker.history.numbers == (4, 8, 12)
    assert [entry.epoch for entry in tracker.history] == [0, 1, 1]
    by_epoch = Tracker(model, loader(), per_class=5, sites=["2"])
    by_epoch.epoch(0)
    assert by_epoch.step() is None and by_epoch.history.numbers == (0,)


def test_every_counts_calls_where_numbers_advance_by_more_than_one(tmp_path: Path) -> None:
    """As those of batches do whose gradients are summed up; a training that is resumed reads what it would have read."""
    model, path = network(), tmp_path / "h.jsonl"
    options: dict[str, Any] = {"every": 2, "per_class": 5, "sites": ["2"], "history": path}
    steps = [3, 7, 11, 15, 19, 23, 27]
    tracker = Tracker(model, loader(), **options)
    states = {}
    for number in steps:
        stepped(model)
        tracker.step(number)
        states[number] = tracker.state_dict()
    assert tracker.history.numbers == (7, 15, 23)
    for at in (11, 15):
        for way in ("resume", "state"):
            again = Tracker(model, loader(), **options)
            if way == "resume":
                again.resume(at)
            else:
                again.load_state_dict(states[at])
            for number in steps[steps.index(at) + 1 :]:
                stepped(model)
                again.step(number)
            assert again.history.numbers == (7, 15, 23), (at, way)
    uneven = Tracker(model, loader(), every=3, per_class=5, sites=["2"])
    for number in (3, 7, 9, 13, 17, 19, 23):
        stepped(model)
        uneven.step(number)
    assert uneven.history.numbers == (3, 13, 23)


def test_readings_of_a_training_that_was_given_up_do_not_come_back(tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    for begin in (None, 0):
        model = network()
        with Tracker(model, loader(), every=5, per_class=5, sites=["2"], history=path) as tracker:
            if begin is not None:
                tracker.resume(begin)
            for epoch in range(1, 4 if begin is None else 11):
                stepped(model)
                tracker.epoch(epoch)
        assert History.load(path).numbers == tracker.history.numbers == ((3,) if begin is None else (5, 10))


def test_a_file_of_steps_and_a_loop_of_epochs(tmp_path: Path) -> None:
    options: dict[str, Any] = {"per_class": 5, "sites": ["2"]}
    for old, new in (("step", "epoch"), ("epoch", "step")):
        model, path = network(), tmp_path / f"{old}.jsonl"
        getattr(Tracker(model, loader(), history=path, **options), old)(1)
        stepped(model)
        silent = Tracker(model, loader(), history=path, **options)
        with pytest.warns(
            UserWarning,
            match=f"counted by {old}s up to {old} 1, and this training calls `tracker.{new}` alone: nothing",
        ):
            getattr(silent, new)(1)
            silent.finish()
        anew = Tracker(model, loader(), history=path, **options)
        anew.resume(0)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            getattr(anew, new)(1)
            anew.finish()
        assert History.load(path).unit == new and History.load(path).numbers == (1,)
    both = Tracker(network(), loader(), history=tmp_path / "both.jsonl", **options)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        both.step()
        both.epoch()


@pytest.mark.usefixtures("as_users_run_it")
def test_whole_numbers_of_numpy_are_taken() -> None:
    tracker = Tracker(network(), loader(), every=np.int64(2), per_class=np.int64(5))  # type: ignore[arg-type]
    assert tracker.epoch(np.int64(1)) is None and tracker.epoch(np.int32(2)) is not None  # type: ignore[arg-type]
    assert tracker.history.numbers == (2,) and type(tracker.number) is int and type(tracker.every) is int
    tracker.resume(np.int64(2))  # type: ignore[arg-type]
    assert json.dumps(tracker.state_dict())


def test_a_restart_goes_on_without_a_double_or_missing_epoch(tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    model = network()
    options: dict[str, Any] = {"history": path, "per_class": 5, "sites": ["2", "6"]}
    first = Tracker(model, loader(), **options)
    for epoch in (1, 2, 3):
        stepped(model)
        first.epoch(epoch)
    state = first.state_dict()
    stepped(model)
    first.epoch(4)
    again = Tracker(model, loader(), **options)
    assert again.number == 4 and again.history.numbers == (1, 2, 3, 4)
    again.load_state_dict(state)  # a checkpoint of epoch 3
    assert again.number == 3 and again.history.numbers == (1, 2, 3)
    stepped(model)
    again.epoch()
    assert History.load(path).numbers == (1, 2, 3, 4)
    late = Tracker(model, loader(), **options)
    stepped(model)
    late.resume(6)  # the checkpoint was written, and the training killed before the reading
    stepped(model)
    late.epoch(7)
    assert History.load(path).numbers == (1, 2, 3, 4, 6, 7)
    with pytest.raises(InputError, match="no state of a Tracker"):
        late.load_state_dict({"epoch": 3})


def test_another_model_or_other_data_do_not_go_on_in_the_same_file(tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    Tracker(network(), loader(), history=path, per_class=5).epoch()
    wider = nn.Sequential(nn.Linear(6, 11), nn.ReLU(), nn.Linear(11, CLASSES))
    with pytest.raises(
        StoreError, match="it is of `Sequential` with 264 parameters, and the model is `Sequential` with 125"
    ):
        Tracker(wider, loader(), history=path, per_class=5)
    with pytest.raises(StoreError, match="samples are others"):
        Tracker(network(), loader(), history=path, per_class=5, seed=1)
    with pytest.raises(StoreError, match="it was read with reading='eval', now 'mixed'"):
        Tracker(network(), loader(), history=path, per_class=5, reading="mixed")
    Tracker(network(seed=4), loader(), history=path, per_class=5)  # other weights are what a training makes


def test_nan_is_said_and_the_training_goes_on(tmp_path: Path) -> None:
    model = network()
    tracker = Tracker(model, loader(), history=tmp_path / "h.jsonl", per_class=5)
    with torch.no_grad():
        before = model[0].weight.clone()
        model[0].weight[0, 0] = torch.nan
    with pytest.warns(UserWarning, match="The reading of epoch 1 failed: .*NaN"):
        assert tracker.epoch() is None
    with warnings.catch_warnings():  # once is enough
        warnings.simplefilter("error")
        assert tracker.epoch() is None
        with torch.no_grad():
            model[0].weight.copy_(before)
        assert tracker.epoch() is not None
    history = History.load(tmp_path / "h.jsonl")
    assert history.numbers == (3,) and "NaN" in (history[1].failure or "")
    assert not tracker.settled


def test_a_network_that_diverged_has_not_settled() -> None:
    model = network()
    tracker = Tracker(model, loader(), per_class=5, stopping=Stopping(window=1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tracker.epoch()
        tracker.epoch()
        assert tracker.settled
        with torch.no_grad():
            model[0].weight.fill_(torch.nan)
        tracker.epoch()
        tracker.epoch()
    assert not tracker.settled and tracker.settled.reason == "The last 2 readings, from epoch 3 on, failed."
    assert tracker.history.findings[0].text.startswith("The last 2 readings, from epoch 3 on, failed: ")


def test_nan_in_the_samples_is_said_too() -> None:
    x = X.clone()
    x[:60] = torch.nan
    tracker = Tracker(network(), (x, Y), per_class=30)
    with pytest.warns(UserWarning, match="NaN"):
        assert tracker.epoch() is None
    assert "NaN" in (tracker.history[1].failure or "")


def test_a_forward_pass_that_fails_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    model = network()
    tracker = Tracker(model, loader(), per_class=5)
    monkeypatch.setattr(type(model), "forward", lambda self, x: 1 / 0)
    with pytest.warns(UserWarning, match="could not run batch 0 of the training data"):
        tracker.epoch()
    monkeypatch.undo()
    monkeypatch.setattr(
        "equisep.tracking.light.run_plan", lambda *a, **k: (_ for _ in ()).throw(MemoryError("none left\nat all"))
    )
    tracker.epoch()
    assert tracker.history[2].failure == "MemoryError: none left"


def test_a_disk_that_is_full_stops_no_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tracker = Tracker(network(), loader(), history=tmp_path / "h.jsonl", per_class=5)

    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.warns(UserWarning, match="kept in memory only: .*the disk is full"):
        assert tracker.epoch() is not None
    monkeypatch.undo()
    stepped(tracker.model)
    tracker.epoch()
    assert History.load(tmp_path / "h.jsonl").numbers == (1, 2)


def test_compiled_and_wrapped_in_between() -> None:
    model = network()
    tracker = Tracker(model, loader(), per_class=5)
    compiled = torch.compile(model, backend="eager")
    compiled(X)
    plain = tracker.epoch()
    graphs = torch._dynamo.utils.counters["stats"]["unique_graphs"]
    kept = {name: value.clone() for name, value in model.state_dict().items()}
    compiled(X)
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == graphs > 0, "a reading must not cost a compilation"
    model.load_state_dict(kept)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tracker.model = compiled  # the wrapper, or the model inside: both are the same network
        again = tracker.epoch()
        tracker.model = nn.DataParallel(model)
        parallel = tracker.epoch()
    assert plain is not None and again is not None and parallel is not None
    assert plain.curve() == again.curve() == parallel.curve()
    assert "compiled" in [note.code for note in again.notes]


def test_a_model_that_was_replaced_is_noticed() -> None:
    model = network()
    tracker = Tracker(model, loader(), per_class=5)
    tracker.epoch()
    other = network(seed=3)
    with pytest.warns(
        UserWarning, match=r"what it was at epoch 1: the weights that are read have not changed.*tracker\.model = model"
    ):
        profile = tracker.epoch()
    assert profile is not None and profile.notes[0].code == "unchanged"
    tracker.model = other
    changed = tracker.epoch()
    assert changed is not None and changed.curve() != profile.curve()
    with pytest.raises(ModelError, match=r"cannot go on with this model: it is of `Sequential`"):
        tracker.model = nn.Sequential(nn.Linear(6, 4))
    assert tracker.model is other
    with pytest.raises(InputError, match=r"needs a torch\.nn\.Module; found int"):
        tracker.model = 3  # type: ignore[assignment]


def test_where_only_the_classifier_learns_nothing_is_said_of_other_models() -> None:
    model = network()
    for value in model[:-1].parameters():
        value.requires_grad_(False)
    tracker = Tracker(model, loader(), per_class=5)
    optimizer = torch.optim.Adam(model[-1].parameters(), lr=0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            nn.functional.cross_entropy(model.eval()(X), Y).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            tracker.epoch()
    one, two = tracker.history.profiles().values()
    assert one.curve() == two.curve() and "unchanged" not in [note.code for note in two.notes]


def test_after_a_restart_nobody_knows_whether_only_the_classifier_has_learned(tmp_path: Path) -> None:
    model, path = network(), tmp_path / "h.jsonl"
    Tracker(model, loader(), per_class=5, history=path).epoch(1)
    again = Tracker(model, loader(), per_class=5, history=path)
    again.resume(1)
    with torch.no_grad():
        model[-1].weight.mul_(2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        profile = again.epoch(2)
    assert profile is not None and "unchanged" not in [note.code for note in profile.notes]
    with pytest.warns(UserWarning, match="the weights that are read have not changed"):
        again.epoch(3)


def test_an_averaged_model_has_the_sites_of_the_model_itself() -> None:
    model = network()
    averaged = torch.optim.swa_utils.AveragedModel(model)
    tracker = Tracker(averaged, loader(), per_class=5)
    assert tracker.history.header == Tracker(model, loader(), per_class=5).history.header
    first = tracker.epoch()
    stepped(model)
    averaged.update_parameters(model)
    second = tracker.epoch()
    assert first is not None and second is not None and first.curve() != second.curve()


def test_a_training_that_begins_anew_in_the_file_of_another_is_told(tmp_path: Path) -> None:
    """As a cell of a notebook does that is run again: only where nobody says which epoch it is."""
    model, path = network(), tmp_path / "h.jsonl"
    Tracker(model, loader(), per_class=5, history=path).epoch()
    stepped(model)
    with pytest.warns(
        UserWarning, match=r"holds readings up to epoch 1, and .* counted on from there.*`tracker\.resume\(0\)`"
    ):
        Tracker(model, loader(), per_class=5, history=path).epoch()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stepped(model)
        Tracker(model, loader(), per_class=5, history=path).epoch(3)
        stepped(model)
        tracker = Tracker(model, loader(), per_class=5, history=path)
        tracker.resume(3)
        tracker.epoch()
    assert History.load(path).numbers == (1, 2, 3, 4)


def test_the_last_epoch_is_not_read_where_its_weights_are_gone() -> None:
    """As where the best weights are loaded at the end of a training."""
    model = network()
    best = {name: value.clone() for name, value in model.state_dict().items()}
    with (
        pytest.warns(
            UserWarning, match=r"Epoch 3, the last that was counted, was not read: the weights were changed after"
        ),
        Tracker(model, loader(), per_class=5, every=2) as tracker,
    ):
        for _ in range(3):
            stepped(model)
            tracker.epoch()
        model.load_state_dict(best)
    assert tracker.history.numbers == (2,)


def test_a_tracker_is_pickled_with_its_history_and_its_samples() -> None:
    tracker = Tracker(network(), loader(), test=TEST, per_class=5)
    tracker.epoch()
    again = pickle.loads(pickle.dumps(tracker))
    stepped(again.model)
    again.epoch()
    assert again.history.numbers == (1, 2) and tracker.history.numbers == (1,)
    assert again.history.profile(1).curve() == tracker.history.profile(1).curve()


def test_steps_after_a_checkpoint_are_of_the_epoch_that_it_was_made_in(tmp_path: Path) -> None:
    model, path = network(), tmp_path / "h.jsonl"
    tracker = Tracker(model, loader(), per_class=5, every=2, history=path)
    for step in range(1, 13):
        stepped(model)
        tracker.step()
        if step == 8:
            state = tracker.state_dict()
        if step % 6 == 0:
            tracker.epoch()
    assert [entry.epoch for entry in tracker.history] == [0, 0, 0, 1, 1, 1]
    for resume in (
        lambda one: one.load_state_dict(state),
        lambda one: one.resume(8, epochs=1),
        lambda one: one.resume(8),
    ):
        again = Tracker(model, loader(), per_class=5, every=2, history=path)
        resume(again)
        for _ in range(2):
            stepped(model)
            again.step()
        assert again.history[10].epoch == 1


def test_a_model_that_was_rebuilt_is_planned_anew_or_refused() -> None:
    model = network()
    tracker = Tracker(model, loader(), per_class=5)
    tracker.epoch()
    model[0] = nn.utils.parametrizations.weight_norm(nn.Linear(6, 10))
    assert tracker.epoch() is not None
    model.append(nn.Linear(CLASSES, 7))
    with pytest.warns(UserWarning, match="The model was changed while it trains"):
        assert tracker.epoch() is None


def test_a_model_that_moves_to_another_type_is_read_there() -> None:
    model = network()
    tracker = Tracker(model, loader(), per_class=5)
    model.double()
    profile = tracker.epoch()
    assert profile is not None and profile.provenance["dtype"] == "float64"


def test_minority_collapse_is_read_off_the_classifier() -> None:
    x, y = torch.cat([X, X[Y < 2]]), torch.cat([Y, Y[Y < 2]])
    model = network()
    tracker = Tracker(model, (x, y), per_class=5, sites=["2"])
    with torch.no_grad():
        model[-1].weight[3] = 2 * model[-1].weight[2]
    tracker.epoch()
    assert tracker.history[1].minority_cosine == pytest.approx(1.0)
    assert Tracker(model, (X, Y), per_class=5, sites=["2"]).history.header.minority == ()


def test_settled_stops_a_training() -> None:
    model = network()
    tracker = Tracker(model, loader(), per_class=20, stopping=Stopping(window=3, rho=0.02, fuzziness=0.2, ncc=0.02))
    while not tracker.settled and tracker.number < 200:
        train(model, loader(), epochs=1, after_epoch=tracker.epoch)
    assert 4 <= tracker.number < 150
    assert tracker.settled.reason.startswith(f"Since epoch {tracker.settled.since} neither ρ")


@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [
        ({"every": 0}, InputError, "`every` counts epochs or steps, 1 or more; found 0"),
        ({"every": None}, InputError, "`every` counts"),
        ({"per_class": True}, InputError, "`per_class` is a number of samples, 1 or more; found True"),
        ({"stopping": 5}, InputError, r"`stopping` is a rule, `equisep.tracking.Stopping\(window=5\)`; found 5"),
        ({"metrics": ["fuzzy"]}, InputError, "No metric `fuzzy`"),
        ({"sites": ["9.x"]}, SiteError, "9.x"),
        ({"reading": "no"}, InputError, "No reading `no`"),
        ({"reading": "drawn"}, InputError, "`Tracker` reads `eval` or `mixed`"),
        ({"class_names": ["a"]}, InputError, "one name for each of the 4 classes"),
    ],
)
def test_bad_options_at_construction(options: dict[str, Any], kind: type[EquisepError], words: str) -> None:
    with pytest.raises(kind, match=words):
        Tracker(network(), loader(), **options)


def test_of_several_processes_the_first_reads_and_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.distributed.is_initialized", lambda: True)
    synced = nn.Sequential(nn.Linear(6, 5), nn.SyncBatchNorm(5), nn.ReLU(), nn.Linear(5, CLASSES)).eval()
    for rank in (1, 0):
        monkeypatch.setattr("torch.distributed.get_rank", lambda rank=rank: rank)
        tracker = Tracker(network(), loader(), per_class=5, history=tmp_path / f"{rank}.jsonl")
        tracker.epoch()
        assert tracker.history.numbers == (() if rank else (1,))
        assert (tmp_path / f"{rank}.jsonl").exists() == (rank == 0)
    mixed = Tracker(synced, loader(), per_class=5)
    assert mixed.epoch() is not None
    mixed._reader._options = replace(mixed._reader._options, reading="mixed")
    with pytest.warns(UserWarning, match="SyncBatchNorm asks all processes"):
        assert mixed.epoch() is None


def test_counting_back_forgets_what_came_after() -> None:
    model = network()
    tracker = Tracker(model, loader(), per_class=5, sites=["2"], every=2)
    for number in (2, 4, 6):
        stepped(model)
        tracker.epoch(number)
    tracker.epoch(3)
    assert tracker.history.numbers == (2,)


def test_bad_numbers_and_models() -> None:
    tracker = Tracker(network(), loader(), per_class=5)
    for number in (-1, 1.5, True):
        with pytest.raises(InputError, match="Epochs and steps are whole numbers from 0 on"):
            tracker.epoch(number)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"needs a torch\.nn\.Module"):
        Tracker(3, loader())  # type: ignore[arg-type]
    with pytest.raises(ModelError, match="has no shape yet"):
        Tracker(nn.Sequential(nn.LazyLinear(3)), loader())
    with pytest.raises(
        ModelError, match=r"`0\.weight` lies on `meta`, which holds no numbers\. Give the model a device"
    ):
        Tracker(network().to("meta"), loader())
    assert repr(tracker) == "<Tracker of Sequential: every 1, 20 samples, <History: 0 readings of Sequential, 3 sites>>"


def test_one_metric_may_be_named_by_itself() -> None:
    names = [Tracker(network(), samples(), metrics=each).epoch() for each in ("fuzziness", ("fuzziness",))]
    one, same = (found for found in names if found is not None)
    assert one.curve() == same.curve() and one.sites[-1].fuzziness is not None
