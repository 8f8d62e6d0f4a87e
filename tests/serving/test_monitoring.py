"""Prometheus metrics, and the pages that say whether a server answers."""

import json
import os

import httpx
import pytest

from crowdzoo.errors import ServingError
from crowdzoo.serving import Client, Server

PATH = "/monitoring/prometheus/metrics"


@pytest.fixture(scope="module")
def watched(pets):
    with Server(pets.folder, name="pets", rest_port=0, grpc_port=0) as running:
        running.url = f"http://127.0.0.1:{running.rest_port}"
        running.grpc_url = f"grpc://127.0.0.1:{running.grpc_port}"
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
    assert not any("strange-name" in key for key in page)  # clients cannot make metrics


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


def test_the_metrics_have_the_time_and_the_drift_of_the_version_that_answers(tmp_path, export_version):
    def gauges():
        return {key: value for key, value in metrics(server).items() if key.startswith("crowdzoo_")}

    for version, anomalies in ((1, []), (2, ["a: differs", "b: differs"])):
        export_version(tmp_path / str(version))
        (tmp_path / str(version) / "assets.extra" / "drift").mkdir()
        content = json.dumps({"action": "warn", "anomalies": anomalies})
        (tmp_path / str(version) / "assets.extra" / "drift" / "anomalies.json").write_text(content)
    os.utime(tmp_path / "2", (0, 1764147600))
    with Server(tmp_path, name="pets", rest_port=0, grpc_port=0, labels={"stable": 1}) as server:
        server.url = f"http://127.0.0.1:{server.rest_port}"
        assert gauges() == {
            'crowdzoo_model_written_timestamp_seconds{model_name="pets",version="2"}': 1764147600,
            'crowdzoo_drift_anomalies{model_name="pets",version="2",data="training"}': 2,
        }


def test_a_server_without_a_version_has_no_gauges(tmp_path):
    with Server(tmp_path, name="later", rest_port=0, grpc_port=0, wait=True) as server:
        server.url = f"http://127.0.0.1:{server.rest_port}"
        assert not any(key.startswith("crowdzoo_") for key in metrics(server))
