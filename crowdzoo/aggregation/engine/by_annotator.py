"""ByAnnotator: passes over all annotations that go from annotator to annotator, without a table of all annotators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdzoo.aggregation.engine.block import Block, checked_gold
from crowdzoo.aggregation.engine.compiled import compiled
from crowdzoo.aggregation.engine.counts import Counts
from crowdzoo.aggregation.engine.kernels import AHEAD, MOST_FIXED, posteriors_of_logits, prefetch, row_adder
from crowdzoo.aggregation.engine.threads import in_threads, num_threads

if TYPE_CHECKING:
    from crowdzoo.data.annotations import Annotations

T = TypeVar("T")

CELLS = 2**17  # of the table of those annotators that a thread has at a time: it stays in the cache
MOST_BYTES = 2**31  # of all threads' logits together
U = np.uint64

Step = Callable[[NDArray[np.float64], NDArray[np.float64]], T]  # counts and logs of some annotators, both [r, K, K]


class ByAnnotator:
    """All annotations, sorted by annotator, and what an EM iteration needs of them.

    An iteration goes from the tasks' posteriors to the next ones: a few annotators at a time it counts what they said
    under the posteriors, makes their log confusion matrices of it, and adds these to the logits of their tasks. Where
    annotators outnumber tasks by classes, so that tables of all annotators would be larger than the posteriors, that
    takes half the time, and less memory.

    Tables are laid out `[annotator, said, true]`.

    Args:
        annotations: N tasks, R annotators, K classes.
        gold: known class codes [N], -1 where unknown.

    Raises:
        DataError: `gold` does not fit.
    """

    def __init__(self, annotations: Annotations, gold: ArrayLike | None = None):
        self.num_tasks, self.num_annotators = annotations.num_tasks, annotations.num_annotators
        self.num_classes = annotations.num_classes
        everybody = np.arange(self.num_annotators)
        # a block whose tasks are the annotators
        said = Block(annotations.annotator_ids, annotations.task_ids, annotations.labels, everybody)
        self.starts, self.task_ids, self.labels = said.starts, said.annotator_ids, said.labels
        known = checked_gold(gold, self.num_tasks, self.num_classes)
        self.gold = np.full(self.num_tasks, -1) if known is None else known
        self.idle = np.flatnonzero((annotations.redundancy == 0) & (self.gold < 0))
        threads = min(num_threads(), MOST_BYTES // max(8 * self.num_tasks * self.num_classes, 1))
        cuts = np.searchsorted(self.starts, len(said) * np.arange(1, max(threads, 1)) / max(threads, 1))
        ends = np.unique([0, *cuts, self.num_annotators]).tolist()
        self.parts: list[tuple[int, int]] = list(pairwise(ends))  # annotators of each thread
        self._spare: list[NDArray[np.float64]] = []

    @staticmethod
    def pays(annotations: Annotations) -> bool:
        """Whether tables of all annotators are larger than the cache and than the posteriors."""
        cells = annotations.num_annotators * annotations.num_classes
        return cells > annotations.num_tasks and cells * annotations.num_classes > 8 * CELLS

    def classes(self, posteriors: NDArray[np.float64]) -> NDArray[np.float64]:
        """Expected number of tasks of each class, [K]; tasks that carry no information are not counted."""
        return np.maximum(posteriors.sum(axis=0) - posteriors[self.idle].sum(axis=0), 0.0)

    def counts(self, posteriors: NDArray[np.float64]) -> Counts:
        """The counts of all annotators as one table."""
        table = np.zeros((self.num_annotators, self.num_classes, self.num_classes))
        gather, _ = _kernels(self.num_classes if self.num_classes <= MOST_FIXED else 0)

        def fill(parts: Sequence[tuple[int, int]]) -> None:
            for begin, end in parts:
                gather(*self._columns, begin, end, self.num_classes, posteriors.reshape(-1), table[begin:].reshape(-1))

        in_threads(fill, self.parts, len(self.parts))
        return Counts(table, self.classes(posteriors), num_annotations=len(self.task_ids))

    def iterate(
        self, posteriors: NDArray[np.float64], log_prior: NDArray[np.float64], step: Step[T]
    ) -> tuple[NDArray[np.float64], float, list[T]]:
        """The next posteriors.

        Args:
            posteriors: of all tasks, float64 [N, K].
            log_prior: log P(truth k), [K].
            step: writes the log confusion matrices that follow from counts, both [r, K, K], of some annotators.

        Returns:
            Posteriors [N, K], certain where the class is known; log probability of the annotations and known classes,
            nats; and what `step` gave, in the order of the annotators.
        """
        shape = self.num_tasks, self.num_classes
        logits = [self._spare.pop() if self._spare else np.empty(shape) for _ in self.parts]
        found = self._add_logs(posteriors, step, logits)
        result, *others = logits

        def finish(rows: Sequence[slice]) -> float:
            evidence = 0.0
            for part in rows:
                for other in others:
                    result[part] += other[part]
                evidence += posteriors_of_logits(result[part], log_prior, self.gold[part])
            return evidence

        size = max(1, CELLS // self.num_classes)
        rows = [slice(begin, begin + size) for begin in range(0, self.num_tasks, size)]
        evidence = sum(in_threads(finish, rows, num_threads()))
        self._spare += others
        return result, evidence, found

    def reuse(self, posteriors: NDArray[np.float64]) -> None:
        """Takes an array [N, K] that is not needed any more, for the next iteration."""
        self._spare.append(posteriors)

    @property
    def _columns(self) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.integer]]:
        return self.starts, self.task_ids, self.labels

    def _add_logs(
        self, posteriors: NDArray[np.float64], step: Step[T], logits: Sequence[NDArray[np.float64]]
    ) -> list[T]:
        """What `step` gives for some annotators at a time, whose logs are added up in the logits of their thread."""
        gather, scatter = _kernels(self.num_classes if self.num_classes <= MOST_FIXED else 0)
        given = np.ascontiguousarray(posteriors).reshape(-1)
        size = max(1, CELLS // self.num_classes**2)

        def work(places: Sequence[int]) -> list[T]:
            found = []
            counts, logs = (np.empty((size, self.num_classes, self.num_classes)) for _ in range(2))
            for place in places:
                begin, last = self.parts[place]
                logits[place].fill(0.0)
                for first in range(begin, last, size):
                    end = min(first + size, last)
                    part = slice(0, end - first)
                    counts[part] = 0.0
                    where = *self._columns, first, end, self.num_classes
                    gather(*where, given, counts.reshape(-1))
                    found.append(step(counts[part], logs[part]))
                    scatter(*where, logs.reshape(-1), logits[place].reshape(-1))
            return found

        found = in_threads(work, range(len(self.parts)), len(self.parts))
        return [each for part in found for each in part]


@lru_cache
def _kernels(fixed: int) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Loops for `fixed` classes; 0: for any number."""
    add_row = row_adder(fixed)
    run = min(fixed or 8, 8)

    @compiled()
    def gather(starts, task_ids, labels, begin, end, num_classes, posteriors, counts):  # type: ignore[no-untyped-def]  # for Numba
        """Adds the posteriors of the tasks to the counts of annotators `begin` to `end`."""
        k_all = U(fixed) if fixed else U(num_classes)
        far = len(task_ids) - AHEAD
        for r in range(begin, end):
            table = U(r - begin) * k_all * k_all
            for j in range(starts[r], starts[r + 1]):
                if j < far:
                    row = U(task_ids[j + AHEAD]) * k_all
                    prefetch(posteriors, row)
                    prefetch(posteriors, row + U(run - 1))
                add_row(counts, table + U(labels[j]) * k_all, posteriors, U(task_ids[j]) * k_all, k_all)

    @compiled()
    def scatter(starts, task_ids, labels, begin, end, num_classes, logs, logits):  # type: ignore[no-untyped-def]  # for Numba
        """Adds the logs of annotators `begin` to `end` to the logits of the tasks."""
        k_all = U(fixed) if fixed else U(num_classes)
        far = len(task_ids) - AHEAD
        for r in range(begin, end):
            table = U(r - begin) * k_all * k_all
            for j in range(starts[r], starts[r + 1]):
                if j < far:
                    row = U(task_ids[j + AHEAD]) * k_all
                    prefetch(logits, row)
                    prefetch(logits, row + U(run - 1))
                add_row(logits, U(task_ids[j]) * k_all, logs, table + U(labels[j]) * k_all, k_all)

    return gather, scatter
