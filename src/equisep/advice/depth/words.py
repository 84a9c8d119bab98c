"""A recommended depth in sentences: the answer, He & Su's guideline beside it, what was left out, what it does not cover."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from equisep.advice.depth.records import DepthAdvice, MinimalNccDepth, Trial
from equisep.advice.standings import Standing


def sentences_of(advice: DepthAdvice) -> tuple[str, ...]:
    """All that follows from the trials, the recommendation first."""
    return (
        _answer(advice),
        *_edges(advice),
        *_guideline(advice),
        *_left_out(advice),
        _scope(advice),
    )


def minimal_ncc_sentence(found: MinimalNccDepth) -> str:
    """The minimal NCC depth, as what it is: an upper estimate, or not reached."""
    error = f"an NCC training error of at most {_percent(found.epsilon)} %"
    if found.depth is None:
        best = min((value for value in found.best.values() if value is not None), default=None)
        seen = "" if best is None else f"; the least seen is {_percent(best)} %"
        return (
            f"Minimal NCC depth: not reached up to depth {max(found.networks)}. No network has {error} at its last layer{seen}. "
            "Deeper, wider or longer trained ones may."
        )
    below = [depth for depth in found.networks if depth < found.depth]
    beneath = f", none of depth {below[-1]} has" if below else ", the least depth tried"
    return (
        f"Minimal NCC depth: at most {found.depth} ({found.hidden} hidden {'layer' if found.hidden == 1 else 'layers'}). "
        f"{found.separated[found.depth]} of {found.networks[found.depth]} networks of that depth have {error} at their last layer"
        f"{beneath}.{_every(found)} Training gives an upper estimate: other weights of a shallower network might do."
    )


def _every(found: MinimalNccDepth) -> str:
    """From which depth on all networks separate, where that is another."""
    if found.every is None:
        return " At no depth tried have all networks."
    if found.every == found.depth:
        return ""
    fewer = [
        depth for depth in found.networks if depth > found.every and found.separated[depth] < found.networks[depth]
    ]
    return (
        f" All networks of depth {found.every} have, not all deeper ones."
        if fewer
        else f" All of depth {found.every} or more have."
    )


def _answer(advice: DepthAdvice) -> str:
    if advice.best is None:
        return _nothing_fits(advice)
    if len(advice.standings) == 1:
        return (
            f"The evidence does not tell: of all that was tried {_name(advice, advice.best)} alone fits the training data: there "
            "is nothing to compare it with."
        )
    if advice.recommended is None:
        return _undecided(advice)
    own, best = _standing(advice, advice.recommended), advice.trials[advice.best]
    accuracy = f"test accuracy {_percent(advice.trials[own.trial].mean_accuracy_test)} %"
    words = f"{_name(advice, own.trial).capitalize()}: {accuracy}, "
    if own.trial == advice.best:
        words += f"the highest of all {_which(advice)}"
    else:
        words += f"{points(own.shortfall)} below the best, {_name(advice, advice.best)} ({_percent(best.mean_accuracy_test)} %)"
    shallower = _shallower(advice, own.trial)
    rest = f"; {shallower}" if shallower else ""
    sure = f"at most {points(own.at_most)} below the best of all at {100 * advice.settings.level:g} %"
    return f"{words}, and {sure} (asked: {points(advice.margin)}){rest}."


def _shallower(advice: DepthAdvice, recommended: int) -> str:
    """Why no shallower one: told to be worse, or not shown to be as good."""
    chosen = advice.trials[recommended]
    smaller = [each for each in advice.standings if advice.trials[each.trial].depth < chosen.depth]
    if not smaller:
        return ""
    parts = [
        _said(advice, [each.trial for each in smaller if each.below], "worse"),
        _said(advice, [each.trial for each in smaller if not each.below], "not shown to be that close"),
    ]
    return ", ".join(part for part in parts if part)


def _nothing_fits(advice: DepthAdvice) -> str:
    settings = advice.settings
    shares = [
        share for trial in advice.trials if not any(trial.diverged) and (share := trial.mean_accuracy) is not None
    ]
    if not shares:
        return (
            f"The evidence does not tell: trainings diverged at every depth. Pass `rates={min(settings.rates) / 10:g}`."
        )
    return (
        f"The evidence does not tell: no depth tried fits the training data to {_percent(settings.fit)} % (at best "
        f"{_percent(max(shares))} %), so that all may change with more training. Pass `epochs={2 * settings.epochs}`, other "
        "rates or widths, or accept less with `fit=0.9`."
    )


def _undecided(advice: DepthAdvice) -> str:
    open_ones = [each for each in advice.standings if not each.below]
    worse = _said(advice, [each.trial for each in advice.standings if each.below], "worse")
    assert advice.best is not None
    named = _depths(advice, [each.trial for each in open_ones])
    words = (
        f"The evidence does not tell: of all {_which(advice)} test accuracy is highest at {_name(advice, advice.best)} "
        f"({_percent(advice.trials[advice.best].mean_accuracy_test)} %), but no depth is shown to lie within "
        f"{points(advice.margin)} of the best at {100 * advice.settings.level:g} %"
    )
    words += f"; depths {named} cannot be told apart" if len(open_ones) > 1 else ""
    words += f", {worse}" if worse else ""
    enough = advice.enough
    if enough.seeds is not None:
        return f"{words}. If means and spreads stay, about {enough.seeds} seeds would tell: `seeds={enough.seeds}`."
    if enough.samples is not None:
        return (
            f"{words}. More seeds alone would not tell; about {enough.samples} test samples instead of "
            f"{advice.data.get('test_samples', 'these')} would."
        )
    return f"{words}. Neither more seeds nor more test samples would tell soon; a larger `margin` asks for less."


def _edges(advice: DepthAdvice) -> Iterator[str]:
    """Depths that were not tried and would change the answer."""
    depths = advice.settings.depths
    if advice.depth is not None and advice.depth == depths[0] and depths[0] > 1:
        yield f"Depth {depths[0]} is the least that was tried: a shallower network may do as well."
    several = len(advice.standings) > 1
    if several and advice.best is not None and advice.trials[advice.best].depth == depths[-1]:
        words = f"Of all depths {_which(advice)} test accuracy is highest at the greatest, {depths[-1]}"
        yield f"{words}: a deeper network may be better."


def _guideline(advice: DepthAdvice) -> Iterator[str]:
    """He & Su's guideline, the depth of the least final D, beside the answer."""
    if advice.least is None or len(advice.standings) < 2:
        return
    trial = advice.trials[advice.least]
    near = _depths(advice, advice.near_least)
    words = f"Final D, He & Su's guideline, is of all {_which(advice)} least at {_name(advice, advice.least)}"
    words += f" ({_short(trial.mean_last)}"
    words += f"; {near} cannot be told from it)" if near else "), told from all others"
    if trial.depth == advice.settings.depths[-1]:
        words += ", the greatest depth, beyond which it may fall further"
    if advice.recommended is None:
        yield f"{words}."
    elif trial.depth == advice.depth:
        yield f"{words}. Both agree."
    elif advice.recommended in advice.near_least:
        yield f"{words}. Both agree within what can be told."
    else:
        here, there = (_percent(each.mean_accuracy_test) for each in (advice.trials[advice.recommended], trial))
        yield f"{words}. The two disagree: test accuracy is {there} % there, and {here} % at {_name(advice, advice.recommended)}."


def _left_out(advice: DepthAdvice) -> Iterator[str]:
    if not advice.standings and not any(any(trial.diverged) for trial in advice.trials):
        return  # all of them, which the answer says
    unfit = [index for index in advice.left_out if not any(advice.trials[index].diverged)]
    if unfit:
        shares = _joined([f"{_percent(advice.trials[index].mean_accuracy)} %" for index in unfit])
        yield (
            f"{_said(advice, unfit, 'left out').capitalize()}: less than {_percent(advice.settings.fit)} % of the training data "
            f"are classified rightly there ({shares})."
        )
    for index in advice.left_out:
        trial = advice.trials[index]
        gone = [epoch for epoch in trial.diverged if epoch is not None]
        if gone:
            yield (
                f"{_name(advice, index).capitalize()} is left out: {len(gone)} of {len(trial.diverged)} trainings diverged, the "
                f"first in epoch {min(gone)}."
            )
    top = 0.0 if advice.best is None else advice.trials[advice.best].mean_accuracy_test or 0.0
    better = [index for index in unfit if (advice.trials[index].mean_accuracy_test or 0.0) > top]
    if better and advice.best is not None:
        shares = _joined([f"{_percent(advice.trials[index].mean_accuracy_test)} %" for index in better])
        least = min(advice.trials[index].mean_accuracy or 0.0 for index in better)
        yield (
            f"Beware: {_said(advice, better, 'left out')} with a higher test accuracy ({shares}) than all depths that count "
            f"({_percent(top)} %); with `fit={int(100 * least) / 100:g}` they count."
        )


def _scope(advice: DepthAdvice) -> str:
    """What the answer is about, and what the intervals do not cover."""
    data, settings = advice.data, advice.settings
    drawn = (
        "drawn anew by every seed"
        if data.get("drawn_anew")
        else "the same for every seed: another training set may shift more"
    )
    held = "held out of the data" if data.get("held_out") else "test samples"
    of = f" of {data['pool']}" if data.get("drawn_anew") else ""
    return (
        f"This holds for {settings.family} networks trained for {settings.epochs} epochs on {data.get('samples', '?')}{of} "
        f"samples ({drawn}), over {settings.seeds} seeds and {data.get('test_samples', '?')} {held}; the accuracy of a depth "
        "chosen on them may be a little too high."
    )


def _standing(advice: DepthAdvice, trial: int) -> Standing:
    return next(each for each in advice.standings if each.trial == trial)


def _which(advice: DepthAdvice) -> str:
    """Of what a depth is the best or the least: what was left out may be better still."""
    return "that count" if advice.left_out else "tried"


def _name(advice: DepthAdvice, index: int) -> str:
    """`depth 6`, with width and rate where several were tried."""
    return f"depth {_label(advice, advice.trials[index])}"


def _label(advice: DepthAdvice, trial: Trial) -> str:
    words = [f"{trial.depth}"]
    words += [f"width {trial.width}"] if len(advice.settings.widths) > 1 and trial.depth > 1 else []
    words += [f"rate {trial.rate:g}"] if len(advice.settings.rates) > 1 else []
    return " ".join(words)


def _depths(advice: DepthAdvice, trials: Iterable[int]) -> str:
    """`2, 4 and 6`."""
    return _joined([_label(advice, advice.trials[index]) for index in trials])


def _said(advice: DepthAdvice, trials: Sequence[int], what: str) -> str:
    """`depth 2 is worse`, `depths 2 and 3 are worse`, or nothing."""
    if not trials:
        return ""
    return (
        f"depth{'s' if len(trials) > 1 else ''} {_depths(advice, trials)} {'are' if len(trials) > 1 else 'is'} {what}"
    )


def _joined(words: Sequence[str]) -> str:
    return " and ".join(part for part in (", ".join(words[:-1]), *words[-1:]) if part)


def _percent(share: float | None) -> str:
    return "?" if share is None else f"{100 * share:.3g}"


def points(share: float) -> str:
    """A difference of two shares, in points."""
    value = f"{100 * share:.2g}"
    return f"{value} point" if value == "1" else f"{value} points"


def _short(value: float | None) -> str:
    return "?" if value is None else f"{value:.3g}"
