"""Kill processes at random, 100 times by default: shards go on where they were, groups of ranks end and are started again.

Each kill is of one of: a shard in its first or second round (which goes on from its last group of batches), or a rank of a group
of 2 to 4 (the others must end with one sentence). What comes out in the end must be what an undisturbed run gives: for shards
every byte, for ranks every number. Run as `python scripts/kills.py --kills 100 --seed 0`; it prints a line per kind.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import signal
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "measuring" / "distributed"))
from one_process import data, differences, network  # type: ignore[import-not-found]
from processes import in_processes  # type: ignore[import-not-found]

import equisep
from equisep.data.shard import Shard
from equisep.errors import NumericalError
from equisep.measuring.distributed import control, shards
from equisep.measuring.distributed.merge import merge_files
from equisep.measuring.distributed.part import Means, write_part
from equisep.measuring.distributed.shards import ShardTask, measure_shard
from equisep.results import Profile

METRICS = ("fuzziness", "null", "ncc")
SIZE = 10  # samples per batch


def dying(after: int) -> Any:
    """A small network whose process is killed at the forward pass of this number."""
    model, passes = network(), itertools.count(1)
    model.register_forward_pre_hook(
        lambda module, args: os.kill(os.getpid(), signal.SIGKILL) if next(passes) == after else None
    )
    return model


def batches(pair: tuple[torch.Tensor, torch.Tensor]) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """A data set as a list of batches."""
    return list(zip(pair[0].split(SIZE), pair[1].split(SIZE), strict=True))


def killed_shard(task: ShardTask, sets: Any, after: int) -> bool:
    """Run a shard in a process that is killed after some forward passes; whether it was."""
    child = os.fork()
    if child == 0:
        try:
            measure_shard(dying(after), *sets, task=task, metrics=METRICS)
        finally:
            os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def by_shards(folder: Path, sets: Any, chance: random.Random, most: int) -> tuple[Profile, int]:
    """The profile of three shards that are killed up to `most` times, and how often they were."""
    kills = 0
    means: Path | None = None
    for letter in "ab":
        parts = []
        for index in range(3):
            task = ShardTask(Shard(index, 3), folder / f"{letter}{index}.npz", means, every=0.0)
            while kills < most and chance.random() < 0.5:
                kills += killed_shard(task, sets, chance.randint(2, 18))
            parts.append(measure_shard(network(), *sets, task=task, metrics=METRICS))
        chance.shuffle(parts)
        merged = merge_files(parts)
        if isinstance(merged, Means):
            means = folder / "means.npz"
            write_part(means, merged)
    assert isinstance(merged, Profile)
    return merged, kills


def by_ranks(world: int, edges: list[int], sets: Any, victim: int | None, after: int) -> list[Any]:
    """What every rank of a group has to say, one of which is killed."""

    def work(rank: int) -> Any:
        mine = [part[edges[rank] : edges[rank + 1]] for part in sets]
        return equisep.measure(dying(after) if rank == victim else network(), *mine, metrics=METRICS)

    found: list[Any] = in_processes(world, work)
    return found


def main() -> None:
    """Kill, go on, compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    chance, done = random.Random(asked.seed), Counter[str]()
    shards.GROUP, control.DEAD, control.BEAT = 2, 4.0, 0.5
    sets = [batches(data()), batches(data((40, 30, 20, 11), seed=2))]
    with tempfile.TemporaryDirectory() as name:
        whole, _ = by_shards(Path(name) / "whole", sets, chance, 0)
        alone = equisep.measure(network(), *sets, metrics=METRICS)
        assert not differences(whole, alone)
        while done.total() < asked.kills:
            if chance.random() < 0.5:
                most = min(10, asked.kills - done.total())
                profile, kills = by_shards(Path(name) / str(done.total()), sets, chance, most)
                assert profile.to_dict() == whole.to_dict(), "another profile after shards were killed"
                done["shards"] += kills
            else:
                world = chance.randint(2, 4)
                cuts = sorted(chance.randint(1, len(sets[0]) - 1) for _ in range(world - 1))
                edges, victim = [0, *cuts, len(sets[0])], chance.randrange(world)
                found = by_ranks(world, edges, sets, victim, chance.randint(1, 6))
                others = [each for rank, each in enumerate(found) if rank != victim]
                if found[victim] is not None:  # it had too few batches to die of
                    continue
                assert all(isinstance(each, NumericalError) for each in others), others
                again = by_ranks(world, edges, sets, None, 0)
                assert not [line for each in again for line in differences(each, alone)], "another profile"
                done["ranks"] += 1
            print(
                f"{done.total()} kills: {done['shards']} of shards, {done['ranks']} of ranks; every profile was the same"
            )


if __name__ == "__main__":
    main()
