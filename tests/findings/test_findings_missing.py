"""Profiles that lack what a question needs, of earlier versions, with numbers that do not exist: a sentence, never a crash."""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path

import pytest
from made_profiles import codes, network, with_rare_classes

from equisep.findings.rare import predicted_cosines
from equisep.results import LawFit, Note, Profile, SiteReading


def bare(sites: int = 3) -> Profile:
    readings = tuple(SiteReading(index=step, name=f"layer{step}", dim=4) for step in range(sites))
    return Profile(model="bare", classes=2, counts=(5, 5), sites=readings, law=LawFit(curve=()))


@pytest.mark.parametrize("sites", [0, 1, 3])
def test_a_profile_of_nothing(sites: int) -> None:
    (only,) = bare(sites).findings
    assert only.code == "nothing-measured" and only.confidence == "cannot be said"
    assert only.next == "equisep.measure(model, train, test)"


def test_without_test_data_it_says_what_to_measure_first() -> None:
    profile = network(ncc_test=None)
    last = profile.findings[-1]
    assert last.code == "not-measured" and last.confidence == "cannot be said"
    assert "whether it memorizes and what a cut would cost (no test data)" in last.text
    assert last.next == "equisep.measure(model, train, test)"
    assert not {"too-deep", "memorizing", "every-layer-works"} & set(codes(profile))


def test_the_command_that_made_a_profile_is_the_one_to_run_again() -> None:
    settings = {"model": "my net:Net", "checkpoint": "m.pt", "data": {"name": "digits"}}
    profile = network(ncc_test=None, settings=settings)
    assert profile.findings[-1].next == (
        "equisep measure --model 'my net:Net' --checkpoint m.pt --data digits --split both"
    )
    flags = {"--split": "train", "--per-class": "9; rm x", "; rm": "y"}  # of a file that anybody may have written
    profile = network(ncc_test=None, settings={**settings, "data": {"asked": "digits", "flags": flags}})
    assert profile.findings[-1].next == (
        "equisep measure --model 'my net:Net' --checkpoint m.pt --data digits --per-class '9; rm x' --split both"
    )


def test_fields_one_by_one_missing_or_not_a_number() -> None:
    """Whatever is taken away, the rest is explained."""
    tested = (0.8,) * 6 + (0.5,) + (0.9,) * 3
    profile = network(classes=tested, nearest=tested)
    for name in ("fuzziness", "fuzziness_test", "ncc_train", "ncc_test", "nc1"):
        for value in (None, math.nan, math.inf):
            for chosen in (range(4), [3], [0]):
                sites = tuple(
                    replace(site, **{name: value}) if site.index in chosen else site for site in profile.sites
                )
                assert replace(profile, sites=sites).explain()
    for field in fields(Profile):
        if field.name.startswith(("accuracy", "counts_test", "effective", "network", "classifier", "reading")):
            assert replace(profile, **{field.name: None}).explain()
    for value in (math.nan, 0.0, 1.0):
        assert replace(profile, accuracy_test=value, accuracy_train=value).explain()
    assert replace(profile, counts=(0,) * 10, counts_test=(0,) * 10).explain()
    assert replace(profile, law=LawFit(curve=())).explain()
    assert replace(profile, law=replace(profile.law, loads=(math.inf, 0.0, -math.inf), r=math.nan)).explain()


def test_a_profile_of_the_first_schema() -> None:
    old = {
        "kind": "equisep profile", "schema": 1, "model": "old", "classes": 2, "counts": [5, 5],
        "sites": [{"index": step, "name": f"s{step}", "dim": 3, "fuzziness": 4.0 / 2**step} for step in range(4)],
        "law": {"curve": [4.0, 2.0, 1.0, 0.5], "rho": 0.5, "r": -1.0, "loads": [0.69, 0.69, 0.69]},
        "settings": {"mode": "batch"},
    }  # fmt: skip
    from equisep.results.codec import profile_from_dict

    profile = profile_from_dict(old)
    assert "law" in codes(profile) and codes(profile)[-1] == "not-measured"
    assert "reading `mixed`" in profile.explain()


def test_two_points_are_no_law() -> None:
    profile = network(classes=(0.8,) * 10, nearest=(0.8,) * 10)
    short = replace(profile, sites=profile.sites[:2], law=LawFit(curve=(45.0, 18.0), rho=0.4, r=-1.0, loads=(0.9,)))
    assert not {"law", "no-law", "near-law"} & set(codes(short))
    assert "a law (2 points; two always lie on a line)" in short.findings[-1].text
    assert short.findings[-1].next is None  # measuring the same again brings no more layers


def test_class_means_that_coincide_are_no_metric_left_out() -> None:
    note = Note("no-separation", "All class means coincide.", site="input")
    profile = network(classes=(0.8,) * 10, nearest=(0.8,) * 10)
    sites = tuple(replace(site, fuzziness=None, fuzziness_test=None) for site in profile.sites)
    last = replace(profile, sites=sites, law=LawFit(curve=()), notes=(note,)).findings[-1]
    assert "class means coincide at every layer, so that D does not exist" in last.text and last.next is None


def test_text_is_as_wide_as_asked_and_names_move_no_cursor() -> None:
    profile = network(class_names=(*("a",) * 6, "x\x1b[2Jy" * 9, *("b",) * 3), classes=(0.8,) * 6 + (0.4,) + (0.8,) * 3)
    for width in (60, 80, 120):
        lines = profile.explain(width=width).splitlines()
        assert max(map(len, lines)) <= width
        assert all(line.isprintable() for line in lines)


def test_findings_import_neither_torch_nor_numpy(tmp_path: Path) -> None:
    rare = with_rare_classes()
    paths = [
        str(network().save(tmp_path / "p.json")),
        str(replace(rare, peeled_cosines=predicted_cosines(rare)).save(tmp_path / "rare.json")),
    ]
    code = f"""
import sys
from equisep.results import load_profile
assert all(load_profile(path).explain() for path in {paths!r})
assert not {{"torch", "numpy"}} & sys.modules.keys()
"""
    subprocess.run([sys.executable, "-c", code], check=True)
