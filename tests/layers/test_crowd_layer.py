"""What crowd layers share, and the posteriors that a CrowdModel makes of it, against loops in float64."""

import keras
import numpy as np
import pytest
from keras import ops
from small_layers import bottleneck

from crowdzoo.data.annotations import Annotations
from crowdzoo.layers import CrowdLayer, LayerTraits
from crowdzoo.layers.confusion_matrices import ConfusionMatrices
from crowdzoo.models import ArrayData, CrowdModel
from crowdzoo.training.recipes import register_recipe

B, K, R, D = 4, 3, 5, 2
# annotator 4 labels nothing, annotator 1 once; task 2 nobody labelled; annotator 3 of task 3 gave no label
IDS = np.array([[0, 2, -1], [1, -1, -1], [-1, -1, -1], [3, 0, 2]], dtype="int32")
LABELS = np.array([[1, 1, -1], [0, -1, -1], [-1, -1, -1], [-1, 0, 2]], dtype="int32")


def confusions(seed=0):
    return np.random.default_rng(seed).dirichlet(np.ones(K), size=(R, K))


def made(matrices):
    layer = ConfusionMatrices(R)
    layer.build((None, K))
    layer.set_confusions(matrices)
    return layer


class ByFeature(CrowdLayer):
    """A layer that looks at instances: everybody is right with the probability that the first feature says."""

    traits = LayerTraits(uses_features=True)

    def build(self, inputs_shape, features_shape):
        self._num_classes = inputs_shape[-1]
        self.built = True

    def log_confusions(self, annotators, features=None):
        right = features[:, :1, None, None] * ops.ones_like(ops.cast(annotators, "float32"))[..., None, None]
        eye = ops.eye(self._num_classes)
        return ops.log(right * eye + (1 - right) / (self._num_classes - 1) * (1 - eye))

    def call(self, inputs, annotators=None, features=None):
        annotators = self._everybody(inputs) if annotators is None else annotators
        return ops.log(ops.einsum("bk,bmkl->bml", inputs, ops.exp(self.log_confusions(annotators, features))))


def joint_of(p, matrix_of, ids=IDS, labels=LABELS):
    """log p(k) + sum of log P(label | k) over the labels, float64; `matrix_of(task, annotator)` is [true, said]."""
    result = np.log(np.asarray(p, "float64"))
    for i, m in np.argwhere(np.asarray(labels) >= 0):
        for k in range(K):
            result[i, k] += np.log(matrix_of(i, ids[i][m])[k, labels[i][m]])
    return result


def test_the_log_joint_adds_prior_and_labels():
    matrices = confusions()
    expected = joint_of(bottleneck(), lambda i, r: matrices[r])
    found = ops.convert_to_numpy(made(matrices).log_joint(bottleneck(), IDS, LABELS))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    # where nobody labelled it is the prior alone
    np.testing.assert_allclose(found[2], np.log(bottleneck()[2]), rtol=1e-5)


def test_the_parent_says_what_it_does_not_know():
    layer = CrowdLayer(R)
    assert layer.num_classes is None
    with pytest.raises(NotImplementedError, match="CrowdLayer does not say how labels depend on the truth"):
        layer.log_joint(bottleneck(), IDS, LABELS)


# === Posteriors of a model ===


def a_model(matrices, layer=None):
    """A base whose probabilities are the instances themselves."""
    base = keras.Sequential([keras.Input((K,)), keras.layers.Identity()])
    model = CrowdModel(base, made(matrices) if layer is None else layer)
    model.compile()
    return model


def some_labels(tasks=7):
    """Dense labels; task 3 nobody labelled, annotator 4 labelled nothing."""
    rng = np.random.default_rng(3)
    dense = np.where(rng.random((tasks, R)) < 0.5, rng.integers(K, size=(tasks, R)), -1)
    dense[:, 0] = rng.integers(K, size=tasks)
    dense[3] = -1
    dense[:, 4] = -1
    return dense


def expected_posteriors(p, matrices, dense):
    """Bayes' rule task by task, and the log-likelihood of all labels."""
    posteriors, likelihood = np.zeros((len(dense), K)), 0.0
    for i, row in enumerate(dense):
        joint = np.array([
            p[i, k] * np.prod([matrices[r, k, label] for r, label in enumerate(row) if label >= 0]) for k in range(K)
        ])  # fmt: skip
        posteriors[i] = joint / joint.sum()
        likelihood += np.log(joint.sum())
    return posteriors, likelihood


@pytest.mark.parametrize("batch_size", [2, 256])
def test_posteriors_are_bayes_rule_and_without_labels_the_estimate_of_the_base(batch_size):
    matrices, dense, p = confusions(), some_labels(), bottleneck(tasks=7)
    expected, likelihood = expected_posteriors(p.astype("float64"), matrices, dense)
    model = a_model(matrices)
    found = model.posteriors(p, dense, batch_size=batch_size)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(found[3], p[3], rtol=1e-5)

    annotations = Annotations.from_dense(dense, classes=np.arange(K))
    data = ArrayData(p, annotations)
    labelled = (dense >= 0).any(axis=1)
    for found, value in (model.e_step(data, batch_size=batch_size), (model.posteriors(data), likelihood)):
        np.testing.assert_allclose(found[labelled], expected[labelled], rtol=1e-4, atol=1e-6)
        assert not found[3].any()
        np.testing.assert_allclose(value, likelihood, rtol=1e-5)  # task 3 adds log 1


def test_posteriors_look_at_the_features_where_the_layer_does():
    p = bottleneck(tasks=7)
    model = a_model(None, ByFeature(R))
    dense = some_labels()
    found = model.posteriors(p, dense)  # the instances are the features: P(right) is the first of them
    for i, row in enumerate(dense):
        right = p[i, 0]
        matrix = np.where(np.eye(K) > 0, right, (1 - right) / (K - 1))
        joint = p[i] * np.prod([matrix[:, label] for label in row if label >= 0], axis=0)
        np.testing.assert_allclose(found[i], joint / joint.sum(), rtol=1e-4)


@pytest.mark.slow
@pytest.mark.usefixtures("eager")
def test_a_layer_of_ones_own_is_trained_by_the_recipe_that_is_registered_for_it():
    class Mine(ConfusionMatrices):
        """Counts its labels."""

    class Derived(Mine):
        """Trained as its parent."""

    asked = []

    def recipe(model, data, order, **kwargs):
        asked.append((model.crowd, data.num_tasks, order, kwargs["epochs"]))
        return model.fit_batches(data.batches(**order), **kwargs)

    register_recipe(Mine, recipe)
    for layer in (Derived(R), ConfusionMatrices(R)):
        base = keras.Sequential([keras.Input((K,)), keras.layers.Dense(K, activation="softmax")])
        dense = np.zeros((B, R), "int32")
        history = CrowdModel(base, layer).fit(
            bottleneck(), dense, epochs=2, batch_size=3, seed=5, shuffle=False, verbose=0
        )
        assert len(history.history["loss"]) == 2
    ((crowd, *rest),) = asked
    assert type(crowd) is Derived
    assert rest == [B, {"batch_size": 3, "seed": 5, "shuffle": False}, 2]
