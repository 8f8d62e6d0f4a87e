"""`crowdzoo train`: train a model on annotators' labels, without the pipeline."""

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from crowdzoo.commands import options
from crowdzoo.commands.options import add_options, group, path
from crowdzoo.commands.outputs import Output, fitted, marked, progress
from crowdzoo.data.instance_kinds import InstanceKind
from crowdzoo.errors import ConfigError, shorten
from crowdzoo.files.model_files import names_path
from crowdzoo.files.paths import check_apart
from crowdzoo.files.writing import atomic_file, atomic_path
from crowdzoo.kinds import Kind, TrainingSet
from crowdzoo.networks.encoders import model_names
from crowdzoo.report.tables import print_table
from crowdzoo.training.bases import is_own
from crowdzoo.training.digest import digest_of
from crowdzoo.training.length import num_labelled, with_length

ENCODER = ("inputs", "form", "height", "width", "fit")  # options for the encoder of a custom base
TRAINING = "training"  # heading of --help
MOST_LAYERS, MOST_UNITS = 100, 1 << 16
# Settings with an option, and their help
FIELDS = {
    "dropout": "share of hidden units dropped in training",
    "epochs": "passes over the tasks (default: by their number)",
    "batch_size": "tasks per training step (default: by their number)",
    "learning_rate": "learning rate of Adam",
    "form": "how they are read: convolutional, bag-of-words or characters (default: characters for texts without "
    "spaces, else bag-of-words)",
    "height": "rows that an image has for the model, in pixels; 128 for masks",
    "width": "columns that an image has for the model, in pixels; 128 for masks",
    "fit": "how an image of another shape is made to fit: crop keeps the middle, stretch all of it",
    "backbone": "a network in place of the residual one: a name in keras.applications, or the path of a .keras file "
    "(default: none)",
    "backbone_weights": "path of the weights of a named backbone (default: random weights)",
    "pixel_scale": "values of pixels that the backbone expects: 0 to 255, 0 to 1, -1 to 1, imagenet or imagenet-bgr "
    "(default: as a named backbone was trained)",
    "fine_tune": "whether the backbone's weights are trained, too (default: no)",
    "augment": "whether images are mirrored and shifted in training (default: yes); not for things such as letters",
    "precision": "numbers that the base computes with: float32, mixed_bfloat16 or mixed_float16 (default: as Keras "
    "is configured)",
    "jit_compile": "whether XLA compiles the training steps (default: as Keras decides)",
    "gradient_accumulation_steps": "batches whose mean gradient makes a training step",
    "patience": "for classes: stop after so many epochs in which held-out annotations were not predicted better "
    "(default: run all epochs)",
    "devices": "number of devices that each batch is spread over: GPUs, or CPUs without GPUs",
}


def describe(command: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    options.add_annotations(command)
    method = {
        "--method NAME": "method that learns from the labels of all annotators (default ccem; ratings and sentences: "
        "crowdsourced-layer, preferences: pair-annotators, regions: the aggregation staple), or an aggregation method "
        "of `crowdzoo aggregate`, to train on its posteriors or estimates; an unknown name prints the list. For "
        "ratings, rating-em is a method of the first sort, and aggregated trains on the estimates of rating-em",
    }
    add_options(command, method)
    options.add_values(command, "--set", "setting of the method, such as connection=VW")
    options.add_seed(command, "weights, dropout and the order of the tasks", most=2**32 - 1)
    out = {"--out FILE.keras": "file for the trained model"}
    add_options(group(command, options.OUTPUT), out, type=path, required=True)
    add_training(command)
    checkpoint = {
        "--checkpoint FOLDER": "keep the state of the training in this folder after each epoch. A run that was killed "
        "goes on from there when the same command is given again, and ends with the same model. The folder is removed "
        "when the model is saved",
    }
    add_options(group(command, TRAINING), checkpoint, type=path)
    gold = {
        "--gold FILE": "sentences: file of true tags, to print F1. Preferences: file of pairs with the columns left, "
        "right, gold (left, right or equal), to print the share that is right. Regions: as for aggregate. Else gold is "
        "a column",
    }
    add_options(group(command, options.INSTANCES), gold, type=path)
    options.add_reading(command, "instance")
    options.add_image(command, "; with a folder of images it is found where there is only one")
    options.add_kinds(command)
    is_archive, is_names = marked("^PK.*metadata.json"), marked(r'^{"classes": (null|\[)')
    model = Output("out", "--out", lambda path: is_archive(path) and is_names(names_path(path)))
    names = Output("out", "names of --out", is_names, place=names_path)
    options.add_outputs(command, ("annotations", "instances", "gold"), model, names, options.REJECTS)


def run(arguments: argparse.Namespace) -> None:
    """Read, train, save the model with its names, and print a summary."""
    if arguments.out.suffix != ".keras":
        raise ConfigError(f"--out {arguments.out}: a model's file ends in .keras.")
    if arguments.checkpoint is not None:
        _check_checkpoint(arguments)
    kind = options.checked_kind(arguments)
    hyperparameters = options.settings_of(arguments.settings)
    if arguments.gold is not None and "gold" not in (*kind.options.reading, *kind.options.training):
        raise ConfigError(f"--gold {arguments.gold}: what is known of {kind.title} is a column gold of the instances.")
    named = kind.training.default if arguments.method is None else arguments.method
    method, aggregation = kind.training.split_method(named)
    scale = options.given(arguments, kind.options.scale)
    settings = settings_of(
        arguments, kind, method=method, arguments=hyperparameters if aggregation is None else {}, seed=arguments.seed
    )
    aggregator = None
    if aggregation is not None:
        aggregator = kind.aggregation.create(aggregation, seed=arguments.seed, **scale | hyperparameters)
    data = training_set_of(arguments, kind)
    targets = None if aggregator is None else kind.training.targets(fitted(aggregator, data.trained_on), data.used)
    settings = with_length(settings, num_labelled(data.used))
    import keras

    keep = None
    if arguments.checkpoint is not None:
        from crowdzoo.training.checkpoint import Checkpoint, remove_checkpoint

        aggregated = {} if aggregation is None else {"method": named, "arguments": hyperparameters}
        keep = Checkpoint(arguments.checkpoint, settings=aggregated)
    with progress("training", settings.epochs) as step:
        each_epoch = keras.callbacks.LambdaCallback(on_epoch_end=lambda *_: step())
        how: Any = {"targets": targets, "callbacks": [each_epoch], "checkpoint": keep}
        model, encoder = kind.training.train(settings, data.instances, data.trained_on, **how)
    training = {"method": named, "settings": asdict(settings), "sha-256 of the annotations": digest_of(data.used)}
    _save_model(kind, model, encoder, data, training, arguments.out)
    if keep is not None:
        remove_checkpoint(keep.folder)
    rows = [
        *kind.reading.size_rows(data.trained_on, " trained on"),
        ("epochs", f"{settings.epochs:,}"),
        ("batch size", f"{settings.batch_size:,}"),
        *_stopped_rows(settings, model),
        *([("resumed after epoch", f"{keep.resumed:,}")] if keep is not None and keep.resumed else []),
        *kind.training.rows(model, encoder, data),
        ("model", str(arguments.out)),
    ]
    print_table(named, ("", ""), rows)


def add_training(command: argparse.ArgumentParser) -> None:
    """Add the options for instances and for training a base on them."""
    instances = (
        "columns task, features (or text, image, a path, or columns of a table), optional gold and split (.parquet, "
        ".csv, .csv.gz); or a folder of images; not for sentences"
    )
    command.add_argument("instances", type=path, nargs="?", help=instances)
    options.add_column_types(command)
    training = group(command, TRAINING)
    base = {
        "--base NAME": "base model: a function of your own that makes it, package.module:function or file.py:function, "
        "or one of crowdzoo's own by name (default: by the instances' columns)",
    }
    add_options(training, base)
    options.add_values(training, "--base-set", "argument of that function", "base_settings")
    of_encoder = (
        "with a base of your own: setting of what encodes texts, images or columns for it, such as max_words=5000"
    )
    options.add_values(training, "--encoder-set", of_encoder, "encoder_settings")
    add_options(training, {"--hidden N,N,…": "units of the hidden layers (default 128); texts: units of the last one"})
    options.add_settings(training, FIELDS)


def settings_of(line: argparse.Namespace, kind: Kind, **overrides: Any) -> Any:
    """Training settings from the command line; `overrides` are further fields.

    Raises:
        ConfigError: a setting that the base does not have, or a value out of range.
    """
    fields = options.given(line, FIELDS)
    if line.hidden is not None:
        fields["hidden"] = _whole_numbers("--hidden", line.hidden)
    inputs = options.column_types(line.types)
    if inputs:
        fields["inputs"] = inputs
    of_kind = kind.training.instances_of(line.instances, inputs, options.second_layout(line, "instance"), line.base)
    base = line.base or of_kind.bases[kind.name]
    if is_own(base):
        fields = _own_fields(line, of_kind, fields)
    else:
        for flag, words in (("--base-set", line.base_settings), ("--encoder-set", line.encoder_settings)):
            if words:
                raise ConfigError(f"{flag}: is for a base of your own, --base FILE.py:FUNCTION.")
    return kind.training.settings(base, **options.given(line, kind.options.scale), **overrides, **fields)


def training_set_of(arguments: argparse.Namespace, kind: Kind) -> TrainingSet:
    """Read the files of a command line; see `Training.read`."""
    reading = options.reading_options(arguments, kind) | options.given(arguments, kind.options.training)
    how = options.column_types(arguments.types), options.second_layout(arguments, "instance"), arguments.base
    return kind.training.read(arguments.annotations, arguments.instances, *how, **reading)


def _stopped_rows(settings: Any, model: Any) -> list[tuple[str, str]]:
    """Rows with the number of epochs and the best one, with early stopping."""
    if settings.patience is None:
        return []
    from crowdzoo.training.held_out_annotations import MONITORED

    values = model.history.history[MONITORED]
    return [("trained for epochs", f"{len(values):,}"), ("best epoch", f"{1 + values.index(max(values)):,}")]


def _check_checkpoint(arguments: argparse.Namespace) -> None:
    """Reject a path where a checkpoint folder cannot be."""
    place = arguments.checkpoint
    check_apart({"--checkpoint": place, "--out": arguments.out, "names of --out": names_path(arguments.out)})
    if place.exists() and not place.is_dir():
        raise ConfigError(f"--checkpoint {place}: is a file. Name a folder of its own, which need not exist.")


def _own_fields(arguments: argparse.Namespace, instances: InstanceKind, fields: dict[str, Any]) -> dict[str, Any]:
    """Settings of a custom base; options for encoding instances become settings of its encoder."""
    encoder = {name: fields.pop(name) for name in ENCODER if name in fields}
    encoder |= options.settings_of(arguments.encoder_settings, "--encoder-set", {})
    return {
        **fields,
        "instance_kind": instances.name,
        "base_arguments": options.settings_of(arguments.base_settings, "--base-set", {}),
        **({"encoder": encoder} if encoder else {}),
    }


def _save_model(kind: Kind, model: Any, encoder: Any, data: TrainingSet, training: dict[str, Any], place: Path) -> None:
    """Save the model, and next to it the names behind its codes and facts about the training.

    Each file is written atomically, the names first: a kill in between leaves them next to the earlier model.
    """
    known = data.annotations
    names = model_names(kind.training.class_names(known), known.annotators, data.names, encoder, training)
    with atomic_path(place) as scratch, atomic_file(names_path(place)) as file:
        model.save(scratch)
        file.write(json.dumps(names, default=str).encode())


def _whole_numbers(flag: str, text: str) -> tuple[int, ...]:
    try:
        numbers = tuple(int(part) for part in text.split(",") if part.strip())
    except ValueError:
        numbers = (0,)
    if not 1 <= len(numbers) <= MOST_LAYERS or any(not 1 <= number <= MOST_UNITS for number in numbers):
        raise ConfigError(
            f"{flag} {shorten(text)}: write 1 to {MOST_LAYERS} whole numbers of 1 to {MOST_UNITS:,} with commas "
            "between, as in 128,64."
        )
    return numbers
