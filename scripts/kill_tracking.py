"""Kill a tracked training at random moments, restart it from its checkpoint each time, and look at its history.

    python scripts/kill_tracking.py --kills 50

After every kill the history must be readable, its epochs 1, 2, 3, … without a gap; at the end it must be, number for number,
that of a training that nobody killed. In every second training the checkpoint is written before the reading, in the others
after it: both must do. Every second kill comes at a random time, the others where a random time seldom comes: while a line is
written, some of its bytes short. Trainings are forked from one process, so that a kill costs no start of Python.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import stat
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

import torch
from torch import nn

from equisep import History, Tracker

EPOCHS = 5
SITES = ["1", "3"]
SHORT = 1000  # bytes that a line may lack where the kill comes while it is written; lines are longer


def data() -> tuple[torch.Tensor, torch.Tensor]:
    """Three classes in five dimensions."""
    generator = torch.Generator().manual_seed(0)
    y = torch.arange(60) % 3
    return torch.randn(3, 5, generator=generator)[y] + 0.5 * torch.randn(60, 5, generator=generator), y


def train(folder: Path, *, checkpoint_first: bool) -> None:
    """The training as a user writes it: from its checkpoint on, with a history in a file."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 6), nn.ReLU(), nn.Linear(6, 6), nn.ReLU(), nn.Linear(6, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    x, y = data()
    done, checkpoint = 0, folder / "checkpoint.pt"
    if checkpoint.exists():
        state = torch.load(checkpoint, weights_only=True)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        done = state["epoch"]
    tracker = Tracker(model, (x, y), sites=SITES, per_class=5, history=folder / "history.jsonl")
    tracker.resume(done)
    for epoch in range(done + 1, EPOCHS + 1):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        if not checkpoint_first:
            tracker.epoch(epoch)
        part = checkpoint.with_suffix(".part")
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}, part)
        part.replace(checkpoint)
        if checkpoint_first:
            tracker.epoch(epoch)


def die_while_writing(writes: int, short: int) -> None:
    """Kill this process in one of its next writes, which then lacks some bytes."""
    left = writes

    def dying(handle: int) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            if stat.S_ISREG(os.fstat(handle).st_mode):  # not a folder, whose names are waited for too
                os.ftruncate(handle, max(0, os.fstat(handle).st_size - short))
            os.kill(os.getpid(), signal.SIGKILL)

    os.fsync = dying  # type: ignore[assignment]


def forked(
    folder: Path, *, checkpoint_first: bool, seconds: float | None = None, writes: tuple[int, int] | None = None
) -> bool:
    """Train in a process of its own; kill it after some seconds or in some write, and say whether that came before its end."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            if writes is not None:
                die_while_writing(*writes)
            train(folder, checkpoint_first=checkpoint_first)
            code = 0
        except Exception:
            traceback.print_exc()
        finally:
            os._exit(code)
    if seconds is not None:
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return True
    assert os.WEXITSTATUS(status) == 0, "the training itself failed"
    return False


def numbers_in(folder: Path) -> tuple[int, ...]:
    """The epochs of the history, which must be 1, 2, 3, …; none where the training had not come to write one."""
    path = folder / "history.jsonl"
    if not path.exists():
        return ()
    history = History.load(path)
    assert history.damaged == 0
    assert [entry.failure for entry in history] == [None] * len(history)
    assert history.numbers == tuple(range(1, len(history) + 1)), history.numbers
    return history.numbers


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    """Kill as often as asked, in as many trainings as it takes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args(arguments)
    torch.set_num_threads(1)
    rng = random.Random(asked.seed)
    told = {"kills": 0, "trainings": 0, "torn_lines": 0, "read_again": 0}
    with tempfile.TemporaryDirectory() as root:
        whole = Path(root) / "whole"
        whole.mkdir()
        begun = time.perf_counter()
        forked(whole, checkpoint_first=False)
        length = time.perf_counter() - begun
        expected = History.load(whole / "history.jsonl").profiles()
        assert tuple(expected) == tuple(range(1, EPOCHS + 1))
        while told["kills"] < asked.kills:
            folder = Path(root) / str(told["trainings"])
            folder.mkdir()
            first = told["trainings"] % 2 == 1
            killed = True
            while killed:
                when: dict[str, Any] = {}
                if told["kills"] < asked.kills:
                    in_time = {"seconds": rng.uniform(0, length)}
                    short = rng.choice(
                        (0, rng.randrange(SHORT))
                    )  # 0: the line is whole, and what was to follow it lacks
                    in_writes = {"writes": (rng.randrange(EPOCHS), short)}
                    when = in_time if told["kills"] % 2 == 0 else in_writes
                killed = forked(folder, checkpoint_first=first, **when)
                told["kills"] += killed
                numbers_in(folder)
                path = folder / "history.jsonl"
                told["torn_lines"] += path.exists() and not path.read_bytes().endswith(b"\n")
            found = History.load(folder / "history.jsonl").profiles()
            assert {n: p.curve() for n, p in found.items()} == {n: p.curve() for n, p in expected.items()}
            lines = (folder / "history.jsonl").read_text().count("\n") - 1
            told["read_again"] += lines - len(found)
            told["trainings"] += 1
    return told


if __name__ == "__main__":
    result = main()
    print(", ".join(f"{count} {name.replace('_', ' ')}" for name, count in result.items()))
    sys.exit(0)
