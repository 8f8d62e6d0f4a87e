"""HTTP connections with limits: uvicorn's protocol, and what it leaves open."""

import asyncio
import functools
import json
import re
import socket
import threading
import time
from typing import Any

import httptools
import uvicorn
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from crowdzoo.serving.gate import full
from crowdzoo.serving.limits import Limits
from crowdzoo.serving.tls import Tls

__all__ = ["GONE", "RestServer"]

# Requests that are never refused for the number of others, such as a look at the status
_READS = (b"GET ", b"HEAD")
_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*(\d{1,18})[ \t]*(?=\r\n|$)", re.IGNORECASE)
# Heads of requests that end their connection, or whose body has another end than its length says
_NOT_KEPT = re.compile(
    rb"\A[^\r\n]*(?<! HTTP/1\.1)\r\n|\r\n(transfer-encoding|upgrade|expect|connection:[^\r\n]*close)|(?<!\r)\n",
    re.IGNORECASE,
)
# Versions of HTTP, each with the number of Host headers that it may have
_VERSIONS = {("1.0", 0), ("1.0", 1), ("1.1", 1)}
# Longest head of a request, and most bytes that may come without a whole line or a part of a body
_MOST_HEAD = 1 << 16
# So many bytes are parsed at a time where a request may begin: a client may send many short ones without waiting
_PIECE = 1 << 13
# Key of the ASGI scope: an event that is set when the client is gone
GONE = "crowdzoo.gone"
# A connection that has been sending one request for so long may be closed where another one needs its place
SLOW_SECONDS = 1.0
# While the server stops, an idle connection gets so long to send a request, which is answered with `Connection: close`
LINGER_SECONDS = 1.0


class RestServer(uvicorn.Server):
    """uvicorn's server with limits on connections and on the time of each phase of a request.

    Args:
        app: an ASGI application.
        limits: see `Limits`.
        tls: the certificate; None for plain HTTP.
    """

    def __init__(self, app: Any, limits: Limits, tls: Tls | None = None):
        self.limits = limits
        super().__init__(
            uvicorn.Config(
                app,
                log_config=None,
                access_log=False,
                lifespan="off",
                ws="none",
                loop="uvloop",
                proxy_headers=False,
                http=_Protocol,
                timeout_keep_alive=int(limits.idle_seconds) + 2,  # ours comes first
                timeout_graceful_shutdown=max(1, int(limits.drain_seconds) - 1),
                ssl_certfile=None if tls is None else tls.certificate,
                ssl_keyfile=None if tls is None else tls.key,
            )
        )
        self.server_state.limits = limits  # type: ignore[attr-defined]

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begins to accept connections."""
        loop: Any = asyncio.get_running_loop()
        if self.config.is_ssl:  # a client that begins a connection and says nothing; uvicorn has no setting for it
            loop.create_server = functools.partial(loop.create_server, ssl_handshake_timeout=self.limits.header_seconds)
        await super().startup(sockets)

    async def on_tick(self, counter: int) -> bool:
        """Ten times a second; once a second closes connections that take too long."""
        if counter % 10 == 0:
            now = time.monotonic()
            for connection in list(self.server_state.connections):
                connection.check_time(now)  # type: ignore[union-attr]
        return await super().on_tick(counter)


class _Flow(FlowControl):
    """Reads no further while a request waits for the answer of the one before it."""

    def __init__(self, transport: asyncio.Transport, connection: "_Protocol"):
        super().__init__(transport)
        self._connection = connection

    def resume_reading(self) -> None:
        if not self._connection.has_unread:
            super().resume_reading()


class _Protocol(HttpToolsProtocol):
    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self._limits: Limits = self.server_state.limits  # type: ignore[attr-defined]
        self._phase: tuple[str, int] = ("", 0)
        self._since = time.monotonic()
        self._gone = threading.Event()
        self._draining = False
        self._part = ""  # of a request that is being received: "head", "body" or, between two requests, ""
        self._unread = b""  # received, not parsed
        self._head_bytes = 0
        self._missing = 0  # bytes of the body that its length says
        self._quiet = 0  # bytes that were parsed since the last part of a request
        self._is_broken = False  # what came last is no HTTP/1.1; requests before it are still answered

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.flow = _Flow(transport, self)
        if len(self.connections) > self._limits.connections and not self._make_room():
            self._refuse(503, "too many connections; try again later")

    def _make_room(self) -> bool:
        """Closes the connection that has been idle for longest, else the one that sends its request most slowly."""
        others: list[Any] = [one for one in self.connections if one is not self]
        slow = time.monotonic() - SLOW_SECONDS
        idle = [one for one in others if one._now() == "idle"]
        idle = idle or [one for one in others if one._now() in ("header", "body") and one._since < slow]
        if not idle:
            return False
        chosen = min(idle, key=lambda one: one._since)
        chosen._close() if chosen._now() == "idle" else chosen._refuse(408, "the request comes too slowly")
        return True

    def _close(self) -> None:
        self.transport.close()

    def data_received(self, data: bytes) -> None:
        if data[:4] not in _READS and self._too_many() and not (self._part or self._is_busy or self._unread):
            # before it is even parsed: a server with too much to do has no time
            self._refuse(503, full().reason, keep=not self._draining and is_whole(data))
            return
        self._unset_keepalive_if_required()
        self._unread = self._unread + data if self._unread else data
        self._parse()

    def _too_many(self) -> bool:
        """Whether as many requests wait for an answer as may; those that are not here to their end do not count."""
        most = self._limits.threads + self._limits.queue
        if len(self.tasks) < most:
            return False
        return sum(one._now() == "answer" for one in self.connections) >= most  # type: ignore[union-attr]

    def _parse(self) -> None:
        """Parses what was received, up to a request that has to wait for the one before it."""
        while self._unread and not (self.pipeline or self._is_broken or self.transport.is_closing()):
            size = max(self._missing, _PIECE)
            piece, self._unread = self._unread[:size], self._unread[size:]
            self._quiet += len(piece)
            try:
                self.parser.feed_data(piece)
            except httptools.HttpParserUpgrade as upgrade:
                self._unread = self._plain_head() + piece[upgrade.args[0] :] + self._unread
            except httptools.HttpParserError:
                self.send_400_response("")
            if self._quiet > _MOST_HEAD:
                self.send_400_response("")
        if self.has_unread:
            self.flow.pause_reading()

    def _plain_head(self) -> bytes:
        """The head of a request that asks for HTTP/2 or websockets, without that: it gets HTTP/1.1."""
        head = [b"%s %s HTTP/%s" % (self.parser.get_method(), self.url, self.parser.get_http_version().encode())]
        head += [b"%s: %s" % header for header in self.headers if header[0] != b"upgrade"]
        return b"\r\n".join([*head, b"", b""])

    @property
    def has_unread(self) -> bool:
        """Whether something has to wait until a request before it is answered."""
        return bool(self.pipeline or self._unread or self._is_broken)

    @property
    def _is_busy(self) -> bool:
        """Whether a request waits for its answer."""
        return bool(self.pipeline) or not (self.cycle is None or self.cycle.response_complete)

    # What the parser found; an error raised here is one of the request

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope[GONE] = self._gone  # type: ignore[literal-required]
        self._part, self._head_bytes, self._quiet = "head", 0, 0

    def on_url(self, url: bytes) -> None:
        self._count(url)
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count(name + value)
        super().on_header(name, value)

    def _count(self, part: bytes) -> None:
        self._quiet = 0
        self._head_bytes += len(part)
        if self._head_bytes > _MOST_HEAD:
            raise ValueError("a head of more than 64 KiB")

    def on_headers_complete(self) -> None:
        hosts = 0
        for name, value in self.headers:
            if name == b"content-length":
                self._missing = int(value)
            hosts += name == b"host"
        if (self.parser.get_http_version(), hosts) not in _VERSIONS:
            raise ValueError("another version, or not one Host")
        if self.parser.should_upgrade():
            if self.parser.get_method() == b"CONNECT":
                raise ValueError("not a proxy")
            return  # the parser stops here, and reads what `_plain_head` gives it
        super().on_headers_complete()
        self._part, self._quiet = "body", 0

    def on_body(self, body: bytes) -> None:
        self._quiet = 0
        self._missing = max(0, self._missing - len(body))
        super().on_body(body)

    def on_message_complete(self) -> None:
        if self._part == "body":
            super().on_message_complete()
        self._part, self._quiet, self._missing = "", 0, 0

    def connection_lost(self, exc: Exception | None) -> None:
        self._gone.set()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.transport.is_closing():
            return
        self._parse()
        if self._is_broken:
            self._refuse_broken()
        elif self._draining and not self._is_busy:
            self.loop.call_later(LINGER_SECONDS, self._close_idle)

    def shutdown(self) -> None:
        """The server stops: the answer under way is the connection's last, and an idle one is closed in a moment."""
        self._draining = True
        if not self._is_busy:
            self.loop.call_later(LINGER_SECONDS, self._close_idle)

    def _close_idle(self) -> None:
        if not self._is_busy:
            self._close()

    def send_400_response(self, msg: str) -> None:
        self._is_broken = True
        self._refuse_broken()

    def _refuse_broken(self) -> None:
        """As soon as the requests before it are answered."""
        if not self._is_busy or (self._part == "body" and not self.pipeline):
            self._refuse(400, "the request is not HTTP/1.1, or its head is longer than 64 KiB")

    def _now(self) -> str:
        """What the connection waits for."""
        # with TLS a connection is closed only when the client agrees, or is aborted
        if self.flow.write_paused or self.transport.is_closing():
            return "write"
        if self._part == "body" and not self.pipeline:
            return "body"
        if self._is_busy:
            return "answer"
        return "header" if self._part else "idle"

    def check_time(self, now: float) -> None:
        phase = (self._now(), id(self.cycle))
        if phase != self._phase:
            self._phase, self._since = phase, now
            return
        seconds = getattr(self._limits, f"{phase[0]}_seconds", None)
        if seconds is None or now - self._since <= seconds:
            return
        if phase[0] in ("header", "body"):
            self._refuse(408, f"the {phase[0]} of the request took longer than {seconds:g} s")
        elif phase[0] == "idle":
            self._close()
        else:
            self.transport.abort()  # a client that does not read gets no last words either

    def _refuse(self, status: int, reason: str, *, keep: bool = False) -> None:
        """Answers without the application, and closes unless the connection is kept."""
        if self.transport.is_closing():
            return
        if self.cycle is None or self.cycle.response_complete or not self.cycle.response_started:
            text = json.dumps({"error": reason}).encode() + b"\n"
            phrase = {400: "Bad Request", 408: "Request Timeout", 503: "Service Unavailable"}[status]
            head = [f"HTTP/1.1 {status} {phrase}", "content-type: application/json", f"content-length: {len(text)}"]
            head += ["connection: close"] * (not keep) + ["retry-after: 1"] * (status == 503)
            self.transport.write("\r\n".join([*head, "", ""]).encode() + text)
        if keep:
            self._unset_keepalive_if_required()
            self._since = time.monotonic()
        else:
            self._close()


def is_whole(data: bytes) -> bool:
    """Whether it is one HTTP/1.1 request to its last byte, whose connection may go on without reading more of it."""
    head, end, body = data.partition(b"\r\n\r\n")
    length = _LENGTH.search(head)
    if not end or length is None or int(length[1]) != len(body):
        return False
    return head.lower().count(b"\r\ncontent-length") == 1 and not _NOT_KEPT.search(head)
