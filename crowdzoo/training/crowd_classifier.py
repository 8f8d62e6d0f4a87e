"""A scikit-learn classifier that learns from the labels of several annotators."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets

from crowdzoo.training.crowd_estimator import CrowdEstimator
from crowdzoo.training.pair_rows import Labels


class CrowdClassifier(ClassifierMixin, CrowdEstimator):
    """A base model with a crowd layer, as a scikit-learn classifier.

    It works in a `Pipeline` and in `GridSearchCV`. A search splits y by rows, so y must then be a matrix. Requires
    scikit-learn: `pip install 'crowdzoo[sklearn]'`.

    Args:
        base: a Keras model of features `[N, D]` that ends in K probabilities, copied with new weights at each `fit`;
            or a function of a `crowdzoo.training.bases.BaseContext` that makes one. None is `FeatureClassifier`.
        method: a name in `crowdzoo.models.METHODS`, such as "deep-em". None is "ccem".
        arguments: the method's settings, such as `{"connection": "VW"}`; None: its defaults.
        hidden: units of each hidden layer of `FeatureClassifier`.
        dropout: share of hidden units dropped in training.
        epochs: passes over the tasks; None chooses by their number.
        batch_size: tasks in a batch; None chooses by their number.
        learning_rate: learning rate of Adam.
        random_state: seed of weights, dropout and the order of the tasks: an integer, a `RandomState`, or None for a
            different one in each `fit`.
        verbose: Keras' verbosity.

    Attributes:
        model_: the trained `CrowdModel`, which has `annotator_confusions()`.
        classes_: names of the classes, [K], in the order of the columns of `predict_proba`.
        annotators_: names of the annotators, [R], as in `model_`; None if y was plain labels.
        n_features_in_: D.

    Example:
        >>> import numpy as np
        >>> from crowdzoo.models import CrowdClassifier
        >>> x = np.random.default_rng(0).normal(size=(40, 20)).astype("float32")
        >>> y = np.random.default_rng(1).integers(4, size=(40, 5))  # a column for each annotator, -1 where missing
        >>> model = CrowdClassifier(epochs=1, verbose=0).fit(x, y)
        >>> model.predict_proba(x).shape
        (40, 4)
    """

    kind: ClassVar[str] = "classification"

    def fit(self, X: ArrayLike, y: Labels, tasks: ArrayLike | None = None, task: str | None = None) -> CrowdClassifier:
        """Trains a new model.

        Args:
            X: features `[N, D]`, finite numbers; an array, or a frame of numbers.
            y: labels of the annotators: a matrix `[N, R]`, one column per annotator, with -1, NaN or None where
                missing; or `Annotations`, or a pandas or polars frame with the columns task, annotator (or worker) and
                label. Or plain labels `[N]`, one per row, on which the base alone is trained.
            tasks: with `Annotations` or a frame, ids of the rows of X, `[N]`; see `CrowdModel.fit`.
            task: name of the frame's column with the task ids, if it is not a usual one.

        Returns:
            The estimator itself.

        Raises:
            DataError: labels that do not fit X, or of one class only.
            ConfigError: a setting that is out of range, or a base that does not fit.
            ValueError: other data that scikit-learn rejects.
        """
        X = self._check_features(X, y, reset=True)
        annotations = self._table(X, y, tasks, task)
        if annotations is None:
            labels = self._plain(X, y)
            check_classification_targets(labels)
            self.classes_, codes = np.unique(labels, return_inverse=True)
            return self._train(X, None, label_distribution=np.eye(len(self.classes_), dtype="float32")[codes])
        self.classes_ = np.asarray(annotations.classes)
        return self._train(X, annotations)

    def predict_proba(self, X: ArrayLike) -> np.ndarray:
        """Probabilities of the true class.

        Args:
            X: features `[N, D]`.

        Returns:
            float64 `[N, K]`, rows sum to one, columns as in `classes_`.
        """
        probabilities = self._estimates(self._check_features(X))
        return probabilities / probabilities.sum(axis=1, keepdims=True)  # scikit-learn's metrics check it in float64

    def predict(self, X: ArrayLike) -> np.ndarray:
        """The most probable class of each row.

        Args:
            X: features `[N, D]`.

        Returns:
            `[N]`, values of `classes_`.
        """
        codes = self.predict_proba(X).argmax(axis=1)
        return self.classes_[codes]

    def score(
        self,
        X: ArrayLike,
        y: Labels,
        sample_weight: ArrayLike | None = None,
        tasks: ArrayLike | None = None,
        task: str | None = None,
    ) -> float:
        """Returns the accuracy; for labels of several annotators, the share of these labels that is predicted.

        The latter needs no gold. It cannot reach 1 where annotators disagree, so only compare it between models.

        Args:
            X: features `[N, D]`.
            y: plain labels `[N]`, or labels of the annotators as in `fit`.
            sample_weight: `[N]`, with plain labels only.
            tasks: as in `fit`.
            task: as in `fit`.

        Raises:
            DataError: weights for annotators' labels.
        """
        annotations = self._annotations_to_score(X, y, sample_weight, tasks, task)
        if annotations is None:
            return super().score(X, y, sample_weight)
        predicted = self.predict(X)[annotations.task_ids]
        return float((predicted == np.asarray(annotations.classes)[annotations.labels]).mean())
