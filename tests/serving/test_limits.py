"""What one client, and all together, may take of the server: memory, time, turns, connections."""

import json
import socket
import threading

import numpy as np
import pytest
from running_server import (
    PREDICT,
    channel_to,
    connections,
    grpc_status,
    predict_request,
    requests_inside,
    rest,
    serving,
    wait_until,
)
from tensorflow_serving.apis import prediction_service_pb2_grpc

from crowdzoo.errors import ServingError
from crowdzoo.serving import Client, Limits

GOOD = [0.1, 0.2, 0.3, 0.4]
MIB = 1 << 20


def connect(server):
    return socket.create_connection(("127.0.0.1", server.rest_port), timeout=20)


def predict_head(length, more=""):
    return f"POST /v1/models/pets:predict HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n{more}\r\n".encode()


# === Settings ===


def test_limits_are_set_by_name():
    changed = Limits().changed(["queue=3", "idle_seconds=0.5", "queue=4"])
    assert (changed.queue, changed.idle_seconds, changed.threads) == (4, 0.5, Limits().threads)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("queue=0", "queue: must be an integer, at least 1, got 0"),
        ("queue=1.5", "limit queue: '1.5' is not a number; write queue=VALUE"),
        ("idle_seconds=nan", "idle_seconds: must be a number more than 0, got nan"),
        ("body_seconds=inf", "body_seconds: must be a number more than 0, got inf"),
        ("que=1", r"unknown limit 'que': choose one of request_bytes, .* Did you mean 'queue'\?"),
        ("queue", "limit queue: '' is not a number"),
    ],
)
def test_a_limit_that_cannot_be_is_refused(setting, message):
    with pytest.raises(ServingError, match=message):
        Limits().changed([setting])


# === Memory ===


def test_a_body_that_becomes_too_large_is_refused_and_gives_back_what_it_took(pets):
    body = b'{"instances": [' + b"[]," * 50_000 + b"[]]}"
    limits = {"request_memory": 2 * MIB, "memory": 3 * len(body), "threads": 1, "queue": 1}
    with serving(pets.folder, **limits) as server:
        for _ in range(4):  # more than have a place at once
            answer = rest(server, PREDICT, body)
            assert answer.status_code == 413
            assert "bytes of memory once they are read" in answer.json()["error"]
        assert rest(server, PREDICT, {"instances": [GOOD]}).status_code == 200


# === Time and turns ===


@pytest.mark.parametrize("protocol", ["url", "grpc_url"])
def test_a_full_queue_of_both_protocols_is_answered_at_once_and_the_others_get_their_turn(
    pets, instances, held, protocol
):
    answers = []
    with serving(pets.folder, threads=1, queue=1) as server:
        with Client(getattr(server, protocol), model="pets") as client:
            client.metadata()
            held.hold()
            threads = [threading.Thread(target=lambda: answers.append(client.predict(instances))) for _ in range(2)]
            for thread in threads:
                thread.start()
            wait_until(lambda: requests_inside(server) == 2)
            refused = rest(server, PREDICT, {"instances": [GOOD]})
            assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
            assert refused.json() == {"error": "too many requests wait already; try again later"}
            with channel_to(server, ("grpc.use_local_subchannel_pool", 1)) as late:
                call = late.unary_unary("/tensorflow.serving.ModelService/GetModelStatus")
                status, reason = grpc_status(lambda: call(b"", timeout=20))
            assert (status, reason) == ("UNAVAILABLE", "too many requests wait already; try again later")
            assert rest(server, "/v1/models/pets").status_code == 200
            held.release.set()
            for thread in threads:
                thread.join(30)
        assert [len(one["label"]) for one in answers] == [len(instances)] * 2


def test_a_call_whose_deadline_is_over_is_never_run(pets, instances, held):
    with serving(pets.folder, threads=1, queue=4) as server:
        with (
            Client(server.grpc_url, model="pets") as client,
            Client(server.grpc_url, model="pets", timeout=0.3) as hasty,
        ):
            client.metadata(), hasty.metadata()
            held.hold()
            first = threading.Thread(target=client.predict, args=(instances,))
            first.start()
            assert held.arrived.wait(30)
            with pytest.raises(ServingError, match=r"(?i)deadline"):
                hasty.predict(instances)
            wait_until(lambda: requests_inside(server) <= 1)  # the server has seen that it is over, too
            held.release.set()
            first.join(30)
            client.predict(instances)
        assert held.calls == 2


def test_a_call_without_a_deadline_waits_for_its_turn(pets, held):
    """gRPC gives it one in thousands of years, for which no lock can wait."""
    request = predict_request({"instances": np.float32([GOOD])})
    with serving(pets.folder, threads=1, queue=4) as server:
        held.hold()
        with channel_to(server) as channel:
            stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
            calls = [stub.Predict.future(request) for _ in range(2)]
            wait_until(lambda: requests_inside(server) == 2)
            held.release.set()
            assert [len(call.result().outputs) for call in calls] == [3, 3]


def test_a_request_whose_client_left_is_never_run(pets, instances, held):
    with serving(pets.folder, threads=1, queue=4) as server:
        with Client(server.url, model="pets") as client:
            client.metadata()
            held.hold()
            first = threading.Thread(target=client.predict, args=(instances,))
            first.start()
            assert held.arrived.wait(30)
            body = json.dumps({"instances": [GOOD]}).encode()
            with connect(server) as connection:
                connection.sendall(predict_head(len(body)) + body)
                wait_until(lambda: requests_inside(server) == 2)
            wait_until(lambda: len(connections(server)) <= 1)
            held.release.set()
            first.join(30)
            client.predict(instances)
        assert held.calls == 2


# === Connections ===


def test_heads_bodies_and_idle_connections_have_their_time(pets):
    with serving(pets.folder, header_seconds=0.2, body_seconds=0.2, idle_seconds=0.2) as server:
        idle, head, body = (connect(server) for _ in range(3))
        head.sendall(b"GET / HTTP/1.1\r\nHost:")
        body.sendall(predict_head(100) + b"{")
        assert idle.recv(1000) == b""
        for connection, what in ((head, "header"), (body, "body")):
            answer = b""
            while piece := connection.recv(1000):
                answer += piece
            assert answer.startswith(b"HTTP/1.1 408 Request Timeout\r\n")
            assert json.loads(answer.split(b"\r\n\r\n")[1]) == {
                "error": f"the {what} of the request took longer than 0.2 s"
            }
            connection.close()
        idle.close()


def test_a_grpc_call_without_its_message_has_its_time(pets, instances):
    ended = threading.Event()

    def never():
        ended.wait(30)
        yield from ()

    with serving(pets.folder, body_seconds=0.2) as server, channel_to(server) as channel:
        call = channel.stream_unary("/tensorflow.serving.PredictionService/Predict")
        status, _ = grpc_status(lambda: call(never(), timeout=30))
        ended.set()
        assert status == "CANCELLED"


def test_a_client_that_reads_no_answers_is_not_read_from(server):
    request = b"GET /v1/models/pets/metadata HTTP/1.1\r\nHost: x\r\n\r\n"
    with connect(server) as connection:
        connection.settimeout(1.0)
        with pytest.raises((TimeoutError, ConnectionError)):
            connection.sendall(request * 400_000)  # some 20 MB
        assert max((len(one.pipeline) for one in connections(server)), default=0) <= 16


def test_more_connections_than_allowed_close_an_idle_one_or_are_refused(pets, instances, held):
    with serving(pets.folder, connections=1) as server, connect(server) as first, connect(server) as second:
        assert first.recv(100) == b""  # it was idle
        body = json.dumps({"instances": [GOOD]}).encode()
        held.hold()
        second.sendall(predict_head(len(body)) + body)
        assert held.arrived.wait(30)
        with connect(server) as third:
            assert third.recv(1000).startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
        held.release.set()
        assert second.recv(10_000).startswith(b"HTTP/1.1 200 OK\r\n")


@pytest.mark.parametrize("protocol", [pytest.param("rest", marks=pytest.mark.slow), "grpc"])
def test_a_prediction_that_does_not_end_does_not_keep_the_server_from_stopping(pets, instances, held, protocol):
    with (
        serving(pets.folder, drain_seconds=1.5) as server,
        Client(server.url if protocol == "rest" else server.grpc_url, model="pets") as client,
    ):
        client.metadata()
        held.hold()

        def ask():
            with pytest.raises(ServingError):
                client.predict(instances)

        asking = threading.Thread(target=ask)
        asking.start()
        assert held.arrived.wait(30)
        server.stop()  # returns, although the prediction is still held
        assert (held.calls, held.ended) == (1, 0)
        held.release.set()
        asking.join(30)


# === What was an internal error ===


@pytest.mark.parametrize(
    "method", ["PredictionService/Predict", "PredictionService/GetModelMetadata", "ModelService/GetModelStatus"]
)
def test_what_is_no_protobuf_is_an_invalid_argument(channel, method):
    call = channel.unary_unary(f"/tensorflow.serving.{method}")
    status, reason = grpc_status(lambda: call(b"\xff\xff\xff", timeout=20))
    assert status == "INVALID_ARGUMENT"
    assert reason.startswith("the message is not a ")


def test_an_annotator_that_is_not_utf_8_is_an_invalid_argument(channel):
    inputs = {"instances": np.float32([GOOD]), "annotator": [b"\xff"]}
    request = predict_request(inputs, signature_name="annotators")
    stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
    assert grpc_status(lambda: stub.Predict(request)) == ("INVALID_ARGUMENT", "annotator: not valid UTF-8 in row 0")


@pytest.mark.parametrize("signature", ["serving_default", "annotators"])
def test_an_answer_that_is_not_finite_is_refused_by_its_row(client, signature):
    rows = np.array([GOOD, [3e38, -3e38, 3e38, -3e38]], dtype="float32")
    named = {"annotator": "ann"} if signature == "annotators" else {}
    with pytest.raises(ServingError, match=r"instances\[1\]: the model's answer .* not a finite"):
        client.predict(rows, signature=signature, **named)
    assert len(client.predict(rows[:1], signature=signature, **named)["label"]) == 1
