"""The server's certificate and its key."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path

import grpc

from crowdzoo.errors import DataError, ServingError
from crowdzoo.files.regular import check_regular

__all__ = ["Tls"]


@dataclass(frozen=True)
class Tls:
    """Files in PEM format.

    Attributes:
        certificate: the certificate, followed by those of the authorities between it and the client's.
        key: its private key, without a password.

    Raises:
        ServingError: a file cannot be read, or the two do not belong together.
    """

    certificate: Path
    key: Path

    def __post_init__(self) -> None:
        for what, path in (("tls_certificate", self.certificate), ("tls_key", self.key)):
            try:
                check_regular(path)
            except DataError as error:
                raise ServingError(f"{what}: {error}") from None
        try:
            # a key with a password would be asked for on the terminal
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(self.certificate, self.key, password=_no_password)
        except (OSError, ValueError) as error:
            reason = getattr(error, "reason", None) or error
            files = f"tls_certificate {self.certificate} and tls_key {self.key}"
            raise ServingError(f"{files} are no certificate and its key in PEM format ({reason})") from error

    def grpc_credentials(self) -> grpc.ServerCredentials:
        """For `grpc.Server.add_secure_port`."""
        return grpc.ssl_server_credentials([(self.key.read_bytes(), self.certificate.read_bytes())])


def _no_password() -> str:
    raise ValueError("the key has a password; give one without")
