"""Instances with classes as tf.Examples, and scores of exported classifiers on them."""

from collections.abc import Mapping

import numpy as np
import tensorflow as tf

from crowdzoo.aggregation.base import Aggregator
from crowdzoo.aggregation.engine.labels import choose_labels
from crowdzoo.data.vocabulary import is_among
from crowdzoo.kinds.classes.scoring import SCORING
from crowdzoo.kinds.records import Crowds, Fit, Records, instance_scores
from crowdzoo.kinds.scoring import Scores
from crowdzoo.records.crowd_answers import BOTH, CrowdAnswers, answers_table
from crowdzoo.records.example_files import DatasetInfo


class ClassRecords(Records):
    """Classes of instances."""

    def model_scores(self, models: Mapping[str, str], files: str, info: DatasetInfo) -> dict[str, Scores]:
        """See `Records.model_scores`."""
        return instance_scores(SCORING, models, files, info, "probabilities", tf.int64)

    def aggregate(self, method: Aggregator, crowds: Crowds, fit: Fit, examples: str) -> CrowdAnswers:
        """Fit to train; posteriors of eval use what was learned about the annotators on train.

        If the method does not apply Bayes' rule with confusion matrices (it has none, or averages posteriors of several
        methods and so has no history), it is fitted to both splits to get the posteriors of eval.

        Args: see `Records.aggregate`.
        """
        fitted, crowd = fit(crowds["train"]), crowds["eval"]
        if fitted.confusions is None or not fitted.history:
            both = method.fit(crowds[BOTH])
            ours = is_among(both.tasks, crowd.tasks)
            tasks, labels, posteriors = both.tasks[ours], both.labels[ours], both.posteriors[ours]
        else:
            tasks, posteriors = crowd.tasks, fitted.posteriors_of(crowd)
            labels = choose_labels(posteriors, np.arange(crowd.num_tasks), seed=getattr(method, "seed", 0))
        prior = fitted.class_prior
        unknown = np.full(len(fitted.classes), 1 / len(fitted.classes)) if prior is None else prior
        train = answers_table(fitted.tasks, fitted.labels, fitted.posteriors)
        tables = {"train": train, "eval": answers_table(tasks, labels, posteriors)}
        return CrowdAnswers(fitted, tables, unknown.tolist(), int(np.argmax(unknown)))
