"""The server as a process: start, stop, ports, and requests at the same time."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import threading

import httpx
import numpy as np
import pytest
from running_server import PREDICT, connections, rest, serving, wait_until

from crowdzoo.errors import CrowdzooError, ServingError
from crowdzoo.serving import Client, Server, curl_example, serve
from crowdzoo.serving.signature import Signature

needs_curl = pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl on this machine")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_serve_prints_where_it_listens_and_stops_at_a_signal(pets, number, instances, capsys):
    def ask_and_stop(server):
        with Client(f"http://127.0.0.1:{server.rest_port}", model="pets") as client:
            expected = pets.models[2].predict(instances, verbose=0)
            np.testing.assert_allclose(client.predict(instances)["probabilities"], expected, atol=1e-6)
        os.kill(os.getpid(), number)

    serve(pets.folder, name="pets", rest_port=0, grpc_port=0, on_ready=ask_and_stop)
    printed = capsys.readouterr()
    assert re.search(r"^try +curl .*\nCtrl-C stops\nstopped\n\Z", printed.out, re.MULTILINE)
    assert "version 2 loaded" in printed.err


def is_refused(client):
    try:
        client.status()
    except ServingError:
        return True
    return False


@pytest.mark.parametrize("protocol", ["rest", "grpc"])
def test_a_request_under_way_is_finished_when_the_server_stops(pets, instances, held, protocol):
    answers = []
    with (
        serving(pets.folder) as server,
        Client(server.url if protocol == "rest" else server.grpc_url, model="pets") as client,
        Client(client.url, model="pets", timeout=5) as late,
    ):
        client.metadata()
        held.hold()
        asking = threading.Thread(target=lambda: answers.append(client.predict(instances)))
        asking.start()
        assert held.arrived.wait(30)
        stopping = threading.Thread(target=server.stop)
        stopping.start()
        wait_until(lambda: is_refused(late))  # no new requests while the old one is finished
        assert stopping.is_alive()
        held.release.set()
        asking.join(30)
        stopping.join(30)
    assert not stopping.is_alive()
    np.testing.assert_allclose(answers[0]["probabilities"], pets.models[2].predict(instances, verbose=0), atol=1e-6)


def test_many_clients_at_once_get_their_own_answers(server, pets, instances):
    expected = pets.models[2].predict(instances, verbose=0)
    wrong = []

    def ask(row, url):
        with Client(url, model="pets") as client:
            for _ in range(10):
                got = client.predict(instances[row : row + 1])["probabilities"]
                if not np.allclose(got, expected[row : row + 1], atol=1e-6):
                    wrong.append((row, got))

    threads = [
        threading.Thread(target=ask, args=(row, url)) for row in range(6) for url in (server.url, server.grpc_url)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_client_that_goes_away_does_no_harm(server, instances):
    for sent in (
        b"POST /v1/models/pets:predict HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{",
        b"\x00\xff\r\n\r\n",
    ):
        with socket.create_connection(("127.0.0.1", server.rest_port)) as connection:
            connection.sendall(sent)
    assert rest(server, "/v1/models/pets").status_code == 200


def test_answers_on_a_kept_connection_are_sent_without_delay(server, instances):
    """Else the second part of each answer waits for the client's delayed acknowledgement, 40 ms."""
    body = {"instances": instances[:1].tolist()}
    with httpx.Client(trust_env=False) as client:
        assert client.post(f"{server.url}/v1/models/pets:predict", json=body).status_code == 200
        held = [protocol.transport.get_extra_info("socket") for protocol in connections(server)]
        assert held
        for connection in held:
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_an_unexpected_failure_is_an_internal_error_and_the_server_stays_up(server, instances, monkeypatch):
    def fails(self, inputs, limits=None):
        raise ZeroDivisionError("not foreseen")

    request = {"instances": instances.tolist()}
    with monkeypatch.context() as patched:
        patched.setattr(Signature, "__call__", fails)
        answer = rest(server, PREDICT, request)
        assert answer.status_code == 500
        assert answer.json() == {"error": "internal error, see the log of the server"}
        with (
            Client(server.grpc_url, model="pets") as client,
            pytest.raises(ServingError, match="INTERNAL: internal error"),
        ):
            client.predict(instances)
    assert rest(server, PREDICT, request).status_code == 200


@pytest.mark.parametrize("option", ["rest_port", "grpc_port"])
def test_a_port_in_use_is_an_error_with_a_way_out(pets, option):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        ports = {"rest_port": 0, "grpc_port": 0, option: taken.getsockname()[1]}
        with pytest.raises(ServingError, match=f"{option}: cannot listen on port .* --{option.replace('_', '-')} 0"):
            Server(pets.folder, name="pets", **ports).start()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": "a/b"}, "name: 'a/b' cannot be in a URL"),
        ({"poll_seconds": 0}, "poll_seconds: must be more than 0"),
        ({"limits": None, "poll_seconds": float("nan")}, "poll_seconds"),
        ({"host": "no.such.host.invalid"}, "host: 'no.such.host.invalid'"),
    ],
)
def test_settings_that_cannot_be_are_refused(pets, options, message):
    with pytest.raises(CrowdzooError, match=message):
        Server(pets.folder, rest_port=0, grpc_port=0, **options).start()


@needs_curl
@pytest.mark.parametrize("signature", ["serving_default", "annotators"])
@pytest.mark.parametrize("inline", [True, False])
def test_the_curl_line_works_as_pasted(server, pets, instances, signature, inline, monkeypatch):
    if not inline:  # as for an instance of hundreds of features
        monkeypatch.setattr("crowdzoo.serving.curl.INLINE_CHARACTERS", 10)
    line = curl_example(pets.folder, name="pets", port=server.rest_port, signature=signature)
    assert ("-d @/" in line) != inline
    answer = subprocess.run(line + " -sS --noproxy '*'", shell=True, capture_output=True, text=True, check=True)
    named = {"annotator": "ann"} if signature == "annotators" else {}
    with Client(server.url, model="pets") as client:
        expected = client.predict(instances[:1], signature=signature, **named)
    row = json.loads(answer.stdout)["predictions"][0]
    np.testing.assert_array_equal(np.array(row["probabilities"], dtype="float32"), expected["probabilities"][0])
    assert row["class"] == expected["class"][0]
