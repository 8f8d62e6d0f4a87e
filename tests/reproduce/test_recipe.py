"""The comparison of the recommended recipe: what its protocol says is what its functions do."""

import numpy as np
import pytest


@pytest.fixture(scope="module")
def recipe(reproduce):
    return reproduce("recipe")


def results_of(recipe, accuracies, rounds=2):
    """Saved results in which a row has one accuracy on all sets, one point more in every round."""
    rng = np.random.default_rng(0)
    luck = rng.normal(0, 0.01, size=(len(recipe.SETS), rounds))
    return {
        name: {
            row: [
                {"seed": seed, "test": mean + luck[place, seed], "own": mean, "recall": mean, "cpu_seconds": 1.0,
                 **({"hits": "1101"} if name in recipe.REAL else {})}
                for seed in range(rounds)
            ]
            for row, mean in accuracies.items()
        }
        for place, name in enumerate(recipe.SETS)
    }  # fmt: skip


def test_nothing_is_said_before_every_set_has_two_rounds(recipe):
    results = results_of(recipe, dict.fromkeys(recipe.COMPARED, 0.6))
    results["digits"]["WAUM"].pop()
    assert "digits" not in recipe.complete(results)
    rounds = recipe.complete(results_of(recipe, dict.fromkeys(recipe.COMPARED, 0.6), rounds=3))
    assert [run["seed"] for run in rounds["RTE"]["WAUM"]] == [0, 1, 2]


def test_fifths_have_the_wider_interval(recipe):
    rows = results_of(recipe, dict.fromkeys(recipe.COMPARED, 0.6))["RTE"]
    assert recipe.gains("RTE", rows, "CCEM", "test").overlap == 0.25
    assert recipe.gains("circles", rows, "CCEM", "test").overlap == 0


def test_saved_runs_have_a_stack_and_fifths_say_which_tasks_were_right(recipe):
    for name, rows in recipe.read().items():
        for runs in rows.values():
            for run in runs:
                assert run["stack"]["backend"] == "tensorflow"
                if name in recipe.REAL:
                    assert np.mean([*map(int, run["hits"])]) == pytest.approx(run["test"])
