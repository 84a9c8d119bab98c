"""The classifier: how many classes there are, which linear layer gives their scores, and the site that it reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

from equisep.errors import InputError, SiteError, did_you_mean
from equisep.measuring.request import Options
from equisep.results import Note
from equisep.taps import INPUT, Call, Grains, Reduction, kind_name, scores_of, site_modules

if TYPE_CHECKING:
    from equisep.measuring.probe import Probe


def with_classifier_input(
    grains: Grains, model: nn.Module, calls: Sequence[Call], output: Any, classes: int | None
) -> Grains:
    """The grains with what the classifier is given as their last site, where activations are functions.

    Then no module gives what the classifier reads: `F.relu(self.fc1(x))` is the output of none.
    """
    scores = scores_of(output, classes)
    if scores is None or not any(note.code == "functional" for note in grains.notes):
        return grains
    modules = site_modules(model)
    for call in reversed(calls):
        layer = modules.get(call.module)
        if isinstance(layer, nn.Linear) and layer.out_features == scores.shape[1]:
            if call.after is not None and call.after in (*grains.layers, *grains.blocks):
                return grains  # a site is read as it is
            last = (call.given_site,)
            return replace(grains, layers=(*grains.layers, *last), blocks=(*grains.blocks, *last))
    return grains


def number_of_classes(model: nn.Module, output: Any, options: Options) -> tuple[int, str]:
    """K, and who says so: the caller, or the width of the model's output."""
    if options.classes is not None:
        return options.classes, f"`classes={options.classes}`"
    kind, scores = kind_name(model), scores_of(output)
    if scores is not None:
        return scores.shape[1], f"`{kind}` has {scores.shape[1]} outputs"
    raise InputError(
        f"`measure` could not tell the number of classes: `{kind}` returns {_returned(output)}, not b × K. "
        f"Pass `classes={2 if _is_one_score(output) else 'K'}`."
    )


def note_scores(model: nn.Module, output: Any, classes: int) -> tuple[Note, ...]:
    """Why the accuracy of a model is not known, where what it returns holds no class scores."""
    scores = scores_of(output, classes)
    if scores is not None and scores.shape[1] == classes:
        return ()
    one = _is_one_score(output) and classes == 2
    cure = "as `torch.stack((-z, z), dim=1)`" if one else "alone or as its entry `logits`"
    kind = kind_name(model)
    text = (
        f"`{kind}` returns {_returned(output)}, in which no scores b × {classes} of the classes stand out: "
        f"its accuracy is not known. If it has any, let it return them {cure}."
    )
    return (Note("no-scores", text),)


def _is_one_score(output: Any) -> bool:
    """Whether a model gives one number per sample, as classifiers of two classes with one logit do."""
    return isinstance(output, Tensor) and (output.ndim == 1 or (output.ndim == 2 and output.shape[1] == 1))


def _returned(output: Any) -> str:
    """What a model returned, in words: a shape, or the entries of a tuple or mapping."""
    if isinstance(output, Tensor):
        return f"shape ({', '.join(map(str, ('b', *output.shape[1:])))})" if output.ndim else "a single number"
    kind = type(output).__name__
    if isinstance(output, Mapping):
        words = [f"`{name}` {_returned(value)}" for name, value in output.items() if isinstance(value, Tensor)]
    else:
        words = [_returned(each) for each in output if isinstance(each, Tensor)] if isinstance(output, tuple) else []
    return f"{kind} ({'; '.join(words[:5])})" if words else kind


def with_classifier(
    seen: Probe,
    model: nn.Module,
    linear: Mapping[str, nn.Linear],
    fed: Mapping[str, str | None],
    reduction: Reduction,
    options: Options,
) -> Probe:
    """The probe with the layer that gives the class scores, and the site that it reads."""
    asked = options.classifier
    if asked is not None:
        _check_classifier(seen, model, linear, fed, asked)
    # the last of them: an earlier layer that happens to be K wide is no classifier
    last = next((layer for layer in reversed(list(fed)) if linear[layer].out_features == seen.classes), None)
    name = asked or last
    reads = None if name is None else fed[name]
    seen = replace(seen, head=name)
    if name is None or reads is None or reads == INPUT:
        return seen
    if reduction.components is not None:
        if asked is not None:
            raise InputError(
                f"`{reduction.name}` changes the features that the classifier `{asked}` reads. Leave one out."
            )
        return seen
    return replace(seen, classifier=name, reads=reads)


def _check_classifier(
    seen: Probe, model: nn.Module, linear: Mapping[str, nn.Linear], fed: Mapping[str, str | None], asked: str
) -> None:
    """Raise unless the layer that the user named gives the class scores from a last site."""
    if asked not in linear:
        modules = site_modules(model)
        found = f"it is a {type(modules[asked]).__name__}" if asked in modules else "there is no such module"
        raise SiteError(f"The classifier `{asked}` should be an nn.Linear; {found}.{did_you_mean(asked, linear)}")
    last, layer = seen.sites[-1], linear[asked]
    lasts = {seen.sites[seen.index_of(sites[-1])] for sites in seen.grains.values()}
    width = seen.dims[seen.sites.index(last)]
    if fed.get(asked) in lasts and layer.out_features == seen.classes:
        return
    if (layer.in_features, layer.out_features) != (width, seen.classes):
        raise InputError(
            f"The classifier `{asked}` maps {layer.in_features} → {layer.out_features}, but the last site "
            f"`{last}` has {width} features and there are {seen.classes} classes."
        )
    raise InputError(
        f"The classifier `{asked}` does not read the last site `{last}`: it is given something else. "
        "NC3 and NC4 exist only at the site it reads; add that module to `sites`, or leave `classifier=` out."
    )
