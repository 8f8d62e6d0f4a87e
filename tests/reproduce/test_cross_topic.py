"""What docs/preferences.md says of new topics, and what the tables of better features are made of."""

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def script(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks" / "reproduce"))
    for name in ("cross_topic", "language_features"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    import cross_topic

    return cross_topic


def test_the_page_says_what_the_results_say(script):
    saved = json.loads(script.RESULTS.read_text(encoding="utf-8"))["cross-topic"]
    page = " ".join((ROOT / "docs" / "preferences.md").read_text(encoding="utf-8").split())
    cells = {
        row: line.split(" | ")[1] for row, line in re.findall(r"^\| ([a-z ]+) \| (.*) \|$", script.table(saved), re.M)
    }
    assert (
        f"majority label orders {cells['majority label']} of the pairs rightly, judgments {cells['judgments']}, and "
        f"the text's length alone {cells['length']} " in page
    )


def test_the_scorer_is_the_best_of_the_development_topics(script):
    saved = json.loads(script.RESULTS.read_text(encoding="utf-8"))["development"]
    figures = {row: np.mean([run["ordered pairs"] for run in each["runs"]]) for row, each in saved.items()}
    assert max(figures, key=figures.get) == script.CHOSEN
    topics = {int(run["topic"]) % 2 for each in saved.values() for run in each["runs"]}
    assert topics == {0}


def test_a_page_rank_by_hand(script):
    """Of two, the winner has r = (1 - d) / 2 + d (1 - r) + d r / 2: it gets what the loser has, and half of its own."""
    winner, loser = script.page_ranks(np.array([0]), np.array([1]), 2)
    assert winner + loser == pytest.approx(1)
    assert winner == pytest.approx((0.15 / 2 + 0.85) / (1 + 0.85 / 2))


def test_numbers_on_language_by_hand(script):
    known = ["rain rain rain", "rain is wet"]
    first, empty = script.language_features(["We should go! RAIN, however, is odd.", ""], known)
    assert len(first) == 31
    assert np.isfinite(empty).all()
    assert first[0] == pytest.approx(np.log1p(36))  # letters and marks
    assert first[1] == pytest.approx(np.log1p(7))  # words
    assert first[2] == pytest.approx(np.log1p(2))  # sentences
    assert first[7] == pytest.approx(np.log1p(1))  # exclamation mark
    assert first[13] == pytest.approx(26 / 7)  # letters a word
    assert first[22] == pytest.approx(1 / 7)  # modal verbs
    assert first[26] == pytest.approx(6 / 7)  # rare words: all but rain
