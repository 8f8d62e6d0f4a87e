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

import math
from functools import partial
from pathlib import Path
from typing import Any

import newer
import numpy as np
from deep_methods import Data

RESULTS = Path(__file__).parents[1] / "results" / "annot_mix.json"
TITLE = "annot-mix"
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


def trained(data: Data, seed: int, alpha: float) -> Any:
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


ROWS: newer.Rows = {
    "annot-mix": partial(trained, alpha=1.0),
    "annot-mix, nothing mixed": partial(trained, alpha=0.0),
}


if __name__ == "__main__":
    newer.run(RESULTS, ROWS, TITLE, __doc__)
