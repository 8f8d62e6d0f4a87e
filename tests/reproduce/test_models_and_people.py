"""The people of `models_and_people` answer as its protocol says."""

import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def script(monkeypatch):
    for folder in ("benchmarks", "benchmarks/reproduce"):
        monkeypatch.syspath_prepend(str(ROOT / folder))
    monkeypatch.delitem(sys.modules, "models_and_people", raising=False)
    import models_and_people

    return models_and_people


def test_people_are_right_as_often_as_drawn_and_wrong_grades_are_near(script):
    gold = np.tile(np.arange(4), 5000)
    said = script.drawn_people(gold, 4, np.random.default_rng(0))
    right = (said == gold[:, None]).mean(axis=0)
    assert ((right > 0.69) & (right < 0.91)).all()
    wrong = said[gold == 0][said[gold == 0] > 0]
    odds = np.array([1, 2**-1.5, 3**-1.5])
    np.testing.assert_allclose(np.bincount(wrong)[1:] / len(wrong), odds / odds.sum(), atol=0.02)
