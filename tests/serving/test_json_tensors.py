"""Bodies of requests, read without a server."""

import pytest

from crowdzoo.serving.json_tensors import parse
from crowdzoo.serving.request_error import RequestError


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("{}", "an object"),
        ("[]", "a list"),
        ("true", "a boolean"),
        ("null", "null"),
        ("3", "a number"),
        ("0.5", "a number"),
    ],
)
def test_what_stands_in_a_texts_place_is_named(value, words):
    with pytest.raises(RequestError) as caught:
        parse(b'{"inputs": 1, "signature_name": ' + value.encode() + b"}")
    assert str(caught.value) == f"signature_name must be a string, not {words}"


def test_a_body_that_is_a_text_is_named():
    with pytest.raises(RequestError, match=r"not a string$"):
        parse(b'"instances"')
