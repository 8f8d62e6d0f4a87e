"""What is between a client and the server's answers: TLS, and who can reach it."""

import shutil
import subprocess

import numpy as np
import pytest
from running_server import serving

from crowdzoo.errors import ServingError
from crowdzoo.serving import Client, Server

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
    with serving(pets.folder, header_seconds=1.0, write_seconds=1.0, **files) as running:
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
@pytest.mark.parametrize("scheme", ["https", "grpcs", "http", "grpc"])
def test_a_client_that_does_not_trust_it_or_speaks_plain_gets_none(secure, instances, scheme):
    port = secure.rest_port if scheme.startswith("http") else secure.grpc_port
    client = Client(f"{scheme}://127.0.0.1:{port}", model="pets", timeout=5)
    with client, pytest.raises(ServingError, match="does not answer"):
        client.status()


@needs_openssl
def test_a_certificate_that_cannot_be_used_is_refused_at_the_start(pets, files, tmp_path):
    other = make_certificate(tmp_path, "other")
    locked = make_certificate(tmp_path, "locked", "-passout", "pass:secret")
    for wrong, says in (
        ({"tls_certificate": files["tls_certificate"]}, "give both, or none"),
        ({"tls_key": files["tls_key"]}, "give both, or none"),
        ({**files, "tls_key": tmp_path / "missing"}, "missing does not exist"),
        ({**files, "tls_certificate": tmp_path}, " is a folder"),
        ({**files, "tls_key": other["tls_key"]}, "not a certificate and its key in PEM format .KEY_VALUES_MISMATCH"),
        ({**files, "tls_certificate": files["tls_key"]}, "not a certificate and its key in PEM format"),
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


# === Other machines ===


@pytest.mark.parametrize(("host", "warned"), [("0.0.0.0", True), ("127.0.0.1", False)])
def test_a_server_that_others_can_reach_says_so(pets, host, warned, caplog):
    with serving(pets.folder, host=host):
        pass
    said = [record.message for record in caplog.records if "other machines can reach" in record.message]
    assert len(said) == warned
    assert all("without TLS and authentication" in line for line in said)
