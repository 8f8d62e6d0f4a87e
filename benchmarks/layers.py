"""What a crowd layer costs: time of a training step and peak memory, from 59 annotators to a million.

The base is the head of the first paper's LabelMe network (features -> 128 ReLU -> 8 classes), 64 tasks a batch, three
labels a task. Every cell is a process of its own (its peak memory is its own) in which `fit` of the base alone and
`fit` of the base with the crowd layer take turns, a few steps each, on batches in memory; the median step counts.

    python benchmarks/layers.py                    # TensorFlow, about 10 minutes on two cores; results/layers.json
    KERAS_BACKEND=jax PYTHONPATH=. .venv-backends/bin/python benchmarks/layers.py     # torch too, OMP_NUM_THREADS=1
    python benchmarks/layers.py --only bars --no-save                                 # or: cells, input

Forms of the crowd layer (connection MW, a matrix K by K an annotator):

    sparse      the batch's annotators only, LazyAdam
    sparse, Adam   the same layer with Keras' Adam, which goes through all annotators
    dense       every annotator's answer `[B, R, K]`, labels int `[B, R]`, Adam
    one-hot     the first paper's own form, written anew: answers and one-hot labels `[B, R, K]`, all -1 where missing
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

RESULTS = Path(__file__).parent / "results" / "layers.json"
BATCH, CLASSES, REDUNDANCY, HIDDEN = 64, 8, 3, 128
BATCHES = 1000  # different ones, of which the instances are the same
FEATURES = {"labelme": 8192, "small": 512}  # VGG16's last convolution 4 x 4 x 512, flattened or pooled
BARE = 8  # hardly a base, so that the layer shows
ANNOTATORS = (59, 1_000, 10_000, 100_000, 1_000_000)
FORMS = ("sparse", "sparse, Adam", "dense", "one-hot")
LARGEST = 2**30  # bytes of one [B, R, K] float array; a step holds several of them
SECONDS, FEWEST = 4.0, 5  # of timed steps for each model, and rounds at least
MIB = 2**20
# what a ratio must not be above, or not below
BARS = {
    # beside labelme's head the layer's part is lost in what a step varies; the bare head has the sharpest figure
    "layer's share, a million annotators over 59, labelme head": ("<=", 1.3),
    "layer's share, a million annotators over 59, small head": ("<=", 1.3),
    "layer's share, a million annotators over 59, bare head": ("<=", 1.3),
    "step with the layer over base alone, 59 annotators, labelme head": ("<=", 1.15),
    "step with the layer over base alone, 59 annotators, small head": ("<=", 1.15),
    "one-hot over sparse, 10,000 annotators, small head": (">=", 20.0),
    "one-hot over sparse, 10,000 annotators, bare head": (">=", 20.0),
}

# === Models ===


def make_base(features: int) -> Any:
    """The network below the crowd layer."""
    import keras

    return keras.Sequential(
        [
            keras.Input((features,)),
            keras.layers.Dense(HIDDEN, activation="relu"),
            keras.layers.Dropout(0.5),
            keras.layers.Dense(CLASSES, activation="softmax"),
        ]
    )


def make_one_hot(features: int, annotators: int) -> Any:
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

    model = keras.Sequential([make_base(features), AllAnnotators()])
    model.compile(keras.optimizers.Adam(), masked, jit_compile="auto")
    return model


@dataclass(frozen=True)
class Changing:
    """An array that is another one at each step, `[steps, ...]`: annotators who come again are in the cache."""

    arrays: np.ndarray


def make(form: str, features: int, annotators: int) -> tuple[Any, tuple[Any, Any]]:
    """A compiled model and a batch for it."""
    import keras

    from crowdzoo.layers import CrowdsourcedLayer
    from crowdzoo.losses import MaskedCrowdCrossentropy
    from crowdzoo.models import CrowdModel
    from crowdzoo.optimizers import LazyAdam

    rng = np.random.default_rng(0)
    x = rng.normal(size=(BATCH, features)).astype("float32")
    first = rng.integers(annotators, size=(BATCHES, BATCH, 1))
    ids = ((first + annotators // 7 * np.arange(REDUNDANCY)) % annotators).astype("int32")  # three different ones
    labels = rng.integers(CLASSES, size=ids.shape).astype("int32")
    base: Any = make_base(features)
    if form == "base":
        base.compile(keras.optimizers.Adam(), "sparse_categorical_crossentropy")
        return base, (x, Changing(labels[..., 0]))
    if form.startswith("sparse"):
        model = CrowdModel(base, CrowdsourcedLayer(annotators))
        model.compile(LazyAdam() if form == "sparse" else keras.optimizers.Adam())
        return model, ({"instances": x, "annotators": Changing(ids)}, Changing(labels))
    rows = np.arange(BATCH)[:, None]
    if form == "dense":
        base.add(CrowdsourcedLayer(annotators))
        base.compile(keras.optimizers.Adam(), MaskedCrowdCrossentropy())
        y = np.full((BATCH, annotators), -1, "int32")
        y[rows, ids[0]] = labels[0]
        return base, (x, y)
    y = np.full((BATCH, annotators, CLASSES), -1, "float32")
    y[rows, ids[0]] = np.eye(CLASSES, dtype="float32")[labels[0]]
    return make_one_hot(features, annotators), (x, y)


# === Timing ===


def clock() -> Any:
    """A callback that notes when steps end."""
    import keras

    class Clock(keras.callbacks.Callback):
        def __init__(self) -> None:
            super().__init__()
            self.ends: list[tuple[float, float]] = []

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            float((logs or {}).get("loss", 0.0))  # JAX only promises a result: wait for it
            self.ends.append((time.perf_counter(), time.process_time()))

    return Clock()


def endless(batch: Any) -> Any:
    """Batches for ever, as the backend likes them."""
    import keras

    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        def dataset(leaf: Any) -> tf.data.Dataset:
            if isinstance(leaf, Changing):
                return tf.data.Dataset.from_tensor_slices(leaf.arrays).repeat()
            return tf.data.Dataset.from_tensors(leaf).repeat()

        return tf.data.Dataset.zip(keras.tree.map_structure(dataset, batch))

    def generator() -> Iterator[Any]:
        for step in itertools.count():

            def one(leaf: Any, step: int = step) -> np.ndarray:
                return leaf.arrays[step % BATCHES] if isinstance(leaf, Changing) else leaf

            yield keras.tree.map_structure(one, batch)

    return generator()


def steps_of(model: Any, data: Any, count: int) -> np.ndarray:
    """Seconds of some steps of `fit`, `[count, 2]`: by the clock, and of the processors by this process.

    The first step, which starts the epoch, is left out.
    """
    noted = clock()
    model.fit(data, steps_per_epoch=count + 1, epochs=1, verbose=0, callbacks=[noted])
    return np.diff(noted.ends, axis=0)


def in_turns(models: dict[str, tuple[Any, Any]]) -> dict[str, np.ndarray]:
    """Medians of the steps of several models, round by round, so that what else the machine does hits all of them.

    Returns:
        By name seconds `[rounds, 2]`, by the clock and of the processors; the latter hardly sees other processes.
    """
    runs = {name: (lambda count, m=m, b=b: steps_of(m, endless(b), count)) for name, (m, b) in models.items()}
    counts = {}
    for name, run in runs.items():
        run(2)  # compiles
        counts[name] = int(np.clip(0.15 / np.median(run(3)[:, 0]), 3, 40))
    rounds: dict[str, list[np.ndarray]] = {name: [] for name in runs}
    start = time.perf_counter()
    while time.perf_counter() - start < SECONDS * len(runs) or len(rounds[name]) < FEWEST:
        for name, run in runs.items():
            rounds[name].append(np.median(run(counts[name]), axis=0))
        if time.perf_counter() - start > 8 * SECONDS * len(runs):
            break
    return {name: np.array(found) for name, found in rounds.items()}


def peak_bytes() -> int:
    """Peak memory of this process."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


# === Children ===


def cell(form: str, features: int, annotators: int) -> dict[str, float]:
    """Time and peak memory of one form beside the base alone; memory first, while nothing else is there."""
    import keras  # noqa: F401  loaded first, so that its own memory is not counted

    before = peak_bytes()
    model, batch = make(form, features, annotators)
    steps_of(model, endless(batch), 3)
    peak = peak_bytes()
    models = {form: (model, batch)}
    if form != "base":
        models["base"] = make("base", features, annotators)
    rounds = in_turns(models)
    wall, cpu = 1e3 * np.median(rounds[form], axis=0)
    found = {"milliseconds": wall, "cpu_milliseconds": cpu, "peak_mib": (peak - before) / MIB}
    if form != "base":
        found["base_milliseconds"], found["base_cpu_milliseconds"] = 1e3 * np.median(rounds["base"], axis=0)
        found["times_base"], found["times_base_cpu"] = np.median(rounds[form] / rounds["base"], axis=0)
    return found


def bars() -> dict[str, float]:
    """The ratios that have bars, each from models that took turns in one process; "cpu" is of processor time."""
    found: dict[str, float] = {}

    def note(name: str, values: np.ndarray) -> None:
        found[name], found[f"{name}, cpu"] = values

    for head, features in {**FEATURES, "bare": BARE}.items():
        forms = (("base", "base", 1), ("59", "sparse", 59), ("1e6", "sparse", 10**6))
        rounds = in_turns({name: make(form, features, annotators) for name, form, annotators in forms})
        base = rounds["base"]
        note(f"step with the layer over base alone, 59 annotators, {head} head", np.median(rounds["59"] / base, axis=0))
        few, many = (np.median(rounds[name] - base, axis=0) for name in ("59", "1e6"))
        note(f"layer's share, a million annotators over 59, {head} head", many / few)
        note(f"microseconds of the layer, 59 annotators, {head} head", 1e6 * few)
        note(f"microseconds of the layer, 1e6 annotators, {head} head", 1e6 * many)
    for head, features in (("small", FEATURES["small"]), ("bare", BARE)):
        rounds = in_turns({form: make(form, features, 10_000) for form in ("sparse", "one-hot")})
        ratio = np.median(rounds["one-hot"] / rounds["sparse"], axis=0)
        note(f"one-hot over sparse, 10,000 annotators, {head} head", ratio)
    return found


def feed() -> dict[str, float]:
    """Whether the pipeline's input keeps the trainer waiting: steps a second with it and with a batch in memory."""
    import tensorflow as tf

    from crowdzoo.records.example_dataset import ExampleDataset

    features, tasks, annotators = FEATURES["small"], 20_000, 10_000
    model, _ = make("sparse", features, annotators)
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/examples.gz"
        with tf.io.TFRecordWriter(path, "GZIP") as file:
            for _ in range(tasks):
                columns = {
                    "instances": tf.train.Feature(float_list=tf.train.FloatList(value=rng.normal(size=features))),
                    "posterior": tf.train.Feature(float_list=tf.train.FloatList(value=[1 / CLASSES] * CLASSES)),
                }
                for name, size in (("annotator_ids", annotators), ("annotator_labels", CLASSES)):
                    values = rng.integers(size, size=REDUNDANCY)
                    columns[name] = tf.train.Feature(int64_list=tf.train.Int64List(value=values))
                file.write(tf.train.Example(features=tf.train.Features(feature=columns)).SerializeToString())
        dataset = ExampleDataset([path], tasks, {"num_features": features, "classes": [*range(CLASSES)]})
        read = dataset.batches(BATCH, seed=0).repeat()
        x, y = next(iter(read))
        count = 200
        rounds: dict[str, list[float]] = {"files": [], "memory": []}
        steps_of(model, read, tasks // BATCH)  # compiles, and fills the cache as the first epoch does
        for _ in range(5):
            rounds["files"].append(steps_of(model, read, count)[:, 0].mean())
            rounds["memory"].append(steps_of(model, endless((x, y)), count)[:, 0].mean())
    files, memory = (statistics.median(rounds[name]) for name in ("files", "memory"))
    return {
        "steps_per_second_from_files": 1 / files,
        "steps_per_second_from_memory": 1 / memory,
        "times_as_long": statistics.median(a / b for a, b in zip(rounds["files"], rounds["memory"], strict=True)),
    }


# === All runs ===


def run_child(*words: Any) -> dict[str, Any]:
    """One measurement in a process of its own; {"failed": reason} where it did not end well."""
    place = os.pathsep.join([str(Path(__file__).parent.parent), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, __file__, "--child", *map(str, words)],
        env={"TF_CPP_MIN_LOG_LEVEL": "3", **os.environ, "PYTHONPATH": place},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        return {"failed": (done.stderr.strip().splitlines() or [f"ended with {done.returncode}"])[-1]}
    return {key: round(value, 4) for key, value in json.loads(done.stdout.splitlines()[-1]).items()}


def measure_cells() -> dict[str, Any]:
    """Every form with every number of annotators."""
    found: dict[str, Any] = {}
    for head, features in FEATURES.items():
        found[f"{head}, base"] = run_child("cell", "base", features, 1)
        for annotators in ANNOTATORS:
            for form in FORMS:
                if head == "labelme" and form != "sparse":
                    continue  # the small head shows the layers better
                name = f"{head}, {form}, {annotators}"
                if form in ("dense", "one-hot") and 4 * BATCH * CLASSES * annotators > LARGEST:
                    found[name] = {
                        "skipped": f"one array [B, R, K] has {4 * BATCH * CLASSES * annotators / 2**30:.1f} GiB"
                    }
                else:
                    found[name] = run_child("cell", form, features, annotators)
                print(name, found[name], flush=True)
    return found


def about() -> dict[str, Any]:
    """Versions and the machine."""
    import keras

    backend = keras.backend.backend()
    engine = __import__(backend)
    return {
        "backend": f"{backend} {engine.__version__}",
        "keras": keras.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "omp_num_threads": os.environ.get("OMP_NUM_THREADS", ""),
    }


def show(backend: str, saved: dict[str, Any]) -> None:
    """Tables of one backend."""
    from crowdzoo.report.tables import print_table

    cells = saved.get("cells", {})
    for head in FEATURES if cells else ():
        rows = []
        for annotators in ANNOTATORS:
            for form in FORMS:
                row = cells.get(f"{head}, {form}, {annotators}")
                if row is None:
                    continue
                if "milliseconds" in row:
                    keys = ("milliseconds", "base_milliseconds", "times_base", "times_base_cpu")
                    numbers = [f"{row[key]:.2f}" for key in keys]
                    rows.append([f"{annotators:,}", form, *numbers, f"{row['peak_mib']:.0f}"])
                else:
                    rows.append([f"{annotators:,}", form, *[""] * 4, row.get("skipped") or row.get("failed")])
        title = f"{backend}, {head} head ({FEATURES[head]} features): a training step"
        header = ("annotators", "form", "ms", "base alone, ms", "times base", "the same, cpu", "peak MiB")
        print_table(title, header, rows)
        print()
    if "bars" in saved:
        rows = []
        for name, (sign, bar) in BARS.items():
            value = saved["bars"].get(name)
            if value is not None:
                met = value <= bar if sign == "<=" else value >= bar
                cpu = saved["bars"][f"{name}, cpu"]
                rows.append([name, f"{value:.2f}", f"{cpu:.2f}", f"{sign} {bar}", "met" if met else "missed"])
        print_table(f"{backend}: ratios", ("ratio", "by the clock", "of processor time", "bar", ""), rows)
        print()
    if "input" in saved:
        print_table(f"{backend}: input", ("", ""), list(saved["input"].items()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=("bars", "cells", "input"), help="one part of it")
    parser.add_argument("--no-save", action="store_true", help="print only")
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        what, *words = given.child
        found = {"bars": bars, "input": feed}[what]() if not words else cell(words[0], int(words[1]), int(words[2]))
        return print(json.dumps(found))
    import keras

    backend = keras.backend.backend()
    saved = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    found = saved.setdefault(backend, {})
    found["about"] = about()
    if given.only in (None, "bars"):
        found["bars"] = run_child("bars")
    if given.only in (None, "input") and backend == "tensorflow":
        found["input"] = run_child("input")
    if given.only in (None, "cells"):
        found["cells"] = measure_cells()
    show(backend, found if given.only is None else {given.only: found[given.only]})
    if not given.no_save:
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps(saved, indent=2) + "\n")


if __name__ == "__main__":
    main()
