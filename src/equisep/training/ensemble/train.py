"""Training many networks of one shape side by side: chunks that fit, results kept as they come, the rest resumed."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import torch
from torch import Tensor

from equisep._version import __version__
from equisep.devices import out_of_memory, precision, usable_device
from equisep.errors import EquisepError, InputError, NumericalError
from equisep.files import encode
from equisep.models import Fnn
from equisep.progress import Progress, silent
from equisep.training.captured import replays
from equisep.training.ensemble.chunks import Task, train_chunk
from equisep.training.ensemble.member import Member, Stage, check_members
from equisep.training.ensemble.memory import SHARE, bytes_per_member, free_bytes
from equisep.training.ensemble.optimizers import setting
from equisep.training.ensemble.reading import Watch
from equisep.training.ensemble.record import Ensemble, joined
from equisep.training.ensemble.samples import Samples, draw_samples, flat_pool
from equisep.training.ensemble.shape import Shape
from equisep.training.ensemble.stack import Weights
from equisep.workers import Stopped, parallel_map

CPU_CHUNK = 32  # more members side by side only push each other out of the processor's cache


def train_ensemble(
    members: Sequence[Member],
    x: Tensor,
    y: Tensor,
    *,
    test: tuple[Tensor, Tensor] | None = None,
    per_class: int | None = None,
    sizes: Sequence[int] | None = None,
    samples: Sequence[tuple[Tensor, Tensor]] | None = None,
    stages: Sequence[Stage] = (),
    starts: Sequence[Fnn | Weights] | None = None,
    watch: Watch | None = None,
    device: str | torch.device | None = None,
    dtype: torch.dtype = torch.float32,
    engine: str = "auto",
    tf32: bool = False,
    memory: int | None = None,
    chunk: int | None = None,
    workers: int | None = None,
    store: str | Path | None = None,
    progress: Progress = silent,
) -> Ensemble:
    """Train every member as `train` would train it alone, all of them at once; others matter by rounding only.

    x, y         the pool of samples. With `per_class` or `sizes` each member draws its own by its `data_seed`.
    samples      instead of a draw, for each member its positions in the pool and its labels there.
    test         samples whose accuracy is read along.
    stages       stretches of training with frozen layers or other schedules; by default the recipes as they are.
    starts       a network or state dict for each member to start from; by default its seed makes the weights.
    watch        when and what is read; by default all sites after the last epoch, in `batch` mode.
    engine       `eager`, `graphs` (captured CUDA graphs, float32), or `auto`: graphs where they can be had.
    tf32         lets a GPU round matrix products to 10 bits for speed; recorded.
    memory, chunk     bytes, and the most members, that train at once; by default what is free.
    workers      on a CPU, how many threads train a part of the members each; by default torch's number of threads.
    store        a folder where finished chunks are kept; the same call takes them from there and trains the rest.
    """
    watch = watch or Watch()
    shape, given = check_members(members, stages)
    place = usable_device(device, asked="train_ensemble")
    stages = given or (Stage(epochs=members[0].recipe.epochs),)
    if dtype not in (torch.float32, torch.float64):
        raise InputError(f"Networks train side by side in float32 or float64; found {dtype}.")
    # rates that captured kernels read live on the device, where the fused optimizers take float32
    obstacle = None if dtype is torch.float32 else f"rates on the device are float32, and members train in {dtype}"
    captured = replays(engine, place, obstacle=obstacle)
    weights = _weights(members, shape, starts)
    drawn = draw_samples(members, x, y, per_class=per_class, sizes=sizes, given=samples)
    held = None if test is None else (flat_pool(*test, shape, what="test samples"), test[1].cpu().to(torch.int64))
    _check_batches(members[0], drawn.n, None if held is None else len(held[1]), watch, stages)
    if chunk is not None and chunk < 1:
        raise InputError(f"`chunk` was {chunk}; at least one member has to train at a time.")
    if workers is not None and workers < 1:
        raise InputError(f"`workers` was {workers}; at least one thread has to train.")
    settings = _settings(drawn, held, stages, watch, dtype=dtype, tf32=tf32, engine=captured)
    settings |= {
        "per_class": per_class,
        "sizes": None if sizes is None else [int(size) for size in sizes],
        "starts": "seeds" if starts is None else "given",
        "device": place.type,
        "equisep": __version__,
    }
    task = Task(
        tuple(members), tuple(weights), drawn, held, stages, watch, place, dtype, captured, settings
    )  # fmt: skip
    keys = _keys(members, weights, drawn, settings) if store is not None else [str(i) for i in range(len(members))]
    done = {} if store is None else _stored(Path(store), keys)
    todo = sorted(
        (index for index, key in enumerate(keys) if key not in done),
        key=lambda index: setting(members[index].recipe),  # neighbors of one setting share an optimizer's sweep
    )
    size = _fitting(members, drawn.n, dtype, place, epochs=task.epochs, memory=memory, chunk=chunk)
    queue = _pieces(todo, size)
    finished = 0
    while queue:
        indices = queue.pop(0)

        def report(epochs: float | int, share: int = len(indices), before: int = finished) -> None:
            progress("training", int((before * task.epochs + epochs * share) / len(todo)), task.epochs)

        part = None
        try:
            with precision(tf32=tf32):
                part = _trained(task.of(indices), report, workers=workers)
        except (RuntimeError, MemoryError) as error:
            if not out_of_memory(error):
                raise
            if len(indices) == 1:
                need = bytes_per_member(members[indices[0]], drawn.n, dtype, epochs=task.epochs)
                raise NumericalError(
                    f"One member of {shape} needs about {need / 2**20:.0f} MiB on {place}, which is not free there. "
                    "Use another device or a smaller network."
                ) from error
        if part is None:  # out of the handler, whose error held on to the tensors of the chunk
            queue = _pieces([index for piece in (indices, *queue) for index in piece], (len(indices) + 1) // 2)
            if place.type == "cuda":
                torch.cuda.empty_cache()
            continue
        finished += len(indices)
        if store is not None:
            _keep(Path(store), part, [keys[i] for i in indices])
        done |= {keys[i]: (part, at) for at, i in enumerate(indices)}
    return _assembled(members, [done[key] for key in keys], stages)


def _pieces(indices: Sequence[int], size: int) -> list[Sequence[int]]:
    return [indices[start : start + size] for start in range(0, len(indices), size)]


def _trained(task: Task, report: Callable[[float], None], *, workers: int | None) -> Ensemble:
    """A chunk, on the CPU divided among threads; who sits with whom matters by rounding only."""
    width = len(task.members)
    threads = min(workers or torch.get_num_threads(), width) if task.place.type == "cpu" else 1
    if threads == 1:
        return train_chunk(task, report)
    edges = [width * worker // threads for worker in range(threads + 1)]
    parts = [task.of(range(start, end)) for start, end in pairwise(edges)]
    reached, stop = [0] * threads, threading.Event()

    def part_trained(index: int) -> Ensemble:
        def tick(epochs: int) -> None:
            if stop.is_set():
                raise Stopped
            reached[index] = epochs

        return train_chunk(parts[index], tick)

    return joined(
        parallel_map(
            part_trained,
            range(threads),
            threads=threads,
            meanwhile=lambda: report(sum(reached) / threads),
            stop=stop,
        )
    )


def _assembled(members: Sequence[Member], found: Sequence[tuple[Ensemble, int]], stages: Sequence[Stage]) -> Ensemble:
    """All members in the order asked, each from the chunk that holds it."""
    chunks = list({id(part): part for part, _ in found}.values())
    offset, at = {}, 0
    for part in chunks:
        offset[id(part)] = at
        at += len(part)
    whole = chunks[0] if len(chunks) == 1 else joined(chunks)
    order = [offset[id(part)] + index for part, index in found]
    whole = whole if order == list(range(len(whole))) else whole.taken(order)
    settings = {name: value for name, value in whole.settings.items() if name != "keys"}
    return replace(whole, members=tuple(members), stages=tuple(stages), settings=settings)


def _weights(members: Sequence[Member], shape: Shape, starts: Sequence[Fnn | Weights] | None) -> list[Weights]:
    """Where every member starts from; members of one seed share one state dict."""
    if starts is None:
        made = {seed: shape.build(seed).state_dict() for seed in {member.recipe.seed for member in members}}
        return [made[member.recipe.seed] for member in members]
    if len(starts) != len(members):
        raise InputError(f"`starts` has {len(starts)} networks for {len(members)} members. Give one for each.")
    states = {id(start): start.state_dict() if isinstance(start, torch.nn.Module) else start for start in starts}
    for index, start in enumerate(starts):
        shape.check(states[id(start)], what=f"The start of member {index}")
    return [states[id(start)] for start in starts]


def _check_batches(member: Member, n: int, tested: int | None, watch: Watch, stages: Sequence[Stage]) -> None:
    normalized = member.shape.norm and bool(member.shape.widths)
    if normalized:
        member.recipe.check_normalized(n)
    if normalized and tested == 1 and "batch" in watch.modes:
        raise InputError(
            "BatchNorm cannot normalize the one test sample in `batch` mode. Give more, or read in `eval` mode."
        )
    total = sum(stage.epochs for stage in stages)
    late = [epoch for epoch in watch.epochs if epoch > total]
    if late:
        raise InputError(f"A reading is asked at epoch {late[0]}, but training ends at {total}. Watch earlier epochs.")


def _fitting(
    members: Sequence[Member],
    n: int,
    dtype: torch.dtype,
    place: torch.device,
    *,
    epochs: int,
    memory: int | None,
    chunk: int | None,
) -> int:
    """How many members train at once, each taken for the one that needs most."""
    budget = SHARE * free_bytes(place) if memory is None else memory
    kinds = {member.recipe.optimizer: member for member in members}
    need = max(bytes_per_member(member, n, dtype, epochs=epochs) for member in kinds.values())
    fits = max(1, int(budget // need))
    if chunk is not None:
        return min(chunk, fits)
    return min(fits, CPU_CHUNK) if place.type == "cpu" else fits


def _settings(
    samples: Samples,
    test: tuple[Tensor, Tensor] | None,
    stages: Sequence[Stage],
    watch: Watch,
    *,
    dtype: torch.dtype,
    tf32: bool,
    engine: bool,
) -> dict[str, Any]:
    """Everything beside the members that can change a number, as saved with the results."""
    found = {
        "data": _checksum(samples.pool),
        "test": None if test is None else _checksum(*test),
        "stages": stages,
        "watch": watch,
        "dtype": str(dtype).removeprefix("torch."),
        "tf32": tf32,
        "engine": "graphs" if engine else "eager",
    }
    return dict(encode(found))


def _keys(
    members: Sequence[Member], weights: Sequence[Weights], samples: Samples, settings: Mapping[str, Any]
) -> list[str]:
    """For each member a name of its training that no other training has."""
    sums = {id(start): _checksum(*(tensor for _, tensor in sorted(start.items()))) for start in weights}
    rest = json.dumps(dict(settings), sort_keys=True)
    found = []
    for member, start, rows, labels in zip(members, weights, samples.rows, samples.labels, strict=True):
        text = json.dumps([encode(member), rest, sums[id(start)], _checksum(rows, labels)], sort_keys=True)
        found.append(hashlib.sha256(text.encode()).hexdigest())
    return found


def _checksum(*tensors: Tensor) -> str:
    found = hashlib.sha256()
    for tensor in tensors:
        plain = tensor.detach().cpu().contiguous()
        found.update(f"{plain.dtype}{tuple(plain.shape)}".encode())
        found.update(plain.view(-1).view(torch.uint8).numpy().tobytes())  # as bytes: numpy has no bfloat16
    return found.hexdigest()


def _keep(store: Path, part: Ensemble, keys: Sequence[str]) -> None:
    """A finished chunk, in a file named after its members."""
    name = hashlib.sha256("".join(keys).encode()).hexdigest()[:16]
    replace(part, settings={**part.settings, "keys": list(keys)}).save(store / f"chunk-{name}.npz")


def _stored(store: Path, keys: Sequence[str]) -> dict[str, tuple[Ensemble, int]]:
    """Members of this call that an earlier one finished; a damaged chunk is as good as none and is trained again."""
    if store.exists() and not store.is_dir():
        raise InputError(f"`store` takes a folder; `{store}` is a file.")
    try:
        store.mkdir(parents=True, exist_ok=True)
        TemporaryFile(dir=store).close()
    except OSError as error:
        raise InputError(f"`store` cannot be written: `{store}` ({error.strerror}). Give another folder.") from error
    found: dict[str, tuple[Ensemble, int]] = {}
    for path in sorted(store.glob("chunk-*.npz")):
        try:
            known = Ensemble.header(path)["settings"].get("keys", ())
            part = Ensemble.load(path) if set(known) & set(keys) else None
        except EquisepError:
            continue
        if part is not None:
            found |= {key: (part, at) for at, key in enumerate(known)}
    return found
