"""Bodies of requests, read without a server."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crowdzoo.serving import json_tensors
from crowdzoo.serving.json_tensors import read_request, to_json
from crowdzoo.serving.request_error import RequestError
from crowdzoo.serving.signature import InputSpec, Signature

# === Numbers that are read without Python's objects ===

SIGNATURES = {
    "": {"x": InputSpec("float32", (None, 2))},
    "pixels": {"x": InputSpec("float32", (None, 2, 1))},
    "wide": {"x": InputSpec("float64", (None,))},
    "small": {"x": InputSpec("int8", (None,))},
    "large": {"x": InputSpec("uint64", (None, 1))},
    "flag": {"x": InputSpec("bool", (None,))},
    "half": {"x": InputSpec("float16", (None,))},
    "any": {"x": InputSpec("float32", None)},
    "text": {"x": InputSpec("string", (None,))},
    "two": {"name": InputSpec("string", (None,)), "x": InputSpec("float32", (None, 2))},
}


def signature_of(name):
    if name not in SIGNATURES:
        raise RequestError(f"no signature {name}")
    signature = Signature.__new__(Signature)  # without a graph
    signature.name, signature.inputs = name, SIGNATURES[name]
    return signature


def outcome(body):
    try:
        signature, arrays, rows = read_request(body, signature_of)
    except RequestError as error:
        return error.reason
    return signature.name, rows, {name: (array.dtype, array.shape, array.tolist()) for name, array in arrays.items()}


numbers = st.one_of(
    st.integers(-300, 300),
    st.floats(),
    st.sampled_from(
        [True, None, "1", "[", 2**53 + 1, -(2**63), 2**63, 2**64, 10**400, 1e39, -0.0, [1], {"b64": "YQ=="}]
    ),
)
columns = st.one_of(
    st.lists(numbers, max_size=3),
    st.lists(st.lists(numbers, min_size=1, max_size=2), max_size=3),
    st.lists(st.lists(st.lists(numbers, min_size=1, max_size=1), min_size=2, max_size=2), max_size=2),
    st.lists(st.sampled_from(["a", "é", "[", "\ud800"]), max_size=3),
    numbers,
)
requests = st.fixed_dictionaries(
    {"signature_name": st.sampled_from([*SIGNATURES, "none", 3])},
    optional={
        "instances": st.one_of(columns, st.lists(st.fixed_dictionaries({"x": columns}), max_size=2)),
        "inputs": st.one_of(columns, st.dictionaries(st.sampled_from(["x", "name", "y"]), columns)),
    },
)


@settings(max_examples=150, deadline=None)
@given(request=requests)
def test_both_ways_to_read_a_body_give_the_same(request):
    """A body with a key of its own is not read in the quick way."""
    quick, slow = (json.dumps({**request, **more}).encode() for more in ({}, {"own": 1}))
    assert repr(outcome(quick)) == repr(outcome(slow))  # as text, since NaN is not equal to itself


@pytest.mark.parametrize(
    ("body", "shape"),
    [
        (b'{"instances": [[1, 2.5], [3, 4]]}', (2, 2)),
        (b'{"inputs": {"x": [[1, 2]]}}', (1, 2)),
        (b'{"instances": [[[1], [2]]], "signature_name": "pixels"}', (1, 2, 1)),
        (b'{"inputs": [3, 1e300], "signature_name": "wide"}', (2,)),
        (b'{"inputs": [127, -128], "signature_name": "small"}', (2,)),
        # what is refused or unclear is read in the other way
        (b'\xef\xbb\xbf{"instances": [[1, 2]]}', None),
        (b'{"instances": [[1, 2]], "instances": [[3, 4]]}', None),
        (b'{"instances": [[[1], 2]]}', None),
        (b'{"instances": [[1, 2], [3, 4, 5, 6]]}', None),
        (b'{"instances": [[1, 2], 3]}', None),
        (b'{"instances": [[1, 1e39]]}', None),
        (b'{"instances": [[1, NaN]]}', None),
        (b'{"inputs": [128], "signature_name": "small"}', None),
        (b'{"inputs": [[[1]], [2]], "signature_name": "pixels"}', None),
    ],
)
def test_only_plain_numbers_are_read_the_quick_way(body, shape):
    found = json_tensors._read_numbers(body, signature_of)
    assert (found is None) == (shape is None)
    if found:
        signature, arrays, _ = found
        assert arrays["x"].shape == shape
        assert arrays["x"].dtype == signature.inputs["x"].dtype


# === Answers ===


def test_an_answer_has_the_shortest_digits_that_read_back_as_the_same_float32():
    values = np.random.default_rng(0).integers(0, 2**32, 1000, dtype=np.uint32).view(np.float32)
    values = values[np.isfinite(values)]
    read = json.loads(to_json({"y": values[:, None]}, rows=True))["predictions"]
    assert [row for (row,) in read] == [float(str(value)) for value in values]
