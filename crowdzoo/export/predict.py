"""Predictions with an exported model in this process."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from crowdzoo.errors import ServingError
from crowdzoo.files.served_model import as_text, load_saved_model, stacked
from crowdzoo.files.version_folders import newest_version

__all__ = ["load_and_predict"]


def load_and_predict(
    path: str | Path, instances: Any, *, batch_size: int = 256, signature: str = "serving_default"
) -> dict[str, np.ndarray]:
    """Predicts with an exported model in this process, without a server.

    Args:
        path: an exported model, or a served folder `MODEL_DIR`, whose highest version is taken.
        instances: array `[n, ...]`, as the exported model's signature takes them; of a model of texts n strings; of
            several inputs a dictionary of arrays.
        batch_size: instances in a call.
        signature: "serving_default" or "spans".

    Returns:
        The signature's outputs as in `export_model`, strings as `str`; what is padded, to the longest of all.

    Raises:
        ServingError: there is no model at `path`, or it does not take these instances.
    """
    import tensorflow as tf

    folder = newest_version(path)
    try:
        loaded = load_saved_model(folder)  # kept in a name: the variables live as long as it does
    except Exception as error:  # TensorFlow raises a dozen kinds for files that are damaged
        reason = str(error).strip() or type(error).__name__
        raise ServingError(
            f"{folder}: this model cannot be loaded: {reason[:1000]}. Export it again, or copy the whole folder again."
        ) from error
    if signature not in loaded.signatures:
        raise ServingError(f"{folder}: this model has no signature {signature}, only {sorted(loaded.signatures)}")
    function = loaded.signatures[signature]
    specs = function.structured_input_signature[1]
    inputs = _inputs(instances, specs, folder)
    size = len(next(iter(inputs.values())))
    parts = []
    for start in range(0, max(size, 1), batch_size):
        batch = {name: array[start : start + batch_size] for name, array in inputs.items()}
        parts.append(function(**{name: tf.constant(part, specs[name].dtype) for name, part in batch.items()}))
    return {name: as_text(stacked([part[name].numpy() for part in parts])) for name in parts[0]}


def _inputs(instances: Any, specs: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Instances by the names of a signature's inputs."""
    if "instances" not in specs and not isinstance(instances, Mapping):
        raise ServingError(f"{folder}: this model takes a dictionary of instances with {', '.join(map(repr, specs))}")
    given = instances if isinstance(instances, Mapping) else {"instances": instances}
    if set(given) != set(specs):
        raise ServingError(
            f"{folder}: this model takes {', '.join(map(repr, specs))}, not {', '.join(map(repr, given))}"
        )
    return {name: _input(given[name], spec, folder) for name, spec in specs.items()}


def _input(instances: Any, spec: Any, folder: Path) -> np.ndarray:
    if spec.dtype.name == "string":
        array = np.asarray(instances, dtype=object)
        fits = all(isinstance(text, str | bytes) for text in array.flat)
    else:
        array = np.asarray(instances)
        fits = array.dtype.kind in "biuf"
    if not fits or not spec.shape.is_compatible_with(array.shape):
        raise ServingError(
            f"{folder}: instances have shape {list(array.shape)} ({np.asarray(instances).dtype}), "
            f"the model takes {spec.shape.as_list()} ({spec.dtype.name})"
        )
    return array.astype(spec.dtype.as_numpy_dtype)
