"""A scikit-learn regressor that learns from the ratings of several annotators."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score

from crowdzoo.training.crowd_estimator import CrowdEstimator
from crowdzoo.training.pair_rows import Labels


class CrowdRegressor(RegressorMixin, CrowdEstimator):
    """A base model with a crowd layer for ratings, as a scikit-learn regressor.

    The arguments are those of `CrowdClassifier`. `base` ends in one number, and is `FeatureRegressor` by default;
    `method` is a name in `crowdzoo.models.RATING_METHODS`; None is "crowdsourced-layer".

    Attributes:
        model_: the trained `CrowdModel`.
        annotators_: names of the annotators, [R], as in `model_`; None if y was plain ratings.
        n_features_in_: D.

    Example:
        >>> import numpy as np
        >>> from crowdzoo.models import CrowdRegressor
        >>> x = np.random.default_rng(0).normal(size=(40, 20)).astype("float32")
        >>> y = x[:, :1] + np.random.default_rng(1).normal(size=(40, 5))  # a column for each annotator
        >>> model = CrowdRegressor(epochs=1, verbose=0).fit(x, y)
        >>> model.predict(x).shape
        (40,)
    """

    kind: ClassVar[str] = "regression"

    def fit(self, X: ArrayLike, y: Labels, tasks: ArrayLike | None = None, task: str | None = None) -> CrowdRegressor:
        """Trains a new model.

        Args:
            X: features `[N, D]`, finite numbers; an array, or a frame of numbers.
            y: ratings of the annotators: a matrix `[N, R]`, one column per annotator, with NaN where missing; or
                `Annotations` of kind regression, or a frame with the columns task, annotator (or worker) and label. Or
                plain numbers `[N]`, one per row, on which the base alone is trained.
            tasks: with `Annotations` or a frame, ids of the rows of X, `[N]`; see `CrowdModel.fit`.
            task: name of the frame's column with the task ids, if it is not a usual one.

        Returns:
            The estimator itself.

        Raises:
            DataError: ratings that do not fit X.
            ConfigError: a setting that is out of range, or a base that does not fit.
            ValueError: other data that scikit-learn rejects.
        """
        X = self._check_features(X, y, reset=True)
        annotations = self._table(X, y, tasks, task)
        if annotations is None:
            return self._train(X, None, ratings=self._plain(X, y).astype("float64"))
        return self._train(X, annotations)

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Estimates of the true rating.

        Args:
            X: features `[N, D]`.

        Returns:
            float64 `[N]`, in the unit of the ratings.
        """
        return self._estimates(self._check_features(X))[:, 0]

    def score(
        self,
        X: ArrayLike,
        y: Labels,
        sample_weight: ArrayLike | None = None,
        tasks: ArrayLike | None = None,
        task: str | None = None,
    ) -> float:
        """Returns R²; for ratings of several annotators, R² over all of them.

        Args:
            X: features `[N, D]`.
            y: plain numbers `[N]`, or ratings of the annotators as in `fit`.
            sample_weight: `[N]`, with plain numbers only.
            tasks: as in `fit`.
            task: as in `fit`.

        Raises:
            DataError: weights for annotators' ratings.
        """
        annotations = self._annotations_to_score(X, y, sample_weight, tasks, task)
        if annotations is None:
            return super().score(X, y, sample_weight)
        return float(r2_score(annotations.labels, self.predict(X)[annotations.task_ids]))
