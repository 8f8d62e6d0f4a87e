"""A small crowd model, exported twice, and a server of it for tests that only ask."""

import threading
import time
from importlib.util import find_spec
from types import SimpleNamespace

import numpy as np
import pytest

# the extra `serving` brings these; without it there is nothing to test here
NEEDED = ("tensorflow", "tensorflow_serving", "grpc", "httptools", "httpx", "simdjson", "uvicorn", "uvloop")
if not all(map(find_spec, NEEDED)):
    collect_ignore_glob = ["test_*.py"]
else:
    import keras
    from running_server import channel_to, serving, wait_until
    from tensorflow_serving.apis import prediction_service_pb2_grpc

    from crowdzoo.export.saved_model import export_model
    from crowdzoo.layers import CrowdsourcedLayer
    from crowdzoo.networks.feature_network import FeatureClassifier
    from crowdzoo.serving import Client
    from crowdzoo.serving.model_store import SETTLE_SECONDS
    from crowdzoo.serving.signature import Signature
    from crowdzoo.training.crowd_model import CrowdModel

CLASSES = ["cat", "dog", "ünïcorn"]
ANNOTATORS = ["ann", "bob", "chloé"]
NUM_FEATURES = 4


def make_model(seed):
    keras.utils.set_random_seed(seed)
    layer = CrowdsourcedLayer(len(ANNOTATORS))
    layer.build((None, len(CLASSES)))
    random = np.random.default_rng(seed)
    layer.set_weights([random.normal(size=weight.shape).astype("float32") for weight in layer.get_weights()])
    return CrowdModel(FeatureClassifier(NUM_FEATURES, len(CLASSES), hidden=(6,)), layer)


@pytest.fixture(scope="session")
def instances():
    return np.random.default_rng(5).normal(size=(6, NUM_FEATURES)).astype("float32")


@pytest.fixture(scope="session")
def export_version(instances):
    """Writes a model with weights from a seed to a folder, and returns the model."""

    def export(path, seed=1):
        model = make_model(seed)
        export_model(model, path, classes=CLASSES, annotators=ANNOTATORS, name="pets", warmup_instances=instances)
        return model

    return export


@pytest.fixture(scope="session")
def export_other():
    """Writes a model of five features and no annotators."""

    def export(path):
        export_model(CrowdModel(FeatureClassifier(NUM_FEATURES + 1, len(CLASSES))), path, classes=CLASSES)

    return export


@pytest.fixture(scope="session")
def pets(tmp_path_factory, export_version):
    """The served folder with versions 1 and 2, and their models."""
    folder = tmp_path_factory.mktemp("pets")
    models = {version: export_version(folder / str(version), seed=version) for version in (1, 2)}
    time.sleep(SETTLE_SECONDS)  # files at rest: every server of this folder begins with version 2
    return SimpleNamespace(folder=folder, models=models, classes=CLASSES, annotators=ANNOTATORS)


@pytest.fixture(scope="session")
def server(pets):
    with serving(pets.folder, labels={"stable": 1}, request_bytes=250_000) as running:
        # where the machine has other work, version 2 may still come to rest when version 1 is served
        with Client(running.url, model="pets") as waiting:
            wait_until(lambda: waiting.metadata()["version"] == 2)
        yield running


@pytest.fixture(scope="session")
def channel(server):
    with channel_to(server) as opened:
        yield opened


@pytest.fixture(scope="session")
def stub(channel):
    return prediction_service_pb2_grpc.PredictionServiceStub(channel)


@pytest.fixture(params=["rest", "grpc"])
def client(request, server):
    with Client(server.url if request.param == "rest" else server.grpc_url, model=server.model) as connected:
        yield connected


@pytest.fixture
def held(monkeypatch):
    """Every prediction waits for `release`; `arrived` is set when one is under way."""

    class Held:
        arrived = threading.Event()
        release = threading.Event()
        calls = ended = 0

    predict = Signature.__call__

    def slow(self, inputs, limits=None):
        Held.calls += 1
        Held.arrived.set()
        assert Held.release.wait(30)
        Held.ended += 1
        return predict(self, inputs, limits)

    def hold():
        Held.calls = Held.ended = 0
        Held.arrived.clear()
        Held.release.clear()
        monkeypatch.setattr(Signature, "__call__", slow)

    Held.hold = staticmethod(hold)
    yield Held
    Held.release.set()
