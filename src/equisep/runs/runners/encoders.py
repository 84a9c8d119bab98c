"""Cells of text encoders: fine-tuned on labelled sentences with AdamW, read at their first token and token mean."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from equisep.data import Batches, TokenBatches, load_sentences, load_tokenizer
from equisep.data.sampling import raw_stream
from equisep.devices import precision, provenance, usable_device
from equisep.errors import MissingExtraError
from equisep.figures.cell import Training
from equisep.figures.outcome import Curves, Outcome
from equisep.measuring import measure
from equisep.models import load_model
from equisep.progress import Progress, silent
from equisep.results import Reading
from equisep.runs.runners.cells import dtype_of, recipe_of
from equisep.runs.runners.networks import METRICS, curves_of

SEEDED = "seeded-tokens"
TOKENS, LENGTH, VOCABULARY, CLASSES = (
    3,
    12,
    60,
    2,
)  # the use of a seed; tokens a sentence, known tokens, classes of the seeded set
# the embedding of the first token is the same for every sentence, so it holds no classes and is left out there
SITES = {"first": ("{}.encoder.layer.*",), "mean": ("{}.embeddings", "{}.encoder.layer.*")}


@dataclass(frozen=True, slots=True)
class Texts:
    """Tokenized batches of training and of held-out sentences, and how the first are shuffled for an epoch."""

    train: Any
    test: Any
    shuffled: Any
    checksum: str


def run_cells(
    cells: Sequence[Training], *, device: str | None = None, data_dir: str | None = None, progress: Progress = silent
) -> tuple[list[Outcome], dict[str, Any]]:
    """The outcomes of cells, one encoder after the other."""
    torch_device = usable_device(device, asked="equisep figures run")
    outcomes, checksum = [], ""
    for cell in cells:
        model = _model(cell)
        notes = _precision_note(model, cell)
        model = model.to(torch_device, dtype_of(cell))
        texts = _seeded(cell) if cell.data == SEEDED else _sentences(cell, data_dir)
        with precision(tf32=cell.tf32):
            loss = _fine_tuned(model, texts, cell, torch_device, progress)
            outcomes.append(
                Outcome(
                    readings=tuple(_readings(model, texts, cell, torch_device)),
                    numbers={"final_loss": loss},
                    notes=notes,
                )
            )
        checksum = texts.checksum
    return outcomes, {
        **provenance(torch_device, dtype_of(cells[0])), "data": checksum, "engine": "single", "tf32": cells[0].tf32,
    }  # fmt: skip


def _model(cell: Training) -> nn.Module:
    """The encoder with a new head, drawn from the seed; `bert` is BERT-base's wiring with random weights."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(cell.seed)
        if cell.network != "bert":
            return load_model(cell.network, num_labels=CLASSES)
        try:
            from transformers import BertConfig, BertForSequenceClassification
        except ImportError as error:
            raise MissingExtraError(
                needed_for="The encoder `bert`", package="transformers", extra="transformers"
            ) from error
        heads = max(1, round(12 * cell.width_multiplier))
        config = BertConfig(
            vocab_size=VOCABULARY, hidden_size=64 * heads, num_attention_heads=heads, intermediate_size=256 * heads,
            num_labels=CLASSES, max_position_embeddings=LENGTH,
        )  # fmt: skip
        return cast("nn.Module", BertForSequenceClassification(config))


def _precision_note(model: nn.Module, cell: Training) -> tuple[str, ...]:
    """What is to be said of published weights in fewer digits than the training has."""
    kept = next(model.parameters()).dtype
    if kept == dtype_of(cell):
        return ()
    words = str(kept).removeprefix("torch.")
    return (f"The weights of `{cell.network}` were read in {words}, and trained and measured in {cell.dtype}.",)


def _sentences(cell: Training, data_dir: str | None) -> Texts:
    """Sentences of the table, drawn by `data_seed`, in the tokens of the encoder."""
    whole = load_sentences(cell.data, data_dir=data_dir)
    drawn = whole if cell.per_class is None else whole.draw(cell.per_class, seed=cell.data_seed)
    held = load_sentences(cell.data, split="dev", data_dir=data_dir)
    held = held if cell.test_per_class is None else held.draw(cell.test_per_class)
    tokenizer = load_tokenizer(cell.network.removeprefix("hf:"))

    def shuffled(seed: int) -> TokenBatches:
        return TokenBatches(drawn.texts, drawn.labels, tokenizer, batch_size=cell.batch_size, seed=seed)

    return Texts(
        TokenBatches(drawn.texts, drawn.labels, tokenizer),
        TokenBatches(held.texts, held.labels, tokenizer),
        shuffled,
        hashlib.sha256("\n".join((*whole.texts, *map(str, whole.labels.tolist()))).encode()).hexdigest(),
    )


class _TokenBatches:
    """Batches of token rows that are made already, as models of Hugging Face take them."""

    def __init__(self, tokens: Tensor, labels: Tensor, *, batch_size: int = 100, seed: int = 0) -> None:
        self.batches = Batches(tokens, labels, batch_size=batch_size, seed=seed)

    @property
    def mixes(self) -> bool:
        """Whether the order is a uniform permutation of ours."""
        return self.batches.mixes

    def in_drawn_order(self) -> _TokenBatches:
        """The same rows in the order given."""
        other = copy(self)
        other.batches = self.batches.in_drawn_order()
        return other

    def __len__(self) -> int:
        return len(self.batches)

    def __iter__(self) -> Iterator[tuple[dict[str, Tensor], Tensor]]:
        for tokens, labels in self.batches:
            yield {"input_ids": tokens, "attention_mask": torch.ones_like(tokens)}, labels


def _seeded(cell: Training) -> Texts:
    """A token set by seed: each class prefers one half of the vocabulary, three times in four."""
    train = _seeded_rows(cell.per_class or 12, seed=cell.data_seed)
    test = _seeded_rows(cell.test_per_class or 12, seed=cell.data_seed + 2**16)

    def shuffled(seed: int) -> _TokenBatches:
        return _TokenBatches(*train, batch_size=cell.batch_size, seed=seed)

    return Texts(_TokenBatches(*train), _TokenBatches(*test), shuffled, SEEDED)


def _seeded_rows(per_class: int, *, seed: int) -> tuple[Tensor, Tensor]:
    count = CLASSES * per_class
    labels = np.arange(count) % CLASSES
    raw = raw_stream(count * LENGTH, seed=seed, use=TOKENS).reshape(count, LENGTH)
    half = (VOCABULARY - 2) // 2
    own = (raw >> np.uint64(32)) % np.uint64(4) != 0  # three in four from the half of its class
    side = np.where(own, labels[:, None], 1 - labels[:, None])
    tokens = 2 + side * half + (raw % np.uint64(half)).astype(np.int64)
    tokens[:, 0] = 1  # the first token is the same in every sentence, as BERT's
    return torch.from_numpy(tokens.astype(np.int64)), torch.from_numpy(labels.astype(np.int64))


def _fine_tuned(
    model: nn.Module, texts: Texts, cell: Training, torch_device: torch.device, progress: Progress
) -> float:
    """The cell's optimizer with a linear decay of the rate, all weights; the mean loss of the last epoch."""
    optimizer = recipe_of(cell).make_optimizer(model.parameters())
    steps = cell.epochs * len(texts.shuffled(0))
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, total_iters=max(1, steps))
    model.train()
    mean = float("nan")
    with torch.random.fork_rng(devices=[torch_device] if torch_device.type == "cuda" else []):
        torch.manual_seed(cell.seed)  # of dropout
        for epoch in range(cell.epochs):
            total, seen = 0.0, 0
            for inputs, y in texts.shuffled(cell.seed + epoch):
                scores = model(**{name: value.to(torch_device) for name, value in inputs.items()}).logits
                loss = nn.functional.cross_entropy(scores, y.to(torch_device))
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                schedule.step()
                total, seen = total + float(loss.detach()) * len(y), seen + len(y)
            mean = total / seen
            progress("training", epoch + 1, cell.epochs)
    model.eval()
    return mean


def _readings(model: nn.Module, texts: Texts, cell: Training, torch_device: torch.device) -> Iterator[Curves]:
    stem = str(getattr(model, "base_model_prefix", "bert"))
    for reading in cast("tuple[Reading, ...]", cell.readings):
        for reduction in cell.reductions:
            profile = measure(
                model, texts.train, texts.test, sites=[name.format(stem) for name in SITES[reduction]],
                reduction=reduction, reading=reading, metrics=[*METRICS, "null"], intervals="none", coordinates=0,
            )  # fmt: skip
            yield curves_of(profile, cell, cell.epochs, reading, cell.grains[0], reduction, profile.accuracy_test)
