"""What a crowd layer costs: time of a training step and peak memory, from 59 annotators to a million.

The base is the head of the first paper's LabelMe network on pooled features (512 -> 128 ReLU -> 8 classes), 64 tasks a
batch, three labels per task. Every row is a process of its own (its peak memory is its own) in which `fit` runs a few
steps at a time, on batches in memory; the median step counts.

    python benchmarks/layers.py                    # on TensorFlow; results/layers.json
    python benchmarks/layers.py --print            # the saved table

Forms of the crowd layer (connection MW, a matrix K by K an annotator):

    LazyAdam   the batch's annotators only
    Adam       the same layer with Keras' Adam, which goes through all annotators
    one-hot    the first paper's own form, written anew: answers and one-hot labels `[B, R, K]`, all -1 where missing
"""

from __future__ import annotations

import functools
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).parent / "reproduce"))
from rows import run
from run_alone import MIB, peak_bytes, run_alone

RESULTS = Path(__file__).parent / "results" / "layers.json"
BATCH, CLASSES, REDUNDANCY, HIDDEN, FEATURES = 64, 8, 3, 128, 512
BATCHES = 1000  # different ones, of which the instances are the same
ANNOTATORS = (59, 10_000, 1_000_000)
FORMS = ("LazyAdam", "Adam", "one-hot")
LARGEST = 2**30  # bytes of one [B, R, K] float array; a step holds several of them
SECONDS, FEWEST = 4.0, 5  # of timed steps, and rounds at least

# === Models ===


def make_base() -> Any:
    """The network below the crowd layer."""
    import keras

    return keras.Sequential(
        [
            keras.Input((FEATURES,)),
            keras.layers.Dense(HIDDEN, activation="relu"),
            keras.layers.Dropout(0.5),
            keras.layers.Dense(CLASSES, activation="softmax"),
        ]
    )


def make_one_hot(annotators: int) -> Any:
    """Base, a layer with all annotators' maps, and a loss that masks what is -1 and averages over all cells."""
    import keras
    from keras import ops

    class AllAnnotators(keras.layers.Layer):
        def build(self, shape: Any) -> None:
            def identities(shape: Any, dtype: Any = None) -> Any:
                return ops.tile(ops.eye(CLASSES, dtype=dtype)[None], (annotators, 1, 1))

            self.maps = self.add_weight(shape=(annotators, CLASSES, CLASSES), initializer=identities)

        def call(self, p: Any) -> Any:
            return ops.einsum("bk,rkl->brl", p, self.maps)

    def masked(y_true: Any, y_pred: Any) -> Any:
        costs = -ops.sum(y_true * ops.log_softmax(y_pred, axis=-1), axis=-1)
        return ops.where(y_true[..., 0] == -1, 0.0, costs)

    model = keras.Sequential([make_base(), AllAnnotators()])
    model.compile(keras.optimizers.Adam(), masked, jit_compile="auto")
    return model


@dataclass(frozen=True)
class Changing:
    """An array that is another one at each step, `[steps, ...]`: annotators who come again are in the cache."""

    arrays: np.ndarray


def make(form: str, annotators: int) -> tuple[Any, tuple[Any, Any]]:
    """A compiled model and a batch for it."""
    import keras

    from crowdzoo.layers import CrowdsourcedLayer
    from crowdzoo.models import CrowdModel
    from crowdzoo.optimizers import LazyAdam

    rng = np.random.default_rng(0)
    x = rng.normal(size=(BATCH, FEATURES)).astype("float32")
    first = rng.integers(annotators, size=(BATCHES, BATCH, 1))
    ids = ((first + annotators // 7 * np.arange(REDUNDANCY)) % annotators).astype("int32")  # three different ones
    labels = rng.integers(CLASSES, size=ids.shape).astype("int32")
    if form == "one-hot":
        y = np.full((BATCH, annotators, CLASSES), -1, "float32")
        y[np.arange(BATCH)[:, None], ids[0]] = np.eye(CLASSES, dtype="float32")[labels[0]]
        return make_one_hot(annotators), (x, y)
    model = CrowdModel(make_base(), CrowdsourcedLayer(annotators))
    model.compile(LazyAdam() if form == "LazyAdam" else keras.optimizers.Adam())
    return model, ({"instances": x, "annotators": Changing(ids)}, Changing(labels))


# === Timing ===


def clock() -> Any:
    """A callback that notes when steps end."""
    import keras

    class Clock(keras.callbacks.Callback):
        def __init__(self) -> None:
            super().__init__()
            self.ends: list[float] = []

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            float((logs or {}).get("loss", 0.0))  # waits for the result
            self.ends.append(time.perf_counter())

    return Clock()


def endless(batch: Any) -> Any:
    """Batches for ever."""
    import keras
    import tensorflow as tf

    def dataset(leaf: Any) -> tf.data.Dataset:
        if isinstance(leaf, Changing):
            return tf.data.Dataset.from_tensor_slices(leaf.arrays).repeat()
        return tf.data.Dataset.from_tensors(leaf).repeat()

    return tf.data.Dataset.zip(keras.tree.map_structure(dataset, batch))


def steps_of(model: Any, data: Any, count: int) -> np.ndarray:
    """Seconds of some steps of `fit`; the first step, which starts the epoch, is left out."""
    noted = clock()
    model.fit(data, steps_per_epoch=count + 1, epochs=1, verbose=0, callbacks=[noted])
    return np.diff(noted.ends)


# === Rows ===


def measure(form: str, annotators: int) -> dict[str, float]:
    """Time and peak memory of one form; memory first, while nothing else is there."""
    import keras  # noqa: F401  loaded first, so that its own memory is not counted

    before = peak_bytes()
    model, batch = make(form, annotators)
    seconds = steps_of(model, endless(batch), 3)
    peak = peak_bytes()
    count, rounds, start = int(np.clip(0.15 / np.median(seconds), 3, 40)), [], time.perf_counter()
    while time.perf_counter() - start < SECONDS or len(rounds) < FEWEST:
        rounds.append(np.median(steps_of(model, endless(batch), count)))
    return {"milliseconds": 1e3 * float(np.median(rounds)), "peak MiB": (peak - before) / MIB}


def row(form: str, annotators: int) -> Iterator[dict[str, Any]]:
    figures = run_alone(__file__, ["--worker", form, str(annotators)], f"{form}, {annotators}")
    if figures is not None:
        yield figures


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        print("RESULT" + json.dumps(measure(sys.argv[2], int(sys.argv[3]))))
    else:
        parts = {
            f"{annotators:,} annotators": {
                form: functools.partial(row, form, annotators) for form in FORMS
                if form != "one-hot" or 4 * BATCH * CLASSES * annotators <= LARGEST
            }
            for annotators in ANNOTATORS
        }  # fmt: skip
        run(RESULTS, parts, __doc__)
