"""Many profiles: which are seeds of one network, their mean and band, what speaks against it, the table and the drawing."""

from __future__ import annotations

import io
import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from equisep.compare import ManyProfiles, compare_many
from equisep.errors import InputError
from equisep.files import encode
from equisep.law import fit_law, student_quantile
from equisep.report.comparison import render_groups
from equisep.report.group_plots import plot_groups
from equisep.results import Profile, SiteReading
from equisep.results.codec import decode


def printed(content: object) -> str:
    console = Console(width=80, file=io.StringIO(), force_terminal=False)
    console.print(content)
    return console.file.getvalue()  # type: ignore[attr-defined]


def profile(rho: float, *, sites: int = 5, model: str = "Fnn", seed: int = 0, **changes: object) -> Profile:
    noise = 0.05 * np.random.default_rng([seed, sites]).standard_normal(sites)
    curve = [20 * rho**site * math.exp(noise[site]) for site in range(sites)]
    readings = tuple(SiteReading(index=i, name=f"relu{i}", dim=9, fuzziness=value) for i, value in enumerate(curve))
    whole = Profile(
        model, 2, (50, 50), readings, fit_law(curve), effective_depth=2, accuracy_train=1.0, reading="eval",
        settings={"reading": "eval", "seed": seed, "training": {"rate": 0.1, "seed": seed}},
    )  # fmt: skip
    return replace(whole, **changes)  # type: ignore[arg-type]


SEEDS = [profile(0.5, seed=seed) for seed in range(4)]
DEEP = [profile(0.7, sites=9, model="Deep", seed=seed) for seed in range(3)]


def test_profiles_of_one_network_are_seeds_with_a_mean_and_a_band() -> None:
    found = compare_many([*SEEDS, *DEEP, profile(0.6, model="Alone")])
    assert [(group.name, len(group.members)) for group in found.groups] == [("Fnn", 4), ("Deep", 3), ("Alone", 1)]
    assert [row.group for row in found.profiles] == ["Fnn"] * 4 + ["Deep"] * 3 + ["Alone"]
    assert found.notes == ()
    for index, site in enumerate(found.groups[0].sites):
        logs = np.log([each.curve()[index] for each in SEEDS])
        reach = student_quantile(0.975, 3) * logs.std(ddof=1) / 2
        assert site.fuzziness == pytest.approx(math.exp(logs.mean()))
        assert (site.band.low, site.band.high) == pytest.approx(
            (math.exp(logs.mean() - reach), math.exp(logs.mean() + reach))
        )
        assert (site.band.kind, site.band.n) == ("seeds", 4)
    assert found.groups[0].law.rho == pytest.approx(np.mean([each.law.rho for each in SEEDS]))
    alone = found.groups[2]
    assert alone.sites[0].band is None and alone.law.intervals == {} and alone.law.notes == ()


def test_one_name_read_in_two_ways_or_of_two_depths_is_two_groups() -> None:
    other = replace(SEEDS[0], reading="mixed")
    assert [group.name for group in compare_many([SEEDS[0], other]).groups] == [
        "Fnn, eval reading",
        "Fnn, mixed reading",
    ]
    longer = profile(0.5, sites=7)
    assert [group.name for group in compare_many([SEEDS[0], longer]).groups] == ["Fnn, 5 sites", "Fnn, 7 sites"]
    larger = replace(SEEDS[0], counts=tuple(2 * count for count in SEEDS[0].counts))
    names = [group.name for group in compare_many([SEEDS[0], larger]).groups]
    assert names == [f"Fnn, {sum(each.counts)} samples" for each in (SEEDS[0], larger)]
    renamed = replace(SEEDS[1], sites=tuple(replace(site, name=f"act{site.index}") for site in SEEDS[1].sites))
    assert [group.name for group in compare_many([SEEDS[0], renamed]).groups] == ["Fnn", "Fnn (2)"]


def test_one_name_by_two_definitions_of_d_is_two_groups() -> None:
    by_class = replace(profile(0.5), settings={**profile(0.5).settings, "weighting": "class"})
    by_sample = replace(profile(0.5), settings={**profile(0.5).settings, "weighting": "sample"})
    assert [group.name for group in compare_many([by_sample, by_class]).groups] == [
        "Fnn, weighting sample",
        "Fnn, weighting class",
    ]


def test_groups_can_be_named() -> None:
    found = compare_many({"adam": SEEDS[:2], "sgd": SEEDS[2:]}, names=list("abcd"))
    assert [(group.name, group.members) for group in found.groups] == [("adam", ("a", "b")), ("sgd", ("c", "d"))]


def test_what_speaks_against_seeds_is_told() -> None:
    other = replace(SEEDS[1], settings={**SEEDS[1].settings, "training": {"rate": 0.3, "seed": 1}}, counts=(40, 60))
    notes = compare_many({"Fnn": [SEEDS[0], other, SEEDS[0]]}).notes
    assert [note.code for note in notes] == ["group-settings", "group-data", "same-profile"]
    assert "differ in `training.rate`: they are more than seeds" in notes[0].text
    assert "1 and 3 of `Fnn` have the same D everywhere" in notes[2].text


def test_a_site_without_d_has_no_mean() -> None:
    sites = (replace(SEEDS[1].sites[0], fuzziness=None), *SEEDS[1].sites[1:])
    found = compare_many([SEEDS[0], replace(SEEDS[1], sites=sites)]).groups[0]
    assert (found.sites[0].fuzziness, found.sites[0].band) == (None, None)
    assert found.sites[1].band is not None
    assert found.curves[1][0] is None


def test_bad_input() -> None:
    with pytest.raises(InputError, match="needs profiles; found none"):
        compare_many([])
    with pytest.raises(InputError, match="got 1 names of 2 profiles"):
        compare_many(SEEDS[:2], names=["a"])
    with pytest.raises(InputError, match="have 5, 9 sites, so that they are no seeds of one network"):
        compare_many({"both": [SEEDS[0], DEEP[0]]})


def test_it_travels_as_json() -> None:
    found = compare_many([*SEEDS, *DEEP])
    text = json.dumps(encode(found), allow_nan=False)
    assert decode(ManyProfiles, json.loads(text), where="many") == found


def test_the_table_fits_80_columns() -> None:
    text = printed(render_groups(compare_many([*SEEDS, *DEEP], names=[f"{n}.json" for n in range(7)])))
    assert max(map(len, text.splitlines())) <= 80 and "…" not in text
    lines = [line.split() for line in text.splitlines()]
    assert next(row for row in lines if row)[:9] == [
        "profile",
        "network",
        "ρ",
        "half-life",
        "r",
        "verdict",
        "last",
        "D",
        "depth",
    ]
    assert any(row[:2] == ["6.json", "Deep"] for row in lines)
    assert any(row[:2] == ["Fnn", "4"] for row in lines)
    assert "taken as its seeds" in " ".join(text.split())
    alone = printed(render_groups(compare_many([SEEDS[0], DEEP[0], profile(0.6, model="c")])))
    assert "seeds" not in alone


def test_the_drawing_has_a_line_and_a_band_per_network(tmp_path: Path) -> None:
    figure = plot_groups(
        compare_many([*SEEDS, *DEEP, profile(0.6, model="$alone")]), tmp_path / "many.png", title="Three"
    )
    (axes,) = figure.axes
    assert (tmp_path / "many.png").stat().st_size > 1000
    labels = axes.get_legend_handles_labels()[1]
    assert [label.split(":")[0] for label in labels] == ["Fnn, 4 seeds", "Deep, 3 seeds", r"\$alone"]
    assert len(axes.collections) == 2 and len(axes.lines) == 4 + 3 + 3
    assert axes.get_yscale() == "log" and axes.get_xlabel() == "layer (0 = input)"
    nothing = compare_many([Profile("m", 2, (1, 1), (), fit_law([]))])
    with pytest.raises(InputError, match="no D to draw"):
        plot_groups(nothing)
