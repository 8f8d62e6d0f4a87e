"""One server of a small untrained model, in this process, for the targets that send it requests."""

import atexit
import contextlib
import ctypes
import functools
import http.client
import json
import logging
import tempfile
from pathlib import Path

from hypothesis import strategies as st
from target import TooMuchMemoryError

GOOD = {"instances": [[0.1, 0.2, 0.3, 0.4]]}
PREDICT = "/v1/models/pets:predict"
REQUEST_BYTES = 1 << 20
# Most bytes by which the process may grow for one request
_MOST_BYTES = 40 << 20


@functools.cache
def served_folder():
    """The folder of the model, which the first call exports."""
    import keras

    from crowdzoo.export.saved_model import export_model
    from crowdzoo.layers import CrowdsourcedLayer
    from crowdzoo.networks.feature_network import FeatureClassifier
    from crowdzoo.training.crowd_model import CrowdModel

    keras.utils.set_random_seed(0)
    folder = tempfile.TemporaryDirectory(prefix="crowdzoo-fuzz-")
    atexit.register(folder.cleanup)
    crowd = CrowdsourcedLayer(2)
    crowd.build((None, 3))
    model = CrowdModel(FeatureClassifier(4, 3, hidden=(6,)), crowd)
    export_model(model, f"{folder.name}/1", classes=["a", "b", "c"], annotators=["ann", "bob"], name="pets")
    return Path(folder.name)


@functools.cache
def server():
    """The running server."""
    from crowdzoo.serving import Limits, Server

    logging.getLogger("uvicorn").setLevel(logging.CRITICAL)  # it warns of every request that is not HTTP
    running = Server(
        served_folder(), name="pets", rest_port=0, grpc_port=0, labels={"stable": 1},
        limits=Limits(request_bytes=REQUEST_BYTES, request_memory=64 << 20), label_studio=True,
    )  # fmt: skip
    running.start()
    atexit.register(running.stop)
    return running


def once_it_runs(inputs):
    """The strategy, after the server was started: its start is no part of the first input's time."""
    return st.deferred(lambda: (server(), inputs)[1])


def _resident(name):
    """`VmRSS`, the bytes that the process holds, or `VmHWM`, the most of them since they were last forgotten."""
    status = Path("/proc/self/status").read_text()
    return 1024 * next(int(line.split()[1]) for line in status.splitlines() if line.startswith(name))


@contextlib.contextmanager
def little_memory():
    """Checks that the process, client and server, does not grow by much in between."""
    forgets = Path("/proc/self/clear_refs")  # of Linux
    if not forgets.exists():
        yield
        return
    if (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)) is not None:
        trim(0)  # what is free but kept would hide what is taken
    before = _resident("VmRSS")
    forgets.write_text("5")
    yield
    if (grown := _resident("VmHWM") - before) > _MOST_BYTES:
        raise TooMuchMemoryError(f"{grown / (1 << 20):,.0f} MiB for one request")


def still_answers():
    """Sends a good request, which has to be answered whatever came before."""
    connection = http.client.HTTPConnection("127.0.0.1", server().rest_port, timeout=10)
    try:
        connection.request("POST", PREDICT, json.dumps(GOOD))
        answer = connection.getresponse()
        if answer.status != 200 or "predictions" not in json.loads(answer.read()):
            raise AssertionError(f"a good request is answered with {answer.status}")
    finally:
        connection.close()
