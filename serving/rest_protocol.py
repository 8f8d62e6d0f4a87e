"""HTTP connections with limits: uvicorn's protocol, and what it leaves open."""

import asyncio
import functools
import json
import re
import socket
import time
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.h11_impl import H11Protocol

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
# Key of the ASGI scope that is set when the client is gone
GONE = "crowdzoo.gone"
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
                loop="asyncio",
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
    """Reads no further while a whole request waits for its answer and more was sent already."""

    def __init__(self, transport: asyncio.Transport, connection: "_Protocol"):
        super().__init__(transport)
        self._connection = connection

    def resume_reading(self) -> None:
        if self._connection.conn.their_state is not h11.DONE:
            super().resume_reading()


class _Protocol(H11Protocol):
    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self._limits: Limits = self.server_state.limits  # type: ignore[attr-defined]
        self._phase: tuple[str, int] = ("", 0)
        self._since = time.monotonic()
        self._has_started = False  # did a part of a request's head arrive?
        self._draining = False
        self._closing = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.flow = _Flow(transport, self)
        if len(self.connections) > self._limits.connections and not self._make_room():
            self._refuse(503, "too many connections; try again later")

    def _make_room(self) -> bool:
        """Closes the connection that has been idle for longest, if there is one."""
        idle = [one for one in self.connections if one is not self and one._now() == "idle"]  # type: ignore[union-attr]
        if not idle:
            return False
        min(idle, key=lambda one: one._since)._close()  # type: ignore[union-attr]
        return True

    def _close(self) -> None:
        self._closing = True
        self.transport.close()

    def data_received(self, data: bytes) -> None:
        if self._starts() and len(self.tasks) >= self._limits.threads + self._limits.queue and data[:4] not in _READS:
            # before it is even parsed: a server with too much to do has no time
            self._refuse(503, full().reason, keep=not self._draining and is_whole(data))
            return
        super().data_received(data)
        self._has_started = self.conn.their_state is h11.IDLE

    def _starts(self) -> bool:
        """Whether the next byte is the first of a request."""
        return self.conn.their_state is h11.IDLE and not self._has_started

    def connection_lost(self, exc: Exception | None) -> None:
        if self.scope is not None:
            self.scope[GONE] = True  # type: ignore[literal-required]
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self.transport.is_closing():
            self.flow.resume_reading()
            if self._draining:
                self.loop.call_later(LINGER_SECONDS, self._close_idle)

    def shutdown(self) -> None:
        """The server stops: the answer under way is the connection's last, and an idle one is closed in a moment."""
        self._draining = True
        if self.cycle is None or self.cycle.response_complete:
            self.loop.call_later(LINGER_SECONDS, self._close_idle)

    def _close_idle(self) -> None:
        if self.cycle is None or self.cycle.response_complete:
            self._close()

    def send_400_response(self, msg: str) -> None:
        self._refuse(400, "the request is not HTTP/1.1, or its head is longer than 64 KiB")

    def _now(self) -> str:
        """What the connection waits for."""
        # with TLS a connection is closed only when the client agrees, or is aborted
        if self.flow.write_paused or self._closing or self.conn.our_state in (h11.MUST_CLOSE, h11.CLOSED):
            return "write"
        if self.conn.their_state is h11.SEND_BODY and not (self.cycle and self.cycle.response_complete):
            return "body"
        if self.conn.their_state is h11.IDLE:
            return "header" if self._has_started else "idle"
        return "answer" if self.conn.their_state is h11.DONE else "body"

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
