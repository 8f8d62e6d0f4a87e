"""What stands between a client and the server's answers: TLS, gzip, other origins, and who can reach it."""

import contextlib
import gzip
import json
import shutil
import socket
import ssl
import subprocess
import time

import httpx
import numpy as np
import pytest

from crowdzoo.commands.main import main
from crowdzoo.errors import ServingError
from crowdzoo.serving import Client, Limits, Server
from crowdzoo.serving.gzip_bodies import takes_gzip

PREDICT = "/v1/models/pets:predict"

# === TLS ===

needs_openssl = pytest.mark.skipif(shutil.which("openssl") is None, reason="there is no openssl on this machine")


def make_certificate(folder, name, *options):
    files = {"tls_certificate": folder / f"{name}.pem", "tls_key": folder / f"{name}.key"}
    subprocess.run(
        [
            "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-days", "2",
            "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost",
            "-keyout", files["tls_key"], "-out", files["tls_certificate"], *(options or ["-nodes"]),
        ],
        check=True, capture_output=True,
    )  # fmt: skip
    return files


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return make_certificate(tmp_path_factory.mktemp("tls"), "server")


@pytest.fixture(scope="module")
def secure(pets, files):
    limits = Limits(header_seconds=1.0, write_seconds=1.0)
    with Server(pets.folder, name="pets", rest_port=0, grpc_port=0, limits=limits, **files) as running:
        yield running


@needs_openssl
@pytest.mark.parametrize("scheme", ["https", "grpcs"])
def test_a_client_that_trusts_the_certificate_gets_its_answers(secure, files, pets, instances, scheme):
    port = secure.rest_port if scheme == "https" else secure.grpc_port
    with Client(f"{scheme}://127.0.0.1:{port}", model="pets", ca_file=files["tls_certificate"]) as client:
        got = client.predict(instances)["probabilities"]
        np.testing.assert_allclose(got, pets.models[2].predict(instances, verbose=0), atol=1e-6)
        many = np.tile(instances, (5000, 1))  # read and written in parts
        np.testing.assert_allclose(client.predict(many)["probabilities"][-6:], got, atol=1e-6)


@needs_openssl
def test_the_command_line_trusts_a_certificate_that_it_is_given(secure, files, instances, tmp_path, capsys):
    rows = [",".join(map(str, [number, *row])) for number, row in enumerate(instances.tolist())]
    (tmp_path / "x.csv").write_text("\n".join([",".join(["task", *"abcdefgh"[: instances.shape[1]]]), *rows]))
    words = ["predict", f"https://127.0.0.1:{secure.rest_port}", str(tmp_path / "x.csv"), "--name", "pets"]
    assert main([*words, "--ca-file", str(files["tls_certificate"])]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(instances) + 1
    assert main(words) != 0
    assert "does not answer" in capsys.readouterr().err
    words[1] = f"http://127.0.0.1:{secure.rest_port}"
    assert main([*words, "--ca-file", str(files["tls_certificate"])]) != 0
    assert "--ca-file is for a server with TLS" in capsys.readouterr().err


@needs_openssl
@pytest.mark.parametrize("scheme", ["https", "grpcs", "http", "grpc"])
def test_a_client_that_does_not_trust_it_or_speaks_plain_gets_none(secure, instances, scheme):
    port = secure.rest_port if scheme.startswith("http") else secure.grpc_port
    client = Client(f"{scheme}://127.0.0.1:{port}", model="pets", timeout=5)
    with client, pytest.raises(ServingError, match="does not answer"):
        client.status()


@needs_openssl
def test_a_client_that_does_not_finish_its_handshake_or_its_goodbye_is_closed(secure, files):
    silent = socket.create_connection(("127.0.0.1", secure.rest_port), timeout=20)
    with silent, contextlib.suppress(ConnectionError):
        assert silent.recv(1) == b""
    context = ssl.create_default_context(cafile=files["tls_certificate"])
    with socket.create_connection(("127.0.0.1", secure.rest_port)) as plain:
        connection = context.wrap_socket(plain, server_hostname="localhost", suppress_ragged_eofs=False)
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert connection.recv(1 << 16).startswith(b"HTTP/1.1 200")
        end = time.monotonic() + 20
        while secure._rest.server_state.connections and time.monotonic() < end:
            time.sleep(0.05)  # the client says nothing more
        assert not secure._rest.server_state.connections
        connection.close()


@needs_openssl
def test_a_certificate_that_cannot_be_used_is_refused_at_the_start(pets, files, tmp_path):
    other = make_certificate(tmp_path, "other")
    locked = make_certificate(tmp_path, "locked", "-passout", "pass:secret")
    for wrong, says in (
        ({"tls_certificate": files["tls_certificate"]}, "give both, or none"),
        ({"tls_key": files["tls_key"]}, "give both, or none"),
        ({**files, "tls_key": tmp_path / "missing"}, "tls_key: .*missing does not exist"),
        ({**files, "tls_certificate": tmp_path}, "tls_certificate: .* is a folder"),
        ({**files, "tls_key": other["tls_key"]}, "no certificate and its key in PEM format .KEY_VALUES_MISMATCH"),
        ({**files, "tls_certificate": files["tls_key"]}, "no certificate and its key in PEM format"),
        (locked, "the key has a password"),
    ):
        with pytest.raises(ServingError, match=says):
            Server(pets.folder, rest_port=0, grpc_port=0, **wrong)


def test_a_client_says_which_file_of_certificates_is_wrong(tmp_path, instances):
    (tmp_path / "none.pem").write_text("no certificate")
    with pytest.raises(ServingError, match=r"none\.pem: no certificates in PEM format"):
        Client("https://127.0.0.1:1", ca_file=tmp_path / "none.pem")
    with pytest.raises(ServingError, match=r"missing\.pem: cannot be read"):
        Client("grpcs://127.0.0.1:1", ca_file=tmp_path / "missing.pem")


# === gzip ===


def post(server, content, **headers):
    sent = {key.replace("_", "-"): value for key, value in headers.items()}
    return httpx.post(server.url + PREDICT, content=content, headers=sent, trust_env=False)


def body(instances):
    return json.dumps({"instances": instances.tolist()}).encode()


@pytest.mark.parametrize("encoding", ["gzip", "x-gzip", "GZIP"])
def test_a_body_may_be_gzip(server, instances, encoding):
    plain = post(server, body(instances)).json()
    assert post(server, gzip.compress(body(instances)), content_encoding=encoding).json() == plain
    assert post(server, body(instances), content_encoding="identity").json() == plain


def test_a_long_body_of_gzip_is_read_elsewhere(server, instances, all_long):
    assert len(post(server, gzip.compress(body(instances)), content_encoding="gzip").json()["predictions"]) == 6


SMALL = gzip.compress(b'{"instances": [[1, 2, 3, 4]]}')


@pytest.mark.parametrize(
    ("content", "status", "says"),
    [
        (gzip.compress(b" " * 250_001), 413, "the body inflates to more than 250,000 bytes, the most this server"),
        (b" " * 250_001, 413, "the body has more than 250,000 bytes"),
        (gzip.compress(b" " * (16 << 20)), 413, "the body inflates to more than 250,000 bytes"),
        (b"", 400, "the body ends before its gzip data does"),
        (SMALL[:20], 400, "the body ends before its gzip data does"),
        (SMALL[:-5] + b"12345", 400, "the body is not gzip, as its Content-Encoding says"),
        (b'{"instances": [[1, 2, 3, 4]]}', 400, "the body is not gzip, as its Content-Encoding says"),
        (SMALL + SMALL, 400, "the body has data after the end of its gzip data"),
        (gzip.compress(b""), 400, "the body is empty"),
    ],
    ids=["long", "long as sent", "bomb", "empty", "half", "checksum", "plain", "twice", "of nothing"],
)  # fmt: skip
def test_a_body_that_inflates_to_too_much_or_is_no_gzip_is_refused(server, content, status, says):
    answer = post(server, content, content_encoding="gzip")
    assert (answer.status_code, says in answer.json()["error"]) == (status, True), answer.text
    assert post(server, SMALL, content_encoding="gzip").status_code == 200


def test_a_long_answer_is_compressed_for_whoever_takes_that(server, instances):
    many = body(np.tile(instances, (100, 1)))
    plain = post(server, many, accept_encoding="identity")
    packed = post(server, many, accept_encoding="br;q=1.0, gzip;q=0.8")
    assert "content-encoding" not in plain.headers
    assert (packed.headers["content-encoding"], packed.headers["vary"]) == ("gzip", "Accept-Encoding")
    assert packed.json() == plain.json()
    assert int(packed.headers["content-length"]) < int(plain.headers["content-length"]) / 2
    assert "content-encoding" not in post(server, body(instances[:1]), accept_encoding="gzip").headers


@pytest.mark.parametrize(
    ("accepted", "expected"),
    [("gzip", True), ("br, GZIP", True), ("gzip; q=0.5", True), ("gzip;q=0", False), ("gzip;q=0.00", False),
     ("", False), ("br", False), ("*", False), (",;,", False)],
)  # fmt: skip
def test_who_takes_gzip(accepted, expected):
    assert takes_gzip(accepted) == expected


# === Other origins, other machines ===


def test_pages_of_other_origins_are_let_in_only_where_they_are_named(server, pets, instances):
    preflight = {"origin": "https://a.example", "access-control-request-method": "POST"}
    allowed = "access-control-allow-origin"
    assert allowed not in httpx.options(server.url + PREDICT, headers=preflight, trust_env=False).headers
    assert allowed not in post(server, body(instances), origin="https://a.example").headers
    with Server(pets.folder, name="pets", rest_port=0, grpc_port=0, cors=["https://a.example"]) as named:
        named.url = f"http://127.0.0.1:{named.rest_port}"
        answer = httpx.options(named.url + PREDICT, headers=preflight, trust_env=False)
        assert (answer.status_code, answer.headers[allowed]) == (200, "https://a.example")
        answer = post(named, body(instances), origin="https://a.example")
        assert (answer.status_code, answer.headers[allowed]) == (200, "https://a.example")
        assert allowed not in post(named, body(instances), origin="https://b.example").headers


@pytest.mark.parametrize("origin", ["a.example", "https://a.example/page", "", "null"])
def test_what_is_no_origin_is_refused(pets, origin):
    with pytest.raises(ServingError, match=r"cors: .* is no origin"):
        Server(pets.folder, cors=[origin])


@pytest.mark.parametrize(("host", "warned"), [("0.0.0.0", True), ("127.0.0.1", False)])
def test_a_server_that_others_can_reach_says_so(pets, host, warned, caplog):
    with Server(pets.folder, host=host, rest_port=0, grpc_port=0):
        pass
    said = [record.message for record in caplog.records if "can be reached from other machines" in record.message]
    assert len(said) == warned
    assert all("without TLS and authentication" in line for line in said)
