"""TraceRegularization against the paper's loss, written out in NumPy with loops and float64."""

import numpy as np
from drawn_crowds import a_crowd
from keras import ops
from slopes import finite_differences
from small_layers import IDS, NOBODY, B, K, R, bottleneck, one_layer_model, some_kernel

from crowdzoo.layers.confusion_matrices import ConfusionMatrices
from crowdzoo.layers.trace_regularization import TraceRegularization
from crowdzoo.testing import gradients


class Penalty(TraceRegularization):
    """The penalty as the layer's output, so that its gradients can be asked for."""

    def call(self, inputs, annotators=None):
        # the bottleneck takes part, so that no backend calls a gradient of 0 missing
        return self._mean_trace(annotators) + 0 * ops.sum(inputs)


def penalty_layer():
    layer = Penalty(R)
    layer.build((None, K))
    layer.set_weights([some_kernel()])
    return layer


def paper_penalty(asked, kernel):
    """Mean over annotators of sum_k pi_r[k, k]."""
    traces = []
    for r in asked:
        odds = np.exp(kernel[r])
        traces.append(sum(odds[k, k] / odds[k].sum() for k in range(K)))
    return sum(traces) / len(traces)


def test_the_penalty_is_the_mean_trace_of_the_distinct_annotators():
    layer, p = penalty_layer(), bottleneck()
    sparse = float(ops.convert_to_numpy(layer(p, annotators=IDS)))
    np.testing.assert_allclose(sparse, paper_penalty([0, 1, 2, 3], some_kernel()), rtol=1e-5)
    dense = float(ops.convert_to_numpy(layer(p)))
    np.testing.assert_allclose(dense, paper_penalty(range(R), some_kernel()), rtol=1e-5)


def paper_loss(p, labels, kernel, strength):
    """The paper's equation 4 on a batch: labels' costs summed over a task, mean over tasks, plus all traces."""
    confusions = np.exp(kernel) / np.exp(kernel).sum(axis=2, keepdims=True)
    costs = [
        sum(-np.log(p[i] @ confusions[IDS[i, m], :, labels[i, m]]) for m in range(IDS.shape[1]) if IDS[i, m] >= 0)
        for i in range(B)
        if (IDS[i] >= 0).any()
    ]
    return np.mean(costs) + strength * sum(np.trace(confusions[r]) for r in range(R))


def test_the_sum_of_traces_is_the_papers_loss_on_sparse_data_and_their_mean_is_weaker():
    p, kernel, strength = bottleneck(), some_kernel(), 0.3
    labels = np.where(IDS >= 0, np.array([[0, 2, 0], [1, 0, 0], [0, 0, 0], [2, 2, 1]]), -1)
    labels_a_task = 6 / 3  # M: three tasks have labels
    penalties = {}
    for traces in ("mean", "sum"):
        layer = TraceRegularization(R, strength, traces=traces)
        layer.build((None, K))
        layer.set_weights([kernel])
        costs = float(ops.convert_to_numpy(layer.default_loss()(labels, layer(p, annotators=IDS))))
        penalties[traces] = float(ops.convert_to_numpy(layer.losses[0]))
        if traces == "sum":
            found = labels_a_task * (costs + penalties["sum"])
            np.testing.assert_allclose(found, paper_loss(p, labels, kernel, strength), rtol=1e-5)
    # the mean is over those who labelled: the ratio is R / M where they are as everybody
    everybody = paper_penalty(range(R), kernel)
    expected = R / labels_a_task * everybody / paper_penalty([0, 1, 2, 3], kernel)
    np.testing.assert_allclose(penalties["sum"] / penalties["mean"], expected, rtol=1e-5)


class Sum(TraceRegularization):
    """The penalty of all annotators as the layer's output."""

    def call(self, inputs, annotators=None):
        return self._penalty(annotators) + 0 * ops.sum(inputs)


def test_the_sum_of_traces_moves_absent_annotators_too_and_needs_a_label():
    layer = Sum(R, traces="sum")
    layer.build((None, K))
    layer.set_weights([some_kernel()])
    _, (by_kernel,) = gradients(layer, lambda value: value, bottleneck(), annotators=IDS)
    expected = finite_differences(lambda kernel: R / 2 * paper_penalty(range(R), kernel), some_kernel())
    np.testing.assert_allclose(by_kernel, expected, rtol=1e-3, atol=1e-6)
    assert np.abs(by_kernel[4]).max() > 1e-3
    assert float(ops.convert_to_numpy(layer(bottleneck(), annotators=NOBODY))) == 0


def test_the_gradient_is_the_papers_and_leaves_absent_annotators_alone():
    _, (by_kernel,) = gradients(penalty_layer(), lambda value: value, bottleneck(), annotators=IDS)
    expected = finite_differences(lambda kernel: paper_penalty([0, 1, 2, 3], kernel), some_kernel())
    np.testing.assert_allclose(by_kernel, expected, rtol=1e-3, atol=1e-6)
    np.testing.assert_array_equal(by_kernel[4], np.zeros((K, K)))


def test_the_penalty_is_added_to_the_loss_times_the_strength():
    x, _, annotations = a_crowd(40)
    plain, priced = one_layer_model(ConfusionMatrices(R, 0.7)), one_layer_model(TraceRegularization(R, 0.5, 0.7))
    difference = priced.evaluate(x, annotations, verbose=0) - plain.evaluate(x, annotations, verbose=0)
    np.testing.assert_allclose(difference, 0.5 * K * 0.7, rtol=1e-4)  # all matrices start at the same trace
