"""A small batch for tests of several crowd layers, and a model of one layer."""

import keras
import numpy as np

from crowdzoo.models import CrowdModel

R, K, B = 5, 3, 4
# annotator 4 labels nothing; task 2 nobody labelled; annotators 0 and 1 labelled two tasks
IDS = np.array([[0, 2, -1], [1, -1, -1], [-1, -1, -1], [3, 0, 1]], "int32")
LABELS = np.array([[2, 0, -1], [1, -1, -1], [-1, -1, -1], [0, 1, 1]], "int32")
NOBODY = np.full_like(IDS, -1)


def bottleneck(seed=0, tasks=B):
    """Probabilities of a base, float32 [tasks, K]."""
    return np.random.default_rng(seed).dirichlet(np.ones(K), size=tasks).astype("float32")


def some_kernel(seed=1):
    return np.random.default_rng(seed).normal(size=(R, K, K))


def softmax(rows):
    """Over the last axis."""
    odds = np.exp(rows - np.max(rows, axis=-1, keepdims=True))
    return odds / odds.sum(axis=-1, keepdims=True)


def one_layer_model(layer, optimizer=None):
    """The layer on a base that begins with equal probabilities."""
    keras.utils.set_random_seed(0)
    base = keras.Sequential(
        [keras.Input((K,)), keras.layers.Dense(K, activation="softmax", kernel_initializer="zeros")]
    )
    model = CrowdModel(base, layer)
    model.compile(optimizer or keras.optimizers.Adam(0.05), jit_compile=False)
    return model
