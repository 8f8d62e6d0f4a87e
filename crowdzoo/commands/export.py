"""`crowdzoo export`: export a trained model as the next version of a served folder, or as a portable folder."""

import argparse
import shlex
from typing import Any

from crowdzoo.commands import options
from crowdzoo.commands.options import path
from crowdzoo.data.instance_kinds import VECTORS
from crowdzoo.errors import ConfigError, DataError, option_text
from crowdzoo.files.model_files import names_path, read_model_names
from crowdzoo.files.paths import check_output_folder
from crowdzoo.files.version_folders import next_version
from crowdzoo.networks.encoders import encoder_of
from crowdzoo.process import use_tensorflow
from crowdzoo.reading.instances.instances import read_inputs, take_rows
from crowdzoo.reading.instances.upright_image import opened
from crowdzoo.training.bases import own_function


def describe(command: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    command.add_argument("model", type=path, help="a .keras file from `crowdzoo train`, or a folder of --hub")
    command.add_argument("out", type=path, help="the served folder; the model becomes its next version")
    texts = {
        "--base FILE.py:FUNCTION": "the function that made a base of your own, whose module defines classes of the "
        "model",
        "--hub LICENCE": "write a folder for the hub of Hugging Face or Kaggle instead, with Keras' own files and a "
        "card, under this licence (by its name on the hub, such as cc-by-4.0)",
    }
    options.add_options(command, texts)
    warmup = {"--warmup INSTANCES": "file of instances; its first rows become warm-up requests"}
    options.add_options(command, warmup, type=path)
    on_card = "with --hub: a figure or a sentence for the card, such as accuracy=0.76"
    options.add_values(command, "--card", on_card, "card")
    options.add_second_columns(command, "instance")
    options.add_text_options(command)


def run(arguments: argparse.Namespace) -> None:
    """Write the next version of a served folder, or the portable folder, and print its path."""
    hub = arguments.hub is not None
    if not hub and arguments.card:
        raise ConfigError("--card is for a folder that travels: give --hub LICENCE.")
    use_tensorflow()
    from crowdzoo.export.pretrained import save_pretrained
    from crowdzoo.export.saved_model import export_model
    from crowdzoo.saving import load_model

    if not arguments.model.exists():
        option = option_text("--out", str(arguments.model))
        raise DataError(f"{arguments.model}: the file does not exist. `crowdzoo train {option}` makes one.")
    target = arguments.out if hub else arguments.out / str(next_version(arguments.out))
    check_output_folder(target, "out")
    if arguments.model.is_file() and arguments.model.suffix != ".keras":
        fix = f"`crowdzoo train {shlex.quote(str(arguments.model))} INSTANCES --out model.keras` trains one"
        raise DataError(f"{arguments.model}: is not a trained model (.keras). If it holds annotations, {fix}.")
    names_file = names_path(arguments.model)
    if not names_file.is_file():
        raise DataError(
            f"{names_file}: is missing; it has the class names, and `crowdzoo train` writes it next to "
            f"{arguments.model}. A model of model.save is exported in Python: model.export(FOLDER, classes=[...], "
            "annotators=[...])."
        )
    names = read_model_names(names_file)
    encoder = encoder_of(names, names_file)
    warmup, features = None, names.get("features")
    if arguments.warmup:
        of_kind = VECTORS if encoder is None else encoder.instances
        instances = read_inputs(arguments.warmup, of_kind, options.second_layout(arguments, "instance"))
        warmup = opened(take_rows(instances.in_order(features, arguments.warmup), slice(16)))
    if arguments.base is not None:
        own_function(arguments.base)  # registers its classes
    model = load_model(arguments.model)
    vocabularies = {name: names[name] for name in ("classes", "annotators")}
    if hub:
        settings = options.settings_of(arguments.card, "--card", {})
        facts: dict[str, Any] = {"features": features, "training": names.get("training"), "card": settings}
        print(save_pretrained(model, target, **vocabularies, encoder=encoder, licence=arguments.hub, **facts))
        return
    card = {key: names[key] for key in ("features", "training") if names.get(key)}
    export_model(model, target, **vocabularies, encoder=encoder, warmup_instances=warmup, model_card=card)
    print(target)
