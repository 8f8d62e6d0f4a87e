"""The size that counts is that of a request's values once they are expanded, however few bytes say them."""

import json
import shutil
import socket
import threading
import tracemalloc

import pytest
import tensorflow as tf
from running_server import PREDICT, channel_to, grpc_status, predict_request, rest, serving
from running_server import proto_of as proto
from tensorflow_serving.apis import prediction_service_pb2_grpc
from tensorflow_serving.apis.prediction_log_pb2 import PredictionLog

from crowdzoo.serving import Client, Limits
from crowdzoo.serving.gate import LONG, Gate
from crowdzoo.serving.loaded_model import LoadedModel
from crowdzoo.serving.proto_tensors import arrays_from_protos
from crowdzoo.serving.request_error import RequestError

MIB = 1 << 20
GOOD = [0.1, 0.2, 0.3, 0.4]
REASON = "takes more than the 67,108,864 bytes that the values of one request may take here"


def peak_of(call):
    """Most bytes that Python and NumPy held at once for the call."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def refused(call, message=REASON):
    """Checks that the call is refused as too large, and makes nothing of a MiB before it is."""

    def ask():
        with pytest.raises(RequestError, match=message) as caught:
            call()
        assert (caught.value.http_status, caught.value.grpc_status) == (413, "RESOURCE_EXHAUSTED")

    assert peak_of(ask) < MIB


# === Tensors ===


@pytest.mark.parametrize(
    "tensor",
    [
        proto(1, 260_000, 512, float_val=[0.5]),
        proto(19, 260_000, 512, half_val=[1]),
        proto(14, 70_000_000, half_val=[1]),
        proto(9, 10_000_000, int64_val=[1]),
        proto(10, 70_000_000, bool_val=[True]),
        proto(2, 9_000_000),
        proto(1, 260_000, 512, tensor_content=b"\0\0\0\0"),
        proto(7, 2_000, string_val=[b"x" * 40_000]),
        proto(7, 40_000_000, string_val=[b""]),
        proto(7, 40_000_000),
        proto(1, 100_000_000, 0),
        proto(7, 0, 100_000_000),
        proto(1, *[2**62] * 254),
        *(proto(dtype, 0, 2**62) for dtype in (1, 7)),
    ],
    ids=lambda tensor: f"{tensor.dtype} {[dim.size for dim in tensor.tensor_shape.dim][:3]}",
)
def test_one_value_for_a_large_shape_is_refused_before_it_is_expanded(tensor):
    refused(lambda: arrays_from_protos({"x": tensor}))


def test_inputs_are_counted_together_before_the_first_is_expanded():
    tensors = {name: proto(1, 5_000_000, float_val=[0.5]) for name in ("a", "b", "c", "d")}  # 20 MB each
    refused(lambda: arrays_from_protos(tensors), r"input '\w': shape \[5000000\] with the inputs before it takes more")
    assert arrays_from_protos({"a": tensors["a"]})["a"].shape == (5_000_000,)


def test_the_limits_are_those_of_the_server():
    tensor = proto(1, 1_000, float_val=[0.5])
    assert len(arrays_from_protos({"x": tensor}, Limits(request_bytes=4_000))["x"]) == 1_000
    with pytest.raises(RequestError, match="takes more than the 3,999 bytes"):
        arrays_from_protos({"x": tensor}, Limits(request_bytes=3_999))
    with pytest.raises(RequestError, match="takes more than the 64,000 bytes"):  # a text takes 65 in memory
        arrays_from_protos({"x": proto(7, 1_000)}, Limits(request_memory=64_000))


def test_the_bytes_are_told_before_an_array_is_made():
    sizes = []

    def wait(size):
        sizes.append((size, tracemalloc.get_traced_memory()[0]))

    def read():
        arrays_from_protos({"x": proto(1, MIB, float_val=[0.5]), "y": proto(7, 10, string_val=[b"abc"])}, wait=wait)

    assert peak_of(read) > 4 * MIB
    ((size, memory),) = sizes
    assert size == 4 * MIB + 10 * (3 + 2)
    assert memory < MIB


# === Turns ===


def test_what_becomes_long_gives_its_turn_back_and_waits_for_the_one_of_long_requests():
    gate = Gate(Limits(threads=1, body_seconds=30))
    became_long, go_on = threading.Event(), threading.Event()

    def becomes_long():
        with gate.turn(41, lambda: False) as wait:
            wait(LONG)  # still short
            wait(LONG + 1)
            became_long.set()
            assert go_on.wait(30)

    thread = threading.Thread(target=becomes_long)
    thread.start()
    assert became_long.wait(30)
    with gate.turn(41, lambda: False, 10):
        pass
    with pytest.raises(RequestError, match="the deadline is over"), gate.turn(41, lambda: False, 0.01) as wait:
        wait(LONG + 1)
    go_on.set()
    thread.join(30)
    with gate.turn(41, lambda: False) as wait:
        wait(LONG + 1)
        with gate.turn(41, lambda: False, 10):
            pass
    assert not gate.running


@pytest.mark.parametrize("protocol", ["gRPC", "REST"])
def test_few_bytes_that_become_many_hold_up_no_short_request(pets, held, protocol):
    with serving(pets.folder, "pets", threads=1) as server, Client(server.url, model="pets") as client:
        client.metadata()
        with channel_to(server) as channel:
            stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)

            def ask():
                if protocol == "gRPC":
                    stub.Predict(predict_request({"instances": proto(1, 40_000, 4, float_val=[0.5])}), timeout=60)
                else:
                    body = b'{"instances": [' + b",".join([b"[1,1,1,1]"] * 40_000) + b"]}"
                    assert len(body) < LONG < 40_000 * 4 * 4
                    assert rest(server, PREDICT, body).status_code == 200

            held.hold()
            threads = [threading.Thread(target=ask) for _ in range(3)]
            for thread in threads:
                thread.start()
            assert held.arrived.wait(30)
            held.arrived.clear()
            good = threading.Thread(target=client.predict, args=([GOOD],))
            good.start()
            assert held.arrived.wait(30), "the only turn of short requests is taken"
            held.release.set()
            for thread in (*threads, good):
                thread.join(60)


def test_a_message_of_41_bytes_that_becomes_512_mib_is_refused_and_the_next_is_answered(pets):
    with serving(pets.folder, "pets") as server, channel_to(server) as channel:
        stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
        request = predict_request({"instances": proto(1, 260_000, 512, float_val=[0.5])})
        code, reason = grpc_status(lambda: stub.Predict(request, timeout=60))
        assert code == "RESOURCE_EXHAUSTED"
        assert reason == (f"input 'instances': shape [260000, 512] {REASON}; send fewer or shorter instances")
        assert stub.Predict(predict_request({"instances": proto(1, 2, 4, float_val=[0.5])}), timeout=60).outputs[
            "label"
        ]


# === Warm-up requests ===


def test_a_warm_up_request_that_becomes_too_large_is_refused(pets, tmp_path):
    folder = shutil.copytree(pets.folder / "1", tmp_path / "1")
    request = predict_request({"instances": proto(1, 1_000, 4, float_val=[0.5])})
    with tf.io.TFRecordWriter(str(folder / "assets.extra" / "tf_serving_warmup_requests")) as writer:
        writer.write(PredictionLog(classify_log={"request": {}}).SerializeToString())  # passed over
        writer.write(PredictionLog(predict_log={"request": request}).SerializeToString())
    assert LoadedModel(folder, 1).num_warmup_requests == 1
    with pytest.raises(RequestError, match=r"shape \[1000, 4\] takes more than the 15,999 bytes"):
        LoadedModel(folder, 1, Limits(request_bytes=15_999))


# === Outputs ===


@pytest.mark.parametrize(
    ("names", "says"),
    [
        (["label"] * 30_000, "'label' is repeated"),
        (["label", "class", "label"], "'label' is repeated"),
        (["x"], "'x' is not an output; there are "),
    ],
    ids=["30,000 times", "twice", "unknown"],
)
def test_an_output_that_is_unknown_or_asked_for_twice_is_refused_before_the_model_runs(stub, held, names, says):
    """As TensorFlow Serving does, "duplicate output tensor alias"."""
    request = predict_request({"instances": proto(1, 1, 4, float_val=[0.5])})
    request.output_filter.extend(names)
    held.hold()
    code, reason = grpc_status(lambda: stub.Predict(request, timeout=60))
    assert code == "INVALID_ARGUMENT"
    assert reason.startswith(f"output_filter: {says}")
    assert held.calls == 0


# === Bodies ===


@pytest.mark.parametrize("more", ["", "Expect: 100-continue\r\n"], ids=["plain", "Expect"])
def test_a_length_above_the_limit_is_refused_before_the_body_comes_and_the_connection_closed(server, more):
    most = server.limits.request_bytes
    with socket.create_connection(("127.0.0.1", server.rest_port), timeout=20) as connection:
        head = f"POST /v1/models/pets:predict HTTP/1.1\r\nHost: x\r\n{more}Content-Length: {most + 1}\r\n\r\n"
        connection.sendall(head.encode() + b'{"instances"' * (not more))
        answer = b""
        while piece := connection.recv(1000):
            answer += piece
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 413 ")
    assert b"connection: close" in head.lower().splitlines()
    assert json.loads(body) == {
        "error": f"the body has more than {most:,} bytes, the most this server takes; send fewer instances"
    }


def test_a_client_that_sends_its_long_body_all_the_same_reads_the_answer(server):
    body = b" " * (20 * server.limits.request_bytes)
    assert rest(server, PREDICT, body).status_code == 413
