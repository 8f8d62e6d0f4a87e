"""Training from files of Examples, with the same recipes as `crowdzoo train`."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import keras
import numpy as np

from crowdzoo.data.annotations import Annotations
from crowdzoo.files.model_files import name_difference, read_model_names
from crowdzoo.networks.encoders import encoder_of
from crowdzoo.reading.instances.instances import take_rows
from crowdzoo.records.example_dataset import ExampleDataset
from crowdzoo.records.example_files import DatasetInfo
from crowdzoo.training.bases import BASES, Sizes
from crowdzoo.training.checkpoint import Checkpoint, checkpoint_of
from crowdzoo.training.expectation import annotation_columns
from crowdzoo.training.faults import LOOKED_AT
from crowdzoo.training.held_out_annotations import early_stopping, held_out_tasks
from crowdzoo.training.instance_training import build_model
from crowdzoo.training.methods import AGGREGATED
from crowdzoo.training.rating_units import rating_unit
from crowdzoo.training.settings import InstanceSettings
from crowdzoo.training.training_loop import check_answers, fit_and_check
from crowdzoo.training.training_scope import in_training_scope
from crowdzoo.training.warm_start import warm_start

WARMUP = 16
NAMES_FILE = "model.names.json"
INSTANCES = "instances"  # entry of the names file with facts about instances


@dataclass(frozen=True)
class Trained:
    """A trained model.

    Attributes:
        model: the model.
        history: Keras' history of its training.
        encoder: converts instances to its input; None if instances are the input.
        warmup: instances for warm-up requests.
        began: whether training started from the weights of an earlier one.
    """

    model: Any
    history: Any
    encoder: Any
    warmup: Any
    began: bool = False


@in_training_scope
def train_on_instances(
    settings: InstanceSettings,
    files: Sequence[str],
    info: DatasetInfo,
    checkpoint: Checkpoint | None = None,
    start: str | None = None,
) -> Trained:
    """Trains a classifier or a regressor in batches that are read from the files and encoded when needed.

    A regressor learns ratings standardised by their mean and deviation (method "aggregated": those of the estimates),
    and its predictions are in the labels' unit.

    Args:
        settings: settings of the training, with epochs and batch size.
        files: patterns of the files of the split train.
        info: result of `read_dataset_info`.
        checkpoint: folder in which the state is saved after each epoch; None saves nothing.
        start: folder of the Trainer's model_run from whose weights training starts; None starts from new weights.
    """
    base, classes, num_tasks = BASES[settings.base], info["classes"], info["num_tasks"]["train"]
    data = ExampleDataset(files, num_tasks, info)
    names = None if start is None else _names_to_begin_with(Path(start), info)
    # its words fit the weights
    encoder = None if names is None else encoder_of(names, Path(start or "", NAMES_FILE))
    if encoder is None:
        encoder = base.encoder(settings, data.instances().as_numpy_iterator)
    columns = annotation_columns(data)  # first, as it may raise an error before instances are encoded
    labels = columns[2]
    if encoder is not None:
        data = ExampleDataset(files, num_tasks, info, encode=encoder)
    sizes = Sizes(len(info["annotators"]), len(classes or ()), num_features=info["num_features"])
    if classes is None:
        center, unit = rating_unit(data.aggregated_ratings() if settings.method == AGGREGATED else labels)
        sizes = replace(sizes, center=center, unit=unit)

    keras.utils.set_random_seed(settings.seed)
    model = build_model(settings, sizes, encoder)
    base.adapt(model.base, encoder, data.instances().as_numpy_iterator)
    began = names is not None and _begin_with(model, Path(start or ""), names, info)
    callbacks = []
    if settings.patience is not None:
        held_out = held_out_tasks(np.ones(num_tasks, bool), settings.seed)
        names_of_codes = {"annotators": info["annotators"], "classes": classes}
        annotations = Annotations("classification", *columns, tasks=np.arange(num_tasks), **names_of_codes)
        held_x = ExampleDataset(files, num_tasks, info, encoder, held_out).batches(64, 0, shuffle=False)
        callbacks = early_stopping(settings.patience, held_x, annotations, held_out)
        data = ExampleDataset(files, num_tasks, info, encoder, ~held_out)
    assert settings.batch_size is not None  # see `with_length`
    batches = data.aggregated(settings.batch_size, settings.seed) if settings.method == AGGREGATED else data
    keep = checkpoint_of(checkpoint, None if checkpoint is None else checkpoint.data, settings)
    history = fit_and_check(model, settings, batches, callbacks=callbacks, checkpoint=keep, verbose=2)
    first = next(data.instances(LOOKED_AT).as_numpy_iterator())
    check_answers(model, settings.kind, first if encoder is None else encoder.to_numpy(first), labels, classes)
    return Trained(model, history, encoder, take_rows(first, slice(WARMUP)), began)


def instances_of(info: DatasetInfo) -> DatasetInfo:
    """Facts about the instances of a training, by which a later one decides whether it can start from its weights."""
    return {key: info.get(key) for key in ("instances", "features", "columns")}


def _names_to_begin_with(start: Path, info: DatasetInfo) -> dict[str, Any] | None:
    """Names of an earlier training whose weights fit classes and instances; else None, and the reason is printed."""
    names = read_model_names(start / NAMES_FILE)
    before, now = names.get(INSTANCES), instances_of(info)
    differs = name_difference("class", info["classes"] or [], names["classes"] or [])
    if not differs and before is not None and before != now:  # trainings by earlier releases have no such entry
        differs = f"instances are {now['instances']}, were {before['instances']}"
        if now["instances"] == before["instances"]:
            keys = ("features", "columns")
            differences = (name_difference("column", list(now[key] or ()), list(before[key] or ())) for key in keys)
            differs = next(filter(None, differences), "columns have other types")
    if not differs:
        return names
    print(f"warm_start: the weights are fresh, as the model of {start} was trained on others: {differs}")
    return None


def _begin_with(model: Any, start: Path, names: dict[str, Any], info: DatasetInfo) -> bool:
    """Starts from the weights of an earlier training and prints the outcome; returns whether they fit."""
    unseen = warm_start(model, keras.saving.load_model(start / "model.keras"), names["annotators"], info["annotators"])
    if unseen is None:
        print(f"warm_start: the weights are fresh, as the model of {start} has other layers")
    else:
        new = "1 annotator is new" if unseen == 1 else f"{unseen} annotators are new"
        print(f"warm_start: the weights are those of {start}; {new}")
    return unseen is not None
