"""Requests whose bodies never come to their end hold up no other request."""

import json
import socket
import struct
import threading
import time
from contextlib import ExitStack

import pytest
from running_server import PREDICT, connections, rest, serving, wait_until

from crowdzoo.serving import Client, rest_protocol

GOOD = {"instances": [[0.1, 0.2, 0.3, 0.4]]}
HEAD = b"POST /v1/models/pets:predict HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{"


def frame(kind, flags, stream, content=b""):
    return struct.pack(">I", len(content))[1:] + struct.pack(">BBI", kind, flags, stream) + content


def calls(port, streams):
    """A gRPC connection with calls that announce 1,000 bytes and send one."""
    fields = {
        ":method": "POST", ":scheme": "http", ":path": "/tensorflow.serving.PredictionService/Predict",
        ":authority": "x", "content-type": "application/grpc", "te": "trailers",
    }  # fmt: skip
    coded = b"".join(bytes([0, len(name)]) + name.encode() + bytes([len(value)]) + value.encode()
                     for name, value in fields.items())  # fmt: skip
    connection = socket.create_connection(("127.0.0.1", port), timeout=20)
    connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0))
    while (kind := connection.recv(9)[3]) != 4:  # its settings say how many streams it takes
        raise AssertionError(kind)
    for stream in range(1, 2 * streams, 2):
        message = b"\0" + struct.pack(">I", 1000) + b"{"
        connection.sendall(frame(1, 4, stream, coded) + frame(0, 0, stream, message))
    return connection


def bodies_begun(server):
    """How many connections have sent a head."""
    return sum(connection.cycle is not None for connection in connections(server))


def calls_begun(server):
    return len(server._grpc_service._slow)


@pytest.fixture
def connect():
    """Opens connections to the REST port that end with the test."""
    with ExitStack() as open_:
        yield lambda server: open_.enter_context(socket.create_connection(("127.0.0.1", server.rest_port), timeout=20))


def test_bodies_that_are_half_sent_take_no_place_of_the_queue(pets, connect):
    with serving(pets.folder, threads=1, queue=1) as server:
        for _ in range(6):
            connect(server).sendall(HEAD)
        wait_until(lambda: bodies_begun(server) >= 2)
        answer = rest(server, PREDICT, GOOD)
        assert (answer.status_code, len(answer.json()["predictions"])) == (200, 1)


def test_bodies_that_become_whole_at_once_wait_in_the_queue_or_are_refused(pets, held, connect):
    body = json.dumps(GOOD).encode()
    with serving(pets.folder, threads=1, queue=1) as server:
        held.hold()
        senders = [connect(server) for _ in range(5)]
        for sender in senders:
            sender.sendall(HEAD.replace(b"1000", b"%d" % len(body))[:-1] + body[:-1])
        wait_until(lambda: bodies_begun(server) == 5)
        statuses = []
        readers = [
            threading.Thread(target=lambda one=sender: statuses.append(int(one.recv(10_000).split()[1])))
            for sender in senders
        ]
        for sender, reader in zip(senders, readers, strict=True):
            sender.sendall(body[-1:])
            reader.start()
        wait_until(lambda: len(statuses) == 3)
        assert statuses == [503] * 3
        held.release.set()
        for reader in readers:
            reader.join(20)
        assert sorted(statuses) == [200, 200, 503, 503, 503]


def test_bodies_that_are_half_sent_take_half_of_the_memory_at_most(pets, connect):
    with serving(pets.folder, memory=100_000, request_memory=100_000) as server:
        first, second = connect(server), connect(server)
        for sender in (first, second):
            sender.sendall(HEAD.replace(b"1000", b"60000") + b" " * 40_000)
        wait_until(lambda: bodies_begun(server) == 2)
        assert rest(server, PREDICT, GOOD).status_code == 200
        second.sendall(b" " * 19_999)
        assert second.recv(1000).startswith(b"HTTP/1.1 503 ")


def test_a_connection_that_sends_its_body_slowly_gives_its_place_to_a_new_one(pets, connect):
    with serving(pets.folder, connections=2) as server:
        slow, other = connect(server), connect(server)
        for sender in (slow, other):
            sender.sendall(HEAD)
        wait_until(lambda: bodies_begun(server) == 2)
        time.sleep(rest_protocol.SLOW_SECONDS)
        assert rest(server, PREDICT, GOOD).status_code == 200
        assert slow.recv(1000).startswith(b"HTTP/1.1 408 ")


@pytest.mark.parametrize("number", [1, 4])
def test_calls_that_are_half_sent_take_no_place_of_the_queue(pets, instances, number):
    with serving(pets.folder, threads=1, queue=16) as server, ExitStack() as open_:
        for _ in range(number):
            open_.enter_context(calls(server.grpc_port, 17))
        wait_until(lambda: calls_begun(server) >= min(16, 17 * number))
        time.sleep(0.1)
        with Client(server.grpc_url, model="pets", timeout=5) as client:
            assert len(client.predict(instances)["label"]) == len(instances)


def test_of_many_calls_that_are_half_sent_the_oldest_are_ended(pets, instances):
    with serving(pets.folder, threads=1, queue=30) as server, calls(server.grpc_port, 30):
        wait_until(lambda: calls_begun(server) > 16)
        wait_until(lambda: calls_begun(server) == 16)
        with Client(server.grpc_url, model="pets", timeout=5) as client:
            assert len(client.predict(instances)["label"]) == len(instances)
