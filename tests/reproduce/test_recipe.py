"""The comparison of the recommended recipe: what its protocol says is what its functions do."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks" / "reproduce"


@pytest.fixture(scope="module")
def recipe():
    sys.path.insert(0, str(FOLDER))
    try:
        import recipe

        yield recipe
    finally:
        sys.path.remove(str(FOLDER))


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


def test_every_method_is_compared_once_with_its_defaults(recipe):
    from crowdzoo.training.methods import AGGREGATED, METHODS

    rows = [recipe.ROWS[row] for row in recipe.COMPARED]
    assert sorted(row.method for row in rows if not row.labels) == sorted(set(METHODS) - {AGGREGATED})
    assert len(recipe.SETS) >= 8


def test_a_draw_of_a_family_is_new_and_has_the_sizes_of_the_protocol(recipe):
    seen = []
    for make in recipe.GENERATED.values():
        for number in range(2):
            data = make(number)
            assert (len(data.x), len(data.x_test)) == (640, 600)
            assert (data.annotations.redundancy == 3).all()
            votes = np.zeros((640, data.annotations.num_classes))
            np.add.at(votes, (data.annotations.task_ids, data.annotations.labels), 1)
            means = np.stack([votes[data.gold == k].mean(axis=0) for k in np.unique(data.gold)])
            assert (means.argmax(axis=1) == np.unique(data.gold)).all()  # the right label is the most frequent one
            seen.append(data.x[:5].tobytes())
    assert len({*seen}) == len(seen)


def test_the_recipe_stays_where_nothing_is_above_it(recipe):
    results = results_of(recipe, dict.fromkeys(recipe.COMPARED, 0.6) | {recipe.RECIPE: 0.8, "gold": 0.9})
    words = recipe.outcome(results)
    assert words.startswith("On the test tasks cross-fitted EM has ")
    assert "It beats DL-MV, DL-DS, DL-EM (AggNet)" in words
    assert "level with none; and loses to none" in words
    assert words.endswith("it stays the recommended method.")


def test_the_recipe_does_not_stay_where_a_method_beats_it(recipe):
    results = results_of(recipe, dict.fromkeys(recipe.COMPARED, 0.6) | {"CCEM": 0.7, "gold": 0.9})
    words = recipe.outcome(results)
    assert "loses to CCEM" in words
    assert "does not stay the recommended method: CCEM has 69.7" in words
    assert "(+10.0 ± 0.0 against cross-fitted EM)" in words


def test_nothing_is_said_before_every_set_has_two_rounds(recipe):
    results = results_of(recipe, dict.fromkeys(recipe.COMPARED, 0.6))
    results["digits"]["WAUM"].pop()
    assert "digits" not in recipe.complete(results)
    assert recipe.outcome(results) == ""
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


def test_the_tables_are_printed(recipe, capsys):
    recipe.show(results_of(recipe, dict.fromkeys(recipe.COMPARED, 0.6)))
    printed = capsys.readouterr().out
    assert "288 of 560 runs; 9 of 9 sets have two complete rounds" in printed
    assert "medical, treats (8 tasks)" in printed
    assert "+0.0 [+0.0, +0.0]" in printed
    recipe.show({})
    assert capsys.readouterr().out.strip() == "0 of 560 runs; 0 of 9 sets have two complete rounds"


def test_the_first_decision_stands_beside_a_later_one(recipe):
    first = results_of(recipe, dict.fromkeys(recipe.COMPARED, 0.6))  # 288 runs
    assert recipe.progress(first) == "These are 288 of 560 runs; the tables have the rounds that are complete."
    later = results_of(recipe, dict.fromkeys(recipe.COMPARED, 0.6), rounds=3)
    assert recipe.progress(later).startswith("These are 432 of 560 runs;")
    assert "At a first stop, with 334 runs, cross-fitted EM had 75.6 and CCEM 75.7" in recipe.progress(later)


def test_what_the_guide_says_of_the_labels_of_the_training_tasks_is_in_the_tables():
    docs = FOLDER.parents[1] / "docs"
    tables = (docs / "methods-results.md").read_text(encoding="utf-8").split("\n### ")
    (table,) = (part for part in tables if "accuracy of the labels of the training tasks, 9 sets" in part)
    ours = re.match(r"cross-fitted EM \(([\d.]+)\)", table)[1]
    rows = {
        name: (mean, difference)
        for name, mean, difference in re.findall(
            r"^\| ([^|]+?) \| ([\d.]+) \| ([-+\d.]+ ± [\d.]+) \|", table, flags=re.M
        )
    }
    guide = " ".join((docs / "methods.md").read_text(encoding="utf-8").split())
    mean, difference = rows["DL-EM (AggNet)"]
    assert f"{ours} and {mean} ({difference}; `ccem` {rows['CCEM'][0]})" in guide
