"""Hugging Face BERT, GPT-2 and ViT, small and with random weights: how each is read, and in which reductions.

    python examples/huggingface_random.py

Nothing is downloaded; `pip install "equisep[transformers]"`. Random networks separate nothing, so no law is to be expected:
what the table shows is which sites are found, and how wide their features are.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any

import torch
import transformers

import equisep

CLASSES, SAMPLES, TOKENS, WORDS = 3, 90, 12, 50
SEQUENCE = ("first", "last", "mean", "tokens")


def bert() -> Any:
    """An encoder with its pooler and classifier."""
    sizes = {"hidden_size": 24, "intermediate_size": 48, "num_hidden_layers": 3, "num_attention_heads": 2}
    config = transformers.BertConfig(vocab_size=WORDS, max_position_embeddings=TOKENS, num_labels=CLASSES, **sizes)
    return transformers.BertForSequenceClassification(config)


def gpt2() -> Any:
    """A decoder whose last token is classified."""
    sizes = {"n_embd": 24, "n_layer": 3, "n_head": 2, "n_positions": TOKENS}
    config = transformers.GPT2Config(vocab_size=WORDS, num_labels=CLASSES, pad_token_id=0, **sizes)
    return transformers.GPT2ForSequenceClassification(config)


def vit() -> Any:
    """An image classifier that reads its class token."""
    sizes = {"hidden_size": 24, "intermediate_size": 48, "num_hidden_layers": 3, "num_attention_heads": 2}
    config = transformers.ViTConfig(image_size=16, patch_size=4, num_labels=CLASSES, **sizes)
    return transformers.ViTForImageClassification(config)


def sentences() -> list[dict[str, torch.Tensor]]:
    """Random sentences of unequal length; each class prefers words of its own. 0 is the padding."""
    labels = torch.arange(SAMPLES) % CLASSES
    lengths = torch.randint(3, TOKENS + 1, (SAMPLES, 1))
    mask = torch.arange(TOKENS) < lengths
    words = torch.randint(1, WORDS // 2, (SAMPLES, TOKENS)) + labels[:, None] * (WORDS // (2 * CLASSES))
    columns = {"input_ids": words * mask, "attention_mask": mask.long(), "labels": labels}
    return [{name: column[i : i + 30] for name, column in columns.items()} for i in range(0, SAMPLES, 30)]


def pictures() -> list[dict[str, torch.Tensor]]:
    """Random pictures; each class is brighter than the one before."""
    labels = torch.arange(SAMPLES) % CLASSES
    pixels = torch.randn(SAMPLES, 3, 16, 16) + labels[:, None, None, None]
    return [{"pixel_values": pixels[i : i + 30], "labels": labels[i : i + 30]} for i in range(0, SAMPLES, 30)]


NETWORKS: dict[str, tuple[Callable[[], Any], Callable[[], list[dict[str, torch.Tensor]]]]] = {
    "BERT": (bert, sentences),
    "GPT-2": (gpt2, sentences),
    "ViT": (vit, pictures),
}


def main(words: Sequence[str] | None = None) -> dict[tuple[str, str], equisep.Profile]:
    """Measure and print; the profiles by network and reduction."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--network", choices=NETWORKS, help="one of them only")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args(words)
    profiles = {}
    for name, (make, data) in NETWORKS.items():
        if asked.network in (None, name):
            torch.manual_seed(asked.seed)
            model, batches = make(), data()
            for reduction in SEQUENCE:
                profile = equisep.measure(model, batches, sites="blocks", reduction=reduction, coordinates=0)
                profiles[name, reduction] = profile
                shown = " ".join("-" if site.fuzziness is None else f"{site.fuzziness:.3g}" for site in profile.sites)
                where = f"{profile.sites[0].name} … {profile.sites[-1].name}, {profile.sites[-1].dim} wide"
                print(f"{name:6} {reduction:7} {len(profile.sites)} sites ({where}): D {shown}")
    return profiles


if __name__ == "__main__":
    main()
