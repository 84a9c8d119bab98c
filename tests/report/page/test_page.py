"""The page: whole, escaped, under its policy, and every number in it that of the profile."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from equisep.errors import InputError
from equisep.report.columns import BY_NAME
from equisep.report.formatting import limits
from equisep.report.page import MOST_PROFILES, profile_page, write_page
from equisep.report.page.class_numbers import map_numbers
from equisep.report.page.document import embedded, page_script, plot_script, script_hash
from equisep.report.page.subject import subjects_of
from equisep.results import ClassCosines, ClassPair, LawFit, Profile, SiteReading, load_profile
from equisep.results.wording import span_words
from report.page.page_reader import Page
from report.report_profiles import bare_profile, full_profile, sampled_profile, zero_profile

HOSTILE = "</script><script>alert(1)</script><!--<img src=x onerror=alert(2)>\u2028`${7*7}`\"'&amp;\x1b[31m"
SECTIONS = [
    "verdict",
    "findings",
    "law",
    "work",
    "classes",
    "centers",
    "maps",
    "geometry",
    "trust",
    "numbers",
    "made",
    "glossary",
]


def rich_profile(sites: int = 8, classes: int = 10, *, counts: tuple[int, ...] | None = None) -> Profile:
    """A profile with everything that a page can show of classes."""
    rng = np.random.default_rng(0)
    profile = full_profile(sites, min(classes, 10))
    readings = []
    for site in profile.sites:
        rows = None
        if classes <= 100:
            means = rng.standard_normal((classes, 2 * classes))
            means -= means.mean(axis=0)
            means /= np.linalg.norm(means, axis=1, keepdims=True)
            cosines = np.clip(means @ means.T, -1, 1)
            rows = tuple(tuple(float(c) for c in cosines[i, :i]) for i in range(1, classes))
        spread = np.exp(0.3 * rng.standard_normal(classes))
        readings.append(
            replace(
                site,
                class_fuzziness=tuple(float(site.fuzziness * s) for s in spread),  # type: ignore[operator]
                ncc_class_train=tuple(float(v) for v in rng.uniform(0.8, 1, classes)),
                ncc_class_test=tuple(float(v) for v in rng.uniform(0.6, 1, classes)),
                confused=(),
                confused_test=(ClassPair(0, 1, 12.0), ClassPair(1, 0, 7.0)),
                nearest=(ClassPair(0, 1, 1.25),),
                cosines=ClassCosines(
                    mean=-1 / (classes - 1),
                    rows=rows,
                    greatest=() if rows else (ClassPair(0, 1, 0.5),),
                    least=() if rows else (ClassPair(0, 2, -0.5),),
                ),
            )
        )
    shares = tuple(float(v) for v in rng.uniform(0.5, 1, classes))
    return replace(
        profile,
        classes=classes,
        sites=tuple(readings),
        counts=counts or (100,) * classes,
        counts_test=(1000,) * classes,
        accuracy_class_train=(1.0,) * classes,
        accuracy_class_test=shares,
        confused_train=(),
        confused_test=(ClassPair(0, 1, 10.0),),
        network_depth=5,
    )


@pytest.fixture(scope="module")
def profile() -> Profile:
    return rich_profile()


@pytest.fixture(scope="module")
def page(profile: Profile) -> Page:
    return Page(profile_page([profile]))


def test_a_page_has_its_sections_in_order_and_its_links_lead_somewhere(page: Page) -> None:
    assert [each for each in page.ids if each in SECTIONS] == SECTIONS
    assert len(page.ids) == len(set(page.ids))
    assert page.links and all(link.startswith("#") and link[1:] in page.ids for link in page.links)
    kinds = [plot["data-plot"] for plot in page.plots]
    assert kinds == ["law", "work", "class-d", "centers", "cdnv", "map", "cosines", "space", "residuals"]
    assert all(plot["data-label"] for plot in page.plots)


def test_nothing_but_the_two_scripts_may_run_and_nothing_is_fetched(page: Page) -> None:
    run = [text for given, text in page.scripts if given.get("type") != "application/json"]
    assert run == [plot_script(), page_script()]
    hashes = " ".join(f"'{script_hash(script)}'" for script in run)
    assert page.policy.startswith(f"default-src 'none'; script-src {hashes}; ")
    assert "unsafe-eval" not in page.policy and page.policy.count("unsafe-inline") == 1
    assert not {name for name in page.attributes if name.startswith("on")} and not page.attributes & {"src", "srcset"}
    assert not page.tags & {"iframe", "object", "embed", "form", "base", "img", "link"}


def test_the_same_profile_gives_the_same_bytes(profile: Profile) -> None:
    assert profile_page([profile]) == profile_page([profile])


def test_scripts_can_stand_in_a_page() -> None:
    for script in (plot_script(), page_script()):
        assert "</script" not in script.lower() and "<!--" not in script and "\r" not in script


def test_names_are_text_wherever_they_come_from(tmp_path: Path) -> None:
    profile = rich_profile(4, 3)
    sites = tuple(replace(site, name=HOSTILE + str(site.index)) for site in profile.sites)
    hostile = replace(
        profile, model=HOSTILE, sites=sites, class_names=(HOSTILE, "=1+1", "\u202eevil"), reading=HOSTILE,
        settings={HOSTILE: HOSTILE, "model": HOSTILE, "data": {"asked": HOSTILE}}, provenance={HOSTILE: HOSTILE},
    )  # fmt: skip
    text = profile_page([hostile, hostile], names=[HOSTILE, HOSTILE], sources=[HOSTILE])
    page = Page(text)
    plain = Page(profile_page([profile, profile]))
    assert page.tags == plain.tags and page.attributes <= plain.attributes | {"class"}
    assert "alert(1)" not in text.replace("&lt;script&gt;alert(1)", "").replace("\\u003cscript\\u003ealert(1)", "")
    assert "\u2028" not in text and "\x1b" not in text and "\u202e" not in text.split("<script")[0]
    assert page.numbers["profiles"][0]["layers"]["name"][0] == HOSTILE + "0"  # as data it is whole
    assert len(page.scripts) == 3


def test_no_sign_of_ours_is_taken_for_one_that_cannot_be_shown(page: Page) -> None:
    assert "\N{REPLACEMENT CHARACTER}" not in page.raw.split('<script type="application/json"')[0]
    assert "80.5\N{NO-BREAK SPACE}%" in "".join(page.text)


def test_embedded_json_cannot_end_its_script() -> None:
    text = embedded({"a": HOSTILE, "b": float("nan"), "c": [1, math.inf]})
    assert not {"<", ">", "&", "\u2028"} & set(text)
    assert '"b":null' in text and '"c":[1,null]' in text


def test_every_number_of_the_tables_is_the_profiles(page: Page, profile: Profile) -> None:
    table = page.table("All numbers")
    assert len(table.rows) == len(profile.sites) and set(table.heads) >= {"fuzziness", "share", "ncc_test", "null"}
    for name in table.heads:
        column = BY_NAME[name]
        values = ["" if value is None else str(value) for value in column.of(profile)]
        assert table.column(name) == values, name
        shown = [row[table.heads.index(name)].replace("−", "-") for row in table.texts]
        assert shown == column.cells(profile), name
    for label in ("D layer by layer", "Nearest class means and CDNV", "Share of the work"):
        part = page.table(label)
        for name in {*part.heads} & BY_NAME.keys():
            assert part.column(name) == ["" if value is None else str(value) for value in BY_NAME[name].of(profile)]
    classes = page.table("Classes of")
    order = [int(name) for name in classes.column("class")]
    last = profile.sites[-1].class_fuzziness
    assert last is not None and profile.accuracy_class_test is not None
    assert order == sorted(range(10), key=lambda kind: -(last[kind] or 0))
    assert [float(value) for value in classes.column("class_fuzziness")] == [last[kind] for kind in order]
    laws = {kind: profile.laws[f"class {kind}"].rho for kind in (0, 1)}
    assert classes.column("rho") == [str(laws[kind]) if kind in laws else "" for kind in order]
    assert [float(value) for value in classes.column("accuracy_test")] == [
        profile.accuracy_class_test[k] for k in order
    ]
    per_layer = page.table("D per class and layer")
    for position, kind in enumerate(order):
        values = [site.class_fuzziness[kind] for site in profile.sites]  # type: ignore[index]
        assert [float(value) for value in per_layer.rows[position][1:]] == values
    cosines = page.table("Cosines between class means")
    kept = profile.sites[-1].cosines
    assert kept is not None and float(cosines.rows[3][2]) == kept.between(3, 1)
    assert page.table("Most often confused").rows == [["0", "1", "10"]]


def test_the_embedded_numbers_are_the_profiles(page: Page, profile: Profile) -> None:
    numbers = page.numbers["profiles"][0]
    layers = numbers["layers"]
    for name in ("fuzziness", "fuzziness_test", "null", "ncc_train", "ncc_test", "cdnv", "share", "fuzziness_low"):
        assert layers[name] == list(BY_NAME[name].of(profile)), name
    law = numbers["laws"]["train"]
    assert (law["rho"], law["r"], law["verdict"]) == (profile.law.rho, profile.law.r, profile.law.verdict)
    assert law["rho_low"] == profile.law.intervals["rho"].low
    (x0, d0), (x1, d1) = law["line"]
    assert (x0, x1) == (0, 7) and d0 == pytest.approx(math.exp(profile.law.intercept or 0))
    assert (d1 / d0) ** (1 / 7) == pytest.approx(profile.law.rho)
    assert law["residuals"] == list(profile.law.residuals)
    assert numbers["share_each"] == pytest.approx(1 / 7)
    points = np.asarray(numbers["maps"]["points"])
    assert points.shape == (8, 400) and np.abs(points).max() == 1000
    first = profile.sites[2].coordinates
    assert first is not None
    given = np.asarray(first.points).ravel()
    assert np.abs(np.abs(points[2]) / 1000 * np.abs(given).max() - np.abs(given)).max() < 1e-3 * np.abs(given).max()


def test_intervals_of_the_law_say_what_they_are_of() -> None:
    profile = sampled_profile()
    own = span_words(profile.law.intervals["rho"]).strip()
    beyond = [profile.laws[name] for name in ("corrected", "corrected test")]
    for whole in (True, False):
        page = Page(profile_page([replace(profile, whole=whole)]))
        laws = page.table("Laws of")
        shown = dict(
            zip(laws.column("law"), (row[laws.heads.index("rho_interval")] for row in laws.texts), strict=True)
        )
        assert shown["training data"] == own and own.endswith("] in other samples of this size")
        train, test = (limits(law.intervals["rho"]).strip() for law in beyond)
        assert shown["population, by training data"] == f"{train} from layer 2 on"
        assert shown["population, by test data"] == test
        text = " ".join("".join(page.text).split())
        assert f"95 %: {own}" in text.replace("\N{NO-BREAK SPACE}", " ")
        assert ("in the population, from layer 2 on" in text) == (not whole)
        assert "95 %, bootstrap of 200 resamples, in other samples of this size" in text.replace(
            "\N{NO-BREAK SPACE}", " "
        )


def test_three_dimensions_show_the_cosines_of_the_class_means() -> None:
    """Four classes of a simplex are a tetrahedron: three dimensions show all of it."""
    profile = rich_profile(3, 4)
    exact = ClassCosines(mean=-1 / 3, rows=tuple((-1 / 3,) * n for n in range(1, 4)))
    profile = replace(profile, sites=tuple(replace(site, cosines=exact) for site in profile.sites))
    space = Page(profile_page([profile])).numbers["profiles"][0]["space"]
    assert space["kept"] == [1.0, 1.0, 1.0]
    for points in (*space["points"], space["etf"]):
        gram = np.asarray(points) @ np.asarray(points).T
        assert np.allclose(gram, np.where(np.eye(4), 1, -1 / 3), atol=1e-3)
    assert np.allclose(space["points"][0], space["points"][2], atol=1e-3)
    assert np.allclose(space["points"][2], space["etf"], atol=1e-3)


def test_a_page_says_what_is_missing_and_shows_the_rest() -> None:
    page = Page(profile_page([bare_profile()]))
    words = page.words
    for sentence in (
        "D was not measured, so there is no law to show", "There are no shares of the work", "D per class was not measured",
        "Accuracy by nearest class means was not measured", "holds no samples on principal components",
        "Cosines between class means were not measured", "Neural collapse (NC1 to NC4) was not measured", "No test data",
    ):  # fmt: skip
        assert sentence in words, sentence
    assert page.plots == [] and page.table("All numbers").column("dim") == ["4"] * 3
    without = replace(
        rich_profile(), counts_test=None, accuracy_test=None, laws={},
        sites=tuple(replace(s, fuzziness_test=None, ncc_test=None, cdnv_test=None) for s in rich_profile().sites),
    )  # fmt: skip
    words = Page(profile_page([without])).words
    assert "No test data were given: D on new samples is not known." in words and "training accuracy" in words


def test_how_to_make_it_again_is_a_command_where_one_was_recorded() -> None:
    profile = rich_profile(4, 3)
    call = "equisep.measure(model, train, test, reading='mixed', weighting='sample')"
    assert call in Page(profile_page([profile])).words
    asked = {**profile.settings, "model": "my net:f", "data": {"asked": "a.npz", "flags": {"--per-class": "30"}}}
    words = Page(profile_page([replace(profile, settings=asked)])).words
    assert "equisep measure --model 'my net:f' --data a.npz --per-class 30 --reading mixed --weighting sample" in words
    recorded = replace(profile, settings=asked, provenance={"command": "equisep demo --depth 4"})
    assert "Make it again equisep demo --depth 4" in Page(profile_page([recorded])).words


def test_one_layer_two_layers_and_none() -> None:
    for sites in (0, 1, 2):
        profile = rich_profile(8)
        curve = profile.law.curve[:sites]
        few = replace(profile, sites=profile.sites[:sites], law=LawFit(curve=curve), effective_depth=None)
        page = Page(profile_page([few]))
        assert "Law: cannot be said" in page.words
        if sites:
            assert f"D is known at {sites} layer" in page.words
    assert "D is exactly 0" in Page(profile_page([zero_profile()])).words


def test_numbers_that_are_not_finite_are_left_out_and_named() -> None:
    profile = rich_profile()
    sites = list(profile.sites)
    sites[3] = replace(sites[3], fuzziness=math.nan, ncc_train=math.inf, class_fuzziness=(math.nan,) * 10)
    broken = replace(profile, sites=tuple(sites), law=replace(profile.law, rho=math.nan, r=math.nan))
    text = profile_page([broken])
    page = Page(text)
    assert "Numbers of blocks.2.relu are not finite" in page.words
    assert "nan" not in page.table("All numbers").column("fuzziness")
    assert page.numbers["profiles"][0]["layers"]["fuzziness"][3] is None
    worse = replace(profile, law=replace(profile.law, curve=(math.nan,) * 8), accuracy_test=math.nan)
    words = Page(profile_page([worse])).words
    assert "Numbers of the law are not finite" in words and "Numbers of test accuracy are not finite" in words
    assert profile.classifier is not None
    classes = (math.nan, *[0.5] * 9)
    head = replace(profile.classifier, nc3=math.inf)
    page = Page(profile_page([replace(profile, accuracy_class_test=classes, classifier=head)]))
    assert page.table("Classes of").texts[page.table("Classes of").column("class").index("0")].count("–") >= 1
    assert "Numbers of the classifier are not finite" in page.words and " nan" not in page.words


def test_a_profile_of_the_first_format_has_a_page(tmp_path: Path) -> None:
    old = tmp_path / "old.json"
    sites = [{"index": i, "name": name, "dim": 4, "fuzziness": 4 / 2**i} for i, name in enumerate(("input", "a", "b"))]
    law = {
        "curve": [4.0, 2, 1],
        "rho": 0.5,
        "intercept": math.log(4),
        "half_life": 1.0,
        "r": -1.0,
        "loads": [math.log(2.0)] * 2,
    }
    content = {
        "model": "Old",
        "classes": 2,
        "counts": [5, 5],
        "settings": {"mode": "batch"},
        "sites": sites,
        "law": law,
    }
    old.write_text(json.dumps({"kind": "equisep profile", "schema": 1, **content}))
    page = Page(profile_page([load_profile(old)]))
    assert "The law holds" in page.words and "Intervals were not computed." in page.words
    assert page.table("All numbers").column("fuzziness") == ["4.0", "2.0", "1.0"]


def test_many_layers_and_classes_are_thinned_and_the_page_says_so() -> None:
    profile = rich_profile(200, 1000)
    text = profile_page([profile])
    assert len(text.encode()) <= 5 * 2**20
    page = Page(text)
    assert "The profile has 1,000 classes. Drawn and listed are the 50 hardest; 950 are left out" in page.words
    assert "a heat map of all is not drawn" in page.words
    assert len(page.table("Classes of").rows) == 50 == len(page.numbers["profiles"][0]["classes"]["shown"])
    assert len(page.table("All numbers").rows) == 200


def test_samples_are_thinned_evenly() -> None:
    maps = map_numbers(subjects_of([rich_profile(4)])[0], most=4 * 30)
    assert maps is not None and len(maps["labels"]) == 30 and maps["left_out"] == 170
    assert [len(points) for points in maps["points"]] == [60] * 4 and set(maps["labels"]) == set(range(10))


def test_rare_classes_stand_beside_the_layer_peeled_model() -> None:
    profile = rich_profile(4, 4, counts=(500, 500, 20, 20))
    page = Page(profile_page([profile]))
    assert "rare" in page.ids and "2 of 4 classes have at most half the samples" in page.words
    rows = {row[0]: float(row[1]) for row in page.table("Rare classes").rows}
    kept = profile.sites[-1].cosines
    assert kept is not None and rows["among rare classes"] == kept.between(3, 2)
    assert rows["a simplex"] == pytest.approx(-1 / 3) and sum("predicted" in name for name in rows) == 2
    assert "rare" not in Page(profile_page([rich_profile(4, 4)])).ids


def test_profiles_are_compared_side_by_side() -> None:
    a, b = rich_profile(8), replace(rich_profile(12), model="Deeper")
    page = Page(profile_page([a, b]))
    assert page.numbers["several"] is True and [each["label"] for each in page.numbers["profiles"]] == [
        a.model,
        "Deeper",
    ]
    table = page.table("All profiles")
    assert [float(value) for value in table.column("rho")] == [a.law.rho, b.law.rho]
    assert "What differs" in page.words and len([plot for plot in page.plots if plot["data-plot"] == "law"]) == 1
    same = Page(profile_page([a, a, a], names=["x", "y", "y"]))
    labels = [each["label"] for each in same.numbers["profiles"]]
    assert len(set(labels)) == 3 and labels[0].endswith("(x)")
    with pytest.raises(InputError, match=f"at most {MOST_PROFILES} profiles; found 13"):
        profile_page([a] * 13)
    with pytest.raises(InputError, match="found none"):
        profile_page([])


def test_a_page_is_written_whole_under_a_name_that_says_what_it_is(profile: Profile, tmp_path: Path) -> None:
    target = profile.report(tmp_path / "folder" / "p.html")
    assert target.read_text(encoding="utf-8") == profile_page([profile])
    assert len(target.read_bytes()) <= 2**20
    with pytest.raises(InputError, match=r"`p.txt` should end in .html"):
        write_page(tmp_path / "p.txt", "")
    assert [path.name for path in (tmp_path / "folder").iterdir()] == ["p.html"]


def test_a_site_without_a_law_point_keeps_its_place() -> None:
    profile = rich_profile(6)
    sites = (SiteReading(index=0, name="input", dim=4), *profile.sites[1:])
    law = LawFit(curve=profile.law.curve[1:], rho=0.5, intercept=1.0, residuals=(0.1,) * 5)
    numbers = Page(profile_page([replace(profile, sites=sites, law=law)])).numbers["profiles"][0]
    assert numbers["laws"]["train"]["residuals"] == [None, *[0.1] * 5]
    assert numbers["laws"]["train"]["line"][0] == [1, math.exp(1.0)]


def test_layers_whose_cosines_are_not_drawn_are_counted() -> None:
    said = "Of 30 layers with cosines 24 are drawn, evenly spread, the first and the last among them; all are in the profile."
    assert said in profile_page([rich_profile(30, 4)])
    assert "evenly spread" not in profile_page([rich_profile(24, 4)])
