"""Which layer, which model: numbers against plain arrays, sentences that are true of them, and data that will not do."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from math import comb
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from cli.running import equisep
from equisep.advice.layer.choose import choose_layer, read_model
from equisep.advice.layer.rank import Candidate, rank_models
from equisep.advice.layer.records import FewShot, LayerAdvice, LayerReading
from equisep.advice.paired_hits import PairedHits, share_interval, sign_test, significant_by_holm
from equisep.errors import DataError, InputError, LabelError
from equisep.separation.centers import ncc_accuracy
from equisep.separation.probes import ProbeRows

Pair = tuple[Tensor, Tensor]


def drawn(n: int, *, seed: int) -> Pair:
    """Two classes that differ in size, and in no mean: a layer that takes sizes is needed."""
    generator = torch.Generator().manual_seed(seed)
    y = torch.arange(n) % 2
    return torch.randn(n, 24, generator=generator) * (1 + 4 * y.unsqueeze(1)), y


class Sizes(nn.Module):
    """|x|."""

    def forward(self, x: Tensor) -> Tensor:
        return x.abs()


class Means(nn.Module):
    """Features that tell nothing any more."""

    def forward(self, x: Tensor) -> Tensor:
        return x.mean(dim=1, keepdim=True).expand(-1, 4) * 0


class Rote(nn.Module):
    """Knows the labels of its training samples, and nothing else."""

    def __init__(self, x: Tensor, y: Tensor) -> None:
        super().__init__()
        self.known, self.named = x, nn.functional.one_hot(y).float()
        self.recall = nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        same = (x.unsqueeze(1) == self.known).all(dim=2).float()
        named: Tensor = self.recall(same @ self.named)
        return named


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(24, 6), Sizes(), nn.Linear(6, 5), Means())


SITES = ["0", "1", "2", "3"]
FEW: dict[str, Any] = {"sites": SITES, "shots": (1, 5), "draws": 2}


def test_the_layer_that_tells_the_classes_is_chosen_and_its_numbers_are_those_of_plain_arrays() -> None:
    model, train, test = network(), drawn(90, seed=1), drawn(60, seed=2)
    seen: dict[str, ProbeRows] = {}
    read = read_model(model, train, test, sites=SITES, shots=(1, 5, 45), draws=4, look=seen.__setitem__)
    advice = read.advice
    assert [each.index for each in advice.layers] == [0, 1, 2, 3, 4]
    assert advice.chosen.site in ("1", "2")
    assert advice.chosen.loo > 0.8
    dead = advice.layers[-1]
    assert dead.accuracy == pytest.approx(1 / 2)
    assert dead.apart
    assert (advice.n, advice.n_test, advice.classes, advice.held_out) == (90, 60, 2, "test samples")
    rows = seen["1"]
    with torch.no_grad():
        features = [model[:2](x).double() for x in (train[0], test[0])]
    order = torch.cdist(rows.train, rows.train[:1]).flatten().sort().values  # batches come in a class-mixed order
    assert any(
        torch.allclose(order, torch.cdist(features[0], one.unsqueeze(0)).flatten().sort().values, atol=1e-4)
        for one in features[0]
    )
    expected = ncc_accuracy(features[1], test[1], train=(features[0], train[1]))
    assert advice.layers[2].ncc == pytest.approx(expected)
    whole = advice.layers[2].shots(45)  # all samples of every class: one draw is like the other
    assert whole is not None
    assert whole.spread == pytest.approx(0)
    assert whole.error == pytest.approx(1 - expected)
    assert all(
        shot.certificate >= shot.error - 3 * shot.spread - 1e-9 for each in advice.layers for shot in each.few_shot
    )


def test_no_number_depends_on_the_memory() -> None:
    model, train, test = network(), drawn(90, seed=1), drawn(60, seed=2)
    whole = choose_layer(model, train, test, **FEW)
    assert "no-scores" not in {
        note.code for note in whole.notes
    }  # labels are the user's own, and the model's answers not asked
    parts = choose_layer(model, train, test, **FEW, memory=15000)
    assert replace(parts, notes=()) == replace(whole, notes=())
    assert [note.code for note in parts.notes if note.code not in {note.code for note in whole.notes}] == ["rounds"]
    tiny = choose_layer(model, train, test, **FEW, memory=3100)
    assert [each.site for each in tiny.layers] == ["2", "3"]  # 150 × 5 and × 4 numbers fit, × 6 do not
    assert sum(note.code == "too-large" for note in tiny.notes) == 3
    with pytest.raises(DataError, match=r"No layer could be probed: .* exceed `memory=100` bytes"):
        choose_layer(model, train, test, **FEW, memory=100)


def test_without_test_data_every_fifth_sample_of_each_class_is_held_out() -> None:
    advice = choose_layer(network(), drawn(90, seed=1), **FEW)
    assert (advice.n, advice.n_test, advice.held_out) == (72, 18, "held-out training samples")
    with pytest.raises(DataError, match="no class has 5"):
        choose_layer(network(), drawn(8, seed=1), **FEW)


def test_labels_are_the_users_own_and_a_loader_may_be_read_once() -> None:
    x, y = drawn(90, seed=1)
    named = choose_layer(network(), (x, y), drawn(60, seed=2), **FEW)
    moved = choose_layer(network(), (x, 40 * y + 100), (drawn(60, seed=2)[0], 40 * drawn(60, seed=2)[1] + 100), **FEW)
    assert moved == named

    def once() -> Iterator[Pair]:
        yield from zip(x.split(20), y.split(20), strict=True)

    assert choose_layer(network(), once(), drawn(60, seed=2), **FEW).chosen.accuracy == named.chosen.accuracy
    with pytest.raises(DataError, match="can be read only once"):
        choose_layer(network(), once(), drawn(60, seed=2), **FEW, memory=15000)


def test_what_will_not_do_is_answered_with_a_sentence() -> None:
    train, test = drawn(90, seed=1), drawn(60, seed=2)
    with pytest.raises(DataError, match="label 2, of which the training data have no sample"):
        choose_layer(network(), train, (test[0], test[1] + 1), **FEW)
    with pytest.raises(LabelError, match="at least 2 classes"):
        choose_layer(network(), (train[0], train[1] * 0), test, **FEW)
    with pytest.raises(InputError, match="one row of features per sample"):
        choose_layer(network(), train, test, reduction="tokens")
    with pytest.raises(InputError, match="`shots`"):
        choose_layer(network(), train, test, shots=(0,))
    with pytest.raises(InputError, match="`draws`"):
        choose_layer(network(), train, test, draws=1)
    with pytest.raises(InputError, match=r"torch\.nn\.Module"):
        choose_layer("net", train, test)  # type: ignore[arg-type]


def layer(
    index: int, *, loo: float, accuracy: float, wins: int = 0, losses: int = 0, apart: bool = False
) -> LayerReading:
    few = (FewShot(1, 0.4, 0.1, 0.9), FewShot(10, 0.2, 0.05, 0.45))
    hits = PairedHits(200, wins, losses) if wins or losses else None
    interval = share_interval(round(200 * accuracy), 200)
    return LayerReading(index, f"b.{index}", 8, loo, accuracy, interval, accuracy, 1.0, few, hits, apart)


def advised(*layers: LayerReading, best: int = 0, classes: int = 2) -> LayerAdvice:
    return LayerAdvice("net", layers, best, classes, 200, 200, "test samples", 0.5, 20)


def test_sentences_say_what_the_numbers_say() -> None:
    one, worse = layer(1, loo=0.9, accuracy=0.9), layer(2, loo=0.7, accuracy=0.7, wins=45, losses=5, apart=True)
    close, third = (
        layer(2, loo=0.89, accuracy=0.89, wins=5, losses=3),
        layer(3, loo=0.6, accuracy=0.5, wins=90, apart=True),
    )
    better = layer(2, loo=0.8, accuracy=0.97, wins=1, losses=15, apart=True)
    assert "every other layer scores less" in advised(one, worse).sentence
    assert advised(one, close).sentence.endswith("no layer can be told apart from it on these data.")
    assert advised(one, close, third).sentence.endswith("not told apart from layer 2.")
    assert "but layer 2 of 2 (b.2) scores 97.0 % there" in advised(one, better).sentence
    assert advised(layer(1, loo=0.6, accuracy=0.55), close).sentence.startswith(
        "No layer can be recommended: layer 1 of 2"
    )
    assert advised(one).sentence.endswith("no other layer was read.")
    fitted = advised(layer(1, loo=1.0, accuracy=0.7), close)
    assert fitted.fitted
    assert "cannot say which layer is best" in fitted.sentence
    assert "Layer 2 of 2 (b.2) scores highest on the latter, 89.0 %" in fitted.sentence
    assert (
        "m = 1, 10 samples per class err at layer 1 of 2 (b.1) on 40.0, 20.0 % of the test samples"
        in advised(one, close).sentences[1]
    )
    assert "at most 45.0 % (m = 10)" in advised(one, close).sentences[2]
    vague = replace(one, few_shot=tuple(replace(shot, certificate=0.8) for shot in one.few_shot))
    assert "promises nothing here: up to m = 10 it is not below chance, 50.0 %" in advised(vague, close).sentences[2]


def test_the_sign_test_is_binomial_and_holm_stops_at_the_first_that_is_not_told() -> None:
    for wins, losses in ((0, 0), (3, 0), (2, 9), (40, 25)):
        total, fewer = wins + losses, min(wins, losses)
        exact = min(1.0, 2 * sum(comb(total, k) for k in range(fewer + 1)) / 2**total)
        assert sign_test(wins, losses) == pytest.approx(exact, rel=1e-9)
    assert significant_by_holm([0.001, 0.04, 0.03, 0.5]) == [True, False, False, False]
    assert significant_by_holm([0.01, 0.02]) == [True, True]
    assert significant_by_holm([]) == []
    low, high = share_interval(81, 263)  # 0.3080; Newcombe (1998), method 3: 0.2553 to 0.3662
    assert (round(low, 4), round(high, 4)) == (0.2553, 0.3662)
    assert share_interval(0, 10)[0] == 0.0
    assert share_interval(10, 10)[1] == 1.0


def test_models_are_ranked_on_the_same_samples() -> None:
    train, test = drawn(150, seed=1), drawn(150, seed=2)
    few: dict[str, Any] = {"shots": (1,), "draws": 2, "options": {"sites": ["*"]}}
    blind = nn.Sequential(nn.Linear(24, 6), Means())
    ranking = rank_models([Candidate("blind", blind, train, test), Candidate("sizes", network(), train, test)], **few)
    assert [each.model for each in ranking.models] == ["sizes", "blind"]
    assert ranking.pairs[0].apart
    assert "It is told apart from every other model." in ranking.sentence
    twin = rank_models([Candidate("a", network(), train, test), Candidate("b", network(), train, test)], **few)
    assert twin.pairs[0].hits.difference == 0
    assert "is level with `b`" in twin.sentence
    assert "cannot be told apart from `b`" in twin.sentence
    lost = replace(twin, models=tuple(replace(each, guess=1.0) for each in twin.models))
    assert lost.sentence.startswith("No model can be recommended: `a`, layer")
    assert not any(note.code == "fitted" for note in twin.notes)
    rote = rank_models([Candidate("rote", Rote(*train), train, test), Candidate("b", network(), train, test)], **few)
    assert [note.text[:5] for note in rote.notes if note.code == "fitted"] == ["rote:"]
    assert rote.models[-1].sentence.startswith("These training samples cannot say which layer is best")
    with pytest.raises(DataError, match="not read on the same test samples"):
        rank_models(
            [Candidate("a", network(), train, test), Candidate("b", network(), train, drawn(100, seed=2))], **few
        )
    with pytest.raises(InputError, match="at least two models of different names"):
        rank_models([Candidate("a", network(), train, test)])


def test_the_commands_answer_first_and_draw(tmp_path: Path) -> None:
    flags = ("--data", "embedded-10x10", "--per-class", "15", "--split", "train", "--draws", "2", "--quiet")
    done = equisep("layer", "fnn,depth=3", *flags, "--draw", "layer.png", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Layer ")
    assert (tmp_path / "layer.png").stat().st_size > 10_000
    done = equisep("layer", "fnn,depth=3", *flags, "--shots", "1,5", "--json", folder=tmp_path)
    content = json.loads(done.stdout)
    assert content["sentences"][0].startswith("Layer ")
    assert [shot["m"] for shot in content["layers"][0]["few_shot"]] == [1, 5]
    done = equisep("rank", "fnn,depth=2", "fnn,depth=3", *flags, "--shots", "1", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("`fnn,depth=")


def test_commands_refuse_what_they_cannot_do(tmp_path: Path) -> None:
    done = equisep("layer", "fnn", "--data", "embedded-10x10", "--shots", "few", folder=tmp_path)
    assert done.returncode != 0
    assert "`--shots` takes samples per class" in done.stderr
    done = equisep("rank", "fnn", "fnn", "--checkpoint", "a.pt", "--data", "embedded-10x10", folder=tmp_path)
    assert "`--checkpoint` is given 1 times for 2 models" in done.stderr
    done = equisep("rank", "fnn", "fnn", "--data", "embedded-10x10", folder=tmp_path)
    assert "at least two models of different names" in done.stderr
