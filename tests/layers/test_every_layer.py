"""What holds for every crowd layer: the battery, and rules about who labelled."""

import keras
import numpy as np
import pytest
from keras import ops
from small_layers import IDS, LABELS, NOBODY, B, K, R, bottleneck

from crowdzoo import layers
from crowdzoo.testing import LAYER_CHECKS, LayerCase, gradients

T, D = 2, 6
RNG = np.random.default_rng(0)
P, X = bottleneck(), RNG.normal(size=(B, D)).astype("float32")
P_TOKENS, ESTIMATES = RNG.dirichlet(np.ones(K), size=(B, T)).astype("float32"), X[:, :1]
TABLE = RNG.normal(size=(R, 2)).tolist()

CONAL = {"embedding_size": 4, "separation": 0.1, "scale": 1.5, "normalize_instances": False}
MAPS = {"instance_hidden": 7, "annotator_features": TABLE}
LIA_ARGUMENTS = {
    "hidden": (2,), "annotator_embedding": 3, "activation": "tanh", "epochs_per_round": 4, "marginal_epochs": 2,
    "ridge": 0.5,
}  # fmt: skip
HEADS = {"num_classes": K, "weight_epochs": 7, "heads_at_once": 2, "vote": True}
EM = {"prior": 0.5, "diagonal": 0.7, "epochs_per_round": 3}
GEO = {"strength": 0.02, "diagonal": 0.7, "floor": 0.01}
WAUM_ARGUMENTS = {
    "prune": 0.1, "margin_epochs": 3, "margin": "pleiss", "denominator": "redundancy", "smoothing": 0.05,
    "diagonal": 0.7,
}  # fmt: skip
POOLED = {"ridge": 0.5, "rank": 2, "diagonal": 0.7}
RATINGS = {"bias": True, "prior": 0.5, "epochs_per_round": 3, "start_rounds": 7, "center": 2.0, "unit": 1.5}
PAIRS = {"num_annotations": 10, "slope_variance": 0.5, "bias_variance": 0.4, "tie_variance": 0.3}

# by name: the layer, what goes in, arguments beside the number of annotators
LAYERS = {
    "conal, logits": (layers.CoNAL, P, {**CONAL, "mixing": "logits"}),
    "conal, maps": (layers.CoNAL, P, {**CONAL, **MAPS, "mixing": "probabilities"}),
    "confusion matrices": (layers.ConfusionMatrices, P, {"diagonal": 0.7}),
    "cross-fitted em": (layers.CrossFittedEM, P, {**EM, "folds": 3}),
    **{
        f"crowdsourced, {kind} {connection}": (
            layers.CrowdsourcedLayer,
            inputs,
            {"connection": connection, "kind": kind},
        )
        for kind, inputs, connections in (
            ("classification", P, ("MW", "VW", "VB", "VW+B", "S")),
            ("sequence", P_TOKENS, ("MW", "VW", "VB", "VW+B", "S")),
            ("regression", ESTIMATES, ("S", "B", "S+B")),
        )
        for connection in connections
    },
    "deep em": (layers.DeepEM, P, EM),
    "doctor net": (layers.DoctorNet, X, {**HEADS, "weighted": False}),
    "doctor net, weighted": (layers.DoctorNet, X, {**HEADS, "weighted": True}),
    **{f"geo {form}": (layers.GeoCrowdNet, P, {**GEO, "regularization": form}) for form in ("F", "W", None)},
    "lia": (layers.LIA, P, {**LIA_ARGUMENTS, "latent": 2}),
    "lia, product": (layers.LIA, P, {**LIA_ARGUMENTS, "form": "product", "latent": 2}),
    "lia, annotators' features": (layers.LIA, P, {**LIA_ARGUMENTS, "annotator_features": TABLE}),
    "max-mig": (layers.MaxMIG, P, {"smoothing": 0.1, "diagonal": 0.7}),
    "pairs": (layers.PairAnnotators, P, PAIRS),
    **{
        f"pooled, {form} {per_class}": (layers.PooledConfusions, P, {**POOLED, "form": form, "per_class": per_class})
        for form in ("full", "diagonal", "low-rank")
        for per_class in ((True,) if form == "full" else (True, False))
    },
    "ratings em": (layers.RatingEM, ESTIMATES, {**RATINGS, "unrelated": 0.2}),
    "trace, mean": (layers.TraceRegularization, P, {"strength": 0.02, "traces": "mean"}),
    "trace, sum": (layers.TraceRegularization, P, {"strength": 0.02, "traces": "sum"}),
    "union net": (layers.UnionNet, P, {"diagonal": 0.7}),
    "waum": (layers.WAUM, P, WAUM_ARGUMENTS),
}
# of a layer with several forms the battery tries one or two in `make test`
QUICK = {
    "conal, maps", "confusion matrices", "cross-fitted em", "crowdsourced, classification MW",
    "crowdsourced, sequence MW", "crowdsourced, regression S+B", "doctor net, weighted", "geo F", "lia",
    "lia, annotators' features", "max-mig", "pairs", "pooled, full True", "pooled, low-rank True", "ratings em",
    "trace, sum", "union net", "waum",
}  # fmt: skip
# what the union competes for, and what is learnt in phases by other losses
NO_MATRICES = (layers.DoctorNet, layers.PairAnnotators)
COMPETE, OTHER_LOSSES = {"union net"}, {"max-mig", "waum", "pairs", "ratings em"}


def named(names, quick=LAYERS):
    marked = [name if name in quick else pytest.param(name, marks=pytest.mark.slow) for name in names]
    return pytest.mark.parametrize("name", marked)


def case_of(name, sparse):
    layer, inputs, arguments = LAYERS[name]
    calls = {"annotators": IDS} if sparse else {}
    calls |= {"features": X} if layer.traits.uses_features else {}
    axes = inputs.shape[:2] if inputs.ndim == 3 else (B,)
    classes = () if inputs is ESTIMATES else (K,)
    arguments = {"num_annotators": R, **arguments}
    return LayerCase(layer, arguments, inputs, (*axes, IDS.shape[1] if sparse else R, *classes), calls)


def answers(name, ids):
    case = case_of(name, True)
    said = ops.convert_to_numpy(case.make()(case.inputs, **{**case.call_arguments, "annotators": ids}))
    return said if said.ndim > 2 else said[..., None]


@pytest.mark.parametrize("sparse", [pytest.param(False, marks=pytest.mark.slow), True], ids=["dense", "sparse"])
@pytest.mark.parametrize("check", LAYER_CHECKS.values(), ids=LAYER_CHECKS)
@named(LAYERS, QUICK)
def test_the_battery_passes(name, check, sparse):
    check(case_of(name, sparse))


@named(LAYERS)
def test_answers_of_some_annotators_are_theirs_among_those_of_everybody(name):
    some, everybody = answers(name, IDS), answers(name, None)
    assert everybody.shape[-2] == R
    for i, m in np.argwhere(IDS >= 0):
        np.testing.assert_allclose(some[i, ..., m, :], everybody[i, ..., IDS[i, m], :], rtol=1e-4, atol=1e-5)


def moved(name, ids, labels):
    """The default loss of labels, and its gradients by the inputs and by weights that have a row an annotator."""
    case = case_of(name, True)
    layer = case.make()
    if case.inputs is P_TOKENS:
        labels = np.repeat(labels[:, None], T, axis=1)
    labels = np.where(labels < 0, np.nan, labels).astype("float32") if case.inputs is ESTIMATES else labels
    loss, calls = layer.default_loss(), {**case.call_arguments, "annotators": ids}
    value = ops.convert_to_numpy(loss(labels, layer(case.inputs, **calls)))
    by_inputs, by_weights = gradients(layer, lambda said: loss(labels, said), case.inputs, **calls)
    return value, by_inputs, by_weights, layer.trainable_variables


@named(sorted({*LAYERS} - OTHER_LOSSES))
def test_a_batch_that_nobody_labelled_costs_nothing_and_moves_nothing(name):
    value, by_inputs, by_weights, _ = moved(name, NOBODY, NOBODY)
    assert value == 0
    assert not any(gradient.any() for gradient in (by_inputs, *by_weights))


@named(sorted({*LAYERS} - OTHER_LOSSES - COMPETE))
def test_an_annotator_without_labels_gets_no_gradient_and_the_others_do(name):
    _, by_inputs, by_weights, weights = moved(name, IDS, LABELS)
    # none where EM counts, and where annotators have features
    own = [gradient for gradient, weight in zip(by_weights, weights, strict=True) if weight.shape[0] == R]
    for gradient in own:
        assert not gradient[4].any()
        assert all(gradient[r].any() for r in range(4))
    assert not by_inputs[2].any()


@named([name for name, (layer, inputs, _) in LAYERS.items() if inputs is not ESTIMATES and layer not in NO_MATRICES])
def test_a_layer_without_weights_says_so(name):
    layer, _, arguments = LAYERS[name]
    with pytest.raises(ValueError, match="no weights yet"):
        layer(R, **arguments).annotator_confusions()


@pytest.mark.parametrize("layer", [layers.LIA, layers.CoNAL])
def test_missing_features_are_named(layer):
    message = rf"{layer.__name__}: the features must have shape .*annotators=ids, features=h"
    with pytest.raises(ValueError, match=message):
        layer(R)(P, annotators=IDS)
    with pytest.raises(ValueError, match=message):
        keras.Sequential([keras.Input((K,)), layer(R)])
    built = layer(R)
    built(P, annotators=IDS, features=X)
    with pytest.raises(ValueError, match=message):
        built(P, annotators=IDS)
