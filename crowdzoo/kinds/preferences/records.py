"""Pairs of tasks as tf.Examples: created from annotators' files, and read back into arrays for training."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np
import pyarrow as pa
import tensorflow as tf

from crowdzoo.aggregation.base import Aggregator
from crowdzoo.data.annotations import Annotations
from crowdzoo.data.instance_kinds import instance_kind
from crowdzoo.data.vocabulary import is_among, name_texts
from crowdzoo.export.predict import load_predictor
from crowdzoo.kinds.preferences.scoring import SCORING
from crowdzoo.kinds.records import Crowds, Fit, Records, TrainingFiles
from crowdzoo.kinds.scoring import Scores, scored_models
from crowdzoo.networks.reward_model import SIDES, input_name
from crowdzoo.reading.instances.gold import EQUAL, TURNED, gold_pairs, read_gold_pairs
from crowdzoo.reading.instances.instances import Instances, take_rows
from crowdzoo.records.crowd_answers import CrowdAnswers, answers_table
from crowdzoo.records.example_dataset import SAID, read_batches, said_of
from crowdzoo.records.example_files import SPLITS, DatasetInfo, GenOptions, LabelledTasks
from crowdzoo.records.instance_examples import read_annotations, read_instances_of, split_of
from crowdzoo.records.instance_features import add_instance, instance_info, parsed_instances
from crowdzoo.records.training import WARMUP, Trained
from crowdzoo.training.instance_training import train
from crowdzoo.training.methods import AGGREGATED
from crowdzoo.training.settings import InstanceSettings, Settings

_SPLIT_BY_TASKS = "A pair of two tasks of train is trained on, one with a task of eval is evaluated with."
_READ = 1024
_ASKED = 256  # pairs per request to models
_LEAST = 1e-7  # minimum probability of an answer, for models that call it impossible


def pair_names(annotations: Annotations) -> list[str]:
    """Names of the pairs of `annotations.pairs()`: JSON lists of the left and the right task's name."""
    tasks = name_texts(annotations.tasks)
    return [_pair_name(tasks[left], tasks[right]) for left, right in annotations.pairs()[0].tolist()]


def _pair_name(left: str, right: str) -> str:
    return json.dumps([str(left), str(right)], ensure_ascii=False)


def _known_pairs(options: GenOptions, instances: Instances, crowd: Annotations) -> dict[tuple[int, int], int]:
    """Gold pairs from their file: rows of the left and right instance -> code of the answer.

    Raises:
        DataError: see `read_gold_pairs`.
    """
    path = options.get("gold")
    if not path:
        return {}
    gold = read_gold_pairs(path, instances.tasks, np.asarray(crowd.classes))
    assert gold.right_ids is not None
    rows = zip(gold.task_ids.tolist(), gold.right_ids.tolist(), gold.labels.tolist(), strict=True)
    return {(left, right): code for left, right, code in rows}


def _better(pair: tuple[int, int], known: dict[tuple[int, int], int], scores: np.ndarray) -> int:
    """Code of the true answer to a pair, from its gold in either order or else from true scores; -1 if unknown."""
    left, right = pair
    if pair in known:
        return known[pair]
    if (right, left) in known:
        return TURNED[known[right, left]]
    if np.isnan(scores[left]) or np.isnan(scores[right]):
        return -1
    return EQUAL if scores[left] == scores[right] else int(scores[left] < scores[right])


@dataclass(frozen=True)
class ReadPairs:
    """Pairs read from Examples.

    Attributes:
        instances: instances of the tasks that occur, each once.
        annotations: kind "preference"; task code i is row i of the instances.
        posteriors: posteriors of the aggregation for each pair of `annotations.pairs()`, float32 [P, 3].
    """

    instances: Instances
    annotations: Annotations
    posteriors: np.ndarray


def read_pairs(patterns: Sequence[str], info: DatasetInfo) -> ReadPairs:
    """Read the complete split train written by CrowdAggregator.

    Args:
        patterns: patterns of gzipped TFRecord files.
        info: result of `read_dataset_info`.

    Raises:
        FileNotFoundError: no file matches.
    """
    features = {"task": tf.io.FixedLenFeature([], tf.string), **SAID}
    row_of: dict[str, int] = {}
    values, posteriors, pairs = [], [], []
    answers: list[tuple[np.ndarray, ...]] = []  # left, right, annotator, label
    for batch in read_batches(patterns, info, "train", _READ, instances=SIDES, others=features, posterior=3):
        names = [json.loads(name) for name in batch["task"].tolist()]
        for place, side in enumerate(SIDES):
            new = {name: row for row, name in enumerate(pair[place] for pair in names) if name not in row_of}
            row_of |= {name: len(row_of) + number for number, name in enumerate(new)}
            values.append(take_rows(parsed_instances(batch, side), np.array([*new.values()], np.int64)))
        left, right = np.array([[row_of[name] for name in pair] for pair in names], np.int64).T
        pair_of, annotator, label = said_of(batch)
        answers.append((left[pair_of], right[pair_of], annotator, label))
        pairs.append(np.stack([left, right]))
        posteriors.append(batch["posterior"])
    left, right, annotator, label = map(np.concatenate, zip(*answers, strict=True))
    tasks, annotators, classes = (np.array(part, object) for part in ([*row_of], info["annotators"], info["classes"]))
    annotations = Annotations("preference", left, annotator, label, tasks, annotators, classes, right_ids=right)
    order = np.lexsort(np.concatenate(pairs, axis=1)[::-1])
    joined = keras.tree.map_structure(lambda *parts: np.concatenate(parts), *values)
    instances = Instances(annotations.tasks, instance_kind(info["instances"]), joined, info["features"])
    return ReadPairs(instances, annotations, np.concatenate(posteriors)[order])


def _named(sides: Mapping[str, Any]) -> dict[str, Any]:
    """Inputs of the signature "pairs" by name."""
    return {
        input_name(side, name): values
        for side, part in sides.items()
        for name, values in (part if isinstance(part, Mapping) else {"instances": part}).items()
    }


class PreferenceRecords(Records):
    """Pairs of tasks compared by annotators."""

    def read(self, options: GenOptions, rejects: str, folder: str) -> LabelledTasks:
        """Read instances and annotators' preferences between two of them.

        The Example of a pair has `task` (bytes, see `pair_names`), the instances `left` and `right` (see
        `add_instance`), `annotator_ids`, `annotator_labels`, and, if known, `gold` (int64 code). Tasks are split, not
        pairs: pairs of two tasks of train are used for training, and those with a task of eval for evaluation, so that
        at least one side is new.

        Gold is from the file of gold pairs, in either order, or else from the instances' column gold of true scores.

        Args:
            options: settings of AnnotationExampleGen.
            rejects: path of the file of rejected rows.
            folder: empty folder for instances until their Examples are created.

        Raises:
            DataError: invalid files, tasks without instances, or no training labels.
        """
        crowd = read_annotations(options, rejects)
        instances = read_instances_of(options, crowd, folder)
        names, (judged, table) = name_texts(instances.tasks), crowd.pairs()
        row_of = {str(name): row for row, name in enumerate(names)}
        rows = np.array([row_of[str(name)] for name in name_texts(crowd.tasks)], np.int64)[judged]
        split, change = split_of(instances, options)
        held = split == "eval"

        known = _known_pairs(options, instances, crowd)
        seen = {frozenset(pair) for pair in rows.tolist()}
        unjudged = [pair for pair in known if held[[*pair]].any() and frozenset(pair) not in seen]
        rows = np.concatenate([rows, np.array(unjudged, np.int64).reshape(-1, 2)])
        scores = instances.gold_ratings(options["instances"], "true scores")
        better = [_better(pair, known, scores) for pair in map(tuple, rows.tolist())]
        texts = [_pair_name(names[left], names[right]) for left, right in rows.tolist()]

        def example(pair: int) -> tf.train.Example:
            record = tf.train.Example()
            feature = record.features.feature
            feature["task"].bytes_list.value.append(texts[pair].encode())
            for side, row in zip(SIDES, rows[pair].tolist(), strict=True):
                add_instance(record, instances, row, side)
            ids, labels = ((), ()) if pair >= len(judged) else (column[0] for column in table.padded(np.array([pair])))
            feature["annotator_ids"].int64_list.value.extend(ids)
            feature["annotator_labels"].int64_list.value.extend(labels)
            if better[pair] >= 0:
                feature["gold"].int64_list.value.append(better[pair])
            return record

        classes = [str(name) for name in np.asarray(crowd.classes)]
        pair_split = np.where(held[rows].any(axis=1), "eval", "train")
        # both orders of a pair are Examples with the same gold
        known_pairs = np.unique(np.sort(rows, axis=1)[np.array(better) >= 0], axis=0)
        of_eval = int(held[known_pairs].any(axis=1).sum())
        num_gold = dict(zip(SPLITS, (len(known_pairs) - of_eval, of_eval), strict=True))
        return LabelledTasks(
            annotations=crowd,
            names=texts,
            split=pair_split,
            labelled=np.arange(len(rows)) < len(judged),
            gold=[None if code < 0 else classes[code] for code in better],
            info={"classes": classes, **instance_info(instances), "num_gold": num_gold},
            change_split=f"{_SPLIT_BY_TASKS} {change}",
            example=example,
            unit="pair",
        )

    def select(self, crowd: Annotations, names: list[str]) -> Annotations:
        """See `Records.select`; selects pairs and their tasks."""
        judged = is_among(np.array(pair_names(crowd), object), names)
        chosen = crowd.select_rows(judged[crowd.pairs()[1].task_ids])
        return chosen.select_tasks(chosen.redundancy > 0)

    def train(self, settings: Settings, files: TrainingFiles) -> Trained:
        """Train a reward model on pairs, which are read completely; each instance is in memory once.

        Args: see `Records.train`.
        """
        assert isinstance(settings, InstanceSettings)
        pairs = read_pairs(files.patterns, files.info)
        targets = pairs.posteriors if settings.method == AGGREGATED else None
        how: dict[str, Any] = {"label_distribution": targets, "verbose": 2, "checkpoint": files.checkpoint}
        model, encoder = train(settings, pairs.instances, annotations=pairs.annotations, **how)
        return Trained(model, model.history, encoder, take_rows(pairs.instances.values, slice(WARMUP)))

    def model_scores(self, models: Mapping[str, str], files: str, info: DatasetInfo) -> dict[str, Scores]:
        """Score reward models on pairs with a known answer, and on the annotators' preferences on all pairs.

        Args: see `Records.model_scores`.

        Returns:
            See `Records.model_scores`; tasks are pairs. `log_likelihood` is the mean log probability of the
            annotators' preferences by the signature "pairs", nats; None if missing. `by_task` covers the pairs whose
            known answer is left or right.

        Raises:
            FileNotFoundError: no file fits.
            ServingError: a model that does not load or does not accept these instances.
            ValueError: no known answer is left or right.
        """
        scorers = {name: load_predictor(folder) for name, folder in models.items()}
        comparers = {name: load_predictor(folder, "pairs") for name, folder in models.items()}
        gold: list[np.ndarray] = []
        scores: dict[str, list[np.ndarray]] = {name: [] for name in models}  # of both sides, [2, pairs]
        logs: dict[str, list[np.ndarray]] = {name: [] for name in models}
        others = {**SAID, "evaluation_label": tf.io.FixedLenFeature([1], tf.int64)}
        for batch in read_batches([files], info, "eval", _ASKED, instances=SIDES, others=others, evaluation_weight=1):
            sides = {side: parsed_instances(batch, side) for side in SIDES}
            known = batch["evaluation_weight"][:, 0] > 0
            gold.append(batch["evaluation_label"][known, 0])
            pair_of, _, labels = said_of(batch)
            for name in models:
                side_scores = np.stack([scorers[name](part, _ASKED)["score"] for part in sides.values()])
                scores[name].append(side_scores.reshape(2, -1)[:, known])
                probabilities = comparers[name](_named(sides), _ASKED)["probabilities"]
                logs[name].append(np.log(np.maximum(probabilities[pair_of, labels], _LEAST)))
        labels = np.concatenate(gold)
        left, right = np.arange(2 * len(labels)).reshape(2, -1)
        preferences = gold_pairs(left, right, labels, np.arange(2 * len(labels)), np.array(info["classes"], object))
        answers = {name: np.concatenate(parts, axis=1).ravel() for name, parts in scores.items()}
        further = {}
        for name, parts in logs.items():
            values = np.concatenate(parts)
            further[name] = {"log_likelihood": float(values.mean()) if len(values) else None}
        return scored_models(SCORING, models, preferences, answers, further)

    def aggregate(self, method: Aggregator, crowds: Crowds, fit: Fit, examples: str) -> CrowdAnswers:
        """Fit to each split separately; the answers are those to the compared pairs.

        A pair without preferences has equal probabilities.

        Args: see `Records.aggregate`.
        """
        fitted, tables = {}, {}
        for split in ("train", "eval"):
            crowd = crowds[split]
            names, posteriors = pair_names(crowd), np.zeros((0, crowd.num_classes))
            if names:
                result = fitted[split] = fit(crowd)
                posteriors = result.of_pairs(crowd)
            tables[split] = answers_table(pa.array(names, pa.string()), posteriors.argmax(axis=1), posteriors)
        num_classes = crowds["train"].num_classes
        return CrowdAnswers(fitted["train"], tables, [1 / num_classes] * num_classes, 0)
