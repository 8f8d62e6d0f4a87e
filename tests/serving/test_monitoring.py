"""Prometheus metrics, and the pages that say whether a server answers."""

import json
import os

import pytest
from running_server import rest, serving

from crowdzoo.errors import ServingError
from crowdzoo.serving import Client


@pytest.fixture(scope="module")
def watched(pets):
    with serving(pets.folder) as running:
        yield running


def metrics(server):
    """Name with labels -> value."""
    answer = rest(server, "/monitoring/prometheus/metrics")
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
    for status, count in (("OK", 3), ("INVALID_ARGUMENT", 2)):
        assert page[f':tensorflow:serving:request_count{{model_name="pets",status="{status}"}}'] == count
    for entrypoint, count in (("REST", 1), ("GRPC", 2)):
        labels = f'model_name="pets",API="predict",entrypoint="{entrypoint}"'
        assert page[f":tensorflow:serving:request_latency_count{{{labels}}}"] == count
        assert page[f':tensorflow:serving:request_latency_bucket{{{labels},le="+Inf"}}'] == count
        assert f':tensorflow:serving:request_latency_bucket{{{labels},le="708235"}}' in page
        assert page[f":tensorflow:serving:request_latency_sum{{{labels}}}"] > 0
    assert not any("strange-name" in key for key in page)  # clients cannot make metrics


def test_a_server_says_that_it_lives_and_that_its_models_answer_and_has_no_gauges_without_a_version(server, tmp_path):
    for path in ("/healthz", "/readyz"):
        answer = rest(server, path)
        assert (answer.status_code, answer.text) == (200, "ok\n")
        assert rest(server, path, b"").status_code == 405
    with serving(tmp_path, "later", wait=True) as waiting:
        assert rest(waiting, "/healthz").status_code == 200
        answer = rest(waiting, "/readyz")
        assert (answer.status_code, answer.json()) == (503, {"error": "no version yet of 'later'"})
        assert not any(key.startswith("crowdzoo_") for key in metrics(waiting))


def test_the_metrics_have_the_time_and_the_drift_of_the_version_that_answers(tmp_path, export_version):
    def gauges():
        return {key: value for key, value in metrics(server).items() if key.startswith("crowdzoo_")}

    for version, anomalies in ((1, []), (2, ["a: differs", "b: differs"])):
        export_version(tmp_path / str(version))
        (tmp_path / str(version) / "assets.extra" / "drift").mkdir()
        content = json.dumps({"action": "warn", "anomalies": anomalies})
        (tmp_path / str(version) / "assets.extra" / "drift" / "anomalies.json").write_text(content)
    os.utime(tmp_path / "2", (0, 1764147600))
    with serving(tmp_path, labels={"stable": 1}) as server:
        about = 'model_name="pets",version="2"'
        assert gauges() == {
            f"crowdzoo_model_written_timestamp_seconds{{{about}}}": 1764147600,
            f'crowdzoo_drift_anomalies{{{about},data="training"}}': 2,
        }
