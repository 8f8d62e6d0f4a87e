"""The inner loops of every algorithm whose annotators have confusion matrices, compiled.

Tables of annotators are laid out `[annotator, said, true]`: an annotation reads, and adds to, one run of K numbers.
Tasks are taken 64 at a time, and the E- and the M-step of a tile follow each other while its posteriors are in the
cache. Up to 128 classes the code is compiled for that number of classes (about a second, kept on disk), so that a run
of K numbers is a handful of vector instructions.
"""

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core.errors import RequireLiteralValue
from numba.extending import intrinsic
from numpy.typing import NDArray

from crowdzoo.aggregation.engine.block import Block
from crowdzoo.aggregation.engine.compiled import compiled
from crowdzoo.aggregation.engine.params import TINY
from crowdzoo.aggregation.engine.threads import in_threads, num_threads

TILE = 64  # tasks; the product of their totals, each at most K, must not overflow
MOST_FIXED = 128  # classes
CACHED = 2**17  # cells; rows of larger tables are asked for so many annotations ahead:
AHEAD = 16
NORMALISED = 2**15  # cells at a time: what fits the cache between both passes
U = np.uint64  # signed indices cost a wrap-around check each

# === Vector arithmetic ===

_intrinsic: Any = intrinsic  # its types say that the typing context is an argument of the call


@_intrinsic
def _add_run(typingctx: Any, target: Any, i: Any, source: Any, j: Any, length: Any) -> Any:
    """target[i : i + length] += source[j : j + length], float64; `length` is known when compiled: no loop."""
    width = _literal(length)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        places = _places(context, builder, signature.args[0], args[0], args[1], width)
        others = _places(context, builder, signature.args[2], args[2], args[3], width)
        sums = [
            builder.fadd(*(builder.load(place, align=8) for place in pair)) for pair in zip(places, others, strict=True)
        ]
        for place, value in zip(places, sums, strict=True):
            builder.store(value, place, align=8)
        return context.get_dummy_value()

    return types.void(target, i, source, j, length), codegen


@_intrinsic
def _sum_run(typingctx: Any, source: Any, i: Any, length: Any) -> Any:
    """Sum of source[i : i + length], added up pairwise; `length` is known when compiled."""
    width = _literal(length)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        places = _places(context, builder, signature.args[0], args[0], args[1], width)
        return _sum(builder, [builder.load(place, align=8) for place in places])

    return types.float64(source, i, length), codegen


def _sum(builder: Any, vectors: list[Any]) -> Any:
    """One number out of vectors of falling sizes, pairwise."""
    while len(vectors) > 1 or isinstance(vectors[0].type, ir.VectorType):
        if len(vectors) > 1 and vectors[0].type == vectors[1].type:
            vectors = [*vectors[2:], builder.fadd(vectors[0], vectors[1])]
        else:
            lanes = vectors[0].type.count // 2
            halves = [ir.Constant(ir.VectorType(INDEX, lanes), list(range(at, at + lanes))) for at in (0, lanes)]
            if lanes == 1:
                parts = [builder.extract_element(vectors[0], ir.Constant(INDEX, at)) for at in (0, 1)]
            else:
                parts = [builder.shuffle_vector(vectors[0], vectors[0], half) for half in halves]
            vectors = [*vectors[1:], builder.fadd(*parts)]
        vectors.sort(key=lambda vector: -getattr(vector.type, "count", 1))
    return vectors[0]


INDEX = ir.IntType(32)


@_intrinsic
def prefetch(typingctx: Any, source: Any, i: Any) -> Any:
    """Asks for the cache line of source[i], which need not exist, ahead of its use."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = builder.gep(context.make_array(signature.args[0])(context, builder, args[0]).data, [args[1]])
        byte = ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [byte, INDEX, INDEX, INDEX])
        function = builder.module.globals.get(PREFETCH) or ir.Function(builder.module, kind, PREFETCH)
        builder.call(function, [builder.bitcast(place, byte), *(ir.Constant(INDEX, value) for value in (0, 3, 1))])
        return context.get_dummy_value()

    return types.void(source, i), codegen


PREFETCH = "llvm.prefetch.p0i8"


def _literal(length: Any) -> int:
    if not isinstance(length, types.IntegerLiteral):
        raise RequireLiteralValue("length")
    return length.literal_value


def _places(context: Any, builder: Any, kind: Any, array: Any, start: Any, length: int) -> list[Any]:
    """Pointers to the vectors that make up a run."""
    first = builder.gep(context.make_array(kind)(context, builder, array).data, [start])
    places = []
    for offset, lanes in _lanes(length):
        number = ir.VectorType(ir.DoubleType(), lanes) if lanes > 1 else ir.DoubleType()
        places.append(builder.bitcast(builder.gep(first, [ir.Constant(start.type, offset)]), number.as_pointer()))
    return places


def _lanes(width: int) -> list[tuple[int, int]]:
    """Offset and size of the vectors that make up a run."""
    parts, offset = [], 0
    for lanes in (4, 2, 1):
        while width - offset >= lanes:
            parts.append((offset, lanes))
            offset += lanes
    return parts


@_intrinsic
def _bits(typingctx: Any, number: Any) -> Any:
    """A float64's bits as int64, or an int64 as the float64 of these bits."""
    result = types.int64 if number == types.float64 else types.float64

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], context.get_value_type(result))

    return result(number), codegen


@compiled()
def exp(x):  # type: ignore[no-untyped-def]  # for Numba
    """Exponential for x <= 0 to 4e-16 relative, without a call, so that loops of it become vector code; 0 below -708.

    x = n log 2 + r; the added constant rounds to an integer in the low bits; Taylor's series of r to degree 13.
    """
    y = max(x, -708.0)
    shifted = y * 1.4426950408889634 + 6755399441055744.0
    n = shifted - 6755399441055744.0
    r = (y - n * 0.693147180369123816490) - n * 1.90821492927058770002e-10
    r2 = r * r
    r4 = r2 * r2
    low = (1.0 + r) + r2 * (1 / 2 + r * (1 / 6)) + r4 * ((1 / 24 + r * (1 / 120)) + r2 * (1 / 720 + r * (1 / 5040)))
    high = (1 / 40320 + r * (1 / 362880)) + r2 * (1 / 3628800 + r * (1 / 39916800))
    high += r4 * (1 / 479001600 + r * (1 / 6227020800))
    value = _bits((_bits(shifted) << 52) + _bits(low + r4 * r4 * high))
    return value if x > -708.0 else 0.0


# === Expectation and counting ===


# Functions of this module, not of a closure: Numba's cache on disk knows a closure by the bytes of what it holds, and
# those of a compiled function are others in each process
@compiled(inline="always")
def _add_row(target, i, source, j, k_all, run):  # type: ignore[no-untyped-def]  # for Numba
    """target[i : i + K] += source[j : j + K], to be inlined; `run` numbers at a time, known when compiled."""
    whole = k_all // U(run) * U(run)
    for k in range(U(0), whole, U(run)):
        _add_run(target, i + k, source, j + k, run)
    for k in range(whole, k_all):
        target[i + k] += source[j + k]


@compiled(inline="always")
def _finish(tile, gold, first, last, k_all, fixed, run):  # type: ignore[no-untyped-def]  # for Numba
    """Turns the logits of a tile, tasks `first` to `last`, into posteriors and returns their evidence, nats."""
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
        if fixed:
            total = _sum_run(tile, o, run)
            share = 1.0 / total
            for k in range(k_all):
                tile[o + k] *= share
        else:
            total = tile[o : o + k_all].sum()
            for k in range(k_all):
                tile[o + k] /= total
        totals *= total
        o += k_all
    return evidence + math.log(totals)


@lru_cache
def _kernel(fixed: int) -> Callable[..., float]:
    """The loop for `fixed` classes; 0: for any number."""
    run = fixed or 8

    @compiled()
    def expect_and_count(  # type: ignore[no-untyped-def]  # for Numba
        starts, annotators, labels, gold, num_classes, log_table, log_prior, given, found, counts, classes
    ):
        k_all = U(fixed) if fixed else U(num_classes)
        num_tasks = len(starts) - 1
        expects, keeps, counting, has_gold = len(given) == 0, len(found) > 0, len(counts) > 0, len(gold) > 0
        tile = np.empty(TILE * num_classes)
        large = max(len(log_table), len(counts)) > CACHED
        far = len(annotators) - AHEAD if large else 0
        evidence = 0.0
        for first in range(0, num_tasks, TILE):
            last = min(first + TILE, num_tasks)
            if expects:
                o = U(0)
                for i in range(first, last):
                    for k in range(k_all):
                        tile[o + k] = log_prior[k]
                    for j in range(starts[i], starts[i + 1]):
                        if j < far:
                            row = (U(annotators[j + AHEAD]) * k_all + U(labels[j + AHEAD])) * k_all
                            prefetch(log_table, row)
                            prefetch(log_table, row + U(min(run, 8) - 1))
                        row = (U(annotators[j]) * k_all + U(labels[j])) * k_all
                        _add_row(tile, o, log_table, row, k_all, run)
                    o += k_all
                evidence += _finish(tile, gold, first, last, k_all, fixed, run)
            else:
                begin = U(first) * k_all
                for k in range(U(last - first) * k_all):
                    tile[k] = given[begin + k]
            if keeps:
                begin = U(first) * k_all
                for k in range(U(last - first) * k_all):
                    found[begin + k] = tile[k]
            if counting:
                o = U(0)
                for i in range(first, last):
                    if starts[i + 1] > starts[i] or (has_gold and gold[i] >= 0):
                        _add_row(classes, U(0), tile, o, k_all, run)
                    for j in range(starts[i], starts[i + 1]):
                        if j < far:
                            row = (U(annotators[j + AHEAD]) * k_all + U(labels[j + AHEAD])) * k_all
                            prefetch(counts, row)
                            prefetch(counts, row + U(min(run, 8) - 1))
                        row = (U(annotators[j]) * k_all + U(labels[j])) * k_all
                        _add_row(counts, row, tile, o, k_all, run)
                    o += k_all
        return evidence

    return expect_and_count


NOTHING = np.empty(0)


def add_counts(
    block: Block,
    num_classes: int,
    *,
    log_table: NDArray[np.float64] = NOTHING,
    log_prior: NDArray[np.float64] = NOTHING,
    given: NDArray[np.float64] = NOTHING,
    found: NDArray[np.float64] = NOTHING,
    counts: NDArray[np.float64] = NOTHING,
    classes: NDArray[np.float64] = NOTHING,
) -> float:
    """One pass over a block: posteriors of its tasks, found or given, and what they add to the counts.

    All arrays are float64 and C-contiguous; what is left out is not computed.

    Args:
        block: T tasks; its codes have been checked.
        num_classes: K.
        log_table: log P(annotator says l | truth k), `[annotator, said, true]`, [R, K, K].
        log_prior: log P(truth k), [K].
        given: posteriors [T, K], instead of those that follow from `log_table` and `log_prior`.
        found: receives the posteriors, [T, K].
        counts: the posteriors of an annotation's task are added at its annotator and label, `[annotator, said, true]`,
            [R, K, K].
        classes: the posteriors of tasks that carry information are added up, [K].

    Returns:
        Log probability of the block's annotations and known classes, nats; 0 with `given`.
    """
    loop = _kernel(num_classes if num_classes <= MOST_FIXED else 0)
    flat = (log_table.reshape(-1), log_prior, given.reshape(-1), found.reshape(-1), counts.reshape(-1), classes)
    return loop(*block.columns, num_classes, *flat)


def vote_shares(block: Block, weights: NDArray[np.float64], num_classes: int) -> NDArray[np.float64]:
    """Each class's share of a task's weighted votes.

    Args:
        block: T tasks.
        weights: weight of each annotator's vote, [R], positive.
        num_classes: K.

    Returns:
        Shares [T, K], rows sum to one. Uniform where a task has no annotations, certain where its class is known.
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
    """Logs of (counts + prior), normalised over what was said; uniform where all is zero or below 2.2e-308.

    Args:
        counts: `[annotator, said, true]`, [R, K, K].
        prior: pseudo-counts of each annotator, `[said, true]`, [K, K].

    Returns:
        `[annotator, said, true]`, [R, K, K]; none is infinite.
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
    for said in range(num_classes):
        for true in range(num_classes):
            of_prior[true] += prior[said, true]
    for r in range(U(counts.shape[0])):
        for true in range(num_classes):
            factors[true] = of_prior[true]
        for said in range(num_classes):
            for true in range(num_classes):
                factors[true] += counts[r, said, true]
        empty = False
        for true in range(num_classes):
            if factors[true] >= TINY:  # one divided by less is inf
                factors[true] = 1.0 / factors[true]
            else:
                factors[true] = 0.0
                empty = True
        for said in range(num_classes):
            for true in range(num_classes):
                shares[r, said, true] = max((counts[r, said, true] + prior[said, true]) * factors[true], least)
        if empty:
            for true in range(num_classes):
                if factors[true] == 0.0:
                    for said in range(num_classes):
                        shares[r, said, true] = 1.0 / num_classes
