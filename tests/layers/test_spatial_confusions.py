"""Crowd layers on masks, against their equations pixel by pixel in NumPy with loops and float64."""

import numpy as np
import pytest
from keras import ops
from small_layers import softmax

from crowdzoo.layers import ConfusionMatrices, DeepEM, SpatialConfusions, TraceRegularization
from crowdzoo.losses import MaskedCrowdCrossentropy
from crowdzoo.testing import LAYER_CHECKS, LayerCase, gradients
from crowdzoo.training.recipes.descent import is_at_start

B, H, W, K, R, D = 3, 4, 5, 3, 4, 2
# annotator 3 labels nothing; image 2 nobody labelled
IDS = np.array([[0, 2], [1, -1], [-1, -1]], "int32")
LAYERS = {
    "ccem": (ConfusionMatrices, {"kind": "segmentation"}),
    "trace": (TraceRegularization, {"kind": "segmentation", "strength": 0.3}),
    "spatial": (SpatialConfusions, {"strength": 0.3, "filters": [3]}),
}


def probabilities(seed=0):
    return np.random.default_rng(seed).dirichlet(np.ones(K), size=(B, H, W)).astype("float32")


def features(seed=1):
    return np.random.default_rng(seed).normal(size=(B, H, W, D)).astype("float32")


def some_labels(seed=2):
    """Labels `[B, H, W, M]`; a pixel in three is missing."""
    labels = np.random.default_rng(seed).integers(-K // 2, K, (B, H, W, IDS.shape[1])).clip(-1)
    return np.where(IDS[:, None, None] >= 0, labels, -1).astype("int32")


def made(name, seed=3, **more):
    """A layer with random weights, what it takes beside the bottleneck, and A `[B, H, W, R, K, K]` by hand."""
    layer_class, arguments = LAYERS[name]
    layer = layer_class(R, **{**arguments, **more})
    extra = {"features": features()} if layer.traits.uses_features else {}
    layer(probabilities(), **extra)
    rng = np.random.default_rng(seed)
    weights = [rng.normal(size=weight.shape).astype("float32") for weight in layer.get_weights()]
    layer.set_weights(weights)
    logits = np.zeros((B, H, W, R, K, K)) + ops.convert_to_numpy(layer.kernel)
    if extra:
        hidden = features().astype("float64")
        if layer.filters:
            filters, bias = (next(each for each in weights if each.shape == shape) for shape in ((3, 3, D, 3), (3,)))
            padded = np.pad(hidden, [(0, 0), (1, 1), (1, 1), (0, 0)])
            hidden = np.zeros((B, H, W, filters.shape[-1]))
            for b, h, w in np.ndindex(B, H, W):
                hidden[b, h, w] = np.maximum(
                    0, np.sum(padded[b, h : h + 3, w : w + 3, :, None] * filters, (0, 1, 2)) + bias
                )
        slope = ops.convert_to_numpy(layer.slope)
        for b, h, w, r in np.ndindex(B, H, W, R):
            logits[b, h, w, r] += sum(hidden[b, h, w, d] * slope[r, d] for d in range(slope.shape[1]))
    return layer, extra, softmax(logits)


@pytest.mark.parametrize("check", LAYER_CHECKS.values(), ids=LAYER_CHECKS)
@pytest.mark.parametrize(
    ("name", "sparse", "more"),
    [("ccem", True, {}), ("ccem", False, {}), ("trace", True, {}), ("spatial", True, {"filters": []}),
     ("spatial", True, {}), ("spatial", False, {})],
)  # fmt: skip
def test_the_battery_passes_on_masks(name, sparse, more, check):
    layer_class, arguments = LAYERS[name]
    calls = {"annotators": IDS} if sparse else {}
    calls |= {"features": features()} if layer_class.traits.uses_features else {}
    shape = (B, H, W, IDS.shape[1] if sparse else R, K)
    check(LayerCase(layer_class, {"num_annotators": R, **arguments, **more}, probabilities(), shape, calls))


@pytest.mark.parametrize("more", [{}, {"filters": []}], ids=["convolution", "no convolution"])
@pytest.mark.parametrize("name", LAYERS)
def test_what_an_annotator_says_at_a_pixel_is_a_mixture_of_the_matrix_rows(name, more):
    layer, extra, confusions = made(name, **(more if name == "spatial" else {}))
    p = probabilities()
    everybody = np.exp(ops.convert_to_numpy(layer(p, **extra)))
    some = np.exp(ops.convert_to_numpy(layer(p, annotators=IDS, **extra)))
    assert everybody.shape == (B, H, W, R, K)
    for b, h, w, r in np.ndindex(B, H, W, R):
        expected = p[b, h, w] @ confusions[b, h, w, r]
        np.testing.assert_allclose(everybody[b, h, w, r], expected, rtol=1e-4)
        for m in np.flatnonzero(IDS[b] == r):
            np.testing.assert_allclose(some[b, h, w, m], expected, rtol=1e-4)


@pytest.mark.parametrize("name", LAYERS)
def test_the_loss_is_that_of_the_labelled_pixels_plus_the_trace(name):
    layer, extra, confusions = made(name)
    labels, p = some_labels(), probabilities()
    found = float(ops.convert_to_numpy(layer.default_loss()(labels, layer(p, annotators=IDS, **extra))))
    costs = [
        -np.log(p[b, h, w] @ confusions[b, h, w, IDS[b, m], :, labels[b, h, w, m]])
        for b, h, w, m in np.argwhere(labels >= 0)
    ]
    np.testing.assert_allclose(found, np.mean(costs), rtol=1e-5)
    assert 0 < (labels >= 0).sum() < 3 * H * W
    if name == "ccem":
        return
    # the mean over pixels of tr(A), of every image that an annotator labelled; one label each here
    pairs = [(b, r) for b, r in zip(*np.nonzero(IDS >= 0), strict=True)]
    traces = [np.mean([np.trace(confusions[b, h, w, IDS[b, m]]) for h, w in np.ndindex(H, W)]) for b, m in pairs]
    np.testing.assert_allclose(float(ops.convert_to_numpy(layer.losses[0])), 0.3 * np.mean(traces), rtol=1e-5)


@pytest.mark.parametrize("name", LAYERS)
def test_missing_labels_move_nothing(name):
    layer, extra, _ = made(name, **({} if name == "ccem" else {"strength": 0.0}))
    nothing = np.full_like(some_labels(), -1)
    by_input, by_weights = gradients(
        layer, lambda said: MaskedCrowdCrossentropy()(nothing, said), probabilities(), annotators=IDS, **extra
    )
    assert not any(gradient.any() for gradient in (by_input, *by_weights))


@pytest.mark.parametrize("name", ["trace", "spatial"])
def test_the_trace_is_a_price_on_annotators_of_the_batch_who_are_right(name):
    layer, extra, _ = made(name)

    def price():
        layer(probabilities(), annotators=IDS, **extra)
        return float(ops.convert_to_numpy(layer.losses[-1]))

    kernel, before = ops.convert_to_numpy(layer.kernel), price()
    for r in range(R):
        layer.kernel.assign(kernel + np.eye(K) * (np.arange(R) == r)[:, None, None])
        assert price() > before if r < 3 else price() == before


@pytest.mark.parametrize("name", LAYERS)
def test_annotators_start_mostly_right_and_alike_at_every_pixel(name):
    layer_class, arguments = LAYERS[name]
    layer = layer_class(R, **arguments)
    extra = {"features": features()} if layer.traits.uses_features else {}
    truth = np.eye(K, dtype="float32")[np.random.default_rng(0).integers(K, size=(B, H, W))]
    said = np.exp(ops.convert_to_numpy(layer(truth, **extra)))
    assert is_at_start(layer)
    right = (said * truth[..., None, :]).sum(axis=-1)
    np.testing.assert_allclose(right, right[0, 0, 0, 0], rtol=1e-5)
    assert (said.argmax(axis=-1) == truth.argmax(axis=-1)[..., None]).all()


@pytest.mark.parametrize("name", ["ccem", "trace", "spatial", "deep-em"])
def test_the_log_joint_of_a_pixel_is_bayes_rule_on_its_own_labels(name):
    if name == "deep-em":
        layer, extra = DeepEM(R, kind="segmentation"), {}
        layer.build((None, H, W, K))
        matrices = np.random.default_rng(0).dirichlet(np.ones(K), size=(R, K))
        layer.set_confusions(matrices)
        confusions = np.broadcast_to(matrices, (B, H, W, R, K, K))
    else:
        layer, extra, confusions = made(name)
    p, labels = probabilities(), some_labels()
    found = ops.convert_to_numpy(layer.log_joint(p, IDS, labels, **extra))
    for b, h, w in np.ndindex(B, H, W):
        expected = np.log(p[b, h, w].astype("float64"))
        for m in np.flatnonzero(labels[b, h, w] >= 0):
            expected += np.log(confusions[b, h, w, IDS[b, m], :, labels[b, h, w, m]])
        np.testing.assert_allclose(found[b, h, w], expected, rtol=1e-4, atol=1e-5)
