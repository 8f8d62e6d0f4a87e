"""Requests to a Label Studio server."""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import httpx

from crowdzoo.errors import ConfigError, ServingError, short_repr, shorten
from crowdzoo.files.json import JsonError, parse_json

MOST_BYTES = 1 << 28  # size limit of a response
PATIENCE = 300.0  # seconds during which a request is retried
LONGEST_WAIT = 30.0  # seconds between two tries if the server does not specify them
ACCESS_SECONDS = 240.0  # an access token is valid for 300


class LabelStudioError(ServingError):
    """Label Studio answered with an error, or did not answer.

    Attributes:
        status: HTTP status of the response; None without a response.
    """

    def __init__(self, message: str, status: int | None = None):
        super().__init__(message)
        self.status = status


class Client:
    """Sends requests to one Label Studio server and returns the JSON of its responses.

    A personal access token is exchanged for access tokens, which are renewed before they expire; a token that the
    server does not exchange is sent as a legacy token. Requests are retried after connection errors, 429 and 5xx, with
    growing waits or after the seconds in `Retry-After`; a POST whose response was lost is not repeated. Redirects are
    not followed, certificates are verified, and messages never contain the token.

    Args:
        url: address of the server, such as `https://labels.example.com`; a path in it is kept.
        token: personal access token or legacy token of a user.
        timeout: seconds to wait for a response.
        patience: seconds during which a failed request is retried.
        on_wait: called with a sentence before each wait.

    Attributes:
        url: address of the server.
        requests: number of requests sent so far.
        date: time of the last response by the server's clock, from its header `Date`; None without one.

    Raises:
        ConfigError: not an http(s) address, or an empty token. Methods raise it if the server rejects the token.

    Example:
        >>> from crowdzoo.label_studio import Client
        >>> client = Client("http://127.0.0.1:8080/", "token")
        >>> client
        Client('http://127.0.0.1:8080')
        >>> client.get("/api/projects/1")["title"]  # doctest: +SKIP
        'Reviews'
    """

    def __init__(
        self,
        url: str,
        token: str,
        *,
        timeout: float = 60.0,
        patience: float = PATIENCE,
        on_wait: Callable[[str], None] | None = None,
    ):
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
            raise ConfigError("The address of Label Studio is http://HOST:PORT or https://HOST, without a user's name.")
        if not token.strip() or not token.isascii() or not token.strip().isprintable():
            raise ConfigError("The token is empty or not a token. Copy it from Label Studio: Account & Settings.")
        self.url = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"
        self.requests = 0
        self.date: str | None = None
        self._token = token.strip()
        self._authorization, self._expiry = "", 0.0
        self._patience = patience
        self._on_wait = on_wait or (lambda sentence: None)
        # proxies of the environment are only for other machines
        self._connection = httpx.Client(timeout=timeout, trust_env=not _is_loopback(parts.hostname))

    def __repr__(self) -> str:
        return f"Client({self.url!r})"

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections."""
        self._connection.close()

    def get(self, path: str, **params: Any) -> Any:
        """Sends a GET request.

        Args:
            path: path below the server's address, such as "/api/projects/1".
            params: parameters of the query.

        Returns:
            The JSON of the response; None without content. The other methods return the same.

        Raises:
            LabelStudioError: an error of the server (`status`), a redirect, a response that is too large or not JSON,
                or no response in `patience` seconds. The other methods raise the same.
        """
        return self._request("GET", path, params)

    def post(self, path: str, json: Any = None, **params: Any) -> Any:
        """Sends a POST request with a JSON body; arguments as for `get`."""
        return self._request("POST", path, params, json)

    def patch(self, path: str, json: Any, **params: Any) -> Any:
        """Sends a PATCH request with a JSON body; arguments as for `get`."""
        return self._request("PATCH", path, params, json)

    def delete(self, path: str, **params: Any) -> Any:
        """Sends a DELETE request; arguments as for `get`. Missing objects count as deleted."""
        try:
            return self._request("DELETE", path, params)
        except LabelStudioError as error:
            if error.status == 404:
                return None
            raise

    def _request(self, method: str, path: str, params: dict[str, Any], json: Any = None) -> Any:
        """Returns the JSON of the response; an expired access token is replaced once."""
        if time.monotonic() >= self._expiry:
            self._authorize()
        status, content = self._send(method, path, params, json)
        if status == 401:
            self._authorize()
            status, content = self._send(method, path, params, json)
        if status == 401:
            raise ConfigError(
                f"{self.url} refuses the token (401). Create a personal access token in Label Studio, Account & "
                "Settings, or have an administrator enable legacy tokens."
            )
        if status >= 300:
            raise LabelStudioError(f"{method} {self.url}{path}: {status} {self._reason(content)}", status)
        return self._parsed(path, content) if content.strip() else None

    def _authorize(self) -> None:
        """Gets an access token; a token that the server does not exchange may be a legacy one."""
        path = "/api/token/refresh"
        status, content = self._send("POST", path, {}, {"refresh": self._token}, authorize=False)
        access = self._parsed(path, content).get("access") if status == 200 else None
        self._authorization = f"Bearer {access}" if access else f"Token {self._token}"
        self._expiry = time.monotonic() + ACCESS_SECONDS if access else float("inf")

    def _send(
        self, method: str, path: str, params: dict[str, Any], json: Any, authorize: bool = True
    ) -> tuple[int, bytes]:
        """Status and content of the response, after as many tries as `patience` allows."""
        begin, wait = time.monotonic(), 0.5
        while True:
            retry_after = ""
            try:
                status, content, retry_after = self._send_once(method, path, params, json, authorize)
                if status < 500 and status != 429:
                    return status, content
                failure = f"answered {status}"
                error = LabelStudioError(f"{method} {self.url}{path}: {status} {self._reason(content)}", status)
            except httpx.TransportError as lost:
                failure = f"does not answer ({type(lost).__name__}: {self._hidden(str(lost))})"
                error = LabelStudioError(f"{self.url} {failure}. Is the server running?")
                if method == "POST" and authorize and not isinstance(lost, (httpx.ConnectError, httpx.ConnectTimeout)):
                    raise error from None  # the server may have processed the request
            pause = float(retry_after) if retry_after.isdecimal() else wait
            if time.monotonic() + pause > begin + self._patience:
                raise error
            self._on_wait(f"{self.url} {failure}; trying again in {pause:g} seconds")
            time.sleep(pause)
            wait = min(2 * wait, LONGEST_WAIT)

    def _send_once(
        self, method: str, path: str, params: dict[str, Any], json: Any, authorize: bool
    ) -> tuple[int, bytes, str]:
        """Status and content of the response, and its header `Retry-After`."""
        headers = {"Authorization": self._authorization} if authorize else {}
        self.requests += 1
        request = self._connection.build_request(method, self.url + path, params=params, json=json, headers=headers)
        response = self._connection.send(request, stream=True, follow_redirects=False)
        try:
            if response.is_redirect:
                target = self._hidden(response.headers["location"])
                reason = "which is not followed. Use the final address of the server."
                raise LabelStudioError(f"{self.url}{path} redirects to {target}, {reason}", response.status_code)
            content = bytearray()
            for part in response.iter_bytes():
                content += part
                if len(content) > MOST_BYTES:
                    raise LabelStudioError(f"{self.url}{path}: the response has more than {MOST_BYTES:,} bytes.")
            self.date = response.headers.get("date")
            return response.status_code, bytes(content), response.headers.get("retry-after", "")
        except httpx.DecodingError as error:
            raise LabelStudioError(f"{self.url}{path}: the response cannot be decoded ({error}).") from None
        finally:
            response.close()

    def _parsed(self, path: str, content: bytes) -> Any:
        try:
            return parse_json(content, constants=True)
        except JsonError as error:
            start = self._hidden(content[:200].decode("utf-8", "replace"))
            raise LabelStudioError(
                f"{self.url}{path}: the response {error}: {short_repr(start)}. Is this address Label Studio's?"
            ) from None

    def _reason(self, content: bytes) -> str:
        """The server's error message, without the token."""
        try:
            reason = parse_json(content)
        except JsonError:
            return ""
        if isinstance(reason, dict):
            reason = reason.get("validation_errors") or reason.get("detail") or reason
        return shorten(self._hidden(str(reason)))

    def _hidden(self, text: str) -> str:
        """The text without tokens."""
        for secret in (self._token, self._authorization.partition(" ")[2]):
            text = text.replace(secret, "[token]") if secret else text
        return text


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
