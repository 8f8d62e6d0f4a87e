"""The log of requests: what is in it, that it is bounded, and that no request waits for it or fails because of it."""

import json
import logging
import os
import stat
import threading

import numpy as np
import pytest
from running_server import rest, serving

from crowdzoo.commands import main as cli
from crowdzoo.errors import ServingError
from crowdzoo.serving import Client, Server, request_log
from crowdzoo.serving.limits import MIB
from crowdzoo.serving.request_log import RequestLog


class OfOneInput:
    """Stands in for a loaded model whose `serving_default` takes `instances`."""

    inputs = ("instances",)

    def signature(self, name):
        return self


def logged(folder):
    file = folder / "pets.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


@pytest.fixture
def server_that_logs(pets, tmp_path):
    folder = tmp_path / "requests"
    with serving(pets.folder, log_requests=folder, log_share=1.0) as running:
        running.folder = folder
        yield running


def test_instances_of_both_protocols_are_logged_and_nothing_else_of_a_request(server_that_logs, pets, instances):
    for url in (server_that_logs.url, server_that_logs.grpc_url):
        with Client(url, model="pets") as client:
            client.predict(instances)
            client.predict(instances[:1], signature="annotators", annotator=pets.annotators[0])
            with pytest.raises(ServingError):
                client.predict(instances[:, :2])
    server_that_logs.stop()
    lines = logged(server_that_logs.folder)
    assert {tuple(line) for line in lines} == {("instances",)}
    values = np.array([line["instances"] for line in lines], np.float32)
    expected = np.concatenate([instances, instances[:1]] * 2)
    np.testing.assert_array_equal(values[np.lexsort(values.T)], expected[np.lexsort(expected.T)])
    mode = (server_that_logs.folder / "pets.jsonl").stat().st_mode
    assert stat.S_IMODE(mode) == 0o600


def test_without_the_option_nothing_is_logged(server, pets, instances, here):
    with Client(server.url, model="pets") as client:
        client.predict(instances)
    assert os.listdir() == []


def test_a_full_disk_is_logged_once_and_requests_are_answered(server_that_logs, instances, caplog):
    (server_that_logs.folder / "pets.jsonl").symlink_to("/dev/full")
    with caplog.at_level(logging.WARNING, "crowdzoo.serving"), Client(server_that_logs.url, model="pets") as client:
        for _ in range(3):
            assert len(client.predict(instances)["class"]) == len(instances)
        server_that_logs.stop()
    complaints = [record.message for record in caplog.records if "instances are not logged" in record.message]
    assert len(complaints) == 1
    assert "No space left on device" in complaints[0]


def test_requests_are_answered_while_the_disk_hangs_and_only_so_many_wait(server_that_logs, instances, monkeypatch):
    release, written = threading.Event(), []

    def hang(log, name, columns):
        release.wait(30)
        written.append(name)

    monkeypatch.setattr(RequestLog, "_write", hang)
    with Client(server_that_logs.url, model="pets") as client:
        for _ in range(70):
            client.predict(instances)
    release.set()
    server_that_logs.stop()
    assert len(written) in (64, 65)  # one may be at the disk when the others come


def test_an_error_in_the_log_itself_fails_no_request(server_that_logs, instances, monkeypatch, caplog):
    monkeypatch.setattr(request_log, "_size", None)
    with caplog.at_level(logging.WARNING, "crowdzoo.serving"), Client(server_that_logs.url, model="pets") as client:
        assert len(client.predict(instances)["class"]) == len(instances)
    assert "'NoneType' object is not callable" in caplog.text


def log_of(folder, *batches, share=1.0, seed=None):
    """Logs instances as fast as they come; so few that none is left out."""
    log = RequestLog(folder, share, seed)
    for instances in batches:
        log.add("pets", OfOneInput(), {"instances": instances})
    log.stop()
    return logged(folder)


def test_a_share_of_the_instances_is_logged_the_same_with_the_same_seed(tmp_path):
    numbers = {}
    for place, seed in (("a", 1), ("b", 1), ("c", 2)):
        lines = log_of(tmp_path / place, *np.arange(10_000).reshape(50, 200), share=0.1, seed=seed)
        numbers[place] = [line["instances"] for line in lines]
    assert numbers["a"] == numbers["b"] != numbers["c"]
    # 10,000 draws of 0.1: mean 1,000 and standard deviation 30
    assert 850 < len(numbers["a"]) < 1150
    assert len(set(numbers["a"])) == len(numbers["a"]), "no instance twice"


def test_a_model_takes_two_files_at_most(tmp_path):
    for name in ("pets.1.jsonl", "pets.jsonl"):
        (tmp_path / name).touch()
        os.truncate(tmp_path / name, 32 * MIB - 400)
    log_of(tmp_path, *[np.arange(10)] * 50)  # 10 lines of 16 bytes each
    assert sorted(os.listdir(tmp_path)) == ["pets.1.jsonl", "pets.jsonl"]
    assert (tmp_path / "pets.1.jsonl").stat().st_size == 32 * MIB - 80
    assert len(logged(tmp_path)) == 480


def test_of_strings_only_texts_are_logged_and_nothing_large(tmp_path):
    texts = np.array(["żółw".encode(), b"\xff\xd8\xff\xe0"], object)
    large = np.array([b"x" * 2_000_000], object)
    found = log_of(tmp_path, texts, large, np.array([[np.nan, 1.5]], np.float32))
    assert found == [{"instances": "żółw"}, {"instances": [None, 1.5]}]


@pytest.mark.parametrize(("share", "place", "says"), [
    (1.5, "logs", "log_share: must be a number from 0 to 1, got 1.5"),
    (0.5, "file", "is not a folder that can be written"),
])  # fmt: skip
def test_settings_that_cannot_be_are_refused_before_the_server_starts(pets, tmp_path, share, place, says):
    (tmp_path / "file").touch()
    with pytest.raises(ServingError, match=says):
        Server(pets.folder, log_requests=tmp_path / place, log_share=share)


def test_the_command_names_its_option_where_the_log_cannot_be_written(pets, tmp_path, capsys):
    file = tmp_path / "file"
    file.touch()
    words = ["serve", str(pets.folder), "--rest-port", "0", "--grpc-port", "0", "--log-requests", str(file)]
    assert cli.main(words) == ServingError.exit_code
    assert f"--log-requests: {file} is not a folder that can be written" in capsys.readouterr().err


def test_the_metrics_have_the_anomalies_of_the_version_that_answers(server_that_logs, pets):
    def gauges():
        text = rest(server_that_logs, "/monitoring/prometheus/metrics").text
        return dict(line.rsplit(" ", 1) for line in text.splitlines() if line.startswith("crowdzoo_"))

    about = 'model_name="pets",version="2"'
    written = (pets.folder / "2").stat().st_mtime
    assert gauges() == {f"crowdzoo_model_written_timestamp_seconds{{{about}}}": f"{written:.0f}"}
    for version, anomalies in ((1, ["a"]), (2, ["a: differs", "b: differs"])):
        file = server_that_logs.folder / f"pets.{version}.skew.json"
        file.write_text(json.dumps({"anomalies": anomalies}))
    assert gauges()[f'crowdzoo_drift_anomalies{{{about},data="requests"}}'] == "2"
