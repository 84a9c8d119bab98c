"""Groups of cells on a real Ray cluster of this machine: results, killed workers, errors, addresses."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from cli.running import equisep
from equisep.errors import DataError, EquisepError, InputError, MissingExtraError, NumericalError, StoreError
from equisep.figures.cell import Cell
from equisep.figures.outcome import Outcome
from equisep.results import Profile
from equisep.runs.ray import finished, run_groups_on_ray, run_text
from equisep.runs.ray_measure import measure_on_ray
from equisep.runs.ray_tasks import Work, collect
from equisep.runs.run import run_figure, run_group
from equisep.runs.store import Store
from runs.company import CELLS, EXACT, FIGURE, KINDS, farthest, together

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install equisep[ray]", exc_type=ImportError)

HERE = Path(__file__).parent
SOLVED = Cell(kind="solve", problem="balanced", majority=3, dimension=3, starts=2)
Done = list[tuple[Cell, Outcome, dict[str, Any]]]


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


@pytest.fixture(scope="module")
def quiet_ray(one_ray: None) -> Iterator[Path]:
    """Ray's files in a short path of our own, so that no other cluster of this machine is found or touched."""
    place = Path(tempfile.mkdtemp(prefix="ray"))
    path = os.pathsep.join([str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_TMPDIR", str(place))
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_CLIENT_SERVER_CHECK_CHANNEL_TIMEOUT_S", "60")
        patch.setenv("PYTHONPATH", path)
        patch.setenv("OMP_NUM_THREADS", "1")  # as the tests train
        patch.delenv("RAY_ADDRESS", raising=False)
        yield place
    shutil.rmtree(place, ignore_errors=True)


class Cluster:
    """A head node of its own process, as `ray start` makes it."""

    def __init__(self) -> None:
        self.port, self.client = free_port(), free_port()
        command = [
            sys.executable,
            "-m",
            "ray.scripts.scripts",
            "start",
            "--head",
            "--block",
            "--num-cpus=2",
            "--num-gpus=0",
        ]
        ports = [f"--port={self.port}", f"--ray-client-server-port={self.client}", "--node-ip-address=127.0.0.1"]
        small = ["--include-dashboard=false", "--object-store-memory=80000000"]
        self.process = subprocess.Popen(
            [*command, *ports, *small], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )

    def wait(self, port: int) -> None:
        for _ in range(600):
            assert self.process.poll() is None, "the cluster did not start"
            with socket.socket() as asking:
                if asking.connect_ex(("127.0.0.1", port)) == 0:
                    return
            time.sleep(0.1)
        raise AssertionError("the cluster did not answer in a minute")

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


@pytest.fixture(scope="module")
def cluster(quiet_ray: Path) -> Iterator[Cluster]:
    started = Cluster()
    try:
        started.wait(started.port)
        yield started
    finally:
        started.stop()


@pytest.fixture(scope="module")
def connected(cluster: Cluster) -> Iterator[str]:
    """This process is connected all the while: joining anew for every test would take most of the time."""
    address = f"127.0.0.1:{cluster.port}"
    ray.init(address=address, logging_level="ERROR", log_to_driver=False)
    yield address
    ray.shutdown()


def ran(
    groups: list[list[Cell]], *, address: str, runner: str, **options: Any
) -> tuple[Done, list[tuple[int, int | None]]]:
    done: Done = []
    told: list[tuple[int, int | None]] = []
    run_groups_on_ray(
        groups,
        address=address,
        device=options.pop("device", None),
        data_dir=options.pop("data_dir", None),
        on_done=done.extend,
        progress=lambda what, count, total: told.append((count, total)),
        runner=f"ray_runners:{runner}",
    )
    return done, told


GROUPS = [[Cell(seed=seed), Cell(seed=seed + 10, rate=1)] for seed in range(5)]


def check(done: Done, groups: list[list[Cell]] = GROUPS) -> None:
    assert sorted(cell.key for cell, _, _ in done) == sorted(cell.key for group in groups for cell in group)
    for cell, outcome, _ in done:
        assert outcome == Outcome(numbers={"twice": 2.0 * cell.seed, "none": None})


# the worker's part, without a cluster


def test_a_worker_speaks_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(HERE)
    reply = run_text("ray_runners:doubled", '[{"seed":4}]', "cpu", "data")
    assert (
        '"twice":8.0' in reply and '"none":null' in reply and '"wall_s":null' in reply and '"data_dir":"data"' in reply
    )
    reply = run_text("ray_runners:fails", '[{"seed":1}]', None, None)
    assert reply == '{"error":"DataError","text":"No file `train.npz` in `data`. Run: equisep data get"}'


def test_without_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"Running on a Ray cluster needs the package `ray`.*equisep\[ray\]"):
        ran(GROUPS, address="ray", runner="doubled")


def test_no_groups_need_no_cluster() -> None:
    assert ran([], address="nowhere:1", runner="doubled") == ([], [])


@pytest.mark.parametrize("address", ["127.0.0.1:{port}", "ray://127.0.0.1:{port}"])
def test_an_address_where_nobody_listens(address: str) -> None:
    where = address.format(port=free_port())
    with pytest.raises(
        InputError, match=rf"No Ray cluster answers at `{where}` \(Connection refused\). Start one"
    ) as caught:
        ran(GROUPS, address=where, runner="doubled")
    assert caught.value.exit_code == 2 and not ray.is_initialized()


@pytest.mark.parametrize("address", ["cluster", "ray://", "ray://host", "host:port", ":6379", ""])
def test_what_is_no_address(address: str) -> None:
    with pytest.raises(
        InputError, match=r"is no address of a Ray cluster. Write `ray`, `ray://host:port` or `host:port`"
    ):
        ran(GROUPS, address=address, runner="doubled")


@pytest.mark.parametrize("address", ["no.such.host.invalid:6379", "127.0.0.1:99999"])
def test_a_host_or_port_that_does_not_exist(address: str) -> None:
    with pytest.raises(InputError, match=rf"No Ray cluster answers at `{address}`"):
        ran(GROUPS, address=address, runner="doubled")


@pytest.mark.parametrize("answer", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"-E", b""])
def test_another_server_is_no_cluster(answer: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            talking, _ = server.accept()
            with talking:
                talking.recv(64)
                talking.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        with pytest.raises(
            InputError, match=r"What answers at `127.0.0.1:\d+` is no Ray cluster. .* names the address"
        ):
            ran(GROUPS, address=f"127.0.0.1:{server.getsockname()[1]}", runner="doubled")
        thread.join()


# a cluster of its own


def test_a_cluster_is_started_and_ended(quiet_ray: Path) -> None:
    """With the real runner: the same numbers as without Ray."""
    done: Done = []
    run_groups_on_ray([[SOLVED]], address="ray", device=None, data_dir=None, on_done=done.extend)
    ((cell, outcome, made),) = done
    ((_, here, _),) = run_group([SOLVED])
    assert cell == SOLVED and outcome.to_dict() == here.to_dict() and "wall_s" in made
    assert not ray.is_initialized()
    assert "RAY_ADDRESS" not in os.environ
    with pytest.raises(ConnectionError):  # it is gone
        ray.init(address="auto", logging_level="ERROR")


# a cluster that runs already


def test_a_cluster_is_joined_by_its_address_and_left_running(cluster: Cluster) -> None:
    done, told = ran(GROUPS, address=f"127.0.0.1:{cluster.port}", runner="doubled", data_dir="here")
    check(done)
    assert told == [(count, 5) for count in range(6)]
    assert {made["data_dir"] for _, _, made in done} == {str(Path("here").absolute())}
    assert {made["wall_s"] for _, _, made in done} == {None}
    assert not ray.is_initialized() and cluster.process.poll() is None


def test_a_cluster_is_joined_through_its_client_port(cluster: Cluster) -> None:
    pytest.importorskip("grpc", reason="the client of Ray needs grpcio")
    cluster.wait(cluster.client)
    for chance in range(4):  # Ray starts a server for every client, and gives up on one that takes half a minute
        try:
            done, _ = ran(GROUPS, address=f"ray://127.0.0.1:{cluster.client}", runner="doubled")
            break
        except InputError as error:
            if chance == 3 or "failure from server" not in str(error):
                raise
    check(done)
    assert not ray.is_initialized() and cluster.process.poll() is None


def test_a_client_that_reaches_nobody_leaves_ray_as_it_was(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """The port of the cluster itself written as that of its clients, an easy mistake."""
    pytest.importorskip("grpc", reason="the client of Ray needs grpcio")
    for wait in ("INITIAL_TIMEOUT_SEC", "MAX_TIMEOUT_SEC"):
        monkeypatch.setattr(f"ray.util.client.worker.{wait}", 1)
    with pytest.raises(InputError, match=r"No Ray cluster could be used at `ray://.*RAY_AUTH_MODE=token"):
        ran(GROUPS, address=f"ray://127.0.0.1:{cluster.port}", runner="doubled")
    done, _ = ran(GROUPS[:1], address=f"127.0.0.1:{cluster.port}", runner="doubled")
    check(done, GROUPS[:1])
    assert not ray.is_initialized() and cluster.process.poll() is None


def test_the_cluster_of_this_machine_is_joined(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ADDRESS", f"127.0.0.1:{cluster.port}")
    done, _ = ran(GROUPS[:1], address="ray", runner="doubled")
    check(done, GROUPS[:1])
    assert not ray.is_initialized() and cluster.process.poll() is None


def test_a_killed_worker_loses_nothing(connected: str, tmp_path: Path) -> None:
    killed: list[int] = []

    def kill() -> None:
        told = tmp_path / "pid"
        for _ in range(1200):
            if told.exists():
                killed.append(int(told.read_text()))
                os.kill(killed[0], signal.SIGKILL)
                return
            time.sleep(0.05)

    killer = threading.Thread(target=kill)
    killer.start()
    done, told = ran(GROUPS, address=connected, runner="waits_to_be_killed", data_dir=str(tmp_path))
    killer.join()
    check(done)
    assert told[-1] == (5, 5) and killed
    again = {made["pid"] for cell, _, made in done if cell.seed in (1, 11)}
    assert len(again) == 1 and again != set(killed)  # another process ran the whole group


def test_a_worker_that_always_dies_is_one_sentence(connected: str, tmp_path: Path) -> None:
    with pytest.raises(
        NumericalError, match=r"A group of 2 cells could not be run .* its worker died 4 times"
    ) as caught:
        ran(GROUPS[:1], address=connected, runner="dies", data_dir=str(tmp_path))
    assert caught.value.exit_code == 3
    assert len(set((tmp_path / "tries").read_text().split())) == 4


@pytest.mark.parametrize(
    ("seed", "kind", "sentence"),
    [
        (1, DataError, r"^No file `train.npz` in `data`. Run: equisep data get$"),
        (2, MissingExtraError, r'^A sentence needs the package `transformers`.*"equisep\[text\]"$'),
        (3, NumericalError, r"^The solver stopped early.$"),
        (4, ZeroDivisionError, r"division by zero"),
    ],
)
def test_an_error_of_a_task_is_raised_here(connected: str, seed: int, kind: type[Exception], sentence: str) -> None:
    with pytest.raises(kind, match=sentence) as caught:
        ran([[Cell(seed=seed)]], address=connected, runner="fails")
    assert isinstance(caught.value, EquisepError) == (seed != 4)


def test_groups_that_finished_before_an_error_are_kept_and_the_others_end(connected: str, tmp_path: Path) -> None:
    done: Done = []

    def keep(found: Any) -> None:
        done.extend(found)
        (tmp_path / found[0][0].key).touch()

    groups = [[Cell(seed=1)], [Cell(seed=10)], [Cell(seed=11)], *([Cell(seed=20 + n)] for n in range(3))]
    with pytest.raises(DataError):
        run_groups_on_ray(
            groups,
            address=connected,
            device=None,
            data_dir=str(tmp_path),
            on_done=keep,
            runner="ray_runners:waits_for_the_others",
        )
    assert {cell.seed for cell, _, _ in done} == {10, 11}
    check(ran(GROUPS[:2], address=connected, runner="doubled")[0], GROUPS[:2])  # the endless ones hold no CPU any more


def test_what_arrives_together_with_an_error_is_kept() -> None:
    """Ray itself cannot be made to answer in a given order: this one does."""
    replies = {
        "bad": '{"error":"DataError","text":"No data."}',
        "good": '{"done":[[{"seed":3},{},{}]]}',
        "worse": '{"error":"NumericalError","text":"Later."}',
        "late": "",
    }
    ready = iter([["bad"], ["good", "worse"], []])
    canceled: list[str] = []
    fake = SimpleNamespace(
        wait=lambda references, num_returns, timeout: (next(ready), []),
        get=replies.__getitem__,
        cancel=lambda reference, force: canceled.append(reference),
        exceptions=ray.exceptions,
    )
    done: Done = []
    with pytest.raises(DataError, match=r"^No data.$"):
        work = Work(finished, lambda number, results: done.extend(results), ["A group"] * 4, "groups")
        collect(fake, {reply: number for number, reply in enumerate(replies)}, work, lambda what, count, total: None)
    assert [cell.seed for cell, _, _ in done] == [3] and canceled == ["late"]


def test_a_driver_that_cannot_store_stops_the_run(connected: str) -> None:
    def full(found: Any) -> None:
        raise StoreError("The disk is full.")

    with pytest.raises(StoreError, match=r"The disk is full."):
        run_groups_on_ray(
            GROUPS, address=connected, device="cpu", data_dir=None, on_done=full, runner="ray_runners:doubled"
        )


def test_a_gpu_that_the_cluster_has_not(connected: str) -> None:
    with pytest.raises(InputError, match=r"`device='cuda'` was asked for on the Ray cluster `.*`, which has no GPU"):
        ran(GROUPS, address=connected, runner="doubled", device="cuda")


# a measurement, shard by shard

NET = """
import os
import signal
from pathlib import Path

import torch
from torch import nn


def net():
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 3))


def once_killed():
    told = Path("killed")
    if not told.exists():
        told.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return net()
"""


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model, data, and their profile by one process."""
    folder = tmp_path_factory.mktemp("measured")
    (folder / "mynet.py").write_text(NET)
    chance = np.random.default_rng(0)
    labels = {split: np.arange(n) % 3 for split, n in (("train", 250), ("test", 130))}
    arrays = {f"y_{split}": y for split, y in labels.items()}
    for split, y in labels.items():
        arrays[f"x_{split}"] = (chance.normal(size=(len(y), 6)) + 2 * np.eye(3, 6)[y]).astype(np.float32)
    np.savez(folder / "mine.npz", **arrays)
    done = equisep("measure", *measured_words("net"), "--out", "whole.json", folder=folder)
    assert done.returncode == 0, done.stderr
    return folder


def measured_words(model: str) -> list[str]:
    return ["--model", f"./mynet.py:{model}", "--data", "mine.npz", "--batch-size", "40", "--seed", "2", "--quiet"]


def test_a_measurement_on_ray_is_that_of_one_process(connected: str, measured: Path) -> None:
    done = equisep(
        "measure", *measured_words("net"), "--on", connected, "--shards", "3", "--out", "ray.json", folder=measured
    )
    assert done.returncode == 0, done.stderr
    one, other = (Profile.load(measured / name) for name in ("whole.json", "ray.json"))
    assert [site.name for site in other.sites] == [site.name for site in one.sites]
    for here, there in zip(one.sites, other.sites, strict=True):
        for name in ("fuzziness", "fuzziness_test", "cdnv", "ncc_train", "ncc_test", "nc1"):
            assert getattr(there, name) == pytest.approx(getattr(here, name), rel=1e-12), name
    assert other.law.rho == pytest.approx(one.law.rho, rel=1e-12) and other.counts == one.counts
    assert other.accuracy_test == one.accuracy_test and other.samples == one.samples


def test_a_killed_shard_is_read_again(connected: str, measured: Path) -> None:
    words = measured_words("once_killed")
    profile = measure_on_ray(words[:-1], address=connected, shards=2, folder=measured)
    assert (measured / "killed").exists()
    one = Profile.load(measured / "whole.json")
    assert [site.fuzziness for site in profile.sites] == pytest.approx([s.fuzziness for s in one.sites], rel=1e-12)


def test_an_error_of_a_shard_is_the_commands_own(connected: str, measured: Path) -> None:
    done = equisep("measure", *measured_words("nothing"), "--on", connected, "--shards", "1", folder=measured)
    assert done.returncode == 2 and "nothing" in done.stderr and "Traceback" not in done.stderr
    done = equisep("measure", *measured_words("net"), "--on", connected, "--shard", "1/2", folder=measured)
    assert done.returncode == 2 and "divides a model's data by itself; it takes no `--shard`" in done.stderr
    with pytest.raises(InputError, match=r"`shards` is how many parts the data are read in, 1 or more; found 0"):
        measure_on_ray([], address=connected, shards=0)
    gone = measured / "gone"
    with pytest.raises(InputError, match=r"No folder `.*gone` on the machine of a worker"):
        measure_on_ray([], address=connected, shards=1, folder=gone)


def test_a_cell_on_ray_is_the_same_in_float64(connected: str, tmp_path: Path) -> None:
    here = together(CELLS)  # which is what they are alone: test_company.py
    store = Store.open(tmp_path / "runs")
    told: list[tuple[int, int | None]] = []
    evidence = run_figure(
        FIGURE, store=store, on=connected, progress=lambda what, done, total: told.append((done, total))
    )
    assert told[-1] == (len(KINDS), len(KINDS))
    assert evidence.done == evidence.planned == len(CELLS)
    for name in KINDS:
        for entry in evidence.series[name].entries:
            assert farthest(here[entry.cell.key], entry.outcome) <= EXACT
            assert entry.provenance["together"] == 4
    # from here on the store has them: no cluster is asked, and none is started
    again = run_figure(FIGURE, store=store, on="ray://127.0.0.1:1")
    assert again.done == len(CELLS)
    assert not any(name.startswith("RAY_ADDRESS") for name in os.environ)
