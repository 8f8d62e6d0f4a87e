import numpy as np
from drawn_crowds import simulate_annotations

EXPERT = np.eye(3)
# says class 1 for every 0, and never the other way round: wrong orientation would show
ASYMMETRIC = np.array([[0.0, 1.0, 0.0], [0.0, 1.0, 0.0], [0.2, 0.3, 0.5]])


def test_an_expert_is_always_right_and_orientation_is_true_then_said():
    gold = np.arange(300) % 3
    annotations = simulate_annotations(gold, [EXPERT, ASYMMETRIC], redundancy=2, seed=0)
    dense = annotations.to_dense()
    assert np.array_equal(dense[:, 0], gold)
    assert (dense[gold == 0, 1] == 1).all()
    assert (dense[gold == 1, 1] == 1).all()


def test_shares_of_answers_approach_the_matrices():
    gold = np.arange(30_000) % 3
    annotations = simulate_annotations(gold, [EXPERT, ASYMMETRIC], redundancy=2, seed=1)
    counted = np.zeros((2, 3, 3))
    np.add.at(counted, (annotations.annotator_ids, gold[annotations.task_ids], annotations.labels), 1 / 10_000)
    np.testing.assert_allclose(counted.sum(axis=2), 1)
    # the standard error of a share is at most sqrt(.25 / 10000) = .005
    np.testing.assert_allclose(counted[1], ASYMMETRIC, atol=0.02)


def test_the_seed_decides():
    gold = np.arange(100) % 3
    first, again, other = (simulate_annotations(gold, [ASYMMETRIC] * 5, 3, seed) for seed in (4, 4, 5))
    assert first == again
    assert first != other
