"""The comparison of the recommended recipe: what its protocol says is what its functions do."""

import numpy as np
import pytest


@pytest.fixture(scope="module")
def recipe(reproduce):
    return reproduce("recipe")


def test_fifths_have_the_wider_interval(recipe):
    rows = {row: [{"test": 0.6}, {"test": 0.7}] for row in (recipe.RECIPE, "CCEM")}
    assert recipe.gains("RTE", rows, "CCEM").overlap == 0.25
    assert recipe.gains("circles", rows, "CCEM").overlap == 0


def test_of_the_saved_runs_fifths_say_which_tasks_were_right(recipe, reproduce):
    saved = reproduce("rows").read(recipe.RESULTS)
    for name in recipe.REAL:
        for row in saved[name].values():
            for run in row["runs"]:
                assert np.mean([*map(int, run["hits"])]) == pytest.approx(run["test"])
