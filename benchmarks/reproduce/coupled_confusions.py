"""Coupled confusion correction, which came after the five papers, on the sets of recipe.py: does it earn a place?

    python benchmarks/reproduce/coupled_confusions.py            # the runs that the saved results do not have
    python benchmarks/reproduce/coupled_confusions.py --print    # the saved results, no training

H. Zhang, S. Li, D. Zeng, C. Yan, S. Ge: Coupled Confusion Correction: Learning from Crowds with Sparse Annotations.
AAAI 2024, arXiv:2312.07331. Two networks, each with a crowd layer of its own: annotator r says
softmax(softmax(logits) W_r). After some epochs each step first corrects the matrices to W_r + C_g, with one C for a
group g of annotators whose matrices are alike (k-means). C is one step, from 0, down the gradient of the loss that the
network would have on easy labels after an update with W + C. Easy labels are those of each class that the *other*
network fits best. Then the network and W are updated with W + C. The answer is the mean of both networks.

**Protocol**, fixed before the first run.

- Sets, splits, draws, seeds, base network, optimizer, epochs and batches (of tasks, all labels of each) are those of
  recipe.py; as many rounds of each set as its saved rows have.
- Rows: "CCC", and "CCC, nothing corrected": C stays 0, so two crowd layers (MW) that differ by their weights at the
  start, and the mean of their answers.
- As in the authors' code (github.com/Hansong-Zhang/CCC, which is for CIFAR-10N): a sixth of the epochs without
  correction; C is scaled so that its largest entry is half of W's largest; of the update in which C has a part, only
  the last layer's passes a gradient to C; 30 groups, or one an annotator where there are fewer; batches of 128 easy
  labels. Easy labels are chosen anew in each epoch: there a fiftieth of the tasks in all, here a tenth, and ten a class
  at least, because our sets are smaller.
- What differs: Adam for SGD (as in every row of recipe.py), the last epoch for the best on test data.
- Figure: accuracy on test tasks after the last epoch. Differences are paired by round; interval: `mean_interval` over
  the nine sets, as in recipe.py.
- It becomes part of crowdzoo if "CCC" is above CCEM by an interval beyond zero; otherwise not.

Results go to benchmarks/results/coupled_confusions.json; page.py shows them.
"""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import newer
import numpy as np
from deep_methods import Data

RESULTS = Path(__file__).parents[1] / "results" / "coupled_confusions.json"
TITLE = "Coupled confusion correction"
WARM_UP = 1 / 6  # of the epochs
GROUPS = 30
RATE = 0.5
EASY, EASY_EACH = 0.1, 10  # share of the tasks, and labels a class at least
EASY_BATCH = 128
FLOOR = 1e-5  # added to probabilities, as in the authors' code


class Half:
    """One of the two networks: hidden layers, the last one, and a crowd layer.

    Args:
        x: training instances [N, D], whose mean and variance the base takes.
        annotators: R.
        classes: K.
        settings: `TrainingSettings`.
    """

    def __init__(self, x: np.ndarray, annotators: int, classes: int, settings: Any):
        import keras
        import tensorflow as tf

        from crowdzoo.models import FeatureClassifier

        self.hidden = FeatureClassifier(x.shape[1], None, hidden=settings.hidden, dropout=settings.dropout)
        self.hidden.adapt(x)
        self.last = keras.layers.Dense(classes)
        inputs = keras.Input((x.shape[1],))
        self.network = keras.Model(inputs, self.last(self.hidden(inputs)))
        self.matrices = keras.Variable(np.tile(np.eye(classes, dtype="float32"), (annotators, 1, 1)))
        self.optimizer = keras.optimizers.Adam(settings.learning_rate)
        self.learning_rate = settings.learning_rate
        self.optimizer.build(self.variables)
        self.update = tf.function(self._update, reduce_retracing=True)
        self.correction = tf.function(self._correction, reduce_retracing=True)

    @property
    def variables(self) -> list[Any]:
        """What is trained."""
        return [*self.network.trainable_variables, self.matrices]

    def _update(self, x: Any, said: Any, correction: Any) -> None:
        """A step with the matrices plus a correction [R, K, K]."""
        import tensorflow as tf

        with tf.GradientTape() as tape:
            loss = said_loss(self.network(x, training=True), self.matrices + correction, said)
        variables = self.variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))

    def _correction(self, x: Any, said: Any, groups: Any, number: int, easy_x: Any, easy: Any) -> Any:
        """Corrections of the groups [G, K, K]: `groups` [R] is the annotators' codes."""
        import tensorflow as tf

        classes = self.matrices.shape[-1]
        start = tf.zeros((number, classes, classes))
        hidden = self.hidden.trainable_variables
        own = [self.last.kernel, self.last.bias]
        with tf.GradientTape() as outer:
            outer.watch(start)
            with tf.GradientTape() as inner:
                loss = said_loss(self.network(x, training=True), self.matrices + tf.gather(start, groups), said)
            *of_hidden, kernel, bias, of_matrices = inner.gradient(loss, [*hidden, *own, self.matrices])
            moved = [
                variable - self.learning_rate * tf.stop_gradient(gradient)
                for variable, gradient in zip(hidden, of_hidden, strict=True)
            ]
            seen, _ = self.hidden.stateless_call(moved, self.hidden.non_trainable_variables, easy_x, training=True)
            logits = tf.matmul(seen, own[0] - self.learning_rate * kernel) + own[1] - self.learning_rate * bias
            wrong = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(easy, logits))
        down = outer.gradient(wrong, start)
        largest = tf.reduce_max(self.matrices - self.learning_rate * of_matrices)
        return -RATE * largest * tf.math.divide_no_nan(down, tf.reduce_max(tf.abs(down)))


def said_loss(logits: Any, matrices: Any, said: Any) -> Any:
    """Mean cross-entropy of labels.

    Args:
        logits: [B, K].
        matrices: [R, K, K].
        said: labels as one-hot vectors [B, R, K], zeros where there is none.
    """
    import tensorflow as tf

    scores = tf.einsum("bk,rkl->brl", tf.nn.softmax(logits), matrices)
    return -tf.reduce_sum(said * tf.math.log(tf.nn.softmax(scores) + FLOOR)) / tf.reduce_sum(said)


def easy_labels(probabilities: np.ndarray, tasks: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Positions of the labels that a network fits best, as many of each class.

    Args:
        probabilities: the network's, [N, K].
        tasks: codes of the tasks of the labels, [n].
        labels: codes, [n].
    """
    number_classes = probabilities.shape[1]
    each = max(EASY_EACH, round(EASY * len(np.unique(tasks)) / number_classes))
    fit = probabilities[tasks, labels]
    of_class = (np.flatnonzero(labels == code) for code in range(number_classes))
    return np.concatenate([rows[np.argsort(-fit[rows], kind="stable")[:each]] for rows in of_class])


def batches(number: int, size: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Positions in random order, again and again."""
    while True:
        yield from np.array_split(rng.permutation(number), -(-number // size))


def probabilities_of(half: Half, x: np.ndarray) -> np.ndarray:
    """Of the classes, [n, K]."""
    logits = half.network.predict(x, verbose=0)
    return np.exp(logits - np.logaddexp.reduce(logits, axis=1, keepdims=True))


class Mean:
    """The answer of both networks."""

    def __init__(self, halves: list[Half]):
        self.halves = halves

    def predict(self, x: np.ndarray, **_: Any) -> np.ndarray:
        """Mean probabilities [n, K]."""
        return np.mean([probabilities_of(half, x) for half in self.halves], axis=0)


def trained(data: Data, seed: int, corrected: bool) -> Mean:
    """Both networks after training."""
    import keras
    from sklearn.cluster import KMeans

    from crowdzoo.models import TrainingSettings
    from crowdzoo.training.length import num_labelled, with_length

    annotations, x = data.annotations, data.x
    classes, annotators = annotations.num_classes, annotations.num_annotators
    settings = with_length(TrainingSettings(seed=seed), num_labelled(annotations))
    keras.utils.set_random_seed(seed)
    halves = [Half(x, annotators, classes, settings) for _ in range(2)]
    rng = np.random.default_rng(seed)
    said = np.zeros((len(x), annotators, classes), "float32")
    said[annotations.task_ids, annotations.annotator_ids, annotations.labels] = 1
    tasks, number = np.flatnonzero(annotations.redundancy), min(GROUPS, annotators)
    nothing = np.zeros((annotators, classes, classes), "float32")

    def corrections(half: Half, other: Half) -> Callable[[np.ndarray], np.ndarray]:
        """Of an epoch: from tasks of a step to what is added to its matrices [R, K, K]."""
        flat = half.matrices.numpy().reshape(annotators, -1)
        groups = KMeans(number, n_init=1, random_state=seed).fit_predict(flat).astype("int32")
        rows = easy_labels(probabilities_of(other, x), annotations.task_ids, annotations.labels)
        order = batches(len(rows), EASY_BATCH, rng)

        def of(chosen: np.ndarray) -> np.ndarray:
            easy = rows[next(order)]
            easy_x, labels = x[annotations.task_ids[easy]], annotations.labels[easy]
            return half.correction(x[chosen], said[chosen], groups, number, easy_x, labels).numpy()[groups]

        return of

    for epoch in range(settings.epochs):
        correcting = corrected and epoch >= round(WARM_UP * settings.epochs)
        of_halves = [corrections(*pair) for pair in (halves, halves[::-1])] if correcting else [lambda _: nothing] * 2
        for chosen in np.array_split(rng.permutation(tasks), -(-len(tasks) // settings.batch_size)):
            for half, of in zip(halves, of_halves, strict=True):
                half.update(x[chosen], said[chosen], of(chosen))
    return Mean(halves)


ROWS: newer.Rows = {
    "CCC": partial(trained, corrected=True),
    "CCC, nothing corrected": partial(trained, corrected=False),
}


if __name__ == "__main__":
    newer.run(RESULTS, ROWS, TITLE, __doc__)
