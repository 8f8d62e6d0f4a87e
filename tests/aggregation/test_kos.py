import math

import numpy as np
import pytest

from crowdzoo import Annotations, DataError
from crowdzoo.aggregation import Block
from crowdzoo.aggregation.classes.kos import KOS
from crowdzoo.aggregation.engine.connected import connected_groups
from crowdzoo.testing.aggregators import simulated_crowd

pytestmark = pytest.mark.filterwarnings("ignore::crowdzoo.aggregation.VotesWarning")


# === Against the paper in loops ===


def reference(rows, num_tasks, num_annotators, rounds, mean, centre):
    """The paper's updates on a dictionary of edges, from messages of one, and the scale of the posterior."""
    sign = {(task, annotator): 1.0 - 2.0 * label for task, annotator, label in rows}
    answer = dict(sign)
    if centre:
        for annotator in range(num_annotators):
            own = [edge for edge in sign if edge[1] == annotator]
            for edge in own:
                answer[edge] = sign[edge] - sum(sign[other] for other in own) / len(own)
    y = dict.fromkeys(sign, 1.0)
    for _ in range(rounds):
        x, new = {}, {}
        for task, annotator in sign:
            said = [answer[edge] * y[edge] for edge in sign if edge[0] == task and edge[1] != annotator]
            x[task, annotator] = sum(said) / (max(len(said), 1) if mean else 1)
        for task, annotator in sign:
            did = [answer[edge] * x[edge] for edge in sign if edge[1] == annotator and edge[0] != task]
            new[task, annotator] = sum(did) / (max(len(did), 1) if mean else 1)
        size = math.sqrt(sum(value**2 for value in new.values()) / len(new))
        y = {edge: value / size for edge, value in new.items()}
    agreement = {}
    for task, annotator in sign:
        own = [edge for edge in sign if edge[1] == annotator and edge[0] != task]
        agreement[task, annotator] = sum(
            sign[edge] * (int(x[edge] > 1e-12) - int(x[edge] < -1e-12)) for edge in own
        ) / max(len(own), 1)
    scale = sum(y[edge] * agreement[edge] for edge in y) / sum(value**2 for value in y.values())
    odds = [2 * scale * sum(answer[edge] * y[edge] for edge in y if edge[0] == task) for task in range(num_tasks)]
    return [1 / (1 + math.exp(-value)) for value in odds]


@pytest.mark.parametrize("rounds", [1, 2, 7])
@pytest.mark.parametrize("messages", ["mean", "sum"])
@pytest.mark.parametrize("centre", [False, True])
def test_messages_equal_the_paper_in_loops(rounds, messages, centre):
    annotations, _ = simulated_crowd(30, 7, 2, redundancy=4, seed=3)
    keep = np.random.default_rng(0).random(len(annotations)) < 0.8  # not a regular graph
    columns = (annotations.task_ids[keep], annotations.annotator_ids[keep], annotations.labels[keep])
    annotations = Annotations.from_arrays(*columns, tasks=np.arange(30), annotators=np.arange(7), classes=[0, 1])
    expected = reference(list(zip(*columns, strict=True)), 30, 7, rounds, messages == "mean", centre)
    result = KOS(max_iter=rounds, tol=0, messages=messages, centre=centre).fit(annotations)
    np.testing.assert_allclose(result.posteriors[:, 0], expected, rtol=1e-9)


def test_messages_found_by_hand():
    # Tasks 0 and 1, annotators a and b say the same of both; c the opposite. From ones: x[i -> a] = x[i -> b] is
    # s(b) + s(c) = 0, x[i -> c] = 2; so y[. -> a] = y[. -> b] = 0 and y[. -> c] = -2: c is known to be wrong.
    annotations = Annotations.from_arrays([0, 0, 0, 1, 1, 1], list("abcabc"), [0, 0, 1, 1, 1, 0])
    result = KOS(max_iter=1).fit(annotations)
    np.testing.assert_array_equal(result.labels, [0, 1])
    assert result.skills[2] == -1
    np.testing.assert_allclose(result.skills[:2], 0)


# === The sign, the graph, the start ===


def test_each_unconnected_group_has_its_own_sign_and_scale():
    first, second = simulated_crowd(40, 8, 2, seed=1)[0], simulated_crowd(50, 9, 2, seed=2)[0]
    both = Annotations.from_arrays(
        np.concatenate([first.task_ids, second.task_ids + 40]),
        np.concatenate([first.annotator_ids, second.annotator_ids + 8]),
        np.concatenate([first.labels, second.labels]),
        tasks=np.arange(90),
        annotators=np.arange(17),
        classes=[0, 1],
    )
    apart = [KOS(max_iter=9, tol=0).fit(one).posteriors for one in (first, second)]
    np.testing.assert_allclose(KOS(max_iter=9, tol=0).fit(both).posteriors, np.concatenate(apart), atol=1e-12)


def test_known_classes_decide_the_sign_against_the_majority():
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=60)
    tasks, annotators = np.repeat(np.arange(60), 5), np.tile(np.arange(5), 60)
    labels = np.where(rng.random(300) < 0.2, truth[tasks], 1 - truth[tasks])  # most answers are wrong
    annotations = Annotations.from_arrays(tasks, annotators, labels)
    gold = np.where(np.arange(60) < 30, truth, -1)
    assert KOS().fit(annotations).expected_accuracy(truth) < 0.2
    result = KOS().fit(annotations, gold=gold)
    assert (result.labels[30:] == truth[30:]).mean() > 0.8
    assert (result.skills < -0.3).all()


def test_connected_groups():
    block = Block([0, 0, 1, 1, 2, 3, 3], [0, 4, 4, 2, 3, 6, 5], [0] * 7)
    groups = connected_groups(block, 8)
    assert groups.dtype == np.int64
    np.testing.assert_array_equal(groups, [0, 1, 0, 2, 0, 3, 3, 4])


# === Elsewhere ===


# === Settings and data ===


def test_more_than_two_classes_are_refused_with_a_way_out():
    with pytest.raises(DataError, match=r"5 classes.*dawid-skene"):
        KOS().fit(simulated_crowd(num_classes=5)[0])
