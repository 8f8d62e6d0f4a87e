"""`crowdzoo predict`: predict with a served folder or a running server."""

import argparse
import contextlib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from crowdzoo.commands import options
from crowdzoo.commands.options import add_options, group, path
from crowdzoo.commands.outputs import Output, marked, progress
from crowdzoo.data.instance_kinds import IMAGES, TEXTS, VECTORS, InstanceKind
from crowdzoo.errors import ConfigError, DataError
from crowdzoo.files.model_files import read_model_card
from crowdzoo.files.served_model import MODEL_CARD_FILE
from crowdzoo.files.version_folders import newest_version
from crowdzoo.kinds import KINDS
from crowdzoo.reading.instances.images import holds_images
from crowdzoo.reading.instances.instances import Instances, read_inputs
from crowdzoo.reading.instances.tables import served_tables
from crowdzoo.reading.tables.layout import Layout, own_encoding
from crowdzoo.reading.tables.suffixes import column_names

DEFAULT = "serving_default"
FEW, MANY = 32, 256  # instances per call; image files are large


def describe(command: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    served = (
        "a served folder, one version of it, the URL of a server (http://… or grpc://…; https://… or grpcs://…), or "
        "models:/NAME@ALIAS of MLflow's model registry"
    )
    command.add_argument("model", help=served)
    instances = (
        "columns task and features, task and text, or those of a table (.parquet, .csv, .csv.gz); one text per line "
        "(.txt); or a folder of images, or a column image of their paths"
    )
    command.add_argument("instances", type=path, help=instances)
    out = {"--out FILE.csv": "file for the predictions (default: the terminal); for masks a folder, DIR"}
    add_options(group(command, options.OUTPUT), out, type=path)
    options.add_spreadsheet(command)
    options.add_column_types(command)
    command.add_argument("--name", default="model", help="the model's name on a server (default: model)")
    certificates = (
        "certificates to trust, of a server with TLS (https://… or grpcs://…) that this machine does not trust"
    )
    add_options(command, {"--ca-file FILE.pem": certificates}, type=path)
    options.add_second_columns(command, "instance")
    options.add_text_options(command)
    headers = "|".join(",".join(kind.prediction.header) for kind in KINDS.values())
    own = marked(rf"^({headers})(\r?\n|$)|^.PNG.*tEXtSoftware\0crowdzoo")
    output = Output("out", "--out", own, folder=True, unless=(".csv", ".tsv", ".txt"))
    options.add_outputs(command, ("instances",), output)


def run(arguments: argparse.Namespace) -> None:
    """Predict, and write or print one line per task (for sentences, one line per span)."""
    if arguments.model.startswith("models:/"):
        from crowdzoo.components.registry import fetched_model

        with fetched_model(arguments.model) as folder:
            arguments.model = str(folder)
            instances, outputs = _answers(arguments)
    else:
        instances, outputs = _answers(arguments)
    kind = next((kind for kind in KINDS.values() if kind.prediction.answer in outputs), None)
    if kind is None:
        raise DataError(f"{arguments.model}: answers with {', '.join(outputs)}, which this command does not print.")
    kind.prediction.write(arguments.out, instances, outputs)


def _answers(arguments: argparse.Namespace) -> tuple[Instances, dict[str, Any]]:
    """Read the instances and get the answers of a served folder or a server.

    Columns are passed to the model by name, or in the order of its training.
    """
    encrypted = arguments.model.startswith(("https://", "grpcs://"))
    if arguments.ca_file is not None and not encrypted:
        raise ConfigError("--ca-file is for a server with TLS: https://HOST:PORT or grpcs://HOST:PORT.")
    with contextlib.ExitStack() as stack:
        client, facts = None, dict[str, Any]()
        if "://" in arguments.model:
            from crowdzoo.serving import Client

            name, ca_file = arguments.name, arguments.ca_file
            client = stack.enter_context(Client(arguments.model, model=name, ca_file=ca_file))
            facts = client.metadata()
        elif (path := newest_version(arguments.model) / MODEL_CARD_FILE).is_file():
            facts = read_model_card(path)
        signatures = facts.get("signatures") or {}
        signature = _signature(signatures)
        instances = _read(arguments, signatures.get(signature, {}), None if client else "images" in facts)
        values = instances.in_order(facts.get("features"), arguments.instances)
        size = FEW if instances.kind == IMAGES else MANY
        if client is not None:
            at_once = signature == DEFAULT and instances.kind != IMAGES
            return instances, client.predict(values, signature=signature, batch_size=None if at_once else size)
    from crowdzoo.export.predict import load_and_predict

    with progress("predicting", -(-len(instances.tasks) // size)) as step:
        return instances, load_and_predict(arguments.model, values, signature=signature, batch_size=size, on_batch=step)


def _read(arguments: argparse.Namespace, signature: Mapping[str, Any], of_images: bool | None) -> Instances:
    """Read the instances in the signature's form; `of_images`: whether its strings are images, None if unknown."""
    path, layout = arguments.instances, options.second_layout(arguments, "instance")
    inputs = signature.get("inputs", {"instances": {}})
    if any(len(spec["shape"]) > 2 for name, spec in inputs.items() if name != "instances"):
        raise DataError(f"{path}: the model's inputs {', '.join(inputs)} are not columns of a table; use the client.")
    dtype = inputs.get("instances", {}).get("dtype")
    if dtype in ("str", "string"):
        return read_inputs(path, _kind_of_strings(path, layout, of_images), layout)
    if dtype is not None:
        return read_inputs(path, VECTORS, layout)
    columns = {name: (spec.get("dtype"), len(spec.get("shape", ()))) for name, spec in inputs.items()}
    return read_inputs(path, served_tables(columns, options.column_types(arguments.types)), layout)


def _kind_of_strings(path: Path, layout: Layout, of_images: bool | None) -> InstanceKind:
    """Texts or images, for a model with string inputs; determined from the file if the model does not tell."""
    if of_images is None:
        named = {"text", "image"} & {*layout.columns}
        if path.is_dir() or named == {"image"}:
            return IMAGES
        if path.suffix == ".txt" or named == {"text"}:
            return TEXTS
        columns = {*column_names(path, own_encoding(path, layout))}
        of_images = holds_images(path, layout)
        if of_images and "text" in columns:
            raise DataError(
                f"{path}: has texts and images, and the server does not say which of them the model takes. Give "
                "--instance-columns text=text or --instance-columns image=image."
            )
    return IMAGES if of_images else TEXTS


def _signature(known: Collection[str]) -> str:
    """The signature of a model to use for predictions, depending on the kind of label."""
    return next(
        (name for kind in KINDS.values() if (name := kind.prediction.signature) in {*known} - {DEFAULT}), DEFAULT
    )
