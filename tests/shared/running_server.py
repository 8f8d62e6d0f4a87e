"""serving: a server of a folder, as a context, with the addresses of both protocols."""

import contextlib

import pytest

from crowdzoo.serving import Limits, Server


@contextlib.contextmanager
def serving(folder=None, name="pets", labels=None, config=None, poll_seconds=2.0, **limits):
    """Runs a server on free ports; it has `url`, `grpc_url` and the `model` that a client asks."""
    about = {"config": config} if config else {"name": name, "labels": labels or {}}
    with Server(
        folder, rest_port=0, grpc_port=0, poll_seconds=poll_seconds, limits=Limits(**limits), **about
    ) as server:
        server.url = f"http://127.0.0.1:{server.rest_port}"
        server.grpc_url = f"grpc://127.0.0.1:{server.grpc_port}"
        server.model = name
        yield server


def channel_to(server, *options):
    """A gRPC channel to a server on this machine, as a context."""
    import grpc

    return grpc.insecure_channel(f"127.0.0.1:{server.grpc_port}", [("grpc.enable_http_proxy", 0), *options])


def grpc_status(call):
    """Name and words of the status with which a call fails."""
    import grpc

    with pytest.raises(grpc.RpcError) as caught:
        call()
    return caught.value.code().name, caught.value.details()
