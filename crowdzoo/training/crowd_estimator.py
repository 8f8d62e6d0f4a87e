"""Base class of the scikit-learn estimators."""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, check_consistent_length, check_random_state
from sklearn.utils.validation import check_is_fitted, column_or_1d

from crowdzoo.data.annotations import Annotations
from crowdzoo.data.label_kinds import label_kind
from crowdzoo.errors import DataError
from crowdzoo.training.bases.own import ObjectBase
from crowdzoo.training.instance_training import train
from crowdzoo.training.methods import AGGREGATED
from crowdzoo.training.pair_rows import Labels, annotations_from_frame, pair_rows
from crowdzoo.training.settings import TrainingSettings

try:
    from sklearn.utils.validation import validate_data
except ImportError:  # before scikit-learn 1.6

    def validate_data(estimator: BaseEstimator, X: ArrayLike, **options: Any) -> np.ndarray:
        """Backport of scikit-learn 1.6's function."""
        return estimator._validate_data(X, **options)


class CrowdEstimator(BaseEstimator):
    """Parent of `CrowdClassifier` and `CrowdRegressor`, which define its arguments.

    Attributes:
        kind: kind of labels, "classification" or "regression".
    """

    kind: ClassVar[str]

    def __init__(
        self,
        base: Any = None,
        method: str | None = None,
        arguments: Mapping[str, Any] | None = None,
        *,
        hidden: Any = (128,),
        dropout: float = 0.5,
        epochs: int | None = None,
        batch_size: int | None = None,
        learning_rate: float = 1e-3,
        random_state: Any = 0,
        verbose: Any = 0,
    ):
        self.base = base
        self.method = method
        self.arguments = arguments
        self.hidden = hidden
        self.dropout = dropout
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.random_state = random_state
        self.verbose = verbose

    def _train(self, X: ArrayLike, annotations: Annotations | None, **targets: Any) -> Any:
        """Trains on annotations, or on targets (one row per task), given as an argument of `train`."""
        seed = self.random_state
        if seed is None or not isinstance(seed, (int, np.integer)):
            seed = check_random_state(seed).randint(2**31 - 1)
        settings = TrainingSettings(
            method=AGGREGATED if targets else self.method,
            arguments={} if targets or self.arguments is None else self.arguments,
            kind=self.kind,
            hidden=tuple(self.hidden),
            dropout=self.dropout,
            epochs=self.epochs,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            seed=seed,
        )
        base = None if self.base is None else ObjectBase(self.base)
        tasks = None if annotations is None else annotations.tasks
        self.annotators_ = None if annotations is None else annotations.annotators
        self.model_, _ = train(
            settings, X, annotations=annotations, tasks=tasks, base=base, verbose=self.verbose, **targets
        )
        return self

    def _check_features(self, X: ArrayLike, y: Labels | None = None, *, reset: bool = False) -> np.ndarray:
        """Features, float32 [N, D]."""
        if reset and y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        if not reset:
            check_is_fitted(self)
        return validate_data(self, X, reset=reset, dtype="float32")

    def _annotations_to_score(
        self, X: ArrayLike, y: Labels, sample_weight: ArrayLike | None, tasks: ArrayLike | None, task: str | None
    ) -> Annotations | None:
        """Annotations that `score` compares with; None for plain labels."""
        annotations = self._table(self._check_features(X), y, tasks, task)
        if annotations is not None and sample_weight is not None:
            raise DataError("sample_weight is for plain labels; annotators' labels have equal weights.")
        return annotations

    def _estimates(self, X: ArrayLike) -> np.ndarray:
        return np.asarray(self.model_.predict(X, verbose=0), dtype="float64")

    def _table(self, X: np.ndarray, y: Labels, tasks: ArrayLike | None, task: str | None) -> Annotations | None:
        """Annotations whose task code i is row i of X; None for plain labels."""
        y = annotations_from_frame(y, self.kind, task)
        if isinstance(y, Annotations):
            if y.kind != self.kind:
                raise DataError(f"{type(self).__name__} is for {self.kind}, the annotations are of kind {y.kind}.")
            return pair_rows(X, y, tasks, line="fit(X, y, tasks={})")[1]
        if tasks is not None:
            raise DataError("tasks= is for a table of annotations; a matrix of labels has a row for each row of X.")
        names = [str(name) for name in y.columns] if hasattr(y, "columns") else None
        matrix = y.to_numpy() if hasattr(y, "to_numpy") else np.asarray(y)
        if matrix.ndim != 2 or matrix.shape[1] == 1:
            return None
        check_consistent_length(X, matrix)
        return self._from_matrix(matrix, names)

    def _from_matrix(self, matrix: np.ndarray, names: list[str] | None) -> Annotations:
        """Annotations from a matrix with one column per annotator."""
        labelled = ~pd.isna(matrix)  # first, as pandas' NA cannot be compared
        for missing in ("", label_kind(self.kind).missing):
            labelled[labelled] = matrix[labelled].astype(object) != missing
        rows, columns = np.nonzero(labelled)
        if not len(rows):
            raise DataError("y contains no label.")
        options: dict[str, Any] = {"tasks": np.arange(len(matrix)), "annotators": names or np.arange(matrix.shape[1])}
        annotators = columns if names is None else np.asarray(names, dtype=object)[columns]
        return Annotations.from_arrays(rows, annotators, matrix[labelled].tolist(), kind=self.kind, **options)

    def _plain(self, X: np.ndarray, y: Labels) -> np.ndarray:
        """One label per row, [N]."""
        values = column_or_1d(y, warn=True)
        check_consistent_length(X, values)
        if values.dtype.kind in "fc":
            check_array(values, ensure_2d=False, input_name="y")
        return values
