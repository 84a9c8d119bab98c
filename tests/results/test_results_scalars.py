"""The numbers of a profile under flat names."""

from dataclasses import replace

from test_results_profile import profile

from equisep.results import ClassifierReading, LawFit


def test_names_are_flat_ordered_and_what_does_not_exist_is_left_out() -> None:
    assert profile().scalars() == {
        "equisep/law/rho": 0.5,
        "equisep/law/half_life": 1.0,
        "equisep/law/r": -0.9991,
        "equisep/effective_depth": 2.0,
        "equisep/fuzziness/00_input": 8.0,
        "equisep/fuzziness/01_blocks.0": 4.0,
        "equisep/fuzziness/02_blocks.1": 2.0,
        "equisep/ncc_train/00_input": 0.5,
        "equisep/ncc_train/01_blocks.0": 0.75,
        "equisep/ncc_train/02_blocks.1": 1.0,
    }
    assert list(profile().scalars())[:2] == ["equisep/law/rho", "equisep/law/half_life"]
    assert all(type(value) is float for value in profile().scalars().values())


def test_the_test_law_the_classifier_and_another_prefix() -> None:
    classifier = ClassifierReading("head", 0.1, 0.2, 0.3, 0.4, nc3=0.5)
    whole = profile(laws={"test": LawFit(curve=(3.0, 2.0), rho=0.7)}, classifier=classifier, accuracy_test=0.9)
    names = whole.scalars(prefix="run7")
    assert names["run7/law_test/rho"] == 0.7 and names["run7/classifier/nc3"] == 0.5
    assert names["run7/accuracy_test"] == 0.9 and "run7/classifier/nc4" not in names
    assert "law/rho" in whole.scalars(prefix="")


def test_names_hold_nothing_that_a_logger_refuses_and_many_sites_sort() -> None:
    whole = profile()
    sites = [replace(whole.sites[0], index=i, name=f"encoder/layer:{i} (relu)", fuzziness=1.0) for i in range(101)]
    names = [name for name in profile(sites=tuple(sites)).scalars() if "fuzziness" in name]
    assert names[7] == "equisep/fuzziness/007_encoder_layer_7__relu_" and names == sorted(names)


def test_numbers_that_are_not_finite_are_left_out() -> None:
    whole = profile()
    sites = (replace(whole.sites[0], fuzziness=float("inf"), ncc_train=float("nan")), *whole.sites[1:])
    assert not [name for name in profile(sites=sites).scalars() if "00_input" in name]
