"""Data-parallel training on two devices ends where one device ends, though each device has other numbers of labels."""

import sys

import keras
import numpy as np
import pytest
from two_devices import halve_the_cpu, in_a_process_with_two_devices

BACKEND = keras.backend.backend()
pytestmark = pytest.mark.skipif(BACKEND == "torch", reason="Keras has no data-parallel training on PyTorch")
R, K, D, TASKS, BATCH = 7, 3, 5, 32, 16
RUNS = [
    ("sgd", "crowdsourced"),
    ("lazy", "crowdsourced"),
    ("adam", "pooled"),
    ("sgd", "deep-em"),
    ("sgd", "cross-fitted"),
    ("sgd", "lia"),
]


def two_devices():
    """What spreads a batch over two devices in its `scope()`; one in a process, as TensorFlow needs it."""
    halve_the_cpu()
    if BACKEND == "tensorflow":
        import tensorflow as tf

        return tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    assert len(keras.distribution.list_devices()) == 2
    return keras.distribution.DataParallel(auto_shard_dataset=False)


def train(optimizer, layer):
    """A few steps on batches whose first half has three labels a task and whose second half has one."""
    from crowdzoo import Annotations
    from crowdzoo.layers import LIA, CrossFittedEM, CrowdsourcedLayer, DeepEM
    from crowdzoo.layers.pooled_confusions import PooledConfusions
    from crowdzoo.models import CrowdModel
    from crowdzoo.optimizers import LazyAdam

    keras.utils.set_random_seed(0)
    rng = np.random.default_rng(1)
    pairs = [(i, r) for i in range(TASKS) for r in rng.choice(R, 3 if i % BATCH < BATCH // 2 else 1, replace=False)]
    names = {"tasks": np.arange(TASKS), "annotators": np.arange(R), "classes": np.arange(K)}
    annotations = Annotations.from_arrays(*np.array(pairs).T, rng.integers(K, size=len(pairs)), **names)
    crowds = {
        "crowdsourced": CrowdsourcedLayer(R), "deep-em": DeepEM(R), "cross-fitted": CrossFittedEM(R, folds=2),
        "pooled": PooledConfusions(R, ridge=0.0),
        "lia": LIA(R, hidden=(4,), annotator_embedding=2, epochs_per_round=1, marginal_epochs=1),
    }  # fmt: skip
    base = keras.Sequential([keras.Input((D,)), keras.layers.Dense(K, activation="softmax")])
    model = CrowdModel(base, crowds[layer])
    rules = {"adam": keras.optimizers.Adam(0.05), "lazy": LazyAdam(0.05), "sgd": keras.optimizers.SGD(1.0)}
    model.compile(rules[optimizer])
    x = rng.normal(size=(TASKS, D)).astype("float32")
    history = model.fit(x, annotations, epochs=3, batch_size=BATCH, shuffle=False, verbose=0)
    loss = [*history.history["loss"], model.evaluate(x, annotations, batch_size=BATCH, verbose=0)]
    return {"loss": np.array(loss), **{f"weight {i}": weight for i, weight in enumerate(model.get_weights())}}


def train_all(path):
    """Every run on one device and on two, in a process that has two."""
    both, found = two_devices(), {}
    for run in RUNS:
        found |= {("one", *run, name): array for name, array in train(*run).items()}
        with both.scope():
            found |= {("two", *run, name): array for name, array in train(*run).items()}
    np.savez(path, **{"/".join(key): array for key, array in found.items()})


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    path = tmp_path_factory.mktemp("distribution") / "results.npz"
    in_a_process_with_two_devices(__file__, str(path))
    return dict(np.load(path))


@pytest.mark.slow
@pytest.mark.parametrize("run", RUNS, ids="-".join)
def test_two_devices_learn_what_one_learns(results, run):
    names = [key.split("/")[-1] for key in results if key.startswith("/".join(("one", *run)))]
    assert "loss" in names
    assert len(names) >= 4  # loss, the base's two weights, the annotators'
    for name in names:
        one, two = (results["/".join((devices, *run, name))] for devices in ("one", "two"))
        np.testing.assert_allclose(two, one, rtol=1e-4, atol=1e-5, err_msg=name)
    loss = results["/".join(("one", *run, "loss"))]
    assert loss[-1] < loss[0] - 0.01


if __name__ == "__main__":
    train_all(sys.argv[1])
