"""The table of `auto`: what the results render to, and that the guide has it."""

import json

import numpy as np
import pytest


@pytest.fixture(scope="module")
def script(reproduce):
    return reproduce("choice")


def test_the_guide_has_the_table_of_the_results(script):
    page = script.PAGE.read_text(encoding="utf-8")
    assert script.written(page, json.loads(script.RESULTS.read_text(encoding="utf-8"))) == page


def test_the_advice_is_that_of_the_results(script):
    saved = json.loads(script.RESULTS.read_text(encoding="utf-8"))
    both = script.regrets(script.cells(saved, "whole", "thinned"))
    assert min(both, key=lambda method: both[method][0].mean()) == "auto"
    votes = script.regrets(script.cells(saved, "whole"))["auto"][1]
    worst = list(saved["whole"])[votes.argmin()]
    assert f"on one of the 15 crowds ({worst}, {-100 * votes.min():.1f})" in script.PAGE.read_text(encoding="utf-8")
    assert (votes < -0.01).sum() == 1
    assert len(votes) == 15
    three = script.regrets(script.cells(saved, "development"))
    auto, matrices = (f"{three[method][0].mean():.3f}".lstrip("0") for method in ("auto", "dawid-skene"))
    guide = " ".join(script.PAGE.read_text(encoding="utf-8").split())
    assert f"its mean regret is {auto}, that of `dawid-skene` {matrices}" in guide


def test_regret_is_against_the_best_of_the_others_on_the_mean_of_the_draws(script, monkeypatch):
    monkeypatch.setattr(script, "QUICK", ("majority-vote", "dawid-skene", "auto"))
    saved = {
        "thinned": {
            "a, 2": {
                "runs": [
                    {"draw": "0", "majority-vote": 0.5, "dawid-skene": 0.9, "auto": 0.95},
                    {"draw": "1", "majority-vote": 0.7, "dawid-skene": 0.5, "auto": 0.65},
                ]
            }
        }
    }
    found = script.regrets(script.cells(saved, "thinned"))
    # means: votes .6, Dawid-Skene .7, auto .8, whose regret may be negative
    np.testing.assert_allclose([found[method][0] for method in script.QUICK], [[0.1], [0.0], [-0.1]], atol=1e-12)
    np.testing.assert_allclose(found["auto"][1], [0.2], atol=1e-12)


def test_generated_crowds_depend_as_their_sort_says(script):
    plain, truth = script.generated("independent", 4, 60, 6, 1)
    for sort in script.SORTS[1:]:
        changed, same = script.generated(sort, 4, 60, 6, 1)
        np.testing.assert_array_equal(same, truth)
        assert 0.02 < (changed.labels != plain.labels).mean() < 0.6
