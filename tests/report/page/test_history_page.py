"""The page of a training, and the command that writes pages: of files, of folders, of what is neither."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from cli.running import equisep
from equisep import Fnn, History, Tracker
from equisep.errors import InputError
from equisep.report.page import history_page
from equisep.results import Profile
from equisep.tracking import Entry, Header
from report.page.page_reader import Page
from report.page.test_page import rich_profile


def header(profile: Profile) -> Header:
    return Header(
        model=profile.model, module="Fnn", parameters=10, weights="00", sites=tuple(s.name for s in profile.sites),
        classes=profile.classes, subset="1-2", samples=sum(profile.counts),
    )  # fmt: skip


def history_of(profiles: dict[int, Profile]) -> History:
    first = next(iter(profiles.values()))
    return History(header(first), [Entry(number=number, profile=each) for number, each in profiles.items()])


@pytest.fixture(scope="module")
def trained() -> History:
    """20 layers, 9 epochs, with samples at every layer of every epoch."""
    whole = rich_profile(20)
    profiles = {}
    for epoch in range(1, 10):
        sites = tuple(replace(site, fuzziness=site.fuzziness * (1 + 1 / epoch)) for site in whole.sites)  # type: ignore[operator]
        profiles[epoch] = replace(whole, sites=sites, law=replace(whole.law, rho=0.5 + 0.3 / epoch))
    return history_of(profiles)


def test_a_page_of_20_layers_and_9_epochs(trained: History) -> None:
    text = history_page(trained)
    assert len(text.encode()) <= 2**20
    page = Page(text)
    numbers = page.numbers["history"]
    assert numbers["numbers"] == list(range(1, 10)) and len(numbers["fuzziness"]) == 9
    assert numbers["rho"] == [profile.law.rho for profile in trained.profiles().values()]
    curves = [list(profile.curve()) for profile in trained.profiles().values()]
    for drawn, curve in zip(numbers["fuzziness"], curves, strict=True):
        assert drawn == pytest.approx(curve, rel=1e-5)
    maps = numbers["maps"]
    assert [len(maps["points"]), len(maps["points"][0]), len(maps["points"][0][0])] == [9, 20, 2 * len(maps["labels"])]
    assert [plot["data-plot"] for plot in page.plots][:2] == ["law-epochs", "epochs"]
    assert next(plot for plot in page.plots if plot["data-plot"] == "map")["data-history"] == ""
    table = page.table("The law over the epochs")
    assert [float(value) for value in table.column("rho")] == numbers["rho"]
    assert "training" in page.ids and "9 readings, epoch 1 to 9" in page.words


def test_of_many_readings_some_are_drawn_and_the_page_says_so() -> None:
    small = rich_profile(3, 3)
    light = replace(small, sites=tuple(replace(site, coordinates=None, cosines=None) for site in small.sites))
    page = Page(history_page(history_of(dict.fromkeys(range(1, 302), light))))
    assert len(page.numbers["history"]["numbers"]) == 200 and page.numbers["history"]["maps"] is None
    assert page.numbers["history"]["numbers"][-1] == 301
    assert "Of 301 readings 200 are drawn, evenly spread." in page.words


def test_readings_that_failed_are_named_and_none_at_all_is_an_error() -> None:
    profile = rich_profile(3, 3)
    entries = [Entry(number=1, profile=profile), Entry(number=2, failure="Site `a` holds NaN.")]
    page = Page(history_page(History(header(profile), entries)))
    assert "1 of 2 readings failed; the last (epoch 2): Site a holds NaN." in page.words
    with pytest.raises(InputError, match=r"no reading with a profile.*Site `a` holds NaN"):
        history_page(History(header(profile), entries[1:]))


def test_the_command_writes_pages_of_profiles_histories_and_folders(tmp_path: Path) -> None:
    profile = rich_profile(4, 3)
    profile.save(tmp_path / "demo" / "profile.json")
    replace(profile, model="Other").save(tmp_path / "b.json")
    (tmp_path / "demo" / "other.json").write_text("{}")
    history = History.open(tmp_path / "run" / "h.jsonl", header(profile))
    history.append(Entry(number=1, profile=profile))
    done = json.loads(equisep("report", "demo", "--json", folder=tmp_path).stdout)
    assert tmp_path / done["page"] == tmp_path / "demo" / "report.html"
    page = Page((tmp_path / "demo" / "report.html").read_text(encoding="utf-8"))
    assert not page.numbers["several"] and "profile.json" in page.words
    two = equisep("report", "demo/profile.json", "b.json", "--out", "c.html", folder=tmp_path)
    assert two.returncode == 0 and Page((tmp_path / "c.html").read_text(encoding="utf-8")).numbers["several"]
    run = equisep("report", "run", folder=tmp_path)
    assert run.returncode == 0 and run.stdout == "run/report.html\n" and "open it in any browser" in run.stderr
    assert Page((tmp_path / "run" / "report.html").read_text(encoding="utf-8")).numbers["history"]["numbers"] == [1]


def test_bad_input_is_one_sentence(tmp_path: Path) -> None:
    profile = rich_profile(4, 3)
    profile.save(tmp_path / "p.json")
    History.open(tmp_path / "h.jsonl", header(profile)).append(Entry(number=1, profile=profile))
    (tmp_path / "empty").mkdir()
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "store.json").write_text("{}")
    for words, sentence in (
        (["no.json"], "No profile at"),
        (["empty"], "holds no profile (*.json) and no history (*.jsonl)"),
        (["store"], "is a store of figures' runs"),
        (["p.json", "h.jsonl"], "A page shows profiles, or one history; found 1 profiles and 1 histories"),
        (["p.json", "--out", "p.txt"], "should end in .html"),
        (["p.json"] * 13, "at most 12 profiles; found 13"),
    ):
        done = equisep("report", *words, folder=tmp_path)
        assert done.returncode == 2 and sentence in " ".join(done.stderr.split()), done.stderr
        assert not list(tmp_path.glob("*.html")) and not done.stdout


def test_a_page_is_made_without_torch_or_matplotlib(tmp_path: Path) -> None:
    rich_profile(4, 3).save(tmp_path / "p.json")
    code = (
        "import sys; from pathlib import Path; from equisep.report.page import page_of; page_of([Path('p.json')]); "
        "print([name for name in ('torch', 'matplotlib', 'pandas', 'typer') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.strip() == "[]"


def test_a_tracker_keeps_samples_for_the_page_where_asked(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model, x, y = Fnn(3, width=6, inputs=5, classes=3), torch.randn(60, 5), torch.arange(60) % 3
    tracker = Tracker(model, (x, y), coordinates=20, history=tmp_path / "h.jsonl")
    tracker.epoch()
    with torch.no_grad():
        next(model.parameters()).mul_(torch.tensor([[1.0], [2.0]] * 3))
    tracker.epoch()
    page = Page(tracker.history.report(tmp_path / "h.html").read_text(encoding="utf-8"))
    assert "equisep.Tracker(model, train, sites=" in page.words and "coordinates=20, seed=0)" in page.words
    maps = page.numbers["history"]["maps"]
    assert maps["numbers"] == [1, 2] and len(maps["labels"]) == 20
    assert [len(layers) for layers in maps["points"]] == [len(tracker.history.header.sites)] * 2
    same = [one == two for one, two in zip(*maps["points"], strict=True)]
    assert same[0] and not any(same[1:])  # the input is what it was
    assert History.load(tmp_path / "h.jsonl").profile(2).sites[0].coordinates is not None
