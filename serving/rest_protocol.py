"""HTTP connections with limits, on top of uvicorn's protocol."""

import json
import time
from typing import Any

import httptools
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from crowdzoo.serving.limits import Limits

# Largest number of bytes without the end of a head or a part of a body
_MOST_QUIET = 1 << 16
# Largest number of requests that a client may send before the answer to the first
_MOST_AHEAD = 16
# Key of the ASGI scope for a function that tells whether the client is gone
GONE = "crowdzoo.gone"
# A connection that has been sending one request for this long may be closed if another one needs its place
SLOW_SECONDS = 0.2


class RestServer(uvicorn.Server):
    """uvicorn's server with limits on connections and on the time of each phase of a request.

    Args:
        app: an ASGI application.
        limits: see `Limits`.
        certificate: file of the certificate; None for plain HTTP.
        key: file of its key.
    """

    def __init__(self, app: Any, limits: Limits, certificate: Any = None, key: Any = None):
        off: Any = {"log_config": None, "access_log": False, "lifespan": "off", "ws": "none", "proxy_headers": False}
        end = max(1, int(limits.drain_seconds) - 1)
        idle = int(limits.idle_seconds) + 2  # our own limit applies first
        times: Any = {"timeout_keep_alive": idle, "timeout_graceful_shutdown": end}
        tls: Any = {"ssl_certfile": certificate, "ssl_keyfile": key}
        super().__init__(uvicorn.Config(app, http=_Protocol, loop="uvloop", **off, **times, **tls))
        self.server_state.limits = limits  # type: ignore[attr-defined]

    async def on_tick(self, counter: int) -> bool:
        """Runs ten times per second; once per second, closes connections that take too long."""
        if counter % 10 == 0:
            for connection in list(self.server_state.connections):
                connection.check_time(time.monotonic())  # type: ignore[union-attr]
        return await super().on_tick(counter)


class _Protocol(HttpToolsProtocol):
    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._limits: Limits = self.server_state.limits  # type: ignore[attr-defined]
        self._phase: tuple[str, int] = ("", 0)
        self._since = time.monotonic()
        self._in_head = False
        self._quiet = 0  # number of bytes since the last head or part of a body
        if len(self.connections) > self._limits.connections and not self._make_room():
            self._refuse(503, "too many connections; try again later")

    def _make_room(self) -> bool:
        """Closes the connection that has been idle longest, else the one that has been sending its request longest."""
        others: list[Any] = [one for one in self.connections if one is not self]
        slow = time.monotonic() - SLOW_SECONDS
        candidates = [one for one in others if one.now() == "idle"]
        candidates = candidates or [one for one in others if one.now() in ("header", "body") and one._since < slow]
        if candidates:
            min(candidates, key=lambda one: one._since)._refuse(408, "the request comes too slowly")
        return bool(candidates)

    def data_received(self, data: bytes) -> None:
        self._unset_keepalive_if_required()
        self._quiet += len(data)
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:  # requests for HTTP/2 or websockets get HTTP/1.1
            head = [b"%s %s HTTP/1.1" % (self.parser.get_method(), self.url)]
            head += [b"%s: %s" % header for header in self.headers if header[0] != b"upgrade"]
            self.parser = httptools.HttpRequestParser(self)
            self.data_received(b"\r\n".join([*head, b"", data[upgrade.args[0] :]]))
        except httptools.HttpParserError:
            self._refuse(400, "the request is not HTTP/1.1, or too many are sent ahead")
        if self._quiet > _MOST_QUIET:
            self._refuse(400, "the head of the request is longer than 64 KiB")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope[GONE] = self.transport.is_closing  # type: ignore[literal-required]
        self._in_head = True

    def on_headers_complete(self) -> None:
        if len(self.pipeline) >= _MOST_AHEAD:
            raise ValueError("too many requests ahead")  # becomes an error of the parser
        if self.parser.should_upgrade():
            if self.parser.get_method() == b"CONNECT":
                raise ValueError("not a proxy")
            return  # the parser stops here
        super().on_headers_complete()
        self._in_head, self._quiet = False, 0

    def on_body(self, body: bytes) -> None:
        self._quiet = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        if not self._in_head:
            super().on_message_complete()

    def now(self) -> str:
        """The current phase of the connection."""
        # with TLS, closing needs the client's cooperation, else the connection is aborted
        if self.flow.write_paused or self.transport.is_closing():
            return "write"
        if self.cycle is not None and not self.cycle.response_complete:
            return "body" if self.cycle.more_body and not self.pipeline else "answer"
        return "header" if self._in_head else "idle"

    def check_time(self, now: float) -> None:
        phase = (self.now(), id(self.cycle))
        if phase != self._phase:
            self._phase, self._since = phase, now
            return
        seconds = getattr(self._limits, f"{phase[0]}_seconds", None)
        if seconds is None or now - self._since <= seconds:
            return
        if phase[0] == "write":
            self.transport.abort()  # a client that does not read cannot get an error either
        else:
            self._refuse(408, f"the {phase[0]} of the request took longer than {seconds:g} s")

    def _refuse(self, status: int, reason: str) -> None:
        """Sends an error without the application, if there was a request, and closes the connection."""
        if not self.transport.is_closing() and (self.now() != "idle" or status != 408):
            text = json.dumps({"error": reason}).encode() + b"\n"
            phrase = {400: "Bad Request", 408: "Request Timeout", 503: "Service Unavailable"}[status]
            head = [f"HTTP/1.1 {status} {phrase}", "content-type: application/json", f"content-length: {len(text)}"]
            head += ["connection: close", *["retry-after: 1"] * (status == 503), "", ""]
            self.transport.write("\r\n".join(head).encode() + text)
        self.transport.close()
