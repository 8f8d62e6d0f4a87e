"""Prometheus metrics, the log of requests, and the pages that say whether a server answers."""

import json
import re
import time

import httpx
import numpy as np
import pytest

from crowdzoo.errors import ConfigError, ServingError
from crowdzoo.serving import Client, Server
from crowdzoo.serving.metrics import Metrics
from crowdzoo.serving.monitoring_config import metrics_path
from crowdzoo.serving.request_log import RequestLog
from crowdzoo.serving.request_record import RequestRecord

PATH = "/monitoring/prometheus/metrics"


@pytest.fixture(scope="module")
def watched(pets, tmp_path_factory):
    log = tmp_path_factory.mktemp("log") / "requests.jsonl"
    with Server(pets.folder, name="pets", rest_port=0, grpc_port=0, metrics_path=PATH, request_log=log) as running:
        running.url = f"http://127.0.0.1:{running.rest_port}"
        running.grpc_url = f"grpc://127.0.0.1:{running.grpc_port}"
        running.log = log
        yield running


def get(server, path):
    return httpx.get(server.url + path, trust_env=False)


def metrics(server):
    """Name with labels -> value."""
    answer = get(server, PATH)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain")
    lines = [line for line in answer.text.splitlines() if not line.startswith("#")]
    return {key: float(value) for key, value in (line.rsplit(" ", 1) for line in lines)}


def lines(server, count, start=0):
    """That many lines of the log after `start`, which are written a moment after the answers."""
    end = time.monotonic() + 20
    while len(found := server.log.read_text().splitlines()[start:]) < count and time.monotonic() < end:
        time.sleep(0.02)
    return [json.loads(line) for line in found]


def test_requests_are_counted_under_tf_servings_names(watched, instances):
    """Names, labels and the end of a bucket as in a page of TF Serving 2.x: API="predict", entrypoint, le="708235"."""
    with Client(watched.url, model="pets") as rest, Client(watched.grpc_url, model="pets") as grpc:
        rest.predict(instances)
        grpc.predict(instances)
        grpc.predict(instances)
        for wrong in (rest, grpc):
            with pytest.raises(ServingError):
                wrong.predict(instances, signature="serving_default", annotator="x")
        with pytest.raises(ServingError), Client(watched.url, model="strange-name") as other:
            other.predict(instances)
    page = metrics(watched)
    assert page[':tensorflow:serving:request_count{model_name="pets",status="OK"}'] == 3
    assert page[':tensorflow:serving:request_count{model_name="pets",status="INVALID_ARGUMENT"}'] == 2
    for entrypoint, count in (("REST", 1), ("GRPC", 2)):
        labels = f'model_name="pets",API="predict",entrypoint="{entrypoint}"'
        assert page[f":tensorflow:serving:request_latency_count{{{labels}}}"] == count
        assert page[f':tensorflow:serving:request_latency_bucket{{{labels},le="+Inf"}}'] == count
        assert f':tensorflow:serving:request_latency_bucket{{{labels},le="708235"}}' in page
        assert page[f":tensorflow:serving:request_latency_sum{{{labels}}}"] > 0
    assert page[':tensorflow:serving:runtime_latency_count{model_name="pets",API="Predict",runtime="TF2"}'] == 3
    assert not any("strange-name" in key for key in page)  # clients cannot make metrics


def test_a_histogram_counts_what_is_below_each_end():
    counted = Metrics()
    for seconds in (5e-6, 10e-6, 11e-6, 1e9):
        counted.add(RequestRecord("REST", "predict", "m", model_seconds=None), seconds)
    found = re.findall(r'request_latency_bucket\{.*le="([^"]+)"\} (\d+)', counted.page())
    assert [end for end, _ in found[:3]] == ["10", "18", "32.4"]  # 10 * 1.8^i
    assert (len(found), found[-1][0]) == (34, "+Inf")
    assert [int(count) for _, count in found[:2]] == [1, 3]
    assert found[-2][1] == "3"
    assert found[-1][1] == "4"


def test_examples_are_counted_for_classify_and_regress():
    counted = Metrics()
    for rows in (1, 5):
        counted.add(RequestRecord("REST", "classify", 'a"\\\n', rows=rows), 0.1)
    page = counted.page()
    assert ':tensorflow:serving:request_example_count_total{model="a\\"\\\\\\n"} 6' in page
    assert ':tensorflow:serving:request_example_counts_bucket{model="a\\"\\\\\\n",le="4"} 1' in page
    assert ':tensorflow:serving:request_example_counts_bucket{model="a\\"\\\\\\n",le="8"} 2' in page


def test_there_are_no_metrics_unless_they_are_asked_for(server):
    answer = get(server, PATH)
    assert (answer.status_code, answer.headers["content-type"]) == (404, "application/json")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("prometheus_config { enable: true }", PATH),
        ('prometheus_config { enable: true path: "/metrics" }', "/metrics"),
        ("prometheus_config { path: '/metrics' }", None),
        ("", None),
    ],
)
def test_a_monitoring_config_says_where_the_metrics_are(tmp_path, text, expected):
    (tmp_path / "monitoring.config").write_text(text)
    assert metrics_path(tmp_path / "monitoring.config") == expected


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('prometheus_config { enable: true path: "metrics" }', "path 'metrics' must begin with '/'"),
        ("prometheus_config { enabled: true }", "line 1, column 21: not a MonitoringConfig in text format"),
    ],
)
def test_a_monitoring_config_that_cannot_be_is_refused(tmp_path, text, says):
    (tmp_path / "monitoring.config").write_text(text)
    with pytest.raises(ConfigError, match=says):
        metrics_path(tmp_path / "monitoring.config")


def test_each_request_gets_a_line_without_what_was_sent(watched, instances):
    start = len(watched.log.read_text().splitlines())
    secret = {"signature_name": "annotators", "inputs": {"instances": instances[:1].tolist(), "annotator": ["secret"]}}
    body = json.dumps(secret)
    answer = httpx.post(f"{watched.url}/v1/models/pets:predict", content=body, trust_env=False)
    assert answer.status_code == 400
    get(watched, "/v1/models/secret")
    get(watched, "/secret?secret=1")
    lines(watched, 3, start)
    with Client(watched.grpc_url, model="pets") as client:
        client.predict(instances)
    found = lines(watched, 5, start)  # the client asks for the metadata first
    assert [one["status"] for one in found] == ["INVALID_ARGUMENT", "NOT_FOUND", "NOT_FOUND", "OK", "OK"]
    wrong, _, other, metadata, predicted = found
    assert (wrong["model"], wrong["version"], wrong["signature"], wrong["rows"]) == ("pets", 2, "annotators", 1)
    assert (wrong["request_bytes"], wrong["answer_bytes"]) == (len(body), len(answer.content))
    assert (metadata["entrypoint"], metadata["api"], metadata["model"]) == ("GRPC", "metadata", "pets")
    assert (predicted["api"], predicted["rows"]) == ("predict", 6)
    assert 0 < predicted["model_milliseconds"] <= predicted["milliseconds"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", predicted["time"])
    assert "model" not in other
    assert "secret" not in watched.log.read_text()


def test_a_log_that_was_moved_away_begins_anew(tmp_path):
    log = RequestLog(tmp_path / "log")
    log.write(RequestRecord("REST"), 0.1)
    log._listener.stop()
    (tmp_path / "log").rename(tmp_path / "log.1")
    log._listener.start()
    log.write(RequestRecord("GRPC"), 0.1)
    log.close()
    assert json.loads((tmp_path / "log.1").read_text())["entrypoint"] == "REST"
    assert json.loads((tmp_path / "log").read_text())["entrypoint"] == "GRPC"


@pytest.mark.parametrize("where", ["folder", "missing/log", "\0", "gs://x/log"])
def test_a_log_that_cannot_be_written_is_refused_at_the_start(pets, tmp_path, where):
    (tmp_path / "folder").mkdir()
    path = where if ":" in where else str(tmp_path / where)
    with pytest.raises(ServingError, match=r"request log .* cannot be written"):
        Server(pets.folder, rest_port=0, grpc_port=0, request_log=path)


def test_a_log_that_fails_later_says_so_once_and_ends_no_request(tmp_path, monkeypatch, caplog):
    log = RequestLog(tmp_path / "log")

    def fails(record):
        raise OSError("no space left")

    monkeypatch.setattr(log._listener.handlers[0], "format", fails)
    for _ in range(3):
        log.write(RequestRecord("REST"), 0.1)
    log.close()
    assert sum("request log cannot be written: no space left" in record.message for record in caplog.records) == 1


def test_a_server_says_that_it_lives_and_that_its_models_answer(server, tmp_path):
    for path in ("/healthz", "/readyz"):
        answer = get(server, path)
        assert (answer.status_code, answer.text) == (200, "ok\n")
        assert httpx.post(server.url + path, trust_env=False).status_code == 405
    with Server(tmp_path, name="later", rest_port=0, grpc_port=0, wait=True) as waiting:
        waiting.url = f"http://127.0.0.1:{waiting.rest_port}"
        assert get(waiting, "/healthz").status_code == 200
        answer = get(waiting, "/readyz")
        assert (answer.status_code, answer.json()) == (503, {"error": "no version yet of 'later'"})


def test_answers_are_the_same_beside_metrics_and_log(watched, server, instances):
    for one in (watched, server):
        with Client(one.url, model="pets") as client:
            one.answer = client.predict(instances)["probabilities"]
    np.testing.assert_array_equal(watched.answer, server.answer)
