"""GeoCrowdNet's two volumes against the paper's, written out in NumPy with loops and float64."""

import numpy as np
import pytest
from keras import ops
from slopes import finite_differences
from small_layers import IDS, NOBODY, B, K, R, bottleneck, softmax, some_kernel

from crowdzoo.layers.geo_crowd_net import GeoCrowdNet
from crowdzoo.testing import gradients

FLOOR = 0.1

each_penalty = pytest.mark.parametrize("regularization", ["F", "W"])


class Penalty(GeoCrowdNet):
    """The penalty as the layer's output, so that its gradients can be asked for."""

    def call(self, inputs, annotators=None):
        # both sides take part, so that no backend calls a gradient of 0 missing
        return self._penalty(inputs, annotators) + 0 * (ops.sum(inputs) + ops.sum(self.kernel))


def penalty_layer(regularization, kernel, floor=FLOOR):
    layer = Penalty(R, regularization, floor=floor)
    layer.build((None, K))
    layer.set_weights([kernel])
    return layer


def penalty(regularization, p, ids=None, kernel=None, floor=FLOOR):
    layer = penalty_layer(regularization, some_kernel() if kernel is None else kernel, floor)
    return float(ops.convert_to_numpy(layer(p) if ids is None else layer(p, annotators=ids)))


def paper_penalty(regularization, p, ids, kernel, floor=FLOOR):
    """-log det of the mean of f f^T (times K) over tasks, or of pi pi^T over the distinct annotators of the batch."""
    gram = np.zeros((K, K))
    if regularization == "F":
        tasks = [i for i in range(len(p)) if any(r >= 0 for r in ids[i])]
        for i in tasks:
            for k in range(K):
                for j in range(K):
                    gram[k, j] += K * p[i, k] * p[i, j] / len(tasks)
    else:
        asked = {r for row in ids for r in row if r >= 0}
        for r in asked:
            w = softmax(kernel[r]).T  # the paper's A_r, [said, true]
            gram += w.T @ w / len(asked)
    return -np.log(np.linalg.det(gram + floor * np.eye(K)))


@each_penalty
@pytest.mark.parametrize("floor", [1e-6, 1e-3, 1.0])
def test_the_floor_is_added_to_the_diagonal(regularization, floor):
    p, kernel = bottleneck(), some_kernel()
    expected = paper_penalty(regularization, p, IDS, kernel, floor)
    np.testing.assert_allclose(penalty(regularization, p, IDS, kernel, floor), expected, rtol=1e-3, atol=1e-4)


@each_penalty
def test_the_dense_form_counts_all_annotators_and_tasks(regularization):
    p, everybody = bottleneck(), np.tile(np.arange(R), (B, 1))
    expected = paper_penalty(regularization, p, everybody, some_kernel())
    np.testing.assert_allclose(penalty(regularization, p), expected, rtol=1e-4)


def test_the_gradients_are_the_papers_and_leave_unlabelled_tasks_and_absent_annotators_alone():
    p, kernel = bottleneck(), some_kernel()
    by_p, (not_by_kernel,) = gradients(penalty_layer("F", kernel), lambda value: value, p, annotators=IDS)
    expected = finite_differences(lambda p: paper_penalty("F", p, IDS, kernel), p)
    np.testing.assert_allclose(by_p, expected, rtol=1e-3, atol=1e-4)
    np.testing.assert_array_equal(by_p[2], np.zeros(K))  # nobody labelled task 2
    not_by_p, (by_kernel,) = gradients(penalty_layer("W", kernel), lambda value: value, p, annotators=IDS)
    expected = finite_differences(lambda kernel: paper_penalty("W", p, IDS, kernel), kernel)
    np.testing.assert_allclose(by_kernel, expected, rtol=1e-3, atol=1e-4)
    np.testing.assert_array_equal(by_kernel[4], np.zeros((K, K)))
    assert not not_by_p.any()
    assert not not_by_kernel.any()


@each_penalty
def test_padding_repeated_annotators_and_unlabelled_tasks_do_not_count(regularization):
    p = bottleneck()
    expected = penalty(regularization, p, IDS)
    wider = np.concatenate([IDS, NOBODY], axis=1)
    np.testing.assert_allclose(penalty(regularization, p, wider), expected, rtol=1e-5)
    more_tasks = np.concatenate([p, bottleneck(seed=5)])
    np.testing.assert_allclose(penalty(regularization, more_tasks, np.concatenate([IDS, NOBODY])), expected, rtol=1e-5)
    twice = np.concatenate([IDS, IDS])
    np.testing.assert_allclose(penalty(regularization, np.concatenate([p, p]), twice), expected, rtol=1e-5)
