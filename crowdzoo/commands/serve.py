"""`crowdzoo serve`: serve folders with TF Serving's APIs."""

import argparse
import os

from crowdzoo.commands.options import add_options, integer, number, path
from crowdzoo.errors import ConfigError
from crowdzoo.process import use_tensorflow


def describe(command: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    command.add_argument(
        "model_dir",
        type=path,
        nargs="?",
        help="served folder, with one subfolder per version, as crowdzoo run and export write it",
    )
    command.add_argument("--name", default="model", help="the model's name in URLs (default: model)")
    files = {
        "--config FILE": "serve the models of this file (a ModelServerConfig, as TensorFlow Serving reads it) instead "
        "of MODEL_DIR",
        "--tls-certificate FILE": "certificate (PEM): REST and gRPC with TLS only",
        "--tls-key FILE": "private key of the certificate (PEM): REST and gRPC with TLS only",
    }
    add_options(command, files, type=path)
    studio = (
        "answer Label Studio as an ML backend, too; the environment variable CROWDZOO_LABEL_STUDIO_SECRET holds its "
        "password, which --host needs if other machines can reach it"
    )
    command.add_argument("--label-studio", action="store_true", help=studio)
    logged = {"--log-requests DIR": "log a share of the instances there, for `crowdzoo skew`; at most 64 MiB per model"}
    add_options(command, logged, type=path)
    share = {"--log-share SHARE": "share of the instances that is logged, from 0 to 1 (default 0.01)"}
    add_options(command, share, type=number(0, 1))
    command.add_argument("--host", default="127.0.0.1", help="address to listen on (default 127.0.0.1)")
    for name, api, port in (("--rest-port", "REST", 8501), ("--grpc-port", "gRPC", 8500)):
        what = f"port of the {api} API (default {port}; 0: a free port)"
        command.add_argument(name, type=integer(0, 65535), default=port, help=what)
    seconds = "seconds between checks for new versions (default 2)"
    command.add_argument("--poll-seconds", type=number(0.01, 10**6), default=2.0, help=seconds)
    command.add_argument("--wait", action="store_true", help="start without a model and wait for the first version")
    limits = {"--limit NAME=VALUE": "limit for requests, such as queue=128; docs/serving.md lists names and defaults"}
    add_options(command, limits, action="append", default=[])


def run(arguments: argparse.Namespace) -> None:
    """Serve until stopped."""
    use_tensorflow()
    from crowdzoo.serving.limits import Limits
    from crowdzoo.serving.server import serve

    if arguments.log_share is not None and arguments.log_requests is None:
        raise ConfigError("--log-share: is the share that --log-requests keeps; add --log-requests DIR.")
    names = ("config", "name", "host", "rest_port", "grpc_port", "poll_seconds", "wait", "tls_certificate", "tls_key")
    settings = {name: getattr(arguments, name) for name in (*names, "label_studio", "log_requests")}
    if arguments.log_share is not None:
        settings["log_share"] = arguments.log_share
    if arguments.label_studio:
        settings["label_studio_secret"] = os.environ.get("CROWDZOO_LABEL_STUDIO_SECRET")
    serve(arguments.model_dir, limits=Limits().changed(arguments.limit), **settings)
