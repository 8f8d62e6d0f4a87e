"""What docs/judges.md says that models and people save is in the table of the saved results."""

import json
import re
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


def test_the_page_says_what_the_results_say(script):
    table = script.table(json.loads(script.RESULTS.read_text(encoding="utf-8")))
    page = " ".join((ROOT / "docs" / "judges.md").read_text(encoding="utf-8").split())
    cheap, dear, people = re.findall(r"\d+ ± \d+ %", page)
    for start, saved in (
        ("0.01 | by gain, people and models", cheap), ("0.2 | by gain, people and models", dear),
        ("0.01 | people, by gain", people),
    ):  # fmt: skip
        assert re.search(rf"^\| {re.escape(start)} \| [\d.]+ \| {re.escape(saved)} ", table, re.M), start


def test_people_are_right_as_often_as_drawn_and_wrong_grades_are_near(script):
    gold = np.tile(np.arange(4), 5000)
    said = script.drawn_people(gold, 4, np.random.default_rng(0))
    right = (said == gold[:, None]).mean(axis=0)
    assert ((right > 0.69) & (right < 0.91)).all()
    wrong = said[gold == 0][said[gold == 0] > 0]
    odds = np.array([1, 2**-1.5, 3**-1.5])
    np.testing.assert_allclose(np.bincount(wrong)[1:] / len(wrong), odds / odds.sum(), atol=0.02)
