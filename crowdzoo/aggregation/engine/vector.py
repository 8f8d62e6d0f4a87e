"""Vector instructions of the inner loops, written for LLVM through llvmlite, whose interface has changed before.

Import them from `instructions`, which has plain loops in case these do not compile.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.errors import RequireLiteralValue
from numba.extending import intrinsic

from crowdzoo.aggregation.engine.loops import compiled

_intrinsic: Any = intrinsic  # its types say that the typing context is an argument of the call


@_intrinsic
def add_run(typingctx: Any, target: Any, i: Any, source: Any, j: Any, length: Any) -> Any:
    """target[i : i + length] += source[j : j + length], float64; `length` is known when compiled: no loop."""
    width = _literal(length)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        places = _places(context, builder, signature.args[0], args[0], args[1], width)
        sources = _places(context, builder, signature.args[2], args[2], args[3], width)
        sums = [
            builder.fadd(*(builder.load(place, align=8) for place in pair))
            for pair in zip(places, sources, strict=True)
        ]
        for place, value in zip(places, sums, strict=True):
            builder.store(value, place, align=8)
        return context.get_dummy_value()

    return types.void(target, i, source, j, length), codegen


@_intrinsic
def add_rows(  # type: ignore[no-untyped-def]  # for Numba
    typingctx, target, i, table, annotators, labels, begin, end, far, ahead, length
):
    """See `instructions`; the sums stay in registers from `begin` to `end`."""
    width = _literal(length)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kinds, code = signature.args, args[5].type

        def row(j: Any) -> Any:
            arrays = (context.make_array(kinds[place])(context, builder, args[place]) for place in (3, 4))
            annotator, label = (builder.zext(builder.load(builder.gep(each.data, [j])), code) for each in arrays)
            size = ir.Constant(code, width)
            return builder.mul(builder.add(builder.mul(annotator, size), label), size)

        places = _places(context, builder, kinds[0], args[0], args[1], width)
        sums = [cgutils.alloca_once_value(builder, builder.load(place, align=8)) for place in places]
        with cgutils.for_range_slice(builder, args[5], args[6], ir.Constant(code, 1), code) as (j, _):
            with builder.if_then(builder.icmp_unsigned("<", j, args[7])):
                first = row(builder.add(j, args[8]))
                for offset in (0, min(width, 8) - 1):
                    _prefetch(context, builder, kinds[2], args[2], builder.add(first, ir.Constant(code, offset)))
            for total, place in zip(sums, _places(context, builder, kinds[2], args[2], row(j), width), strict=True):
                builder.store(builder.fadd(builder.load(total), builder.load(place, align=8)), total)
        for total, place in zip(sums, places, strict=True):
            builder.store(builder.load(total), place, align=8)
        return context.get_dummy_value()

    return types.void(target, i, table, annotators, labels, begin, end, far, ahead, length), codegen


INDEX = ir.IntType(32)


@_intrinsic
def prefetch(typingctx: Any, source: Any, i: Any) -> Any:
    """Prefetches the cache line of source[i], which need not exist."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        _prefetch(context, builder, signature.args[0], *args)
        return context.get_dummy_value()

    return types.void(source, i), codegen


PREFETCH = "llvm.prefetch.p0i8"


def _prefetch(context: Any, builder: Any, kind: Any, array: Any, i: Any) -> None:
    place = builder.gep(context.make_array(kind)(context, builder, array).data, [i])
    byte = ir.IntType(8).as_pointer()
    signature = ir.FunctionType(ir.VoidType(), [byte, INDEX, INDEX, INDEX])
    function = builder.module.globals.get(PREFETCH) or ir.Function(builder.module, signature, PREFETCH)
    builder.call(function, [builder.bitcast(place, byte), *(ir.Constant(INDEX, value) for value in (0, 3, 1))])


def _literal(length: Any) -> int:
    if not isinstance(length, types.IntegerLiteral):
        raise RequireLiteralValue("length")
    return length.literal_value


def _places(context: Any, builder: Any, kind: Any, array: Any, start: Any, length: int) -> list[Any]:
    """Pointers to the vectors of a run of numbers."""
    first = builder.gep(context.make_array(kind)(context, builder, array).data, [start])
    places = []
    for offset, lanes in _lanes(length):
        number = ir.VectorType(ir.DoubleType(), lanes) if lanes > 1 else ir.DoubleType()
        places.append(builder.bitcast(builder.gep(first, [ir.Constant(start.type, offset)]), number.as_pointer()))
    return places


def _lanes(width: int) -> list[tuple[int, int]]:
    """Offsets and sizes of the vectors of a run of numbers."""
    parts, offset = [], 0
    for lanes in (4, 2, 1):
        while width - offset >= lanes:
            parts.append((offset, lanes))
            offset += lanes
    return parts


@_intrinsic
def bits(typingctx: Any, number: Any) -> Any:
    """Reinterprets a float64 as int64, or an int64 as float64."""
    result = types.int64 if number == types.float64 else types.float64

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], context.get_value_type(result))

    return result(number), codegen


@compiled()
def exp(x):  # type: ignore[no-untyped-def]  # for Numba
    """Exponential for x <= 0 to 4e-16 relative, without a call, so that its loops vectorise; 0 below -708.

    x = n log 2 + r; the added constant rounds to an integer in the low bits; Taylor series of r to degree 13.
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
    value = bits((bits(shifted) << 52) + bits(low + r4 * r4 * high))
    return value if x > -708.0 else 0.0


@compiled()
def trial(numbers):  # type: ignore[no-untyped-def]  # for Numba
    """Three times the sum of three float64, plus exp(0), by all the instructions."""
    i, codes, sums = np.uint64(0), np.zeros(1, np.int32), numbers.copy()
    prefetch(numbers, i)
    add_run(sums, i, numbers, i, 3)
    add_rows(sums, i, numbers, codes, codes, i, np.uint64(1), i, i, 3)
    return sums[0] + sums[1] + sums[2] + exp(0.0)
