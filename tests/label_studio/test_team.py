"""A small team of `benchmarks/label_studio_team.py`, who answer what the server hands out."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
from label_studio_team import TEAM, Run, by_next

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("label_studio")]


def test_a_team_is_asked_until_no_task_is_worth_it_and_each_question_reaches_who_was_meant(studio, tmp_path):
    users = [studio.user(f"{name}.team@example.com") for name in TEAM]
    found = by_next(Run(5, 40, 1).start(studio, users, tmp_path))
    assert found["answered"] == found["reached"] > 20
    assert found["accuracy there"] >= 0.9
    assert found["stopped"] < 40 * 5
