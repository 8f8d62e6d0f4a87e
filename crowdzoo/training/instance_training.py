"""Training of a base on crowd labels, for the command line and the pipeline."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import keras
import numpy as np
from numpy.typing import ArrayLike

from crowdzoo.data.annotations import Annotations
from crowdzoo.data.instance_kinds import VECTORS
from crowdzoo.data.label_kinds import label_kind
from crowdzoo.errors import ConfigError, DataError, Setting
from crowdzoo.networks.decodable import naming_undecodable
from crowdzoo.networks.instance_encoder import InstanceEncoder
from crowdzoo.networks.reward_model import RewardModel
from crowdzoo.reading.instances.instances import Instances, take_rows
from crowdzoo.reading.instances.tables import given_columns
from crowdzoo.training.bases import BASES, Base, Sizes
from crowdzoo.training.batches import TargetBatches
from crowdzoo.training.checkpoint import Checkpoint, checkpoint_of
from crowdzoo.training.crowd_model import CrowdModel
from crowdzoo.training.data import ArrayData
from crowdzoo.training.faults import LOOKED_AT
from crowdzoo.training.held_out_annotations import early_stopping, held_out_tasks
from crowdzoo.training.length import num_labelled, with_length
from crowdzoo.training.methods import AGGREGATED
from crowdzoo.training.pair_rows import Examples, annotations_from_frame, pair_sides
from crowdzoo.training.rating_units import rating_targets, rating_unit
from crowdzoo.training.settings import InstanceSettings, TableSettings
from crowdzoo.training.training_loop import check_answers, compile_model, crowd_of, fit_and_check, pair_with_tasks
from crowdzoo.training.training_scope import in_training_scope

if TYPE_CHECKING:
    from crowdzoo.backend import KerasBatches

# Call that messages suggest; see `pair_rows`
TRAIN = "train(settings, x, annotations=annotations, tasks={})"


def build_model(
    settings: InstanceSettings, sizes: Sizes, encoder: InstanceEncoder | None = None, base: Base | None = None
) -> CrowdModel:
    """Makes a compiled model. Its weights depend on `keras.utils.set_random_seed`, which `train` calls.

    Args:
        settings: how to train.
        sizes: sizes that depend on the data.
        encoder: encoder of the base, if it has one.
        base: makes the base model; None uses the one that the settings name.

    Returns:
        The model, without a crowd layer for method "aggregated". For pairs a `RewardModel` on the base. The base is not
        yet adapted to the instances: call `BASES[settings.base].adapt`.

    Raises:
        ConfigError: the method needs the number of annotators.

    Example:
        >>> from crowdzoo.models import Sizes, TextIds, TextSettings, build_model
        >>> sizes, encoder = Sizes(num_annotators=5, num_classes=4), TextIds(["good", "bad"])
        >>> model = build_model(TextSettings(method="ccem"), sizes, encoder)
        >>> tuple(model(encoder.to_numpy(["a good film"])).shape)
        (1, 4)
    """
    if sizes.num_annotators is None and settings.method != AGGREGATED:
        raise ConfigError(f"method {settings.method} needs the number of annotators")
    scale = {"center": sizes.center, "unit": sizes.unit, "num_annotations": sizes.num_annotations}
    crowd = crowd_of(settings, sizes.num_annotators or 0, sizes.num_classes, **scale)
    if crowd is not None and crowd.traits.needs_hidden_layer:
        sizes = replace(sizes, head=False)
    base = base or BASES[settings.base]
    model = base.build(settings, sizes, encoder)
    if label_kind(settings.kind).has_pairs:
        return compile_model(settings, RewardModel(model, name="pairs"), crowd)
    return compile_model(settings, model, crowd, sizes.unit, features=base.features(model))


@in_training_scope
def train(
    settings: InstanceSettings,
    x: Examples,
    *,
    annotations: Annotations | None = None,
    tasks: ArrayLike | None = None,
    label_distribution: np.ndarray | None = None,
    ratings: np.ndarray | None = None,
    base: Base | None = None,
    verbose: str | int = 0,
    callbacks: Iterable[keras.callbacks.Callback] = (),
    checkpoint: str | os.PathLike[str] | Checkpoint | None = None,
) -> tuple[CrowdModel, InstanceEncoder | None]:
    """Trains a model from scratch. Two runs with the same arguments on one CPU give the same weights.

    Args:
        settings: how to train; their class determines the kind of instances: `TrainingSettings` (features),
            `TextSettings`, `ImageSettings`, `TableSettings` or `OwnSettings`.
        x: instances, N rows: features `[N, D]`, N texts, N images, or a table (a frame, or a mapping of columns); or
            instances with the ids of their rows, such as those of `crowdzoo.instances.read_instances`. The base adapts
            to them: to mean and variance of features, the words of texts, the categories of columns.
        annotations: annotations, or a frame with one row per annotation. Needed by every method but "aggregated", and
            for pairs by every method.
        tasks: ids of the rows of x, `[N]`, which match them with the annotations; see `CrowdModel.fit`.
        label_distribution: `[N, K]`, rows sum to one, for method "aggregated"; for pairs `[P, 3]`, a row for each
            of `annotations.pairs()`, in their order.
        ratings: `[N]`, one number per task (NaN leaves out a task), for method "aggregated" of kind "regression".
        base: makes the base model; None uses the one that the settings name.
        verbose: Keras' verbosity.
        callbacks: Keras callbacks.
        checkpoint: folder in which the state is kept after each epoch; with the same arguments an interrupted training
            continues from it and ends with the same weights. It is not removed. None saves nothing.

    Returns:
        The trained model, and the encoder that turns instances into its input (None for features). For pairs its base
        is a `RewardModel`, whose `scorer` takes single instances. Ratings are standardised internally by their mean and
        deviation; the model's predictions are in the labels' unit.

    Raises:
        ConfigError: a checkpoint of another training.
        DataError: the labels that the method needs are missing, or do not fit the instances or the scale; texts without
            words; rows of x cannot be matched with tasks; or the loss or a weight became NaN or infinite.

    Warns:
        NotLearnedWarning: the trained model predicts the same for all tasks, while their labels differ.

    Example:
        >>> import numpy as np
        >>> from crowdzoo import Annotations
        >>> from crowdzoo.models import TrainingSettings, train
        >>> truth = np.arange(40) % 2
        >>> x = np.eye(2, dtype="float32")[truth]  # features that tell the classes apart
        >>> annotations = Annotations.from_dense(np.stack([truth, truth, truth], axis=1))
        >>> model, encoder = train(TrainingSettings(epochs=1), x, annotations=annotations, tasks=np.arange(40))
        >>> model.predict(x, verbose=0).shape
        (40, 2)
    """
    if not (base is None or hasattr(base, "encoder")):
        raise ConfigError("train: a model of your own is trained by CrowdClassifier(base=model).fit(x, annotations).")
    annotations = annotations_from_frame(annotations, settings.kind, line=TRAIN)
    if annotations is not None and annotations.kind != settings.kind:
        raise DataError(f"the settings are of kind {settings.kind}, the annotations of kind {annotations.kind}")
    all_annotations = annotations
    x, annotations, tasks = pair_with_tasks(settings, prepare_instances(settings, x), annotations, tasks, TRAIN)
    sides: dict[str, np.ndarray] = {}  # rows of x
    if all_annotations is not None and all_annotations.right_ids is not None:
        sides, annotations = pair_sides(all_annotations, annotations)
        tasks = annotations.tasks
    targets, sizes = _targets(settings, annotations, label_distribution, ratings)
    if settings.instances == VECTORS:
        x = np.asarray(x, dtype="float32")
        if x.ndim != 2:
            raise DataError(f"features must have shape [tasks, features], got {x.shape}")
        sizes = replace(sizes, num_features=x.shape[1])
    settings = with_length(settings, num_labelled(annotations, targets))
    keras.utils.set_random_seed(settings.seed)
    base = base or BASES[settings.base]
    encoder = base.encoder(settings, lambda: [x])
    model = build_model(settings, sizes, encoder, base)
    base.adapt(model.base.scorer if sides else model.base, encoder, lambda: [x])
    encode: Any = encoder if encoder is not None and encoder.per_batch else None
    with naming_undecodable(x):
        first = take_rows(x, slice(LOOKED_AT))
        if encoder is not None:
            first = encoder.to_numpy(first)
            x = x if encode else encoder.to_numpy(x)
        if sides:
            x = {side: take_rows(x, rows) for side, rows in sides.items()}
            encode = encode and _each_side(encode)
        data: Any
        if isinstance(targets, Annotations):
            if settings.patience is not None:
                held_out = held_out_tasks(targets.redundancy > 0, settings.seed)
                held_x = encode_rows(x, held_out, encode)
                callbacks = [*callbacks, *early_stopping(settings.patience, held_x, targets, held_out)]
                targets = targets.select_rows(~held_out[targets.task_ids])  # same tasks and annotators
            data, labels = ArrayData(x, targets, tasks, encode=encode), targets.labels
        else:
            order: dict[str, Any] = {"batch_size": settings.batch_size, "seed": settings.seed}
            data = TargetBatches(x, targets, **order, encode=encode).for_keras()
            labels = targets.argmax(axis=1) if sizes.num_classes or sides else targets[:, 0]
        keep = checkpoint_of(checkpoint, (x, targets), settings)
        fit_and_check(model, settings, data, callbacks=callbacks, checkpoint=keep, verbose=verbose)
    check_answers(model, settings.kind, first, labels, getattr(targets, "classes", None))
    return model, encoder


def _each_side(encoder: Any) -> Any:
    """Applies an encoder of single instances to both sides of pairs."""
    return lambda values: {side: encoder(part) for side, part in values.items()}


def prepare_instances(settings: InstanceSettings, x: Any) -> Any:
    """Converts instances so that rows can be indexed: a list of texts to an array, a table to its columns."""
    if isinstance(settings, TableSettings) and not isinstance(x, Instances):
        if isinstance(x, Mapping) and {*x} == {"instances", "tasks"}:
            return {**x, "instances": given_columns(x["instances"], settings.inputs)}
        columns = given_columns(x, settings.inputs)
        return {"instances": columns, "tasks": x["task"]} if "task" in x else columns
    return np.array(x, dtype=object) if isinstance(x, (list, tuple)) and settings.instances != VECTORS else x


def _targets(settings: InstanceSettings, annotations: Any, label_distribution: Any, ratings: Any) -> tuple[Any, Sizes]:
    """Checks and returns the training targets and the sizes of the model."""
    num_annotators = None if annotations is None else annotations.num_annotators
    if not label_kind(settings.kind).has_classes:
        targets = rating_targets(settings, annotations, ratings)
        center, unit = rating_unit(targets)
        return targets, Sizes(num_annotators, center=center, unit=unit)
    of_pairs = label_kind(settings.kind).has_pairs
    if settings.method == AGGREGATED:
        if label_distribution is None:
            raise DataError("method aggregated needs label_distribution [N, K]")
        targets = np.asarray(label_distribution, dtype="float32")
        if targets.ndim != 2:
            raise DataError(f"label_distribution must have shape [tasks, classes], got {targets.shape}")
        if of_pairs and targets.shape != (annotations.num_tasks, annotations.num_classes):
            raise DataError(
                f"label_distribution must have a row for each of the {annotations.num_tasks:,} pairs, and a column for "
                f"each of {', '.join(annotations.classes)}, got shape {targets.shape}"
            )
        num_classes = targets.shape[1]
    else:
        targets, num_classes = annotations, annotations.num_classes
    if of_pairs:  # the base gives one score
        return targets, Sizes(num_annotators, num_annotations=len(annotations))
    if num_classes < 2:
        names = Setting("classes", ["A", "B"])
        raise DataError(f"all labels are of one class, so there is nothing to learn; name all the classes ({names})")
    return targets, Sizes(num_annotators, num_classes)


def encode_rows(values: Examples, rows: np.ndarray, encoder: InstanceEncoder | None) -> Examples | KerasBatches:
    """Some instances as the model's input.

    Args:
        values: instances of all tasks, as in `crowdzoo.instances.Instances`.
        rows: mask of the instances to encode, bool [N].
        encoder: converts them to the model's input, or None.

    Returns:
        Data for `CrowdModel.predict`.
    """
    chosen = take_rows(values, rows)
    if encoder is None or not encoder.per_batch:
        return chosen if encoder is None else encoder.to_numpy(chosen)
    batches = TargetBatches(chosen, np.flatnonzero(rows), batch_size=64, seed=0, shuffle=False, encode=encoder)
    return batches.as_tf_dataset().map(lambda x, _: x)
