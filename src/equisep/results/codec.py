"""Profiles as versioned JSON: the records decide the layout, the reader refuses what it does not know."""

from __future__ import annotations

import json
import math
import sys
import types
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from equisep.errors import NumericalError, ProfileError
from equisep.files import encode, write_whole, writing
from equisep.results.profile import Profile
from equisep.results.readings import former_reading
from equisep.results.records import ClassCosines, ClassPair, Corrected, Interval, LawFit

SCHEMA = 3  # 2: `grains`; 3: `reading` for `mode`, class names, numbers per class
KIND = "equisep profile"
HISTORY = "equisep history"  # what a Tracker writes: no profile
FIRST_WORDS = 100  # characters in which a file says what it is
NUMBERS: dict[Any, set[type]] = {tuple[float, ...]: {float}, tuple[float | None, ...]: {float, types.NoneType}}


def decode(kind: Any, value: Any, *, where: str) -> Any:
    """Plain JSON types back into the record type `kind`; `where` names the place in an error."""
    if type(value) is kind and (kind is not float or math.isfinite(value)):
        return value  # a word or a number, as most of a record is
    origin, args = get_origin(kind), get_args(kind)
    if kind is Any:
        return value
    if origin in (Union, types.UnionType):
        if value is None and types.NoneType in args:
            return None
        inner = [arg for arg in args if arg is not types.NoneType]
        if len(inner) > 1:  # of plain types
            _expect(type(value) in inner, where, f"of type {' or '.join(arg.__name__ for arg in inner)}", value)
            return value
        return decode(inner[0], value, where=where)
    if origin is Literal:
        if value not in args:
            raise ProfileError(f"`{where}` is {value!r}; expected one of {', '.join(map(str, args))}.")
        return value
    if origin is tuple:
        _expect(isinstance(value, list), where, "a list", value)
        if kind in NUMBERS and set(map(type, value)) <= NUMBERS[kind] and all(map(math.isfinite, filter(None, value))):
            return tuple(value)  # thousands of cosines, say, need not be looked at one by one
        kinds = [args[0]] * len(value) if args[-1] is Ellipsis else list(args)
        _expect(len(kinds) == len(value), where, f"{len(kinds)} entries", value)
        return tuple(decode(k, v, where=f"{where}[{i}]") for i, (k, v) in enumerate(zip(kinds, value, strict=True)))
    if origin is not None and issubclass(origin, Mapping):
        _expect(isinstance(value, dict), where, "an object", value)
        return {key: decode(args[1], entry, where=f"{where}.{key}") for key, entry in value.items()}
    if is_dataclass(kind):
        return _decode_record(kind, value, where=where)
    if kind is float:
        _expect(isinstance(value, int | float) and not isinstance(value, bool), where, "a number", value)
        _expect(abs(value) <= sys.float_info.max, where, "a finite number", value)
        return float(value)
    _expect(type(value) is kind, where, f"a value of type {kind.__name__}", value)
    return value


def _decode_record(kind: Any, value: Any, *, where: str) -> Any:
    _expect(isinstance(value, dict), where, "an object", value)
    hints = _hints(kind)
    unknown = sorted(set(value) - set(hints))
    if unknown:
        raise ProfileError(f"`{where}` has the unknown field `{unknown[0]}`. The file is damaged or hand-made.")
    try:
        return kind(**{name: decode(hints[name], entry, where=f"{where}.{name}") for name, entry in value.items()})
    except TypeError as error:
        raise ProfileError(f"`{where}` is incomplete: {error}. The file is damaged or hand-made.") from error


@cache
def _hints(kind: Any) -> dict[str, Any]:
    names = {entry.name for entry in fields(kind)}
    return {name: hint for name, hint in get_type_hints(kind).items() if name in names}


def _expect(ok: bool, where: str, wanted: str, value: Any) -> None:
    if not ok:
        raise ProfileError(
            f"`{where}` should be {wanted}; found {str(value)[:40]!r}. The file is damaged or hand-made."
        )


def profile_to_dict(profile: Profile) -> dict[str, Any]:
    """A profile as plain JSON types, headed by its kind and schema number."""
    return {"kind": KIND, "schema": SCHEMA, **encode(profile)}


def profile_from_dict(content: Mapping[str, Any], *, where: str = "profile") -> Profile:
    """The profile in plain JSON types back as a record."""
    if content.get("kind") != KIND:
        raise ProfileError(f"{where} is no equisep profile: its field `kind` is {content.get('kind')!r}.")
    schema = content.get("schema")
    if type(schema) is not int or schema < 1:
        raise ProfileError(f"{where} has no schema number. The file is damaged or hand-made.")
    if schema > SCHEMA:
        raise ProfileError(
            f"{where} was written by a newer equisep (schema {schema}; this version reads up to {SCHEMA}). "
            "Upgrade equisep to read it."
        )
    body = {key: value for key, value in content.items() if key not in ("kind", "schema")}
    if schema < SCHEMA:
        body = _upgraded(body)
    profile = decode(Profile, body, where="profile")
    assert isinstance(profile, Profile)
    for each in (profile, *profile.other_readings.values()):
        _check_laws(each)
        _check_relations(each)
    for name, factors in profile.company.items():
        _expect(len(factors) == len(profile.sites), f"company.{name}", "one number per site", factors)
    return _without_spans_of_r(profile)


def _without_spans_of_r(profile: Profile) -> Profile:
    """The profile without the intervals of r that earlier versions wrote: they held r far less often than they said."""
    return replace(
        profile,
        law=_without_span_of_r(profile.law),
        laws={name: _without_span_of_r(law) for name, law in profile.laws.items()},
        other_readings={name: _without_spans_of_r(each) for name, each in profile.other_readings.items()},
    )


def _without_span_of_r(law: LawFit) -> LawFit:
    kept = {name: span for name, span in law.intervals.items() if name != "r"}
    return law if len(kept) == len(law.intervals) else replace(law, intervals=kept)


def _check_laws(profile: Profile) -> None:
    for law in (profile.law, *profile.laws.values()):
        _expect(law.rho is None or law.rho > 0, "law.rho", "above 0", law.rho)
        _expect(len(law.loads) in (0, max(len(law.curve) - 1, 0)), "law.loads", "one per step of the curve", law.loads)
        _expect(len(law.residuals) in (0, len(law.curve)), "law.residuals", "one per site of the curve", law.residuals)


def _check_relations(profile: Profile) -> None:
    """What numbers must be to each other: limits of intervals, and as many entries as there are classes and sites."""
    readings = (*profile.sites, *(profile.grains.others if profile.grains else ()))
    for law in (profile.law, *profile.laws.values()):
        for name, interval in law.intervals.items():
            _check_interval(interval, f"law.intervals.{name}", positive=name in ("rho", "half_life"))
    for site in readings:
        _check_interval(site.fuzziness_interval, f"{site.name}.fuzziness_interval", positive=True)
        for field in ("corrected", "corrected_test"):
            _check_corrected(getattr(site, field), f"{site.name}.{field}")
        folds = site.fuzziness_folds
        known = folds is None or (len(folds) > 1 and min(folds) >= 0)
        _expect(known, f"{site.name}.fuzziness_folds", "several numbers ≥ 0", folds)
        for field in ("class_fuzziness", "ncc_class_train", "ncc_class_test"):
            values = getattr(site, field)
            _expect(values is None or len(values) == profile.classes, f"{site.name}.{field}", "one per class", values)
        for field in ("confused", "confused_test", "nearest"):
            _check_pairs(getattr(site, field), f"{site.name}.{field}", classes=profile.classes)
        _check_cosines(site.cosines, f"{site.name}.cosines", classes=profile.classes)
    for field in ("confused_train", "confused_test"):
        _check_pairs(getattr(profile, field), field, classes=profile.classes)
    for field in ("margins", "margins_test"):
        values = None if profile.classifier is None else getattr(profile.classifier, field)
        _expect(values is None or len(values) == profile.classes, f"classifier.{field}", "one per class", values)
    _expect(len(profile.counts) == profile.classes, "counts", f"{profile.classes} numbers", profile.counts)
    _expect(len(profile.law.curve) in (0, *_lengths(profile)), "law.curve", "one number per site", profile.law.curve)


def _check_pairs(pairs: Sequence[ClassPair] | None, where: str, *, classes: int) -> None:
    """Two different classes of the profile, and a number that is a count or a distance."""
    for pair in pairs or ():
        known = 0 <= pair.first < classes and 0 <= pair.second < classes and pair.first != pair.second
        _expect(known and pair.value >= 0, where, "pairs of two classes with a number ≥ 0", pair)


def _check_cosines(cosines: ClassCosines | None, where: str, *, classes: int) -> None:
    """Between −1 and 1, and a triangle of all classes where it is there."""
    if cosines is None:
        return
    lengths = None if cosines.rows is None else [len(row) for row in cosines.rows]
    _expect(lengths is None or lengths == list(range(1, classes)), where, "one row per class after the first", lengths)
    extremes = (pair.value for pair in (*cosines.least, *cosines.greatest))
    known = (value for row in cosines.rows or () for value in row if value is not None)
    _expect(all(-1 <= value <= 1 for value in (cosines.mean, *extremes, *known)), where, "cosines", "others")


def _check_corrected(record: Corrected | None, where: str) -> None:
    """A value stands between its limits; without one there is a reason."""
    if record is None or (record.value is None and record.reason):
        return
    low, value, high = (-1.0 if each is None else each for each in (record.low, record.value, record.high))
    _expect(0 <= low <= value <= high and value > 0, where, "a value above 0 between its limits", record)


def _lengths(profile: Profile) -> set[int]:
    """How long a curve over the sites may be: sites without D are left out."""
    return {len(profile.sites), sum(site.fuzziness is not None for site in profile.sites)}


def _check_interval(interval: Interval | None, where: str, *, positive: bool = False) -> None:
    if interval is not None:
        _expect(interval.low <= interval.high, where, "low ≤ high", interval)
        _expect(not positive or interval.low >= 0, where, "no limit below 0", interval)


def _upgraded(body: dict[str, Any]) -> dict[str, Any]:
    """The body of an earlier schema: its reading stood among the settings, and was called `mode`."""
    settings = body.get("settings")
    if not isinstance(settings, dict) or not isinstance(settings.get("mode"), str):
        return body
    reading = former_reading(settings["mode"])
    rest = {key: value for key, value in settings.items() if key != "mode"}
    return {**body, "settings": {**rest, "reading": reading}, "reading": reading}


def _refuse_constant(name: str) -> None:
    raise ProfileError(f"A profile holds no {name}. The file is damaged or hand-made.")


def save_profile(profile: Profile, path: str | Path) -> Path:
    """Write a profile as JSON; a reader never sees half a file."""
    target = Path(path)
    try:
        text = json.dumps(profile_to_dict(profile), indent=1, ensure_ascii=False, allow_nan=False)
    except ValueError as error:
        raise NumericalError(
            f"The profile of `{profile.model}` holds NaN or Inf and was not written to `{target}` ({error}). "
            "Measure again, and report it as a bug if it stays."
        ) from error
    if target.is_dir():
        raise ProfileError(
            f"`{target}` is a folder, and a profile is a file. Name one in it: `{target / 'profile.json'}`."
        )
    with writing(f"`{target.name}`", target.parent):
        write_whole(target, text + "\n")
    return target


def load_profile(path: str | Path) -> Profile:
    """Read a profile that `save_profile` wrote; whatever is wrong with it, the file is named."""
    source = Path(path)
    try:
        return _loaded(source)
    except ProfileError as error:
        if f"`{source}`" in str(error):
            raise
        raise ProfileError(f"`{source}`: {error}") from error


def _loaded(source: Path) -> Profile:
    try:
        text = source.read_text(encoding="utf-8-sig")  # editors on Windows put a mark at the beginning
        if f'"{HISTORY}"' in text[:FIRST_WORDS]:
            raise ProfileError(
                f"`{source}` is the history of a training, not a profile. `equisep history {source}` shows it, and with "
                "`--out FILE` makes a profile of its last epoch, or of `--epoch N`."
            )
        content = json.loads(text, parse_constant=_refuse_constant)
    except FileNotFoundError:
        raise ProfileError(f"No profile at `{source}`. Write one with `equisep measure … --out FILE`.") from None
    except IsADirectoryError:
        raise ProfileError(f"`{source}` is a folder, not a profile. Name a file of it.") from None
    except (OSError, UnicodeDecodeError, RecursionError) as error:
        raise ProfileError(f"`{source}` cannot be read as a profile: {error}.") from error
    except json.JSONDecodeError as error:
        raise ProfileError(
            f"`{source}` is not valid JSON (line {error.lineno}: {error.msg}); it is truncated or no profile."
        ) from error
    except ValueError as error:  # a number of thousands of digits
        raise ProfileError(f"`{source}` cannot be read as a profile: {error}.") from error
    if not isinstance(content, dict):
        raise ProfileError(f"`{source}` is no equisep profile: it holds a {type(content).__name__}, not an object.")
    return profile_from_dict(content, where=f"`{source}`")
