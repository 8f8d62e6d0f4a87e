"""What a GPU brings: training steps and Dawid-Skene on it and on the CPU, and what bfloat16 costs in accuracy.

Runs on any backend of Keras, on the device that the backend takes, and then on the CPU where that was another one.
Every cell is a process of its own.

    python benchmarks/gpu.py                                                               # TensorFlow
    KERAS_BACKEND=jax PYTHONPATH=. .venv-backends/bin/python benchmarks/gpu.py             # or torch
    KERAS_BACKEND=jax PYTHONPATH=. .venv-backends/bin/python benchmarks/gpu.py --only steps --no-save
    python benchmarks/gpu.py --print                                                       # the saved rows

Cells:

    steps          a training step of a method: 1,024 tasks with 512 features, two hidden layers of 1,024 units, ten
                   classes, three labels per task by 1,000 annotators; the median of the second epoch, in float32 and in
                   bfloat16. The step's loss is read, so that the device has done it. Seconds are by the clock, and of
                   the processors, which other programs hardly change.
    dawid-skene    an iteration of Dawid-Skene as array code in keras.ops, compiled where the backend compiles: 1e5 and
                   1e6 annotations by 1,000 annotators, ten classes. Beside it the largest difference of a posterior
                   from that of `crowdzoo.aggregation.DawidSkene` (Numba, on the CPU, float64) after 20 iterations.
    accuracy       LabelMe's held-out accuracy of the crowd layer in float32 and in bfloat16, five seeds.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

RESULTS = Path(__file__).parent / "results" / "gpu.json"
TASKS, FEATURES, HIDDEN, BATCH, CLASSES, ANNOTATORS, REDUNDANCY = 8_192, 512, (1024, 1024), 1024, 10, 1000, 3
METHODS = {"crowdsourced-layer": {}, "conal": {}, "lia": {"epochs_per_round": 2, "marginal_epochs": 2}}
PRECISIONS = ("float32", "mixed_bfloat16")
SIZES = (100_000, 1_000_000)
ITERATIONS, SMOOTHING = 20, 0.01
SEEDS = range(5)
ON_CPU = {"JAX_PLATFORMS": "cpu", "CUDA_VISIBLE_DEVICES": ""}


def device() -> str:
    """The device that the backend computes on, in its own words."""
    import keras

    backend = keras.backend.backend()
    if backend == "jax":
        import jax

        return f"{jax.devices()[0].platform}: {jax.devices()[0].device_kind}"
    if backend == "torch":
        import torch

        return f"gpu: {torch.cuda.get_device_name(0)}" if torch.cuda.is_available() else "cpu: cpu"
    import tensorflow as tf

    devices = tf.config.list_physical_devices("GPU")
    return f"gpu: {tf.config.experimental.get_device_details(devices[0])['device_name']}" if devices else "cpu: cpu"


def about() -> dict[str, Any]:
    """Versions and the machine."""
    import keras

    import crowdzoo

    backend = keras.backend.backend()
    return {
        "backend": f"{backend} {__import__(backend).__version__}",
        "device": device(),
        "keras": keras.__version__,
        "crowdzoo": crowdzoo.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
    }


# === Training steps ===


def step(method: str, precision: str) -> dict[str, Any]:
    """Seconds of a training step."""
    import keras
    from reproduce.simulated_crowds import simulate_annotations

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
    steps = np.diff(clock.ends, axis=0)
    seconds, cpu_seconds = np.median(steps, axis=0)
    return {"seconds": float(seconds), "cpu_seconds": float(cpu_seconds), "steps": len(steps), "seed": 0}


# === Dawid-Skene as array code ===


def dawid_skene(size: int) -> dict[str, Any]:
    """Seconds of an iteration on the backend's device, and how far the posteriors are from crowdzoo's own."""
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
    seconds, cpu_seconds = np.median(rounds, axis=0)
    ours = DawidSkene(prior=SMOOTHING, diagonal=0.0, max_iter=ITERATIONS - 1, tol=0.0)  # the start counts
    ours.fit(crowd)  # compiles
    begin = time.perf_counter(), time.process_time()
    expected = ours.fit(crowd)
    numba = np.subtract((time.perf_counter(), time.process_time()), begin) / expected.num_iterations
    return {
        "seconds": float(seconds),
        "cpu_seconds": float(cpu_seconds),
        "crowdzoo_seconds": float(numba[0]),
        "crowdzoo_cpu_seconds": float(numba[1]),
        "difference": float(np.abs(posterior - expected.posteriors).max()),
        "same_labels": float((posterior.argmax(axis=1) == expected.posteriors.argmax(axis=1)).mean()),
        "seed": 0,
    }


# === Precision ===


def accuracy(precision: str) -> dict[str, Any]:
    """Held-out accuracy on LabelMe, over the seeds."""
    from crowdzoo.datasets import load_labelme
    from crowdzoo.models import TrainingSettings
    from crowdzoo.training.instance_training import train

    labelme = load_labelme()
    training, held = (np.flatnonzero(labelme.split == name) for name in ("train", "eval"))
    accuracies = []
    for seed in SEEDS:
        settings = TrainingSettings(epochs=60, batch_size=64, precision=precision, seed=seed)
        crowd = labelme.annotations.select_tasks(training)
        model, _ = train(settings, labelme.instances[training], annotations=crowd, tasks=crowd.tasks)
        answers = model.predict(labelme.instances[held], verbose=0).argmax(axis=1)
        accuracies.append(float((answers == labelme.gold[held]).mean()))
    return {
        "accuracy": statistics.mean(accuracies),
        "deviation": statistics.stdev(accuracies),
        "seeds": list(SEEDS),
    }


CELLS = {
    "steps": [("step", method, precision) for method in METHODS for precision in PRECISIONS],
    "dawid-skene": [("dawid_skene", str(size), "float32") for size in SIZES],
    "accuracy": [("accuracy", "labelme", precision) for precision in PRECISIONS],
}


def measure(name: str, what: str, precision: str) -> dict[str, Any]:
    """A cell, in this process."""
    if name == "step":
        figures = step(what, precision)
    else:
        figures = dawid_skene(int(what)) if name == "dawid_skene" else accuracy(precision)
    return {"cell": name, "what": what, "precision": precision, **figures, "about": about()}


def run_child(cell: tuple[str, str, str], environment: dict[str, str]) -> dict[str, Any]:
    """A cell in a process of its own; {"failed": reason} where it did not end well."""
    place = os.pathsep.join([str(Path(__file__).parent.parent), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, __file__, "--child", *cell],
        env={"TF_CPP_MIN_LOG_LEVEL": "3", **os.environ, **environment, "PYTHONPATH": place},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        return {"failed": (done.stderr.strip().splitlines() or [f"ended with {done.returncode}"])[-1]}
    return json.loads(done.stdout.splitlines()[-1])


def key(row: dict[str, Any]) -> tuple[str, ...]:
    """What a row measures; a new one of it takes the old one's place."""
    return row["cell"], row["what"], row["precision"], row["about"]["backend"].split()[0], row["about"]["device"]


def save(rows: dict[tuple[str, ...], dict[str, Any]]) -> None:
    """Writes all rows, in the order of what they measure."""
    RESULTS.write_text(json.dumps({"rows": [row for _, row in sorted(rows.items())]}, indent=1) + "\n")


def show(rows: list[dict[str, Any]]) -> None:
    """One table."""
    from crowdzoo.report.tables import print_table

    cpu = {key(row)[:4]: row for row in rows if row["about"]["device"].startswith("cpu")}
    lines = []
    for row in sorted(rows, key=key):
        if "accuracy" in row:
            value = f"{row['accuracy']:.3f} ± {row['deviation']:.3f}"
        else:
            value = f"{1e3 * row['seconds']:.2f} ms, CPU {1e3 * row['cpu_seconds']:.2f} ms"
        other = cpu.get(key(row)[:4])
        ratio = f"{other['seconds'] / row['seconds']:.1f}" if "seconds" in row and other not in (None, row) else ""
        beside = f"{row['difference']:.1e}" if "difference" in row else ""
        names = [row["cell"].replace("_", "-"), row["what"], row["precision"]]
        lines.append([*names, row["about"]["backend"], row["about"]["device"], value, ratio, beside])
    header = ("cell", "of", "precision", "backend", "device", "value", "times the CPU", "difference")
    print_table("GPU and CPU", header, lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=tuple(CELLS), help="one part of it")
    parser.add_argument("--no-save", action="store_true", help="print only")
    parser.add_argument("--print", action="store_true", help="print the saved rows, and measure nothing")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        return print(json.dumps(measure(*arguments.child)))
    saved = json.loads(RESULTS.read_text())["rows"] if RESULTS.exists() else []
    if arguments.print:
        return show(saved)
    rows = {key(row): row for row in saved}
    new = {}
    for part in [arguments.only] if arguments.only else CELLS:
        for cell in CELLS[part]:
            for environment in ({}, ON_CPU):
                row = run_child(cell, environment)
                print(*cell, row.get("failed") or {name: row[name] for name in row if name != "about"}, flush=True)
                if "failed" in row:
                    continue
                new[key(row)] = row
                if not arguments.no_save:
                    save({**rows, **new})
                if row["about"]["device"].startswith("cpu"):
                    break  # that was the backend's own device
    show(list(new.values()))


if __name__ == "__main__":
    main()
