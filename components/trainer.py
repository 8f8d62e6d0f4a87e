"""What TFX's Trainer runs. TFX loads this module a second time, so it holds one function and no registered class."""

import json
import os
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf
from tfx import v1 as tfx

from crowdzoo.components.example_dataset import ExampleDataset
from crowdzoo.components.example_files import read_dataset_info
from crowdzoo.export import export_model
from crowdzoo.models.methods import AGGREGATED
from crowdzoo.models.training import TrainingSettings, build_model

__all__ = ["run_fn"]


def run_fn(fn_args: tfx.components.FnArgs) -> None:
    """Trains a model on the train split and exports it; the same inputs give the same predictions.

    Writes the SavedModel to `fn_args.serving_model_dir`, and `model.keras` and `history.json` (the loss of each
    epoch) to `fn_args.model_run_dir`.

    Args:
        fn_args: TFX's arguments; `custom_config` holds `name`, `seed`, and the sections `model`, `method` and
            `training` of the pipeline's configuration.
    """
    config = fn_args.custom_config
    settings = TrainingSettings(
        method=config["method"]["name"],
        arguments={key: value for key, value in config["method"].items() if key != "name"},
        seed=config["seed"],
        **{key: value for key, value in config["model"].items() if key != "base"},
        **config["training"],
    )
    info = read_dataset_info(os.path.dirname(os.path.dirname(fn_args.train_files[0])))  # .../Split-train/*
    num_features, classes, annotators = info["num_features"], info["classes"], info["annotators"]
    data = ExampleDataset(fn_args.train_files, info["num_tasks"]["train"], num_features, len(classes))
    mean, variance = data.moments()

    tf.config.experimental.enable_op_determinism()
    keras.utils.set_random_seed(settings.seed)
    model = build_model(settings, num_features=num_features, num_classes=len(classes), num_annotators=len(annotators))
    model.base.standardize.mean.assign(mean)
    model.base.standardize.variance.assign(variance)
    order: dict[str, Any] = {"batch_size": settings.batch_size, "seed": settings.seed}
    if settings.method == AGGREGATED:
        history = model.fit(data.aggregated(**order), epochs=settings.epochs, verbose=2)
    else:
        history = model.fit(data, epochs=settings.epochs, verbose=2, **order)

    run_folder = Path(fn_args.model_run_dir)
    run_folder.mkdir(parents=True, exist_ok=True)
    model.save(run_folder / "model.keras")
    (run_folder / "history.json").write_text(json.dumps(history.history, indent=2))
    export_model(
        model,
        fn_args.serving_model_dir,
        classes=classes,
        annotators=annotators,
        name=config["name"],
        warmup_instances=next(data.instances(16).as_numpy_iterator()),
        model_card={
            "training_tasks": info["num_tasks"]["train"],
            "seed": settings.seed,
            "method": config["method"],
            "model": config["model"],
            "training": config["training"],
            "aggregation": info["aggregation"],
        },
    )
