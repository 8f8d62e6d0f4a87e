"""Methods of others since 2020 compared with the recommended one: which of them belong in the zoo.

    python benchmarks/reproduce/since_2022.py            # the sets that the results do not have; needs CROWDZOO_DATA
    python benchmarks/reproduce/since_2022.py --page     # the table of the saved results

**Protocol**, fixed before the first run.

- Sets: every one with features and classes at hand. People: LabelMe, Music, Blue Birds, RTE, the medical relations
  causes and treats (recipe.py). Generated: digits with annotators who exchange digits (`digits`), CoNAL's two
  families, Dawid and Skene's, circles, digits labelled by small classifiers (recipe.py); one draw, seed 0.
- `crowdzoo.compare` with gold: fifths in turns, seed 0, default settings for every row; Music has CoNAL's network.
- Rows: the base on vote shares (majority vote) and on the posteriors of robust and Dawid-Skene (label smoothing by
  posteriors); ccem, which is recommended; and the candidates, with their papers' settings:
    - `madl`: MaDL(X, W) without its embeddings' similarity (Herde, Huseljic, Sick: Multi-annotator Deep Learning. TMLR
      2023): logits of a confusion matrix from the instance's features and an embedding of the annotator;
    - `elr`: early-learning regularization on vote shares (Liu, Niles-Weed, Razavian, Fernandez-Granda. NeurIPS 2020),
      lambda 3, beta .7, targets once an epoch;
    - `small-loss`: sample selection on vote shares (the rule of Han and others: Co-teaching. NeurIPS 2018, one
      network): each epoch keeps the tasks of smallest loss, down to the mean share of the winning class from epoch 10;
    - `gce`: generalised cross-entropy on vote shares (Zhang, Sabuncu. NeurIPS 2018), q .7.
- annot-mix (Herde and others, ECAI 2024) and coupled confusion correction (Li and others, AAAI 2024) were measured
  before on nine of these sets by recipe.py's protocol, 72.4 and at most the 75.7 of ccem, and are not run again.
- Figure: accuracy on the tasks of the fifths, less that of ccem; interval by drawing the tasks again (`bootstrap`).
- Decision: a candidate becomes a layer if its interval is above zero on one set of people and on one generated set at
  least, and below zero on none; at most three do. Else the results page has its mean.
- A candidate whose interval is below zero on one set is not run on the sets after it (added after three sets).

The results go to benchmarks/results/since_2022.json.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import keras
import numpy as np
from deep_methods import TRAINING, Data, labelme, music
from keras import ops
from needed import need
from recipe import GENERATED, read_set
from rows import grid, read, run
from settings import AGGREGATORS, LAYERS

import crowdzoo
from crowdzoo import Annotations
from crowdzoo.comparison.intervals import bootstrap
from crowdzoo.layers import CrowdLayer, LayerTraits
from crowdzoo.models import TrainingSettings
from crowdzoo.training.expectation import Labels, annotation_columns
from crowdzoo.training.phases import answers_of_batch, compile_temporarily
from crowdzoo.training.recipes import register_recipe

RESULTS = Path(__file__).parents[1] / "results" / "since_2022.json"
RECOMMENDED, CANDIDATES = "ccem", ("madl", "elr", "small-loss", "gce")
METHODS = ("majority-vote", "robust", "dawid-skene", RECOMMENDED, *CANDIDATES)
LAMBDA, BETA, Q, RAMP = 3.0, 0.7, 0.7, 10
READ = {  # name, and annotations per task
    "Blue Birds": ("bluebirds", 5), "RTE": ("rte", 3), "medical, causes": ("medical-cause", 3),
    "medical, treats": ("medical-treat", 3),
}  # fmt: skip
PEOPLE = ("LabelMe", "Music", *READ)
LOOKS_LIKE = {1: 7, 3: 8, 4: 9}


class OnVotes(CrowdLayer):
    """A base that learns from vote shares; nothing is learnt of annotators."""

    def build(self, inputs_shape: Any) -> None:
        """Knows the classes."""
        self._num_classes = inputs_shape[-1]
        super().build(inputs_shape)

    def call(self, inputs: Any, annotators: Any = None, training: Any = None) -> Any:
        """Everybody says what the base says."""
        width = self.num_annotators if annotators is None else annotators.shape[1] or ops.shape(annotators)[1]
        logs = ops.log(ops.maximum(inputs, 1e-30))[:, None]
        return ops.tile(logs, (1, width, 1))

    def start(self, votes: np.ndarray) -> np.ndarray:
        """What the loss gets at first, `[N, ...]`."""
        return votes

    def after(self, epoch: int, votes: np.ndarray, predicted: np.ndarray, targets: np.ndarray) -> None:
        """Changes the targets, given the probabilities `[N, K]` after an epoch."""

    def cost(self, y_true: Any, y_pred: Any) -> Any:
        """Of each task, `[B]`."""
        return -ops.sum(y_true * ops.log(ops.maximum(y_pred, 1e-30)), axis=-1)


@crowdzoo.register("layer", "elr")
@keras.saving.register_keras_serializable(package="since_2022")
class EarlyLearning(OnVotes):
    """Targets are the votes and a running mean of the base's own answers."""

    def start(self, votes: np.ndarray) -> np.ndarray:
        """See `OnVotes`."""
        return np.concatenate([votes, np.zeros_like(votes)], axis=1)

    def after(self, epoch: int, votes: np.ndarray, predicted: np.ndarray, targets: np.ndarray) -> None:
        """See `OnVotes`."""
        classes = votes.shape[1]
        targets[:, classes:] = BETA * targets[:, classes:] + (1 - BETA) * predicted

    def cost(self, y_true: Any, y_pred: Any) -> Any:
        """See `OnVotes`."""
        votes, kept = ops.split(y_true, 2, axis=-1)
        agreement = ops.clip(ops.sum(kept * y_pred, axis=-1), 0.0, 1 - 1e-4)
        return super().cost(votes, y_pred) + LAMBDA * ops.log(1 - agreement)


@crowdzoo.register("layer", "small-loss")
@keras.saving.register_keras_serializable(package="since_2022")
class SmallLoss(OnVotes):
    """Targets of the tasks of largest loss are zero, so they cost nothing."""

    def after(self, epoch: int, votes: np.ndarray, predicted: np.ndarray, targets: np.ndarray) -> None:
        """See `OnVotes`."""
        losses = -(votes * np.log(np.maximum(predicted, 1e-30))).sum(axis=1)
        share = 1 - (1 - votes.max(axis=1).mean()) * min(1.0, (epoch + 1) / RAMP)
        targets[:] = np.where((losses <= np.quantile(losses, share))[:, None], votes, 0)


@crowdzoo.register("layer", "gce")
@keras.saving.register_keras_serializable(package="since_2022")
class GeneralisedCrossEntropy(OnVotes):
    """Between cross-entropy and the mean absolute error."""

    def cost(self, y_true: Any, y_pred: Any) -> Any:
        """See `OnVotes`."""
        return ops.sum(y_true * (1 - ops.power(ops.maximum(y_pred, 1e-7), Q)) / Q, axis=-1)


@crowdzoo.register("layer", "madl")
@keras.saving.register_keras_serializable(package="since_2022")
class MaDL(CrowdLayer):
    """Confusion matrices from the features and an embedding of the annotator, begun with P(right) = .8."""

    traits = LayerTraits(uses_features=True)

    def build(self, inputs_shape: Any, features_shape: Any = None) -> None:
        """Makes the embeddings and the network."""
        classes = self._num_classes = inputs_shape[-1]
        self.embedding = self._weight("embedding", (self.num_annotators, 16), "random_normal")
        self.features = self._linear(16, features_shape[-1], "features")
        self.hidden = self._linear(128, 32, "hidden", "relu")
        self.out = self._linear(classes**2, 128, "out")
        self.out.kernel.assign(0.01 * self.out.kernel)
        self.advantage = self._advantage(0.8, classes)
        super().build(inputs_shape)

    def log_confusions(self, annotators: Any, features: Any = None) -> Any:
        """`[B, M, K, K]`."""
        own = self.rows_of(self.embedding, annotators)
        seen = ops.zeros_like(own) if features is None else ops.relu(self.features(self._cast(features)))[:, None]
        both = ops.concatenate([own, seen + ops.zeros_like(own)], axis=-1)
        logits = ops.reshape(self.out(self.hidden(both)), (*ops.shape(own)[:-1], self._num_classes, self._num_classes))
        return ops.log_softmax(logits + self.advantage * ops.eye(self._num_classes), axis=-1)

    def call(self, inputs: Any, annotators: Any = None, features: Any = None, training: Any = None) -> Any:
        """Log-probabilities of the labels, `[B, M, K]`."""
        annotators = self._everybody(inputs) if annotators is None else annotators
        return ops.logsumexp(self._log_prior(inputs)[:, None, :, None] + self.log_confusions(annotators, features), 2)


def fit_on_votes(model: Any, data: Any, order: dict[str, Any], **kwargs: Any) -> keras.callbacks.History:
    """The recipe of `OnVotes`."""
    layer = model.crowd
    votes = Labels(annotation_columns(data), layer.num_classes).mean(data.num_tasks)
    targets = layer.start(votes).copy()

    def after(epoch: int, logs: Any = None) -> None:
        predicted = np.zeros_like(votes)
        for x, _ in data.batches(256, 0, shuffle=False, inputs=("tasks",)):
            rows = np.asarray(x["tasks"])
            predicted[rows] = answers_of_batch(model, x["instances"], len(rows))
        layer.after(epoch, votes, predicted, targets)

    callbacks = [keras.callbacks.LambdaCallback(on_epoch_end=after), *(kwargs.pop("callbacks", None) or [])]
    with compile_temporarily(model, loss=lambda y, p: layer.cost(y, p), metrics=[], weighted_metrics=[]):
        return model.fit_batches(data.batches(**order, inputs=(), targets=targets), callbacks=callbacks, **kwargs)


register_recipe(OnVotes, fit_on_votes)


def digits(seed: int) -> Data:
    """Scikit-learn's handwritten digits, 1,200 to train on, with thirty annotators.

    12 are right in .8 of their answers and else say any digit; 12 say 7 for 1, 8 for 3 and 9 for 4 in .58 of these
    cases and are as the first else; 6 say any digit. Four of them, drawn at random, label each task.
    """
    from sklearn.datasets import load_digits

    x, gold = load_digits(return_X_y=True)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(x))
    x, gold = (x[order] / 16).astype("float32"), gold[order]
    train = 1200
    labels = np.full((train, 30), -1)
    for task in range(train):
        for annotator in rng.choice(30, 4, replace=False):
            truth = gold[task]
            label = truth if rng.random() < 0.8 and annotator < 24 else rng.integers(10)
            if 12 <= annotator < 24 and truth in LOOKS_LIKE and rng.random() < 0.58:
                label = LOOKS_LIKE[truth]
            labels[task, annotator] = label
    annotations = Annotations.from_dense(labels, classes=np.arange(10))
    return Data(x[:train], annotations, gold[:train], x[train:], gold[train:], {})


def sets() -> dict[str, Any]:
    """Name -> instances, annotations, gold and settings."""

    def real(name: str) -> tuple[Any, ...]:
        source, redundancy = READ[name]
        crowd = read_set(source)
        known = np.flatnonzero(crowd.gold >= 0)
        annotations = crowd.annotations.select_tasks(known).restrict(redundancy=redundancy, seed=0)
        return crowd.x[known], annotations, crowd.gold[known], {}

    def drawn(data: Any) -> tuple[Any, ...]:
        return data.x, data.annotations, data.gold, data.settings

    return {
        "LabelMe": lambda: drawn(labelme()),
        "Music": lambda: drawn(music()),
        **{name: lambda name=name: real(name) for name in READ},
        "digits, exchanged": lambda: drawn(digits(0)),
        **{name: lambda make=make: drawn(make(0)) for name, make in GENERATED.items()},
    }


def fixed(name: str) -> dict[str, Any]:
    """All settings of a method; the seed is that of the comparison, and its baseline has none."""
    of_aggregation = {} if name == "majority-vote" else AGGREGATORS.get(name, {})
    return LAYERS.get(name) or {key: value for key, value in of_aggregation.items() if key != "seed"}


def measured(name: str) -> Iterator[dict[str, Any]]:
    """Accuracy of each method on a set, and its difference to the recommended one with its interval."""
    others = [row["runs"] for key, row in read(RESULTS).get("sets", {}).items() if key != name]
    known = [{run["method"] for run in runs if run["high"] >= 0} for runs in others]
    methods = [method for method in METHODS if method not in CANDIDATES or all(method in each for each in known)]
    x, annotations, gold, settings = sets()[name]()
    comparison = crowdzoo.compare(
        annotations, x, gold, methods=[(method, fixed(method)) for method in methods],
        settings=TrainingSettings(**{**TRAINING, **settings}), tasks=annotations.tasks,
    )  # fmt: skip
    scores = {title.partition(" ")[0]: task_scores for title, task_scores in comparison.scores.items()}
    for method, task_scores in scores.items():
        difference, low, high = bootstrap(task_scores, scores[RECOMMENDED])
        accuracy = float(task_scores.mean())
        yield {"method": method, "accuracy": accuracy, "difference": difference, "low": low, "high": high}


def show_table() -> None:
    """Means over the sets of each sort, and on how many of them the interval is above or below zero."""
    results, table = read(RESULTS)["sets"], []
    for name in METHODS:
        row = [name]
        for some in (PEOPLE, tuple(key for key in results if key not in PEOPLE)):
            runs = [run for key in some if key in results for run in results[key]["runs"] if run["method"] == name]
            above, below = sum(run["low"] > 0 for run in runs), sum(run["high"] < 0 for run in runs)
            mean = f"{100 * np.mean([run['accuracy'] for run in runs]):.1f}" if runs else "-"
            row += [mean, f"{above} of {len(runs)}", f"{below}"]
        table.append(row)
    print(grid(("method", "people", "above ccem", "below", "generated", "above ccem", "below"), table))


PARTS = {"sets": {name: partial(measured, name) for name in sets()}}

if __name__ == "__main__":
    need("music-genre-amt", "bluebirds-lia", "snow2008", "medical-relation-extraction")
    run(RESULTS, PARTS, __doc__, show_table)
