"""Fuzzing of the REST API: any bytes on a connection, and any JSON as the body of a request."""

import functools
import http.client
import json
import re
import socket

from fuzz_annotations import damaged
from hypothesis import strategies as st
from served_model import GOOD, PREDICT, REQUEST_BYTES, little_memory, once_it_runs, server, still_answers
from target import Target

# 503 is a full queue
FORESEEN = {200, 400, 404, 405, 408, 413, 501, 503}

# === Bytes ===

_PATHS = [
    PREDICT, "/", "/v1/models/pets", "/v1/models/pets/metadata", "/v1/models/pets/versions/1:predict",
    "/v1/models/pets/versions/99999999999999999999", "/v1/models/pets/versions/%d9%a3", "/v1/models/pets/labels/stable",
    "/v1/models/%ff%00", "/v1/models/pets:classify", "/v1/models/" + "n" * 16_000, "//", "*", "/%",
    "/v1/models/pets:%0a", "/monitoring/prometheus/metrics", "/healthz", "/readyz",
]  # fmt: skip
_HEADERS = [
    "Host: x", "Content-Length: 46", "Content-Length: 5", "Content-Length: -1", "Content-Length: 99999999999999999999",
    "Transfer-Encoding: chunked", "Transfer-Encoding: gzip", "Content-Encoding: gzip", "Expect: 100-continue",
    "Connection: close", "Connection: upgrade", "Upgrade: websocket", "Upgrade: h2c", "X: " + "y" * 20_000, "X", ": x",
]  # fmt: skip
_BODY = json.dumps(GOOD).encode()
_requests = st.builds(
    lambda method, path, http_version, headers, body: (
        f"{method} {path} {http_version}\r\n".encode()
        + "".join(f"{one}\r\n" for one in headers).encode()
        + b"\r\n"
        + body
    ),
    st.sampled_from(["GET", "POST", "HEAD", "OPTIONS", "TRACE", "get", "P" * 300]),
    st.sampled_from(_PATHS),
    st.sampled_from(["HTTP/1.1", "HTTP/1.0", "HTTP/2.0", "HTTP/9.9", "FTP", ""]),
    st.lists(st.sampled_from(_HEADERS), max_size=5),
    st.sampled_from([b"", _BODY, b"5\r\nhello\r\n0\r\n\r\n", b"zz\r\n", b"ffffffffffffffff\r\n", b"0\r\n\r\n"]),
)


# requests one after another, with some bytes changed
_bytes = damaged(st.lists(_requests | st.binary(max_size=40), min_size=1, max_size=3).map(b"".join))


def _send_bytes(sent):
    with socket.create_connection(("127.0.0.1", server().rest_port), timeout=10) as connection:
        answer = b""
        try:
            connection.sendall(sent)
            connection.settimeout(0.05)  # a request that is not complete has no answer yet
            while piece := connection.recv(1 << 16):
                answer += piece
        except (TimeoutError, ConnectionError):
            pass
    for status in re.findall(rb"^HTTP/1\.1 (\d+)", answer, re.MULTILINE):
        if int(status) not in FORESEEN | {100}:
            raise AssertionError(answer[:2000])
    still_answers()


# === Lengths ===

_lengths = st.tuples(
    st.sampled_from([0, 1, REQUEST_BYTES - 1, REQUEST_BYTES, REQUEST_BYTES + 1]) | st.integers(0, 2**62),
    st.sampled_from(["", "Expect: 100-continue\r\n"]),
    st.sampled_from([PREDICT, PREDICT.replace("predict", "classify"), "/", "/v1/models/x:predict"]),
    st.sampled_from([b"", b"{", _BODY]),
)


def _send_length(input_):
    """A body that never comes whole; one that is announced as too long is refused at once."""
    length, more, path, body = input_
    with socket.create_connection(("127.0.0.1", server().rest_port), timeout=10) as connection:
        connection.sendall(f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n{more}\r\n".encode() + body)
        answer = b""
        while length > REQUEST_BYTES and (piece := connection.recv(1 << 16)):
            answer += piece
    if length > REQUEST_BYTES and not answer.startswith(b"HTTP/1.1 413 "):
        raise AssertionError(answer[:2000])


# === JSON ===

_leaves = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5),
    st.sampled_from([
        "ann", "bob", 1.0, 1e38, -1e38, {"b64": "YW5u"}, {"b64": "/w=="}, {"b64": "?"}, 10**400, "\ud800", "x" * 20_000,
        [], {},
    ]),
)  # fmt: skip
_vectors = st.lists(st.floats(width=32) | st.sampled_from([3e38, -3e38, 1e-45]), min_size=3, max_size=5)
_rows = st.one_of(
    _vectors, st.fixed_dictionaries({"instances": _vectors}, optional={"annotator": _leaves, "other": _leaves}), _leaves
)
_values = st.recursive(_leaves | _rows, lambda inner: st.lists(inner, max_size=4), max_leaves=12)
_names = st.sampled_from(["instances", "annotator", "x", "\ud800"])
_requests_json = st.fixed_dictionaries(
    {},
    optional={
        "instances": st.lists(_rows, max_size=3) | _values,
        "inputs": _values | st.dictionaries(_names, _values),
        "signature_name": st.sampled_from(["", "serving_default", "annotators"]) | _leaves,
    },
)


@st.composite
def _bodies(draw):
    body = draw(damaged(_requests_json.map(lambda request: json.dumps(request).encode()) | st.binary(max_size=40)))
    repeated = draw(st.sampled_from([0, 0, 0, 0, 1000, 50_000]))
    if repeated:  # long, or nested deep
        piece = draw(st.sampled_from([b"[],", b"[", b'{"a":', b"1,", b'"",', b"-", b"[[0,0,0,0],", b"9"]))
        body = b'{"instances": [' + piece * repeated + draw(st.sampled_from([b"", b"1]}", b"[]]}", body]))
    return body


@functools.cache
def _connection():
    return http.client.HTTPConnection("127.0.0.1", server().rest_port, timeout=10)


def _send_json(body):
    with little_memory():
        _post(PREDICT, body, ["predictions"], ["outputs"])


def _post(path, body, *keys):
    connection = _connection()
    try:
        connection.request("POST", path, body)
        answer = connection.getresponse()
        text = answer.read()
    except ConnectionError:  # the server closed an idle connection
        connection.close()
        return
    answered = json.loads(text)
    if answer.status not in FORESEEN or list(answered) not in (["error"], *keys):
        raise AssertionError((answer.status, text[:2000]))


# === Label Studio ===

_CONFIG = """<View><Text name="t" value="$x"/><Choices name="c" toName="t"><Choice value="a"/><Choice value="b"/>
<Choice value="c"/></Choices></View>"""
_configs = st.sampled_from([_CONFIG] * 20 + ["", "<View/>", "<View>" * 20_000, "<!DOCTYPE a><View/>", None, "\ud800"])
_data = st.fixed_dictionaries({"x": _vectors | _values}, optional={"instances": _rows, "\ud800": _leaves})
_tasks = st.lists(st.fixed_dictionaries({"data": _data}, optional={"id": _leaves}), min_size=1, max_size=4)
_calls = st.tuples(
    st.sampled_from(["predict", "predict", "predict", "setup", "webhook"]),
    st.fixed_dictionaries({"label_config": _configs, "schema": _configs, "tasks": _tasks})
    | st.dictionaries(st.sampled_from(["label_config", "schema", "tasks"]), _configs | _values),
)


def _call(input_):
    name, body = input_
    with little_memory():
        _post(f"/v1/models/pets/{name}", json.dumps(body).encode(), ["results"], ["model_version"], [])


TARGETS = {
    "rest-bytes": Target(once_it_runs(_bytes), _send_bytes, examples=8),
    "rest-lengths": Target(once_it_runs(_lengths), _send_length, examples=20),
    "rest-json": Target(once_it_runs(_bodies()), _send_json, examples=25),
    "rest-label-studio": Target(once_it_runs(_calls), _call, examples=25),
}
