"""Failures that a Label Studio server cannot be made to produce, from a tiny server of the test's own."""

import gzip
import json
import logging
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from crowdzoo.errors import ConfigError, CrowdzooError
from crowdzoo.label_studio import Client, LabelStudioError, Project, client

TOKEN = "aaaa.secret-refresh-token.bbbb"
REFRESH = "/api/token/refresh"


class Script:
    """Responses in order, the last one for all later requests: (status, body, headers), or None to hang up."""

    def __init__(self):
        self.responses, self.seen = [], []
        self.access = iter(f"access{n}" for n in range(99))
        self.refresh_status = 200
        self.clients = []

    def client(self, token, **settings):
        self.clients.append(Client(self.url, token, **settings))
        return self.clients[-1]

    def answer(self, method, path, headers, body):
        self.seen.append((method, path, headers.get("Authorization")))
        if path.startswith(REFRESH):
            return self.refresh_status, {"access": next(self.access), "got": json.loads(body)["refresh"]}, {}
        return self.responses.pop(0) if len(self.responses) > 1 else self.responses[0]

    @property
    def sent(self):
        """Requests other than the exchange of tokens."""
        return [each for each in self.seen if not each[1].startswith(REFRESH)]


@pytest.fixture
def script(monkeypatch):
    """What the server answers; its address is `script.url`, and the waits of clients are `script.waits`, at once."""
    script = Script()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do(self):
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            response = script.answer(self.command, self.path, self.headers, body)
            if response is None:
                self.close_connection = True
                return
            status, said, headers = response
            content = said if isinstance(said, bytes) else json.dumps(said).encode()
            self.send_response(status)
            for name, value in {"Content-Length": str(len(content)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PATCH = do_DELETE = do  # noqa: N815

        def log_message(self, *arguments):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    script.url, script.waits, now = f"http://127.0.0.1:{server.server_port}", [], [0.0]

    class Clock:
        @staticmethod
        def sleep(seconds):
            script.waits.append(seconds)
            now[0] += seconds

        @staticmethod
        def monotonic():
            return now[0]

    script.pass_seconds = Clock.sleep
    monkeypatch.setattr(client, "time", Clock)
    yield script
    for each in script.clients:
        each.close()
    server.shutdown()
    thread.join()
    server.server_close()


def test_busy_and_failing_servers_are_asked_again_with_growing_waits(script):
    script.responses = [
        (503, {}, {}),
        (500, b"<html>", {}),
        None,
        (429, {}, {"Retry-After": "7"}),
        (200, {"id": 1}, {}),
    ]
    said = []
    assert script.client(TOKEN, on_wait=said.append).get("/api/projects/1") == {"id": 1}
    assert script.waits == [0.5, 1.0, 2.0, 7.0]
    assert "answered 503; trying again in 0.5 seconds" in said[0]
    assert "does not answer" in said[2]


def test_a_server_that_stays_away_is_an_error_with_its_last_reason(script):
    script.responses = [(502, {"detail": "bad gateway"}, {})]
    with pytest.raises(LabelStudioError, match="502 bad gateway") as caught:
        script.client(TOKEN, patience=100).get("/api/projects/1")
    assert caught.value.status == 502
    assert sum(script.waits) <= 100
    assert max(script.waits) == 30


def test_a_wait_longer_than_the_patience_is_not_begun(script):
    script.responses = [(429, {}, {"Retry-After": "86400"})]
    with pytest.raises(LabelStudioError, match="429"):
        script.client(TOKEN).get("/api/projects/1")
    assert script.waits == []


def test_a_post_whose_response_was_lost_is_not_repeated(script):
    script.responses = [None]
    with pytest.raises(LabelStudioError, match="does not answer"):
        script.client(TOKEN).post("/api/predictions", {"task": 1})
    assert len(script.sent) == 1


def test_nobody_listens():
    away = r"http://127\.0\.0\.1:9 does not answer.*Is the server running\?"
    with Client("http://127.0.0.1:9", TOKEN, patience=0) as one, pytest.raises(LabelStudioError, match=away):
        one.get("/api/projects/1")


def test_an_access_token_is_renewed_before_it_expires_and_when_it_is_refused(script):
    script.responses = [(200, {}, {}), (200, {}, {}), (401, {}, {}), (200, {}, {})]
    one = script.client(TOKEN)
    one.get("/a")
    script.pass_seconds(250)
    one.get("/b")
    one.get("/c")
    assert [(path, who) for _, path, who in script.sent] == [
        ("/a", "Bearer access0"), ("/b", "Bearer access1"), ("/c", "Bearer access1"), ("/c", "Bearer access2")
    ]  # fmt: skip


def test_a_token_that_is_not_exchanged_is_a_legacy_token(script):
    script.refresh_status, script.responses = 401, [(200, {}, {})]
    one = script.client("abc123")
    one.get("/a")
    script.pass_seconds(10_000)
    one.get("/b")
    assert [who for *_, who in script.sent] == ["Token abc123"] * 2
    assert len(script.seen) == 3


def test_a_refused_token_says_where_to_get_one(script):
    script.refresh_status, script.responses = 401, [(401, {"detail": "Invalid token."}, {})]
    with pytest.raises(ConfigError, match="personal access token"):
        script.client("abc123").get("/a")


@pytest.mark.parametrize("target", ["https://elsewhere.example/api", "/api/other/"])
def test_redirects_are_not_followed(script, target):
    script.responses = [(302, {}, {"Location": target}), (200, {}, {})]
    with pytest.raises(LabelStudioError, match=f"redirects to {target}"):
        script.client(TOKEN).get("/api")
    assert len(script.sent) == 1


@pytest.mark.parametrize("zipped", [False, True])
def test_a_response_that_is_too_large_is_refused(script, monkeypatch, zipped):
    monkeypatch.setattr(client, "MOST_BYTES", 5000)
    body = json.dumps(["x" * 6000]).encode()
    headers = {"Content-Encoding": "gzip"} if zipped else {}
    script.responses = [(200, gzip.compress(body) if zipped else body, headers)]
    with pytest.raises(LabelStudioError, match="more than 5,000 bytes"):
        script.client(TOKEN).get("/api")


@pytest.mark.parametrize(
    ("body", "headers", "reason"),
    [
        (b"<html>Welcome</html>", {}, "is not JSON.*Welcome.*Is this address Label Studio's"),
        (b"no gzip", {"Content-Encoding": "gzip"}, "cannot be decoded"),
    ],
)
def test_strange_responses_are_refused(script, body, headers, reason):
    script.responses = [(200, body, headers)]
    with pytest.raises(LabelStudioError, match=reason):
        script.client(TOKEN).get("/api")


def test_what_is_no_project_or_no_list_of_tasks_is_refused(script):
    with Project(script.url, 1, TOKEN) as project:
        for responses, reason in (
            ([(200, {"text": "a"}, {})], "project 1 is not a Label Studio project"),
            ([(200, {"title": "a", "label_config": ""}, {}), (200, {"tasks": "a"}, {})], "is not a list of tasks"),
            ([(200, {"title": "a", "label_config": ""}, {}), (200, {"tasks": [{"id": 1}]}, {})], "Update the server"),
        ):
            script.responses = responses
            with pytest.raises(LabelStudioError, match=reason):
                project.pull()


def test_what_is_deleted_already_is_no_error(script):
    script.responses = [(404, {}, {})]
    assert script.client(TOKEN).delete("/api/predictions/1") is None
    script.responses = [(204, b"", {})]
    assert script.client(TOKEN).delete("/api/predictions/1") is None


def test_the_token_is_in_no_message_log_or_repr(script, caplog):
    caplog.set_level(logging.DEBUG)
    one, messages = script.client(TOKEN), []
    echo = {"detail": f"refused {TOKEN} and access0"}
    for response in (
        (400, echo, {}), (200, f"<p>{TOKEN} access0".encode(), {}), (401, echo, {}),
        (302, {}, {"Location": f"/?token={TOKEN}"}),
    ):  # fmt: skip
        script.responses, logged = [response], caplog.text  # httpcore logs what a server sends in its headers
        with pytest.raises(CrowdzooError) as caught:
            one.get("/api")
        messages.append(str(caught.value))
    shown = "\n".join([*messages, repr(one), logged])
    assert "refused [token] and [token]" in shown
    assert logged
    assert "secret-refresh-token" not in shown
    assert "access0" not in shown
    assert "access1" not in shown


@pytest.mark.parametrize("url", ["ftp://host", "localhost:8080", "https://user:password@host", "https://"])
def test_other_addresses_are_refused_without_showing_them(url):
    with pytest.raises(ConfigError, match="address of Label Studio") as caught:
        Client(url, TOKEN)
    assert "password" not in str(caught.value)


@pytest.mark.parametrize("token", ["", " \n", "ein Schlüssel", "two\nlines"])
def test_a_text_that_cannot_be_a_token_is_refused(token):
    with pytest.raises(ConfigError, match="Copy it from Label Studio") as caught:
        Client("http://127.0.0.1", token)
    assert not token.strip() or token not in str(caught.value)


def test_proxies_of_the_environment_are_not_asked_about_this_machine(script, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("all_proxy", "http://127.0.0.1:9")
    script.responses = [(200, {"id": 1}, {})]
    assert script.client(TOKEN).get("/api") == {"id": 1}
