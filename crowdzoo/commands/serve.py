"""`crowdzoo serve`: TF Serving's APIs for served folders."""

import argparse

from crowdzoo.checks.option_types import integer, number, path
from crowdzoo.process import use_tensorflow


def describe(command: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    command.add_argument(
        "model_dir", type=path, nargs="?", help="folder with one subfolder per version, as the pipeline writes it"
    )
    command.add_argument("--name", default="model", help="the model's name in URLs (default: model)")
    command.add_argument(
        "--config", type=path, metavar="FILE",
        help="serve the models of this file (a ModelServerConfig, as TensorFlow Serving reads it) instead of MODEL_DIR",
    )  # fmt: skip
    for name, what in (
        ("--tls-certificate", "certificate (PEM)"),
        ("--tls-key", "private key of the certificate (PEM)"),
    ):
        command.add_argument(name, type=path, metavar="FILE", help=f"{what}: REST and gRPC with TLS only")
    command.add_argument("--host", default="127.0.0.1", help="address to listen on (default 127.0.0.1)")
    for name, api, port in (("--rest-port", "REST", 8501), ("--grpc-port", "gRPC", 8500)):
        what = f"port of the {api} API (default {port}; 0: a free port)"
        command.add_argument(name, type=integer(0, 65535), default=port, help=what)
    command.add_argument("--poll-seconds", type=number(0.01, 10**6), default=2.0,
        help="seconds between checks for new versions (default 2)",
    )  # fmt: skip
    command.add_argument("--wait", action="store_true", help="start without a model and wait for the first version")
    command.add_argument(
        "--limit", action="append", default=[], metavar="NAME=VALUE",
        help="limit for requests, such as queue=128; docs/serving.md lists names and defaults",
    )  # fmt: skip


def run(arguments: argparse.Namespace) -> None:
    """Serves until it is stopped."""
    use_tensorflow()
    from crowdzoo.serving.limits import Limits
    from crowdzoo.serving.server import serve

    serve(
        arguments.model_dir, config=arguments.config, name=arguments.name, host=arguments.host,
        rest_port=arguments.rest_port, grpc_port=arguments.grpc_port, poll_seconds=arguments.poll_seconds,
        wait=arguments.wait,
        tls_certificate=arguments.tls_certificate, tls_key=arguments.tls_key,
        limits=Limits().changed(arguments.limit),
    )  # fmt: skip
