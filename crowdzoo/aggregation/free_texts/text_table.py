"""TextTable: free texts by task, and the pairs of texts of a task."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from crowdzoo.aggregation.base import check_annotations
from crowdzoo.aggregation.free_texts.edits import error_rates
from crowdzoo.aggregation.free_texts.tokens import Tokens
from crowdzoo.data.label_kinds import FREE_TEXT
from crowdzoo.errors import DataError

if TYPE_CHECKING:
    from crowdzoo.data.annotations import Annotations

AT_ONCE = 1 << 24  # numbers

Array = NDArray[np.float64]
Codes = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class TextTable:
    """Free texts sorted by task; within a task they keep their order.

    Attributes:
        annotations: A texts of N tasks.
        tokens: tokens of the distinct texts.
        tasks: task of each row, ascending, [A].
        who: annotator of each row, [A].
        said: index of the text in `tokens`, [A].
    """

    annotations: Annotations
    tokens: Tokens
    tasks: Codes
    who: Codes
    said: Codes

    @classmethod
    def of(cls, annotations: Annotations, title: str, unit: str = "words", normalize: str = "blanks") -> TextTable:
        """Sorts annotations by task.

        Args:
            annotations: kind "free-text".
            title: title of the method, for messages.
            unit: see `Tokens`.
            normalize: see `normalized`.

        Raises:
            DataError: wrong kind, no annotations, or several texts by one annotator for a task.
        """
        check_annotations(annotations, title, FREE_TEXT, "text")
        annotations.check_no_repeats(title)
        order = np.argsort(annotations.task_ids, kind="stable")
        tokens = Tokens.of([] if annotations.values is None else annotations.values.tolist(), unit, normalize)
        columns = annotations.task_ids, annotations.annotator_ids, annotations.labels
        return cls(annotations, tokens, *(column[order] for column in columns))

    @cached_property
    def sizes(self) -> Codes:
        """Number of texts per task, [N]."""
        return np.bincount(self.tasks, minlength=self.annotations.num_tasks)

    @cached_property
    def pairs(self) -> tuple[Codes, Codes]:
        """Rows of all pairs of texts of a task, the earlier first, [P] each."""
        after = np.cumsum(self.sizes)[self.tasks] - 1 - np.arange(len(self.tasks))
        left = np.repeat(np.arange(len(self.tasks)), after)
        return left, left + 1 + np.arange(len(left)) - np.repeat(np.cumsum(after) - after, after)

    @cached_property
    def distances(self) -> Array:
        """Error rates of the pairs, [P]; see `error_rates`."""
        left, right = self.pairs
        return error_rates(self.tokens, self.said[left], self.said[right])

    def sums(self, of_pairs: Array, weights: Array | None = None) -> Array:
        """Sums the values of each row's pairs, weighted by the other row, [A].

        Args:
            of_pairs: value of each pair, [P].
            weights: weight of each row, [A]; None is 1.
        """
        (left, right), size = self.pairs, len(self.tasks)
        weights = np.ones(size) if weights is None else weights
        sums = np.bincount(left, of_pairs * weights[right], size) + np.bincount(right, of_pairs * weights[left], size)
        return sums.astype(np.float64)

    def of_tasks(self, of_rows: Array) -> Array:
        """Sums over the rows of each task, [N]."""
        return np.bincount(self.tasks, of_rows, len(self.sizes)).astype(np.float64)

    def first_best(self, scores: Array) -> Codes:
        """Row with the highest score of each task, [n]; ties (to 12 decimals) go to the first."""
        order = np.lexsort((np.arange(len(scores)), -np.round(scores, 12), self.tasks))
        return np.asarray(order[np.r_[True, np.diff(self.tasks) > 0]]) if len(order) else order

    def products(self, features: str | Callable[[list[str]], Any]) -> tuple[Array, Array]:
        """Inner products of the texts' vectors: with themselves [A], and of the pairs [P].

        Args:
            features: "edits": vectors of length 1 whose squared distances are the error rates; "ngrams": see
                `Tokens.ngrams`; or a function from texts to vectors, [n, d].

        Raises:
            DataError: the function does not return a finite vector for each text.
        """
        if features == "edits":
            return np.ones(len(self.said)), 1 - self.distances / 2
        number = len(self.tokens.texts)
        vectors: Any = np.asarray(features(self.tokens.texts), np.float64) if callable(features) else None
        if vectors is None:
            vectors = self.tokens.ngrams()
        elif vectors.ndim != 2 or len(vectors) != number or not np.isfinite(vectors).all():
            raise DataError(f"features: must give finite numbers [{number:,} texts, size], got shape {vectors.shape}.")
        left, right = (self.said[side] for side in self.pairs)
        parts = np.array_split(np.arange(len(left)), 1 + len(left) * vectors.shape[1] // AT_ONCE)
        pairs = [_inner(vectors[left[part]], vectors[right[part]]) for part in parts]
        return _inner(vectors, vectors)[self.said], np.concatenate(pairs)


def _inner(first: Any, second: Any) -> Array:
    """Inner products of corresponding rows of two dense or sparse arrays."""
    if isinstance(first, np.ndarray):
        return np.asarray(np.einsum("nd,nd->n", first, second))
    return np.asarray(first.multiply(second).sum(axis=1)).ravel()
