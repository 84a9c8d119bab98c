"""Profiles as JSON: what is read is what was written, and everything else is refused with a sentence."""

import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from equisep.errors import NumericalError, ProfileError, StoreError
from equisep.measuring import measure
from equisep.models import build
from equisep.results import Corrected, Interval, LawFit, Note, Profile, SiteReading, load_profile, save_profile
from equisep.results.codec import KIND, SCHEMA


def data(classes: int = 3) -> tuple[Tensor, Tensor]:
    y = torch.arange(60) % classes
    return torch.randn(60, 5, generator=torch.Generator().manual_seed(0)) + y.unsqueeze(1), y


@pytest.fixture(scope="module")
def profile() -> Profile:
    """Measured, with test data, intervals, coordinates, a classifier and notes."""
    model = build("fnn", seed=0, widths=[6, 4], inputs=5, classes=3)
    found = measure(model, data(), data(), sites=["blocks.*"], resamples=20, coordinates=10, reading="mixed")
    assert found.classifier is not None
    assert found.law.intervals
    assert found.notes
    assert found.sites[0].coordinates is not None
    return found


@pytest.fixture
def saved(profile: Profile, tmp_path: Path) -> Path:
    return profile.save(tmp_path / "profile.json")


def edited(path: Path, **changes: Any) -> Path:
    content = json.loads(path.read_text(encoding="utf-8"))
    content.update(changes)
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def refused(path: Path) -> str:
    with pytest.raises(ProfileError) as caught:
        Profile.load(path)
    return str(caught.value)


def test_a_measured_profile_comes_back_equal(profile: Profile, saved: Path) -> None:
    again = Profile.load(saved)
    assert again == profile
    assert type(again.sites[0].coordinates.points[0]) is tuple
    assert type(again.law.intervals["rho"]) is Interval


def test_what_is_none_comes_back_none(tmp_path: Path) -> None:
    model = build("fnn", seed=0, widths=[6, 4], inputs=5, classes=4)  # class 3 has no sample
    profile = measure(model, data(), metrics=["class_fuzziness"], intervals="none", coordinates=0)
    assert profile.sites[0].fuzziness is None
    assert profile.sites[0].class_fuzziness[3] is None
    assert profile.classifier is None
    assert Profile.load(profile.save(tmp_path / "p.json")) == profile


def test_a_profile_without_folds_is_read(profile: Profile, saved: Path) -> None:
    content = json.loads(saved.read_text(encoding="utf-8"))
    del content["samples"]
    for site in content["sites"]:
        assert len(site.pop("fuzziness_folds")) == 10
    saved.write_text(json.dumps(content), encoding="utf-8")
    again = Profile.load(saved)
    assert again.samples is None and again.law == profile.law
    assert again == replace(profile, samples=None, sites=tuple(replace(s, fuzziness_folds=None) for s in profile.sites))


@pytest.mark.parametrize(("low", "high"), [(0.0, 71.6), (20.0, 23.0)])
def test_a_corrected_d_that_may_be_any_smaller_comes_back(
    profile: Profile, tmp_path: Path, low: float, high: float
) -> None:
    corrected = Corrected(value=22.1, low=low, high=high)
    sites = (replace(profile.sites[0], corrected=corrected), *profile.sites[1:])
    assert Profile.load(replace(profile, sites=sites).save(tmp_path / "p.json")).sites[0].corrected == corrected


def test_the_least_profile_comes_back_equal(tmp_path: Path) -> None:
    profile = Profile(model="ü", classes=2, counts=(1, 2), sites=(), law=LawFit(curve=()))
    assert load_profile(save_profile(profile, tmp_path / "p.json")) == profile


def test_numbers_come_back_to_the_last_bit(tmp_path: Path) -> None:
    values = (0.1 + 0.2, 1e-300, 5e-324, 1.7976931348623157e308, 2**-1074 * 3, math.pi)
    site = SiteReading(index=0, name="input", dim=4, singular_values=values, fuzziness=3)  # type: ignore[arg-type]
    profile = Profile(model="m", classes=2, counts=(1, 2), sites=(site,) * len(values), law=LawFit(curve=values))
    again = Profile.load(profile.save(tmp_path / "p.json"))
    assert again.sites[0].singular_values == again.law.curve == values
    assert type(again.sites[0].fuzziness) is float


def test_the_file_is_headed_by_its_kind_and_schema(saved: Path) -> None:
    content = json.loads(saved.read_text(encoding="utf-8"))
    assert list(content)[:2] == ["kind", "schema"]
    assert (content["kind"], content["schema"]) == (KIND, SCHEMA)


def test_to_dict_is_what_is_written(profile: Profile, saved: Path) -> None:
    assert json.loads(saved.read_text(encoding="utf-8")) == profile.to_dict()


def test_saving_makes_folders_replaces_and_leaves_nothing_else(profile: Profile, tmp_path: Path) -> None:
    target = tmp_path / "a" / "b" / "p.json"
    profile.save(target)
    renamed = replace(profile, model="another")
    assert renamed.save(str(target)) == target
    assert Profile.load(target).model == "another"
    assert [entry.name for entry in target.parent.iterdir()] == ["p.json"]


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_nan_is_never_written(profile: Profile, tmp_path: Path, bad: float) -> None:
    target = profile.save(tmp_path / "p.json")
    before = target.read_bytes()
    broken = replace(profile, accuracy_train=bad)
    with pytest.raises(NumericalError, match="The profile of `Fnn` holds NaN or Inf and was not written to"):
        broken.save(target)
    assert target.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["p.json"]


# --- what cannot be read


def test_a_missing_file(tmp_path: Path) -> None:
    path = tmp_path / "none.json"
    assert refused(path) == f"No profile at `{path}`. Write one with `equisep measure … --out FILE`."


def test_a_folder(tmp_path: Path) -> None:
    assert refused(tmp_path) == f"`{tmp_path}` is a folder, not a profile. Name a file of it."


def test_a_mark_at_the_beginning_is_no_damage(saved: Path) -> None:
    """Editors on Windows write one."""
    profile = load_profile(saved)
    saved.write_bytes(b"\xef\xbb\xbf" + saved.read_bytes())
    assert load_profile(saved) == profile


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.99])
def test_a_truncated_file(saved: Path, share: float) -> None:
    text = saved.read_bytes()
    saved.write_bytes(text[: int(share * len(text))])
    found = refused(saved)
    assert found.startswith(f"`{saved}` is not valid JSON (line ")
    assert found.endswith("it is truncated or no profile.")


def test_a_file_that_is_no_text(saved: Path) -> None:
    saved.write_bytes(b"\x80\x81\xff\x00")
    assert "cannot be read as a profile" in refused(saved)


def test_a_newer_schema(saved: Path) -> None:
    assert refused(edited(saved, schema=SCHEMA + 41)) == (
        f"`{saved}` was written by a newer equisep (schema {SCHEMA + 41}; this version reads up to {SCHEMA}). "
        "Upgrade equisep to read it."
    )


def test_a_newer_schema_with_fields_this_version_does_not_know(saved: Path) -> None:
    assert "newer equisep" in refused(edited(saved, schema=SCHEMA + 1, something_new=[1, 2]))


@pytest.mark.parametrize("schema", [None, "1", 1.0])
def test_no_schema(saved: Path, schema: object) -> None:
    found = refused(edited(saved, schema=schema))
    assert found == f"`{saved}` has no schema number. The file is damaged or hand-made."


@pytest.mark.parametrize("content", [{}, {"kind": "other"}, {"schema": 1, "model": "m"}])
def test_another_json_object(tmp_path: Path, content: dict[str, object]) -> None:
    path = tmp_path / "p.json"
    path.write_text(json.dumps(content))
    found = f"`{path}` is no equisep profile: its field `kind` is {content.get('kind')!r}."
    assert refused(path) == found


@pytest.mark.parametrize(("content", "kind"), [([1, 2], "list"), ("x", "str"), (3, "int"), (None, "NoneType")])
def test_json_that_is_no_object(tmp_path: Path, content: object, kind: str) -> None:
    path = tmp_path / "p.json"
    path.write_text(json.dumps(content))
    assert refused(path) == f"`{path}` is no equisep profile: it holds a {kind}, not an object."


def test_an_unknown_field(saved: Path) -> None:
    wanted = f"`{saved}`: `profile` has the unknown field `colour`. The file is damaged or hand-made."
    assert refused(edited(saved, colour="red")) == wanted


def test_an_unknown_field_deep_inside(saved: Path) -> None:
    content = json.loads(saved.read_text(encoding="utf-8"))
    content["sites"][1]["fuzz"] = 1.0
    assert "`profile.sites[1]` has the unknown field `fuzz`" in refused(edited(saved, sites=content["sites"]))


def test_a_missing_field(saved: Path) -> None:
    content = json.loads(saved.read_text(encoding="utf-8"))
    del content["law"]
    saved.write_text(json.dumps(content))
    assert refused(saved).startswith(f"`{saved}`: `profile` is incomplete: ")
    assert "law" in refused(saved)


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"classes": "ten"}, "`profile.classes` should be a value of type int; found 'ten'."),
        ({"classes": 3.0}, "`profile.classes` should be a value of type int; found '3.0'."),
        ({"model": 3}, "`profile.model` should be a value of type str; found '3'."),
        ({"counts": 3}, "`profile.counts` should be a list; found '3'."),
        ({"counts": [20, None]}, "`profile.counts[1]` should be a value of type int; found 'None'."),
        ({"accuracy_train": True}, "`profile.accuracy_train` should be a number; found 'True'."),
        ({"law": []}, "`profile.law` should be an object; found '[]'."),
        ({"settings": []}, "`profile.settings` should be an object; found '[]'."),
        ({"laws": {"test": 5}}, "`profile.laws.test` should be an object; found '5'."),
    ],
)
def test_a_field_of_the_wrong_kind_is_named(saved: Path, changes: dict[str, object], found: str) -> None:
    assert refused(edited(saved, **changes)) == f"`{saved}`: {found} The file is damaged or hand-made."


def test_an_interval_of_r_from_an_earlier_version_is_left_out(profile: Profile, saved: Path) -> None:
    content = json.loads(saved.read_text(encoding="utf-8"))
    span = {"low": -0.9999, "high": 0.9999, "level": 0.95, "kind": "jackknife", "n": 10}
    other = {name: entry for name, entry in content.items() if name not in ("kind", "schema")}
    other["law"] = {**content["law"], "intervals": {"r": span}}
    for law in (content["law"], content["laws"]["corrected"]):
        law["intervals"]["r"] = span
    again = Profile.load(edited(saved, **{**content, "other_readings": {"eval": other}}))
    assert again.law == profile.law and again.laws == profile.laws
    assert again.other_readings["eval"].law.intervals == {}


def test_an_interval_of_an_unknown_kind(saved: Path) -> None:
    content = json.loads(saved.read_text(encoding="utf-8"))
    content["law"]["intervals"]["rho"]["kind"] = "guess"
    found = refused(edited(saved, law=content["law"]))
    assert found.startswith(
        f"`{saved}`: `profile.law.intervals.rho.kind` is 'guess'; expected one of bootstrap, jackknife"
    )


def test_notes_print_their_site_first() -> None:
    assert str(Note("rank", "Dependent.", site="blocks.1")) == "blocks.1: Dependent."
    assert str(Note("rank", "Dependent.")) == "Dependent."


def altered(saved: Path, **changes: Any) -> Path:
    """The saved profile with some fields changed, by dotted path with `__`."""
    content = json.loads(saved.read_text(encoding="utf-8"))
    for path, value in changes.items():
        *folders, name = path.split("__")
        inner = content
        for folder in folders:
            inner = inner[int(folder) if folder.isdigit() else folder]
        inner[name] = value
    saved.write_text(json.dumps(content), encoding="utf-8")
    return saved


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"law__intervals__rho__low": 1e9}, "low ≤ high"),
        ({"law__intervals__rho__low": -1.0}, "no limit below 0"),
        ({"sites__0__fuzziness_interval__low": -1e-3}, "no limit below 0"),
        ({"counts": [1]}, "numbers"),
        ({"sites__1__class_fuzziness": [1.0]}, "one per class"),
        ({"sites__1__confused": [{"first": 0, "second": 3, "value": 2.0}]}, "pairs of two classes"),
        ({"sites__1__nearest": [{"first": 1, "second": 1, "value": 2.0}]}, "pairs of two classes"),
        ({"confused_test": [{"first": 0, "second": 1, "value": -2.0}]}, "pairs of two classes"),
        ({"classifier__margins": [1.0]}, "one per class"),
        ({"sites__1__cosines__rows": [[0.5]]}, "one row per class"),
        ({"sites__1__cosines__mean": 1.5}, "cosines"),
        ({"sites__1__fuzziness_folds": [1.0]}, "several numbers"),
        ({"sites__1__fuzziness_folds": [1.0, -1.0]}, "several numbers"),
    ],
)
def test_numbers_that_cannot_stand_beside_each_other_are_refused(saved: Path, changes: Any, words: str) -> None:
    with pytest.raises(ProfileError, match=words):
        Profile.load(altered(saved, **changes))


def test_a_profile_with_another_number_of_sites_than_its_law_is_refused(saved: Path, profile: Profile) -> None:
    content = profile.to_dict()
    with pytest.raises(ProfileError, match="one number per site"):
        Profile.load(altered(saved, sites=content["sites"][:-1]))


def test_an_interval_beyond_all_numbers_is_refused(saved: Path) -> None:
    text = saved.read_text(encoding="utf-8")
    saved.write_text(re.sub(r'"high": [0-9.e+-]+', '"high": 1e999', text, count=1), encoding="utf-8")
    with pytest.raises(ProfileError, match="finite number"):
        Profile.load(saved)


@pytest.mark.parametrize(("mode", "reading"), [("batch", "mixed"), ("eval", "eval")])
def test_the_mode_of_an_earlier_schema_is_its_reading(saved: Path, mode: str, reading: str) -> None:
    content = json.loads(saved.read_text(encoding="utf-8"))
    del content["settings"]["reading"], content["reading"]
    content.update(schema=2, settings={**content["settings"], "mode": mode})
    saved.write_text(json.dumps(content), encoding="utf-8")
    again = Profile.load(saved)
    assert again.reading == again.settings["reading"] == reading
    assert "mode" not in again.settings


def test_a_folder_is_no_file_for_a_profile_and_a_disk_that_refuses_gets_a_sentence(tmp_path: Path) -> None:
    profile = Profile(model="m", classes=2, counts=(1, 1), sites=(), law=LawFit(curve=()))
    with pytest.raises(
        ProfileError, match=r"is a folder, and a profile is a file\. Name one in it: `.*profile\.json`\."
    ):
        profile.save(tmp_path)
    (tmp_path / "file").write_text("kept")
    with pytest.raises(StoreError, match=r"`p\.json` could not be stored in `.*file`: .*; make the folder writable"):
        profile.save(tmp_path / "file" / "p.json")
    assert (tmp_path / "file").read_text() == "kept" and len(list(tmp_path.iterdir())) == 1
