"""Variants of WAUM on LabelMe and Music.

    python benchmarks/reproduce/waum_variants.py                  # what is missing in the saved results
    python benchmarks/reproduce/waum_variants.py --parts "ranking, labelme"
    python benchmarks/reproduce/waum_variants.py --print          # the saved results, no training

**Protocol**, fixed before the first run. Networks and training are those of waum.py (LabelMe: Music's settings, with
the network of `crowdzoo demo`). Margins of the two largest probabilities, after each of 50 epochs. 5 seeds for rankings
(one network an annotator: one seed, of 44 or 59 networks), 3 otherwise. Nothing is chosen by gold.

- ranking: of all 700 songs and all 1,000 photographs. The share of right majority votes (expected, if ties are broken
  at random) among the tasks that are ranked worst; and "finds wrong votes", the probability that a task whose vote is
  wrong is ranked below one whose vote is right (an area under the ROC curve; .5 is chance). Rows:
  - WAUM: trust s is the annotator's skill on what the network believes;
  - trust 1: s = 1, so the plain mean of the margins;
  - trust c: s = c_r, the share of right labels that Dawid-Skene expects of annotator r, whatever the task;
  - consensus: one label per task, the most probable class of Dawid-Skene's posterior p: the network learns these
    labels, and their margin ranks (AUM). "Consensus of p" is not defined in a source at hand; this is our reading;
  - one network an annotator: each learns that annotator's labels alone, from the same first weights;
  - vote entropy; Dawid-Skene's posterior (1 less its largest probability).
- pruned: the worst tenth of each ranking is left out, then the network learns the soft labels of the rest (steps 4 and
  5 of `crowdzoo.layers.WAUM`); accuracy on test tasks. LabelMe: 750 training and 250 test photographs.
- Bars of the claims: on LabelMe votes on the tenth that WAUM ranks worst are right less often than on the tenth by vote
  entropy; one network for all finds wrong votes better than one an annotator, on both sets.
"""

import functools
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import keras
import numpy as np
from needed import need
from rows import Parts, run
from settings import LAYERS, aggregator
from waum import BATCH_SIZE, MUSIC, SEEDS, Trainer, load_music, music_base

from crowdzoo import Annotations
from crowdzoo.aggregation.engine.labels import tied_classes
from crowdzoo.datasets import load_labelme
from crowdzoo.layers import WAUM
from crowdzoo.metrics import accuracy
from crowdzoo.models import CrowdModel, FeatureClassifier
from crowdzoo.quality import task_table
from crowdzoo.quality.aum import Waum, label_trust, trusted_votes, weighted_margins
from crowdzoo.training.data import ArrayData
from crowdzoo.training.phases import allow_training
from crowdzoo.training.recipes.waum import dawid_skene_confusions, record_margins
from crowdzoo.training.training_state import restore_variables, variables_of

RESULTS = Path(__file__).parents[1] / "results" / "waum_variants.json"
PRUNED = 0.1
SMOOTHING = 0.01
DRAWS = range(3)

# === Rankings: how bad each task is, [N] ===


class Crowd:
    """One set: features [N, D], annotations, gold codes [N]; test tasks, where there are some; and its network."""

    def __init__(self, x: np.ndarray, annotations: Annotations, gold: np.ndarray, *test: np.ndarray, like: str = ""):
        self.x, self.annotations, self.gold, self.test = x, annotations, gold, test
        self.settings = MUSIC
        self.make_base = partial(*((music_base, x) if like else (_features_base, x, annotations.num_classes)))
        posteriors = aggregator("majority-vote").fit(annotations).posteriors
        tied = tied_classes(posteriors)
        self.right = tied[np.arange(len(gold)), gold] / tied.sum(axis=1)  # of the vote, expected

    @functools.lru_cache(maxsize=10)  # noqa: B019 - a set lives as long as the command
    def measured(self, seed: int, per_annotator: bool = False) -> Waum:
        """WAUM of all annotations, which the rankings share."""
        groups = [np.arange(len(self.annotations))]
        if per_annotator:
            order = np.argsort(self.annotations.annotator_ids, kind="stable")
            groups = np.split(order, np.cumsum(np.bincount(self.annotations.annotator_ids))[:-1])
        return self._waum(self.annotations, seed, groups)

    def consensus(self, seed: int) -> Waum:
        """AUM of Dawid-Skene's labels."""
        labels = aggregator("dawid-skene").fit(self.annotations).labels
        annotated = np.flatnonzero(np.bincount(self.annotations.task_ids, minlength=len(labels)))
        tasks, classes = self.annotations.tasks, self.annotations.classes
        votes = Annotations(
            "classification", annotated, 0 * annotated, labels[annotated], tasks, np.zeros(1, int), classes
        )
        return self._waum(votes, seed, [np.arange(len(annotated))])

    def _waum(self, annotations: Annotations, seed: int, groups: list[np.ndarray]) -> Waum:
        """WAUM, each group of the annotations by a network that learns from it alone."""
        confusions = dawid_skene_confusions(annotations, SMOOTHING)
        keras.utils.set_random_seed(seed)
        crowd = WAUM(annotations.num_annotators, **LAYERS["waum"])
        model = CrowdModel(self.make_base(), crowd)
        model.compile()
        start = variables_of(model)
        order = {"batch_size": BATCH_SIZE, "seed": seed}
        aum, trust = np.zeros(len(annotations)), np.zeros(len(annotations))
        for rows in (rows for rows in groups if len(rows)):
            theirs = annotations.select_rows(rows)
            restore_variables(model, start)
            with allow_training(crowd):
                recorded = record_margins(
                    model, ArrayData(self.x, theirs, theirs.tasks), theirs, crowd.margin, order,
                    epochs=self.settings["margin_epochs"], verbose=0,
                )  # fmt: skip
            aum[rows] = recorded.aum
            trust[rows] = label_trust(confusions, recorded.probabilities, theirs.task_ids, theirs.annotator_ids)
        return Waum.of(annotations, aum, trust)


def _features_base(x: np.ndarray, classes: int) -> FeatureClassifier:
    base = FeatureClassifier(x.shape[1], classes, hidden=(128,), dropout=0.5)
    base.adapt(x)
    return base


# === Rankings: how bad each task is, [N] ===


def with_trust(crowd: Crowd, seed: int, trust: Callable[[Annotations], np.ndarray]) -> np.ndarray:
    """WAUM, less, with another trust of the annotations [A]."""
    measurement = crowd.measured(seed)
    rows = measurement.annotations
    return -weighted_margins(measurement.aum, trust(rows), rows.task_ids, rows.num_tasks)


def skills(annotations: Annotations) -> np.ndarray:
    """c_r of each annotation [A]: the share of right labels that Dawid-Skene expects of its annotator."""
    result = aggregator("dawid-skene", prior=SMOOTHING, diagonal=0.0).fit(annotations)
    counts = np.bincount(annotations.annotator_ids, minlength=annotations.num_annotators)
    agrees = result.posteriors[annotations.task_ids, annotations.labels]
    right = np.bincount(annotations.annotator_ids, agrees, annotations.num_annotators)
    return (right / np.maximum(counts, 1))[annotations.annotator_ids]


def entropy(annotations: Annotations) -> np.ndarray:
    """Vote entropy, rounded so that ties are ties."""
    return np.round(task_table(annotations)["entropy"].to_numpy(), 9)


RANKINGS: dict[str, Callable[[Crowd, int], np.ndarray]] = {
    "WAUM": lambda crowd, seed: -crowd.measured(seed).waum,
    "trust 1": lambda crowd, seed: with_trust(crowd, seed, lambda rows: np.ones(len(rows))),
    "trust c": lambda crowd, seed: with_trust(crowd, seed, skills),
    "consensus": lambda crowd, seed: -crowd.consensus(seed).waum,
    "one network an annotator": lambda crowd, seed: -crowd.measured(seed, True).waum,
    "vote entropy": lambda crowd, seed: entropy(crowd.annotations),
    "Dawid-Skene's posterior": lambda crowd, seed: (
        -aggregator("dawid-skene").fit(crowd.annotations).posteriors.max(axis=1)
    ),
}
# the same for all seeds, and what takes long
ONCE = ("vote entropy", "Dawid-Skene's posterior", "one network an annotator")


def finds_wrong(badness: np.ndarray, right: np.ndarray) -> float:
    """P(a task whose vote is wrong is ranked as worse than one whose vote is right); ties count half.

    Args:
        badness: [N].
        right: P(the vote is right), [N].
    """
    order = np.argsort(badness)
    values, firsts = np.unique(badness[order], return_index=True)
    wrong = np.add.reduceat((1 - right)[order], firsts)
    sure = np.add.reduceat(right[order], firsts)
    below = np.cumsum(sure) - sure
    return float((wrong * (below + sure / 2)).sum() / (wrong.sum() * sure.sum())) if len(values) else float("nan")


def chosen_as_worst(badness: np.ndarray, number: int) -> np.ndarray:
    """P(a task is among the worst `number`), [N], if ties are broken at random."""
    cut = np.sort(badness)[-number]
    surely, tied = badness > cut, badness == cut
    return surely + tied * (number - surely.sum()) / tied.sum()


def ranked(crowd: Callable[[], Crowd], ranking: str) -> Iterator[dict[str, Any]]:
    """How well a ranking finds tasks whose majority vote is wrong."""
    planted = crowd()
    for seed in SEEDS[:1] if ranking in ONCE else SEEDS:
        badness = RANKINGS[ranking](planted, seed)
        row: dict[str, Any] = {"seed": seed, "finds wrong votes": finds_wrong(badness, planted.right)}
        chosen = chosen_as_worst(badness, round(PRUNED * len(badness)))
        row["worst 10%"] = float(chosen @ planted.right / chosen.sum())
        yield row


def pruned(crowd: Callable[[], Crowd], ranking: str | None) -> Iterator[dict[str, Any]]:
    """Test accuracy of a network that learns without the worst tenth; None prunes nothing."""
    planted = crowd()
    trainer = Trainer(planted.make_base, None, planted.settings["learning_rate"])
    for seed in DRAWS:
        badness = None if ranking is None else RANKINGS[ranking](planted, seed)
        yield {"seed": seed, "accuracy": _trained_without(planted, badness, trainer, seed)}


def _trained_without(crowd: Crowd, badness: np.ndarray | None, trainer: Trainer, seed: int) -> float:
    """Test accuracy after training without the worst tenth, or with all tasks."""
    rest = crowd.annotations
    if badness is not None:
        worst = np.argsort(-badness, kind="stable")[: round(PRUNED * len(badness))]
        rest = rest.select_rows(~np.isin(rest.task_ids, worst))
    fresh, truth = crowd.test
    soft = _soft(rest)
    kept = soft.any(axis=1)  # a target of zeros has a loss of 0 in Keras, but on TensorFlow a gradient
    predicted = trainer.fit(crowd.x[kept], soft[kept], crowd.settings["epochs"], seed).predict(fresh, verbose=0)
    return float(accuracy(truth, predicted.argmax(axis=1)))


def _soft(rest: Annotations) -> np.ndarray:
    """Soft labels [N, K]; rows of zeros for tasks without annotations."""
    confusions = dawid_skene_confusions(rest, SMOOTHING)
    return trusted_votes(confusions, rest.task_ids, rest.annotator_ids, rest.labels, rest.num_tasks)


# === Sets ===


@functools.cache
def music() -> Crowd:
    x, gold, annotations, *test = load_music()
    return Crowd(x, annotations, gold, *test, like="music")


@functools.cache
def labelme(part: str = "all") -> Crowd:
    data = load_labelme()
    if part == "all":
        return Crowd(data.instances, data.annotations, data.gold)
    train, test = (np.flatnonzero(data.split == name) for name in ("train", "eval"))
    return Crowd(
        data.instances[train], data.annotations.select_tasks(train), data.gold[train],
        data.instances[test], data.gold[test],
    )  # fmt: skip


PARTS: Parts = {}
for _name, _crowd in (("labelme", labelme), ("music", music)):
    PARTS[f"ranking, {_name}"] = {ranking: partial(ranked, _crowd, ranking) for ranking in RANKINGS}
for _name, _crowd in (("labelme", partial(labelme, "train")), ("music", music)):
    PARTS[f"pruned, {_name}"] = {
        "nothing": partial(pruned, _crowd, None),
        **{ranking: partial(pruned, _crowd, ranking) for ranking in ("WAUM", "trust 1", "trust c", "consensus")},
    }


if __name__ == "__main__":
    need("music-genre-amt", flag="--parts", values=[part for part in PARTS if "music" in part])
    run(RESULTS, PARTS, __doc__)
