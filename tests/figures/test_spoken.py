"""Quantities in words."""

from __future__ import annotations

import pytest

from equisep.figures.catalogue import all_figures
from equisep.figures.rules import quantities_of
from equisep.figures.spoken import spoken


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("r", "r"),
        ("rho", "ρ"),
        ("minority_cosine", "minority cosine"),
        ("rho@epoch=100/600", "ρ at epoch 100 of 600"),
        ("r@class=7", "r of class 7"),
        ("r@of=fuzziness_test", "r of D on test data"),
        ("ncc@mode=eval,site=4", "NCC accuracy in eval mode at site 4"),
        ("ncc@site=-1", "NCC accuracy at site −1 (the last)"),
        ("r;class_r", "r and mean r of the classes"),
        ("settled@site=1;settled@site=2;settled@site=3", "epoch of settling (at site 1 … 3)"),
        ("r@from=10", "r from site 10 on"),
    ],
)
def test_quantities_in_words(text: str, words: str) -> None:
    assert spoken(text) == words


def test_no_claim_of_the_catalogue_shows_its_syntax() -> None:
    for figure in all_figures():
        for claim in figure.claims:
            for text in (claim.quantity, *quantities_of(claim)):
                assert not {"@", ";", "=", "_"} & set(spoken(text)), (figure.id, text)
