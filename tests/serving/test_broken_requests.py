"""Requests that cannot be answered: each gets its status and a reason, and the server stays up."""

# ruff: noqa: E501

import pytest
from running_server import PREDICT, rest

GOOD = [0.1, 0.2, 0.3, 0.4]


def rows(*instances, **more):
    return {"instances": list(instances), **more}


# (what, path, body of POST or None for GET, status, error)
BROKEN = [
    ("empty body", PREDICT, b"", 400, "the body is empty"),
    ("malformed JSON", PREDICT, b'{"instances": [[1, 2, 3,', 400, "the body is not JSON: Expecting value at offset 24"),
    ("JSON that is no object", PREDICT, b"[[1, 2, 3, 4]]", 400, 'the body must be a JSON object such as {"instances": [...]}, not a list'),
    ("not UTF-8", PREDICT, b'{"instances": ["\xff"]}', 400, "the body is not UTF-8: byte 0xff at offset 16"),
    ("lists nested 100,000 deep", PREDICT, b'{"instances": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", 400, "the body is not usable: lists are nested too deep"),
    ("neither instances nor inputs", PREDICT, b"{}", 400, "the body must have one of 'instances' and 'inputs', it has neither"),
    ("both of them", PREDICT, b'{"instances": [], "inputs": []}', 400, "the body must have one of 'instances' and 'inputs', it has both"),
    ("no instances", PREDICT, rows(), 400, "'instances' is empty; at least one instance is needed"),
    ("no rows in a column", PREDICT, b'{"inputs": {"instances": []}}', 400, "input 'instances': shape [0] does not fit [-1, 4] (rank 1 where 2 is due); -1 is any size"),
    ("instances that is no list", PREDICT, b'{"instances": 3}', 400, "'instances' must be a list, not a number; a single instance is a list of one"),
    ("wrong shape", PREDICT, rows([1, 2, 3]), 400, "input 'instances': shape [1, 3] does not fit [-1, 4]; -1 is any size"),
    ("wrong rank", PREDICT, rows(1, 2, 3, 4), 400, "input 'instances': shape [4] does not fit [-1, 4] (rank 1 where 2 is due); -1 is any size"),
    ("rows of different lengths", PREDICT, rows(GOOD, [1, 2]), 400, "input 'instances': [1] has 2 values, but [0] has 4 values"),
    ("text for a number", PREDICT, rows(GOOD, [1, 2, "three", 4]), 400, "input 'instances': \"three\" at [1, 2] is a string, not a number"),
    ("true for a number", PREDICT, rows([1, 2, True, 4]), 400, "input 'instances': true at [0, 2] is a boolean, not a number"),
    ("null for a number", PREDICT, rows([1, None, 3, 4]), 400, "input 'instances': null at [0, 1] is null, not a number"),
    ("NaN", PREDICT, b'{"instances": [[1, 2, NaN, 4]]}', 400, "input 'instances': NaN at [0, 2] is not a finite number"),
    ("infinity", PREDICT, b'{"instances": [[1, 2, 3, -Infinity]]}', 400, "input 'instances': -Infinity at [0, 3] is not a finite number"),
    ("1e999", PREDICT, b'{"instances": [[1e999, 2, 3, 4]]}', 400, "input 'instances': Infinity at [0, 0] is not a finite number"),
    ("too large for float32", PREDICT, b'{"instances": [[1, 1e39, 3, 4]]}', 400, "input 'instances': 1e+39 at [0, 1] is too large for float32"),
    ("unknown input", PREDICT, rows({"instance": GOOD}), 400, "instances[0]: unknown input 'instance'. Signature 'serving_default' takes 'instances'. Did you mean 'instances'?"),
    ("missing input", PREDICT, rows({"instances": GOOD}, signature_name="annotators"), 400, "instances[0]: missing input 'annotator'. Signature 'annotators' takes 'annotator', 'instances'."),
    ("plain list for two inputs", PREDICT, rows(GOOD, signature_name="annotators"), 400, "'instances' is a plain list, but signature 'annotators' takes 'annotator', 'instances': name them in an object"),
    ("plain row among named rows", PREDICT, rows({"instances": GOOD}, GOOD), 400, "instances[1]: a list, but instances[0] is an object"),
    ("number for an annotator", PREDICT, rows({"instances": GOOD, "annotator": 7}, signature_name="annotators"), 400, "input 'annotator': 7 at [0] is a number, not a string"),
    ("unknown annotator", PREDICT, rows({"instances": GOOD, "annotator": "zoe"}, signature_name="annotators"), 400, "annotator: not among the 3 annotators of this model: zoe"),
    ("two instances, one annotator", PREDICT, {"signature_name": "annotators", "inputs": {"instances": [GOOD, GOOD], "annotator": ["ann"]}}, 400, "input 'instances': has 2 rows, but input 'annotator' has 1"),
    ("half a character", PREDICT, b'{"signature_name": "annotators", "inputs": {"instances": [[1, 2, 3, 4]], "annotator": ["\\ud800"]}}', 400, "input 'annotator': the text at [0] is not valid Unicode"),
    ("unknown signature", PREDICT, rows(GOOD, signature_name="annotator"), 400, "signature 'annotator' is not in the model; it has 'annotators', 'serving_default'"),
    ("signature_name that is no text", PREDICT, rows(GOOD, signature_name=1), 400, "signature_name must be a string, not a number"),
    ("oversized body", PREDICT, rows(*[GOOD] * 20_000), 413, "the body has more than 250,000 bytes, the most this server takes; send fewer instances"),
    ("unknown model", "/v1/models/cats:predict", rows(GOOD), 404, "model 'cats' is not served here; the model's name is 'pets'"),
    ("unknown version", "/v1/models/pets/versions/99:predict", rows(GOOD), 404, "model 'pets' does not serve version 99, only 1, 2"),
    ("version that is no number", "/v1/models/pets/versions/new", None, 400, "version 'new' is not a number below 2^63"),
    ("unknown label", "/v1/models/pets/labels/canary:predict", rows(GOOD), 404, "model 'pets' has no version label 'canary'; labels are stable"),
    ("another path", "/", None, 404, "there is nothing at /; ask for /v1/models/pets, /v1/models/pets/metadata or /v1/models/pets:predict"),
    ("GET to :predict", PREDICT, None, 405, "GET /v1/models/pets:predict: use POST"),
    ("POST to the status", "/v1/models/pets", rows(GOOD), 405, "POST /v1/models/pets: use GET"),
    (":classify", "/v1/models/pets:classify", b'{"examples": [{}]}', 501, "this server does not answer Classify, Regress and MultiInference; use :predict or Predict"),
    (":explain", "/v1/models/pets:explain", rows(GOOD), 404, "unknown verb 'explain'; use :predict"),
]  # fmt: skip


@pytest.mark.parametrize(("what", "path", "body", "status", "error"), BROKEN, ids=[row[0] for row in BROKEN])
def test_a_broken_request_gets_its_status_and_a_reason(server, what, path, body, status, error):
    answer = rest(server, path, body)
    assert answer.json() == {"error": error}
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/json"
    assert rest(server, PREDICT, {"instances": [GOOD]}).status_code == 200


def test_a_body_in_an_encoding_is_refused(server):
    answer = rest(server, PREDICT, b"\x1f", headers={"content-encoding": "br"})
    assert answer.status_code == 400
    assert answer.json()["error"] == "the body is encoded as 'br'; send it as plain JSON"
