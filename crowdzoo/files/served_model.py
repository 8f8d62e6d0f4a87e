"""Files of a served model, how to load it, and how to combine its answers; without Keras."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

# TF Serving only looks for warm-up requests here
WARMUP_FILE = "assets.extra/tf_serving_warmup_requests"
MODEL_CARD_FILE = "assets.extra/model_card.json"
BLESSING_FILE = "assets.extra/blessing.json"  # why it was pushed; copies of the model do not have this and the next two
DRIFT_FOLDER = "assets.extra/drift"  # schema and statistics of the run that pushed it
ORIGIN_FILE = "assets.extra/origin.json"  # names of the files, commit and MLflow run that it was made with
# One real request per signature, for `curl` lines that can be pasted whatever the length of an instance.
REQUEST_FILES = {
    "serving_default": "assets.extra/request.json",
    "annotators": "assets.extra/request_annotators.json",
    "spans": "assets.extra/request_spans.json",
    "pairs": "assets.extra/request_pairs.json",
}


def load_saved_model(folder: str | Path) -> Any:
    """Loads a SavedModel, importing tensorflow-text first if its graph splits text into tokens.

    Raises:
        ValueError: the model needs tensorflow-text, which is not installed.
        OSError, tf.errors.OpError: the model cannot be loaded.
    """
    import tensorflow as tf

    if b"RegexSplitWithOffsets" in (Path(folder) / "saved_model.pb").read_bytes():
        try:
            import tensorflow_text  # noqa: F401  registers the operations
        except ImportError as error:
            raise ValueError("its graph needs tensorflow-text: pip install 'crowdzoo[text]'") from error
    return tf.saved_model.load(str(folder))


def as_text(array: np.ndarray) -> np.ndarray:
    """Converts the UTF-8 bytes of a string tensor to `str`; other arrays are unchanged."""
    if array.dtype != object:
        return array
    return np.array([cell.decode("utf-8", errors="replace") for cell in array.flat], dtype=str).reshape(array.shape)


def stacked(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Concatenates answers to several requests, after padding them to the same length."""
    shapes = [part.shape[1:] for part in parts]
    if len(set(shapes)) == 1 or len({len(shape) for shape in shapes}) > 1:
        return np.concatenate(parts)
    widest = np.max(shapes, axis=0)
    filler: Any = {"O": b"", "U": ""}.get(parts[0].dtype.kind, 0)
    padding = ([(0, 0), *((0, int(more)) for more in widest - part.shape[1:])] for part in parts)
    padded = (np.pad(part, widths, constant_values=filler) for part, widths in zip(parts, padding, strict=True))
    return np.concatenate([*padded])


# "annotator" is an input of the signature `annotators`, "instances" the only input of models of other instances;
# TensorFlow does not accept an argument called "self"
_TAKEN = ("annotator", "instances", "self")


def served_name(column: str) -> str:
    """Converts the name of a column to a valid input of a served model: ASCII letters, digits and underscores.

    Args:
        column: name of the column in the file, such as "age (years)".

    Returns:
        The same name if it is valid. Otherwise blanks and punctuation become `_`, letters beyond ASCII become `u` and
        their code point, and a `c` is added before a first character that is not a letter: "age__years_",
        "gru00f6u00dfe", "c2nd".
    """
    name = re.sub(r"[^\W\d_]", lambda letter: letter[0] if letter[0].isascii() else f"u{ord(letter[0]):04x}", column)
    name = re.sub(r"[^A-Za-z0-9_]", "_", name)
    if not name[:1].isalpha():
        name = f"c{name}"
    return f"{name}_" if name in _TAKEN else name
