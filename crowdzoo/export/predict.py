"""Predictions with an exported model in this process."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from crowdzoo.errors import ServingError
from crowdzoo.files.served_model import as_text, load_saved_model, stacked
from crowdzoo.files.version_folders import newest_version
from crowdzoo.reading.instances.images import check_no_paths
from crowdzoo.reading.instances.upright_image import opened

if TYPE_CHECKING:
    import tensorflow as tf


def load_and_predict(
    path: str | Path,
    instances: ArrayLike | Mapping[str, ArrayLike],
    *,
    batch_size: int = 256,
    signature: str = "serving_default",
    on_batch: Callable[[], object] | None = None,
) -> dict[str, np.ndarray]:
    """Predicts with an exported model in this process, without a server.

    Args:
        path: an exported model, or a served folder `MODEL_DIR`, whose highest version is used.
        instances: array `[n, ...]`, input of the exported model's signature; for a model of texts n strings; for images
            the bytes of n files, or their paths (`Path`); for several inputs a dictionary of arrays by name.
        batch_size: number of instances per call.
        signature: "serving_default" or "spans".
        on_batch: called after each call of the model, to show progress.

    Returns:
        The signature's outputs as in `export_model`, strings as `str`, with padding to the longest of all.

    Raises:
        ServingError: there is no model at `path`, or it does not accept these instances.
    """
    return load_predictor(path, signature, on_batch)(instances, batch_size)


def load_predictor(
    path: str | Path, signature: str = "serving_default", on_batch: Callable[[], object] | None = None
) -> Callable[[ArrayLike | Mapping[str, ArrayLike], int], dict[str, np.ndarray]]:
    """Loads an exported model for repeated predictions.

    Args:
        path: as for `load_and_predict`.
        signature: as for `load_and_predict`.
        on_batch: as for `load_and_predict`.

    Returns:
        A function of instances and of the number of instances per call, with the result of `load_and_predict`.

    Raises:
        ServingError: there is no model at `path`; the function raises it if the model does not accept the instances.
    """
    import tensorflow as tf

    folder = newest_version(path)
    try:
        loaded = load_saved_model(folder)  # assigned to a name, as the variables live as long as this object
    except Exception as error:  # TensorFlow raises many kinds of errors for damaged files
        reason = str(error).strip() or type(error).__name__
        raise ServingError(
            f"{folder}: this model cannot be loaded: {reason[:1000]}. Export it again, or copy the whole folder again."
        ) from error
    if signature not in loaded.signatures:
        raise ServingError(f"{folder}: this model has no signature {signature}, only {sorted(loaded.signatures)}")
    specs = loaded.signatures[signature].structured_input_signature[1]

    def predict(instances: ArrayLike | Mapping[str, ArrayLike], batch_size: int) -> dict[str, np.ndarray]:
        arrays = _arrays(folder, instances, specs)
        rows = {name: len(array) for name, array in arrays.items()}
        if len({*rows.values()}) > 1:
            raise ServingError(f"{folder}: the inputs have different numbers of rows: {rows}")
        parts = []
        for i in range(0, max([1, *rows.values()]), batch_size):
            inputs = {
                name: tf.constant(opened(array[i : i + batch_size]), specs[name].dtype)
                for name, array in arrays.items()
            }
            parts.append(loaded.signatures[signature](**inputs))
            if on_batch is not None:
                on_batch()
        return {name: as_text(stacked([part[name].numpy() for part in parts])) for name in parts[0]}

    return predict


def _arrays(
    folder: Path, instances: ArrayLike | Mapping[str, ArrayLike], specs: Mapping[str, tf.TensorSpec]
) -> dict[str, np.ndarray]:
    """An array for each input of a signature."""
    if isinstance(instances, Mapping):
        inputs = dict(instances)
    elif [*specs] != ["instances"]:
        raise ServingError(f"{folder}: give the inputs by name, as the model takes them: {', '.join(sorted(specs))}")
    else:
        inputs = {"instances": instances}
    if {*inputs} != {*specs}:
        raise ServingError(f"{folder}: the model takes {', '.join(sorted(specs))}, got {', '.join(map(str, inputs))}")
    return {name: _array(folder, name, inputs[name], specs[name]) for name in sorted(specs)}


def _array(folder: Path, name: str, values: ArrayLike, spec: tf.TensorSpec) -> np.ndarray:
    """An input in the model's type."""
    if spec.dtype.name == "string":
        array = np.asarray(values, dtype=object)
        fits = all(isinstance(text, str | bytes | os.PathLike) for text in array.flat)
        check_no_paths(name, array)
    else:
        array = np.asarray(values)
        fits = array.dtype.kind in "biuf"
    if not fits or not spec.shape.is_compatible_with(array.shape):
        raise ServingError(
            f"{folder}: {name} has shape {list(array.shape)} ({np.asarray(values).dtype}), "
            f"the model takes {spec.shape.as_list()} ({spec.dtype.name})"
        )
    return array.astype(spec.dtype.as_numpy_dtype)
