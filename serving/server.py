"""A local model server with TF Serving's REST and gRPC APIs for folders of versions."""

import contextlib
import ipaddress
import logging
import os
import signal
import socket
import ssl
import sys
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

# TensorFlow reads this when first imported: suppresses start-up messages of its C++ code
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import grpc

from crowdzoo.errors import DataError, ServingError, Setting
from crowdzoo.files.regular import check_regular
from crowdzoo.serving.curl import curl_example
from crowdzoo.serving.gate import Gate
from crowdzoo.serving.grpc_service import GrpcService
from crowdzoo.serving.limits import Limits
from crowdzoo.serving.metrics import Metrics
from crowdzoo.serving.ml_backend import MlBackend
from crowdzoo.serving.model_settings import ModelSettings, ModelsFile
from crowdzoo.serving.model_store import ModelStore
from crowdzoo.serving.request_log import RequestLog
from crowdzoo.serving.rest import RestService
from crowdzoo.serving.rest_protocol import RestServer

log = logging.getLogger("crowdzoo.serving")

# Switch interval of Python threads in seconds (default 0.005): the thread that moves bytes waits for all others
_SWITCH_SECONDS = 0.0005


class Server:
    """Answers requests from `start()` to `stop()`; also a context manager.

    Predictions run in threads. The event loop only moves bytes, so slow requests do not block others.

    Args:
        model_dir: folder with one subfolder per version, as written by TFX's Pusher:
            `MODEL_DIR/<number>/saved_model.pb`.
        config: in place of `model_dir`, `name` and `labels`, a file that names several models: TF Serving's
            `ModelServerConfig` in protobuf's text format. Changes of labels and policies are applied.
        name: the model's name in requests.
        host: address to listen on.
        rest_port: port to listen on; 0 chooses a free one.
        grpc_port: port to listen on; 0 chooses a free one.
        poll_seconds: time between checks for new versions.
        labels: label -> version, for `/labels/<label>`; these versions are served in addition to the newest.
        wait: start without a version and serve the first that appears.
        tls_certificate: certificate (chain) in PEM format; with it both protocols use TLS only.
        tls_key: its private key.
        limits: limits of requests; None for the defaults.
        label_studio: whether to also answer Label Studio's protocol of ML backends, below `/v1/models/<name>`.
        label_studio_secret: password of the user crowdzoo for Label Studio; may be None only if other machines cannot
            reach `host`.
        log_requests: folder in which instances of a share of the requests are logged, see `RequestLog`; None logs none.
        log_share: that share, from 0 to 1.

    Attributes:
        rest_port: the bound port.
        grpc_port: the bound port.

    Raises:
        ServingError: an invalid setting, or a port in use.
    """

    def __init__(
        self,
        model_dir: str | Path | None = None,
        *,
        config: str | Path | None = None,
        name: str = "model",
        host: str = "127.0.0.1",
        rest_port: int = 8501,
        grpc_port: int = 8500,
        poll_seconds: float = 2.0,
        labels: Mapping[str, int] | None = None,
        wait: bool = False,
        tls_certificate: str | Path | None = None,
        tls_key: str | Path | None = None,
        limits: Limits | None = None,
        label_studio: bool = False,
        label_studio_secret: str | None = None,
        log_requests: str | Path | None = None,
        log_share: float = 0.01,
    ):
        if (model_dir is None) == (config is None):
            raise ServingError("give one of model_dir, the folder of a model's versions, and config, a file of models")
        if config is not None and (labels or name != "model"):
            raise ServingError("config names the models and their labels; leave out name and labels")
        file = None if config is None else ModelsFile(config)
        models = [ModelSettings(name, Path(str(model_dir)), labels or {})] if file is None else [*file.models.values()]
        if not poll_seconds > 0:
            raise ServingError(f"{Setting('poll_seconds')}: must be more than 0, got {poll_seconds}")
        self._tls = _checked_tls(tls_certificate, tls_key)
        self.limits = limits or Limits()
        self.host = host
        self._wait = wait
        self._stores: dict[str, ModelStore] = {}
        for model in models:
            current = None if file is None else partial(file.settings, model.name)
            self._stores[model.name] = ModelStore(model, poll_seconds=poll_seconds, limits=self.limits, current=current)
        self._gate = Gate(self.limits)
        self._request_log = None if log_requests is None else RequestLog(log_requests, log_share)
        shared = self._stores, self._gate, Metrics(), self._request_log
        self._ml_backend = MlBackend(self._stores, self.limits, label_studio_secret) if label_studio else None
        self._rest_service, self._grpc_service = RestService(*shared, self._ml_backend), GrpcService(*shared)
        self._rest: RestServer | None = None
        self._rest_thread: threading.Thread | None = None
        self._grpc: grpc.Server | None = None
        self.rest_port, self.grpc_port = rest_port, grpc_port

    @property
    def models(self) -> dict[str, list[int]]:
        """Name of each model -> its currently served versions, newest first."""
        return {
            name: [status.version for status in store.statuses() if status.state == "AVAILABLE"]
            for name, store in self._stores.items()
        }

    def start(self) -> None:
        """Loads the newest version, then opens both ports.

        Raises:
            ServingError: no usable version, a port in use, or other machines can reach Label Studio's backend without a
                secret.
        """
        listener = _bind(self.host, self.rest_port)
        try:
            if not ipaddress.ip_address(listener.getsockname()[0]).is_loopback:
                self._check_reachable()
            self.rest_port = listener.getsockname()[1]
            self._grpc = self._make_grpc()
            for store in self._stores.values():
                store.start(wait=self._wait)
            self._rest = RestServer(self._rest_service, self.limits, *self._tls)
        except BaseException:
            listener.close()
            self.stop()
            raise
        self._rest_thread = threading.Thread(
            target=self._rest.run, kwargs={"sockets": [listener]}, name="crowdzoo-rest", daemon=True
        )
        self._rest_thread.start()
        self._grpc.start()
        while not self._rest.started and self._rest_thread.is_alive():
            self._rest_thread.join(0.01)

    def stop(self) -> None:
        """Stops accepting requests, finishes current ones (for at most `drain_seconds`), and closes both ports."""
        end = time.monotonic() + self.limits.drain_seconds
        grace = max(0.1, self.limits.drain_seconds - 1.0)  # the rest is for closing
        self._rest_service.draining = True
        finished = self._grpc.stop(grace) if self._grpc is not None else None
        if self._rest is not None:
            self._rest.should_exit = True
        if self._rest_thread is not None:
            self._rest_thread.join(max(0.0, end - time.monotonic()))
        if finished is not None:
            finished.wait(max(0.0, end - time.monotonic()))
        for part in (*self._stores.values(), self._rest_service, self._grpc_service, self._request_log):
            if part is not None:
                part.stop()

    def __enter__(self) -> "Server":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _check_reachable(self) -> None:
        """Warns if other machines can reach the server; raises an error if a secret is needed for that."""
        if self._ml_backend is not None and not self._ml_backend.has_secret:
            raise ServingError(
                f"host: other machines can reach {self.host}, where Label Studio's backend needs a secret. Set the "
                "environment variable CROWDZOO_LABEL_STUDIO_SECRET; in Python Server(label_studio_secret=...)"
            )
        without = "authentication" if self._tls else "TLS and authentication"
        only = " (the secret is for Label Studio's paths alone)" if self._ml_backend is not None else ""
        log.warning("crowdzoo serve: other machines can reach %s, without %s%s: use a proxy", self.host, without, only)

    def _make_grpc(self) -> grpc.Server:
        service = self._grpc_service
        most = service.executor._max_workers
        server = grpc.server(service.executor, [service], options=service.options, maximum_concurrent_rpcs=most)
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = 0
        with contextlib.suppress(RuntimeError):  # older versions return 0 instead
            address = f"{host}:{self.grpc_port}"
            if self._tls:
                certificate, key = (file.read_bytes() for file in self._tls)
                port = server.add_secure_port(address, grpc.ssl_server_credentials([(key, certificate)]))
            else:
                port = server.add_insecure_port(address)
        if port == 0:
            raise _taken("grpc_port", self.grpc_port, self.host)
        self.grpc_port = port
        return server


def _checked_tls(certificate: str | Path | None, key: str | Path | None) -> tuple[Path, ...]:
    """Checks certificate and key, which are given both or not at all."""
    if certificate is None and key is None:
        return ()
    if certificate is None or key is None:
        raise ServingError(f"{Setting('tls_certificate')} and {Setting('tls_key')}: give both, or none")
    try:
        for path in (certificate, key):
            check_regular(path)
        # the password of a key would be requested on the terminal
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, password=_no_password)
    except (OSError, ValueError, DataError) as error:
        reason = getattr(error, "reason", None) or error
        files = f"{Setting('tls_certificate')} {certificate} and {Setting('tls_key')} {key}"
        raise ServingError(f"{files} are not a certificate and its key in PEM format ({reason})") from error
    return Path(certificate), Path(key)


def _no_password() -> str:
    raise ValueError("the key has a password; give one without")


def _bind(host: str, port: int) -> socket.socket:
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, OverflowError) as error:
        what = f"{host!r} with port {port} is not an address of this machine"
        raise ServingError(f"{Setting('host')}: {what}: {error}") from error
    family, kind, protocol, _, address = addresses[0]
    # asyncio disables Nagle's delay only if the listening socket names its protocol, unlike `socket.create_server`,
    # whose connections cost 40 ms per request
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        # From here on, a second server on the port fails. Clients that connect before the model is loaded wait.
        listener.listen(128)
    except OSError as error:
        listener.close()
        raise _taken("rest_port", port, host) from error
    return listener


def _taken(what: str, port: int, host: str) -> ServingError:
    option = "--" + what.replace("_", "-")
    return ServingError(f"{what}: cannot listen on port {port} of {host}; is it in use? {option} 0 takes a free one")


def serve(
    model_dir: str | Path | None = None, *, on_ready: Callable[[Server], None] | None = None, **settings: Any
) -> None:
    """Serves until SIGINT or SIGTERM, then finishes current requests and returns.

    Prints its addresses, and a `curl` line that requests a prediction. Loaded and skipped versions are logged to
    standard error. Must be called in the main thread.

    Args:
        model_dir: see `Server`.
        on_ready: called once with the running server.
        **settings: the other arguments of `Server`.

    Raises:
        ServingError: no folder, no usable version, or a port in use.
    """
    asked_to_stop = threading.Event()

    def ask(signum: int, frame: object) -> None:
        if asked_to_stop.is_set():  # the second signal stops at once
            os._exit(128 + signum)
        asked_to_stop.set()

    with contextlib.ExitStack() as undo:
        for number in (signal.SIGINT, signal.SIGTERM):
            undo.callback(signal.signal, number, signal.signal(number, ask))
        undo.callback(sys.setswitchinterval, sys.getswitchinterval())
        sys.setswitchinterval(_SWITCH_SECONDS)
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(logging.Formatter("%(asctime)s %(message)s", datefmt="%H:%M:%S"))
        undo.callback(log.removeHandler, handler)
        undo.callback(log.setLevel, log.level)
        undo.callback(setattr, log, "propagate", log.propagate)
        log.addHandler(handler)
        log.setLevel(logging.INFO)
        log.propagate = False
        with Server(model_dir, **settings) as server:
            _announce(server)
            if on_ready is not None:
                on_ready(server)
            while not asked_to_stop.wait(1.0):
                pass
        print("stopped", flush=True)
        if server._gate.running:  # Python would wait for threads of abandoned predictions
            sys.stderr.flush()
            os._exit(0)


def _announce(server: Server) -> None:
    host = f"[{server.host}]" if ":" in server.host else server.host
    scheme = "https" if server._tls else "http"
    print(f"gRPC  {host}:{server.grpc_port}")
    for name, versions in server.models.items():
        store = server._stores[name]
        print(f"REST  {scheme}://{host}:{server.rest_port}/v1/models/{name}")
        if server._ml_backend is not None:
            print("      also the Backend URL in Label Studio")
        if not versions:
            print(f"no version yet; waiting for one in {store.folder}")
            continue
        print(f"version {', '.join(map(str, versions))}")
        with contextlib.suppress(ServingError):  # models not written by crowdzoo have no example request
            facts = {"name": name, "host": server.host, "port": server.rest_port, "scheme": scheme}
            print("try   " + curl_example(store.folder / str(versions[0]), **facts))
    print("Ctrl-C stops", flush=True)
