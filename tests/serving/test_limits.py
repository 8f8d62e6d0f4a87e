"""What one client, and all together, may take of the server: memory, time, turns, connections."""

import json
import socket
import threading
import time

import grpc
import httpx
import numpy as np
import pytest
import tensorflow as tf
from running_server import channel_to, grpc_status, serving
from tensorflow_serving.apis import prediction_service_pb2_grpc
from tensorflow_serving.apis.predict_pb2 import PredictRequest

from crowdzoo.errors import ServingError
from crowdzoo.serving import Client, Limits, rest_protocol

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


def test_a_body_that_becomes_too_large_is_refused_and_the_next_is_answered(pets, instances):
    with serving(pets.folder, "pets", request_memory=2 * MIB) as server:
        body = b'{"instances": [' + b"[]," * 50_000 + b"[]]}"
        answer = httpx.post(f"{server.url}/v1/models/pets:predict", content=body, trust_env=False)
        assert answer.status_code == 413
        assert "bytes of memory once they are read" in answer.json()["error"]
        with Client(server.url, model="pets") as client:
            assert len(client.predict(instances)["label"]) == len(instances)
        assert server._gate.inside == server._gate._bytes == server._rest_service._arriving == 0


# === Time and turns ===


@pytest.mark.parametrize("protocol", ["url", "grpc_url"])
def test_a_full_queue_of_both_protocols_is_answered_at_once_and_the_others_get_their_turn(
    pets, instances, held, protocol
):
    answers = []
    with serving(pets.folder, "pets", threads=1, queue=1) as server:
        with Client(getattr(server, protocol), model="pets") as client:
            client.metadata()
            held.hold()
            threads = [threading.Thread(target=lambda: answers.append(client.predict(instances))) for _ in range(2)]
            for thread in threads:
                thread.start()
            while not server._gate.is_full:
                time.sleep(0.01)
            body = json.dumps({"instances": [GOOD]})
            refused = httpx.post(f"{server.url}/v1/models/pets:predict", content=body, trust_env=False)
            assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
            assert refused.json() == {"error": "too many requests wait already; try again later"}
            with channel_to(server, ("grpc.use_local_subchannel_pool", 1)) as late:
                call = late.unary_unary("/tensorflow.serving.ModelService/GetModelStatus")
                status, reason = grpc_status(lambda: call(b"", timeout=20))
            assert (status, reason) == ("UNAVAILABLE", "too many requests wait already; try again later")
            assert httpx.get(f"{server.url}/v1/models/pets", trust_env=False).status_code == 200
            held.release.set()
            for thread in threads:
                thread.join(30)
        assert [len(one["label"]) for one in answers] == [len(instances)] * 2


def test_a_call_whose_deadline_is_over_is_never_run(pets, instances, held):
    with serving(pets.folder, "pets", threads=1, queue=4) as server:
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
            while server._gate.inside > 1:  # the server has seen that it is over, too
                time.sleep(0.01)
            held.release.set()
            first.join(30)
            client.predict(instances)
        assert held.calls == 2


def test_a_call_without_a_deadline_waits_for_its_turn(pets, held):
    """gRPC gives it one in thousands of years, for which no lock can wait."""
    request = PredictRequest(model_spec={"name": "pets"})
    request.inputs["instances"].CopyFrom(tf.make_tensor_proto([GOOD], tf.float32))
    with serving(pets.folder, "pets", threads=1, queue=4) as server:
        held.hold()
        with channel_to(server) as channel:
            stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
            calls = [stub.Predict.future(request) for _ in range(2)]
            while server._gate.inside < 2:
                time.sleep(0.01)
            held.release.set()
            assert [len(call.result().outputs) for call in calls] == [3, 3]


def test_a_request_whose_client_left_is_never_run(pets, instances, held):
    with serving(pets.folder, "pets", threads=1, queue=4) as server:
        with Client(server.url, model="pets") as client:
            client.metadata()
            held.hold()
            first = threading.Thread(target=client.predict, args=(instances,))
            first.start()
            assert held.arrived.wait(30)
            body = json.dumps({"instances": [GOOD]}).encode()
            with connect(server) as connection:
                connection.sendall(predict_head(len(body)) + body)
                while server._gate.inside < 2:
                    time.sleep(0.01)
            while len(server._rest.server_state.connections) > 1:
                time.sleep(0.01)
            held.release.set()
            first.join(30)
            client.predict(instances)
        assert held.calls == 2


# === Connections ===


def test_heads_bodies_and_idle_connections_have_their_time(pets):
    with serving(pets.folder, "pets", header_seconds=0.2, body_seconds=0.2, idle_seconds=0.2) as server:
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

    with serving(pets.folder, "pets", body_seconds=0.2) as server, channel_to(server) as channel:
        call = channel.stream_unary("/tensorflow.serving.PredictionService/Predict")
        with pytest.raises(grpc.RpcError) as caught:
            call(never(), timeout=30)
        ended.set()
        assert caught.value.code() == grpc.StatusCode.CANCELLED


def test_a_client_that_reads_no_answers_is_not_read_from(server):
    request = b"GET /v1/models/pets/metadata HTTP/1.1\r\nHost: x\r\n\r\n"
    with connect(server) as connection:
        connection.settimeout(1.0)
        with pytest.raises((TimeoutError, ConnectionError)):
            connection.sendall(request * 400_000)  # some 20 MB
        assert (
            max((len(one.pipeline) for one in server._rest.server_state.connections), default=0)
            <= rest_protocol._MOST_AHEAD
        )


def test_more_connections_than_allowed_close_an_idle_one_or_are_refused(pets, instances, held):
    with serving(pets.folder, "pets", connections=1) as server, connect(server) as first, connect(server) as second:
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
        serving(pets.folder, "pets", drain_seconds=1.5) as server,
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
        assert server._gate.running
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
    request = PredictRequest(model_spec={"name": "pets", "signature_name": "annotators"})
    request.inputs["instances"].CopyFrom(tf.make_tensor_proto([GOOD], tf.float32))
    request.inputs["annotator"].CopyFrom(tf.make_tensor_proto([b"\xff"]))
    stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
    assert grpc_status(lambda: stub.Predict(request)) == ("INVALID_ARGUMENT", "annotator: not valid UTF-8 in row 0")


@pytest.mark.parametrize("signature", ["serving_default", "annotators"])
def test_an_answer_that_is_not_finite_is_refused_by_its_row(client, signature):
    rows = np.array([GOOD, [3e38, -3e38, 3e38, -3e38]], dtype="float32")
    named = {"annotator": "ann"} if signature == "annotators" else {}
    with pytest.raises(ServingError, match=r"instances\[1\]: the model's answer .* is not a finite number"):
        client.predict(rows, signature=signature, **named)
    assert len(client.predict(rows[:1], signature=signature, **named)["label"]) == 1
