import numpy as np
import pytest

from crowdzoo import Annotations
from crowdzoo.aggregation import MajorityVote
from crowdzoo.aggregation.classes.wawa import Wawa
from crowdzoo.testing.aggregators import simulated_crowd


def reference(table, num_tasks, num_annotators, num_classes, rounds, rule):
    """Li and Yu's iteration in loops; ties are averaged, negative votes count for every other class."""
    weights, agreed = [1.0] * num_annotators, []
    for step in range(rounds + 1):
        scores = [[0.0] * num_classes for _ in range(num_tasks)]
        for task, annotator, label in table:
            for k in range(num_classes):
                if weights[annotator] >= 0:
                    scores[task][k] += weights[annotator] * (k == label)
                else:
                    scores[task][k] -= weights[annotator] * (k != label)
        shares = [[s / sum(row) if sum(row) else 1 / num_classes for s in row] for row in scores]
        if step == rounds:
            return shares, agreed
        agreed = []
        for annotator in range(num_annotators):
            credits = []
            for task, other, label in table:
                if other == annotator:
                    best = max(shares[task])
                    tied = [k for k in range(num_classes) if shares[task][k] > best - 1e-9]
                    credits.append((label in tied) / len(tied))
            agreed.append(sum(credits) / len(credits))
        weights = agreed if rule == "agreement" else [num_classes * a - 1 for a in agreed]


@pytest.mark.parametrize("rule", ["agreement", "iwmv"])
@pytest.mark.parametrize("rounds", [1, 2, 3])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_equals_the_paper_in_loops(rounds, rule, seed):
    annotations, _ = simulated_crowd(num_tasks=25, num_annotators=9, num_classes=4, redundancy=4, seed=seed)
    labels = annotations.labels.copy()
    liar = annotations.annotator_ids < 3  # below chance, so that iwmv has negative weights
    labels[liar] = (labels[liar] + 1) % 4
    annotations = Annotations.from_arrays(annotations.task_ids, annotations.annotator_ids, labels)
    table = list(zip(annotations.task_ids, annotations.annotator_ids, annotations.labels, strict=True))
    shares, agreed = reference(table, 25, 9, 4, rounds, rule)
    result = Wawa(num_rounds=rounds, weights=rule).fit(annotations)
    if result.num_iterations == rounds:
        np.testing.assert_allclose(result.skills, agreed, rtol=1e-12)
    np.testing.assert_allclose(result.posteriors, shares, rtol=1e-9, atol=1e-12)


def test_one_round_by_hand():
    # task 0: 0 0 1, task 1: 1 1 0, task 2: annotators 0 and 2 tie. Agreement: 0: (1 + 1 + 1/2) / 3; 1: (1 + 1) / 2;
    # 2: (0 + 0 + 1/2) / 3
    annotations = Annotations.from_arrays([0, 0, 0, 1, 1, 1, 2, 2], [0, 1, 2, 0, 1, 2, 0, 2], [0, 0, 1, 1, 1, 0, 0, 1])
    result = Wawa().fit(annotations)
    assert result.converged  # one round is all there is to do
    weights = np.array([2.5 / 3, 1, 0.5 / 3])
    np.testing.assert_allclose(result.skills, weights)
    total = weights.sum()
    np.testing.assert_allclose(
        result.posteriors,
        [[1 - weights[2] / total, weights[2] / total], [weights[2] / total, 1 - weights[2] / total], [5 / 6, 1 / 6]],
    )
    np.testing.assert_array_equal(result.labels, [0, 1, 0])


def test_annotators_without_annotations_have_the_agreement_of_the_crowd():
    annotations = Annotations.from_arrays([0, 0, 0, 1], [0, 1, 2, 2], [0, 0, 1, 1], annotators=range(4))
    np.testing.assert_allclose(Wawa().fit(annotations).skills, [1, 1, 0.5, 0.75])


def test_iwmv_turns_liars_round():
    truth = np.random.default_rng(0).integers(2, size=200)
    right = np.random.default_rng(1).random((200, 6)) < [0.9, 0.9, 0.9, 0.8, 0.05, 0.05]
    annotations = Annotations.from_dense(np.where(right, truth[:, None], 1 - truth[:, None]))
    accuracy = Wawa(num_rounds=10, weights="iwmv").fit(annotations).accuracy(truth)
    assert accuracy > Wawa(num_rounds=10).fit(annotations).accuracy(truth)
    assert accuracy > MajorityVote().fit(annotations).accuracy(truth) + 0.02


def test_known_classes_count_and_not_what_initial_says_of_them():
    truth = np.random.default_rng(0).integers(2, size=40)
    annotations = Annotations.from_dense(np.stack([truth, 1 - truth], axis=1))
    both = Wawa().fit(annotations, initial=np.eye(2)[truth], gold=np.where(np.arange(40) < 30, 1 - truth, -1))
    np.testing.assert_allclose(both.skills, [0.25, 0.75])


def test_rounds_end_when_no_winner_changes():
    annotations, _ = simulated_crowd(seed=1)
    result = Wawa(num_rounds=1000).fit(annotations)
    assert result.converged
    assert result.num_iterations < 1000
    fewer = Wawa(num_rounds=result.num_iterations - 1).fit(annotations)
    assert fewer.num_iterations == result.num_iterations - 1
    np.testing.assert_array_equal(fewer.labels, result.labels)  # the last round is the one that changed nothing
