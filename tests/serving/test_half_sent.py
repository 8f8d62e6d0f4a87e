"""Requests whose bodies never come to their end hold up no other request."""

import json
import socket
import struct
import threading
import time
from contextlib import ExitStack

import httpx
import numpy as np
import pytest
from running_server import serving

from crowdzoo.serving import Client, grpc_service, rest_protocol

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


def wait_until(true):
    end = time.monotonic() + 20
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)


def bodies_begun(server):
    """How many connections have sent a head; asked from another thread, so only of what uvicorn's constructor sets."""
    return sum(connection.cycle is not None for connection in list(server._rest.server_state.connections))


def test_bodies_that_are_half_sent_take_no_place_of_the_queue(pets):
    with serving(pets.folder, "pets", threads=1, queue=1) as server, ExitStack() as open_:
        for _ in range(6):
            connection = open_.enter_context(socket.create_connection(("127.0.0.1", server.rest_port)))
            connection.sendall(HEAD)
        wait_until(lambda: bodies_begun(server) >= 2)
        answer = httpx.post(f"{server.url}/v1/models/pets:predict", json=GOOD, trust_env=False)
        assert (answer.status_code, len(answer.json()["predictions"])) == (200, 1)


def test_bodies_that_become_whole_at_once_wait_in_the_queue_or_are_refused(pets, held):
    body = json.dumps(GOOD).encode()
    with serving(pets.folder, "pets", threads=1, queue=1) as server, ExitStack() as open_:
        held.hold()
        connections = [
            open_.enter_context(socket.create_connection(("127.0.0.1", server.rest_port), timeout=20)) for _ in range(5)
        ]
        for connection in connections:
            connection.sendall(HEAD.replace(b"1000", b"%d" % len(body))[:-1] + body[:-1])
        wait_until(lambda: bodies_begun(server) == 5)
        statuses = []
        readers = [
            threading.Thread(target=lambda one=connection: statuses.append(int(one.recv(10_000).split()[1])))
            for connection in connections
        ]
        for connection, reader in zip(connections, readers, strict=True):
            connection.sendall(body[-1:])
            reader.start()
        wait_until(lambda: len(statuses) == 3)
        assert statuses == [503] * 3
        held.release.set()
        for reader in readers:
            reader.join(20)
        assert sorted(statuses) == [200, 200, 503, 503, 503]


def test_bodies_that_are_half_sent_take_half_of_the_memory_at_most(pets):
    with (
        serving(pets.folder, "pets", memory=100_000, request_memory=100_000) as server,
        ExitStack() as open_,
    ):
        answers = []
        for _ in range(2):
            connection = open_.enter_context(socket.create_connection(("127.0.0.1", server.rest_port), timeout=20))
            connection.sendall(HEAD.replace(b"1000", b"60000") + b" " * 40_000)
            answers.append(connection)
        wait_until(lambda: server._rest_service._arriving >= 40_000)
        answer = httpx.post(f"{server.url}/v1/models/pets:predict", json=GOOD, trust_env=False)
        assert answer.status_code == 200
        answers[1].sendall(b" " * 19_999)
        assert answers[1].recv(1000).startswith(b"HTTP/1.1 503 ")


def test_a_connection_that_sends_its_body_slowly_gives_its_place_to_a_new_one(pets, monkeypatch):
    monkeypatch.setattr(rest_protocol, "SLOW_SECONDS", 0.0)
    with serving(pets.folder, "pets", connections=2) as server, ExitStack() as open_:
        slow = [open_.enter_context(socket.create_connection(("127.0.0.1", server.rest_port))) for _ in range(2)]
        for connection in slow:
            connection.sendall(HEAD)
        wait_until(lambda: bodies_begun(server) == 2)
        answer = httpx.post(f"{server.url}/v1/models/pets:predict", json=GOOD, trust_env=False)
        assert answer.status_code == 200
        assert slow[0].recv(1000).startswith(b"HTTP/1.1 408 ")


@pytest.mark.parametrize("connections", [1, 4])
def test_calls_that_are_half_sent_take_no_place_of_the_queue(pets, instances, connections):
    with serving(pets.folder, "pets", threads=1, queue=16) as server, ExitStack() as open_:
        for _ in range(connections):
            open_.enter_context(calls(server.grpc_port, 17))
        wait_until(lambda: len(server._grpc_service._slow) >= min(16, 17 * connections))
        time.sleep(0.1)
        with Client(server.grpc_url, model="pets", timeout=5) as client:
            assert len(client.predict(instances)["label"]) == len(instances)


def test_of_many_calls_that_are_half_sent_the_oldest_are_ended(pets, instances, monkeypatch):
    monkeypatch.setattr(grpc_service, "SLOW_SECONDS", 0.0)
    with serving(pets.folder, "pets", threads=1, queue=30) as server, calls(server.grpc_port, 30):
        wait_until(lambda: len(server._grpc_service._slow) > 16)
        wait_until(lambda: len(server._grpc_service._slow) == 16)
        with Client(server.grpc_url, model="pets", timeout=5) as client:
            np.testing.assert_equal(len(client.predict(instances)["label"]), len(instances))
