"""MaxMIG against the paper's information gain, written out in NumPy with loops over pairs and float64."""

import numpy as np
import pytest
from keras import ops
from slopes import finite_differences
from small_layers import IDS, LABELS, B, K, R, bottleneck, some_kernel

from crowdzoo.layers.max_mig import MaxMIG, MutualInformationGain
from crowdzoo.testing import gradients

PRIOR = np.array([0.5, 0.3, 0.2])


class Views(MaxMIG):
    """What the loss sees as the layer's output, so that its gradients can be asked for."""

    def call(self, inputs, annotators=None, labels=None):
        return self.with_labels(inputs, annotators, labels)


def made(kernel, layer=MaxMIG):
    layer = layer(R)
    layer.build((None, K))
    layer.set_weights([kernel, PRIOR])
    return layer


def aggregated(kernel, ids, labels):
    """g(y): the softmax of the log prior and the sum of W_r[:, y_r]."""
    logits = np.log(PRIOR)
    for r, said in zip(ids, labels, strict=True):
        if r >= 0:
            logits = logits + kernel[r, :, said]
    odds = np.exp(logits)
    return odds / odds.sum()


def paper_loss(p, kernel, ids=IDS, labels=LABELS):
    """-mean_i (1 + log m_ii) + mean over pairs i != j of m_ij, over the tasks with labels."""
    tasks = [i for i in range(len(ids)) if (ids[i] >= 0).any()]
    g = {i: aggregated(kernel, ids[i], labels[i]) for i in tasks}
    m = {(i, j): sum(p[i, k] * g[j][k] / PRIOR[k] for k in range(K)) for i in tasks for j in tasks}
    own = np.mean([1 + np.log(m[i, i]) for i in tasks])
    return -own + np.mean([m[i, j] for i in tasks for j in tasks if i != j])


def test_loss_and_gradients_are_the_papers():
    p, kernel, loss = bottleneck(), some_kernel(), MutualInformationGain()
    views = made(kernel, Views)
    value = ops.convert_to_numpy(loss(LABELS, views(p, annotators=IDS, labels=LABELS)))
    np.testing.assert_allclose(value, paper_loss(p, kernel), rtol=1e-4)
    by_p, (by_kernel,) = gradients(views, lambda both: loss(LABELS, both), p, annotators=IDS, labels=LABELS)
    np.testing.assert_allclose(by_p, finite_differences(lambda p: paper_loss(p, kernel), p), rtol=1e-3, atol=1e-4)
    expected = finite_differences(lambda kernel: paper_loss(p, kernel), kernel)
    np.testing.assert_allclose(by_kernel, expected, rtol=1e-3, atol=1e-4)
    np.testing.assert_array_equal(by_kernel[4], np.zeros((K, K)))
    np.testing.assert_array_equal(by_p[2], np.zeros(K))


@pytest.mark.parametrize("tasks", [[0], [2], [2, 2], [0, 2]])
def test_fewer_than_two_labelled_tasks_cost_nothing_and_move_nothing(tasks):
    p, ids, labels, loss = bottleneck()[tasks], IDS[tasks], LABELS[tasks], MutualInformationGain()
    views = made(some_kernel(), Views)
    assert ops.convert_to_numpy(loss(labels, views(p, annotators=ids, labels=labels))) == 0
    by_p, (by_kernel,) = gradients(views, lambda both: loss(labels, both), p, annotators=ids, labels=labels)
    np.testing.assert_array_equal(by_p, np.zeros_like(by_p))
    np.testing.assert_array_equal(by_kernel, np.zeros_like(by_kernel))


def test_the_posterior_is_the_product_of_both_views_over_the_prior():
    p, kernel = bottleneck(), some_kernel()
    layer = made(kernel)
    joint = ops.convert_to_numpy(layer.log_joint(p, IDS, LABELS))
    views = ops.convert_to_numpy(layer.with_labels(p, IDS, LABELS)).reshape(B, 2, K)
    np.testing.assert_allclose(np.exp(views[:, 0]), p, rtol=1e-5)
    for i in range(B):
        g = aggregated(kernel, IDS[i], LABELS[i])
        np.testing.assert_allclose(np.exp(views[i, 1]), g / PRIOR, rtol=1e-4)
        expected = p[i] * g / PRIOR
        odds = np.exp(joint[i] - joint[i].max())
        np.testing.assert_allclose(odds / odds.sum(), expected / expected.sum(), rtol=1e-4)


def test_matrices_start_at_the_logarithm_of_the_confusions_and_the_prior_at_the_votes():
    layer = MaxMIG(2, smoothing=0.01)
    layer.build((None, K))
    shares = np.array([[1, 0, 0], [0.5, 0.5, 0], [0, 0, 0]])
    counts = np.zeros((2, K, K))
    counts[0] = [[3, 1, 0], [0, 2, 0], [0, 0, 0]]  # never met class 2; annotator 1 nothing at all
    layer.start_from(shares, counts)
    kernel, prior = layer.get_weights()
    third = 1 / 3
    np.testing.assert_allclose(kernel[0], np.log(np.array([[0.75, 0.25, 0], [0, 1, 0], [third] * 3]) + 0.01), rtol=1e-5)
    np.testing.assert_allclose(kernel[1], np.log(np.full((K, K), third) + 0.01), rtol=1e-5)
    np.testing.assert_allclose(prior, np.array([1.51, 0.51, 0.01]) / 2.03, rtol=1e-5)
