"""The vendored bundle is what its record says, carries its licenses, and can stand in a page."""

import hashlib
import json
from importlib.resources import files

from equisep.report.page.document import PARTS, page_script, plot_script

ASSETS = files("equisep.report.page") / "assets"
RECORD = json.loads((ASSETS / "plot.json").read_text(encoding="utf-8"))


def test_the_bundle_is_the_one_recorded() -> None:
    bundle = (ASSETS / RECORD["file"]).read_bytes()
    assert hashlib.sha256(bundle).hexdigest() == RECORD["sha256"]
    assert len(bundle) == RECORD["bytes"] <= 297 * 1024


def test_the_bundle_begins_with_the_license_of_every_package_in_it() -> None:
    notices = (ASSETS / "plot.LICENSE.txt").read_text(encoding="utf-8")
    assert plot_script().startswith(f"/*! {notices}*/")
    for name, package in RECORD["packages"].items():
        assert f"{name} {package['version']}" in notices
        assert package["license"] == "ISC"
    assert notices.count("Permission to use, copy, modify, and/or distribute this software") >= 2


def test_scripts_can_stand_in_a_page() -> None:
    for script in (plot_script(), page_script()):
        assert "</script" not in script.lower()
        assert "<!--" not in script
        assert "\r" not in script


def test_every_part_of_the_script_is_joined_once_and_holds_no_more_than_300_lines() -> None:
    parts = {path.name.removesuffix(".js"): path for path in (ASSETS / "script").iterdir()}
    assert sorted(parts) == sorted(PARTS)
    for path in parts.values():
        assert path.read_text(encoding="utf-8").count("\n") <= 300


def test_the_script_makes_no_markup_of_text() -> None:
    for way in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "console."):
        assert way not in page_script()
