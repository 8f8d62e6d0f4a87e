"""What a GPU brings: training steps and Dawid-Skene on it and on the CPU, and what bfloat16 costs in accuracy.

Runs on any backend of Keras, on the device that the backend takes.

    KERAS_BACKEND=jax PYTHONPATH=. .venv-backends/bin/python benchmarks/gpu.py             # or torch
    KERAS_BACKEND=jax JAX_PLATFORMS=cpu PYTHONPATH=. .venv-backends/bin/python benchmarks/gpu.py
    KERAS_BACKEND=torch CUDA_VISIBLE_DEVICES= PYTHONPATH=. .venv-backends/bin/python benchmarks/gpu.py
    python benchmarks/gpu.py --print                                                       # the saved rows

Parts:

    steps          a training step of a method: 1,024 tasks with 512 features, two hidden layers of 1,024 units, ten
                   classes, three labels per task by 1,000 annotators; the median of the second epoch, in float32 and in
                   bfloat16. The step's loss is read, so that the device has done it. Seconds are by the clock, and of
                   the processors, which other programs hardly change.
    dawid-skene    an iteration of Dawid-Skene as array code in keras.ops, compiled where the backend compiles: 1e5 and
                   1e6 annotations by 1,000 annotators, ten classes. Beside it the largest difference of a posterior
                   from that of `crowdzoo.aggregation.DawidSkene` (Numba, on the CPU, float64) after 20 iterations.
    accuracy       LabelMe's held-out accuracy of the crowd layer in float32 and in bfloat16, five seeds.
"""

import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).parent / "reproduce"))
from rows import Parts, run

RESULTS = Path(__file__).parent / "results" / "gpu.json"
TASKS, FEATURES, HIDDEN, BATCH, CLASSES, ANNOTATORS, REDUNDANCY = 8_192, 512, (1024, 1024), 1024, 10, 1000, 3
METHODS = {"crowdsourced-layer": {}, "conal": {}, "lia": {"epochs_per_round": 2, "marginal_epochs": 2}}
PRECISIONS = ("float32", "mixed_bfloat16")
SIZES = (100_000, 1_000_000)
ITERATIONS, SMOOTHING = 20, 0.01
SEEDS = range(5)


def device() -> str:
    """The backend and the device that it computes on, in its own words."""
    import keras

    backend, gpus = keras.backend.backend(), []
    if backend == "jax":
        import jax

        gpus = [device.device_kind for device in jax.devices() if device.platform != "cpu"]
    elif backend == "torch":
        import torch

        gpus = [torch.cuda.get_device_name(0)] if torch.cuda.is_available() else []
    else:
        import tensorflow as tf

        details = tf.config.experimental.get_device_details
        gpus = [details(gpu)["device_name"] for gpu in tf.config.list_physical_devices("GPU")]
    return f"{backend}, {gpus[0] if gpus else 'cpu'}"


# === Training steps ===


def steps(method: str, precision: str) -> Iterator[dict[str, Any]]:
    """Seconds of a training step."""
    import keras
    from simulated_crowds import simulate_annotations

    from crowdzoo.models import TrainingSettings
    from crowdzoo.training.instance_training import train

    class Clock(keras.callbacks.Callback):
        """Notes when the steps of an epoch end; a recipe has several trainings, of which the last counts."""

        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            self.ends: list[tuple[float, float]] = []

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            float((logs or {}).get("loss", 0.0))  # wait for the device
            self.ends.append((time.perf_counter(), time.process_time()))

    rng = np.random.default_rng(0)
    truth = rng.integers(CLASSES, size=TASKS)
    x = (rng.normal(size=(CLASSES, FEATURES))[truth] + rng.normal(size=(TASKS, FEATURES))).astype("float32")
    confusion = np.full((CLASSES, CLASSES), 0.3 / (CLASSES - 1)) + (0.7 - 0.3 / (CLASSES - 1)) * np.eye(CLASSES)
    crowd = simulate_annotations(truth, np.stack([confusion] * ANNOTATORS), redundancy=REDUNDANCY, seed=0)
    settings = TrainingSettings(
        method=method, arguments=METHODS[method], hidden=HIDDEN, epochs=2, batch_size=BATCH, precision=precision, seed=0
    )
    clock = Clock()
    train(settings, x, annotations=crowd, callbacks=[clock])
    seconds, cpu_seconds = 1e3 * np.median(np.diff(clock.ends, axis=0), axis=0)
    yield {"milliseconds": float(seconds), "CPU milliseconds": float(cpu_seconds)}


# === Dawid-Skene as array code ===


def dawid_skene(size: int) -> Iterator[dict[str, Any]]:
    """Milliseconds of an iteration on the backend's device, and how far the posteriors are from crowdzoo's own."""
    import keras
    from keras import ops

    from crowdzoo.aggregation import DawidSkene
    from crowdzoo.data.annotations import Annotations

    rng = np.random.default_rng(0)
    num_tasks = size // REDUNDANCY
    truth = rng.integers(CLASSES, size=num_tasks)
    task = np.repeat(np.arange(num_tasks), REDUNDANCY)
    annotator = (rng.integers(ANNOTATORS, size=(num_tasks, 1)) + ANNOTATORS // 7 * np.arange(REDUNDANCY)) % ANNOTATORS
    annotator = annotator.ravel()
    label = np.where(rng.random(len(task)) < 0.7, truth[task], rng.integers(CLASSES, size=len(task)))
    crowd = Annotations.from_arrays(
        task, annotator, label, tasks=np.arange(num_tasks), annotators=np.arange(ANNOTATORS),
        classes=np.arange(CLASSES),
    )  # fmt: skip
    votes = np.zeros((num_tasks, CLASSES), "float32")
    np.add.at(votes, (task, label), 1)

    cells = ops.convert_to_tensor((annotator * CLASSES + label).astype("int32"))
    tasks = ops.convert_to_tensor(task.astype("int32"))

    def iterate(posterior: Any, cells: Any, tasks: Any) -> Any:
        """An M step and an E step, `[N, K]` -> `[N, K]`."""
        counts = ops.segment_sum(ops.take(posterior, tasks, axis=0), cells, num_segments=ANNOTATORS * CLASSES)
        counts = ops.reshape(counts, (ANNOTATORS, CLASSES, CLASSES)) + SMOOTHING  # [annotator, said, true]
        logs = ops.log(counts / ops.sum(counts, axis=1, keepdims=True))
        prior = ops.log(ops.sum(posterior, axis=0) + SMOOTHING)
        evidence = ops.segment_sum(
            ops.take(ops.reshape(logs, (-1, CLASSES)), cells, axis=0), tasks, num_segments=num_tasks
        )
        return ops.softmax(evidence + prior, axis=-1)

    backend = keras.backend.backend()
    run = iterate
    if backend == "jax":
        import jax

        run = jax.jit(iterate)
    elif backend == "tensorflow":
        import tensorflow as tf

        run = tf.function(iterate)
    start = ops.convert_to_tensor(votes / votes.sum(axis=1, keepdims=True))

    def fit() -> Any:
        posterior = start
        for _ in range(ITERATIONS):
            posterior = run(posterior, cells, tasks)
        return ops.convert_to_numpy(posterior)  # waits for the device

    fit()  # compiles
    rounds = []
    for _ in range(5):
        begin = time.perf_counter(), time.process_time()
        posterior = fit()
        rounds.append(np.subtract((time.perf_counter(), time.process_time()), begin) / ITERATIONS)
    seconds, cpu_seconds = 1e3 * np.median(rounds, axis=0)
    ours = DawidSkene(prior=SMOOTHING, diagonal=0.0, max_iter=ITERATIONS - 1, tol=0.0)  # the start counts
    ours.fit(crowd)  # compiles
    begin = time.perf_counter()
    expected = ours.fit(crowd)
    yield {
        "milliseconds": float(seconds),
        "CPU milliseconds": float(cpu_seconds),
        "crowdzoo, milliseconds": 1e3 * (time.perf_counter() - begin) / expected.num_iterations,
        "difference": float(np.abs(posterior - expected.posteriors).max()),
        "same labels": float((posterior.argmax(axis=1) == expected.posteriors.argmax(axis=1)).mean()),
    }


# === Precision ===


def accuracy(precision: str) -> Iterator[dict[str, Any]]:
    """Held-out accuracy on LabelMe, for each seed."""
    from crowdzoo.datasets import load_labelme
    from crowdzoo.models import TrainingSettings
    from crowdzoo.training.instance_training import train

    labelme = load_labelme()
    training, held = (np.flatnonzero(labelme.split == name) for name in ("train", "eval"))
    for seed in SEEDS:
        settings = TrainingSettings(epochs=60, batch_size=64, precision=precision, seed=seed)
        crowd = labelme.annotations.select_tasks(training)
        model, _ = train(settings, labelme.instances[training], annotations=crowd, tasks=crowd.tasks)
        answers = model.predict(labelme.instances[held], verbose=0).argmax(axis=1)
        yield {"seed": str(seed), "accuracy": float((answers == labelme.gold[held]).mean())}


def parts() -> Parts:
    """The rows of this device."""
    here = device()
    return {
        "steps": {
            f"{here}: {method}, {precision}": partial(steps, method, precision)
            for method in METHODS
            for precision in PRECISIONS
        },
        "dawid-skene": {f"{here}: {size}": partial(dawid_skene, size) for size in SIZES},
        "accuracy": {f"{here}: {precision}": partial(accuracy, precision) for precision in PRECISIONS},
    }


if __name__ == "__main__":
    run(RESULTS, parts(), __doc__)
