import math
import warnings

import numpy as np
import pytest

from crowdzoo import Annotations
from crowdzoo.aggregation import ConvergenceWarning, DawidSkene, MajorityVote
from crowdzoo.aggregation.classes.initial import first_counts
from crowdzoo.aggregation.classes.worker_clustering import WorkerClustering, first_members
from crowdzoo.aggregation.engine.block import whole_block
from crowdzoo.testing.aggregators import simulated_crowd

pytestmark = pytest.mark.filterwarnings("ignore::crowdzoo.aggregation.VotesWarning")


# === Against the model in loops ===


def reference(rows, q, members, num_annotators, rounds, prior):
    """Variational EM in loops, from posteriors q [N][K] and members [R][C]; products of powers, no logarithms.

    Returns posteriors, members, cluster matrices `[cluster][true][said]`, and the bound of each round.
    """
    num_clusters, num_classes = len(members[0]), len(q[0])
    seen = {annotator for _, annotator, _ in rows}
    bounds = []
    for _ in range(rounds):
        pi = [[[prior] * num_classes for _ in range(num_classes)] for _ in range(num_clusters)]
        for task, annotator, label in rows:
            for c in range(num_clusters):
                for k in range(num_classes):
                    pi[c][k][label] += members[annotator][c] * q[task][k]
        pi = [[[cell / sum(row) for cell in row] for row in matrix] for matrix in pi]
        tau = [sum(members[r][c] for r in seen) + prior for c in range(num_clusters)]
        tau = [value / sum(tau) for value in tau]
        rho = [sum(row[k] for row in q) + prior for k in range(num_classes)]
        rho = [value / sum(rho) for value in rho]
        members = [[tau[c] for c in range(num_clusters)] for _ in range(num_annotators)]
        for task, annotator, label in rows:
            for c in range(num_clusters):
                for k in range(num_classes):
                    members[annotator][c] *= pi[c][k][label] ** q[task][k]
        members = [[value / sum(row) for value in row] for row in members]
        q = [list(rho) for _ in q]
        for task, annotator, label in rows:
            for k in range(num_classes):
                for c in range(num_clusters):
                    q[task][k] *= pi[c][k][label] ** members[annotator][c]
        q = [[value / sum(row) for value in row] for row in q]
        # the bound from its definition: E[log p(labels, truths, clusters)] + entropies + log priors
        value = -sum(p * math.log(p) for row in q for p in row if p)
        value += sum(row[k] * math.log(rho[k]) for row in q for k in range(num_classes))
        for r in seen:
            value += sum(p * math.log(tau[c] / p) for c, p in enumerate(members[r]) if p)
        for task, r, label in rows:
            for c in range(num_clusters):
                for k in range(num_classes):
                    value += members[r][c] * q[task][k] * math.log(pi[c][k][label])
        value += prior * sum(math.log(cell) for matrix in pi for row in matrix for cell in row)
        value += prior * sum(math.log(share) for share in (*tau, *rho))
        bounds.append(value)
    return q, members, pi, bounds


@pytest.mark.parametrize(("num_clusters", "num_classes"), [(2, 3), (3, 2)])
def test_variational_em_equals_the_model_in_loops(num_clusters, num_classes):
    annotations, _ = simulated_crowd(25, 7, num_classes, redundancy=3, seed=1)
    rows = [
        tuple(int(code) for code in row)
        for row in zip(annotations.task_ids, annotations.annotator_ids, annotations.labels, strict=True)
    ]
    shares = MajorityVote().fit(annotations).posteriors
    members = first_members(first_counts([whole_block(annotations)], 7, num_classes, shares), num_clusters)
    assert (members.sum(axis=0) > 0).all()
    q, members, pi, bounds = reference(rows, shares.tolist(), members.tolist(), 7, 6, 0.2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        result = WorkerClustering(num_clusters=num_clusters, prior=0.2, max_iter=5, tol=0).fit(annotations)
    np.testing.assert_allclose(result.posteriors, q, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(result.history, bounds, rtol=1e-10)
    np.testing.assert_allclose(result.confusions, np.tensordot(np.array(members), np.array(pi), axes=1), rtol=1e-8)
    chosen = np.array(members).argmax(axis=1)
    same = result.clusters[:, None] == result.clusters
    np.testing.assert_array_equal(same, chosen[:, None] == chosen)


def test_one_cluster_is_dawid_skene_of_one_annotator_who_answers_again_and_again():
    annotations, _ = simulated_crowd(60, 6, 3, seed=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        result = WorkerClustering(num_clusters=1, max_iter=30, tol=0).fit(annotations)
    assert (result.clusters == 0).all()
    assert np.ptp(result.confusions, axis=0).max() == 0
    # the fixed point: counts of all annotators together
    said = np.zeros((3, 3))
    np.add.at(said.T, annotations.labels, result.posteriors[annotations.task_ids])
    expected = (said + 0.01) / (said + 0.01).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(result.confusions[0], expected, atol=1e-3)


# === Recovery ===


def three_kinds(seed=0, num_tasks=600, num_annotators=150, redundancy=4):
    """Good annotators, some who say the next class, and some who say class 0 whatever it is; 16 answers each."""
    rng = np.random.default_rng(seed)
    kinds = rng.integers(3, size=num_annotators)
    matrices = np.array(
        [
            0.85 * np.eye(4) + 0.05 - 0.05 * np.eye(4),
            np.roll(np.eye(4), 1, axis=1) * 0.7 + 0.075,
            np.tile([0.85, 0.05, 0.05, 0.05], (4, 1)),
        ]
    )
    matrices /= matrices.sum(axis=2, keepdims=True)
    kinds[: num_annotators // 2] = 0
    truth = rng.integers(4, size=num_tasks)
    tasks = np.repeat(np.arange(num_tasks), redundancy)
    annotators = np.concatenate([rng.permutation(num_annotators)[:redundancy] for _ in range(num_tasks)])
    rows = matrices[kinds[annotators], truth[tasks]].cumsum(axis=1)
    labels = (rng.random(len(tasks))[:, None] > rows).sum(axis=1)
    return Annotations.from_arrays(tasks, annotators, labels), truth, kinds, matrices


def test_clusters_of_a_simulated_crowd_are_found():
    annotations, truth, kinds, matrices = three_kinds()
    kinds = kinds[annotations.annotators]  # the table's codes are in order of names
    result = WorkerClustering(num_clusters=4).fit(annotations)
    # kinds that agree with the vote equally rarely begin together, so one cluster more than kinds
    for cluster in range(4):
        assert len(set(kinds[result.clusters == cluster])) == 1
    assert kinds[result.clusters == 0][0] == 0  # cluster 0 is right most often
    separate = DawidSkene().fit(annotations)
    error, separate_error = (np.abs(one.confusions - matrices[kinds]).mean() for one in (result, separate))
    assert error < 0.03
    assert separate_error > 0.1
    assert result.expected_accuracy(truth) > separate.expected_accuracy(truth) + 0.01
    assert result.expected_accuracy(truth) > MajorityVote().fit(annotations).expected_accuracy(truth) + 0.1


def test_an_annotator_without_annotations_is_in_the_largest_cluster():
    annotations, _, _, _ = three_kinds()
    columns = (annotations.task_ids, annotations.annotator_ids, annotations.labels)
    more = Annotations.from_arrays(
        *columns, tasks=np.arange(600), annotators=np.arange(annotations.num_annotators + 1), classes=np.arange(4)
    )
    before, after = WorkerClustering(num_clusters=3).fit(annotations), WorkerClustering(num_clusters=3).fit(more)
    assert after.clusters[-1] == np.bincount(before.clusters).argmax()
    np.testing.assert_allclose(after.posteriors, before.posteriors, atol=1e-9)
    np.testing.assert_allclose(after.history, before.history, rtol=1e-12)


# === Real crowds ===
