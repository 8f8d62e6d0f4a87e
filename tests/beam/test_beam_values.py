import math
import struct

import numpy as np
import pytest

from crowdzoo import DataError
from crowdzoo.aggregation.engine.block import Block
from crowdzoo.aggregation.engine.confusions import Counts, Params
from crowdzoo.aggregation.engine.right_wrong import Cells
from crowdzoo.aggregation.engine.run import Run

pytest.importorskip("apache_beam", reason="the pipeline extra is not installed")

from apache_beam import coders
from apache_beam.internal import pickler

from crowdzoo.aggregation.classes.robust import Agreement
from crowdzoo.aggregation.engine import coding
from crowdzoo.aggregation.engine.coding import KINDS, decode, encode
from crowdzoo.aggregation.engine.right_wrong import Answers
from crowdzoo.large.beam.coding import Starts, ValueCoder
from crowdzoo.large.forms import BlockPosteriors, RatingSums, Tally

RNG = np.random.default_rng(5)


def values():
    """At least one of each kind, as the methods send it, and one with little or nothing in it."""
    block = Block([7, 3, 3, 5, 7], [0, 4, 2, 0, 1], [1, 0, 0, 2, 1], gold=[-1, 2, -1])
    wide = Block([0, 1], [3, 5], [2, 300], tasks=[0, 1, 2])  # labels in 32 bits, tasks that count up, one of them idle
    nothing = Block([], [], [], gold=[])
    confusions = np.log(RNG.dirichlet([1, 1, 1], size=(4, 3)))
    params = Params(confusions.transpose(0, 2, 1), np.log([0.5, 0.25, 0.25]))  # a view that is not in C order
    counts = Counts(RNG.random((4, 3, 3)), np.array([3.0, 1.0, 0.0]), -4.5, 12)
    tally = Tally(RatingSums(RNG.random((4, 2)), np.array([1.0, -np.inf, np.nan, -0.0])))
    run = Run(np.array([0.5, 0.5]), (-7.25, -6.5), -6.0, True, True)
    return [
        block,
        wide,
        nothing,
        counts,
        params,
        Params(np.zeros((0, 3, 3)), np.zeros(3)),
        run,
        Run(params),
        BlockPosteriors(np.arange(3), RNG.random((3, 2)), np.array([1, 0, 1])),
        BlockPosteriors(np.zeros(0, np.int64), np.zeros((0, 2)), np.zeros(0, np.int64)),
        tally,
        Tally(counts, 3),
        Starts((tally, None)),
        Starts((run, Run(None))),
        Run((2, counts, Agreement.zero(2, 3))),
        Agreement(*RNG.random((3, 4, 3)), np.array([7.0, 2.0])),
        Answers(np.ones(2), np.zeros(2), np.ones(3), -1.5, 4),
        RatingSums(RNG.random((4, 2)), np.zeros(8)),
        Cells(np.log([0.9, 0.5]), np.log([0.1, 0.5]), np.array([0.5, 0.5])),
        Block.of_ratings([0, 2, 2], [1, 0, 1], [0.5, -3.25, 1e9]),
    ]


VALUES = values()
NAMES = [f"{number} {type(value).__name__}" for number, value in enumerate(VALUES)]
every_value = pytest.mark.parametrize("value", VALUES, ids=NAMES)


def assert_same(left, right):
    """Alike to the last bit."""
    assert type(left) is type(right)
    if isinstance(left, np.ndarray):
        assert left.dtype == right.dtype
        assert left.shape == right.shape
        assert left.tobytes() == right.tobytes()
    elif isinstance(left, tuple):
        assert len(left) == len(right)
        for one, other in zip(left, right, strict=True):
            assert_same(one, other)
    elif isinstance(left, float):
        assert struct.pack("d", left) == struct.pack("d", right)
    elif type(left) in KINDS:
        for name in KINDS[type(left)]:
            assert_same(getattr(left, name), getattr(right, name))
    else:
        assert left == right


def arrays_of(value):
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, tuple):
        for part in value:
            yield from arrays_of(part)
    elif type(value) in KINDS:
        for name in KINDS[type(value)]:
            yield from arrays_of(getattr(value, name))


# === There and back ===


def test_there_is_an_example_of_each_kind():
    assert {type(value) for value in VALUES} == set(KINDS)


@every_value
def test_the_coder_that_beam_finds_brings_a_value_back(value):
    coder = coders.registry.get_coder(type(value))
    assert coder == ValueCoder()
    assert_same(coder.decode(coder.encode(value)), value)
    group = coders.TupleCoder([coders.VarIntCoder(), coders.IterableCoder(coder)])
    key, parts = group.decode(group.encode((-3, [value, value])))
    assert key == -3
    assert_same(tuple(parts), (value, value))


@every_value
def test_decoded_arrays_are_their_owners_alone(value):
    data = encode(value)
    kept = bytes(data)
    one, other = decode(data), decode(data)
    for array in arrays_of(one):
        assert array.flags.writeable
        assert array.flags.aligned
        assert array.flags.c_contiguous
        array.reshape(-1).view(np.uint8)[:] = 1
        assert_same(decode(data), value)
        assert_same(other, value)
    assert data == kept


NUMBERS = (True, False, 0, -3, -(2**63), 2**63 - 1, 0.1, -0.0, math.inf, -math.inf, math.nan)
PARTS = ((), (1, (None, ("a", np.arange(3.0), (2.5,)))), np.zeros((2, 0)))


@pytest.mark.parametrize("value", [None, *NUMBERS, "Dawid–Skene ∑", "", (), PARTS], ids=str)
def test_what_values_are_made_of_comes_back(value):
    assert_same(decode(encode(value)), value)


ARRAYS = {
    "of no dimension": np.array(2.5),
    "of one element": np.array([7]),
    "empty": np.zeros(0),
    "empty in the middle": np.zeros((3, 0, 2), np.float32),
    "special floats": np.array([np.nan, np.inf, -np.inf, -0.0, 5e-324]),
    "truth values": np.array([True, False]),
    "counting up": np.arange(3, 1000),
    "counting up from below": np.arange(-2, 2),
    "counting up to the largest": np.array([2**63 - 2, 2**63 - 1]),
    "from end to end": np.array([-(2**63), 2**63 - 1]),
    "over the end": np.array([2**63 - 1, -(2**63)]),
    "counting in twos": np.arange(0, 10, 2),
    "back at the end": np.array([0, 2, 1, 3]),
    "counting up in 32 bits": np.arange(5, dtype=np.int32),
    "counting up in a square": np.arange(4).reshape(2, 2),
    **{f"of {code}": np.array([0, 1, 100]).astype(code) for code in coding.DTYPES},
}


@pytest.mark.parametrize("array", ARRAYS.values(), ids=ARRAYS)
def test_arrays_come_back_to_the_bit(array):
    back = decode(encode(("x", array)))[1]  # behind text, so that they do not start at a multiple of eight
    assert_same(back, array)
    assert back.flags.writeable
    assert back.flags.aligned


# === What is refused ===


class Sub(tuple):
    pass


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ({1, 2}, "set"),
        ([1], "list"),
        ({"a": 1}, "dict"),
        (b"bytes", "bytes"),
        (1j, "complex"),
        (Sub((1, 2)), "Sub"),
        (len, "builtin_function_or_method"),
        ((1, (object(),)), "object"),
        (Run(["not an array"]), "list"),
        (np.array(["text"]), "<U4"),
        (np.array([None]), "object"),
        (np.array([1j]), "complex128"),
        (np.zeros(2, [("a", "<i4")]), r"\[\('a', '<i4'\)\]"),
        (np.array(["2020-01-01"], "datetime64[D]"), "datetime64"),
    ],
)
def test_other_types_are_refused_by_name(value, name):
    with pytest.raises(TypeError, match=f"{name}.* do(es)? not cross workers"):
        encode(value)


def test_a_coder_goes_to_workers():
    coder = pickler.loads(pickler.dumps(ValueCoder()))
    assert (coder, hash(coder)) == (ValueCoder(), hash(ValueCoder()))
    assert ValueCoder() != coders.VarIntCoder()


# === Damage ===


@every_value
def test_bytes_that_end_too_early_are_damaged(value):
    data = encode(value)
    for length in range(len(data)):
        with pytest.raises(DataError, match=r"damaged|not the bytes"):
            decode(data[:length])


def test_bytes_of_something_else_are_refused():
    for data in (b"", b"CZ\x04", b"ZC\x04\x00\4\0\0\0null", b"\x80\x04N.", b"PAR1PAR1"):
        with pytest.raises(DataError, match="not the bytes of a value"):
            decode(data)


@pytest.mark.parametrize("version", [3, 5])
def test_bytes_of_another_version_are_refused_by_number(version):
    with pytest.raises(DataError, match=f"version {version}; .* reads version 4"):
        decode(bytes([*b"CZ", version, 0]) + b"\4\0\0\0null")


def made(tree, rest=b""):
    """Bytes with this tree, and the rest at a multiple of eight."""
    head = b"CZ\x04\x00" + struct.pack("<I", len(tree)) + tree
    return head + bytes(-len(head) % 8) + rest


@pytest.mark.parametrize("number", [-1, -(2**63), 2**31, 2**40, 2**62, 2**63 - 1, 2**100])
@pytest.mark.parametrize(
    "tree", ['{"<f8":[%d,3]}', '{"<f8":[2,%d]}', '{"range":[0,%d,9]}', '{"range":[0,8,%d]}', '{"range":[%d,8,9]}']
)
def test_a_damaged_length_is_no_matter_of_memory(tree, number):
    with pytest.raises(DataError, match="damaged"):
        decode(made((tree % number).encode(), bytes(48)))


@pytest.mark.parametrize(
    "data",
    [
        made(b'{"Unheard":[1]}'),
        made(b'{"<c8":[1]}', bytes(8)),
        made(b'{"<f8":' + str([1] * 255).encode() + b"}", bytes(8)),  # more dimensions than NumPy has
        made(b'{"<f8":[1.0]}', bytes(8)),
        made(b'{"<f8":1}', bytes(8)),
        made(b'{"Cells":[1]}'),
        made(b'{"Cells":5}'),
        made(b"{}"),
        made(b"x"),
        made(b'"\xff\xfe"'),
        made(b'{"|b1":[2]}', b"\1\2"),  # a truth value of two
        made(b"[" * 100_000),  # deeper than Python goes
    ],
    ids=[
        "kind", "type of array", "dimensions", "size", "shape", "too few fields", "no fields", "no name", "no tree",
        "text", "truth", "depth",
    ],
)  # fmt: skip
def test_nonsense_is_damaged(data):
    with pytest.raises(DataError, match="damaged"):
        decode(data)


@every_value
def test_bytes_with_errors_decode_to_something_or_are_refused(value):
    """Numbers may change unseen, as Beam and file systems have checksums; but nothing else is raised."""
    rng = np.random.default_rng(len(encode(value)))
    data = np.frombuffer(encode(value), np.uint8)
    refused = 0
    for flips in (1, 1, 1, 2, 5) * 60:
        bad = data.copy()
        bad[rng.integers(len(bad), size=flips)] ^= rng.integers(1, 256, size=flips).astype(np.uint8)
        try:
            decode(bad.tobytes())
        except DataError:
            refused += 1
    assert refused > 10
