"""Trained long enough? The words for a training that has settled, that has not, that is too short to tell, and that is empty."""

from __future__ import annotations

from dataclasses import replace

from made_profiles import network

from equisep.findings import ranked, training
from equisep.law.emergence import Emergence
from equisep.results import Finding, Profile
from equisep.tracking.stopping import Stopping, Watched

LAW = {"law": Emergence("law", "rule", first=8, since=8, judged=12)}


def said(profile: Profile | None, readings: list[Watched]) -> tuple[Finding, ...]:
    settled = Stopping(window=3).settled(readings)
    made = training(
        profile, emergence=LAW, settled=settled.settled, since=settled.since, reason=settled.reason, unit="epoch"
    )
    return ranked(made)


def test_settled_and_not() -> None:
    flat = [Watched(number, 0.4, 2.9, 0.81) for number in range(1, 9)]
    (finding,) = said(network(), flat)
    assert finding.code == "settled" and finding.numbers["since"] == 5 and finding.numbers["law_first"] == 8
    assert finding.text.startswith("The training has settled since epoch 5: since epoch 5 neither ρ")
    assert "test accuracy is 81.0 %. The law: emerged at epoch 8." in finding.text
    falling = [Watched(number, 0.4, 2.9 / number, 0.81) for number in range(1, 9)]
    (finding,) = said(network(), falling)
    assert finding.code == "still-improving" and finding.next is None
    assert finding.text.startswith(
        "The training has not settled: still better in the last 3 readings: D of the last layer"
    )


def test_too_short_to_tell_and_empty() -> None:
    (finding,) = said(network(), [Watched(1, 0.4, 2.9, 0.81)])
    assert finding.confidence == "cannot be said"
    assert finding.text.startswith("Whether the training has settled cannot be said yet: 1 of the 4 readings")
    (finding,) = said(None, [])
    assert finding.code == "nothing-measured" and finding.next is not None


def test_an_unfinished_network_is_said_first() -> None:
    profile = network(accuracy=(0.6, 0.6), ncc_train=(0.5, 0.5, 0.5, 0.6))
    flat = [Watched(number, 0.4, 2.9, 0.6) for number in range(1, 9)]
    assert [finding.code for finding in said(profile, flat)] == ["unfitted", "settled"]
    none = replace(profile, accuracy_train=None, sites=tuple(replace(site, ncc_train=None) for site in profile.sites))
    assert [finding.code for finding in said(none, flat)] == ["settled"]
