"""Aggregator: what the algorithms of all kinds of labels have in common."""

from __future__ import annotations

import copy
import warnings
from typing import TYPE_CHECKING, Any, ClassVar

from crowdzoo.checks.constraints import Checked
from crowdzoo.data.label_kinds import label_kind
from crowdzoo.errors import ConfigError, DataError, Setting

if TYPE_CHECKING:
    from crowdzoo.data.annotations import Annotations


class Aggregator(Checked):
    """Base of the aggregation algorithms: settings as in scikit-learn, and `fit_predict` as in crowd-kit.

    A subclass is a frozen dataclass whose fields are its settings, and has a method `fit`. What is learned is in the
    result of `fit`, never in the aggregator.

    Attributes:
        kind: of the labels that are aggregated, as in `Annotations.kind`.

    Example:
        >>> from crowdzoo import Annotations
        >>> from crowdzoo.aggregation import Aggregator, MajorityVote
        >>> isinstance(MajorityVote(), Aggregator)
        True
        >>> task, annotator = [1, 1, 1, 2], ["ann", "bob", "cem", "ann"]
        >>> annotations = Annotations.from_arrays(task, annotator, ["cat", "cat", "dog", "dog"])
        >>> MajorityVote().fit_predict(annotations).to_dict()
        {1: 'cat', 2: 'dog'}
    """

    kind: ClassVar[str] = "classification"
    fit: Any  # each subclass has its own

    def fit_predict(self, data: Any, **known: Any) -> Any:
        """The answers alone, as crowd-kit's aggregators give them.

        Args:
            data: a pandas or polars frame with the columns `task`, `worker` (or `annotator`) and `label`; sentences
                have `position` as well. Preferences have `left` and `right` instead of `task`, and as `label` the
                better one of the two, or "left", "right" or "equal". Or `Annotations`.
            **known: further arguments of `fit`, such as `gold`.

        Returns:
            A pandas series, sorted by its index. For classes `agg_label`, class names indexed by `task`; for sentences
            the same, indexed by `task` and `position`; for ratings `agg_label`, numbers indexed by `task`; for
            preferences `agg_score`, scores indexed by the names of the tasks. For a polars frame, a polars frame with
            these columns.

        Raises:
            DataError: data that cannot be read as annotations; see `Annotations.from_frame`.
            ImportError: pandas is missing.
        """
        result = self.fit(self._annotations(data), **known)
        index, column, name = result.answered
        if is_polars(data):
            return result.to_polars().select([*index, column]).rename({column: name}).sort(index)
        return result.to_frame().set_index(index)[column].rename(name).sort_index()

    def fit_predict_proba(self, data: Any, **known: Any) -> Any:
        """Class probabilities, as crowd-kit's aggregators for classes give them.

        Args:
            data: see `fit_predict`; for classes only.
            **known: further arguments of `fit`, such as `gold`.

        Returns:
            A pandas frame indexed by `task`, a column a class, rows sum to one. For a polars frame a polars frame, with
            the column `task` first.

        Raises:
            DataError: data that cannot be read as annotations, or the aggregator is not for classes.
            ImportError: pandas is missing.
        """
        if not label_kind(self.kind).one_class:
            raise DataError(f"{type(self).__name__} gives no class probabilities a task; use fit_predict, or fit.")
        result = self.fit(self._annotations(data), **known)
        if is_polars(data):
            import polars

            class_columns = zip(result.classes, result.posteriors.T, strict=True)
            columns = {str(name): polars.Series(column) for name, column in class_columns}
            if "task" in columns:
                raise DataError("a class has the name of the column 'task'. Give a pandas frame, or rename the class.")
            return result.to_polars().select("task").with_columns(**columns).sort("task")
        import pandas as pd

        tasks, classes = pd.Index(result.tasks, name="task"), pd.Index(result.classes, name="label")
        return pd.DataFrame(result.posteriors, tasks, classes).sort_index()

    def _annotations(self, data: Any) -> Annotations:
        """Annotations out of a frame; those that are some already stay as they are."""
        from crowdzoo.data.annotations import Annotations  # with Arrow, which aggregation alone does not need

        if isinstance(data, Annotations):
            return data
        try:
            return Annotations.from_frame(self._readable(data), kind=self.kind)
        except (ConfigError, DataError) as error:
            kind = label_kind(self.kind).argument
            advice = f"fit(Annotations.from_frame(frame{kind}, on_duplicate='first', columns={{...}}))."
            more = copy.copy(error)
            more.args = (f"{error}\nOptions of reading go to from_frame: {advice}",)
            raise more from error

    def _readable(self, frame: Any) -> Any:
        """A frame as `from_frame` takes it."""
        return frame


def is_polars(data: Any) -> bool:
    """Whether it is a frame of polars, which is not imported for that."""
    return type(data).__module__.partition(".")[0] == "polars"


class ConvergenceWarning(UserWarning):
    """An algorithm stopped before its objective stood still.

    Example:
        >>> import warnings
        >>> from crowdzoo.aggregation import ConvergenceWarning
        >>> warnings.simplefilter("error", ConvergenceWarning)  # raise it as an error
        >>> warnings.simplefilter("default", ConvergenceWarning)  # print it, as Python does without these lines
    """


def warn_not_converged(title: str, max_iter: int, tol: float, change: float, unit: str, stacklevel: int = 3) -> None:
    """Warns that an algorithm ran out of iterations, and says what to do.

    Args:
        title: the algorithm's name, as text.
        max_iter: number of iterations.
        tol: what the last change should have fallen to.
        change: what it was.
        unit: of both, such as "nats per annotation".
        stacklevel: frames between here and the caller's `fit`.
    """
    warnings.warn(
        f"{title} did not converge in {max_iter} iterations: the last still changed the result by {change:.1e} {unit} "
        f"({Setting('tol', tol)}). Posteriors may still move; raise {Setting('max_iter')}, or {Setting('tol')} if that "
        "is close enough.",
        ConvergenceWarning,
        stacklevel=stacklevel + 1,
    )
