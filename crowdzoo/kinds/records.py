"""Records: labels of one kind as tf.Examples, and models trained and evaluated on them."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from crowdzoo.aggregation.base import Aggregator
from crowdzoo.data.annotations import Annotations
from crowdzoo.data.crowd_sequences import CrowdSequences
from crowdzoo.data.vocabulary import is_among
from crowdzoo.errors import DataError
from crowdzoo.export.predict import load_predictor
from crowdzoo.kinds.scoring import Flags, Scores, Scoring, scored_models
from crowdzoo.reading.instances.instances import take_rows
from crowdzoo.records.crowd_answers import CrowdAnswers
from crowdzoo.records.example_dataset import read_batches
from crowdzoo.records.example_files import DatasetInfo, GenOptions, LabelledTasks
from crowdzoo.records.instance_examples import read_labelled_instances
from crowdzoo.records.instance_features import parsed_instances
from crowdzoo.records.training import Trained, train_on_instances
from crowdzoo.training.checkpoint import Checkpoint
from crowdzoo.training.settings import InstanceSettings, Settings

Batch = Mapping[str, Any]  # Examples by feature name
Crowds = Mapping[str, Annotations]  # of each split, and of `BOTH`
Fit = Callable[[Any], Any]  # from annotations (or sentences) to a method's result

BATCH = 256  # maximum number of instances in memory at a time


@dataclass(frozen=True)
class TrainingFiles:
    """Input files of a training in the pipeline.

    Attributes:
        patterns: patterns of the files of train.
        info: result of `read_dataset_info`.
        checkpoint: where the state is saved after each epoch; None saves nothing.
        start: folder of the Trainer's model_run with the initial weights; None initializes new weights. Only for
            classes and ratings.
    """

    patterns: Sequence[str]
    info: DatasetInfo
    checkpoint: Checkpoint | None = None
    start: str | None = None


class Records(ABC):
    """Labels of one kind as tf.Examples, and models trained and evaluated on them.

    The methods here are for kinds whose Examples are instances with annotations.
    """

    def read(self, options: GenOptions, rejects: str, folder: str) -> LabelledTasks:
        """Read the files of a kind.

        Args:
            options: settings of AnnotationExampleGen.
            rejects: path of the file of rejected rows.
            folder: empty folder for instances until their Examples are created.

        Raises:
            DataError: invalid files, tasks without instances, or no training labels.
        """
        return read_labelled_instances(options, rejects, folder)

    def select(self, crowd: Annotations, names: list[str]) -> Annotations:
        """Select the annotations of some Examples by name."""
        return crowd.select_tasks(is_among(crowd.tasks, names))

    def labelled(self, crowd: Annotations, examples: str, info: DatasetInfo) -> Annotations | CrowdSequences:
        """Convert annotations of both splits to the input of aggregators.

        Args:
            crowd: the annotations.
            examples: folder of the Examples.
            info: result of `read_dataset_info`.
        """
        return crowd

    @abstractmethod
    def aggregate(self, method: Aggregator, crowds: Crowds, fit: Fit, examples: str) -> CrowdAnswers:
        """Fit an aggregation method, and return its answers to the tasks of both splits.

        Args:
            method: aggregator.
            crowds: annotations by split, and of `BOTH`.
            fit: fits the method, on Beam if it supports that.
            examples: folder of the Examples.
        """

    def train(self, settings: Settings, files: TrainingFiles) -> Trained:
        """Train a model; `settings` have epochs and batch size, see `train_on_instances`."""
        assert isinstance(settings, InstanceSettings)
        return train_on_instances(settings, files.patterns, files.info, files.checkpoint, files.start)

    @abstractmethod
    def model_scores(self, models: Mapping[str, str], files: str, info: DatasetInfo) -> dict[str, Scores]:
        """Score exported models on the tasks of eval.

        Args:
            models: name -> folder of the SavedModel.
            files: pattern of the files of eval, as written by CrowdAggregator.
            info: result of `read_dataset_info`.

        Returns:
            See `crowdzoo.kinds.scoring.scored_models`.

        Raises:
            DataError: no task of eval has a known label.
            FileNotFoundError: no file matches.
            ServingError: a model that does not load or does not accept these instances.
            ValueError: answers that cannot be scored.
        """


def answered_batches(
    models: Mapping[str, str],
    files: str,
    info: DatasetInfo,
    output: str,
    features: Mapping[str, object],
    wanted: Callable[[Batch], Flags],
    batch_size: int = BATCH,
) -> Iterator[tuple[Batch, Flags, dict[str, np.ndarray]]]:
    """Predict selected tasks with models, batch by batch.

    Args:
        models: name -> folder of the SavedModel.
        files: pattern of the files of eval.
        info: result of `read_dataset_info`.
        output: name of the output with the answers.
        features: further features to read, in the form of `tf.io.parse_example`.
        wanted: selects the tasks of a batch to predict, bool [B].
        batch_size: maximum number of instances per batch.

    Yields:
        The batch, its predicted tasks, and each model's answers to them; batches without such tasks are skipped.

    Raises:
        FileNotFoundError: no file matches.
        ServingError: a model that does not load or does not accept these instances.
    """
    predictors = {name: load_predictor(folder) for name, folder in models.items()}
    for batch in read_batches([files], info, "eval", batch_size, others=features):
        rows = wanted(batch)
        if rows.any():
            instances = take_rows(parsed_instances(batch), rows)
            yield batch, rows, {name: ask(instances, batch_size)[output] for name, ask in predictors.items()}


def instance_scores(
    scoring: Scoring,
    models: Mapping[str, str],
    files: str,
    info: DatasetInfo,
    output: str,
    label: tf.DType,
    converted: Callable[[np.ndarray, np.ndarray], np.ndarray] = lambda answers, gold: answers,
    batch_size: int = BATCH,
    parsed: Callable[[str], object] = str,
) -> dict[str, Scores]:
    """Score models of instances on tasks with a known label.

    Args:
        scoring: scoring of the kind of label.
        models: as for `answered_batches`.
        files: as for `answered_batches`.
        info: as for `answered_batches`.
        output: as for `answered_batches`.
        label: type of the feature `evaluation_label`.
        converted: from answers and labels of a batch to answers in the form of `scoring`.
        batch_size: as for `answered_batches`.
        parsed: from a text label to gold in the form of `scoring`.

    Returns:
        See `scored_models`.

    Raises:
        DataError: no task of eval has a known label.
    """
    types = {"evaluation_label": label, "evaluation_weight": tf.float32}
    features = {name: tf.io.FixedLenFeature([], kind) for name, kind in types.items()}
    gold, answers = [], dict[str, list[np.ndarray]]({name: [] for name in models})
    arguments = models, files, info, output, features
    batches = answered_batches(*arguments, lambda batch: batch["evaluation_weight"] > 0, batch_size)
    for batch, rows, batch_answers in batches:
        labels = batch["evaluation_label"][rows]
        if label == tf.string:
            labels = np.array([parsed(text.decode()) for text in labels], object)
        gold.append(labels)
        for name, values in batch_answers.items():
            answers[name].append(converted(values, labels))
    if not gold:
        raise DataError("evaluation: no task of eval has a label. Hold out annotated tasks, or tasks with gold.")
    joined = {name: np.concatenate(parts) for name, parts in answers.items()}
    return scored_models(scoring, models, np.concatenate(gold), joined)
