"""How settled labels are, against loops over all states, and what further answers are worth."""

from itertools import product

import numpy as np
import pytest

from crowdzoo import Annotations
from crowdzoo.aggregation import DawidSkene, Robust
from crowdzoo.quality import consensus_of, next_annotations, settlement, with_settled, worth_asking
from crowdzoo.quality import settled as module
from crowdzoo.quality.settled import (
    PULLED,
    SMALLEST,
    STRENGTH,
    USUAL,
    VAGUE,
    _expected,
    settled_interval,
    with_range,
)


def crowd(seed, tasks=300, classes=5, annotators=12, accuracy=0.85, per_task=4):
    """Independent annotators who are correct with the same probability; the truth, and what everybody would say."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(classes, size=tasks)
    wrong = (truth + rng.integers(1, classes, size=(annotators, tasks))) % classes
    labels = np.where(rng.random((annotators, tasks)) < accuracy, truth, wrong)
    who = np.argsort(rng.random((tasks, annotators)), axis=1)[:, :per_task].ravel()
    return truth, labels, np.repeat(np.arange(tasks), per_task), who


def table(tasks, who, labels, classes=5):
    return Annotations.from_arrays(tasks, who, labels[who, tasks], classes=range(classes))


def by_loops(annotations, posteriors):
    """Posteriors of the first iteration: every state of every task, written out."""
    classes = annotations.num_classes
    seen = posteriors[annotations.task_ids]
    counts = np.zeros((annotations.num_annotators, classes, classes))
    for row, (who, label) in enumerate(zip(annotations.annotator_ids, annotations.labels, strict=True)):
        counts[who, :, label] += seen[row]
    prior = STRENGTH * _expected(counts)
    start = (posteriors.sum(axis=0) + 1) / (posteriors.sum() + classes)
    found = np.zeros_like(posteriors)
    for task in range(annotations.num_tasks):
        rows = np.flatnonzero(annotations.task_ids == task)
        says = np.full((len(rows), classes + 1), 1 / classes)
        for i, row in enumerate(rows):
            who, label = annotations.annotator_ids[row], annotations.labels[row]
            for k in range(classes):
                total = counts[who, k].sum() - seen[row, k] + STRENGTH + SMALLEST * classes
                says[i, k] = (counts[who, k, label] - seen[row, k] + prior[who, k, label] + SMALLEST) / total
        for k, other, h in product(range(classes), range(classes + 1), range(len(USUAL))):
            vague = other == classes
            if other == k or (h == 0 and not vague):
                continue
            share = VAGUE[h] if vague else PULLED[h]
            weight = start[k] * USUAL[h] / (1 if vague else classes - 1)
            found[task, k] += weight * np.prod((1 - share) * says[:, k] + share * says[:, other])
    return found / found.sum(axis=1, keepdims=True)


def test_an_iteration_sums_over_every_consensus_class_that_pulls_and_share(monkeypatch):
    _truth, labels, tasks, who = crowd(0, tasks=25, classes=3)
    annotations = table(tasks, who, labels, 3)
    posteriors = Robust().fit(annotations).posteriors
    monkeypatch.setattr(module, "ITERATIONS", 1)
    np.testing.assert_allclose(
        consensus_of(annotations, posteriors).posteriors, by_loops(annotations, posteriors), rtol=1e-9
    )


def test_rows_of_all_matrices_sum_to_one_and_nothing_is_nan():
    annotations = Annotations.from_arrays(
        ["a", "a", "b", "c", "c"],
        ["x", "y", "x", "y", "z"],
        [0, 0, 1, 1, 2],
        classes=range(4),
        tasks=["a", "b", "c", "d"],
    )
    result = Robust().fit(annotations)
    found = settlement(annotations, result)
    np.testing.assert_allclose(found.consensus.posteriors.sum(axis=1), 1)
    np.testing.assert_allclose(found.consensus.confusions.sum(axis=2), 1)
    np.testing.assert_allclose(found.consensus.seen.sum(axis=(1, 2)), 1)
    answers = found.consensus.answers(np.array([0, 3]), np.array([[0, 2], [1, 1]]))
    np.testing.assert_allclose(answers.sum(axis=3), 1)
    assert np.isfinite(found.settled).all()
    assert found.further[3] != 0  # nobody has answered it


def test_more_equal_answers_are_more_settled_and_a_tie_is_least():
    _truth, labels, tasks, who = crowd(2)
    annotations = table(tasks, who, labels)
    found = settlement(annotations, Robust().fit(annotations)).settled
    votes = np.zeros((300, 5))
    np.add.at(votes, (tasks, labels[who, tasks]), 1)
    top = np.sort(votes, axis=1)[:, ::-1]
    means = [found[(top[:, 0] == most) & (top[:, 1] == second)].mean() for most, second in ((4, 0), (3, 1), (2, 2))]
    assert means == sorted(means, reverse=True)
    assert means[0] > 0.95
    assert means[2] < 0.7


def test_of_an_easy_crowd_few_tasks_are_worth_further_answers_and_the_questions_end():
    truth, labels, tasks, who = crowd(3)
    accuracies = []
    for _ in range(12):
        annotations = table(tasks, who, labels)
        result = Robust().fit(annotations)
        found = settlement(annotations, result)
        redo = worth_asking(found.settled, found.further)
        accuracies.append((result.labels == truth).mean())
        if not redo.any():
            break
        assert redo.sum() <= 60
        asked = next_annotations(
            found.consensus.posteriors, found.consensus.answers, 60, annotations=annotations, per_task=1, sure=~redo
        )
        tasks, who = np.concatenate([tasks, asked.tasks]), np.concatenate([who, asked.annotators])
    else:
        pytest.fail("the questions do not end")
    assert len(tasks) < 1200 + 150
    assert accuracies[-1] > accuracies[0]
    assert accuracies[-1] > 0.985


def test_a_task_is_worth_asking_about_where_its_answers_cost_less_than_what_they_put_right():
    settled, further = np.array([0.5, 0.84, 0.94, 0.99, 0.5]), np.array([4, 2, 1, 0, -1])
    # (.95 - .5) * 20 = 9 > 4; .11 * 20 = 2.2 > 2; .01 * 20 = .2 < 1; settled; answers tell nothing
    assert worth_asking(settled, further).tolist() == [True, True, False, False, False]
    assert worth_asking(settled, further, worth=5).tolist() == [False] * 5
    # the mean is .754; the first adds .45 / 5 = .09, which is enough for .8
    assert worth_asking(settled, further, target=0.8).tolist() == [True, False, False, False, False]


def test_questions_are_found_where_there_are_more_classes_than_candidates():
    _, labels, tasks, who = crowd(6, tasks=80, classes=9, per_task=2)
    annotations = table(tasks, who, labels, 9)
    found = settlement(annotations, Robust().fit(annotations))
    answers = found.consensus.answers(np.arange(80), np.tile(np.arange(12), (80, 1)))
    np.testing.assert_allclose(answers.sum(axis=3), 1)
    assert (
        len(next_annotations(found.consensus.posteriors, found.consensus.answers, 30, annotations=annotations).tasks)
        == 30
    )


def test_the_order_of_rows_and_the_method_that_gave_the_labels_do_not_matter():
    _truth, labels, tasks, who = crowd(4, tasks=120)
    annotations = table(tasks, who, labels)
    found = with_settled(annotations, Robust().fit(annotations))
    order = np.random.default_rng(0).permutation(len(tasks))
    again = annotations.select_rows(order)
    np.testing.assert_allclose(with_settled(again, Robust().fit(again)).settled, found.settled, atol=1e-9)
    other = with_settled(annotations, DawidSkene().fit(annotations))
    same = other.labels == found.labels
    np.testing.assert_allclose(other.settled[same], found.settled[same])


def test_what_does_not_fit_into_memory_stays_as_it_is(monkeypatch):
    _, labels, tasks, who = crowd(8, tasks=50)
    annotations = table(tasks, who, labels)
    result = Robust().fit(annotations)
    assert with_settled(annotations, result).settled is not None
    monkeypatch.setattr(module, "MOST_CELLS", 50 * 6 * 5 - 1)
    assert with_settled(annotations, result) is result


def test_with_many_tasks_some_are_drawn_for_the_difficulty(monkeypatch):
    _truth, labels, tasks, who = crowd(5, tasks=600)
    annotations = table(tasks, who, labels)
    result = Robust().fit(annotations)
    whole = settlement(annotations, result).settled
    monkeypatch.setattr(module, "DRAWN", 300)
    np.testing.assert_allclose(settlement(annotations, result).settled, whole, atol=0.06)


def test_the_range_of_further_answers_is_what_replays_needed():
    assert with_range(70) == "70 (63 to 126)"
    assert with_range(1234.5, 2) == "1,234.50 (1,111.05 to 2,222.10)"


def test_labels_that_gold_fixes_are_settled_and_teach_what_annotators_are_like():
    truth, labels, tasks, who = crowd(9, tasks=120, per_task=3)
    annotations = table(tasks, who, labels)
    gold = np.where(np.arange(120) < 60, truth, -1)
    gold[0] = (truth[0] + 1) % 5
    result = Robust().fit(annotations, gold)
    found = settlement(annotations, result, gold)
    assert (found.settled[:60] == 1).all()
    assert (found.further[:60] == 0).all()
    assert (found.settled[60:] < 1).all()
    np.testing.assert_allclose(found.consensus.posteriors[:60], np.eye(5)[gold[:60]])
    kept = with_settled(annotations, result, gold)
    np.testing.assert_array_equal(kept.settled, found.settled)
    assert not worth_asking(kept.settled, kept.answers_to_settle, worth=1000)[:60].any()
    # annotators who are right on gold, and always outvoted without it
    crowds = Annotations.from_arrays(
        np.repeat(np.arange(40), 5), np.tile(np.arange(5), 40), np.tile([1, 1, 0, 0, 0], 40), classes=range(2)
    )
    start = np.tile([0.6, 0.4], (40, 1))
    right = consensus_of(crowds, start, np.ones(40, np.int64)).confusions
    assert right[:2, 1, 1].min() > 0.8 > 0.4 > right[2:, 1, 1].max()
    assert consensus_of(crowds, start).confusions[:2, 1, 1].max() < 0.8


def test_gold_of_a_class_that_nobody_names_is_the_consensus():
    tasks = np.repeat(np.arange(30), 2)
    annotations = Annotations.from_arrays(tasks, np.tile([0, 1], 30), tasks % 8, classes=range(9))
    gold = np.full(30, -1)
    gold[3] = 8
    result = Robust().fit(annotations, gold)
    assert consensus_of(annotations, result.posteriors, gold).posteriors[3, 8] == 1


def test_the_interval_of_the_settled_share_is_made_of_its_measured_error():
    low, high = module.SHARE_ENDS
    # sqrt(.9 * .1) = .3, and of a hundred tasks 1.645 standard errors are .1645 of it
    both = 0.9 - 0.3 * np.hypot(low, 0.1645), 0.9 + 0.3 * np.hypot(high, 0.1645)
    np.testing.assert_allclose(settled_interval(0.9, 100), both, rtol=1e-4)
    np.testing.assert_allclose(settled_interval(0.9, 10**9), (0.9 + 0.3 * low, 0.9 + 0.3 * high), rtol=1e-4)
    assert settled_interval(1.0, 5) == (1, 1)
    assert settled_interval(0.5, 1) == (0, 1)
