import math

import numpy as np
import pytest

from crowdzoo import Annotations, DataError
from crowdzoo.aggregation import Block, ConvergenceWarning, DawidSkene, MajorityVote
from crowdzoo.aggregation.classes.mmsr import MMSR
from crowdzoo.aggregation.engine import pairs
from crowdzoo.aggregation.engine.block import whole_block
from crowdzoo.aggregation.engine.connected import connected_groups
from crowdzoo.aggregation.engine.pairs import Pairs
from crowdzoo.testing.aggregators import simulated_crowd

pytestmark = pytest.mark.filterwarnings("ignore::crowdzoo.aggregation.VotesWarning")


# === Against the paper in loops ===


def agreements(annotations):
    """Dense [R][R]: number of shared tasks, and share of them with the same label."""
    number = annotations.num_annotators
    answers = [{} for _ in range(number)]
    for task, annotator, label in zip(annotations.task_ids, annotations.annotator_ids, annotations.labels, strict=True):
        answers[annotator][task] = label
    shared, agreement = np.zeros((number, number)), np.zeros((number, number))
    for one in range(number):
        for other in range(number):
            both = set(answers[one]) & set(answers[other])
            if one != other and both:
                shared[one, other] = len(both)
                agreement[one, other] = sum(answers[one][task] == answers[other][task] for task in both) / len(both)
    return shared, agreement


def thinned(seed=0, num_classes=3):
    annotations, truth = simulated_crowd(60, 12, num_classes, redundancy=6, seed=seed)
    keep = np.random.default_rng(seed).random(len(annotations)) < 0.6
    columns = (annotations.task_ids[keep], annotations.annotator_ids[keep], annotations.labels[keep])
    names = {"tasks": np.arange(60), "annotators": np.arange(12), "classes": np.arange(num_classes)}
    return Annotations.from_arrays(*columns, **names), truth


def test_pairs_equal_the_dense_matrices():
    annotations, _ = thinned()
    shared, agreement = agreements(annotations)
    found = Pairs.of(whole_block(annotations), 12)
    assert len(found.partners) == (shared > 0).sum()
    np.testing.assert_array_equal(found.shared, shared[found.owners, found.partners])
    np.testing.assert_allclose(found.agreement, agreement[found.owners, found.partners])


def test_the_truth_is_one_more_annotator_where_it_is_known():
    block = Block([0, 0, 1, 2, 3], [0, 1, 0, 1, 1], [0, 1, 1, 0, 0], tasks=[0, 1, 2, 3], gold=[0, 0, -1, -1])
    found = Pairs.of(block, 2)
    table = list(zip(found.owners, found.partners, found.shared, found.agreement, strict=True))
    expected = [(0, 1, 1, 0), (0, 2, 2, 0.5), (1, 0, 1, 0), (1, 2, 1, 0), (2, 0, 2, 0.5), (2, 1, 1, 0)]
    assert sorted(table) == expected


def reference(annotations, trim, rounds):
    """Sizes |s| by trimmed alternating means, in loops over dense matrices; least divisor 1 / sqrt(N)."""
    shared, agreement = agreements(annotations)
    number, num_classes = annotations.num_annotators, annotations.num_classes
    size = abs((num_classes * agreement - 1) / (num_classes - 1))
    least = 1 / math.sqrt(annotations.num_tasks)

    def means(others, own):
        result = list(own)
        for one in range(number):
            partners = [other for other in range(number) if shared[one, other]]
            values = sorted(size[one, other] / max(others[other], least) for other in partners)
            count = math.floor(trim * len(partners))
            below = [value for value in values if value < own[one]]
            above = [value for value in values if value > own[one]]
            equal = [value for value in values if value == own[one]]
            left = below[count:] + equal + above[: max(len(above) - count, 0)]
            if left:
                result[one] = sum(left) / len(left)
        return result

    u, v = [1.0] * number, [1.0] * number
    for _ in range(rounds):
        v = means(u, v)
        u = means(v, u)
    return np.sqrt(np.array(u) * np.array(v))


@pytest.mark.parametrize("trim", [0, 0.25, 0.4])
@pytest.mark.parametrize("rounds", [1, 4])
def test_skills_equal_the_paper_in_loops(trim, rounds):
    annotations, truth = thinned(1)
    with pytest.warns(ConvergenceWarning, match="M-MSR"):
        result = MMSR(trim=trim, max_iter=rounds, tol=0).fit(annotations)
    skill = np.minimum(reference(annotations, trim, rounds), 1 - 1 / math.sqrt(60))
    np.testing.assert_allclose(np.abs(result.skills), skill, rtol=1e-9)
    assert (result.skills > 0).all()
    weight = np.log(2 * (1 + 2 * skill) / (2 - 2 * skill))
    votes = np.zeros((60, 3))
    np.add.at(votes, (annotations.task_ids, annotations.labels), weight[annotations.annotator_ids])
    expected = np.exp(votes) / np.exp(votes).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(result.posteriors, expected, rtol=1e-9)
    np.testing.assert_allclose(result.annotator_accuracy(), (1 + 2 * skill) / 3, rtol=1e-9)
    assert result.expected_accuracy(truth) > 0.75


# === Recovery, adversaries, sparse data ===


def crowd(skills, num_tasks, redundancy, num_classes, seed=0, truth=None):
    """One-coin annotators of given accuracy."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(num_classes, size=num_tasks) if truth is None else truth
    tasks = np.repeat(np.arange(num_tasks), redundancy)
    annotators = np.concatenate([rng.permutation(len(skills))[:redundancy] for _ in range(num_tasks)])
    wrong = (truth[tasks] + rng.integers(1, num_classes, size=len(tasks))) % num_classes
    labels = np.where(rng.random(len(tasks)) < np.asarray(skills)[annotators], truth[tasks], wrong)
    names = {"tasks": np.arange(num_tasks), "annotators": np.arange(len(skills)), "classes": np.arange(num_classes)}
    return Annotations.from_arrays(tasks, annotators, labels, **names), truth


@pytest.mark.parametrize("num_classes", [2, 5])
def test_skills_of_one_coin_annotators_are_found(num_classes):
    accuracy = np.array([0.95, 0.9, 0.8, 0.8, 0.7, 0.7, 0.6, 0.55, 0.3, 0.1])
    annotations, _ = crowd(accuracy, 20000, 5, num_classes)
    result = MMSR().fit(annotations)
    skill = (num_classes * accuracy - 1) / (num_classes - 1)
    np.testing.assert_allclose(result.skills, skill, atol=0.03)
    np.testing.assert_allclose(result.annotator_accuracy(), accuracy, atol=0.03)


def test_colluding_adversaries_are_withstood():
    # Six of twenty always agree with each other: right on three tasks in ten, wrong on the others.
    skills = np.full(20, 0.75)
    annotations, truth = crowd(skills, 1000, 8, 2)
    bad = annotations.annotator_ids < 6
    scheme = np.where(np.arange(1000) % 10 < 3, truth, 1 - truth)
    labels = np.where(bad, scheme[annotations.task_ids], annotations.labels)
    spoiled = Annotations.from_arrays(annotations.task_ids, annotations.annotator_ids, labels)
    robust = MMSR(trim=0.35).fit(spoiled)
    assert robust.expected_accuracy(truth) > 0.82
    assert MajorityVote().fit(spoiled).expected_accuracy(truth) < 0.7
    assert DawidSkene().fit(spoiled).expected_accuracy(truth) < 0.4  # follows those who agree with each other
    np.testing.assert_allclose(robust.skills[6:], 0.5, atol=0.17)
    naive = MMSR(trim=0).fit(spoiled).skills
    assert np.abs(naive[:6]).mean() > np.abs(robust.skills[:6]).mean() + 0.1  # their mutual praise counts


def test_annotators_without_partners_have_the_others_mean_skill():
    annotations = Annotations.from_arrays([0, 0, 0, 1, 1, 1, 2], list("abcabcd"), [0, 0, 0, 1, 1, 0, 1])
    result = MMSR().fit(annotations)
    assert result.skills[3] == pytest.approx(min(result.skills[:3].mean(), 0.5))
    assert result.labels[2] == 1
    alone = MMSR().fit(Annotations.from_arrays([0, 1, 2], list("abc"), [0, 1, 1]))
    np.testing.assert_array_equal(alone.labels, [0, 1, 1])
    np.testing.assert_allclose(alone.skills, 0.5)


def test_connected_groups():
    block = Block([0, 0, 1, 1, 2, 3, 3], [0, 4, 4, 2, 3, 6, 5], [0] * 7)
    groups = connected_groups(block, 8)
    assert groups.dtype == np.int64
    np.testing.assert_array_equal(groups, [0, 1, 0, 2, 0, 3, 3, 4])


def test_unconnected_groups_have_their_own_scale_and_sign():
    first, _ = crowd([0.9, 0.9, 0.8, 0.2, 0.9], 40, 3, 2, seed=1)
    second, _ = crowd([0.8, 0.7, 0.9, 0.8, 0.6, 0.9], 40, 3, 2, seed=2)
    both = Annotations.from_arrays(
        np.concatenate([first.task_ids, second.task_ids + 40]),
        np.concatenate([first.annotator_ids, second.annotator_ids + 5]),
        np.concatenate([first.labels, second.labels]),
    )
    apart = np.concatenate([MMSR().fit(one).skills for one in (first, second)])
    together = MMSR(tol=1e-9).fit(both).skills
    below = apart < 1 - 1 / math.sqrt(40) - 1e-9  # the margin is narrower with more tasks
    np.testing.assert_allclose(together[below], apart[below], atol=1e-4)


def test_known_classes_decide_the_sign_against_the_majority():
    annotations, truth = crowd([0.2, 0.3, 0.2, 0.3, 0.2, 0.8], 200, 4, 2)
    assert MMSR().fit(annotations).expected_accuracy(truth) < 0.3
    result = MMSR().fit(annotations, gold=np.where(np.arange(200) < 40, truth, -1))
    assert (result.labels[40:] == truth[40:]).mean() > 0.7
    assert (result.skills[:5] < 0).all()


def test_too_many_pairs_are_refused(monkeypatch):
    monkeypatch.setattr(pairs, "MAX_PAIRS", 899)
    with pytest.raises(DataError, match=r"900 pairs.*dawid-skene"):
        MMSR().fit(simulated_crowd(60, 8, 2, redundancy=6)[0])


# === Elsewhere ===
