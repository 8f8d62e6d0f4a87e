"""Annotators with confusion matrices: `Params`, the `Counts` of blocks, and the compiled loops between them.

Tables of annotators are laid out `[annotator, said, true]`, so that an annotation reads, and adds to, K contiguous
numbers. Tasks are processed 64 at a time, the M-step of a tile right after its E-step, while its posteriors are in the
cache. Up to 128 classes, the code is compiled for that number of classes (about a second, cached on disk), so that K
contiguous numbers take a handful of vector instructions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial, reduce
from operator import iadd
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdzoo.aggregation.engine.block import Additive, Block
from crowdzoo.aggregation.engine.instructions import add_rows, add_run, exp, prefetch
from crowdzoo.aggregation.engine.labels import answers_by_block
from crowdzoo.aggregation.engine.loops import compiled, in_threads, num_threads

if TYPE_CHECKING:
    from crowdzoo.data.annotations import Annotations

TINY = float(np.finfo(np.float64).tiny)
TILE = 64  # tasks; the product of their totals, each at most K, must not overflow
MOST_FIXED = 128  # classes
CACHED = 2**17  # cells; rows of larger tables are prefetched this number of annotations ahead:
AHEAD = 16
NORMALISED = 2**15  # cells at a time, which stay in the cache between both passes
MAX_TABLES = 2**31  # bytes of all threads' tables together
PART = 2**14  # annotations, whose vote shares stay in the cache and in allocated memory
NOTHING = np.empty(0)
U = np.uint64  # signed indices need a wrap-around check each

# === Between an M-step and the next E-step ===


@dataclass(frozen=True, eq=False)
class Params:
    """Parameters of an annotator model, in log space.

    Attributes:
        log_confusions: log P(annotator says l | truth k), `[annotator, true, said]`, [R, K, K].
        log_class_prior: log P(truth k), [K].
    """

    log_confusions: NDArray[np.float64]
    log_class_prior: NDArray[np.float64]

    @classmethod
    def from_probabilities(cls, confusions: ArrayLike, class_prior: ArrayLike) -> Params:
        """Takes logarithms; zeros become the smallest normal number, so that no later sum contains `inf - inf`."""
        return cls(np.log(np.maximum(confusions, TINY)), np.log(np.maximum(class_prior, TINY)))

    @cached_property
    def log_table(self) -> NDArray[np.float64]:
        """`log_confusions` as the kernels need it: `[annotator, said, true]`, C-contiguous, [R, K, K]."""
        return np.ascontiguousarray(self.log_confusions.transpose(0, 2, 1))

    def __getstate__(self) -> dict[str, NDArray[np.float64]]:
        return {"log_confusions": self.log_confusions, "log_class_prior": self.log_class_prior}

    @property
    def confusions(self) -> NDArray[np.float64]:
        """Confusion matrices, `[annotator, true, said]`, rows sum to one, [R, K, K]."""
        return np.exp(self.log_confusions)

    @property
    def class_prior(self) -> NDArray[np.float64]:
        """Class probabilities, [K]."""
        return np.exp(self.log_class_prior)

    @property
    def num_annotators(self) -> int:
        """R."""
        return self.log_confusions.shape[0]

    @property
    def num_classes(self) -> int:
        """K."""
        return self.log_class_prior.shape[0]


@dataclass(eq=False)
class Counts(Additive):
    """What a block adds to the M-step; `a + b` is the sum of two blocks.

    Attributes:
        table: expected number of times that the annotator said l when the truth is k, `[annotator, said, true]`,
            [R, K, K].
        classes: expected number of tasks of each class, [K], without tasks that carry no information.
        log_likelihood: log-probability (nats) of the block's annotations and known classes under the parameters used
            for the counts; 0 without parameters.
        num_annotations: number of annotations counted.
    """

    table: NDArray[np.float64]
    classes: NDArray[np.float64]
    log_likelihood: float = 0.0
    num_annotations: int = 0

    @classmethod
    def zero(cls, num_annotators: int, num_classes: int) -> Counts:
        """Counts of no block."""
        return cls(np.zeros((num_annotators, num_classes, num_classes)), np.zeros(num_classes))

    @classmethod
    def total(
        cls,
        blocks: Sequence[Block],
        kernel: Callable[[Counts, Block], None],
        num_annotators: int,
        num_classes: int,
    ) -> Counts:
        """Sums what all blocks add, on all cores.

        Each thread has its own table; there are fewer threads if tables would take more than two gibibytes.

        Args:
            blocks: blocks to count.
            kernel: function that adds a block to counts, in place.
            num_annotators: R.
            num_classes: K.
        """

        def work(part: Sequence[Block]) -> Counts:
            counts = cls.zero(num_annotators, num_classes)
            for block in part:
                kernel(counts, block)
            return counts

        size = 8 * max(num_annotators, 1) * num_classes**2
        return reduce(iadd, in_threads(work, blocks, max(1, min(num_threads(), MAX_TABLES // size))))

    @classmethod
    def expected(cls, blocks: Sequence[Block], params: Params) -> Counts:
        """Sums what all blocks add under the posteriors given the parameters, on all cores."""
        kernel = partial(cls.add_expected, params=params)
        return cls.total(blocks, kernel, params.num_annotators, params.num_classes)

    @property
    def confusions(self) -> NDArray[np.float64]:
        """`table` in the order `[annotator, true, said]`, [R, K, K]."""
        return self.table.transpose(0, 2, 1)

    @property
    def facts(self) -> dict[str, Any]:
        """The attributes of a result that store the counts."""
        return {"counts": self.confusions, "class_counts": self.classes}

    @property
    def num_annotators(self) -> int:
        """R."""
        return len(self.table)

    @property
    def num_classes(self) -> int:
        """K."""
        return len(self.classes)

    def add(self, block: Block, posteriors: NDArray[np.float64]) -> None:
        """Adds a block under these posteriors [T, K] to the counts."""
        block.check_codes(self.num_annotators, self.num_classes)
        fixed_posteriors = np.ascontiguousarray(posteriors, np.float64)
        add_counts(block, self.num_classes, fixed_posteriors=fixed_posteriors, counts=self.table, classes=self.classes)
        self.num_annotations += len(block)

    def add_expected(self, block: Block, params: Params) -> None:
        """Adds a block under the posteriors given the parameters, and the block's log-probability.

        Args:
            block: T tasks, A annotations.
            params: parameters of these R annotators and K classes.
        """
        block.check_codes(self.num_annotators, self.num_classes)
        self.log_likelihood += add_counts(
            block,
            self.num_classes,
            log_table=params.log_table,
            log_prior=params.log_class_prior,
            counts=self.table,
            classes=self.classes,
        )
        self.num_annotations += len(block)


def posteriors_and_labels(
    annotations: Annotations, blocks: Sequence[Block], params: Params, seed: int
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Posteriors [N, K] and labels [N] of all tasks; see `answers_by_block`."""
    return answers_by_block(annotations, blocks, lambda place, out: write_posteriors(blocks[place], params, out), seed)


def block_posteriors(block: Block, params: Params) -> NDArray[np.float64]:
    """Class probabilities of a block's tasks given the parameters, [T, K].

    Known classes are certain; tasks without annotations have the class prior.

    Args:
        block: T tasks.
        params: parameters of K classes.
    """
    shares = np.empty((len(block.tasks), params.num_classes))
    write_posteriors(block, params, shares)
    return shares


def write_posteriors(block: Block, params: Params, out: NDArray[np.float64]) -> None:
    """Writes `block_posteriors` into an array.

    Args:
        block: T tasks.
        params: parameters of K classes.
        out: float64 [T, K], C-contiguous.
    """
    block.check_codes(params.num_annotators, params.num_classes)
    add_counts(block, params.num_classes, log_table=params.log_table, log_prior=params.log_class_prior, posteriors=out)


def first_shares(
    block: Block, weights: NDArray[np.float64], num_classes: int, first: NDArray[np.float64] | None
) -> NDArray[np.float64]:
    """Input of the first M-step for a block, [T, K]: posteriors [N, K] of all tasks if passed, else the votes.

    Known classes are certain. `weights` weight the annotators' votes, [R].
    """
    return vote_shares(block, weights, num_classes) if first is None else block.clamped(first[block.tasks])


def first_counts(
    blocks: Sequence[Block],
    num_annotators: int,
    num_classes: int,
    first: NDArray[np.float64] | None = None,
    weights: NDArray[np.float64] | None = None,
) -> Counts:
    """Counts of all blocks under `first_shares`."""
    votes = np.ones(num_annotators) if weights is None else weights

    def add(counts: Counts, block: Block) -> None:
        for part in block.cut(PART):
            counts.add(part, first_shares(part, votes, num_classes, first))

    return Counts.total(blocks, add, num_annotators, num_classes)


def shares_of(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Divides counts by their sum; equal shares if it is zero."""
    total = counts.sum()
    return counts / total if total > 0 else np.full_like(counts, 1 / len(counts))


# === Compiled loops ===


# Functions of this module, not of a closure: Numba's disk cache identifies a closure by the bytes of its variables,
# and those of a compiled function differ between processes
@compiled(inline="always")
def _add_row(target, i, source, j, k_all, run):  # type: ignore[no-untyped-def]  # for Numba
    """target[i : i + K] += source[j : j + K], inlined, `run` numbers at a time; `run` is known when compiled."""
    whole = k_all // U(run) * U(run)
    for k in range(U(0), whole, U(run)):
        add_run(target, i + k, source, j + k, run)
    for k in range(whole, k_all):
        target[i + k] += source[j + k]


@compiled(inline="always")
def _finish(tile, gold, first, last, k_all):  # type: ignore[no-untyped-def]  # for Numba
    """Converts the logits of a tile, tasks `first` to `last`, to posteriors and returns their log evidence, nats."""
    evidence = 0.0
    o = U(0)
    for i in range(first, last):
        if len(gold) > 0 and gold[i] >= 0:
            evidence += tile[o + U(gold[i])]
            for k in range(k_all):
                tile[o + k] = -1000.0
            tile[o + U(gold[i])] = 0.0
        else:
            peak = tile[o]
            for k in range(U(1), k_all):
                peak = max(peak, tile[o + k])
            for k in range(k_all):
                tile[o + k] -= peak
            evidence += peak
        o += k_all
    for k in range(o):
        tile[k] = exp(tile[k])
    o = U(0)
    totals = 1.0
    for _ in range(first, last):
        total = 0.0
        for k in range(k_all):
            total += tile[o + k]
        share = 1.0 / total
        for k in range(k_all):
            tile[o + k] *= share
        totals *= total
        o += k_all
    return evidence + math.log(totals)


@lru_cache
def _kernel(fixed: int) -> Callable[..., float]:
    """The loop for `fixed` classes; 0: for any number of classes."""
    run = fixed or 8

    @compiled()
    def expect_and_count(  # type: ignore[no-untyped-def]  # for Numba
        starts, annotators, labels, gold, num_classes, log_table, log_prior, known, posteriors, counts, classes
    ):
        k_all = U(fixed) if fixed else U(num_classes)
        num_tasks = len(starts) - 1
        expects, keeps, counting, has_gold = len(known) == 0, len(posteriors) > 0, len(counts) > 0, len(gold) > 0
        tile = np.empty(TILE * num_classes)
        large = max(len(log_table), len(counts)) > CACHED
        far = U(max(len(annotators) - AHEAD, 0)) if large else U(0)
        evidence = 0.0
        for first in range(0, num_tasks, TILE):
            last = min(first + TILE, num_tasks)
            if expects:
                o = U(0)
                for i in range(first, last):
                    for k in range(k_all):
                        tile[o + k] = log_prior[k]
                    begin, end = U(starts[i]), U(starts[i + 1])
                    if fixed:
                        add_rows(tile, o, log_table, annotators, labels, begin, end, far, U(AHEAD), run)
                    else:
                        for j in range(begin, end):
                            row = (U(annotators[j]) * k_all + U(labels[j])) * k_all
                            _add_row(tile, o, log_table, row, k_all, run)
                    o += k_all
                evidence += _finish(tile, gold, first, last, k_all)
            else:
                begin = U(first) * k_all
                for k in range(U(last - first) * k_all):
                    tile[k] = known[begin + k]
            if keeps:
                begin = U(first) * k_all
                for k in range(U(last - first) * k_all):
                    posteriors[begin + k] = tile[k]
            if counting:
                o = U(0)
                for i in range(first, last):
                    if starts[i + 1] > starts[i] or (has_gold and gold[i] >= 0):
                        _add_row(classes, U(0), tile, o, k_all, run)
                    for j in range(U(starts[i]), U(starts[i + 1])):
                        if j < far:
                            row = (U(annotators[j + U(AHEAD)]) * k_all + U(labels[j + U(AHEAD)])) * k_all
                            prefetch(counts, row)
                            prefetch(counts, row + U(min(run, 8) - 1))
                        row = (U(annotators[j]) * k_all + U(labels[j])) * k_all
                        _add_row(counts, row, tile, o, k_all, run)
                    o += k_all
        return evidence

    return expect_and_count


def add_counts(
    block: Block,
    num_classes: int,
    *,
    log_table: NDArray[np.float64] = NOTHING,
    log_prior: NDArray[np.float64] = NOTHING,
    fixed_posteriors: NDArray[np.float64] = NOTHING,
    posteriors: NDArray[np.float64] = NOTHING,
    counts: NDArray[np.float64] = NOTHING,
    classes: NDArray[np.float64] = NOTHING,
) -> float:
    """One pass over a block: computes (or uses) posteriors of its tasks, and adds them to the counts.

    All arrays are float64 and C-contiguous; arrays that are not passed are not computed.

    Args:
        block: T tasks; its codes have been checked.
        num_classes: K.
        log_table: log P(annotator says l | truth k), `[annotator, said, true]`, [R, K, K].
        log_prior: log P(truth k), [K].
        fixed_posteriors: posteriors [T, K] to use instead of computing them from `log_table` and `log_prior`.
        posteriors: receives the posteriors, [T, K].
        counts: receives the sums of posteriors by annotator and label of the annotation, `[annotator, said, true]`,
            [R, K, K].
        classes: receives the sum of the posteriors of tasks that carry information, [K].

    Returns:
        Log-probability of the block's annotations and known classes, nats; 0 with `fixed_posteriors`.
    """
    loop = _kernel(num_classes if num_classes <= MOST_FIXED else 0)
    before = log_table.reshape(-1), log_prior, fixed_posteriors.reshape(-1)
    return loop(*block.columns, num_classes, *before, posteriors.reshape(-1), counts.reshape(-1), classes)


def vote_shares(block: Block, weights: NDArray[np.float64], num_classes: int) -> NDArray[np.float64]:
    """Computes the shares of each task's weighted votes.

    Args:
        block: T tasks.
        weights: weight of each annotator's vote, [R], positive.
        num_classes: K.

    Returns:
        Shares [T, K], rows sum to one. Uniform for tasks without annotations, certain for known classes.
    """
    block.check_codes(len(weights), num_classes)
    shares = np.zeros((len(block.tasks), num_classes))
    _vote_shares(*block.columns, weights, shares)
    return shares


@compiled()
def _vote_shares(starts, annotators, labels, gold, weights, shares):  # type: ignore[no-untyped-def]  # for Numba
    num_classes = U(shares.shape[1])
    for i in range(U(len(starts) - 1)):
        if len(gold) > 0 and gold[i] >= 0:
            shares[i, gold[i]] = 1.0
            continue
        total = 0.0
        for j in range(U(starts[i]), U(starts[i + U(1)])):
            weight = weights[U(annotators[j])]
            shares[i, U(labels[j])] += weight
            total += weight
        if total > 0:
            share = 1.0 / total
            for k in range(num_classes):
                shares[i, k] *= share
        else:
            for k in range(num_classes):
                shares[i, k] = 1.0 / num_classes


def normalised_logs(counts: NDArray[np.float64], prior: NDArray[np.float64]) -> NDArray[np.float64]:
    """Computes logs of (counts + prior), normalised over `said`; uniform if all are zero or below 2.2e-308.

    Args:
        counts: `[annotator, said, true]`, [R, K, K].
        prior: pseudo-counts per annotator, `[said, true]`, [K, K].

    Returns:
        `[annotator, said, true]`, [R, K, K]; all are finite.
    """
    logs = np.empty_like(counts)
    step = max(1, NORMALISED // max(counts.shape[1] ** 2, 1))

    def fill(begins: Sequence[int]) -> None:
        for begin in begins:
            part = logs[begin : begin + step]
            _normalise(counts[begin : begin + step], prior, TINY, part)
            np.log(part, out=part)

    in_threads(fill, range(0, len(counts), step), num_threads())
    return logs


@compiled()
def _normalise(counts, prior, least, shares):  # type: ignore[no-untyped-def]  # for Numba
    num_classes = U(counts.shape[1])
    of_prior, factors = np.zeros(num_classes), np.empty(num_classes)
    for label in range(num_classes):
        for true in range(num_classes):
            of_prior[true] += prior[label, true]
    for r in range(U(counts.shape[0])):
        for true in range(num_classes):
            factors[true] = of_prior[true]
        for label in range(num_classes):
            for true in range(num_classes):
                factors[true] += counts[r, label, true]
        empty = False
        for true in range(num_classes):
            if factors[true] >= TINY:  # 1 divided by less is inf
                factors[true] = 1.0 / factors[true]
            else:
                factors[true] = 0.0
                empty = True
        for label in range(num_classes):
            for true in range(num_classes):
                shares[r, label, true] = max((counts[r, label, true] + prior[label, true]) * factors[true], least)
        if empty:
            for true in range(num_classes):
                if factors[true] == 0.0:
                    for label in range(num_classes):
                        shares[r, label, true] = 1.0 / num_classes
