"""Correctness is counted in one place for each kind of label."""

import ast
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import crowdzoo
from crowdzoo.aggregation import create
from crowdzoo.kinds import KINDS, kind_of
from crowdzoo.kinds.scoring import linearised, scored_models
from crowdzoo.kinds.several_labels.scoring import SCORING as LABELS
from crowdzoo.tables import Annotations

KINDS_FOLDER = Path(crowdzoo.__file__).parent / "kinds"


def test_kinds_compare_answers_with_gold_in_their_scoring_alone():
    """Functions that measure correctness were called in rows, in scores, in comparisons and by the Evaluator."""
    measures = {"r2_score", "mean_absolute_error", "root_mean_squared_error", "pair_accuracy", "spearman",
                "surface_distances", "edits", "dice", "expected_accuracy"}  # fmt: skip
    files = [file for file in KINDS_FOLDER.glob("*/*.py") if file.name not in ("scoring.py", "surfaces.py")]
    calls = {
        (file.parent.name, file.name, node.func.id)
        for file in files
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in measures
    }
    assert not {call for call in calls if "page" not in call[1]}


@pytest.mark.parametrize("name", [*KINDS])
def test_every_kind_has_a_scoring(name):
    folder = kind_of(name).page.__module__.rpartition(".")[0]
    assert type(kind_of(name).scoring).__module__ == f"{folder}.scoring"


def test_the_mean_of_linearised_scores_is_the_ratio_of_the_sums():
    totals, weights = np.array([2.0, 0.0, 1.0]), np.array([2.0, 1.0, 4.0])
    scores = linearised(totals, weights)
    assert scores.mean() == pytest.approx(Fraction(3, 7))
    # 3/7 + (2 - 3/7 * 2) / (7/3)
    assert scores[0] == pytest.approx(Fraction(3, 7) + (2 - Fraction(6, 7)) / Fraction(7, 3))
    assert linearised(totals, np.ones(3)).tolist() == totals.tolist()


def test_a_tie_counts_for_each_class_in_aggregations_comparisons_and_models():
    annotations = Annotations.from_arrays([0, 0, 1, 2], ["a", "b", "a", "b"], ["x", "y", "x", "y"])
    gold = np.array([0, 1, 1])
    result = create("majority-vote").fit(annotations)
    accuracy = (0.5 + 0 + 1) / 3
    kind = kind_of("classification")
    assert result.accuracy(gold) == pytest.approx(accuracy)
    assert kind.scoring.score(gold, result.posteriors)["accuracy"] == pytest.approx(accuracy)
    assert dict(kind.scoring.rows_of_known(gold, result.posteriors))["accuracy"].startswith("0.5000 (on 3 tasks")
    compared = kind.measure(annotations, gold)
    totals, weights = compared.sums(result.posteriors, np.arange(3))
    assert (totals.sum() / weights.sum()).item() == pytest.approx(accuracy)
    scores = scored_models(kind.scoring, {"candidate": ""}, gold, {"candidate": result.posteriors})["candidate"]
    assert (scores["tasks"], scores["accuracy"], scores["by_task"].tolist()) == (
        3,
        pytest.approx(accuracy),
        [0.5, 0, 1],
    )


def test_contributions_to_r2_have_it_as_their_mean():
    scoring, gold, answers = kind_of("regression").scoring, np.array([1.0, 2.0, 6.0]), np.array([[1.0], [4.0], [6.0]])
    # squares about the mean 3: 4 + 1 + 9
    assert scoring.score(gold, answers)["r2"] == pytest.approx(1 - 4 / 14)
    assert scoring.by_task(gold, answers).mean() == pytest.approx(1 - 4 / 14)
    assert scoring.sums(gold, answers)[0].tolist() == [0, -2, 0]


def test_labels_are_scored_where_they_are_known():
    gold, answers = np.array([[1, 0], [1, -1], [-1, -1]]), np.array([[0.9, 0.8], [0.2, 0.9], [0.9, 0.9]])
    assert LABELS.known(gold).tolist() == [True, True, False]
    # given: both of task 0; known: one correct, one false, one missing
    assert LABELS.score(gold[:2], answers[:2]) == {
        "f1": pytest.approx(2 / 4), "accuracy": pytest.approx(1 / 3), "mean_f1": pytest.approx(2 / 3)
    }  # fmt: skip
    assert [sums.tolist() for sums in LABELS.sums(gold[:2], answers[:2])] == [[2, 0], [3, 1]]
