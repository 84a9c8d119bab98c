"""A profile by hand: its readings, curves, table and one-line form."""

import subprocess
import sys
from dataclasses import FrozenInstanceError, fields, replace

import pytest

from equisep.errors import InputError, MissingExtraError
from equisep.results import Interval, LawFit, Note, Profile, SiteReading
from equisep.results.profile import CURVES


def profile(**changes: object) -> Profile:
    names = ("input", "blocks.0", "blocks.1")
    sites = tuple(
        SiteReading(index=i, name=name, dim=4, fuzziness=8 / 2**i, ncc_train=0.5 + i / 4, rank=2)
        for i, name in enumerate(names)
    )
    law = LawFit(curve=(8.0, 4.0, 2.0), rho=0.5, r=-0.9991, half_life=1.0, loads=(0.69, 0.69))
    whole = Profile(
        model="Net",
        classes=3,
        counts=(10, 10, 5),
        sites=sites,
        law=law,
        effective_depth=2,
        reading="mixed",
        settings={"reading": "mixed"},
    )
    return replace(whole, **changes)  # type: ignore[arg-type]


def test_sites_are_found_by_name_and_index() -> None:
    found = profile()
    assert found["blocks.0"] is found[1] is found[-2] is found.sites[1]


def test_an_unknown_site_is_refused_with_near_names() -> None:
    with pytest.raises(InputError) as caught:
        profile()["blocks.2"]
    assert str(caught.value).startswith("No site `blocks.2` among the 3 of the profile. Did you mean `blocks.")


@pytest.mark.parametrize("index", [3, -4])
def test_an_index_beyond_the_sites_is_refused(index: int) -> None:
    with pytest.raises(InputError) as caught:
        profile()[index]
    assert str(caught.value) == f"No site {index}: the profile has 3 sites, counted from 0."


def test_curves_are_metrics_over_depth() -> None:
    assert profile().curve() == (8.0, 4.0, 2.0)
    assert profile().curve("ncc_train") == (0.5, 0.75, 1.0)
    assert profile().curve("cdnv") == (None, None, None)


def test_an_unknown_curve_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InputError, match=r"^No curve `ncc`\..* Known: fuzziness, fuzziness_test, null, nc1, cdnv,"):
        profile().curve("ncc")


def test_the_one_line_form_says_what_matters() -> None:
    assert repr(profile()) == (
        "<Profile of Net: 3 sites, 25 samples, 3 classes, D 8 → 2, ρ 0.500, r -0.9991 (law), effective depth 2, reading `mixed`>"
    )
    assert repr(profile(notes=(Note("a", "A."),))).endswith("reading `mixed`, 1 note>")
    assert repr(profile(notes=(Note("a", "A."), Note("b", "B.")))).endswith("reading `mixed`, 2 notes>")


def test_the_one_line_form_of_a_profile_without_law() -> None:
    bare = profile(law=LawFit(curve=()), sites=(), effective_depth=None, reading=None, settings={})
    assert repr(bare) == "<Profile of Net: 0 sites, 25 samples, 3 classes, effective depth None, reading `?`>"


@pytest.mark.parametrize(
    ("rho", "r", "word", "fuzzy"),
    [
        (0.5, -0.9961, "law", True),
        (0.5, -0.996, "law", True),
        (0.5, -0.9959, "between", True),
        (0.5, -0.971, "between", True),
        (0.5, -0.9709, "no law", True),
        (0.5, -0.9499, "no law", False),
        (1.0, -0.999, "no law", False),
        (0.5, None, "undetermined", False),
        (None, None, "undetermined", False),
    ],
)
def test_the_verdict_follows_r_and_rho(rho: float | None, r: float | None, word: str, fuzzy: bool) -> None:
    law = LawFit(curve=(4.0, 2.0, 1.0), rho=rho, r=r)
    assert (law.verdict, law.fuzzy) == (word, fuzzy)


def test_two_sites_determine_no_law() -> None:
    assert LawFit(curve=(2.0, 1.0), rho=0.5, r=-1.0).verdict == "undetermined"


def test_the_table_has_a_row_a_site_and_a_column_a_number() -> None:
    pytest.importorskip("pandas")
    frame = profile().to_frame()
    assert list(frame.index) == [0, 1, 2]
    assert frame.index.name == "site"
    numbers = {entry.name for entry in fields(SiteReading) if entry.type in ("int", "int | None", "float | None")}
    assert (numbers | {"name", "load", "share"}) - {"index", "cut"} <= set(frame.columns)
    assert set(CURVES) <= set(frame.columns)
    assert list(frame.columns)[:4] == ["name", "fuzziness", "fuzziness_low", "fuzziness_high"]
    assert frame["share"].tolist()[1:] == [0.5, 0.5]
    assert list(frame["fuzziness"]) == [8.0, 4.0, 2.0]
    assert list(frame["name"]) == ["input", "blocks.0", "blocks.1"]
    assert frame["load"].isna().tolist() == [True, False, False]
    assert frame["load"].tolist()[1:] == [0.69, 0.69]


def test_the_table_has_intervals_and_on_request_every_class() -> None:
    pytest.importorskip("pandas")
    interval = Interval(6.0, 9.0, 0.95, "jackknife", 10)
    first, *others = profile().sites
    sites = (replace(first, fuzziness_interval=interval, class_fuzziness=(1.0, None, 3.0)), *others)
    named = profile(sites=sites, class_names=("cat", "dog", "owl"))
    frame = named.to_frame(classes=True)
    assert frame["fuzziness_low"].tolist()[0] == 6.0
    assert frame["fuzziness_high"].tolist()[0] == 9.0
    assert frame["fuzziness of owl"].tolist()[0] == 3.0
    assert frame["fuzziness of dog"].isna().all()
    assert not {"fuzziness of owl"} & set(named.to_frame().columns)
    assert "fuzziness of 2" in profile(sites=sites).to_frame(classes=True).columns


def test_the_table_of_a_profile_without_law_has_no_loads() -> None:
    pytest.importorskip("pandas")
    frame = profile(law=LawFit(curve=())).to_frame()
    assert frame["load"].isna().all()
    assert len(frame) == 3


def test_the_table_without_pandas_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError, match=r'needs the package `pandas`.*pip install "equisep\[frame\]"'):
        profile().to_frame()


def test_profiles_are_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        profile().model = "other"  # type: ignore[misc]


def test_results_import_no_torch() -> None:
    code = """
import sys
import equisep.results
from equisep.results import LawFit, Profile
p = Profile(model="m", classes=2, counts=(1, 1), sites=(), law=LawFit(curve=()))
import tempfile, pathlib
with tempfile.TemporaryDirectory() as folder:
    assert Profile.load(p.save(pathlib.Path(folder) / "p.json")) == p
repr(p)
print(sorted(name for name in sys.modules if name.split(".")[0] in {"torch", "matplotlib", "pandas", "plotly", "rich"}))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
