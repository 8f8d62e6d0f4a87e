"""Requests of several clients in one call of the graph."""

import inspect
import threading
import time

import numpy as np
import pytest

from crowdzoo.commands import main as cli
from crowdzoo.errors import ConfigError, ServingError
from crowdzoo.serving import BatchingSettings, Client, Server
from crowdzoo.serving import batcher as batcher_module
from crowdzoo.serving.batcher import Batcher
from crowdzoo.serving.batching_settings import read_batching_settings
from crowdzoo.serving.loaded_model import LoadedModel
from crowdzoo.serving.request_error import RequestError
from crowdzoo.serving.signature import Signature


class Graph:
    """Doubles x; counts its calls, which wait until they may go on."""

    def __init__(self):
        self.sizes = []
        self.arrived = threading.Event()
        self.go = threading.Event()

    def __call__(self, inputs):
        self.sizes.append(len(inputs["x"]))
        self.arrived.set()
        assert self.go.wait(30)
        if (inputs["x"] < 0).any():
            raise RequestError(f"negative: {inputs['x'][inputs['x'] < 0]}")
        return {"y": 2 * inputs["x"]}


@pytest.fixture
def batches(monkeypatch):
    """All batches that are made."""
    made = []

    class Recorded(batcher_module._Batch):
        def __init__(self):
            super().__init__()
            made.append(self)

    monkeypatch.setattr(batcher_module, "_Batch", Recorded)
    return made


def until(condition):
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


def run_all(batches, graph, *parts, **settings):
    """Asks with each part in a thread of its own, one after another, before the first is answered.

    Returns what each got.
    """
    got = [None] * len(parts)
    batcher = Batcher(BatchingSettings(num_batch_threads=1, **settings))

    def ask(i, part):
        try:
            got[i] = batcher.run("key", graph, {"x": part})["y"].tolist()
        except RequestError as error:
            got[i] = error.reason

    threads = [threading.Thread(target=ask, args=pair) for pair in enumerate(parts)]
    arrived = 0
    for thread, part in zip(threads, parts, strict=True):
        thread.start()
        arrived += len(part)
        alone = settings.get("max_batch_size", 1000)  # such requests make no batch
        until(lambda: sum(one.rows for one in batches) + sum(n for n in graph.sizes if n >= alone) == arrived)  # noqa: B023  called at once
        assert graph.arrived.wait(30)  # the first is computed while the others come
    graph.go.set()
    for thread in threads:
        thread.join(30)
    return got


def parts(*sizes):
    return [np.arange(size) + 10 * i for i, size in enumerate(sizes)]


def test_requests_that_come_while_the_threads_are_busy_are_computed_together(batches):
    graph = Graph()
    asked = parts(2, 1, 3, 2)
    got = run_all(batches, graph, *asked)
    assert got == [(2 * part).tolist() for part in asked]
    assert graph.sizes == [2, 6]


def test_no_batch_is_larger_than_asked_for(batches):
    graph = Graph()
    asked = parts(1, 3, 2, 2, 5, 4)
    got = run_all(batches, graph, *asked, max_batch_size=4)
    assert got == [(2 * part).tolist() for part in asked]
    # what is as long as a batch, or longer, is computed at once, by itself
    assert (graph.sizes[:3], sorted(graph.sizes[3:])) == ([1, 5, 4], [3, 4])


def test_a_wrong_request_spoils_no_other(batches):
    graph = Graph()
    got = run_all(batches, graph, np.array([1]), np.array([2]), np.array([-3]), np.array([4]))
    assert got == [[2], [4], "negative: [-3]", [8]]


def test_requests_of_other_shapes_are_not_joined():
    graph = Graph()
    graph.go.set()
    batcher = Batcher(BatchingSettings(batch_timeout_micros=200_000))
    threads = [threading.Thread(target=batcher.run, args=(key, graph, {"x": np.ones((2, key))})) for key in (3, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert graph.sizes == [2, 2]


def test_a_batch_waits_for_its_timeout_unless_it_is_full():
    graph = Graph()
    graph.go.set()
    batcher = Batcher(BatchingSettings(batch_timeout_micros=10_000_000, max_batch_size=2))
    got = []
    threads = [threading.Thread(target=lambda: got.append(batcher.run("k", graph, {"x": np.ones(1)}))) for _ in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(8)
    assert not any(thread.is_alive() for thread in threads)
    assert graph.sizes == [2]


def test_too_many_batches_that_wait_are_refused():
    graph = Graph()
    batcher = Batcher(BatchingSettings(num_batch_threads=1, max_enqueued_batches=1))
    threads = [
        threading.Thread(target=batcher.run, args=(key, graph, {"x": np.ones(1)})) for key in ("computed", "waits")
    ]
    threads[0].start()
    assert graph.arrived.wait(30)
    threads[1].start()
    until(lambda: batcher._enqueued)
    with pytest.raises(RequestError, match="too many batches wait") as caught:
        batcher.run("third", graph, {"x": np.ones(1)})
    assert caught.value.http_status == 503
    graph.go.set()
    for thread in threads:
        thread.join()
    assert batcher._enqueued == 0


@pytest.fixture(scope="module")
def batching(pets):
    settings = BatchingSettings(max_batch_size=16, batch_timeout_micros=20_000, num_batch_threads=1)
    with Server(pets.folder, name="pets", rest_port=0, grpc_port=0, batching=settings) as running:
        running.urls = (f"http://127.0.0.1:{running.rest_port}", f"grpc://127.0.0.1:{running.grpc_port}")
        yield running


def test_many_clients_get_the_answers_that_they_get_alone(batching, pets, instances, monkeypatch):
    """Also those that ask as another annotator, and those whose annotator is unknown."""
    sizes = []
    run = Signature._run

    def counted(self, inputs):
        sizes.append(len(inputs["instances"]))
        return run(self, inputs)

    monkeypatch.setattr(Signature, "_run", counted)
    expected = pets.models[2].predict(instances, verbose=0)
    wrong = []

    def ask(row, url):
        with Client(url, model="pets") as client:
            alone = client.predict(instances[row : row + 1], signature="annotators", annotator="bob")["probabilities"]
            for _ in range(5):
                got = client.predict(instances[row : row + 1])["probabilities"]
                again = client.predict(instances[row : row + 1], signature="annotators", annotator="bob")[
                    "probabilities"
                ]
                if not np.allclose(got, expected[row], atol=1e-6) or not np.allclose(again, alone, atol=1e-6):
                    wrong.append((row, got))
                try:
                    client.predict(instances[row : row + 1], signature="annotators", annotator=f"nobody {row}")
                    wrong.append("no error")
                except ServingError as error:
                    if f"nobody {row}" not in str(error):
                        wrong.append(str(error))

    threads = [threading.Thread(target=ask, args=(row, url)) for row in range(6) for url in batching.urls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert max(sizes) > 1


def test_models_of_others_are_not_joined(pets):
    """What others export may mix rows."""
    model = LoadedModel(pets.folder / "1", 1)
    assert all(signature._joins for signature in model.signatures.values())
    function = model._loaded.signatures["serving_default"]
    assert not Signature("x", function)._joins


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", BatchingSettings()),
        (
            "max_batch_size { value: 32 } batch_timeout_micros { value: 5 } num_batch_threads { value: 3 }\n"
            'max_enqueued_batches { value: 7 } thread_pool_name { value: "x" }',
            BatchingSettings(32, 5, 7, 3),
        ),
    ],
)  # fmt: skip
def test_parameters_are_read_as_tf_serving_writes_them(tmp_path, text, expected):
    (tmp_path / "batching.config").write_text(text)
    assert read_batching_settings(tmp_path / "batching.config") == expected


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("max_batch_size { value: 0 }", "batching.config: max_batch_size: must be from 1 to"),
        ("batch_timeout_micros { value: -1 }", "batching.config: batch_timeout_micros: must be from 0 to"),
        ("num_batch_threads { value: 99999999999 }", "num_batch_threads: must be from 1 to"),
        ("allowed_batch_sizes: 4", "are not followed here"),
        ("pad_variable_length_inputs: true", "are not followed here"),
        ("max_batch: 4", "line 1, column 1: not a BatchingParameters"),
        ("max_batch_size: 4", "line 1, column 17: not a BatchingParameters"),
    ],
)
def test_parameters_that_cannot_be_followed_are_refused(tmp_path, text, says):
    (tmp_path / "batching.config").write_text(text)
    with pytest.raises(ConfigError, match=says):
        read_batching_settings(tmp_path / "batching.config")


def test_each_option_of_the_command_reaches_the_server(tmp_path, monkeypatch):
    (tmp_path / "batching").write_text("max_batch_size { value: 4 }")
    (tmp_path / "monitoring").write_text("prometheus_config { enable: true }")
    given = {}
    monkeypatch.setattr("crowdzoo.serving.server.serve", lambda *args, **settings: given.update(settings))
    line = f"serve --config m --batching-parameters {tmp_path}/batching --monitoring-config {tmp_path}/monitoring"
    line += " --request-log - --tls-certificate c --tls-key k --cors https://a --cors https://b --allow-reload"
    assert cli.main(line.split()) == 0
    assert given["batching"] == BatchingSettings(max_batch_size=4)
    assert given["metrics_path"] == "/monitoring/prometheus/metrics"
    assert [str(given[name]) for name in ("config", "tls_certificate", "tls_key", "request_log")] == [
        "m",
        "c",
        "k",
        "-",
    ]
    assert (given["cors"], given["allow_reload"]) == (["https://a", "https://b"], True)
    assert given.keys() <= inspect.signature(Server).parameters.keys()
