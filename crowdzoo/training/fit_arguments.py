"""Arguments of `CrowdModel.fit` and `evaluate`: paired, checked, and made into batches."""

from collections.abc import Mapping
from typing import Any

import keras
import numpy as np
from numpy.typing import ArrayLike

from crowdzoo.backend import KerasBatches, Tensor, as_strings
from crowdzoo.data.annotations import Annotations
from crowdzoo.errors import ConfigError, DataError
from crowdzoo.layers.crowd_layer import CrowdLayer
from crowdzoo.losses import MaskedCrossentropy, same_shape
from crowdzoo.networks.preprocessed import Preprocessed
from crowdzoo.training.batches import TargetBatches, checked_weights
from crowdzoo.training.data import ArrayData, BatchOrder, answer_shape, split_row
from crowdzoo.training.gold_targets import gold_targets
from crowdzoo.training.mask_data import MaskData
from crowdzoo.training.pair_rows import (
    FIT,
    Examples,
    Labels,
    annotations_from_frame,
    instances_of,
    list_names,
    num_rows,
    pair_rows,
    with_task_column,
)
from crowdzoo.training.sparse_batch import check_columns, has_annotators

ROWS_AT_ONCE = 1024
SUM_TOLERANCE = 1e-3  # of the sum of a row of targets, also in half precision


def crowd_arrays(
    model: keras.Model, x: Examples, y: Labels, tasks: ArrayLike | None = None, task: str | None = None, line: str = FIT
) -> ArrayData | MaskData:
    """Pairs and checks the instances and annotations that `fit` gets; `line` is the call that messages suggest."""
    crowd = model.crowd
    x, y, line = _read_frame(model, x, y, task, line)
    if isinstance(y, Annotations):
        if y.kind != crowd.kind:
            raise DataError(f"the crowd layer is for {crowd.kind}, the annotations are of kind {y.kind}")
        x, annotations = pair_rows(x, y, tasks, line=line)
    elif tasks is not None and hasattr(y, "columns"):
        raise DataError(
            f"the frame has no column of tasks, such as 'task'; its columns are "
            f"{list_names(np.array(y.columns))}. Name it: task='NAME'."
        )
    elif tasks is not None:
        raise DataError("tasks= is for Annotations and frames; an array has a row for each row of x: leave it out.")
    elif crowd.label_kind.has_pixels:
        return _masks(model, x, y)
    elif has_annotators(x):
        x, annotations = x["instances"], _from_padded(crowd, x["annotators"], y)
    else:
        if np.ndim(y) == crowd.label_kind.axes:
            check_columns(crowd, np.shape(y))
        x, annotations = instances_of(x), Annotations.from_dense(y, kind=crowd.kind)
    if (rows := num_rows(x)) != annotations.num_tasks:
        advice = " If a row is an annotation, name the tasks' column: task='NAME'." if hasattr(y, "columns") else ""
        raise DataError(f"x has {rows:,} rows, the labels have {annotations.num_tasks:,}: give a row for each.{advice}")
    _build_on(model, x)
    _check_finite(model, x)
    _check_sizes(crowd, annotations, are_codes=not isinstance(y, Annotations))
    ids = token_ids(model, x)
    if ids is not x and isinstance(model.base.preprocessor, keras.layers.TextVectorization):
        _check_tokens(ids, annotations)
    return ArrayData(ids, annotations, annotations.tasks)


def token_ids(model: keras.Model, x: Examples) -> Any:
    """Raw texts of a tagger, preprocessed all at once because batches are cut to their tokens; else x."""
    base = model.base
    if not (isinstance(base, Preprocessed) and base.shape is None and model.label_kind.has_positions):
        return x
    texts = np.asarray(x)
    if texts.dtype.kind not in "OSU":
        return x
    return keras.tree.map_structure(keras.ops.convert_to_numpy, base.preprocessor(as_strings(texts.reshape(-1))))


def _check_tokens(ids: np.ndarray, annotations: Annotations) -> None:
    """Rejects word ids, 0 for padding, unless there is one for each token that annotators saw."""
    labelled = np.zeros(len(ids), dtype=np.int64)
    np.maximum.at(labelled, annotations.task_ids, np.asarray(annotations.positions) + 1)
    numbers = np.where(ids != 0, np.arange(1, ids.shape[1] + 1), 0).max(axis=1, initial=0)
    for row in np.flatnonzero((labelled > 0) & (labelled != numbers)):
        raise DataError(
            f"task {annotations.tasks[row]!s} has {labelled[row]} labelled tokens, and the preprocessor makes "
            f"{numbers[row]} of its text. They must be the same: write "
            "x = np.array([' '.join(tokens) for tokens in crowd.tokens]) and "
            "keras.layers.TextVectorization(standardize=None), without output_sequence_length."
        )


def _check_finite(model: keras.Model, x: Any) -> None:
    """Rejects instances with NaN or infinity, unless the base's output for them is finite."""
    ops = keras.ops
    x = keras.tree.map_structure(lambda array: ops.convert_to_numpy(array) if ops.is_tensor(array) else array, x)
    x = keras.tree.map_structure(np.asarray, x)
    for part in keras.tree.flatten(x):
        for start in range(0, len(part) if part.ndim and part.dtype.kind == "f" else 0, ROWS_AT_ONCE):
            wrong = np.argwhere(~np.isfinite(part[start : start + ROWS_AT_ONCE]))
            if not len(wrong):
                continue
            where = tuple((wrong[0] + [start, *[0] * (part.ndim - 1)]).tolist())
            answer = model.base(keras.tree.map_structure(lambda array, row=where[0]: array[row : row + 1], x))
            if np.isfinite(np.asarray(ops.convert_to_numpy(answer), "float64")).all():
                return
            raise DataError(
                f"x[{', '.join(map(str, where))}] is {part[where]}, and the base's output for it is not "
                "finite. Fill in such values, or drop these rows from x and from the labels."
            )


def _masks(model: keras.Model, x: Any, y: Labels) -> MaskData:
    """Images and annotators' masks, which must have the size of the base's output."""
    x, ids = (x["instances"], x["annotators"]) if has_annotators(x) else (instances_of(x), None)
    _build_on(model, x)
    _check_finite(model, x)
    crowd = model.crowd
    data = MaskData(x, y, ids, num_annotators=crowd.num_annotators, num_classes=crowd.num_classes)
    _check_pixels(model, answer_shape(data)[1:])
    return data


def _check_pixels(model: keras.Model, drawn: tuple[int, ...]) -> None:
    """Rejects masks whose size differs from that of the base's output."""
    output_size = model.bottleneck_shape[1:3]
    if not same_shape(output_size, drawn):
        raise DataError(
            f"masks have {drawn[0]} x {drawn[1]} pixels, the base gives {output_size[0]} x {output_size[1]}: scale "
            "the masks to the base's output, classes unmixed (nearest neighbour)."
        )


def _read_frame(model: keras.Model, x: Any, y: Labels, task: str | None, line: str) -> tuple[Any, Any, str]:
    """Returns the arguments, with a frame of annotations converted to `Annotations` by the model's names."""
    annotations = annotations_from_frame(
        y, model.crowd.kind, task, line=line, annotators=model.annotators, classes=model.classes
    )
    if annotations is y:
        return x, y, line
    if model.annotators is None and line != FIT:
        raise DataError(
            "the model does not know the names of its annotators, which a frame has. Set model.annotators and "
            "model.classes to those of the annotations that it was trained on."
        )
    return with_task_column(x, task), annotations, line.replace("annotations", f"frame, {task=}" if task else "frame")


def _from_padded(crowd: CrowdLayer, ids: Any, labels: Any) -> Annotations:
    """Annotations from arrays in the sparse form."""
    ids, labels, kind = np.asarray(ids), np.asarray(labels), crowd.label_kind
    if ids.ndim != 2 or labels.ndim != kind.axes + 1 or ids.shape != (labels.shape[0], labels.shape[-1]):
        written = f"{kind.shape[:-1]}, M]"
        raise DataError(f"annotators must have shape [tasks, M], labels {written}, got {ids.shape} and {labels.shape}")
    cells = np.nonzero(kind.observed(labels))
    task, values = cells[0], labels[cells]
    annotator = ids[task, cells[-1]]
    if (annotator < 0).any():
        row = task[annotator < 0][0]
        raise DataError(f"row {row} of annotators has padding (-1) where row {row} of the labels has a label")
    highest = int(annotator.max(initial=-1))
    return Annotations(
        kind.name,
        task,
        annotator,
        values,
        tasks=np.arange(len(ids)),
        annotators=np.arange(max(highest + 1, crowd.num_annotators)),
        classes=np.arange(int(values.max(initial=0)) + 1) if kind.has_classes else None,
        positions=cells[1] if kind.has_positions else None,
    )


def _check_sizes(crowd: CrowdLayer, annotations: Annotations, are_codes: bool) -> None:
    """Rejects other numbers of annotators or classes than the model's, as codes may then differ in meaning.

    An array holds codes (`are_codes`) and need not contain the last classes.
    """
    num_annotators, num_classes = crowd.num_annotators, crowd.num_classes
    if annotations.num_annotators != num_annotators:
        raise DataError(
            f"the crowd layer has {num_annotators:,} annotators, the annotations have "
            f"{annotations.num_annotators:,}, {list_names(annotations.annotators)}. Make the layer for them, "
            f"{type(crowd).__name__}(annotations.num_annotators, ...); or read annotations of other tasks "
            "with annotators=TRAINED.annotators, TRAINED being those that the model was trained on."
        )
    if annotations.classes is None or num_classes is None or num_classes == annotations.num_classes:
        return
    if are_codes:
        if annotations.num_classes < num_classes:
            return
        raise DataError(
            f"labels must be class codes 0 to {num_classes - 1} ({num_classes} classes of the model), the "
            f"annotations have codes {annotations.labels.min()} to {annotations.labels.max()}"
        )
    fix = "End the base with as many outputs, Dense(annotations.num_classes, activation='softmax')"
    if crowd.traits.needs_hidden_layer:
        fix = f"Write {type(crowd).__name__}(annotations.num_annotators, annotations.num_classes, ...)"
    raise DataError(
        f"the model has {num_classes} classes, the annotations have {annotations.num_classes}, "
        f"{list_names(annotations.classes)}. {fix}; or name all classes where annotations are read, classes=[...], "
        "in the order of the outputs."
    )


def target_arrays(model: keras.Model, x: Examples, y: Labels, sample_weight: ArrayLike | None) -> tuple:
    """Arrays to train a base alone; class codes become one-hot if the loss expects distributions."""
    if isinstance(y, Annotations):
        raise DataError("this model has no crowd layer: aggregate the annotations and give their posteriors [N, K]")
    x, y = keras.tree.map_structure(np.asarray, instances_of(x)), np.asarray(y)
    _build_on(model, x)
    x = token_ids(model, x)
    shape: tuple[Any, ...] = model.bottleneck_shape or ()
    kind = model.label_kind
    if isinstance(model.loss, (keras.losses.CategoricalCrossentropy, MaskedCrossentropy)) and y.ndim == len(shape) - 1:
        codes = gold_targets(y, kind.name, shape[-1] or 0, 0)
        y = (np.asarray(codes)[..., None] == np.arange(shape[-1] or 0)).astype("float32")
    elif isinstance(model.loss, keras.losses.CategoricalCrossentropy) and y.ndim == len(shape):
        _check_distributions(y)
    elif isinstance(model.loss, keras.losses.MeanSquaredError) and y.ndim == 1 and not kind.has_classes:
        y = y[:, None]
    return x, y, None if sample_weight is None else np.asarray(sample_weight)


def _check_distributions(y: np.ndarray) -> None:
    """Rejects targets that are not distributions: Keras' gradient on TensorFlow is wrong for them, even for zeros."""
    totals = y.sum(axis=-1)
    wrong = np.argwhere(~(np.abs(totals - 1) <= SUM_TOLERANCE) | (y < 0).any(axis=-1))
    if len(wrong):
        row = tuple(wrong[0])
        raise DataError(
            f"row {row[0]} of the targets, {list_names(y[row])}, is not a distribution over classes; its sum is "
            f"{totals[row]:.4g} ({len(wrong):,} of {len(y):,} rows). Divide each row by its sum, and leave out rows of "
            "zeros, of x as well: keep = y.any(axis=1); fit(x[keep], y[keep])."
        )


def evaluation_batches(
    model: keras.Model,
    x: Examples,
    y: Labels,
    sample_weight: ArrayLike | None = None,
    *,
    tasks: ArrayLike | None = None,
    task: str | None = None,
    line: str,
    **order: Any,
) -> KerasBatches:
    """Batches of the arguments of `evaluate`; `line` is the call that messages suggest."""
    if model.crowd is None:
        return TargetBatches(*target_arrays(model, x, y, sample_weight), **order).for_keras()
    gold, crowd = None, model.crowd
    weights: BatchOrder = {} if sample_weight is None else {"sample_weight": sample_weight}
    x, y, line = _read_frame(model, x, y, task, line)
    if not isinstance(y, Annotations) and not has_annotators(x):
        _build_on(model, instances_of(x))
        gold = gold_targets(y, crowd.kind, crowd.num_classes or 0, crowd.num_annotators)
    if gold is None:
        return crowd_arrays(model, x, y, tasks, line=line).batches(**order, **weights)
    if crowd.label_kind.has_pixels:
        _check_pixels(model, gold.shape[1:])
    x = instances_of(x)
    ids = token_ids(model, x)
    if ids is not x:  # gold beyond the end of a shorter sentence is unknown
        width = keras.tree.flatten(ids)[0].shape[1]
        gold = np.pad(gold, ((0, 0), (0, max(width - gold.shape[1], 0))), constant_values=-1)
    arrays = ids, gold, sample_weight
    if gold.ndim == 1 and num_rows(arrays[0]) == len(gold):  # Keras weights a batch by all of its rows
        known = crowd.label_kind.observed(gold)
        arrays = keras.tree.map_structure(lambda array: None if array is None else np.asarray(array)[known], arrays)
    return TargetBatches(*arrays, **order).for_keras()


def hold_out(data: Any, fraction: float, order: BatchOrder) -> tuple[Any, KerasBatches]:
    """The remaining training data, and batches of the last rows."""
    if isinstance(data, (ArrayData, MaskData)):
        training, held_out = data.split(fraction)
        if "sample_weight" in order:
            order = order | {"sample_weight": order["sample_weight"][training.num_tasks :]}
        return training, held_out.batches(**order)
    if not isinstance(data, tuple):
        raise ConfigError("fit: validation_split is for arrays; with a dataset write validation_data=ANOTHER_DATASET")
    place = split_row(num_rows(data[0]), fraction)
    training = keras.tree.map_structure(lambda array: None if array is None else array[:place], data)
    held_out = keras.tree.map_structure(lambda array: None if array is None else array[place:], data)
    return training, TargetBatches(*held_out, **order).for_keras()


def task_weights(crowd: CrowdLayer | None, data: object, sample_weight: ArrayLike) -> np.ndarray:
    """Checks and returns the weights of a crowd model's training tasks, `[N]`.

    Raises:
        ConfigError: a method that cannot weight tasks, or data that are not in memory.
        DataError: as `checked_weights`.
    """
    if not isinstance(data, (ArrayData, MaskData)):
        raise ConfigError("fit: sample_weight is for arrays. Put the weights into your own batches: (x, y, weights).")
    if crowd is not None and not crowd.traits.accepts_sample_weight:
        raise ConfigError(
            f"fit: sample_weight is not for {type(crowd).__name__}, which compares tasks with each other. Leave tasks "
            "out, fit(x, annotations.select_tasks(kept), tasks=ids), or use another layer, such as ConfusionMatrices."
        )
    return checked_weights(sample_weight, data.num_tasks)


def _build_on(model: keras.Model, x: Any) -> None:
    """Builds a base that takes its input's shape from the first data, or checks the shape."""
    if model.built:
        return check_shapes(model, x)
    num_rows(x)
    model(keras.tree.map_structure(lambda array: np.asarray(array)[:1], x))


def check_shapes(model: keras.Model, x: Examples) -> None:
    """Rejects arrays that the base of a built `CrowdModel` cannot process, before they are traced.

    Raises:
        DataError: names the shapes of x, and those that the model expects.
    """
    parts = keras.tree.flatten(x)
    if not all(hasattr(part, "shape") for part in parts):
        return
    shapes = [list(part.shape) for part in parts]
    known = [[None, *symbol.shape[1:]] for symbol in keras.tree.flatten(symbols(model.instances_shape))]
    if len(shapes) != len(known) or not all(map(same_shape, shapes, known)):
        try:  # a base may accept other sizes as well
            if len(shapes) != len(known) and not isinstance(x, Mapping):
                raise ValueError("Keras 3.15 would take the first of the arrays")
            model.base(keras.tree.map_structure(lambda part: part[:1], x))
        except Exception as error:
            is_single = shapes == [shape[1:] for shape in known]
            raw = getattr(model.base, "preprocessor", None) is not None  # a task of Keras Hub
            raise DataError(
                f"x has the shape {', '.join(map(str, shapes))}, the model takes {', '.join(map(str, known))}, with "
                f"any number of rows for None.{' For a single instance write x[None].' if is_single else ''}"
                f"{' Raw strings or images need crowdzoo.models.Preprocessed(base) as base.' if raw else ''}"
            ) from error


def symbols(shape: Any) -> Tensor:
    """Symbolic tensors for a structure of shapes; a shape is a tuple, or a list read from JSON."""
    if isinstance(shape, Mapping):
        return {name: symbols(part) for name, part in shape.items()}
    if all(size is None or isinstance(size, int) for size in shape):
        return keras.KerasTensor(tuple(shape))
    return [symbols(part) for part in shape]
