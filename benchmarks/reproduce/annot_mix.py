"""annot-mix, which came after the five papers, on the sets of recipe.py: does it earn a place beside the layers?

    python benchmarks/reproduce/annot_mix.py            # the runs that the saved results do not have
    python benchmarks/reproduce/annot_mix.py --print    # the saved results, no training

M. Herde, L. Lührs, D. Huseljic, B. Sick: Annot-Mix: Learning with Noisy Class Labels from Multiple Annotators via a
Mixup Extension. ECAI 2024, arXiv:2405.03386. What annotator a says of instance x is `p(x) P(x, a)`: class probabilities
and a confusion matrix that depends on both. Each label is mixed with another of its batch, instance, annotator and
label alike, by a share drawn from Beta(alpha, alpha).

**Protocol**, fixed before the first run.

- Sets, splits, draws, seeds, base network, optimizer, epochs and batches (of tasks, all labels of each) are those of
  recipe.py; as many rounds of each set as its saved rows have.
- Rows: "annot-mix" with the authors' alpha = 1 and start (.9 on the diagonal), and the same without mixup, which is a
  confusion matrix for each instance and annotator by a network, as MaDL of the same authors has. Annotators and
  instances are embedded in 16 numbers each, then 32 ReLU; the matrix passes no gradient to the base. (Sizes are ours;
  the authors' optimizer, RAdam with a cosine schedule, is not used, as for no other row.)
- Figure: accuracy on test tasks after the last epoch. Differences are paired by round; interval: `mean_interval` over
  the nine sets, as in recipe.py.
- It becomes a layer if it is above CCEM by an interval beyond zero; otherwise not.

(Tried before on points made for a test: where one of three annotators always says the next class, the network of the
matrices can take two classes for one, since its matrices may differ by instance. Nothing was changed after it.)

Results go to benchmarks/results/annot_mix.json; page.py shows them.
"""

import argparse
import json
import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import recipe
from deep_methods import FOLDS, Data
from intervals import Runs, mean_interval
from stack import stack

from crowdzoo.report.tables import print_table

RESULTS = Path(__file__).parents[1] / "results" / "annot_mix.json"
ALPHAS = {"annot-mix": 1.0, "annot-mix, nothing mixed": 0.0}
AGAINST = ("CCEM", recipe.RECIPE, "CL MW", "DL-EM (AggNet)", "DL-MV")
START = 0.9
EMBEDDING, HIDDEN = 16, 32


def mixed(*arrays: np.ndarray, alpha: float, rng: np.random.Generator) -> list[np.ndarray]:
    """Each row mixed with another, by one share for all arrays; alpha 0 mixes nothing.

    Args:
        *arrays: of n rows.
        alpha: of Beta(alpha, alpha).
        rng: draws shares and partners.
    """
    if not alpha:
        return list(arrays)
    shares, partners = rng.beta(alpha, alpha, size=len(arrays[0])), rng.permutation(len(arrays[0]))
    columns = shares.astype("float32")[:, None]
    return [columns * array + (1 - columns) * array[partners] for array in arrays]


def networks(x: np.ndarray, annotators: int, classes: int, settings: Any) -> tuple[Any, Any]:
    """What is trained, from (instance, annotator) to log-probabilities of what is said, and the base alone.

    Args:
        x: training instances [N, D], whose mean and variance the base takes.
        annotators: R.
        classes: K.
        settings: `TrainingSettings`.
    """
    import keras
    from keras import ops

    from crowdzoo.models import FeatureClassifier

    hidden = FeatureClassifier(x.shape[1], None, hidden=settings.hidden, dropout=settings.dropout)
    hidden.adapt(x)
    instance, annotator = keras.Input((x.shape[1],)), keras.Input((annotators,))
    seen = hidden(instance)
    logits = keras.layers.Dense(classes)(seen)
    still = keras.layers.Lambda(ops.stop_gradient, output_shape=seen.shape[1:])(seen)
    both = keras.layers.Concatenate()([
        keras.layers.Dense(EMBEDDING)(still), keras.layers.Dense(EMBEDDING, use_bias=False)(annotator)
    ])  # fmt: skip
    bias = math.log(START * (classes - 1) / (1 - START)) * np.eye(classes).ravel()
    matrix = keras.layers.Dense(
        classes * classes, bias_initializer=lambda shape, dtype: ops.convert_to_tensor(bias, dtype=dtype)
    )(keras.layers.Dense(HIDDEN, activation="relu")(both))

    class Said(keras.layers.Layer):
        """log sum_k p_k P_kl."""

        def call(self, logits: Any, matrix: Any) -> Any:
            confusions = ops.log_softmax(ops.reshape(matrix, (-1, classes, classes)), axis=-1)
            return ops.logsumexp(ops.log_softmax(logits, axis=-1)[:, :, None] + confusions, axis=1)

    return keras.Model([instance, annotator], Said()(logits, matrix)), keras.Model(instance, logits)


def trained(data: Data, alpha: float, seed: int) -> Any:
    """The base after training: instances to logits."""
    import keras

    from crowdzoo.models import TrainingSettings
    from crowdzoo.training.length import num_labelled, with_length

    annotations = data.annotations
    settings = with_length(TrainingSettings(seed=seed), num_labelled(annotations))
    keras.utils.set_random_seed(seed)
    model, base = networks(data.x, annotations.num_annotators, annotations.num_classes, settings)
    rng = np.random.default_rng(seed)
    who, said = (np.eye(n, dtype="float32") for n in (annotations.num_annotators, annotations.num_classes))
    of_task = np.split(np.argsort(annotations.task_ids, kind="stable"), np.cumsum(annotations.redundancy)[:-1])
    tasks = np.flatnonzero(annotations.redundancy)

    class Batches(keras.utils.PyDataset):
        """All labels of some tasks, mixed anew in each epoch."""

        def __init__(self) -> None:
            super().__init__()
            self.order = rng.permutation(tasks)

        @property
        def num_batches(self) -> int:
            return -(-len(tasks) // settings.batch_size)

        def on_epoch_end(self) -> None:
            self.order = rng.permutation(tasks)

        def __getitem__(self, index: int) -> Any:
            chosen = self.order[index * settings.batch_size : (index + 1) * settings.batch_size]
            rows = np.concatenate([of_task[task] for task in chosen])
            x, a, z = data.x[annotations.task_ids[rows]], who[annotations.annotator_ids[rows]], annotations.labels[rows]
            x, a, z = mixed(x, a, said[z], alpha=alpha, rng=rng)
            return (x, a), z

    model.compile(
        keras.optimizers.Adam(settings.learning_rate),
        loss=lambda z, logs: -keras.ops.sum(z * logs, axis=-1),
    )
    model.fit(Batches(), epochs=settings.epochs, shuffle=False, verbose=0)
    return base


def work(data: Data, row: str, seed: int) -> dict[str, Any]:
    """One training: accuracy on the test tasks."""
    import keras
    import tensorflow as tf

    tf.config.experimental.enable_op_determinism()
    keras.utils.clear_session()
    started = time.process_time()
    said = trained(data, ALPHAS[row], seed).predict(data.x_test, verbose=0).argmax(axis=1)
    seconds = round(time.process_time() - started, 1)
    return {"seed": seed, "test": float((said == data.gold_test).mean()), "cpu_seconds": seconds, "stack": stack()}


def read() -> dict[str, Any]:
    return json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.is_file() else {}


def measure() -> None:
    """The runs that the results do not have, row by row."""
    for row in ALPHAS:
        for name, rows in recipe.complete(recipe.read()).items():
            for seed in [run["seed"] for run in rows["gold"]]:
                saved = read()
                runs = saved.setdefault(name, {}).setdefault(row, [])
                if any(run["seed"] == seed for run in runs):
                    continue
                runs.append(work(recipe.SETS[name](seed), row, seed))
                RESULTS.write_text(json.dumps(saved, indent=1) + "\n", encoding="utf-8")
                print(f"{name}, {row}, {seed}: {runs[-1]['test']:.4f}, {runs[-1]['cpu_seconds']} s", flush=True)


def tables(results: dict[str, Any]) -> Iterator[tuple[str, tuple[str, ...], list[tuple[str, ...]]]]:
    """annot-mix against rows of recipe.py, over all sets; and by set. A row stands there when every run is there."""
    others = recipe.complete(recipe.read())
    number = {name: len(rows["gold"]) for name, rows in others.items()}
    done = [row for row in ALPHAS if all(len(results.get(name, {}).get(row, [])) == n for name, n in number.items())]
    if not done:
        return
    by_set, lines = [], []
    for row in done:
        ours = {name: [run["test"] for run in results[name][row]] for name in others}
        by_set.append((row, *(f"{100 * np.mean(each):.1f}" for each in ours.values())))
        mean = np.mean([100 * np.mean(each) for each in ours.values()])
        for other in AGAINST:
            runs = []
            for name, rows in others.items():
                theirs = [run["test"] for run in rows[other]]
                gains = [100 * (a - b) for a, b in zip(ours[name], theirs, strict=True)]
                runs.append(Runs(gains, overlap=1 / (FOLDS - 1) if name in recipe.REAL else 0.0))
            average, half = mean_interval(runs)
            won = sum(float(np.mean(np.asarray(each.values, float))) > 0 for each in runs)
            lines.append((
                row, other, f"{mean:.1f}", f"{recipe.average(others, other, 'test'):.1f}",
                f"{average:+.1f} ± {half:.1f}", f"{won} of {len(runs)}",
            ))  # fmt: skip
    for other in AGAINST:
        means = (100 * np.mean([run["test"] for run in rows[other]]) for rows in others.values())
        by_set.append((other, *(f"{mean:.1f}" for mean in means)))
    header = ("trained by", "against", "its mean", "the other's mean", "difference, paired", "sets won")
    yield f"annot-mix against each: accuracy on test tasks, {len(others)} sets", header, lines
    yield "annot-mix by set: accuracy on test tasks", ("trained by", *others), by_set


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--print", action="store_true", dest="only_print", help="show the saved results and stop")
    if not parser.parse_args().only_print:
        measure()
    for title, header, rows in tables(read()):
        print_table(title, header, rows)
        print()


if __name__ == "__main__":
    main()
