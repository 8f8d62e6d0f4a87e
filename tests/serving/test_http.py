"""Bytes on a connection of the REST port: what is HTTP/1.1, what is not, and in what order it is answered."""

import json
import re
import socket

import pytest
from running_server import PREDICT

BODY = json.dumps({"instances": [[0.1, 0.2, 0.3, 0.4]]}).encode()
NOT_HTTP = {"error": "the request is not HTTP/1.1, or too many are sent ahead"}
LONG_HEAD = {"error": "the head of the request is longer than 64 KiB"}


def request(*headers, line=f"POST {PREDICT} HTTP/1.1", body=BODY, host="Host: x"):
    head = [line, *([host] if host else []), f"Content-Length: {len(body)}", *headers]
    return "\r\n".join([*head, "", ""]).encode() + body


def answers(server, sent, count):
    """Statuses and contents of so many answers, and whether the connection is closed after them."""
    with socket.create_connection(("127.0.0.1", server.rest_port), timeout=20) as connection:
        connection.sendall(sent)
        received, found = b"", []
        while len(found) < count:
            head, end, rest = received.partition(b"\r\n\r\n")
            length = re.search(rb"content-length: (\d+)", head) if end else None
            if length and len(rest) >= int(length[1]):
                found.append((int(head.split()[1]), json.loads(rest[: int(length[1])])))
                received = rest[int(length[1]) :]
                continue
            piece = connection.recv(1 << 16)
            assert piece, (found, received)
            received += piece
        connection.settimeout(0.2)
        try:
            closed = connection.recv(1) == b""
        except TimeoutError:
            closed = False
    return found, closed


@pytest.mark.parametrize(
    "sent",
    [
        request(),
        request("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAEAAEAA"),  # as Java's client
        request("Expect: 0-nothing", "X: " + "y" * 60_000),
        b"\r\n" + request(),
        (
            f"POST {PREDICT} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n{len(BODY):x}\r\n".encode()
            + BODY
            + b"\r\n0\r\n\r\n"
        ),
    ],
    ids=["plain", "asks for HTTP/2", "long head", "empty line before it", "chunked"],
)
def test_a_request_in_any_form_of_http_1_1_is_answered_and_so_is_the_next(server, sent):
    found, closed = answers(server, sent + request(), 2)
    assert [status for status, _ in found] == [200, 200]
    assert found[0] == found[1]
    assert not closed


@pytest.mark.parametrize(
    "sent",
    [
        request(line=f"POST {PREDICT} HTTP/9.9"),
        request(line="nonsense"),
        request("Content-Length: 3"),
        request("Transfer-Encoding: chunked"),
        request("X: " + "y" * 700_000),
        request(*[f"X{number}: {'y' * 100}" for number in range(7000)]),
        f"POST {PREDICT} HTTP/1.1\r\nHost: x\r\nX: ".encode() + b"y" * 300_000,
        b"POST /" + b"x" * 700_000,
        f"POST {PREDICT} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: ".encode() + b"y" * 300_000,
        f"POST {PREDICT} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2;".encode() + b"y" * 300_000,
        f"POST {PREDICT} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n".encode(),
    ],
    ids=[
        "HTTP/9.9", "nonsense", "two lengths", "two ends", "long header",
        "many headers", "header without end", "path without end", "trailer without end", "extension without end",
        "no chunk",
    ],
)  # fmt: skip
def test_what_is_not_http_1_1_is_refused_and_its_connection_closed(server, sent):
    try:
        found, closed = answers(server, sent, 1)
    except ConnectionError:  # closed while it was still sent
        return
    assert found in ([(400, NOT_HTTP)], [(400, LONG_HEAD)])
    assert closed
