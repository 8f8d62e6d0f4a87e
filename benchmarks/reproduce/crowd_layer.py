"""Experiments of Rodrigues and Pereira other than their tables: simulated annotators, starts, schedules, thirty runs.

    python benchmarks/reproduce/crowd_layer.py                     # what is missing in the saved results
    python benchmarks/reproduce/crowd_layer.py --parts identity
    python benchmarks/reproduce/crowd_layer.py --print             # the saved results, no training

**Protocol**, fixed before the first run. LabelMe's 512 descriptors, 750 training and 250 test photographs, the network
of deep_methods.py (128 ReLU, dropout .5), Adam .001, batches of 64. Accuracy is that of the test photographs after the
last epoch. Nothing is chosen by gold.

- five annotators (for Dogs vs. Cats, whose photographs are not at hand): is a photograph of nature (coast, forest,
  mountain, open country: the positive class) or of what people built? Five simulated annotators answer all photographs
  with the sensitivities and specificities of the authors' code. 30 epochs, batches of 16, as there. 30 runs; each draws
  the answers anew.
- identity: crowd layers (MW) whose matrices start as the identity, or at random (uniform, Glorot's limits), and then
  with or without the regularizer lambda * sum_r |W_r - I|^2 in the loss of each batch. LabelMe's eight classes and 59
  annotators, 100 epochs, 3 seeds.
- matrices: the matrices of the row "identity start" compared with the true confusions, shares of labels by gold on
  training photographs: correlation over all cells of the rows that have ten labels or more, and the same of predicted
  and true matrices less the mean matrix of all annotators, which asks whether annotators are told apart. 3 seeds.
- EM schedules: deep EM with an E-step every 1, 5 or 25 of 60 epochs. LabelMe, 3 seeds.
- Bars of the claims: the identity start above each random start with a regularizer, by an interval beyond zero; the
  correlation of matrices above .9, and of what tells annotators apart above .5.
- thirty runs: the rows of the paper's table on LabelMe, 30 seeds, of weights and order of the tasks. 60 epochs.

(Amended before the first row: 3 runs and seeds were 5. Amended later, when three runs of the five annotators and thirty
of DL-MV and CL (MW) were known: 30 runs of the five annotators, and of the other rows on LabelMe. Corrected then: rows
by the settings of deep_methods.py have 60 epochs on LabelMe, and 100 were written here. Random starts go by rounding:
computed again in three processes, seed 0 of lambda .001 had .800, .820 and .820 in place of .816.)
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import keras
import numpy as np
from conal import accuracies
from deep_methods import DATA, ROWS, Data, labelme, layer
from rows import Parts, run
from settings import LAYERS

from crowdzoo import Annotations, CrowdModel
from crowdzoo.layers import CrowdsourcedLayer
from crowdzoo.models import FeatureClassifier

RESULTS = Path(__file__).parents[1] / "results" / "crowd_layer.json"
# the authors' notebook: P(says yes | yes) and P(says no | no) of its five annotators
SENSITIVITIES = (0.705, 0.796, 0.499, 0.195, 0.898)
SPECIFICITIES = (0.591, 0.898, 0.497, 0.899, 0.900)
SEEDS = range(3)
THIRTY = range(30)
NATURE = ("coast", "forest", "mountain", "opencountry")
FIVE = ("gold", "DL-MV", "DL-DS", "DL-EM (AggNet)", "CL MW")
OF_PAPER = (*FIVE, "DoctorNet", "WDN", "CL VW", "CL VW+B")
SCHEDULES = (1, 5, 25)
LABELS = 10  # of a row of true confusions, at least
STARTS: dict[str, dict[str, Any]] = {
    "identity start": {},
    "random start": {"identity": False},
    "random start, lambda .001": {"identity": False, "strength": 0.001},
    "random start, lambda .01": {"identity": False, "strength": 0.01},
}

# === Five simulated annotators ===


def five_annotators(seed: int) -> Data:
    """LabelMe with two classes, answered by five simulated annotators; their draws are the seed's."""
    data = labelme()
    nature = np.isin(np.asarray(data.annotations.classes), NATURE).astype(int)
    gold = nature[data.gold]
    rng = np.random.default_rng([seed, 18])
    right = rng.random((len(gold), 5)) < np.where(gold[:, None] == 1, SENSITIVITIES, SPECIFICITIES)
    tasks, annotators = np.divmod(np.arange(5 * len(gold)), 5)
    labels = np.where(right, gold[:, None], 1 - gold[:, None]).ravel()
    annotations = Annotations(
        "classification", tasks, annotators, labels, np.arange(len(gold)), np.arange(5), np.arange(2)
    )
    settings = {"epochs": 30, "batch_size": 16}
    return Data(data.x, annotations, gold, data.x_test, nature[data.gold_test], settings)


DATA["five annotators"] = five_annotators

# === Identity: start or regularizer ===


@keras.saving.register_keras_serializable(package="benchmarks")
class NearIdentity(CrowdsourcedLayer):
    """A crowd layer (MW) that is drawn to the identity, and may start elsewhere.

    Args:
        num_annotators: R.
        strength: lambda of `lambda * sum_r |W_r - I|^2`, added to the loss of each batch.
        identity: whether matrices start as the identity; else by Glorot and Bengio.
        **kwargs: those of `CrowdsourcedLayer`.
    """

    def __init__(self, num_annotators: int, strength: float = 0.0, identity: bool = True, **kwargs: Any):
        super().__init__(num_annotators, **{**LAYERS["crowdsourced-layer"], **kwargs})
        self.strength, self.identity = strength, identity

    def get_config(self) -> dict[str, Any]:
        """See `CrowdsourcedLayer`."""
        return {**super().get_config(), "strength": self.strength, "identity": self.identity}

    def build(self, inputs_shape: tuple[int | None, ...]) -> None:
        """See `CrowdsourcedLayer.build`."""
        super().build(inputs_shape)
        if not self.identity:
            limit = (3 / self.kernel.shape[-1]) ** 0.5
            self.kernel.assign(keras.random.uniform(self.kernel.shape, -limit, limit))

    def call(self, inputs: Any, annotators: Any = None, training: bool = False) -> Any:
        """See `CrowdsourcedLayer.call`."""
        if self.strength:
            away = self.kernel - keras.ops.eye(self.kernel.shape[-1])
            self.add_loss(self.strength * keras.ops.sum(keras.ops.square(away)))
        return super().call(inputs, annotators, training)


def started(arguments: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Accuracy of one start, and how far the learnt matrices are like the true ones."""
    for seed in SEEDS:
        data, model = _fitted(arguments, seed)
        predicted = model.predict(data.x_test, verbose=0).argmax(axis=1)
        counts = label_counts(data.annotations, data.gold)
        yield {
            "seed": seed,
            "last": float((predicted == data.gold_test).mean()),
            **likeness(model.annotator_confusions(), counts),
        }


def _fitted(arguments: dict[str, Any], seed: int) -> tuple[Data, CrowdModel]:
    """LabelMe, and a model trained on it with a `NearIdentity` of these arguments."""
    data = labelme()
    annotations = data.annotations
    keras.utils.set_random_seed(seed)
    base = FeatureClassifier(data.x.shape[1], annotations.num_classes, hidden=(128,), dropout=0.5)
    base.adapt(data.x)
    model = CrowdModel(base, NearIdentity(annotations.num_annotators, **arguments))
    model.compile(keras.optimizers.Adam(0.001))
    model.fit(data.x, annotations, tasks=annotations.tasks, epochs=100, batch_size=64, seed=seed, verbose=0)
    return data, model


def label_counts(annotations: Annotations, gold: np.ndarray) -> np.ndarray:
    """How often each annotator gave each label to tasks of each class, `[R, K, K]`, `[annotator, true, said]`."""
    counts = np.zeros((annotations.num_annotators, annotations.num_classes, annotations.num_classes))
    np.add.at(counts, (annotations.annotator_ids, gold[annotations.task_ids], annotations.labels), 1)
    return counts


def likeness(learnt: np.ndarray, counts: np.ndarray, least: int = LABELS) -> dict[str, float]:
    """Correlation of learnt with true confusions, over the rows that have so many labels.

    Args:
        learnt: `[R, K, K]`, `[annotator, true, said]`.
        counts: labels by gold, of the same shape.
        least: labels of a row.

    Returns:
        "matrices": over all cells of those rows; "told apart": the same after the mean of the rows of a class has been
        taken from each, of learnt and true ones apart.
    """
    totals = counts.sum(axis=2)
    annotators, classes = np.nonzero(totals >= least)
    true, estimates = counts[annotators, classes] / totals[annotators, classes, None], learnt[annotators, classes]
    number = np.bincount(classes, minlength=counts.shape[1])
    own = []
    for values in (true, estimates):
        total = np.zeros(counts.shape[1:])
        np.add.at(total, classes, values)
        own.append(values - (total / np.maximum(number, 1)[:, None])[classes])
    pairs = {"matrices": (true, estimates), "told apart": tuple(own)}
    return {name: float(np.corrcoef(first.ravel(), second.ravel())[0, 1]) for name, (first, second) in pairs.items()}


PARTS: Parts = {
    "five annotators": {row: partial(accuracies, "five annotators", ROWS[row], THIRTY) for row in OF_PAPER},
    "identity": {name: partial(started, arguments) for name, arguments in STARTS.items()},
    "EM schedules": {
        f"every {every}": partial(accuracies, "labelme", layer("deep-em", epochs_per_round=every), SEEDS)
        for every in SCHEDULES
    },
    "thirty runs": {row: partial(accuracies, "labelme", ROWS[row], THIRTY) for row in OF_PAPER},
}


if __name__ == "__main__":
    run(RESULTS, PARTS, __doc__)
