"""Training many networks of one shape side by side: a checked task, run in chunks, resumed from a store."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from equisep._version import __version__
from equisep.devices import usable_device
from equisep.errors import InputError
from equisep.files import encode
from equisep.models import Fnn
from equisep.progress import Watched, callback, watched
from equisep.results.readings import BY_BATCH
from equisep.training.captured import replays
from equisep.training.ensemble.chunks import EnsembleEngine, Limits, Task, train_in_chunks
from equisep.training.ensemble.member import Member, Shape, Stage, check_members
from equisep.training.ensemble.reading import Watch
from equisep.training.ensemble.record import Ensemble, joined
from equisep.training.ensemble.samples import DrawnOrders, draw_samples, flat_pool
from equisep.training.ensemble.stack import Weights
from equisep.training.ensemble.store import ChunkStore, checksum


@watched
def train_ensemble(
    members: Sequence[Member],
    x: Tensor,
    y: Tensor,
    *,
    test: tuple[Tensor, Tensor] | None = None,
    per_class: int | None = None,
    sizes: Sequence[int] | None = None,
    samples: Sequence[tuple[Tensor, Tensor]] | None = None,
    drawn: Sequence[Tensor] | None = None,
    validation: Sequence[tuple[Tensor, Tensor]] | None = None,
    pool_per_class: int | Sequence[int] | None = None,
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
    progress: Watched = None,
) -> Ensemble:
    """Train every member as `train` would train it alone, all of them at once; others matter by rounding only.

    x, y         the pool of samples. With `per_class` or `sizes` each member draws its own by its `data_seed`.
    samples      instead of a draw, for each member its positions in the pool and its labels there.
    drawn        for each member the order in which the reading `drawn` takes its samples, as positions among them; by
                 default the walk of its draw (see `equisep.data.draw`; `pool_per_class` is the size of the full pool, where
                 x is a part of it), and where samples are given, as they stand. Training does not depend on it.
    test         samples whose accuracy is read along.
    validation   for each member positions in the pool and labels of samples it does not learn from, whose loss, accuracy
                 and nearest centers are read along.
    stages       stretches of training with frozen layers or other schedules; by default the recipes as they are.
    starts       a network or state dict for each member to start from; by default its seed makes the weights.
    watch        when and what is read; by default all sites after the last epoch, in the reading `mixed`.
    engine       `eager`, `graphs` (captured CUDA graphs, float32), `kernel` (a CUDA kernel that trains small networks over
                 many steps, float32 or TF32), or `auto`: the kernel where it can be had and pays, then graphs.
    tf32         lets a GPU round the factors of matrix products to 10 bits for speed; recorded.
    memory, chunk     bytes, and the most members, that train at once; by default what is free.
    workers      on a CPU, how many threads train a part of the members each; by default torch's number of threads.
    store        a folder where chunks are kept, every minute while they train and once they are finished; the same call takes
                 them from there and goes on.

    >>> import torch, equisep
    >>> y = torch.arange(90) % 3
    >>> x = 2 * torch.eye(3, 8)[y] + torch.randn(90, 8, generator=torch.Generator().manual_seed(0))
    >>> from equisep.training import Member, Recipe, Shape
    >>> members = [
    ...     Member(Recipe(optimizer="adam", rate=1e-2, epochs=4, seed=seed), Shape(widths=(16, 16), inputs=8, classes=3))
    ...     for seed in range(3)
    ... ]
    >>> ensemble = equisep.train_ensemble(members, x, y)
    >>> len(ensemble.curve(0)), type(ensemble.network(2)).__name__
    (3, 'Fnn')
    """
    progress = callback(progress)
    task = _checked_task(
        members,
        x,
        y,
        test=test,
        per_class=per_class,
        sizes=sizes,
        samples=samples,
        held=validation,
        orders=DrawnOrders(drawn, pool_per_class),
        stages=stages,
        starts=starts,
        watch=watch or Watch(),
        device=device,
        dtype=dtype,
        engine=engine,
        tf32=tf32,
    )
    limits = Limits(memory=memory, chunk=chunk, workers=workers)
    kept = None if store is None else ChunkStore(Path(store), task)
    keys = [str(index) for index in range(len(members))] if kept is None else kept.keys
    done = {} if kept is None else kept.finished()
    todo = [index for index, key in enumerate(keys) if key not in done]
    for indices, part in train_in_chunks(task, todo, limits, progress, None if kept is None else kept.checkpoint):
        if kept is not None:
            kept.keep(indices, part)
        done |= {keys[index]: (part, at) for at, index in enumerate(indices)}
    return _assembled(task, [done[key] for key in keys])


def _checked_task(
    members: Sequence[Member],
    x: Tensor,
    y: Tensor,
    *,
    test: tuple[Tensor, Tensor] | None,
    per_class: int | None,
    sizes: Sequence[int] | None,
    samples: Sequence[tuple[Tensor, Tensor]] | None,
    held: Sequence[tuple[Tensor, Tensor]] | None,
    orders: DrawnOrders,
    stages: Sequence[Stage],
    starts: Sequence[Fnn | Weights] | None,
    watch: Watch,
    device: str | torch.device | None,
    dtype: torch.dtype,
    engine: str,
    tf32: bool,
) -> Task:
    """What is to be trained, once it is sure that it can be; settings are everything else that can change a number."""
    shape = check_members(members, stages)
    home = usable_device(device, asked="train_ensemble")
    stages = tuple(stages) or (Stage(epochs=members[0].recipe.epochs),)
    if dtype not in (torch.float32, torch.float64):
        raise InputError(f"Networks train side by side in float32 or float64; found {dtype}.")
    weights = _weights(members, shape, starts)
    asked = orders if "drawn" in watch.names else None
    drawn = draw_samples(members, x, y, per_class=per_class, sizes=sizes, given=samples, held=held, orders=asked)
    tested = None if test is None else (flat_pool(*test, shape, what="test samples"), test[1].cpu().to(torch.int64))
    read = {} if tested is None else {"test": len(tested[1])}
    read |= {} if drawn.held is None else {"validation": drawn.held.rows.shape[1]}
    _check_batches(members[0], drawn.n, read, watch, stages)
    chosen = _engine(engine, members, stages, drawn.n, device=home, dtype=dtype, tf32=tf32)
    settings = {
        "data": checksum(drawn.pool),
        "test": None if tested is None else checksum(*tested),
        "stages": stages,
        "watch": watch,
        "dtype": str(dtype).removeprefix("torch."),
        "tf32": tf32,
        "engine": chosen,
        "per_class": per_class,
        "sizes": None if sizes is None else [int(size) for size in sizes],
        "starts": "seeds" if starts is None else "given",
        "device": home.type,
        "equisep": __version__,
    }
    return Task(
        members=tuple(members),
        weights=tuple(weights),
        samples=drawn,
        test=tested,
        stages=stages,
        watch=watch,
        device=home,
        dtype=dtype,
        tf32=tf32,
        engine=chosen,
        settings=dict(encode(settings)),
    )


def _engine(
    asked: str,
    members: Sequence[Member],
    stages: Sequence[Stage],
    samples: int,
    *,
    device: torch.device,
    dtype: torch.dtype,
    tf32: bool,
) -> EnsembleEngine:
    """The kernel where it was asked for, or where nobody says and it pays; graphs next; eager steps otherwise."""
    against: str | None = f"the device is {device}"
    if asked in ("auto", "kernel") and device.type == "cuda":
        from equisep.training.ensemble.kernel.compile import KernelError
        from equisep.training.ensemble.kernel.stage import WORTH_BUILDING, kernel_obstacle, operations

        first = members[0]
        if asked == "kernel" or operations(members, stages, samples=samples) >= WORTH_BUILDING:
            try:
                against = kernel_obstacle(
                    first.shape,
                    stages,
                    members=len(members),
                    batch_size=first.recipe.batch_size,
                    device=device,
                    dtype=dtype,
                    tf32=tf32,
                )
            except KernelError as error:
                against = str(error)
                if asked == "auto":
                    warnings.warn(f"Graphs train instead of the CUDA kernel: {error}.", RuntimeWarning, stacklevel=5)
            if against is None:
                return "kernel"
    if asked == "kernel":
        raise InputError(f"`engine='kernel'` trains by a CUDA kernel of its own, but {against}. Use `engine='auto'`.")
    # rates that captured kernels read live on the device, where the fused optimizers take float32
    obstacle = None if dtype is torch.float32 else f"rates on the device are float32, and members train in {dtype}"
    return "graphs" if replays(asked, device, obstacle=obstacle, others=("kernel",)) else "eager"


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


def _check_batches(member: Member, n: int, read: Mapping[str, int], watch: Watch, stages: Sequence[Stage]) -> None:
    normalized = member.shape.norm and bool(member.shape.widths)
    if normalized:
        member.recipe.check_normalized(n)
    by_batch = [name for name in watch.names if name in BY_BATCH]
    for what, samples in read.items():
        if normalized and samples == 1 and by_batch:
            raise InputError(
                f"BatchNorm cannot normalize the one {what} sample in the reading `{by_batch[0]}`. Give more, or read in `eval`."
            )
    total = sum(stage.epochs for stage in stages)
    late = [epoch for epoch in watch.epochs if epoch > total]
    if late:
        raise InputError(f"A reading is asked at epoch {late[0]}, but training ends at {total}. Watch earlier epochs.")


def _assembled(task: Task, parts: Sequence[tuple[Ensemble, int]]) -> Ensemble:
    """All members in the order asked, each from the chunk that holds it."""
    chunks = list({id(chunk): chunk for chunk, _ in parts}.values())
    offset, at = {}, 0
    for chunk in chunks:
        offset[id(chunk)] = at
        at += len(chunk)
    whole = chunks[0] if len(chunks) == 1 else joined(chunks)
    order = [offset[id(chunk)] + index for chunk, index in parts]
    whole = whole if order == list(range(len(whole))) else whole.taken(order)
    return replace(whole, members=task.members, stages=task.stages, settings=task.settings)
