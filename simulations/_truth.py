"""Are sentences true? Every claim of a finding is computed again from raw features and labels, by code that no rule shares."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from equisep.results import Finding

Array = np.ndarray[Any, np.dtype[Any]]
CLOSE = 1e-6  # relative; features are float32
LAW_R, NO_LAW_R = -0.996, -0.971


@dataclass(frozen=True)
class Raw:
    """Labels, answers and features of one network, by name of the site; `grains` are the names in order, the input first."""

    y: Array
    y_test: Array
    answers: Array
    answers_test: Array
    features: Mapping[str, tuple[Array, Array]]
    grains: Mapping[str, tuple[str, ...]]

    @property
    def classes(self) -> int:
        return int(max(self.y.max(), self.y_test.max())) + 1

    @property
    def accuracy_train(self) -> float:
        return float((self.answers == self.y).mean())

    @property
    def accuracy_test(self) -> float:
        return float((self.answers_test == self.y_test).mean())

    @property
    def class_accuracy_test(self) -> Array:
        return self._by_class(self.answers_test)

    @property
    def neighbor_class_accuracy(self) -> Array:
        """Per class, of the test samples whose 3 nearest training neighbors at the last site say so by majority."""
        train, test = self.features[self.last]
        near = np.argsort(
            ((test[:, None] - train[None]) ** 2).sum(-1) if len(train) < 300 else _distances(test, train), axis=1
        )
        votes = self.y[near[:, :3]]
        counts = np.stack([(votes == k).sum(axis=1) for k in range(self.classes)], axis=1)
        return self._by_class(counts.argmax(axis=1))

    def _by_class(self, answers: Array) -> Array:
        return np.array([(answers[self.y_test == k] == k).mean() for k in range(self.classes)])

    @property
    def last(self) -> str:
        return self.grains["blocks"][-1]

    def names(self, each: str) -> tuple[str, ...]:
        """The sites of a grain; where layers and blocks are one, of both."""
        return self.grains[f"{each}s"]

    def fuzziness(self, name: str, *, test: bool = False) -> float:
        """D = Tr(SSw SSb⁺), by the matrices themselves."""
        x, y = (self.features[name][1], self.y_test) if test else (self.features[name][0], self.y)
        return _fuzziness(x, y, weighted=True)

    def centers(self, name: str) -> Array:
        x = self.features[name][0]
        return np.stack([x[self.y == k].mean(axis=0) for k in range(self.classes)])

    def nearest(self, name: str, *, test: bool = True) -> Array:
        """Which class mean of the training data is nearest."""
        x = self.features[name][1 if test else 0]
        return np.asarray(((x[:, None] - self.centers(name)[None]) ** 2).sum(-1).argmin(axis=1))

    def nearest_accuracy(self, name: str, *, test: bool = True) -> float:
        return float((self.nearest(name, test=test) == (self.y_test if test else self.y)).mean())

    def curve(self, each: str, *, test: bool = False) -> Array:
        return np.array([self.fuzziness(name, test=test) for name in self.names(each)])

    def shares(self, each: str) -> dict[int, float]:
        logs = np.log(self.curve(each))
        return {i + 1: float(load / (logs[0] - logs[-1])) for i, load in enumerate(-np.diff(logs))}

    @property
    def lost_labels(self) -> list[int]:
        """Rare classes of which neither the network nor nearest class means get half of what it gets of the others."""
        counts = np.bincount(self.y, minlength=self.classes)
        usual = np.median(self.class_accuracy_test[counts > counts.max() / 2])
        got = np.maximum(self.class_accuracy_test, self._by_class(self.nearest(self.last)))
        return [k for k in range(self.classes) if 0 < counts[k] <= counts.max() / 2 and got[k] <= usual / 2]

    def ridge_class_accuracy(self) -> float:
        """Mean over classes of the test accuracy of a new linear head, by balanced ridge regression on the last features."""
        x, u = self.features[self.last]
        mean, spread = x.mean(axis=0), x.std(axis=0) + 1e-6
        x, u = ((np.c_[(part - mean) / spread, np.ones(len(part))]) for part in (x, u))
        weights = 1 / np.bincount(self.y, minlength=self.classes)[self.y]
        target = 2.0 * (self.y[:, None] == np.arange(self.classes)) - 1
        product = x.T @ (x * weights[:, None])
        head = np.linalg.solve(
            product + 1e-3 * np.trace(product) / len(product) * np.eye(len(product)), x.T @ (weights[:, None] * target)
        )
        return float(self._by_class((u @ head).argmax(axis=1)).mean())


def raw_of(model: nn.Module, train: tuple[Tensor, Tensor], test: tuple[Tensor, Tensor]) -> Raw:
    """Features of every declared site by plain forward hooks, in evaluation mode."""
    sites: Mapping[str, tuple[str, ...]] = model.sites  # type: ignore[assignment]
    names = dict.fromkeys(name for grain in sites.values() for name in grain)
    modules = dict(model.named_modules())
    kept: dict[str, Array] = {}

    def keep(name: str) -> Callable[..., None]:
        return lambda module, given, out: kept.__setitem__(name, out.detach().double().numpy())

    hooks = [modules[name].register_forward_hook(keep(name)) for name in names]
    features: dict[str, list[Array]] = {name: [] for name in ("input", *names)}
    answers = []
    model.eval()
    with torch.no_grad():
        for x, _ in (train, test):
            answers.append(model(x).argmax(dim=1).numpy())
            features["input"].append(x.double().numpy())
            for name in names:
                features[name].append(kept[name])
    for hook in hooks:
        hook.remove()
    pairs = {name: (each[0], each[1]) for name, each in features.items()}
    grains = {grain: ("input", *each) for grain, each in sites.items()}
    return Raw(train[1].numpy(), test[1].numpy(), answers[0], answers[1], pairs, grains)


def _distances(a: Array, b: Array) -> Array:
    return np.asarray((a**2).sum(1)[:, None] - 2 * a @ b.T + (b**2).sum(1)[None])


def _fuzziness(x: Array, y: Array, *, weighted: bool) -> float:
    """By sample (`weighted`), or between classes of equal weight about the mean of means, as NC1 has it."""
    present = np.unique(y)
    means = np.stack([x[y == k].mean(axis=0) for k in present])
    shares = np.array([(y == k).mean() for k in present]) if weighted else np.full(len(present), 1 / len(present))
    centered = means - shares @ means
    within = sum((x[y == k] - mean).T @ (x[y == k] - mean) for k, mean in zip(present, means, strict=True)) / len(y)
    between = (centered.T * shares) @ centered
    return float(np.trace(within @ np.linalg.pinv(between, rcond=1e-9, hermitian=True)))


def falsehoods(findings: Iterable[Finding], raw: Raw, kind: str) -> list[str]:
    """What is wrong in any sentence: a line each."""
    wrong = []
    for finding in findings:
        check = CHECKS.get(finding.code)
        if check is None:
            wrong.append(f"{finding.code}: nobody checks it")
            continue
        wrong += [f"{finding.code}: {words}" for words, true in check(finding.numbers, raw, kind, finding) if not true]
    return wrong


Claims = Iterable[tuple[str, bool]]
Numbers = Mapping[str, float | None]


def same(said: float | None, truly: float, tolerance: float = CLOSE) -> bool:
    return said is not None and math.isclose(said, truly, rel_tol=tolerance, abs_tol=1e-9)


def _fit(numbers: Numbers, raw: Raw, kind: str, finding: Finding) -> Claims:
    nearest = raw.nearest_accuracy(raw.last, test=False)
    yield "training accuracy", same(numbers["accuracy_train"], raw.accuracy_train)
    yield "it has not fitted its data", max(nearest, raw.accuracy_train) < 0.9
    yield "it was trained on these samples", kind != "too few samples" or "trained on others" in finding.text
    yield "nearest means", same(numbers["ncc_train"], nearest)


def _unrelated(numbers: Numbers, raw: Raw, kind: str, finding: Finding) -> Claims:
    yield "labels are unrelated", kind == "random labels"
    yield "training accuracy", same(numbers["accuracy_train"], raw.accuracy_train)
    yield "test accuracy", same(numbers["accuracy_test"], raw.accuracy_test)
    yield "guessing", same(numbers["guess"], np.bincount(raw.y_test).max() / len(raw.y_test))


def _memorizing(numbers: Numbers, raw: Raw, kind: str, finding: Finding) -> Claims:
    lost = raw.lost_labels
    train, test = (~np.isin(y, lost) for y in (raw.y, raw.y_test))  # samples of other classes
    yield "it memorizes", kind in ("memorizing", "random labels", "too few samples")
    yield "classes left out", numbers["left_out"] == len(lost) and ("left out" in finding.text) == bool(lost)
    yield "training accuracy", same(numbers["accuracy_train"], float((raw.answers == raw.y)[train].mean()))
    yield "test accuracy", same(numbers["accuracy_test"], float((raw.answers_test == raw.y_test)[test].mean()))
    yield from _ends(numbers, raw)
    best = numbers["best"]
    if best is not None:
        near = {name: float((raw.nearest(name) == raw.y_test)[test].mean()) for name in raw.grains["blocks"]}
        name = raw.grains["blocks"][int(best)]
        yield "best layer on test data", same(numbers["ncc_test_best"], near[name])
        yield "no layer is better", max(near.values()) <= near[name] + 1e-12
        yield "last layer on test data", same(numbers["ncc_test_last"], near[raw.last])


def _ends(numbers: Numbers, raw: Raw) -> Claims:
    for test in (False, True):
        what = "fuzziness_test" if test else "fuzziness"
        for end, name in (("first", "input"), ("last", raw.last)):
            yield f"{what}_{end}", same(numbers[f"{what}_{end}"], raw.fuzziness(name, test=test), 1e-4)


def _test_gain(numbers: Numbers, raw: Raw, kind: str, finding: Finding) -> Claims:
    yield from _ends(numbers, raw)
    yield "training accuracy", same(numbers["accuracy_train"], raw.accuracy_train)
    yield "test accuracy", same(numbers["accuracy_test"], raw.accuracy_test)
    risen = raw.fuzziness(raw.last, test=True) >= raw.fuzziness("input", test=True)
    yield "whether D falls on test data", ("does not fall on test data" in finding.text) == risen
    if numbers["end"] is not None:
        curve = np.array([raw.fuzziness(name, test=True) for name in raw.grains["blocks"]])
        yield "within a tenth of the least", bool((curve[int(numbers["end"]) :] <= 1.1001 * curve.min()).all())


def _lost(numbers: Numbers, raw: Raw, kind: str, finding: Finding) -> Claims:
    counts = np.bincount(raw.y, minlength=raw.classes)
    others = [raw.class_accuracy_test[k] for k in range(raw.classes) if counts[k] > counts.max() / 2]
    usual = float(np.median(others))
    yield "the other classes", same(numbers["usual"], usual)
    answers = raw.nearest(raw.last)
    for k in finding.classes:
        yield f"class {k} is rare", counts[k] <= counts.max() / 2
        yield f"class {k} is lost", raw.class_accuracy_test[k] <= usual / 2
        yield f"accuracy of class {k}", same(numbers[f"accuracy of class {k}"], raw.class_accuracy_test[k])
        yield f"features of class {k}", (answers[raw.y_test == k] == k).mean() <= usual / 2


def _head(numbers: Numbers, raw: Raw, kind: str, finding: Finding) -> Claims:
    answers = raw.nearest(raw.last)
    nearest = float(np.mean([(answers[raw.y_test == k] == k).mean() for k in range(raw.classes)]))
    network = float(raw.class_accuracy_test.mean())
    yield "network", same(numbers["network"], network)
    yield "nearest means", same(numbers["nearest"], nearest)
    yield "a new head is better", raw.ridge_class_accuracy() > network


def _at_chance(numbers: Numbers, raw: Raw, kind: str, finding: Finding) -> Claims:
    yield from _head(numbers, raw, kind, finding)
    network = float(raw.class_accuracy_test.mean())
    yield "guessing", same(numbers["guess"], 1 / len(np.unique(raw.y_test)))
    yield "nearer to guessing", network < ((numbers["guess"] or 0) + (numbers["nearest"] or 0)) / 2


def _samples(numbers: Numbers, raw: Raw, kind: str, finding: Finding) -> Claims:
    counts = np.bincount(raw.y, minlength=raw.classes)
    yield "smallest class", numbers["per_class"] == counts[counts > 0].min()
    # what these samples say of D is wrong: halves of them say something else than the whole
    yield "D cannot be told", _unstable(raw)


def _unstable(raw: Raw) -> bool:
    """Whether D of half of the samples differs from that of all by more than a third, at half of the sites or more."""
    rng, off = np.random.default_rng(0), []
    for name in raw.grains["blocks"]:
        x, whole, halves = raw.features[name][0], raw.fuzziness(name), []
        for _ in range(10):
            rows = np.concatenate(
                [
                    rng.permutation(np.flatnonzero(raw.y == k))[: max(1, (raw.y == k).sum() // 2)]
                    for k in np.unique(raw.y)
                ]
            )
            halves.append(math.log(max(_fuzziness(x[rows], raw.y[rows], weighted=True), 1e-12) / whole))
        off.append(float(np.median(np.abs(halves))))
    return sum(each > math.log(4 / 3) for each in off) >= len(off) / 2


def _work(numbers: Numbers, raw: Raw, kind: str, finding: Finding) -> Claims:
    each = "block" if any(name.startswith("share of block") for name in numbers) else "layer"
    truly = raw.shares(each)
    for index, share in truly.items():
        yield f"share of {index}", same(numbers.get(f"share of {each} {index}"), share, 1e-3)
    even = 1 / len(truly)
    if finding.code == "every-layer-works":
        yield "no layer is idle", min(truly.values()) >= 0.249 * even
        before = raw.nearest_accuracy(raw.names(each)[-3])
        fitted = raw.nearest_accuracy(raw.names(each)[-3], test=False)
        yield "two layers earlier", same(numbers["ncc_test_before"], before)
        yield "two layers earlier, training", same(numbers["ncc_train_before"], fitted)
        worse = before < raw.accuracy_test - 0.01
        yield "two layers earlier is worse", worse or fitted < min(0.99, raw.accuracy_train - 0.01)
        yield "the words name what is worse", ("test samples" in finding.text) <= worse


def _depth(numbers: Numbers, raw: Raw, kind: str, finding: Finding) -> Claims:
    name = finding.site or ""
    kept = raw.nearest_accuracy(name)
    yield "cut accuracy", same(numbers["ncc_test"], kept)
    yield "whole accuracy", same(numbers["accuracy_test"], raw.accuracy_test)
    yield "costs a point at most", kept >= raw.accuracy_test - 0.01 - 1e-12
    rare = np.isin(raw.y_test, raw.lost_labels)
    if rare.any():
        network, cut = ((said == raw.y_test)[rare].mean() for said in (raw.answers_test, raw.nearest(name)))
        yield "the network on lost classes", same(numbers["lost_network"], float(network))
        yield "the cut on lost classes", same(numbers["lost_cut"], float(cut)) and cut >= network - 0.01 - 1e-12
    each = (
        "block" if name in raw.grains["blocks"] and len(raw.grains["blocks"]) < len(raw.grains["layers"]) else "layer"
    )
    names = raw.names(each)
    truly = sum(share for index, share in raw.shares(each).items() if index > names.index(name))
    yield (
        "work behind the cut",
        numbers["work_behind"] is None or math.isclose(numbers["work_behind"], truly, abs_tol=1e-3),
    )


def _no_cut(numbers: Numbers, raw: Raw, kind: str, finding: Finding) -> Claims:
    before, last = raw.nearest_accuracy(finding.site or ""), raw.nearest_accuracy(raw.last)
    yield "one layer earlier", same(numbers["ncc_test_before"], before)
    yield "last layer", same(numbers["ncc_test_last"], last)
    yield "no cut is free", before < raw.accuracy_test - 0.01


def _law(numbers: Numbers, raw: Raw, kind: str, finding: Finding) -> Claims:
    each = "block" if numbers["points"] == len(raw.grains["blocks"]) else "layer"
    r = _r(raw.curve(each))
    yield "r", same(numbers["r"], r, 1e-4)
    yield "verdict", {"law": r <= LAW_R, "near-law": LAW_R < r <= NO_LAW_R, "no-law": r > NO_LAW_R}[finding.code]


def _by_block(numbers: Numbers, raw: Raw, kind: str, finding: Finding) -> Claims:
    blocks, layers = _r(raw.curve("block")), _r(raw.curve("layer"))
    yield "r of blocks", same(numbers["r_blocks"], blocks, 1e-4)
    yield "r of layers", same(numbers["r_layers"], layers, 1e-4)
    yield "a law by block only", blocks <= NO_LAW_R < layers
    yield "the network has side branches", kind == "law by block only"


def _r(curve: Array) -> float:
    return float(np.corrcoef(np.arange(len(curve)), np.log(curve))[0, 1])


def _hardest(numbers: Numbers, raw: Raw, kind: str, finding: Finding) -> Claims:
    yield "its accuracy", same(numbers["accuracy"], raw.class_accuracy_test.min())
    yield "the class", raw.class_accuracy_test[finding.classes[0]] == raw.class_accuracy_test.min()
    if numbers.get("taken") is not None:
        answers = raw.nearest(raw.last)[raw.y_test == finding.classes[0]]
        counts = np.bincount(answers, minlength=raw.classes)
        counts[finding.classes[0]] = 0
        yield "taken for", counts[finding.classes[1]] == counts.max() == numbers["taken"]


def _collapse(numbers: Numbers, raw: Raw, kind: str, finding: Finding) -> Claims:
    nc1 = _fuzziness(raw.features[raw.last][0], raw.y, weighted=False) / len(np.unique(raw.y))
    yield "NC1", same(numbers["nc1"], nc1, 1e-3)
    yield "collapse", (nc1 <= 0.01) == (finding.code == "collapse")


def _rare(numbers: Numbers, raw: Raw, kind: str, finding: Finding) -> Claims:
    means = raw.centers(raw.last)
    unit = means - means.mean(axis=0)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    cosines = unit @ unit.T
    pairs = [cosines[i, j] for i in finding.classes for j in finding.classes if i < j]
    yield "cosine", same(numbers["cosine"], float(np.mean(pairs)), 1e-4)


CHECKS: Mapping[str, Callable[[Numbers, Raw, str, Finding], Claims]] = {
    "unfitted": _fit, "labels-unrelated": _unrelated, "memorizing": _memorizing, "test-gain": _test_gain, "lost-classes": _lost,
    "head-worse": _head, "head-at-chance": _at_chance,
    "too-few-samples": _samples, "idle-layers": _work, "work": _work, "every-layer-works": _work,
    "too-deep": _depth, "cut": _depth, "no-cut": _no_cut, "law": _law, "near-law": _law, "no-law": _law,
    "law-by-block": _by_block, "hardest-class": _hardest, "collapse": _collapse, "no-collapse": _collapse, "rare-geometry": _rare,
}  # fmt: skip
