"""serving: a server of a folder, as a context, with the addresses of both protocols; and what asks it."""

import contextlib
import dataclasses
import json
import time

import httpx
import pytest

from crowdzoo.serving import Limits, Server

LIMITS = {field.name for field in dataclasses.fields(Limits)}
PREDICT = "/v1/models/pets:predict"


@contextlib.contextmanager
def serving(folder=None, name="pets", **settings):
    """Runs a server on free ports; it has `url`, `grpc_url` and the `model` that a client asks.

    `settings` are those of `Server` and of its `Limits`.
    """
    limits = Limits(**{each: settings.pop(each) for each in LIMITS & settings.keys()})
    named = {} if "config" in settings else {"name": name}
    with Server(folder, rest_port=0, grpc_port=0, limits=limits, **named, **settings) as server:
        server.url = f"http://127.0.0.1:{server.rest_port}"
        server.grpc_url = f"grpc://127.0.0.1:{server.grpc_port}"
        server.model = name
        yield server


def rest(server, path, body=None, **options):
    """The answer to a GET, or to a POST of a body: bytes as they are, other values as JSON."""
    content = body if body is None or isinstance(body, bytes) else json.dumps(body)
    method = "GET" if body is None else "POST"
    return httpx.request(method, server.url + path, content=content, trust_env=False, timeout=60, **options)


def channel_to(server, *options):
    """A gRPC channel to a server on this machine, as a context."""
    import grpc

    return grpc.insecure_channel(f"127.0.0.1:{server.grpc_port}", [("grpc.enable_http_proxy", 0), *options])


def predict_request(inputs, **spec):
    """A request to the model `pets`, of arrays, lists of texts or protos."""
    import tensorflow as tf
    from tensorflow_serving.apis.predict_pb2 import PredictRequest

    request = PredictRequest(model_spec={"name": "pets", **spec})
    for name, value in inputs.items():
        is_proto = hasattr(value, "tensor_shape")
        request.inputs[name].CopyFrom(value if is_proto else tf.make_tensor_proto(value))
    return request


def proto_of(dtype, *sizes, **values):
    """A TensorProto of a shape, whatever values it has."""
    from tensorflow.core.framework.tensor_pb2 import TensorProto

    shape = {"dim": [{"size": size} for size in sizes]}
    return TensorProto(dtype=dtype, tensor_shape=shape, **values)


def grpc_status(call):
    """Name and words of the status with which a call fails."""
    import grpc

    with pytest.raises(grpc.RpcError) as caught:
        call()
    return caught.value.code().name, caught.value.details()


def wait_until(true):
    """Asks again and again, 20 seconds at most."""
    end = time.monotonic() + 20
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)


def requests_inside(server):
    """How many requests are whole and not answered."""
    return server._gate.inside


def connections(server):
    """Those of the REST port; asked from another thread, so only of what uvicorn's constructor sets."""
    return list(server._rest.server_state.connections)
