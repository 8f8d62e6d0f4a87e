"""What TFX's Trainer runs. TFX loads this module a second time, so it holds one function and no registered class."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf
from absl import logging
from tfx import v1 as tfx

from crowdzoo.components.example_dataset import ExampleDataset
from crowdzoo.components.example_files import read_dataset_info
from crowdzoo.components.sequence_examples import read_examples
from crowdzoo.export.saved_model import export_model
from crowdzoo.models.feature_training import build_model
from crowdzoo.models.tagger_training import train_tagger
from crowdzoo.models.text_training import build_text_model, text_ids
from crowdzoo.training.expectation import annotation_columns
from crowdzoo.training.faults import LOOKED_AT, StopAtNaN, check_weights, warn_if_one_class, warn_if_one_value
from crowdzoo.training.length import with_length
from crowdzoo.training.methods import AGGREGATED
from crowdzoo.training.rating_units import rating_unit
from crowdzoo.training.settings import TaggerSettings, TextSettings, TrainingSettings

__all__ = ["run_fn"]


def run_fn(fn_args: tfx.components.FnArgs) -> None:
    """Trains a model on the train split and exports it; the same inputs give the same predictions.

    A regressor learns in units of the mean and deviation of the ratings (method "aggregated": of the estimates) that it
    learns from, and speaks in the labels' own.

    Writes the SavedModel to `fn_args.serving_model_dir`, and `model.keras` and `history.json` (the loss of each
    epoch) to `fn_args.model_run_dir`.

    Args:
        fn_args: TFX's arguments; `custom_config` holds `name`, `seed`, and the sections `model`, `method` and
            `training` of the pipeline's configuration.
    """
    config = fn_args.custom_config
    info = read_dataset_info(os.path.dirname(os.path.dirname(fn_args.train_files[0])))  # .../Split-train/*
    if info["task"] == "sequence":
        _train_tagger(fn_args, info)
        return
    if info["num_features"] is None:
        _train_texts(fn_args, info)
        return
    settings = _settings(TrainingSettings, config, info, task=info["task"])
    num_features, classes, annotators = info["num_features"], info["classes"], info["annotators"]
    num_classes = None if classes is None else len(classes)
    data = ExampleDataset(fn_args.train_files, info["num_tasks"]["train"], num_features, num_classes)
    mean, variance = data.moments()
    center, unit = (0.0, 1.0) if settings.task != "regression" else _rating_unit(data, settings.method)

    tf.config.experimental.enable_op_determinism()
    keras.utils.set_random_seed(settings.seed)
    model = build_model(
        settings, num_features=num_features, num_classes=num_classes or 0, num_annotators=len(annotators),
        center=center, unit=unit,
    )  # fmt: skip
    model.base.standardize.mean.assign(mean)
    model.base.standardize.variance.assign(variance)
    history = _fit(model, data, settings)
    predicted = model.predict(next(data.instances().as_numpy_iterator()), verbose=0)
    labels = annotation_columns(data)[2]
    if settings.task == "regression":
        warn_if_one_value(predicted[:, 0], labels)
    else:
        warn_if_one_class(predicted.argmax(axis=1), labels, classes)

    _save(model, history, Path(fn_args.model_run_dir))
    export_model(
        model,
        fn_args.serving_model_dir,
        classes=classes,
        annotators=annotators,
        name=config["name"],
        warmup_instances=next(data.instances(16).as_numpy_iterator()),
        model_card=_card(config, info, settings),
    )


def _settings(kind: Callable[..., Any], config: dict[str, Any], info: dict[str, Any], **more: Any) -> Any:
    """A training's settings out of the pipeline's sections; what they leave open follows from the number of tasks."""
    settings = kind(
        method=config["method"]["name"],
        arguments={key: value for key, value in config["method"].items() if key != "name"},
        seed=config["seed"],
        **{key: value for key, value in config["model"].items() if key != "base"},
        **config["training"],
        **more,
    )
    num_tasks = info["num_tasks"]["train"]
    settings = with_length(settings, num_tasks)
    logging.info("training: %d epochs, batches of %d, %d tasks", settings.epochs, settings.batch_size, num_tasks)
    return settings


def _fit(model: Any, data: ExampleDataset, settings: TrainingSettings | TextSettings) -> Any:
    order: dict[str, Any] = {"batch_size": settings.batch_size, "seed": settings.seed}
    how: dict[str, Any] = {"epochs": settings.epochs, "verbose": 2, "callbacks": [StopAtNaN()]}
    if settings.method == AGGREGATED:
        history = model.fit(data.aggregated(**order), **how)
    else:
        history = model.fit(data, **order, **how)
    check_weights(model)
    return history


def _rating_unit(data: ExampleDataset, method: str) -> tuple[float, float]:
    """Mean and deviation of what a regressor learns from."""
    return rating_unit(data.aggregated_ratings() if method == AGGREGATED else annotation_columns(data)[2])


def _train_texts(fn_args: tfx.components.FnArgs, info: dict[str, Any]) -> None:
    """The same for ratings of texts; `encoder.json` beside the model has the vocabulary."""
    config = fn_args.custom_config
    settings = _settings(TextSettings, config, info)
    source = (fn_args.train_files, info["num_tasks"]["train"], None, None)
    batches = ExampleDataset(*source).instances().as_numpy_iterator()
    texts = [text.decode() for batch in batches for text in batch]
    encoder = text_ids(settings, texts)
    data = ExampleDataset(*source, encode=encoder)
    center, unit = _rating_unit(data, settings.method)

    tf.config.experimental.enable_op_determinism()
    keras.utils.set_random_seed(settings.seed)
    model = build_text_model(
        settings, num_words=encoder.num_words, num_annotators=len(info["annotators"]), center=center, unit=unit
    )
    model.base.adapt(encoder.to_numpy(texts))
    history = _fit(model, data, settings)
    predicted = model.predict(encoder.to_numpy(texts[:LOOKED_AT]), verbose=0)
    warn_if_one_value(predicted[:, 0], annotation_columns(data)[2])

    _save(model, history, Path(fn_args.model_run_dir), encoder)
    export_model(
        model,
        fn_args.serving_model_dir,
        annotators=info["annotators"],
        encoder=encoder,
        name=config["name"],
        warmup_instances=texts[:16],
        model_card=_card(config, info, settings),
    )


def _train_tagger(fn_args: tfx.components.FnArgs, info: dict[str, Any]) -> None:
    """The same for sentences, which are read whole; `encoder.json` beside the model has the vocabulary."""
    config = fn_args.custom_config
    settings = _settings(TaggerSettings, config, info)
    sentences = read_examples(fn_args.train_files, info)
    tf.config.experimental.enable_op_determinism()
    model, encoder = train_tagger(
        settings, sentences.tokens, sentences.annotations, tasks=sentences.annotations.tasks, scheme=info["scheme"],
        tag_distribution=sentences.posteriors if settings.method == AGGREGATED else None, verbose=2,
    )  # fmt: skip
    _save(model, model.history, Path(fn_args.model_run_dir), encoder)
    export_model(
        model,
        fn_args.serving_model_dir,
        classes=info["classes"],
        annotators=info["annotators"],
        encoder=encoder,
        name=config["name"],
        warmup_instances=sentences.texts[:16],
        model_card={**_card(config, info, settings), "scheme": info["scheme"]},
    )


def _save(model: Any, history: Any, folder: Path, encoder: Any = None) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    model.save(folder / "model.keras")
    (folder / "history.json").write_text(json.dumps(history.history, indent=2))
    if encoder is not None:
        (folder / "encoder.json").write_text(json.dumps(encoder.get_config(), ensure_ascii=False), encoding="utf-8")


def _card(config: dict[str, Any], info: dict[str, Any], settings: Any) -> dict[str, Any]:
    """What the model's card says of its training."""
    return {
        "training_tasks": info["num_tasks"]["train"],
        "seed": config["seed"],
        "method": config["method"],
        "model": config["model"],
        "training": {**config["training"], "epochs": settings.epochs, "batch_size": settings.batch_size},
        "aggregation": info["aggregation"],
    }
