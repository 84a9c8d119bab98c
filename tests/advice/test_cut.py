"""Cutting a network after a layer: the shorter network, its head, its verdict."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import equisep
from advice.networks import Encoder, SmallResNet, bits, exclusive_or, sequential, tokens, vectors
from equisep.advice.cut import Cut, cut_model, early_exit
from equisep.advice.cut.answer import CutAnswer, CutOption, Whole, judged
from equisep.advice.paired_hits import PairedLoss
from equisep.errors import DataError, InputError, ModelError, SiteError
from equisep.separation.probes.ridge import scattered_ridge
from equisep.separation.stream import ClassScatter


@pytest.fixture(autouse=True)
def few_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Times are no part of these tests."""
    monkeypatch.setattr("equisep.advice.cut.shorten.MOST_ROUNDS", 2)


def made(kind: str) -> tuple[nn.Module, Any, Any]:
    torch.manual_seed(3)
    if kind == "sequential":
        return sequential(), vectors(60, seed=0), vectors(90, seed=1)
    if kind == "resnet":
        shape = (1, 6, 6)
        return SmallResNet(), vectors(60, seed=0, shape=shape), vectors(90, seed=1, shape=shape)
    return Encoder(), tokens(60, seed=0), tokens(90, seed=1)


KINDS = ("sequential", "resnet", "transformer")


@pytest.fixture(scope="module", params=KINDS)
def case(request: pytest.FixtureRequest) -> tuple[nn.Module, Any, Any, Cut]:
    model, train, test = made(request.param)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("equisep.advice.cut.shorten.MOST_ROUNDS", 2)
        cut = cut_model(model, train, test, sites="blocks" if request.param != "sequential" else "auto")
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert all(module.training for module in model.modules())
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())
    return model, train, test, cut


def arguments(x: Any) -> tuple[tuple[Tensor, ...], dict[str, Tensor]]:
    return ((), x) if isinstance(x, dict) else ((x,), {})


def head_of(x: Any, n: int) -> Any:
    return {name: column[:n] for name, column in x.items()} if isinstance(x, dict) else x[:n]


def test_accuracies_are_those_that_measure_gives(case: tuple[nn.Module, Any, Any, Cut]) -> None:
    model, train, test, cut = case
    sites = [option.site for option in cut.answer.options]
    profile = equisep.measure(model, train, test, sites=sites, reduction=cut.answer.reduction)
    known = {site.name: site for site in profile.sites}
    assert [option.accuracy for option in cut.answer.options] == [known[name].ncc_test for name in sites]
    assert [option.ncc_train for option in cut.answer.options] == [known[name].ncc_train for name in sites]
    assert cut.answer.whole.accuracy == profile.accuracy_test


def test_the_graph_gives_what_the_early_exit_gives_for_any_batch(case: tuple[nn.Module, Any, Any, Cut]) -> None:
    model, _, test, cut = case
    model.eval()
    for option in cut.answer.options:
        exit_, short = cut.early_exit(option.site), cut.short(option.site)
        for n in (1, 3, 90):
            args, kwargs = arguments(head_of(test[0], n))
            with torch.no_grad():
                torch.testing.assert_close(short(*args, **kwargs), exit_(*args, **kwargs), rtol=1e-5, atol=1e-5)
    model.train()


def test_modules_after_the_layer_are_not_run(case: tuple[nn.Module, Any, Any, Cut]) -> None:
    model, _, test, cut = case
    site = cut.answer.options[0].site
    ran: list[str] = []
    handles = [
        module.register_forward_pre_hook(lambda _, __, name=name: ran.append(name))
        for name, module in model.named_modules()
    ]
    args, kwargs = arguments(head_of(test[0], 4))
    early_exit(model, site)(*args, **kwargs)
    stopped = list(ran)
    ran.clear()
    model(*args, **kwargs)
    for handle in handles:
        handle.remove()
    assert ran[: len(stopped)] == stopped and len(stopped) < len(ran)
    later = cut.answer.options[1].site
    assert later in ran and later not in stopped


def test_only_the_weights_before_the_layer_are_left(case: tuple[nn.Module, Any, Any, Cut]) -> None:
    model, _, _, cut = case
    sizes = [option.parameters for option in cut.answer.options]
    assert None not in sizes and sizes == sorted(sizes, key=int)  # type: ignore[arg-type]
    own = {parameter.data_ptr() for parameter in model.parameters()}
    option = cut.answer.options[0]
    short = cut.short(option.site)
    kept = [parameter for parameter in short.parameters() if parameter.data_ptr() in own]
    head = cut.early_exit(option.site).readout
    assert head is not None
    added = sum(parameter.numel() for parameter in head.parameters())
    assert sum(parameter.numel() for parameter in kept) + added == option.parameters
    last = [parameter.data_ptr() for parameter in list(model.parameters())[-2:]]  # the classifier
    assert not {parameter.data_ptr() for parameter in kept} & set(last)


def test_a_saved_network_is_the_same_again(case: tuple[nn.Module, Any, Any, Cut], tmp_path: Path) -> None:
    _, _, test, cut = case
    site = cut.answer.options[0].site
    path = cut.save(tmp_path / "short.pt2", after=site)
    program, short = torch.export.load(path), cut.short(site)
    again = program.module()
    assert sum(p.numel() for p in again.parameters()) == cut.answer.options[0].parameters
    for n in (1, 5, 90):
        if (
            n == 1
        ):  # torch's own attention is guarded against single samples by torch.export, for which it works all the same
            again = program.module(check_guards=False)
        args, kwargs = arguments(head_of(test[0], n))
        torch.testing.assert_close(again(*args, **kwargs), short(*args, **kwargs), rtol=0, atol=0)
        again = program.module()


def test_idle_layers_are_cut_off() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(*(part for _ in range(10) for part in (nn.Linear(6, 6), nn.ReLU())), nn.Linear(6, 3))
    for layer in model:
        if isinstance(layer, nn.Linear) and layer.out_features == 6:
            layer.weight.data, layer.bias.data = torch.eye(6), torch.zeros(6)
    x, y = vectors(1200, seed=0)
    x = x.abs() + 4 * nn.functional.one_hot(y, 6)
    cut = cut_model(model, (x[:300], y[:300]), (x[300:], y[300:]))
    assert (cut.answer.verdict, cut.answer.chosen) == ("cut", "1")
    assert cut.answer.sentence.startswith("Cut after `1` (layer 1 of 10)")
    assert cut.short()(x[:5]).argmax(dim=1).tolist() == y[:5].tolist()


def test_no_redundancy_is_said_where_there_is_none() -> None:
    cut = cut_model(exclusive_or(), bits(200, seed=0), bits(400, seed=1))
    answer = cut.answer
    assert answer.whole.accuracy == 1
    assert (answer.verdict, answer.chosen, answer.perhaps) == ("no redundancy", None, None)
    assert answer.sentence.startswith("No redundancy: no cut that removes a tenth of the 9 layers")
    with pytest.raises(InputError, match=r"No redundancy.*name a layer: `after=`"):
        cut.short()


def test_one_layer_asked_for() -> None:
    model, train, test = made("sequential")
    cut = cut_model(model, train, test, after="1.2")
    assert [option.site for option in cut.answer.options] == ["1.2"]
    assert cut.answer.options[0].index == 2 and cut.answer.layers == 4
    assert cut.answer.sentence.startswith("Cut after `1.2` (layer 2 of 4): with nearest class means it scores ")
    inside = cut_model(model, train, test, after="1.1")
    assert inside.answer.options[0].index is None  # after the normalization, which is no layer of its own
    x = test[0][:7]
    features = early_exit(model.eval(), "1.1")(x)
    torch.testing.assert_close(features, model[1][1](model[1][0](model[0](x))))


class Unexportable(nn.Module):
    """A layer whose path depends on its values."""

    def forward(self, x: Tensor) -> Tensor:
        return x if float(x.sum()) > -1e9 else -x


def test_a_model_that_cannot_be_exported_names_the_module_and_still_exits_early(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 6), nn.ReLU(), nn.Linear(6, 6), Unexportable(), nn.ReLU(), nn.Linear(6, 3))
    train, test = vectors(60, seed=0), vectors(60, seed=1)
    cut = cut_model(model, train, test)
    assert cut.answer.mode == "eager" and cut.answer.options[0].parameters is None
    assert cut.answer.stopped is not None
    assert cut.answer.stopped.startswith("`Sequential` cannot be shortened: module `3` could not be made a graph")
    site = cut.answer.options[0].site
    with pytest.raises(ModelError, match="module `3`"):
        cut.save(tmp_path / "short.pt2", after=site)
    assert not (tmp_path / "short.pt2").exists()
    assert cut.early_exit(site)(test[0]).shape == (60, 3)


def test_a_network_without_scores_is_compared_with_its_last_layer() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 6), nn.ReLU(), nn.Linear(6, 6), nn.ReLU(), nn.Unflatten(1, (2, 3)))
    cut = cut_model(model, vectors(60, seed=0), vectors(60, seed=1), classes=3)
    assert cut.answer.baseline == "last layer" and cut.answer.options[-1].loss.loss == 0
    assert [note.code for note in cut.answer.notes] == ["no-scores"]


class Tokens(nn.Module):
    """A class token in front of the others, for as many samples as `len` counts: a number, once it is traced."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.token = nn.Parameter(torch.zeros(1, 1, 3))
        self.blocks = nn.Sequential(*(nn.Sequential(nn.Linear(3, 3), nn.ReLU()) for _ in range(3)))
        self.head = nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Tensor:
        tokens = x.reshape(-1, 2, 3)
        return self.head(self.blocks(torch.cat([self.token.expand(len(tokens), -1, -1), tokens], dim=1)).mean(dim=1))


def test_a_graph_that_takes_one_size_of_batch_only_is_said_to_be_none() -> None:
    """Its timing raised torch's own error about sizes of tensors."""
    cut = cut_model(Tokens(), vectors(60, seed=0), vectors(60, seed=1), reduction="mean")
    assert cut.answer.mode == "eager" and cut.answer.stopped is not None
    assert "batches of 4 samples only, as where it asks for `len(x)`: take `x.shape[0]`" in cut.answer.stopped


def test_the_class_means_of_a_wide_layer_may_be_more_than_the_network() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 40), nn.ReLU(), nn.Linear(40, 2), nn.ReLU(), nn.Linear(2, 3))
    sentence = cut_model(model, vectors(60, seed=0), vectors(60, seed=1), after="1").answer.sentence
    assert "403 parameters instead of 371" in sentence


def test_one_layer_has_nothing_to_cut() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 6), nn.ReLU(), nn.Linear(6, 3))
    assert cut_model(model, vectors(60, seed=0), vectors(60, seed=1)).answer.sentence.startswith("Nothing to cut: ")


def test_a_linear_head_is_the_ridge_regression_of_the_features() -> None:
    model, train, test = made("sequential")
    cut = cut_model(model, train, test, head="linear")
    model.eval()
    for option in cut.answer.options:
        layer = early_exit(model, option.site)
        x, hot = layer(train[0]).detach().double(), nn.functional.one_hot(train[1]).double()
        scatter = ClassScatter.empty(classes=3, dim=6)
        scatter.add(x, train[1])
        penalty = scattered_ridge(scatter)[0].penalty
        about = x - x.mean(dim=0)
        weights = torch.linalg.solve(
            about.T @ about + penalty * torch.eye(6).double(), about.T @ (hot - hot.mean(dim=0))
        )
        scores = (layer(test[0]).detach().double() - x.mean(dim=0)) @ weights + hot.mean(dim=0)
        torch.testing.assert_close(cut.short(option.site)(test[0]).detach(), scores.float(), rtol=1e-4, atol=1e-4)
        assert option.accuracy == pytest.approx(float((scores.argmax(dim=1) == test[1]).double().mean()), abs=1e-12)


def test_linear_heads_stay_within_the_memory() -> None:
    model, train, test = made("sequential")
    cut = cut_model(model, train, test, head="linear", memory=2 * 8 * 36)
    assert [option.index for option in cut.answer.options] == [3, 4]
    assert [note.code for note in cut.answer.notes] == ["wide"]
    with pytest.raises(InputError, match=r"A linear head reads up to 4096 features .* `3.2`, gives 6"):
        cut_model(model, train, test, head="linear", memory=100)


def test_a_class_without_training_samples_is_never_named() -> None:
    model, (x, y), test = made("sequential")
    cut = cut_model(model, (x[y != 1], y[y != 1]), test)
    scores = cut.short(cut.answer.options[0].site)(test[0])
    assert bool((scores[:, 1] == -torch.inf).all())
    assert 1 not in scores.argmax(dim=1)


def option(index: int, lost: int, gained: int = 0, n: int = 1000) -> CutOption:
    return CutOption(f"l{index}", index, 0.9, 1.0, PairedLoss.of(n, lost=lost, gained=gained))


@pytest.mark.parametrize(
    ("lost", "verdict", "site", "perhaps"),
    [
        ([90, 2, 2, 2, 2, 2, 2, 2, 2, 0], "cut", "l2", None),  # the earliest of those that all pass
        ([2, 90, 2, 2, 2, 2, 2, 2, 2, 0], "cut", "l3", "l1"),  # one before a failure is not shown
        ([90, 9, 9, 9, 9, 9, 9, 9, 2, 0], "cut", "l9", "l2"),  # within on these samples, but not shown
        ([90, 90, 90, 90, 90, 90, 90, 9, 9, 0], "not shown", None, "l8"),
        ([90] * 9 + [0], "no redundancy", None, None),
        ([90] * 10, "no redundancy", None, None),
    ],
)
def test_verdicts(lost: list[int], verdict: str, site: str | None, perhaps: str | None) -> None:
    options = [option(index + 1, each) for index, each in enumerate(lost)]
    judgment = judged(options, layers=10, within=0.01, asked=False)
    assert (judgment.verdict, judgment.site, judgment.perhaps) == (verdict, site, perhaps)


def test_a_cut_of_less_than_a_tenth_is_no_redundancy() -> None:
    options = [option(index, 90 if index < 26 else 2) for index in range(1, 28)]
    assert judged(options, layers=27, within=0.01, asked=False).verdict == "no redundancy"
    assert judged([option(26, 2)], layers=27, within=0.01, asked=True).site == "l26"


@pytest.mark.parametrize(
    ("asked", "error", "words"),
    [
        ({"head": "center"}, InputError, "No head `center`. Did you mean `centers`?"),
        ({"within": -1}, InputError, "`within` is points of test accuracy"),
        ({"level": 0.2}, InputError, "`level` is the confidence"),
        ({"after": "9"}, SiteError, "No module `9` in `Sequential`"),
        ({"after": "*.2"}, SiteError, "A cut is made after one layer; `\\*.2` stands for 4"),
        ({"after": "input"}, SiteError, "A cut is made after a layer, and `input` is the raw input"),
        ({"reduction": "pca=2"}, InputError, "`cut` needs one row a sample, and `reduction=pca=2` makes others"),
    ],
)
def test_bad_input_in_one_sentence(asked: dict[str, Any], error: type[Exception], words: str) -> None:
    model, train, test = made("sequential")
    with pytest.raises(error, match=words):
        cut_model(model, train, test, **asked)


def test_data_that_end_after_one_reading_are_refused() -> None:
    model, train, test = made("sequential")
    with pytest.raises(DataError, match="`cut` reads its data more than once, and the training data end"):
        cut_model(model, iter([train]), test)


def test_hugging_face_encoders() -> None:
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=40, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=16, num_labels=3
    )
    model = transformers.BertForSequenceClassification(config)
    x, y = tokens(60, seed=0)
    given = {"input_ids": x["ids"], "attention_mask": (~x["key_padding_mask"]).long(), "labels": y}
    cut = cut_model(model, given, given, sites="blocks")
    profile = equisep.measure(model, given, given, sites="blocks")
    known = {site.name: site.ncc_test for site in profile.sites}
    assert cut.answer.stopped is None and cut.answer.reduction == "mean"
    assert all(option.accuracy == known[option.site] for option in cut.answer.options)
    short = cut.short(cut.answer.options[0].site)
    assert short(input_ids=x["ids"][:7, :3], attention_mask=given["attention_mask"][:7, :3]).shape == (7, 3)


def answer_of(lost: list[int], **more: Any) -> CutAnswer:
    options = tuple(option(index + 1, each) for index, each in enumerate(lost))
    judgment = judged(options, layers=len(lost), within=0.01, asked=False)
    given: dict[str, Any] = {
        "model": "Net", "head": "centers", "reduction": "flatten", "layers": len(lost), "grain": "layers", "asked": None,
        "within": 1.0, "level": 0.95, "whole": Whole(0.902, 1000, 2.0), "options": options, "verdict": judgment.verdict,
        "chosen": judgment.site, "perhaps": judgment.perhaps, "effective_depth": None, "baseline": "network", "mode": "graph",
        "batch": 16, "rounds": 5, "device": "cpu", "threads": 1,
    }  # fmt: skip
    return CutAnswer(**{**given, **more})


@pytest.mark.parametrize(
    ("lost", "words"),
    [
        ([90, *[2] * 8, 0], "Cut after `l2` (layer 2 of 10): with nearest class means it scores 90.00 % on 1,000 test samples"),
        ([2, 90, *[2] * 7, 0], "Perhaps earlier, after `l1` (layer 1 of 10), which loses 0.20 points. Its own bound, 0.6"),
        ([90, *[9] * 7, 2, 0], "Perhaps earlier, after `l2` (layer 2 of 10), which loses 0.90 points. That is not shown to stay"),
        ([90] * 7 + [9, 9, 0], "Perhaps cut after `l8` (layer 8 of 10): with nearest class means it scores 90.00 %"),
        ([90] * 9 + [0], "No redundancy: no cut that removes a tenth of the 10 layers or more stays within 1 point"),
        ([90] * 10, "with nearest class means the last layer itself scores 90.00 %. Try `head='linear'`."),
    ],
)  # fmt: skip
def test_sentences(lost: list[int], words: str) -> None:
    assert words in answer_of(lost).sentence


def test_what_was_not_tried_is_not_called_redundant_or_not() -> None:
    assert answer_of([90] * 9 + [0], first=4).sentence.startswith(
        "No redundancy: no cut from layer 4 on that removes a tenth"
    )
