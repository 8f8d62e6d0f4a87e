"""UnionNet against the paper's union of annotators, written out in NumPy with loops and float64."""

import numpy as np
from keras import ops
from slopes import finite_differences
from small_layers import IDS, LABELS, B, K, R, bottleneck, some_kernel

from crowdzoo.layers.union_net import UnionNet
from crowdzoo.testing import gradients


def made(kernel):
    layer = UnionNet(R)
    layer.build((None, K))
    layer.set_weights([kernel])
    return layer


def union(kernel):
    """The paper's matrix T of R K rows and K columns: every column, a true class, is one softmax over all rows."""
    rows = np.array([[kernel[r, k, said] for k in range(K)] for r in range(R) for said in range(K)])
    for k in range(K):
        odds = np.exp(rows[:, k])
        rows[:, k] = odds / odds.sum()
    return rows


def paper_loss(p, kernel):
    """Mean over labels of -log (T f(x_i)) in the row of annotator and label."""
    t = union(kernel)
    costs = [
        -np.log(t[IDS[i, m] * K + LABELS[i, m]] @ p[i]) for i in range(B) for m in range(IDS.shape[1]) if IDS[i, m] >= 0
    ]
    return sum(costs) / len(costs)


def test_answers_are_rows_of_the_union_and_sum_to_one_over_all_annotators():
    p, kernel = bottleneck(), some_kernel()
    answers = np.exp(ops.convert_to_numpy(made(kernel)(p)))
    np.testing.assert_allclose(answers.reshape(B, R * K), p @ union(kernel).T, rtol=1e-4)
    np.testing.assert_allclose(answers.sum(axis=(1, 2)), 1, rtol=1e-5)


def test_loss_and_gradients_are_the_papers():
    p, kernel = bottleneck(), some_kernel()
    layer = made(kernel)
    loss = layer.default_loss()
    value = ops.convert_to_numpy(loss(LABELS, layer(p, annotators=IDS)))
    np.testing.assert_allclose(value, paper_loss(p, kernel), rtol=1e-5)
    by_p, (by_kernel,) = gradients(layer, lambda answers: loss(LABELS, answers), p, annotators=IDS)
    np.testing.assert_allclose(by_p, finite_differences(lambda p: paper_loss(p, kernel), p), rtol=1e-3, atol=1e-5)
    expected = finite_differences(lambda kernel: paper_loss(p, kernel), kernel)
    np.testing.assert_allclose(by_kernel, expected, rtol=1e-3, atol=1e-5)
    assert np.abs(by_kernel[4]).max() > 1e-3  # annotators compete: who does not label becomes less likely


def test_confusions_are_what_an_annotator_says_given_that_they_label():
    kernel = some_kernel()
    kernel[1] += 3  # labels more often, of no other kind
    confusions = made(kernel).annotator_confusions()
    t = union(kernel).reshape(R, K, K)  # [annotator, said, true]
    for r in range(R):
        for k in range(K):
            np.testing.assert_allclose(confusions[r, k], t[r, :, k] / t[r, :, k].sum(), rtol=1e-5)


def test_the_posterior_is_that_of_the_union_of_annotators_and_labels():
    """q_i(k) ~ p_i(k) prod over the task's labels of T[(r, l), k], in float64."""
    p, kernel = bottleneck(), some_kernel()
    kernel[0, 1] += 2  # annotator 0 labels tasks of class 1 more often than others
    t = union(kernel)
    expected, without = p.astype("float64"), p.astype("float64")
    for i, m in np.argwhere(IDS >= 0):
        r, said = IDS[i, m], LABELS[i, m]
        expected[i] *= t[r * K + said]
        without[i] *= t[r * K + said] / t[r * K : (r + 1) * K].sum(axis=0)  # P(l | r, k) alone
    expected /= expected.sum(axis=1, keepdims=True)
    without /= without.sum(axis=1, keepdims=True)
    found = ops.convert_to_numpy(ops.softmax(made(kernel).log_joint(p, IDS, LABELS)))
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    np.testing.assert_allclose(found[2], p[2], rtol=1e-5)  # nobody labelled it
    assert np.abs(expected - without).max() > 0.1
