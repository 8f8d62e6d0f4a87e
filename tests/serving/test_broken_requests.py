"""Requests that cannot be answered: each gets its status and a reason, and the server stays up."""

# ruff: noqa: E501

import json

import httpx
import pytest

PREDICT = "/v1/models/pets:predict"
GOOD = [0.1, 0.2, 0.3, 0.4]


def rows(*instances, **more):
    return json.dumps({"instances": list(instances), **more})


# (what, method, path, body, status, error)
BROKEN = [
    ("empty body", "POST", PREDICT, b"", 400, "the body is empty"),
    ("malformed JSON", "POST", PREDICT, b'{"instances": [[1, 2, 3,', 400, "the body is not JSON: Expecting value at offset 24"),
    ("JSON that is no object", "POST", PREDICT, b"[[1, 2, 3, 4]]", 400, 'the body must be a JSON object such as {"instances": [...]}, not a list'),
    ("not UTF-8", "POST", PREDICT, b'{"instances": ["\xff"]}', 400, "the body is not UTF-8: byte 0xff at offset 16"),
    ("lists nested 100,000 deep", "POST", PREDICT, b'{"instances": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", 400, "the body is not usable: lists are nested too deep"),
    ("neither instances nor inputs", "POST", PREDICT, b"{}", 400, "the body must have one of 'instances' and 'inputs', it has neither"),
    ("both of them", "POST", PREDICT, b'{"instances": [], "inputs": []}', 400, "the body must have one of 'instances' and 'inputs', it has both"),
    ("no instances", "POST", PREDICT, rows(), 400, "'instances' is empty; at least one instance is needed"),
    ("no rows in a column", "POST", PREDICT, b'{"inputs": {"instances": []}}', 400, "input 'instances': shape [0] does not fit [-1, 4] (rank 1 where 2 is due); -1 is any size"),
    ("instances that is no list", "POST", PREDICT, b'{"instances": 3}', 400, "'instances' must be a list, not a number; a single instance is a list of one"),
    ("wrong shape", "POST", PREDICT, rows([1, 2, 3]), 400, "input 'instances': shape [1, 3] does not fit [-1, 4]; -1 is any size"),
    ("wrong rank", "POST", PREDICT, rows(1, 2, 3, 4), 400, "input 'instances': shape [4] does not fit [-1, 4] (rank 1 where 2 is due); -1 is any size"),
    ("rows of different lengths", "POST", PREDICT, rows(GOOD, [1, 2]), 400, "input 'instances': [1] has 2 values, but [0] has 4 values"),
    ("text for a number", "POST", PREDICT, rows(GOOD, [1, 2, "three", 4]), 400, "input 'instances': \"three\" at [1, 2] is a string, not a number"),
    ("true for a number", "POST", PREDICT, rows([1, 2, True, 4]), 400, "input 'instances': true at [0, 2] is a boolean, not a number"),
    ("null for a number", "POST", PREDICT, rows([1, None, 3, 4]), 400, "input 'instances': null at [0, 1] is null, not a number"),
    ("NaN", "POST", PREDICT, b'{"instances": [[1, 2, NaN, 4]]}', 400, "input 'instances': NaN at [0, 2] is not a finite number"),
    ("infinity", "POST", PREDICT, b'{"instances": [[1, 2, 3, -Infinity]]}', 400, "input 'instances': -Infinity at [0, 3] is not a finite number"),
    ("1e999", "POST", PREDICT, b'{"instances": [[1e999, 2, 3, 4]]}', 400, "input 'instances': Infinity at [0, 0] is not a finite number"),
    ("too large for float32", "POST", PREDICT, b'{"instances": [[1, 1e39, 3, 4]]}', 400, "input 'instances': 1e+39 at [0, 1] is too large for float32"),
    ("unknown input", "POST", PREDICT, rows({"instance": GOOD}), 400, "instances[0]: unknown input 'instance'. Signature 'serving_default' takes 'instances'. Did you mean 'instances'?"),
    ("missing input", "POST", PREDICT, rows({"instances": GOOD}, signature_name="annotators"), 400, "instances[0]: missing input 'annotator'. Signature 'annotators' takes 'annotator', 'instances'."),
    ("plain list for two inputs", "POST", PREDICT, rows(GOOD, signature_name="annotators"), 400, "'instances' is a plain list, but signature 'annotators' takes 'annotator', 'instances': name them in an object"),
    ("plain row among named rows", "POST", PREDICT, rows({"instances": GOOD}, GOOD), 400, "instances[1]: a list, but instances[0] is an object"),
    ("number for an annotator", "POST", PREDICT, rows({"instances": GOOD, "annotator": 7}, signature_name="annotators"), 400, "input 'annotator': 7 at [0] is a number, not a string"),
    ("unknown annotator", "POST", PREDICT, rows({"instances": GOOD, "annotator": "zoe"}, signature_name="annotators"), 400, "annotator: not among the 3 annotators of this model: zoe"),
    ("two instances, one annotator", "POST", PREDICT, json.dumps({"signature_name": "annotators", "inputs": {"instances": [GOOD, GOOD], "annotator": ["ann"]}}), 400, "input 'instances': has 2 rows, but input 'annotator' has 1"),
    ("half a character", "POST", PREDICT, b'{"signature_name": "annotators", "inputs": {"instances": [[1, 2, 3, 4]], "annotator": ["\\ud800"]}}', 400, "input 'annotator': the text at [0] is not valid Unicode"),
    ("unknown signature", "POST", PREDICT, rows(GOOD, signature_name="annotator"), 400, "signature 'annotator' is not in the model; it has 'annotators', 'serving_default'"),
    ("signature_name that is no text", "POST", PREDICT, rows(GOOD, signature_name=1), 400, "signature_name must be a string, not a number"),
    ("oversized body", "POST", PREDICT, rows(*[GOOD] * 20_000), 413, "the body has more than 250,000 bytes, the most this server takes; send fewer instances"),
    ("unknown model", "POST", "/v1/models/cats:predict", rows(GOOD), 404, "model 'cats' is not served here; the model's name is 'pets'"),
    ("unknown version", "POST", "/v1/models/pets/versions/99:predict", rows(GOOD), 404, "model 'pets' does not serve version 99, only 1, 2"),
    ("version that is no number", "GET", "/v1/models/pets/versions/new", b"", 400, "version 'new' is not a number below 2^63"),
    ("unknown label", "POST", "/v1/models/pets/labels/canary:predict", rows(GOOD), 404, "model 'pets' has no version label 'canary'; labels are stable"),
    ("another path", "GET", "/", b"", 404, "there is nothing at /; ask for /v1/models/pets, /v1/models/pets/metadata or /v1/models/pets:predict"),
    ("GET to :predict", "GET", PREDICT, b"", 405, "GET /v1/models/pets:predict: use POST"),
    ("POST to the status", "POST", "/v1/models/pets", rows(GOOD), 405, "POST /v1/models/pets: use GET"),
    (":classify", "POST", "/v1/models/pets:classify", b'{"examples": [{}]}', 501, "this server does not answer Classify, Regress and MultiInference; use :predict or Predict"),
    (":explain", "POST", "/v1/models/pets:explain", rows(GOOD), 404, "unknown verb 'explain'; use :predict"),
]  # fmt: skip


@pytest.mark.parametrize(("what", "method", "path", "body", "status", "error"), BROKEN, ids=[row[0] for row in BROKEN])
def test_a_broken_request_gets_its_status_and_a_reason(server, what, method, path, body, status, error):
    answer = httpx.request(method, server.url + path, content=body, trust_env=False)
    assert answer.json() == {"error": error}
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/json"
    good = httpx.post(server.url + PREDICT, content=rows(GOOD), trust_env=False)
    assert good.status_code == 200


def test_a_body_in_an_encoding_is_refused(server):
    answer = httpx.post(server.url + PREDICT, content=b"\x1f", headers={"content-encoding": "br"}, trust_env=False)
    assert answer.status_code == 400
    assert answer.json()["error"] == "the body is encoded as 'br'; send it as plain JSON"
